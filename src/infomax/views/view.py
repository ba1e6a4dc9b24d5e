"""The view that an encoder reads, and the base class of regimes, which make pairs of views."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax import memory
from infomax.errors import InputError
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.kernels.ranks import ALONE, Ranks


class LayerView(Protocol):
    """Features and edges as one layer of an encoder reads them.

    H is ``[n, d]``, the output of the layer before. The layer computes m of these n nodes: all of
    them on a whole graph, all but the outermost level in patches. In every layer, None stands for
    the features X.
    """

    @property
    def backend(self) -> Backend:
        """The kernels that compute it, and an encoder's layers on it."""

    def carry(self, h: Tensor) -> Tensor:
        """H of the nodes that the layer computes, ``[m, d]``."""

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of those nodes, ``[m, d']``."""

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ of those nodes, ``[m, d']``, pooled over their neighbourhoods.

        For P see `Normalisation`. Between several types of nodes, along a path: the mean of means
        of X Θ of the type at its end.
        """


class AllNodes:
    """A view of which every layer reads all nodes and computes all of them."""

    def at(self, k: int) -> Self:
        """Itself."""
        return self

    def carry(self, h: Tensor) -> Tensor:
        """All of H."""
        return h


class WithoutEdges:
    """What a layer reads where its encoder does not ask for the whole graph.

    Vectors are computed in blocks of nodes, so a layer that reads more than its nodes and what
    they receive must belong to an encoder with ``needs_whole_graph``. What only a `WholeView` has
    is refused by a message that names this flag.
    """

    @property
    def edges(self) -> NoReturn:
        """Refused."""
        raise _needs_whole_graph("edges")

    @property
    def edge_features(self) -> NoReturn:
        """Refused."""
        raise _needs_whole_graph("edge_features")

    @property
    def has_edge_features(self) -> NoReturn:
        """Refused."""
        raise _needs_whole_graph("has_edge_features")

    @property
    def n(self) -> NoReturn:
        """Refused."""
        raise _needs_whole_graph("n")


def _needs_whole_graph(attribute: str) -> InputError:
    expected = "an encoder that says needs_whole_graph = True, for a layer that reads it"
    remedy = "Write needs_whole_graph = True in the class of the encoder."
    return InputError(f"view.{attribute}", expected, "needs_whole_graph = False", remedy)


class View(Protocol):
    """Features and edges of the nodes of a step."""

    @property
    def backend(self) -> Backend:
        """The kernels that compute it, and an encoder's layers on it."""

    def at(self, k: int) -> LayerView:
        """As layer k of the encoder reads them, from 0."""


Corruption = Callable[..., View]
"""A function of (view, generator) that returns a negative of the view."""


class Sizes(NamedTuple):
    """What a regime must know of an encoder to estimate its memory."""

    dim: int
    layers: int
    out_dim: int


class Views:
    """Base class of regimes: the pairs of views that one epoch trains on.

    A regime is made once per training. A regime of your own defines
    ``__init__(graph, rule, corruption, backend)``, `steps`, `batches` and `pair`.
    """

    steps: int
    """Steps per epoch."""
    uniform: bool = False
    """Whether all pairs have one shape, so that a GPU can replay a recorded step."""
    corruptions: ClassVar[tuple[str, ...]] = ()
    """The names of infomax's corruptions that fit its views; empty: any."""
    reads_folders: ClassVar[bool] = False
    """Whether steps read the rows of a graph folder; other regimes load the graph first."""
    needs_kernels: ClassVar[bool] = False
    """Whether a GPU uses compiled kernels even in a short training."""
    takes_batches: ClassVar[bool] = False
    """Whether a step has some of the nodes: smaller batches then take less memory."""
    pools_along_paths: ClassVar[bool] = True
    """Whether its views pool along the paths of a graph of several types."""
    divisible: ClassVar[bool] = False
    """Whether several processes can share its steps.

    Each computes ``ranks.rows(batch)`` of the nodes of a batch.
    """
    batch: Any
    """Nodes per step, if it is divisible."""
    ranks: Ranks = ALONE

    @classmethod
    def bytes(cls, graph: Record, sizes: Sizes, device: torch.device, **bound: Any) -> int:
        """Estimate the peak bytes of a training; by default those of a whole graph.

        Args:
            graph: the graph.
            sizes: those of the encoder.
            device: where it is trained.
            bound: the arguments that are bound to the regime, such as the size of a batch.
        """
        return memory.training_bytes(graph, *sizes)

    def prepare(self, layers: int) -> None:
        """Adapt to the number of layers of the encoder, before training."""

    def divide(self, ranks: Ranks) -> None:
        """Compute only this rank's part of every step; all ranks draw the same batch."""
        if not self.divisible:
            found = f"{type(self).__name__}, which runs in one process"
            remedy = "Start it without torchrun, or use the preset batches."
            location = f"training in {ranks.count} processes"
            raise InputError(location, "the preset batches", found, remedy)
        if self.batch < ranks.count:
            expected = f"{ranks.count} nodes or more, one for each process"
            remedy = "Use a larger batch, or fewer processes."
            raise InputError("batch", expected, str(self.batch), remedy)
        self.ranks = ranks

    def pad(self) -> None:
        """Make all pairs equal in shape where that pays, and set `uniform`.

        It is called before a GPU records a step.
        """

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """Return the batches of an epoch, one per step.

        The call itself makes all random draws for them, so that an interrupted epoch can be drawn
        again.
        """
        raise NotImplementedError

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """Return the positive and the negative view of a step."""
        raise NotImplementedError

    def nodes(
        self, batch: Tensor, positive: View
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return the nodes of the rows of H and of H~.

        None stands for all nodes, in the order of the graph.
        """
        return None

    def choose(self, nodes: Tensor) -> None:
        """Make these nodes the batch of every step; only regimes that read graph folders can."""
        raise NotImplementedError
