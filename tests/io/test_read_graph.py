"""The same small graph through every checks."""

import csv
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse

from infomax.arrays.sparsity import dense
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.graphs.reading import read_graph
from infomax.io import sources
from infomax.io.npz import write_npz
from infomax.io.reading import read_labels

EDGES = "source,target,weight\nc,a,2\nb,c,0.5\n"
NODES = "id,x,kind,y\na,1,p,0.25\nb,-2,,1e-3\nc,3.5,q,7\nd,0,p,0\n"
ADJACENCY = np.array([[0, 0, 2, 0], [0, 0, 0.5, 0], [2, 0.5, 0, 0], [0, 0, 0, 0]], dtype=np.float32)


def put(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


def check(graph: Graph) -> None:
    assert graph.ids.tolist() == ["a", "b", "c", "d"]
    assert graph.feature_names == ("x", "y")
    assert graph.features.dtype == np.float32
    assert graph.features.tolist() == np.float32([[1, 0.25], [-2, 1e-3], [3.5, 7], [0, 0]]).tolist()
    assert graph.labels["kind"].tolist() == ["p", "", "q", "p"]
    assert graph.labels["kind"].dtype == object
    assert graph.adjacency.toarray().tolist() == ADJACENCY.tolist()


def test_two_csv_tables_by_every_name(tmp_path: Path) -> None:
    edges, nodes = put(tmp_path / "edges.csv", EDGES), put(tmp_path / "nodes.csv", NODES)
    check(read_graph(edges, nodes, labels="kind"))
    check(read_graph(str(edges), str(nodes), labels=["kind"]))
    check(read_graph(f"{edges},{nodes}", labels=["kind"]))
    check(read_graph(f"{edges}, {nodes}", labels=["kind"]))
    check(read_graph(f"{tmp_path}/", labels=["kind"]))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace("\n", "\n\n") + "\n\n",
        lambda text: text.rstrip("\n"),
        lambda text: text.replace(",", ", "),
        lambda text: "\n".join(
            ",".join(f'"{cell}"' for cell in line.split(",")) for line in text.splitlines()
        ),
        lambda text: text.replace("source,target,weight", "Source,Target,Weight").replace(
            "id,", "ID,"
        ),
    ],
    ids=["BOM", "CRLF", "CR", "blank lines", "no last line end", "spaced", "quoted", "capitals"],
)
def test_spellings_of_csv(tmp_path: Path, change: Callable[[str], str]) -> None:
    put(tmp_path / "edges.csv", change(EDGES))
    put(tmp_path / "nodes.csv", change(NODES))
    check(read_graph(tmp_path, labels="kind"))


@pytest.mark.parametrize("suffix", ["tsv", "txt", "TSV"])
def test_tabs(tmp_path: Path, suffix: str) -> None:
    edges, nodes = (
        put(tmp_path / f"{name}.{suffix}", text.replace(",", "\t"))
        for name, text in (("edges", EDGES), ("nodes", NODES))
    )
    check(read_graph(edges, nodes, labels="kind"))


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_parquet(tmp_path: Path, kind: pa.DataType) -> None:
    edges = {
        "weight": [2, 0.5],
        "target": pa.array(["a", "c"], kind),
        "source": pa.array(["c", "b"], kind),
    }
    nodes = {
        "x": [1.0, -2, 3.5, 0],
        "id": pa.array(["a", "b", "c", "d"], kind),
        "kind": pa.array(["p", None, "q", "p"], kind),
        "y": pa.array([0.25, 1e-3, 7, 0], pa.float32()),
        "__index_level_0__": [4, 5, 6, 7],
    }
    parquet.write_table(pa.table(edges), tmp_path / "edges.parquet", row_group_size=1)
    parquet.write_table(pa.table(nodes), tmp_path / "nodes.parquet", row_group_size=3)
    check(read_graph(tmp_path, labels="kind"))


def test_parquet_numbers_of_every_type(tmp_path: Path) -> None:
    types = [pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.decimal128(21, 2)]
    columns = {str(kind): pa.array([1, 0]).cast(kind) for kind in types}
    parquet.write_table(
        pa.table({"n": pa.array([7, -3], pa.int32()), **columns}), tmp_path / "nodes.parquet"
    )
    parquet.write_table(pa.table({"n": [7], "m": [-3]}), tmp_path / "edges.parquet")
    graph = read_graph(tmp_path)
    assert graph.features.tolist() == [[1] * len(types), [0] * len(types)]
    assert graph.ids.dtype == np.int64
    assert graph.ids.tolist() == [7, -3]


