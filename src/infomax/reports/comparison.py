"""DGI beside Random-Init and raw features, on the same nodes: by a probe on labels, or by edges."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.arrays.scaling import Scale
from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation import links
from infomax.evaluation.probes import Probe, Score, score_splits
from infomax.evaluation.results import Printed, Row, score_text, summarise
from infomax.evaluation.splits import PARTS, Splits, encode_labels, known
from infomax.graphs.graph import Graph
from infomax.io.unite import whole_adjacency
from infomax.kernels.device import choose_device
from infomax.parts.vectors import PAPER
from infomax.progress import Progress, part, silent

GUESS = "Majority class"
ROW = 100
"""Steps of the progress that a row of the comparison is."""


def compare(
    model: DGI,
    codes: NDArray[Any],
    splits: Sequence[Splits],
    probe: Probe,
    *,
    raw: bool = True,
    progress: Progress = silent,
) -> list[Row]:
    """Score a trained model on its training graph, beside the same encoder untrained, raw features and the majority.

    ``raw=False`` leaves raw features out.
    """
    graph, nodes, device = model.graph_, None, choose_device(model.device)
    if graph.table.mapped:  # only the labelled nodes are read
        nodes = np.flatnonzero(known(codes))
        codes, splits = codes[nodes], [{name: mask[nodes] for name, mask in split.items()} for split in splits]
    rows: list[Row] = []
    began = time.perf_counter()
    total = ROW * (raw + 2)
    progress(0, "vectors", total)
    for method, vectors in encoders(model, nodes):
        how: dict[str, Any] = {"device": device, "progress": part(progress, ROW * len(rows), ROW, method, total)}
        row = vectors_row(method, vectors, codes, splits, probe, began, **how)
        rows, began = [*rows, row], time.perf_counter()
    if raw:
        scale, how = model.preset_.scale, {"rows": nodes, "metric": rows[0].metric}
        how["progress"] = part(progress, ROW * len(rows), ROW, "Raw features", total)
        rows.append(raw_features(graph, codes, splits, probe, scale, device, **how))
    return [*rows, majority(codes, splits)]


def compare_links(model: DGI, *, progress: Progress = silent) -> tuple[list[dict[str, Any]], int]:
    """How well a trained model tells edges from random pairs, as JSON values, and the number of edges to score it on.

    The edges are those that its graph holds out; where it holds out none they are drawn from all, which training has
    seen. Half of the pairs fit the regression, and all scores are of the other half. It stands beside what `compare`
    sets beside it, and beside the number of common neighbours. Of several types, edges at nodes of the model's type are
    scored by what nodes of all types have: positions, beside the product of degrees.
    """
    graph, rows = model.graph_, list[dict[str, Any]]()
    pairs, adjacency = _drawn(graph)

    def add(method: str, by: str, values: NDArray[Any]) -> None:
        rows.append({"method": method, "score": by, **links.score(pairs, values)})

    progress(0, "vectors", 3)
    if graph.kind:
        found = iter([("Positions", np.concatenate([model.positions(kind).vectors for kind in graph.types]))])
    else:
        raw = [("Raw features", graph.scaler(model.preset_.scale).transform(graph.features))]
        found = chain(encoders(model), raw)
    for done, (method, vectors) in enumerate(found):
        progress(done, method, 3)
        add(method, "cosine", links.cosines(vectors, pairs))
        add(method, "regression", links.regression(vectors, pairs))
    if graph.kind:
        add("Degrees", "product", np.diff(adjacency.indptr)[pairs.ends].prod(axis=0))
    else:
        add("Common neighbours", "count", links.common_neighbours(adjacency, pairs, directed=graph.directed))
    return rows, int((pairs.joined & ~pairs.fitted).sum())


def _drawn(graph: Graph) -> tuple[links.Pairs, Any]:
    """The pairs to score, and the adjacency that they are drawn from; of several types, at nodes of the one in view."""
    if not graph.kind:
        return links.draw_pairs(graph.adjacency, graph.held_out, graph.groups), graph.adjacency
    types = np.repeat(list(graph.types), [graph.nodes[kind].num_nodes for kind in graph.types])
    near = dataclasses.replace(
        graph, relations=tuple(one for one in graph.relations if graph.kind in (one.source, one.target))
    )
    held_out = graph.held_out
    if held_out is not None:
        held_out = held_out[:, (types[held_out] == graph.kind).any(axis=0)]
    adjacency = whole_adjacency(near)
    return links.draw_pairs(adjacency, held_out, types=np.unique(types, return_inverse=True)[1]), adjacency


def untrained(model: DGI) -> DGI:
    """Random-Init: the encoder with which the training of a model began, and its output alone."""
    how: dict[str, Any] = {"epochs": 0, "vectors": PAPER, "seed": model.seed_, "device": model.device}
    return DGI(preset=model.preset_, **how).fit(model.graph_)


def advice(rows: Sequence[Row]) -> list[str]:
    """What the rows of `compare` say to a user: whether less than DGI scores higher, or guessing as high."""
    lines, ours = [], rows[0]
    for guess in [row for row in rows if row.method == GUESS]:
        mine, theirs = (score_text(one.mean, None, one.metric) for one in (ours, guess))
        if ours.mean <= guess.mean or mine == theirs:
            ranked = f" Its AUC is {ours.beside['AUC']:.2f}, where guessing has 0.50." if "AUC" in ours.beside else ""
            lines.append(f"{ours.method} is no better than the majority: {mine} against {theirs}.{ranked}")
    for row in rows:
        theirs, own = (score_text(one.mean, None, one.metric) for one in (row, ours))
        if row.method in ("Random-Init", "Raw features") and row.mean > ours.mean and theirs != own:
            told = "Raw features alone score" if row.method == "Raw features" else "The encoder before training scores"
            lines.append(f"{told} higher: {theirs} against {own}.")
    return lines


def encoders(model: DGI, rows: NDArray[np.int64] | None = None) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """The vectors ``[N, d]``, or those of some rows, of a model, and those of Random-Init; one at a time."""
    for method, encoder in (("DGI", model), ("Random-Init", None)):
        yield method, (encoder or untrained(model)).transform(model.graph_, rows=rows).vectors


def vectors_row(
    method: str,
    vectors: NDArray[np.float32],
    codes: NDArray[Any],
    splits: Sequence[Splits],
    probe: Probe,
    began: float,
    *,
    device: torch.device | str = "cpu",
    progress: Progress = silent,
) -> Row:
    """Score the vectors ``[N, d]`` of one encoder: the mean over splits."""
    scores = score_splits(probe, vectors, codes, splits, device=device, progress=progress)
    return _row(method, scores, began, [mean_over(scores)], scores[0].metric)


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
    progress: Progress = silent,
) -> Row:
    """Score the scaled features: one score per initialisation of the probe, each a mean over splits.

    ``rows`` are the nodes to which codes and splits refer; None: all nodes.
    """
    began = time.perf_counter()
    features = graph.table.scaled(graph.scaler(scale))[slice(None) if rows is None else rows]
    scores = score_splits(probe, features, codes, splits, device=device, progress=progress)
    return _row("Raw features", scores, began, np.mean([score.values for score in scores], axis=0), metric, paper)


def majority(codes: NDArray[Any], splits: Sequence[Splits], method: str = GUESS) -> Row:
    """Score one guess for all nodes: the most frequent class, or all labels that more than half of the nodes have.

    It is counted on training and validation nodes, since classes are often equally frequent among training nodes.
    """
    began, scores = time.perf_counter(), []
    for split in splits:
        counted = codes[np.any([split[part] for part in PARTS[:2] if part in split], axis=0) & known(codes)]
        test = codes[split["test"] & known(codes)]
        if codes.ndim == 2:
            answer = np.broadcast_to(counted.mean(0) > 0.5, test.shape)
        else:
            answer = np.full(len(test), np.bincount(counted).argmax())
        score = Score.of(answer[None], test)
        scores.append(dataclasses.replace(score, beside=score.beside | {"AUC": 0.5}) if codes.ndim == 1 else score)
    return _row(method, scores, began, [mean_over(scores)], scores[0].metric)


def mean_over(scores: Iterable[Score]) -> float:
    """The mean of the scores of one encoder on several splits, a fraction of 1."""
    return float(np.mean([score.value for score in scores]))


def chosen_costs(scores: Iterable[Score]) -> tuple[float, ...]:
    """The distinct values of C that were chosen on validation nodes, ascending; none for a probe without C."""
    return tuple(sorted({score.chosen["C"] for score in scores if "C" in score.chosen}))


def _row(
    method: str,
    scores: Sequence[Score],
    began: float,
    values: Sequence[float] | NDArray[np.float64],
    metric: str,
    paper: Printed | None = None,
) -> Row:
    """The row of values, one per run, with the deviation of the scores over splits and the chosen values of C."""
    row = summarise(method, values, time.perf_counter() - began, paper, metric)
    over = summarise(method, [score.value for score in scores], 0, None, metric)
    beside = {name: float(np.mean([score.beside[name] for score in scores])) for name in scores[0].beside}
    return dataclasses.replace(row, splits=len(scores), split_std=over.std, costs=chosen_costs(scores), beside=beside)


def labelled(graph: Graph) -> tuple[NDArray[Any], Splits]:
    """Codes ``[N]`` or ``[N, C]`` of a graph's first label column, and its own split."""
    if not graph.labels or not set(PARTS) <= set(graph.splits):
        raise InputError("graph", "labels and a split", f"labels {list(graph.labels)}")
    values = next(iter(graph.labels.values()))
    return values if values.ndim == 2 else encode_labels(values)[0], graph.splits
