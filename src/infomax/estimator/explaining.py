"""From which cells, edges and parts the vector of a node is made, with the numbers at each step."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.sparsity import dense
from infomax.embeddings import Embeddings, rows_of, slices
from infomax.errors import InputError, shorten, suggest
from infomax.training.recipe import Recipe
from infomax.training.vectors import embed
from infomax.views.propagation import Normalisation
from infomax.views.steps import paths_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from infomax.estimator.fitted_model import FittedModel
    from infomax.graphs.graph import Graph


@dataclass(frozen=True)
class ExplainedFeature:
    """A feature of a node: as the column was encoded, and as the encoder reads it, scaled."""

    name: str
    encoded: float
    scaled: float


@dataclass(frozen=True)
class ExplainedColumn:
    """A column of the node's table.

    Attributes:
        column_type: what it was taken for; "" where features are numbers as they are.
        cell: what the features are decoded to; None for a missing cell.
        features: those that are not zero, and all of a column of one feature.
        own_length: the length of what the column adds to the own part, before that is centred; None
            where vectors have no own part.
    """

    name: str
    column_type: str
    cell: Any
    features: list[ExplainedFeature]
    own_length: float | None


@dataclass(frozen=True)
class ExplainedSender:
    """A node from which messages come, and its share of the weights along a path."""

    id: Any
    name: str
    share: float


@dataclass(frozen=True)
class ExplainedPath:
    """A path along which the encoder pools.

    Attributes:
        name: its name; "" in a graph of one type, where the node itself sends as well.
        sender_count: how many nodes are at its end.
        senders: those with the largest shares.
    """

    name: str
    sender_count: int
    senders: list[ExplainedSender]


@dataclass(frozen=True)
class ExplainedNumber:
    """One number of the vector: ``(raw - centre) * factor``, but for a rotation onto earlier vectors."""

    position: int
    name: str
    raw: float
    centre: float
    factor: float
    value: float


@dataclass(frozen=True)
class ExplainedPart:
    """A part of the vector: its length as it is computed, centred, and in the vector.

    Attributes:
        share: the share of the squared length of the vector.
        numbers: the largest, or those that have the name of the column that was asked for.
    """

    name: str
    width: int
    raw_length: float
    centred_length: float
    length: float
    share: float
    numbers: list[ExplainedNumber]


@dataclass(frozen=True)
class Explanation:
    """What `explain_node` returns; ``columns`` are in the order of the features."""

    node_type: str
    id: Any
    name: str
    scaling: str
    columns: list[ExplainedColumn]
    paths: list[ExplainedPath]
    parts: list[ExplainedPart]
    is_rotated: bool
    length: float
    vector: list[float]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values; dates are text."""
        values = asdict(self)
        for column in values["columns"]:
            if isinstance(column["cell"], np.generic):
                cell = column["cell"].item()
                column["cell"] = cell if isinstance(cell, int | float | bool) else str(cell)
        return values


def explain_node(
    fitted: FittedModel,
    node: Hashable,
    device: str,
    *,
    column: str | None = None,
    most_senders: int = 3,
    most_numbers: int = 1,
) -> Explanation:
    """Follow the cells and edges of a node to its vector.

    Args:
        fitted: the model.
        node: the id or the name of the node.
        device: where vectors are computed.
        column: the one column to explain, with all of its numbers in the vector. None: all of them.
        most_senders: nodes that are named for each path.
        most_numbers: numbers that are named for each part.
    """
    graph = fitted.graph
    recipe = fitted.recipe
    row = int(rows_of(graph.ids, graph.node_names, [node])[0])
    rows = np.array([row])

    # Cells, and the features that they became.
    columns = explain_columns(graph, recipe, row)
    if column is not None:
        names = [explained.name for explained in columns]
        if column not in names:
            raise InputError(
                "--column",
                "a column that becomes features",
                shorten(column),
                suggest(column, names),
            )
        columns = [explained for explained in columns if explained.name == column]

    # The vector, and the same before its parts are centred and get their lengths.
    outside_parts = fitted.parts_outside_embedder(graph, recipe)
    unbalanced = replace(recipe, centre=None, factor=None, turn=None)
    raw = embed(unbalanced, graph, device, rows=rows, given=outside_parts)[0]
    vector = embed(recipe, graph, device, rows=rows, given=outside_parts)[0]
    parts = explain_parts(recipe, raw, vector, most_numbers, column)

    return Explanation(
        node_type=graph.node_type,
        id=graph.ids[rows].tolist()[0],
        name="" if graph.node_names is None else str(graph.node_names[row]),
        scaling=recipe.scaler.kind,
        columns=columns,
        paths=explain_paths(graph, recipe, row, most_senders),
        parts=parts,
        is_rotated=recipe.turn is not None,
        length=float(np.linalg.norm(vector)),
        vector=vector.tolist(),
    )


