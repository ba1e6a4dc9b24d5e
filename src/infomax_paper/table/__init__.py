"""The paper's Table 2, or a part of it: all methods on the same nodes, with the same split and the same probe.

FOLDER/cells/DATASET/METHOD.json   the runs of one cell; an interrupted table continues from them
FOLDER/table.json, .md, .html      all cells in the folder, beside the paper's figures
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.datasets import load_dataset
from infomax.errors import InputError, shorten, suggest
from infomax.estimator import DGI
from infomax.evaluation.probes import Probe, Score
from infomax.evaluation.results import summarise
from infomax.evaluation.splits import is_labelled
from infomax.graphs.graph import Graph
from infomax.io.atomic import make_folder, write_text
from infomax.io.json import read_json, write_json
from infomax.kernels.device import choose_device
from infomax.progress import Progress, silent
from infomax.reports.comparison import labelled
from infomax.version import __version__
from infomax_paper.baselines import BASELINES, CITATION, Baseline
from infomax_paper.experiments import EXPERIMENTS
from infomax_paper.printed import PAPER
from infomax_paper.protocol import probe_for, scaled_features
from infomax_paper.table.page import html, markdown

DATASETS = (*CITATION, "reddit", "ppi")
"""The data sets of the paper. "generated-reddit" can be named, too: it is not in the paper, but needs no files."""


def embed(
    graph: Graph, codes: NDArray[Any], seed: int, device: torch.device, **settings: Any
) -> NDArray[np.float32]:
    """Train DGI and return its vectors ``[N, dim]``."""
    return DGI(**settings, seed=seed, device=str(device)).fit_transform(graph).vectors


def raw_features(
    graph: Graph, codes: NDArray[Any], seed: int, device: torch.device, **settings: Any
) -> Any:
    """The features ``[N, F]``, scaled as for DGI."""
    return scaled_features(graph, settings)


def _ours(uses: str, run: Callable[..., Any], seeded: bool = True, **change: Any) -> Baseline:
    settings = {
        name: EXPERIMENTS[name].settings | change for name in (*DATASETS, "generated-reddit")
    }
    return Baseline(
        "vectors", uses, {name: partial(run, **values) for name, values in settings.items()}, seeded
    )


_ROWS = {
    "Raw features": _ours("X", raw_features, seeded=False),
    "Random-Init": _ours("X, A", embed, epochs=0),
    "DGI": _ours("X, A", embed),
    **BASELINES,
}
# In the paper's order: the methods of the upper table, then those that only the lower one has.
METHODS = {
    name: _ROWS[name] for name in dict.fromkeys([method for _, method in PAPER if method in _ROWS])
}
"""Name -> the method, for all rows of the table."""


def make_table(
    folder: Path,
    *,
    datasets: Sequence[str] = DATASETS,
    methods: Sequence[str] = tuple(METHODS),
    runs: int = 50,
    probe: str = "paper",
    device: str = "auto",
    progress: Progress = silent,
) -> dict[str, Any]:
    """Make the missing runs of some cells, and write the table of all cells in the folder; return it as JSON values.

    Runs have the seeds 0 to runs - 1; the deviation is over runs. A method without randomness has one run, and its
    deviation is over the initialisations of the probe. A data set that cannot be read is left out.
    """
    names = [_known("--datasets", name, METHODS["DGI"].runs) for name in datasets]
    rows = [_known("--methods", name, METHODS) for name in methods]
    probed = {
        name
        for name in names
        for row in rows
        if METHODS[row].kind == "vectors" and name in METHODS[row].runs
    }
    measure, place = probe_for(probe, probed), choose_device(device)
    absent: dict[str, str] = {}
    cells = [
        Cell(folder, name, row, probe)
        for name in names
        for row in rows
        if name in METHODS[row].runs
    ]
    if names and rows and not cells:
        able = ", ".join(row for row, method in METHODS.items() if method.runs.keys() & set(names))
        raise InputError(
            "--methods", f"some that run on {', '.join(names)} ({able})", ", ".join(rows)
        )
    total, done = sum(len(cell.missing(runs)) for cell in cells), 0
    write_table(folder, probe, absent)
    for name in names:
        todo = [cell for cell in cells if cell.dataset == name and cell.missing(runs)]
        if not todo:
            continue
        try:
            graph = load_dataset(name)
        except InputError as error:
            absent[name] = f"Expected {error.expected}, found {error.found}. {error.remedy}"
            total -= sum(len(cell.missing(runs)) for cell in todo)
            continue
        for cell in todo:
            for seed in cell.missing(runs):
                cell.run(graph, seed, measure, place)
                done += 1
                progress(done, f"{name}, {cell.method}: {np.mean(cell.scores):.4f}", total)
                write_table(folder, probe, absent)
    return write_table(folder, probe, absent)


class Cell:
    """One method on one data set: its runs, which are stored in a file."""

    def __init__(self, folder: Path, dataset: str, method: str, probe: str) -> None:
        self.dataset, self.method = dataset, method
        self.path = folder / "cells" / dataset / f"{method}.json"
        self.made_by = {"infomax": __version__, "probe": probe}
        self.runs: list[dict[str, Any]] = []
        if self.path.exists():
            stored = read_json(self.path)
            for key, value in self.made_by.items():
                if stored.get(key) != value:
                    remedy = "Choose another folder, or remove this file."
                    raise InputError(
                        str(self.path), f"runs with {key} {value}", str(stored.get(key)), remedy
                    )
            self.runs = stored["runs"]

    @property
    def scores(self) -> list[float]:
        """The scores of all runs, as fractions of 1."""
        return [score for run in self.runs for score in run["scores"]]

    def missing(self, runs: int) -> list[int]:
        """The seeds that are still to be run."""
        made = {run["seed"] for run in self.runs}
        return [
            seed for seed in range(runs if METHODS[self.method].seeded else 1) if seed not in made
        ]

    def run(self, graph: Graph, seed: int, probe: Probe, device: torch.device) -> None:
        """Make one run and store it."""
        row, began = METHODS[self.method], time.perf_counter()
        codes, splits = labelled(graph)
        hidden = np.where(splits["test"].reshape(-1, *[1] * (codes.ndim - 1)), -1, codes)
        output = row.runs[self.dataset](graph.replace(labels={}), hidden, seed, device)
        if row.kind == "predictions":
            test = splits["test"] & is_labelled(codes)
            scores = Score.of(output[test][None], codes[test]).values
        else:
            scores = probe(output, codes, splits, seed=seed, device=device).values
        if row.seeded:
            scores = scores.mean(keepdims=True)
        self.runs.append(
            {"seed": seed, "scores": scores.tolist(), "seconds": time.perf_counter() - began}
        )
        make_folder(self.path.parent)
        write_json(
            self.path,
            {**self.made_by, "dataset": self.dataset, "method": self.method, "runs": self.runs},
        )

    def row(self) -> dict[str, Any]:
        """The cell as a row; ``differs``: from the paper, by more than two deviations (the larger) and 1.5 points."""
        paper, metric = PAPER.get((self.dataset, self.method)), EXPERIMENTS[self.dataset].metric
        row = summarise(
            self.method, self.scores, sum(run["seconds"] for run in self.runs), paper, metric
        )
        points = 1.5 if metric == "accuracy" else 0.015
        differs = (
            paper is not None
            and abs(row.mean - paper[0]) > max(2 * row.std, 2 * (paper[1] or 0), points) + 1e-9
        )
        return {
            "dataset": self.dataset,
            "uses": METHODS[self.method].uses,
            **row.to_dict(),
            "differs": differs,
        }


def write_table(folder: Path, probe: str, absent: dict[str, str]) -> dict[str, Any]:
    """Write table.json, table.md and table.html from the cells in a folder; return the content of table.json."""
    cells = [
        Cell(folder, dataset, method, probe)
        for dataset in METHODS["DGI"].runs
        for method in METHODS
        if (folder / "cells" / dataset / f"{method}.json").exists()
    ]
    table = {"probe": probe, "rows": [cell.row() for cell in cells], "absent": absent}
    make_folder(folder)
    write_json(folder / "table.json", table)
    write_text(folder / "table.md", markdown(table))
    write_text(folder / "table.html", html(table))
    return table


def _known(where: str, name: str, names: Iterable[str]) -> str:
    """The name in our spelling; refuse one that is unknown."""
    spelling = {known.lower(): known for known in names}
    if name.lower() not in spelling:
        remedy = suggest(name, spelling.values(), 1)
        raise InputError(where, f"some of {', '.join(spelling.values())}", shorten(name), remedy)
    return spelling[name.lower()]
