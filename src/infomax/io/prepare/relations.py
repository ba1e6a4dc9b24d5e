"""The relations of an edge table whose cells, or whose node tables, tell them apart."""

from __future__ import annotations

from typing import Any

from infomax.arrays.relations import RELATION
from infomax.errors import InputError, shorten
from infomax.io.prepare.database import Database
from infomax.io.schema.schema import Ends
from infomax.io.schema.tables_by_type import refuse_known_type
from infomax.io.sources import FILL_IN
from infomax.io.tables import EdgeTable, Tables


def relation_queries(
    database: Database, tables: Tables, edges_name: str, edges: EdgeTable, *, are_named: bool
) -> dict[Ends, str]:
    """The rows of an edge table by relation: of each relation, what follows SELECT in SQL.

    The cells of the column of relations tell the relation of a row, with or without its types.
    Where they do not tell the types, the node tables that list the ids of both ends do.

    Args:
        database: holds the rows.
        tables: all tables of the graph.
        edges_name: the name of the edge table in the database.
        edges: the edge table.
        are_named: whether a cell of each row names its relation.
    """
    relation_names: list[Any] = [(RELATION, 0)]
    if are_named:
        query = f"SELECT relation, min(number) FROM {edges_name} GROUP BY relation ORDER BY 2"
        relation_names = database.rows(query)

    conditions: dict[Ends, list[str]] = {}
    are_owners_known = False
    for name, number in relation_names:
        if not name:
            location = edges.source.location(number, edges.schema.relation.column or "")
            raise InputError(location, "the name of a relation", "an empty cell", FILL_IN)
        condition = "true"
        if are_named:
            condition = "relation = '{}'".format(name.replace("'", "''"))
        ends = _named_ends(tables, name)
        if ends is not None:
            conditions.setdefault(ends, []).append(condition)
            continue

        # The node tables that list both ends of an edge tell its types.
        if not are_owners_known:
            _find_owners(database, tables, edges_name)
            are_owners_known = True
        _refuse_unowned(database, tables, edges_name, edges, condition)
        pairs = (
            f"SELECT of_source, of_target FROM {edges_name} WHERE {condition} "
            "GROUP BY ALL ORDER BY min(number)"
        )
        for first, last in database.rows(pairs):
            ends = (tables.types_with_tables[first], name, tables.types_with_tables[last])
            conditions.setdefault(ends, []).append(
                f"{condition} AND of_source = {first} AND of_target = {last}"
            )
    return {
        ends: f"FROM {edges_name} WHERE {' OR '.join(parts)}" for ends, parts in conditions.items()
    }


def _named_ends(tables: Tables, name: str) -> Ends | None:
    """The relation that the cell of an edge names, with its types.

    None: the cell names no types, and the node tables tell them.
    """
    parts = name.split(".")
    end_types = tables.type_columns.ends
    if len(parts) > 1:
        first_type, last_type = parts[0], parts[-1]
        if end_types and (first_type, last_type) != end_types:
            expected = f"relations from {end_types[0]} to {end_types[1]}, as --types says"
            remedy = "Leave out --types, or the types in the column."
            location = f"column {shorten(tables.type_columns.edge_type)}"
            raise InputError(location, expected, shorten(name), remedy)
        relation = name
        if len(parts) == 2:
            relation = RELATION
        elif len(parts) == 3:
            relation = parts[1]
        return first_type, relation, last_type
    if not end_types and len(tables.types_with_tables) < 2:
        only_type = next(iter(tables.types_with_tables), "node")
        end_types = (only_type, only_type)
    return (end_types[0], name, end_types[1]) if end_types else None


def around_rows(tables: Tables, ends: Ends, *, alone: bool) -> tuple[Ends, Ends]:
    """The two relations that replace one of an edge table whose rows are nodes.

    Args:
        tables: all tables of the graph.
        ends: the relation that is replaced.
        alone: whether the edge table has no other relation.

    Returns:
        The relation to the rows, and the one from the rows.
    """
    node_type = tables.type_columns.edges_as
    if node_type in ends[::2]:
        raise refuse_known_type(node_type)
    prefix = "" if alone else f"{ends[1]} "
    to_rows = (ends[0], f"{prefix}source", node_type)
    from_rows = (node_type, f"{prefix}target", ends[2])
    return to_rows, from_rows