def test_integer_labels_are_text_in_both_formats(tmp_path: Path) -> None:
    edges = put(tmp_path / "edges.csv", "source,target\n1,2\n")
    parquet.write_table(pa.table({"id": [1, 2], "y": [3, None]}), tmp_path / "nodes.parquet")
    put(tmp_path / "nodes.csv", "id,y\n1,3\n2,\n")
    for nodes in ("nodes.csv", "nodes.parquet"):
        assert read_graph(edges, tmp_path / nodes, labels="y").labels["y"].tolist() == ["3", ""]


def test_a_label_that_is_no_number_is_unknown(tmp_path: Path) -> None:
    edges = put(tmp_path / "edges.csv", "source,target\n1,2\n")
    parquet.write_table(
        pa.table({"id": [1, 2, 3], "y": [0.5, float("nan"), None]}), tmp_path / "nodes.parquet"
    )
    assert read_graph(edges, tmp_path / "nodes.parquet", labels="y").labels["y"].tolist() == [
        "0.5",
        "",
        "",
    ]


def test_a_csv_has_no_types_and_goes_with_either(tmp_path: Path) -> None:
    put(tmp_path / "edges.csv", "source,target\n1,2\n")
    parquet.write_table(pa.table({"id": ["1", "2"]}), tmp_path / "text.parquet")
    parquet.write_table(pa.table({"id": [1, 2]}), tmp_path / "integer.parquet")
    assert read_graph(tmp_path / "edges.csv", tmp_path / "text.parquet").ids.tolist() == ["1", "2"]
    assert read_graph(tmp_path / "edges.csv", tmp_path / "integer.parquet").ids.tolist() == [1, 2]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_edges_alone_give_nodes_by_first_appearance(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"edges.{suffix}"
    pairs = [(9, 4), (7, 9), (4, 1), (1, 9)]
    if suffix == "csv":
        put(path, "u,v\n" + "".join(f"{u},{v}\n" for u, v in pairs))
    else:
        parquet.write_table(
            pa.table({"u": [u for u, _ in pairs], "v": [v for _, v in pairs]}), path
        )
    graph = read_graph(path, features="degrees")
    assert graph.ids.tolist() == [9, 4, 7, 1]
    assert graph.adjacency.toarray().tolist() == [
        [0, 1, 1, 1],
        [1, 0, 0, 1],
        [1, 0, 0, 0],
        [1, 1, 0, 0],
    ]
    # one-hot of floor(log2(degree + 1)): degrees 3, 2, 1, 2
    assert graph.features.toarray().argmax(axis=1).tolist() == [2, 1, 1, 1]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_no_edges_and_no_features(tmp_path: Path, suffix: str) -> None:
    if suffix == "csv":
        put(tmp_path / "edges.csv", "source,target\n")
        put(tmp_path / "nodes.csv", "id,kind\na,p\nb,q\n")
    else:
        empty = pa.array([], pa.string())
        parquet.write_table(
            pa.table({"source": empty, "target": empty}), tmp_path / "edges.parquet"
        )
        parquet.write_table(
            pa.table({"id": ["a", "b"], "kind": ["p", "q"]}), tmp_path / "nodes.parquet"
        )
    graph = read_graph(tmp_path, labels="kind")
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (2, 0, 256)
    assert not graph.features.any()
    assert graph.labels["kind"].tolist() == ["p", "q"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["1", "-2", "30"], [1, -2, 30]),
        (["1", "007", "3"], ["1", "007", "3"]),
        (["1", "+2"], ["1", "+2"]),
        (["1", "2.0"], ["1", "2.0"]),
        (["1", "1_0"], ["1", "1_0"]),
        (["9223372036854775807", "0"], [2**63 - 1, 0]),
        (["9223372036854775808", "0"], ["9223372036854775808", "0"]),
        (["1", "-0"], ["1", "-0"]),
        (["1", "9" * 5000], ["1", "9" * 5000]),
    ],
)
def test_integer_ids_are_integers_only_where_nothing_is_lost(
    tmp_path: Path, written: list[str], expected: list
) -> None:
    edges = put(tmp_path / "edges.csv", f"source,target\n{written[0]},{written[1]}\n")
    nodes = put(tmp_path / "nodes.csv", "id\n" + "\n".join(written))
    graph = read_graph(edges, nodes)
    assert graph.ids.tolist() == expected
    assert graph.num_edges == 1
    assert read_graph(edges).ids.tolist() == expected[:2]


