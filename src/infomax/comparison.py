"""DGI beside Random-Init and raw features: the same nodes, the same split, the same probe."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.datasets import load_dataset
from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation.probes import PROBES, Probe
from infomax.evaluation.protocol import PAPER, Row, summarise
from infomax.evaluation.splits import Splits, encode_labels, random_splits
from infomax.features import Scaler
from infomax.graph import Graph

PARTS = ("train", "validation", "test")
WIDTHS = {"cora": 512, "citeseer": 512, "pubmed": 256}
"""The paper's widths: Pubmed's is half, "due to memory limitations"."""

Progress = Callable[[int, str], None]


def reproduce(
    dataset: str, *, runs: int = 50, probe: str = "paper", device: str = "auto", progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """The paper's rows for a citation graph, as JSON values: DGI, Random-Init, Raw features.

    A run is one encoder with a seed of its own, 0 to runs - 1; the deviation is over encoders. Raw features have no
    encoder: theirs is over the initialisations of the probe. Nothing is chosen on test nodes.
    """
    graph = load_dataset(dataset)
    codes, splits = labelled(graph)
    measure = choose_probe(probe)
    rows: list[Row] = []
    for method, epochs in (("DGI", None), ("Random-Init", 0)):
        began, scores = time.perf_counter(), []
        for seed in range(runs):
            model = DGI(dim=WIDTHS[dataset], scale="rows", seed=seed, device=device, epochs=epochs)
            vectors = model.fit_transform(graph).vectors
            scores.append(measure(vectors, codes, splits, seed=seed).value)
            progress(len(rows) * runs + seed + 1, f"{method} {100 * float(np.mean(scores)):.1f}")
        rows.append(summarise(method, scores, time.perf_counter() - began, PAPER[dataset, method]))
    rows.append(raw_features(graph, codes, [splits], measure, PAPER[dataset, "Raw features"], scale="rows"))
    return {"dataset": dataset, "probe": probe, "rows": [row.to_dict() for row in rows]}


def compare(model: DGI, codes: NDArray[Any], splits: Sequence[Splits], probe: Probe) -> list[Row]:
    """A trained model's rows: its vectors of the graph it was trained on, the same encoder untrained, raw features."""
    graph = model.graph_
    untrained = DGI(preset=model.preset_, epochs=0, seed=model.seed, device=model.device)
    rows = []
    for method, embed in (("DGI", model.transform), ("Random-Init", untrained.fit_transform)):
        began = time.perf_counter()
        rows.append(vectors_row(method, embed(graph).vectors, codes, splits, probe, began))
    return [*rows, raw_features(graph, codes, splits, probe, None, model.preset_.scale)]


def vectors_row(
    method: str, vectors: NDArray[np.float32], codes: NDArray[Any], splits: Iterable[Splits], probe: Probe, began: float
) -> Row:
    """The row of one encoder's vectors ``[N, d]``: the mean over splits."""
    score = float(np.mean([probe(vectors, codes, split).value for split in splits]))
    return summarise(method, [score], time.perf_counter() - began, None)


def raw_features(
    graph: Graph, codes: NDArray[Any], splits: Sequence[Splits], probe: Probe, paper: Any, scale: Any
) -> Row:
    """The row of the scaled features themselves; one score a probe's initialisation, each the mean over splits."""
    began = time.perf_counter()
    features = Scaler.fit(graph.features, scale).transform(graph.features)
    scores = np.mean([probe(features, codes, split).values for split in splits], axis=0)
    return summarise("Raw features", scores.tolist(), time.perf_counter() - began, paper)


def labelled(graph: Graph, column: str | None = None) -> tuple[NDArray[Any], Splits]:
    """Codes ``[N]`` of a graph's labels (the first column unless named), and its own split."""
    if not graph.labels or not set(PARTS) <= set(graph.splits):
        raise InputError("graph", "labels and a split of its own", f"labels {list(graph.labels)}")
    values = graph.labels[column or next(iter(graph.labels))]
    return encode_labels(values)[0], graph.splits


def splits_for(codes: NDArray[np.int64], own: Splits | None, count: int = 10) -> tuple[list[Splits], str]:
    """The splits to score on, and their name: a graph's own, else ``count`` random stratified ones."""
    if own is not None and set(PARTS) <= set(own):
        return [own], "the data set's split"
    return random_splits(codes, seed=0, count=count)[0], f"mean of {count} random splits 10/10/80 %"


def choose_probe(name: str) -> Probe:
    """The probe of that name."""
    if name not in PROBES:
        raise InputError("probe", f"one of {', '.join(PROBES)}", name)
    return PROBES[name]
