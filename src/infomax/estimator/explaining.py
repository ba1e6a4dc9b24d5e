"""Trace the vector of a node back to cells, edges and parts, with the numbers at each step.

Whoever looks for the cause of a wrong number follows that number: `explain_node` shows at which
step it went wrong, and `functions_of_steps` names the functions that make each step.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.scaling import Scaler
from infomax.arrays.sparsity import dense
from infomax.embeddings import Embeddings, rows_of, slices
from infomax.errors import InputError, check_whole_number, shorten, suggest
from infomax.estimator.training_record import StoredRecord
from infomax.training.embed import Embedder
from infomax.training.half_lives import HalfLifeMeans
from infomax.training.own_features import own_projection, project
from infomax.training.recipe import Recipe, balance, part_family, part_lengths
from infomax.training.spectral_positions import fit_spectral_positions
from infomax.training.vectors import embed
from infomax.views.propagation import Normalisation
from infomax.views.steps import paths_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from infomax.estimator.fitted_model import FittedModel
    from infomax.graphs.graph import Graph

ROWS_PER_BLOCK = 1 << 12
"""Senders whose features are made dense at a time."""


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
        column_type: what the column was taken for; "" where features are numbers as they are.
        cell: what the features are decoded to; None for a missing cell.
        features: the features that are not zero, and all of a column of one feature.
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
class ExplainedTerm:
    """What a feature, or a node that is pooled over, adds to a raw number: ``value * weight``.

    Attributes:
        name: the feature or the node.
        value: the scaled feature, or the number of the node's own part.
        weight: the entry of the projection, or the weight of the node in the mean.
    """

    name: str
    value: float
    weight: float


@dataclass(frozen=True)
class ExplainedNumber:
    """One number of the vector: ``(raw - centre) * factor``, before any rotation.

    Attributes:
        position: the index of the number in the vector.
        raw: the number before centre and factor.
        terms: the largest of the terms whose sum is ``raw``, where a column or a number is
            followed. Only numbers of the own and the pooled part are such sums.
        term_count: the number of all terms.
    """

    position: int
    name: str
    raw: float
    centre: float
    factor: float
    value: float
    terms: list[ExplainedTerm]
    term_count: int


@dataclass(frozen=True)
class ExplainedPart:
    """A part of the vector, with its length before and after centre and factor.

    Attributes:
        raw_length: the length as the part is computed.
        centred_length: the length after centring.
        length: the length after the factor, which is that in the vector.
        share: the share of the squared length of the vector.
        numbers: the largest, or those that are followed.
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
    """What `explain_node` returns; ``columns`` are in the order of the features.

    Attributes:
        resemblance: how much more alike the features of neighbours are than those of other pairs,
            which decides the mean length of the own part; None where it has not been computed.
        functions: the functions that make the steps, by step; see `functions_of_steps`.
    """

    node_type: str
    id: Any
    name: str
    scaling: str
    columns: list[ExplainedColumn]
    paths: list[ExplainedPath]
    parts: list[ExplainedPart]
    is_rotated: bool
    resemblance: float | None
    length: float
    vector: list[float]
    functions: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """The explanation as JSON values; dates are text."""
        values = asdict(self)
        for column in values["columns"]:
            if isinstance(column["cell"], np.generic):
                cell = column["cell"].item()
                is_plain = isinstance(cell, int | float | bool)
                column["cell"] = cell if is_plain else time_in_words(column["cell"])
        return values


def time_in_words(cell: Any) -> str:
    """A time as text: ``2021-11-15`` for the beginning of a day; other cells as they are."""
    text = str(cell)
    if not isinstance(cell, np.datetime64):
        return text
    return text.removesuffix(".000000").removesuffix("T00:00:00")


class Followed(NamedTuple):
    """What the user follows through the vector: one column, one number, or neither."""

    column: str | None
    number: int | None

    def shown_positions(
        self, columns: slice, names: Sequence[str], values: NDArray[Any], most_numbers: int
    ) -> list[int]:
        """The positions in the vector that are shown of the part in ``columns``."""
        positions = np.arange(columns.start, columns.stop)
        if self.number is not None:
            return [self.number] if columns.start <= self.number < columns.stop else []
        if self.column is not None:
            is_named = [is_of_column(name, self.column) for name in names]
            return [int(position) for position in positions[is_named]]
        largest_first = np.argsort(-np.abs(values), kind="stable")
        return [int(position) for position in positions[largest_first[:most_numbers]]]


