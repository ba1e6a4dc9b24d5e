"""A graph as it was at an earlier time."""

from __future__ import annotations

import dataclasses
from typing import Any

from infomax.arrays.times import UNKNOWN_TIME, format_time, parse_time
from infomax.errors import InputError
from infomax.io.building import AnyRecord, with_structural_features
from infomax.io.subgraphs import part_of


def as_of(graph: AnyRecord, when: Any) -> AnyRecord:
    """The graph without the rows of a later time and their edges; see `infomax.Graph.as_of`."""
    time = parse_time(when, "as_of")
    times_by_type = {
        node_type: nodes.times
        for node_type, nodes in graph.nodes.items()
        if nodes.times is not None
    }
    if not times_by_type:
        raise no_times()
    may_leave_out = graph.schema is not None and graph.schema.is_database

    earlier_graph = graph
    for node_type, times in times_by_type.items():
        is_kept = times[:] <= time
        if not is_kept.any():
            first_time = int(times[:].min())
            raise no_rows_until(node_type, time, first_time, may_leave_out=may_leave_out)
        if not is_kept.all():
            earlier_graph = part_of(earlier_graph.target(node_type), is_kept)
    if earlier_graph is graph:
        return graph

    # `target` has turned the graph to other types.
    earlier_graph = dataclasses.replace(
        earlier_graph.loaded(),
        node_type=graph.node_type,
        node_type_is_first=graph.node_type_is_first,
    )
    return with_structural_features(earlier_graph)


def last_time(graph: AnyRecord) -> int | None:
    """The time of a graph's latest row, in microseconds; None where no row has a time."""
    times_by_type = [nodes.times[:] for nodes in graph.nodes.values() if nodes.times is not None]
    latest = max(
        (int(times.max(initial=UNKNOWN_TIME)) for times in times_by_type), default=UNKNOWN_TIME
    )
    return None if latest == UNKNOWN_TIME else latest


def no_times() -> InputError:
    """The error for a graph as of a day that has no times."""
    remedy = "Name the column of times: --time COLUMN (in Python: time=)."
    return InputError("as_of", "a graph whose rows have times", "one without", remedy)


def no_rows_until(node_type: str, day: Any, first: int, *, may_leave_out: bool) -> InputError:
    """The error for a type of nodes of which all rows are later than a day, by the first time."""
    remedy = "Take a later day."
    if may_leave_out:
        remedy = f"Take a later day, or leave them out: --table {node_type}=ignore."
    expected = f"rows of {node_type or 'nodes'} up to {format_time(parse_time(day, 'as_of'))}"
    return InputError("as_of", expected, f"none; the first is of {format_time(first)}", remedy)
