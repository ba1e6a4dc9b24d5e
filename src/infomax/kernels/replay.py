"""Record a step once as a CUDA graph and replay it, so that the GPU does not wait for Python."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

WARM_UP = 2


class Replay:
    """A function of (batch, last) that is called a few times, then recorded, and from then on replayed.

    The function must do the same work at every call: fixed shapes, no branches on values. The first calls run normally,
    on a separate stream as recording requires. Batches of another length, or with another value of ``last``, are never
    replayed.
    """

    def __init__(self, function: Callable[[Tensor, bool], None], generator: torch.Generator) -> None:
        self.function, self.generator = function, generator
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.batch: Tensor | None = None
        self.held: tuple[Tensor, int] | None = None
        self.last = False
        self.stream = torch.cuda.Stream(generator.device)

    def __call__(self, batch: Tensor, last: bool) -> None:
        """Run the function on a batch."""
        odd = self.batch is None or batch.shape != self.batch.shape or last != self.last
        if self.batch is None or (odd and self.calls == 1):  # a resumed training may begin with an epoch's last step
            self.batch, self.last = batch.clone(), last
        if odd or self.calls < WARM_UP:
            self._plain(batch, last)
            return
        if self.held is None or self.held[0] is not batch or self.held[1] != batch._version:
            self.batch.copy_(batch)
            self.held = batch, batch._version
        if self.graph is None:
            self._record()
        assert self.graph is not None  # noqa: S101
        self.graph.replay()

    def _plain(self, batch: Tensor, last: bool) -> None:
        self.calls += 1
        here = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            self.function(batch, last)
        here.wait_stream(self.stream)

    def _record(self) -> None:
        assert self.batch is not None  # noqa: S101
        self.graph = torch.cuda.CUDAGraph()
        self.graph.register_generator_state(self.generator)
        record(self.graph, self.stream, partial(self.function, self.batch, self.last))


def record(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, function: Callable[[], None]) -> None:
    """Record a function as a CUDA graph.

    No older graph may be freed meanwhile. `torch.cuda.graph` therefore collects all garbage first, which takes 0.1 s;
    here garbage collection is switched off instead.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        here = torch.cuda.current_stream(stream.device)
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            graph.capture_begin()
            function()
            graph.capture_end()
        here.wait_stream(stream)
    finally:
        if collecting:
            gc.enable()


def repeat(function: Callable[[], None], times: int, device: torch.device) -> None:
    """Call a function several times; on a GPU it is called, recorded and replayed, so it must always do the same."""
    if device.type != "cuda" or times < 3:
        for _ in range(times):
            function()
        return
    function()
    graph = torch.cuda.CUDAGraph()
    record(graph, torch.cuda.Stream(device), function)
    for _ in range(times - 1):
        graph.replay()
