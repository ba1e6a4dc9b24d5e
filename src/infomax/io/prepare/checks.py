"""What ids must be, found out by the database."""

from __future__ import annotations

from typing import Any

from infomax.errors import InputError, place, shorten
from infomax.io.prepare.database import Database
from infomax.io.prepare.sources import FILE, Source


def refuse_twice(database: Database, source: Source, column: str) -> None:
    """Refuse an id that two rows of the node table have."""
    twice = "SELECT id FROM nodes GROUP BY id HAVING count(*) > 1"
    database.execute(f"CREATE TEMP TABLE twice AS {twice}")
    rows = database.execute("SELECT id, number FROM nodes SEMI JOIN twice USING (id) ORDER BY number").fetchall()
    database.execute("DROP TABLE twice")
    seen: dict[Any, int] = {}
    for identifier, number in rows:
        if (first := seen.setdefault(identifier, number)) != number:
            other = source.place(first).removeprefix(f"{source.files[number // FILE]}, ")
            found = f"{shorten(identifier)}, already in {other}"
            where = source.place(number, column)
            raise InputError(where, "each id once", found, "Remove one of the rows.")


def refuse_other_ids(database: Database, edges: Source, nodes: Source | None, notes: dict[str, Any]) -> None:
    """Refuse ids of another type than the node table has, and column names that are two ids."""
    note, ends = notes["edges"], notes["edges"]["ends"]
    known = notes["nodes" if nodes else "first"]["integers"]
    typed = nodes is not None and not nodes.lines and not edges.lines
    if typed and nodes is not None and note["count"] and known != note["integers"]:
        kinds = [f"{'integer' if integers else 'text'} ids" for integers in (known, note["integers"])]
        remedy = "Give the id columns of both files one type."
        raise InputError(str(edges.path), f"{kinds[0]}, as in {nodes.path}", kinds[1], remedy)
    named = edges.columns.names_ends(ends)
    query = "SELECT count(DISTINCT id::VARCHAR) FROM nodes WHERE id::VARCHAR IN (?, ?)"
    if edges.lines and not named and database.execute(query, ends).fetchone()[0] == len(set(ends)):
        raise InputError(
            place(edges.path, 1),
            "a header line",
            f"two node ids, {shorten(ends[0])} and {shorten(ends[1])}",
            'Add a first line "source,target"; if these two are the names of the columns, change them to that.',
        )


def refuse_unknown(database: Database, edges: Source, nodes: Source | None, notes: dict[str, Any]) -> None:
    """Refuse the first end of an edge that no node has."""
    lost = "SELECT half.number, 1, half.target::VARCHAR FROM half JOIN pairs USING (number) WHERE pairs.target IS NULL"
    row = database.execute(
        f"SELECT * FROM (SELECT number, 0, id::VARCHAR FROM strangers UNION ALL {lost}) ORDER BY ALL LIMIT 1"  # noqa: S608
    ).fetchone()
    if row is not None and nodes is not None:
        kind = "integer" if notes["nodes"]["integers"] else "text"
        raise InputError(
            edges.place(row[0], notes["edges"]["ends"][row[1]]),
            f"an id listed in {nodes.path} ({kind} ids)",
            shorten(row[2]),
            "Add a row for it there, or remove the edge.",
        )
