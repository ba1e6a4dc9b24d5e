"""Whole numbers that are codes, such as an ISBN, are no features; prices, amounts and numbers of atoms are."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

from infomax import Graph, read_database, read_graph
from infomax.errors import InputError, InputWarning
from infomax.io.column_names import is_called_code, is_called_number

ROWS = 40
ISBNS = [9780000000000 + 7919 * row * row + row for row in range(ROWS)]
AMOUNTS = [1000 + 37 * row * row for row in range(ROWS)]
WARNING = r'no features, as they are called codes, .*: "isbn"\. .*--column isbn=number'


def books(**columns: list[Any]) -> dict[str, list[Any]]:
    return {"id": list(range(ROWS)), **columns}


def edges() -> dict[str, list[int]]:
    return {"source": list(range(ROWS - 1)), "target": list(range(1, ROWS))}


def graph_of(**columns: list[Any]) -> Graph:
    return Graph.from_frames(pa.table(edges()), pa.table(books(**columns)))


def from_text(path: Path) -> list[str]:
    csv.write_csv(pa.table(edges()), path / "edges.csv")
    csv.write_csv(pa.table(books(isbn=ISBNS, amount=AMOUNTS)), path / "nodes.csv")
    return list(read_graph(path / "edges.csv", path / "nodes.csv").feature_names)


def from_frame(path: Path) -> list[str]:
    return list(graph_of(isbn=ISBNS, amount=AMOUNTS).feature_names)


def from_database(path: Path) -> list[str]:
    with closing(sqlite3.connect(path / "books.sqlite")) as connection:
        connection.execute("CREATE TABLE books (id INTEGER PRIMARY KEY, isbn INTEGER, amount INT)")
        connection.execute("CREATE TABLE loans (book_id INTEGER REFERENCES books, days INTEGER)")
        rows = zip(*books(isbn=ISBNS, amount=AMOUNTS).values(), strict=True)
        connection.executemany("INSERT INTO books VALUES (?, ?, ?)", rows)
        loans = [(row, row % 5) for row in range(ROWS)]
        connection.executemany("INSERT INTO loans VALUES (?, ?)", loans)
        connection.commit()
    return list(read_database(path / "books.sqlite").target("books").feature_names)


@pytest.mark.parametrize("door", [from_text, from_frame, from_database])
def test_a_code_is_no_feature_in_every_door(tmp_path: Path, door: Any) -> None:
    with pytest.warns(InputWarning, match=WARNING):
        assert door(tmp_path) == ["amount"]


def test_a_code_is_a_feature_where_a_person_says_so() -> None:
    columns = pa.table(books(isbn=ISBNS, amount=AMOUNTS))
    graph = Graph.from_frames(pa.table(edges()), columns, columns={"isbn": "number"})
    assert list(graph.feature_names) == ["isbn", "amount"]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("price", [row + 0.5 for row in range(ROWS)]),
        ("salary", AMOUNTS),
        ("population", ISBNS[:1] + AMOUNTS[1:]),
        ("atomic_number", list(range(1, ROWS + 1))),
        ("zip", [8000 + 7 * row for row in range(ROWS)]),
        ("sku", [8000 + row % 5 for row in range(ROWS)]),
        ("code", [row / 7 for row in range(ROWS)]),
    ],
)
def test_measures_and_numbers_that_rows_share_stay_features(name: str, numbers: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        assert name in graph_of(**{name: numbers}).feature_names


def test_numbers_far_apart_are_codes_where_they_are_called_numbers() -> None:
    with pytest.warns(InputWarning, match='called codes.*"card_number"'):
        graph = graph_of(card_number=ISBNS, amount=AMOUNTS)
    assert list(graph.feature_names) == ["amount"]


def test_a_feature_that_a_person_names_and_that_is_none_is_refused() -> None:
    remedy = "found .isbn. .id.. Say what it is: --column isbn=number, category or text"
    with pytest.raises(InputError, match=remedy), pytest.warns(InputWarning):
        Graph.from_frames(pa.table(edges()), pa.table(books(isbn=ISBNS)), features="isbn")


def test_a_column_called_as_its_table_is_a_value(tmp_path: Path) -> None:
    tables = {
        "users": {"id": list(range(8)), "age": [20.5 + row for row in range(8)]},
        "ratings": {
            "user_id": [row % 8 for row in range(ROWS)],
            "rating": [1 + row % 3 for row in range(ROWS)],
        },
    }
    for name, columns in tables.items():
        csv.write_csv(pa.table(columns), tmp_path / f"{name}.csv")
    assert list(read_database(tmp_path).target("ratings").feature_names) == ["rating"]


@pytest.mark.parametrize("name", ["isbn", "ISBN_13", "homePhone", "barCode", "EAN"])
def test_names_of_codes(name: str) -> None:
    assert is_called_code(name)


@pytest.mark.parametrize(
    "name", ["postal_code", "zip", "mean", "hotel", "phone_calls", "paid", "codes_used"]
)
def test_names_of_other_columns(name: str) -> None:
    assert not is_called_code(name)
    assert not is_called_number(name)
