"""The vector of a row as of a time: its own columns, and means over its events up to then.

Events of a type are rows that have times and edges to it: the results of a driver. The means are of
the columns of the events, and of the other rows that these refer to; and of the events of the row
without a time that the latest event refers to: all results of the driver's latest constructor. The
weight of an event halves with its age. Only rows up to the time count, so no later row changes
anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.relations import Step, steps
from infomax.arrays.scaling import Scaler
from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import structural_features_named
from infomax.arrays.times import DAY_IN_MICROSECONDS, UNKNOWN_TIME
from infomax.io.encoding.dates import DateColumn
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.training.health import spread
from infomax.training.own_features import blocks, own_projection
from infomax.training.recipe import MOST_FITTED_NODES, numbered_columns

Array = NDArray[np.float32]
Rows = NDArray[np.int64]
DAYS_PER_YEAR = 365.25
DAYS_FROM_1970_TO_2000 = 10_957
"""Times count from 1970, columns of dates from 2000."""
NO_ROW = -1


class History:
    """The vectors of rows of a graph as of any time.

    Args:
        graph: the graph, whose rows have times.
        seen: the graph of the training, to which the scaler was fitted; it says how columns are
            projected. Features that are made of the edges are left out, since later edges would
            change them.
        scaler: the scaler of the training.
        half_lives: in days, by name.
    """

    def __init__(
        self, graph: Record, seen: Record, scaler: Scaler, half_lives: Mapping[str, float]
    ) -> None:
        self.graph = graph
        self.half_lives = half_lives
        self.tables: dict[str, Array] = {}
        """By type, the own columns of all rows."""
        self.column_names: dict[str, Sequence[str]] = {}
        """By type, the names of these columns."""
        seen_nodes = seen.scaled(scaler).nodes
        for node_type, nodes in graph.scaled(scaler).nodes.items():
            table = _own_columns(nodes, seen_nodes[node_type])
            width = table.shape[1]
            feature_names = nodes.feature_names
            keeps_features = width == len(feature_names)
            self.tables[node_type] = table
            self.column_names[node_type] = (
                feature_names if keeps_features else numbered_columns("own", width)
            )
        self._events: dict[str, list[PooledEvents]] = {}

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns of a vector."""
        no_rows = np.empty(0, np.int64)
        return [name for columns in self._columns(no_rows, no_rows) for name in columns.names]

    def vectors_at(self, rows: Rows, times: Rows) -> Array:
        """The vectors ``[Q, D]`` of rows of the graph's type as of times ``[Q]``, microseconds."""
        return np.concatenate([columns.values for columns in self._columns(rows, times)], axis=1)

    def _columns(self, rows: Rows, times: Rows) -> Iterator[NamedColumns]:
        """The columns of the vectors of rows as of times, group by group."""
        # The row's own columns, and its ages.
        node_type = self.graph.node_type
        yield NamedColumns(self.column_names[node_type], self.tables[node_type][rows])
        for date_column, feature_index in self._date_columns:
            days = date_column.days(self._feature(feature_index)[rows])
            ages = (times / DAY_IN_MICROSECONDS - DAYS_FROM_1970_TO_2000 - days) / DAYS_PER_YEAR
            yield NamedColumns([f"age: {date_column.name}"], ages.astype(np.float32)[:, None])

        # The means over its events.
        event_means, latest_events = self._pool_events(node_type, rows, times)
        yield from event_means

        # The means over the events of each row that its latest event refers to.
        for other_type, references in self._untimed_references.items():
            latest_rows = _latest_references(references, latest_events, len(rows))
            reference_means, _ = self._pool_events(other_type, latest_rows, times)
            for names, values in reference_means:
                yield NamedColumns([f"latest {other_type}: {name}" for name in names], values)

    def _pool_events(
        self, node_type: str, rows: Rows, times: Rows
    ) -> tuple[list[NamedColumns], list[Rows]]:
        """The means over the events of rows of a type, and the logarithms of their weights.

        The second list has, for each step that brings events, the latest event ``[Q]`` of each row.
        """
        from infomax.kernels.cpu_events import pool_events

        columns: list[NamedColumns] = []
        latest_events: list[Rows] = []
        for events, tables in self._events_of(node_type):
            is_timed = self._has_times(events.step.sender)
            # Rows without times have plain means alone.
            half_lives = self.half_lives if is_timed else {"forever": np.inf}
            days = np.array(list(half_lives.values()))
            for table_number, table in enumerate(tables):
                means, weights, latest = pool_events(
                    events.starts, events.times, table.rows, table.values, (rows, times), days
                )
                # Weights and the latest event are the same for all tables.
                if table_number == 0:
                    latest_events.append(latest)
                    if is_timed:
                        names = [
                            f"number of {events.name}, {half_life}" for half_life in half_lives
                        ]
                        columns.append(NamedColumns(names, np.log1p(weights)))
                names = [
                    f"mean of {name} over {events.name}, {half_life}"
                    for half_life in half_lives
                    for name in table.names
                ]
                columns.append(NamedColumns(names, means.reshape(len(rows), len(names))))
        return columns, latest_events

    def _has_times(self, node_type: str) -> bool:
        return self.graph.nodes[node_type].times is not None

    def _events_of(self, node_type: str) -> list[PooledEvents]:
        """The events of a type, by each step to it, with the tables that are pooled over them.

        Rows without times count as events that were always there.
        """
        if node_type not in self._events:
            steps_to_type = steps(self.graph.relations, node_type)
            senders = [step.sender for step in steps_to_type]
            pooled_events: list[PooledEvents] = []
            for step in steps_to_type:
                name = step.sender
                if senders.count(step.sender) > 1:
                    name = f"{step.sender} ({step.relation.name})"
                events = Events.along(step, self.graph, name or "neighbours")
                pooled_events.append(PooledEvents(events, self._tables_of(events)))
            self._events[node_type] = pooled_events
        return self._events[node_type]

    def _tables_of(self, events: Events) -> list[EventTable]:
        """The columns of the events themselves, and of the other rows that each refers to."""
        event_type = events.step.sender
        own_table = EventTable(self.tables[event_type], events.rows, self.column_names[event_type])
        tables = [own_table]
        if not self._has_times(event_type):
            return tables
        for step in steps(self.graph.relations, event_type):
            names = [f"{step.sender}.{name}" for name in self.column_names[step.sender]]
            if step.relation is events.step.relation or not names:
                continue
            referenced_rows, values = self._references(step)
            tables.append(EventTable(values, referenced_rows[events.rows], names))
        return tables

    def _references(self, step: Step) -> tuple[Rows, Array]:
        """For each row that receives, the row of a table ``[n, K]`` it refers to; -1 for none.

        The table is that of the neighbours; where a row has several, a table of their means.
        Neighbours later than the row itself do not count: they did not exist when it came.
        """
        starts, indices, _ = step.senders
        table = self.tables[step.sender]
        row_count = len(starts) - 1
        receivers = np.repeat(np.arange(row_count), np.diff(starts))
        sender_times = times_of(self.graph, step.sender)[indices]
        receiver_times = times_of(self.graph, step.node_type)[receivers]
        is_earlier = sender_times <= receiver_times
        receivers = receivers[is_earlier]
        senders = np.asarray(indices, np.int64)[is_earlier]

        counts = np.bincount(receivers, minlength=row_count)
        if counts.max(initial=0) <= 1:
            referenced_rows = np.full(row_count, NO_ROW)
            referenced_rows[receivers] = senders
            return referenced_rows, table
        shares = (1 / counts[receivers]).astype(np.float32)
        matrix = sparse.csr_array((shares, (receivers, senders)), (row_count, len(table)))
        means = np.asarray(matrix @ table, np.float32)
        return np.where(counts > 0, np.arange(row_count), NO_ROW), means

    @cached_property
    def _untimed_references(self) -> dict[str, list[EventReference]]:
        """By type without times, the events of the graph's type that refer to one row each."""
        references: dict[str, list[EventReference]] = {}
        for number, (events, _) in enumerate(self._events_of(self.graph.node_type)):
            event_type = events.step.sender
            if not self._has_times(event_type):
                continue
            for step in steps(self.graph.relations, event_type):
                is_other_type = (
                    step.relation is not events.step.relation
                    and step.sender != self.graph.node_type
                    and not self._has_times(step.sender)
                )
                if not is_other_type:
                    continue
                refers_to_one = np.diff(step.senders.indptr).max(initial=0) <= 1
                if refers_to_one:
                    referenced_rows, _ = self._references(step)
                    reference = EventReference(number, events, referenced_rows)
                    references.setdefault(step.sender, []).append(reference)
        return references

    @cached_property
    def _date_columns(self) -> list[tuple[DateColumn, int]]:
        """Own columns that are dates, each with the index of the feature of its time."""
        nodes = self.graph.nodes_in_view
        columns = nodes.encoding.feature_columns if nodes.encoding else ()
        return [
            (column, nodes.feature_names.index(column.value_names[0]))
            for column in columns
            if isinstance(column, DateColumn)
        ]

    def _feature(self, feature_index: int) -> NDArray[np.float64]:
        """A feature of all rows of the graph's type, as it is encoded, not scaled."""
        column = self.graph.features[:, [feature_index]]
        if sparse.issparse(column):
            column = column.toarray()
        return np.asarray(column, np.float64)[:, 0]


