"""Peak memory of a training, with one process per contender."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# No heavy imports here: on Linux a child process inherits the peak of its parent.
from benchmarks.command import WHOLE_GRAPH, paper_dim, parser, report
from infomax.memory import peak_bytes

EPOCHS = 3

COLUMNS = {
    "contender": "{contender}",
    "baseline MB": "{baseline_mb:.0f}",
    "training MB": "{training_mb:.0f}",
    "peak MB": "{peak_mb:.0f}",
    "ratio of peaks": "{ratio:.2f}",
}


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__, dataset="cora", peers=WHOLE_GRAPH)
    options.add_argument(
        "--dim", type=int, help="width; default: the paper's, 512, or 256 for Pubmed"
    )
    options.add_argument(
        "--contender", help="measure only this contender, in this process, and print JSON"
    )
    settings = options.parse_args(arguments)
    settings.dim = settings.dim or paper_dim(settings.dataset)
    if settings.contender:
        row = measure(
            settings.contender, settings.dataset, settings.dim, settings.device, settings.threads
        )
        print(json.dumps(row))
        return
    passed = [
        f"--{name}={getattr(settings, name)}" for name in ("dataset", "dim", "device", "threads")
    ]
    rows = [apart(name, passed) for name in ("ours", *settings.peers)]
    for row in rows:
        row["ratio"] = row["peak_mb"] / rows[0]["peak_mb"]
    report(settings, f"Memory of a training: {settings.dataset}, d = {settings.dim}", rows, COLUMNS)


def apart(name: str, arguments: list[str]) -> dict[str, Any]:
    """Measure a contender in a new process; returns its row."""
    command = [sys.executable, "-m", "benchmarks.memory", f"--contender={name}", *arguments]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True
    )
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def measure(name: str, dataset: str, dim: int, device: str, threads: int) -> dict[str, Any]:
    """Measure megabytes before training and at the peak.

    Before training, everything is imported, an epoch on ten nodes has initialised the libraries,
    and data are loaded.
    """
    import torch

    from benchmarks.ours import Ours
    from benchmarks.peers import PEERS
    from benchmarks.problem import Problem, generated, load

    torch.set_num_threads(threads)
    contender = ({"ours": Ours} | PEERS)[name]
    contender(Problem.of(generated(10), 4, device)).train(1)
    graph = load(dataset)
    baseline = peak_mb(device)
    contender(Problem.of(graph, dim, device)).train(EPOCHS)
    peak = peak_mb(device)
    return {
        "contender": name,
        "baseline_mb": baseline,
        "peak_mb": peak,
        "training_mb": peak - baseline,
    }


def peak_mb(device: str) -> float:
    """Return the peak memory of this process so far, on the GPU or in main memory."""
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_allocated() / 2**20
    return peak_bytes() / 2**20


if __name__ == "__main__":
    main()
