"""Databases: tables with keys become the tables of a graph of several types of nodes.

`read_tables` copies the tables into a `Snapshot` and decides what each becomes, or takes that from
a schema:

    keys.py           which columns tell rows apart, and which refer to other rows
    columns.py        which columns become no features, and which name the rows
    roles.py          which tables are nodes, facts, edges, lookups, or nothing
    times.py          since when rows are there
    graph_tables.py   queries for the nodes of each type and the edges of each relation
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from infomax.errors import InputError, shorten, suggest
from infomax.io import text
from infomax.io.choices import UserChoices
from infomax.io.column_names import format_list, split_by_type
from infomax.io.database.columns import find_names, ignore_columns, leave_out_columns
from infomax.io.database.duckdb import attach_duckdb
from infomax.io.database.files import copy_files, copy_frames, table_files
from infomax.io.database.graph_tables import graph_tables, with_spelled_labels
from infomax.io.database.keys import find_keys, take_keys
from infomax.io.database.roles import decide_roles, make_categories_of_names, take_roles
from infomax.io.database.snapshot import Snapshot
from infomax.io.database.sqlite import FIRST_BYTES, copy_sqlite
from infomax.io.database.times import find_times, take_times, time_candidates
from infomax.io.schema.schema import Schema
from infomax.io.schema.schema_file import location_in
from infomax.io.tables import Tables
from infomax.io.text import AS_THE_EXTENSION_SAYS, TextFormat

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
    "column_types",
    "keys",
    "primary_keys",
    "table_roles",
    "given_schema",
)
"""What a person may say of the tables of a database."""


def tables_of_database(source: str | Path, choices: UserChoices) -> Tables:
    """The tables of the graph of a database."""
    return graph_tables(read_tables(source, choices), choices)


def tables_of_frames(frames: Mapping[str, Any], choices: UserChoices) -> Tables:
    """The tables of the graph of frames of pyarrow with keys, by their names."""
    _refuse_other_choices(choices)
    snapshot = Snapshot("frames", role_options=_role_options(choices))
    copy_frames(frames, snapshot)
    _decide(snapshot, choices)
    return graph_tables(snapshot, choices)


def read_tables(source: str | Path, choices: UserChoices) -> Snapshot:
    """The tables of a database, with what each of them becomes."""
    _refuse_other_choices(choices)
    snapshot = _copied(source, choices)
    _decide(snapshot, choices)
    return snapshot


# Which names are those of databases


def is_database(source: str | Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> bool:
    """Whether a name is that of a database: a file, a server, or a folder of different tables."""
    if POSTGRES.match(str(source)) or _FILE_ADDRESS.match(str(source)):
        return True
    other_address = re.match(r"\w+://", str(source))
    if other_address:
        expected = "a file, a folder, sqlite:///, duckdb:/// or postgresql://"
        remedy = "Copy it to a file first; DuckDB reads MySQL and the web."
        raise InputError(str(source), expected, other_address[0], remedy)
    path = Path(source)
    if path.is_dir():
        return _holds_different_tables(path, text_format)
    return bool(database_type(path)) or (path.suffix.lower() in _SUFFIXES and path.is_file())


def database_file(source: str | Path) -> Path:
    """The file of a database, which may be written as an address: sqlite:///shop.db."""
    address = _FILE_ADDRESS.match(str(source))
    return Path(unquote(str(source)[address.end() :])) if address else Path(source)


def database_type(path: Path) -> str:
    """``sqlite`` or ``duckdb``, by the first bytes of a file; "" for others."""
    try:
        if not path.is_file():  # a pipe can be read only once
            return ""
        with path.open("rb") as file:
            first_bytes = file.read(16)
    except PermissionError:
        raise InputError(str(path), "permission to read it", "none") from None
    except (OSError, ValueError):
        return ""
    # SQLite makes an empty file for a database without tables.
    is_empty = not first_bytes and path.suffix.lower() in _SQLITE_SUFFIXES
    if first_bytes == FIRST_BYTES or is_empty:
        return "sqlite"
    return "duckdb" if first_bytes[8:12] == b"DUCK" else ""


def _holds_different_tables(folder: Path, text_format: TextFormat) -> bool:
    """Whether a folder has tables of different columns, rather than those of one graph."""
    if any((folder / part).exists() for part in ("edges", "graph.json", "config.json")):
        return False
    if "edges" in table_files(folder, text_format):
        return False
    table_paths = [
        path
        for path in sorted(folder.iterdir())
        if path.is_file()
        and not path.name.startswith(".")
        and text.is_table_file(path, text_format)
    ]
    return len(table_paths) > 1 and len({_header(path, text_format) for path in table_paths}) > 1


def _header(path: Path, text_format: TextFormat) -> tuple[str, ...]:
    """The names of the columns of a table."""
    if text.is_text(path, text_format):
        return tuple(text.TextFile(path, text_format).names)
    from infomax.io.parquet import opened

    with opened(path) as file:
        return tuple(file.schema_arrow.names)


# Copying the tables


