"""Two trainings at once on the same cores, beside one after the other: seconds by the clock and of CPU time."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import numbers, parser, report

COLUMNS = {
    "nodes": "{nodes:,}",
    "epochs": "{epochs}",
    "one after the other s": "{turns_s:.2f}",
    "at once s": "{together_s:.2f}",
    "ratio": "{ratio:.2f}",
    "CPU s in turns": "{turns_cpu_s:.2f}",
    "CPU s at once": "{together_cpu_s:.2f}",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train two encoders on generated graphs of several sizes, in turns and at once, and print the best of each."""
    options = parser(__doc__)
    options.add_argument("--nodes", type=numbers, default=[200, 7126], help="sizes of the graphs  [200,7126]")
    options.add_argument("--epochs", type=int, default=50)
    options.add_argument("--repeats", type=int, default=3)
    settings = options.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for nodes in settings.nodes:
            graph = _written(nodes, Path(folder))
            found: dict[str, list[tuple[float, float]]] = {"turns": [], "together": []}
            for turn in range(settings.repeats):
                for way, times in found.items():
                    out = Path(folder) / f"{way}-{nodes}-{turn}"
                    commands = [
                        [sys.executable, "-m", "infomax", "train", str(graph), "--out", f"{out}-{one}",
                         "--device", settings.device, "--epochs", str(settings.epochs)]
                        for one in range(2)
                    ]  # fmt: skip
                    times.append(_measure(commands, settings.threads, at_once=way == "together"))
            best = {way: (min(wall for wall, _ in times), min(cpu for _, cpu in times)) for way, times in found.items()}
            rows.append(
                {
                    "nodes": nodes,
                    "epochs": settings.epochs,
                    "turns_s": best["turns"][0],
                    "together_s": best["together"][0],
                    "ratio": best["together"][0] / best["turns"][0],
                    "turns_cpu_s": best["turns"][1],
                    "together_cpu_s": best["together"][1],
                }
            )
    report(settings, f"Two trainings, best of {settings.repeats}", rows, COLUMNS)


def _written(nodes: int, folder: Path) -> Path:
    from benchmarks.problem import generated

    path = folder / f"{nodes}.npz"
    generated(nodes).save(path)
    return path


def _measure(commands: list[list[str]], threads: int, *, at_once: bool) -> tuple[float, float]:
    """Seconds that the commands take, by the clock and of CPU time."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    running: list[subprocess.Popen[bytes]] = []
    for command in commands:
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        if not at_once:
            running[-1].wait()
    if any(process.wait() for process in running):
        raise SystemExit(f"{' '.join(commands[0])} failed")
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
