import json

import pytest

from infomax.evaluation.results import score_text, summarise
from infomax_paper.printed import PAPER


def test_a_row_is_the_promised_json():
    row = summarise("DGI", [0.81, 0.82, 0.83], 12.5, PAPER["cora", "DGI"]).to_dict()
    assert list(row) == [
        "method",
        "metric",
        "mean",
        "std",
        "runs",
        "paper",
        "seconds",
        "splits",
        "split_std",
        "costs",
    ]
    assert row["mean"] == pytest.approx(82)
    assert row["std"] == pytest.approx(1)
    assert json.loads(json.dumps(row)) == row
    assert row["paper"] == {"mean": 82.3, "std": 0.6}
    assert (row["method"], row["metric"], row["runs"], row["seconds"]) == (
        "DGI",
        "accuracy",
        3,
        12.5,
    )


def test_micro_f1_stays_a_fraction_and_one_run_has_no_deviation():
    row = summarise("DGI", [0.64], 1.0, None, metric="micro-F1").to_dict()
    assert row["mean"] == pytest.approx(0.64)
    assert row["std"] == 0
    assert row["paper"] is None


def test_a_score_is_told_as_the_paper_tells_it():
    assert score_text(82.251, 0.649, "accuracy") == "82.3 ± 0.6"
    assert score_text(0.638, 0.002, "micro-F1") == "0.638 ± 0.002"
    assert score_text(68.0, None, "accuracy") == score_text(68.0, 0.0, "accuracy") == "68.0"


def test_the_papers_table_is_whole():
    # 8 methods on three data sets; 11 on two, less 3 dashes.
    assert len(PAPER) == 8 * 3 + 11 * 2 - 3
    assert all(
        mean > 40
        for (dataset, _), (mean, _) in PAPER.items()
        if dataset in ("cora", "citeseer", "pubmed")
    )
    assert all(
        0 < mean < 1 for (dataset, _), (mean, _) in PAPER.items() if dataset in ("reddit", "ppi")
    )
    assert PAPER["ppi", "DGI"] == (0.638, 0.002)
    assert PAPER["pubmed", "GCN"] == (79.0, None)