def _ids_of_all_types(tables: Tables) -> str:
    """The ids of all node tables with the number of their type."""
    table_numbers = [list(tables.nodes).index(node_type) for node_type in tables.types_with_tables]
    return " UNION ALL ".join(
        f"SELECT {number} AS type_number, id::VARCHAR AS id FROM nodes{table_number}"
        for number, table_number in enumerate(table_numbers)
    )


def _find_owners(database: Database, tables: Tables, edges_name: str) -> None:
    """Add the columns of_source and of_target to a table of edges.

    They are the number of the type whose node table has the id; -1 where none has it, or several.
    """
    database.execute(
        "CREATE TEMP TABLE owners AS "
        "SELECT id, "
        "CASE WHEN min(type_number) = max(type_number) THEN min(type_number) ELSE -1 END "
        "AS type_number "
        f"FROM ({_ids_of_all_types(tables)}) GROUP BY id"
    )
    for end in ("source", "target"):
        database.execute(
            f"CREATE TABLE owned AS SELECT edges.*, coalesce(type_number, -1) AS of_{end} "
            f"FROM {edges_name} AS edges LEFT JOIN owners ON owners.id = edges.{end}::VARCHAR"
        )
        database.execute(f"DROP TABLE {edges_name}")
        database.execute(f"ALTER TABLE owned RENAME TO {edges_name}")
    database.execute("DROP TABLE owners")


def _refuse_unowned(
    database: Database,
    tables: Tables,
    edges_name: str,
    edges: EdgeTable,
    condition: str,
) -> None:
    """Refuse the first end of some edges that is in the node tables of no type, or of several."""
    row = database.row(
        "SELECT number, of_source >= 0, source::VARCHAR, target::VARCHAR "
        f"FROM {edges_name} WHERE {condition} AND (of_source < 0 OR of_target < 0) "
        "ORDER BY number LIMIT 1"
    )
    if row is None:
        return
    number, end, *ids = row
    column = edges.ends[end]
    identifier = ids[end]
    query = (
        f"SELECT DISTINCT type_number FROM ({_ids_of_all_types(tables)}) WHERE id = ? "
        "ORDER BY type_number"
    )
    node_types = [
        tables.types_with_tables[type_number]
        for (type_number,) in database.rows(query, [identifier])
    ]
    if not node_types:
        first_table = tables.nodes[tables.types_with_tables[0]]
        raise id_unknown(edges, column, identifier, number, f"listed in {first_table.path}")
    found = f"{shorten(identifier)}, an id of {' and of '.join(node_types)}"
    remedy = (
        "Say which: --types TYPE,TYPE, or names such as author.writes.paper "
        "in the column of --edge-type."
    )
    raise InputError(edges.source.location(number, column), "an id of one type", found, remedy)


def id_unknown(
    edges: EdgeTable, column: str, identifier: Any, number: int, location_of_nodes: str
) -> InputError:
    """The error for an end of an edge that is no node.

    Args:
        edges: the edge table.
        column: the column of the end.
        identifier: the id that is no node.
        number: the number of the row.
        location_of_nodes: says where nodes are, such as "listed in nodes.csv".
    """
    remedy = (
        "Add a row for it there, or remove the edge (the edge table comes first). Write ids alike "
        "in both tables (pandas: read_csv(NAME, dtype=str) keeps zeros). Where ids are in another "
        "column: --id COLUMN (in Python: id=)"
    )
    if edges.are_ends_named:
        remedy += "."
    else:
        remedy += "; where edges are in other columns than the first two: --source and --target."
    location = edges.source.location(number, column)
    return InputError(location, f"an id {location_of_nodes}", shorten(identifier), remedy)
