"""The graph of a model, to which new nodes are attached a few at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.parquet_columns import find_ids
from infomax.arrays.relations import Step, steps
from infomax.arrays.structural_features import structural_features_named
from infomax.embeddings import rows_by_id, rows_named
from infomax.errors import InputError, meant, number_of, shorten, within
from infomax.graphs.graph import Graph
from infomax.io.column_names import listed
from infomax.io.encoding.cells import UnreadableError
from infomax.io.encoding.encoding import Encoding
from infomax.io.growth import NewEdges, NewNodes, grow

LARGEST = 1e18
Links = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""Edges ``[E]`` of new nodes: the rows at their known ends, the numbers of the new nodes from 0 on, and weights."""
Joined = Collection[Any] | Mapping[Any, float]
"""Ids, or the weights of edges by the ids at their other ends."""
Neighbours = Joined | Mapping[str, Joined]
"""The same; of a graph of several types, by type or by the name of a relation."""


class KnownGraph:
    """The graph of a model, with what finds its nodes."""

    def __init__(self, graph: Graph) -> None:
        if graph.groups is not None:
            remedy = "Embed new graphs whole, without attaching them."
            raise InputError(
                "the graph of the model", "one graph, to attach nodes to", "several", remedy
            )
        self.graph, self.names = graph, dict.fromkeys(graph.feature_names)
        self.types = graph.by_type() or {"": graph}
        self.rows: dict[
            str, dict[str, int]
        ] = {}  # by type, the row of each node by the text of its id; filled once
        named: dict[str, list[Step]] = {}
        for step in steps(graph.relations, graph.node_type):
            for name in dict.fromkeys(
                [step.sender, step.relation.name, ".".join(step.relation.ends)]
            ):
                named.setdefault(name, []).append(step)
        self.steps = {name: found[0] for name, found in named.items() if len(found) == 1}

    def with_nodes(self, features: Any, neighbours: Sequence[Neighbours]) -> Graph:
        """The graph with M new nodes, which come last.

        ``features`` are rows or mappings of numbers, and each of the new nodes has ``neighbours``.
        """
        graph, count = self.graph, len(neighbours)
        checked = self._checked(features, count)
        edges = {
            step.relation.ends: self._edges(step, links, count)
            for step, links in self._by_step(neighbours).items()
        }
        return Graph.of(grow(graph, {graph.node_type: NewNodes(range(count), checked)}, edges))

    def _edges(self, step: Step, links: Links, count: int) -> NewEdges:
        """The matrix of a relation's edges to new nodes; where messages run both ways, known nodes receive, too."""
        known, new, weights = (column[links[2] > 0] for column in links)
        relation, late = step.relation, self.graph.num_nodes + new
        sources, targets = (known, late) if step.node_type == relation.target else (late, known)
        if relation.within and not relation.directed:
            sources, targets = (
                np.concatenate([sources, targets]),
                np.concatenate([targets, sources]),
            )
            weights = np.concatenate([weights, weights])
        sizes = (
            self.graph.nodes[node_type].num_nodes
            + (count if node_type == self.graph.node_type else 0)
            for node_type in (relation.source, relation.target)
        )
        return NewEdges(sparse.coo_array((weights, (sources, targets)), shape=tuple(sizes)))

    def _by_step(self, neighbours: Sequence[Neighbours]) -> dict[Step, Links]:
        """The edges of new nodes by the step along which they receive."""
        if not self.graph.node_type:
            (step,) = steps(self.graph.relations, "")
            return {
                step: self._links(
                    "neighbours", "", dict(enumerate(neighbours)), self.graph.weighted
                )
            }
        first = {
            step: name for name, step in reversed(self.steps.items())
        }  # the first name of each
        choices = ", ".join(sorted(first.values()))
        joined: dict[Step, dict[int, Any]] = {}
        for new, one in enumerate(neighbours):
            if not isinstance(one, Mapping) and one != () and one != []:
                raise InputError("neighbours", f"ids by type or relation: {choices}", shorten(one))
            for name, ids in one.items() if isinstance(one, Mapping) else ():
                if str(name) not in self.steps:
                    raise InputError(
                        "neighbours", f"one of {choices}", shorten(name), meant(name, self.steps)
                    )
                known = joined.setdefault(self.steps[str(name)], {})
                if new in known:
                    raise InputError(
                        "neighbours",
                        "each relation once",
                        f"{shorten(name)} and another name of it",
                    )
                known[new] = ids
        return {
            step: self._links(
                f"neighbours along {step.relation.name}",
                step.sender,
                ids,
                step.relation.edges.weighted,
            )
            for step, ids in joined.items()
        }

    def _links(
        self, where: str, node_type: str, joined: Mapping[int, Any], weighted: bool
    ) -> Links:
        """The edges of new nodes, by their numbers, to known nodes of a type."""
        edges, known = list[tuple[Any, int, Any]](), self.types[node_type]
        for new, one in joined.items():
            if not isinstance(one, Collection) or isinstance(one, str | bytes):
                raise InputError(where, "a list of ids, or weights by id", repr(one))
            if weighted and one and not isinstance(one, Mapping):
                raise InputError(
                    where, "weights by id, as edges of the known graph have weights", "ids alone"
                )
            weights = one if isinstance(one, Mapping) else dict.fromkeys(one, 1.0)
            edges += [(identifier, new, weight) for identifier, weight in weights.items()]
        ids, late, weighed = zip(*edges, strict=True) if edges else ((), (), ())
        if isinstance(known.ids, np.ndarray) and node_type not in self.rows:
            self.rows[node_type] = rows_by_id(known.ids)
        rows = self.rows[node_type] if node_type in self.rows else find_ids(known.ids, ids)
        for unknown in (str(identifier) for identifier in ids if str(identifier) not in rows):
            named, _ = rows_named(known.node_names, unknown)
            if len(named) != 1:
                of_type = f" of type {node_type}" if node_type else ""
                expected = f"ids of the {number_of(known.num_nodes, 'known node')}{of_type}"
                raise InputError(where, expected, shorten(unknown))
            rows = {**rows, unknown: named[0]}
        weight = checks.check_array(where, weighed, checks.NUMBERS, "numbers", np.float32)
        if weight.ndim != 1 or not (np.isfinite(weight) & (weight >= 0)).all():
            found = "lists" if weight.ndim != 1 else str(weight.min())
            raise InputError(where, "finite weights of zero or more", found)
        return (
            np.array([rows[str(identifier)] for identifier in ids], np.int64),
            np.array(late, np.int64),
            weight,
        )

    def _checked(self, features: Any, count: int) -> Any:
        """Features ``[M, F]``, of rows, or of mappings of features or columns; None: they are made of the edges."""
        if features is None and structural_features_named(self.graph.feature_names):
            return None
        features = _by_name(features)
        if features is None or (
            isinstance(features, Sequence) and any(one is None for one in features)
        ):
            columns = (
                [column.name for column in self.graph.encoding.feature_columns]
                if self.graph.encoding
                else [*self.names]
            )
            raise InputError("features", f"for each new node {listed(columns)}", "none")
        if isinstance(features, Sequence) and all(isinstance(one, Mapping) for one in features):
            if (encoding := self.graph.encoding) is not None and not self._are_numbers(
                features, encoding
            ):
                features = _encoded(encoding, features)
            else:
                features = [self._in_order(one) for one in features]
        values = checks.check_features(features, count)
        if values.shape[1] != len(self.names):
            raise InputError(
                "features", f"{number_of(len(self.names), 'number')} per node", str(values.shape[1])
            )
        if (largest := abs(values).max()) > LARGEST:
            raise InputError(
                "features",
                f"numbers up to {LARGEST:g}, whose squares float32 can hold",
                f"{largest:.3g}",
            )
        return values

    def _are_numbers(self, rows: Sequence[Mapping[str, Any]], encoding: Encoding) -> bool:
        """Whether rows hold features rather than cells: they have all names of features, which no columns have."""
        columns = {column.name for column in encoding.feature_columns}
        return columns != self.names.keys() and all(one.keys() == self.names.keys() for one in rows)

    def _in_order(self, features: Mapping[str, Any]) -> list[Any]:
        """Numbers by the names of the features, in their order; others, as the id in a row of a table, are left out."""
        found = tuple(filter(features.__contains__, self.names))
        checks.check_feature_names("features", found, self.graph.feature_names)
        return [features[name] for name in self.names]


