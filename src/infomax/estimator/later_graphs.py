"""Take a fitted model to a later graph: compute what a change reaches, or train further."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from infomax.arrays.table import PatchedVectors
from infomax.embeddings import EmbeddingParts, Embeddings
from infomax.errors import InputError, format_count
from infomax.estimator import run_folder
from infomax.estimator.fitted_model import FittedModel
from infomax.estimator.fitting import FitRequest, WarmStart, fit_model
from infomax.estimator.same_features import check_graph, check_same_features
from infomax.graphs.graph import Graph
from infomax.io.changes import Changes, rows_before
from infomax.training import runs
from infomax.training.loop import Training
from infomax.views.steps import walks

if TYPE_CHECKING:
    from infomax.estimator.dgi import DGI


@dataclass(frozen=True, eq=False)
class Update:
    """A model on a later graph.

    Attributes:
        model: the model.
        stored: the vectors of the later graph, maybe not yet copied; see `embeddings`.
        changes: what had changed.
        computed: how many vectors were computed.
    """

    model: DGI
    stored: Embeddings | EmbeddingParts
    changes: Changes
    computed: int

    def __repr__(self) -> str:
        vector_count = format_count(len(self.stored.ids), "vector")
        return f"Update({self.changes}; computed {self.computed} of {vector_count})"

    @cached_property
    def embeddings(self) -> Embeddings:
        """The vectors of the later graph, copied when they are first asked for."""
        if isinstance(self.stored, Embeddings):
            return self.stored
        return Embeddings(*self.stored)


class LaterModel(NamedTuple):
    """A fitted model on a later graph, and what was done to take it there."""

    model: FittedModel
    vectors: Embeddings | EmbeddingParts
    changes: Changes
    computed: int


def later_model(
    fitted: FittedModel,
    graph: Graph,
    earlier_vectors: Embeddings | None,
    device: str,
    *,
    train: bool,
    align: bool,
    run: Path | None,
    progress: bool | Callable[[Training], None],
) -> LaterModel:
    """Take a model to a later graph; the arguments are those of `DGI.update`."""
    check_graph(graph)
    if fitted.graph.node_type in graph.types and graph.node_type_is_first:
        graph = graph.target(fitted.graph.node_type)
    check_same_features(graph, fitted.graph)
    if align and not train:
        expected = "train as well: then all vectors change"
        raise InputError("align", expected, "weights that stay as they are")
    if earlier_vectors is not None and earlier_vectors.model not in ("", fitted.recipe.hash):
        expected = "those of this model, with its settings"
        remedy = "Leave them out, or embed the run again."
        raise InputError("vectors", expected, "those of another", remedy)
    changes = Changes.of(fitted.graph, graph)

    if train:
        align_to = None
        if align:
            align_to = earlier_vectors or fitted.transform(fitted.graph, device)
        parameters = {"preset": fitted.preset, "seed": fitted.seed, "device": device}
        request = FitRequest(graph, parameters, run, warm_start=WarmStart(fitted, align_to))
        later = fit_model(request, progress)
        assert later.vectors is not None  # noqa: S101  further training always keeps them
        return LaterModel(later, later.vectors, changes, graph.num_nodes)

    # The weights stay, and new nodes get positions near their neighbours.
    positions = fitted.positions
    if positions is not None:
        positions = positions.for_later_graph(fitted.graph, graph)
    later = replace(
        fitted,
        graph=graph,
        positions=positions,
        trained_on=fitted.trained_on or runs.describe(fitted.graph),
        vectors=None,
    )
    vectors, computed = _later_vectors(later, earlier_vectors, changes, device)
    later = replace(later, vectors=vectors)
    if run is not None:
        run_folder.save(later, run, device)
    return LaterModel(later, vectors, changes, computed)


def _later_vectors(
    later: FittedModel, earlier_vectors: Embeddings | None, changes: Changes, device: str
) -> tuple[Embeddings | EmbeddingParts, int]:
    """The vectors of the later graph, and how many of them were computed.

    Vectors that no change reaches are the earlier ones.
    """
    graph, recipe = later.graph, later.recipe
    if earlier_vectors is None:
        return later.transform(graph, device), graph.num_nodes

    encoder = later.model.encoder
    is_reached = changes.reach(*walks(graph, encoder.rule, encoder.depth + recipe.hops))
    earlier_rows = rows_before(earlier_vectors.ids, graph.ids[:])
    rows = np.flatnonzero(is_reached | (earlier_rows < 0))
    if len(rows) == graph.num_nodes:
        return later.transform(graph, device), graph.num_nodes

    new_vectors = earlier_vectors.vectors[:0]
    if len(rows):
        new_vectors = later.transform(graph, device, rows=rows).vectors
    patched = PatchedVectors(earlier_vectors.vectors, earlier_rows, rows, new_vectors)
    node_names = None if graph.node_names is None else graph.node_names[:]
    vectors = EmbeddingParts(patched, graph.ids[:], node_names, recipe.hash, recipe.parts)
    return vectors, len(rows)
