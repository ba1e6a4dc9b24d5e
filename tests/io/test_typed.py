"""Graphs of several types of nodes: tables, npz, and what is refused of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from test_faults import told
from test_prepare import tabled

from infomax import Graph, read_graph
from infomax.arrays.positions import positions
from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import structural_features_named
from infomax.errors import InputWarning
from infomax.io.graph_folder import check_folder, describe_file
from infomax.io.npz import read_npz, write_npz
from infomax.io.prepare import prepare
from infomax.io.writing import how_to_read
from infomax.training.resuming import graph_fingerprint

PAPERS = {"id": [7, 5, 3, 1], "x": [1, 2.5, -1, 0], "y": [0, 1, 0, 4], "field": ["a", "", "b", "a"]}
WRITES = {"author": ["5", "ann", "5", "bob"], "paper": [5, 7, 3, 3]}
CITES = {"source": [7, 5, 5], "target": [5, 7, 1]}


def write(folder: Path, suffix: str = "csv", **changed: Any) -> Path:
    """Papers with features and labels, authors of whom only edges tell; the ids 5 are two nodes."""
    content = {
        "nodes/paper": PAPERS,
        "edges/author.writes.paper": WRITES,
        "edges/paper.cites.paper": CITES,
    }
    for name, columns in (
        content | {name.replace("__", "/"): value for name, value in changed.items()}
    ).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        tabled(folder / f"{name}.{suffix}", columns)
    return folder


def relations(graph: Any) -> dict[tuple[str, str, str], list[list[float]]]:
    return {
        (one.source, one.name, one.target): one.edges.matrix().toarray().tolist()
        for one in graph.relations
    }


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_a_folder_of_tables_is_a_graph_of_their_types(tmp_path: Path, suffix: str) -> None:
    graph = read_graph(write(tmp_path, suffix), labels="field")
    assert (graph.types, graph.node_type, graph.num_edges) == (("author", "paper"), "author", 6)
    assert graph.ids.tolist() == ["5", "ann", "bob"]
    papers = graph.target("paper")
    assert papers.ids.tolist() == [7, 5, 3, 1]
    assert papers.feature_names == ("x", "y")
    assert papers.features.tolist() == [[1, 0], [2.5, 1], [-1, 0], [0, 4]]
    assert papers.labels["field"].tolist() == ["a", "", "b", "a"]
    assert relations(graph) == {
        ("author", "writes", "paper"): [[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]],
        ("paper", "cites", "paper"): [[0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]],
    }


def test_edges_within_a_type_keep_their_directions_if_asked(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path), labels="field", directed=True)
    cites = relations(graph)["paper", "cites", "paper"]
    assert cites == [[0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_a_type_without_features_has_its_positions_in_the_whole_graph(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path), labels="field")
    ids = ["author:5", "author:ann", "author:bob", "paper:7", "paper:5", "paper:3", "paper:1"]
    edges = [[0, 4], [1, 3], [0, 5], [2, 5], [3, 4], [4, 6]]
    union = Graph.from_arrays(np.array(edges).T, ids=ids)
    assert structural_features_named(graph.feature_names) == "positions"
    np.testing.assert_array_equal(graph.features, positions(union.edges, union.ids)[:3])
    assert structural_features_named(graph.target("paper").feature_names) is None
    plain = read_graph(tmp_path, labels="field", features="degrees")
    assert {
        structural_features_named(plain.target(kind).feature_names) for kind in plain.types
    } == {"degrees"}


def test_features_may_be_in_a_file_beside_the_node_table(tmp_path: Path) -> None:
    write(tmp_path, nodes__paper={"id": PAPERS["id"]})
    (tmp_path / "features").mkdir()
    sparse.save_npz(tmp_path / "features" / "paper.npz", sparse.csr_matrix(np.eye(4)))
    assert (read_graph(tmp_path).target("paper").features.toarray() == np.eye(4)).all()
    np.save(tmp_path / "features" / "author.npy", np.eye(3))
    told(["author.npy", "a table nodes/author.*"], read_graph, tmp_path)


def test_weights_add_up_and_columns_that_are_not_used_are_named(tmp_path: Path) -> None:
    edges = {
        "paper": [5, 5, 3],
        "author": ["ann", "ann", "ann"],
        "weight": [2, 0.5, 0],
        "year": [1, 2, 3],
    }
    write(tmp_path, **{"edges__author.writes.paper": edges})
    with pytest.warns(
        InputWarning, match=r"author\.writes\.paper\.csv: edge columns that are not used: \"year\""
    ):
        graph = read_graph(tmp_path, labels="field")
    assert relations(graph)["author", "writes", "paper"] == [[0, 2.5, 0, 0]]
    assert graph.dropped == {"self_loops": 0, "duplicates": 1, "zero_weights": 1}


def test_two_words_name_a_relation_too_and_columns_may_be_chosen(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "edges" / "author.writes.paper.csv").unlink()
    tabled(
        tmp_path / "edges" / "paper.author.csv",
        {"n": [2, 3], "what": [5, 3], "who": ["ann", "bob"]},
    )
    tabled(tmp_path / "nodes" / "author.csv", {"name": ["Ann", "Bob"], "key": ["bob", "ann"]})
    chosen: dict[str, Any] = {
        "source": "what",
        "target": "who",
        "weight": "n",
        "id": "key",
        "ignore": "name",
    }
    graph = read_graph(tmp_path, labels="field", **chosen)
    assert relations(graph)["paper", "to", "author"] == [[0, 0], [0, 2], [3, 0], [0, 0]]
    for what in chosen:
        told([what, "nowhere"], read_graph, tmp_path, labels="field", **chosen | {what: "nowhere"})


def test_ids_may_be_integers_at_one_end_and_text_at_the_other(tmp_path: Path) -> None:
    (tmp_path / "edges").mkdir()
    tabled(
        tmp_path / "edges" / "user.buys.item.parquet", {"user": [1, 2, 1], "item": ["1", "b", "b"]}
    )
    graph = read_graph(tmp_path)
    assert (graph.ids.tolist(), graph.target("user").ids.tolist()) == (["1", "b"], [1, 2])
    assert relations(graph) == {("user", "buys", "item"): [[1, 1], [0, 1]]}


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        (
            "edges/author.writes.paper.csv",
            {"author": ["ann"], "paper": [99]},
            'line 2, column "paper": expected an id',
        ),
        (
            "edges/author.writes.paper.csv",
            {"author": ["ann", ""], "paper": [5, 5]},
            'line 3, column "author"',
        ),
        (
            "edges/author.writes.paper.parquet",
            {"author": ["ann"], "paper": ["5"]},
            "integer ids, as in",
        ),
        (
            "edges/paper.cites.csv",
            {"source": ["ann"], "target": [99]},
            'column "source": expected an id listed in',
        ),
        (
            "edges/a.b.c.d.csv",
            {"source": ["ann"], "target": [99]},
            "paper.writes.author or paper.author",
        ),
        (
            "edges/co-author.paper.csv",
            {"source": ["ann"], "target": [99]},
            "a name of a type without",
        ),
        ("edges/author.paper.dat", {"source": ["ann"], "target": [99]}, "one of .csv"),
        ("nodes/paper.tsv", PAPERS, "one file paper.*"),
        (
            "nodes/author.csv",
            {"id": ["ann", "ann"], "x": [1, 2]},
            'line 3, column "id": expected each id once',
        ),
        (
            "nodes/author.csv",
            {"id": ["ann", "bob"], "x": [1, "inf"]},
            'line 3, column "x": expected a finite number',
        ),
    ],
)
def test_mistakes_are_named_with_file_line_and_column(
    tmp_path: Path, name: str, columns: dict[str, list[Any]], message: str
) -> None:
    suffix = "parquet" if name.endswith("parquet") else "csv"
    write(tmp_path, suffix)
    tabled(tmp_path / name, columns) if not name.endswith("dat") else (tmp_path / name).write_text(
        "x"
    )
    told([name.partition("/")[0], message], read_graph, tmp_path, labels="field")


def test_a_relation_has_one_table_however_it_is_spelt(tmp_path: Path) -> None:
    write(tmp_path, **{"edges__paper.paper": CITES, "edges__paper.to.paper": CITES})
    found = "one file paper.to.paper.*, found paper.paper.csv and paper.to.paper.csv"
    told([str(tmp_path / "edges"), found], read_graph, tmp_path)


@pytest.mark.parametrize("directed", [False, True])
def test_an_npz_gives_back_the_graph_with_the_same_bytes(tmp_path: Path, directed: bool) -> None:
    edges = {"paper": [5, 5, 3], "author": ["ann", "ann", "ann"], "weight": [2, 0.5, 1]}
    papers = PAPERS | {"split:train": [1, 0, 0, 1], "node:name": ["p", "q", "", "r"]}
    write(tmp_path, nodes__paper=papers, **{"edges__author.writes.paper": edges})
    graph = read_graph(tmp_path, labels="field", directed=directed)
    write_npz(graph, tmp_path / "g.npz")
    write_npz(graph.target("paper"), tmp_path / "h.npz")
    back = Graph.of(read_npz(tmp_path / "g.npz"))
    assert (tmp_path / "g.npz").read_bytes() == (tmp_path / "h.npz").read_bytes()
    assert relations(back) == relations(graph)
    assert (
        graph_fingerprint(back)
        == graph_fingerprint(graph)
        == graph_fingerprint(graph.target("paper"))
    )
    for kind in graph.types:
        one, other = back.target(kind), graph.target(kind)
        assert one.feature_names == other.feature_names
        np.testing.assert_array_equal(one.features, other.features)
        for what in ("labels", "splits"):
            assert {name: values.tolist() for name, values in getattr(one, what).items()} == {
                name: values.tolist() for name, values in getattr(other, what).items()
            }
    assert back.target("paper").node_names.tolist() == ["p", "q", "", "r"]


def test_a_fingerprint_tells_types_and_relations_apart(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path), labels="field")
    author, cites = graph.target("author"), graph.relations[1]
    fewer = graph.replace(relations=(graph.relations[0], cites.part("paper", np.arange(2))))
    renamed = graph.replace(relations=(graph.relations[0], replace(cites, name="quotes")))
    other = author.replace(features=author.features + 1)
    assert len({graph_fingerprint(one)["graph"] for one in (graph, fewer, renamed, other)}) == 4


def test_an_npz_can_be_written_by_hand(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "g.npz",
        **{"edges/user.buys.item/edges": [[0, 1, 2], [1, 0, 1]], "nodes/item/features": np.eye(2)},
    )
    graph = read_graph(tmp_path / "g.npz")
    assert relations(graph) == {("user", "buys", "item"): [[0, 1], [1, 0], [0, 1]]}
    assert (graph.node_type, graph.features.tolist()) == ("item", [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"edges/user.item/edges": [[0], [0]]}, "keys such as edges/paper.writes.author/edges"),
        ({"edges/user.buys.item/weight": [1.0]}, "keys such as edges/paper.writes.author/edges"),
        ({"edges/user.buys.item/edges": [[0], [0]], "edges": [[0], [0]]}, 'a key "edges"'),
        (
            {"edges/user.buys.item/edges": [[0], [0]], "nodes/user/edges": [[0], [0]]},
            "a key that a graph has",
        ),
        (
            {"edges/user.buys.item/edges": [[0], [0]], "edges/user.buys.item/ids": [0]},
            "a key that a graph has",
        ),
        (
            {"edges/user.buys.item/edges": [[0], [3]], "nodes/item/ids": [4, 5]},
            "row numbers from 0 to 1",
        ),
        (
            {"edges/user.buys.item/edges": [[0], [1]], "edges/user.buys.item/weight": [1, 2]},
            "1 number, one per edge",
        ),
        ({"edges/user.buys.it-em/edges": [[0], [1]]}, "a name of a type without"),
        (
            {"edges/user.buys.item/edges": [[0], [1]], "nodes/item/ids": [4, 4]},
            "nodes of type item, ids",
        ),
    ],
)
def test_a_wrong_npz_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "g.npz", **arrays)
    told([str(tmp_path / "g.npz"), message], read_graph, tmp_path / "g.npz")


BUYS = {"user_id": [0, 1, 2], "item_id": [1, 0, 1]}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_ends_that_may_be_two_types_are_refused_and_both_answers_work(
    tmp_path: Path, suffix: str
) -> None:
    path = tabled(tmp_path / f"edges.{suffix}", BUYS)
    remedies = ["--types user,item", "--source user_id --target item_id"]
    told([str(path), *remedies], read_graph, path)
    told([str(path), *remedies], prepare, path, out=tmp_path / "g.graph")
    graph = read_graph(path, types="user,item")
    assert relations(graph) == {("user", "to", "item"): [[1, 0], [0, 1], [1, 0]]}
    assert (graph.node_type, graph.ids.tolist(), graph.target("user").ids.tolist()) == (
        "item",
        [1, 0],
        [0, 1, 2],
    )
    assert read_graph(path, source="user_id", target="item_id").num_edges == 2


@pytest.mark.parametrize(
    "names",
    [
        "u v",
        "src dst",
        "from_node_id to_node_id",
        "node1 node2",
        "citing cited",
        "user_a user_b",
        "idFrom idTo",
    ],
)
def test_ends_of_usual_names_are_of_one_type(tmp_path: Path, names: str) -> None:
    columns = dict(zip(names.split(), BUYS.values(), strict=True))
    assert read_graph(tabled(tmp_path / "edges.csv", columns)).types == ()


def test_ends_without_common_ids_or_with_a_node_table_are_not_refused(tmp_path: Path) -> None:
    apart = tabled(tmp_path / "apart.csv", {"user_id": [0, 1], "item_id": [5, 6]})
    assert read_graph(apart).num_nodes == 4
    path, nodes = (
        tabled(tmp_path / "e.csv", BUYS),
        tabled(tmp_path / "n.csv", {"id": [0, 1, 2], "x": [1, 2, 3]}),
    )
    assert read_graph(path, nodes).num_nodes == 3


MIXED = {
    "id": [0, 1, 2, 7, 1],
    "kind": ["u", "u", "u", "i", "i"],
    "x": [1, 2, 3, "", ""],
    "sort": ["A", "", "B", "", ""],
}


def test_a_column_of_types_divides_a_node_table(tmp_path: Path) -> None:
    nodes = tabled(tmp_path / "nodes.csv", MIXED)
    edges = tabled(
        tmp_path / "edges.csv", {"source": [0, 2], "target": [7, 0], "how": ["buys", "knows"]}
    )
    graph = read_graph(edges, nodes, node_type="kind", edge_type="how", labels="sort")
    assert relations(graph) == {
        ("u", "buys", "i"): [[1, 0], [0, 0], [0, 0]],
        ("u", "knows", "u"): [[0, 0, 1], [0, 0, 0], [1, 0, 0]],
    }
    users = graph.target("u")
    assert (users.feature_names, users.features.tolist()) == (("x",), [[1], [2], [3]])
    assert users.labels["sort"].tolist() == ["A", "", "B"]
    assert (
        graph.ids.tolist(),
        structural_features_named(graph.feature_names),
        dict(graph.labels),
    ) == (
        [7, 1],
        "positions",
        {},
    )


def test_a_node_table_of_parquet_is_divided_as_one_of_text(tmp_path: Path) -> None:
    nodes = tabled(
        tmp_path / "n.parquet", MIXED | {"x": [1, 2, 3, None, None], "v": [[1, 2]] * 3 + [None] * 2}
    )
    edges = tabled(tmp_path / "e.parquet", {"source": [0, 2], "target": [7, 0]})
    graph = read_graph(edges, nodes, node_type="kind", ignore="sort")
    assert graph.target("u").feature_names == ("x", "v[0]", "v[1]")
    assert relations(graph)["u", "to", "i"] == [[1, 0], [0, 0], [0, 0]]


def test_an_id_of_two_types_needs_to_be_told_apart(tmp_path: Path) -> None:
    nodes = tabled(tmp_path / "nodes.csv", MIXED)
    edges = tabled(
        tmp_path / "edges.csv", {"source": [0, 0], "target": [7, 1], "how": ["u.buys.i", "u.i"]}
    )
    chosen: dict[str, Any] = {"node_type": "kind", "ignore": "sort"}
    with pytest.warns(InputWarning, match="how"):
        told(["line 3", "an id of i and of u", "--types"], read_graph, edges, nodes, **chosen)
    assert relations(read_graph(edges, nodes, edge_type="how", **chosen)) == {
        ("u", "buys", "i"): [[1, 0], [0, 0], [0, 0]],
        ("u", "to", "i"): [[0, 1], [0, 0], [0, 0]],
    }
    with pytest.warns(InputWarning, match="how"):
        assert relations(read_graph(edges, nodes, types="u,i", **chosen)) == {
            ("u", "to", "i"): [[1, 1], [0, 0], [0, 0]]
        }
    told(["nodes.csv", "--node-type"], read_graph, edges, nodes, types="u,i")
    lost = tabled(tmp_path / "lost.csv", {"source": [0], "target": [9]})
    told(["lost.csv, line 2", "listed in"], read_graph, lost, nodes, **chosen)


def test_edges_of_several_relations_have_their_nodes_in_order_of_appearance(tmp_path: Path) -> None:
    edges = tabled(tmp_path / "edges.csv", {"a": [3, 1, 2], "b": [1, 3, 5], "how": ["x", "y", "x"]})
    graph = read_graph(edges, edge_type="how")
    assert (graph.types, graph.ids.tolist()) == (("node",), [3, 1, 2, 5])
    assert [one.name for one in graph.relations] == ["x", "y"]
    empty = tabled(tmp_path / "empty.csv", {"a": [3, 1], "b": [1, 3], "how": ["x", ""]})
    told(["empty.csv, line 3", '"how"'], read_graph, empty, edge_type="how")


PAYMENTS = {
    "payer": [1, 1, 2],
    "payee": [2, 2, 3],
    "amount": [10.5, 7, 1],
    "weight": [1, 2, 3],
    "sort": ["x", "y", ""],
}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_of_an_edge_table_become_nodes_and_parallel_edges_stay_apart(
    tmp_path: Path, suffix: str
) -> None:
    path = tabled(tmp_path / f"edges.{suffix}", PAYMENTS)
    ends = {"source": "payer", "target": "payee"}
    graph = read_graph(path, edges_as="payment", types="person,shop", labels="sort", **ends)
    assert graph.types == ("payment", "person", "shop")
    assert relations(graph) == {
        ("person", "source", "payment"): [[1, 1, 0], [0, 0, 1]],
        ("payment", "target", "shop"): [[1, 0], [1, 0], [0, 1]],
    }
    assert (graph.ids.tolist(), graph.feature_names) == ([1, 2, 3], ("amount", "weight"))
    assert graph.features.tolist() == [[10.5, 1], [7, 2], [1, 3]]
    assert graph.labels["sort"].tolist() == ["x", "y", ""]
    told(["payer", "--types payer,payee"], read_graph, path, edges_as="payment", labels="sort")
    one = read_graph(path, edges_as="payment", labels="sort", **ends)
    assert (one.types, one.ids.tolist()) == (("node", "payment"), [1, 2, 3])


def test_a_relation_of_a_folder_becomes_nodes_with_ids_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "edges").mkdir()
    tabled(
        tmp_path / "edges" / "a.pays.b.csv",
        {"id": ["p", "q"], "b": [2, 2], "a": [1, 1], "amount": [3, 4]},
    )
    graph = read_graph(tmp_path, edges_as="pays")
    assert (graph.target("pays").ids.tolist(), graph.target("pays").features.tolist()) == (
        ["p", "q"],
        [[3], [4]],
    )
    assert relations(graph) == {
        ("a", "source", "pays"): [[1, 1]],
        ("pays", "target", "b"): [[1], [1]],
    }
    told(["edges_as", "pays"], read_graph, tmp_path, edges_as="buys")
    table = tabled(
        tmp_path / "pays.csv", {"id": ["p", "q"], "id_a": [1, 1], "bId": [2, 2], "amount": [3, 4]}
    )
    assert relations(read_graph(table, types="a,b", edges_as="pays")) == relations(graph)
    told(["edges_as", "a new type"], read_graph, table, types="a,b", edges_as="b")
    twice = tabled(tmp_path / "twice.csv", {"id": ["p", "p"], "a": [1, 1], "b": [2, 2]})
    told(['twice.csv, line 3, column "id"'], read_graph, twice, types="a,b", edges_as="pays")


@pytest.mark.parametrize(
    "names", ["driverId,constructorId", "id_driver,ID_Constructor", "driverid,constructor"]
)
def test_columns_are_found_by_the_names_of_types(tmp_path: Path, names: str) -> None:
    driver, constructor = names.split(",")
    results = {
        "resultId": [1, 2, 3],
        "raceId": [8, 8, 9],
        constructor: [5, 6, 5],
        driver: [1, 2, 1],
    }
    path = tabled(tmp_path / "results.csv", results)
    with pytest.warns(InputWarning, match='not used: "resultId", "raceId"'):
        graph = read_graph(path, types="driver,constructor")
    assert relations(graph) == {("driver", "to", "constructor"): [[1, 0], [0, 1]]}
    told(
        ["none for team", '"resultId", "raceId"', "--source COLUMN"],
        read_graph,
        path,
        types="driver,team",
    )
    told(["none for team"], prepare, path, out=tmp_path / "g.graph", types="team,driver")


@pytest.mark.parametrize("folder", [True, False])
def test_ends_are_in_the_columns_that_are_called_as_the_types_are(
    tmp_path: Path, folder: bool
) -> None:
    def read(**ends: list[Any]) -> Graph:
        columns = {"order": ["o1", "o2", "o3"], **ends}
        if folder:
            (tmp_path / "edges").mkdir(exist_ok=True)
            tabled(tmp_path / "edges" / "user.to.item.csv", columns)
            return read_graph(tmp_path)
        return read_graph(tabled(tmp_path / "edges.csv", columns), types="user,item")

    users, items = ["u", "v", "u"], ["i", "i", "j"]
    expected = {("user", "to", "item"): [[1, 1], [1, 0]]}
    with pytest.warns(InputWarning, match='not used: "order"'):
        assert relations(read(item_id=items, user_id=users)) == expected
    parts = [
        "the types user and item",
        'none for item among "order", "user_id", "sku"',
        "--source COLUMN",
    ]
    told(parts, read, user_id=users, sku=items)


def test_a_relation_with_types_of_its_own_does_not_override_those_that_were_named(
    tmp_path: Path,
) -> None:
    path = tabled(tmp_path / "e.csv", {"user": [1, 2], "item": [5, 6], "how": ["buys", "a.b.c"]})
    told(
        ["from user to item", '"a.b.c"', "--types"],
        read_graph,
        path,
        types="user,item",
        edge_type="how",
    )


def test_tables_of_one_type_are_not_read_like_several(tmp_path: Path) -> None:
    several = read_graph(write(tmp_path / "t"))
    path = tabled(tmp_path / "e.csv", CITES)
    for read in (read_graph, lambda *of, **how: prepare(*of, out=tmp_path / "g.graph", **how)):
        told(["tables of several types of nodes", "one type"], read, path, like=several)
        told(
            ["tables of one type of nodes", "several types"],
            read,
            tmp_path / "t",
            like=read_graph(path),
        )


def test_one_graph_has_several_types(tmp_path: Path) -> None:
    told(
        ["paper.csv", "one graph"],
        read_graph,
        write(tmp_path, nodes__paper=PAPERS | {"graph:name": list("gghh")}),
    )


def same(graph: Graph, other: Graph) -> None:
    """Refuse two graphs that differ in anything that tables hold; of tables, labels are text."""
    assert graph.types == other.types
    assert relations(graph) == relations(other)
    for one, two in ((graph.target(kind), other.target(kind)) for kind in graph.types):
        assert (one.ids.tolist(), one.feature_names) == (two.ids.tolist(), two.feature_names)
        np.testing.assert_allclose(dense(one.features), dense(two.features), atol=1e-5)
        assert sparse.issparse(one.features) == sparse.issparse(two.features)
        columns = [
            {name: list(map(str, cells)) for name, cells in some.labels.items()}
            for some in (one, two)
        ]
        assert columns[0] == columns[1]
        masks = [{name: mask.tolist() for name, mask in some.splits.items()} for some in (one, two)]
        assert masks[0] == masks[1]


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    """Papers with named features, authors without, and venues with a sparse matrix; weights and directions."""
    edges = {"paper": [5, 5, 3], "author": ["ann", "ann", "bob"], "weight": [2, 0.5, 1]}
    write(
        tmp_path / "first",
        nodes__paper=PAPERS | {"split:train": [1, 0, 0, 1]},
        nodes__venue={"id": ["x", "y", "z"]},
        **{
            "edges__author.writes.paper": edges,
            "edges__paper.venue": {"paper": [7, 5, 1], "venue": ["x", "x", "z"]},
        },
    )
    (tmp_path / "first" / "features").mkdir()
    sparse.save_npz(tmp_path / "first" / "features" / "venue.npz", sparse.csr_matrix(np.eye(3)))
    return read_graph(tmp_path / "first", labels="field", directed=request.param)


def test_a_folder_gives_back_the_graph(graph: Graph, tmp_path: Path) -> None:
    directed = how_to_read(graph, tmp_path / "out") == " --directed"
    assert directed == any(
        len(one.edges.receivers.indices) == 3 and one.name == "cites" for one in graph.relations
    )
    graph.target("paper").save(tmp_path / "out")
    assert (tmp_path / "out" / "nodes" / "author.csv").read_text() == '"id"\n"ann"\n"bob"\n'
    same(read_graph(tmp_path / "out", directed=directed), graph)
    told([str(tmp_path / "out"), "one that exists"], graph.save, tmp_path / "out")
    told(["e.csv,n.csv", "for several types"], graph.save, tmp_path / "e.csv,n.csv")


def test_frames_give_back_the_graph(graph: Graph) -> None:
    edges, nodes = graph.to_frames("arrow")
    venues = nodes.pop("venue").drop_columns(["x0", "x1", "x2"])
    directed = how_to_read(graph, "folder") != ""
    back = Graph.from_frames(edges, nodes | {"venue": venues}, directed=directed)
    assert structural_features_named(back.target("venue").feature_names) == "positions"
    assert relations(back) == relations(graph)
    assert back.target("paper").feature_names == graph.target("paper").feature_names
    told(["edges", "author"], Graph.from_frames, {"author": edges["author", "writes", "paper"]})
    four = {("author", "writes", "the", "paper"): edges["author", "writes", "paper"]}
    told(["edges: expected frames by relation", "'the'"], Graph.from_frames, four)
    told(["nodes: expected frames by type"], Graph.from_frames, edges, venues)
    twice = {
        ("paper", "venue"): (frame := edges["author", "writes", "paper"]),
        ("paper", "to", "venue"): frame,
    }
    told(
        ["edges: expected one frame for each relation, found two of paper to venue"],
        Graph.from_frames,
        twice,
    )
    short = {(ends[0], ends[2]): frame for ends, frame in edges.items() if ends[1] == "to"}
    assert relations(Graph.from_frames(short)).keys() == {("paper", "to", "venue")}


def test_two_frames_may_have_columns_of_types() -> None:
    edges, nodes = (
        pa.table({"a": [0, 2], "b": [7, 0]}),
        pa.table({"id": [0, 2, 7], "kind": ["u", "u", "i"]}),
    )
    assert relations(Graph.from_frames(edges, nodes, node_type="kind"))["u", "to", "i"] == [
        [1],
        [0],
    ]


def test_pyg_gives_back_the_graph(graph: Graph) -> None:
    pytest.importorskip("torch_geometric")
    from torch_geometric.transforms import ToUndirected

    data = graph.to_pyg()
    assert data["paper"].train_mask.tolist() == [True, False, False, True]
    assert data["paper"].y.tolist() == [0, -1, 1, 0]
    back = Graph.from_pyg(data, directed=how_to_read(graph, "folder") != "")
    assert relations(back) == relations(graph)
    for kind in graph.types:
        np.testing.assert_array_equal(
            dense(back.target(kind).features), dense(graph.target(kind).features)
        )
    both_ways = relations(Graph.from_pyg(ToUndirected()(data.clone())))
    assert both_ways.keys() == relations(graph).keys()


def test_a_graph_folder_maps_the_graph(graph: Graph, tmp_path: Path) -> None:
    graph.save(tmp_path / "g.graph")
    stored = Graph.open(tmp_path / "g.graph")
    same(stored.loaded(), read_npz_again(graph, tmp_path))
    assert stored.folder == tmp_path / "g.graph"
    assert graph_fingerprint(stored) == graph_fingerprint(stored.target("paper"))
    for kind in graph.types:
        assert stored.target(kind).table.mapped
    for one in stored.relations:
        assert isinstance(one.edges.senders.indices, np.memmap)
        assert isinstance(one.edges.receivers.indices, np.memmap)
        assert one.loaded().directed == one.directed
    assert read_graph(tmp_path / "g.graph").types == graph.types
    check_folder(tmp_path / "g.graph")


def read_npz_again(graph: Graph, folder: Path) -> Graph:
    """The graph with dense features, as those of a graph folder are."""
    graph.save(folder / "again.npz")
    again = read_graph(folder / "again.npz")
    for kind in again.types:
        again = again.target(kind)
        again = again.replace(features=dense(again.features))
    return again.target(graph.node_type)


@pytest.mark.parametrize(
    "name",
    [
        "nodes/paper/graph.json",
        "edges/author.writes.paper/to_source/indices.npy",
        "graph.json",
    ],
)
def test_a_changed_graph_folder_is_refused(graph: Graph, tmp_path: Path, name: str) -> None:
    graph.save(tmp_path / "g.graph")
    path = tmp_path / "g.graph" / name
    content = bytearray(path.read_bytes())
    at = content.index(b'"relations"') + 2 if name == "graph.json" else -2
    content[at] ^= 1
    path.write_bytes(content)
    told([name], Graph.open, tmp_path / "g.graph")


def test_an_array_of_a_relation_leads_nowhere_else(graph: Graph, tmp_path: Path) -> None:
    graph.save(tmp_path / "g.graph")
    place = tmp_path / "g.graph" / "edges" / "author.writes.paper" / "to_target"
    np.save(place / "indices.npy", np.array([0, 2], np.int32))
    about = json.loads((tmp_path / "g.graph" / "graph.json").read_text())
    (files,) = (one["files"]["to_target"] for one in about["relations"] if one["name"] == "writes")
    files["indices.npy"] = describe_file(place / "indices.npy")
    (tmp_path / "g.graph" / "graph.json").write_text(json.dumps(about))
    told(
        ["to_target/indices.npy, entry 2", "a node, from 0 to 1"], Graph.open, tmp_path / "g.graph"
    )


@pytest.mark.parametrize("of_folder", [False, True])
def test_prepare_writes_the_graph_that_is_read(tmp_path: Path, of_folder: bool) -> None:
    edges = tabled(tmp_path / "e.parquet", PAYMENTS)
    chosen: dict[str, Any] = {"types": "payer,payee", "labels": "sort", "edges_as": "payment"}
    if of_folder:
        edges, chosen = write(tmp_path / "tables"), {"labels": "field"}
    prepare(edges, out=tmp_path / "g.graph", **chosen)
    stored = Graph.open(tmp_path / "g.graph")
    assert stored.table.mapped
    same(stored.loaded(), read_graph(edges, **chosen))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        {"e.parquet", "g.graph", edges.name}
    )
    told(["g.graph"], prepare, edges, out=tmp_path / "g.graph", **chosen)
    told(["nowhere"], prepare, edges, out=tmp_path / "h.graph", **chosen | {"labels": "nowhere"})
    assert not list(tmp_path.glob(".h*"))


def test_a_type_without_a_relation_has_no_paths(tmp_path: Path) -> None:
    """As where a type is misspelt in the name of an edge table."""
    folder = write(tmp_path, nodes__papers={"id": [1, 2], "x": [1, 2]})
    told(
        ["nodes of type papers", 'Did you mean "paper"?', "--type author"],
        read_graph(folder).target("papers").paths,
    )


def test_tables_in_a_folder_that_has_no_edges_are_told_how_to_be_put(tmp_path: Path) -> None:
    tabled(tmp_path / "customers.csv", {"id": [1], "x": [2]})
    told(["a file edges", "nodes/TYPE.csv"], read_graph, tmp_path)


def test_repeated_rows_are_counted_if_asked(tmp_path: Path) -> None:
    path = tabled(tmp_path / "e.csv", {"user": [1, 1, 2], "item": [5, 5, 5]})
    graph = read_graph(path, types="user,item", weight="count")
    assert relations(graph) == {("user", "to", "item"): [[2], [1]]}
    prepare(path, out=tmp_path / "g.graph", types="user,item", weight="count")
    same(Graph.open(tmp_path / "g.graph"), graph)
    one = read_graph(
        tabled(tmp_path / "one.csv", {"source": [1, 1, 2], "target": [2, 2, 3]}), weight="count"
    )
    assert one.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    grown = read_graph(
        tabled(tmp_path / "new.csv", {"source": [9, 9, 9], "target": [3, 3, 1]}), attach_to=one
    )
    assert grown.adjacency.toarray()[3].tolist() == [1, 0, 2, 0]


def test_choices_of_columns_reach_the_rows_of_a_relation_that_become_nodes(tmp_path: Path) -> None:
    edges = {
        "author": ["5", "ann", "5"],
        "paper": [5, 7, 3],
        "share": ["1/2", "1", "1/3"],
        "year": [1, 2, 3],
    }
    folder = write(tmp_path, **{"edges__author.writes.paper": edges})
    for chosen in (
        {"ignore": "share"},
        {"columns": {"share": "ignore"}},
        {"columns": {"writes.share": "ignore"}},
    ):
        graph = read_graph(folder, labels="field", edges_as="writes", **chosen)
        assert graph.target("writes").feature_names == ("year",)
    graph = read_graph(folder, labels="field", edges_as="writes", columns={"share": "category"})
    assert "share=1/2" in graph.target("writes").feature_names