def explain_node(
    fitted: FittedModel,
    node: Hashable,
    device: str,
    *,
    column: str | None = None,
    number: int | None = None,
    most_senders: int = 3,
    most_numbers: int = 1,
    most_terms: int = 3,
) -> Explanation:
    """Follow the cells and edges of a node to its vector.

    Args:
        fitted: the model.
        node: the id or the name of the node.
        device: where vectors are computed.
        column: the one column to follow, with all of its numbers in the vector.
        number: the one number of the vector to follow, by its position from 0 on.
        most_senders: nodes that are named for each path.
        most_numbers: numbers that are named for each part, where none are followed.
        most_terms: terms that are named for each number that is followed.
    """
    graph = fitted.graph
    recipe = fitted.recipe
    row = int(rows_of(graph.ids, graph.node_names, [node])[0])
    rows = np.array([row])
    followed = _check_followed(column, number, recipe.width)

    # Cells, and the features that they became.
    columns = explain_columns(graph, recipe, row)
    if column is not None:
        columns = [_column_named(columns, column)]

    # The vector, and the same before centre and factor.
    outside_parts = fitted.parts_outside_embedder(graph, recipe)
    unbalanced = replace(recipe, centre=None, factor=None, rotation=None)
    raw = embed(unbalanced, graph, device, rows=rows, outside_parts=outside_parts)[0]
    vector = embed(recipe, graph, device, rows=rows, outside_parts=outside_parts)[0]
    parts = explain_parts(recipe, raw, most_numbers, followed)

    # What a followed number is the sum of.
    if column is not None or number is not None:
        parts = [_with_terms(graph, recipe, row, part, most_terms) for part in parts]
    if number is not None:
        columns = _columns_behind(graph, columns, parts)

    return Explanation(
        node_type=graph.node_type,
        id=graph.ids[rows].tolist()[0],
        name="" if graph.node_names is None else str(graph.node_names[row]),
        scaling=recipe.scaler.scale,
        columns=columns,
        paths=explain_paths(graph, recipe, row, most_senders),
        parts=parts,
        is_rotated=recipe.rotation is not None,
        resemblance=_resemblance(fitted),
        length=float(np.linalg.norm(vector)),
        vector=vector.tolist(),
        functions=functions_of_steps(graph, recipe, columns, parts),
    )


def functions_of_steps(
    graph: Graph, recipe: Recipe, columns: list[ExplainedColumn], parts: list[ExplainedPart]
) -> dict[str, str]:
    """The function that makes each step, from the cells that are shown to the numbers.

    A number is ``(raw - centre) * factor``. What a training fits, such as the centre, has a step of
    its own beside the step that uses it for a node.
    """
    functions: dict[str, str] = {}
    explained_names = {column.name for column in columns}
    if graph.encoding is not None:
        for column in graph.encoding.feature_columns:
            if column.name in explained_names:
                for step, function in column.encoding_functions().items():
                    functions[step] = _path_of(function)

    families = {part_family(part.name) for part in parts if part.numbers}
    if families != {"positions"}:  # positions are made of edges alone
        # The own part is made of the features of the node, the others also of those of other types.
        scalers = [recipe.scaler]
        if families != {"own"}:
            scalers += recipe.scaler.other_types.values()
        functions["features to scaled features"] = _scaling_step(graph, scalers)

    if families & {"own", "pooled"}:
        functions["projection of own parts, fitted"] = _path_of(own_projection)
    pools_along_paths = isinstance(recipe.encoder.rule, tuple)
    for part in parts:
        if not part.numbers:
            continue
        raw_step = f"raw numbers of {part.name}"
        if part.name == "encoder":
            functions[raw_step] = _path_of(type(recipe.encoder).layer)
        elif part.name == "own":
            functions[raw_step] = _path_of(project)
        elif part.name == "positions":
            functions["positions, fitted"] = _path_of(fit_spectral_positions)
            functions[raw_step] = _path_of(Embedder._join_parts)
        elif part.name == "pooled" and pools_along_paths:
            functions[raw_step] = _path_of(Embedder._along_paths)
        else:
            functions["own parts that are pooled"] = _path_of(project)
            # A part that is called after a half-life is pooled with decaying weights.
            has_half_life = part.name != "pooled"
            pooling = HalfLifeMeans._means if has_half_life else Embedder._over_two_hops
            functions[raw_step] = _path_of(pooling)

    if recipe.centre is not None:  # the paper's vectors have none
        functions["mean lengths of parts"] = _path_of(part_lengths)
        functions["centre and factor, fitted"] = _path_of(balance)
        functions["centre and factor, applied"] = _path_of(Embedder._balance)
    return functions