def test_directed_tables_keep_their_arrows(tmp_path: Path) -> None:
    put(tmp_path / "edges.csv", EDGES)
    put(tmp_path / "nodes.csv", NODES)
    graph = read_graph(tmp_path, labels="kind", directed=True)
    expected = np.zeros((4, 4))
    expected[2, 0], expected[1, 2] = 2, 0.5
    assert graph.directed
    assert graph.adjacency.toarray().tolist() == expected.tolist()


def test_other_columns_of_edges_are_left_alone(tmp_path: Path) -> None:
    path = put(tmp_path / "edges.csv", "since,target,weight,source\nMay,b,3,a\n")
    graph = read_graph(path)
    assert graph.ids.tolist() == ["a", "b"]
    assert graph.adjacency.toarray().tolist() == [[0, 3], [3, 0]]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(("share", "kept_sparse"), [(0.02, True), (0.3, False)])
def test_mostly_zero_features_are_sparse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, share: float, kept_sparse: bool
) -> None:
    rng = np.random.default_rng(0)
    # Several blocks, a dense one among sparse ones or the other way round.
    monkeypatch.setattr(sources, "CELLS_PER_BLOCK", 20_000)
    values = np.where(rng.random((1000, 200)) < share, rng.integers(1, 9, (1000, 200)), 0)
    values[:50] = 1 if kept_sparse else 0
    names = [f"w{column}" for column in range(200)]
    if suffix == "csv":
        rows = [f"{row}," + ",".join(map(str, cells)) for row, cells in enumerate(values.tolist())]
        put(tmp_path / "nodes.csv", "\n".join([",".join(["id", *names]), *rows]))
    else:
        columns = {name: values[:, at] for at, name in enumerate(names)}
        parquet.write_table(
            pa.table({"id": np.arange(1000), **columns}), tmp_path / "nodes.parquet"
        )
    put(tmp_path / "edges.csv", "source,target\n0,1\n")
    features = read_graph(tmp_path).features
    assert sparse.issparse(features) == kept_sparse
    assert features.dtype == np.float32
    assert np.array_equal(features.toarray() if kept_sparse else features, values)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_is_the_same_however_many_rows_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    rng = np.random.default_rng(0)
    ids = [f"n{row}" for row in range(20)]
    ends = {name: rng.choice(ids, 50) for name in ("source", "target")}
    tables = {
        "edges": pd.DataFrame({**ends, "weight": rng.integers(1, 9, 50)}),
        "nodes": pd.DataFrame(
            {"id": ids, "x": rng.random(20), "kind": rng.choice(["p", ""], 20), "split:test": 1}
        ),
    }
    for name, table in tables.items():
        path = tmp_path / f"{name}.{suffix}"
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path, index=False)

    def read() -> tuple[Graph, Graph]:
        return read_graph(tmp_path, labels="kind"), read_graph(tmp_path / f"edges.{suffix}")

    whole = read()
    monkeypatch.setattr(sources, "ROWS_PER_BLOCK", 3)
    for graph, other in zip(whole, read(), strict=True):
        assert graph.ids.tolist() == other.ids.tolist()
        assert (graph.adjacency != other.adjacency).nnz == 0
        assert np.array_equal(dense(graph.features), dense(other.features))
        for mine, others in ((graph.labels, other.labels), (graph.splits, other.splits)):
            assert {name: column.tolist() for name, column in mine.items()} == {
                name: column.tolist() for name, column in others.items()
            }


