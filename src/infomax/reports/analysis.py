"""The report about a trained model: what `infomax.analysis` draws, computed from the model and its graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.analysis.dimensions import dimensions, removed
from infomax.analysis.health import health
from infomax.analysis.pictures import sample_rows, tsne, umap
from infomax.analysis.projections import projections
from infomax.analysis.report import Chapter, write_report
from infomax.analysis.scores import Pairs, scores
from infomax.arrays.structural_features import describe_structural_features
from infomax.errors import InputError, format_count
from infomax.estimator import DGI
from infomax.evaluation.probes import choose_probe, score_splits
from infomax.evaluation.splits import Splits, encode_labels
from infomax.kernels import Backend
from infomax.kernels.device import choose_device
from infomax.parts.vectors import PAPER
from infomax.progress import Progress, followed, silent
from infomax.progress import part as part_of
from infomax.reports.comparison import mean_over, untrained
from infomax.training.verdict import words
from infomax.version import __version__

SAMPLE = 4000
PROJECTION = 16
"""Probes that take about as long as a projection."""


def write_analysis(
    model: DGI,
    folder: Path,
    chapters: Iterable[Chapter],
    *,
    title: str,
    drawn: str = "",
    progress: Progress = silent,
) -> dict[str, dict[str, Any]]:
    """Write a report about a model into a folder; return chapter -> numbers. ``drawn`` says how rows were drawn."""
    graph, parts = model.graph_, model.preset_.describe()
    lead = (
        f"{words(model.health_['verdict'])} "
        f"{drawn}{format_count(graph.num_nodes, 'node')}, {format_count(graph.num_edges, 'edge')}, "
        f"{describe_structural_features(graph.feature_names) or format_count(graph.num_features, 'feature')}. "
        f"{parts['encoder']['part']} encoder of {format_count(model.model_.encoder.out_dim, 'dimension')}, corruption "
        f"{parts['corruption']['part']}, seed {model.seed_}; infomax {__version__}."
    )
    if model.preset_.vectors != PAPER:
        lead += " The report is about the encoder's own vectors, as in the paper; infomax evaluate scores all parts."
    # All chapters are made before the first is written, so that an interruption leaves no half of a report.
    drawn_chapters = list(chapters)
    write_report(
        folder,
        title,
        lead,
        followed(drawn_chapters, progress, "drawing", len(drawn_chapters), every=1),
    )
    return {chapter.name: chapter.numbers for chapter in drawn_chapters}


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
    """Yield the chapters of the report about a trained model, in order; without labels ``[N]``, those that need none.

    The mean over ``splits`` is the score, by the probe of `infomax evaluate`. ``floors`` are accuracies by name to
    compare the dimension study with, beside Random-Init. Of a graph folder only some ``rows`` ``[n]`` are analysed:
    labels and splits are theirs.
    """
    graph = model.graph_
    codes = None
    groups = None
    if labels is not None:
        codes, groups = named_groups(labels)
    probes = 0 if codes is None else 2 * len(removed(model.model_.encoder.out_dim)) + 1
    total = 2 * PROJECTION + probes
    progress(0, "positives and negatives", total)
    pairs = draw_pairs(model, seed=seed, rows=rows)
    learnt = model.transform(graph, vectors="paper", rows=rows).vectors
    some: Any = slice(None) if rows is None else rows
    # The map shows the vectors that are scored: those of the graph that training has seen, sampled where it sampled.
    method, project = ("UMAP", umap) if projection == "umap" else ("t-SNE", tsne)
    points = project(
        pairs.positives,
        seed=seed,
        progress=part_of(progress, 0, PROJECTION, f"{method} of DGI", total),
    )
    here = part_of(progress, PROJECTION, PROJECTION, f"{method} of the negative sample", total)
    negative_points = project(pairs.negatives, seed=seed, progress=here)
    yield projections(
        {"DGI": points}, None if groups is None else groups[pairs.nodes], method=method
    )
    called = None if graph.node_names is None else graph.called(some)
    yield scores(
        pairs, points, negative_points, graph.ids[some], graph.degrees()[some], groups, called
    )
    if codes is None:
        yield dimensions(pairs)
    else:
        probed = itertools.count(total - probes)
        device = choose_device(model.device)

        def measure(vectors: NDArray[Any]) -> float:
            progress(next(probed), "probes without some of the dimensions", total)
            return mean_over(
                score_splits(choose_probe(probe), vectors, codes, splits, device=device)
            )

        random = untrained(model).transform(graph, vectors="paper", rows=rows).vectors
        floors = {**(floors or {}), "Random-Init": measure(random)}
        yield dimensions(pairs, lambda kept: measure(learnt[:, kept]), floors, probe=probe)
    yield health(model.health_, learnt)


def named_groups(labels: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The codes of labels ``[N]``, and their names ``[N]`` as text, "" where there is none."""
    codes, names = encode_labels(labels)
    return codes, np.array([*names, ""], dtype=object)[codes]


