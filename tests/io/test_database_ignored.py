"""Columns and keys of a database that a person leaves out, and primary keys that a person names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from infomax import read_database
from infomax.errors import InputError
from infomax.io.choices import UserChoices
from infomax.io.database import read_tables
from infomax.io.database.snapshot import Table
from infomax.io.schema.schema_file import write_schema

ROWS = 24
DAYS = [f"2024-01-{1 + row:02}" for row in range(ROWS)]
LATER_DAYS = [f"2024-03-{1 + row:02}" for row in range(ROWS)]


def shop(folder: Path) -> Path:
    """Customers, orders with two dates, and visits of customers to stores at some instant."""
    tables: dict[str, dict[str, list[Any]]] = {
        "customers": {"id": [1, 2, 3], "name": ["Ann", "Bob", "Cid"], "age": [20.5, 31.5, 44.0]},
        "stores": {"id": [1, 2], "size": [10.5, 20.25]},
        "orders": {
            "id": list(range(ROWS)),
            "customer_id": [1 + row % 3 for row in range(ROWS)],
            "store_id": [1 + row % 2 for row in range(ROWS)],
            "order_date": DAYS,
            "shipped_date": LATER_DAYS,
            "total": [row + 0.25 for row in range(ROWS)],
        },
        "visits": {
            "customer_id": [1 + row % 3 for row in range(ROWS)],
            "store_id": [1 + row % 2 for row in range(ROWS)],
            "seen": LATER_DAYS,
        },
    }
    folder.mkdir()
    for name, columns in tables.items():
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def tables_of(path: Path, **choices: Any) -> dict[str, Table]:
    return read_tables(path, UserChoices.of(**choices)).tables


def time_column(path: Path, **choices: Any) -> str:
    time = tables_of(path, **choices)["orders"].schema.time
    return "" if time is None else time.column


IGNORED = [
    {"ignore": "order_date"},
    {"ignore": "orders.order_date"},
    {"columns": {"orders.order_date": "ignore"}},
]


@pytest.mark.parametrize("choice", IGNORED, ids=["COLUMN", "TABLE.COLUMN", "--column"])
def test_a_date_that_is_ignored_is_no_time(tmp_path: Path, choice: dict[str, Any]) -> None:
    path = shop(tmp_path / "shop")
    assert time_column(path) == "order_date"
    assert time_column(path, **choice) == "shipped_date"
    graph = read_database(path, **choice)
    assert not any("order_date" in name for name in graph.target("orders").feature_names)


def test_a_table_of_two_keys_and_ignored_columns_is_one_of_edges(tmp_path: Path) -> None:
    path = shop(tmp_path / "shop")
    assert tables_of(path)["visits"].role == "facts"
    visits = tables_of(path, ignore="visits.seen")["visits"]
    assert visits.role == "edges"
    assert visits.schema.columns["seen"].origin == "said"


def test_a_key_that_is_ignored_leads_to_no_edges(tmp_path: Path) -> None:
    path = shop(tmp_path / "shop")
    relations = {relation.ends for relation in read_database(path).relations}
    assert ("orders", "store_id", "stores") in relations
    graph = read_database(path, ignore="orders.store_id")
    others = {relation.ends for relation in graph.relations}
    assert others == relations - {("orders", "store_id", "stores")}
    assert not any("store" in name for name in graph.target("orders").feature_names)


def test_ignored_columns_are_ignored_by_the_schema_of_the_graph_as_well(tmp_path: Path) -> None:
    path = shop(tmp_path / "shop")
    graph = read_database(path, ignore=["orders.store_id", "order_date"])
    assert graph.schema is not None
    write_schema(graph.schema, tmp_path / "schema.json")
    again = read_database(path, schema=tmp_path / "schema.json")
    assert {relation.ends for relation in again.relations} == {
        relation.ends for relation in graph.relations
    }
    assert again.target("orders").feature_names == graph.target("orders").feature_names


def test_what_cannot_be_ignored_is_refused(tmp_path: Path) -> None:
    path = shop(tmp_path / "shop")
    with pytest.raises(InputError, match=r"orders\.id, the primary key"):
        read_database(path, ignore="orders.id")
    with pytest.raises(InputError, match=r'a column "orders\.colour" in one of the tables'):
        read_database(path, ignore="orders.colour")


def seasons(folder: Path) -> Path:
    """Teams whose key has no name that tells it, and the games that refer to it."""
    teams = [(year, league, team) for year in range(1990, 1996) for league in "AN" for team in "XY"]
    rows = teams * 6
    tables: dict[str, dict[str, list[Any]]] = {
        "teams": {
            "season": [team[0] for team in teams],
            "league": [team[1] for team in teams],
            "team": [team[2] for team in teams],
            "wins": [number * 1.5 for number in range(len(teams))],
        },
        "games": {
            "season": [row[0] for row in rows],
            "league": [row[1] for row in rows],
            "team": [row[2] for row in rows],
            "runs": [number % 7 + 0.5 for number in range(len(rows))],
        },
    }
    folder.mkdir()
    for name, columns in tables.items():
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def test_a_primary_key_of_several_columns_is_that_which_a_person_names(tmp_path: Path) -> None:
    path = seasons(tmp_path / "seasons")
    graph = read_database(path, primary_keys={"teams": "season+league+team"})
    assert graph.nodes["teams"].ids[:2].tolist() == ["1990|A|X", "1990|A|Y"]
    assert [relation.ends for relation in graph.relations] == [
        ("games", "season+league+team", "teams")
    ]
    assert tables_of(path, pk=["teams.season+league+team"])["teams"].primary == (
        "season",
        "league",
        "team",
    )


def test_a_primary_key_that_does_not_tell_rows_apart_is_refused(tmp_path: Path) -> None:
    path = seasons(tmp_path / "seasons")
    with pytest.raises(InputError, match=r"table teams: expected a primary key.*same values twice"):
        read_database(path, primary_keys=["teams.season+league"])
    with pytest.raises(InputError, match=r"--pk: expected a column of teams"):
        read_database(path, primary_keys=["teams.seasons"])
