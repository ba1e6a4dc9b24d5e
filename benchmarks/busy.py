"""CPU seconds of small trainings beside processes that are always busy, and of importing torch."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.command import parser, report, timed
from benchmarks.problem import generated, pages

COLUMNS = {
    "nodes": "{nodes}",
    "epochs": "{epochs}",
    "width": "{dim}",
    "build": "{build}",
    "threads": "{threads}",
    "CPU s, least": "{least:.2f}",
    "most": "{most:.2f}",
    "least beyond torch": "{beyond:.2f}",
}
TRAININGS = ((200, 200, 128), (7126, 30, 64), (7126, 30, 128), (7126, 30, 512))
"""Nodes, epochs and width."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every training several times, in turns with an earlier build if there is one, and print
    least and most."""
    options = parser(__doc__)
    options.add_argument("--busy", type=int, default=3, help="processes that are always busy  [3]")
    options.add_argument(
        "--before", type=Path, metavar="SRC", help="the folder src of an earlier build"
    )
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument(
        "--trainings", type=int, default=len(TRAININGS), help="only the first so many"
    )
    settings = options.parse_args(arguments)
    builds = [("now", settings.threads)]
    if settings.before:
        builds += [("before", settings.threads), ("before", 1)]
    found: dict[tuple[Any, ...], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, _busy(settings.busy):
        graphs = {200: Path(folder) / "200.npz", 7126: Path(folder) / "7126.npz"}
        generated(200, words=32).save(graphs[200])
        pages(7126, words=3170).save(graphs[7126])
        for turn in range(settings.repeats):
            torch_s = timed([[sys.executable, "-c", "import torch"]], settings.threads)[1]
            found.setdefault(("torch",), []).append(torch_s)
            for nodes, epochs, dim in TRAININGS[: settings.trainings]:
                for build, threads in builds:
                    out = str(Path(folder) / f"{nodes}-{dim}-{build}-{threads}-{turn}")
                    # A build is found by the folder that holds it; env(1) keeps ours for the other
                    # processes.
                    source = [f"PYTHONPATH={settings.before}"] if build == "before" else []
                    train = [
                        "env",
                        *source,
                        sys.executable,
                        "-m",
                        "infomax",
                        "train",
                        str(graphs[nodes]),
                    ]
                    train += [
                        "--epochs",
                        str(epochs),
                        "--dim",
                        str(dim),
                        "--device",
                        settings.device,
                        "--out",
                        out,
                    ]
                    found.setdefault((nodes, epochs, dim, build, threads), []).append(
                        timed([train], threads)[1]
                    )
    torch = found.pop(("torch",))
    names = ("nodes", "epochs", "dim", "build", "threads")
    rows = [
        dict(zip(names, key, strict=True))
        | {"least": min(s), "most": max(s), "beyond": min(s) - min(torch)}
        for key, s in found.items()
    ]
    report(
        settings,
        f"Small trainings beside {settings.busy} busy processes, {settings.repeats} runs",
        rows,
        COLUMNS,
    )
    print(f"import torch: {min(torch):.2f} to {max(torch):.2f} CPU s; {os.cpu_count()} cores")


@contextmanager
def _busy(number: int) -> Iterator[None]:
    """Keep so many processes busy within this context."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
