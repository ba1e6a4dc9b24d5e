"""Databases: tables with keys become the tables of a graph of several types of nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from infomax.errors import InputError
from infomax.io import text
from infomax.io.column_names import format_list, split_by_type
from infomax.io.columns import Columns
from infomax.io.database.deciding import DatabaseChoices, decide, take_decisions
from infomax.io.database.described import decisions_of
from infomax.io.database.duckdb import attach_duckdb
from infomax.io.database.files import copy_files, copy_frames, table_files
from infomax.io.database.roles import Plan
from infomax.io.database.snapshot import Snapshot
from infomax.io.database.sources import tables_of, with_spelled_labels
from infomax.io.database.sqlite import MAGIC, copy_sqlite
from infomax.io.database.times import time_candidates, with_times
from infomax.io.text_format import AS_THE_EXTENSION_SAYS, TextFormat
from infomax.io.typed import Tables

POSTGRES = re.compile("postgres(ql)?://")
_FILE_ADDRESS = re.compile("(sqlite|duckdb):///")
_SQLITE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
_SUFFIXES = (*_SQLITE_SUFFIXES, ".duckdb")


_CHOICES = (
    "labels",
    "features",
    "ignore",
    "name",
    "time",
    "as_of",
    "kinds",
    "key",
    "pk",
    "table",
    "obeys_schema",
)
"""What a person may say of the tables of a database."""


def is_database(name: str | Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> bool:
    """Whether a name is that of a SQLite or DuckDB file, of a Postgres server, or of a folder of different tables."""
    if POSTGRES.match(str(name)) or _FILE_ADDRESS.match(str(name)):
        return True
    other_address = re.match(r"\w+://", str(name))
    if other_address:
        expected = "a file, a folder, sqlite:///, duckdb:/// or postgresql://"
        remedy = "Copy it to a file first; DuckDB reads MySQL and the web."
        raise InputError(str(name), expected, other_address[0], remedy)
    path = Path(name)
    if path.is_dir():
        return _holds_different_tables(path, text_format)
    return bool(database_type(path)) or (path.suffix.lower() in _SUFFIXES and path.is_file())


def _holds_different_tables(folder: Path, text_format: TextFormat) -> bool:
    """Whether a folder has tables of different columns, rather than those of one graph, or parts of one table."""
    if any((folder / part).exists() for part in ("edges", "graph.json", "config.json")):
        return False
    if "edges" in table_files(folder, text_format):
        return False
    tables = [
        file
        for file in sorted(folder.iterdir())
        if file.is_file()
        and not file.name.startswith(".")
        and text.is_table_file(file, text_format)
    ]
    return len(tables) > 1 and len({_header(file, text_format) for file in tables}) > 1


def database_file(name: str | Path) -> Path:
    """The file of a database, which may be written as an address: sqlite:///shop.db."""
    address = _FILE_ADDRESS.match(str(name))
    return Path(unquote(str(name)[address.end() :])) if address else Path(name)


def database_type(path: Path) -> str:
    """``sqlite`` or ``duckdb``, by the first bytes of a file; "" for others."""
    try:
        if not path.is_file():  # a pipe can be read only once
            return ""
        with path.open("rb") as file:
            first = file.read(16)
    except PermissionError:
        raise InputError(str(path), "permission to read it", "none") from None
    except (OSError, ValueError):
        return ""
    is_empty = not first and path.suffix.lower() in _SQLITE_SUFFIXES
    if first == MAGIC or is_empty:
        return "sqlite"
    return "duckdb" if first[8:12] == b"DUCK" else ""


def _header(path: Path, text_format: TextFormat) -> tuple[str, ...]:
    """The names of the columns of a table."""
    if text.is_text(path, text_format):
        return tuple(text.TextFile(path, text_format).names)
    from infomax.io.parquet import opened

    with opened(path) as file:
        return tuple(file.schema_arrow.names)


def of_database(name: str | Path, columns: Columns) -> Tables:
    """The tables of the graph of a database."""
    return tables_of(planned(name, columns), columns)


def of_frames(frames: Mapping[str, Any], columns: Columns) -> Tables:
    """The tables of the graph of frames of pyarrow with keys, by their names."""
    _refuse_other_choices(columns)
    snapshot = Snapshot("frames", said_roles=_roles(columns))
    copy_frames(frames, snapshot)
    return tables_of(_plan(snapshot, columns), columns)


def planned(name: str | Path, columns: Columns) -> Plan:
    """The tables of a database, and what was decided about them."""
    _refuse_other_choices(columns)
    said_roles = _roles(columns)
    if POSTGRES.match(str(name)):
        from infomax.io.database.postgres import copy_postgres, shown

        snapshot = Snapshot(shown(str(name)), said_roles=said_roles)
        copy_postgres(str(name), snapshot)
        return _plan(snapshot, columns)

    path = database_file(name)
    if not path.exists():
        raise InputError(str(path), "a database", "nothing of that name")
    files = [path] if path.is_file() else [*table_files(path, columns.text_format).values()]
    stamp = [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    snapshot = Snapshot(str(path), stamp, said_roles)
    file_type = database_type(path)
    if path.is_dir():
        copy_files(path, snapshot, columns.text_format)
    elif file_type == "sqlite":
        copy_sqlite(path, snapshot)
    elif file_type == "duckdb":
        attach_duckdb(path, snapshot)
    else:
        raise InputError(str(path), "a database, a file of SQLite or DuckDB", "another file")
    return _plan(snapshot, columns)


def _refuse_other_choices(columns: Columns) -> None:
    """Refuse what has no meaning for a database, before it is read."""
    expected = "one edge table and one node table, rather than a database: see --key, --table"
    columns.refuse_others(_CHOICES, expected)


def _plan(snapshot: Snapshot, columns: Columns) -> Plan:
    columns = with_spelled_labels(snapshot, columns)
    schema = columns.schema
    if schema is not None and schema.is_database:
        remedy = "Change the schema: infomax info GRAPH --schema FILE writes it."
        columns.refuse(
            ("key", "pk", "table", "time", "name"), "what the schema says", remedy=remedy
        )
        return take_decisions(snapshot, decisions_of(schema), columns.ignore)
    choices = DatabaseChoices(
        keys=columns.key,
        primary_keys=columns.pk,
        times=(columns.time or "").split(",") if columns.time else (),
        names=split_by_type(columns.name) if columns.name else [],
        used_columns=[*columns.labels, *columns.kinds, *(columns.features or ())],
        ignored_columns=columns.ignore,
    )
    plan = decide(snapshot, choices)
    if columns.as_of is not None and not with_times(plan):
        candidates = time_candidates(plan)
        remedy = "Name a column of times: --time TABLE.COLUMN."
        if candidates:
            remedy = f"Name a column of times: --time {candidates[0]}; there are {format_list(candidates)}."
        raise InputError("--as-of", "tables with times", "none", remedy)
    return plan


def _roles(columns: Columns) -> dict[str, str]:
    """The roles of tables that are known before the tables are read: ignored ones are not read at all."""
    if columns.schema is not None and columns.schema.is_database:
        return {
            name: "ignore"
            for name, table in columns.schema.tables.items()
            if table.role == "ignored"
        }
    roles: dict[str, str] = {}
    for choice in columns.table:  # names of tables may hold the sign
        table, _, role = choice.rpartition("=")
        roles[table] = role
    return roles
