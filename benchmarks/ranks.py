"""Nodes per second of a training in exact batches that several processes share under torchrun."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.batches import OurBatches
from benchmarks.command import numbers, parser, report
from benchmarks.problem import load
from infomax.cli.torchrun import joined
from infomax.graphs.graph import Graph

COLUMNS = {
    "processes": "{processes}",
    "median ms": "{median_ms:.1f}",
    "fastest - slowest": "{fastest_ms:.1f} - {slowest_ms:.1f}",
    "CPU ms of one process": "{cpu_ms:.1f}",
    "nodes/s": "{nodes_s:,.0f}",
    "against the first row": "{speed_up:.2f}",
    "last loss": "{loss:.4f}",
}


def measure(settings: Any) -> None:
    """Train on one rank, after a turn of warm-up; rank 0 prints the seconds of every turn as
    JSON."""
    with joined(settings.device) as ranks:
        torch.set_num_threads(settings.threads)
        torch.set_float32_matmul_precision("high")
        graph, device = Graph.open(settings.graph), torch.device(settings.device)
        if settings.apart:
            ours = OurBatches(graph, settings.dim, settings.batch // ranks.count, device)
        else:
            ours = OurBatches(graph, settings.dim, settings.batch, device, ranks)
        ours.train(settings.steps)
        seconds, work = [], time.process_time()
        for _ in range(settings.repeats):
            ranks.wait()
            began = time.perf_counter()
            loss = ours.train(settings.steps)
            seconds.append(time.perf_counter() - began)
        work = time.process_time() - work
        if ranks.rank == 0:
            print(json.dumps({"seconds": seconds, "cpu_seconds": work, "loss": loss}))


def turn(settings: Any, graph: Path, count: int) -> dict[str, Any]:
    """Start so many processes by torchrun, or one without it for 0; returns what rank 0 prints.

    On a CPU they are confined to as many cores as they have threads, unless all cores are asked
    for: several processes read the next batch while they wait for each other, by further threads.
    """
    words = ["--graph", graph, *(["--apart"] if settings.apart else [])]
    for name in ("device", "threads", "dim", "batch", "steps", "repeats"):
        words += [f"--{name}", getattr(settings, name)]
    launcher = (
        ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        if count
        else []
    )
    command = [sys.executable, *launcher, "-m", "benchmarks.ranks", *map(str, words)]
    variables = os.environ | {"OMP_NUM_THREADS": str(settings.threads)}
    if settings.device == "cpu" and not settings.all_cores and shutil.which("taskset"):  # Linux
        cores = sorted(os.sched_getaffinity(0))[: max(count, 1) * settings.threads]
        command = ["taskset", "--cpu-list", ",".join(map(str, cores)), *command]
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__, dataset="generated-reddit")
    options.add_argument(
        "--scale", type=float, help="size of generated-reddit, as a multiple of Reddit's nodes"
    )
    options.add_argument(
        "--ranks", type=numbers, default=[1, 2, 4, 8], help="processes; 0: one, without torchrun"
    )
    options.add_argument("--dim", type=int, default=512)
    options.add_argument(
        "--batch", type=int, default=16_384, help="nodes per step, of all processes together"
    )
    options.add_argument("--steps", type=int, default=2, help="steps per turn")
    options.add_argument("--repeats", type=int, default=5, help="turns that are measured")
    options.add_argument(
        "--apart",
        action="store_true",
        help="processes with a model and a part of the batch each: what the machine can do",
    )
    options.add_argument(
        "--all-cores", action="store_true", help="let processes use more cores than their threads"
    )
    options.add_argument(
        "--graph", type=Path, help="measure on this graph folder; used by the processes themselves"
    )
    settings = options.parse_args(arguments)
    if settings.graph:
        measure(settings)
        return
    graph = load(settings.dataset, **({} if settings.scale is None else {"scale": settings.scale}))
    rows = []
    with TemporaryDirectory() as folder:
        graph.save(Path(folder) / "reddit.graph")
        for count in settings.ranks:
            found = turn(settings, Path(folder) / "reddit.graph", count)
            times = [1000 * seconds / settings.steps for seconds in found["seconds"]]
            row = {
                "processes": count or "1, without torchrun",
                "median_ms": median(times),
                "loss": found["loss"],
            }
            row["cpu_ms"] = 1000 * found["cpu_seconds"] / (settings.steps * settings.repeats)
            row |= {"fastest_ms": min(times), "slowest_ms": max(times), "turns_ms": times}
            row["nodes_s"] = 1000 * min(settings.batch, graph.num_nodes) / row["median_ms"]
            rows.append(row | {"speed_up": row["nodes_s"] / (rows[0] if rows else row)["nodes_s"]})
    title = f"{settings.dataset}, {graph.num_nodes:,} nodes, batch {settings.batch:,}, {settings.dim} wide, "
    report(settings, f"{title}{settings.threads} threads per process", rows, COLUMNS)


if __name__ == "__main__":
    main()