class NamedColumns(NamedTuple):
    """Some columns of the vectors: their names, and their numbers ``[Q, k]``."""

    names: Sequence[str]
    values: Array


@dataclass(frozen=True, eq=False)
class Events:
    """The events of the rows of a type along one step, row after row, by time and then by id.

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
        """The events of the rows that receive along a step."""
        times = times_of(graph, step.sender)
        by_id = _order_by_id(graph.nodes[step.sender].ids[:])
        by_time = by_id[np.argsort(times[by_id], kind="stable")]
        rank = np.empty(len(times), np.int64)
        rank[by_time] = np.arange(len(times))

        # Sorting the columns of a matrix of ranks sorts the events of every row at once.
        starts, indices, _ = step.senders
        ranks = sparse.csr_array(
            (np.ones(len(indices), bool), rank[indices], np.array(starts, np.int64)),
            (len(starts) - 1, len(times)),
        )
        ranks.sort_indices()
        rows = by_time[ranks.indices]
        return cls(step, name, np.array(starts, np.int64), rows, times[rows])


@dataclass(frozen=True, eq=False)
class EventTable:
    """A table whose rows are pooled over events.

    Shapes:
        values: ``[n, K]``
        rows: ``[M]``, the row of each event; -1 for none
    """

    values: Array
    rows: Rows
    names: Sequence[str]


class PooledEvents(NamedTuple):
    """Events, and the tables that are pooled over them."""

    events: Events
    tables: list[EventTable]


class EventReference(NamedTuple):
    """Events that refer to one row of another type each.

    Shapes:
        referenced_rows: ``[n]``, by row of the type of the events; -1 for none
    """

    number: int
    """The number of the events among all events of the graph's type."""
    events: Events
    referenced_rows: Rows


