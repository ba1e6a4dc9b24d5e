"""Pooled parts with half-lives: means along the encoder's paths in which an edge weighs 0.5^(age / half-life).

An edge is as old as the later of its rows. A mean is a ratio, so it does not matter from which day ages are counted:
here it is that of a row's newest edge, and a driver of 1950 has his means as one of today has. Where no edge of a row
has a time they are plain means; beside edges that have one, those without count for ``forever`` alone.
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
from infomax.arrays.times import DAY, UNKNOWN
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.parts.vectors import RECIPE
from infomax.training.history import Array, Rows, times_of
from infomax.training.own import project
from infomax.training.recipe import Recipe
from infomax.views.steps import paths_of

SHORTEST = 1e-12
"""The half-life, in days, that stands for ``latest``."""


class Decayed:
    """The pooled parts ``[N, H * K]`` of the nodes of a graph for H half-lives, computed when rows are asked for."""

    def __init__(self, graph: Graph, recipe: Recipe) -> None:
        self.graph, self.recipe, self.backend = graph, recipe, Backend(torch.device("cpu"))
        self.tables = graph.scaled(recipe.scaler).nodes
        self.paths = paths_of(graph, recipe.encoder.rule)
        self.lives = [max(life, SHORTEST) for life in recipe.half_lives.values()]

    def __getitem__(self, nodes: Any) -> Array:
        """Those of a slice of the nodes, for which all are computed once; or those of some rows."""
        return (
            self._all[nodes] if isinstance(nodes, slice) else self._of(np.asarray(nodes, np.int64))
        )

    @cached_property
    def _all(self) -> Array:
        return self._of(np.arange(self.graph.num_nodes))

    def _of(self, rows: Rows) -> Array:
        ends = [
            np.mean(
                [self._means(self.paths[name], rows) for name in names], axis=0, dtype=np.float32
            )
            for names in self.recipe.ends.values()
        ]
        return np.concatenate(ends, axis=2).reshape(len(rows), -1)

    def _means(self, path: Sequence[Step], rows: Rows) -> Array:
        """The own parts at the end of a path, pooled by means of means, ``[n, H, K]``."""
        step, rest = path[0], path[1:]
        place, senders, weights = step.received(rows)
        needed, at = np.unique(senders, return_inverse=True)
        there = self._means(rest, needed) if rest else self._own(step.sender, needed)
        out = np.empty((len(rows), len(self.lives), there.shape[2]), np.float32)
        here = times_of(self.graph, step.node_type, rows)
        sent = times_of(self.graph, step.sender, needed)
        edges = np.maximum(here[place], sent[at]).astype(np.float64)
        for number, shares in enumerate(self._shares(place, edges, weights)):
            matrix = sparse.csr_array((shares, (place, at)), shape=(len(rows), len(needed)))
            out[:, number] = matrix @ there[:, number]
        return out

    def _own(self, node_type: str, rows: Rows) -> Array:
        """The own parts of some rows, ``[n, H, K]``: the same for each half-life."""
        found = project(
            self.tables[node_type].table[rows], self.recipe.projections[node_type], self.backend
        ).numpy()
        return np.broadcast_to(found[:, None], (len(rows), len(self.lives), found.shape[1]))

    def _shares(self, place: Rows, times: NDArray[np.float64], weights: Array) -> list[Array]:
        """The share ``[E]`` of each edge in the mean of its receiver, for each half-life; by the times of edges."""
        count = int(place.max(initial=-1)) + 1
        newest = np.full(count, float(UNKNOWN))
        np.maximum.at(newest, place, times)
        age = (newest[place] - times) / DAY
        found = []
        for life in self.lives:
            weighed = weights * 0.5 ** (age / life)
            found.append((weighed / np.bincount(place, weighed, count)[place]).astype(np.float32))
        return found


def has_ages(graph: Record, recipe: Recipe) -> bool:
    """Whether rows on a path of the encoder have times, so that half-lives make a difference."""
    steps = [step for path in paths_of(graph, recipe.encoder.rule).values() for step in path]
    return any(
        graph.nodes[node_type].times is not None
        for step in steps
        for node_type in (step.node_type, step.sender)
    )


def check_half_life(graph: Record, vectors: str) -> None:
    """Refuse half-lives where no row has a time, where there is one type of nodes, or no pooled part."""
    if all(one.times is None for one in graph.nodes.values()):
        remedy = "Name the column of times: --time COLUMN (in Python: time=)."
        raise InputError("half_life", "a graph whose rows have times", "one without", remedy)
    if not graph.node_type:
        remedy = "Name the column of times of the edges: then each is a node of type event."
        raise InputError(
            "half_life",
            "rows with times that refer to others, in several types",
            "one type",
            remedy,
        )
    if vectors != RECIPE and "pooled" not in vectors.split(","):
        raise InputError(
            "half_life", "vectors with a pooled part", vectors, "Leave out vectors, or add pooled."
        )
