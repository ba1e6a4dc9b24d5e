"""Graphs whose nodes and edges have attributes, as NetworkX and GraphML hold them: columns of a frame."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from infomax.arrays.checks import check_ids
from infomax.errors import InputError, shorten, within
from infomax.io.building import from_arrays
from infomax.io.column_names import warn_unused
from infomax.io.columns import Columns
from infomax.io.encoding.column_types import EXPECTED_CELLS
from infomax.io.prepare.in_memory import read_node_table
from infomax.io.record import Record
from infomax.io.schema.obeying import obeying
from infomax.io.schema.resolved import node_table
from infomax.io.schema.schema import Schema, Use
from infomax.io.sources import Source


def from_attributes(
    graph: Any, chosen: Columns, directed: bool | None, where: str = "graph"
) -> Record:
    """What `Graph.from_networkx` returns."""
    if not hasattr(graph, "is_directed"):
        raise InputError("graph", "a NetworkX graph", type(graph).__name__)
    chosen.refuse(["as_of"], "tables, whose rows have times")
    links = list(graph.edges(data=True))
    if directed and not graph.is_directed():
        links += [(v, u, attributes) for u, v, attributes in links if u != v]
    used = dict.fromkeys(name for *_, attributes in links for name in attributes)
    warn_unused(where, [name for name in used if name != "weight"], "edge attributes")
    position = {node: row for row, node in enumerate(graph)}
    with within(where):
        ids = check_ids(np.fromiter(position, dtype=object), len(position))
    usual = graph.graph.get("edge_default", {}).get("weight", 1.0 if "weight" in used else None)
    try:
        weight = (
            None
            if usual is None
            else [float(attributes.get("weight", usual)) for *_, attributes in links]
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}, weight of an edge", "a number", str(error)) from None
    source = _nodes(graph, ids, chosen, Path(where))
    fields = read_node_table(source)
    fields["labels"] = {
        name: _numbers(source, name, words) for name, words in fields["labels"].items()
    }
    with within(where):
        record = from_arrays(
            np.array([[position[u], position[v]] for u, v, _ in links], dtype=np.int64)
            .reshape(-1, 2)
            .T,
            weight=weight,
            num_nodes=len(ids),
            directed=graph.is_directed() if directed is None else directed,
            **fields
            | ({"features": chosen.structural_features} if fields["features"] is None else {}),
        )
    return replace(
        record,
        schema=Schema({"nodes": replace(node_table(source, ""), id=Use())}),
    )


def _nodes(graph: Any, ids: Any, chosen: Columns, where: Path) -> Source:
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
            values[row] = (
                value.tolist() if hasattr(value, "detach") else value
            )  # torch's are no text
    identifier = "id"
    while identifier in columns:
        identifier += "_"
    found = {name: _arrow(name, values, chosen) for name, values in columns.items()}
    table = pa.table({identifier: pa.array(ids), **found})
    chosen = replace(chosen.of_node_table(""), id=identifier)
    return Source([where], obeying(chosen, where, table.column_names), table)


def _arrow(name: str, values: list[Any], chosen: Columns) -> Any:
    """An attribute as a pyarrow array: values of several types as text; objects without a text are refused."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        for value in values:
            if (
                " object at 0x" in str(value) and name not in chosen.ignore
            ):  # its text is a place in memory
                found, remedy = f"an object of type {type(value).__name__}", "Name it in ignore."
                raise InputError(
                    f"attribute {shorten(name)}", EXPECTED_CELLS["type"], found, remedy
                ) from None
        words = [
            None if value is None or value != value else str(value) for value in values
        ]  # NaN is not itself
        return pa.array(words, pa.large_string())


def _numbers(source: Source, label: str, words: Any) -> Any:
    """A label ``[N]``: integers stay integers, whose -1 is unknown; others are text."""
    column = source.frame[source.chosen.labels[label]]
    return (
        np.asarray(column)
        if str(column.type).startswith("int") and not column.null_count
        else words
    )
