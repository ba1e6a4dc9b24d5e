"""How well a model that knows the past tells who meets whom later: beside remembering pairs, and beside popularity.

Events are rows with times that join two others: the orders of customers and products, or the rows of an edge table.
Each later event is ranked among `OTHERS` random pairs of its first end. Often most later pairs have met before: what
only remembers them is always shown beside.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.relations import Step, steps
from infomax.arrays.times import told_time
from infomax.errors import InputError, number_of
from infomax.estimator import DGI
from infomax.graphs.graph import Graph
from infomax.io.columns import EVENT

MOST, OTHERS, HITS = 20_000, 49, 10
"""Later events that are scored at most, random pairs beside each, and the rank up to which an event is a hit."""
Rows = NDArray[np.int64]


class _Pairs(NamedTuple):
    """Events that join a row of the graph's type with one of another, or of the same: ``[M]`` each."""

    event: str
    other: str
    first: Rows
    second: Rows
    times: Rows


def score_future(
    model: DGI, share: float, seed: int = 0
) -> tuple[str, dict[str, dict[str, float]]]:
    """Train a model with the same settings on the past, and score the events of the rest, the latest ``share``.

    Returns what was scored, in words, and the scores by name: ``{"auc": ..., "hits": ...}``.
    """
    if not 0 < share < 1:
        raise InputError("future", "a share of the events between 0 and 1, such as 0.2", str(share))
    graph = model.graph_
    pairs = _pairs(graph)
    ordered = np.sort(pairs.times)
    day = int(ordered[max(0, int((1 - share) * len(ordered)) - 1)])
    known = pairs.times <= day
    late = np.flatnonzero(~known)
    if not len(late):
        raise InputError(
            "future", f"events later than {told_time(day)}", "none: they all have one time"
        )
    draws = np.random.default_rng(seed)
    chosen = np.sort(draws.choice(late, min(MOST, len(late)), replace=False))
    count = graph.nodes[pairs.other].num_nodes
    asked = np.concatenate(
        [pairs.second[chosen, None], draws.integers(0, count, (len(chosen), OTHERS))], axis=1
    )
    first = pairs.first[chosen]
    recent = np.argsort(pairs.times[known], kind="stable")[
        -len(late) :
    ]  # as many events as the future has
    past = _Pairs(*pairs[:2], *(column[known] for column in pairs[2:]))
    trained = DGI(preset=model.preset_, seed=model.seed_, device=model.device).fit(graph.as_of(day))
    scores = {
        "vectors": _by_vectors(trained, pairs.other, first, asked),
        "remembering the latest events": _remembered(past, count, first, asked),
        "popularity": np.bincount(past.second[recent], minlength=count)[asked],
    }
    same = float((_remembered(past, count, first, asked[:, :1]) > 0).mean())
    events = number_of(len(chosen), EVENT) + ("" if pairs.event == EVENT else f" ({pairs.event})")
    told = f"{events} after {told_time(day)}, {same:.0%} of pairs that had met before"
    return (told, {name: _measured(values) for name, values in scores.items()})


def _pairs(graph: Graph) -> _Pairs:
    """The most numerous events that join rows of the graph's type with rows that have no times themselves."""
    found = _joins(graph, graph.node_type)
    if not found:
        expected = f"rows with times that join {graph.node_type or 'nodes'} with others"
        remedy = (
            "Name the column of times, of an edge table as well: infomax train GRAPH --time COLUMN."
        )
        if kinds := [node_type for node_type in graph.types if _joins(graph, node_type)]:
            remedy = f"Of these types there are some: --type {' or --type '.join(kinds)}."
        raise InputError("future", expected, "none", remedy)
    _, here, there = max(found, key=lambda one: one[0])
    back = Step(here.relation, here.sender)
    joined = [one.senders.matrix(graph.nodes[one.sender].num_nodes) for one in (back, there)]
    rows = [one.argmax(axis=1) for one in joined]
    whole = np.flatnonzero(np.logical_and(*(np.diff(one.indptr) == 1 for one in joined)))
    times = np.asarray(graph.nodes[here.sender].times[:])  # type: ignore[index]
    first, second = (np.asarray(one)[whole].astype(np.int64) for one in rows)
    return _Pairs(here.sender, there.sender, first, second, times[whole])


def _joins(graph: Graph, node_type: str) -> list[tuple[int, Step, Step]]:
    """The events that join rows of a type with rows that have no times: how many, and the steps to both."""
    if graph.nodes[node_type].times is not None:
        return []
    return [
        (there.relation.edges.nnz, here, there)
        for here in steps(graph.relations, node_type)
        if graph.nodes[here.sender].times is not None
        for there in steps(graph.relations, here.sender)
        if there.relation is not here.relation and graph.nodes[there.sender].times is None
    ]


def _by_vectors(model: DGI, other: str, first: Rows, asked: Rows) -> NDArray[Any]:
    """Scores ``[P, k]``: cosines of vectors within a type; between two, products of singular vectors."""
    node_type = model.graph_.node_type
    if other == node_type:
        found = model.transform(model.graph_).vectors
        length = np.linalg.norm(found, axis=1, keepdims=True)
        here = there = np.divide(found, length, out=np.zeros_like(found), where=length > 0)
    else:
        here, there = (model.singular_vectors(one).vectors for one in (node_type, other))
    out = np.empty(asked.shape, np.float32)
    for at in range(
        asked.shape[1]
    ):  # one column at a time: all pairs of vectors would take gigabytes
        out[:, at] = np.einsum("pd,pd->p", here[first], there[asked[:, at]])
    return out


def _remembered(past: _Pairs, count: int, first: Rows, asked: Rows) -> NDArray[Any]:
    """When a pair ``[P, k]`` last met, by the rank of that event from 1 on; 0 for never."""
    order = np.argsort(past.times, kind="stable")
    keys, ranks = (past.first * count + past.second)[order], np.arange(1, len(order) + 1)
    known, last = np.unique(keys[::-1], return_index=True)
    wanted = first[:, None] * count + asked
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[at] == wanted, ranks[::-1][last][at], 0)


def _measured(values: NDArray[Any]) -> dict[str, float]:
    """The AUC against one random pair each, and the share of events that are among the first `HITS`; ties share."""
    true, others = values[:, :1], values[:, 1:]
    rank = 1 + (others > true).sum(axis=1) + (others == true).sum(axis=1) / 2
    better = (true > others).mean() + (true == others).mean() / 2
    return {"auc": float(better), "hits": float((rank <= HITS).mean())}
