"""What was decided about the tables of a database, in few lines: roles, names, times, and what became no feature."""

from __future__ import annotations

from collections.abc import Iterable

from infomax.errors import format_count
from infomax.io.database.described import EMPTY_KEY
from infomax.io.schema.schema import ORIGINS, Schema, TableSchema

MOST_LISTED = 12
"""Names in one line; of more the number is told."""
_PLURALS = {
    "it has ": "they have ",
    "it is a view": "they are views",
    "it is empty": "they are empty",
    "it holds ": "they hold ",
}


def schema_in_words(schema: Schema) -> list[str]:
    """All that was decided, a line for each role and each reason."""
    lines = _roles_in_words(schema)
    lines += _keys_in_words(schema)
    names = [
        f"{table_name} {'+'.join(table.name.columns)}"
        for table_name, table in schema.tables.items()
        if table.has_nodes and table.name.columns
    ]
    if names:
        lines.append(f"names: {_listed(names)}")
    lines += _times_in_words(schema)
    return lines + reasons_in_words(schema)


def reasons_in_words(schema: Schema) -> list[str]:
    """What may surprise, and why it was decided: tables of edges, columns that are no features, and times."""
    return [
        *_edges_in_words(schema),
        *_empty_keys_in_words(schema),
        *_ignored_columns_in_words(schema),
        *_choices_of_times_in_words(schema),
        *_always_there_in_words(schema),
    ]


def ignored_tables_in_words(schema: Schema) -> list[str]:
    """The tables that become nothing, those of one reason in one line."""
    names_by_reason: dict[str, list[str]] = {}
    for name, table in schema.tables.items():
        if table.role == "ignored":
            reason = table.reason if table.origin != "said" else f"--table {name}=ignore"
            names_by_reason.setdefault(reason or "it was left out", []).append(name)
    said = [
        name for reason, names in names_by_reason.items() if "--table" in reason for name in names
    ]
    lines = [
        f"nothing: {_listed(names)}, as {_of_several(reason, names)}"
        for reason, names in names_by_reason.items()
        if "--table" not in reason
    ]
    if said:
        lines.append(f"nothing: {_listed(said)}, as --table says")
    return lines


# What tables become


def _roles_in_words(schema: Schema) -> list[str]:
    lines = []
    for role, title in (("nodes", "nodes"), ("facts", "nodes, facts")):
        names = [name for name, table in schema.tables.items() if table.role == role]
        if names:
            lines.append(f"{title}: {_listed(names)}")
    edges = [
        f"{name} ({' ─ '.join(key.table for key in table.keys)})"
        for name, table in schema.tables.items()
        if table.role == "edges"
    ]
    if edges:
        lines.append(f"edges: {_listed(edges)}")
    lookups = [
        f"{name} (of {', '.join(_referring(schema, name))})"
        for name, table in schema.tables.items()
        if table.role == "lookup"
    ]
    if lookups:
        lines.append(f"categories: {_listed(lookups)}")
    return lines + ignored_tables_in_words(schema)


def _referring(schema: Schema, target: str) -> list[str]:
    """The tables that refer to a table."""
    return [
        name
        for name, table in schema.tables.items()
        if any(key.table == target for key in table.keys)
    ]


def _edges_in_words(schema: Schema) -> list[str]:
    """Why tables are edges that have more columns than two keys."""
    names_by_reason: dict[str, list[str]] = {}
    for name, table in schema.tables.items():
        if table.role == "edges" and table.origin == "found" and table.with_role("ignored"):
            names_by_reason.setdefault(table.reason, []).append(name)
    return [
        f"edges: {_listed(names)}, as {_of_several(reason, names)}"
        for reason, names in names_by_reason.items()
    ]


