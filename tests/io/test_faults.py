"""Every way a table can be wrong, and what its author is told: file, line, column; expected; found; remedy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from infomax.arrays import checks
from infomax.errors import InputError
from infomax.graphs.reading import read_graph
from infomax.io import sources

EDGES = "source,target\na,b\n"
NODES = "id,x\na,1\nb,2\n"

TEXT_FAULTS: dict[str, tuple[str | bytes, str | bytes | None, list[str]]] = {
    # name: (edges.csv, nodes.csv, parts of the message)
    "empty edges": ("", NODES, ["edges.csv: ", "a header line", "an empty file"]),
    "blank edges": ("\n\n", None, ["edges.csv: ", "a header line", "an empty file"]),
    "only a byte order mark": ("\ufeff", None, ["edges.csv: ", "an empty file"]),
    "empty nodes": (EDGES, "", ["nodes.csv: ", "a header line", "an empty file"]),
    "no edges, no nodes": (
        "source,target\n",
        None,
        ["edges.csv: ", "at least one edge", "node table"],
    ),
    "no nodes below the header": (EDGES, "id,x\n", ["nodes.csv: ", "at least one node", "none"]),
    "ragged edge": (
        "source,target\na,b\na\n",
        None,
        ["edges.csv, line 3: ", "2 columns", "found 1."],
    ),
    "ragged node": (
        EDGES,
        "id,x\na,1\nb,2,3\n",
        ["nodes.csv, line 3: ", "2 columns", "found 3.", "quotes"],
    ),
    "ragged after a quoted line break": (
        'source,target\n"a\nb",c\nd\n',
        None,
        ["edges.csv, line 4: ", "2 columns", "found 1."],
    ),
    "infinite feature": (
        EDGES,
        "id,x\na,1\nb,-inf\n",
        ['nodes.csv, line 3, column "x": ', 'found "-inf"'],
    ),
    "feature beyond float32": (
        EDGES,
        "id,x\na,1\nb,1e39\n",
        ['line 3, column "x": ', "32-bit", 'found "1e39"'],
    ),
    "several faults at once": (
        EDGES,
        "id,x,y\na,1,2\nb,-inf,1e39\n",
        [
            "nodes.csv: ",
            'line 3, column "x": "-inf"',
            'line 3, column "y": "1e39"',
            "--column NAME=USE",
        ],
    ),
    "text weight": (
        "source,target,weight\na,b,1\nb,a,heavy\n",
        None,
        ['edges.csv, line 3, column "weight": ', "zero or more", 'found "heavy"'],
    ),
    "negative weight": (
        "source,target,weight\na,b,-1\n",
        None,
        ['line 2, column "weight": ', 'found "-1"'],
    ),
    "NaN weight": (
        "source,target,weight\na,b,NaN\n",
        None,
        ['line 2, column "weight": ', 'found "NaN"'],
    ),
    "infinite weight": (
        "source,target,weight\na,b,inf\n",
        None,
        ['line 2, column "weight": ', 'found "inf"'],
    ),
    "large weight": (
        "source,target,weight\na,b,2e38\n",
        None,
        ['line 2, column "weight": ', "at most 1e+24"],
    ),
    "empty weight": (
        "source,target,weight\na,b,\n",
        None,
        ['line 2, column "weight": ', "an empty cell"],
    ),
    "unknown source": (
        "source,target\na,b\nzoe,b\n",
        NODES,
        ['edges.csv, line 3, column "source": ', "nodes.csv", 'found "zoe"', "Add a row"],
    ),
    "unknown target": (
        "from,to\na,b\na,zoe\n",
        NODES,
        ['edges.csv, line 3, column "to": ', 'found "zoe"'],
    ),
    "the first unknown of many": (
        "source,target\na,b\nb,y\nb,x\n",
        NODES,
        ["line 3", 'column "target"', 'found "y"'],
    ),
    "text among integer ids": (
        "source,target\n1,2\n2,x\n",
        "id,x\n1,0\n2,0\n",
        ['edges.csv, line 3, column "target": ', 'found "x"'],
    ),
    "zeros before an integer id": (
        "source,target\n1,02\n",
        "id,x\n1,0\n2,0\n",
        ["line 2", "keeps zeros", 'found "02"'],
    ),
    "empty id in an edge": (
        "source,target\na,b\n,b\n",
        None,
        ['edges.csv, line 3, column "source": ', "an empty cell"],
    ),
    "empty id of a node": (
        EDGES,
        "id,x\na,1\n,2\n",
        ['nodes.csv, line 3, column "id": ', "an id", "an empty cell"],
    ),
    "duplicate node": (
        EDGES,
        "id,x\na,1\nb,2\na,3\n",
        ['nodes.csv, line 4, column "id": ', "each id once", '"a", already in line 2', "Remove"],
    ),
    "swapped tables": (
        NODES,
        EDGES,
        [
            'edges.csv, line 3, column "id": ',
            "an id listed in",
            'found "b"',
            "the edge table comes first",
            "--id COLUMN",
        ],
    ),
    "swapped tables of other names": (
        NODES,
        "payer,payee\na,b\na,c\n",
        ['line 3, column "payer"', "each id once", "--id COLUMN", "Edges come first"],
    ),
    "duplicate column": (
        EDGES,
        "id,x,x\na,1,2\nb,2,3\n",
        ["nodes.csv, line 1: ", "each column name once", '"x" 2'],
    ),
    "nameless column": (
        EDGES,
        ",id,x\n0,a,1\n1,b,2\n",
        ["nodes.csv, line 1: ", "column 1", "index=False"],
    ),
    "semicolons": (
        "source;target\na;b\n",
        None,
        ["edges.csv, line 1: ", "commas", "semicolons", "sep=';'"],
    ),
    "tabs in csv": (
        "source\ttarget\na\tb\n",
        None,
        ["edges.csv, line 1: ", "commas", "tabs", ".tsv"],
    ),
    "semicolons in nodes": (EDGES, "id;x\na;1\nb;2\n", ["nodes.csv, line 1: ", "semicolons"]),
    "spaces": (
        "source target\na b\n",
        None,
        ["edges.csv, line 1: ", '"source target"', "spaces", "read_csv"],
    ),
    "one end and a weight": (
        "source,weight\na,1\n",
        None,
        ["edges.csv: ", "two columns", '"source", "weight"'],
    ),
    "no header, integers": (
        "0,1\n1,2\n",
        None,
        ["edges.csv, line 1: ", "a header line", "only numbers", "source,target"],
    ),
    "no header, weights": (
        "0,1,0.5\n1,2,1\n",
        None,
        ["edges.csv, line 1: ", "a header line", "only numbers"],
    ),
    "no header, text": (
        "a,b\nb,a\n",
        None,
        ["edges.csv, line 1: ", "a header line", 'two node ids, "a" and "b"'],
    ),
    "no header, nodes known": (
        "a,b\n",
        NODES,
        ["edges.csv, line 1: ", "a header line", "source,target"],
    ),
    "no header, nodes": (
        EDGES,
        "1,0.5\n2,0.1\n",
        ["nodes.csv, line 1: ", "a header line", "only numbers"],
    ),
    "latin-1": (
        b"source,target\na,b\na,caf\xe9\n",
        None,
        ["edges.csv, line 3: ", "UTF-8", "Save the file as UTF-8"],
    ),
    "utf-16": ("source,target\na,b\n".encode("utf-16"), None, ["edges.csv, line 1: ", "UTF-8"]),
    "utf-16 without a mark": (
        EDGES.encode("utf-16-le"),
        None,
        ["edges.csv, line 1: ", "UTF-8", "Save"],
    ),
    "utf-16 of the other order": (
        EDGES,
        NODES.encode("utf-16-be"),
        ["nodes.csv, line 1: ", "UTF-8"],
    ),
    "open quote": ('source,target\na,b\n"a,b\n', None, ["edges.csv, line 3: ", "double quote"]),
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


@pytest.mark.parametrize("kind", ["text", "parquet"])
def test_a_bad_cell_is_found_behind_the_first_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sources, "CELLS_PER_BLOCK", 9)
    ys = [2.0] * 50
    ys[43] = float("inf")
    edges = put(tmp_path / "edges.csv", "source,target\n1,2\n")
    if kind == "text":
        rows = [f"{row},1,{y}" for row, y in enumerate(ys)]
        nodes = put(tmp_path / "nodes.csv", "id,x,y\n" + "\n".join(rows))
        told(['nodes.csv, line 45, column "y": ', 'found "inf"'], read_graph, edges, nodes)
    else:
        nodes = tmp_path / "nodes.parquet"
        parquet.write_table(pa.table({"id": range(50), "x": [1] * 50, "y": ys}), nodes)
        told(['nodes.parquet, row 44, column "y": ', "found inf"], read_graph, edges, nodes)


def test_tables_that_are_not_there(tmp_path: Path) -> None:
    edges = put(tmp_path / "edges.csv", EDGES)
    missing = tmp_path / "missing.csv"
    told(["missing.csv: ", "a file", "nothing of that name"], read_graph, missing)
    told(["missing.csv: ", "nothing of that name"], read_graph, edges, missing)
    told(["coar: ", "a file", "nothing of that name", "load_dataset"], read_graph, "coar")
    told(["missing.csv: "], read_graph, f"{edges},{missing}")


def test_extensions(tmp_path: Path) -> None:
    edges, other = put(tmp_path / "edges.csv", EDGES), put(tmp_path / "nodes.xlsx", "x")
    told(["nodes.xlsx: ", ".parquet", 'extension ".xlsx"'], read_graph, edges, other)
    told(["nodes.xlsx: ", ".graphml", 'extension ".xlsx"'], read_graph, other)


@pytest.mark.parametrize(
    ("name", "encoding", "mark", "cells"),
    [
        ("edges.csv", "utf-8", ";", "é"),
        ("edges.csv", "utf-8-sig", ";", "é"),
        ("edges.csv", "cp1252", ",", "5 €"),
        ("edges.csv", "cp1252", ";", "5 €"),
        ("edges.txt", "utf-16", "\t", "é"),
        ("edges.csv", "utf-16-le", ",", "é"),
        ("edges.csv", "utf-16-be", ";", "é"),
        ("edges.csv", "utf-8", " ", "é"),
        ("edges.dat", "utf-8", "|", "é"),
        ("edges.xlsx", "", "", "é"),
        ("edges.json", "", "", "é"),
    ],
)
def test_the_line_of_python_that_is_told_makes_the_table_readable(
    tmp_path: Path, name: str, encoding: str, mark: str, cells: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    path, new = tmp_path / name, tmp_path / "new.csv"
    frame = pandas.DataFrame({"source": ["007", cells], "target": ["b", "007"]})
    if name == "edges.xlsx":  # what reads it is an extra of pandas
        path.write_bytes(b"")
        monkeypatch.setattr(pandas, "read_excel", lambda _, dtype: frame)
    elif name == "edges.json":
        frame.to_json(path)
    else:
        frame.to_csv(path, sep=mark, index=False, encoding=encoding)
    with pytest.raises(InputError) as caught:
        read_graph(path)
    line = str(caught.value).partition("Python: ")[2]
    exec(line, {"pandas": pandas, "NAME": path, "NEW": new})
    assert sorted(read_graph(new).ids) == sorted(["007", cells, "b"])


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
    edges, nodes = (
        put(tmp_path / "edges.csv", EDGES),
        put(tmp_path / "nodes.csv", "id,x,kind\na,1,p\nb,2,q\n"),
    )
    told(
        ["nodes.csv: ", 'a label column "class"', '"x", "kind"'],
        read_graph,
        edges,
        nodes,
        labels=["kind", "class"],
    )
    told(["nodes.csv: ", 'a label column "id"'], read_graph, edges, nodes, labels="id")
    told(["labels: ", "a node table", "edges.csv"], read_graph, edges, labels="kind")


def test_the_odd_one_of_many_columns_is_found_in_a_blink() -> None:
    """Each name is compared with a few others, not with all."""
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    names, known = (tuple(Name(f"word {column}") for column in range(2_000)) for _ in range(2))
    told(["no column 'word 1999'"], checks.check_feature_names, "nodes.csv", names[:-1], known)
    told(["an unknown column 'z'"], checks.check_feature_names, "nodes.csv", (*names, "z"), known)
    assert 0 < compared < 10 * len(names)


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