def _copied(source: str | Path, choices: UserChoices) -> Snapshot:
    """All tables of a database, as they are at one moment."""
    role_options = _role_options(choices)
    if POSTGRES.match(str(source)):
        from infomax.io.database.postgres import address_without_password, copy_postgres

        snapshot = Snapshot(address_without_password(str(source)), role_options=role_options)
        copy_postgres(str(source), snapshot)
        return snapshot

    path = database_file(source)
    if not path.exists():
        raise InputError(str(path), "a database", "nothing of that name")
    files = [path] if path.is_file() else [*table_files(path, choices.text_format).values()]
    stamp = [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    snapshot = Snapshot(str(path), stamp, role_options)
    file_type = database_type(path)
    if path.is_dir():
        copy_files(path, snapshot, choices.text_format)
    elif file_type == "sqlite":
        copy_sqlite(path, snapshot)
    elif file_type == "duckdb":
        attach_duckdb(path, snapshot)
    else:
        raise InputError(str(path), "a database, a file of SQLite or DuckDB", "another file")
    return snapshot


def _role_options(choices: UserChoices) -> dict[str, str]:
    """The roles that a person names; tables to be ignored are not read at all."""
    if choices.schema is not None and choices.schema.is_database:
        return {
            name: "ignore"
            for name, table in choices.schema.tables.items()
            if table.role == "ignored"
        }
    role_options: dict[str, str] = {}
    for option in choices.table_roles:  # names of tables may hold the sign
        table, _, role = option.rpartition("=")
        # A schema says ignored, the option says ignore: each is understood by both.
        role_options[table] = "ignore" if role == "ignored" else role
    return role_options


def _refuse_other_choices(choices: UserChoices) -> None:
    """Refuse what has no meaning for a database, before it is read."""
    expected = "one edge table and one node table, rather than a database: see --key, --table"
    choices.refuse_others(_CHOICES, expected)


# Deciding about them


def _decide(snapshot: Snapshot, choices: UserChoices) -> None:
    """Decide what all tables become: by a schema, or by what a person says and what is found."""
    choices = with_spelled_labels(snapshot, choices)
    schema = choices.schema
    if schema is not None and schema.is_database:
        remedy = "Change the schema: infomax info GRAPH --schema FILE writes it."
        choices.refuse(
            ("keys", "primary_keys", "table_roles", "time", "name"),
            "what the schema says",
            remedy=remedy,
        )
        if choices.obeys_schema:
            _refuse_missing(snapshot, schema, choices.schema_path)
        take_schema(snapshot, schema, choices.ignore)
        return

    # Keys come first: columns of keys are no features, and keys tell what a table becomes.
    find_keys(snapshot, choices.keys, choices.primary_keys)
    ignore_columns(snapshot, choices.ignore)
    named_columns = (*choices.labels, *choices.column_types, *(choices.features or ()))
    used_columns = {
        (table.name, column)
        for table in snapshot.tables.values()
        for column in table.columns
        if table.is_named(column, named_columns)
    }
    leave_out_columns(snapshot, used_columns)
    decide_roles(snapshot, used_columns)
    snapshot.number_rows()
    find_names(snapshot, split_by_type(choices.name) if choices.name else ())
    make_categories_of_names(snapshot)
    find_times(snapshot, choices.time.split(",") if choices.time else ())
    if choices.as_of is not None and not snapshot.timed_tables:
        candidates = time_candidates(snapshot)
        remedy = "Name a column of times: --time TABLE.COLUMN."
        if candidates:
            names = format_list(candidates)
            remedy = f"Name a column of times: --time {candidates[0]}; there are {names}."
        raise InputError("--as-of", "tables with times", "none", remedy)


def _refuse_missing(snapshot: Snapshot, schema: Schema, schema_path: Path | None) -> None:
    """Refuse a person's schema that names tables or columns which the database does not have."""
    used_tables = {name: table for name, table in schema.tables.items() if table.role != "ignored"}

    def refuse_other_name(name: str, names: Collection[str], what: str, *keys: str) -> None:
        if name not in names:
            location = location_in(schema_path, ("tables", *keys))
            expected = f"{what} ({format_list(list(names))})"
            raise InputError(location, expected, shorten(name), suggest(name, names))

    for table_name, known in used_tables.items():
        refuse_other_name(
            table_name, snapshot.tables, f"a table of {snapshot.location}", table_name
        )
        columns = snapshot.tables[table_name].columns
        uses = {"id": known.id.columns, "name": known.name.columns}
        if known.time is not None and known.time.column:
            uses["time"] = (known.time.column,)
        for use, names in uses.items():
            for name in names:
                refuse_other_name(name, columns, f"a column of {table_name}", table_name, use)
        for number, key in enumerate(known.keys):
            path_of_key = (table_name, "keys", str(number))
            for name in key.columns:
                refuse_other_name(name, columns, f"a column of {table_name}", *path_of_key)
            refuse_other_name(key.table, schema.tables, "a table of the schema", *path_of_key)
            if key.table in used_tables:
                refuse_other_name(
                    key.table, snapshot.tables, f"a table of {snapshot.location}", *path_of_key
                )
                target_columns = snapshot.tables[key.table].columns
                for name in key.target:
                    refuse_other_name(
                        name, target_columns, f"a column of {key.table}", *path_of_key
                    )


def take_schema(snapshot: Snapshot, schema: Schema, ignored_columns: Collection[str] = ()) -> None:
    """Take what a schema says about the tables of a snapshot: nothing is searched or guessed."""
    take_keys(snapshot, schema)
    take_roles(snapshot, schema)
    ignore_columns(snapshot, ignored_columns)
    snapshot.number_rows()
    take_times(snapshot, schema)
