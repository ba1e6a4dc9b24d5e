"""`FittedModel`: what a training leaves, and the vectors that are computed with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from infomax import memory
from infomax.arrays.scaling import Scaler
from infomax.embeddings import EmbeddingParts, Embeddings
from infomax.errors import InputError
from infomax.estimator.new_nodes import KnownGraph
from infomax.estimator.same_features import check_graph, check_same_features
from infomax.estimator.training_record import StoredRecord, TrainingRecord
from infomax.estimator.vector_parts import parts_outside_embedder
from infomax.graphs.graph import Graph
from infomax.kernels import room
from infomax.parts.methods import Model
from infomax.parts.vectors import check_vectors
from infomax.training.presets import Preset
from infomax.training.recipe import Recipe
from infomax.training.spectral_positions import SpectralPositions
from infomax.training.vectors import embed, write_embedding


@dataclass(frozen=True, eq=False)
class FittedModel:
    """What a training leaves. It never changes: an update or further training makes another one."""

    model: Model
    """The trained encoder, readout and discriminator."""
    preset: Preset
    seed: int
    scaler: Scaler
    feature_names: tuple[str, ...]
    graph: Graph
    """The graph whose nodes are known: of the training, or a later one after an update."""
    recipe: Recipe
    """What vectors are made of."""
    positions: SpectralPositions | None
    """The positions of the nodes of the graph, where vectors have them."""
    record: TrainingRecord | StoredRecord
    trained_on: dict[str, Any] | None = None
    """The description of the graph of the training, where the model was taken to a later one."""
    vectors: Embeddings | EmbeddingParts | None = None
    """The vectors of the graph, where an update has made them; a run folder keeps them."""

    def recipe_for(self, vectors: str | None = None) -> Recipe:
        """The recipe of all parts, or of the parts in a list such as ``"own,positions"``."""
        return self.recipe if vectors is None else self.recipe.only(check_vectors(vectors))

    def parts_outside_embedder(self, graph: Graph, recipe: Recipe) -> dict[str, Any]:
        """The parts ``[N, K]`` of a graph's nodes that the embedder does not compute, by name."""
        return parts_outside_embedder(graph, recipe, self.positions, self.graph)

    def transform(
        self,
        graph: Graph,
        device: str,
        *,
        vectors: str | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> Embeddings:
        """The vectors ``[N, d]`` of a graph's nodes, or of some rows; see `DGI.transform`."""
        check_graph(graph)
        check_same_features(graph, self.graph)
        recipe = self.recipe_for(vectors)
        outside_parts = self.parts_outside_embedder(graph, recipe)
        computed = embed(recipe, graph, device, rows=rows, outside_parts=outside_parts)
        selected = slice(None) if rows is None else rows
        node_names = None if graph.node_names is None else graph.node_names[selected]
        return Embeddings(computed, graph.ids[selected], node_names, recipe.hash, recipe.parts)

    def write_vectors(
        self,
        graph: Graph,
        out: Path,
        device: str,
        *,
        vectors: str | None = None,
        half: bool = False,
        **options: Any,
    ) -> None:
        """Write the vectors of a graph folder, block by block; see `DGI.write_vectors`."""
        check_same_features(graph, self.graph)
        if not graph.table.mapped:
            expected = "a graph opened from a graph folder"
            raise InputError("graph", expected, "one in memory", "Use transform.")
        recipe = self.recipe_for(vectors)
        outside_parts = self.parts_outside_embedder(graph, recipe)
        write_embedding(
            recipe, graph, out, device=device, outside_parts=outside_parts, half=half, **options
        )

    def positions_of_type(self, node_type: str) -> Embeddings:
        """The positions ``[n, K]`` of the nodes of a type, at length 1, then centred."""
        positions = self._checked_positions(node_type).of_type(node_type)
        unit = normalize(torch.from_numpy(np.array(positions))).numpy()
        return self._at_nodes(node_type, unit - unit.mean(axis=0))

    def singular_vectors_of_type(self, node_type: str) -> Embeddings:
        """The singular vectors ``[n, K]`` of the nodes of a type, the leading first."""
        vectors = self._checked_positions(node_type).singular_vectors(node_type)
        return self._at_nodes(node_type, vectors)

    def _checked_positions(self, node_type: str) -> SpectralPositions:
        """The positions; refused where there is no such type, or vectors have none."""
        self.graph.target(node_type)
        if self.positions is None or "positions" not in self.recipe.parts:
            expected = "a model whose vectors have them"
            raise InputError("positions", expected, "one without", "Leave out vectors=.")
        return self.positions

    def _at_nodes(self, node_type: str, vectors: NDArray[np.float32]) -> Embeddings:
        """Vectors ``[n, K]`` of the nodes of a type, with the ids of these."""
        graph = self.graph.target(node_type)
        return Embeddings(vectors, graph.ids[:], graph.node_names, self.recipe.hash)

    def positions_for(self, graph: Graph) -> SpectralPositions | None:
        """The positions, for another model of a graph with the same nodes and edges; else None."""
        same_nodes = self.graph.nodes is graph.nodes
        same_edges = self.graph.relations is graph.relations
        return self.positions if same_nodes and same_edges else None

    @cached_property
    def known_graph(self) -> KnownGraph:
        """The graph with what finds its nodes by their ids, to attach new nodes to."""
        return KnownGraph(self.graph)

    def in_memory(self) -> Self:
        """The same model with its graph in memory, if there is room for that and its vectors."""
        if not self.graph.table.mapped:
            return self
        cpu = torch.device("cpu")
        room.require(memory.embedding_bytes(self.graph, self.model.encoder.out_dim, cpu), cpu)
        return replace(self, graph=self.graph.loaded())
