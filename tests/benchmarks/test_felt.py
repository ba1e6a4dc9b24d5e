"""The last figures of each machine stand beside new ones."""

from __future__ import annotations

import json

from benchmarks.felt import keep, last


def test_the_figures_of_a_run_are_kept_beside_those_of_other_machines(tmp_path):
    path = tmp_path / "felt.json"
    path.write_text(
        json.dumps(
            {"cora": {"H200": {"map": [3.0, None]}, "N1": {"info": [0.6, 0.7], "map": [9, 9]}}}
        )
    )
    keep("cora", "N1", [{"command": "map", "best_s": 4.126, "cpu_s": 8.004}], path)
    assert last("cora", "map", path) == "H200 3.00, -; N1 4.13, 8.00"
    assert last("cora", "info", path) == "N1 0.60, 0.70"  # it was not run again
    assert last("cora", "train", path) == last("pubmed", "map", path) == ""
