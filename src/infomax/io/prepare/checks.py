"""What ids must be, found out by the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from infomax.errors import InputError, number_of, place
from infomax.io.prepare.database import Database
from infomax.io.refusals import id_twice, id_unknown
from infomax.io.sources import NodeTable, Source


def refuse_unstorable(source: Source, rows: NodeTable) -> None:
    """Refuse what a graph folder cannot hold: several graphs, and labels that are lists."""
    if source.chosen.groups is not None:
        found = f"a column {source.chosen.groups}"
        raise InputError(str(source.path), "no groups, as a graph folder holds one graph", found)
    for name, column in rows.labels.items():
        if column.ndim > 1:
            where = place(source.path, column=source.chosen.labels[name])
            raise InputError(where, "one label per node, in a graph folder", "lists", "Give each label its column.")


def refuse_twice(database: Database, table: str, nodes: Source, column: str) -> None:
    """Refuse an id that two rows of a table of nodes have."""
    twice = f"SELECT id FROM {table} GROUP BY id HAVING count(*) > 1"  # noqa: S608  our own names
    database.execute(f"CREATE TEMP TABLE twice AS {twice}")
    rows = database.rows(f"SELECT id, number FROM {table} SEMI JOIN twice USING (id) ORDER BY number")  # noqa: S608
    database.execute("DROP TABLE twice")
    seen: dict[Any, int] = {}
    for identifier, number in rows:
        if (first := seen.setdefault(identifier, number)) != number:
            raise id_twice(nodes, column, identifier, first, number)


def is_node(database: Database, table: str, identifier: str) -> bool:
    """Whether a node of a table has this id, or its text."""
    query = f"SELECT 1 FROM {table} WHERE id::VARCHAR = ? LIMIT 1"  # noqa: S608
    return database.row(query, [identifier]) is not None


def refuse_unknown(
    database: Database,
    edges: Source,
    ends: Sequence[str],
    listed: Callable[[int], str],
    candidates: Callable[[int], Iterable[Any]],
) -> None:
    """Refuse the first end of an edge that no node has; ``listed`` says in the message where those of an end are.

    ``candidates`` are the ids that one end may have.
    """
    lost = "SELECT half.number, 1, half.target::VARCHAR FROM half JOIN pairs USING (number) WHERE pairs.target IS NULL"
    every = f"SELECT number, 0 AS side, id FROM strangers UNION ALL {lost}"  # noqa: S608  our own names
    row = database.row(f"SELECT * FROM ({every}) ORDER BY ALL LIMIT 1")  # noqa: S608
    if row is not None:
        where = listed(row[1])
        (lacking,) = database.row(f"SELECT count(DISTINCT number) FROM ({every})")  # noqa: S608
        (count,) = database.row("SELECT count(*) FROM pairs")
        share = f"{lacking:,} of {number_of(count, 'edge')}"
        raise id_unknown(edges, ends[row[1]], row[2], row[0], where, share, candidates(row[1]))
