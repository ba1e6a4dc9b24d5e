"""`read_graph` and `prepare` make one graph of the same tables, or refuse them alike; what they leave out is named."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from test_faults import put, told
from test_prepare import same

from infomax import Graph, InputError, read_graph
from infomax.errors import InputWarning
from infomax.io.prepare import prepare

pytest.importorskip("duckdb", reason="prepare sorts with it")

IDS = [
    [
        "a",
        "A",
        " a",
        "a ",
        "c\rd",
        "\n",
        'q"',
        "x,y",
        "é",
        "\x00",
        "z\x00",
        "\ufeff",
        "\x85",
        "'",
        "\\",
    ],
    ["7", "007", "+7", "7.0", "-0", "0", "9223372036854775808", "١", "1_0"],
    ["0", "-1", "9223372036854775807", "-9223372036854775808", "5"],
]
CELLS = st.sampled_from(["", " ", "p", "P", "\tp\r", "nan", "\x00", 'q"', "1", "true", "\n"])
MARKS = st.sampled_from(["1", "0", "", "true", "FALSE", "\tTrue\r", " 1\n", "\u00a01", "\x1ctrue"])
WEIGHTS = st.sampled_from([0, 0.1, 0.3, 1, 2, 1e-45, 1e30, 16777217])


def quoted(cell: object) -> str:
    """A cell in double quotes."""
    return '"' + str(cell).replace('"', '""') + '"'


def put_table(path: Path, columns: dict[str, Any]) -> Path:
    """A table in the format of the extension."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path)
        return path
    lines = [columns, *zip(*columns.values(), strict=True)]
    return put(path, "".join(",".join(map(quoted, line)) + "\n" for line in lines))


