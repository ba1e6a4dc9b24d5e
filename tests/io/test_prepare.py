"""A graph folder made on disk is the graph that the same tables make in memory."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from sample_graphs import random_graph
from test_faults import put, told

from infomax import Graph, read_graph
from infomax.arrays.sparsity import dense
from infomax.errors import InputError
from infomax.io import sources
from infomax.io.graph_folder import finish, write_arrays
from infomax.io.prepare import prepare
from infomax.io.prepare.database import Database
from infomax.io.prepare.writing import merge

pytest.importorskip("duckdb", reason="prepare sorts with it")

EDGES = "source,target,weight\nc,a,2\nb,c,0.5\nc,b,0.25\nc,b,0.5\na,a,1\nd,a,0\n"
NODES = "id,x,kind,y\na,1,p,0.25\nb,-2,,1e-3\nc,3.5,q,7\nd,0,p,0\n"


def same(stored: Graph, graph: Graph) -> None:
    """Assert that both are one graph."""
    assert stored.ids[:].tolist() == graph.ids.tolist()
    assert stored.ids.dtype == graph.ids.dtype
    assert (stored.adjacency != graph.adjacency).nnz == 0
    assert stored.adjacency.nnz == graph.adjacency.nnz
    np.testing.assert_array_equal(dense(stored.features), dense(graph.features))
    assert stored.feature_names == graph.feature_names
    assert {name: column.tolist() for name, column in stored.labels.items()} == {
        name: column.tolist() for name, column in graph.labels.items()
    }
    assert dict(stored.dropped) == dict(graph.dropped)
    assert (stored.directed, stored.weighted, stored.edge_columns) == (
        graph.directed, graph.weighted, graph.edge_columns,
    )  # fmt: skip
    assert stored.degrees().tolist() == graph.degrees().tolist()
    assert (stored.num_edges, repr(stored)) == (graph.num_edges, repr(graph))


def tabled(path: Path, columns: dict[str, list[Any]]) -> Path:
    """A table, in the format of its extension."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path)
    else:
        lines = [
            ",".join(columns),
            *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
        ]
        content = "\n".join(lines).encode() + b"\n"
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 9), st.booleans())
def test_merging_does_not_depend_on_batches(keys: list[int], size: int, weighted: bool) -> None:
    ascending = np.sort(np.array(keys, dtype=np.int64))
    weights = (ascending % 7).astype(np.float32) / 4 + 0.25 if weighted else None

    def merged(step: int) -> tuple[list[list[float]], Counter[str]]:
        batches = (
            (ascending[at : at + step], None if weights is None else weights[at : at + step])
            for at in range(0, len(keys), step)
        )
        counts = Counter[str]()
        parts = list(merge(batches, 6, counts))
        columns = [[part[k].tolist() for part in parts if part[k] is not None] for k in range(3)]
        return [list(chain.from_iterable(column)) for column in columns], counts

    assert merged(size) == merged(100)
    pairs = sorted({key // 2 for key in keys})
    assert merged(size)[0][:2] == [[pair // 6 for pair in pairs], [pair % 6 for pair in pairs]]


def test_many_files_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ROWS_PER_BLOCK", 2)
    for name, content in (("edges", EDGES), ("nodes", NODES)):
        (tmp_path / name).mkdir()
        head, *rows = content.splitlines(keepends=True)
        for part in range(2):
            put(
                tmp_path / name / f"part-{part}.csv",
                head + "".join(rows[len(rows) * part // 2 : len(rows) * (part + 1) // 2]),
            )
    put(tmp_path / "edges.csv", EDGES)
    put(tmp_path / "nodes.csv", NODES)
    whole = read_graph(tmp_path / "edges.csv", tmp_path / "nodes.csv", labels="kind")
    for out, edges in (
        ("a.graph", tmp_path / "edges"),
        ("b.graph", f"{tmp_path}/edges/part-*.csv"),
    ):
        prepare(edges, tmp_path / "nodes", out=tmp_path / out, labels="kind")
        same(Graph.open(tmp_path / out), whole)
    put(tmp_path / "nodes" / "part-2.csv", "id,x,kind,y\na,1,p,1\n")
    found = ["part-2.csv, line 2", "each id once", "part-0.csv, line 2"]
    told(
        found,
        prepare,
        tmp_path / "edges",
        tmp_path / "nodes",
        out=tmp_path / "c.graph",
        labels="kind",
    )
    put(tmp_path / "nodes" / "part-2.csv", "id,x\n")
    found = ["part-2.csv", "the columns of"]
    told(
        found,
        prepare,
        tmp_path / "edges",
        tmp_path / "nodes",
        out=tmp_path / "c.graph",
        labels="kind",
    )
    told(["nothing of that name"], prepare, tmp_path / "none.csv", out=tmp_path / "c.graph")
    told(["no file of such a name"], prepare, f"{tmp_path}/*.tsv", out=tmp_path / "c.graph")


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float32(), 3)]
)
def test_a_column_of_lists_holds_the_features(tmp_path: Path, kind: pa.DataType) -> None:
    edges = put(tmp_path / "edges.csv", "source,target\na,b\n")
    vectors = pa.array([[1, 2, 3], [4, 5, 6.5]], kind)
    parquet.write_table(
        pa.table({"id": ["a", "b"], "v": vectors, "z": [7, 8]}), tmp_path / "nodes.parquet"
    )
    graph = read_graph(edges, tmp_path / "nodes.parquet")
    assert graph.features.tolist() == [[1, 2, 3, 7], [4, 5, 6.5, 8]]
    assert graph.feature_names == ("v[0]", "v[1]", "v[2]", "z")
    prepare(edges, tmp_path / "nodes.parquet", out=tmp_path / "g.graph")
    same(Graph.open(tmp_path / "g.graph"), graph)
    again = read_graph(edges, tmp_path / "nodes.parquet", features=graph.feature_names)
    assert again.feature_names == graph.feature_names


@pytest.mark.parametrize(
    ("vectors", "parts"),
    [
        ([[1.0, 2.0], [3.0]], ["row 2", 'column "v"', "a list of 2 numbers", "found 1 number."]),
        ([[1.0, 2.0], [3.0, None]], ["row 2", "found [3.0, None]"]),
        ([[1.0, 2.0], [3.0, float("nan")]], ["row 2", "found [3.0, nan]"]),
    ],
)
def test_a_fault_in_a_column_of_lists_is_told(
    tmp_path: Path, vectors: list[Any], parts: list[str]
) -> None:
    edges = put(tmp_path / "edges.csv", "source,target\na,b\n")
    parquet.write_table(pa.table({"id": ["a", "b"], "v": vectors}), tmp_path / "nodes.parquet")
    told(parts, read_graph, edges, tmp_path / "nodes.parquet")


@pytest.mark.parametrize("directed", [False, True])
def test_a_later_folder_is_encoded_like_an_earlier_graph(tmp_path: Path, directed: bool) -> None:
    def write(name: str, nodes: str) -> list[Path]:
        tables = [tmp_path / f"{name}-{kind}.csv" for kind in ("edges", "nodes")]
        for table, content in zip(tables, ("source,target\na,b\nc,a\n", nodes), strict=True):
            table.write_text(content)
        return tables

    first = write(
        "first", "key,age,city,note\na,20,Rome,red fox\nb,,Oslo,blue\nc,40,Rome,green fox\n"
    )
    known = read_graph(*first, directed=directed, columns={"note": "text"}, labels="city", id="key")
    later = write("later", "key,note,age,more\na,blue fox,60,1\nb,a red one,61,2\nc,,,3\n")
    prepare(*later, out=tmp_path / "later.graph", like=known)
    stored = Graph.open(tmp_path / "later.graph")
    expected = read_graph(*later, like=known, directed=directed)
    assert stored.encoding == known.encoding
    assert not np.allclose(dense(expected.features), dense(known.features))
    same(stored, expected)
    with pytest.raises(
        InputError, match="columns: expected none where features are those of another graph"
    ):
        prepare(*later, out=tmp_path / "other.graph", like=known, columns={"age": "number"})


def test_features_of_an_array_in_half_precision(tmp_path: Path) -> None:
    edges, nodes = (
        put(tmp_path / "edges.csv", "source,target\na,b\n"),
        put(tmp_path / "nodes.csv", "id,x\na,no\nb,1\n"),
    )
    np.save(tmp_path / "x.npy", np.array([[1, 1 / 3], [2, -4]]))
    prepare(edges, nodes, out=tmp_path / "g.graph", features=tmp_path / "x.npy", half=True)
    graph = Graph.open(tmp_path / "g.graph")
    assert graph.table.values.dtype == np.float16
    assert graph.features[:].dtype == np.float32
    np.testing.assert_allclose(graph.features[:], [[1, 1 / 3], [2, -4]], rtol=1e-3)
    assert graph.feature_names == ("x0", "x1")
    for values, part in (
        ([[1.0]], "shape [2, F]"),
        ([[1], [1e6]], "65,504"),
        ([[1], [np.inf]], "finite"),
    ):
        np.save(tmp_path / "x.npy", np.array(values))
        with pytest.raises(InputError) as caught:
            prepare(edges, nodes, out=tmp_path / "h.graph", features=tmp_path / "x.npy", half=True)
        assert part in str(caught.value)


@pytest.mark.parametrize("changes", [{}, {"weighted": True}, {"directed": True}, {"dense": True}])
def test_a_graph_in_memory_is_stored_as_it_is(tmp_path: Path, changes: dict[str, bool]) -> None:
    graph = random_graph(**changes)
    finish(tmp_path, write_arrays(graph, tmp_path))
    stored = Graph.open(tmp_path)
    same(stored, graph)
    loaded = stored.loaded()
    assert loaded.folder is None
    mask = np.arange(40) % 3 == 0
    for part in (stored.part(mask), loaded.part(mask)):
        assert (part.adjacency != graph.part(mask).adjacency).nnz == 0
        assert part.ids.tolist() == graph.part(mask).ids.tolist()


def test_a_changed_folder_is_refused(tmp_path: Path) -> None:
    graph = random_graph()
    finish(tmp_path, write_arrays(graph, tmp_path))
    features = tmp_path / "features.npy"
    whole = features.read_bytes()
    features.write_bytes(whole[:-4])
    told(["features.npy", "infomax prepare"], Graph.open, tmp_path)
    features.unlink()
    told(["features.npy", "No such file"], Graph.open, tmp_path)
    features.write_bytes(whole)
    about = (tmp_path / "graph.json").read_text()
    put(tmp_path / "graph.json", about.replace('"format": 1', '"format": 9'))
    told(["graph.json", "format 9"], Graph.open, tmp_path)
    put(tmp_path / "graph.json", about.replace('"nodes": 40', '"nodes": 41'))
    told(["indptr.npy", "shape [42]", "shape [41]"], Graph.open, tmp_path)
    put(tmp_path / "graph.json", "[]")
    told(["graph.json", "the description of a graph folder"], Graph.open, tmp_path)
    told(
        ["a graph folder", "nothing of that name", "infomax prepare"], Graph.open, tmp_path / "none"
    )


def test_a_place_that_is_taken_is_refused(tmp_path: Path) -> None:
    edges = put(tmp_path / "edges.csv", EDGES)
    (tmp_path / "g.graph").mkdir()
    told(["g.graph", "a new folder", "Remove it"], prepare, edges, out=tmp_path / "g.graph")
    told(["labels", "a node table"], prepare, edges, out=tmp_path / "h.graph", labels="kind")
    told(["features", "a node table"], prepare, edges, out=tmp_path / "h.graph", features="x.npy")


def test_the_database_draws_no_bar_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    database = Database(tmp_path, 1 << 30)
    database.execute("SET progress_bar_time = 1")
    database.execute("SELECT sum(a.range * b.range) FROM range(100000) a, range(500) b")
    database.close()
    assert capfd.readouterr() == ("", "")


def test_a_folder_is_read_as_read_graph_reads_it_and_a_folder_of_parts_by_both(
    tmp_path: Path,
) -> None:
    put(tmp_path / "edges.csv", EDGES)
    put(tmp_path / "nodes.csv", NODES)
    graph = read_graph(tmp_path, labels="kind")
    prepare(tmp_path, out=tmp_path / "g.graph", labels="kind")
    same(Graph.open(tmp_path / "g.graph"), graph)
    header, *rows = EDGES.splitlines()
    (tmp_path / "parts").mkdir()
    for at, some in enumerate((rows[:2], rows[2:])):
        put(tmp_path / "parts" / f"{at}.csv", "\n".join([header, *some, ""]))
    same(read_graph(tmp_path / "parts", tmp_path / "nodes.csv", labels="kind"), graph)
    same(
        read_graph(str(tmp_path / "parts" / "*.csv"), tmp_path / "nodes.csv", labels="kind"), graph
    )
