"""The paper's Table 2, or a part of it: all methods on the same nodes, with the same split and the
same probe.

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
"""The data sets of the paper. "generated-reddit" can be named, too: it is not in the paper, but
needs no files."""


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


def _our_method(
    uses: str, run: Callable[..., Any], seeded: bool = True, **changed_settings: Any
) -> Baseline:
    """DGI, or a variant of it, as a row of the table."""
    runs = {}
    for name in (*DATASETS, "generated-reddit"):
        settings = EXPERIMENTS[name].settings | changed_settings
        runs[name] = partial(run, **settings)
    return Baseline("vectors", uses, runs, seeded)


_ROWS = {
    "Raw features": _our_method("X", raw_features, seeded=False),
    "Random-Init": _our_method("X, A", embed, epochs=0),
    "DGI": _our_method("X, A", embed),
    **BASELINES,
}
# In the paper's order: the methods of the upper table, then those that only the lower one has.
_PAPERS_ORDER = dict.fromkeys(method for _, method in PAPER if method in _ROWS)
METHODS = {name: _ROWS[name] for name in _PAPERS_ORDER}
"""By name, the method, for all rows of the table."""


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
    """Make the missing runs of some cells, and write the table of all cells in the folder; return
    it as JSON values.

    Runs have the seeds 0 to runs - 1; the deviation is over runs. A method without randomness has
    one run, and its deviation is over the initialisations of the probe. A data set that cannot be
    read is left out.
    """
    dataset_names = [_match("--datasets", name, METHODS["DGI"].runs) for name in datasets]
    method_names = [_match("--methods", name, METHODS) for name in methods]
    possible = [
        (dataset, method)
        for dataset in dataset_names
        for method in method_names
        if dataset in METHODS[method].runs
    ]
    # A probe scores vectors; predictions are compared with the labels.
    probed = dict.fromkeys(
        dataset for dataset, method in possible if METHODS[method].output == "vectors"
    )
    score_by = probe_for(probe, probed)
    torch_device = choose_device(device)
    if dataset_names and method_names and not possible:
        able_methods = [
            name for name, method in METHODS.items() if method.runs.keys() & set(dataset_names)
        ]
        expected = f"some that run on {', '.join(dataset_names)} ({', '.join(able_methods)})"
        raise InputError("--methods", expected, ", ".join(method_names))

    cells = [Cell(folder, dataset, method, probe) for dataset, method in possible]

    absent: dict[str, str] = {}
    total = sum(len(cell.missing(runs)) for cell in cells)
    done = 0
    write_table(folder, probe, absent)
    for dataset in dataset_names:
        unfinished = [cell for cell in cells if cell.dataset == dataset and cell.missing(runs)]
        if not unfinished:
            continue
        try:
            graph = load_dataset(dataset)
        except InputError as error:
            reason = f"Expected {error.expected}, found {error.found}. {error.remedy}"
            absent[dataset] = reason
            total -= sum(len(cell.missing(runs)) for cell in unfinished)
            continue
        for cell in unfinished:
            for seed in cell.missing(runs):
                cell.run(graph, seed, score_by, torch_device)
                done += 1
                progress(done, f"{dataset}, {cell.method}: {np.mean(cell.scores):.4f}", total)
                write_table(folder, probe, absent)
    return write_table(folder, probe, absent)


class Cell:
    """One method on one data set: its runs, which are stored in a file."""

    def __init__(self, folder: Path, dataset: str, method: str, probe: str) -> None:
        self.dataset = dataset
        self.method = method
        self.path = folder / "cells" / dataset / f"{method}.json"
        self.made_by = {"infomax": __version__, "probe": probe}
        self.runs: list[dict[str, Any]] = []
        if self.path.exists():
            stored = read_json(self.path)
            for key, value in self.made_by.items():
                if stored.get(key) != value:
                    expected = f"runs with {key} {value}"
                    remedy = "Choose another folder, or remove this file."
                    raise InputError(str(self.path), expected, str(stored.get(key)), remedy)
            self.runs = stored["runs"]

    @property
    def scores(self) -> list[float]:
        """The scores of all runs, as fractions of 1."""
        return [score for run in self.runs for score in run["scores"]]

    def missing(self, runs: int) -> list[int]:
        """The seeds that are still to be run."""
        seed_count = runs if METHODS[self.method].seeded else 1
        stored_seeds = {run["seed"] for run in self.runs}
        return [seed for seed in range(seed_count) if seed not in stored_seeds]

    def run(self, graph: Graph, seed: int, probe: Probe, device: torch.device) -> None:
        """Make one run and store it."""
        method = METHODS[self.method]
        began = time.perf_counter()
        codes, splits = labelled(graph)

        # The method sees no label of a test node.
        is_test = splits["test"].reshape(-1, *[1] * (codes.ndim - 1))
        visible_codes = np.where(is_test, -1, codes)
        unlabelled_graph = graph.replace(labels={})
        output = method.runs[self.dataset](unlabelled_graph, visible_codes, seed, device)

        if method.output == "predictions":
            test_rows = splits["test"] & is_labelled(codes)
            scores = Score.of(output[test_rows][None], codes[test_rows]).values
        else:
            scores = probe(output, codes, splits, seed=seed, device=device).values
        if method.seeded:
            scores = scores.mean(keepdims=True)
        seconds = time.perf_counter() - began
        self.runs.append({"seed": seed, "scores": scores.tolist(), "seconds": seconds})
        stored = {"dataset": self.dataset, "method": self.method, "runs": self.runs}
        make_folder(self.path.parent)
        write_json(self.path, {**self.made_by, **stored})

    def row(self) -> dict[str, Any]:
        """The cell as a row; ``differs``: from the paper, by more than two deviations (the larger)
        and 1.5 points."""
        paper = PAPER.get((self.dataset, self.method))
        metric = EXPERIMENTS[self.dataset].metric
        seconds = sum(run["seconds"] for run in self.runs)
        row = summarise(self.method, self.scores, seconds, paper, metric)

        differs = False
        if paper is not None:
            papers_mean, papers_deviation = paper
            points = 1.5 if metric == "accuracy" else 0.015
            margin = max(2 * row.std, 2 * (papers_deviation or 0), points)
            # A difference of just the margin is rounded to either side.
            differs = abs(row.mean - papers_mean) > margin + 1e-9
        return {
            "dataset": self.dataset,
            "uses": METHODS[self.method].uses,
            **row.to_dict(),
            "differs": differs,
        }


def write_table(folder: Path, probe: str, absent: dict[str, str]) -> dict[str, Any]:
    """Write table.json, table.md and table.html from the cells in a folder; return the content of
    table.json."""
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


def _match(location: str, name: str, known_names: Iterable[str]) -> str:
    """The name in our spelling; refuse a name that is unknown."""
    spelling = {known_name.lower(): known_name for known_name in known_names}
    if name.lower() not in spelling:
        expected = f"some of {', '.join(spelling.values())}"
        remedy = suggest(name, spelling.values(), 1)
        raise InputError(location, expected, shorten(name), remedy)
    return spelling[name.lower()]
