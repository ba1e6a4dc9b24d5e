"""The benchmark of the shape of ogbn-papers100M runs with all parts at a toy size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import papers


def test_papers_trains_and_measures_all_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--folder", str(tmp_path / "p"), "--nodes", "2000", "--degree", "8", "--dim", "4"]
    words += ["--device", "cpu", "--steps", "2", "--no-vectors", "--no-second-training"]
    papers.main([*words, "--json", str(tmp_path / "p.json")])
    printed = capsys.readouterr().out
    for stage in ("train", "search for positions", "encoder", "own", "pooled", "all parts"):
        assert f"{stage}  " in printed
    assert "128 singular vectors" in printed
    document = json.loads((tmp_path / "p.json").read_text())
    assert [row["stage"] for row in document["rows"]] == ["train"]
