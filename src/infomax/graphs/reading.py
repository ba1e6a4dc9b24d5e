"""Read graphs from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Unpack

from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.choices import Choices, UserChoices, reading_like
from infomax.io.column_names import as_said
from infomax.io.database import is_database
from infomax.io.reading import read_record
from infomax.io.schema.schema import Schema


def read_graph(
    edges: str | Path,
    nodes: str | Path | None = None,
    *,
    features: str | Path | Sequence[str] | None = None,
    directed: bool | None = None,
    attach_to: Graph | None = None,
    like: Graph | None = None,
    **columns: Unpack[Choices],
) -> Graph:
    """Read a graph from an edge table and a node table, a folder, an npz or a GraphML file.

    Two tables, which are csv, tsv or txt, also packed by gzip, or parquet:

    >>> read_graph("edges.csv", "nodes.csv", labels="section")
    >>> read_graph("edges.csv,nodes.csv")

    A folder of edges.* and, if there are any, nodes.* and features.npy or features.npz; and one of
    several types of nodes, as in nodes/paper.csv and edges/author.writes.paper.csv:

    >>> read_graph("folder/")
    >>> read_graph("types/")

    A file of arrays; a graph folder that ``infomax prepare`` wrote, whose arrays stay on disk; and
    a database, see `read_database`:

    >>> read_graph("graph.npz")
    >>> read_graph("big.graph")
    >>> read_graph("shop.sqlite")

    With ``attach_to`` the tables hold only new nodes, and the edges that join them to each other
    and to the nodes of a known graph. The result is the known graph with the new nodes appended;
    ``splits["new"]`` marks them, and it has no labels. It has the features and the directedness of
    the known graph; positions of new nodes come from their neighbours', and degree features are
    counted again. Columns that were named for the known graph need not be named again.

    >>> grown = read_graph("new/", attach_to=model.graph_)
    >>> model.transform(grown).part(grown.splits["new"])

    Args:
        edges: the edge table, or one of the other forms above.
        nodes: the node table.
        features: names of the columns that are features; other columns are then ignored. Or a file
            with one row per row of the node table, which then has no features: .npy, or the .npz of
            a sparse matrix of scipy. Or ``"degrees"`` or ``"positions"``, which are made of the
            edges.
        directed: keep the directions; False: an edge runs both ways. None: as in ``like``, else as
            a GraphML file says; of tables, False. An npz or a graph folder that says otherwise is
            refused.
        attach_to: the graph that the tables' nodes are added to.
        like: an earlier graph, by which columns become features, for a model that was fitted to it.
        columns: what the columns of tables are, such as ``labels``, ``ignore``, ``id`` or
            ``weight``: see `Choices`.
    """
    tables: dict[str, object] = {"edges": edges, "nodes": nodes}
    for argument, table in tables.items():
        if not isinstance(table, str | PathLike | None):
            expected = "the path of a file or a folder"
            remedy = (
                "Of frames: Graph.from_frames. "
                "Of others: from_arrays, from_scipy, from_networkx or from_pyg."
            )
            raise InputError(argument, expected, type(table).__name__, remedy)
    user_choices = UserChoices.of(features=features, **columns)
    user_choices, directed = reading_like(user_choices, like, directed)
    record = read_record(edges, nodes, user_choices, directed=directed, attach_to=attach_to)
    return Graph.of(record)


def read_database(
    source: str | Path,
    *,
    keys: Mapping[str, str] | Sequence[str] = (),
    primary_keys: Mapping[str, str] | Sequence[str] = (),
    tables: Mapping[str, str] | Sequence[str] = (),
    time: str | Sequence[str] = (),
    labels: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    name: str | None = None,
    columns: Mapping[str, str] | Sequence[str] = (),
    schema: Schema | str | Path | None = None,
    as_of: str | None = None,
    like: Graph | None = None,
) -> Graph:
    """Read tables with keys as a graph of several types of nodes.

    >>> read_database("chinook.sqlite", tables={"Genre": "nodes"})
    >>> read_database("f1/", keys={"results.driverId": "drivers"})  # a folder of files
    >>> read_database("postgresql://me@server/shop")

    A row becomes a node, with the columns that are no keys as features, and an edge to each row
    that it refers to. A table of two keys and nothing else becomes edges; one of a key and a short
    text, which many rows refer to, becomes a category of these. Keys are those that are declared
    and, of other columns, those that are called ``driverId``, ``driver_id`` or ``driver`` and whose
    values are in the key of a table ``drivers``. Nothing is written; all tables are read as of one
    moment.

    Args:
        source: a SQLite or DuckDB file, the address of a Postgres server, or a folder of different
            tables.
        keys: keys that are neither declared nor found, as ``{"orders.buyer": "customers"}``;
            ``"none"`` for no key.
        primary_keys: columns that tell the rows of a table apart, as ``{"teams": "year+team"}``,
            where a table declares none.
        tables: what tables become: nodes, facts (nodes that train leaves out by default), edges,
            lookup or ignore.
        time: columns that say since when a row is there, as ``"races.date"``. Others are found
            where a row that refers to others has one date; a fact without one has the latest time
            of the rows that it refers to.
        labels: names of columns that are labels, of one table as ``"Track.Genre"``.
        ignore: names of columns that are not read.
        name: columns of names that are shown beside ids, as ``"Track.Name"``.
        columns: what columns are, as in `read_graph`.
        schema: what all tables and columns are, as in `read_graph`.
        as_of: leave out rows of a later time, as in `read_graph`.
        like: an earlier graph, by which tables are read and columns become features.
    """
    user_choices = UserChoices.of(
        labels,
        None,
        ignore,
        columns=columns,
        name=name,
        time=time,
        as_of=as_of,
        schema=schema,
        key=as_said(keys),
        pk=as_said(primary_keys, joint="."),
        table=as_said(tables),
    )
    user_choices, _ = reading_like(user_choices, like, None)
    if not is_database(source, user_choices.text_format):
        expected = "a database, or a folder of different tables"
        remedy = "Graphs in other forms: read_graph."
        raise InputError(str(source), expected, "none", remedy)
    return Graph.of(read_record(source, None, user_choices, directed=None))
