"""How well a model that knows the past tells who meets whom later: beside remembering pairs, and beside popularity.

Events are rows with times that refer to two others: the orders of customers and products, or the rows of an edge table.
Each later event is ranked among random pairs of its first end. Often most later pairs have met before: what only
remembers them is always shown beside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.links import Links, find_links
from infomax.arrays.times import format_time
from infomax.errors import InputError, format_count
from infomax.estimator import DGI
from infomax.graphs.graph import Graph
from infomax.io.columns import EVENT
from infomax.reports.edges import FEWEST_ENDS

MOST_EVENTS = 20_000
"""Later events that are scored at most."""
RANDOM_PAIRS = 49
"""Random pairs that each of them is ranked among."""
HITS = 10
"""The rank up to which an event is a hit."""
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Events:
    """Events that join a row of one type with one of another, or of the same.

    Attributes:
        links: which rows they join.
        times: ``[M]``, when.
        is_past: ``[M]``, those that training knows.
    """

    links: Links
    times: NDArray[np.int64]
    is_past: NDArray[np.bool_]

    def known(self, rows: Rows, of_past: Rows) -> NDArray[np.bool_]:
        """Which of some rows an event of the past has."""
        return np.isin(rows, np.unique(of_past[self.is_past]))

    @property
    def late_with_known_ends(self) -> int:
        """The later events both of whose ends have an event in the past."""
        links, late = self.links, ~self.is_past
        first_known = self.known(links.first[late], links.first)
        second_known = self.known(links.second[late], links.second)
        return int((first_known & second_known).sum())


@dataclass(frozen=True, eq=False)
class FutureScores:
    """The scores of `score_future`: what was scored, in words; the scores by name; other pairs that could be."""

    title: str
    scores: dict[str, dict[str, float]]
    notes: list[str]


def score_future(
    model: DGI, share: float, seed: int = 0, *, pair: str | None = None
) -> FutureScores:
    """Train a model with the same settings on the past, and score the events of the rest, the latest ``share``.

    Args:
        model: a model, from which the graph and the settings are taken.
        share: the share of the events that are later.
        seed: draws the random pairs.
        pair: the other type, or ``TYPE:BY`` with the type of the events. None takes the events of which training knows
            both ends most often, to a type of `FEWEST_ENDS` nodes or more.
    """
    if not 0 < share < 1:
        raise InputError("future", "a share of the events between 0 and 1, such as 0.2", str(share))
    graph = model.graph_
    candidates = _timed_links(graph)
    if pair is not None:
        candidates, others = _asked_for(candidates, pair), candidates
    else:
        others = candidates
    every = [_divided(links, times, share) for links, times in candidates]
    events = max(every, key=lambda one: _preferred(one, graph))
    day = int(events.times[events.is_past].max())

    links = events.links
    late = np.flatnonzero(~events.is_past)
    draws = np.random.default_rng(seed)
    chosen = np.sort(draws.choice(late, min(MOST_EVENTS, len(late)), replace=False))
    second_count = graph.nodes[links.second_type].num_nodes
    random_rows = draws.integers(0, second_count, (len(chosen), RANDOM_PAIRS))
    first = links.first[chosen]
    candidates_of_first = np.concatenate([links.second[chosen, None], random_rows], axis=1)

    trained = trained_on_past(model, day)
    last_meetings = remembered(events, second_count, first, candidates_of_first)
    scores = {
        "vectors": _by_vectors(trained, links.second_type, first, candidates_of_first),
        "remembering the latest events": last_meetings,
        "popularity": _popularity(events, second_count, len(late))[candidates_of_first],
    }

    met_before = float((last_meetings[:, 0] > 0).mean())
    first_known = float(events.known(first, links.first).mean())
    second_known = float(events.known(links.second[chosen], links.second).mean())
    of_type = "" if links.by == EVENT else f" ({links.by})"
    title = (
        f"{format_count(len(chosen), EVENT)}{of_type} after {format_time(day)}, "
        f"{met_before:.0%} of pairs that had met before"
    )
    notes = [
        f"Scored: {links}. Of the first ends training knew {first_known:.0%}, of the second {second_known:.0%}."
    ]
    not_scored = [str(one) for one, _ in others if one is not links]
    if not_scored:
        notes.append(f"Not scored: {', '.join(not_scored)}; another: --pair TYPE:EVENTS")
    measured = {name: ranking_scores(values) for name, values in scores.items()}
    return FutureScores(title, measured, notes)


def trained_on_past(model: DGI, day: int) -> DGI:
    """A model with the same settings that has only seen the rows up to a time."""
    past = model.graph_.as_of(day)
    return DGI(preset=model.preset_, seed=model.seed_, device=model.device).fit(past)


def _timed_links(graph: Graph) -> list[tuple[Links, NDArray[np.int64]]]:
    """The links of the graph's type by rows with times, to types without; with the times of the rows."""
    found = _timed_links_of(graph, graph.node_type)
    if found:
        return found
    expected = f"rows with times that join {graph.node_type or 'nodes'} with others"
    remedy = (
        "Name the column of times, of an edge table as well: infomax train GRAPH --time COLUMN."
    )
    types = [node_type for node_type in graph.types if _timed_links_of(graph, node_type)]
    if types:
        remedy = f"Of these types there are some: --type {' or --type '.join(types)}."
    raise InputError("future", expected, "none", remedy)


