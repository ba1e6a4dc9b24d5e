"""infomax convert and info: what a graph's file says, and what is not used of it, is told."""

from __future__ import annotations

from pathlib import Path

import networkx
import pytest
from shell import infomax, refused


def test_a_file_says_whether_edges_are_directed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    networkx.write_graphml(networkx.DiGraph([("a", "b"), ("c", "b")]), "d.graphml")
    there = infomax("convert", "d.graphml", "--out", "d.graph")
    assert (there.code, "2 directed edges" in there.out, "edgedefault" in there.err) == (
        0,
        True,
        True,
    )
    # Nothing has to be said to read it back.
    assert "2 (directed)" in infomax("info", "d.graph").out
    both = infomax("info", "d.graphml", "--undirected")
    assert (both.code, both.err, "directed" in both.out) == (0, "", False)
    refused(
        infomax("info", "d.graph", "--undirected"),
        "d.graph",
        "--undirected",
        "edges that have directions",
    )


def test_edge_columns_that_are_not_used_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text("source,target,type,count\na,b,road,3\n")
    shown = infomax("info", "edges.csv")
    assert (shown.code, shown.err.count("\n")) == (0, 1)
    assert shown.err.startswith(
        'warning: edges.csv: edge columns that are not used: "type", "count". '
    )
    assert (
        '"type". To make a node of each row'
        in infomax("info", "edges.csv", "--weight", "count").err
    )


def test_what_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    networkx.write_graphml(networkx.Graph([("", "b")]), "g.graphml")
    refused(
        infomax("convert", "g.graphml", "--out", "far/tables"),
        "ids that are not empty",
        "write an .npz",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["g.graphml"]


def test_what_tables_keep_of_encoded_columns_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text("source,target\na,b\n")
    Path("nodes.csv").write_text("id,size,city\na,1,Rome\nb,2,Oslo\nc,3,Rome\nd,4,Oslo\n")
    assert infomax("convert", "edges.csv,nodes.csv", "--out", "g.npz").err == ""
    told = "Written are the features that the columns size, city became, not the columns. An .npz or NAME.graph"
    assert (
        infomax("convert", "g.npz", "--out", "e.csv,n.csv").err.replace("\n", " ").startswith(told)
    )
