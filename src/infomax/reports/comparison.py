"""Score DGI beside Random-Init and raw features, on the same nodes, with the same split and the same probe."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.arrays.scaling import Scale
from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation.metrics import accuracy, micro_f1
from infomax.evaluation.probes import Probe, Score
from infomax.evaluation.results import Printed, Row, summarise
from infomax.evaluation.splits import PARTS, Splits, encode_labels, known
from infomax.graphs.graph import Graph


def compare(
    model: DGI, codes: NDArray[Any], splits: Sequence[Splits], probe: Probe, smooth: int | None = None
) -> list[Row]:
    """Score a trained model on its training graph, beside the same encoder untrained, raw features and the majority.

    With ``smooth``, the vectors of both encoders are also scored after smoothing over this many hops.
    """
    graph, nodes = model.graph_, None
    if graph.table.mapped:  # only the labelled nodes are read
        nodes = np.flatnonzero(known(codes))
        codes, splits = codes[nodes], [{name: mask[nodes] for name, mask in split.items()} for split in splits]
    untrained = DGI(preset=model.preset_, epochs=0, seed=model.seed_, device=model.device).fit(graph)
    rows = []
    for method, part in (("DGI", model), ("Random-Init", untrained)):
        for suffix, hops in (("", None), *([(f", smoothed over {smooth} hops", smooth)] if smooth else [])):
            began = time.perf_counter()
            vectors = part.transform(graph, smooth=hops, rows=nodes).vectors
            rows.append(vectors_row(method + suffix, vectors, codes, splits, probe, began))
    raw = raw_features(graph, codes, splits, probe, model.preset_.scale, rows=nodes, metric=rows[0].metric)
    return [*rows, raw, majority(codes, splits)]


def vectors_row(
    method: str, vectors: NDArray[np.float32], codes: NDArray[Any], splits: Iterable[Splits], probe: Probe, began: float
) -> Row:
    """Score the vectors ``[N, d]`` of one encoder: the mean over splits."""
    scores = [probe(vectors, codes, split) for split in splits]
    row = summarise(method, [mean_over(scores)], time.perf_counter() - began, None, scores[0].metric)
    return _with_splits(row, scores)


def raw_features(
    graph: Graph,
    codes: NDArray[Any],
    splits: Sequence[Splits],
    probe: Probe,
    scale: Scale,
    device: torch.device | str = "cpu",
    *,
    rows: NDArray[np.int64] | None = None,
    paper: Printed | None = None,
    metric: str = "accuracy",
) -> Row:
    """Score the scaled features: one score per initialisation of the probe, each a mean over splits.

    ``rows`` are the nodes to which codes and splits refer; None: all nodes.
    """
    began = time.perf_counter()
    features = graph.table.scaled(graph.scaler(scale))[slice(None) if rows is None else rows]
    scores = [probe(features, codes, split, device=device) for split in splits]
    values = np.mean([score.values for score in scores], axis=0)
    return _with_splits(summarise("Raw features", values.tolist(), time.perf_counter() - began, paper, metric), scores)


def majority(codes: NDArray[Any], splits: Sequence[Splits], method: str = "Majority class") -> Row:
    """Score one guess for all nodes: the most frequent class, or all labels that more than half of the nodes have.

    It is counted on training and validation nodes, since classes are often equally frequent among training nodes.
    """
    began, scores = time.perf_counter(), []
    for split in splits:
        counted = codes[np.any([split[part] for part in PARTS[:2] if part in split], axis=0) & known(codes)]
        test = codes[split["test"] & known(codes)]
        if codes.ndim == 2:
            answer = np.broadcast_to(counted.mean(0) > 0.5, test.shape)[None]
            scores.append(Score("micro-F1", micro_f1(answer, test), answer))
        else:
            answer = np.full((1, len(test)), np.bincount(counted).argmax())
            scores.append(Score("accuracy", accuracy(answer, test), answer))
    row = summarise(method, [mean_over(scores)], time.perf_counter() - began, None, scores[0].metric)
    return _with_splits(row, scores)


def mean_over(scores: Iterable[Score]) -> float:
    """The mean of the scores of one encoder on several splits, a fraction of 1."""
    return float(np.mean([score.value for score in scores]))


def chosen_costs(scores: Iterable[Score]) -> tuple[float, ...]:
    """The distinct values of C that were chosen on validation nodes, ascending; none for a probe without C."""
    return tuple(sorted({score.chosen["C"] for score in scores if "C" in score.chosen}))


def _with_splits(row: Row, scores: Sequence[Score]) -> Row:
    """The row with the number of splits, the deviation over them, and the chosen values of C."""
    values = np.array([score.value for score in scores]) * (100 if row.metric == "accuracy" else 1)
    std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return dataclasses.replace(row, splits=len(scores), split_std=std, costs=chosen_costs(scores))


def labelled(graph: Graph) -> tuple[NDArray[Any], Splits]:
    """Codes ``[N]`` or ``[N, C]`` of a graph's first label column, and its own split."""
    if not graph.labels or not set(PARTS) <= set(graph.splits):
        raise InputError("graph", "labels and a split", f"labels {list(graph.labels)}")
    values = next(iter(graph.labels.values()))
    return values if values.ndim == 2 else encode_labels(values)[0], graph.splits
