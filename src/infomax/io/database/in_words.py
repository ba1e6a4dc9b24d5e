"""What was decided about the tables of a database, for a person: in few lines, and drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from infomax.arrays.times import parse_time
from infomax.errors import format_count
from infomax.io.database.snapshot import EMPTY_KEY, NODE_ROLES, Key, Snapshot, Table
from infomax.io.database.times import moment
from infomax.io.schema.schema import ORIGINS, Origin, Schema, TableSchema

MOST_LISTED = 12
"""Names in one line; of more the number is told."""
WIDTH_OF_DRAWING = 80
WIDTH_OF_KEYS = WIDTH_OF_DRAWING - 12
HEADINGS = ("table", "rows", "becomes", "name", "time")
"""Of `table_rows`."""
_PLURALS = {
    "it has ": "they have ",
    "it is a view": "they are views",
    "it is empty": "they are empty",
    "it holds": "they hold",
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
        lines.append(f"names: {_shortened_list(names)}")
    lines += _times_in_words(schema)
    return lines + _reasons_in_words(schema)


def closing_lines(snapshot: Snapshot, given_schema: Schema | None = None) -> list[str]:
    """Below the drawing: what was decided and why, what train does, and how to choose otherwise.

    Args:
        snapshot: the tables of the database, about which all was decided.
        given_schema: the schema that a person gave, beside which no options decide otherwise.
    """
    schema = snapshot.schema(given_schema)
    lines = [
        *_ignored_tables_in_words(schema),
        *_reasons_in_words(schema),
        *_trained_types_in_words(snapshot),
    ]
    if given_schema is None:
        lines += _other_choices_in_words(snapshot)
    return lines


def _reasons_in_words(schema: Schema) -> list[str]:
    """What may surprise, and why: tables of edges, columns that are no features, and times."""
    return [
        *_edges_in_words(schema),
        *_empty_keys_in_words(schema),
        *_ignored_columns_in_words(schema),
        *_choices_of_times_in_words(schema),
        *_untimed_nodes_in_words(schema),
    ]


# What tables become


def _roles_in_words(schema: Schema) -> list[str]:
    lines = []
    for role, title in (("nodes", "nodes"), ("facts", "facts")):
        names = [name for name, table in schema.tables.items() if table.role == role]
        if names:
            lines.append(f"{title}: {_shortened_list(names)}")
    edges = [
        f"{name} ({' ─ '.join(key.table for key in table.keys)})"
        for name, table in schema.tables.items()
        if table.role == "edges"
    ]
    if edges:
        lines.append(f"edges: {_shortened_list(edges)}")
    lookups = [
        f"{name} (of {', '.join(_referring_tables(schema, name))})"
        for name, table in schema.tables.items()
        if table.role == "lookup"
    ]
    if lookups:
        lines.append(f"categories: {_shortened_list(lookups)}")
    return lines + _ignored_tables_in_words(schema)


def _ignored_tables_in_words(schema: Schema) -> list[str]:
    """The tables that become nothing, those of one reason in one line."""
    names_by_reason: dict[str, list[str]] = {}
    names_of_option: list[str] = []
    for name, table in schema.tables.items():
        if table.role != "ignored":
            continue
        if table.origin == "said":
            names_of_option.append(name)
        else:
            names_by_reason.setdefault(table.reason or "it was left out", []).append(name)
    lines = [
        f"nothing: {_shortened_list(names)}, as {_for_count(reason, names)}"
        for reason, names in names_by_reason.items()
    ]
    if names_of_option:
        lines.append(f"nothing: {_shortened_list(names_of_option)}, as you chose")
    return lines


def _referring_tables(schema: Schema, target: str) -> list[str]:
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
        f"edges: {_shortened_list(names)}, as {_for_count(reason, names)}"
        for reason, names in names_by_reason.items()
    ]


# What keys and columns become


def _keys_in_words(schema: Schema) -> list[str]:
    """How many keys there are, by where they come from, and those that were found."""
    keys = [(name, key) for name, table in schema.tables.items() for key in table.keys]
    if not keys:
        return []
    line = f"keys: {_count_by_origin([key.origin for _, key in keys])}"
    found_keys = [
        f"{name}.{'+'.join(key.columns)} → {key.table}"
        for name, key in keys
        if key.origin == "found"
    ]
    return [f"{line}: {_shortened_list(found_keys)}" if found_keys else line]


def _count_by_origin(origins: Sequence[Origin]) -> str:
    """``3 declared, 2 found``."""
    counts = {origin: sum(other == origin for other in origins) for origin in ORIGINS}
    return ", ".join(f"{count} {origin}" for origin, count in counts.items() if count)


def _empty_keys_in_words(schema: Schema) -> list[str]:
    """The keys that have no values, and so lead to nothing."""
    columns = [
        f"{name}.{column}"
        for name, table in schema.tables.items()
        if table.role != "ignored"
        for column, about in table.columns.items()
        if about.role == "key" and about.reason == EMPTY_KEY
    ]
    if not columns:
        return []
    return [f"no edges: {_shortened_list(columns)}, as {_for_count(EMPTY_KEY, columns)}"]


def _ignored_columns_in_words(schema: Schema) -> list[str]:
    """The columns that become no features, those of one reason in one line."""
    tables_by_reason: dict[str, dict[str, list[str]]] = {}
    for name, table in schema.tables.items():
        if table.role == "ignored":
            continue
        names_and_times = {*table.name.columns, table.time.column if table.time else ""}
        for column, about in table.columns.items():
            if about.role == "ignored" and about.reason and column not in names_and_times:
                # A note on the column goes on with what it could be, for that column alone.
                reason = about.reason.partition(", so it is no feature")[0]
                tables_by_column = tables_by_reason.setdefault(reason, {})
                tables_by_column.setdefault(column, []).append(name)
    lines = []
    for reason, tables_by_column in tables_by_reason.items():
        columns = [
            f"{names[0]}.{column}" if len(names) == 1 else f"{column} of {len(names)} tables"
            for column, names in tables_by_column.items()
        ]
        lines.append(f"no feature: {_shortened_list(columns)}, as {_for_count(reason, columns)}")
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
            times.append(f"{name} as {', '.join(_tables_of_times(table))}")
    return [f"times: {_shortened_list(times)}"] if times else []


def _tables_of_times(table: TableSchema) -> list[str]:
    """The tables whose times the rows of a table have."""
    time_keys = () if table.time is None else table.time.keys
    return list(dict.fromkeys(key.table for key in table.keys if key.columns in time_keys))


def _choices_of_times_in_words(schema: Schema) -> list[str]:
    """Why one of several dates was taken, or none of them."""
    lines = []
    for name, table in schema.tables.items():
        time = table.time
        if time is None or time.origin != "found" or not table.has_nodes:
            continue
        ignored_columns = {*table.with_role("ignored")} - {time.column}
        candidates = [column for column in time.candidates if column not in ignored_columns]
        if time.column and len(candidates) > 1:
            lines.append(f"time of {name}: {time.column}, as {time.reason}")
        elif not time.column and candidates:
            lines.append(f"no time of its own: {name}, as {time.reason}")
    return lines


def _untimed_nodes_in_words(schema: Schema) -> list[str]:
    """The nodes that are there as of any day, where others have times."""
    node_tables = {name: table for name, table in schema.tables.items() if table.has_nodes}
    untimed = [name for name, table in node_tables.items() if not table.has_times]
    if not untimed or len(untimed) == len(node_tables):
        return []
    return [
        f"no time: {_shortened_list(untimed)}. As of any day they are there, with all that they "
        "hold: it could leak."
    ]


# The drawing of `infomax info`


def drawing(snapshot: Snapshot) -> list[str]:
    """A tree along the keys; ``=`` leads to a category, ``>`` to the table itself."""
    tables = [
        table for table in snapshot.tables.values() if table.role not in ("ignored", "lookup")
    ]
    targets = {key.table for table in tables for key in table.keys if key.table != table.name}

    def rank(table: Table) -> tuple[bool, int, str]:
        return table.name in targets, -len(table.keys), table.name

    lines: list[str] = []
    drawn_tables: set[str] = set()
    for table in sorted(tables, key=rank):
        if table.name not in drawn_tables and (table.keys or table.name not in targets):
            lines.append(table.name)
            lines += _branches(snapshot, table, drawn_tables)
    return lines


def _branches(snapshot: Snapshot, table: Table, drawn_tables: set[str]) -> Iterator[str]:
    """The keys of a table and what is below them; those with nothing below share a line."""
    drawn_tables.add(table.name)
    branches: list[Key] = []
    leaves: list[Key] = []
    for key in table.keys:
        other = snapshot.tables[key.table]
        if other.role == "ignored":
            continue
        has_branches = other.keys and other.role != "lookup"
        if has_branches and other.name not in drawn_tables:
            branches.append(key)
        else:
            leaves.append(key)

    for number, key in enumerate(branches):
        is_last = number == len(branches) - 1 and not leaves
        yield f"{'└' if is_last else '├'} {_arrow(snapshot, table, key)}"
        other = snapshot.tables[key.table]
        if other.name not in drawn_tables:  # a branch before it may have drawn it
            for line in _branches(snapshot, other, drawn_tables):
                yield f"{' ' if is_last else '│'} {line}"

    line = ""
    for key in leaves:
        arrow = _arrow(snapshot, table, key)
        if line and len(line) + len(arrow) > WIDTH_OF_KEYS:
            yield f"├ {line},"
            line = ""
        line += f", {arrow}" if line else arrow
    if line:
        yield f"└ {line}"


def _arrow(snapshot: Snapshot, table: Table, key: Key) -> str:
    """``driverId ─ drivers``, with the values that are missing there."""
    lost = f" ({key.lost:,} of {key.filled:,} missing)" if key.lost else ""
    sign = "─"
    if key.table == table.name:
        sign = ">"
    elif snapshot.tables[key.table].role == "lookup":
        sign = "="
    return f"{key.name}{lost} {sign} {key.table}"


def table_rows(snapshot: Snapshot, as_of: str | None = None) -> list[tuple[str, ...]]:
    """Each table that becomes something: its rows, what it becomes, its names and its times."""
    last_time = None if as_of is None else parse_time(as_of, "--as-of")
    rows: list[tuple[str, ...]] = []
    for name, table in snapshot.tables.items():
        if table.role == "ignored":
            continue
        name_columns = ""
        times = ""
        if table.role in NODE_ROLES:
            name_columns = "+".join(table.schema.name.columns)
            times = _time_in_words(table)
        count = _row_count(snapshot, table, last_time)
        rows.append((name, count, _role_in_words(snapshot, table), name_columns, times))
    return rows


def _row_count(snapshot: Snapshot, table: Table, last_time: int | None) -> str:
    """The number of rows that are there by a time."""
    if last_time is None or not table.schema.has_times:
        return f"{table.row_count:,}"
    joins: list[str] = []
    is_early = f"coalesce({moment(snapshot, table, joins)} <= {last_time}, true)"
    query = f"SELECT count(*) FROM {table.sql} AS t {' '.join(joins)} WHERE {is_early}"
    return f"{snapshot.number(query):,}"


def _time_in_words(table: Table) -> str:
    """The column of times, or the tables whose times the rows have."""
    time = table.schema.time
    if time is not None and time.column:
        return time.column
    return ", ".join(f"as {key.table}" for key in table.time_keys)


def _role_in_words(snapshot: Snapshot, table: Table) -> str:
    if table.role == "edges":
        return "edges"  # between which tables is drawn above
    if table.role == "lookup":
        owners = dict.fromkeys(other.name for other, _ in snapshot.referring(table.name))
        return f"category of {', '.join(owners)}"
    return "nodes" if table.role == "nodes" else "facts (not trained)"


def _trained_types_in_words(snapshot: Snapshot) -> list[str]:
    """The types that train takes without being told, and those that it leaves out."""
    node_tables = snapshot.node_tables
    entities = [name for name, table in node_tables.items() if table.role == "nodes"]
    facts = [name for name, table in node_tables.items() if table.role == "facts"]
    lines = [f"train: one run for each of {', '.join(entities or facts)}"]
    if entities and facts:
        lines.append(f"not trained, as facts: {', '.join(facts)}; to train one: --type {facts[0]}")
    return lines


def _other_choices_in_words(snapshot: Snapshot) -> list[str]:
    """The options that decide otherwise, each with an example from the tables."""
    keys = [(table.name, key) for table in snapshot.tables.values() for key in table.keys]
    counts = _count_by_origin([key.origin for _, key in keys])
    table_name, key = keys[0]
    found_lookups = [
        name
        for name, table in snapshot.tables.items()
        if table.role == "lookup" and table.schema.origin != "said"
    ]
    example = f"{next(iter(snapshot.tables))}=ignore"
    if found_lookups:
        example = f"{found_lookups[0]}=nodes"
    return [
        f"keys: {counts}; another: --key {table_name}.{key.name}=TABLE, or =none",
        f"another role: --table {example}, of nodes, facts, edges, lookup, ignore",
        "other names: --name TABLE.COLUMN; other times: --time TABLE.COLUMN, or =none",
        "columns of a type, and paths from it: --type NAME",
    ]


# Lists and reasons


def _shortened_list(names: Iterable[str]) -> str:
    names = list(names)
    if len(names) <= MOST_LISTED:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_LISTED])} and {format_count(len(names) - MOST_LISTED, 'other')}"


def _for_count(reason: str, names: Sequence[str]) -> str:
    """A reason that is worded for one table, worded for as many as there are."""
    if len(names) == 1:
        return reason
    for singular, plural in _PLURALS.items():
        reason = reason.replace(singular, plural, 1)
    return reason