def _by_name(features: Any) -> Any:
    """The rows of a frame of pandas or polars as mappings, where its columns have names; all else as it is."""
    if isinstance(next(iter(getattr(features, "columns", ())), None), str):
        return features.to_dicts() if hasattr(features, "to_dicts") else features.to_dict("records")
    if isinstance(features, Sequence):
        return [
            one.to_dict() if hasattr(one, "iloc") and isinstance(one.index[0], str) else one
            for one in features
        ]
    return features


def _encoded(encoding: Encoding, rows: Sequence[Mapping[str, Any]]) -> Any:
    """The features ``[M, F]`` of cells by the names of their columns, as those of a table are made."""
    import pyarrow as pa

    table = {}
    for name in (
        column.name
        for column in encoding.feature_columns
        if any(column.name in row for row in rows)
    ):
        cells = [row.get(name) for row in rows]
        cells = [
            list(cell) if isinstance(cell, tuple | set | np.ndarray) else cell for cell in cells
        ]
        cells = [cell if cell is None or isinstance(cell, list) else str(cell) for cell in cells]
        with within(f'features, column "{name}"'):
            try:
                table[name] = pa.array(cells)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
                raise InputError(
                    "cells", "text, numbers, or lists of one of them", str(error)
                ) from None
    try:
        return encoding.transform(table)
    except UnreadableError as error:
        raise InputError(
            f'features, column "{error.column}"', error.expected, error.found
        ) from None
