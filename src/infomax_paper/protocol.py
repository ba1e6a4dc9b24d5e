"""The paper's protocol on one data set: DGI beside Random-Init and raw features, over many encoders."""

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
from infomax.reports.comparison import chosen_costs, labelled, majority, vectors_row
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
    """Score DGI, Random-Init and raw features on a data set; with the validated probe also the majority class.

    The result is JSON values. A run is one encoder, with seeds 0 to runs - 1; the deviation is over encoders. Raw
    features have no encoder: theirs is over the initialisations of the probe. Nothing is chosen on test nodes.
    """
    measures = {"": probe_for(probe, [dataset])}
    graph, experiment = load_dataset(dataset), EXPERIMENTS[dataset]
    codes, splits = labelled(graph)
    if codes.ndim == 2 and probe != "converged":  # where untrained encoders are ahead: show it
        measures[", converged probe"] = choose_probe("converged")
    tests = {name: {**splits, "test": splits[part]} for name, part in experiment.tests.items()}
    place = choose_device(device)
    rows: list[Row] = []
    for number, (method, change) in enumerate({"DGI": {}, "Random-Init": {"epochs": 0}}.items()):
        began = time.perf_counter()
        scores: dict[str, list[Score]] = {}
        for seed, vectors in _encoders(graph, experiment.settings | change, runs, device):
            for (name, split), (suffix, measure) in product(tests.items(), measures.items()):
                score = measure(vectors, codes, split, seed=seed, device=place)
                scores.setdefault(method + name + suffix, []).append(score)
            mean = np.mean([score.value for score in next(iter(scores.values()))])
            progress(number * runs + seed + 1, f"{method} {mean:.4f}")
        seconds = time.perf_counter() - began
        rows += [
            dataclasses.replace(
                summarise(
                    name,
                    [score.value for score in found],
                    seconds,
                    PAPER.get((dataset, name)),
                    experiment.metric,
                ),
                costs=chosen_costs(found),
            )
            for name, found in scores.items()
        ]
    features = scaled_features(graph, experiment.settings)
    printed: dict[str, Any] = {"paper": PAPER.get((dataset, RAW)), "metric": experiment.metric}
    rows.append(
        vectors_row(
            RAW, features, codes, [splits], measures[""], fixed=True, device=place, **printed
        )
    )
    if probe == "validated":
        rows += [majority(codes, [split], f"Majority class{name}") for name, split in tests.items()]
    return {"dataset": dataset, "probe": probe, "rows": [row.to_dict() for row in rows]}


def scaled_features(graph: Graph, settings: dict[str, Any]) -> Any:
    """The features ``[N, F]``, scaled as for DGI of such settings."""
    return graph.scaler(DGI(**settings).settings().scale).transform(graph.features)


def _encoders(
    graph: Graph, settings: dict[str, Any], runs: int, device: str
) -> Iterator[tuple[int, Any]]:
    """The seed and the vectors ``[N, d]`` of each encoder; a GPU trains `SIDE_BY_SIDE` of them at a time."""
    together = SIDE_BY_SIDE if choose_device(device).type == "cuda" else 1
    for start in range(0, runs, together):
        seeds = range(start, min(start + together, runs))
        models = [DGI(**settings, seed=seed, device=device) for seed in seeds]
        fit_together(models, graph, is_one_of_many=True)
        yield from zip(seeds, vectors_of(models, graph), strict=True)


def probe_for(name: str, datasets: Iterable[str]) -> Probe:
    """Look up a probe by name; refuse one that cannot score the named data sets."""
    probe, several = (
        choose_probe(name),
        ", ".join(one for one in datasets if EXPERIMENTS[one].several_labels),
    )
    if name == "validated" and several:
        remedy = "Choose one of these, or other data sets."
        raise InputError(
            "probe", f"paper or converged for {several}, with several labels per node", name, remedy
        )
    return probe