def explain_columns(graph: Graph, recipe: Recipe, row: int) -> list[ExplainedColumn]:
    """The columns of a node, with their features before and after scaling."""
    encoded = dense(graph.table[[row]])[0]
    scaled = dense(graph.scaled(recipe.scaler).table[[row]])[0]
    projection = recipe.projections.get(recipe.node_type)
    has_own_part = projection is not None and "own" in recipe.parts

    encoding = graph.encoding
    if encoding is None:
        slices_by_column = {
            name: slice(position, position + 1) for position, name in enumerate(graph.feature_names)
        }
        cells: dict[str, Any] = dict(zip(graph.feature_names, encoded, strict=True))
        column_types: dict[str, str] = {}
    else:
        slices_by_column = encoding.slices()
        decoded = encoding.inverse_transform(encoded[None])
        cells = {name: values[0] for name, values in decoded.items()}
        column_types = {
            explained.name: explained.column_type for explained in encoding.feature_columns
        }

    columns = []
    for name, features in slices_by_column.items():
        positions = range(features.start, features.stop)
        kept = [at for at in positions if encoded[at] or scaled[at] or len(positions) == 1]
        own_length = None
        if has_own_part and projection is not None:
            in_own_part = scaled[features] @ projection[features].cpu().numpy()
            own_length = float(np.linalg.norm(in_own_part))
        columns.append(
            ExplainedColumn(
                name,
                column_types.get(name, ""),
                cells[name],
                [
                    ExplainedFeature(graph.feature_names[at], float(encoded[at]), float(scaled[at]))
                    for at in kept
                ],
                own_length,
            )
        )
    return columns


def explain_paths(graph: Graph, recipe: Recipe, row: int, most: int) -> list[ExplainedPath]:
    """The nodes from which the encoder's messages come, with their shares of the weights."""
    rule = recipe.encoder.rule
    explained = []
    for name, path in paths_of(graph, rule).items():
        if isinstance(rule, Normalisation):
            senders, weights = _weights_of_messages(graph, rule, row)
        else:
            senders, weights = _weights_along(path, row)
        order = np.argsort(-weights, kind="stable")[:most]
        nodes = graph.nodes[path[-1].sender]
        total = float(weights.sum()) or 1.0
        largest = [
            ExplainedSender(
                nodes.ids[[sender]].tolist()[0],
                "" if nodes.node_names is None else str(nodes.node_names[sender]),
                float(weight / total),
            )
            for sender, weight in zip(senders[order], weights[order], strict=True)
        ]
        explained.append(ExplainedPath(name, len(senders), largest))
    return explained


def _weights_of_messages(
    graph: Graph, rule: Normalisation, row: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Who sends to a node of the paper's graph, itself as well, and the entries of the propagation matrix."""
    rows = np.array([row])
    _, senders, edge_weights = graph.edges.received(rows)
    if rule.loops:
        senders = np.append(senders, row)
        edge_weights = np.append(edge_weights, 1.0)
    own_degree = graph.edges.strength(rows) + rule.loops
    degrees = graph.edges.strength(senders) + rule.loops
    weights = edge_weights * own_degree**-rule.left * np.maximum(degrees, 1e-30) ** -rule.right
    return np.asarray(senders, np.int64), np.asarray(weights, np.float64)


def _weights_along(path: Any, row: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nodes at the end of a path, and their weights in a mean of means."""
    nodes: NDArray[np.int64] = np.array([row])
    weights: NDArray[np.float64] = np.ones(1)
    for step in path:
        positions, senders, edge_weights = step.received(nodes)
        sums = np.bincount(positions, edge_weights, len(nodes))
        in_messages = weights[positions] * edge_weights / sums[positions]
        nodes, position_of_node = np.unique(senders, return_inverse=True)
        weights = np.bincount(position_of_node, in_messages, len(nodes)).astype(np.float64)
    return nodes, weights


def explain_parts(
    recipe: Recipe,
    raw: NDArray[np.float32],
    vector: NDArray[np.float32],
    most_numbers: int,
    column: str | None = None,
) -> list[ExplainedPart]:
    """The parts of a vector, with their lengths and their largest numbers."""
    width = len(raw)
    centre = np.zeros(width) if recipe.centre is None else recipe.centre.double().cpu().numpy()
    factor = np.ones(width) if recipe.factor is None else recipe.factor.double().cpu().numpy()
    centred = raw - centre
    balanced = centred * factor
    parts = recipe.parts or {"encoder": [f"encoder {at}" for at in range(1, width + 1)]}

    # A rotation keeps lengths, so shares are those of the vector before it.
    embeddings = Embeddings(balanced[None].astype(np.float32), np.array([0]), None, "", parts)
    shares = embeddings.shares(0, np.array([0]))
    explained = []
    for part, positions in slices(parts).items():
        names = list(parts[part])
        in_order = np.argsort(-np.abs(balanced[positions]), kind="stable")
        shown = in_order[:most_numbers].tolist()
        if column is not None:
            shown = [at for at, name in enumerate(names) if is_of_column(name, column)]
        numbers = [
            ExplainedNumber(
                positions.start + at,
                names[at],
                float(raw[positions][at]),
                float(centre[positions][at]),
                float(factor[positions][at]),
                float(balanced[positions][at]),
            )
            for at in shown
        ]
        explained.append(
            ExplainedPart(
                part,
                len(names),
                float(np.linalg.norm(raw[positions])),
                float(np.linalg.norm(centred[positions])),
                float(np.linalg.norm(balanced[positions])),
                float(shares[part][0]),
                numbers,
            )
        )
    return explained


def is_of_column(number_name: str, column: str) -> bool:
    """Whether a number of a vector is called after a feature of a column: ``age``, ``city=Rome``, ``born: time``."""
    name = number_name.removeprefix("mean of ")
    follows = name[len(column) : len(column) + 1]
    return name.startswith(column) and follows in ("", "=", ":", "[", " ")