def _timed_links_of(graph: Graph, node_type: str) -> list[tuple[Links, NDArray[np.int64]]]:
    if graph.nodes[node_type].times is not None:
        return []
    found = []
    for links in find_links(graph.relations, node_type):
        if links.rows is None or graph.nodes[links.second_type].times is not None:
            continue
        times = graph.nodes[links.by].times
        if times is not None:
            found.append((links, np.asarray(times[:])[links.rows]))
    return found


def _asked_for(
    candidates: list[tuple[Links, NDArray[np.int64]]], pair: str
) -> list[tuple[Links, NDArray[np.int64]]]:
    """The links of a pair of types, as ``TYPE`` or ``TYPE:BY``."""
    node_type, _, by = pair.casefold().partition(":")
    fitting = [
        (links, times)
        for links, times in candidates
        if links.second_type.casefold() == node_type and by in ("", links.by.casefold())
    ]
    if not fitting:
        choices = dict.fromkeys(f"{links.second_type}:{links.by}" for links, _ in candidates)
        raise InputError("--pair", f"one of {', '.join(choices)}", pair)
    return fitting


def _divided(links: Links, times: NDArray[np.int64], share: float) -> Events:
    """The events of the past, and of the rest, the latest share; events of one time stay together."""
    ordered = np.sort(times)
    if ordered[0] == ordered[-1]:
        raise InputError(
            "future",
            f"events later than {format_time(int(ordered[0]))}",
            "none: they all have one time",
        )
    last_of_past = max(0, int((1 - share) * len(ordered)) - 1)
    day = ordered[last_of_past]
    if day == ordered[-1]:
        at_last_time = int((times == day).sum())
        needed = at_last_time / len(times)
        expected = f"a share of at least {needed:.3g}, as {format_count(at_last_time, EVENT)} of {len(times):,}"
        raise InputError("future", f"{expected} have the latest time", f"{share:g}")
    return Events(links, times, times <= day)


def _preferred(events: Events, graph: Graph) -> tuple[bool, int]:
    second_count = graph.nodes[events.links.second_type].num_nodes
    return second_count >= FEWEST_ENDS, events.late_with_known_ends


def _popularity(events: Events, second_count: int, most: int) -> NDArray[np.int64]:
    """The events ``[N]`` of each second row, among the latest ``most`` of the past."""
    past = np.flatnonzero(events.is_past)
    latest = past[np.argsort(events.times[past], kind="stable")[-most:]]
    return np.bincount(events.links.second[latest], minlength=second_count)


def _by_vectors(model: DGI, second_type: str, first: Rows, second: Rows) -> NDArray[Any]:
    """Scores ``[P, k]``: cosines of vectors within a type; between two, products of singular vectors."""
    node_type = model.graph_.node_type
    if second_type == node_type:
        vectors = model.transform(model.graph_).vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        own = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        other = own
    else:
        own = model.singular_vectors(node_type).vectors
        other = model.singular_vectors(second_type).vectors

    scores = np.empty(second.shape, np.float32)
    for column in range(second.shape[1]):  # the vectors of all pairs at a time would take gigabytes
        scores[:, column] = np.einsum("pd,pd->p", own[first], other[second[:, column]])
    return scores


def remembered(events: Events, second_count: int, first: Rows, second: Rows) -> NDArray[np.int64]:
    """When a pair ``[P, k]`` last met in the past, by the rank of that event from 1 on; 0 for never."""
    past = np.flatnonzero(events.is_past)
    ordered = past[np.argsort(events.times[past], kind="stable")]
    keys = events.links.first[ordered] * second_count + events.links.second[ordered]
    ranks = np.arange(1, len(ordered) + 1)

    # Of the reversed events, np.unique finds the first of each pair: its last meeting.
    known_keys, last_places = np.unique(keys[::-1], return_index=True)
    last_ranks = ranks[::-1][last_places]
    wanted = first[:, None] * second_count + second
    places = np.minimum(np.searchsorted(known_keys, wanted), len(known_keys) - 1)
    return np.where(known_keys[places] == wanted, last_ranks[places], 0)


def ranking_scores(values: NDArray[Any]) -> dict[str, float]:
    """Scores of events ``[P, k]``, the true pair first: AUC against one random pair, and the share of hits.

    Pairs of equal value share their ranks, so what gives all pairs one value has an AUC of a half.
    """
    true, others = values[:, :1], values[:, 1:]
    higher = (others > true).sum(axis=1)
    equal = (others == true).sum(axis=1)
    ranks = 1 + higher + equal / 2
    auc = (true > others).mean() + (true == others).mean() / 2
    return {"auc": float(auc), "hits": float((ranks <= HITS).mean())}
