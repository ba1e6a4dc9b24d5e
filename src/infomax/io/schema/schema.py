"""Schema: what the tables of a graph and their columns are, as values that a person can change.

A schema is decided when tables are first read. It is stored with the graph and with each run, so
that later tables are read by it and nothing is guessed again. ``infomax info GRAPH --schema FILE``
writes it, ``--schema FILE`` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from infomax.arrays.relations import RELATION

if TYPE_CHECKING:
    from infomax.io.encoding.column import Column
    from infomax.io.encoding.encoding import Encoding

Origin = Literal["declared", "said", "found"]
"""Where a choice comes from: a database declares it, a person said it, or names or values do."""
ORIGINS = ("declared", "said", "found")
TableRole = Literal["nodes", "facts", "edges", "lookup", "ignored"]
TABLE_ROLES = ("nodes", "facts", "edges", "lookup", "ignored")
"""What the rows of a table are.

Facts are nodes of types that ``train`` leaves out, unless a person names their type. The rows of a
lookup are values of the rows that refer to them.
"""
ColumnRole = Literal["feature", "label", "split", "key", "ignored"]
COLUMN_ROLES = ("feature", "label", "split", "key", "ignored")

REASON_OF_TYPE = {
    "number": "numbers",
    "numbers": "lists of numbers",
    "boolean": "two values",
    "date": "dates",
    "text": "text of several words",
    "tokens": "lists of words",
    "name": "a name",
    "ignore": "no values",
}
"""Why a column has a type that its values tell; of a category the reason is a number of values."""

Ends = tuple[str, str, str]
"""The type of nodes where the edges of a relation begin, its name, and the type where they end."""
COUNT = "count"
"""In place of a column of weights: the weight of an edge is the number of its rows."""
EVENT = "event"
"""The type of the rows of an edge table that have times."""
ONLY_RELATION: Ends = ("", RELATION, "")
"""The relation of a graph of one type of nodes."""


@dataclass(frozen=True)
class Use:
    """The columns that a table uses for one purpose, such as ids, names or the weights of edges."""

    columns: tuple[str, ...] = ()
    origin: Origin = "found"
    reason: str = ""

    @property
    def column(self) -> str | None:
        """The first column, where there is one."""
        return self.columns[0] if self.columns else None


@dataclass(frozen=True)
class TimeUse:
    """Since when a row is there.

    A column of dates tells it, or the latest of the rows that some keys refer to.
    """

    column: str = ""
    keys: tuple[tuple[str, ...], ...] = ()
    """The columns of the keys to the rows that have a time, where the row itself has none."""
    unit: str = ""
    """What a number counts since 1970: s, ms, us or ns; or year. Empty for columns of dates."""
    candidates: tuple[str, ...] = ()
    """The other columns that could be taken."""
    origin: Origin = "found"
    reason: str = ""


@dataclass(frozen=True)
class KeySchema:
    """Columns whose values are those of ``target``, columns of another table or of the same one."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]
    is_float: bool = False
    """Whether its values are text such as 12.0, as pandas writes integers with gaps."""
    origin: Origin = "found"
    reason: str = ""


@dataclass(frozen=True)
class ColumnSchema:
    """What a column of a table becomes.

    The ``column_type`` is that of a feature, such as number or category.
    """

    role: ColumnRole = "feature"
    column_type: str = ""
    origin: Origin = "found"
    reason: str = ""
    encoding: Column | None = field(
        default=None, compare=False, repr=False, metadata={"is_stored": False}
    )
    """What was learnt of the column, once it is: how its cells become features.

    It is no choice, and may be long. So it is not in the JSON of a schema, but stored once, with
    the nodes: see `Nodes.encoding`, of which this is a view."""


