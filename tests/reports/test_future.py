"""Later events: scored by a model of the past, beside remembering and popularity."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from infomax import DGI, Graph
from infomax.arrays.times import DAY
from infomax.errors import InputError
from infomax.reports.future import score_future


def _calls(count: int = 1200) -> Graph:
    """Calls within two groups of thirty, each caller mostly to the same few, one a day."""
    draws = np.random.default_rng(0)
    first = draws.integers(0, 60, count)
    second = (first // 30) * 30 + (first + draws.integers(1, 9, count)) % 30
    days = (np.arange(count) * DAY).astype("datetime64[us]")
    return Graph.from_frames(
        pa.table({"source": first, "target": second, "when": pa.array(days)}), time="when"
    )


def test_later_calls_are_told_by_vectors_of_the_past_and_by_memory() -> None:
    graph = _calls()
    assert {kind: one.num_nodes for kind, one in graph.nodes.items()} == {"event": 1200, "node": 60}
    told, scores = score_future(DGI(16, epochs=20).fit(graph.target("node")), 0.25)
    assert told.startswith("300 events after 1972-06-18")
    assert scores["vectors"]["auc"] > 0.7
    assert scores["remembering the latest events"]["auc"] > 0.85
    assert 0.4 < scores["popularity"]["auc"] < 0.7
    assert all(0 <= one["hits"] <= 1 for one in scores.values())


def test_without_events_there_is_no_future() -> None:
    model = DGI(4, epochs=1).fit(Graph.from_arrays(np.array([[0, 1, 2], [1, 2, 3]])))
    with pytest.raises(InputError, match="rows with times that join nodes with others"):
        score_future(model, 0.2)
    with pytest.raises(InputError, match="a share of the events between 0 and 1"):
        score_future(model, 2)
    with pytest.raises(InputError, match=r"Of these types there are some: --type node\."):
        score_future(DGI(4, epochs=1).fit(_calls(60).target("event")), 0.2)
