"""Scores of a run by labels, beside parts and baselines; several runs side by side."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation.probes import Probe, Score, score_splits
from infomax.evaluation.results import PrintedScore, Row, score_text, summarise
from infomax.evaluation.splits import SPLIT_PARTS, Splits, encode_labels, is_labelled
from infomax.graphs.graph import Graph
from infomax.io.schema.edits import choices_in_words
from infomax.kernels.device import choose_device
from infomax.progress import Progress, progress_of_part, silent
from infomax.reports.compared_vectors import (
    AVERAGED,
    EDGES,
    RANDOM,
    RAW,
    WRITES_ALL,
    ComparedVectors,
    KeepVectors,
    discard_vectors,
    has_baselines,
    parts_alone,
    trained_vectors,
    vectors_beside,
)
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
STEPS_PER_ROW = 100
"""Steps of the progress that a row of the comparison takes."""
GUESSED_AUC = 0.5
"""The AUC of any guess that is the same for all nodes."""


def compare(
    model: DGI,
    codes: NDArray[Any],
    splits: Sequence[Splits],
    probe: Probe,
    *,
    raw: bool = True,
    with_parts: bool = True,
    with_baselines: bool = True,
    keep: KeepVectors = discard_vectors,
    progress: Progress = silent,
) -> list[Row]:
    """Score a trained model on its training graph.

    Beside it stand each part alone, Random-Init, baselines and the majority.

    Args:
        model: the trained model.
        codes: ``[N]``, or ``[N, C]`` of 0/1.
        splits: the mean over these is the score.
        probe: scores vectors on a split.
        raw: whether raw features, and averaged ones, are scored.
        with_parts: whether each part of the vectors is scored alone.
        with_baselines: whether singular vectors of the edges, and averaged features, are scored.
        keep: is called with the vectors of each row, if they are those of all nodes.
        progress: is told the steps done.
    """
    graph = model.graph_
    device = choose_device(model.device)

    # Of a graph folder only the labelled nodes are read.
    labelled_rows = None
    if graph.table.mapped:
        labelled_rows = np.flatnonzero(is_labelled(codes))
        codes = codes[labelled_rows]
        splits = [{name: mask[labelled_rows] for name, mask in split.items()} for split in splits]
    has_all_nodes = labelled_rows is None or len(labelled_rows) == graph.num_nodes

    progress(0, "vectors")
    began = time.perf_counter()
    embeddings = model.transform(graph, rows=labelled_rows)
    row_count = 2  # the vectors and Random-Init
    if with_parts:
        row_count += len(parts_alone(embeddings))
    if with_baselines and has_baselines(graph):
        row_count += 1
        if raw:
            row_count += 1
    if raw:
        row_count += 1

    rows: list[Row] = []

    def score(compared: ComparedVectors) -> None:
        """Score vectors as the next row, which has taken the time since the last one."""
        nonlocal began
        row_progress = progress_of_part(
            progress,
            STEPS_PER_ROW * len(rows),
            STEPS_PER_ROW,
            compared.name,
            STEPS_PER_ROW * row_count,
        )
        row = score_vectors(
            compared.name,
            compared.vectors,
            codes,
            splits,
            probe,
            began=began,
            is_fixed=compared.name == RAW,
            device=device,
            progress=row_progress,
        )
        rows.append(row)
        if has_all_nodes:
            keep(compared.name, graph.node_type, compared.vectors)
        began = time.perf_counter()

    for compared in trained_vectors(embeddings):
        score(compared)
        if not with_parts:
            break
    # Vectors of a large graph fill the memory, and the next ones are as large.
    del embeddings, compared
    for compared in vectors_beside(model, labelled_rows, raw=raw, with_baselines=with_baselines):
        score(compared)
    return [*rows, majority(codes, splits)]


def advice(rows: Sequence[Row], run: str = "RUN") -> list[str]:
    """What the rows of `compare` say to a user, in sentences.

    A row is named where it scores higher than the run by more than its scores differ between
    splits, with the command that writes its vectors. Guessing is named where it scores as high.

    Args:
        rows: the rows, the run first.
        run: the path of the run, for the commands.
    """
    run_row = rows[0]
    run_score = score_text(run_row.mean, None, run_row.metric)
    sentences = []
    for row in rows[1:]:
        row_score = score_text(row.mean, None, row.metric)
        if row.method == GUESS:
            if run_row.mean <= row.mean or run_score == row_score:
                sentences.append(_no_better_than_guessing(run_row, run_score, row_score))
            continue

        is_clearly_higher = row.mean > run_row.mean + row.split_std
        if is_clearly_higher and row_score != run_score:
            sentences.append(_higher_row(row.method, f"{row_score} against {run_score}", run))
    return sentences


def _no_better_than_guessing(run_row: Row, run_score: str, guess_score: str) -> str:
    sentence = (
        f"{run_row.method} is no better than the majority: {run_score} against {guess_score}."
    )
    if "AUC" in run_row.other_metrics:
        auc = run_row.other_metrics["AUC"]
        sentence += f" Its AUC is {auc:.2f}, where guessing has {GUESSED_AUC:.2f}."
    return sentence


def _higher_row(method: str, scores: str, run: str) -> str:
    """The sentence that a row scores higher, and which command writes its vectors."""
    if method == RAW:
        return f"{SCORES_HIGHER[RAW]} higher: {scores}."
    if method in SCORES_HIGHER:
        command = WRITES_ALL.replace("RUN", run)
        return f"{SCORES_HIGHER[method]} higher: {scores}. To write them: {command}"
    name = method.removesuffix(" alone")
    part_name = f"{name[0].lower()}{name[1:]}"
    return f"{method}: {scores}. To write them: infomax embed {run} --vectors {part_name}"


def score_vectors(
    method: str,
    vectors: Any,
    codes: NDArray[Any],
    splits: Sequence[Splits],
    probe: Probe,
    *,
    began: float | None = None,
    is_fixed: bool = False,
    metric: str | None = None,
    paper: PrintedScore | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = silent,
) -> Row:
    """Score vectors on all splits: a row of the table of scores.

    Args:
        method: the name of the row.
        vectors: ``[N, d]``, dense or sparse.
        codes: ``[N]`` classes as numbers from 0, or ``[N, C]`` of 0/1 for several labels per node.
        splits: the splits to score on.
        probe: scores vectors on a split.
        began: the time from which the seconds of the row count, by `time.perf_counter`.
        is_fixed: whether no encoder made the vectors. The scores of the row then differ by the
            initialisations of the probe; else the row has one score, of this encoder.
        metric: the name of the metric; by default that of the scores.
        paper: the score that the paper prints.
        device: the device on which the probe runs.
        progress: is told the steps done.
    """
    if began is None:
        began = time.perf_counter()
    scores = score_splits(probe, vectors, codes, splits, device=device, progress=progress)
    values_of_runs: Sequence[float] | NDArray[np.float64] = [mean_over(scores)]
    if is_fixed:
        values_of_runs = np.mean([score.values for score in scores], axis=0)
    return _row(method, scores, began, values_of_runs, metric or scores[0].metric, paper)


def majority(codes: NDArray[Any], splits: Sequence[Splits], method: str = GUESS) -> Row:
    """Score the same guess for every node, as a baseline.

    The guess is the most frequent class, or all labels that more than half of the nodes have. It is
    counted on training and validation nodes, since among training nodes alone classes are often
    equally frequent.
    """
    began = time.perf_counter()
    scores = []
    for split in splits:
        counted_masks = [split[name] for name in ("train", "validation") if name in split]
        counted_codes = codes[np.any(counted_masks, axis=0) & is_labelled(codes)]
        test_codes = codes[split["test"] & is_labelled(codes)]

        has_one_label_per_node = codes.ndim == 1
        if has_one_label_per_node:
            guesses = np.full(len(test_codes), np.bincount(counted_codes).argmax())
        else:
            guesses = np.broadcast_to(counted_codes.mean(0) > 0.5, test_codes.shape)
        # Scores are means over initialisations of a probe; a guess has one initialisation.
        guesses_of_one_initialisation = guesses[None]
        score = Score.of(guesses_of_one_initialisation, test_codes)
        if has_one_label_per_node:
            score = dataclasses.replace(
                score, other_metrics=score.other_metrics | {"AUC": GUESSED_AUC}
            )
        scores.append(score)
    return _row(method, scores, began, [mean_over(scores)], scores[0].metric)


def mean_over(scores: Iterable[Score]) -> float:
    """The mean of the scores of one encoder on several splits, a fraction of 1."""
    return float(np.mean([score.value for score in scores]))


def chosen_costs(scores: Iterable[Score]) -> tuple[float, ...]:
    """The distinct values of C that were chosen on validation nodes, ascending.

    A probe without C has none.
    """
    return tuple(
        sorted({score.hyperparameters["C"] for score in scores if "C" in score.hyperparameters})
    )


def _row(
    method: str,
    scores: Sequence[Score],
    began: float,
    values_of_runs: Sequence[float] | NDArray[np.float64],
    metric: str,
    paper: PrintedScore | None = None,
) -> Row:
    """A row of the table of scores.

    Args:
        method: the name of the row.
        scores: one for each split.
        began: the time from which the seconds of the row count.
        values_of_runs: for each run its mean over the splits.
        metric: the name of the metric.
        paper: the score that the paper prints.
    """
    row = summarise(method, values_of_runs, time.perf_counter() - began, paper, metric)
    over_splits = summarise(method, [score.value for score in scores], 0, None, metric)
    other_metrics = {
        name: float(np.mean([score.other_metrics[name] for score in scores]))
        for name in scores[0].other_metrics
    }
    return dataclasses.replace(
        row,
        splits=len(scores),
        split_std=over_splits.std,
        costs=chosen_costs(scores),
        other_metrics=other_metrics,
    )


def labelled(graph: Graph) -> tuple[NDArray[Any], Splits]:
    """Codes ``[N]`` or ``[N, C]`` of a graph's first label column, and its own split."""
    if not graph.labels or not set(SPLIT_PARTS) <= set(graph.splits):
        raise InputError("graph", "labels and a split", f"labels {list(graph.labels)}")
    labels = next(iter(graph.labels.values()))
    codes = labels if labels.ndim == 2 else encode_labels(labels)[0]
    return codes, graph.splits


