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
    timed = {kind: nodes.times for kind, nodes in graph.nodes.items() if nodes.times is not None}
    if not timed:
        raise no_times()
    cut = graph
    for kind, times in timed.items():
        kept = times[:] <= time
        if not kept.any():
            raise no_rows_until(
                kind, time, int(times[:].min()), may_leave_out="table" in graph.table_columns
            )
        cut = cut if kept.all() else cut.target(kind).part(kept)
    if cut is graph:
        return graph
    cut = dataclasses.replace(cut.loaded(), kind=graph.kind, kind_is_first=graph.kind_is_first)
    return cut.with_edge_features()
