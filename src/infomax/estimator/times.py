"""Answers: what a fitted model knows of rows as of the time of each question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.made import made
from infomax.arrays.sparsity import dense
from infomax.arrays.times import HALF_LIVES, parse_half_lives
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.questions import Answers, read_questions
from infomax.training.health import spread
from infomax.training.history import History
from infomax.training.recipe import FITTED, blocks, own_projection

if TYPE_CHECKING:
    from infomax.estimator.vectors import Fitted


def answer(
    model: Fitted, questions: Any, graph: Graph, half_life: Any = None, id: str | None = None, time: str | None = None
) -> Answers:
    """What `DGI.at` returns."""
    if all(one.times is None for one in graph.nodes.values()):
        remedy = "Name the column of times when the graph is read: --time COLUMN (in Python: time=)."
        raise InputError("graph", "rows with times", "none", remedy)
    table, rows, times = read_questions(questions, graph, id, time)
    history = history_of(model, graph, half_life)
    return Answers(table, history.at(rows, times), history.names, model.hash_)


def history_of(model: Fitted, graph: Graph, half_life: Any = None) -> History:
    """The history of a graph, its columns scaled and projected by the graph that a model was fitted to."""
    lives = parse_half_lives(half_life or HALF_LIVES)
    seen = model.graph_.seen().scaled(model.scaler_)
    scaled, tables, names = graph.scaled(model.scaler_), {}, {}
    for kind, nodes in scaled.nodes.items():
        own, known = seen.nodes[kind], nodes.feature_names
        if made(known):
            tables[kind], names[kind] = np.zeros((nodes.num_nodes, 0), np.float32), list[str]()
            continue
        projection = own_projection(own.table, spread(own.num_nodes, FITTED))
        rows = blocks(nodes.table, np.arange(nodes.num_nodes))
        tables[kind] = np.concatenate([_projected(one, projection.numpy()) for one in rows])
        width = projection.shape[1]
        names[kind] = list(known) if width == len(known) else [f"own {at} of {width}" for at in range(1, width + 1)]
    return History(graph, tables, names, lives)


def _projected(features: Any, projection: NDArray[np.float32]) -> NDArray[np.float32]:
    """The own part ``[n, K]`` of scaled features ``[n, F]``, row by row: other rows do not change the bits of one."""
    if projection.shape[0] == projection.shape[1]:  # of few features, which are only divided
        return np.asarray(dense(features) * projection.diagonal(), np.float32)
    return np.asarray(sparse.csr_array(features) @ projection, np.float32)
