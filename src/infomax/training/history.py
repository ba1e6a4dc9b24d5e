"""What was known of a row at a time: its own columns, and means over its events up to then, with weights that halve.

Events of a type are rows that have times and edges to it: the results of a driver. Their columns are pooled, and those
of the other rows that they refer to; and so are the events of the untimed row that the latest event refers to: all
results of his latest constructor. Only rows up to the time count, so no later row changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.relations import Step, steps
from infomax.arrays.scaling import Scaler
from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import structural_features_named
from infomax.arrays.times import DAY, UNKNOWN
from infomax.io.encoding.dates import DateColumn
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.training.health import spread
from infomax.training.own import blocks, own_projection
from infomax.training.recipe import MOST_FITTED_NODES, numbered

Array = NDArray[np.float32]
Rows = NDArray[np.int64]
YEAR = 365.25


@dataclass(frozen=True, eq=False)
class Events:
    """The events of the rows of a type along one step, those of a row after one another, by time and then by id.

    Shapes:
        starts: ``[R + 1]``
        rows: ``[M]``, of the type of the events
        times: ``[M]``, ascending within a row
    """

    step: Step
    name: str
    starts: Rows
    rows: Rows
    times: Rows

    @classmethod
    def along(cls, step: Step, graph: Record, name: str) -> Events:
        """Those of the rows that receive along a step."""
        times = times_of(graph, step.sender)
        by_id = _by_id(graph.nodes[step.sender].ids[:])
        by_time = by_id[np.argsort(times[by_id], kind="stable")]
        rank = np.empty(len(times), np.int64)
        rank[by_time] = np.arange(len(times))
        starts, indices, _ = step.senders
        ranks = sparse.csr_array(
            (np.ones(len(indices), bool), rank[indices], np.array(starts, np.int64)),
            (len(starts) - 1, len(times)),
        )
        ranks.sort_indices()
        rows = by_time[ranks.indices]
        return cls(step, name, np.array(starts, np.int64), rows, times[rows])


@dataclass(frozen=True, eq=False)
class Source:
    """A table whose rows are pooled over events: ``places [M]`` says which row an event has, -1 for none."""

    table: Array
    places: Rows
    names: Sequence[str]


Columns = tuple[Sequence[str], Array]
"""The names of columns of the vectors, and their numbers ``[Q, k]``."""
Way = tuple[int, Events, Rows]
"""The number of a kind of events, these, and the row ``[n]`` that each event refers to, -1 for none."""


class History:
    """The vectors of rows of a graph as of any time.

    Args:
        graph: the graph, whose rows have times.
        seen: that of the training, to which the scaler was fitted; it says how columns are projected. Features that are
            made of the edges are left out, since later edges would change them.
        scaler: that of the training.
        half_lives: in days, by name.
    """

    def __init__(
        self, graph: Record, seen: Record, scaler: Scaler, half_lives: Mapping[str, float]
    ) -> None:
        self.graph = graph
        self.half_lives = half_lives
        self.tables: dict[str, Array] = {}
        self.column_names: dict[str, Sequence[str]] = {}
        known, backend = seen.scaled(scaler).nodes, Backend(torch.device("cpu"))
        for node_type, nodes in graph.scaled(scaler).nodes.items():
            names = nodes.feature_names
            own = known[node_type]
            table = np.zeros((nodes.num_nodes, 0), np.float32)
            if not structural_features_named(names):
                projection = own_projection(
                    own.table, spread(own.num_nodes, MOST_FITTED_NODES), backend
                ).numpy()
                rows = blocks(nodes.table, np.arange(nodes.num_nodes))
                table = np.concatenate([_projected(some, projection) for some in rows])
            width = table.shape[1]
            self.tables[node_type] = table
            self.column_names[node_type] = names if width == len(names) else numbered("own", width)
        self._events: dict[str, list[tuple[Events, list[Source]]]] = {}

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns of a vector."""
        none = np.empty(0, np.int64)
        return [name for names, _ in self._columns(none, none) for name in names]

    def at(self, rows: Rows, moments: Rows) -> Array:
        """The vectors ``[Q, D]`` of rows of the graph's type as of times, microseconds ``[Q]`` each."""
        return np.concatenate([values for _, values in self._columns(rows, moments)], axis=1)

    def _columns(self, rows: Rows, moments: Rows) -> Iterator[Columns]:
        """Own columns and ages, then what is pooled over the events, and over those of the rows they refer to."""
        node_type = self.graph.node_type
        yield self.column_names[node_type], self.tables[node_type][rows]
        for column, feature in self._dates:
            days = column.days(self._raw(feature)[rows])
            yield (
                [f"age: {column.name}"],
                ((moments / DAY - 10_957 - days) / YEAR).astype(np.float32)[:, None],
            )
        found, latest = self._pooled(node_type, rows, moments)
        yield from found
        for other, ways in self._others.items():
            for names, values in self._pooled(other, _newest(ways, latest, len(rows)), moments)[0]:
                yield [f"latest {other}: {name}" for name in names], values

    def _pooled(
        self, node_type: str, rows: Rows, moments: Rows
    ) -> tuple[list[Columns], list[Rows]]:
        """The means over the events of rows of a type, and the logarithms of their weights.

        And the latest event ``[Q]`` of each kind of events.
        """
        from infomax.kernels.cpu_events import pool_events

        found = list[Columns]()
        newest = list[Rows]()
        for events, sources in self._events_of(node_type):
            timed = self._timed(events.step.sender)
            lives = (
                self.half_lives if timed else {"forever": np.inf}
            )  # rows without times have plain means alone
            for at, source in enumerate(sources):
                ask = (events.starts, events.times, source.places, source.table, (rows, moments))
                means, weights, latest = pool_events(*ask, np.array(list(lives.values())))
                if at == 0:
                    newest.append(latest)
                    counts = [f"number of {events.name}, {life}" for life in lives]
                    found += [(counts, np.log1p(weights))] if timed else []
                names = [
                    f"mean of {name} over {events.name}, {life}"
                    for life in lives
                    for name in source.names
                ]
                found.append((names, means.reshape(len(rows), len(names))))
        return found, newest

    def _timed(self, node_type: str) -> bool:
        return self.graph.nodes[node_type].times is not None

    def _events_of(self, node_type: str) -> list[tuple[Events, list[Source]]]:
        """The events of a type, by each step to it, with what they pool; rows without times are always there."""
        if node_type not in self._events:
            found = list[tuple[Events, list[Source]]]()
            relations = self.graph.relations
            for step in steps(relations, node_type):
                several = (
                    sum(other.sender == step.sender for other in steps(relations, node_type)) > 1
                )
                name = f"{step.sender} ({step.relation.name})" if several else step.sender
                events = Events.along(step, self.graph, name or "neighbours")
                found.append((events, self._sources(events)))
            self._events[node_type] = found
        return self._events[node_type]

    def _sources(self, events: Events) -> list[Source]:
        """The columns of the events themselves, and of the other rows that each refers to."""
        node_type = events.step.sender
        found = [Source(self.tables[node_type], events.rows, self.column_names[node_type])]
        if not self._timed(node_type):
            return found
        for step in steps(self.graph.relations, node_type):
            if step.relation is events.step.relation or not self.column_names[step.sender]:
                continue
            owners, table = self._owners(step)
            names = [f"{step.sender}.{name}" for name in self.column_names[step.sender]]
            found.append(Source(table, owners[events.rows], names))
        return found

    def _owners(self, step: Step) -> tuple[Rows, Array]:
        """The row of a table ``[n, K]`` for each row that receives, -1 for none: of one neighbour, or of their mean.

        Neighbours later than the row itself do not count: they were not there when it came.
        """
        (starts, indices, _), table = step.senders, self.tables[step.sender]
        size = len(starts) - 1
        receivers = np.repeat(np.arange(size), np.diff(starts))
        kept = (
            times_of(self.graph, step.sender)[indices]
            <= times_of(self.graph, step.node_type)[receivers]
        )
        receivers, senders = receivers[kept], np.asarray(indices, np.int64)[kept]
        owners, counts = np.full(size, -1), np.bincount(receivers, minlength=size)
        if counts.max(initial=0) <= 1:
            owners[receivers] = senders
            return owners, table
        shares = (1 / counts[receivers]).astype(np.float32)
        means = sparse.csr_array((shares, (receivers, senders)), (size, len(table))) @ table
        return np.where(counts > 0, np.arange(size), -1), np.asarray(means, np.float32)

    @cached_property
    def _others(self) -> dict[str, list[Way]]:
        """The untimed types that events of the graph's type refer to, one each; and by which events."""
        found: dict[str, list[Way]] = {}
        for number, (events, _) in enumerate(self._events_of(self.graph.node_type)):
            for step in (
                steps(self.graph.relations, events.step.sender)
                if self._timed(events.step.sender)
                else ()
            ):
                if (
                    step.relation is events.step.relation
                    or self._timed(step.sender)
                    or step.sender == self.graph.node_type
                ):
                    continue
                if np.diff(step.senders.indptr).max(initial=0) <= 1:
                    found.setdefault(step.sender, []).append(
                        (number, events, self._owners(step)[0])
                    )
        return found

    @cached_property
    def _dates(self) -> list[tuple[DateColumn, int]]:
        """Own columns that are dates, each with the position of the feature of its time."""
        own = self.graph.own
        columns = own.encoding.feature_columns if own.encoding else ()
        return [
            (column, own.feature_names.index(column.value_names[0]))
            for column in columns
            if isinstance(column, DateColumn)
        ]

    def _raw(self, column: int) -> NDArray[np.float64]:
        """A feature of all rows of the graph's type, as it is encoded."""
        values = self.graph.features[:, [column]]
        return np.asarray(values.toarray() if sparse.issparse(values) else values, np.float64)[:, 0]


