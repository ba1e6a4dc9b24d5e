"""Vectors in a folder of parts are those of one encoder on one graph, scaled in one way."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_graphs import random_graph, typed_graph

from infomax import DGI, Graph, InputError
from infomax.parts.encoders import GCN
from infomax.training import embed as engine
from infomax.views.stored import StoredTable

pytest.importorskip("pyarrow", reason="parts are parquet files")

NODES = 30
FEATURES = np.random.default_rng(0).normal(5, 2, (NODES, 4)).astype(np.float32)


def stored(place: Path, seed: int = 0) -> Graph:
    """A graph folder; another seed gives it other edges and the same features."""
    Graph.from_scipy(random_graph(NODES, seed=seed).adjacency, FEATURES).save(place)
    return Graph.open(place)


def untrained(graph: Graph, **settings: Any) -> DGI:
    """A model with its initial weights, which depend on the seed and the number of features alone."""
    return DGI(**{"dim": 4, "preset": "batches", "epochs": 0, "scale": "columns"} | settings).fit(
        graph
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"scale": "none"},
        {"scale": "rows"},
        {"seed": 1},
        {"vectors": "own"},
        {"half": True},
        {"edges": 1},
    ],
    ids=str,
)
def test_parts_of_other_vectors_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    graph, out = stored(tmp_path / "g.graph"), tmp_path / "vectors"
    untrained(graph).write_vectors(graph, out)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.iterdir()}
    other = stored(tmp_path / "other.graph", seed=1) if settings.pop("edges", 0) else graph
    options = {name: settings.pop(name) for name in ("vectors", "half") if name in settings}
    model = untrained(graph, **settings)
    with pytest.raises(InputError, match=r"vectors: expected .*parts of the same vectors"):
        model.write_vectors(other, out, **options)
    untrained(graph).write_vectors(graph, out)  # the same again: nothing is written
    assert {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.iterdir()
    } == before


class Stopped(KeyboardInterrupt):
    """What ends an embedding early."""


class Counted:
    """Counts the blocks that are pooled, and stops before the block with a number."""

    def __init__(self) -> None:
        self.count, self.last, self.pool = 0, -1, StoredTable.pool

    def __call__(self, *arguments: Any) -> Any:
        if self.count == self.last:
            raise Stopped
        self.count += 1
        return self.pool(*arguments)


@pytest.fixture
def pooled(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Three blocks in each pass."""
    monkeypatch.setattr(engine, "NODES_PER_BLOCK_ON_DISK", {"cpu": NODES // 3})
    counted = Counted()
    monkeypatch.setattr(StoredTable, "pool", lambda *arguments: counted(*arguments))
    return counted


def test_stopped_at_any_moment_it_ends_in_the_same_bytes_and_nothing_is_computed_twice(
    tmp_path: Path, pooled: Counted
) -> None:
    """Two layers and two hops of pooling are four passes; a pass is done again from its beginning."""
    graph = stored(tmp_path / "g.graph")
    model = untrained(graph, encoder=partial(GCN, layers=2))

    def written(out: Path, stop: int = -1) -> dict[str, bytes]:
        pooled.count, pooled.last = 0, stop
        model.write_vectors(graph, out)
        return {path.name: path.read_bytes() for path in out.iterdir()}

    expected = written(tmp_path / "whole")
    for stop in range(4 * 3):
        with pytest.raises(Stopped):
            written(tmp_path / f"{stop}", stop)
        assert written(tmp_path / f"{stop}") == expected, stop
        assert pooled.count == 4 * 3 - stop // 3 * 3


def test_layers_of_an_earlier_attempt_with_another_encoder_are_not_used(
    tmp_path: Path, pooled: Counted
) -> None:
    graph = stored(tmp_path / "g.graph")
    first, second = (untrained(graph, encoder=partial(GCN, layers=2), seed=seed) for seed in (0, 1))
    pooled.count, pooled.last = 0, 3
    with pytest.raises(Stopped):
        first.write_vectors(graph, tmp_path / "v.npy")
    pooled.last = -1
    for name in ("v.npy", "fresh.npy"):
        second.write_vectors(graph, tmp_path / name)
    assert (tmp_path / "v.npy").read_bytes() == (tmp_path / "fresh.npy").read_bytes()
    assert not list(tmp_path.glob(".v*"))


def test_parts_that_are_missing_are_written_again(tmp_path: Path) -> None:
    graph, out = stored(tmp_path / "g.graph"), tmp_path / "vectors"
    untrained(graph).write_vectors(graph, out)
    (part,) = out.glob("part-*.parquet")
    before = part.read_bytes()
    part.unlink()
    untrained(graph).write_vectors(graph, out)
    assert part.read_bytes() == before


@pytest.mark.parametrize("out", ["vectors", "vectors.npy"])
def test_a_graph_is_let_go_with_its_files_when_its_vectors_are_written(
    tmp_path: Path, out: str
) -> None:
    graph = typed_graph()
    model = DGI(4, epochs=0, vectors="encoder,own,pooled").fit(graph)
    graph.save(tmp_path / "typed.graph")
    gc.disable()  # of several types, the files of one would stay mapped beside those of the next
    try:
        stored = Graph.open(tmp_path / "typed.graph").target(graph.node_type)
        alive = weakref.ref(stored.relations[0].edges.receivers.indices.base)  # of mmap
        model.write_vectors(stored, tmp_path / out)
        del stored
        assert alive() is None
    finally:
        gc.enable()
