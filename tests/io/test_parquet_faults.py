"""Damaged and wrong parquet tables: each mistake is told, with its place."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from test_faults import EDGES, put, told

from infomax.embeddings import Embeddings
from infomax.errors import InputError, InputWarning
from infomax.graphs.graph import Graph
from infomax.graphs.reading import read_graph

TWO = {"id": ["a", "b"], "x": [1.0, 2.0]}
PARQUET_FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    # name: (columns of edges.parquet, of nodes.parquet, parts of the message)
    "integer nodes, text edges": (
        {"source": ["1"], "target": ["2"]},
        {"id": [1, 2]},
        ["edges.parquet: ", "integer ids, as in", "nodes.parquet", "text ids", "one type"],
    ),
    "text nodes, integer edges": (
        {"source": [1], "target": [2]},
        {"id": ["1", "2"]},
        ["edges.parquet: ", "text ids, as in", "integer ids"],
    ),
    "ends of two types": (
        {"source": [1], "target": ["b"]},
        TWO,
        ["edges.parquet: ", "one type", 'int64 in "source"'],
    ),
    "ids that are floats": (
        {"source": [1.0], "target": [2.0]},
        TWO,
        ['column "source": ', "integers or text", "double", 'astype("Int64")'],
    ),
    "ids beyond int64": (
        {"source": np.array([2**63], dtype=np.uint64), "target": np.array([0], dtype=np.uint64)},
        TWO,
        ["edges.parquet: "],
    ),
    "null end": (
        {"source": ["a", None], "target": ["b", "b"]},
        TWO,
        ['edges.parquet, row 2, column "source": ', "null"],
    ),
    "unknown end": (
        {"u": ["a"], "v": ["z"]},
        TWO,
        ['edges.parquet, row 1, column "v": ', 'found "z"'],
    ),
    "null weight": (
        {"source": ["a"], "target": ["b"], "weight": pa.array([None], pa.float64())},
        TWO,
        ['edges.parquet, row 1, column "weight": ', "null"],
    ),
    "negative weight": (
        {"source": ["a"], "target": ["b"], "weight": [-2.5]},
        TWO,
        ['edges.parquet, row 1, column "weight": ', "zero or more", "found -2.5"],
    ),
    "text weight": (
        {"source": ["a"], "target": ["b"], "weight": ["1"]},
        TWO,
        ['column "weight": ', "type string"],
    ),
    "one column": ({"source": ["a"]}, TWO, ["edges.parquet: ", "two columns", '"source"']),
    "no columns": ({}, TWO, ["edges.parquet: ", "at least one column"]),
    "null id": (
        {"source": ["a"], "target": ["b"]},
        {"id": ["a", None]},
        ['nodes.parquet, row 2, column "id": ', "null"],
    ),
    "duplicate id": (
        {"source": ["a"], "target": ["b"]},
        {"id": ["a", "b", "a"]},
        ['nodes.parquet, row 3, column "id": ', '"a", already in row 1'],
    ),
    "feature beyond float32": (
        {"source": ["a"], "target": ["b"]},
        {"id": ["a", "b"], "x": [1.0, 1e39]},
        ['nodes.parquet, row 2, column "x": ', "32-bit", "found 1e+39"],
    ),
    "no nodes": (
        {"source": ["a"], "target": ["b"]},
        {"id": pa.array([], pa.string())},
        ["nodes.parquet: ", "at least one"],
    ),
}


@pytest.mark.parametrize("name", PARQUET_FAULTS)
def test_a_fault_in_a_parquet_table_is_told(tmp_path: Path, name: str) -> None:
    edges, nodes, parts = PARQUET_FAULTS[name]
    parquet.write_table(pa.table(edges), tmp_path / "edges.parquet")
    parquet.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    told(parts, read_graph, tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_no_option_is_named_where_the_features_are_fixed(tmp_path: Path, suffix: str) -> None:
    edges, nodes = tmp_path / "edges.csv", tmp_path / f"nodes.{suffix}"
    put(edges, EDGES)
    if suffix == "csv":
        put(nodes, "id,x\na,1\nb,inf\n")
    else:
        parquet.write_table(pa.table({"id": ["a", "b"], "x": [1, np.inf]}), nodes)
    known = Graph.from_arrays([[0], [1]], [[1.0], [2.0]], ids=["p", "q"], feature_names=["x"])
    with pytest.raises(InputError, match=r'column "x": .* Fill it in, or remove the row\.$'):
        read_graph(edges, nodes, attach_to=known)


def test_text_where_a_known_graph_has_numbers_is_read_or_a_gap(tmp_path: Path) -> None:
    put(tmp_path / "edges.csv", EDGES)
    known = Graph.from_arrays([[0], [1]], [[1.0], [2.0]], ids=["p", "q"], feature_names=["x"])
    nodes = tmp_path / "nodes.parquet"
    parquet.write_table(pa.table({"id": ["a", "b"], "x": ["5", "many"]}), nodes)
    with pytest.warns(InputWarning, match='row 2, column "x".*"many".* 1 cell'):
        grown = read_graph(tmp_path / "edges.csv", nodes, attach_to=known)
    assert grown.table[:][2:, 0].tolist() == [5, 1.5]


def test_duplicate_columns_in_parquet(tmp_path: Path) -> None:
    table = pa.table([pa.array(["a"]), pa.array(["b"]), pa.array(["c"])], names=["u", "v", "v"])
    parquet.write_table(table, tmp_path / "edges.parquet")
    told(["edges.parquet: ", "each column name once", '"v" 2 times'], read_graph, tmp_path)


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "edges.parquet"
    told(["edges.parquet: ", "a parquet file"], read_graph, put(path, "source,target\na,b\n"))
    parquet.write_table(pa.table({"source": ["a"], "target": ["b"]}), path)
    told(["edges.parquet: ", "a parquet file"], read_graph, put(path, path.read_bytes()[:-20]))


def not_utf8(values: list[bytes]) -> pa.Array:
    """Text whose bytes were never checked, as other writers leave it."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