# Several runs side by side.


ValuesOfRuns: TypeAlias = dict[str, list[Any]]
"""By name, a value for each run; None where the run has none."""
HEALTH_FIGURES = (
    "epochs",
    "loss",
    "discriminator_accuracy",
    "effective_rank",
    "dimensions",
    "dead_dimensions",
    "seconds",
)
"""The figures of the health report that are compared, beside the verdict."""
HASH_DIGITS = 12
"""Digits of the hash of a graph that are shown."""


def compare_runs(folders: Sequence[Path]) -> dict[str, ValuesOfRuns]:
    """The settings in which runs differ, their health, and their scores: by section and name."""
    settings = _values_of_runs([_settings_of_run(folder) for folder in folders])
    differing_settings = {
        name: values
        for name, values in settings.items()
        if any(value != values[0] for value in values)
    }
    return {
        "settings": differing_settings,
        "health": _values_of_runs([_health_of_run(folder) for folder in folders]),
        "scores": _values_of_runs([_scores_of_run(folder) for folder in folders]),
    }


def _settings_of_run(folder: Path) -> dict[str, Any]:
    config = runs.check(folder)
    settings = {"seed": config["seed"], **flat(config["settings"])}
    for name, value in config["graph"].items():
        if name == "hash":
            settings["graph.hash"] = value[:HASH_DIGITS]
        elif name == "schema":
            schema = runs.schema_of(config, folder)
            choices = {} if schema is None else choices_in_words(schema)
            # A schema has hundreds of lines, of which those that differ are shown.
            for choice, content in choices.items():
                settings[f"schema.{choice}"] = content
        elif isinstance(value, dict):
            for entry_name, entry in value.items():
                settings[f"graph.{name}.{entry_name}"] = entry
        else:
            settings[f"graph.{name}"] = value
    return settings


def _health_of_run(folder: Path) -> dict[str, Any]:
    report = read_report(folder / runs.HEALTH)
    health = {name: report.get(name) for name in HEALTH_FIGURES}
    health["verdict"] = report["verdict"]["verdict"]
    return health


def _scores_of_run(folder: Path) -> dict[str, float]:
    scores = {}
    for title, score_by_method in read_scores(folder).items():
        for method, score in score_by_method.items():
            scores[f"{title}: {method}"] = score
    return scores


def _values_of_runs(runs_values: Sequence[dict[str, Any]]) -> ValuesOfRuns:
    names = dict.fromkeys(name for values in runs_values for name in values)
    return {name: [values.get(name) for values in runs_values] for name in names}
