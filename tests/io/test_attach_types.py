"""New nodes of several types, attached to a known graph by the tables of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_faults import told
from test_typed import CITES, PAPERS, WRITES, relations, tabled, write

from infomax import Graph, read_graph
from infomax.arrays.positions import unit
from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import structural_features_named

NEW = {"id": [9, 2], "x": [0.5, 6], "y": [1, -2]}
WROTE = {"author": ["ann", "eve", "eve"], "paper": [9, 5, 2]}


@pytest.fixture
def known(tmp_path: Path) -> Graph:
    papers = {name: column for name, column in PAPERS.items() if name != "field"}
    return read_graph(write(tmp_path / "known", nodes__paper=papers))


def grown(tmp_path: Path, known: Graph, **changed: Any) -> Graph:
    folder = tmp_path / f"new{len(list(tmp_path.iterdir()))}"
    content: dict[str, Any] = {
        "nodes__paper": NEW,
        "edges__author.writes.paper": WROTE,
        "edges__paper.cites.paper": {"source": [9], "target": [7]},
    }
    for name, columns in (content | changed).items():
        if columns:
            write_one(folder, name.replace("__", "/"), columns)
    return read_graph(folder, attach_to=known)


def write_one(folder: Path, name: str, columns: dict[str, list[Any]]) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def test_the_grown_graph_is_the_one_of_all_tables(tmp_path: Path, known: Graph) -> None:
    """Relations, ids and features are those of tables that hold known and new nodes; known positions stay."""
    graph = grown(tmp_path, known)
    papers = {name: PAPERS[name] + NEW[name] for name in ("id", "x", "y")}
    writes = {name: WRITES[name] + WROTE[name] for name in WRITES}
    cites = {"source": [*CITES["source"], 9], "target": [*CITES["target"], 7]}
    tables = {
        "nodes__paper": papers,
        "edges__author.writes.paper": writes,
        "edges__paper.cites.paper": cites,
    }
    whole = read_graph(write(tmp_path / "whole", **tables))
    assert relations(graph) == relations(whole)
    for kind in whole.types:
        assert graph.target(kind).ids.tolist() == whole.target(kind).ids.tolist()
    np.testing.assert_array_equal(graph.target("paper").features, whole.target("paper").features)
    assert graph.splits["new"].tolist() == [False, False, False, True]
    assert graph.target("paper").splits["new"].tolist() == [False] * 4 + [True] * 2
    np.testing.assert_array_equal(graph.features[:3], known.features)


def test_a_new_node_stands_among_its_neighbours(tmp_path: Path, known: Graph) -> None:
    """Papers have features, so a paper stands where its authors do, and a new author among her papers."""
    graph = grown(tmp_path, known, nodes__paper=None, **{
        "edges__author.writes.paper": {"author": ["eve", "eve"], "paper": [5, 3]}, "edges__paper.cites.paper": None,
    })  # fmt: skip
    five, _, bob = known.features
    papers = [unit(five[None]), unit((five + bob)[None])]
    np.testing.assert_allclose(graph.features[3:], unit(sum(papers) / 2), atol=1e-6)


def test_degrees_are_counted_again(tmp_path: Path) -> None:
    known = read_graph(write(tmp_path / "known"), features="degrees")
    wrote = {"author": ["ann"] * 4, "paper": [9, 2, 5, 3]}
    graph = grown(
        tmp_path, known, nodes__paper={"id": [9, 2]}, **{"edges__author.writes.paper": wrote}
    )
    assert {
        structural_features_named(graph.target(kind).feature_names) for kind in graph.types
    } == {"degrees"}
    before, after = dense(known.features).argmax(axis=1), dense(graph.features).argmax(axis=1)
    assert (before[0], before[1]) == (after[0], before[2])
    assert after[1] > before[1]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nodes__paper": {"id": [9, 7], "x": [0.5, 6], "y": [1, -2]}}, "paper.csv, line 3: expected the id of a new"),
        ({"nodes__paper": {"id": [9], "x": [0.5], "y": [1]}}, "author.writes.paper.csv, line 4"),
        ({"nodes__paper": {"id": [9, 2], "x": [0.5, 6]}}, "y"),
        ({"nodes__paper": None}, 'line 2, column "paper": expected an id of the known graph, or listed in a'),
        ({"edges__author.reads.paper": WROTE}, "a relation of the known graph"),
        ({"nodes__venue": {"id": [1]}}, "a type of the known graph (author, paper)"),
        ({"nodes__paper": None, "edges__author.writes.paper": {"author": ["ann"], "paper": [3]},
          "edges__paper.cites.paper": None}, "at least one new node"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    tmp_path: Path, known: Graph, changed: dict[str, Any], message: str
) -> None:
    told([message], grown, tmp_path, known, **changed)


def test_a_table_alone_is_refused(tmp_path: Path, known: Graph) -> None:
    write_one(tmp_path, "edges", WROTE)
    told(
        ["edges.csv", "a table for each relation"],
        read_graph,
        tmp_path / "edges.csv",
        attach_to=known,
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_new_rows_without_ids_are_numbered_on(tmp_path: Path, suffix: str) -> None:
    """As the known rows were, from 1: the first new payment comes after the last known one."""
    old = tabled(
        tmp_path / f"old.{suffix}", {"person": [1, 1, 2], "shop": [2, 2, 3], "amount": [10.5, 7, 1]}
    )
    known = read_graph(old, edges_as="payment", types="person,shop")
    new = tabled(tmp_path / f"new.{suffix}", {"person": [2, 9], "shop": [3, 2], "amount": [4, 5]})
    graph = read_graph(new, attach_to=known)
    payments = graph.target("payment")
    assert payments.ids.tolist() == [1, 2, 3, 4, 5]
    assert payments.features.ravel().tolist() == [10.5, 7, 1, 4, 5]
    assert payments.splits["new"].tolist() == [False] * 3 + [True] * 2
    assert graph.target("person").ids.tolist() == [1, 2, 9]
    assert relations(graph) == {
        ("person", "source", "payment"): [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]],
        ("payment", "target", "shop"): [[1, 0], [1, 0], [0, 1], [0, 1], [1, 0]],
    }


def test_new_rows_need_ids_where_the_known_ones_have_words(tmp_path: Path) -> None:
    old = tabled(
        tmp_path / "old.csv", {"id": ["p", "q"], "person": [1, 1], "shop": [2, 3], "amount": [1, 2]}
    )
    known = read_graph(old, edges_as="payment", types="person,shop", source="person", target="shop")
    new = tabled(tmp_path / "new.csv", {"person": [1], "shop": [2], "amount": [4]})
    told(["new.csv", 'a column "id"'], read_graph, new, attach_to=known)


def test_new_nodes_keep_their_names(tmp_path: Path) -> None:
    """Authors have a name alone, papers a title, which is features as well."""
    tables = {
        "known": (["1,Ann", "3,Eve"], ["5,on the nature,1905", "7,of mice and men,1937"], "1,5"),
        "new": (["2,Bob"], ["6,on the stars,1910"], "2,6"),
    }
    for folder, (authors, papers, writes) in tables.items():
        write_lines(tmp_path / folder / "nodes" / "author.csv", "id,name", *authors)
        write_lines(tmp_path / folder / "nodes" / "paper.csv", "id,title,year", *papers)
        write_lines(tmp_path / folder / "edges" / "author.writes.paper.csv", "author,paper", writes)
    graph = read_graph(tmp_path / "new", attach_to=read_graph(tmp_path / "known"))
    assert graph.target("author").node_names.tolist() == ["Ann", "Eve", "Bob"]
    assert graph.target("paper").node_names.tolist() == [
        "on the nature",
        "of mice and men",
        "on the stars",
    ]


def write_lines(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_repeated_edges_add_up_to_those_that_are_known(
    tmp_path: Path, weighted: bool
) -> None:
    """An edge that is known, and twice in the new table: its weights add up; without weights it counts once."""
    weights = ({"weight": [2, 1]}, {"weight": [0.5, 0.25, 4]}) if weighted else ({}, {})
    old = tabled(tmp_path / "old.csv", {"user": [1, 2], "item": [5, 6], **weights[0]})
    new = tabled(tmp_path / "new.csv", {"user": [1, 1, 3], "item": [5, 5, 6], **weights[1]})
    grown = read_graph(new, attach_to=read_graph(old, types="user,item"))
    expected = [[2.75, 0], [0, 1], [0, 4]] if weighted else [[1, 0], [0, 1], [0, 1]]
    assert relations(grown) == {("user", "to", "item"): expected}
