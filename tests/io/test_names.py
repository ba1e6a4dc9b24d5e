"""Names of nodes: kept beside the ids by every door, and in no door a feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pytest
from test_faults import put, told

from infomax import DGI, Embeddings, Graph, read_graph

polars = pytest.importorskip("polars", reason="frames of polars")

NAMES = ["Newark, NJ", "", "é"]


def put_tables(folder: Path) -> str:
    """Three airports, two of them with names."""
    put(folder / "edges.csv", "source,target\n1,2\n2,3\n")
    put(folder / "nodes.csv", 'id,x,called\n1,0.5,"Newark, NJ"\n2,1,\n3,2,é\n')
    return str(folder)


def names_of(graph: Any) -> list[str]:
    assert graph.feature_names == ("x",)
    names: list[str] = graph.node_names[:].tolist()
    return names


def test_a_named_column_holds_names_and_is_no_feature(tmp_path: Path) -> None:
    graph = read_graph(put_tables(tmp_path), name="called")
    assert names_of(graph) == NAMES
    assert not graph.labels
    assert names_of(graph.part(np.array([True, False, True]))) == [NAMES[0], NAMES[2]]
    assert names_of(graph.hold_out_edges(0.5)) == NAMES
    told(
        ["nodes.csv", 'a column of names "calld"', '"called"'],
        read_graph,
        str(tmp_path),
        name="calld",
    )
    told(["name", "a node table"], read_graph, tmp_path / "edges.csv", name="called")


def test_frames_hold_names() -> None:
    edges = pd.DataFrame({"source": [1, 2], "target": [2, 3]})
    nodes = pd.DataFrame({"id": [1, 2, 3], "x": [0.5, 1, 2], "called": ["Newark, NJ", None, "é"]})
    for frame in (nodes, polars.from_pandas(nodes)):
        graph = Graph.from_frames(edges, frame, name="called")
        assert names_of(graph) == NAMES
    assert names_of(Graph.from_frames(*graph.to_frames())) == NAMES
    assert Graph.from_arrays([[0], [1]], np.eye(2), node_names=[1, None]).node_names.tolist() == [
        "1",
        "",
    ]


def test_networkx_names_and_ignored_attributes() -> None:
    graph = networkx.path_graph(3)
    for node, name in enumerate(NAMES):
        graph.nodes[node].update(x=float(node), called=name, note="text")
    found = Graph.from_networkx(graph, name="called", ignore="note")
    assert names_of(found) == NAMES
    assert Graph.from_networkx(graph, name="called").feature_names == (
        "x",
    )  # one note for all tells nothing
    told(
        ['a column of names "calld"', '"called"'],
        Graph.from_networkx,
        graph,
        name="calld",
        ignore="note",
    )
    told(
        ['a column to ignore "notes"', '"note"'],
        Graph.from_networkx,
        graph,
        name="called",
        ignore=["notes"],
    )


def test_graphml_attributes_hold_names(tmp_path: Path) -> None:
    graph = networkx.path_graph(3)
    for node, name in enumerate(NAMES):
        graph.nodes[node].update(x=float(node), called=name, note="text")
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    assert names_of(read_graph(tmp_path / "g.graphml", name="called", ignore="note")) == NAMES
    assert names_of(read_graph(tmp_path / "g.graphml", name="called", features=["x"])) == NAMES


@pytest.mark.parametrize("name", ["g.npz", "g.graph"])
def test_names_of_a_whole_graph_are_its_own(tmp_path: Path, name: str) -> None:
    read_graph(put_tables(tmp_path), name="called").save(tmp_path / name)
    told(["name", "tables, rather than"], read_graph, tmp_path / name, name="called")


def test_new_nodes_bring_their_names(tmp_path: Path) -> None:
    known = read_graph(put_tables(tmp_path), name="called")
    (tmp_path / "new").mkdir()
    put(tmp_path / "new" / "edges.csv", "source,target\n9,1\n")
    put(tmp_path / "new" / "nodes.csv", "id,x,called\n9,1,Oslo\n")
    known.save(tmp_path / "g.graph")
    for graph in (known, Graph.open(tmp_path / "g.graph")):
        assert names_of(read_graph(tmp_path / "new", attach_to=graph)) == [*NAMES, "Oslo"]
    put(tmp_path / "new" / "nodes.csv", "id,x\n9,1\n")
    assert names_of(read_graph(tmp_path / "new", attach_to=known)) == [*NAMES, ""]


@pytest.mark.parametrize("name", ["v.parquet", "v.npz", "v.csv", "v.tsv", "frame"])
def test_vectors_are_written_with_names(tmp_path: Path, name: str) -> None:
    vectors = Embeddings(np.eye(3), np.array([1, 2, 3]), np.array(NAMES, dtype=object))
    if name == "frame":
        found = Embeddings.from_frame(vectors.to_frame())
        assert vectors.to_frame().columns.tolist() == ["id", "name", "d0", "d1", "d2"]
    else:
        vectors.save(tmp_path / name)
        found = Embeddings.read(tmp_path / name)
    assert found.node_names is not None
    assert found.node_names.tolist() == NAMES
    np.testing.assert_array_equal(found.vectors, vectors.vectors)
    assert vectors.part(np.array([True, False, False])).node_names.tolist() == NAMES[:1]


def test_a_node_is_found_by_its_name_where_no_id_matches() -> None:
    names = np.array(["Oslo", "oslo", "Bergen", "Bergen", "7", "Bodø Hovedflyplass"], dtype=object)
    vectors = Embeddings(np.eye(6), np.arange(4, 10), names)
    assert [vectors.row(one) for one in ("Oslo", "oslo", "7", "BODØ HOVEDFLYPLASS", "4")] == [
        0,
        1,
        3,
        5,
        0,
    ]
    told(['"Bergen", the name of 2', '6 ("Bergen"), 7 ("Bergen")'], vectors.row, "Bergen")
    assert vectors.row("bodø") == 5  # the only name that it is a part of
    told(["6 ids or names", 'Did you mean "Bergen"'], vectors.row, "Bregen")
    told(["6 ids or names"], vectors.row, "")
    told(["one of 3 ids,"], Embeddings(np.eye(3), np.arange(3)).row, "Oslo")


LINKS = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
LETTERS = pd.Index(["a", "b", "c"])


@pytest.mark.parametrize(
    ("nodes", "ids"),
    [
        (pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=LETTERS), ["a", "b", "c"]),
        (pd.DataFrame({"x": [1, 2, 3]}, index=LETTERS.rename("code")), ["a", "b", "c"]),
        (
            pd.DataFrame({"code": ["c", "b", "a"], "x": [1, 2, 3]}),
            ["c", "b", "a"],
        ),  # the first column, as in tables
        (pd.DataFrame({"code": ["z", "c", "b", "a"], "x": [0, 1, 2, 3]})[1:], ["c", "b", "a"]),
        (pd.DataFrame({"x": [1, 2, 3], "ID": ["c", "b", "a"]}, index=LETTERS), ["c", "b", "a"]),
        (pd.DataFrame(index=LETTERS), ["a", "b", "c"]),
    ],
)
def test_the_index_of_pandas_holds_ids_where_no_column_does(nodes: Any, ids: list[str]) -> None:
    graph = Graph.from_frames(LINKS, nodes)
    assert graph.ids.tolist() == ids
    assert graph.num_edges == 2
    assert graph.feature_names == ("x",) or nodes.shape[1] == 0


def test_numbers_of_rows_are_ids_only_where_nothing_else_can_be() -> None:
    links = pd.DataFrame({"source": [0, 1], "target": [1, 2]})
    assert Graph.from_frames(links, pd.DataFrame({"x": [0.5, 1.5, 2.5]})).ids.tolist() == [0, 1, 2]
    assert Graph.from_frames(
        links, pd.DataFrame({"n": [2, 1, 0], "x": [0.5, 1.5, 2.5]})
    ).ids.tolist() == [2, 1, 0]


def test_a_misspelt_argument_is_told() -> None:
    told(["argument label", 'Did you mean "labels"'], Graph.from_frames, LINKS, label="x")
    told(["argument weigth", 'Did you mean "weight"'], Graph.from_frames, LINKS, weigth="x")


def test_a_frame_is_no_graph_and_the_message_says_what_makes_one() -> None:
    told(["expected a Graph, found DataFrame", "Graph.from_frames"], DGI(dim=2).fit, LINKS)


def test_names_may_be_single_words(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    (tmp_path / "nodes.csv").write_text("id,first_name,x\n1,Ann,0.5\n2,Bob,1\n3,Eve,2\n")
    graph = read_graph(tmp_path)
    assert (graph.node_names.tolist(), graph.feature_names) == (["Ann", "Bob", "Eve"], ("x",))
