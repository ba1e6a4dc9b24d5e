"""Figures 3 and 5 of the paper, for any trained model; the others are chapters of
`infomax.reports.analysis`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.pictures import tsne
from infomax.analysis.projections import projections
from infomax.analysis.report import Chapter
from infomax.analysis.scores import ScoredVectors
from infomax.analysis.style import DIVERGING, INK, PAPER, panels
from infomax.errors import format_count
from infomax.estimator import DGI
from infomax.progress import Progress, silent
from infomax.reports.analysis import draw_pairs, named_groups
from infomax.reports.compared_vectors import untrained

EXAMPLES = 100
"""Vectors of extreme scores that are shown, of either kind."""


def figures(
    model: DGI, labels: NDArray[Any] | None = None, *, progress: Progress = silent
) -> Iterator[Chapter]:
    """Yield t-SNE of raw features, Random-Init and DGI side by side, then the vectors with extreme
    scores.

    Labels are ``[N]``.
    """
    graph = model.graph_
    pairs = draw_pairs(model)
    # Untrained vectors are of the graph that training has seen, as those of DGI are.
    is_seen = graph.splits.get("seen", np.ones(graph.num_nodes))
    rows = np.searchsorted(np.flatnonzero(is_seen), pairs.nodes)
    untrained_vectors = untrained(model).transform(graph.seen(), vectors="paper").vectors[rows]
    vectors_by_source = {"Random-Init": untrained_vectors, "DGI": pairs.positives}
    if graph.num_features > 1:  # one feature lies on a line, not in a plane
        raw_features = model.scaler_.transform(graph.table[:])[pairs.nodes]
        vectors_by_source = {"Raw features": raw_features, **vectors_by_source}

    points = {}
    for done, (name, vectors) in enumerate(vectors_by_source.items()):
        progress(done, f"t-SNE of {name}", len(vectors_by_source))
        points[name] = tsne(vectors, seed=0)
    groups = None if labels is None else named_groups(labels)[1][pairs.nodes]
    yield projections(points, groups)
    yield activations(pairs)


def activations(pairs: ScoredVectors) -> Chapter:
    """The chapter about vectors with extreme scores. Dimensions are sorted by mean: biased ones are
    at the ends."""
    highest = np.argsort(-pairs.positive_scores, kind="stable")[:EXAMPLES]
    lowest = np.argsort(pairs.negative_scores, kind="stable")[:EXAMPLES]
    is_biased = biased_dimensions(pairs)
    means = pairs.positives.mean(axis=0) + pairs.negatives.mean(axis=0)
    order = np.argsort(means, kind="stable")

    # A score is a sum over dimensions: what the biased ones add to it, and what the others do.
    terms = {"positives": pairs.positive_terms, "negatives": pairs.negative_terms}
    from_biased, from_others = {}, {}
    for name, rows in terms.items():
        from_biased[name] = float(rows[:, is_biased].sum(axis=1).mean())
        from_others[name] = float(rows[:, ~is_biased].sum(axis=1).mean())

    numbers = {
        "dimensions": len(order),
        "biased": np.flatnonzero(is_biased).tolist(),
        "score_from_biased": from_biased,
        "score_from_others": from_others,
        "highest_positives": pairs.nodes[highest].tolist(),
        "order": order.tolist(),
    }
    story = [
        f"Each row is the vector of one patch: above, the {len(highest)} patches of the graph with "
        f"the highest scores; below, the {len(lowest)} patches of the negative sample with the "
        f"lowest. Each column is one of {len(order)} dimensions, ordered by its mean over all "
        "patches.",
    ]
    if is_biased.any():
        biased_count = format_count(int(is_biased.sum()), "dimension")
        story.append(
            "Biased, with the same sign in nearly all patches, real or corrupted: "
            f"{biased_count}. On average that adds {from_biased['positives']:+.1f} to the score of "
            f"a positive and {from_biased['negatives']:+.1f} to that of a negative; all other "
            f"dimensions together add {from_others['positives']:+.1f} and "
            f"{from_others['negatives']:+.1f}."
        )
    else:
        story.append("No dimension is biased: none has the same sign in nearly all patches.")

    shown_vectors = np.concatenate([pairs.positives[highest], pairs.negatives[lowest]])
    biased_columns = np.flatnonzero(is_biased[order])
    draw = partial(_draw, shown_vectors[:, order], len(highest), biased_columns)
    return Chapter("activations", "What the vectors look like", story, numbers, draw)


def biased_dimensions(pairs: ScoredVectors) -> NDArray[np.bool_]:
    """Which dimensions ``[d]`` have a mean two deviations from 0, on the same side in positives and
    negatives."""
    means_in_deviations = []
    for vectors in (pairs.positives, pairs.negatives):
        mean, deviation = vectors.mean(axis=0), vectors.std(axis=0)
        zeros = np.zeros_like(deviation)
        means_in_deviations.append(np.divide(mean, deviation, out=zeros, where=deviation > 0))
    is_positive = np.minimum(*means_in_deviations) >= 2
    is_negative = np.maximum(*means_in_deviations) <= -2
    return np.asarray(is_positive | is_negative)


def _draw(rows: NDArray[Any], positives: int, biased: NDArray[np.int64], stacked: bool) -> Any:
    figure, (axes,) = panels(1, stacked, height=5.2)
    limit = float(np.quantile(np.abs(rows), 0.97)) or 1.0
    image = axes.imshow(
        rows,
        aspect="auto",
        cmap=DIVERGING,
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
        rasterized=True,
    )
    axes.axhline(positives - 0.5, color=PAPER, linewidth=5)
    axes.scatter(
        biased, np.full(len(biased), -4.0), s=20, marker="v", color=INK, linewidths=0, clip_on=False
    )
    axes.set_title(
        "▾ biased dimensions" if len(biased) else "", fontsize=12, fontweight="normal", pad=14
    )
    middles = [(positives - 1) / 2, positives + (len(rows) - positives - 1) / 2]
    axes.set_yticks(middles, ["positives", "negatives"], rotation=90, va="center")
    axes.tick_params(left=False)
    axes.spines[:].set_visible(False)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("dimension, ordered by its mean")
    bar = figure.colorbar(
        image, ax=axes, extend="both", label="activation", shrink=0.9, pad=0.02, aspect=30
    )
    bar.outline.set_visible(False)
    return figure
