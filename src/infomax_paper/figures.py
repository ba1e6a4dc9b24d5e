"""Figures 3 and 5 of the paper, for any trained model; the others are chapters of `infomax.reports.analysis`."""

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
    """Yield t-SNE of raw features, Random-Init and DGI side by side, then the vectors with extreme scores.

    Labels are ``[N]``.
    """
    graph, pairs = model.graph_, draw_pairs(model)
    # Untrained vectors are of the graph that training has seen, as those of DGI are.
    rows = np.searchsorted(
        np.flatnonzero(graph.splits.get("seen", np.ones(graph.num_nodes))), pairs.nodes
    )
    before = untrained(model).transform(graph.seen(), vectors="paper").vectors[rows]
    sources = {"Random-Init": before, "DGI": pairs.positives}
    if graph.num_features > 1:  # one feature lies on a line, not in a plane
        sources = {"Raw features": model.scaler_.transform(graph.table[:])[pairs.nodes], **sources}
    points = {}
    for done, (name, vectors) in enumerate(sources.items()):
        progress(done, f"t-SNE of {name}", len(sources))
        points[name] = tsne(vectors, seed=0)
    yield projections(points, None if labels is None else named_groups(labels)[1][pairs.nodes])
    yield activations(pairs)


def activations(pairs: ScoredVectors) -> Chapter:
    """The chapter about vectors with extreme scores. Dimensions are sorted by mean: biased ones are at the ends."""
    highest = np.argsort(-pairs.positive_scores, kind="stable")[:EXAMPLES]
    lowest = np.argsort(pairs.negative_scores, kind="stable")[:EXAMPLES]
    biased = biased_dimensions(pairs)
    order = np.argsort(pairs.positives.mean(axis=0) + pairs.negatives.mean(axis=0), kind="stable")
    terms = {"positives": pairs.positive_terms, "negatives": pairs.negative_terms}
    push = {who: float(rows[:, biased].sum(axis=1).mean()) for who, rows in terms.items()}
    rest = {who: float(rows[:, ~biased].sum(axis=1).mean()) for who, rows in terms.items()}
    numbers = {
        "dimensions": len(order),
        "biased": np.flatnonzero(biased).tolist(),
        "score_from_biased": push,
        "score_from_others": rest,
        "highest_positives": pairs.nodes[highest].tolist(),
        "order": order.tolist(),
    }
    story = [
        f"Each row is the vector of one patch: above, the {len(highest)} patches of the graph with the highest scores; "
        f"below, the {len(lowest)} patches of the negative sample with the lowest. Each column is one of {len(order)} "
        "dimensions, ordered by its mean over all patches.",
    ]
    if biased.any():
        story.append(
            f"Biased, with the same sign in nearly all patches, real or corrupted: "
            f"{format_count(int(biased.sum()), 'dimension')}. On average that adds {push['positives']:+.1f} to the score "
            f"of a positive and {push['negatives']:+.1f} to that of a negative; all other dimensions together add "
            f"{rest['positives']:+.1f} and {rest['negatives']:+.1f}."
        )
    else:
        story.append("No dimension is biased: none has the same sign in nearly all patches.")
    rows = np.concatenate([pairs.positives[highest], pairs.negatives[lowest]])[:, order]
    draw = partial(_draw, rows, len(highest), np.flatnonzero(biased[order]))
    return Chapter("activations", "What the vectors look like", story, numbers, draw)


def biased_dimensions(pairs: ScoredVectors) -> NDArray[np.bool_]:
    """Which dimensions ``[d]`` have a mean two deviations from 0, on the same side in positives and negatives."""
    leans = []
    for vectors in (pairs.positives, pairs.negatives):
        spread = vectors.std(axis=0)
        leans.append(
            np.divide(vectors.mean(axis=0), spread, out=np.zeros_like(spread), where=spread > 0)
        )
    return np.asarray((np.minimum(*leans) >= 2) | (np.maximum(*leans) <= -2))


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
