"""Nodes that arrive later: attached to the known graph they are what they are in the whole graph."""

from __future__ import annotations

import csv
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sample_graphs import random_graph
from scipy import sparse

from infomax import DGI, Graph, InputError, read_graph
from infomax.io.graph_folder import finish, write_arrays
from infomax.io.npz import write_npz
from infomax.parts.encoders import GCN, SkipMeanPool
from infomax.training import vectors as engine
from infomax.views import NEIGHBOURS

Apart = type("Apart", (SkipMeanPool,), {"rule": NEIGHBOURS})
NEW = np.isin(np.arange(40), [3, 8, 9, 20, 31, 39])  # the last has no edge


def write_tables(folder, suffix, edges, nodes):
    """Tables of columns, ``name -> values``."""
    folder.mkdir(exist_ok=True)
    for name, columns in {"edges": edges, "nodes": nodes}.items():
        if columns and suffix == "parquet":
            parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
        elif columns:
            with (folder / f"{name}.csv").open("w", newline="") as file:
                csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return folder


def write_new(folder, suffix, whole, features=True):
    """What arrives later: the nodes of NEW and every edge that ends in one."""
    coo = sparse.coo_array(whole.adjacency if whole.directed else sparse.triu(whole.adjacency))
    kept = NEW[coo.row] | NEW[coo.col]
    edges = {"source": whole.ids[coo.row[kept]], "target": whole.ids[coo.col[kept]]}
    if whole.weighted:
        edges["weight"] = coo.data[kept]
    values = (
        whole.features[NEW].toarray() if sparse.issparse(whole.features) else whole.features[NEW]
    )
    columns = zip(whole.feature_names, values.T, strict=True) if features else ()
    return write_tables(
        folder, suffix, edges, {"id": whole.ids[NEW], **dict(columns), "comment": ["?"] * NEW.sum()}
    )


def check_law(folder, suffix, whole, known, features=True, **settings):
    model = DGI(dim=8, epochs=2, **settings).fit(known)
    grown = read_graph(write_new(folder, suffix, whole, features), attach_to=known)
    assert grown.ids.tolist() == [*known.ids, *whole.ids[NEW]]
    assert grown.ids.dtype == known.ids.dtype
    assert grown.splits["new"].tolist() == [False] * known.num_nodes + [True] * NEW.sum()
    assert grown.num_edges == whole.num_edges
    assert grown.directed == whole.directed
    assert type(grown.features) is type(known.features)
    expected, found = model.transform(whole), model.transform(grown)
    new = found.part(grown.splits["new"])
    assert new.ids.tolist() == whole.ids[NEW].tolist()
    np.testing.assert_allclose(new.vectors, expected.vectors[NEW], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        found.vectors[: known.num_nodes], expected.vectors[~NEW], rtol=1e-5, atol=1e-6
    )
    assert not np.allclose(
        expected.vectors[~NEW], model.transform(known).vectors, atol=1e-4
    )  # the edges matter


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("preset", ["whole-graph", "mean-pool"])
def test_a_node_taken_out_and_attached_has_the_vector_it_had(tmp_path, preset, dense, suffix):
    whole = random_graph(dense=dense)
    # Scaling by columns centres dense features only, so it tells one from the other.
    check_law(tmp_path, suffix, whole, whole.part(~NEW), preset=preset, scale="columns")


@pytest.mark.parametrize("directed", [True, False], ids=["directed", "undirected"])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "unweighted"])
def test_arrows_weights_and_text_ids(tmp_path, directed, weighted):
    whole = random_graph(weighted=weighted, directed=directed)
    whole = whole.replace(ids=np.array([f"n{row}" for row in range(40)], dtype=object))
    check_law(tmp_path, "csv", whole, whole.part(~NEW))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_degree_features_are_those_of_the_grown_graph(tmp_path, suffix):
    whole = Graph.from_scipy(random_graph().adjacency, "degrees")
    known = Graph.from_scipy(whole.part(~NEW).adjacency, "degrees", ids=whole.ids[~NEW])
    check_law(tmp_path, suffix, whole, known, features=False)
    # Without a node table the new nodes are those of the edges; the one without an edge is not among them.
    grown = read_graph(tmp_path / f"edges.{suffix}", attach_to=known)
    assert set(grown.ids[grown.splits["new"]].tolist()) == set(whole.ids[NEW].tolist()) - {39}
    assert (np.diff(grown.adjacency.indptr).max(), grown.num_edges) == (
        np.diff(whole.adjacency.indptr).max(),
        whole.num_edges,
    )


