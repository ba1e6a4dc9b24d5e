"""How a training went, and the report on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from infomax.arrays.resemblance import resemblance
from infomax.arrays.structural_features import structural_features_named
from infomax.embeddings import columns_in_words
from infomax.estimator.assembly import build
from infomax.graphs.graph import Graph
from infomax.kernels.device import choose_device
from infomax.kernels.initialisation import generators
from infomax.parts.vectors import PAPER
from infomax.training.health import health, spread
from infomax.training.hidden_links import score_hidden_links
from infomax.training.presets import Preset
from infomax.training.recipe import Recipe
from infomax.training.vectors import embed


@dataclass(frozen=True)
class StoredRecord:
    """The report on a training that was read from its run folder."""

    report: dict[str, Any]


@dataclass(frozen=True, eq=False)
class TrainingRecord:
    """How a training of this process went.

    Its report is computed when it is first read, since it needs the vectors of the encoder and
    their spectrum.
    """

    course: Mapping[str, Any]
    """What the loop says: epochs, losses, seconds, memory."""
    graph: Graph
    """The graph that was trained on; the report is about the nodes that training saw."""
    recipe: Recipe
    device: str
    preset: Preset
    seed: int
    resemblance: float | None = None
    """How alike neighbours are, where it was computed for the length of the own part."""
    position_search: str | None = None
    """How positions were found, in words, where vectors have them."""

    @cached_property
    def report(self) -> dict[str, Any]:
        """The report on the training, with the spectrum of the encoder's vectors, as JSON."""
        seen_graph = self.graph.seen()
        facts = self._vector_facts() | self._feature_facts(seen_graph)
        if self.course["epochs"]:
            facts |= self._link_facts(seen_graph)
        encoder_vectors = embed(
            self.recipe.only(PAPER), seen_graph, self.device, rows=spread(seen_graph.num_nodes)
        )
        return health({**self.course, **facts}, encoder_vectors, seen_graph)

    def _vector_facts(self) -> dict[str, Any]:
        """What vectors are made of: the width and the columns of each part."""
        parts = self.recipe.parts
        if not parts:
            return {}
        facts: dict[str, Any] = {
            "parts": {name: len(columns) for name, columns in parts.items()},
            "columns": {name: columns_in_words(columns) for name, columns in parts.items()},
        }
        if self.position_search is not None:
            facts["position_search"] = self.position_search
        return facts

    def _feature_facts(self, seen_graph: Graph) -> dict[str, Any]:
        """What becomes of the features of the nodes; structural features are left out."""
        if structural_features_named(seen_graph.feature_names):
            return {}
        facts: dict[str, Any] = {}
        is_pooled = seen_graph.node_type in self.recipe.paths_by_end_type
        if "own" not in self.recipe.parts and not is_pooled:
            facts["columns_lost"] = seen_graph.num_features
        if not seen_graph.has_named_types:
            facts["resemblance"] = self.resemblance
            if self.resemblance is None:
                facts["resemblance"] = resemblance_of(seen_graph, self.recipe)
        return facts

    def _link_facts(self, seen_graph: Graph) -> dict[str, Any]:
        """How well the encoder, trained and untrained, knows links that are hidden from it."""
        device = choose_device(self.device)
        weights_generator, _ = generators(self.seed, device)
        model = build(self.preset, self.graph.num_features, weights_generator)
        untrained_encoder = model.encoder.to(device).eval()
        scores = score_hidden_links(seen_graph, self.recipe, untrained_encoder, self.device)
        return {} if scores is None else {"hidden_links": scores}


def resemblance_of(graph: Graph, recipe: Recipe) -> float | None:
    """How alike the scaled features of neighbours are; None in a graph of several types."""
    if graph.has_named_types:
        return None
    return resemblance(graph.table, graph.edges, recipe.scaler)
