"""A database at the command line: from the file to vectors in it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sample_shop import sqlite_file
from shell import infomax, refused


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    return sqlite_file(tmp_path_factory.mktemp("shop") / "shop.db")


@pytest.fixture(scope="module")
def run(shop: Path) -> Path:
    outcome = infomax("train", shop, "--out", shop.with_name("run"), "--dim", 8, "--epochs", 3)
    assert outcome.code == 0, outcome.err
    assert "trained: customers, orders, products, tags" in outcome.err
    assert "not trained, as facts: lines, staff; to train one: --type lines" in outcome.err
    return shop.with_name("run")


def test_info_draws_the_tables_and_says_how_to_choose(shop: Path) -> None:
    outcome = infomax("info", shop, "--table", "notes=ignore")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert len(lines) <= 40
    assert lines[:5] == [
        "lines",
        "├ order_id ─ orders",
        "│ └ customer_id ─ customers",
        "│   └ city_id = cities",
        "└ product_id ─ products",
    ]
    for option in ("--key", "--table", "--name", "--time", "--type"):
        assert option in outcome.out
    assert infomax("info", shop, "--type", "customers").code == 0


def test_a_type_is_named_in_the_singular_and_in_any_case(shop: Path, tmp_path: Path) -> None:
    outcome = infomax(
        "train", shop, "--out", tmp_path / "run", "--type", "Customer", "--dim", 4, "--epochs", 1
    )
    assert outcome.code == 0, outcome.err
    assert [path.name for path in (tmp_path / "run").iterdir() if path.is_dir()] == ["customers"]
    refused(
        infomax("train", shop, "--out", tmp_path / "other", "--type", "dog"),
        "one of customers",
        'found "dog"',
    )


def test_info_counts_the_rows_as_of_a_day(shop: Path) -> None:
    cells = {
        line.split("│")[1].strip(): line.split("│")[2].strip()
        for line in described(shop)
        if "│" in line
    }
    assert {name: cells[name] for name in ("customers", "lines", "orders")} == {
        "customers": "20",
        "lines": "6",
        "orders": "3",
    }
    outcome = infomax("info", shop, "--as-of", "2024-13-01")
    assert outcome.code == 2
    assert not outcome.out


def described(shop: Path) -> list[str]:
    """What info prints below its drawing."""
    lines = infomax("info", shop, "--as-of", "2024-01-03").out.splitlines()
    return lines[lines.index(next(line for line in lines if "┃" in line)) :]


def test_rows_are_found_by_table_and_name(run: Path) -> None:
    for word in ("customer:Ann3 Bell", "CUSTOMERS:Ann13", "product:tea"):
        outcome = infomax("neighbours", run, word, "-k", 2)
        assert outcome.code == 0, outcome.err
    assert "name of" in infomax("neighbours", run, "customer:Bell").err


def test_a_whole_name_comes_before_a_part_of_one_of_another_type(tmp_path: Path) -> None:
    more = "INSERT INTO tags VALUES (3, 'teapots')"
    shop = sqlite_file(tmp_path / "shop.db", more)
    words = (
        "--type",
        "tags",
        "--type",
        "products",
        "--dim",
        8,
        "--epochs",
        1,
        "--out",
        tmp_path / "run",
    )
    assert infomax("train", shop, *words).code == 0
    outcome = infomax("neighbours", tmp_path / "run", "tea", "-k", 1)
    assert outcome.code == 0, outcome.err
    assert "Nearest to 10 (tea)" in outcome.out


def test_vectors_are_searched_by_vectors(run: Path, tmp_path: Path) -> None:
    assert infomax("embed", run, "--type", "product", "--out", tmp_path / "v.npy").code == 0
    outcome = infomax(
        "neighbours",
        run,
        "--type",
        "product",
        "--vector",
        tmp_path / "v.npy",
        "-k",
        1,
        "--out",
        tmp_path / "n.json",
    )
    assert outcome.code == 0, outcome.err
    near = json.loads((tmp_path / "n.json").read_text())
    assert "pot" in str(near)
    np.save(tmp_path / "w.npy", np.ones((1, 3)))
    assert infomax("neighbours", run, "--type", "product", "--vector", tmp_path / "w.npy").code == 2


def test_vectors_go_back_to_the_rows(shop: Path, run: Path) -> None:
    outcome = infomax("embed", run, "--into", f"sqlite:///{shop}:vectors")
    assert outcome.code == 0, outcome.err
    tables = "vectors_customers, vectors_orders, vectors_products, vectors_tags"
    described_again = infomax("info", shop).out
    assert f"nothing: {tables}, as they hold vectors of other rows" in described_again
    with closing(sqlite3.connect(shop)) as connection:
        query = "SELECT name, vector FROM products JOIN vectors_products USING (id) ORDER BY id"
        rows = connection.execute(query).fetchall()
        for kind in ("customers", "orders", "products", "tags"):
            connection.execute(f"DROP TABLE vectors_{kind}")
    assert [name for name, _ in rows] == ["tea", "cup", "pot"]
    assert len(json.loads(rows[0][1])) >= 8
    assert infomax("embed", run).code == 2
    refused(
        infomax("embed", run, "--into", f"sqlite:///{shop}"),
        "expected ADDRESS:TABLE",
        'found "sqlite:///',
    )


def test_vectors_of_all_types_are_written_or_none(shop: Path, run: Path) -> None:
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("CREATE TABLE mine_tags (a INTEGER)")
    refused(
        infomax("embed", run, "--into", f"sqlite:///{shop}:mine"),
        "table mine_tags",
        "the columns a",
    )
    with closing(sqlite3.connect(shop)) as connection:
        assert connection.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'mine%'"
        ).fetchall() == [("mine_tags",)]
        connection.execute("DROP TABLE mine_tags")


def test_a_run_is_taken_to_a_later_database_without_saying_keys_again(
    run: Path, tmp_path: Path
) -> None:
    later = sqlite_file(tmp_path / "later.db")
    outcome = infomax("update", run / "customers", later, "--out", tmp_path / "same")
    assert outcome.code == 0, outcome.err
    assert (
        "0 new nodes, 0 gone; 0 edges came, went or changed; 0 nodes with other features"
        in outcome.out
    )
    with closing(sqlite3.connect(later)) as connection:
        connection.execute("INSERT INTO customers VALUES (21, 'Zoe', 'Bell', 33.0, 2)")
        connection.commit()
    outcome = infomax("update", run / "customers", later, "--out", tmp_path / "more")
    assert outcome.code == 0, outcome.err
    assert "1 new node, 0 gone" in outcome.out
