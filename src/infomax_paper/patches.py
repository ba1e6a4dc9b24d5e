"""Patches: sampled trees of neighbours around a batch of nodes, the paper's regime for Reddit.

>>> from infomax_paper.patches import PATCHES, Patches
>>> DGI(preset=PATCHES).fit(graph)
>>> DGI(preset=PATCHES, views=partial(Patches, fan_out=(10, 10, 25), batch=256)).fit(graph)

Exact batches of the preset "batches" learn more in less time; this is here for the paper's sake.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import mul
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax import memory
from infomax.errors import InputError, check_whole_number, format_count
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.kernels.ranks import Portion
from infomax.parts.corruptions import SAME_SHAPE_CORRUPTIONS
from infomax.parts.encoders import SkipMeanPool
from infomax.training.part_names import register_parts
from infomax.training.presets import Preset
from infomax.training.schedule import ConstantRate
from infomax.views.operands import Operand, multiply, to_gather
from infomax.views.propagation import Normalisation
from infomax.views.view import Corruption, Sizes, View, Views
from infomax_paper.trees import Tree, gather_tree, permutations, pool_tree

FAN_OUT, BATCH = (10, 10, 25), 256
"""The paper's, for Reddit."""

Weighting = Literal["sample", "degree"]
"""How a node with k sampled neighbours and the degree d is weighted in its mean: by 1 / (k + 1) or by 1 / (d + 1)."""


