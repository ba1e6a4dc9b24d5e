"""New nodes in a graph of several types: the means along paths from them, which read only what is around them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from infomax.arrays.adjacency import Entries, spans
from infomax.arrays.made import made
from infomax.arrays.positions import attached
from infomax.arrays.relations import Step, steps
from infomax.arrays.scaling import Scaler
from infomax.arrays.sparsity import dense
from infomax.arrays.table import Features, Table
from infomax.io.attach import NewEdges
from infomax.io.attach_types import standing
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.views.propagation import Rule
from infomax.views.steps import no_path, paths_of
from infomax.views.view import AllNodes

_NONE: NewEdges = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


@dataclass(frozen=True, eq=False)
class NewNodes(AllNodes):
    """The view of M new nodes, along paths.

    Shapes:
        means: by path, the means of means of the features at its end, ``[M, F]``
        features: ``[M, F]``, their own, scaled
    """

    means: Mapping[str, Tensor]
    features: Tensor
    backend: Backend

    @property
    def n(self) -> int:
        """M."""
        return len(self.features)

    def blocks(self) -> Callable[[int, int], NewNodes]:
        """A function of (start, stop) that returns the view of these of the new nodes."""

        def block(start: int, stop: int) -> NewNodes:
            means = {path: mean[start:stop] for path, mean in self.means.items()}
            return dataclasses.replace(self, means=means, features=self.features[start:stop])

        return block

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ."""
        return (self.features if h is None else h) @ weight

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """The mean of means along a path of X Θ of the type at its end."""
        return self.means[path] @ weight

    def pool(self, h: Tensor, start: int, stop: int) -> Tensor:
        """Refuse: there is no way from a type to itself that all such graphs have."""
        raise no_path()


class Reached(NamedTuple):
    """The nodes at the end of a path from new nodes, each with its share of the mean; E pairs of them.

    Shapes:
        start: ``[E]``, numbers of new nodes, ascending
        rows: ``[E]``, rows of a type; those from N on are the new nodes
        shares: ``[E]``
    """

    start: NDArray[np.int64]
    rows: NDArray[np.int64]
    shares: NDArray[np.float64]


class Newcomers:
    """M new nodes of the type that a graph is seen from, with edges to known nodes and none among each other.

    Args:
        graph: the known graph.
        links: by step, the edges by which they receive; where messages run both ways, known nodes receive by them too.
        features: ``[M, F]``; None: made of the edges, as those of the known nodes are.
        count: M.
    """

    def __init__(self, graph: Record, links: Mapping[Step, NewEdges], features: Features | None, count: int) -> None:
        self.graph, self.count = graph, count
        kept = {step: weights > 0 for step, (*_, weights) in links.items()}
        self.links: dict[Step, NewEdges] = {
            step: (rows[kept[step]], new[kept[step]], weights[kept[step]])
            for step, (rows, new, weights) in links.items()
        }
        self.features = self._made() if features is None else features

    def view(self, rule: Rule, scaler: Scaler, backend: Backend) -> tuple[NewNodes, Table]:
        """Their view along the paths of an encoder, and their own features, scaled."""
        own, means, new = scaler.transform(self.features), dict[str, Tensor](), np.arange(self.count)

        @cache  # paths share their first steps
        def reached(path: tuple[Step, ...]) -> Reached:
            if not path:
                return Reached(new, self.graph.num_nodes + new, np.ones(self.count))
            return self._reach(reached(path[:-1]), path[-1])

        for name, path in paths_of(self.graph, rule).items():
            kind, (start, rows, shares) = path[-1].sender, reached(tuple(path))
            own_type = kind == self.graph.kind
            late = rows >= self.graph.nodes[kind].num_nodes
            found, at = np.unique(rows[~late], return_inverse=True)
            x = (scaler if own_type else scaler.others[kind]).transform(self._features(kind, found))
            mean = dense(_matrix(start[~late], at, shares[~late], (self.count, len(found))) @ x)
            if late.any():
                at = rows[late] - self.graph.num_nodes
                mean = mean + dense(_matrix(start[late], at, shares[late], (self.count, self.count)) @ own)
            means[name] = _tensor(mean, backend)
        return NewNodes(means, _tensor(dense(own), backend), backend), Table(own)

    def _reach(self, at: Reached, step: Step) -> Reached:
        """One step further, by means over those who send to the nodes where a path has come to."""
        old = np.flatnonzero(at.rows < len(step.senders.indptr) - 1)
        place, senders, weights = step.senders.of(at.rows[old])
        new_place, new_senders, new_weights = self._received(step, at.rows)
        place, senders = np.concatenate([old[place], new_place]), np.concatenate([senders, new_senders])
        weights = np.concatenate([weights, new_weights]).astype(np.float64)
        shares = at.shares[place] * weights / np.bincount(place, weights, len(at.rows))[place]
        width = int(senders.max(initial=0)) + 1
        pairs, number = np.unique(at.start[place] * width + senders, return_inverse=True)
        return Reached(pairs // width, pairs % width, np.bincount(number, shares, len(pairs)).astype(np.float64))

    def _received(self, step: Step, rows: NDArray[np.int64]) -> Entries:
        """The edges of new nodes by which rows receive in a step: the place of each, the sender, and the weight."""
        relation, kind, n = step.relation, self.graph.kind, self.graph.num_nodes
        known, new, weights = self.links.get(Step(relation, kind), _NONE)
        both = not relation.directed
        ends = [(n + new, known, weights)] if step.kind == kind else []
        ends += [(known, n + new, weights)] if step.sender == kind and both else []
        receivers, senders, weights = map(np.concatenate, zip(_NONE, *ends, strict=True))
        order = np.argsort(receivers, kind="stable")
        first, last = (np.searchsorted(receivers[order], rows, side) for side in ("left", "right"))
        place, at = spans(first, last - first)
        return place, senders[order][at], weights[order][at]

    def _made(self) -> Features:
        """Features ``[M, F]`` made of the edges."""
        if made(self.graph.feature_names) == "degrees":
            degrees = sum(np.bincount(new, minlength=self.count) for _, new, _ in self.links.values())
            return self.graph.table.of_degrees(np.zeros(self.count, np.int64) + degrees)[:]
        x, links = [np.empty((0, self.graph.num_features), np.float32)], [sparse.csr_array((self.count, 0))]
        for step, (rows, new, weights) in self.links.items():
            found, at = np.unique(rows, return_inverse=True)
            x.append(standing(self.graph.target(step.sender), found))
            links.append(_matrix(new, at, weights, (self.count, len(found))))
        links.append(sparse.csr_array((self.count, self.count)))
        return attached(sparse.csr_array(sparse.hstack(links)), np.concatenate(x))

    def _features(self, kind: str, rows: NDArray[np.int64]) -> Features:
        """The features ``[n, F]`` of some known nodes of a type; degrees count the new edges."""
        known = self.graph.nodes[kind]
        if made(known.feature_names) != "degrees":
            return known.table[rows]
        degrees = np.zeros(len(rows), np.int64)
        for step in steps(self.graph.relations, kind):
            degrees += step.senders.indptr[rows + 1] - step.senders.indptr[rows]
            degrees += np.bincount(self._received(step, rows)[0], minlength=len(rows))
        return known.table.of_degrees(degrees)[:]


def _matrix(
    rows: NDArray[np.int64], columns: NDArray[np.int64], values: NDArray[Any], shape: tuple[int, int]
) -> sparse.csr_array:
    return sparse.csr_array((values.astype(np.float32), (rows, columns)), shape=shape)


def _tensor(rows: NDArray[np.float32], backend: Backend) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(rows, np.float32)).to(backend.device)
