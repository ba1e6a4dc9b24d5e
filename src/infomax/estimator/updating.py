"""Yesterday's model on today's graph: only the vectors within reach of a change are computed again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from infomax.arrays.table import Patched
from infomax.embeddings import EmbeddingParts, Embeddings
from infomax.estimator.vectors import Fitted
from infomax.graphs.graph import Graph
from infomax.io.changes import Changes, rows_before
from infomax.views.paths import paths_of
from infomax.views.propagation import Normalisation

if TYPE_CHECKING:
    from infomax.estimator import DGI

SHARE = 0.25
"""Where vectors depend on a larger share of the nodes than this, one pass over all nodes is faster."""


class Start(NamedTuple):
    """A model whose training goes on, and vectors onto which the new ones are rotated, if any."""

    model: Fitted
    onto: Embeddings | None


@dataclass(frozen=True, eq=False)
class Update:
    """A model on a later graph, the vectors of its nodes, what had changed, and how many vectors were computed."""

    model: DGI
    kept: Embeddings | EmbeddingParts
    changes: Changes
    computed: int

    @cached_property
    def embeddings(self) -> Embeddings:
        """The vectors of the later graph, copied when they are first asked for."""
        return self.kept if isinstance(self.kept, Embeddings) else Embeddings(*self.kept)


def updated(
    model: Fitted, graph: Graph, vectors: Embeddings | None, changes: Changes
) -> tuple[Embeddings | EmbeddingParts, int]:
    """The vectors of a later graph: yesterday's, and those within reach of a change; and the number of these."""
    if vectors is None:
        return model.transform(graph), graph.num_nodes
    encoder, smooth = model.model_.encoder, model.preset_.smooth
    if graph.kind:
        reached = changes.reach_along(paths_of(graph, encoder.rule).values())
    else:
        senders_weigh = Normalisation.of(encoder.rule).right != 0
        reached = changes.reach(encoder.depth + smooth, senders_weigh=senders_weigh)
    known, n = rows_before(vectors.ids, graph.ids[:]), graph.num_nodes
    rows = np.flatnonzero(reached | (known < 0))
    if len(rows) == n:
        return model.transform(graph), n
    around = len(rows) * (1 + graph.edges.nnz / n) ** (encoder.depth - 1)
    near = graph if smooth or around > SHARE * n else graph.by_rows()
    new = model.transform(near, rows=rows).vectors if len(rows) else vectors.vectors[:0]
    names = None if graph.node_names is None else graph.node_names[:]
    return EmbeddingParts(Patched(vectors.vectors, known, rows, new), graph.ids[:], names, model.hash_), len(rows)
