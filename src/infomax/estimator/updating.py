"""Yesterday's model on today's graph: only the vectors within reach of a change are computed again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from infomax.embeddings import Embeddings
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
    """A model whose training goes on, and vectors that those after it are turned onto, if any."""

    model: Fitted
    onto: Embeddings | None


class Update(NamedTuple):
    """A model on a later graph, the vectors of its nodes, what had changed, and how many vectors were computed."""

    model: DGI
    embeddings: Embeddings
    changes: Changes
    computed: int


def updated(model: Fitted, graph: Graph, vectors: Embeddings | None, changes: Changes) -> tuple[Embeddings, int]:
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
    with ThreadPoolExecutor(1) as pool:
        same = np.array_equal(known, np.arange(len(vectors)))
        # Of new nodes the last one's is taken, and replaced.
        copied = pool.submit(vectors.vectors.copy) if same else pool.submit(vectors.vectors.take, known, 0)
        new = model.transform(near, rows=rows).vectors if len(rows) else vectors.vectors[:0]
    out = copied.result()
    out[rows] = new
    names = None if graph.node_names is None else graph.node_names[:]
    return Embeddings(out, graph.ids[:], names, model.hash_), len(rows)
