"""Growth of the time per whole-graph epoch with nodes, edges and width, on random graphs.

With --folder, growth of the seconds and the memory of each stage of a graph folder with the nodes (`benchmarks.large`):

    python -m benchmarks.growth --folder FOLDER --nodes 1e5,1e6,1e7,1e8
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import large
from benchmarks.command import numbers, parser, report
from benchmarks.epoch import STRETCH
from benchmarks.measure import race
from benchmarks.ours import Ours
from benchmarks.problem import Problem, generated

DEGREE, DIM = 10, 64
DEGREES, DIMS = (5, 10, 20, 40), (64, 128, 256, 512)
"""Degrees or widths to vary with a fixed number of nodes; the other one is the constant above."""

COLUMNS = {
    "growing": "{growing}",
    "nodes": "{nodes:,}",
    "edges": "{edges:,}",
    "d": "{dim}",
    "median ms": "{median_ms:.2f}",
    "p10 - p90": "{p10_ms:.2f} - {p90_ms:.2f}",
    "slope": "{slope}",
}


STAGES = ("prepare", "train", "embed")
STAGE_COLUMNS = {
    "stage": "{stage}",
    "nodes": "{nodes:,}",
    "seconds": "{seconds:.1f}",
    "CPU seconds": "{cpu:.1f}",
    "RSS in GB": "{rss:.2f}",
    "anonymous": "{anonymous:.2f}",
    "slope": "{slope}",
}


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__)
    options.add_argument("--nodes", type=numbers, default=[1_000, 10_000, 100_000, 1_000_000])
    options.add_argument(
        "--fixed", type=numbers, default=[100_000], help="nodes while edges or width grow"
    )
    options.add_argument("--repeats", type=int, default=15, help="rounds at most")
    options.add_argument(
        "--folder", type=Path, help="measure graph folders, with all files of a size in this folder"
    )
    settings = options.parse_args(arguments)
    if settings.folder is not None:
        rows = stages(settings.folder, settings.nodes)
        settings.folder = str(settings.folder)
        report(
            settings,
            "Growth of a graph folder; slope: of seconds, from the row before",
            rows,
            STAGE_COLUMNS,
        )
        return
    torch.set_num_threads(settings.threads)
    (fixed,) = settings.fixed
    series = {
        "nodes": [(n, DEGREE, DIM) for n in settings.nodes],
        "edges": [(fixed, degree, DIM) for degree in DEGREES],
        "dim": [(fixed, DEGREE, dim) for dim in DIMS],
    }
    rows, exponents = [], {}
    for growing, shapes in series.items():
        found = [
            {"growing": growing, **measure(*shape, settings.device, settings.repeats)}
            for shape in shapes
        ]
        sizes, times = ([row[key] for row in found] for key in (growing, "median_ms"))
        for row, slope in zip(
            found, ["", *(f"{slope:.2f}" for slope in slopes(sizes, times))], strict=True
        ):
            row["slope"] = slope
        rows += found
        exponents[growing] = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    report(
        settings,
        f"Growth of an epoch: degree {DEGREE}, d = {DIM} unless they grow",
        rows,
        COLUMNS,
        exponents=exponents,
    )
    print(
        ", ".join(f"ms ~ {growing}^{exponent:.2f}" for growing, exponent in exponents.items()),
        "(least squares; slope: from the row before)",
    )


def measure(n: int, degree: int, dim: int, device: str, most: int) -> dict[str, Any]:
    """Measure one graph; returns its row. Long epochs get fewer rounds."""
    graph = generated(n, degree=degree)
    repeats = min(most, max(3, int(2e7 / (n * dim))))
    (row,) = race({"ours": Ours(Problem.of(graph, dim, device))}, repeats, STRETCH[device])
    return {"nodes": n, "edges": graph.num_edges, "dim": dim, **row}


def stages(folder: Path, sizes: list[int]) -> list[dict[str, Any]]:
    """Measure prepare, train and embed at each number of nodes; returns a row per stage and size.
    Files are removed."""
    rows: list[dict[str, Any]] = []
    for n in sizes:
        place, file = folder / str(n), folder / f"{n}.json"
        large.main(["--nodes", str(n), "--folder", str(place), "--json", str(file)])
        rows += [
            {"nodes": n, **row}
            for row in json.loads(file.read_text())["rows"]
            if row["stage"] in STAGES
        ]
        shutil.rmtree(place)
    rows.sort(key=lambda row: STAGES.index(row["stage"]))  # stable: sizes stay in order
    for before, row in zip([{"stage": ""}, *rows], rows, strict=False):
        known = before["stage"] == row["stage"]
        pair = [(one["nodes"], one["seconds"]) for one in (before, row)] if known else []
        row["slope"] = f"{slopes(*zip(*pair, strict=True))[0]:.2f}" if known else ""
    return rows


def slopes(sizes: Iterable[int], times: Iterable[float]) -> list[float]:
    """Return the exponent between each size and the next."""
    return (np.diff(np.log(list(times))) / np.diff(np.log(list(sizes)))).tolist()


if __name__ == "__main__":
    main()
