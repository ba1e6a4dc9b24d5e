"""A graph folder trains and embeds as the same graph in memory does."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pyarrow.parquet import read_table as read
from sample_graphs import random_graph

from infomax import DGI, Graph, memory
from infomax.arrays import adjacency as arrays
from infomax.arrays.scaling import Scaler
from infomax.errors import InputError
from infomax.io.graph_folder import finish, write_arrays
from infomax.kernels import transfer
from infomax.kernels.device import choose_device
from infomax.parts.encoders import GCN, DenseSkipMeanPool, SkipMeanPool, TwoHops
from infomax.training import embed as engine
from infomax.training import runs
from infomax.training import vectors as embedding
from infomax.views import stored as tables
from infomax.views.batches import Batches, NextPair
from infomax.views.operands import scaled

ENCODERS = {
    "GCN": GCN,
    "deep": partial(GCN, layers=2),
    "skip": SkipMeanPool,
    "dense skip": DenseSkipMeanPool,
    "two hops": TwoHops,
}


def folder(path: Path, graph: Graph, *, halved: bool = False) -> Graph:
    """The same graph, opened from a folder."""
    path.mkdir()
    about = write_arrays(graph, path)
    if halved:
        np.save(path / "features.npy", graph.features.astype(np.float16))
    finish(path, about)
    return Graph.open(path)


def a_graph(*, sparse: bool = False, **changes: bool) -> Graph:
    """A graph whose features are dense, or sparse: 36 of 600 columns in a row."""
    graph = random_graph(n=120, f=600 if sparse else 12, dense=not sparse, **changes)
    return (
        graph.replace(features=graph.features.multiply(np.arange(600) % 5 == 0).tocsr())
        if sparse
        else graph
    )


@pytest.mark.parametrize(
    ("encoder", "changes"),
    [
        ("GCN", {}),
        ("GCN", {"weighted": True}),
        ("GCN", {"directed": True}),
        ("deep", {}),
        ("skip", {"weighted": True}),
        ("dense skip", {"directed": True}),
        ("two hops", {}),
        ("GCN", {"sparse": True, "weighted": True}),
        ("two hops", {"sparse": True}),
    ],
)
def test_vectors_are_those_of_the_graph_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: str, changes: dict[str, bool]
) -> None:
    monkeypatch.setattr(engine, "NODES_PER_BLOCK_ON_DISK", {"cpu": 50})
    monkeypatch.setattr(tables, "BYTES_PER_BLOCK", 20_000)  # several parts per block
    graph = a_graph(**changes)
    disk = folder(tmp_path / "g.graph", graph)
    assert disk.table.sparse == changes.get("sparse", False)
    mine, theirs = (
        DGI(8, preset="batches", encoder=ENCODERS[encoder], epochs=3).fit(g) for g in (disk, graph)
    )
    # In memory sparse features are multiplied by the weights before they are pooled, so sums are in another order.
    # The encoder's vectors are a part of the recipe's, which have other columns beside them.
    paper_tolerance = 2e-5 if disk.table.sparse else 2e-6
    for vectors, atol in (("paper", paper_tolerance), ("recipe", max(1e-5, paper_tolerance))):
        expected = theirs.transform(graph, vectors=vectors)
        found = mine.transform(disk, vectors=vectors)
        np.testing.assert_allclose(found.vectors, expected.vectors, atol=atol)
        assert found.ids.tolist() == expected.ids.tolist()
        rows = np.arange(0, 120, 7)
        some = mine.transform(disk, vectors=vectors, rows=rows)
        np.testing.assert_allclose(some.vectors, expected.vectors[rows], atol=atol)
        assert some.ids.tolist() == graph.ids[rows].tolist()
    assert mine.health_["effective_rank"] == pytest.approx(
        theirs.health_["effective_rank"], abs=0.02
    )


@pytest.mark.parametrize("kind", ["auto", "rows", "columns", "none"])
@pytest.mark.parametrize("halved", [False, True])
def test_rows_are_scaled_as_they_are_read(tmp_path: Path, kind: Any, halved: bool) -> None:
    graph = random_graph(n=50, dense=True)
    disk = folder(tmp_path / "g.graph", graph, halved=halved)
    features = graph.features.astype(np.float16).astype(np.float32) if halved else graph.features
    scaler = disk.table.fit_scaler(kind)
    whole = Scaler.fit(features, kind)
    assert scaler.scale == whole.scale
    scaled = disk.table.scaled(scaler)
    assert scaled.mapped
    for rows in (slice(3, 9), np.array([7, 1, 1]), np.arange(50) % 2 == 0):
        np.testing.assert_allclose(scaled[rows], whole.transform(features)[rows], rtol=1e-6)
        assert scaled[rows].dtype == np.float32


def test_auto_takes_batches_and_other_presets_read_the_graph(tmp_path: Path) -> None:
    graph = random_graph(n=60, dense=True)
    disk = folder(tmp_path / "g.graph", graph)
    assert DGI().choose_preset(disk, choose_device("cpu")) == (
        "batches",
        "the graph is read from disk",
    )
    model = DGI(4, epochs=2).fit(disk)
    assert model.preset_.views is Batches
    whole = DGI(4, preset="whole-graph", epochs=2)
    np.testing.assert_allclose(
        whole.fit(disk).transform(disk).vectors,
        whole.fit(graph).transform(graph).vectors,
        atol=1e-5,
    )


def test_unseen_nodes_change_nothing(tmp_path: Path) -> None:
    graph = random_graph(n=60, dense=True)
    seen = np.arange(60) < 40
    split = Graph.from_scipy(graph.adjacency, graph.features, splits={"seen": seen})
    disk = folder(tmp_path / "g.graph", split)
    assert disk.splits["seen"].tolist() == seen.tolist()
    settings = {"preset": "batches", "epochs": 3}
    np.testing.assert_allclose(
        DGI(4, **settings).fit(disk).transform(disk).vectors,
        DGI(4, **settings).fit(split).transform(split).vectors,
        atol=1e-5,
    )


@pytest.mark.parametrize(
    "changes", [{}, {"directed": True, "weighted": True}], ids=["plain", "directed, weighted"]
)
def test_a_part_of_a_graph_folder_is_that_of_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, bool]
) -> None:
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 8 * 20)  # several blocks
    graph = random_graph(n=60, dense=True, **changes)
    disk, mask = folder(tmp_path / "g.graph", graph), np.arange(60) % 3 > 0
    mine, theirs = disk.part(mask), graph.part(mask)
    assert (mine.adjacency != theirs.adjacency).nnz == 0
    assert mine.adjacency.has_sorted_indices
    np.testing.assert_array_equal(mine.features, theirs.features)
    assert (mine.ids.tolist(), mine.folder) == (theirs.ids.tolist(), None)


def test_what_does_not_fit_into_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = folder(tmp_path / "g.graph", random_graph(n=60, dense=True))
    monkeypatch.setattr(memory, "free_bytes", lambda: 1000)
    for attempt, remedy in (
        (lambda: disk.hold_out_edges(0.1), "Take edges out of the table before infomax prepare"),
        (
            lambda: disk.part(np.arange(60) < 40),
            "Make a graph folder of these nodes alone: infomax prepare",
        ),
        (disk.loaded, "Use --preset batches"),
    ):
        with pytest.raises(
            InputError,
            match=rf"graph folder: expected .* free, to read .*, found 1.0 kB\. {remedy}",
        ):
            attempt()


class Stop(KeyboardInterrupt):
    """What ends a training early."""


@pytest.mark.parametrize("fits", [True, False])
def test_a_run_names_its_graph_folder_and_resumes_in_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: bool
) -> None:
    disk = folder(tmp_path / "g.graph", random_graph(n=60, dense=True))
    model = DGI(4, epochs=6).fit(disk, run=tmp_path / "whole")
    ahead: list[NextPair] = []
    monkeypatch.setattr(
        NextPair, "_read", lambda self, read=NextPair._read: (ahead.append(self), read(self))
    )
    monkeypatch.setattr(tables, "SHARE_OF_FREE_MEMORY", 1 if fits else 0)

    def stop(training: Any) -> None:
        if len(training.history) == 3:
            raise Stop

    with pytest.raises(Stop):
        DGI(4, epochs=6).fit(disk, run=tmp_path / "halves", progress=stop)
    DGI(4, epochs=6).fit(disk, run=tmp_path / "halves")
    files = [(tmp_path / name / runs.MODEL).read_bytes() for name in ("whole", "halves")]
    assert files[0] == files[1]
    # What fits into memory is not read by further threads; else each of two halves reads 3 batches and one ahead.
    assert len(ahead) == (0 if fits else 2 * (3 + 1))
    assert not (tmp_path / "whole" / runs.GRAPH).exists()
    loaded = DGI.load(tmp_path / "whole")
    assert loaded.graph_.folder == (tmp_path / "g.graph").resolve()
    np.testing.assert_array_equal(
        loaded.transform(loaded.graph_).vectors, model.transform(disk).vectors
    )


def test_a_graph_folder_that_moved_or_changed_is_told(tmp_path: Path) -> None:
    disk = folder(tmp_path / "g.graph", random_graph(n=60, dense=True))
    DGI(4, epochs=1).fit(disk, run=tmp_path / "run")
    (tmp_path / "g.graph").rename(tmp_path / "moved.graph")
    with pytest.raises(
        InputError,
        match=r'g\.graph: expected the graph folder .* found none there\. .*"graph_folder"',
    ):
        DGI.load(tmp_path / "run")
    config = tmp_path / "run" / runs.CONFIG
    values = json.loads(config.read_text())
    config.write_text(json.dumps(values | {"graph_folder": str(tmp_path / "moved.graph")}))
    assert DGI.load(tmp_path / "run").graph_.num_nodes == 60
    about = tmp_path / "moved.graph" / "graph.json"
    about.write_text(about.read_text().replace('"infomax": "', '"infomax": "1'))
    with pytest.raises(InputError, match=r"moved\.graph: .* found one that has changed"):
        DGI.load(tmp_path / "run")


@pytest.mark.parametrize("kind", ["rows", "columns", "none"])
def test_a_file_is_read_in_blocks_and_scaled_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setattr(transfer, "BYTES_PER_READ", 200)
    graph = random_graph(n=120, dense=True)
    disk = folder(tmp_path / "g.graph", graph)
    scaler, found = Scaler.fit(graph.features, kind), np.empty_like(graph.features)
    assert transfer.is_mapped(disk.table.values)
    starts = []
    for start, block in transfer.read_blocks(disk.table.values, torch.device("cpu")):
        found[start : start + len(block)] = scaled(block, scaler).numpy()
        starts.append(start)
    assert len(starts) > 16  # more blocks than page-locked stages
    np.testing.assert_allclose(found, scaler.transform(graph.features), rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_gpu_computes_the_same_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: str, sparse: bool
) -> None:
    monkeypatch.setattr(engine, "NODES_PER_BLOCK_ON_DISK", {"cpu": 50, "cuda": 50})
    monkeypatch.setattr(embedding, "NODES_PER_PART", 40)
    disk = folder(tmp_path / "g.graph", a_graph(sparse=sparse))
    model = DGI(8, preset="batches", encoder=ENCODERS[encoder], epochs=3).fit(disk)
    for vectors in ("paper", "recipe"):
        model.device = "cpu"
        expected = model.transform(disk, vectors=vectors).vectors
        model.device = "cuda"
        np.testing.assert_allclose(
            model.transform(disk, vectors=vectors).vectors, expected, atol=5e-3
        )
        model.write_vectors(disk, tmp_path / f"vectors-{vectors}", vectors=vectors)
        tables = [
            read(path)["vector"] for path in sorted((tmp_path / f"vectors-{vectors}").glob("part*"))
        ]
        written = np.concatenate(
            [np.stack(table.to_numpy(zero_copy_only=False)) for table in tables]
        )
        np.testing.assert_allclose(written, expected, atol=5e-3)