def _scaling_step(graph: Graph, scalers: Sequence[Scaler]) -> str:
    """The function that scales features, or why none does."""
    if any(scaler.scale != "none" for scaler in scalers):
        return _path_of(Scaler.transform)
    if graph.encoding is not None:
        return "(none: encoded columns are scaled already)"
    return "(none: the encoder reads features as they are)"


def _resemblance(fitted: FittedModel) -> float | None:
    """The resemblance of neighbours in the graph of the training; None where it is not needed."""
    if "own" not in fitted.recipe.parts or fitted.graph.has_named_types:
        return None
    # Only a report that is read from a run folder is there already: the one of a training in this
    # process takes as long as its vectors.
    if isinstance(fitted.record, StoredRecord):
        resemblance: float | None = fitted.record.report.get("resemblance")
        return resemblance
    return fitted.record.resemblance


def _path_of(function: Any) -> str:
    """The module and the name of a function, for a reader to find it."""
    return f"{function.__module__}.{function.__qualname__}"


def _check_followed(column: str | None, number: int | None, width: int) -> Followed:
    """The column or the number to follow; both, and a number outside the vector, are refused."""
    if number is None:
        return Followed(column, None)
    if column is not None:
        raise InputError("--number", "a column or a number to follow", "both")
    return Followed(None, check_whole_number("--number", number, 0, width - 1))


def _column_named(columns: list[ExplainedColumn], name: str) -> ExplainedColumn:
    """The column of a name; refused where no column of that name became features."""
    columns_by_name = {column.name: column for column in columns}
    if name not in columns_by_name:
        remedy = suggest(name, columns_by_name)
        raise InputError("--column", "a column that becomes features", shorten(name), remedy)
    return columns_by_name[name]


def _columns_behind(
    graph: Graph, columns: list[ExplainedColumn], parts: list[ExplainedPart]
) -> list[ExplainedColumn]:
    """The columns of the node that the one number depends on which is shown in the parts.

    A number of the own part may be a sum of many terms. Its columns are those of the largest terms,
    the ones that are shown.
    """
    (part,) = (part for part in parts if part.numbers)
    if part.name == "encoder":
        return columns
    if part.name != "own":
        return []  # pooled numbers are made of the columns of other nodes, positions of none

    (followed_number,) = part.numbers
    names_of_largest_terms = {term.name for term in followed_number.terms}
    features_of_column = _features_of_columns(graph)
    columns_of_terms = []
    for column in columns:
        feature_names = graph.feature_names[features_of_column[column.name]]
        if names_of_largest_terms.intersection(feature_names):
            columns_of_terms.append(column)
    return columns_of_terms


# Cells


def explain_columns(graph: Graph, recipe: Recipe, row: int) -> list[ExplainedColumn]:
    """The columns of a node, with their features before and after scaling."""
    encoded = dense(graph.table[[row]])[0]
    scaled = dense(graph.scaled(recipe.scaler).table[[row]])[0]

    encoding = graph.encoding
    if encoding is None:
        # A float32 is shown by the fewest digits that tell it: 0.1 rather than 0.10000000149.
        numbers = [float(str(number)) for number in encoded]
        cells: dict[str, Any] = dict(zip(graph.feature_names, numbers, strict=True))
        column_types: dict[str, str] = {}
    else:
        decoded = encoding.inverse_transform(encoded[None])
        cells = {name: values[0] for name, values in decoded.items()}
        column_types = {column.name: column.column_type for column in encoding.feature_columns}

    projection = None
    if "own" in recipe.parts and recipe.node_type in recipe.projections:
        projection = recipe.projections[recipe.node_type].cpu().numpy()

    explained = []
    for name, columns in _features_of_columns(graph).items():
        features = []
        for position in range(columns.start, columns.stop):
            is_zero = encoded[position] == 0 and scaled[position] == 0
            if is_zero and columns.stop - columns.start > 1:
                continue
            feature_name = graph.feature_names[position]
            values = float(encoded[position]), float(scaled[position])
            features.append(ExplainedFeature(feature_name, *values))

        own_length = None
        if projection is not None:
            own_length = float(np.linalg.norm(scaled[columns] @ projection[columns]))
        column_type = column_types.get(name, "")
        explained.append(ExplainedColumn(name, column_type, cells[name], features, own_length))
    return explained


def _features_of_columns(graph: Graph) -> dict[str, slice]:
    """The features of each column of the node table.

    In a table of numbers alone each column is one feature, as it is.
    """
    if graph.encoding is not None:
        return graph.encoding.slices()
    return {name: slice(number, number + 1) for number, name in enumerate(graph.feature_names)}


# Edges


