"""From a name to a graph a reader passes few files; `docs/explanation/architecture.md` lists them in order."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import infomax
from infomax import read_graph

FOLDER = Path(infomax.__file__).parent
MOST_FILES = {"tables": 37, "a database": 46}
"""Files of infomax whose functions run. Fewer are better: then lower the number; never raise it."""
IS_FUNCTION = 2
"""The bit of a code object that is not set in bodies of classes and modules, which run on import."""


def files_passed(work: Callable[[], Any]) -> list[str]:
    """The files of infomax of which a function is called while some work is done, in that order."""
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        if event == "call" and code.co_flags & IS_FUNCTION and FOLDER in path.parents:
            files[path.relative_to(FOLDER).as_posix()] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(files)


def refuse_more(files: list[str], door: str) -> None:
    assert len(files) <= MOST_FILES[door], f"{len(files)} files: {', '.join(files)}"


def test_two_tables_become_a_graph(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\na,c\n")
    (tmp_path / "nodes.csv").write_text("id,age,colour\na,1,red\nb,2,blue\nc,3,red\n")
    paths = (tmp_path / "edges.csv", tmp_path / "nodes.csv")
    read_graph(*paths)  # modules are imported, and DuckDB is opened, once
    refuse_more(files_passed(lambda: read_graph(*paths)), "tables")


@pytest.mark.filterwarnings("ignore::infomax.errors.InputWarning")
def test_a_database_becomes_a_graph(tmp_path: Path) -> None:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            CREATE TABLE customers (id INTEGER PRIMARY KEY, age INTEGER);
            CREATE TABLE orders (
                id INTEGER PRIMARY KEY,
                customer_id INTEGER REFERENCES customers (id),
                price REAL,
                day TEXT
            );
            INSERT INTO customers VALUES (1, 30), (2, 50), (3, 41);
            INSERT INTO orders VALUES
                (1, 1, 2.5, '2020-01-01'), (2, 2, 3.5, '2020-01-02'), (3, 1, 4.5, '2020-01-05');
            """
        )
    read_graph(path)
    refuse_more(files_passed(lambda: read_graph(path)), "a database")
