"""Which columns are what: chosen by a person, by their names, or by their places; alike by both readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from test_faults import told
from test_prepare import same, tabled

from infomax import Graph, InputError, read_graph
from infomax.io.prepare import prepare
from infomax.io.schema.schema import ONLY_RELATION, Use

EDGES = {"since": [7, 8, 9], "to": ["a", "c", "b"], "from": ["c", "b", "d"], "times": [2, 0.5, 1]}
NODES = {
    "row": [1, 2, 3, 4],
    "x": [1, -2, 3.5, 0],
    "new_id": ["a", "b", "c", "d"],
    "name": ["Ann", "Bob", "Cy", "Di"],
    "kind": ["p", "", "q", "p"],
    "y": [0.25, 1e-3, 7, 0],
}
CHOSEN: dict[str, Any] = {
    "source": "from",
    "target": "to",
    "weight": "times",
    "id": "new_id",
    "labels": "kind",
}


def write(
    folder: Path,
    suffix: str,
    edges: dict[str, list[Any]] = EDGES,
    nodes: dict[str, list[Any]] = NODES,
) -> Path:
    folder.mkdir(exist_ok=True)
    tabled(folder / f"edges.{suffix}", edges)
    tabled(folder / f"nodes.{suffix}", nodes)
    return folder


def by_both(folder: Path, suffix: str, **columns: Any) -> Graph:
    """The graph of tables, after both readers have made the same of them."""
    tables = [folder / f"{stem}.{suffix}" for stem in ("edges", "nodes")]
    graph = read_graph(*tables, **columns)
    prepare(*tables, out=folder / "g.graph", **columns)
    stored = Graph.open(folder / "g.graph")
    same(stored, graph)
    assert stored.schema == graph.schema
    assert {name: mask.tolist() for name, mask in stored.splits.items()} == {
        name: mask.tolist() for name, mask in graph.splits.items()
    }
    return graph


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("choice", [{"ignore": ["row", "name"]}, {"features": ["y", "x"]}], ids=str)
def test_chosen_columns_make_the_graph_of_the_usual_names(
    tmp_path: Path, suffix: str, choice: dict[str, Any]
) -> None:
    graph = by_both(write(tmp_path, suffix), suffix, **CHOSEN, **choice)
    edges = {"source": EDGES["from"], "target": EDGES["to"], "weight": EDGES["times"]}
    nodes = {"id": NODES["new_id"], "x": NODES["x"], "kind": NODES["kind"], "y": NODES["y"]}
    usual = read_graph(write(tmp_path / "usual", suffix, edges, nodes), labels="kind")
    assert graph.ids.tolist() == usual.ids.tolist()
    assert graph.feature_names == usual.feature_names
    np.testing.assert_array_equal(graph.features, usual.features)
    np.testing.assert_array_equal(graph.adjacency.toarray(), usual.adjacency.toarray())
    assert graph.labels["kind"].tolist() == usual.labels["kind"].tolist()
    assert graph.edge_columns is None  # nothing was guessed
    edges, nodes = graph.schema.of_relation(ONLY_RELATION), graph.schema.of_type("")
    uses = {"source": edges.source, "target": edges.target, "weight": edges.weight, "id": nodes.id}
    assert uses == {purpose: Use((CHOSEN[purpose],), "said") for purpose in uses}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_prefixes_mark_labels_and_splits(tmp_path: Path, suffix: str) -> None:
    nodes = {
        "id": list("abcd"),
        "x": [1, 2, 3, 5],
        "label:kind": ["p", "", "q", "p"],
        "split:train": [1, 0, 1, 0],
    }
    graph = by_both(write(tmp_path, suffix, nodes=nodes), suffix, source="from", target="to")
    assert graph.labels["kind"].tolist() == ["p", "", "q", "p"]
    assert graph.splits["train"].tolist() == [True, False, True, False]
    assert graph.feature_names == ("x",)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_names_the_graph_of_a_node(tmp_path: Path, suffix: str) -> None:
    edges = {"source": ["a", "c"], "target": ["b", "d"]}
    for column, expected in (
        (["s", "s", "r", "r"], [0, 0, 1, 1]),
        ([7, 7, -2, -2], [7, 7, -2, -2]),
    ):
        folder = write(
            tmp_path, suffix, edges, {"id": list("abcd"), "x": [1, 2, 3, 4], "tissue": column}
        )
        graph = read_graph(folder, groups="tissue")
        assert graph.groups.tolist() == expected
        assert graph.feature_names == ("x",)
    folder = write(tmp_path, suffix, edges, {"id": list("abcd"), "tissue": list("sssr")})
    told(["no edge between two groups"], read_graph, folder, groups="tissue")
    files = [folder / f"{stem}.{suffix}" for stem in ("edges", "nodes")]
    told(
        ["nodes.", "one graph", "a column tissue"],
        prepare,
        *files,
        out=tmp_path / "g.graph",
        groups="tissue",
    )


@pytest.mark.parametrize("kind", ["npy", "csr", "csc", "coo"])
def test_features_in_a_file_beside_the_node_table(tmp_path: Path, kind: str) -> None:
    values = np.array([[0, 2, 0], [1, 0, 0], [0, 0, 3], [0, 0, 4]], dtype=np.float64)
    path = tmp_path / f"features.{'npy' if kind == 'npy' else 'npz'}"
    if kind == "npy":
        np.save(path, values)
    else:
        sparse.save_npz(path, getattr(sparse, f"{kind}_matrix")(values))
    graph = by_both(write(tmp_path, "csv"), "csv", **CHOSEN, features=path)
    assert sparse.issparse(graph.features) == (kind != "npy")
    np.testing.assert_array_equal(
        graph.features.toarray() if kind != "npy" else graph.features, values
    )
    assert graph.feature_names == ("x0", "x1", "x2")
    assert (
        read_graph(tmp_path, **CHOSEN).feature_names == graph.feature_names
    )  # found in the folder
    assert read_graph(tmp_path, **CHOSEN, features=["x2"]).feature_names == ("x2",)
    told(["features.", 'features "x7"'], read_graph, tmp_path, **CHOSEN, features=["x7"])
    tabled(tmp_path / "nodes.csv", {"id": list("abc")})
    files = (tmp_path / "edges.csv", tmp_path / "nodes.csv")
    for read in (
        read_graph,
        lambda *tables, **names: prepare(*tables, out=tmp_path / "h.graph", **names),
    ):
        with pytest.raises(InputError):
            read(*files, source="from", target="to", features=path)


def test_what_is_no_sparse_matrix_is_told(tmp_path: Path) -> None:
    write(tmp_path, "csv")
    path = tmp_path / "m.npz"
    for arrays in (
        {"edges": np.zeros((2, 1), dtype=int)},
        {
            "format": b"csr",
            "shape": [4, 2],
            "data": [1.0],
            "indices": [9],
            "indptr": [0, 1, 1, 1, 1],
        },
        {
            "format": b"csr",
            "shape": [4, 2**40],
            "data": [1.0],
            "indices": [1],
            "indptr": [0, 1, 1, 1, 1],
        },
        {"format": b"dia", "shape": [4, 2], "data": [1.0]},
    ):
        np.savez(path, **arrays)
        told(["m.npz: ", "scipy.sparse.save_npz"], read_graph, tmp_path, **CHOSEN, features=path)


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        ({"id": "nid"}, ["nodes.csv: ", 'a column for id "nid"', '"new_id"']),
        ({"source": "start"}, ["edges.csv: ", 'a column for source "start"', '"from"']),
        ({"weight": "w"}, ["edges.csv: ", 'a column for weight "w"']),
        ({"ignore": "z"}, ["nodes.csv: ", 'a column to ignore "z"']),
        ({"features": ["x", "z"]}, ["nodes.csv: ", 'feature column "z"']),
        ({"features": "z"}, ["nodes.csv: ", 'feature column "z"']),
        ({"features": ["x", "m.npy"]}, ["features: ", "one file"]),
        ({"groups": "z"}, ["nodes.csv: ", 'a column of groups "z"']),
        ({"ignore": list(NODES)}, ["nodes.csv: ", "none that is not ignored"]),
    ],
    ids=str,
)
def test_a_column_that_is_not_there_is_told(
    tmp_path: Path, columns: dict[str, Any], parts: list[str]
) -> None:
    folder = write(tmp_path, "csv")
    told(parts, read_graph, folder, **{"ignore": ["row", "name"], **CHOSEN, **columns})


def test_columns_are_chosen_of_tables_only(tmp_path: Path) -> None:
    write(tmp_path, "csv")
    told(["id: ", "a node table"], read_graph, tmp_path / "edges.csv", id="new_id")
    read_graph(tmp_path, **CHOSEN, features="x")
    np.savez(tmp_path / "g.npz", edges=[[0], [1]])
    told(["id: ", "tables", "g.npz", '"new_id"'], read_graph, tmp_path / "g.npz", id="new_id")