@pytest.mark.parametrize("table", ["edges", "ids", "labels", "vectors"])
def test_text_in_parquet_that_is_not_utf8(tmp_path: Path, table: str) -> None:
    good, bad = pa.array(["a", "b"]), not_utf8([b"a", b"\xff\xfe"])
    ends = {"source": bad if table == "edges" else good, "target": good}
    parquet.write_table(pa.table(ends), tmp_path / "edges.parquet")
    kinds = {"id": bad if table == "ids" else good, "kind": bad if table == "labels" else good}
    parquet.write_table(pa.table(kinds), tmp_path / "nodes.parquet")
    vector = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(4, np.float32)), 2)
    parquet.write_table(pa.table({"id": bad, "vector": vector}), tmp_path / "vectors.parquet")
    if table == "vectors":
        told(
            ["vectors.parquet: ", "a parquet file that can be read"],
            Embeddings.read,
            tmp_path / "vectors.parquet",
        )
    else:
        name = "edges.parquet" if table == "edges" else "nodes.parquet"
        told([f"{name}: ", "text in UTF-8", "other bytes"], read_graph, tmp_path, labels="kind")


@pytest.mark.parametrize("suffix", ["nodes", "vectors"])
def test_a_flipped_byte_in_parquet_is_an_input_error_or_harmless(
    tmp_path: Path, suffix: str
) -> None:
    put(tmp_path / "edges.csv", EDGES)
    path = tmp_path / f"{suffix}.parquet"
    if suffix == "nodes":
        parquet.write_table(pa.table({"id": ["a", "b"], "x": [1.0, 2.0], "y": [3, 4]}), path)
    else:
        Embeddings(np.ones((2, 3)), np.array(["a", "b"])).save(path)
    whole, refused = path.read_bytes(), 0
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            if suffix == "nodes":
                read_graph(tmp_path / "edges.csv", path)
            else:  # we write checksums
                assert (Embeddings.read(path).vectors == 1).all()
        except InputError:
            refused += 1
    assert refused > 50
