"""After the training: vectors of nodes that come later, and of later graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays import checks
from infomax.embeddings import Embeddings
from infomax.estimator.assembly import check_graph
from infomax.estimator.known import Known, Neighbours
from infomax.estimator.updating import Update, update
from infomax.estimator.vectors import Fitted
from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.kernels.device import choose_device
from infomax.training.loop import Training


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
                edges have weights, a mapping of ids to weights. In a graph of several types, either by type, as in
                ``{"author": ["ann", "bob"]}``, or by the name of a relation where several join the same two types.
        """
        return self.vectors(None if features is None else [features], [neighbours])[0]  # type: ignore[no-any-return]

    def vectors(self, features: Any, neighbours: Sequence[Neighbours]) -> NDArray[np.float32]:
        """As `vector`, of M new nodes at once, ``[M, d]``: a row of features and the neighbours of each.

        New nodes that are joined to each other are attached by `infomax.read_graph`.
        """
        self._check_fitted()
        if self._known is None or self._known.graph is not self.graph_:
            self._known = Known(self.graph_)
        backend = Backend.of_embedding(choose_device(self.device), numbers=0)  # kernels would take seconds to load
        engine = self._known.embedder(features, neighbours, self._recipe(), backend)
        return engine.of(np.arange(engine.source.n - len(neighbours), engine.source.n))
