"""Text tables with any delimiter, extension and encoding, with and without a header, by every door that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_faults import told

from infomax import Graph, InputError, read_graph
from infomax.io.prepare import prepare

USERS = [["1", "24", "Zoë"], ["2", "53", '"Weird Al" Yankovic'], ["3", "23", "Ann"]]
RATINGS = [["1", "2", "881250949"], ["2", "3", "891717742"], ["3", "1", "878887116"]]


def lines(rows: list[list[str]], delimiter: str, header: str = "") -> str:
    return "\n".join([*([header] if header else []), *(delimiter.join(row) for row in rows), ""])


def put(path: Path, content: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode(encoding))
    return path


@pytest.mark.parametrize("delimiter", ["\t", "|", ";", " "])
def test_a_file_of_any_extension_is_read_by_its_delimiter(tmp_path: Path, delimiter: str) -> None:
    edges = put(tmp_path / "u.data", lines(RATINGS, delimiter))
    told(["u.data", "extension", "--delimiter tab"], read_graph, edges)
    for said in (
        delimiter,
        {"\t": "tab", "|": "bar", ";": "semicolon", " ": "space"}[delimiter],
        None,
    ):
        graph = read_graph(edges, delimiter=said, header=False)
        assert graph.ids.tolist() == [1, 2, 3]
        assert graph.num_edges == 3
    prepare(edges, out=tmp_path / "g.graph", delimiter=delimiter, header=False)
    assert Graph.open(tmp_path / "g.graph").num_edges == 3


def test_each_file_has_its_own_delimiter_where_none_is_said(tmp_path: Path) -> None:
    edges = put(tmp_path / "u.data", lines(RATINGS, "\t"))
    nodes = put(tmp_path / "u.user", lines(USERS, "|"), "latin-1")
    graph = read_graph(edges, nodes, header=False, encoding="latin-1", name="column3")
    assert graph.node_names is not None
    assert graph.node_names[0] == "Zoë"
    assert graph.feature_names == ("column2",)
    np.testing.assert_array_equal(graph.features[:, 0], [24, 53, 23])


def test_a_bad_cell_is_named_by_its_line_without_a_header(tmp_path: Path) -> None:
    edges = put(tmp_path / "u.data", lines(RATINGS, "\t"))
    nodes = put(tmp_path / "u.user", "1|24\n2|inf\n3|7\n")
    told(['u.user, line 2, column "column2"', '"inf"'], read_graph, edges, nodes, header=False)
    put(tmp_path / "u.user", "1|24\n2|5\n3|7|8\n")
    told(["u.user, line 3", "2 columns in every row"], read_graph, edges, nodes, header=False)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_an_encoding_holds_for_all_text_tables(tmp_path: Path, encoding: str) -> None:
    edges = put(tmp_path / "edges.csv", lines(RATINGS, ",", "source,target,when"), encoding)
    nodes = put(tmp_path / "nodes.csv", lines(USERS, ",", "id,age,name"), encoding)
    told(["UTF-8"], read_graph, tmp_path)
    graph = read_graph(edges, nodes, encoding=encoding)
    assert graph.node_names is not None
    assert graph.node_names[0] == "Zoë"


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ({"delimiter": "::"}, ["delimiter", "one character", "sed"]),
        ({"encoding": "martian"}, ["encoding", "Python knows", "martian"]),
    ],
)
def test_what_is_no_delimiter_or_encoding_is_refused(
    tmp_path: Path, said: dict[str, Any], parts: list[str]
) -> None:
    told(parts, read_graph, put(tmp_path / "u.data", lines(RATINGS, "\t")), **said)


def test_folders_of_types_and_of_databases_take_the_same_arguments(tmp_path: Path) -> None:
    put(tmp_path / "typed" / "nodes" / "user.dat", lines(USERS, "|", "id|age|name"))
    put(
        tmp_path / "typed" / "edges" / "user.knows.user.dat",
        lines(RATINGS, "|", "source|target|when"),
    )
    typed = read_graph(tmp_path / "typed", delimiter="|")
    assert (typed.num_nodes, typed.num_edges) == (3, 3)
    put(tmp_path / "shop" / "user.dat", lines(USERS, "|", "id|age|name"))
    put(tmp_path / "shop" / "rating.dat", lines(RATINGS, "|", "id|user_id|when"))
    shop = read_graph(tmp_path / "shop", delimiter="|", key="rating.user_id=user")
    assert shop.types == ("rating", "user")
    assert shop.target("user").node_names is not None


@pytest.mark.parametrize("door", ["tables", "database"])
def test_quotes_line_breaks_and_long_cells_are_read_alike(tmp_path: Path, door: str) -> None:
    long = "x" * 3_000_000
    rows = f'1,"two\nlines",5\n2,"say ""hi""",6\n3,{long},7\n'
    put(tmp_path / "a" / "user.csv", "id,name,age\n" + rows)
    put(tmp_path / "a" / "rating.csv", "id,user_id,size\n1,2,3\n2,3,4\n3,1,5\n")
    if door == "database":
        graph = read_graph(tmp_path / "a", key="rating.user_id=user").target("user")
    else:
        edges = put(tmp_path / "edges.csv", "source,target\n1,2\n2,3\n")
        graph = read_graph(edges, tmp_path / "a" / "user.csv")
    assert graph.node_names is not None
    assert graph.node_names.tolist() == ["two\nlines", 'say "hi"', long]


def test_a_delimiter_that_separates_nothing_is_refused_by_its_option(tmp_path: Path) -> None:
    edges = put(tmp_path / "edges.csv", "source,target\n1,2\n2,3\n")
    with pytest.raises(InputError, match=r'separated by "\.", as --delimiter says'):
        read_graph(edges, delimiter=".")