@dataclass(frozen=True)
class TableSchema:
    """What one table becomes, and what its columns are.

    Attributes:
        role: one of `TABLE_ROLES`.
        node_type: of nodes and facts, their type; empty in a graph of one type.
        ends: of a table of edges, its relation; None where its cells, or its keys, tell the
            relation.
        id: the columns of ids, in order: the primary key. No columns: the numbers of the rows.
        id_types: the types of these columns in words that all databases know; tables in files have
            none.
        name: the columns that make the names of nodes, which are shown beside ids.
        time: since when rows are there; None: always.
        source: the column where edges begin.
        target: the column where edges end.
        weight: the column of the weights of edges; `COUNT`, where no column is called so, for the
            number of rows.
        group: the column that names the graph of a node, of several graphs.
        relation: the column that names the relation of an edge.
        keys: the keys to other tables.
        columns: the other columns by their names. Columns that are not among them are new, and are
            not read.
        origin: where the role comes from.
        reason: why it was found.
    """

    role: TableRole = "nodes"
    node_type: str = ""
    ends: Ends | None = None
    id: Use = Use()
    id_types: tuple[str, ...] = ()
    name: Use = Use()
    time: TimeUse | None = None
    source: Use = Use()
    target: Use = Use()
    weight: Use = Use()
    group: Use = Use()
    relation: Use = Use()
    keys: tuple[KeySchema, ...] = ()
    columns: Mapping[str, ColumnSchema] = field(default_factory=dict)
    origin: Origin = "found"
    reason: str = ""

    @property
    def has_nodes(self) -> bool:
        """Whether its rows are nodes."""
        return self.role in ("nodes", "facts")

    @property
    def has_times(self) -> bool:
        """Whether rows have a time, of their own or by a key."""
        return self.time is not None and bool(self.time.column or self.time.keys)

    def with_role(self, role: ColumnRole) -> list[str]:
        """The columns of a role, in order."""
        return [name for name, column in self.columns.items() if column.role == role]


@dataclass(frozen=True)
class TypeColumns:
    """What tells types of nodes apart in one edge table and one node table, before their split."""

    ends: tuple[str, str] | None = None
    """The types of the nodes where edges begin and end."""
    edge_type: str = ""
    """The column of the edge table that names the relation of an edge."""
    node_type: str = ""
    """The column of the node table that names the type of a node."""
    edges_as: str = ""
    """The type of nodes that the rows of the edge table become."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing tells types apart, so that there is one type of nodes."""
        return self == ONE_TYPE


ONE_TYPE = TypeColumns()
"""Nothing tells types apart: there is one type of nodes."""


@dataclass(frozen=True)
class Schema:
    """The tables of a graph, by name.

    Tables of a database have the names that they have there. Otherwise a graph of one type of nodes
    has the tables "nodes" and "edges"; one of several types has a table for each type, and for each
    relation one such as "author.writes.paper".
    """

    tables: Mapping[str, TableSchema] = field(default_factory=dict)
    type_columns: TypeColumns = ONE_TYPE
    is_database: bool = False
    """Whether the tables have keys, by which relations are found."""

    def of_type(self, node_type: str) -> TableSchema | None:
        """The table of the nodes of a type, if there is one."""
        name = self.table_name(node_type)
        return None if name is None else self.tables[name]

    def table_name(self, node_type: str) -> str | None:
        """What the table of the nodes of a type is called, if there is one."""
        for name, table in self.tables.items():
            if table.has_nodes and table.node_type == node_type:
                return name
        return None

    def of_relation(self, ends: Ends | None) -> TableSchema | None:
        """The table of the edges of a relation, if there is one.

        None stands for the table of all edges, whose cells tell their relation.
        """
        for table in self.tables.values():
            if table.role == "edges" and table.ends == ends:
                return table
        return None

    @property
    def facts(self) -> list[str]:
        """The types of nodes that are facts."""
        return [table.node_type for table in self.tables.values() if table.role == "facts"]

    def with_encodings(self, encoding_of_type: Mapping[str, Encoding | None]) -> Schema:
        """The same schema with the encodings that were learnt of columns of nodes, by node type."""
        tables = dict(self.tables)
        for table_name, table in self.tables.items():
            if not table.has_nodes or table.node_type not in encoding_of_type:
                continue
            encoding = encoding_of_type[table.node_type]
            learnt_columns: dict[str, Column] = {}
            if encoding is not None:
                learnt_columns = {column.name: column for column in encoding.columns}
            columns = dict(table.columns)
            for column_name, column in table.columns.items():
                learnt_column = learnt_columns.get(column_name)
                if column.encoding is not learnt_column:
                    columns[column_name] = replace(column, encoding=learnt_column)
            tables[table_name] = replace(table, columns=columns)
        return replace(self, tables=tables)

    def with_table(self, table_name: str, /, **changes: Any) -> Schema:
        """The same schema with some fields of one table replaced."""
        changed = replace(self.tables.get(table_name, TableSchema()), **changes)
        return replace(self, tables={**self.tables, table_name: changed})
