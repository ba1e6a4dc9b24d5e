"""Vectors in a folder of parts are those of one encoder on one graph, scaled in one way."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_graphs import random_graph

from infomax import DGI, Graph, InputError
from infomax.parts.encoders import GCN
from infomax.training import stored as blocks
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
    return DGI(**{"dim": 4, "preset": "batches", "epochs": 0, "scale": "columns"} | settings).fit(graph)


@pytest.mark.parametrize(
    "settings",
    [{"scale": "none"}, {"scale": "rows"}, {"seed": 1}, {"smooth": 1}, {"half": True}, {"edges": 1}],
    ids=str,
)
def test_parts_of_other_vectors_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    graph, out = stored(tmp_path / "g.graph"), tmp_path / "vectors"
    untrained(graph).write_vectors(graph, out)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.iterdir()}
    other = stored(tmp_path / "other.graph", seed=1) if settings.pop("edges", 0) else graph
    options = {name: settings.pop(name) for name in ("smooth", "half") if name in settings}
    model = untrained(graph, **settings)
    with pytest.raises(InputError, match=r"vectors: expected .*parts of the same vectors"):
        model.write_vectors(other, out, **options)
    untrained(graph).write_vectors(graph, out)  # the same again: nothing is written
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.iterdir()} == before


class Stopped(KeyboardInterrupt):
    """What ends an embedding early."""


def test_stopped_at_any_moment_it_ends_in_the_same_bytes_and_nothing_is_computed_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two layers and four hops of smoothing are six passes over three blocks; a pass is done again from its begin."""
    monkeypatch.setattr(blocks, "BLOCK", {"cpu": 10})
    graph = stored(tmp_path / "g.graph")
    model, pool, computed = untrained(graph, encoder=partial(GCN, layers=2)), StoredTable.pool, 0

    def stop_at(last: int) -> None:
        def pooled(*arguments: Any) -> Any:
            nonlocal computed
            if computed == last:
                raise Stopped
            computed += 1
            return pool(*arguments)

        monkeypatch.setattr(StoredTable, "pool", pooled)

    def written(out: Path) -> dict[str, bytes]:
        model.write_vectors(graph, out, smooth=4)
        return {path.name: path.read_bytes() for path in out.iterdir()}

    expected = written(tmp_path / "whole")
    for last in range(6 * 3):
        stop_at(last)
        computed = 0
        with pytest.raises(Stopped):
            written(tmp_path / f"{last}")
        stop_at(1000)
        computed = 0
        assert written(tmp_path / f"{last}") == expected, last
        assert computed == 6 * 3 - last // 3 * 3
    memory = Graph.from_scipy(graph.adjacency.loaded(), FEATURES)
    for smooth in (1, 2, 3):
        np.testing.assert_allclose(
            model.transform(graph, smooth=smooth).vectors, model.transform(memory, smooth=smooth).vectors, atol=1e-5
        )


def test_parts_that_are_missing_are_written_again(tmp_path: Path) -> None:
    graph, out = stored(tmp_path / "g.graph"), tmp_path / "vectors"
    untrained(graph).write_vectors(graph, out)
    (part,) = out.glob("part-*.parquet")
    before = part.read_bytes()
    part.unlink()
    untrained(graph).write_vectors(graph, out)
    assert part.read_bytes() == before
