"""The report about a trained model: what `infomax.analysis` draws, from model and graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax.analysis.dimensions import dimensions, removed
from infomax.analysis.health import health
from infomax.analysis.pictures import sample_rows, tsne, umap
from infomax.analysis.projections import projections
from infomax.analysis.report import Chapter, write_report
from infomax.analysis.scores import ScoredVectors, scores
from infomax.arrays.structural_features import describe_structural_features
from infomax.errors import InputError, format_count
from infomax.estimator import DGI
from infomax.evaluation.probes import choose_probe, score_splits
from infomax.evaluation.splits import Splits, encode_labels
from infomax.kernels import Backend
from infomax.kernels.device import choose_device
from infomax.parts.vectors import PAPER
from infomax.progress import Progress, followed, progress_of_part, silent
from infomax.reports.compared_vectors import untrained
from infomax.reports.comparison import mean_over
from infomax.training.verdict import words
from infomax.version import __version__

POSITIVES = 4000
"""Positives that the report is about: more would only make its pictures darker."""
STEPS_PER_PROJECTION = 16
"""Steps of the progress for a projection, which takes as long as about so many probes."""
LOGIT_TOLERANCE = 1e-2
"""How far the terms of a linear discriminator may be from its logits, by rounding."""


def write_analysis(
    model: DGI,
    folder: Path,
    chapters: Iterable[Chapter],
    *,
    title: str,
    sample_note: str = "",
    progress: Progress = silent,
) -> dict[str, dict[str, Any]]:
    """Write a report about a model; return the numbers of each chapter by its name.

    Args:
        model: the trained model.
        folder: where to write.
        chapters: the chapters, as `analyse` makes them.
        title: the title of the report.
        sample_note: which nodes were drawn, where the report is not about all.
        progress: is told the chapters drawn.
    """
    # All chapters are made before the first is written, so that an interruption leaves no half of
    # a report.
    finished_chapters = list(chapters)
    chapter_count = len(finished_chapters)
    drawn_chapters = followed(finished_chapters, progress, "drawing", chapter_count, every=1)
    write_report(folder, title, _lead(model, sample_note), drawn_chapters)
    return {chapter.name: chapter.numbers for chapter in finished_chapters}


def _lead(model: DGI, sample_note: str) -> str:
    """The first sentences of the report: verdict, graph and settings."""
    graph = model.graph_
    settings = model.preset_.describe()
    features = describe_structural_features(graph.feature_names)
    if not features:
        features = format_count(graph.num_features, "feature")
    out_dim = format_count(model.model_.encoder.out_dim, "dimension")
    lead = (
        f"{words(model.health_['verdict'])} {sample_note}"
        f"{format_count(graph.num_nodes, 'node')}, {format_count(graph.num_edges, 'edge')}, "
        f"{features}. {settings['encoder']['part']} encoder of {out_dim}, "
        f"corruption {settings['corruption']['part']}, seed {model.seed_}; infomax {__version__}."
    )
    if model.preset_.vectors != PAPER:
        lead += (
            " The report is about the encoder's own vectors, as in the paper; "
            "infomax evaluate scores all parts."
        )
    return lead


def analyse(
    model: DGI,
    labels: NDArray[Any] | None = None,
    splits: Sequence[Splits] = (),
    *,
    probe: str = "validated",
    floors: Mapping[str, float] | None = None,
    projection: str = "tsne",
    rows: NDArray[np.int64] | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Chapter]:
    """Yield the chapters of the report about a trained model, in order.

    Args:
        model: the trained model.
        labels: ``[N]``; without labels there are only the chapters that need none.
        splits: the mean over these is the score.
        probe: the probe, by its name in `infomax evaluate`.
        floors: accuracies by name that the study of dimensions is compared with, beside
            Random-Init.
        projection: "tsne" or "umap".
        rows: ``[n]``, the rows of a graph folder that are analysed; labels and splits are theirs.
        seed: decides what is drawn at random.
        progress: is told the steps done.
    """
    graph = model.graph_
    codes = None
    label_names = None
    if labels is not None:
        codes, label_names = named_groups(labels)

    # Of either order of removing dimensions, and of Random-Init.
    probe_count = 0
    if codes is not None:
        probe_count = 2 * len(removed(model.model_.encoder.out_dim)) + 1
    step_count = 2 * STEPS_PER_PROJECTION + probe_count

    progress(0, "positives and negatives", step_count)
    pairs = draw_pairs(model, seed=seed, rows=rows)
    trained_vectors = model.transform(graph, vectors=PAPER, rows=rows).vectors

    # The map shows the vectors that are scored: those of the graph that training has seen, sampled
    # where training sampled.
    method, project = ("UMAP", umap) if projection == "umap" else ("t-SNE", tsne)
    positive_points = project(
        pairs.positives,
        seed=seed,
        progress=progress_of_part(
            progress, 0, STEPS_PER_PROJECTION, f"{method} of DGI", step_count
        ),
    )
    negative_points = project(
        pairs.negatives,
        seed=seed,
        progress=progress_of_part(
            progress,
            STEPS_PER_PROJECTION,
            STEPS_PER_PROJECTION,
            f"{method} of the negative sample",
            step_count,
        ),
    )
    point_labels = None if label_names is None else label_names[pairs.nodes]
    yield projections({"DGI": positive_points}, point_labels, method=method)

    requested_rows: Any = slice(None) if rows is None else rows
    yield scores(
        pairs,
        positive_points,
        negative_points,
        graph.ids[requested_rows],
        graph.degrees()[requested_rows],
        label_names,
        None if graph.node_names is None else graph.display_names(requested_rows),
    )

    if codes is None:
        yield dimensions(pairs)
    else:
        probe_steps = itertools.count(step_count - probe_count)
        device = choose_device(model.device)

        def measure(vectors: NDArray[Any]) -> float:
            progress(next(probe_steps), "probes without some of the dimensions", step_count)
            split_scores = score_splits(choose_probe(probe), vectors, codes, splits, device=device)
            return mean_over(split_scores)

        random_vectors = untrained(model).transform(graph, vectors=PAPER, rows=rows).vectors
        floors = {**(floors or {}), "Random-Init": measure(random_vectors)}
        yield dimensions(pairs, lambda kept: measure(trained_vectors[:, kept]), floors, probe=probe)
    yield health(model.health_, trained_vectors)


def named_groups(labels: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The codes of labels ``[N]``, and their names ``[N]`` as text, "" where there is none."""
    codes, names = encode_labels(labels)
    # The code -1 of a missing label picks the last name.
    return codes, np.array([*names, ""], dtype=object)[codes]


