"""What a column is can be said of one type of several: TYPE.NAME."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_faults import told
from test_prepare import tabled

from infomax import Graph, read_graph
from infomax.io.prepare import prepare

PAPER = {
    "pid": ["p0", "p1", "p2", "p3"],
    "title": ["On a", "On b", "On c", "On d"],
    "year": [1, 2, 2, 1],
}
AUTHOR = {"aid": ["a0", "a1", "a2"], "full": ["Ann A", "Bo B", "Cy C"], "year": [7, 8, 8]}
WRITES = {"source": ["a0", "a1", "a2", "a0"], "target": ["p0", "p1", "p2", "p3"]}
SAID = {"year": "number", "paper.year": "category", "author.full": "name", "paper.title": "name"}


def folder(path: Path, new: str = "") -> Path:
    for name, columns in {
        "nodes/paper": PAPER,
        "nodes/author": AUTHOR,
        "edges/author.writes.paper": WRITES,
    }.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        ids = ("pid", "aid", "source", "target")
        renamed = {
            key: [new + cell for cell in cells] if key in ids else cells
            for key, cells in columns.items()
        }
        tabled(path / f"{name}.csv", renamed)
    return path


def check(graph: Graph) -> None:
    papers, authors = graph.target("paper"), graph.target("author")
    assert papers.feature_names == ("year=1", "year=2")
    assert authors.feature_names == ("year",)
    assert (papers.node_names[:].tolist(), authors.node_names[:].tolist()) == (
        PAPER["title"],
        AUTHOR["full"],
    )


def test_a_choice_for_a_type_goes_before_that_for_all(tmp_path: Path) -> None:
    check(read_graph(folder(tmp_path / "tables"), columns=SAID))
    prepare(tmp_path / "tables", out=tmp_path / "stored.graph", columns=SAID)
    check(read_graph(tmp_path / "stored.graph"))
    frames = {
        name: pd.DataFrame(columns) for name, columns in (("paper", PAPER), ("author", AUTHOR))
    }
    check(
        Graph.from_frames(
            {("author", "writes", "paper"): pd.DataFrame(WRITES)}, frames, columns=SAID
        )
    )


def test_labels_and_ids_of_one_type(tmp_path: Path) -> None:
    paper = {"title": PAPER["title"], "pid": PAPER["pid"], "year": PAPER["year"]}
    tables = folder(tmp_path)
    tabled(tables / "nodes/paper.csv", paper)
    graph = read_graph(
        tables, columns={"paper.pid": "id", "author.year": "label", "paper.title": "ignore"}
    )
    assert graph.target("paper").feature_names == ("year",)
    assert (list(graph.target("author").labels), list(graph.target("paper").labels)) == (
        ["year"],
        [],
    )


def test_new_nodes_need_no_choice_again(tmp_path: Path) -> None:
    graph = read_graph(folder(tmp_path / "tables"), columns=SAID)
    grown = read_graph(folder(tmp_path / "new", "new "), attach_to=graph)
    assert grown.target("paper").node_names.tolist() == 2 * PAPER["title"]
    assert grown.target("author").node_names.tolist() == 2 * AUTHOR["full"]


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ({"papr.year": "category"}, ["columns: ", '"papr.year"', 'Did you mean "paper.year"']),
        ({"paper.yer": "category"}, ["columns: ", '"paper.yer"', 'Did you mean "paper.year"']),
        (
            {"author.title": "text"},
            ["columns: ", '"author.title"', "the node tables of author, paper"],
        ),
        ({"yer": "number"}, ["columns: ", '"yer"', 'Did you mean "year"']),
        ({"paper.title": "name", "paper.year": "name"}, ["name: ", "one per type (TYPE.NAME)"]),
        ({"title": "name", "full": "name"}, ["name: ", "one per type (TYPE.NAME)"]),
    ],
)
def test_an_unknown_type_or_column_is_refused(
    tmp_path: Path, said: dict[str, str], parts: list[Any]
) -> None:
    told(parts, read_graph, folder(tmp_path), columns=said)
