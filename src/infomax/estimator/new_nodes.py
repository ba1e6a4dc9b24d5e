"""Vectors of new nodes that are passed as arguments, each as if attached to the known graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.parquet_columns import find_ids
from infomax.arrays.relations import Step, steps
from infomax.arrays.structural_features import structural_features_named
from infomax.embeddings import rows_by_id, rows_named
from infomax.errors import InputError, format_count, shorten, suggest, within
from infomax.graphs.graph import Graph
from infomax.io.column_names import format_list
from infomax.io.encoding.cells import UnreadableError
from infomax.io.encoding.encoding import Encoding
from infomax.io.growth import NewEdges, NewNodes, grow
from infomax.kernels import Backend
from infomax.kernels.device import choose_device
from infomax.training.half_lives import HalfLifeMeans
from infomax.training.spectral_positions import received
from infomax.training.vectors import embed_near

if TYPE_CHECKING:
    from infomax.estimator.fitted_model import FittedModel

LARGEST_FEATURE = 1e18
"""The largest number as a feature: float32 can hold its square."""

Joined = Collection[Any] | Mapping[Any, float]
"""Ids, or the weights of edges by the ids at their other ends."""
Neighbours = Joined | Mapping[str, Joined]
"""The same; of a graph of several types, by type or by the name of a relation."""


def vectors_of_new_nodes(
    fitted: FittedModel, features: Any, neighbours: Sequence[Neighbours], device: str
) -> NDArray[np.float32]:
    """The vectors ``[M, d]`` of M new nodes; see `DGI.vectors_of`."""
    # Loading compiled kernels would take seconds.
    backend = Backend.of_embedding(choose_device(device), numbers=0)
    recipe = fitted.recipe
    new_count = len(neighbours)
    with np.errstate(over="ignore"):  # what overflows is refused below
        later = fitted.known_graph.with_nodes(features, neighbours)
        new_rows = np.arange(later.num_nodes - new_count, later.num_nodes)
        outside_parts: dict[str, Any] = {}
        if recipe.half_lives:
            outside_parts["pooled"] = HalfLifeMeans(later, recipe)[new_rows]
        if fitted.positions is not None:
            near_neighbours = fitted.positions.rows_from_links(received(later, new_rows), new_count)
            outside_parts["positions"] = near_neighbours[:, 1:]
        vectors = embed_near(recipe, later, new_rows, backend, outside_parts)

    assert vectors is not None  # noqa: S101  however many nodes are around them
    if not np.isfinite(vectors).all():
        expected = "numbers whose vectors float32 can hold"
        raise InputError("features and weights", expected, "larger ones")
    return vectors


@dataclass(frozen=True)
class NewLinks:
    """Edges ``[E]`` between known nodes and new ones."""

    known_rows: NDArray[np.int64]
    new_numbers: NDArray[np.int64]
    """The numbers of the new nodes, from 0 on."""
    weights: NDArray[np.float32]


class KnownGraph:
    """The graph of a model, with what finds its nodes by their ids."""

    def __init__(self, graph: Graph) -> None:
        if graph.groups is not None:
            remedy = "Embed new graphs whole, without attaching them."
            expected = "one graph, to attach nodes to"
            raise InputError("the graph of the model", expected, "several", remedy)
        self.graph = graph
        self.feature_names = dict.fromkeys(graph.feature_names)
        self.graphs_by_type = graph.by_type() or {"": graph}
        self.rows_by_type: dict[str, dict[str, int]] = {}
        """By type, the row of each node by the text of its id.

        A type is added when its ids are first looked up.
        """
        self.steps_by_name = _steps_by_name(graph)

    def with_nodes(self, features: Any, neighbours: Sequence[Neighbours]) -> Graph:
        """The graph with M new nodes, which come last.

        ``features`` are rows or mappings of numbers, and each of the new nodes has ``neighbours``.
        """
        graph = self.graph
        new_count = len(neighbours)
        checked_features = self._checked_features(features, new_count)
        new_edges = {
            step.relation.ends: self._new_edges(step, links, new_count)
            for step, links in self._links_by_step(neighbours).items()
        }
        new_nodes = {graph.node_type: NewNodes(range(new_count), checked_features)}
        return Graph.of(grow(graph, new_nodes, new_edges))

    def _new_edges(self, step: Step, links: NewLinks, new_count: int) -> NewEdges:
        """The matrix of a relation's edges to new nodes.

        Where messages run both ways, known nodes receive as well.
        """
        has_weight = links.weights > 0
        known_rows = links.known_rows[has_weight]
        weights = links.weights[has_weight]
        new_rows = self.graph.num_nodes + links.new_numbers[has_weight]

        relation = step.relation
        if step.node_type == relation.target:
            sources, targets = known_rows, new_rows
        else:
            sources, targets = new_rows, known_rows
        if relation.within_one_type and not relation.directed:
            both_ways = np.concatenate([sources, targets])
            targets = np.concatenate([targets, sources])
            sources = both_ways
            weights = np.concatenate([weights, weights])
        shape = (
            self._later_count(relation.source, new_count),
            self._later_count(relation.target, new_count),
        )
        return NewEdges(sparse.coo_array((weights, (sources, targets)), shape=shape))

    def _later_count(self, node_type: str, new_count: int) -> int:
        """The number of nodes of a type once the new ones are there."""
        known_count = self.graph.nodes[node_type].num_nodes
        return known_count + new_count if node_type == self.graph.node_type else known_count

    def _links_by_step(self, neighbours: Sequence[Neighbours]) -> dict[Step, NewLinks]:
        """The edges of new nodes by the step along which they receive."""
        if not self.graph.has_named_types:
            (step,) = steps(self.graph.relations, "")
            joined_by_number: dict[int, Any] = dict(enumerate(neighbours))
            links = self._links("neighbours", "", joined_by_number, self.graph.weighted)
            return {step: links}

        joined_by_step = self._joined_by_step(neighbours)
        return {
            step: self._links(
                f"neighbours along {step.relation.name}",
                step.sender,
                joined,
                step.relation.edges.weighted,
            )
            for step, joined in joined_by_step.items()
        }

    def _joined_by_step(self, neighbours: Sequence[Any]) -> dict[Step, dict[int, Any]]:
        """By step, the ids that each new node is joined to, by the number of the new node."""
        # A step may have several names, its type and its relation; messages list the first.
        first_names = {step: name for name, step in reversed(self.steps_by_name.items())}
        choices = ", ".join(sorted(first_names.values()))
        joined_by_step: dict[Step, dict[int, Any]] = {}
        for new_number, joined_by_name in enumerate(neighbours):
            if not isinstance(joined_by_name, Mapping):
                if joined_by_name in ((), []):
                    continue
                expected = f"ids by type or relation: {choices}"
                raise InputError("neighbours", expected, shorten(joined_by_name))
            for name, joined in joined_by_name.items():
                step = self.steps_by_name.get(str(name))
                if step is None:
                    remedy = suggest(name, self.steps_by_name)
                    raise InputError("neighbours", f"one of {choices}", shorten(name), remedy)
                joined_along_step = joined_by_step.setdefault(step, {})
                if new_number in joined_along_step:
                    repeated = f"{shorten(name)} and another name of it"
                    raise InputError("neighbours", "each relation once", repeated)
                joined_along_step[new_number] = joined
        return joined_by_step

    def _links(
        self, location: str, node_type: str, joined: Mapping[int, Any], weighted: bool
    ) -> NewLinks:
        """The edges of new nodes, by their numbers, to known nodes of a type."""
        ids: list[Any] = []
        new_numbers: list[int] = []
        weights: list[Any] = []
        for new_number, joined_ids in joined.items():
            if not isinstance(joined_ids, Collection) or isinstance(joined_ids, str | bytes):
                raise InputError(location, "a list of ids, or weights by id", repr(joined_ids))
            if not isinstance(joined_ids, Mapping):
                if weighted and joined_ids:
                    expected = "weights by id, as edges of the known graph have weights"
                    raise InputError(location, expected, "ids alone")
                joined_ids = dict.fromkeys(joined_ids, 1.0)
            ids += joined_ids.keys()
            weights += joined_ids.values()
            new_numbers += [new_number] * len(joined_ids)

        known_rows = self._rows_of_ids(location, node_type, ids)
        checked = checks.check_array(location, weights, checks.NUMBER_DTYPES, "numbers", np.float32)
        expected = "finite weights of zero or more"
        if checked.ndim != 1:
            raise InputError(location, expected, "lists")
        if not (np.isfinite(checked) & (checked >= 0)).all():
            raise InputError(location, expected, str(checked.min()))
        return NewLinks(known_rows, np.array(new_numbers, np.int64), checked)

    def _rows_of_ids(self, location: str, node_type: str, ids: Sequence[Any]) -> NDArray[np.int64]:
        """The rows ``[E]`` of known nodes of a type, by their ids or names."""
        graph_of_type = self.graphs_by_type[node_type]
        known_ids: Any = graph_of_type.ids  # an array, or stored
        rows: Mapping[str, int]
        if isinstance(known_ids, np.ndarray):
            if node_type not in self.rows_by_type:
                self.rows_by_type[node_type] = rows_by_id(known_ids)
            rows = self.rows_by_type[node_type]
        else:
            rows = find_ids(known_ids, ids)

        # What is no id may be a name.
        rows_by_name: dict[str, int] = {}
        for id_text in map(str, ids):
            if id_text in rows or id_text in rows_by_name:
                continue
            exact_matches, _ = rows_named(graph_of_type.node_names, id_text)
            if len(exact_matches) != 1:
                expected = f"ids of the {format_count(graph_of_type.num_nodes, 'known node')}"
                if node_type:
                    expected += f" of type {node_type}"
                raise InputError(location, expected, shorten(id_text))
            rows_by_name[id_text] = exact_matches[0]

        rows_of_ids = []
        for id_text in map(str, ids):
            if id_text in rows:
                rows_of_ids.append(rows[id_text])
            else:
                rows_of_ids.append(rows_by_name[id_text])
        return np.array(rows_of_ids, np.int64)

    def _checked_features(self, features: Any, count: int) -> Any:
        """Features ``[M, F]`` of rows of numbers, or of mappings of features or of columns.

        None stands for features that are made of the edges.
        """
        if features is None and structural_features_named(self.graph.feature_names):
            return None
        rows = _rows_as_mappings(features)
        if rows is None or (isinstance(rows, Sequence) and any(row is None for row in rows)):
            expected = f"for each new node {format_list(self._column_names())}"
            raise InputError("features", expected, "none")

        # Mappings are of features, or of columns whose cells become features.
        if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
            encoding = self.graph.encoding
            if encoding is None or self._hold_features(rows, encoding):
                rows = [self._in_order(row) for row in rows]
            else:
                rows = _encode_cells(encoding, rows)

        values = checks.check_features(rows, count)
        feature_count = len(self.feature_names)
        if values.shape[1] != feature_count:
            expected = f"{format_count(feature_count, 'number')} per node"
            raise InputError("features", expected, str(values.shape[1]))
        largest = abs(values).max()
        if largest > LARGEST_FEATURE:
            expected = f"numbers up to {LARGEST_FEATURE:g}, whose squares float32 can hold"
            raise InputError("features", expected, f"{largest:.3g}")
        return values

    def _column_names(self) -> list[str]:
        """The names of what a new node must have: columns that became features, or features."""
        if self.graph.encoding is None:
            return list(self.feature_names)
        return [column.name for column in self.graph.encoding.feature_columns]

    def _hold_features(self, rows: Sequence[Mapping[str, Any]], encoding: Encoding) -> bool:
        """Whether rows hold features rather than cells: all names are those of features."""
        column_names = {column.name for column in encoding.feature_columns}
        if column_names == self.feature_names.keys():
            return False
        return all(row.keys() == self.feature_names.keys() for row in rows)

    def _in_order(self, features: Mapping[str, Any]) -> list[Any]:
        """The features of a mapping, in their order; other entries, such as an id, are left out."""
        names = tuple(name for name in self.feature_names if name in features)
        checks.check_feature_names("features", names, self.graph.feature_names)
        return [features[name] for name in self.feature_names]


def _steps_by_name(graph: Graph) -> dict[str, Step]:
    """The steps along which nodes of the graph's type receive, by each unambiguous name.

    A step can be named by its sender, by its relation, or by the ends of its relation.
    """
    steps_named: dict[str, list[Step]] = {}
    for step in steps(graph.relations, graph.node_type):
        names: Iterable[str] = (step.sender, step.relation.name, ".".join(step.relation.ends))
        for name in dict.fromkeys(names):
            steps_named.setdefault(name, []).append(step)
    return {name: named[0] for name, named in steps_named.items() if len(named) == 1}


def _rows_as_mappings(features: Any) -> Any:
    """The rows of a frame of pandas or polars, whose columns have names, as mappings.

    All else stays as it is.
    """
    first_column = next(iter(getattr(features, "columns", ())), None)
    if isinstance(first_column, str):
        if hasattr(features, "to_dicts"):  # polars
            return features.to_dicts()
        return features.to_dict("records")
    if isinstance(features, Sequence):
        return [_series_as_mapping(row) for row in features]
    return features


def _series_as_mapping(row: Any) -> Any:
    """A row of a pandas frame whose columns have names as a mapping; all else as it is."""
    if hasattr(row, "iloc") and isinstance(row.index[0], str):
        return row.to_dict()
    return row


def _encode_cells(encoding: Encoding, rows: Sequence[Mapping[str, Any]]) -> Any:
    """The features ``[M, F]`` of cells by the names of their columns, encoded as in a table."""
    import pyarrow as pa

    table = {}
    for column in encoding.feature_columns:
        if not any(column.name in row for row in rows):
            continue
        cells = [_plain_cell(row.get(column.name)) for row in rows]
        with within(f'features, column "{column.name}"'):
            try:
                table[column.name] = pa.array(cells)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
                expected = "text, numbers, or lists of one of them"
                raise InputError("cells", expected, str(error)) from None
    try:
        return encoding.transform(table)
    except UnreadableError as error:
        location = f'features, column "{error.column}"'
        raise InputError(location, error.expected, error.found) from None


def _plain_cell(cell: Any) -> Any:
    """A cell as text, as a list, or None where it is empty."""
    if cell is None or isinstance(cell, list):
        return cell
    if isinstance(cell, tuple | set | np.ndarray):
        return list(cell)
    return str(cell)
