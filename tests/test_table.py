"""The table on Cora: cells filled, kept, gone on with, and shown."""

from __future__ import annotations

import json
import os
from html.parser import HTMLParser

import pytest

from infomax import table

pytestmark = pytest.mark.skipif("INFOMAX_DATA" not in os.environ, reason="INFOMAX_DATA names no folder with Planetoid")

METHODS = ("Raw features", "LP", "Random-Init")


def make(folder, runs=2, **options):
    return table.make_table(folder, datasets=["cora"], methods=METHODS, runs=runs, device="cpu", **options)


def test_a_stopped_table_goes_on_where_it_was(tmp_path):
    class Killed(Exception):
        pass

    def stop(done, total, note):
        if "Random-Init" in note:
            raise Killed

    with pytest.raises(Killed):
        make(tmp_path, progress=stop)
    seen = []
    result = make(tmp_path, progress=lambda done, total, note: seen.append(note))
    assert len(seen) == 1  # only the second encoder was missing
    whole = make(tmp_path / "whole")
    assert [row["mean"] for row in result["rows"]] == [row["mean"] for row in whole["rows"]]
    make(tmp_path, progress=lambda *_: pytest.fail("there was nothing left to run"))


def test_cells_stand_beside_the_papers_and_the_page_needs_nothing_else(tmp_path):
    rows = {row["method"]: row for row in make(tmp_path)["rows"]}
    assert set(rows) == set(METHODS)
    assert rows["Raw features"]["mean"] == pytest.approx(47.9, abs=1)
    assert rows["Random-Init"]["runs"] == 2
    assert rows["LP"]["paper"] == {"mean": 68.0, "std": None}
    assert json.loads((tmp_path / "table.json").read_text())["rows"]
    assert "47.9" in (tmp_path / "table.md").read_text()
    page = (tmp_path / "table.html").read_text()
    assert "src=" not in page
    assert "<link" not in page
    HTMLParser().feed(page)


def test_unknown_names_are_refused(tmp_path):
    for options in ({"datasets": ["corra"]}, {"methods": ["DGGI"]}):
        with pytest.raises(ValueError, match="Did you mean"):
            table.make_table(tmp_path, **options)
