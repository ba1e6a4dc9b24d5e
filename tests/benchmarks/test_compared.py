"""The comparison with other libraries: what is scored, and the page that is made of the rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import measured
from benchmarks.compared import RESULTS
from benchmarks.compared_graphs import NAMES, Task, same_class
from benchmarks.compared_methods import METHODS, lines
from benchmarks.compared_page import DOCS, GRAPHS, TITLES, figure, table, write_page


def test_each_graph_and_method_has_a_title_and_each_method_some_lines() -> None:
    assert set(GRAPHS) == set(NAMES)
    assert set(TITLES) == set(METHODS)
    assert {name: lines(name) for name in ("svd", "infomax")} == {"svd": 2, "infomax": 3}


def test_neighbours_of_one_class_are_all_of_it_and_nodes_without_labels_are_left_out() -> None:
    codes = np.repeat([0, 1, -1], 20)
    vectors = np.eye(3, dtype=np.float32)[np.where(codes < 0, 0, codes)]
    vectors += 0.01 * np.random.default_rng(0).normal(size=vectors.shape).astype(np.float32)
    assert same_class(vectors, codes) == 100


def test_edges_that_are_scored_are_not_among_those_that_a_method_gets(tmp_path: Path) -> None:
    task = Task.of("communities:300")
    held_out = task.save(tmp_path / "arrays.npz", hold_out=True)
    given = np.load(tmp_path / "arrays.npz")["edges"]
    assert held_out is not None
    assert given.shape[1] + held_out.shape[1] == task.graph.num_edges
    known, hidden = (
        {tuple(sorted(pair)) for pair in ends.T.tolist()} for ends in (given, held_out)
    )
    assert not known & hidden


def test_the_page_has_the_figures_and_says_what_failed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    row = {
        "graph": "cora",
        "lines": 2,
        "machine": "M",
        "cores": 2,
        "commit": "abc",
        "day": "2026-01-01",
        "load": 1.0,
    }
    figures = {
        "accuracy": 81.25,
        "accuracy_std": 1.0,
        "neighbours": 70.0,
        "cpu_s": 3.0,
        "wall_s": 4.0,
        "peak_mb": 100.0,
    }
    rows = [
        {**row, "method": "infomax", **figures, "edges_auc": 90.0, "width": 896},
        {**row, "method": "pyg-dgi", "failed": "not done after 9 CPU seconds"},
    ]
    (tmp_path / "rows.json").write_text(
        json.dumps({"rows": rows, "versions": {"infomax": {"infomax": "1.0"}}})
    )
    write_page(tmp_path / "rows.json", tmp_path)
    text = (tmp_path / "compared.md").read_text()
    assert "**81.2** (3.0)" in text
    assert "- (>9)" in text
    assert "{" not in text
    assert (tmp_path / "compared.png").stat().st_size > 1000


def test_seconds_of_another_machine_than_most_of_a_column_are_marked_and_limits_are_named() -> None:
    row = {"machine": "A", "accuracy": 80.0, "cpu_s": 3.0, "lines": 2}
    rows = {
        **{("cora", method): row for method in ("svd", "sgc")},
        ("cora", "gsvd"): row | {"machine": "B", "cpu_s": 5.0},
        ("pubmed", "svd"): row | {"machine": "B", "cpu_s": 7.0},
        ("pubmed", "pecanpy"): {
            "machine": "A",
            "lines": 7,
            "failed": "not done after 1,200 CPU seconds",
        },
        ("pubmed", "sgc"): {"machine": "A", "lines": 6, "failed": "more than 12 GB of memory"},
    }
    text = table(rows)
    for cell in ("(3.0)", "(5.0°)", "(7.0)", "- (>1,200)", "- (>12 GB)"):
        assert cell in text
    assert text.splitlines()[-1].endswith("| A | B |")
    assert figure(rows, "cora", "gsvd", "cpu_s") == "5.0°"
    assert figure(rows, "cora", "svd", "cpu_s") == "3.0"


def test_the_table_of_figures_is_that_of_its_rows() -> None:
    rows = json.loads(measured.RESULTS.read_text())
    assert measured.PAGE.read_text() == measured.page(rows), "python -m benchmarks.measured --page"
    assert all(row["commit"] and row["command"] for row in rows)


def test_the_page_is_that_of_its_rows(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write_page(RESULTS, tmp_path)
    assert (DOCS / "compared.md").read_text() == (tmp_path / "compared.md").read_text(), (
        "benchmarks.compared --page"
    )
