"""A graph as it was at an earlier time."""

from __future__ import annotations

import dataclasses
from typing import Any

from infomax.arrays.times import parse_time
from infomax.io.building import AnyRecord, with_structural_features
from infomax.io.refusals import no_rows_until, no_times


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
            earlier_graph = earlier_graph.target(node_type).part(is_kept)
    if earlier_graph is graph:
        return graph

    # `target` has turned the graph to other types.
    earlier_graph = dataclasses.replace(
        earlier_graph.loaded(),
        node_type=graph.node_type,
        node_type_is_first=graph.node_type_is_first,
    )
    return with_structural_features(earlier_graph)