class _DrawnVectors(NamedTuple):
    """Vectors of one side of a pair of views, as arrays on the host.

    Shapes:
        nodes: ``[n]``, vectors: ``[n, d]``, terms: ``[n, d]``
    """

    nodes: NDArray[np.int64]
    vectors: NDArray[np.float32]
    terms: NDArray[np.float32]


@torch.no_grad()
def draw_pairs(
    model: DGI,
    *,
    seed: int = 0,
    rows: NDArray[np.int64] | None = None,
    most_positives: int = POSITIVES,
) -> ScoredVectors:
    """Draw positives and negatives from a model's training graph as its training did.

    Pairs of views are drawn until there are enough positives, for at most one epoch. A score is a
    sum of one term per dimension only if the discriminator is linear in h, as the bilinear one is;
    others are refused.

    Args:
        model: the trained model.
        seed: decides what is drawn.
        rows: ``[n]``, of a graph folder the nodes that are the batch. The pairs then number nodes
            among these.
        most_positives: how many positives are enough.
    """
    graph = model.graph_.seen()
    preset = model.preset_
    device = choose_device(model.device)
    if preset.method is not None:
        expected = "a model of Deep Graph Infomax, which scores vectors"
        raise InputError("analysis", expected, "another method")
    parts = model.model_.to(device)
    views = preset.views(
        graph.scaled(model.scaler_), parts.encoder.rule, preset.corruption, Backend(device)
    )
    views.prepare(parts.encoder.depth)
    if rows is not None:
        views.choose(torch.from_numpy(rows).to(device))

    positives: list[_DrawnVectors] = []
    negatives: list[_DrawnVectors] = []
    generator = torch.Generator(device).manual_seed(seed)
    for batch in views.batches(generator):
        positive_view, negative_view = views.pair(batch, generator)
        h = parts.encoder(positive_view, negative_view)
        summary = parts.readout(h[0], positive_view)
        nodes = [np.arange(len(vectors)) for vectors in h]
        if rows is None:
            nodes = views.nodes(batch, positive_view) or nodes

        bias, direction = _linear_discriminator(parts.discriminator, h[0], summary)
        for side, side_nodes, side_vectors in zip((positives, negatives), nodes, h, strict=True):
            sampled = sample_rows(len(side_nodes), most_positives, seed)
            vectors = side_vectors[torch.from_numpy(sampled).to(device)]
            terms = vectors * direction
            logits = parts.discriminator(vectors, summary)
            _refuse_other_scores(parts.discriminator, terms.sum(1) + bias, logits)
            side.append(
                _DrawnVectors(side_nodes[sampled], vectors.cpu().numpy(), terms.cpu().numpy())
            )
        if sum(len(drawn.nodes) for drawn in positives) >= most_positives:
            break

    # Training numbers the nodes that it has seen; pairs name rows of the whole graph.
    is_seen = model.graph_.splits.get("seen", np.ones(graph.num_nodes))
    seen_rows = np.flatnonzero(is_seen)
    return ScoredVectors(
        seen_rows[np.concatenate([drawn.nodes for drawn in positives])],
        seen_rows[np.concatenate([drawn.nodes for drawn in negatives])],
        np.concatenate([drawn.vectors for drawn in positives]),
        np.concatenate([drawn.vectors for drawn in negatives]),
        np.concatenate([drawn.terms for drawn in positives]),
        np.concatenate([drawn.terms for drawn in negatives]),
        float(bias),
    )


def _linear_discriminator(discriminator: Any, h: Tensor, summary: Tensor) -> tuple[Tensor, Tensor]:
    """Bias ``[1]`` and direction ``[d]`` of a discriminator that is linear in h.

    They are its scores of the zero vector and of the unit vectors, whatever its formula.
    """
    bias = discriminator(torch.zeros_like(h[:1]), summary)
    direction = discriminator(torch.eye(h.shape[1], device=h.device), summary) - bias
    return bias, direction


def _refuse_other_scores(discriminator: Any, scores: Tensor, logits: Tensor) -> None:
    """Refuse a discriminator whose logits are no sum over dimensions."""
    if torch.allclose(scores, logits, rtol=LOGIT_TOLERANCE, atol=LOGIT_TOLERANCE):
        return
    expected = "one that is linear in the vectors, for an analysis"
    raise InputError("discriminator", expected, f"{type(discriminator).__name__}, which is not")
