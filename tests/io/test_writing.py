"""What is written is read back as the same graph: in every format, as frames, and by PyG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sample_graphs import random_graph
from scipy import sparse
from test_faults import told

from infomax import DGI, Embeddings, Graph, read_graph
from infomax.arrays.sparsity import dense
from infomax.errors import InputWarning

NAMES = [
    "g.npz",
    "e.csv,n.csv",
    "e.tsv.gz,n.txt",
    "e.parquet,n.parquet",
    "e.csv,n.parquet",
    "tables",
]
IDS = np.array(
    ["b-2", "007", "é:ü", "a,b", 'q"q', " s", "-1", "<&>", *(f"n{row}" for row in range(32))],
    dtype=object,
)


def dressed(graph: Graph, ids: Any = IDS) -> Graph:
    """The graph with ids, text labels of which some are unknown, and a split."""
    kind = np.array(["", "p", "q, r"], dtype=object)[np.arange(40) % 3]
    feature_names = (
        "groups",
        "id",
        "label",
        "source",
        *graph.feature_names[4:],
    )  # as a bag of words has them
    marks = {"labels": {"kind": kind, **graph.labels}, "splits": {"train": np.arange(40) < 9}}
    return graph.replace(ids=ids, feature_names=feature_names, **marks)


def assert_same(graph_read: Graph, graph: Graph) -> None:
    """Assert that both are one graph; labels by their text."""
    assert graph_read.ids.tolist() == graph.ids.tolist()
    assert graph_read.feature_names == graph.feature_names
    assert sparse.issparse(graph_read.features) == sparse.issparse(graph.features)
    np.testing.assert_array_equal(dense(graph_read.features), dense(graph.features))
    np.testing.assert_array_equal(graph_read.adjacency.toarray(), graph.adjacency.toarray())
    assert {name: list(map(str, column)) for name, column in graph_read.labels.items()} == {
        name: list(map(str, column)) for name, column in graph.labels.items()
    }
    assert {name: mask.tolist() for name, mask in graph_read.splits.items()} == {
        name: mask.tolist() for name, mask in graph.splits.items()
    }
    groups = [
        None if either.groups is None else either.groups.tolist() for either in (graph_read, graph)
    ]
    assert groups[0] == groups[1]


def sparse_graph(**changes: Any) -> Graph:
    """A graph whose features are stored sparse by every reader."""
    graph = random_graph(**changes)
    features = graph.features.toarray() * (np.arange(12) == 3)
    return dressed(graph.replace(features=sparse.csr_array(features)))


@pytest.mark.parametrize("name", [*NAMES, "g.graph"])
@pytest.mark.parametrize(
    "changes", [{"weighted": True}, {"directed": True}, {}], ids=["weighted", "directed", "plain"]
)
def test_a_written_graph_is_read_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, changes: dict[str, bool]
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = (
        sparse_graph(**changes)
        if changes
        else dressed(random_graph(dense=True), np.arange(40)[::-1].copy())
    )
    if name.endswith(".npz") or name.endswith(".graph"):
        graph.save(name)
        graph_read = read_graph(name).loaded()
    else:
        graph.save(name)
        graph_read = read_graph(name, directed=graph.directed)
    assert_same(graph_read, graph)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", NAMES)
def test_many_graphs_and_degree_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = Graph.from_arrays([[0, 1, 3], [1, 2, 4]], ids=list("abcde"), groups=[7, 7, 7, 2, 2])
    graph.save(name)
    assert_same(read_graph(name), graph)
    if name == "tables":
        assert (
            Path("tables/nodes.csv").read_text().startswith('"id","graph:name"\n"a",7\n')
        )  # degrees are counted anew


def test_lists_are_columns_of_lists_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = dressed(random_graph(dense=True))
    names = ("x", *(f"v[{index}]" for index in range(11)))
    several = np.eye(40, 3, dtype=np.uint8)
    graph = graph.replace(feature_names=names, labels={"many": several})
    graph.save("e.parquet,n.parquet")
    graph_read = read_graph("e.parquet,n.parquet")
    assert_same(graph_read, graph)
    assert graph_read.labels["many"].dtype == np.uint8
    assert pa.parquet.read_schema("n.parquet").names == [
        "id",
        "x",
        "v",
        "label:many",
        "split:train",
    ]
    assert read_graph("e.parquet,n.parquet", features="v").feature_names == names[1:]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("edges.csv", ["an edge table and a node table", "edges.csv,nodes.csv"]),
        ("g.gml", ['the extension ".gml"', "NAME.graph"]),
        ("g.graphml", ['the extension ".graphml"', "NAME.graph"]),
        ("e.csv,n.xls", ["n.xls", 'the extension ".xls"']),
        ("e.csv,e.csv", ["two files"]),
        ("there.graph", ["a place for a new folder"]),
        ("missing/g.npz", ["No such file or directory"]),
    ],
)
def test_a_name_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, parts: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.graph").mkdir()
    told(parts, random_graph().save, name)
    assert [path.name for path in tmp_path.iterdir()] == ["there.graph"]


def test_what_a_table_cannot_hold_is_refused(tmp_path: Path) -> None:
    graph = random_graph(dense=True)
    named = graph.replace(feature_names=("split:x", *graph.feature_names[1:]))
    told(["features: ", "split:x", ".npz"], named.save, tmp_path / "tables")
    told(["an .npz", "held out"], graph.hold_out_edges(0.1).save, tmp_path / "tables")
    assert not list(tmp_path.iterdir())
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "edges.tsv").write_text("")
    told(["other tables", "edges.tsv"], graph.save, tmp_path / "tables")
    DGI(2, epochs=0).fit(graph).save(tmp_path / "run")
    told(["a run folder", "graph.npz"], read_graph, tmp_path / "run")


def frames(kind: str, edges: dict[str, Any], nodes: dict[str, Any]) -> tuple[Any, Any]:
    made = pa.table if kind == "arrow" else pytest.importorskip(kind).DataFrame
    return made(edges), made(nodes)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
class TestFrames:
    """The three kinds of frame."""

    def test_a_graph_of_frames_is_that_of_tables(self, tmp_path: Path, kind: str) -> None:
        edges = {"from": ["c", "b"], "to": ["a", "c"], "times": [2.0, 0.5]}
        nodes = {
            "key": list("abcd"),
            "x": [1.0, -2, 3.5, 0],
            "kind": ["p", None, "q", "p"],
            "name": list("ABCD"),
        }
        columns: dict[str, Any] = {
            "source": "from",
            "target": "to",
            "weight": "times",
            "id": "key",
            "labels": "kind",
        }
        pa.parquet.write_table(pa.table(edges), tmp_path / "edges.parquet")
        pa.parquet.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
        table = read_graph(tmp_path, ignore="name", **columns)
        assert_same(Graph.from_frames(*frames(kind, edges, nodes), ignore="name", **columns), table)
        for matrix in (np.eye(4), sparse.eye_array(4, format="csr")):
            graph = Graph.from_frames(*frames(kind, edges, nodes), features=matrix, **columns)
            assert graph.feature_names == ("x0", "x1", "x2", "x3")
            np.testing.assert_array_equal(dense(graph.features), np.eye(4))
        assert_same(
            Graph.from_frames(*frames(kind, edges, nodes), **columns),
            read_graph(tmp_path, **columns),
        )

    def test_there_and_back(self, kind: str) -> None:
        pytest.importorskip("pyarrow" if kind == "arrow" else kind)
        for graph in (
            sparse_graph(weighted=True),
            dressed(random_graph(dense=True), np.arange(40)),
        ):
            assert_same(Graph.from_frames(*graph.to_frames(kind)), graph)
        vectors = Embeddings(np.random.default_rng(0).normal(size=(40, 3)), IDS)
        frame = vectors.to_frame(kind)
        columns = frame.column_names if kind == "arrow" else list(frame.columns)
        assert columns == ["id", "d0", "d1", "d2"]
        back = Embeddings.from_frame(frame)
        np.testing.assert_array_equal(back.vectors, vectors.vectors)
        assert back.ids.tolist() == IDS.tolist()


def test_categories_lists_and_an_index() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    categories = polars.Series(["p", None, "p"], dtype=polars.Categorical)
    nodes = polars.DataFrame({"id": [1, 2, 3], "v": [[1.0, 0], [0, 1], [1, 1]], "kind": categories})
    graph = Graph.from_frames(polars.DataFrame({"u": [1, 2], "v": [2, 3]}), nodes, labels="kind")
    assert (graph.feature_names, graph.labels["kind"].tolist()) == (
        ("v[0]", "v[1]"),
        ["p", "", "p"],
    )
    edges = pandas.DataFrame({"source": pandas.Categorical(["a", "b"]), "target": ["b", "c"]})
    nodes = pandas.DataFrame({"x": [1, 2, 3]}, index=pandas.Index(["c", "a", "b"], name="id"))
    assert Graph.from_frames(edges, nodes[nodes.x > 0]).ids.tolist() == ["c", "a", "b"]


def test_other_frames_are_refused() -> None:
    told(["edges: ", "a frame of pandas", "list"], Graph.from_frames, [[0, 1]])
    told(["library: ", "polars", "excel"], Embeddings(np.eye(2), np.arange(2)).to_frame, "excel")
    told(
        ["features: ", "a node frame"],
        Graph.from_frames,
        pa.table({"u": [0], "v": [1]}),
        features=np.eye(2),
    )


def test_pyg_and_back() -> None:
    pyg = pytest.importorskip("torch_geometric.data")
    torch = pytest.importorskip("torch")
    graph = sparse_graph(weighted=True)
    graph_read = Graph.from_pyg(graph.to_pyg())
    y = np.array([{"": -1, "p": 0, "q, r": 1}[kind] for kind in graph.labels["kind"]])
    kept = graph.replace(ids=np.arange(40), labels={"y": y}, feature_names=graph_read.feature_names)
    assert_same(graph_read, kept)
    masks = torch.eye(3, dtype=torch.bool).repeat(1, 2)
    data = pyg.Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]]), train_mask=masks)
    assert Graph.from_pyg(data, split=4).splits["train"].tolist() == [False, True, False]
    told(["split=", "from 0 to 5", "train_mask"], Graph.from_pyg, data)
    data = pyg.Data(
        x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]]), edge_kind=torch.ones(1, 4)
    )
    with pytest.warns(InputWarning, match='edge attributes that are not used: "edge_kind"'):
        Graph.from_pyg(data)


def test_a_folder_of_graphs_is_told_to_be_one_table_of_nodes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        random_graph(n=20, f=3).save(tmp_path / "many" / name)
    told(["many: ", "folders of several graphs", "--groups COLUMN"], read_graph, tmp_path / "many")
