"""Later events: scored by a model of the past, beside remembering and popularity."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from infomax import DGI, Graph
from infomax.arrays.links import Links
from infomax.arrays.times import DAY_IN_MICROSECONDS
from infomax.errors import InputError
from infomax.reports.future import Events, ranking_scores, remembered, score_future


def days(numbers: np.ndarray) -> pa.Array:
    return pa.array((np.asarray(numbers) * DAY_IN_MICROSECONDS).astype("datetime64[us]"))


def calls(count: int = 1200, random_from: int | None = None) -> Graph:
    """Calls within two groups of thirty, one a day, each caller mostly to the same few.

    From some day on, calls are random.
    """
    draws = np.random.default_rng(0)
    first = draws.integers(0, 60, count)
    second = (first // 30) * 30 + (first + draws.integers(1, 9, count)) % 30
    if random_from is not None:
        second[random_from:] = (
            first[random_from:] + draws.integers(1, 60, count)[random_from:]
        ) % 60
    return Graph.from_frames(
        pa.table({"source": first, "target": second, "when": days(np.arange(count))}), time="when"
    )


def rentals() -> Graph:
    """Rentals of customers, of films and by two clerks; the later ones mostly of new customers."""
    draws = np.random.default_rng(0)
    count = 600
    customer = np.where(
        np.arange(count) < 450, draws.integers(0, 30, count), draws.integers(20, 60, count)
    )
    return Graph.from_frames(
        nodes={
            "customer": pa.table({"customer_id": range(60), "age": draws.integers(20, 70, 60)}),
            "film": pa.table({"film_id": range(40), "length": draws.integers(60, 200, 40)}),
            "clerk": pa.table({"clerk_id": range(2), "wage": [3, 5]}),
            "rental": pa.table(
                {
                    "rental_id": range(count),
                    "customer_id": customer,
                    "film_id": draws.integers(0, 40, count),
                    "clerk_id": draws.integers(0, 2, count),
                    "day": days(np.arange(count)),
                }
            ),
        },
        time="rental.day",
    )


def test_later_calls_are_told_by_vectors_of_the_past_and_by_memory() -> None:
    graph = calls()
    counts = {name: nodes.num_nodes for name, nodes in graph.nodes.items()}
    assert counts == {"event": 1200, "node": 60}
    scored = score_future(DGI(16, epochs=20).fit(graph.target("node")), 0.25)
    assert scored.title.startswith("300 events after 1972-06-18")
    assert scored.scores["vectors"]["auc"] > 0.7
    assert scored.scores["remembering the latest events"]["auc"] > 0.85
    assert 0.4 < scored.scores["popularity"]["auc"] < 0.7
    assert all(0 <= score["hits"] <= 1 for score in scored.scores.values())


def test_training_has_not_seen_the_future() -> None:
    """Later calls that are drawn at random cannot be told, but by who has trained on them."""
    model = DGI(16, epochs=20).fit(calls(300, random_from=150).target("node"))
    assert 0.4 < score_future(model, 0.5).scores["vectors"]["auc"] < 0.6


def test_the_pair_that_is_scored_is_said_and_can_be_chosen() -> None:
    """There are only two clerks, so customers are ranked with them only where that is asked for."""
    model = DGI(8, epochs=1).fit(rentals().target("customer"))
    scored = score_future(model, 0.25)
    assert scored.notes[0].startswith(
        "Scored: customer - film by rental. Of the first ends training knew "
    )
    known_share = int(scored.notes[0].split("knew ")[1].split("%")[0])
    assert 15 < known_share < 45
    assert "customer - clerk by rental; another: --pair TYPE:EVENTS" in scored.notes[1]
    scored_clerks = score_future(model, 0.25, pair="clerk")
    assert "customer - clerk by rental" in scored_clerks.notes[0]
    with pytest.raises(InputError, match=r"--pair: expected one of .*film:rental.*found shop"):
        score_future(model, 0.25, pair="shop")


def test_of_a_pair_the_last_meeting_is_remembered() -> None:
    first, second = np.array([0, 0, 0, 1]), np.array([1, 2, 1, 1])
    times = np.array([1, 5, 9, 2])
    events = Events(Links("a", "b", "event", first, second), times, np.ones(4, bool))
    last_meetings = remembered(events, 3, np.array([0]), np.array([[0, 1, 2]]))
    assert last_meetings.tolist() == [[0, 4, 3]]

    # What is not of the past is not remembered.
    events_before_9 = Events(events.links, times, times < 9)
    last_meetings = remembered(events_before_9, 3, np.array([0]), np.array([[0, 1, 2]]))
    assert last_meetings.tolist() == [[0, 1, 3]]


def test_pairs_of_equal_value_share_their_ranks() -> None:
    assert ranking_scores(np.zeros((4, 50))) == {"auc": 0.5, "hits": 0.0}
    some_better = np.zeros((1, 50))
    some_better[0, 1:10] = -1  # of forty others that are equal, half are before the true pair
    assert ranking_scores(some_better) == {"auc": (9 + 20) / 49, "hits": 0.0}
    assert ranking_scores(np.arange(50)[None, ::-1]) == {"auc": 1.0, "hits": 1.0}


def test_without_events_there_is_no_future() -> None:
    model = DGI(4, epochs=1).fit(Graph.from_arrays(np.array([[0, 1, 2], [1, 2, 3]])))
    with pytest.raises(InputError, match="rows with times that join nodes with others"):
        score_future(model, 0.2)
    with pytest.raises(InputError, match="a share of the events between 0 and 1"):
        score_future(model, 2)
    with pytest.raises(InputError, match=r"Of these types there are some: --type node\."):
        score_future(DGI(4, epochs=1).fit(calls(60).target("event")), 0.2)


def test_a_share_that_holds_no_event_is_told_apart_from_events_of_one_time() -> None:
    """The last five of sixty calls have one time."""
    draws = np.random.default_rng(0)
    calls_of_day = pa.table(
        {
            "source": draws.integers(0, 20, 60),
            "target": draws.integers(20, 40, 60),
            "when": days(np.minimum(np.arange(60), 55)),
        }
    )
    graph = Graph.from_frames(calls_of_day, time="when")
    model = DGI(4, epochs=1).fit(graph.target("node"))
    message = "a share of at least 0.0833, as 5 events of 60 have the latest time, found 0.0025"
    with pytest.raises(InputError, match=message):
        score_future(model, 0.0025)