@torch.no_grad()
def draw_pairs(model: DGI, *, seed: int = 0, rows: NDArray[np.int64] | None = None) -> Pairs:
    """Draw positives and negatives from a model's training graph, in the same way as its training did.

    Pairs of views are drawn until there are `SAMPLE` positives, for at most one epoch. A score is a sum of one term per
    dimension only if the discriminator is linear in h, as the bilinear one is; others are refused. With ``rows`` of a
    graph folder these nodes are the batch, and the pairs name the places of nodes among them.
    """
    graph = model.graph_.seen()
    preset = model.preset_
    device = choose_device(model.device)
    if preset.method is not None:
        raise InputError(
            "analysis", "a model of Deep Graph Infomax, which scores vectors", "another method"
        )
    parts = model.model_.to(device)
    views = preset.views(
        graph.scaled(model.scaler_), parts.encoder.rule, preset.corruption, Backend(device)
    )
    views.prepare(parts.encoder.depth)
    if rows is not None:
        views.choose(torch.from_numpy(rows).to(device))
    drawn: list[list[NDArray[Any]]] = []
    generator = torch.Generator(device).manual_seed(seed)
    for batch in views.batches(generator):
        positive, negative = views.pair(batch, generator)
        h = parts.encoder(positive, negative)
        summary = parts.readout(h[0], positive)
        bias = parts.discriminator(torch.zeros_like(h[0][:1]), summary)
        direction = parts.discriminator(torch.eye(h[0].shape[1], device=device), summary) - bias
        pair: list[NDArray[Any]] = []
        of_batch = None if rows is not None else views.nodes(batch, positive)
        for nodes, vectors in zip(of_batch or [np.arange(len(part)) for part in h], h, strict=True):
            some = sample_rows(len(nodes), SAMPLE, seed)
            vectors = vectors[torch.from_numpy(some).to(device)]
            terms = vectors * direction
            logits = parts.discriminator(vectors, summary)
            if not torch.allclose(terms.sum(1) + bias, logits, rtol=1e-2, atol=1e-2):
                found = f"{type(parts.discriminator).__name__}, which is not"
                raise InputError(
                    "discriminator", "one that is linear in the vectors, for an analysis", found
                )
            pair += [nodes[some], vectors.cpu().numpy(), terms.cpu().numpy()]
        drawn.append(pair)
        if sum(len(pair[0]) for pair in drawn) >= SAMPLE:
            break
    nodes, positives, positive_terms, places, negatives, negative_terms = map(
        np.concatenate, zip(*drawn, strict=True)
    )
    seen = np.flatnonzero(
        model.graph_.splits.get("seen", np.ones(graph.num_nodes))
    )  # the row of each in the graph
    return Pairs(
        seen[nodes], seen[places], positives, negatives, positive_terms, negative_terms, float(bias)
    )
