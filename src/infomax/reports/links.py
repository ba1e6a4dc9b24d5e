"""DGI beside Random-Init, raw features and common neighbours: how well each tells edges from random pairs of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from infomax.estimator import DGI
from infomax.evaluation.links import common_neighbours, cosines, draw_pairs, regression, score


def compare_links(model: DGI, smooth: int | None = None, *, seed: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The rows of a trained model, as JSON values, and the number of edges that they are scored on.

    The edges are those that its graph holds out; where it holds out none they are drawn from all, which training has
    seen. Half of the pairs fit the regression, and all scores are of the other half. With ``smooth`` the vectors of DGI
    and Random-Init are shown smoothed over so many hops as well.
    """
    graph = model.graph_
    adjacency = graph.adjacency
    pairs = draw_pairs(adjacency, graph.held_out, graph.groups, seed=seed)
    rows = []
    for method, vectors in _vectors(model, smooth):
        rows.append({"method": method, "score": "cosine", **asdict(score(pairs, cosines(vectors, pairs)))})
        rows.append({"method": method, "score": "regression", **asdict(score(pairs, regression(vectors, pairs)))})
    counts = common_neighbours(adjacency, pairs, directed=graph.directed)
    rows.append({"method": "Common neighbours", "score": "count", **asdict(score(pairs, counts))})
    return rows, int((pairs.joined & ~pairs.fitted).sum())


def _vectors(model: DGI, smooth: int | None) -> Iterator[tuple[str, Any]]:
    """Each method and its vectors ``[N, d]`` of the graph that the model was trained on, one at a time."""
    graph = model.graph_
    untrained = DGI(preset=model.preset_, epochs=0, seed=model.seed_, device=model.device).fit(graph)
    for method, part in (("DGI", model), ("Random-Init", untrained)):
        yield method, part.transform(graph).vectors
        if smooth:
            yield f"{method}, smoothed over {smooth} hops", part.transform(graph, smooth=smooth).vectors
    yield "Raw features", graph.scaler(model.preset_.scale).transform(graph.features)
