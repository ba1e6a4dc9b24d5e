"""The generated tables of the benchmark of graph folders make a graph, and a command is measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import growth, large

from infomax import Graph, read_graph
from infomax.io.prepare import prepare

pytest.importorskip("duckdb", reason="prepare sorts with it")


def test_generated_tables_make_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "ROWS", 300)
    large.generate(tmp_path, 1000)
    prepare(
        tmp_path / "edges.parquet",
        tmp_path / "nodes.parquet",
        out=tmp_path / "g.graph",
        labels="kind",
    )
    graph = Graph.open(tmp_path / "g.graph")
    assert (graph.num_nodes, graph.num_features) == (1000, large.FEATURES)
    assert 4000 < graph.num_edges <= 5000
    whole = read_graph(tmp_path / "edges.parquet", tmp_path / "nodes.parquet", labels="kind")
    assert (whole.adjacency != graph.adjacency).nnz == 0
    assert len(np.unique(graph.ids[:])) == 1000


def test_a_command_is_measured() -> None:
    row = large.measured([sys.executable, "-c", "import time; time.sleep(0.3)"])
    assert row["seconds"] > 0.3
    assert row["rss"] > 0
    with pytest.raises(SystemExit, match="ended with 3"):
        large.measured([sys.executable, "-c", "raise SystemExit(3)"])


def test_growth_has_a_row_per_stage_and_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(words: list[str]) -> None:
        nodes, folder, file = words[1::2]
        Path(folder).mkdir()
        found = [{"stage": name, "seconds": float(nodes) ** 2, "cpu": 1.0, "rss": 1.0, "anonymous": 1.0}
                 for name in ("prepare", "info", "train", "embed", "evaluate")]  # fmt: skip
        Path(file).write_text(json.dumps({"rows": found}))

    monkeypatch.setattr(large, "main", measured)
    rows = growth.stages(tmp_path, [10, 100])
    assert [(row["stage"], row["nodes"], row["slope"]) for row in rows] == [
        (stage, n, slope) for stage in growth.STAGES for n, slope in ((10, ""), (100, "2.00"))
    ]
    assert not (tmp_path / "10").exists()
