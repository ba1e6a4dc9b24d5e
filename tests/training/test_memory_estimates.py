"""Estimates of memory are within a factor of two of what a training and an embedding really ask for.

Counted is what torch and NumPy ask for, not what the process holds: that is the allocator's choice.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from infomax import DGI, Graph, InputError
from infomax.arrays.positions import positions, positions_bytes
from infomax.kernels import FEWEST_NUMBERS_FOR_NUMBA
from infomax.memory import embedding_bytes
from infomax.parts.encoders import GCN

SHAPES = {
    "wide vectors": {"n": 15_000, "degree": 6, "features": 50, "dim": 256, "layers": 2},
    "many edges": {"n": 12_000, "degree": 150, "features": 16, "dim": 16, "layers": 1},
    "many features": {"n": 24_000, "degree": 6, "features": 900, "dim": 16, "layers": 1},
}


def graph_of(n: int, degree: int, features: int) -> Graph:
    rng = np.random.default_rng(0)
    edges = rng.integers(n, size=(2, n * degree // 2))
    return Graph.from_arrays(edges, rng.random((n, features), dtype=np.float32))


def asked_for(work: Callable[[], object], place: Path) -> int:
    """The most bytes of NumPy, as Python's tracer reports them, and the most of torch, as its profiler does."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        tracemalloc.start()
        try:
            work()
            arrays = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    profiler.export_chrome_trace(str(place / "trace.json"))
    events = json.loads((place / "trace.json").read_text())["traceEvents"]
    changes = sorted(
        (event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]"
    )
    return arrays + int(np.max(np.cumsum([change for _, change in changes]), initial=0))


def test_what_is_asked_for_is_counted(tmp_path: Path) -> None:
    """Also what is freed before the end; what was there before is not."""
    before = torch.ones(10**6)

    def work() -> None:
        for _ in range(3):
            (before + 1).sum()
        np.ones(10**6)

    assert asked_for(work, tmp_path) == pytest.approx(4e6 + 8e6, rel=0.01)


@pytest.mark.parametrize("name", SHAPES)
def test_estimates_are_within_a_factor_of_two(name: str, tmp_path: Path) -> None:
    shape = dict(SHAPES[name])
    dim, encoder = shape.pop("dim"), partial(GCN, layers=shape.pop("layers"))
    model = DGI(dim, encoder=encoder, epochs=2, device="cpu")
    # Kernels are compiled before the count.
    warm = graph_of(FEWEST_NUMBERS_FOR_NUMBA // dim + 1, 6, 4)
    model.fit(warm).transform(warm)
    graph = graph_of(**shape)
    training = asked_for(lambda: model.fit(graph), tmp_path)
    embedding = asked_for(lambda: model.transform(graph), tmp_path)
    assert 0.5 < model.settings().bytes(graph, torch.device("cpu")) / training < 2
    assert 0.5 < embedding_bytes(graph, dim, torch.device("cpu")) / embedding < 2


@pytest.mark.parametrize(
    ("n", "degree", "edges_per_block"),
    [(30_000, 6, 1 << 12), (30_000, 6, 1 << 17), (3_000, 150, 1 << 17)],
)
def test_the_estimate_for_positions_is_within_a_factor_of_two(
    n, degree, edges_per_block, tmp_path, monkeypatch
) -> None:
    # Hops take turns in the same tables.
    monkeypatch.setattr("infomax.arrays.positions.LAST_HOP", 2)
    graph = graph_of(n, degree, 1)
    asked = asked_for(
        lambda: positions(graph.edges, graph.ids, edges_per_block=edges_per_block), tmp_path
    )
    assert 0.5 < positions_bytes(graph.edges, edges_per_block) / asked < 2


def test_positions_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    monkeypatch.setattr("infomax.memory.free_bytes", lambda: 10_000)
    assert Graph.from_arrays(edges, "degrees").num_features == 32
    with pytest.raises(
        InputError,
        match=r"24.7 kB free, to make positions of 4 nodes, found 10.0 kB. Take --features",
    ):
        Graph.from_arrays(edges, "positions")
