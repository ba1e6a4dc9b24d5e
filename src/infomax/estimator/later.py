"""After the training: vectors of nodes that come later."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from infomax.arrays import checks
from infomax.arrays.made import made
from infomax.embeddings import positions
from infomax.errors import InputError, shorten
from infomax.graphs.graph import Graph
from infomax.io.around import attach_near
from infomax.io.record import Record

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
