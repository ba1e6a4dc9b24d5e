"""`infomax info` tells what each column becomes, and what looks wrong; what was said of columns is kept in the run."""

from __future__ import annotations

from collections.abc import Sequence
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
    (tmp_path / "edges.csv").write_text(
        "source,target\n" + "\n".join(f"n{k},n{(7 * k + 1) % 30}" for k in range(30))
    )
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
    told = " ".join(
        infomax("info", tables, "--column", "city=label", "--column", "joined=ignore").out.split()
    )
    assert "city (3 classes)" in told
    assert "joined" not in told


def test_what_looks_wrong_is_told_once(tmp_path: Path) -> None:
    rows = [f"n{k},{10**12 + 10**9 * k},{k % 4 + 1},50 €,x" for k in range(30)]
    for text in (True, False):  # and of numbers alone
        head = "id,reading,rating,price,same" if text else "id,reading,rating"
        lines = [head, *(row if text else ",".join(row.split(",")[:3]) for row in rows)]
        (tmp_path / "nodes.csv").write_text("\n".join(lines), encoding="utf-8")
        (tmp_path / "edges.csv").write_text("source,target\nn0,n1\nn1,n2\n")
        told = infomax("info", tmp_path)
        assert (told.out + told.err).count("it looks like an identifier") == 1, told
        assert ("one value only" in told.out) == text


def test_how_to_write_a_number_is_told_with_the_first_cell_that_is_none(tmp_path: Path) -> None:
    rows = [f"n{k},{k}.5,x" if k % 3 else f"n{k},({k}.50),y" for k in range(30)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,margin,kind", *rows]))
    (tmp_path / "edges.csv").write_text("source,target\nn0,n1\n")
    parts = (
        'line 2, column "margin"',
        'found "(0.50)" among numbers (10 cells of 30), so the column is no feature',
        "which are written as 1200.50, mend or empty the cell, and say --column margin=number",
    )
    message = infomax("info", tmp_path).err
    assert all(part in message for part in parts), message
    refused(infomax("info", tmp_path, "--column", "margin=number"), parts[0], "Correct it")


def tables_with_prices(folder: Path, prices: Sequence[float]) -> str:
    rows = [f"n{row},{price},{'xy'[row % 2]}" for row, price in enumerate(prices)]
    (folder / "nodes.csv").write_text("\n".join(["id,price,colour", *rows]))
    (folder / "edges.csv").write_text("source,target\nn0,n1\nn1,n2\nn2,n3\n")
    return f"{folder / 'edges.csv'},{folder / 'nodes.csv'}"


ORDINARY_PRICES = [15 + (row * 7 % 11) / 4 for row in range(40)]
OUTLIER_NOTE = "one cell, 99999, is so far from all others that these become nearly the same"


def test_a_cell_that_leaves_all_others_nearly_equal_is_named(tmp_path: Path) -> None:
    tables = tables_with_prices(tmp_path, [99999, *ORDINARY_PRICES])
    info = infomax("info", tables)
    assert f'warning, column "price": {OUTLIER_NOTE}' in " ".join(info.out.split())
    assert f'nodes.csv, column "price": {OUTLIER_NOTE}' in " ".join(info.err.split())


def test_training_names_a_cell_that_leaves_all_others_nearly_equal(tmp_path: Path) -> None:
    tables = tables_with_prices(tmp_path, [99999, *ORDINARY_PRICES])
    training = infomax("train", tables, "--epochs", "1", "--out", tmp_path / "run")
    assert OUTLIER_NOTE in " ".join(training.err.split())


@pytest.mark.parametrize(
    "prices",
    [
        [99999, 88888, *ORDINARY_PRICES],  # two cells share the deviation
        [99999, *[15] * 40],  # all others are equal, whatever the one is
        [99999, *ORDINARY_PRICES[:10]],  # few rows
        [1.3**row for row in range(40)],  # amounts that grow by a factor
        [1e20 + 16384 * row for row in range(40)],  # equal but for rounding
    ],
)
def test_numbers_without_a_lone_outlier_are_not_warned_of(
    prices: list[float], tmp_path: Path
) -> None:
    info = infomax("info", tables_with_prices(tmp_path, prices))
    assert "one cell" not in info.out + info.err


def test_a_table_of_which_nothing_becomes_features_is_told(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\nn0,n1\n")
    odd = "name,code,same", "Node {0},c{0}c,x", '"code" (id), "same" (one value)'
    for head, cells, told in (odd, ("name", "Node {0}", "")):
        (tmp_path / "nodes.csv").write_text(
            "\n".join([f"id,{head}", *(f"n{k}," + cells.format(k) for k in range(30))])
        )
        err = infomax("info", tmp_path).err
        assert ("no column becomes features: " in err, told in err) == (bool(told), True)


def test_all_bad_columns_are_told_at_once(tables: str) -> None:
    outcome = infomax(
        "info", tables, "--column", "name=number", "--column", "city=date", "--column", "age=text"
    )
    parts = (
        'line 2, column "name": "Member 0"',
        'line 2, column "city": "Rome"',
        "--column NAME=USE",
    )
    refused(outcome, "nodes.csv: expected columns that become features", *parts)


def test_info_of_a_run_does_not_say_that_nothing_was_dropped(tables: str, tmp_path: Path) -> None:
    """The graph of a run is stored without what was dropped, so that nobody knows."""
    assert "edges dropped" in infomax("info", tables).out
    assert (
        infomax(
            "train", *tables.split(","), "--epochs", 1, "--dim", 4, "--out", tmp_path / "run"
        ).code
        == 0
    )
    told = infomax("info", tmp_path / "run").out
    assert "30" in told
    assert "dropped" not in told