def explain_paths(graph: Graph, recipe: Recipe, row: int, most: int) -> list[ExplainedPath]:
    """The nodes from which the encoder's messages come, with their shares of the weights."""
    rule = recipe.encoder.rule
    explained = []
    for name, path in paths_of(graph, rule).items():
        if isinstance(rule, Normalisation):
            senders, weights = weights_of_messages(graph, rule, row)
        else:
            senders, weights = weights_along(path, row)
        largest = np.argsort(-weights, kind="stable")[:most]
        total = float(weights.sum()) or 1.0

        nodes = graph.nodes[path[-1].sender]
        explained_senders = []
        for sender, weight in zip(senders[largest], weights[largest], strict=True):
            sender_id = nodes.ids[[sender]].tolist()[0]
            sender_name = "" if nodes.node_names is None else str(nodes.node_names[sender])
            share = float(weight / total)
            explained_senders.append(ExplainedSender(sender_id, sender_name, share))
        explained.append(ExplainedPath(name, len(senders), explained_senders))
    return explained


def weights_of_messages(
    graph: Graph, rule: Normalisation, row: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Who sends to a node of the paper's graph, itself too, and its row of the propagation."""
    rows = np.array([row])
    _, senders, edge_weights = graph.edges.received(rows)
    if rule.loops:
        senders = np.append(senders, row)
        edge_weights = np.append(edge_weights, 1.0)
    own_degree = graph.edges.strength(rows) + rule.loops
    degrees = graph.edges.strength(senders) + rule.loops
    weights = edge_weights * own_degree**-rule.left * np.maximum(degrees, 1e-30) ** -rule.right
    return np.asarray(senders, np.int64), np.asarray(weights, np.float64)


def weights_over_two_hops(
    graph: Graph, rule: Normalisation, row: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nodes within two hops of a node of the paper's graph, ascending, and that row of P P."""
    senders: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    weights: list[NDArray[np.float64]] = [np.zeros(0)]
    for near, near_weight in zip(*weights_of_messages(graph, rule, row), strict=True):
        far_senders, far_weights = weights_of_messages(graph, rule, int(near))
        senders.append(far_senders)
        weights.append(near_weight * far_weights)
    nodes, node_of_message = np.unique(np.concatenate(senders), return_inverse=True)
    summed = np.bincount(node_of_message, np.concatenate(weights), len(nodes))
    return nodes, summed.astype(np.float64)


def weights_along(path: Any, row: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nodes at the end of a path, ascending, and their weights in a mean of means."""
    nodes: NDArray[np.int64] = np.array([row])
    weights: NDArray[np.float64] = np.ones(1)
    for step in path:
        positions, senders, edge_weights = step.received(nodes)
        sums = np.bincount(positions, edge_weights, len(nodes))
        in_messages = weights[positions] * edge_weights / sums[positions]
        nodes, node_of_message = np.unique(senders, return_inverse=True)
        weights = np.bincount(node_of_message, in_messages, len(nodes)).astype(np.float64)
    return nodes, weights


# Parts, and their numbers


def explain_parts(
    recipe: Recipe,
    raw: NDArray[np.float32],
    most_numbers: int,
    followed: Followed,
) -> list[ExplainedPart]:
    """The parts of a vector, with their lengths and the numbers that are shown.

    Numbers and lengths are those before a rotation. The terms of numbers are added later.

    Args:
        recipe: the centre and the factor.
        raw: ``[D]``, the vector before centre and factor.
        most_numbers: numbers that are shown of each part, where none are followed.
        followed: the column or the number that is followed.
    """
    width = len(raw)
    centre = np.zeros(width) if recipe.centre is None else recipe.centre.double().cpu().numpy()
    factor = np.ones(width) if recipe.factor is None else recipe.factor.double().cpu().numpy()
    centred = raw - centre
    balanced = centred * factor
    # The paper's vectors have one part, whose columns have no names.
    names_of_parts = recipe.parts or {"encoder": [f"encoder {n}" for n in range(1, width + 1)]}

    # A rotation keeps lengths, so shares are those of the vector before it.
    vectors = balanced[None].astype(np.float32)
    embeddings = Embeddings(vectors, np.array([0]), None, "", names_of_parts)
    shares = embeddings.shares(0, np.array([0]))

    explained = []
    for part_name, columns in slices(names_of_parts).items():
        names = names_of_parts[part_name]
        numbers = []
        for position in followed.shown_positions(columns, names, balanced[columns], most_numbers):
            number = ExplainedNumber(
                position=position,
                name=names[position - columns.start],
                raw=float(raw[position]),
                centre=float(centre[position]),
                factor=float(factor[position]),
                value=float(balanced[position]),
                terms=[],
                term_count=0,
            )
            numbers.append(number)
        explained.append(
            ExplainedPart(
                name=part_name,
                width=len(names),
                raw_length=float(np.linalg.norm(raw[columns])),
                centred_length=float(np.linalg.norm(centred[columns])),
                length=float(np.linalg.norm(balanced[columns])),
                share=float(shares[part_name][0]),
                numbers=numbers,
            )
        )
    return explained


def is_of_column(number_name: str, column: str) -> bool:
    """Whether a number is called after a feature of a column, as ``age`` or ``city=Rome``."""
    name = number_name.removeprefix("mean of ")
    next_character = name[len(column) : len(column) + 1]
    return name.startswith(column) and next_character in ("", "=", ":", "[", " ")


def _with_terms(
    graph: Graph, recipe: Recipe, row: int, part: ExplainedPart, most_terms: int
) -> ExplainedPart:
    """The same part, whose numbers have their largest terms."""
    if part.name not in ("own", "pooled"):
        return part
    part_start = slices(recipe.parts)[part.name].start
    numbers = []
    for number in part.numbers:
        position_in_part = number.position - part_start
        if part.name == "own":
            terms = own_terms(graph, recipe, row, position_in_part)
        else:
            terms = pooled_terms(graph, recipe, row, position_in_part)
        terms.sort(key=lambda term: -abs(term.value * term.weight))
        largest_terms = terms[:most_terms]
        numbers.append(replace(number, terms=largest_terms, term_count=len(terms)))
    return replace(part, numbers=numbers)


def own_terms(graph: Graph, recipe: Recipe, row: int, position_in_part: int) -> list[ExplainedTerm]:
    """The scaled features whose weighted sum is a number of the own part.

    It is one feature where the part keeps features as they are, and many where it holds their
    singular vectors.
    """
    scaled = dense(graph.scaled(recipe.scaler).table[[row]])[0]
    weights = recipe.projections[recipe.node_type][:, position_in_part].cpu().numpy()
    return [
        ExplainedTerm(graph.feature_names[feature], float(scaled[feature]), float(weights[feature]))
        for feature in np.flatnonzero(weights)
    ]


def pooled_terms(
    graph: Graph, recipe: Recipe, row: int, position_in_part: int
) -> list[ExplainedTerm]:
    """The nodes over which a number of the pooled part is a mean, with their weights.

    The value of a node is the number of its own part.
    """
    rule = recipe.encoder.rule
    # The own parts of the types at the ends of paths stand side by side.
    node_type, own_position = _type_of_pooled_column(recipe, position_in_part)
    if isinstance(rule, Normalisation):
        senders, weights = weights_over_two_hops(graph, rule, row)
    else:
        senders, weights = _mean_over_paths(graph, recipe, node_type, row)

    scaled_graph = graph.scaled(recipe.scaler).target(node_type)
    projection = recipe.projections[node_type].cpu().numpy()
    terms = []
    for first in range(0, len(senders), ROWS_PER_BLOCK):
        block = slice(first, first + ROWS_PER_BLOCK)
        values = dense(scaled_graph.table[senders[block]]) @ projection[:, own_position]
        ids = scaled_graph.ids[senders[block]].tolist()
        names = scaled_graph.display_names(senders[block])
        for node_id, name, value, weight in zip(ids, names, values, weights[block], strict=True):
            node = f"{node_type} {node_id}".strip()
            if str(name) != str(node_id):
                node += f" ({name})"
            terms.append(ExplainedTerm(node, float(value), float(weight)))
    return terms


def _type_of_pooled_column(recipe: Recipe, position_in_part: int) -> tuple[str, int]:
    """The type whose own part is pooled in a column, and the column of that own part."""
    first = 0
    for node_type in recipe.paths_by_end_type:
        own_width = recipe.projections[node_type].shape[1]
        if position_in_part < first + own_width:
            return node_type, position_in_part - first
        first += own_width
    raise IndexError(position_in_part)


def _mean_over_paths(
    graph: Graph, recipe: Recipe, node_type: str, row: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nodes at the ends of all paths to a type, ascending, and their weights in the mean."""
    paths = paths_of(graph, recipe.encoder.rule)
    path_names = recipe.paths_by_end_type[node_type]
    senders_of_paths = []
    weights_of_paths = []
    for path_name in path_names:
        senders, weights = weights_along(paths[path_name], row)
        senders_of_paths.append(senders)
        weights_of_paths.append(weights / len(path_names))
    nodes, node_of_message = np.unique(np.concatenate(senders_of_paths), return_inverse=True)
    summed = np.bincount(node_of_message, np.concatenate(weights_of_paths), len(nodes))
    return nodes, summed.astype(np.float64)
