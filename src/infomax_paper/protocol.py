"""The paper's protocol on one data set: DGI beside Random-Init and raw features, over many
encoders."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np

from infomax.datasets import load_dataset
from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.estimator.together import fit_together, vectors_of
from infomax.evaluation.probes import Probe, Score, choose_probe
from infomax.evaluation.results import Row, summarise
from infomax.graphs.graph import Graph
from infomax.kernels.device import choose_device
from infomax.progress import Progress, silent
from infomax.reports.compared_vectors import RAW
from infomax.reports.comparison import chosen_costs, labelled, majority, score_vectors
from infomax_paper.experiments import EXPERIMENTS
from infomax_paper.printed import PAPER

SIDE_BY_SIDE = 25
"""Encoders that a GPU trains at a time."""


def score_dataset(
    dataset: str,
    *,
    runs: int = 50,
    probe: str = "paper",
    device: str = "auto",
    progress: Progress = silent,
) -> dict[str, Any]:
    """Score DGI, Random-Init and raw features on a data set, as JSON values.

    With the validated probe the majority class is scored, too. A run is one encoder, with seeds 0
    to runs - 1; the deviation is over encoders. Raw features have no encoder: theirs is over the
    initialisations of the probe. Nothing is chosen on test nodes.
    """
    probes = {"": probe_for(probe, [dataset])}
    graph = load_dataset(dataset)
    experiment = EXPERIMENTS[dataset]
    codes, splits = labelled(graph)
    # With several labels per node untrained encoders are ahead by a probe that converges: show it.
    if codes.ndim == 2 and probe != "converged":
        probes[", converged probe"] = choose_probe("converged")
    splits_by_test = {
        name: {**splits, "test": splits[part]} for name, part in experiment.tests.items()
    }
    torch_device = choose_device(device)

    rows: list[Row] = []
    methods: dict[str, dict[str, Any]] = {"DGI": {}, "Random-Init": {"epochs": 0}}
    for method_number, (method, changed_settings) in enumerate(methods.items()):
        began = time.perf_counter()
        scores_by_row: dict[str, list[Score]] = {}
        settings = experiment.settings | changed_settings
        for seed, vectors in _encoders(graph, settings, runs, device):
            for (test_name, split), (suffix, score_by) in product(
                splits_by_test.items(), probes.items()
            ):
                score = score_by(vectors, codes, split, seed=seed, device=torch_device)
                scores_by_row.setdefault(method + test_name + suffix, []).append(score)
            first_scores = next(iter(scores_by_row.values()))
            mean = np.mean([score.value for score in first_scores])
            progress(method_number * runs + seed + 1, f"{method} {mean:.4f}")
        seconds = time.perf_counter() - began
        for name, scores in scores_by_row.items():
            values = [score.value for score in scores]
            row = summarise(name, values, seconds, PAPER.get((dataset, name)), experiment.metric)
            rows.append(dataclasses.replace(row, costs=chosen_costs(scores)))

    raw_features = score_vectors(
        RAW,
        scaled_features(graph, experiment.settings),
        codes,
        [splits],
        probes[""],
        is_fixed=True,
        device=torch_device,
        paper=PAPER.get((dataset, RAW)),
        metric=experiment.metric,
    )
    rows.append(raw_features)
    if probe == "validated":
        for name, split in splits_by_test.items():
            rows.append(majority(codes, [split], f"Majority class{name}"))
    return {"dataset": dataset, "probe": probe, "rows": [row.to_dict() for row in rows]}


def scaled_features(graph: Graph, settings: dict[str, Any]) -> Any:
    """The features ``[N, F]``, scaled as for DGI of such settings."""
    return graph.scaler(DGI(**settings).settings().scale).transform(graph.features)


def _encoders(
    graph: Graph, settings: dict[str, Any], runs: int, device: str
) -> Iterator[tuple[int, Any]]:
    """The seed and the vectors ``[N, d]`` of each encoder; a GPU trains `SIDE_BY_SIDE` of them at a
    time."""
    together = SIDE_BY_SIDE if choose_device(device).type == "cuda" else 1
    for start in range(0, runs, together):
        seeds = range(start, min(start + together, runs))
        models = [DGI(**settings, seed=seed, device=device) for seed in seeds]
        fit_together(models, graph, is_one_of_many=True)
        yield from zip(seeds, vectors_of(models, graph), strict=True)


def probe_for(name: str, datasets: Iterable[str]) -> Probe:
    """Look up a probe by name; refuse a probe that cannot score the named data sets."""
    probe = choose_probe(name)
    several_labels = [dataset for dataset in datasets if EXPERIMENTS[dataset].several_labels]
    if name == "validated" and several_labels:
        names = ", ".join(several_labels)
        expected = f"paper or converged for {names}, with several labels per node"
        remedy = "Choose one of these, or other data sets."
        raise InputError("probe", expected, name, remedy)
    return probe
