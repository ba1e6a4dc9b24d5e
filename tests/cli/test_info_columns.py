"""`infomax info` tells what each column becomes, and what looks wrong; what was said of columns is kept in the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import infomax, refused

pytest.importorskip("pyarrow", reason="columns that are no numbers are read with it")


@pytest.fixture
def tables(tmp_path: Path) -> str:
    """The names of an edge table and a node table with columns of many kinds."""
    rows = [
        f"n{k},Member {k},{'' if k % 5 else k},{k % 2 == 0},{['Rome', 'Oslo', 'NA'][k % 3]},2020-01-{k % 28 + 1:02d},x"
        for k in range(30)
    ]
    (tmp_path / "nodes.csv").write_text("id,name,age,paid,city,joined,same\n" + "\n".join(rows))
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"n{k},n{(7 * k + 1) % 30}" for k in range(30)))
    return f"{tmp_path / 'edges.csv'},{tmp_path / 'nodes.csv'}"


def test_info_tells_what_columns_become(tables: str) -> None:
    told = " ".join(infomax("info", tables).out.split())
    for row in (
        "│ name │ name │ 30 │ 0 │ the names of nodes │",
        "│ age │ number │ 6 │ 24 │ 2 features: value, missing │",
        "│ paid │ boolean │ 2 │ 0 │ 1 feature: value │",
        "│ city │ category │ 2 │ 10 │ 3 features: 2 values, missing │",
        "│ same │ category │ 1 │ 0 │ nothing │",
        'warning, column "same": it has one value only, so it is no feature.',
    ):
        assert row in told, told
    assert "joined │ date │ 28 │ 0 │ 5 features: time, season, weekday" in told
    told = " ".join(infomax("info", tables, "--column", "city=label", "--column", "joined=ignore").out.split())
    assert "city (3 classes)" in told
    assert "joined" not in told


def test_all_bad_columns_are_told_at_once(tables: str) -> None:
    outcome = infomax("info", tables, "--column", "name=number", "--column", "city=date", "--column", "age=text")
    parts = 'line 2, column "name": "Member 0"', 'line 2, column "city": "Rome"', "--column NAME=KIND"
    refused(outcome, "nodes.csv: expected columns that become features", *parts)
