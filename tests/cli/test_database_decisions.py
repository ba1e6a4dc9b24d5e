"""What was decided about a database is printed by `info`, and by `train` before it trains, in few lines."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from shell import infomax, refused

MOST_LINES = 40
"""For ten tables."""
ROWS = 40
STAMP = "2024-05-01 10:00:00"


@pytest.fixture(scope="module")
def cinema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten tables, as a shop of films has them, each with the time at which its rows were last written."""
    path = tmp_path_factory.mktemp("cinema") / "cinema.db"
    audit = f"last_update TEXT DEFAULT '{STAMP}'"
    tables = {
        "language": "id INTEGER PRIMARY KEY, name TEXT",
        "category": "id INTEGER PRIMARY KEY, name TEXT, colour TEXT",
        "actor": "id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT",
        "film": "id INTEGER PRIMARY KEY, title TEXT, length REAL, price REAL, "
        "language_id INTEGER REFERENCES language (id), "
        "original_language_id INTEGER REFERENCES language (id)",
        "film_actor": "film_id INTEGER REFERENCES film (id), actor_id INTEGER REFERENCES actor (id)",
        "film_category": "film_id INTEGER REFERENCES film (id), "
        "category_id INTEGER REFERENCES category (id)",
        "customer": "id INTEGER PRIMARY KEY, email TEXT, fax TEXT, born TEXT, joined TEXT",
        "store": "id INTEGER PRIMARY KEY, size REAL",
        "rental": "id INTEGER PRIMARY KEY, film_id INTEGER REFERENCES film (id), "
        "customer_id INTEGER REFERENCES customer (id), store_id INTEGER REFERENCES store (id), "
        "return_date TEXT, rental_date TEXT",
        "payment": "id INTEGER PRIMARY KEY, rental_id INTEGER REFERENCES rental (id), amount REAL",
    }
    rows = range(1, ROWS + 1)
    cells = {
        "language": [(1, "English"), (2, "Rumantsch")],
        "category": [(row, f"genre {row}", "red") for row in range(1, 5)],
        "actor": [(row, "Ann", f"Actor {row}") for row in range(1, 11)],
        "film": [(row, f"Film {row}", 80.5 + row, row / 4, 1 + row % 2, None) for row in rows],
        "film_actor": [(row, 1 + row % 10) for row in rows],
        "film_category": [(row, 1 + row % 4) for row in rows],
        "customer": [
            (row, f"c{row}@x.ch", "", f"1980-01-{row % 28 + 1:02}", "2020-01-01") for row in rows
        ],
        "store": [(1, 10.5), (2, 20.25)],
        "rental": [
            (
                row,
                row,
                1 + row * 7 % ROWS,
                1 + row % 2,
                f"2024-02-{row % 28 + 1:02}",
                f"2024-01-{row % 28 + 1:02}",
            )
            for row in rows
        ],
        "payment": [(row, row, row / 4) for row in rows],
    }
    with closing(sqlite3.connect(path)) as file:
        for name, columns in tables.items():
            definitions = columns.split(", ")
            file.execute(f"CREATE TABLE {name} ({', '.join([*definitions, audit])})")
            marks = ", ".join("?" * len(cells[name][0]))
            names = ", ".join(definition.split()[0] for definition in definitions)
            file.executemany(f"INSERT INTO {name} ({names}) VALUES ({marks})", cells[name])
        file.commit()
    return path


DECIDED = [
    "edges: film_actor, film_category, as they have two keys, and beside them only last_update",
    "no edges: film.original_language_id, as it is empty in every row",
    "no feature: last_update of 10 tables, as its name says when the row was last written",
    "no feature: customer.fax, as it is empty in every row",
    "time of rental: rental_date, as it is called after the table; not return_date, last_update",
]
"""What info and train both print."""


def test_info_prints_what_was_decided_in_few_lines(cinema: Path) -> None:
    outcome = infomax("info", cinema)
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert len(lines) <= MOST_LINES
    for decision in DECIDED:
        assert decision in lines
    without_time = next(line for line in lines if line.startswith("no time: "))
    assert "film" in without_time
    assert "it could leak" in without_time
    assert "rental" not in without_time
    assert "payment" not in without_time


def test_train_prints_what_was_decided_before_it_trains(cinema: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    outcome = infomax("train", cinema, "--type", "film", "--out", out, "--dim", 4, "--epochs", 1)
    assert outcome.code == 0, outcome.err
    lines = outcome.err.splitlines()
    before = lines[: next(number for number, line in enumerate(lines) if line.startswith("paths"))]
    for decision in DECIDED:
        assert decision in before
    assert len(before) <= MOST_LINES
    assert "categories: language (of film)" in before
    assert "edges: film_actor (film ─ actor), film_category (film ─ category)" in before
    assert "times: payment as rental, rental rental_date" in before
    assert any(line.startswith("no feature: customer.email") for line in before)
    assert any("actor first_name+last_name" in line for line in before)


def test_info_names_the_tables_that_become_nothing(cinema: Path) -> None:
    outcome = infomax("info", cinema, "--table", "payment=ignore")
    assert "nothing: payment, as you chose" in outcome.out


CHOICES = [("--source", "film"), ("--id", "id"), ("--groups", "colour"), ("--weight", "amount")]


@pytest.mark.parametrize("choice", CHOICES, ids=[option for option, _ in CHOICES])
def test_info_refuses_choices_that_have_no_meaning(cinema: Path, choice: tuple[str, str]) -> None:
    refused(infomax("info", cinema, *choice), "rather than a database", choice[1])


def test_info_refuses_labels_that_are_not_there_and_tells_of_those_that_are_keys(
    cinema: Path,
) -> None:
    refused(infomax("info", cinema, "--labels", "film.colour"), 'a column "film.colour"')
    outcome = infomax("info", cinema, "--labels", "film.language_id")
    assert outcome.code == 0
    assert "film.language_id is a label: values of language would give it away" in outcome.err