def _own_columns(nodes: Any, seen_nodes: Any) -> Array:
    """The own columns ``[N, K]`` of all nodes of a type; none of features made of the edges."""
    if structural_features_named(nodes.feature_names):
        return np.zeros((nodes.num_nodes, 0), np.float32)
    backend = Backend(torch.device("cpu"))
    fitted_rows = spread(seen_nodes.num_nodes, MOST_FITTED_NODES)
    projection = own_projection(seen_nodes.table, fitted_rows, backend).numpy()
    feature_blocks = blocks(nodes.table, np.arange(nodes.num_nodes))
    # An empty block gives the table its width where there are no nodes.
    empty = np.zeros((0, projection.shape[1]), np.float32)
    return np.concatenate([empty, *(_project(block, projection) for block in feature_blocks)])


def _project(features: Any, projection: Array) -> Array:
    """The own part ``[n, K]`` of scaled features ``[n, F]``, row by row.

    The other rows of a block do not change the bits of one.
    """
    is_diagonal = projection.shape[0] == projection.shape[1]  # few features are only divided
    if is_diagonal:
        return np.asarray(dense(features) * projection.diagonal(), np.float32)
    return np.asarray(sparse.csr_array(features) @ projection, np.float32)


def times_of(graph: Record, node_type: str, rows: Any = slice(None)) -> Rows:
    """The times ``[n]`` of rows of a type; of a type without times, all are unknown."""
    nodes = graph.nodes[node_type]
    times = np.full(nodes.num_nodes, UNKNOWN_TIME) if nodes.times is None else nodes.times
    return np.asarray(times[rows])


def _order_by_id(ids: NDArray[Any]) -> Rows:
    """The rows ``[n]`` by their ids.

    So rows of one time have an order that does not depend on the order of their table.
    """
    import pyarrow as pa
    from pyarrow import compute

    if ids.dtype.kind == "i" and (ids[1:] > ids[:-1]).all():
        return np.arange(len(ids))
    arrow_ids = pa.array(ids.tolist() if ids.dtype == object else ids)
    order: Rows = compute.array_sort_indices(arrow_ids).to_numpy()
    return order.astype(np.int64)


def _latest_references(
    references: Sequence[EventReference], latest_events: Sequence[Rows], count: int
) -> Rows:
    """The row ``[Q]`` that the latest of several kinds of events refers to; -1 for none.

    Args:
        references: events, and the rows that they refer to.
        latest_events: by number of events, the latest event ``[Q]`` of each question; -1 for none.
        count: Q.
    """
    latest_rows = np.full(count, NO_ROW)
    latest_times = np.full(count, UNKNOWN_TIME)
    for number, events, referenced_rows in references:
        latest_event = latest_events[number]
        has_event = latest_event >= 0
        event_rows = events.rows[latest_event[has_event]]
        rows = np.full(count, NO_ROW)
        rows[has_event] = referenced_rows[event_rows]
        times = np.full(count, UNKNOWN_TIME)
        times[has_event] = events.times[latest_event[has_event]]

        is_newer = (rows >= 0) & ((latest_rows < 0) | (times > latest_times))
        latest_rows[is_newer] = rows[is_newer]
        latest_times[is_newer] = times[is_newer]
    return latest_rows
