"""How well a model that knows the past tells who meets whom later.

Events are rows with times that refer to two other rows: the orders of customers and products, or
the rows of an edge table. Each later event is ranked among random pairs of its first end. Often
most later pairs have met before, so a score that only remembers them, and popularity, stand beside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.links import Links, find_links
from infomax.arrays.times import format_time
from infomax.errors import InputError, format_count
from infomax.estimator import DGI
from infomax.graphs.graph import Graph
from infomax.io.schema.schema import EVENT
from infomax.reports.edges import FEWEST_ENDS, is_pair, no_such_pair

MOST_EVENTS = 20_000
"""Later events that are scored at most."""
RANDOM_PAIRS = 49
"""Random pairs among which each later event is ranked."""
HITS = 10
"""The rank up to which an event is a hit."""
Rows: TypeAlias = NDArray[np.int64]


class TimedLinks(NamedTuple):
    """Links by rows, and the times ``[M]`` of these rows."""

    links: Links
    times: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Events:
    """Events that join a row of one type with one of another, or of the same.

    Attributes:
        links: which rows they join.
        times: ``[M]``, when.
        is_past: ``[M]``, the events that training knows.
    """

    links: Links
    times: NDArray[np.int64]
    is_past: NDArray[np.bool_]

    def are_known(self, rows: Rows, ends: Rows) -> NDArray[np.bool_]:
        """Which rows have an event in the past.

        Args:
            rows: ``[n]``, rows of nodes.
            ends: ``[M]``, the ends of all events on the side of these nodes.
        """
        return np.isin(rows, np.unique(ends[self.is_past]))

    @property
    def late_with_known_ends(self) -> int:
        """How many later events have two ends with an event in the past."""
        is_late = ~self.is_past
        first_known = self.are_known(self.links.first[is_late], self.links.first)
        second_known = self.are_known(self.links.second[is_late], self.links.second)
        return int((first_known & second_known).sum())


@dataclass(frozen=True, eq=False)
class FutureScores:
    """The scores of `score_future`.

    Attributes:
        title: what was scored, in words.
        scores: "auc" and "hits" by what scores pairs.
        notes: sentences about the events, and about other pairs that could be scored.
    """

    title: str
    scores: dict[str, dict[str, float]]
    notes: list[str]


def score_future(
    model: DGI,
    share: float,
    seed: int = 0,
    *,
    pair: str | None = None,
    most_events: int = MOST_EVENTS,
) -> FutureScores:
    """Train a model with the same settings on the past, and score the later events.

    Args:
        model: a model, from which the graph and the settings are taken.
        share: the share of the events that are later.
        seed: draws the random pairs.
        pair: the other type, or ``TYPE:BY`` with the type of the events. None takes the events of
            which training knows both ends most often, to a type of `FEWEST_ENDS` nodes or more.
        most_events: how many later events are scored at most.
    """
    if not 0 < share < 1:
        raise InputError("future", "a share of the events between 0 and 1, such as 0.2", str(share))

    graph = model.graph_
    all_candidates = _timed_links(graph)
    candidates = all_candidates
    if pair is not None:
        candidates = [candidate for candidate in candidates if is_pair(candidate.links, pair)]
        if not candidates:
            raise no_such_pair([candidate.links for candidate in all_candidates], pair)
    events = max(
        (_split_by_time(candidate, share) for candidate in candidates),
        key=lambda candidate: _preference(candidate, graph),
    )
    last_day = int(events.times[events.is_past].max())

    # Each event stands first among random pairs of its first end: [P, 1 + RANDOM_PAIRS].
    links = events.links
    late_rows = np.flatnonzero(~events.is_past)
    generator = np.random.default_rng(seed)
    scored_count = min(most_events, len(late_rows))
    scored_rows = np.sort(generator.choice(late_rows, scored_count, replace=False))
    second_count = graph.nodes[links.second_type].num_nodes
    random_rows = generator.integers(0, second_count, (len(scored_rows), RANDOM_PAIRS))
    first = links.first[scored_rows]
    second = np.concatenate([links.second[scored_rows, None], random_rows], axis=1)

    model_of_past = trained_on_past(model, last_day)
    last_meetings = remembered(events, second_count, first, second)
    popularity = _popularity(events, second_count, most_past_events=len(late_rows))
    scores = {
        "vectors": _scores_by_vectors(model_of_past, links.second_type, first, second),
        "remembering the latest events": last_meetings,
        "popularity": popularity[second],
    }

    met_before = float((last_meetings[:, 0] > 0).mean())
    of_type = "" if links.by == EVENT else f" ({links.by})"
    title = (
        f"{format_count(len(scored_rows), EVENT)}{of_type} after {format_time(last_day)}, "
        f"{met_before:.0%} of pairs that had met before"
    )
    first_known = float(events.are_known(first, links.first).mean())
    second_known = float(events.are_known(links.second[scored_rows], links.second).mean())
    notes = [
        f"Scored: {links}. Of the first ends training knew {first_known:.0%}, "
        f"of the second {second_known:.0%}."
    ]
    not_scored = [
        str(candidate.links) for candidate in all_candidates if candidate.links is not links
    ]
    if not_scored:
        notes.append(f"Not scored: {', '.join(not_scored)}; another: --pair TYPE:EVENTS")
    return FutureScores(
        title, {name: ranking_scores(values) for name, values in scores.items()}, notes
    )


def trained_on_past(model: DGI, last_day: int) -> DGI:
    """A model with the same settings that has only seen the rows up to a time."""
    past = model.graph_.as_of(last_day)
    return DGI(preset=model.preset_, seed=model.seed_, device=model.device).fit(past)


def _timed_links(graph: Graph) -> list[TimedLinks]:
    """The links of the graph's type by rows with times, to types without; refused where none."""
    timed_links = _timed_links_of(graph, graph.node_type)
    if timed_links:
        return timed_links

    expected = f"rows with times that join {graph.node_type or 'nodes'} with others"
    remedy = (
        "Name the column of times, of an edge table as well: infomax train GRAPH --time COLUMN."
    )
    types_with_events = [
        node_type for node_type in graph.types if _timed_links_of(graph, node_type)
    ]
    if types_with_events:
        remedy = f"Of these types there are some: --type {' or --type '.join(types_with_events)}."
    raise InputError("future", expected, "none", remedy)


