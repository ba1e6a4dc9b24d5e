"""What ids must be, found out by the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from infomax.errors import InputError, place
from infomax.io.prepare.database import Database
from infomax.io.sources import Nodes, Source, id_twice, id_unknown


def refuse_unstorable(source: Source, rows: Nodes) -> None:
    """Refuse what a graph folder cannot hold: several graphs, and labels that are lists."""
    if source.chosen.groups is not None:
        found = f"a column {source.names[source.chosen.groups]}"
        raise InputError(str(source.path), "no groups, as a graph folder holds one graph", found)
    for name, column in rows.labels.items():
        if column.ndim > 1:
            where = place(source.path, column=source.names[source.chosen.labels[name]])
            raise InputError(where, "one label per node, in a graph folder", "lists", "Give each label its column.")


def refuse_twice(database: Database, nodes: Source, column: str) -> None:
    """Refuse an id that two rows of the node table have."""
    twice = "SELECT id FROM nodes GROUP BY id HAVING count(*) > 1"
    database.execute(f"CREATE TEMP TABLE twice AS {twice}")
    rows = database.execute("SELECT id, number FROM nodes SEMI JOIN twice USING (id) ORDER BY number").fetchall()
    database.execute("DROP TABLE twice")
    seen: dict[Any, int] = {}
    for identifier, number in rows:
        if (first := seen.setdefault(identifier, number)) != number:
            raise id_twice(nodes, column, identifier, first, number)


def is_node(database: Database, identifier: str) -> bool:
    """Whether a node has this id, or its text."""
    query = "SELECT 1 FROM nodes WHERE id::VARCHAR = ? LIMIT 1"
    return database.execute(query, [identifier]).fetchone() is not None


def refuse_unknown(database: Database, edges: Source, ends: Sequence[str], listed: str) -> None:
    """Refuse the first end of an edge that no node has; ``listed`` says in the message where nodes are."""
    lost = "SELECT half.number, 1, half.target::VARCHAR FROM half JOIN pairs USING (number) WHERE pairs.target IS NULL"
    row = database.execute(
        f"SELECT * FROM (SELECT number, 0, id::VARCHAR FROM strangers UNION ALL {lost}) ORDER BY ALL LIMIT 1"  # noqa: S608
    ).fetchone()
    if row is not None:
        raise id_unknown(edges, ends[row[1]], row[2], row[0], listed)
