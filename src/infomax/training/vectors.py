"""The vectors of a graph, or of some of its nodes: which engine computes them, and where."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.graphs.graph import Graph
from infomax.io import memory
from infomax.kernels import Backend, room
from infomax.kernels.device import choose_device
from infomax.kernels.ranks import Ranks
from infomax.training.embed import Embedder, InMemory, OnDisk
from infomax.training.recipe import Recipe
from infomax.views import WholeView
from infomax.views.around import around
from infomax.views.steps import walks

SHARE = 0.25
"""Where the vectors of some nodes depend on a larger share of all nodes than this, one pass over all is faster."""


def embed(
    recipe: Recipe,
    graph: Graph,
    device: str,
    *,
    rows: NDArray[np.int64] | None = None,
    numbers: float | None = None,
    places: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """The vectors ``[N, d]`` of a graph, or those of some rows, ascending; the arguments are those of `embedder`."""
    one_pass = graph.folder is not None and recipe.hops == 0 and "pooled" not in recipe.parts  # it reads rows as it is
    if rows is not None and not one_pass and not recipe.encoder.whole:
        nodes = sum(one.num_nodes for one in graph.nodes.values())
        each = max(one.table.to_read(1) for one in graph.nodes.values())
        backend = Backend.of_embedding(choose_device(device), len(rows) * recipe.encoder.out_dim)
        standing = None if places is None else places[rows]
        found = embed_near(recipe, graph, rows, backend, standing, min(SHARE * nodes, 4 * memory.BYTES / max(each, 1)))
        if found is not None:
            return found
    engine = embedder(recipe, graph, device, rows=rows, numbers=numbers, places=places)
    vectors = engine.all() if rows is None else engine.of(rows)
    engine.close()
    return vectors


def embed_near(
    recipe: Recipe,
    graph: Graph,
    rows: NDArray[np.int64],
    backend: Backend,
    places: NDArray[np.float32] | None = None,
    most: float = math.inf,
) -> NDArray[np.float32] | None:
    """The vectors ``[n, d]`` of some nodes, from the small graph `around` them; None where that has too many nodes.

    ``places`` are their positions ``[n, K]``.
    """
    encoder = recipe.encoder
    small = around(graph, rows, *walks(graph, encoder.rule, encoder.depth + recipe.hops), most)
    if small is None:
        return None
    scaled = small.scaled(recipe.scaler)
    engine = Embedder(recipe, InMemory(WholeView.of(scaled, encoder.rule, backend), scaled.table, places))
    vectors = engine.first(len(rows))
    engine.close()
    return vectors


def embedder(
    recipe: Recipe,
    graph: Graph,
    device: str,
    *,
    rows: NDArray[np.int64] | None = None,
    numbers: float | None = None,
    places: NDArray[np.float32] | None = None,
) -> Embedder:
    """The embedder of a graph, in memory or on disk; refused where memory is short.

    ``rows`` are the nodes that will be asked for, None: all; ``numbers``, how many numbers it will compute, None: once
    all vectors. ``places`` are `Places.of_type` ``[N, K]``, where the vectors have such a part.
    """
    if graph.table.mapped:
        n, cpu = graph.num_nodes if rows is None else len(rows), torch.device("cpu")
        all_at_once = "Embed to a .parquet, an .npy or a folder, which takes less; or allow more memory."
        remedy = all_at_once if rows is None else "Allow more memory."
        room.require(memory.stored_bytes(graph) + 4 * n * recipe.width, cpu, remedy=remedy)
        # Some rows are read by a CPU, which does not need the others.
        place = cpu if rows is not None and not recipe.hops else device_for_folder(graph, device)
        backend = Backend.of_embedding(place, numbers or n * recipe.width)
        return Embedder(recipe, OnDisk(graph, recipe, backend, places=places))
    where = choose_device(device)
    room.require(memory.embedding_bytes(graph, recipe.width), where)
    scaled = graph.scaled(recipe.scaler)
    backend = Backend.of_embedding(where, numbers or graph.num_nodes * recipe.encoder.out_dim)
    return Embedder(recipe, InMemory(WholeView.of(scaled, recipe.encoder.rule, backend), scaled.table, places))


def device_for_folder(graph: Graph, name: str) -> torch.device:
    """Choose the device to embed a graph folder on: ``auto`` is the GPU if there is one with room for the graph."""
    device = choose_device(name)
    if device.type == "cuda":
        needed = memory.resident_bytes(graph) + 4 * graph.num_nodes * graph.num_features
        if name != "auto" or needed < room.available_bytes(device):
            room.require(needed, device)
            return device
    room.require(memory.stored_bytes(graph), torch.device("cpu"), Ranks.current().on_this_host)
    return torch.device("cpu")
