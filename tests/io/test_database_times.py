"""Times of the rows of a database: which column they are in, what its numbers mean, and what is inherited."""

from __future__ import annotations

import json
import sqlite3
import warnings
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from sample_shop import duckdb_file, sqlite_file

from infomax import read_database
from infomax.arrays.times import parse_time
from infomax.errors import InputError, InputWarning
from infomax.io.choices import UserChoices
from infomax.io.database import read_tables
from infomax.io.database.snapshot import Snapshot
from infomax.io.database.times import take_times
from infomax.io.questions import read_questions
from infomax.io.schema.schema import TimeUse
from infomax.io.schema.schema_file import from_json, to_json

CUSTOMERS: dict[str, list[Any]] = {"id": [1, 2, 3], "age": [20.5, 31.5, 44.0]}
ROWS = 12


def folder(path: Path, suffix: str = "parquet", **tables: Any) -> Path:
    """Customers, and tables of rows that refer to them, as files."""
    path.mkdir()
    write = csv.write_csv if suffix == "csv" else parquet.write_table
    for name, columns in {"customers": CUSTOMERS, **tables}.items():
        write(pa.table(columns), path / f"{name}.{suffix}")
    return path


def orders(**columns: Any) -> dict[str, Any]:
    """Twelve orders with keys to customers, and other columns."""
    numbers = [n + 0.25 for n in range(ROWS)]
    owners = [1 + n % 3 for n in range(ROWS)]
    return {"id": list(range(ROWS)), "customer_id": owners, "total": numbers, **columns}


def days(first: str, step: int = 1) -> list[str]:
    start = np.datetime64(first, "D")
    return [str(start + step * n) for n in range(ROWS)]


def snapshot_of(path: Path, **choices: Any) -> Snapshot:
    return read_tables(path, UserChoices.of(**choices))


def time_of(path: Path, table: str, **choices: Any) -> TimeUse:
    time = snapshot_of(path, **choices).tables[table].schema.time
    assert time is not None
    return time


UNITS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("day", ["1972-03-01", "2024-03-01"])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_unit_of_numbers_is_that_of_the_column(
    tmp_path: Path, unit: str, day: str, suffix: str
) -> None:
    if unit == "seconds" and day < "1973":
        pytest.skip("such numbers are counts: see LEAST_SECONDS")
    seconds = [parse_time(cell) // 1_000_000 for cell in days(day, 40)]
    whens = [second * UNITS[unit] for second in seconds]
    path = folder(tmp_path / "shop", suffix, orders=orders(at=whens))
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        graph = read_database(path, time="orders.at")
    assert graph.nodes["orders"].times.tolist() == [second * 1_000_000 for second in seconds]
    assert time_of(path, "orders", time="orders.at").unit == unit


def test_numbers_far_from_today_are_told(tmp_path: Path) -> None:
    whens = [1_700_000_000 + n for n in range(ROWS - 1)] + [9_999_999_999]
    path = folder(tmp_path / "shop", orders=orders(at=whens))
    told = r"read as seconds since 1970; before 1900 or after 2100 in 1 cell of 12, such as \"9999999999\""
    with pytest.warns(InputWarning, match=told):
        read_database(path, time="orders.at")


def test_years_are_times(tmp_path: Path) -> None:
    path = folder(tmp_path / "shop", orders=orders(yearID=[1985 + n for n in range(ROWS)]))
    graph = read_database(path, time="orders.yearID")
    assert graph.nodes["orders"].times[:2].tolist() == [
        parse_time("1985-01-01"),
        parse_time("1986-01-01"),
    ]
    assert (
        read_database(path, time="orders.yearID", as_of="1990-06-01").nodes["orders"].num_nodes == 6
    )
    table = folder(tmp_path / "text", "csv", orders=orders(yearID=[1985] * ROWS))
    assert read_database(table, time="orders.yearID").nodes["orders"].times[0] == parse_time(
        "1985-01-01"
    )


def test_seconds_in_a_column_of_sqlite_declared_as_time_stamps_are_times(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, age REAL)")
        connection.execute("INSERT INTO customers VALUES (1, 20.5), (2, 31.5)")
        connection.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers, "
            "at TIMESTAMP, total REAL)"
        )
        rows = [(n, 1 + n % 2, 1_700_000_000 + n, n / 4) for n in range(ROWS)]
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    times = read_database(path, time="orders.at").nodes["orders"].times
    assert times[:2].tolist() == [1_700_000_000_000_000, 1_700_000_001_000_000]