@dataclass(frozen=True)
class Neighbours:
    """The neighbours from which each node receives messages, stored for sampling.

    Shapes:
        starts: ``[N + 1]``, node i receives from ``senders[starts[i] : starts[i + 1]]``
        senders: ``[E]``
        reach: ``[E]`` float64, cumulative sum of the weights; None if all are 1
        share: ``[N]``, the neighbours' share of a node's mean, d / (d + 1) for the sum d of their weights
    """

    starts: Tensor
    senders: Tensor
    reach: Tensor | None
    share: Tensor

    @classmethod
    def of(cls, graph: Record, device: torch.device) -> Neighbours:
        """Put the neighbours in a graph on the device; in a directed graph, the in-neighbours."""
        received = graph.edges.senders.matrix(graph.num_nodes)
        degree = torch.from_numpy(received.sum(axis=1))
        return cls(
            torch.from_numpy(received.indptr).long().to(device),
            torch.from_numpy(received.indices).to(device),
            torch.from_numpy(received.data).double().cumsum(0).to(device)
            if graph.weighted
            else None,
            (degree / (degree + 1)).float().to(device),
        )

    def draw(self, nodes: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Draw neighbours by weight, with replacement, ``[n] -> [n, count]``; an isolated node draws itself."""
        return self.pick(
            nodes, torch.rand(len(nodes), count, generator=generator, device=nodes.device)
        )

    def pick(self, nodes: Tensor, chance: Tensor) -> Tensor:
        """As `draw`, with random numbers from 0 to 1, ``[n, count]``."""
        first, last = self.starts[nodes], self.starts[nodes + 1]
        if self.reach is None:
            degree = (last - first)[:, None]
            drawn = first[:, None] + (chance * degree).long().clamp_(max=degree - 1)
        else:
            below = torch.where(first > 0, self.reach[first - 1], 0)[:, None]
            above = self.reach[(last - 1).clamp(min=0)][:, None]
            drawn = torch.searchsorted(
                self.reach, below + chance.double() * (above - below), right=True
            )
            drawn = torch.minimum(torch.maximum(drawn, first[:, None]), last[:, None] - 1)
        alone = (first == last)[:, None]
        drawn = (
            self.senders[drawn.clamp_(min=0, max=max(len(self.senders) - 1, 0))]
            if len(self.senders)
            else drawn
        )
        return torch.where(alone, nodes[:, None], drawn.long())


def check_fan_out(fan_out: Any) -> tuple[int, ...]:
    """Check the numbers of neighbours to draw on each level; returns plain ints."""
    return tuple(check_whole_number("fan_out", count, 1) for count in fan_out)


def level_sizes(batch: int, fan_out: tuple[int, ...]) -> list[int]:
    """Return the number of nodes on each level of a batch of patches: B, B k_1, B k_1 k_2, ..."""
    return list(accumulate(fan_out, mul, initial=batch))


def sample_patches(
    neighbours: Neighbours,
    centres: Tensor,
    fan_out: tuple[int, ...],
    generator: torch.Generator,
    rows: slice = slice(None),
) -> Tensor:
    """Draw the nodes of the patches around B centres, ``[B, 1 + k_1 + k_1 k_2 + ...]``, level by level.

    ``rows`` returns some of the patches, from the random numbers of all.
    """
    widths = level_sizes(1, fan_out)
    device = centres.device
    levels = [centres[rows]]
    for width, count in zip(widths, fan_out, strict=False):
        chance = torch.rand(len(centres) * width, count, generator=generator, device=device)
        mine = chance.view(len(centres), width, count)[rows].reshape(-1, count)
        levels.append(neighbours.pick(levels[-1], mine).view(-1))
    return torch.cat(
        [level.view(-1, width) for level, width in zip(levels, widths, strict=True)], dim=1
    )


def by_level(rows: Tensor, fan_out: tuple[int, ...]) -> list[Tensor]:
    """Split patches ``[B, P]`` into flat levels: a node's children are contiguous, in the order of their parents."""
    return [level.reshape(-1) for level in rows.split(level_sizes(1, fan_out), dim=1)]


@dataclass(frozen=True, eq=False)
class PatchView:
    """A batch of patches: trees of sampled neighbours around B centres.

    Level 0 has the centres, level l + 1 the ``fan_out[l]`` neighbours drawn for each node of level l. H is stored level
    by level, and every layer drops the outermost level.

    Shapes:
        features: ``[T, F]``, the table of all nodes' features
        rows: ``[B, P]``, the row of the table for each node of each patch; see `sample_patches`
        share: ``[m]``, the neighbours' share of the mean, for every node but the outermost level, level by level
    """

    features: Operand
    rows: Tensor
    share: Tensor
    fan_out: tuple[int, ...]
    backend: Backend
    trees: dict[tuple[int, ...], Tree]
    """Trees by the sizes of their levels; all batches share them."""
    portion: Portion
    """Which part of a batch these patches are."""
    received: Tensor | None
    """Without self-loops, ``[m]``: 1 for a node that has neighbours, 0 for one that pools nothing."""

    def shuffled(self, generator: torch.Generator) -> PatchView:
        """The same patches with the features shuffled among the nodes of each patch."""
        order = permutations(
            self.backend, self.portion.nodes, self.rows.shape[1], generator, self.portion.rows
        )
        return dataclasses.replace(self, rows=self.rows.gather(1, order))

    def at(self, k: int) -> PatchLayer:
        """The levels that layer k reads: all of them for the first, one less for each layer."""
        return PatchLayer(self, len(self.fan_out) + 1 - k)


class PatchLayer:
    """The first levels of a batch of patches; a layer computes all of them but the outermost."""

    def __init__(self, view: PatchView, levels: int) -> None:
        self.view, self.levels, self.backend = view, levels, view.backend
        self.sizes = tuple(level_sizes(len(view.rows), view.fan_out)[:levels])
        self._last: tuple[Any, tuple[Tensor, Tensor]] | None = None

    def carry(self, h: Tensor) -> Tensor:
        """H without the outermost level."""
        return h[: sum(self.sizes[:-1])]

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ without the outermost level."""
        return self._side(0, h, weight)

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ without the outermost level; P is that of the sampled tree, or an estimate of the graph's."""
        return self._side(1, h, weight)

    def _side(self, side: int, h: Tensor | None, weight: Tensor) -> Tensor:
        # Dense features are averaged before the product, so the outermost level is never stored. Sparse ones are
        # multiplied first: that costs little, and gives dense rows to gather.
        x = self.view.features
        if h is None and not isinstance(x, Tensor):
            return self._received(*self._gather(x @ weight))[side]
        if (
            self._last is None or self._last[0] is not h
        ):  # both sides of a layer need the same two tensors
            if h is None:
                sides = self._gather(x)
            else:
                sides = pool_tree(self.backend, h, *self._tree())
            self._last = h, self._received(*sides)
        return multiply(self._last[1][side], weight, self.backend)

    def _received(self, own: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
        """Clear the mean of nodes that receive nothing: they drew themselves."""
        received = self.view.received
        return own, mean if received is None else mean * received[: len(mean), None]

    def _gather(self, table: Any) -> tuple[Tensor, Tensor]:
        rows = torch.cat(by_level(self.view.rows, self.view.fan_out)[: self.levels])
        return gather_tree(self.backend, table, rows, *self._tree())

    def _tree(self) -> tuple[Tree, Tensor]:
        trees = self.view.trees
        if self.sizes not in trees:
            trees[self.sizes] = Tree.of(self.sizes, self.view.rows.device)
        return trees[self.sizes], self.view.share[: sum(self.sizes[:-1])]


class Patches(Views):
    """Pairs of a batch of sampled patches and a corruption of it; one summary per batch.

    With the weighting "sample", the paper's, a patch is a graph of its own: a node with k sampled neighbours has the
    weight 1 / (k + 1) in its mean. With "degree" it has 1 / (d + 1), as in the whole graph, and the sampled P has the
    graph's P as its expectation.
    """

    uniform = True
    corruptions = ("shuffle_within_patches",)
    needs_kernels = True
    divisible = True
    takes_batches = True
    pools_along_paths = False

    def __init__(
        self,
        graph: Record,
        rule: Normalisation,
        corruption: Corruption,
        backend: Backend,
        *,
        fan_out: Sequence[int] = FAN_OUT,
        batch: int = BATCH,
        weighting: Weighting = "sample",
    ) -> None:
        if (rule.left, rule.right) != (1, 0):
            raise InputError(
                "patches", "an encoder that pools by the mean", f"one that asks for {rule}"
            )
        if weighting not in get_args(Weighting):
            raise InputError("weighting", " or ".join(get_args(Weighting)), repr(weighting))
        self.weighting, self.loops = weighting, rule.loops
        self.fan_out, self.trees = check_fan_out(fan_out), dict[tuple[int, ...], Tree]()
        self.batch, self.corruption = check_whole_number("batch", batch, 1), corruption
        self.backend = backend
        self.neighbours = Neighbours.of(graph, self.backend.device)
        self.features = to_gather(graph.table, self.backend)
        self.n = graph.num_nodes
        self.steps = -(-self.n // self.batch)

    @classmethod
    def bytes(
        cls,
        graph: Record,
        sizes: Sizes,
        device: torch.device,
        *,
        fan_out: Sequence[int] = FAN_OUT,
        batch: int = BATCH,
        **bound: Any,
    ) -> int:
        """Estimate the peak bytes of a training."""
        fan_out, batch = check_fan_out(fan_out), check_whole_number("batch", batch, 1)
        rows, inner = sum(level_sizes(batch, fan_out)), sum(level_sizes(batch, fan_out[:-1]))
        # Includes half as much again, for gaps between the allocator's freed blocks.
        activations = 24 * rows + 12 * inner * (2 * graph.num_features + 8 * sizes.dim)
        held = memory.gathered_bytes(graph, device) + memory.edges_bytes(graph, 24)
        return held + activations + memory.weights_bytes(graph, sizes.dim)

    def prepare(self, layers: int) -> None:
        """Raise InputError unless the encoder has one layer per number of the fan-out, so that only centres remain."""
        if layers != len(self.fan_out):
            levels = ",".join(map(str, self.fan_out))
            expected = f"{format_count(len(self.fan_out), 'layer')}, one for each number of the fan-out {levels}"
            remedy = f"Give a fan-out of {format_count(layers, 'number')}: fan_out=."
            raise InputError("encoder", expected, str(layers), remedy)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """Every node once as a centre, in random order: ``[B]`` of them per batch."""
        order = torch.randperm(self.n, generator=generator, device=generator.device)
        return (order[start : start + self.batch] for start in range(0, self.n, self.batch))

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """Patches around B centres, and a corruption of them."""
        view = self.around(batch, generator)
        return view, self.corruption(view, generator)

    def nodes(self, batch: Tensor, positive: View) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The centres."""
        centres = batch.cpu().numpy()
        return centres, centres

    def around(self, centres: Tensor, generator: torch.Generator) -> PatchView:
        """Patches around B centres, or this rank's part of them."""
        portion = Portion.of(len(centres), self.ranks)
        rows = sample_patches(self.neighbours, centres, self.fan_out, generator, portion.rows)
        inner, received = by_level(rows, self.fan_out)[:-1], None
        if not self.loops:
            nodes = torch.cat(inner)
            share = torch.ones(len(nodes), device=rows.device)
            received = (self.neighbours.starts[nodes + 1] > self.neighbours.starts[nodes]).float()
        elif self.weighting == "degree":
            share = self.neighbours.share[torch.cat(inner)]
        else:
            full = partial(torch.full, dtype=torch.float32, device=rows.device)
            counts = zip(inner, self.fan_out, strict=True)
            share = torch.cat([full((len(level),), count / (count + 1)) for level, count in counts])
        return PatchView(
            self.features, rows, share, self.fan_out, self.backend, self.trees, portion, received
        )


def shuffle_within_patches(view: PatchView, generator: torch.Generator) -> PatchView:
    """The same patches with the features shuffled among the nodes of each patch."""
    return view.shuffled(generator)


# So that a GPU replays a step of patches, and a run folder that names these parts can be read.
SAME_SHAPE_CORRUPTIONS.add(shuffle_within_patches)
register_parts(Patches, shuffle_within_patches)

PATCHES = Preset(
    name="patches",
    views=partial(Patches, fan_out=FAN_OUT, batch=BATCH, weighting="sample"),
    encoder=partial(SkipMeanPool, layers=3),
    corruption=shuffle_within_patches,
    schedule=ConstantRate,
    lr=1e-5,
    epochs=150,
)
"""The paper's set-up for Reddit."""