@pytest.mark.parametrize(
    "encoder",
    [GCN, partial(GCN, layers=2), SkipMeanPool, Apart],
    ids=["GCN", "deep", "skip", "no loops"],
)
@pytest.mark.parametrize(
    ("shape", "features", "text"),
    [({}, True, False), ({"weighted": True}, True, True), ({"directed": True}, True, True), ({}, "degrees", False),
     ({"directed": True, "weighted": True}, True, False), ({"directed": True}, "degrees", False),
     ({"weighted": True}, "positions", False), ({"directed": True}, "positions", True)],
    ids=["plain", "weighted", "directed", "degrees", "both", "directed degrees", "positions", "directed positions"],
)  # fmt: skip
def test_new_nodes_of_a_graph_folder_have_the_vectors_they_have_in_memory(
    tmp_path, shape, features, text, encoder, monkeypatch
):
    whole = random_graph(dense=True, **shape)
    made = isinstance(features, str)
    if made:
        whole = Graph.from_scipy(whole.adjacency, features, directed=whole.directed)
    whole = whole.replace(
        ids=np.array([f"n{row}" for row in range(40)], dtype=object) if text else whole.ids
    )
    known = whole.part(~NEW)
    if made:
        known = Graph.from_scipy(known.adjacency, features, directed=known.directed, ids=known.ids)
    new = write_new(tmp_path / "new", "parquet" if text else "csv", whole, not made)
    if not text:  # edges that the known graph has, or has not, between known nodes
        rows = [
            [known.ids[u], known.ids[v], 0.5][: 3 if whole.weighted else 2]
            for u, v in ((0, 1), (5, 9))
        ]
        edge = np.array(known.adjacency.nonzero())[:, 3]
        rows.append([*known.ids[edge], 2.5][: 3 if whole.weighted else 2])
        with (new / "edges.csv").open("a", newline="") as file:
            csv.writer(file).writerows(rows)
    (tmp_path / "g.graph").mkdir()
    finish(tmp_path / "g.graph", write_arrays(known, tmp_path / "g.graph"))
    disk = Graph.open(tmp_path / "g.graph")
    model = DGI(dim=8, encoder=encoder, preset="batches", epochs=2).fit(disk)
    mine, theirs = read_graph(new, attach_to=disk), read_graph(new, attach_to=disk.loaded())
    assert (mine.adjacency != theirs.adjacency).nnz == 0
    assert (mine.num_nodes, mine.num_edges, mine.weighted) == (
        theirs.num_nodes,
        theirs.num_edges,
        theirs.weighted,
    )
    assert mine.adjacency.nnz == theirs.adjacency.nnz
    assert dict(mine.dropped) == dict(theirs.dropped)
    assert mine.degrees().tolist() == theirs.degrees().tolist()
    assert mine.ids.tolist() == theirs.ids.tolist()
    rows = np.flatnonzero(mine.splits["new"])
    for vectors, share in (
        ("paper", 9),
        ("recipe", 9),
        ("recipe", 0),
    ):  # by what is around them, or all
        monkeypatch.setattr(engine, "MOST_NODES_AROUND", share)
        expected = model.transform(theirs, vectors=vectors).part(theirs.splits["new"])
        found = model.transform(mine, vectors=vectors, rows=rows)
        assert found.ids.tolist() == expected.ids.tolist()
        np.testing.assert_allclose(found.vectors, expected.vectors, rtol=1e-4, atol=2e-5)


