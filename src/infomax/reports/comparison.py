"""Scores of a run by labels, beside its parts, Random-Init and baselines; and several runs side by side."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation.probes import Probe, Score, score_splits
from infomax.evaluation.results import PrintedScore, Row, score_text, summarise
from infomax.evaluation.splits import SPLIT_PARTS, Splits, encode_labels, is_labelled
from infomax.graphs.graph import Graph
from infomax.kernels.device import choose_device
from infomax.progress import Progress, part, silent
from infomax.reports.compared_vectors import (
    AVERAGED,
    EDGES,
    RANDOM,
    RAW,
    WRITES_ALL,
    ComparedVectors,
    has_baselines,
    parts_alone,
    trained_vectors,
    vectors_beside,
)
from infomax.reports.compared_vectors import untrained as untrained
from infomax.training import runs
from infomax.training.card import flat, read_scores
from infomax.training.health import read_report

GUESS = "Majority class"
SCORES_HIGHER = {
    RANDOM: "The encoder before training scores",
    RAW: "Raw features alone score",
    EDGES: "Singular vectors of the edges score",
    AVERAGED: "Features averaged over two hops score",
}
ROW = 100
"""Steps of the progress that a row of the comparison is."""


def compare(
    model: DGI,
    codes: NDArray[Any],
    splits: Sequence[Splits],
    probe: Probe,
    *,
    raw: bool = True,
    with_parts: bool = True,
    with_baselines: bool = True,
    keep: Callable[[ComparedVectors], None] = lambda _: None,
    progress: Progress = silent,
) -> list[Row]:
    """Score a trained model on its training graph, beside each part alone, Random-Init, baselines and the majority.

    Args:
        model: the trained model.
        codes: ``[N]``, or ``[N, C]`` of 0/1.
        splits: the mean over these is the score.
        probe: scores vectors on a split.
        raw: score raw features, and averaged ones, too.
        with_parts: score each part of the vectors alone.
        with_baselines: score singular vectors of the edges, and averaged features.
        keep: is given the vectors of each row, of graphs in memory.
        progress: is told the steps done.
    """
    graph, device = model.graph_, choose_device(model.device)
    nodes = None
    if graph.table.mapped:  # only the labelled nodes are read
        nodes = np.flatnonzero(is_labelled(codes))
        codes = codes[nodes]
        splits = [{name: mask[nodes] for name, mask in split.items()} for split in splits]

    progress(0, "vectors")
    began = time.perf_counter()
    embeddings = model.transform(graph, rows=nodes)
    alone_count = len(parts_alone(embeddings)) if with_parts else 0
    baseline_count = (1 + raw) if with_baselines and has_baselines(graph) else 0
    total = ROW * (2 + alone_count + baseline_count + raw)

    rows: list[Row] = []

    def score(compared: ComparedVectors) -> None:
        nonlocal began
        rows.append(
            vectors_row(
                compared.name,
                compared.vectors,
                codes,
                splits,
                probe,
                began=began,
                fixed=compared.name == RAW,
                device=device,
                progress=part(progress, ROW * len(rows), ROW, compared.name, total),
            )
        )
        keep(compared)
        began = time.perf_counter()

    for compared in trained_vectors(embeddings):
        score(compared)
        if not with_parts:
            break
    del embeddings
    for compared in vectors_beside(model, nodes, raw=raw, with_baselines=with_baselines):
        score(compared)
    return [*rows, majority(codes, splits)]


def advice(rows: Sequence[Row], run: str = "RUN") -> list[str]:
    """What the rows of `compare` say to a user: whether less than DGI scores higher, or guessing as high.

    A row is named where it is higher by more than its scores differ between splits, with the command that writes its
    vectors.
    """
    ours, others = rows[0], rows[1:]
    our_score = score_text(ours.mean, None, ours.metric)
    lines = []
    for row in others:
        their_score = score_text(row.mean, None, row.metric)
        if row.method == GUESS:
            if ours.mean <= row.mean or our_score == their_score:
                told = f"{ours.method} is no better than the majority: {our_score} against {their_score}."
                if "AUC" in ours.other_metrics:
                    told += f" Its AUC is {ours.other_metrics['AUC']:.2f}, where guessing has 0.50."
                lines.append(told)
            continue

        is_higher = row.mean > ours.mean + row.split_std and their_score != our_score
        if is_higher:
            compared = f"{their_score} against {our_score}"
            lines.append(f"{_told_of_row(row.method, compared, run)}")
    return lines


def _told_of_row(method: str, compared: str, run: str) -> str:
    """That a row scores higher, and what writes its vectors."""
    if method == RAW:
        return f"{SCORES_HIGHER[RAW]} higher: {compared}."
    if method in SCORES_HIGHER:
        return f"{SCORES_HIGHER[method]} higher: {compared}. To write them: {WRITES_ALL.replace('RUN', run)}"
    name = method.removesuffix(" alone")
    part_name = f"{name[0].lower()}{name[1:]}"
    return f"{method}: {compared}. To write them: infomax embed {run} --vectors {part_name}"


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
    paper: PrintedScore | None = None,
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
            np.any([split[part] for part in SPLIT_PARTS[:2] if part in split], axis=0)
            & is_labelled(codes)
        ]
        test = codes[split["test"] & is_labelled(codes)]
        if codes.ndim == 2:
            answer = np.broadcast_to(counted.mean(0) > 0.5, test.shape)
        else:
            answer = np.full(len(test), np.bincount(counted).argmax())
        score = Score.of(answer[None], test)
        scores.append(
            dataclasses.replace(score, other_metrics=score.other_metrics | {"AUC": 0.5})
            if codes.ndim == 1
            else score
        )
    return _row(method, scores, began, [mean_over(scores)], scores[0].metric)


def mean_over(scores: Iterable[Score]) -> float:
    """The mean of the scores of one encoder on several splits, a fraction of 1."""
    return float(np.mean([score.value for score in scores]))


def chosen_costs(scores: Iterable[Score]) -> tuple[float, ...]:
    """The distinct values of C that were chosen on validation nodes, ascending; none for a probe without C."""
    return tuple(
        sorted({score.hyperparameters["C"] for score in scores if "C" in score.hyperparameters})
    )


def _row(
    method: str,
    scores: Sequence[Score],
    began: float,
    values: Sequence[float] | NDArray[np.float64],
    metric: str,
    paper: PrintedScore | None = None,
) -> Row:
    """The row of values, one per run, with the deviation of the scores over splits and the chosen values of C."""
    row = summarise(method, values, time.perf_counter() - began, paper, metric)
    over = summarise(method, [score.value for score in scores], 0, None, metric)
    other_metrics = {
        name: float(np.mean([score.other_metrics[name] for score in scores]))
        for name in scores[0].other_metrics
    }
    return dataclasses.replace(
        row,
        splits=len(scores),
        split_std=over.std,
        costs=chosen_costs(scores),
        other_metrics=other_metrics,
    )


def labelled(graph: Graph) -> tuple[NDArray[Any], Splits]:
    """Codes ``[N]`` or ``[N, C]`` of a graph's first label column, and its own split."""
    if not graph.labels or not set(SPLIT_PARTS) <= set(graph.splits):
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
