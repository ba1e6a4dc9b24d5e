"""Record a step once as a CUDA graph and replay it, so that the GPU does not wait for Python."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

WARM_UP = 2


class Replay:
    """A function of (batch, last) that is called a few times, then recorded, and from then on replayed.

    The function must do the same work at every call with the same length of batch and value of ``last``: fixed shapes,
    no branches on values. Each such kind of call is recorded for itself. The first calls of a kind run normally, on a
    separate stream as recording requires.
    """

    def __init__(
        self, function: Callable[[Tensor, bool], None], *generators: torch.Generator
    ) -> None:
        self.function, self.generators = function, generators
        self.stream, self.pool = (
            torch.cuda.Stream(generators[0].device),
            torch.cuda.graph_pool_handle(),
        )
        self.calls: Counter[tuple[int, bool]] = Counter()
        self.recordings: dict[tuple[int, bool], Recording] = {}

    def __call__(self, batch: Tensor, last: bool) -> None:
        """Run the function on a batch."""
        kind = len(batch), last
        self.calls[kind] += 1
        if self.calls[kind] <= WARM_UP:
            self._plain(batch, last)
            return
        if kind not in self.recordings:
            recording = self.recordings[kind] = Recording(batch)
            for generator in self.generators:
                recording.graph.register_generator_state(generator)
            record(
                recording.graph,
                self.stream,
                partial(self.function, recording.batch, last),
                self.pool,
            )
        self.recordings[kind](batch)

    def _plain(self, batch: Tensor, last: bool) -> None:
        here = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            self.function(batch, last)
        here.wait_stream(self.stream)


class Recording:
    """A recorded function of a batch; it reads the batch from a tensor of its own."""

    def __init__(self, batch: Tensor) -> None:
        self.graph = torch.cuda.CUDAGraph()
        self.batch, self.held = batch.clone(), (batch, batch._version)

    def __call__(self, batch: Tensor) -> None:
        """Replay it on a batch."""
        if self.held[0] is not batch or self.held[1] != batch._version:
            self.batch.copy_(batch)
            self.held = batch, batch._version
        self.graph.replay()


def record(
    graph: torch.cuda.CUDAGraph,
    stream: torch.cuda.Stream,
    function: Callable[[], None],
    pool: Any = None,
) -> None:
    """Record a function as a CUDA graph; graphs with the same ``pool``, which never run together, share their memory.

    No older graph may be freed meanwhile. `torch.cuda.graph` therefore collects all garbage first, which takes 0.1 s;
    here garbage collection is switched off instead.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        here = torch.cuda.current_stream(stream.device)
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=pool)
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
