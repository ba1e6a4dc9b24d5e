"""Tables of a DuckDB file, of a folder of text and parquet files, and of frames."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infomax.errors import InputError
from infomax.io import text
from infomax.io.database.schema import Key, Table, quoted
from infomax.io.database.snapshot import Snapshot
from infomax.io.sources import EXTENSIONS

NOTHING = ("", "\\N", "NULL", "null")
"""What stands for nothing in a key of a text file."""


def attach_duckdb(path: Path, snapshot: Snapshot) -> None:
    """Attach a file, read-only; nothing of it is copied."""
    try:
        snapshot.database.execute(
            f"ATTACH {_string(str(path.resolve()))} AS source (READ_ONLY, TYPE duckdb)"
        )
    except snapshot.failure as error:
        raise InputError(str(path), "a DuckDB database that can be opened", str(error)) from None
    query = "SELECT schema_name, {0}_name FROM duckdb_{0}s() WHERE database_name = 'source' AND NOT internal ORDER BY 2"
    for kind in ("table", "view"):
        for schema, name in snapshot.rows(query.format(kind)):
            if not snapshot.wants(name, kind == "view", schema):
                continue
            snapshot.refuse_twice(name)
            sql = f"source.{quoted(schema)}.{quoted(name)}"
            table = Table(name, sql, snapshot.types(sql), is_view=kind == "view")
            if kind == "table":
                table.rows = snapshot.number(f"SELECT count(*) FROM {sql}")
                _declared(snapshot, schema, table)
            if not snapshot.are_vectors(table, list(table.columns)):
                snapshot.tables[name] = table


def _declared(snapshot: Snapshot, schema: str, table: Table) -> None:
    """Note the keys that a table of the attached file declares."""
    columns = "constraint_type, constraint_column_names, referenced_table, referenced_column_names"
    where = f"schema_name = {_string(schema)} AND table_name = {_string(table.name)} AND database_name = 'source'"
    for kind, own, other, target in snapshot.rows(
        f"SELECT {columns} FROM duckdb_constraints() WHERE {where}"
    ):
        if kind == "PRIMARY KEY":
            table.primary = tuple(own)
        elif kind == "FOREIGN KEY" and not snapshot.is_left_out(other, schema):
            table.keys.append(Key(tuple(own), other, tuple(target)))


def _string(word: str) -> str:
    """A text in SQL."""
    return "'" + word.replace("'", "''") + "'"


def table_files(folder: Path) -> dict[str, Path]:
    """The tables in a folder by their names, those of files without the extension."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        suffix = text.extension(path)
        if suffix not in EXTENSIONS or not path.is_file() or path.name.startswith("."):
            continue
        name = path.name[: -len(suffix)]
        if name in found:
            raise InputError(
                str(folder), f"one file {name}.*", f"{found[name].name} and {path.name}"
            )
        found[name] = path
    return found


def copy_files(folder: Path, snapshot: Snapshot) -> None:
    """Copy the tables of a folder."""
    for name, path in table_files(folder).items():
        if not snapshot.wants(name):
            continue
        if text.extension(path) in text.DELIMITERS:
            _copy_text(name, path, snapshot)
        else:
            from infomax.io.parquet import opened

            with opened(path) as parquet:
                batches = map(_columns, parquet.iter_batches(batch_size=1 << 16))
                snapshot.copy(Table(name, "", {}), batches, names=parquet.schema_arrow.names)


def _copy_text(name: str, path: Path, snapshot: Snapshot) -> None:
    """Copy a text file, all cells as text; rows that end early are filled up: exports may leave the last cells out."""
    names = text.TextFile(path).names
    mark = text.DELIMITERS[text.extension(path)]
    columns = ", ".join(f"{_string(column)}: 'VARCHAR'" for column in names)
    options = f"delim={_string(mark)}, quote='\"', escape='\"', header=true, auto_detect=false, null_padding=true"
    options += f", columns={{{columns}}}, nullstr=[{', '.join(map(_string, NOTHING))}]"
    table = Table(name, f"t{len(snapshot.tables)}", dict.fromkeys(names, "VARCHAR"), is_text=True)
    file = f"read_csv({_string(str(path.resolve()))}, {options})"
    try:
        snapshot.database.execute(f"CREATE TABLE {table.sql} AS SELECT * FROM {file}")
    except snapshot.failure as error:
        text.refuse_wide(path)
        found = str(error).strip().splitlines()
        line = next((one for one in found if "Line" in one or "line" in one), found[0])
        expected = "a table of text, in UTF-8, with the cells of its header"
        raise snapshot.refused(ValueError(line), str(path), expected) from None
    table.rows = snapshot.number(f"SELECT count(*) FROM {table.sql}")
    snapshot.tables[name] = table


def copy_frames(frames: Mapping[str, Any], snapshot: Snapshot) -> None:
    """Copy frames of pyarrow."""
    for name, frame in frames.items():
        snapshot.copy(
            Table(name, "", {}), map(_columns, frame.to_batches()), names=frame.schema.names
        )


def _columns(batch: Any) -> dict[str, Any]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))
