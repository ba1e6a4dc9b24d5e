"""Graphs of NetworkX, and of GraphML as NetworkX reads it.

Attributes of nodes are read as the columns of a frame are.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from infomax.arrays.checks import check_ids
from infomax.errors import InputError, shorten, warn, within
from infomax.io.building import from_arrays
from infomax.io.choices import UserChoices
from infomax.io.column_names import warn_unused
from infomax.io.encoding.column_types import EXPECTED_CELLS
from infomax.io.prepare.in_memory import read_node_table
from infomax.io.record import Record
from infomax.io.schema.resolving import resolve_node_table
from infomax.io.schema.schema import Schema, Use
from infomax.io.sources import Source
from infomax.io.tables import NodeTable


def read_graphml(path: Path, choices: UserChoices, directed: bool | None) -> Record:
    """The graph of a GraphML file; attributes of nodes are read as columns of a table are."""
    import networkx

    try:
        graph = networkx.read_graphml(path)
    except Exception as error:  # its parser and NetworkX raise almost anything for a damaged file
        raise InputError(str(path), "a GraphML file", str(error) or type(error).__name__) from error
    if directed is None and graph.is_directed():
        warn(
            f"{path}: edges are directed, as the file says (edgedefault). To change that: "
            "--undirected (in Python: directed=False)."
        )
    return from_networkx(graph, choices, directed, str(path))


def from_networkx(
    graph: Any, choices: UserChoices, directed: bool | None, location: str = "graph"
) -> Record:
    """What `Graph.from_networkx` returns; messages name the graph by its ``location``."""
    if not hasattr(graph, "is_directed"):
        raise InputError("graph", "a NetworkX graph", type(graph).__name__)
    choices.refuse(["as_of"], "tables, whose rows have times")
    edges = list(graph.edges(data=True))
    if directed and not graph.is_directed():
        edges += [(last, first, attributes) for first, last, attributes in edges if first != last]
    names = dict.fromkeys(name for *_, attributes in edges for name in attributes)
    warn_unused(location, [name for name in names if name != "weight"], "edge attributes")

    row_of_node = {node: row for row, node in enumerate(graph)}
    with within(location):
        ids = check_ids(np.fromiter(row_of_node, dtype=object), len(row_of_node))
    ends = [[row_of_node[first], row_of_node[last]] for first, last, _ in edges]
    weights = _weights(graph, edges, location, has_weights="weight" in names)

    nodes = _node_table(graph, ids, choices, Path(location))
    fields = read_node_table(nodes)
    fields["labels"] = {
        name: _numbers(nodes, name, words) for name, words in fields["labels"].items()
    }
    if fields["features"] is None:
        fields["features"] = choices.structural_features
    with within(location):
        record = from_arrays(
            np.array(ends, dtype=np.int64).reshape(-1, 2).T,
            weight=weights,
            num_nodes=len(ids),
            directed=graph.is_directed() if directed is None else directed,
            **fields,
        )
    # The column of ids was made here, and is in no table of the user.
    return replace(record, schema=Schema({"nodes": replace(nodes.described(), id=Use())}))


def _weights(
    graph: Any, edges: list[Any], location: str, *, has_weights: bool
) -> list[float] | None:
    """The weights of the edges; None where no edge has any.

    A graph may have a weight for edges without one.
    """
    usual = graph.graph.get("edge_default", {}).get("weight", 1.0 if has_weights else None)
    if usual is None:
        return None
    try:
        return [float(attributes.get("weight", usual)) for *_, attributes in edges]
    except (TypeError, ValueError) as error:
        raise InputError(f"{location}, weight of an edge", "a number", str(error)) from None


def _node_table(graph: Any, ids: Any, choices: UserChoices, path: Path) -> NodeTable:
    """The ids and the attributes of the nodes as a frame."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {
        str(name): [value] * len(ids) for name, value in graph.graph.get("node_default", {}).items()
    }
    # Of a sparse graph, nodes have few of many attributes: only those that are there are looked at.
    for row, (_, attributes) in enumerate(graph.nodes(data=True)):
        for name, value in attributes.items():
            values = columns.setdefault(str(name), [])
            if not values:
                values += [None] * len(ids)
            # A number of torch has no text of its own.
            values[row] = value.tolist() if hasattr(value, "detach") else value
    id_column = "id"
    while id_column in columns:
        id_column += "_"
    arrays = {name: _arrow(name, values, choices) for name, values in columns.items()}
    frame = pa.table({id_column: pa.array(ids), **arrays})
    earlier_table = None if choices.schema is None else choices.schema.of_type("")
    source = Source([path], frame)
    return resolve_node_table(
        source, replace(choices, id=id_column), earlier_table, features=choices.learnt_features("")
    )


def _arrow(name: str, values: list[Any], choices: UserChoices) -> Any:
    """An attribute as a pyarrow array.

    Values of several types are text; objects without a text are refused.
    """
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        for value in values:
            # The text of such an object is its place in memory.
            if " object at 0x" in str(value) and name not in choices.ignore:
                found = f"an object of type {type(value).__name__}"
                location = f"attribute {shorten(name)}"
                remedy = "Name it in ignore."
                raise InputError(location, EXPECTED_CELLS["type"], found, remedy) from None
        # NaN differs from itself.
        words = [None if value is None or value != value else str(value) for value in values]
        return pa.array(words, pa.large_string())


def _numbers(nodes: NodeTable, label: str, words: Any) -> Any:
    """A label ``[N]``: integers stay integers, whose -1 is unknown; others are text."""
    column = nodes.source.frame[nodes.labels[label]]
    if str(column.type).startswith("int") and not column.null_count:
        return np.asarray(column)
    return words
