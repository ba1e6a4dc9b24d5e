"""Where the pairs come from: each regime says what a step is about, and makes its (positive, negative) views."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from infomax.errors import InputError, whole
from infomax.graphs.graph import Graph
from infomax.kernels import gather_tree, permute, pool_tree
from infomax.kernels.trees import Tree
from infomax.views.operands import Operand, placed, table, times
from infomax.views.propagation import Propagation, Rule
from infomax.views.sampling import Neighbours, by_level, check_fan_out, level_sizes, sample_patches


class View(Protocol):
    """What an encoder sees: features, and how a layer's messages run.

    H is ``[n, d]``, the outcome of the layer before; None stands for the features X. A layer computes the first m of
    the n nodes: all of them on a whole graph, all but the outermost level in patches.
    """

    def carry(self, h: Tensor) -> Tensor:
        """H of the nodes that the layer computes, ``[m, d]``."""

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of those nodes, ``[m, d']``."""

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P H Θ of those nodes, ``[m, d']``: what their neighbourhoods (and they themselves) send them."""


Corruption = Callable[..., View]
"""Called with (view, generator): a negative of the view."""


class Views(Protocol):
    """A regime: what one epoch trains on."""

    steps: int
    """Steps an epoch."""
    uniform: bool
    """Whether all batches of one length have pairs of one shape, so that a GPU can replay a step it has recorded."""

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """What each step of an epoch is about; all that is random in it is drawn at the call."""

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """The positive and the negative view of a step."""


@dataclass(frozen=True)
class WholeView:
    """All of a graph.

    Shapes:
        features: ``[N, F]``
        propagation: ``[N, N]``
        rows: ``[N]``, a permutation: the row of the features that each node carries; None: its own
    """

    features: Operand
    propagation: Propagation
    rows: Tensor | None = None
    products: dict[int, tuple[Tensor | None, Tensor, Tensor]] = field(default_factory=dict)
    """By Θ, which is kept so that its id stays its own: the last H that it multiplied, Θ, and H Θ.

    Shuffling rows commutes with the linear map, so a view and its shuffled negative share the product.
    """

    @classmethod
    def of(cls, graph: Graph, rule: Rule, device: torch.device) -> WholeView:
        """The view of a graph, on the device."""
        return cls(placed(graph.features, device), Propagation.of(graph, rule, device))

    def fresh(self) -> WholeView:
        """The same view for another step, when the weights have moved."""
        return dataclasses.replace(self, products={})

    def carry(self, h: Tensor) -> Tensor:
        """All of H."""
        return h

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ."""
        if h is not None:
            return h @ weight
        y = self.product(None, weight)
        return y if self.rows is None else permute(y, self.rows)

    def product(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ, computed once for as long as H stays the same."""
        kept = self.products.get(id(weight))
        if kept is None or kept[0] is not h:
            kept = self.products[id(weight)] = h, weight, times(self.features if h is None else h, weight)
        return kept[-1]

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P H Θ."""
        return self.propagation @ self.own(h, weight)


def shuffle_of(positive: View, negative: View) -> tuple[Propagation, Tensor] | None:
    """If a view is another with its features shuffled, and nothing else: the propagation of both, and the shuffle."""
    if not (isinstance(positive, WholeView) and isinstance(negative, WholeView)) or negative.rows is None:
        return None
    alike = negative.products is positive.products and negative.propagation is positive.propagation
    return (positive.propagation, negative.rows) if alike and positive.rows is None else None


@dataclass(frozen=True)
class BlockView:
    """Some of a whole view's nodes, start to stop: the same layer for them alone, so that memory stays bounded."""

    view: WholeView
    start: int
    stop: int

    def carry(self, h: Tensor) -> Tensor:
        """Their rows of H."""
        return h[self.start : self.stop]

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of theirs."""
        if h is not None:
            return self.carry(h) @ weight
        x = self.view.features
        return times(self.carry(x) if isinstance(x, Tensor) else x.rows(self.start, self.stop), weight)

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P H Θ of theirs; H Θ is computed once for all blocks."""
        return self.view.propagation.operand.rows(self.start, self.stop) @ self.view.product(h, weight)


@dataclass(frozen=True)
class PatchView:
    """A batch of patches: trees of sampled neighbours around B centres.

    Level 0 holds the centres, level l + 1 the ``fan_out[l]`` neighbours drawn for each node of level l. H is laid out
    level after level, and every layer sheds the outermost.

    Shapes:
        features: ``[T, F]``, the table of all nodes' features
        rows: ``[B, P]``, the row of the table that each node of each patch carries; see `sample_patches`
        share: ``[m]``, the neighbours' share of the mean, of every node but the outermost, level after level
    """

    features: Operand
    rows: Tensor
    share: Tensor
    fan_out: tuple[int, ...]
    inputs: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    """By H: each inner node's own row, and the mean over its neighbourhood; both sides of a layer ask for them."""
    trees: dict[tuple[int, ...], Tree] = field(default_factory=dict)
    """By the sizes of its levels; all batches share them."""

    def carry(self, h: Tensor) -> Tensor:
        """H without the outermost level."""
        return h[: sum(self._levels(h)[:-1])]

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ without the outermost level."""
        return self._side(0, h, weight)

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P H Θ without the outermost level, P estimated from the sample: its expectation is the graph's own."""
        return self._side(1, h, weight)

    def _side(self, side: int, h: Tensor | None, weight: Tensor) -> Tensor:
        # Dense features are averaged before the product, so the outermost level is never laid out. Sparse ones are
        # multiplied first: that costs little, and leaves rows that can be gathered.
        if h is None and not isinstance(self.features, Tensor):
            return self._gather(self.features @ weight)[side]
        if id(h) not in self.inputs:
            sides = self._gather(self.features) if h is None else pool_tree(h, *self._tree(self._levels(h)))
            self.inputs[id(h)] = (h, *sides)  # H itself is kept, so that its id stays its own
        return times(self.inputs[id(h)][1 + side], weight)

    def _gather(self, table: Any) -> tuple[Tensor, Tensor]:
        sizes = level_sizes(len(self.rows), self.fan_out)
        return gather_tree(table, torch.cat(by_level(self.rows, self.fan_out)), *self._tree(sizes))

    def _tree(self, sizes: list[int]) -> tuple[Tree, Tensor]:
        if tuple(sizes) not in self.trees:
            self.trees[tuple(sizes)] = Tree.of(tuple(sizes), self.rows.device)
        return self.trees[tuple(sizes)], self.share[: sum(sizes[:-1])]

    def _levels(self, h: Tensor) -> list[int]:
        """The sizes of the levels that H holds."""
        sizes = level_sizes(len(self.rows), self.fan_out)
        return next(sizes[:count] for count in range(1, len(sizes) + 1) if sum(sizes[:count]) == len(h))


class WholeGraph:
    """The graph itself, against a corruption of it; one step an epoch."""

    steps = 1
    uniform = True

    def __init__(self, graph: Graph, rule: Rule, corruption: Corruption, device: torch.device) -> None:
        self.view, self.corruption = WholeView.of(graph, rule, device), corruption
        self.batch = torch.zeros(1, dtype=torch.int64, device=device)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """One batch: the graph."""
        return [self.batch]

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """The graph, and a fresh corruption."""
        view = self.view.fresh()
        return view, self.corruption(view, generator)


class Patches:
    """Batches of sampled patches, each against a corruption of itself; one summary a batch."""

    uniform = True

    def __init__(
        self,
        graph: Graph,
        rule: Rule,
        corruption: Corruption,
        device: torch.device,
        *,
        fan_out: Sequence[int] = (10, 10, 25),
        batch: int = 256,
    ) -> None:
        if rule != "mean":
            raise InputError("patches", "an encoder that pools by the mean", f"one that asks for {rule!r}")
        self.fan_out, self.trees = check_fan_out(fan_out), dict[tuple[int, ...], Tree]()
        self.batch, self.corruption = whole("batch", batch, 1), corruption
        self.neighbours = Neighbours.of(graph, device)
        self.features = table(graph.features, device)
        self.n = graph.num_nodes
        self.steps = -(-self.n // self.batch)

    def check_depth(self, layers: int) -> None:
        """Refuse an encoder of fewer or more layers than there are levels to shed: only centres may be left."""
        if layers != len(self.fan_out):
            levels = ",".join(map(str, self.fan_out))
            expected = f"{len(self.fan_out)} layers, one for each number of the fan-out {levels}"
            remedy = f"Give a fan-out of {layers} numbers: --fan-out, or in Python fan_out=."
            raise InputError("encoder", expected, str(layers), remedy)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """Every node once as a centre, in random order: ``[B]`` of them a batch."""
        order = torch.randperm(self.n, generator=generator, device=generator.device)
        return (order[start : start + self.batch] for start in range(0, self.n, self.batch))

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """Patches around B centres, and a corruption of them."""
        view = self.around(batch, generator)
        return view, self.corruption(view, generator)

    def around(self, centres: Tensor, generator: torch.Generator) -> PatchView:
        """Patches around B centres."""
        rows = sample_patches(self.neighbours, centres, self.fan_out, generator)
        inner = torch.cat(by_level(rows, self.fan_out)[:-1])
        return PatchView(self.features, rows, self.neighbours.share[inner], self.fan_out, trees=self.trees)


class ManyGraphs:
    """Each of several graphs, against another of them; one summary a graph.

    The negative is a corruption of a graph drawn among the others. A single graph is its own negative, as in
    `WholeGraph`.
    """

    uniform = False

    def __init__(self, graph: Graph, rule: Rule, corruption: Corruption, device: torch.device) -> None:
        groups = np.zeros(graph.num_nodes) if graph.groups is None else graph.groups
        self.views = [WholeView.of(graph.part(groups == group), rule, device) for group in np.unique(groups)]
        self.corruption, self.steps = corruption, len(self.views)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """Every graph once, in random order, each with another: ``[2]`` a batch."""
        count, device = self.steps, generator.device
        if count == 1:
            return [torch.zeros(2, dtype=torch.int64)]
        order = torch.randperm(count, generator=generator, device=device)
        others = (order + torch.randint(1, count, (count,), generator=generator, device=device)) % count
        return torch.stack([order, others], dim=1).cpu().unbind()

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """The one graph, and a corruption of the other."""
        one, other = batch.tolist()
        positive = self.views[one].fresh()
        return positive, self.corruption(positive if one == other else self.views[other].fresh(), generator)