@st.composite
def odd_tables(draw: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of an edge table and of a node table."""
    known = draw(
        st.lists(st.sampled_from(draw(st.sampled_from(IDS))), min_size=1, max_size=6, unique=True)
    )
    ends = draw(st.lists(st.tuples(st.sampled_from(known), st.sampled_from(known)), max_size=8))
    edges = {"source": [end for end, _ in ends], "target": [end for _, end in ends]}
    if draw(st.booleans()):
        edges["weight"] = draw(st.lists(WEIGHTS, min_size=len(ends), max_size=len(ends)))
    columns = {
        "kind": CELLS,
        "called": CELLS,
        "split:train": MARKS,
        "x": st.sampled_from([0, 1.5, -1e-9, 3e38]),
    }
    nodes = {"id": known} | {
        name: draw(st.lists(cells, min_size=len(known), max_size=len(known)))
        for name, cells in columns.items()
    }
    return edges, nodes


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    odd_tables(),
    st.sampled_from(["csv", "parquet"]),
    st.sampled_from(["csv", "parquet", ""]),
    st.booleans(),
)
def test_both_doors_make_one_graph(
    tables: Any, edge_kind: str, node_kind: str, directed: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        edges = put_table(folder / f"edges.{edge_kind}", tables[0])
        nodes = put_table(folder / f"nodes.{node_kind}", tables[1]) if node_kind else None
        options: dict[str, Any] = {
            "labels": "kind" if nodes else (),
            "name": "called" if nodes else None,
            "directed": directed,
        }
        try:
            graph = read_graph(edges, nodes, **options)
        except InputError as error:
            told([str(error)], prepare, edges, nodes, out=folder / "g.graph", **options)
            return
        prepare(edges, nodes, out=folder / "g.graph", **options)
        stored = Graph.open(folder / "g.graph")
        same(stored, graph)
        assert {key: mask.tolist() for key, mask in stored.splits.items()} == {
            key: mask.tolist() for key, mask in graph.splits.items()
        }
        if nodes:
            assert stored.node_names[:].tolist() == graph.node_names.tolist() == tables[1]["called"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_padded_split_is_read_alike(tmp_path: Path, kind: str) -> None:
    edges = put_table(tmp_path / "edges.csv", {"source": ["a"], "target": ["b"]})
    cells = ["\ttrue", "1\r", "1\n", " TRUE ", "\t", "0\r", "\x0bfalse"]
    nodes = put_table(tmp_path / f"nodes.{kind}", {"id": list("abcdefg"), "split:train": cells})
    assert read_graph(edges, nodes).splits["train"].tolist() == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
    ]


TEXT, NUMBERS = {"source": ["1", "2"], "target": ["2", "3"]}, {"source": [1, 2], "target": [2, 3]}
NOTHING = pa.table({"source": pa.nulls(0), "target": pa.nulls(0)})


@pytest.mark.parametrize(
    ("files", "parts"),
    [
        (
            {"a.parquet": NUMBERS, "b.parquet": TEXT},
            ["b.parquet", "integer ids, as in", "a.parquet", "found text ids"],
        ),
        (
            {"a.parquet": TEXT, "b.parquet": NUMBERS},
            ["b.parquet", "text ids, as in", "found integer ids"],
        ),
        (
            {"a.csv": TEXT, "b.parquet": TEXT},
            ["b.parquet: ", "a table as", "a.csv", "one of another kind"],
        ),
        ({"a.parquet": TEXT, "b.csv": TEXT}, ["b.csv: ", "a.parquet", "one of another kind"]),
        (
            {"a.parquet": TEXT, "b.parquet": {"source": [1], "target": ["2"]}},
            ["b.parquet", "ids of one type"],
        ),
        (
            {"a.parquet": TEXT, "b.parquet": {"source": [0.5], "target": [1.5]}},
            ["b.parquet", "integers or text"],
        ),
    ],
)
def test_files_that_cannot_be_one_table_are_named(
    tmp_path: Path, files: dict[str, Any], parts: list[str]
) -> None:
    (tmp_path / "edges").mkdir()
    for name, columns in files.items():
        put_table(tmp_path / "edges" / name, columns)
    nodes = put_table(tmp_path / "nodes.csv", {"id": [1, 2, 3], "x": [0, 1, 2]})
    for table in (None, nodes):
        told(parts, prepare, tmp_path / "edges", table, out=tmp_path / "g.graph")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges", "nodes.csv"]


def test_files_of_other_widths_and_without_rows(tmp_path: Path) -> None:
    (tmp_path / "edges").mkdir()
    (tmp_path / "nodes").mkdir()
    for at, columns in enumerate(
        (NOTHING, {"source": np.array([1], np.int32), "target": np.array([2], np.int32)}, NUMBERS)
    ):
        put_table(tmp_path / "edges" / f"{at}.parquet", columns)
    prepare(tmp_path / "edges", out=tmp_path / "g.graph")
    graph = Graph.open(tmp_path / "g.graph")
    assert (graph.ids[:].tolist(), graph.num_edges, graph.dropped["duplicates"]) == (
        [1, 2, 3],
        2,
        1,
    )
    put_table(tmp_path / "nodes" / "0.parquet", {"id": [1, 2], "x": [0.5, 1]})
    put_table(tmp_path / "nodes" / "1.parquet", {"id": [3], "x": [[1.0, 2.0]]})
    parts = ['1.parquet, column "x"', "single numbers, as in", "found lists"]
    told(parts, prepare, tmp_path / "edges", tmp_path / "nodes", out=tmp_path / "h.graph")


def test_a_table_without_edges_needs_no_types(tmp_path: Path) -> None:
    edges = put_table(
        tmp_path / "edges.parquet",
        pa.table({"source": pa.nulls(0), "target": pa.nulls(0), "weight": pa.nulls(0)}),
    )
    nodes = put_table(tmp_path / "nodes.parquet", {"id": ["a", "b"], "x": [1, 2]})
    prepare(edges, nodes, out=tmp_path / "g.graph")
    same(Graph.open(tmp_path / "g.graph"), read_graph(edges, nodes))


def test_a_place_may_look_like_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    edges = put_table(tmp_path / "edges.csv", {"source": ["a"], "target": ["b"]})
    for name in ("md:x.graph", "q'\".graph"):  # neither an address nor the end of a string
        prepare(edges, out=name)
        assert read_graph(name).num_edges == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "edges.csv",
        "md:x.graph",
        "q'\".graph",
    ]


def warned(call: Any, *given: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*given, **options)
    return [str(one.message) for one in caught if issubclass(one.category, InputWarning)]


def test_edge_columns_that_are_not_used_are_named(tmp_path: Path) -> None:
    columns = {"source": ["a"], "type": ["road"], "target": ["b"], "count": [3]}
    for kind in ("csv", "parquet"):
        edges = put_table(tmp_path / f"edges.{kind}", columns)
        expected = f"{edges}: edge columns that are not used:"
        weights = "If one holds weights: --weight COLUMN (in Python: weight=)."
        rows = "To make a node of each row, with its columns: --edges-as NAME (edges_as=)."
        told = [f'{expected} "type", "count". {weights} {rows}']
        assert warned(read_graph, edges) == told
        assert warned(prepare, edges, out=tmp_path / f"{kind}.graph") == told
        assert warned(read_graph, edges, weight="count") == [f'{expected} "type". {rows}']
        assert warned(read_graph, edges, edges_as="stretch") == []
    assert warned(read_graph, put_table(tmp_path / "plain.csv", TEXT)) == []
    assert '"type", "count"' in warned(Graph.from_frames, pd.DataFrame(columns))[0]
    known = Graph.from_arrays([[0], [1]], ids=["b", "c"])
    assert (
        warned(read_graph, tmp_path / "edges.csv", attach_to=known) == []
    )  # the known graph has decided


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_ids_and_labels_that_mean_nothing_elsewhere_are_named(tmp_path: Path, kind: str) -> None:
    columns = {"source": ["a", "b"], "target": ["b", "NULL"]}
    edges = put_table(tmp_path / f"edges.{kind}", columns)
    told = [f'{edges}: a node called "NULL". If it means nothing: remove its edges.']
    for more in ({}, {"types": "man,dog"}, {"types": "man,man", "source": "source"}):
        assert warned(read_graph, edges, **more) == told
    assert warned(Graph.from_frames, pd.DataFrame(columns)) == [
        "edges" + told[0].removeprefix(str(edges))
    ]
    nodes = put_table(
        tmp_path / f"nodes.{kind}",
        {"id": ["a", "b", "NULL"], "x": [1, 2, 3], "kind": ["NA", "s ", ""]},
    )
    told = [f'{nodes}, column "kind": a label "NA". If it means nothing: leave the cell empty.']
    spaced = f'{nodes}, column "kind": labels with outer spaces, each a class of its own: "s ". '
    told.append(spaced + "Remove the spaces where they mean nothing.")
    assert warned(read_graph, edges, nodes, labels="kind") == told  # the node is listed
    assert warned(prepare, edges, nodes, out=tmp_path / "n", labels="kind") == told
    cased = {"id": ["a", "b", "NULL"], "x": [1, 2, 3], "kind": ["yes", "Yes", "no"]}
    nodes = put_table(tmp_path / f"cased.{kind}", cased)
    told = [
        f'{nodes}, column "kind": labels that differ only in case, each a class of its own: "Yes", "yes".'
    ]
    assert warned(read_graph, edges, nodes, labels="kind") == told


def test_edge_attributes_that_are_not_used_are_named(tmp_path: Path) -> None:
    origin = networkx.Graph()
    origin.add_edge("a", "b", weight=2.0, type="road")
    networkx.write_graphml(origin, tmp_path / "g.graphml")
    assert warned(Graph.from_networkx, origin) == [
        'graph: edge attributes that are not used: "type".'
    ]
    assert warned(read_graph, tmp_path / "g.graphml") == [
        f'{tmp_path / "g.graphml"}: edge attributes that are not used: "type".'
    ]
