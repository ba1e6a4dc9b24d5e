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
from infomax.views.view import Corruption, Sizes, View, Views, WithoutEdges
from infomax_paper.trees import Tree, gather_tree, permutations, pool_tree

FAN_OUT = (10, 10, 25)
"""The paper's numbers of neighbours that are drawn on each level, for Reddit."""
BATCH = 256
"""The paper's number of patches per step, for Reddit."""

Weighting = Literal["sample", "degree"]
"""The weight of a node in its mean, with k sampled neighbours and the degree d: 1 / (k + 1) for
"sample", 1 / (d + 1) for "degree"."""


@dataclass(frozen=True)
class Neighbours:
    """The neighbours from which each node receives messages, stored for sampling.

    Shapes:
        starts: ``[N + 1]``, node i receives from ``senders[starts[i] : starts[i + 1]]``
        senders: ``[E]``
        weight_sums: ``[E]`` float64, cumulative sum of the weights; None if all are 1
        share: ``[N]``, the neighbours' share of a node's mean, d / (d + 1) for the sum d of their
            weights
    """

    starts: Tensor
    senders: Tensor
    weight_sums: Tensor | None
    share: Tensor

    @classmethod
    def of(cls, graph: Record, device: torch.device) -> Neighbours:
        """Put the neighbours in a graph on the device; in a directed graph, the in-neighbours."""
        received = graph.edges.senders.matrix(graph.num_nodes)
        starts = torch.from_numpy(received.indptr).long()
        senders = torch.from_numpy(received.indices)
        degree = torch.from_numpy(received.sum(axis=1))
        share = (degree / (degree + 1)).float()
        weight_sums = None
        if graph.weighted:
            weight_sums = torch.from_numpy(received.data).double().cumsum(0).to(device)
        return cls(starts.to(device), senders.to(device), weight_sums, share.to(device))

    def draw(self, nodes: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Draw neighbours by weight, with replacement, ``[n] -> [n, count]``; an isolated node
        draws itself."""
        chance = torch.rand(len(nodes), count, generator=generator, device=nodes.device)
        return self.pick(nodes, chance)

    def pick(self, nodes: Tensor, chance: Tensor) -> Tensor:
        """As `draw`, with random numbers ``chance`` from 0 to 1, ``[n, count]``."""
        first = self.starts[nodes]
        last = self.starts[nodes + 1]
        if self.weight_sums is None:
            degree = (last - first)[:, None]
            entries = first[:, None] + (chance * degree).long().clamp_(max=degree - 1)
        else:
            # Where the random share of a node's weights is reached in the sums over all nodes.
            sum_before = torch.where(first > 0, self.weight_sums[first - 1], 0)[:, None]
            sum_after = self.weight_sums[(last - 1).clamp(min=0)][:, None]
            threshold = sum_before + chance.double() * (sum_after - sum_before)
            entries = torch.searchsorted(self.weight_sums, threshold, right=True)
            # Rounding may lead to an entry of another node.
            entries = torch.minimum(torch.maximum(entries, first[:, None]), last[:, None] - 1)

        neighbours = entries
        if len(self.senders) > 0:
            neighbours = self.senders[entries.clamp_(min=0, max=len(self.senders) - 1)]
        is_isolated = (first == last)[:, None]
        return torch.where(is_isolated, nodes[:, None], neighbours.long())


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
    """Draw the nodes of the patches around B centres, ``[B, 1 + k_1 + k_1 k_2 + ...]``, level by
    level.

    With ``rows`` some of the patches are returned, from the random numbers of all: several
    processes then draw the same batch.
    """
    widths = level_sizes(1, fan_out)
    device = centres.device
    levels = [centres[rows]]
    for width, count in zip(widths, fan_out, strict=False):
        chance = torch.rand(len(centres) * width, count, generator=generator, device=device)
        chance_of_rows = chance.view(len(centres), width, count)[rows].reshape(-1, count)
        levels.append(neighbours.pick(levels[-1], chance_of_rows).view(-1))
    levels_by_patch = [level.view(-1, width) for level, width in zip(levels, widths, strict=True)]
    return torch.cat(levels_by_patch, dim=1)


def by_level(rows: Tensor, fan_out: tuple[int, ...]) -> list[Tensor]:
    """Split patches ``[B, P]`` into flat levels: a node's children are contiguous, in the order of
    their parents."""
    return [level.reshape(-1) for level in rows.split(level_sizes(1, fan_out), dim=1)]


@dataclass(frozen=True, eq=False)
class PatchView:
    """A batch of patches: trees of sampled neighbours around B centres.

    Level 0 has the centres, level l + 1 the ``fan_out[l]`` neighbours drawn for each node of level
    l. H is stored level by level, and every layer drops the outermost level.

    Shapes:
        features: ``[T, F]``, the table of all nodes' features
        rows: ``[B, P]``, the row of the table for each node of each patch; see `sample_patches`
        share: ``[m]``, the neighbours' share of the mean, for every node but the outermost level,
            level by level
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
    has_neighbours: Tensor | None
    """Without self-loops, ``[m]``: 1 for a node that has neighbours, 0 for one that pools
    nothing."""

    def shuffled(self, generator: torch.Generator) -> PatchView:
        """The same patches with the features shuffled among the nodes of each patch."""
        order = permutations(
            self.backend, self.portion.nodes, self.rows.shape[1], generator, self.portion.rows
        )
        return dataclasses.replace(self, rows=self.rows.gather(1, order))

    def at(self, k: int) -> PatchLayer:
        """The levels that layer k reads: all of them for the first, one less for each layer."""
        return PatchLayer(self, len(self.fan_out) + 1 - k)


class PatchLayer(WithoutEdges):
    """The first levels of a batch of patches; a layer computes all of them but the outermost."""

    def __init__(self, view: PatchView, levels: int) -> None:
        self.view = view
        self.levels = levels
        self.backend = view.backend
        self.sizes = tuple(level_sizes(len(view.rows), view.fan_out)[:levels])
        self._last: tuple[Any, tuple[Tensor, Tensor]] | None = None
        """The last input H, and what `own` and `pooled` multiply of it: both are asked for in
        turn."""

    def carry(self, h: Tensor) -> Tensor:
        """H without the outermost level."""
        return h[: sum(self.sizes[:-1])]

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ without the outermost level."""
        return self._side(0, h, weight)

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ without the outermost level; P is that of the sampled tree, or an estimate of the
        graph's."""
        return self._side(1, h, weight)

    def _side(self, side: int, h: Tensor | None, weight: Tensor) -> Tensor:
        """The product of the nodes' own rows (side 0) or of their means (side 1) with a weight."""
        # Sparse features are multiplied first: that costs little, and gives dense rows to gather.
        x = self.view.features
        if h is None and not isinstance(x, Tensor):
            return self._gather(x @ weight)[side]

        # Dense ones are averaged before the product, so the outermost level is never stored.
        if self._last is None or self._last[0] is not h:
            if h is None:
                sides = self._gather(x)
            else:
                own_rows, means = pool_tree(self.backend, h, *self._tree())
                sides = own_rows, self._without_isolated(means)
            self._last = h, sides
        return multiply(self._last[1][side], weight, self.backend)

    def _gather(self, table: Any) -> tuple[Tensor, Tensor]:
        """The nodes' own rows of a table, and their means."""
        rows = torch.cat(by_level(self.view.rows, self.view.fan_out)[: self.levels])
        own_rows, means = gather_tree(self.backend, table, rows, *self._tree())
        return own_rows, self._without_isolated(means)

    def _without_isolated(self, means: Tensor) -> Tensor:
        """Clear the mean of nodes that receive nothing: they drew themselves."""
        if self.view.has_neighbours is None:
            return means
        return means * self.view.has_neighbours[: len(means), None]

    def _tree(self) -> tuple[Tree, Tensor]:
        """The trees of these levels, and the neighbours' share of the mean at each inner node."""
        trees = self.view.trees
        if self.sizes not in trees:
            trees[self.sizes] = Tree.of(self.sizes, self.view.rows.device)
        return trees[self.sizes], self.view.share[: sum(self.sizes[:-1])]


class Patches(Views):
    """Pairs of a batch of sampled patches and a corruption of it; one summary per batch.

    With the weighting "sample", the paper's, a patch is a graph of its own: a node with k sampled
    neighbours has the weight 1 / (k + 1) in its mean. With "degree" it has 1 / (d + 1), as in the
    whole graph, and the sampled P has the graph's P as its expectation.
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
            expected = "an encoder that pools by the mean"
            raise InputError("patches", expected, f"one that asks for {rule}")
        if weighting not in get_args(Weighting):
            raise InputError("weighting", " or ".join(get_args(Weighting)), repr(weighting))
        self.weighting = weighting
        self.loops = rule.loops
        self.fan_out = check_fan_out(fan_out)
        self.trees: dict[tuple[int, ...], Tree] = {}
        self.batch = check_whole_number("batch", batch, 1)
        self.corruption = corruption
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
        fan_out = check_fan_out(fan_out)
        batch = check_whole_number("batch", batch, 1)
        node_count = sum(level_sizes(batch, fan_out))
        inner_count = sum(level_sizes(batch, fan_out[:-1]))
        # Includes half as much again, for gaps between the allocator's freed blocks.
        numbers_per_inner_node = 2 * graph.num_features + 8 * sizes.dim
        activations = 24 * node_count + 12 * inner_count * numbers_per_inner_node
        graph_bytes = memory.gathered_bytes(graph, device) + memory.edges_bytes(graph, 24)
        return graph_bytes + activations + memory.weights_bytes(graph, sizes.dim)

    def prepare(self, layers: int) -> None:
        """Raise InputError unless the encoder has one layer per number of the fan-out, so that only
        centres remain."""
        if layers != len(self.fan_out):
            levels = ",".join(map(str, self.fan_out))
            layer_count = format_count(len(self.fan_out), "layer")
            expected = f"{layer_count}, one for each number of the fan-out {levels}"
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
        inner_levels = by_level(rows, self.fan_out)[:-1]
        has_neighbours = None
        if not self.loops:
            nodes = torch.cat(inner_levels)
            share = torch.ones(len(nodes), device=rows.device)
            starts = self.neighbours.starts
            has_neighbours = (starts[nodes + 1] > starts[nodes]).float()
        elif self.weighting == "degree":
            share = self.neighbours.share[torch.cat(inner_levels)]
        else:
            shares = []
            for level, count in zip(inner_levels, self.fan_out, strict=True):
                share_of_level = torch.full(
                    (len(level),), count / (count + 1), dtype=torch.float32, device=rows.device
                )
                shares.append(share_of_level)
            share = torch.cat(shares)
        return PatchView(
            self.features,
            rows,
            share,
            self.fan_out,
            self.backend,
            self.trees,
            portion,
            has_neighbours,
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
