"""A graph folder of several types made on disk is the graph that the reader of whole tables makes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_faults import told
from test_prepare import tabled
from test_typed import MIXED, PAYMENTS, relations, write

from infomax import Graph, read_graph
from infomax.arrays.sparsity import dense
from infomax.errors import InputError
from infomax.io.graph_folder import check_folder
from infomax.io.prepare import prepare
from infomax.io.schema.schema import TypeColumns
from infomax.io.union import union, union_rows

pytest.importorskip("duckdb", reason="prepare sorts with it")

IDS: dict[str, list[Any]] = {"a": [5, -3, 0, 12, 7], "b": ["x", "007", "é", "5"], "c": [1, 2, 3]}
WORDS = ["red fox", "blue", "", "red", "a green fox"]
DAYS = ["2024-01-05", "2023-07-01", "2024-02-29", "", "2020-12-31"]


def same(stored: Graph, graph: Graph) -> None:
    """Assert that both are one graph, of a folder and in memory."""
    assert stored.types == graph.types
    assert relations(stored) == relations(graph)
    for one, two in zip(stored.relations, graph.relations, strict=True):
        assert (one.directed, one.edges.num_edges) == (two.directed, two.edges.num_edges)
        for side in ("receivers", "senders"):
            assert (
                getattr(one.edges, side).indices.tolist()
                == getattr(two.edges, side).indices.tolist()
            )
            assert (getattr(one.edges, side).data is None) == (
                getattr(two.edges, side).data is None
            )
    for first, second in zip(stored.by_type().values(), graph.by_type().values(), strict=True):
        assert first.ids[:].tolist() == second.ids.tolist()
        assert first.ids.dtype == second.ids.dtype
        assert first.feature_names == second.feature_names
        np.testing.assert_allclose(dense(first.features), dense(second.features), atol=1e-5)
        assert first.encoding == second.encoding
        assert dict(first.dropped) == dict(second.dropped)
        assert first.schema == second.schema
        names = [
            None if one.node_names is None else one.node_names[:].tolist()
            for one in (first, second)
        ]
        assert names[0] == names[1]
        for what in ("labels", "splits"):
            columns = [
                {name: cells.tolist() for name, cells in getattr(one, what).items()}
                for one in (first, second)
            ]
            assert columns[0] == columns[1]


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_folder_of_tables_makes_the_same_graph_on_disk(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, labels = Path(name), []
        for part in ("nodes", "edges"):
            (folder / "t" / part).mkdir(parents=True)
        suffix, directed = data.draw(st.sampled_from(["csv", "parquet"])), data.draw(st.booleans())
        for kind in data.draw(st.sets(st.sampled_from("abc"))):
            n = len(IDS[kind])
            table: dict[str, list[Any]] = {"id": IDS[kind]}
            if data.draw(st.booleans()):
                table |= {"x": [0.5, -1, 3, 0, 2][:n], "split:seen": [1, 0, 1, 1, 0][:n]}
            if data.draw(st.booleans()):
                table |= {"text": WORDS[:n], "day": DAYS[:n], "field": ["p", "", "q", "p", "p"][:n]}
                labels = ["field"]
            tabled(folder / "t" / "nodes" / f"{kind}.{suffix}", table)
        for ends in data.draw(
            st.sets(st.sampled_from(["a.r.b", "a.r.a", "b.s.a", "a.c", "a.s.a"]), min_size=1)
        ):
            pairs = st.tuples(*(st.sampled_from(IDS[kind]) for kind in (ends[0], ends[-1])))
            edges = data.draw(st.lists(pairs, min_size=1, max_size=15))
            columns = dict(
                zip(("source", "target"), map(list, zip(*edges, strict=True)), strict=True)
            )
            if data.draw(st.booleans()):
                columns["weight"] = data.draw(
                    st.lists(
                        st.sampled_from([0, 0.5, 1, 2.25]), min_size=len(edges), max_size=len(edges)
                    )
                )
            tabled(folder / "t" / "edges" / f"{ends}.{suffix}", columns)
        chosen: dict[str, Any] = {"labels": labels, "directed": directed}
        if data.draw(st.booleans()):
            chosen |= {"features": "degrees"}
        try:
            graph = read_graph(folder / "t", **chosen)
        except InputError as error:  # a file without any number, say: both refuse it
            told(
                [error.expected],
                prepare,
                folder / "t",
                out=folder / "g.graph",
                memory=10**8,
                **chosen,
            )
            return
        prepare(folder / "t", out=folder / "g.graph", memory=10**8, **chosen)
        same(Graph.open(folder / "g.graph"), graph)
        check_folder(folder / "g.graph")
        assert sorted(path.name for path in folder.iterdir()) == ["g.graph", "t"]


HOW = ["u.buys.i", "knows", "knows", "it's new"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    "chosen", [{}, {"types": "u,i"}, {"node_type": "kind"}, {"edges_as": "deal"}]
)
def test_columns_that_tell_types_apart_do_so_on_disk(
    tmp_path: Path, suffix: str, chosen: dict[str, Any]
) -> None:
    ends = {"source": [0, 2, 0, 1], "target": [7, 0, 2, 2], "how": HOW}
    if chosen.get("node_type"):  # the types of "knows" are told by the node table alone
        ends |= {"target": [7, 0, 7, 2]}
        mixed = {name: column[:4] for name, column in MIXED.items()} | {
            "x": [1, 2, 3, None if suffix == "parquet" else ""]
        }
        nodes = tabled(tmp_path / f"nodes.{suffix}", mixed)
        chosen = chosen | {"labels": "sort"}
    edges = tabled(tmp_path / f"edges.{suffix}", ends)
    chosen = chosen | {"edge_type": "how", **({"nodes": nodes} if "node_type" in chosen else {})}
    graph = read_graph(edges, **chosen)
    prepare(edges, out=tmp_path / "g.graph", **chosen)
    same(Graph.open(tmp_path / "g.graph"), graph)
    assert {one.name.split(" ")[0] for one in graph.relations} >= {"buys", "knows", "it's"}


@pytest.mark.parametrize("own", [False, True])
def test_rows_that_are_nodes_are_so_on_disk(tmp_path: Path, own: bool) -> None:
    edges = tabled(tmp_path / "e.csv", PAYMENTS | ({"id": ["p", "q", "5"]} if own else {}))
    chosen: dict[str, Any] = {"types": "payer,payee", "labels": "sort", "edges_as": "payment"}
    prepare(edges, out=tmp_path / "g.graph", **chosen)
    stored = Graph.open(tmp_path / "g.graph")
    same(stored, read_graph(edges, **chosen))
    assert stored.schema.type_columns == TypeColumns(("payer", "payee"), edges_as="payment")


def test_a_later_folder_of_several_types_is_encoded_like_an_earlier_graph(tmp_path: Path) -> None:
    known = read_graph(
        write(tmp_path / "known", nodes__author={"id": ["5", "ann", "bob"], "since": DAYS[:3]})
    )
    later = write(tmp_path / "later", nodes__author={"id": ["5", "ann", "bob"], "since": DAYS[2:]})
    prepare(later, out=tmp_path / "later.graph", like=known)
    stored = Graph.open(tmp_path / "later.graph")
    same(stored, read_graph(later, like=known))
    assert stored.target("author").encoding == known.target("author").encoding
    payments = tabled(tmp_path / "e.csv", PAYMENTS)
    known = read_graph(payments, types="payer,payee", edges_as="payment")
    prepare(payments, out=tmp_path / "again.graph", like=known)
    same(Graph.open(tmp_path / "again.graph"), known)


@pytest.mark.parametrize(
    "stage", ["finding relations", "finding ids", "joining targets", "sorting edges", "hashing"]
)
def test_stopped_at_any_stage_it_goes_on_to_the_same_files(tmp_path: Path, stage: str) -> None:
    folder, calls = (
        write(tmp_path / "tables", nodes__author={"id": ["5", "ann", "bob"], "x": [1, 2, 3]}),
        0,
    )

    def stop(done: int, title: str = "", total: int | None = None) -> None:
        nonlocal calls
        calls += title == stage
        if title == stage and calls == (
            1 if stage in ("finding relations", "finding ids", "hashing") else 2
        ):
            raise KeyboardInterrupt

    if stage == "finding ids":
        (folder / "nodes" / "author.csv").unlink()
    with pytest.raises(KeyboardInterrupt):
        prepare(folder, out=tmp_path / "g.graph", labels="field", progress=stop)
    for name in ("g.graph", "whole.graph"):
        prepare(folder, out=tmp_path / name, labels="field")
    first, second = (
        json.loads((tmp_path / name / "graph.json").read_text())
        for name in ("g.graph", "whole.graph")
    )
    assert first == second


def test_the_union_of_relations_does_not_depend_on_blocks(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path), labels="field", directed=True)
    sizes = {kind: one.num_nodes for kind, one in graph.by_type().items()}
    whole = union(graph.relations, sizes).toarray()
    blocks = [block.toarray() for block in union_rows(graph.relations, sizes, entries_per_block=2)]
    assert len(blocks) > len(sizes)
    assert np.concatenate(blocks).tolist() == whole.tolist()
    assert whole.tolist() == whole.T.tolist()


@pytest.mark.parametrize("nodes", [False, True])
def test_a_table_without_edges_is_refused_or_joins_nothing(tmp_path: Path, nodes: bool) -> None:
    edges = tabled(tmp_path / "e.csv", {"source": [], "target": [], "how": []})
    listed = {"nodes": tabled(tmp_path / "n.csv", {"id": [1, 2], "x": [0, 1]})} if nodes else {}
    if not nodes:
        told(["e.csv", "at least one edge"], read_graph, edges, edge_type="how")
        told(
            ["e.csv", "at least one edge"],
            prepare,
            edges,
            out=tmp_path / "g.graph",
            edge_type="how",
        )
        return
    prepare(edges, out=tmp_path / "g.graph", edge_type="how", **listed)
    same(Graph.open(tmp_path / "g.graph"), read_graph(edges, edge_type="how", **listed))
