"""Databases: tables with keys become the tables of a graph of several types of nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from infomax.errors import InputError
from infomax.io import text
from infomax.io.columns import Columns
from infomax.io.database.files import attach_duckdb, copy_files, copy_frames, table_files
from infomax.io.database.keys import find_keys
from infomax.io.database.roles import Plan, decide
from infomax.io.database.snapshot import Snapshot
from infomax.io.database.sources import tables_of
from infomax.io.database.sqlite import MAGIC, copy_sqlite
from infomax.io.database.times import Time, find_times
from infomax.io.typed import Tables

POSTGRES = re.compile("postgres(ql)?://")
_FILE = re.compile("(sqlite|duckdb):///")
_SUFFIXES = (".sqlite", ".sqlite3", ".db", ".duckdb")


def is_database(name: str | Path) -> bool:
    """Whether a name is that of a SQLite or DuckDB file, of a Postgres server, or of a folder of different tables."""
    if POSTGRES.match(str(name)) or _FILE.match(str(name)):
        return True
    if other := re.match(r"\w+://", str(name)):
        remedy = "Copy it to a file first; DuckDB reads MySQL and the web."
        raise InputError(
            str(name), "a file, a folder, sqlite:///, duckdb:/// or postgresql://", other[0], remedy
        )
    path = Path(name)
    if not path.is_dir():
        return bool(_kind(path)) or (path.suffix.lower() in _SUFFIXES and path.is_file())
    if any((path / part).exists() for part in ("edges", "graph.json", "config.json")):
        return False
    files = [
        file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")
    ]
    tables = [file for file in files if text.extension(file) in (*text.DELIMITERS, ".parquet")]
    return (
        len(tables) > 1
        and "edges" not in table_files(path)
        and len({_header(file) for file in tables}) > 1
    )


def database_file(name: str | Path) -> Path:
    """The file of a database, which may be written as an address: sqlite:///shop.db."""
    found = _FILE.match(str(name))
    return Path(unquote(str(name)[found.end() :])) if found else Path(name)


def _kind(path: Path) -> str:
    """ "sqlite" or "duckdb", by the first bytes of a file; "" for others."""
    try:
        if not path.is_file():  # a pipe can be read only once
            return ""
        with path.open("rb") as file:
            first = file.read(16)
    except PermissionError:
        raise InputError(str(path), "permission to read it", "none") from None
    except (OSError, ValueError):
        return ""
    is_empty = not first and path.suffix.lower() in _SUFFIXES[:3]
    return "sqlite" if first == MAGIC or is_empty else "duckdb" if first[8:12] == b"DUCK" else ""


def _header(path: Path) -> tuple[str, ...]:
    """The names of the columns of a table."""
    if text.extension(path) in text.DELIMITERS:
        return tuple(text.TextFile(path).names)
    from infomax.io.parquet import opened

    with opened(path) as file:
        return tuple(file.schema_arrow.names)


def of_database(name: str | Path, columns: Columns) -> Tables:
    """The tables of the graph of a database."""
    return tables_of(*planned(name, columns), columns)


def of_frames(frames: Mapping[str, Any], columns: Columns) -> Tables:
    """The tables of the graph of frames of pyarrow with keys, by their names."""
    snapshot = Snapshot("frames", said=_roles(columns))
    copy_frames(frames, snapshot)
    return tables_of(*_plan(snapshot, columns), columns)


def planned(name: str | Path, columns: Columns) -> tuple[Plan, dict[str, Time]]:
    """The tables of a database, what they become, and their times."""
    said = _roles(columns)
    if POSTGRES.match(str(name)):
        from infomax.io.database.postgres import copy_postgres, shown

        snapshot = Snapshot(shown(str(name)), said=said)
        copy_postgres(str(name), snapshot)
        return _plan(snapshot, columns)
    path = database_file(name)
    if not path.exists():
        raise InputError(str(path), "a database", "nothing of that name")
    files = [path] if path.is_file() else [*table_files(path).values()]
    stamp = [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    snapshot = Snapshot(str(path), stamp, said)
    copy = (
        copy_files
        if path.is_dir()
        else {"sqlite": copy_sqlite, "duckdb": attach_duckdb}.get(_kind(path))
    )
    if copy is None:
        raise InputError(str(path), "a database, a file of SQLite or DuckDB", "another file")
    copy(path, snapshot)
    return _plan(snapshot, columns)


def _plan(snapshot: Snapshot, columns: Columns) -> tuple[Plan, dict[str, Time]]:
    find_keys(snapshot, _choices(columns, "key"))
    plan = decide(snapshot)
    return plan, find_times(plan, columns.time or columns.earlier.get("time", ""))


def _roles(columns: Columns) -> dict[str, str]:
    """The roles of tables, by name, as a person said them: status=lookup."""
    words = (one.rpartition("=") for one in _choices(columns, "table"))
    return {table: role for table, _, role in words}


def _choices(columns: Columns, word: str) -> list[str]:
    """What a person said of keys or tables, or else what was found in an earlier database."""
    earlier = columns.earlier.get(word, "")
    return list(getattr(columns, word)) or (earlier.split("\n") if earlier else [])