def _timed_links_of(graph: Graph, node_type: str) -> list[TimedLinks]:
    """The links of a type by rows with times, where neither end has times of its own."""
    if graph.nodes[node_type].times is not None:
        return []
    timed_links = []
    for links in find_links(graph.relations, node_type):
        if links.rows is None or graph.nodes[links.second_type].times is not None:
            continue
        times = graph.nodes[links.by].times
        if times is not None:
            timed_links.append(TimedLinks(links, np.asarray(times[:])[links.rows]))
    return timed_links


def _split_by_time(timed_links: TimedLinks, share: float) -> Events:
    """Split events into the past and the latest share; events of one time stay together."""
    links, times = timed_links
    sorted_times = np.sort(times)
    first_time, last_time = sorted_times[0], sorted_times[-1]
    if first_time == last_time:
        expected = f"events later than {format_time(int(first_time))}"
        raise InputError("future", expected, "none: they all have one time")

    last_of_past = max(0, int((1 - share) * len(sorted_times)) - 1)
    last_day = sorted_times[last_of_past]
    if last_day == last_time:
        at_last_time = int((times == last_day).sum())
        needed_share = at_last_time / len(times)
        expected = (
            f"a share of at least {needed_share:.3g}, as {format_count(at_last_time, EVENT)} "
            f"of {len(times):,} have the latest time"
        )
        raise InputError("future", expected, f"{share:g}")
    return Events(links, times, times <= last_day)


def _preference(events: Events, graph: Graph) -> tuple[bool, int]:
    """What makes events preferred: enough second ends, then late events between known ends."""
    second_count = graph.nodes[events.links.second_type].num_nodes
    return second_count >= FEWEST_ENDS, events.late_with_known_ends


def _popularity(events: Events, second_count: int, most_past_events: int) -> NDArray[np.int64]:
    """The number of events ``[N]`` of each second row, among the latest ones of the past."""
    past_rows = np.flatnonzero(events.is_past)
    order = np.argsort(events.times[past_rows], kind="stable")
    latest_rows = past_rows[order[-most_past_events:]]
    return np.bincount(events.links.second[latest_rows], minlength=second_count)


def _scores_by_vectors(model: DGI, second_type: str, first: Rows, second: Rows) -> NDArray[Any]:
    """Scores ``[P, k]`` of pairs.

    Within a type they are cosines of vectors; between two types, whose vectors have nothing in
    common, products of singular vectors.
    """
    node_type = model.graph_.node_type
    if second_type == node_type:
        vectors = model.transform(model.graph_).vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        first_vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        second_vectors = first_vectors
    else:
        first_vectors = model.singular_vectors(node_type).vectors
        second_vectors = model.singular_vectors(second_type).vectors

    # One column at a time: the vectors of all pairs together would take gigabytes.
    scores = np.empty(second.shape, np.float32)
    for column in range(second.shape[1]):
        scores[:, column] = np.einsum(
            "pd,pd->p", first_vectors[first], second_vectors[second[:, column]]
        )
    return scores


def remembered(events: Events, second_count: int, first: Rows, second: Rows) -> NDArray[np.int64]:
    """When pairs ``[P, k]`` last met: the rank of that event of the past from 1 on; 0: never."""
    past_rows = np.flatnonzero(events.is_past)
    past_rows = past_rows[np.argsort(events.times[past_rows], kind="stable")]
    past_keys = events.links.first[past_rows] * second_count + events.links.second[past_rows]
    ranks = np.arange(1, len(past_rows) + 1)

    # Of the reversed events, np.unique finds the first of each pair: its last meeting.
    known_keys, reversed_positions = np.unique(past_keys[::-1], return_index=True)
    last_ranks = ranks[::-1][reversed_positions]

    requested_keys = first[:, None] * second_count + second
    positions = np.searchsorted(known_keys, requested_keys)
    positions = np.minimum(positions, len(known_keys) - 1)
    has_met = known_keys[positions] == requested_keys
    return np.where(has_met, last_ranks[positions], 0)


def ranking_scores(values: NDArray[Any], hits: int = HITS) -> dict[str, float]:
    """How often an event outranks a random pair of its own, and the fraction of hits.

    An event is a later one, and its random pairs have the same first end. Pairs of equal value take
    the mean of their ranks, so a score that gives all pairs one value has an AUC of a half.

    Args:
        values: ``[P, k]``, the score of each event and of its random pairs, the event first.
        hits: the rank up to which an event is a hit.
    """
    event_values, random_values = values[:, :1], values[:, 1:]
    higher_count = (random_values > event_values).sum(axis=1)
    equal_count = (random_values == event_values).sum(axis=1)
    ranks = 1 + higher_count + equal_count / 2
    auc = (event_values > random_values).mean() + (event_values == random_values).mean() / 2
    return {"auc": float(auc), "hits": float((ranks <= hits).mean())}
