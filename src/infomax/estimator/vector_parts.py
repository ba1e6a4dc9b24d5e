"""Fit the parts of vectors that no training makes: own, pooled, positions; and all lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from infomax.estimator.training_record import resemblance_of
from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.kernels.device import choose_device
from infomax.parts.vectors import PAPER, POOLED
from infomax.training.half_lives import HalfLifeMeans, has_ages
from infomax.training.health import MOST_SAMPLED_VECTORS, spread
from infomax.training.own_features import MOST_OWN_COLUMNS, own_projection, with_features
from infomax.training.presets import Preset
from infomax.training.recipe import (
    MOST_FITTED_NODES,
    Recipe,
    balance,
    name_columns,
    part_family,
    part_lengths,
    parts_for,
)
from infomax.training.spectral_positions import (
    SETTINGS,
    PositionSettings,
    SpectralPositions,
    fit_spectral_positions,
)
from infomax.training.vectors import embed_some


@dataclass(frozen=True, eq=False)
class VectorParts:
    """What vectors are made of, fitted to the nodes that training saw."""

    recipe: Recipe
    positions: SpectralPositions | None = None
    """The positions of all nodes of the training graph, where vectors have them."""
    resemblance: float | None = None
    """How alike neighbours are, where the length of the own part depends on it."""


def fit_vector_parts(
    recipe: Recipe,
    preset: Preset,
    graph: Graph,
    device: str,
    *,
    shared_positions: SpectralPositions | None = None,
    position_count: int | None = None,
    settings: PositionSettings = SETTINGS,
) -> VectorParts:
    """Fit all parts that the preset asks for to the nodes that training saw.

    Args:
        recipe: the encoder and the scaler alone.
        preset: names the parts.
        graph: the graph of the training.
        device: where parts are computed.
        shared_positions: the positions of this graph's nodes, where another model has them already.
        position_count: how many columns positions must have, where the training of another model
            goes on.
        settings: how positions are searched, and which graphs are large.
    """
    if preset.vectors == PAPER:
        return VectorParts(recipe)
    seen_graph = graph.seen()
    # Between several types no path leads from a type to itself in all graphs, so only vectors of a
    # graph of one type are smoothed.
    has_one_type = not graph.has_named_types
    recipe = replace(recipe, smooth=has_one_type, node_type=graph.node_type)
    part_names = _part_names(graph, recipe, preset)
    # A graph that large may be on disk, where each row, and each row of its neighbours, is a page
    # to read.
    sample_size = MOST_SAMPLED_VECTORS if settings.is_large(graph.num_nodes) else MOST_FITTED_NODES

    projections, column_names = _fit_projections(
        seen_graph, recipe, part_names, sample_size, device
    )
    recipe = replace(recipe, projections=projections)

    positions = None
    if "positions" in part_names:
        positions = shared_positions
        if positions is None:
            backend = Backend(choose_device(device))
            positions = fit_spectral_positions(graph, backend, position_count, settings=settings)
    position_width = 0 if positions is None else positions.width
    recipe = name_columns(recipe, part_names, position_width, column_names)

    # Centres and lengths are those of the unbalanced vectors of a sample of nodes.
    sampled_rows = spread(seen_graph.num_nodes, sample_size)
    outside_parts = parts_outside_embedder(seen_graph, recipe, positions, graph)
    unbalanced = embed_some(recipe, seen_graph, device, sampled_rows, outside_parts)
    resemblance = resemblance_of(seen_graph, recipe) if "own" in part_names else None
    has_features = with_features(seen_graph.scaled(recipe.scaler).table, sampled_rows)
    mean_lengths = part_lengths(seen_graph, resemblance)
    centre, factor = balance(unbalanced, recipe.parts, mean_lengths, has_features)
    return VectorParts(replace(recipe, centre=centre, factor=factor), positions, resemblance)


def parts_outside_embedder(
    graph: Graph, recipe: Recipe, positions: SpectralPositions | None, known_graph: Graph
) -> dict[str, object]:
    """The parts ``[N, K]`` of a graph's nodes that the embedder does not compute, by name.

    Nodes of the known graph keep their positions; others stand near their neighbours.
    """
    parts: dict[str, object] = {}
    if recipe.half_lives:
        parts["pooled"] = HalfLifeMeans(graph, recipe)
    if positions is not None and "positions" in recipe.parts:
        parts["positions"] = positions.for_later_graph(known_graph, graph).of_type(graph.node_type)
    return parts


def _part_names(graph: Graph, recipe: Recipe, preset: Preset) -> tuple[str, ...]:
    """The names of the parts; where rows have times, there is a pooled part for each half-life."""
    part_names, _ = parts_for(graph, preset.vectors, preset.half_life)
    if not preset.half_life or not has_ages(graph, recipe):
        return part_names
    names: list[str] = []
    for part_name in part_names:
        if part_name == "pooled":
            names += [f"{POOLED}{half_life}" for half_life in preset.half_life.split(",")]
        else:
            names.append(part_name)
    return tuple(names)


def _fit_projections(
    seen_graph: Graph, recipe: Recipe, part_names: tuple[str, ...], sample_size: int, device: str
) -> tuple[Mapping[str, Tensor], Mapping[str, tuple[str, ...]]]:
    """By type of nodes, what makes own parts of scaled features, and the names of the features.

    Own parts are needed of the nodes themselves, and of the types whose own parts are pooled.
    """
    node_types: set[str] = set()
    if "own" in part_names:
        node_types.add(seen_graph.node_type)
    if "pooled" in map(part_family, part_names):
        node_types.update(recipe.paths_by_end_type)

    scaled_graph = seen_graph.scaled(recipe.scaler)
    projections: dict[str, Tensor] = {}
    column_names: dict[str, tuple[str, ...]] = {}
    for node_type in sorted(node_types):
        graph_of_type = scaled_graph.target(node_type)
        rows = spread(graph_of_type.num_nodes, sample_size)
        backend = Backend.of_embedding(choose_device(device), len(rows) * MOST_OWN_COLUMNS)
        projections[node_type] = own_projection(graph_of_type.table, rows, backend)
        column_names[node_type] = graph_of_type.feature_names
    return projections, column_names
