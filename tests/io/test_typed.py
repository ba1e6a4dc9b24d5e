"""Graphs of several types of nodes: tables, npz, and what is refused of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from test_faults import told
from test_prepare import tabled

from infomax import Graph, read_graph
from infomax.arrays.made import made
from infomax.arrays.positions import positions
from infomax.errors import InputWarning
from infomax.io.npz import read_npz, write_npz
from infomax.training.fingerprints import graph_fingerprint

PAPERS = {"id": [7, 5, 3, 1], "x": [1, 2.5, -1, 0], "y": [0, 1, 0, 4], "field": ["a", "", "b", "a"]}
WRITES = {"author": ["5", "ann", "5", "bob"], "paper": [5, 7, 3, 3]}
CITES = {"source": [7, 5, 5], "target": [5, 7, 1]}


def write(folder: Path, suffix: str = "csv", **changed: Any) -> Path:
    """Papers with features and labels, authors of whom only edges tell; the ids 5 are two nodes."""
    content = {"nodes/paper": PAPERS, "edges/author.writes.paper": WRITES, "edges/paper.cites.paper": CITES}
    for name, columns in (content | {name.replace("__", "/"): value for name, value in changed.items()}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        tabled(folder / f"{name}.{suffix}", columns)
    return folder


def relations(graph: Any) -> dict[tuple[str, str, str], list[list[float]]]:
    return {(one.source, one.name, one.target): one.matrix().toarray().tolist() for one in graph.relations}


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_a_folder_of_tables_is_a_graph_of_their_types(tmp_path: Path, suffix: str) -> None:
    graph = read_graph(write(tmp_path, suffix), labels="field")
    assert (graph.types, graph.kind, graph.num_edges) == (("author", "paper"), "author", 6)
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
    assert made(graph.feature_names) == "positions"
    np.testing.assert_array_equal(graph.features, positions(union.edges, union.ids)[:3])
    assert made(graph.target("paper").feature_names) is None
    plain = read_graph(tmp_path, labels="field", features="degrees")
    assert {made(plain.target(kind).feature_names) for kind in plain.types} == {"degrees"}


def test_features_may_be_in_a_file_beside_the_node_table(tmp_path: Path) -> None:
    write(tmp_path, nodes__paper={"id": PAPERS["id"]})
    (tmp_path / "features").mkdir()
    sparse.save_npz(tmp_path / "features" / "paper.npz", sparse.csr_matrix(np.eye(4)))
    assert (read_graph(tmp_path).target("paper").features.toarray() == np.eye(4)).all()
    np.save(tmp_path / "features" / "author.npy", np.eye(3))
    told(["author.npy", "a table nodes/author.*"], read_graph, tmp_path)


def test_weights_add_up_and_columns_that_are_not_used_are_named(tmp_path: Path) -> None:
    edges = {"paper": [5, 5, 3], "author": ["ann", "ann", "ann"], "weight": [2, 0.5, 0], "year": [1, 2, 3]}
    write(tmp_path, **{"edges__author.writes.paper": edges})
    with pytest.warns(InputWarning, match=r"author\.writes\.paper\.csv: edge columns that are not used: \"year\""):
        graph = read_graph(tmp_path, labels="field")
    assert relations(graph)["author", "writes", "paper"] == [[0, 2.5, 0, 0]]
    assert graph.dropped == {"self_loops": 0, "duplicates": 1, "zero_weights": 1}


def test_two_words_name_a_relation_too_and_columns_may_be_chosen(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "edges" / "author.writes.paper.csv").unlink()
    tabled(tmp_path / "edges" / "paper.author.csv", {"n": [2, 3], "what": [5, 3], "who": ["ann", "bob"]})
    tabled(tmp_path / "nodes" / "author.csv", {"name": ["Ann", "Bob"], "key": ["bob", "ann"]})
    chosen: dict[str, Any] = {"source": "what", "target": "who", "weight": "n", "id": "key", "ignore": "name"}
    graph = read_graph(tmp_path, labels="field", **chosen)
    assert relations(graph)["paper", "to", "author"] == [[0, 0], [0, 2], [3, 0], [0, 0]]
    for what in chosen:
        told([what, "nowhere"], read_graph, tmp_path, labels="field", **chosen | {what: "nowhere"})


def test_ids_may_be_integers_at_one_end_and_text_at_the_other(tmp_path: Path) -> None:
    (tmp_path / "edges").mkdir()
    tabled(tmp_path / "edges" / "user.buys.item.parquet", {"user": [1, 2, 1], "item": ["1", "b", "b"]})
    graph = read_graph(tmp_path)
    assert (graph.ids.tolist(), graph.target("user").ids.tolist()) == (["1", "b"], [1, 2])
    assert relations(graph) == {("user", "buys", "item"): [[1, 1], [0, 1]]}


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("edges/author.writes.paper.csv", {"author": ["ann"], "paper": [99]}, 'line 2, column "paper": expected an id'),
        ("edges/author.writes.paper.csv", {"author": ["ann", ""], "paper": [5, 5]}, 'line 3, column "author"'),
        ("edges/author.writes.paper.parquet", {"author": ["ann"], "paper": ["5"]}, "integer ids, as in"),
        ("edges/paper.cites.csv", {"source": ["ann"], "target": [99]}, 'column "source": expected an id listed in'),
        ("edges/a.b.c.d.csv", {"source": ["ann"], "target": [99]}, "paper.writes.author or paper.author"),
        ("edges/co-author.paper.csv", {"source": ["ann"], "target": [99]}, "a name of a type without"),
        ("edges/author.paper.dat", {"source": ["ann"], "target": [99]}, "one of .csv"),
        ("nodes/paper.tsv", PAPERS, "one file paper.*"),
        ("nodes/author.csv", {"id": ["ann", "ann"], "x": [1, 2]}, 'line 3, column "id": expected each id once'),
        ("nodes/author.csv", {"id": ["ann", "bob"], "x": [1, "?"]}, 'line 3, column "x": expected a finite number'),
    ],
)
def test_mistakes_are_named_with_file_line_and_column(
    tmp_path: Path, name: str, columns: dict[str, list[Any]], message: str
) -> None:
    suffix = "parquet" if name.endswith("parquet") else "csv"
    write(tmp_path, suffix)
    tabled(tmp_path / name, columns) if not name.endswith("dat") else (tmp_path / name).write_text("x")
    told([name.partition("/")[0], message], read_graph, tmp_path, labels="field")


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
    assert graph_fingerprint(back) == graph_fingerprint(graph) == graph_fingerprint(graph.target("paper"))
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
    graph = read_graph(write(tmp_path / "a"), labels="field")
    fewer = read_graph(
        write(tmp_path / "b", **{"edges__paper.cites.paper": {"source": [7], "target": [5]}}), labels="field"
    )
    other = read_graph(write(tmp_path / "c", nodes__paper=PAPERS | {"x": [1, 2.5, -1, 1]}), labels="field")
    hashes = [graph_fingerprint(one)["graph"] for one in (graph, fewer, other)]
    assert len(set(hashes)) == 3


def test_an_npz_can_be_written_by_hand(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "g.npz", **{"edges/user.buys.item/edges": [[0, 1, 2], [1, 0, 1]], "nodes/item/features": np.eye(2)}
    )
    graph = read_graph(tmp_path / "g.npz")
    assert relations(graph) == {("user", "buys", "item"): [[0, 1], [1, 0], [0, 1]]}
    assert (graph.kind, graph.features.tolist()) == ("item", [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"edges/user.item/edges": [[0], [0]]}, "keys such as edges/paper.writes.author/edges"),
        ({"edges/user.buys.item/weight": [1.0]}, "keys such as edges/paper.writes.author/edges"),
        ({"edges/user.buys.item/edges": [[0], [0]], "edges": [[0], [0]]}, 'a key "edges"'),
        ({"edges/user.buys.item/edges": [[0], [0]], "nodes/user/edges": [[0], [0]]}, "a key that a graph has"),
        ({"edges/user.buys.item/edges": [[0], [0]], "edges/user.buys.item/ids": [0]}, "a key that a graph has"),
        ({"edges/user.buys.item/edges": [[0], [3]], "nodes/item/ids": [4, 5]}, "row numbers from 0 to 1"),
        ({"edges/user.buys.item/edges": [[0], [1]], "edges/user.buys.item/weight": [1, 2]}, "1 numbers, one per edge"),
        ({"edges/user.buys.it-em/edges": [[0], [1]]}, "a name of a type without"),
        ({"edges/user.buys.item/edges": [[0], [1]], "nodes/item/ids": [4, 4]}, "nodes of type item, ids"),
    ],
)
def test_a_wrong_npz_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "g.npz", **arrays)
    told([str(tmp_path / "g.npz"), message], read_graph, tmp_path / "g.npz")
