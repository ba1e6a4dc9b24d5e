"""A step recorded once and replayed: a CUDA graph, so that a GPU never waits for Python."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

WARM_UP = 3


class Replay:
    """A function of (batch, last) that, after a few plain calls, is recorded and from then on replayed.

    The function must do the same work at every call: shapes fixed, no look at values. The plain calls are real ones, on
    a stream of their own as recording asks for; batches of another length, and the other value of ``last``, stay plain.
    """

    def __init__(self, function: Callable[[Tensor, bool], None], generator: torch.Generator) -> None:
        self.function, self.generator = function, generator
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.batch: Tensor | None = None
        self.last = False
        self.stream = torch.cuda.Stream(generator.device)

    def __call__(self, batch: Tensor, last: bool) -> None:
        """Do the function's work on a batch."""
        if self.batch is None:
            self.batch, self.last = batch.clone(), last
        if batch.shape != self.batch.shape or last != self.last or self.calls < WARM_UP:
            self._plain(batch, last)
            return
        self.batch.copy_(batch)
        if self.graph is None:
            self._record()
        assert self.graph is not None  # noqa: S101
        self.graph.replay()

    def _plain(self, batch: Tensor, last: bool) -> None:
        self.calls += 1
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.function(batch, last)
        torch.cuda.current_stream().wait_stream(self.stream)

    def _record(self) -> None:
        assert self.batch is not None  # noqa: S101
        self.graph = torch.cuda.CUDAGraph()
        self.graph.register_generator_state(self.generator)
        with torch.cuda.graph(self.graph):
            self.function(self.batch, self.last)
