"""DGI beside Random-Init and raw features, on the same nodes; and several runs side by side."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation import links
from infomax.evaluation.probes import Probe, Score, score_splits
from infomax.evaluation.results import Printed, Row, score_text, summarise
from infomax.evaluation.splits import PARTS, Splits, encode_labels, known
from infomax.graphs.graph import Graph
from infomax.io.union import whole_adjacency
from infomax.kernels.device import choose_device
from infomax.parts.vectors import PAPER
from infomax.progress import Progress, part, silent
from infomax.training import runs
from infomax.training.health import flat, read_report, read_scores

RANDOM = "Random-Init"
RAW = "Raw features"
GUESS = "Majority class"
ALONE = {"encoder": "Encoder alone", "positions": "Positions alone"}
"""Parts that are scored for themselves as well, and what their rows are called."""
_LESS = {RANDOM: "The encoder before training scores", RAW: "Raw features alone score"}
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
    """Score a trained model on its training graph, beside parts alone, Random-Init, raw features and the majority.

    ``raw=False`` leaves raw features out.
    """
    graph, nodes, device = model.graph_, None, choose_device(model.device)
    if graph.table.mapped:  # only the labelled nodes are read
        nodes = np.flatnonzero(known(codes))
        codes, splits = (
            codes[nodes],
            [{name: mask[nodes] for name, mask in split.items()} for split in splits],
        )
    rows: list[Row] = []
    began = time.perf_counter()
    total = ROW * (1 + len(scored_alone(model)) + 1 + raw)
    progress(0, "vectors", total)
    for method, vectors in vectors_by_method(model, nodes, raw=raw):
        told = part(progress, ROW * len(rows), ROW, method, total)
        fixed = method == RAW
        rows.append(
            vectors_row(
                method,
                vectors,
                codes,
                splits,
                probe,
                began=began,
                fixed=fixed,
                device=device,
                progress=told,
            )
        )
        began = time.perf_counter()
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

    total = 1 if graph.node_type else 3 + len(scored_alone(model))
    progress(0, "vectors", total)
    found = vectors_by_method(model)
    if graph.node_type:
        found = iter(
            [
                (
                    "Positions",
                    np.concatenate(
                        [model.positions(node_type).vectors for node_type in graph.types]
                    ),
                )
            ]
        )
    for done, (method, vectors) in enumerate(found):
        progress(done, method, total)
        add(method, "cosine", links.cosines(vectors, pairs))
        add(method, "regression", links.regression(vectors, pairs))
    if graph.node_type:
        add("Degrees", "product", np.diff(adjacency.indptr)[pairs.ends].prod(axis=0))
    else:
        add(
            "Common neighbours",
            "count",
            links.common_neighbours(adjacency, pairs, directed=graph.directed),
        )
    return rows, int((pairs.joined & ~pairs.fitted).sum())


def _drawn(graph: Graph) -> tuple[links.Pairs, Any]:
    """The pairs to score, and the adjacency that they are drawn from; of several types, at nodes of the one in view."""
    if not graph.node_type:
        return links.draw_pairs(graph.adjacency, graph.held_out, graph.groups), graph.adjacency
    types = np.repeat(
        list(graph.types), [graph.nodes[node_type].num_nodes for node_type in graph.types]
    )
    near = [one for one in graph.relations if graph.node_type in (one.source, one.target)]
    held_out = graph.held_out
    if held_out is not None:
        held_out = held_out[:, (types[held_out] == graph.node_type).any(axis=0)]
    adjacency = whole_adjacency(graph.nodes, near)
    return links.draw_pairs(
        adjacency, held_out, types=np.unique(types, return_inverse=True)[1]
    ), adjacency


def untrained(model: DGI) -> DGI:
    """Random-Init: the encoder with which the training of a model began, and its output alone."""
    how: dict[str, Any] = {
        "epochs": 0,
        "vectors": PAPER,
        "seed": model.seed_,
        "device": model.device,
    }
    return DGI(preset=model.preset_, **how).fit(model.graph_)


def advice(rows: Sequence[Row]) -> list[str]:
    """What the rows of `compare` say to a user: whether less than DGI scores higher, or guessing as high.

    A part alone is named where it is higher by more than its scores differ between splits.
    """
    parts = {name: part for part, name in ALONE.items()}
    ours = rows[0]
    own = score_text(ours.mean, None, ours.metric)
    lines = []
    for row in rows[1:]:
        theirs = score_text(row.mean, None, row.metric)
        if row.method == GUESS and (ours.mean <= row.mean or own == theirs):
            ranked = (
                f" Its AUC is {ours.beside['AUC']:.2f}, where guessing has 0.50."
                if "AUC" in ours.beside
                else ""
            )
            lines.append(
                f"{ours.method} is no better than the majority: {own} against {theirs}.{ranked}"
            )
        elif row.method in _LESS and row.mean > ours.mean and theirs != own:
            lines.append(f"{_LESS[row.method]} higher: {theirs} against {own}.")
        elif row.method in parts and row.mean > ours.mean + row.split_std and theirs != own:
            told = f"{row.method}: {theirs} against {own}"
            lines.append(f"{told}. To write them: infomax embed RUN --vectors {parts[row.method]}")
    return lines


def scored_alone(model: DGI) -> list[str]:
    """The parts of a model's vectors that are scored for themselves as well."""
    parts = model._recipe().parts
    return [name for name in ALONE if name in parts and len(parts) > 1]


