"""Record a step once as a CUDA graph and replay it, so that the GPU does not wait for Python."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

CALLS_BEFORE_RECORDING = 2


class Replay:
    """A function of (batch, last) that is called a few times, then recorded, and from then on
    replayed.

    The function must do the same work at every call with the same length of batch and value of
    ``last``: fixed shapes, no branches on values. So each length and value of ``last`` has a
    recording of its own. The first calls of each run normally, on a separate stream as recording
    requires.
    """

    def __init__(
        self, function: Callable[[Tensor, bool], None], *generators: torch.Generator
    ) -> None:
        self.function = function
        self.generators = generators
        self.stream = torch.cuda.Stream(generators[0].device)
        self.memory_pool = torch.cuda.graph_pool_handle()
        self.call_counts: Counter[tuple[int, bool]] = Counter()
        self.recordings: dict[tuple[int, bool], Recording] = {}

    def __call__(self, batch: Tensor, last: bool) -> None:
        """Run the function on a batch."""
        shape = len(batch), last
        self.call_counts[shape] += 1
        if self.call_counts[shape] <= CALLS_BEFORE_RECORDING:
            self._run_normally(batch, last)
            return
        if shape not in self.recordings:
            self.recordings[shape] = self._record(batch, last)
        self.recordings[shape](batch)

    def _run_normally(self, batch: Tensor, last: bool) -> None:
        current_stream = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(current_stream)
        with torch.cuda.stream(self.stream):
            self.function(batch, last)
        current_stream.wait_stream(self.stream)

    def _record(self, batch: Tensor, last: bool) -> Recording:
        recording = Recording(batch)
        for generator in self.generators:
            recording.graph.register_generator_state(generator)
        function = partial(self.function, recording.batch, last)
        record(recording.graph, self.stream, function, self.memory_pool)
        return recording


class Recording:
    """A recorded function of a batch; it reads the batch from a tensor of its own."""

    def __init__(self, batch: Tensor) -> None:
        self.graph = torch.cuda.CUDAGraph()
        self.batch = batch.clone()
        self.copied_batch = batch
        self.copied_version = batch._version

    def __call__(self, batch: Tensor) -> None:
        """Replay it on a batch."""
        # The same batch is copied once, unless it was changed in place.
        if self.copied_batch is not batch or self.copied_version != batch._version:
            self.batch.copy_(batch)
            self.copied_batch = batch
            self.copied_version = batch._version
        self.graph.replay()


def record(
    graph: torch.cuda.CUDAGraph,
    stream: torch.cuda.Stream,
    function: Callable[[], None],
    memory_pool: Any = None,
) -> None:
    """Record a function as a CUDA graph; graphs of one ``memory_pool``, which never run together,
    share their memory.

    No older graph may be freed meanwhile. `torch.cuda.graph` therefore collects all garbage first,
    which takes 0.1 s; here garbage collection is switched off instead.
    """
    collects_garbage = gc.isenabled()
    gc.disable()
    try:
        current_stream = torch.cuda.current_stream(stream.device)
        stream.wait_stream(current_stream)
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=memory_pool)
            function()
            graph.capture_end()
        current_stream.wait_stream(stream)
    finally:
        if collects_garbage:
            gc.enable()


def repeat(function: Callable[[], None], times: int, device: torch.device) -> None:
    """Call a function several times; on a GPU it is called, recorded and replayed, so it must
    always do the same."""
    if device.type != "cuda" or times < 3:
        for _ in range(times):
            function()
        return
    function()
    graph = torch.cuda.CUDAGraph()
    record(graph, torch.cuda.Stream(device), function)
    for _ in range(times - 1):
        graph.replay()
