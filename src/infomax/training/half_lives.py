"""Pooled parts with half-lives: means along the encoder's paths in which old edges weigh less.

An edge weighs 0.5^(age / half-life), and is as old as the later of its rows. A mean is a ratio, so
it does not matter from which day ages are counted: here it is the day of a row's newest edge, and a
driver of 1950 has his means as one of today has. Where no edge of a row has a time, its means are
plain. Where some edges have a time, those without count for the half-life ``forever`` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.relations import Step
from infomax.arrays.times import DAY_IN_MICROSECONDS, UNKNOWN_TIME
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.parts.vectors import RECIPE
from infomax.training.history import Array, Rows, times_of
from infomax.training.own_features import project
from infomax.training.recipe import Recipe
from infomax.views.steps import paths_of

SHORTEST_HALF_LIFE = 1e-12
"""The half-life, in days, that stands for ``latest``."""


class HalfLifeMeans:
    """The pooled parts ``[N, H * K]`` of the nodes of a graph for H half-lives.

    They are computed when rows are asked for.
    """

    def __init__(self, graph: Graph, recipe: Recipe) -> None:
        self.graph = graph
        self.recipe = recipe
        self.backend = Backend(torch.device("cpu"))
        self.nodes = graph.scaled(recipe.scaler).nodes
        self.paths = paths_of(graph, recipe.encoder.rule)
        self.half_lives = [
            max(half_life, SHORTEST_HALF_LIFE) for half_life in recipe.half_lives.values()
        ]

    def __getitem__(self, nodes: Any) -> Array:
        """The pooled parts of a slice of the nodes, or of some rows.

        Whoever asks for a slice will ask for others, so those of all nodes are computed once.
        """
        if isinstance(nodes, slice):
            return self._of_all_nodes[nodes]
        return self._of_rows(np.asarray(nodes, np.int64))

    @cached_property
    def _of_all_nodes(self) -> Array:
        return self._of_rows(np.arange(self.graph.num_nodes))

    def _of_rows(self, rows: Rows) -> Array:
        """The pooled parts of some rows: by half-life, one of each type at the end of paths."""
        means_of_types = []
        for path_names in self.recipe.paths_by_end_type.values():
            means = [self._means(self.paths[name], rows) for name in path_names]
            means_of_types.append(np.mean(means, axis=0, dtype=np.float32))
        return np.concatenate(means_of_types, axis=2).reshape(len(rows), -1)

    def _means(self, path: Sequence[Step], rows: Rows) -> Array:
        """The own parts at the end of a path, pooled by means of means, ``[n, H, K]``."""
        step, *further_steps = path
        edge_rows, senders, weights = step.received(rows)
        sending_nodes, edge_senders = np.unique(senders, return_inverse=True)
        if further_steps:
            sent = self._means(further_steps, sending_nodes)
        else:
            sent = self._own_parts(step.sender, sending_nodes)

        # An edge is as old as the later of its rows.
        receiver_times = times_of(self.graph, step.node_type, rows)
        sender_times = times_of(self.graph, step.sender, sending_nodes)
        edge_times = np.maximum(receiver_times[edge_rows], sender_times[edge_senders])

        means = np.empty((len(rows), len(self.half_lives), sent.shape[2]), np.float32)
        shares_of_half_lives = self._shares(edge_rows, edge_times.astype(np.float64), weights)
        for half_life_index, shares in enumerate(shares_of_half_lives):
            matrix = sparse.csr_array(
                (shares, (edge_rows, edge_senders)), shape=(len(rows), len(sending_nodes))
            )
            means[:, half_life_index] = matrix @ sent[:, half_life_index]
        return means

    def _own_parts(self, node_type: str, rows: Rows) -> Array:
        """The own parts of some rows, ``[n, H, K]``: the same for each half-life."""
        features = self.nodes[node_type].table[rows]
        own = project(features, self.recipe.projections[node_type], self.backend).numpy()
        return np.broadcast_to(own[:, None], (len(rows), len(self.half_lives), own.shape[1]))

    def _shares(
        self, edge_rows: Rows, edge_times: NDArray[np.float64], weights: Array
    ) -> list[Array]:
        """The share ``[E]`` of each edge in the mean of its receiver, for each half-life."""
        row_count = int(edge_rows.max(initial=-1)) + 1
        newest = np.full(row_count, float(UNKNOWN_TIME))
        np.maximum.at(newest, edge_rows, edge_times)
        ages = (newest[edge_rows] - edge_times) / DAY_IN_MICROSECONDS

        shares_of_half_lives: list[Array] = []
        for half_life in self.half_lives:
            aged_weights = weights * 0.5 ** (ages / half_life)
            weight_sums = np.bincount(edge_rows, aged_weights, row_count)
            shares_of_half_lives.append((aged_weights / weight_sums[edge_rows]).astype(np.float32))
        return shares_of_half_lives


def has_ages(graph: Record, recipe: Recipe) -> bool:
    """Whether rows on a path of the encoder have times, so that half-lives make a difference."""
    for path in paths_of(graph, recipe.encoder.rule).values():
        for step in path:
            for node_type in (step.node_type, step.sender):
                if graph.nodes[node_type].times is not None:
                    return True
    return False


def check_half_life(graph: Record, vectors: str) -> None:
    """Refuse half-lives where they make no difference.

    That is so where no row has a time, where there is one type of nodes, or no pooled part.
    """
    if all(nodes.times is None for nodes in graph.nodes.values()):
        expected = "a graph whose rows have times"
        remedy = "Name the column of times: --time COLUMN (in Python: time=)."
        raise InputError("half_life", expected, "one without", remedy)
    if not graph.has_named_types:
        expected = "rows with times that refer to others, in several types"
        remedy = "Name the column of times of the edges: then each is a node of type event."
        raise InputError("half_life", expected, "one type", remedy)
    if vectors != RECIPE and "pooled" not in vectors.split(","):
        expected = "vectors with a pooled part"
        raise InputError("half_life", expected, vectors, "Leave out vectors, or add pooled.")