def vectors_by_method(
    model: DGI, rows: NDArray[np.int64] | None = None, *, raw: bool = True
) -> Iterator[tuple[str, Any]]:
    """The vectors ``[N, d]``, or those of some rows, of a model and of what it is compared with; one at a time."""
    yield from _trained(model, rows)
    yield RANDOM, untrained(model).transform(model.graph_, rows=rows).vectors
    if raw:
        table = model.graph_.table.scaled(model.graph_.scaler(model.preset_.scale))
        yield RAW, table[slice(None) if rows is None else rows]


def _trained(model: DGI, rows: NDArray[np.int64] | None) -> Iterator[tuple[str, Any]]:
    """All parts of a model's vectors ``[N, d]``, and some of them alone."""
    found = model.transform(model.graph_, rows=rows)
    yield "DGI", found.vectors
    for name in scored_alone(model):
        yield ALONE[name], found.vectors[:, found.columns[name]]


def vectors_row(
    method: str,
    vectors: Any,
    codes: NDArray[Any],
    splits: Sequence[Splits],
    probe: Probe,
    *,
    began: float | None = None,
    fixed: bool = False,
    metric: str | None = None,
    paper: Printed | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = silent,
) -> Row:
    """Score the vectors ``[N, d]`` of one encoder: the mean over splits; its time counts since ``began``.

    Those that are ``fixed``, which no encoder has made, have one score for each initialisation of the probe.
    """
    began = time.perf_counter() if began is None else began
    scores = score_splits(probe, vectors, codes, splits, device=device, progress=progress)
    values = np.mean([score.values for score in scores], axis=0) if fixed else [mean_over(scores)]
    return _row(method, scores, began, values, metric or scores[0].metric, paper)


def majority(codes: NDArray[Any], splits: Sequence[Splits], method: str = GUESS) -> Row:
    """Score one guess for all nodes: the most frequent class, or all labels that more than half of the nodes have.

    It is counted on training and validation nodes, since classes are often equally frequent among training nodes.
    """
    began, scores = time.perf_counter(), []
    for split in splits:
        counted = codes[
            np.any([split[part] for part in PARTS[:2] if part in split], axis=0) & known(codes)
        ]
        test = codes[split["test"] & known(codes)]
        if codes.ndim == 2:
            answer = np.broadcast_to(counted.mean(0) > 0.5, test.shape)
        else:
            answer = np.full(len(test), np.bincount(counted).argmax())
        score = Score.of(answer[None], test)
        scores.append(
            dataclasses.replace(score, beside=score.beside | {"AUC": 0.5})
            if codes.ndim == 1
            else score
        )
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
    beside = {
        name: float(np.mean([score.beside[name] for score in scores])) for name in scores[0].beside
    }
    return dataclasses.replace(
        row, splits=len(scores), split_std=over.std, costs=chosen_costs(scores), beside=beside
    )


def labelled(graph: Graph) -> tuple[NDArray[Any], Splits]:
    """Codes ``[N]`` or ``[N, C]`` of a graph's first label column, and its own split."""
    if not graph.labels or not set(PARTS) <= set(graph.splits):
        raise InputError("graph", "labels and a split", f"labels {list(graph.labels)}")
    values = next(iter(graph.labels.values()))
    return values if values.ndim == 2 else encode_labels(values)[0], graph.splits


_HEALTH = (
    "epochs",
    "loss",
    "discriminator_accuracy",
    "effective_rank",
    "dimensions",
    "dead_dimensions",
    "seconds",
)


def compare_runs(folders: Sequence[Path]) -> dict[str, dict[str, list[Any]]]:
    """Values by section ("settings", "health", "scores") and name, one for each run; None where a run has none."""
    configs = [runs.check(folder) for folder in folders]
    graphs = [
        {
            f"graph.{name}": value[:12] if name == "hash" else value
            for name, value in config["graph"].items()
        }
        for config in configs
    ]
    trained = [
        {"seed": config["seed"], **flat(config["settings"]), **graph}
        for config, graph in zip(configs, graphs, strict=True)
    ]
    reports = [read_report(folder / runs.HEALTH) for folder in folders]
    health = [
        {name: report.get(name) for name in _HEALTH} | {"verdict": report["verdict"]["verdict"]}
        for report in reports
    ]
    scores = [
        {
            f"{title}: {method}": score
            for title, rows in read_scores(folder).items()
            for method, score in rows.items()
        }
        for folder in folders
    ]
    settings = {
        name: values
        for name, values in _joined(trained).items()
        if any(one != values[0] for one in values)
    }
    return {"settings": settings, "health": _joined(health), "scores": _joined(scores)}


def _joined(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
