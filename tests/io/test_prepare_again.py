"""A preparation that was stopped and whose work files are damaged or gone: the same call starts anew, or says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from test_prepare import same

from infomax import Graph, InputError, read_graph
from infomax.io import prepare as module
from infomax.io.prepare import prepare

pytest.importorskip("duckdb", reason="prepare sorts with it")


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    """An edge table with weights."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 900, (2, 6000))
    columns = {"source": ends[0], "target": ends[1], "weight": rng.random(6000)}
    parquet.write_table(pa.table(columns), tmp_path / "edges.parquet")
    return tmp_path / "edges.parquet"


def stop_before(edges: Path, stage: str) -> Path:
    """Interrupt a preparation of g.graph; returns the folder of its work files."""

    def stop(done: int, title: str = "", total: int | None = None) -> None:
        if title == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(edges, out=edges.parent / "g.graph", progress=stop)
    return edges.parent / ".g.graph-prepare"


def ends_whole(edges: Path) -> None:
    """The same call makes the graph and leaves nothing beside it."""
    graph = edges.parent / "g.graph"
    prepare(edges, out=graph)
    same(Graph.open(graph), read_graph(edges))
    assert Graph.open(graph).weighted
    assert not list(edges.parent.glob(".g*"))


def stop_before_cleaning_up(edges: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def stop(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module.shutil, "rmtree", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare(edges, out=edges.parent / "g.graph")
    assert (edges.parent / ".g.graph-prepare").exists()
    return edges.parent / "g.graph"


def test_stopped_after_the_move_it_can_be_made_again(
    edges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(stop_before_cleaning_up(edges, monkeypatch))
    ends_whole(edges)


def test_work_files_left_beside_a_whole_graph_are_removed(
    edges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = stop_before_cleaning_up(edges, monkeypatch)
    with pytest.raises(InputError, match="one that exists"):
        prepare(edges, out=graph)
    assert not (edges.parent / ".g.graph-prepare").exists()
    same(Graph.open(graph), read_graph(edges))


@pytest.mark.parametrize("name", ["weights.npy", "indices.npy"])
def test_a_work_file_that_is_gone_is_missed(name: str, edges: Path) -> None:
    work = stop_before(edges, "writing features")
    (work / "graph" / name).unlink()
    with pytest.raises(InputError, match=rf"no .*{name}.*the same command starts anew"):
        prepare(edges, out=edges.parent / "g.graph")
    ends_whole(edges)


def test_wrong_values_in_a_work_file_are_refused(edges: Path) -> None:
    work = stop_before(edges, "writing features")
    neighbours = np.load(work / "graph" / "weights.npy", mmap_mode="r+")
    neighbours[7] = np.nan
    neighbours.flush()
    with pytest.raises(
        InputError, match=r"weights.npy, entry 8|features.npy: expected finite numbers"
    ):
        prepare(edges, out=edges.parent / "g.graph")
    ends_whole(edges)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_damaged_database_does_not_block(share: float, edges: Path) -> None:
    work = stop_before(edges, "sorting edges")
    database = bytearray((work / "work.duckdb").read_bytes())
    start = int(share * len(database))
    database[start : start + len(database) // 10] = b"\x55" * (len(database) // 10)
    (work / "work.duckdb").write_bytes(database)
    with pytest.raises(InputError, match="the same command starts anew"):
        prepare(edges, out=edges.parent / "g.graph")
    assert not work.exists()
    ends_whole(edges)


def test_a_note_that_cannot_be_read_is_another(edges: Path) -> None:
    work = stop_before(edges, "sorting edges")
    (work / "asked.json").write_bytes(b"\xff\xfe")
    ends_whole(edges)