def _projected(features: Any, projection: Array) -> Array:
    """The own part ``[n, K]`` of scaled features ``[n, F]``, row by row: other rows do not change the bits of one."""
    if projection.shape[0] == projection.shape[1]:  # of few features, which are only divided
        return np.asarray(dense(features) * projection.diagonal(), np.float32)
    return np.asarray(sparse.csr_array(features) @ projection, np.float32)


def times_of(graph: Record, node_type: str, rows: Any = slice(None)) -> Rows:
    """The times ``[n]`` of rows of a type; without any, all are unknown."""
    nodes = graph.nodes[node_type]
    return (
        np.full(nodes.num_nodes, UNKNOWN)[rows]
        if nodes.times is None
        else np.asarray(nodes.times[rows])
    )


def _by_id(ids: NDArray[Any]) -> Rows:
    """The rows ``[n]`` by their ids: those of one time have an order that does not depend on that of their table."""
    import pyarrow as pa
    from pyarrow import compute

    if ids.dtype.kind == "i" and (ids[1:] > ids[:-1]).all():
        return np.arange(len(ids))
    found: Rows = compute.array_sort_indices(
        pa.array(ids.tolist() if ids.dtype == object else ids)
    ).to_numpy()
    return found.astype(np.int64)


def _newest(ways: Sequence[Way], latest: Sequence[Rows], count: int) -> Rows:
    """The row ``[Q]`` that the latest of several kinds of events refers to, -1 for none."""
    chosen, when = np.full(count, -1), np.full(count, UNKNOWN)
    for number, events, owners in ways:
        at = latest[number]
        there = at >= 0
        owner, time = np.full(count, -1), np.full(count, UNKNOWN)
        owner[there], time[there] = owners[events.rows[at[there]]], events.times[at[there]]
        newer = (owner >= 0) & ((chosen < 0) | (time > when))
        chosen[newer], when[newer] = owner[newer], time[newer]
    return chosen