def test_a_question_at_the_very_instant_of_a_row_is_not_before_it(tmp_path: Path) -> None:
    """Nanoseconds of rows and of questions are cut to microseconds in the same way, before 1970 as well."""
    base = parse_time("2024-03-01") * 1000
    moments = [base + 1500, base + 1999, base + 2001] * 4
    for name, cells in {
        "stamps": pa.array(moments, pa.int64()).cast(pa.timestamp("ns")),
        "text": [str(np.datetime64(moment, "ns")) for moment in moments],
        "numbers": moments,
    }.items():
        path = folder(tmp_path / name, orders=orders(ordered=cells))
        graph = read_database(path, time="orders.ordered").target("orders")
        asked = pa.table(
            {"id": list(range(ROWS)), "time": pa.array(moments).cast(pa.timestamp("ns"))}
        )
        _, rows, times = read_questions(asked, graph)
        assert rows.tolist() == list(range(ROWS))
        assert (
            times.tolist()
            == graph.nodes_in_view.times.tolist()
            == [moment // 1000 for moment in moments]
        )


# Of several dates that of the event


def test_the_date_of_an_event_is_preferred_and_others_are_named(tmp_path: Path) -> None:
    dates = {
        "required_date": days("2024-01-09"),
        "order_date": days("2024-01-02"),
        "shipped_date": days("2024-01-05"),
    }
    time = time_of(folder(tmp_path / "shop", orders=orders(**dates)), "orders")
    assert (time.column, time.origin) == ("order_date", "found")
    assert time.reason == "it is called after the table; not required_date, shipped_date"
    assert set(time.candidates) == set(dates)
    graph = read_database(tmp_path / "shop", as_of="2024-01-03")
    assert graph.nodes["orders"].num_nodes == 2


def test_the_earliest_of_dates_is_that_of_the_event_where_names_do_not_tell(tmp_path: Path) -> None:
    dates = {"paid": days("2024-01-09"), "begun": days("2024-01-02")}
    path = folder(tmp_path / "shop", orders=orders(**dates))
    assert time_of(path, "orders").column == "begun"
    mixed = {
        "paid": days("2024-01-09"),
        "begun": [*days("2024-01-02")[:6], *days("2025-01-02")[:6]],
    }
    path = folder(tmp_path / "other", orders=orders(**mixed))
    time = time_of(path, "orders")
    assert not time.column
    assert time.reason.startswith("several dates, of which none is clearly the row's own")
    with pytest.raises(
        InputError, match=r'--time orders.paid; there are "orders.paid", "orders.begun"'
    ):
        read_database(path, as_of="2024-06-01")


def test_a_date_that_nearly_every_row_has_comes_before_one_that_is_called_as_times_are(
    tmp_path: Path,
) -> None:
    some = [day if number % 4 else None for number, day in enumerate(days("2024-01-01"))]
    columns = {"date": some, "paid": days("2024-02-01"), "back": some}
    time = time_of(folder(tmp_path / "shop", orders=orders(**columns)), "orders")
    assert time.column == "paid"
    assert (
        time.reason == "it is the only date of the event that nearly every row has; not date, back"
    )
    columns["sent"] = days("2024-01-20")
    time = time_of(folder(tmp_path / "two", orders=orders(**columns)), "orders")
    assert time.column == "sent"
    assert time.reason.startswith("it is the earliest date of nearly every row")


def test_dates_of_birth_and_dates_that_are_due_are_not_those_of_the_row(tmp_path: Path) -> None:
    path = folder(tmp_path / "shop", orders=orders(due_date=days("2024-01-09")))
    assert not time_of(path, "orders").column
    assert time_of(path, "orders", time="orders.due_date").column == "due_date"


def test_no_time_can_be_said(tmp_path: Path) -> None:
    path = folder(
        tmp_path / "shop",
        orders=orders(date=days("2024-01-02")),
        lines={"order_id": [n % ROWS for n in range(24)], "amount": [n / 4 for n in range(24)]},
    )
    assert read_database(path).nodes["lines"].times is not None
    for said in ("orders.date=none", "orders=none"):
        graph = read_database(path, time=said)
        assert graph.nodes["orders"].times is None
        assert graph.nodes["lines"].times is None
    with pytest.raises(
        InputError, match=r"--as-of: expected tables with times.*--time orders.date"
    ):
        read_database(path, time="orders=none", as_of="2024-06-01")


def test_dates_at_which_rows_were_written_are_no_times_and_no_features(tmp_path: Path) -> None:
    stamp = ["2024-05-01 10:00:00"] * ROWS
    path = folder(
        tmp_path / "shop",
        orders=orders(order_date=days("2024-01-02"), last_update=days("2024-06-01"), made=stamp),
        links={"order_id": list(range(ROWS)), "customer_id": [1 + n % 3 for n in range(ROWS)],
               "last_update": stamp},
    )  # fmt: skip
    tables = snapshot_of(path).schema().tables
    assert tables["links"].role == "edges"
    assert tables["links"].reason == "it has two keys, and beside them only last_update"
    assert time_of(path, "orders").column == "order_date"
    columns = tables["orders"].columns
    assert columns["last_update"].reason == "its name says when the row was last written"
    assert columns["made"].reason.startswith("it is the same moment in every row")
    features = read_database(path).target("orders").feature_names
    assert any(name.startswith("order_date") for name in features)
    assert not any("update" in name or "made" in name for name in features)
    kept = read_database(path, columns={"orders.last_update": "date"})
    assert any("update" in name for name in kept.target("orders").feature_names)


def test_two_keys_and_columns_of_one_value_are_edges_only_in_enough_rows(tmp_path: Path) -> None:
    owners = [1 + n % 3 for n in range(ROWS)]
    links = {"order_id": list(range(ROWS)), "customer_id": owners, "unit": ["kg"] * ROWS}
    path = folder(tmp_path / "shop", orders=orders(), links=links)
    assert snapshot_of(path).tables["links"].role == "edges"
    used = snapshot_of(path, columns={"links.unit": "category"})
    assert used.tables["links"].role == "facts"
    few_rows = {name: cells[:4] for name, cells in links.items()}
    path = folder(tmp_path / "few", orders=orders(), links=few_rows)
    assert snapshot_of(path).tables["links"].role == "facts"


# What is inherited


def test_a_fact_is_as_old_as_the_latest_row_that_it_refers_to(tmp_path: Path) -> None:
    path = folder(
        tmp_path / "shop",
        orders=orders(date=days("2024-01-02")),
        visits={"id": list(range(ROWS)), "customer_id": [1] * ROWS, "date": days("2024-01-08", -1)},
        lines={"order_id": list(range(ROWS)), "visit_id": list(range(ROWS)),
               "amount": [n / 4 for n in range(ROWS)]},
    )  # fmt: skip
    graph = read_database(path)
    later = np.maximum(graph.nodes["orders"].times, graph.nodes["visits"].times)
    assert graph.nodes["lines"].times.tolist() == later.tolist()
    assert later.tolist() != graph.nodes["orders"].times.tolist()
    assert time_of(path, "lines").reason == (
        "it has no date of its own, and is as old as its orders and visits"
    )


def test_facts_inherit_times_over_several_keys(tmp_path: Path) -> None:
    few = list(range(ROWS))
    path = folder(
        tmp_path / "shop",
        orders=orders(date=days("2024-01-02")),
        lines={"id": few, "order_id": few, "amount": [n / 4 for n in few]},
        returns={"id": few, "line_id": few, "cost": [n / 8 for n in few]},
        remarks={"return_id": few, "length": [n / 2 for n in few]},
    )
    roles = {"lines": "facts", "returns": "facts"}
    graph = read_database(path, tables=roles)
    first = graph.nodes["orders"].times.tolist()
    for name in ("lines", "returns", "remarks"):
        assert graph.nodes[name].times.tolist() == first, name


@pytest.mark.parametrize("make", [sqlite_file, duckdb_file])
def test_decisions_survive_json_and_are_taken_as_they_are(tmp_path: Path, make: Any) -> None:
    path = make(tmp_path / "shop.db")
    first = snapshot_of(path).schema()
    stored = from_json(json.loads(json.dumps(to_json(first))))
    assert stored == first
    log = "CREATE TABLE log (customer_id INTEGER, day TEXT)"
    later = make(tmp_path / "later.db", log, "DELETE FROM product_tags")
    second = snapshot_of(later, schema=stored).schema(stored)
    log_table = second.tables["log"]
    assert log_table.role == "ignored"
    assert log_table.reason == "it was not there when the tables were first read"
    for name, table in first.tables.items():
        assert second.tables[name].role == table.role
        assert second.tables[name].time == table.time
    assert [key.columns for key in second.tables["product_tags"].keys] == [
        ("product_id",),
        ("tag_id",),
    ]


def test_a_time_of_a_type_with_a_zone_is_that_instant(tmp_path: Path) -> None:
    cells = pa.array([datetime(2024, 3, 1 + n) for n in range(ROWS)], pa.timestamp("us", "UTC"))
    graph = read_database(folder(tmp_path / "shop", orders=orders(ordered=cells)))
    assert graph.nodes["orders"].times[0] == parse_time("2024-03-01")


def test_dates_that_begin_with_the_day_and_seconds_are_times_where_they_are_named(
    tmp_path: Path,
) -> None:
    seconds = [1_700_000_000 + 86_400 * n for n in range(ROWS)]
    written = [f"{1 + n:02}-Mar-2024" for n in range(ROWS)]
    path = folder(tmp_path / "shop", orders=orders(sent=written, stamp=seconds))
    with pytest.raises(
        InputError, match=r'--time orders.sent; there are "orders.sent", "orders.stamp"'
    ):
        read_database(path, as_of="2024-03-03")
    assert (
        read_database(path, time="orders.sent", as_of="2024-03-03").nodes["orders"].num_nodes == 3
    )
    first = read_database(path, time="orders.stamp").nodes["orders"].times[0]
    assert first == seconds[0] * 1_000_000


def test_a_later_database_may_lack_the_column_of_times(tmp_path: Path) -> None:
    lines = {"order_id": [n % ROWS for n in range(24)], "amount": [n / 4 for n in range(24)]}
    first = folder(tmp_path / "first", orders=orders(date=days("2024-01-02")), lines=lines)
    graph = read_database(first)
    assert graph.nodes["lines"].times is not None
    later = snapshot_of(first).schema()
    other = Snapshot("other")
    other.tables = snapshot_of(folder(tmp_path / "other", orders=orders(), lines=lines)).tables
    take_times(other, later)
    assert not other.tables["orders"].schema.has_times
    assert not other.tables["lines"].schema.has_times
