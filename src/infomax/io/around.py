"""New nodes with what is around them: the part of a graph that their vectors depend on."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import MemoryAdjacency
from infomax.arrays.made import made
from infomax.arrays.positions import attached
from infomax.arrays.table import MemoryTable
from infomax.io.record import Record

Links = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""Edges ``[E]`` of new nodes: the rows at their known ends, the numbers of the new nodes from 0 on, and weights."""


def attach_near(known: Record, count: int, links: Links, features: Any, passes: int) -> Record:
    """So many new nodes, the last, and all nodes that their vectors depend on after so many passes, in memory.

    Edges run one way here. Nodes at the last hop have lost their senders: one more node sends to each as much as they
    did. So all have the degrees by which messages are weighted.

    Args:
        known: the graph.
        count: M.
        links: their edges; of a directed graph those that end in them.
        features: ``[M, F]``; None: positions or degree features, as the known ones are.
        passes: layers of the encoder and hops of smoothing.
    """
    rows, new, weights = links
    inner, nodes = rows[:0], np.unique(rows)
    for _ in range(passes - 1):
        inner, nodes = nodes, np.union1d(nodes, known.edges.received(nodes)[1])
    outer, n, at = np.setdiff1d(nodes, inner), len(nodes), np.searchsorted(nodes, rows)
    place, senders, values = known.edges.received(inner)
    lost, _, sent = known.edges.received(outer)
    late, both = n + 1 + new, not known.directed
    source = [np.searchsorted(nodes, senders), np.full(len(outer), n), at, *([late] if both else [])]
    target = [np.searchsorted(nodes, inner)[place], np.searchsorted(nodes, outer), late, *([at] if both else [])]
    weight: list[Any] = [values, np.bincount(lost, sent, len(outer)), weights, *([weights] if both else [])]
    ends = np.concatenate(source), np.concatenate(target)
    entries = np.concatenate(weight).astype(np.float32)
    matrix = sparse.csr_array((entries, ends), shape=(n + 1 + count, n + 1 + count))
    matrix.eliminate_zeros()
    if features is None and made(known.feature_names) == "degrees":
        degrees = np.append(known.edges.degrees()[nodes] + np.bincount(at, minlength=n), 0)
        table = known.table.of_degrees(np.append(degrees, np.bincount(new, minlength=count)))
    else:
        if features is None:
            joined = sparse.csr_array((weights, (new, at)), shape=(count, n + count))
            features = attached(joined, known.table[nodes])
        empty = np.zeros((1, known.num_features), np.float32)
        table = MemoryTable(known.table[nodes]).grown(empty).grown(features)
    return dataclasses.replace(
        known,
        edges=MemoryAdjacency(matrix, directed=True),
        table=table,
        ids=np.arange(n + 1 + count),
        labels={},
        splits={},
        held_out=None,
        folder=None,
    )
