"""A graph as it was at an earlier time."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from infomax.arrays.times import parse_time
from infomax.io.record import Record
from infomax.io.refusals import no_rows_until, no_times

R = TypeVar("R", bound=Record)


def as_of(graph: R, when: Any) -> R:
    """The graph without the rows of a later time and their edges; see `infomax.Graph.as_of`."""
    time = parse_time(when, "as_of")
    timed = {
        node_type: nodes.times
        for node_type, nodes in graph.nodes.items()
        if nodes.times is not None
    }
    if not timed:
        raise no_times()
    may_leave_out = graph.schema is not None and graph.schema.is_database
    cut = graph
    for node_type, times in timed.items():
        kept = times[:] <= time
        if not kept.any():
            raise no_rows_until(node_type, time, int(times[:].min()), may_leave_out=may_leave_out)
        cut = cut if kept.all() else cut.target(node_type).part(kept)
    if cut is graph:
        return graph
    cut = dataclasses.replace(
        cut.loaded(), node_type=graph.node_type, node_type_is_first=graph.node_type_is_first
    )
    return cut.with_structural_features()
