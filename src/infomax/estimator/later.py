"""After the training: vectors of nodes that come later, and of later graphs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays import checks
from infomax.arrays.made import made
from infomax.embeddings import Embeddings, positions
from infomax.errors import InputError, shorten
from infomax.estimator.assembly import check_graph
from infomax.estimator.updating import Update, update
from infomax.estimator.vectors import Fitted
from infomax.graphs.graph import Graph
from infomax.io.attach import attach_near
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.kernels.device import choose_device
from infomax.training.embed import Embedder, InMemory
from infomax.training.loop import Training
from infomax.views import WholeView

Neighbours = Collection[Any] | Mapping[Any, float]
"""Ids, or the weights of edges by the ids at their other ends."""


class Known:
    """The graph of a model, to which new nodes are attached a few at a time."""

    def __init__(self, graph: Graph) -> None:
        if graph.groups is not None or graph.relations:
            remedy = "Embed new graphs whole, without attaching them."
            raise InputError("the graph of the model", "one graph, to attach nodes to", "several", remedy)
        self.graph, self.names = graph, dict.fromkeys(graph.feature_names)

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each node by the text of its id."""
        return positions(self.graph.ids)

    def attach(self, features: Any, neighbours: Sequence[Neighbours], passes: int) -> Record:
        """New nodes and what their vectors depend on, see `attach_near`; ``features`` are rows or mappings."""
        graph, edges = self.graph, []
        for new, one in enumerate(neighbours):
            if not isinstance(one, Collection) or isinstance(one, str | bytes):
                raise InputError("neighbours", "a list of ids, or weights by id", repr(one))
            if graph.weighted and one and not isinstance(one, Mapping):
                raise InputError("neighbours", "weights by id, as edges of the known graph have weights", "ids alone")
            weights = one if isinstance(one, Mapping) else dict.fromkeys(one, 1.0)
            edges += [(identifier, new, weight) for identifier, weight in weights.items()]
        ids, late, weighed = zip(*edges, strict=True) if edges else ((), (), ())
        known = self.rows if isinstance(graph.ids, np.ndarray) else graph.ids.find(ids)
        if unknown := [identifier for identifier in ids if str(identifier) not in known]:
            raise InputError("neighbours", f"ids of the {graph.num_nodes:,} known nodes", shorten(unknown[0]))
        rows = np.array([known[str(identifier)] for identifier in ids], np.int64)
        weight = checks.check_array("neighbours", weighed, checks.NUMBERS, "numbers", np.float32)
        if not (np.isfinite(weight) & (weight >= 0)).all():
            raise InputError("neighbours", "finite weights of zero or more", str(weight.min()))
        links = rows, np.array(late, np.int64), weight
        return attach_near(graph, len(neighbours), links, self._checked(features, len(neighbours)), passes)

    def _checked(self, features: Any, count: int) -> Any:
        """Features ``[M, F]``, of rows or of mappings; None where they are made of the edges."""
        if features is None and made(self.graph.feature_names):
            return None
        if isinstance(features, Sequence) and all(isinstance(one, Mapping) for one in features):
            for one in features:
                found = (*filter(one.__contains__, self.names), *(name for name in one if name not in self.names))
                checks.check_feature_names("features", found, self.graph.feature_names)
            features = [[one[name] for name in self.names] for one in features]
        values = checks.check_features(features, count)
        if values.shape[1] != len(self.names):
            raise InputError("features", f"{len(self.names)} numbers per node", str(values.shape[1]))
        return values


class Later(Fitted):
    """The part of `DGI` that is about what comes after the training: new nodes, and later graphs."""

    _known: Known | None = None  # to attach new nodes to

    def update(
        self,
        graph: Graph,
        vectors: Embeddings | None = None,
        *,
        train: bool = False,
        align: bool = False,
        run: str | Path | None = None,
        progress: bool | Callable[[Training], None] = False,
    ) -> Update:
        """Take the model to a later graph; nodes are compared by their ids with those of the graph it was fitted to.

        Vectors that no change reaches are those of ``vectors``, byte for byte; the others are computed.

        Args:
            graph: the later graph, with the same features.
            vectors: those of the graph before; None: all are computed.
            train: go on training from these weights; then all vectors are computed.
            align: turn the vectors after that onto the ones before by the best rotation, so that they are comparable;
                the new model keeps the rotation.
            run: a run folder to write; with ``train`` it holds checkpoints, as in `fit`.
            progress: as in `fit`.

        Returns:
            the new ``model``, its ``embeddings``, the ``changes`` and the number of vectors ``computed``.
        """
        self._check_fitted()
        check_graph(graph)
        checks.check_feature_names("features", graph.feature_names, self.feature_names_)
        return update(self, graph, vectors, train=train, align=align, run=run, progress=progress)

    def vector(self, features: Any = None, neighbours: Neighbours = ()) -> NDArray[np.float32]:
        """Compute the vector ``[d]`` of a new node, as if it were attached to the graph that the model was fitted to.

        It takes milliseconds after the first call: only what is around the neighbours is read.

        Args:
            features: ``[F]`` numbers in the order of ``feature_names_``, or a mapping of their names to numbers; None
                where the model was fitted without features.
            neighbours: the ids of known nodes that edges join it to, with an edge to it in a directed graph; where
                edges have weights, a mapping of ids to weights.
        """
        return self.vectors(None if features is None else [features], [neighbours])[0]  # type: ignore[no-any-return]

    def vectors(self, features: Any, neighbours: Sequence[Neighbours]) -> NDArray[np.float32]:
        """As `vector`, of M new nodes at once, ``[M, d]``: a row of features and the neighbours of each.

        New nodes that are joined to each other are attached by `infomax.read_graph`.
        """
        self._check_fitted()
        if self._known is None or self._known.graph is not self.graph_:
            self._known = Known(self.graph_)
        recipe, encoder = self._recipe(), self.model_.encoder
        backend = Backend.of_embedding(choose_device(self.device), numbers=0)  # kernels would take seconds to load
        near = self._known.attach(features, neighbours, encoder.depth + recipe.smooth)
        scaled = near.scaled(self.scaler_)
        source = InMemory(WholeView.of(scaled, encoder.rule, backend), scaled.table)
        return Embedder(recipe, source).of(np.arange(near.num_nodes - len(neighbours), near.num_nodes))
