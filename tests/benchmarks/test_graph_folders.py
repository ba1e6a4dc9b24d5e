"""The generated tables of the benchmark of graph folders make a graph, and a command is measured."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import large

from infomax import Graph, read_graph
from infomax.io.prepare import prepare

pytest.importorskip("duckdb", reason="prepare sorts with it")


def test_generated_tables_make_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "ROWS", 300)
    large.generate(tmp_path, 1000)
    prepare(tmp_path / "edges.parquet", tmp_path / "nodes.parquet", out=tmp_path / "g.graph", labels="kind")
    graph = Graph.open(tmp_path / "g.graph")
    assert (graph.num_nodes, graph.num_features) == (1000, large.FEATURES)
    assert 4000 < graph.num_edges <= 5000
    whole = read_graph(tmp_path / "edges.parquet", tmp_path / "nodes.parquet", labels="kind")
    assert (whole.adjacency != graph.adjacency.loaded()).nnz == 0
    assert len(np.unique(graph.ids[:])) == 1000


def test_a_command_is_measured() -> None:
    row = large.measured([sys.executable, "-c", "import time; time.sleep(0.3)"])
    assert row["seconds"] > 0.3
    assert row["rss"] > 0
    with pytest.raises(SystemExit, match="ended with 3"):
        large.measured([sys.executable, "-c", "raise SystemExit(3)"])
