"""The relations of an edge table whose cells, or whose node tables, tell them apart."""

from __future__ import annotations

from typing import Any

from infomax.arrays.relations import RELATION
from infomax.errors import InputError
from infomax.io.blocks import FILL_IN
from infomax.io.building import Ends
from infomax.io.prepare.database import Database
from infomax.io.sources import Source
from infomax.io.typed import Tables


def divided(
    database: Database, tables: Tables, edges: str, source: Source, note: dict[str, Any]
) -> dict[Ends, str]:
    """The rows of a table of edges by relation, as what follows SELECT."""
    cells: list[Any] = [(RELATION, 0)]
    if note["named"]:
        query = f"SELECT relation, min(number) FROM {edges} GROUP BY relation ORDER BY 2"
        cells = database.rows(query)
    found: dict[Ends, list[str]] = {}
    owned = False
    for name, number in cells:
        if not name:
            where = source.location(number, source.columns.edge_type or "")
            raise InputError(where, "the name of a relation", "an empty cell", FILL_IN)
        here = "relation = '{}'".format(name.replace("'", "''")) if note["named"] else "true"
        if ends := tables.told_ends(name):
            found.setdefault(ends, []).append(here)
            continue
        if not owned:
            _find_owners(database, tables, edges)
            owned = True
        _refuse_unowned(database, tables, edges, source, note, here)
        pairs = f"SELECT of_source, of_target FROM {edges} WHERE {here} GROUP BY ALL ORDER BY min(number)"
        for first, last in database.rows(pairs):
            ends = (tables.types_with_tables[first], name, tables.types_with_tables[last])
            found.setdefault(ends, []).append(
                f"{here} AND of_source = {first} AND of_target = {last}"
            )
    return {ends: f"FROM {edges} WHERE {' OR '.join(parts)}" for ends, parts in found.items()}


def _listed(tables: Tables) -> str:
    """The ids of all node tables with the number of their type."""
    tables_of = (
        (at, list(tables.nodes).index(node_type))
        for at, node_type in enumerate(tables.types_with_tables)
    )
    return " UNION ALL ".join(
        f"SELECT {at} AS kind, id::VARCHAR AS id FROM nodes{table}" for at, table in tables_of
    )


def _find_owners(database: Database, tables: Tables, edges: str) -> None:
    """Columns of_source and of_target of a table of edges: the number of the type; -1 where it is none, or several."""
    database.execute(
        "CREATE TEMP TABLE owners AS SELECT id, CASE WHEN min(kind) = max(kind) THEN min(kind) ELSE -1 END AS kind "
        f"FROM ({_listed(tables)}) GROUP BY id"
    )
    for end in ("source", "target"):
        database.execute(
            f"CREATE TABLE owned AS SELECT edges.*, coalesce(kind, -1) AS of_{end} FROM {edges} AS edges "
            f"LEFT JOIN owners ON owners.id = edges.{end}::VARCHAR"
        )
        database.execute(f"DROP TABLE {edges}")
        database.execute(f"ALTER TABLE owned RENAME TO {edges}")
    database.execute("DROP TABLE owners")


def _refuse_unowned(
    database: Database, tables: Tables, edges: str, source: Source, note: dict[str, Any], here: str
) -> None:
    """Refuse the first end of some edges that is in the node tables of no type, or of several."""
    row = database.row(
        f"SELECT number, of_source >= 0, source::VARCHAR, target::VARCHAR FROM {edges} "
        f"WHERE {here} AND (of_source < 0 OR of_target < 0) ORDER BY number LIMIT 1"
    )
    if row is not None:
        number, end, *ids = row
        kinds = database.rows(
            f"SELECT DISTINCT kind FROM ({_listed(tables)}) WHERE id = ? ORDER BY kind",
            [ids[end]],
        )
        several = [tables.types_with_tables[node_type] for (node_type,) in kinds]
        raise tables.of_no_type(source, note["ends"][end], ids[end], number, several)
