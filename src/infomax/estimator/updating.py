"""Yesterday's model on today's graph: only the vectors within reach of a change are computed again."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from infomax.embeddings import Embeddings
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.changes import Changes, rows_before
from infomax.views.propagation import Normalisation

if TYPE_CHECKING:
    from infomax.estimator import DGI

SHARE = 0.25
"""Where vectors depend on a larger share of the nodes than this, one pass over all nodes is faster."""


class Update(NamedTuple):
    """A model on a later graph, the vectors of its nodes, what had changed, and how many vectors were computed."""

    model: DGI
    embeddings: Embeddings
    changes: Changes
    computed: int


def update(
    model: Any, graph: Graph, vectors: Embeddings | None, *, train: bool, align: bool, run: Any, progress: Any
) -> Update:
    """See `DGI.update`."""
    if align and not train:
        raise InputError("align", "train as well: then all vectors change", "weights that stay as they are")
    changes = Changes.of(model.graph_, graph)
    if vectors is not None and vectors.model not in ("", model.hash_):
        raise InputError("vectors", "those of this model, with its settings", "those of another")
    if train:
        later = type(model)(preset=model.preset_, seed=model.seed_, device=model.device)
        later._start, later._onto = model, (vectors or model.transform(model.graph_)) if align else None
        later.fit(graph, run=run, progress=progress)
        return Update(later, later._kept, changes, len(later._kept))
    later = copy(model)
    later.graph_, later._known, later._own = graph, None, dict(model._own)
    later._kept, computed = _computed(later, graph, vectors, changes)
    if run is not None:
        later.save(run)
    return Update(later, later._kept, changes, computed)


def keep_turned(model: Any) -> None:
    """Let a model keep its vectors after a training that went on, turned onto those before where that is asked for."""
    model.health_  # noqa: B018  of vectors as they were trained
    found = model.transform(model.graph_)
    if model._onto is not None:
        turn = found.rotation(model._onto)
        model._turn = torch.from_numpy(turn)
        found = dataclasses.replace(found, vectors=found.vectors @ turn, model=model.hash_)
    model._kept = found


def _computed(model: DGI, graph: Graph, vectors: Embeddings | None, changes: Changes) -> tuple[Embeddings, int]:
    """The vectors of a later graph: yesterday's, and those within reach of a change; and the number of these."""
    if vectors is None or graph.kind:  # along paths of relations a change may reach any node
        return model.transform(graph), graph.num_nodes
    encoder, smooth = model.model_.encoder, model.preset_.smooth
    senders_weigh = Normalisation.of(encoder.rule).right != 0
    known = rows_before(vectors.ids, graph.ids[:])
    reached = changes.reach(encoder.depth + smooth, senders_weigh=senders_weigh) | (known < 0)
    rows, n = np.flatnonzero(reached), graph.num_nodes
    if len(rows) == n:
        return model.transform(graph), n
    around = len(rows) * (1 + graph.edges.nnz / n) ** (encoder.depth - 1)
    near = graph if smooth or around > SHARE * n else dataclasses.replace(graph, table=graph.table.by_rows())
    with ThreadPoolExecutor(1) as pool:
        copied = pool.submit(vectors.vectors.take, known, 0)  # of new nodes the last one's, which is replaced
        new = model.transform(near, rows=rows).vectors if len(rows) else vectors.vectors[:0]
    out = copied.result()
    out[rows] = new
    names = None if graph.node_names is None else graph.node_names[:]
    return Embeddings(out, graph.ids[:], names, model.hash_), len(rows)