def test_named_features_in_the_files_order_and_nothing_else(tmp_path: Path) -> None:
    put(tmp_path / "edges.csv", EDGES)
    put(tmp_path / "nodes.csv", NODES)
    columns = {
        "id": ["a", "b", "c", "d"],
        "x": [1, -2, 3.5, 0],
        "kind": ["p", "", "q", "p"],
        "y": [0.25, 1e-3, 7, 0],
    }
    parquet.write_table(pa.table(columns), tmp_path / "nodes.parquet")
    origin = networkx.Graph()
    for row in range(4):
        origin.add_node(
            columns["id"][row], **{name: columns[name][row] for name in ("x", "kind", "y")}
        )
    networkx.write_graphml(origin, tmp_path / "g.graphml")
    for source in (("edges.csv", "nodes.csv"), ("edges.csv", "nodes.parquet"), ("g.graphml",)):
        paths = [tmp_path / name for name in source]
        graph = read_graph(*paths, features=["y", "x"])
        assert graph.feature_names == ("x", "y")
        assert (
            graph.features.tolist()
            == np.float32([[1, 0.25], [-2, 1e-3], [3.5, 7], [0, 0]]).tolist()
        )
        assert graph.labels == {}
        assert read_graph(*paths, features=["degree 0-0"]).num_features == 32
    with pytest.raises(
        InputError,
        match=r'nodes\.csv: expected a feature column "z", found the columns "x", "kind", "y"',
    ):
        read_graph(tmp_path / "edges.csv", tmp_path / "nodes.csv", features=["x", "z"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_labels_of_a_table_that_holds_other_text(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"nodes.{suffix}"
    if suffix == "csv":
        put(path, "name,id,kind\nAnn,1,p\nBob,2,\n")
    else:
        parquet.write_table(
            pa.table({"name": ["Ann", "Bob"], "id": [1, 2], "kind": ["p", None]}), path
        )
    ids, labels = read_labels(path, ["kind"], None, None)
    assert dict(zip(map(str, ids), labels["kind"], strict=True)) == {"1": "p", "2": ""}
    with pytest.raises(
        InputError, match=r'a label column "class", found the columns "name", "kind"'
    ):
        read_labels(path, ["class"], None, None)
    with pytest.raises(InputError, match="nothing of that name"):
        read_labels(tmp_path / "missing.csv", ["kind"], None, None)


def test_graphml(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    for kind in (networkx.Graph, networkx.DiGraph):
        origin = kind()
        for name, x, label, y in [
            ("a", 1, "p", 0.25),
            ("b", -2, "", 1e-3),
            ("c", 3.5, "q", 7),
            ("d", 0, "p", 0),
        ]:
            origin.add_node(name, x=float(x), y=float(y), kind=label)
        origin.add_edge("c", "a", weight=2.0)
        origin.add_edge("b", "c", weight=0.5)
        networkx.write_graphml(origin, path)
        check(read_graph(path, labels="kind", directed=False))
        directed = read_graph(path, labels="kind", directed=True)
        arrows = directed.adjacency.toarray()
        # The edge of an undirected file runs both ways even where arrows are kept.
        assert (arrows[2, 0], arrows[0, 2]) == ((2, 0) if kind is networkx.DiGraph else (2, 2))
        with pytest.raises(InputError, match=r"g\.graphml: .*colour"):
            read_graph(path, labels="colour")


def test_npz(tmp_path: Path) -> None:
    put(tmp_path / "edges.csv", EDGES)
    put(tmp_path / "nodes.csv", NODES)
    write_npz(read_graph(tmp_path, labels="kind"), tmp_path / "g.npz")
    check(read_graph(tmp_path / "g.npz", labels="kind"))
    with pytest.raises(
        InputError, match=r'g\.npz: expected labels named "colour", found the labels kind'
    ):
        read_graph(tmp_path / "g.npz", labels="colour")


IDS = st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=8, unique=True)


def write_csv(path: Path, rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t").writerows(rows)


@settings(max_examples=60, deadline=None)
@given(ids=IDS, suffix=st.sampled_from(["csv", "tsv", "parquet"]), data=st.data())
def test_any_text_is_an_id_and_comes_back_unchanged(
    ids: list[str], suffix: str, data: st.DataObject
) -> None:
    ends = st.integers(0, len(ids) - 1)
    pairs = data.draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=8))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if suffix == "parquet":
            parquet.write_table(pa.table({"id": ids}), folder / "nodes.parquet")
            edges = {"source": [ids[u] for u, _ in pairs], "target": [ids[v] for _, v in pairs]}
            parquet.write_table(pa.table(edges), folder / "edges.parquet")
        else:
            write_csv(folder / f"nodes.{suffix}", [["id"], *([identifier] for identifier in ids)])
            write_csv(
                folder / f"edges.{suffix}",
                [["source", "target"], *([ids[u], ids[v]] for u, v in pairs)],
            )
        graph = read_graph(folder, directed=True)
        alone = read_graph(folder / f"edges.{suffix}", directed=True)
    assert list(map(str, graph.ids)) == ids
    found = {
        (str(graph.ids[u]), str(graph.ids[v]))
        for u, v in zip(*graph.adjacency.nonzero(), strict=True)
    }
    assert found == {(ids[u], ids[v]) for u, v in pairs if u != v}
    assert list(map(str, alone.ids)) == list(
        dict.fromkeys(ids[end] for pair in pairs for end in pair)
    )
