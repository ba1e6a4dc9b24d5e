"""DGI beside Random-Init and raw features, on the same nodes: by a probe on labels, or by edges."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.arrays.resemblance import OWN
from infomax.arrays.scaling import Scale
from infomax.errors import InputError, number_of
from infomax.estimator import DGI
from infomax.evaluation import links
from infomax.evaluation.probes import Probe, Score, score_splits
from infomax.evaluation.results import Printed, Row, score_text, summarise
from infomax.evaluation.splits import PARTS, Splits, encode_labels, known
from infomax.graphs.graph import Graph
from infomax.kernels.device import choose_device
from infomax.presets import HOPS
from infomax.progress import Progress, part, silent

ROW = 100
"""Steps of the progress that a row of the comparison is."""


def compare(
    model: DGI,
    codes: NDArray[Any],
    splits: Sequence[Splits],
    probe: Probe,
    smooth: int | None = None,
    *,
    choose: bool = False,
    raw: bool = True,
    progress: Progress = silent,
) -> list[Row]:
    """Score a trained model on its training graph, beside the same encoder untrained, raw features and the majority.

    With ``smooth``, the vectors of both encoders are also scored after smoothing over this many hops. With ``choose``,
    all `variants` of the model's vectors are scored, on validation nodes as well. ``raw=False`` leaves raw features
    out.
    """
    graph, nodes, device = model.graph_, None, choose_device(model.device)
    if graph.table.mapped:  # only the labelled nodes are read
        nodes = np.flatnonzero(known(codes))
        codes, splits = codes[nodes], [{name: mask[nodes] for name, mask in split.items()} for split in splits]
    rows: list[Row] = []
    began = time.perf_counter()
    tried = variants(model, smooth) if choose else {}
    total = ROW * (raw + (len(tried) + 1 if tried else 4 if smooth else 2))
    progress(0, "vectors", total)
    for method, vectors in encoders(model, smooth, nodes, tried):
        how: dict[str, Any] = {"device": device, "progress": part(progress, ROW * len(rows), ROW, method, total)}
        row = vectors_row(method, vectors, codes, splits, probe, began, validated=method in tried, **how)
        rows, began = [*rows, row], time.perf_counter()
    if raw:
        scale, how = model.preset_.scale, {"rows": nodes, "metric": rows[0].metric}
        how["progress"] = part(progress, ROW * len(rows), ROW, "Raw features", total)
        rows.append(raw_features(graph, codes, splits, probe, scale, device, **how))
    return [*rows, majority(codes, splits)]


def compare_links(
    model: DGI, smooth: int | None = None, *, progress: Progress = silent
) -> tuple[list[dict[str, Any]], int]:
    """How well a trained model tells edges from random pairs, as JSON values, and the number of edges to score it on.

    The edges are those that its graph holds out; where it holds out none they are drawn from all, which training has
    seen. Half of the pairs fit the regression, and all scores are of the other half. It stands beside what `compare`
    sets beside it, and beside the number of common neighbours.
    """
    graph, rows = model.graph_, []
    if graph.kind:
        remedy = "Train with --labels COLUMN, or score labels of a file: --labels nodes.csv:COLUMN."
        raise InputError("evaluate", "labels, in a graph of several types of nodes", "edges alone", remedy)
    pairs = links.draw_pairs(graph.adjacency, graph.held_out, graph.groups)

    def add(method: str, by: str, values: NDArray[Any]) -> None:
        rows.append({"method": method, "score": by, **links.score(pairs, values)})

    progress(0, "vectors", 5 if smooth else 3)
    raw = [("Raw features", graph.scaler(model.preset_.scale).transform(graph.features))]
    for done, (method, vectors) in enumerate(chain(encoders(model, smooth), raw)):
        progress(done, method, 5 if smooth else 3)
        add(method, "cosine", links.cosines(vectors, pairs))
        add(method, "regression", links.regression(vectors, pairs))
    add("Common neighbours", "count", links.common_neighbours(graph.adjacency, pairs, directed=graph.directed))
    return rows, int((pairs.joined & ~pairs.fitted).sum())


def untrained(model: DGI) -> DGI:
    """Random-Init: the encoder with which the training of a model began."""
    return DGI(preset=model.preset_, epochs=0, seed=model.seed_, device=model.device).fit(model.graph_)


Variants = dict[str, dict[str, int]]
"""Kinds of vectors by name: the arguments of `DGI.transform` that give them."""


def variants(model: DGI, smooth: int | None = None) -> Variants:
    """The vectors of a model that `evaluate` lets validation nodes choose from: smoothed or not, own part or not.

    In a graph of several types vectors are never smoothed.
    """
    hops = smooth or model.preset_.smooth or HOPS
    count = min(model.preset_.own or OWN, model.graph_.num_features)
    smoothed, beside = f", smoothed over {number_of(hops, 'hop')}", f", own {count}"
    found = {
        "DGI, plain": {"smooth": 0, "own": 0},
        f"DGI{smoothed}": {"smooth": hops, "own": 0},
        f"DGI{beside}": {"smooth": 0, "own": count},
        f"DGI{smoothed}{beside}": {"smooth": hops, "own": count},
    }
    return {name: one for name, one in found.items() if not (one["smooth"] and model.graph_.kind)}


def advice(model: DGI, rows: Sequence[Row], run: Path, smooth: int | None = None) -> list[str]:
    """What the rows of `compare` say to a user: which vectors to take, and whether less than DGI scores higher."""
    lines, ours = [], rows[0]
    if chosen := [row for row in rows if row.validation is not None]:
        ours = max(chosen, key=lambda row: row.validation or 0.0)
        as_it_is = {"smooth": model.preset_.smooth, "own": min(model.preset_.own, model.graph_.num_features)}
        options = variants(model, smooth)[ours.method]
        given = "".join(f" --{name} {value}" for name, value in options.items() if value != as_it_is[name])
        told = f"to write them: infomax embed {run}{given} --out vectors.parquet" if given else "as this run gives them"
        lines.append(f"Best on validation nodes: {ours.method}; {told}")
    for row in rows:
        theirs, own = (score_text(one.mean, None, one.metric) for one in (row, ours))
        if row.method in ("Random-Init", "Raw features") and row.mean > ours.mean and theirs != own:
            told = "Raw features alone score" if row.method == "Raw features" else "The encoder before training scores"
            lines.append(f"{told} higher: {theirs} against {own}.")
    if not chosen:
        smoothed = "" if model.graph_.kind else "smoothed vectors, and "
        lines.append(f"--variants scores {smoothed}vectors with the node's own features beside.")
    return lines


def encoders(
    model: DGI, smooth: int | None, rows: NDArray[np.int64] | None = None, tried: Variants | None = None
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """The vectors ``[N, d]``, or those of some rows, of a model and of Random-Init, also smoothed; one at a time.

    Of the model, those that are ``tried``, if any.
    """
    for method in ("DGI", "Random-Init"):
        encoder, kinds = model if method == "DGI" else untrained(model), {method: dict[str, int]()}
        if tried:
            kinds = tried if method == "DGI" else kinds
        elif smooth:
            kinds[f"{method}, smoothed over {number_of(smooth, 'hop')}"] = {"smooth": smooth}
        for name, options in kinds.items():
            yield name, encoder.transform(model.graph_, rows=rows, **options).vectors


def vectors_row(
    method: str,
    vectors: NDArray[np.float32],
    codes: NDArray[Any],
    splits: Sequence[Splits],
    probe: Probe,
    began: float,
    *,
    validated: bool = False,
    device: torch.device | str = "cpu",
    progress: Progress = silent,
) -> Row:
    """Score the vectors ``[N, d]`` of one encoder: the mean over splits; if ``validated``, on validation nodes, too."""
    scores, found = score_splits(probe, vectors, codes, splits, device=device, progress=progress), None
    if validated and scores[0].validation is not None:
        found = float(np.mean([score.validation for score in scores]))
    elif validated:  # a probe that does not use validation nodes is asked once more
        held_out: list[Splits] = [{**split, "test": split["validation"]} for split in splits]
        found = mean_over(score_splits(probe, vectors, codes, held_out, device=device))
    row = _row(method, scores, began, [mean_over(scores)], scores[0].metric)
    return dataclasses.replace(row, validation=found)


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


def majority(codes: NDArray[Any], splits: Sequence[Splits], method: str = "Majority class") -> Row:
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
        scores.append(Score.of(answer[None], test))
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
    return dataclasses.replace(row, splits=len(scores), split_std=over.std, costs=chosen_costs(scores))


def labelled(graph: Graph) -> tuple[NDArray[Any], Splits]:
    """Codes ``[N]`` or ``[N, C]`` of a graph's first label column, and its own split."""
    if not graph.labels or not set(PARTS) <= set(graph.splits):
        raise InputError("graph", "labels and a split", f"labels {list(graph.labels)}")
    values = next(iter(graph.labels.values()))
    return values if values.ndim == 2 else encode_labels(values)[0], graph.splits
