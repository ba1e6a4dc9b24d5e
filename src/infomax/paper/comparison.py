"""DGI beside Random-Init and raw features: the same nodes, the same split, the same probe."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.datasets import load_dataset
from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation.probes import PROBES, Probe
from infomax.evaluation.splits import Splits, encode_labels, known, random_splits
from infomax.graphs.graph import Graph
from infomax.graphs.scaling import Scale, Scaler
from infomax.kernels.device import choose_device
from infomax.paper.experiments import EXPERIMENTS
from infomax.paper.results import PAPER, Printed, Row, summarise
from infomax.progress import Progress, silent

PARTS = ("train", "validation", "test")


def score_dataset(
    dataset: str, *, runs: int = 50, probe: str = "paper", device: str = "auto", progress: Progress = silent
) -> dict[str, Any]:
    """The rows of a data set, as JSON values: DGI, Random-Init, Raw features.

    A run is one encoder with a seed of its own, 0 to runs - 1; the deviation is over encoders. Raw features have no
    encoder: theirs is over the initialisations of the probe. Nothing is chosen on test nodes.
    """
    measures = {"": choose_probe(probe, [dataset])}
    graph, experiment = load_dataset(dataset), EXPERIMENTS[dataset]
    codes, splits = labelled(graph)
    if codes.ndim == 2 and probe != "converged":  # where it converges, an untrained encoder comes out ahead: said so
        measures[", converged probe"] = choose_probe("converged")
    tests = {name: {**splits, "test": splits[part]} for name, part in experiment.tests.items()}
    place = choose_device(device)
    rows: list[Row] = []
    for number, (method, change) in enumerate({"DGI": {}, "Random-Init": {"epochs": 0}}.items()):
        began = time.perf_counter()
        scores: dict[str, list[float]] = {}
        for seed in range(runs):
            model = DGI(**(experiment.settings | change), seed=seed, device=device)
            vectors = model.fit_transform(graph).vectors
            for (name, split), (suffix, measure) in product(tests.items(), measures.items()):
                score = measure(vectors, codes, split, seed=seed, device=place)
                scores.setdefault(method + name + suffix, []).append(score.value)
            progress(number * runs + seed + 1, f"{method} {np.mean(scores[next(iter(scores))]):.4f}")
        seconds = time.perf_counter() - began
        rows += [
            summarise(name, values, seconds, PAPER.get((dataset, name)), experiment.metric)
            for name, values in scores.items()
        ]
    scale, raw = DGI(**experiment.settings).settings().scale, PAPER.get((dataset, "Raw features"))
    rows.append(raw_features(graph, codes, [splits], measures[""], scale, place, paper=raw, metric=experiment.metric))
    return {"dataset": dataset, "probe": probe, "rows": [row.to_dict() for row in rows]}


def compare(model: DGI, codes: NDArray[Any], splits: Sequence[Splits], probe: Probe) -> list[Row]:
    """A trained model's rows: its vectors of the graph it was trained on, the same encoder untrained, raw features."""
    graph = model.graph_
    untrained = DGI(preset=model.preset_, epochs=0, seed=model.seed_, device=model.device)
    rows = []
    for method, embed in (("DGI", model.transform), ("Random-Init", untrained.fit_transform)):
        began = time.perf_counter()
        rows.append(vectors_row(method, embed(graph).vectors, codes, splits, probe, began))
    return [*rows, raw_features(graph, codes, splits, probe, model.preset_.scale, metric=rows[0].metric)]


def vectors_row(
    method: str, vectors: NDArray[np.float32], codes: NDArray[Any], splits: Iterable[Splits], probe: Probe, began: float
) -> Row:
    """The row of one encoder's vectors ``[N, d]``: the mean over splits."""
    scores = [probe(vectors, codes, split) for split in splits]
    mean = float(np.mean([score.value for score in scores]))
    return summarise(method, [mean], time.perf_counter() - began, None, scores[0].metric)


def raw_features(
    graph: Graph,
    codes: NDArray[Any],
    splits: Sequence[Splits],
    probe: Probe,
    scale: Scale,
    device: torch.device | str = "cpu",
    *,
    paper: Printed | None = None,
    metric: str = "accuracy",
) -> Row:
    """The row of the scaled features themselves; one score a probe's initialisation, each the mean over splits."""
    began = time.perf_counter()
    features = Scaler.of_seen(graph, scale).transform(graph.features)
    scores = np.mean([probe(features, codes, split, device=device).values for split in splits], axis=0)
    return summarise("Raw features", scores.tolist(), time.perf_counter() - began, paper, metric)


def labelled(graph: Graph) -> tuple[NDArray[Any], Splits]:
    """Codes ``[N]`` or ``[N, C]`` of a graph's first label column, and its own split."""
    if not graph.labels or not set(PARTS) <= set(graph.splits):
        raise InputError("graph", "labels and a split of its own", f"labels {list(graph.labels)}")
    values = next(iter(graph.labels.values()))
    return values if values.ndim == 2 else encode_labels(values)[0], graph.splits


def splits_for(codes: NDArray[Any], own: Splits | None, count: int = 10) -> tuple[list[Splits], str]:
    """The splits to score on, and their name: a graph's own, else ``count`` random ones, stratified by class."""
    if own is not None and set(PARTS) <= set(own):
        return [own], "the data set's split"
    strata = codes if codes.ndim == 1 else known(codes) - 1
    return random_splits(strata, seed=0, count=count)[0], f"mean of {count} random splits 10/10/80 %"


def choose_probe(name: str, datasets: Iterable[str] = ()) -> Probe:
    """The probe of that name, to score data sets of `EXPERIMENTS` with."""
    if name not in PROBES:
        raise InputError("probe", f"one of {', '.join(PROBES)}", name)
    several = ", ".join(dataset for dataset in datasets if EXPERIMENTS[dataset].several_labels)
    if name == "validated" and several:
        remedy = "Choose one of these, or other data sets."
        raise InputError("probe", f"paper or converged for {several}, with several labels a node", name, remedy)
    return PROBES[name]