def test_a_graph_folder_with_new_nodes_is_not_saved(tmp_path):
    (tmp_path / "g.graph").mkdir()
    finish(tmp_path / "g.graph", write_arrays(KNOWN, tmp_path / "g.graph"))
    grown = attached(tmp_path / "new", known=Graph.open(tmp_path / "g.graph"))
    with pytest.raises(
        InputError, match=r"attached nodes\. Add them to the tables.*infomax prepare"
    ):
        DGI(dim=2, epochs=1).fit(grown, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


KNOWN = Graph.from_arrays(
    [[0, 1], [1, 2]], np.eye(3, 2), ids=["a", "b", "c"], feature_names=["x", "y"]
)
EDGES, NODES = (
    {"source": ["n", "n"], "target": ["a", "m"]},
    {"id": ["m", "n"], "x": [1, 2], "y": [3, 4]},
)


def attached(folder, edges=EDGES, nodes=NODES, known=KNOWN, suffix="csv", **options):
    return read_graph(write_tables(folder, suffix, edges, nodes), attach_to=known, **options)


def test_known_first_then_new_in_the_order_of_the_table(tmp_path):
    grown = attached(tmp_path)
    assert grown.ids.tolist() == ["a", "b", "c", "m", "n"]
    assert grown.features.tolist() == [[1, 0], [0, 1], [0, 0], [1, 3], [2, 4]]
    joined = {frozenset(grown.ids[[u, v]]) for u, v in zip(*grown.adjacency.nonzero(), strict=True)}
    assert joined == {frozenset(pair) for pair in ("ab", "bc", "na", "nm")}


@pytest.mark.parametrize("weights", [{}, {"weight": [0.5, 2]}], ids=["plain", "weighted"])
def test_an_edge_between_known_nodes_is_one_more_edge_and_a_repeated_one_is_none(tmp_path, weights):
    KNOWN.save(tmp_path / "g.graph")
    for name, known in (("memory", KNOWN), ("folder", Graph.open(tmp_path / "g.graph"))):
        grown = attached(
            tmp_path / name, {"source": ["a", "b"], "target": ["c", "a"]} | weights, known=known
        )
        matrix = grown.loaded().adjacency
        assert (grown.num_edges, grown.weighted, grown.dropped["duplicates"]) == (
            3,
            bool(weights),
            1,
        )
        assert (grown.adjacency.nnz, grown.degrees().tolist()) == (6, [2, 2, 2, 0, 0])
        assert [matrix[0, 1], matrix[1, 0], matrix[0, 2]] == ([3, 3, 0.5] if weights else [1, 1, 1])


def test_an_id_and_its_text_are_one(tmp_path):
    numbered = {"source": [7, 7], "target": [8, 7]}, {"id": [7, 8], "x": [1, 2], "y": [3, 4]}
    assert attached(tmp_path / "text", *numbered).ids.tolist() == ["a", "b", "c", "7", "8"]
    integers = KNOWN.replace(ids=np.arange(3))
    assert attached(tmp_path / "both", *numbered, integers).ids.tolist() == [0, 1, 2, 7, 8]
    grown = attached(tmp_path / "integers", {**EDGES, "target": [0, "m"]}, known=integers)
    assert grown.ids.tolist() == ["0", "1", "2", "m", "n"]
    assert grown.adjacency[0, 4] == 1


REFUSED = {
    "known id": (
        {"nodes": {"id": ["m", "b"], "x": [1, 2], "y": [3, 4]}},
        ["nodes.csv, line 3: ", '"b", already row 2'],
    ),
    "id in neither": (
        {"edges": {"source": ["n", "n"], "target": ["a", "z"]}},
        ['edges.csv, line 3, column "target": ', "of the known graph, or listed in", 'found "z"'],
    ),
    "missing column": (
        {"nodes": {"id": ["m", "n"], "x": [1, 2]}},
        ["nodes.csv: ", 'feature column "y"'],
    ),
    "no features": ({"nodes": {"id": ["m", "n"]}}, ["nodes.csv: ", 'feature column "x", "y"']),
    "no node table": (
        {"nodes": {}},
        ["edges.csv: ", "a node table beside it", "only the edge table"],
    ),
    "no new node": (
        {"edges": {"source": ["a"], "target": ["c"]}, "nodes": {}},
        ["edges.csv: ", "at least one new node"],
    ),
    "no header": (
        {"edges": {"n": ["m"], "a": ["b"]}},
        ["edges.csv, line 1: ", "a header line", 'two node ids, "n"'],
    ),
    "no weights": (
        {"known": Graph.from_arrays([[0], [1]], np.eye(2), weight=[2.5], feature_names=["x", "y"])},
        ["edges.csv: ", 'a column "weight"'],
    ),
    "several graphs": (
        {"known": KNOWN.replace(groups=np.zeros(3, dtype=np.int64))},
        ["known graph: ", "groups"],
    ),
    "labels": ({"labels": "kind"}, ["labels: ", 'found "kind"']),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_told(tmp_path, name):
    options, parts = REFUSED[name]
    with pytest.raises(InputError) as caught:
        attached(tmp_path, **options)
    assert [part for part in parts if part not in str(caught.value)] == [], str(caught.value)


def test_rows_of_parquet_are_told_by_number(tmp_path):
    with pytest.raises(
        InputError, match=r'nodes\.parquet, row 1: .* found "a", already row 1 of the known graph'
    ):
        attached(tmp_path, nodes={"id": ["a"], "x": [1.0], "y": [2.0]}, suffix="parquet")


def test_a_whole_graph_is_not_attached(tmp_path):
    write_npz(KNOWN, tmp_path / "g.npz")
    with pytest.raises(
        InputError, match=r"g\.npz: expected tables of new nodes .*\.parquet\), found a whole graph"
    ):
        read_graph(tmp_path / "g.npz", attach_to=KNOWN)


def test_several_types_are_not_attached_to_one(tmp_path):
    (tmp_path / "edges").mkdir()
    (tmp_path / "edges" / "author.writes.paper.csv").write_text("author,paper\nx,y\n")
    with pytest.raises(
        InputError, match="tables of one type of nodes, as the known graph has, found several types"
    ):
        read_graph(tmp_path, attach_to=KNOWN)
