"""Rows with times: how they are read and kept, and the graph as of a day."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from infomax import Graph, read_graph
from infomax.arrays.sparsity import dense
from infomax.arrays.times import (
    DAY_IN_MICROSECONDS,
    UNKNOWN_TIME,
    format_time,
    parse_half_lives,
    parse_time,
)
from infomax.errors import InputError
from infomax.io.prepare import prepare
from infomax.training.resuming import graph_fingerprint

DAYS = ["2009-03-01", "2009-06-01 12:30", "", "2010-05-01"]
MOMENTS = [parse_time(day) if day else UNKNOWN_TIME for day in DAYS]


def _orders() -> Graph:
    nodes = {
        "customer": pa.table({"id": [1, 2], "age": [30.0, 40.0]}),
        "order": pa.table({"id": [1, 2, 3, 4], "price": [1.0, 2.0, 3.0, 4.0], "date": DAYS}),
    }
    edges = {
        ("order", "of", "customer"): pa.table({"source": [1, 2, 3, 4], "target": [1, 1, 2, 2]})
    }
    return Graph.from_frames(edges, nodes, time="order.date")


def test_a_column_of_times_is_no_feature_and_survives_each_format(tmp_path: Path) -> None:
    graph = _orders()
    assert graph.nodes["customer"].times is None
    assert graph.nodes["order"].feature_names == ("price",)
    for name in ("g.npz", "g.graph", "tables", "g.parquet"):
        graph.save(tmp_path / name)
        again = read_graph(tmp_path / name)
        assert again.nodes["order"].times[:].tolist() == MOMENTS, name
        assert again.loaded().nodes["order"].feature_names == ("price",), name
    edges, nodes = graph.to_frames("arrow")
    assert Graph.from_frames(edges, nodes).nodes["order"].times.tolist() == MOMENTS


def test_prepare_keeps_the_times_that_memory_has(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n3,4\n")
    (tmp_path / "nodes.csv").write_text(
        "id,x,since\n" + "".join(f"{i + 1},{i},{day}\n" for i, day in enumerate(DAYS))
    )
    graph = read_graph(tmp_path / "edges.csv", tmp_path / "nodes.csv", time="since")
    prepare(
        tmp_path / "edges.csv", tmp_path / "nodes.csv", out=tmp_path / "big.graph", time="since"
    )
    mapped = read_graph(tmp_path / "big.graph")
    assert graph.nodes_in_view.times.tolist() == mapped.nodes_in_view.times[:].tolist() == MOMENTS
    assert (
        mapped.as_of("2009-12-31").ids.tolist()
        == graph.as_of("2009-12-31").ids.tolist()
        == [1, 2, 3]
    )


def test_as_of_drops_later_rows_with_their_edges_and_keeps_those_of_the_very_time() -> None:
    graph = _orders()
    cut = graph.as_of("2009-06-01T12:30")
    assert cut.nodes["order"].ids.tolist() == [1, 2, 3]  # the third has no time: it is always there
    assert cut.nodes["customer"].ids.tolist() == [1, 2]
    assert cut.relations[0].edges.matrix().toarray().tolist() == [[1, 0], [1, 0], [0, 1]]
    assert graph.as_of("2009-06-01").nodes["order"].ids.tolist() == [1, 3]
    assert graph.as_of("2030-01-01").num_edges == 4


@pytest.mark.parametrize("features", ["degrees", "positions"])
def test_what_is_made_of_edges_is_made_of_those_up_to_the_day(features: str) -> None:
    """Else degrees and positions of an earlier graph would hold edges to rows that came later."""
    draws = np.random.default_rng(0)
    ends, days = draws.integers(0, 30, (2, 90)), np.arange(30)

    def graph(count: int) -> Graph:
        kept = (ends < count).all(axis=0)
        edges = pa.table({"source": ends[0, kept], "target": ends[1, kept]})
        times = pa.array((days[:count] * DAY_IN_MICROSECONDS).astype("datetime64[us]"))
        nodes = pa.table({"id": days[:count], "day": times})
        return Graph.from_frames(edges, nodes, time="day", features=features)

    cut = graph(30).as_of(int(19 * DAY_IN_MICROSECONDS))
    assert cut.feature_names == graph(20).feature_names
    np.testing.assert_allclose(dense(cut.features), dense(graph(20).features), atol=1e-6)


def test_columns_are_learnt_from_rows_up_to_the_day_and_later_cells_do_not_stop_it() -> None:
    days, codes = ["2009-01-01", "2009-02-01", "2009-03-01", "2010-05-01"], ["1", "2", "2", "E"]
    nodes = {
        "order": pa.table(
            {"id": [1, 2, 3, 4], "price": [1.0, 2.0, 3.0, 1e6], "code": codes, "date": days}
        ),
        "customer": pa.table({"id": [1, 2], "age": [30.0, 40.0]}),
    }
    edges = {
        ("order", "of", "customer"): pa.table({"source": [1, 2, 3, 4], "target": [1, 1, 2, 2]})
    }
    options = {"time": "order.date", "columns": {"order.code": "category"}}
    early = Graph.from_frames(edges, nodes, as_of="2009-12-31", **options).nodes["order"]
    rows = {kind: one.slice(0, 3) for kind, one in nodes.items()}
    alone = Graph.from_frames(
        {ends: one.slice(0, 3) for ends, one in edges.items()}, rows, **options
    ).nodes["order"]
    assert early.feature_names == alone.feature_names
    assert np.array_equal(early.table.loaded()[:], alone.table.loaded()[:])


def test_rows_of_later_edges_bring_no_nodes_and_features_of_a_file_stay_with_their_rows(
    tmp_path: Path,
) -> None:
    calls = "source,target,when,cost\na,b,2020-01-01,1.5\nz,b,2021-01-01,9e9\nb,c,2020-02-01,2.5\n"
    (tmp_path / "calls.csv").write_text(calls)
    prepare(tmp_path / "calls.csv", out=tmp_path / "calls.graph", time="when", as_of="2020-06-01")
    for graph in (read_graph(tmp_path / "calls.csv", time="when", as_of="2020-06-01"),
                  read_graph(tmp_path / "calls.graph")):  # fmt: skip
        assert graph.nodes["node"].ids[:].tolist() == ["a", "b", "c"]
        assert graph.nodes["event"].num_nodes == 2
    shop = tmp_path / "shop"
    for part in ("nodes", "edges", "features"):
        (shop / part).mkdir(parents=True)
    (shop / "nodes" / "order.csv").write_text("id,date\n1,2020-01-01\n2,2021-01-01\n3,2020-01-02\n")
    (shop / "edges" / "order.of.customer.csv").write_text("source,target\n1,7\n2,8\n3,8\n")
    np.save(shop / "features" / "order.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    prepare(shop, out=tmp_path / "shop.graph", time="date", as_of="2020-06-01")
    for graph in (
        read_graph(shop, time="date", as_of="2020-06-01"),
        read_graph(tmp_path / "shop.graph"),
    ):
        assert graph.nodes["order"].ids[:].tolist() == [1, 3]
        assert graph.nodes["order"].table.loaded()[:].tolist() == [[0, 1], [4, 5]]
        assert graph.relations[0].edges.nnz == 2
    with pytest.raises(InputError, match="a graph whose rows have times"):
        prepare(shop, out=tmp_path / "x.graph", as_of="2020-06-01")
    assert not (tmp_path / "x.graph").exists()


def test_a_fingerprint_has_times_only_where_there_are_some() -> None:
    graph = Graph.from_arrays(np.array([[0, 1], [1, 2]]), np.eye(3))
    timed = graph.replace(times=np.array([1, 2, 3]))
    assert graph_fingerprint(timed) == graph_fingerprint(graph) | {
        "list of times": graph_fingerprint(timed)["list of times"]
    }


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("1970-01-02", 86_400_000_000),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01 01:00+01:00", 0),
        (7, 7),
    ],
)
def test_times_are_parsed_once_and_in_utc(word: object, expected: int) -> None:
    assert parse_time(word) == expected


def test_what_is_no_time_is_named_with_its_place(tmp_path: Path) -> None:
    for word in ("12:30", "soon", "2009-02-30", "1262304000"):
        (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
        (tmp_path / "nodes.csv").write_text(f"id,x,since\n1,0,2009-01-01\n2,1,{word}\n")
        with pytest.raises(
            InputError, match=f'nodes.csv, line 3, column "since": expected a day or a time.*{word}'
        ):
            read_graph(tmp_path / "edges.csv", tmp_path / "nodes.csv", time="since")
        if word != "1262304000":
            with pytest.raises(InputError, match="as_of: expected a day or a time"):
                _orders().as_of(word)
    with pytest.raises(
        InputError, match="rows of order up to 2000-01-01, found none; the first is of 2009-03-01"
    ):
        Graph.from_frames({("order", "of", "customer"): pa.table({"source": [1], "target": [1]})},
                          {"order": pa.table({"id": [1], "x": [1.0], "date": ["2009-03-01"]})},
                          time="date").as_of("2000-01-01")  # fmt: skip
    with pytest.raises(InputError, match="a graph whose rows have times"):
        Graph.from_arrays(np.array([[0], [1]])).as_of("2000-01-01")


def test_half_lives_have_units() -> None:
    found = parse_half_lives("60d,12h,2w,1y,forever")
    assert found == {"60d": 60, "12h": 0.5, "2w": 14, "1y": 365.25, "forever": np.inf}
    for word in ("60", "d", "0d", "-1d", ""):
        with pytest.raises(InputError, match="half-lives such as 60d"):
            parse_half_lives(word)
    assert format_time(parse_time("2010-01-01")) == "2010-01-01"
