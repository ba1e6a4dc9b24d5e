"""Every way a table can be wrong, and what its author is told: file, line, column; expected; found; remedy."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from infomax.embeddings import Embeddings
from infomax.errors import InputError
from infomax.graphs import checks
from infomax.io import parquet as parquet_tables
from infomax.io import read_graph, text

EDGES = "source,target\na,b\n"
NODES = "id,x\na,1\nb,2\n"

TEXT_FAULTS: dict[str, tuple[str | bytes, str | bytes | None, list[str]]] = {
    # name: (edges.csv, nodes.csv, parts of the message)
    "empty edges": ("", NODES, ["edges.csv: ", "a header line", "an empty file"]),
    "blank edges": ("\n\n", None, ["edges.csv: ", "a header line", "an empty file"]),
    "only a byte order mark": ("\ufeff", None, ["edges.csv: ", "an empty file"]),
    "empty nodes": (EDGES, "", ["nodes.csv: ", "a header line", "an empty file"]),
    "no edges, no nodes": ("source,target\n", None, ["edges.csv: ", "at least one edge", "node table"]),
    "no nodes below the header": (EDGES, "id,x\n", ["nodes.csv: ", "at least one node", "none"]),
    "ragged edge": ("source,target\na,b\na\n", None, ["edges.csv, line 3: ", "2 columns", "found 1."]),
    "ragged node": (EDGES, "id,x\na,1\nb,2,3\n", ["nodes.csv, line 3: ", "2 columns", "found 3.", "quotes"]),
    "ragged after a quoted line break": (
        'source,target\n"a\nb",c\nd\n',
        None,
        ["edges.csv, line 4: ", "2 columns", "found 1."],
    ),
    "text feature": (
        EDGES,
        "id,x,name\na,1,Ann\nb,2,Bob\n",
        ['nodes.csv, line 2, column "name": ', "a finite number", 'found "Ann"', "--labels name", 'labels="name"'],
    ),
    "one bad cell": (EDGES, "id,x\na,1\nb,1.5.2\n", ['nodes.csv, line 3, column "x": ', 'found "1.5.2"']),
    "underscored number": (EDGES, "id,x\na,1\nb,2024_01\n", ['line 3, column "x"', 'found "2024_01"']),
    "NaN feature": (EDGES, "id,x\na,nan\nb,2\n", ['nodes.csv, line 2, column "x": ', "finite", 'found "nan"']),
    "infinite feature": (EDGES, "id,x\na,1\nb,-inf\n", ['nodes.csv, line 3, column "x": ', 'found "-inf"']),
    "feature beyond float32": (EDGES, "id,x\na,1\nb,1e39\n", ['line 3, column "x": ', "32-bit", 'found "1e39"']),
    "empty feature": (EDGES, "id,x,y\na,1,\nb,2,3\n", ['nodes.csv, line 2, column "y": ', "found an empty cell"]),
    "text weight": (
        "source,target,weight\na,b,1\nb,a,heavy\n",
        None,
        ['edges.csv, line 3, column "weight": ', "zero or more", 'found "heavy"'],
    ),
    "negative weight": ("source,target,weight\na,b,-1\n", None, ['line 2, column "weight": ', 'found "-1"']),
    "NaN weight": ("source,target,weight\na,b,NaN\n", None, ['line 2, column "weight": ', 'found "NaN"']),
    "infinite weight": ("source,target,weight\na,b,inf\n", None, ['line 2, column "weight": ', 'found "inf"']),
    "weights that overflow": (
        "source,target,weight\na,b,2e38\na,c,2e38\n",
        None,
        ['edges.csv, edges of node "a": ', "float32 can hold", "4e+38", "Divide all weights"],
    ),
    "empty weight": ("source,target,weight\na,b,\n", None, ['line 2, column "weight": ', "an empty cell"]),
    "unknown source": (
        "source,target\na,b\nzoe,b\n",
        NODES,
        ['edges.csv, line 3, column "source": ', "nodes.csv", 'found "zoe"', "Add a row"],
    ),
    "unknown target": ("from,to\na,b\na,zoe\n", NODES, ['edges.csv, line 3, column "to": ', 'found "zoe"']),
    "the first unknown of many": ("source,target\na,b\nb,y\nx,a\n", NODES, ["line 3", 'column "target"', 'found "y"']),
    "text among integer ids": (
        "source,target\n1,2\n2,x\n",
        "id,x\n1,0\n2,0\n",
        ['edges.csv, line 3, column "target": ', "integer ids", 'found "x"'],
    ),
    "zeros before an integer id": ("source,target\n1,02\n", "id,x\n1,0\n2,0\n", ["line 2", 'found "02"']),
    "empty id in an edge": (
        "source,target\na,b\n,b\n",
        None,
        ['edges.csv, line 3, column "source": ', "an empty cell"],
    ),
    "empty id of a node": (EDGES, "id,x\na,1\n,2\n", ['nodes.csv, line 3, column "id": ', "an id", "an empty cell"]),
    "duplicate node": (
        EDGES,
        "id,x\na,1\nb,2\na,3\n",
        ['nodes.csv, line 4, column "id": ', "each id once", '"a", already in line 2', "Remove"],
    ),
    "duplicate column": (EDGES, "id,x,x\na,1,2\nb,2,3\n", ["nodes.csv, line 1: ", "each column name once", '"x" 2']),
    "nameless column": (EDGES, ",id,x\n0,a,1\n1,b,2\n", ["nodes.csv, line 1: ", "column 1", "index=False"]),
    "semicolons": ("source;target\na;b\n", None, ["edges.csv, line 1: ", "commas", "semicolons", "Save it"]),
    "tabs in csv": ("source\ttarget\na\tb\n", None, ["edges.csv, line 1: ", "commas", "tabs", ".tsv"]),
    "semicolons in nodes": (EDGES, "id;x\na;1\nb;2\n", ["nodes.csv, line 1: ", "semicolons"]),
    "spaces": ("source target\na b\n", None, ["edges.csv: ", "two columns", '"source target"', "commas in .csv"]),
    "one end and a weight": ("source,weight\na,1\n", None, ["edges.csv: ", "two columns", '"source", "weight"']),
    "no header, integers": (
        "0,1\n1,2\n",
        None,
        ["edges.csv, line 1: ", "a header line", "only numbers", "source,target"],
    ),
    "no header, weights": ("0,1,0.5\n1,2,1\n", None, ["edges.csv, line 1: ", "a header line", "only numbers"]),
    "no header, text": ("a,b\nb,a\n", None, ["edges.csv, line 1: ", "a header line", 'two node ids, "a" and "b"']),
    "no header, nodes known": ("a,b\n", NODES, ["edges.csv, line 1: ", "a header line", "source,target"]),
    "no header, nodes": (EDGES, "1,0.5\n2,0.1\n", ["nodes.csv, line 1: ", "a header line", "only numbers"]),
    "latin-1": (b"source,target\na,b\na,caf\xe9\n", None, ["edges.csv, line 3: ", "UTF-8", "Save the file as UTF-8"]),
    "utf-16": ("source,target\na,b\n".encode("utf-16"), None, ["edges.csv, line 1: ", "UTF-8"]),
    "utf-16 without a mark": (
        EDGES.encode("utf-16-le"),
        None,
        ["edges.csv, line 1: ", "UTF-8", "NUL", "Save"],
    ),
    "utf-16 of the other order": (EDGES, NODES.encode("utf-16-be"), ["nodes.csv, line 1: ", "UTF-8", "NUL"]),
    "open quote": ('source,target\na,b\n"a,b\n', None, ["edges.csv, line 3: ", "double quote"]),
    "stray quote": ('source,target\n"a"x,b\n', None, ["edges.csv, line 2: ", "double quote"]),
}


def told(parts: list[str], call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert [part for part in parts if part not in message] == [], message


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", TEXT_FAULTS)
def test_a_fault_in_a_text_table_is_told(tmp_path: Path, name: str) -> None:
    edges, nodes, parts = TEXT_FAULTS[name]
    put(tmp_path / "edges.csv", edges)
    if nodes is not None:
        put(tmp_path / "nodes.csv", nodes)
    told(parts, read_graph, tmp_path)


def test_the_line_of_bad_bytes_is_right_far_into_a_file(tmp_path: Path) -> None:
    path = put(tmp_path / "edges.csv", b"source,target\r\n" + b"a,b\r\n" * 50_000 + b"a,\xff\r\n")
    told(["edges.csv, line 50002: "], read_graph, path)


@pytest.mark.parametrize("module", [text, parquet_tables])
def test_a_bad_cell_is_found_behind_the_first_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    monkeypatch.setattr(module, "_BLOCK_CELLS", 9)
    ys = [2.0] * 50
    ys[43] = float("inf")
    edges = put(tmp_path / "edges.csv", "source,target\n1,2\n")
    if module is text:
        rows = [f"{row},1,{y}" for row, y in enumerate(ys)]
        nodes = put(tmp_path / "nodes.csv", "id,x,y\n" + "\n".join(rows))
        told(['nodes.csv, line 45, column "y": ', 'found "inf"'], read_graph, edges, nodes)
    else:
        nodes = tmp_path / "nodes.parquet"
        parquet.write_table(pa.table({"id": range(50), "x": [1] * 50, "y": ys}), nodes)
        told(['nodes.parquet, row 44, column "y": ', "found inf"], read_graph, edges, nodes)
        parquet.write_table(pa.table({"id": range(50), "x": [1] * 49 + [None]}), nodes)
        told(['nodes.parquet, row 50, column "x": ', "null"], read_graph, edges, nodes)


def test_tables_that_are_not_there(tmp_path: Path) -> None:
    edges = put(tmp_path / "edges.csv", EDGES)
    missing = tmp_path / "missing.csv"
    told(["missing.csv: ", "a file", "nothing of that name"], read_graph, missing)
    told(["missing.csv: ", "nothing of that name"], read_graph, edges, missing)
    told(["missing.csv: "], read_graph, f"{edges},{missing}")
    told(["a file", "a folder"], read_graph, edges, tmp_path)


def test_extensions(tmp_path: Path) -> None:
    edges, other = put(tmp_path / "edges.csv", EDGES), put(tmp_path / "nodes.xlsx", "x")
    told(["nodes.xlsx: ", ".parquet", 'extension ".xlsx"'], read_graph, edges, other)
    told(["nodes.xlsx: ", ".graphml", 'extension ".xlsx"'], read_graph, other)


def test_folders(tmp_path: Path) -> None:
    put(tmp_path / "edges.xlsx", "x")
    told([f"{tmp_path}: ", "edges", ".csv", "none in the folder"], read_graph, tmp_path)
    put(tmp_path / "edges.csv", EDGES)
    assert read_graph(tmp_path).num_nodes == 2
    put(tmp_path / "edges.tsv", EDGES)
    told([f"{tmp_path}: ", "one file edges.*", "edges.csv and edges.tsv"], read_graph, tmp_path)
    (tmp_path / "edges.tsv").unlink()
    put(tmp_path / "nodes.csv", NODES)
    put(tmp_path / "nodes.parquet", "")
    told(["one file nodes.*", "nodes.csv and nodes.parquet"], read_graph, tmp_path)


def test_labels(tmp_path: Path) -> None:
    edges, nodes = put(tmp_path / "edges.csv", EDGES), put(tmp_path / "nodes.csv", "id,x,kind\na,1,p\nb,2,q\n")
    told(["nodes.csv: ", 'a label column "class"', '"x", "kind"'], read_graph, edges, nodes, labels=["kind", "class"])
    told(["nodes.csv: ", 'a label column "id"'], read_graph, edges, nodes, labels="id")
    told(["labels: ", "a node table", "edges.csv"], read_graph, edges, labels="kind")


def test_the_odd_one_of_many_columns_is_found_in_a_blink() -> None:
    names = tuple(f"word {column}" for column in range(20_000))
    began = perf_counter()
    told(["no column 'word 19999'"], checks.check_feature_names, "nodes.csv", names[:-1], names)
    told(["an unknown column 'z'"], checks.check_feature_names, "nodes.csv", (*names, "z"), names)
    assert perf_counter() - began < 1


def test_tsv_with_commas(tmp_path: Path) -> None:
    told(
        ["edges.tsv, line 1: ", "tabs", "commas", "Rename the file to .csv"],
        read_graph,
        put(tmp_path / "edges.tsv", EDGES),
    )


def test_graphml(tmp_path: Path) -> None:
    path = put(tmp_path / "g.graphml", "<graphml")
    told(["g.graphml: ", "a GraphML file"], read_graph, path)
    put(path, '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"></graphml>')
    told(["g.graphml: ", "a GraphML file"], read_graph, path)
    told(["nodes.csv: ", "no node table"], read_graph, path, put(tmp_path / "nodes.csv", NODES))


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
    "ends of two types": ({"source": [1], "target": ["b"]}, TWO, ["edges.parquet: ", "one type", 'int64 in "source"']),
    "ids that are floats": (
        {"source": [1.0], "target": [2.0]},
        TWO,
        ['column "source": ', "integers or text", "double"],
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
    "unknown end": ({"u": ["a"], "v": ["z"]}, TWO, ['edges.parquet, row 1, column "v": ', 'found "z"']),
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
    "text weight": ({"source": ["a"], "target": ["b"], "weight": ["1"]}, TWO, ['column "weight": ', "type string"]),
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
    "null feature": (
        {"source": ["a"], "target": ["b"]},
        {"id": ["a", "b"], "x": [1, None]},
        ['nodes.parquet, row 2, column "x": ', "a finite number", "found null", "--labels x"],
    ),
    "null among flags": (
        {"source": ["a"], "target": ["b"]},
        {"id": ["a", "b"], "x": [None, True]},
        ['nodes.parquet, row 1, column "x": ', "found null", "--labels x"],
    ),
    "null among decimals": (
        {"source": ["a"], "target": ["b"]},
        {"id": ["a", "b"], "x": [Decimal("1.5"), None]},
        ['nodes.parquet, row 2, column "x": ', "found null", "--labels x"],
    ),
    "NaN feature": (
        {"source": ["a"], "target": ["b"]},
        {"id": ["a", "b"], "x": [1.0, 2.0], "y": [1.0, float("nan")]},
        ['nodes.parquet, row 2, column "y": ', "finite", "found nan"],
    ),
    "feature beyond float32": (
        {"source": ["a"], "target": ["b"]},
        {"id": ["a", "b"], "x": [1.0, 1e39]},
        ['nodes.parquet, row 2, column "x": ', "32-bit", "found 1e+39"],
    ),
    "text feature": (
        {"source": ["a"], "target": ["b"]},
        {"id": ["a", "b"], "kind": ["p", "q"]},
        ['nodes.parquet, column "kind": ', "a column of numbers", "type string", "--labels kind"],
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
        put(nodes, "id,x\na,1\nb,\n")
    else:
        parquet.write_table(pa.table({"id": ["a", "b"], "x": [1, None]}), nodes)
    with pytest.raises(InputError, match=r'column "x": .* Fill it in, or remove the row\.$'):
        read_graph(edges, nodes, features=["x"])
    parquet.write_table(pa.table({"id": ["a", "b"], "x": ["1", "2"]}), tmp_path / "text.parquet")
    with pytest.raises(InputError, match=r'column "x": .* found type string\. Store it as numbers\.$'):
        read_graph(edges, tmp_path / "text.parquet", features=["x"])


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
        told(["vectors.parquet: ", "text in UTF-8", "other bytes"], Embeddings.read, tmp_path / "vectors.parquet")
    else:
        name = "edges.parquet" if table == "edges" else "nodes.parquet"
        told([f"{name}: ", "text in UTF-8", "other bytes"], read_graph, tmp_path, labels="kind")


@pytest.mark.parametrize("suffix", ["nodes", "vectors"])
def test_a_flipped_byte_in_parquet_is_an_input_error_or_harmless(tmp_path: Path, suffix: str) -> None:
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


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    told(
        ["edges.parquet: ", "pyarrow", "pip install 'infomax[parquet]'"],
        read_graph,
        put(tmp_path / "edges.parquet", ""),
    )