def _keys_in_words(schema: Schema) -> list[str]:
    """How many keys there are, by where they come from, and those that were found."""
    keys = [
        (f"{name}.{'+'.join(key.columns)} → {key.table}", key.origin)
        for name, table in schema.tables.items()
        for key in table.keys
    ]
    if not keys:
        return []
    counts = {origin: sum(key_origin == origin for _, key_origin in keys) for origin in ORIGINS}
    counted = ", ".join(f"{count} {origin}" for origin, count in counts.items() if count)
    found = [key for key, origin in keys if origin == "found"]
    return [f"keys: {counted}: {_listed(found)}" if found else f"keys: {counted}"]


def _empty_keys_in_words(schema: Schema) -> list[str]:
    """The keys that have no values, and so lead to nothing."""
    columns = [
        f"{name}.{column}"
        for name, table in schema.tables.items()
        if table.role != "ignored"
        for column, about in table.columns.items()
        if about.role == "key" and about.reason == EMPTY_KEY
    ]
    return (
        [f"no edges: {_listed(columns)}, as {_of_several(EMPTY_KEY, columns)}"] if columns else []
    )


# What columns become


def _ignored_columns_in_words(schema: Schema) -> list[str]:
    """The columns that become no features, those of one reason in one line."""
    tables_by_reason: dict[str, dict[str, list[str]]] = {}
    for name, table in schema.tables.items():
        if table.role == "ignored":
            continue
        names_and_times = {*table.name.columns, table.time.column if table.time else ""}
        for column, about in table.columns.items():
            if about.role == "ignored" and about.reason and column not in names_and_times:
                by_column = tables_by_reason.setdefault(about.reason, {})
                by_column.setdefault(column, []).append(name)
    lines = []
    for reason, tables_by_column in tables_by_reason.items():
        columns = [
            f"{names[0]}.{column}" if len(names) == 1 else f"{column} of {len(names)} tables"
            for column, names in tables_by_column.items()
        ]
        lines.append(f"no feature: {_listed(columns)}, as {_of_several(reason, columns)}")
    return lines


# Times


def _times_in_words(schema: Schema) -> list[str]:
    """The columns of times of all tables."""
    times = []
    for name, table in schema.tables.items():
        if not table.has_nodes or table.time is None:
            continue
        if table.time.column:
            times.append(f"{name} {table.time.column}")
        elif table.time.keys:
            owners = [key.table for key in table.keys if key.columns in table.time.keys]
            times.append(f"{name} as {', '.join(dict.fromkeys(owners))}")
    return [f"times: {_listed(times)}"] if times else []


def _choices_of_times_in_words(schema: Schema) -> list[str]:
    """Why one of several dates was taken, or none of them."""
    lines = []
    for name, table in schema.tables.items():
        time = table.time
        if time is None or time.origin != "found" or not table.has_nodes:
            continue
        dropped = {*table.with_role("ignored")} - {time.column}
        candidates = [column for column in time.candidates if column not in dropped]
        if time.column and len(candidates) > 1:
            lines.append(f"time of {name}: {time.column}, as {time.reason}")
        elif not time.column and candidates:
            lines.append(f"no time of its own: {name}, as {time.reason}")
    return lines


def _always_there_in_words(schema: Schema) -> list[str]:
    """The nodes that are there as of any day, where others have times: what is read of them may be from later on."""
    nodes = {name: table for name, table in schema.tables.items() if table.has_nodes}
    without_time = [name for name, table in nodes.items() if not _has_time(table)]
    if not without_time or len(without_time) == len(nodes):
        return []
    return [
        f"no time: {_listed(without_time)}. As of any day they are there, with all that they hold: "
        "it could leak."
    ]


def _has_time(table: TableSchema) -> bool:
    return table.time is not None and bool(table.time.column or table.time.keys)


# Words


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    if len(names) <= MOST_LISTED:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_LISTED])} and {format_count(len(names) - MOST_LISTED, 'other')}"


def _of_several(reason: str, names: list[str]) -> str:
    """A reason that is told of one table, told of several."""
    if len(names) == 1:
        return reason
    for of_one, of_several in _PLURALS.items():
        if reason.startswith(of_one):
            return of_several + reason.removeprefix(of_one)
    return reason
