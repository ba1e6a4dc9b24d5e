"""Tables on disk: what numba pools straight from the file is what is read, scaled and pooled in parts."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from scipy import sparse

from infomax import Graph, InputError
from infomax.arrays.scaling import Scaler
from infomax.arrays.table import FeatureTable, SparseRows
from infomax.kernels import Backend
from infomax.kernels.host import on_one_thread
from infomax.kernels.random import Permutation
from infomax.views import operands
from infomax.views.neighbourhoods import KnownRows, neighbourhoods
from infomax.views.propagation import MEAN, NEIGHBOURS, SYMMETRIC
from infomax.views.stored import StoredTable

PLAIN = Backend(torch.device("cpu"))
COMPILED = Backend(torch.device("cpu"), fewest_numbers=0)
"""Whatever the work is, by compiled kernels."""


def read_neighbourhoods(graph, rule, backend, cap):
    """The neighbourhoods of a graph of one type."""
    return neighbourhoods(graph.edges.senders, rule, backend, cap)


@pytest.fixture
def mapped(tmp_path):
    """Features whose mean is far from zero, mapped from a file."""
    x = np.random.default_rng(0).normal(100, 1, (60, 7)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    return np.load(tmp_path / "x.npy", mmap_mode="c")


@pytest.mark.parametrize("kind", ["none", "columns", "rows"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cap", [1000, 2])
@pytest.mark.parametrize("precision", [np.float32, np.float16])
def test_pooled_from_the_file_and_in_parts(kind, weighted, cap, precision, mapped, generator):
    graph, mapped = random_graph(60, weighted=weighted), mapped.astype(precision, copy=False)
    graph_neighbourhoods, compiled = (
        read_neighbourhoods(graph, SYMMETRIC, backend, cap) for backend in (PLAIN, COMPILED)
    )
    table = StoredTable(
        FeatureTable(mapped, scaler=Scaler.fit(np.array(mapped), kind), mapped=True)
    )
    nodes = torch.randperm(60, generator=generator)[:40]
    offsets = torch.rand(40, generator=generator)
    permutation = Permutation.draw(60, generator)
    for rows in (None, permutation):
        expected = table.pool(
            graph_neighbourhoods, nodes, offsets, rows
        )  # too few numbers to compile anything
        for large in (False, True):
            table.large = large
            found = table.pool(compiled, nodes, offsets, rows)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["none", "columns", "rows"])
@pytest.mark.parametrize("precision", [np.float32, np.float16])
@pytest.mark.parametrize("large", [False, True])
def test_rows_that_are_stored_sparse_are_read_as_dense_ones(
    kind, precision, large, monkeypatch, generator
):
    """Whatever the scaler: one that was fitted to dense features has a centre."""
    draws = np.random.default_rng(1)
    x = (draws.integers(1, 9, (60, 7)) * (draws.random((60, 7)) < 0.3)).astype(precision)
    x[5] = 0
    rows = sparse.csr_array(x.astype(np.float32))
    stored = SparseRows(rows.indptr, rows.indices, rows.data.astype(precision), 7)
    graph_neighbourhoods = read_neighbourhoods(
        random_graph(60, weighted=True), SYMMETRIC, COMPILED, 3
    )
    scaler = Scaler.fit(x.astype(np.float32), kind)
    nodes, offsets = torch.randperm(60, generator=generator), torch.rand(60, generator=generator)
    for permutation in (None, Permutation.draw(60, generator)):
        tables = [
            StoredTable(FeatureTable(values, scaler=scaler, mapped=True)) for values in (x, stored)
        ]
        tables[1].large = large
        expected, found = (
            table.pool(graph_neighbourhoods, nodes, offsets, permutation) for table in tables
        )
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(
            on_one_thread(tables[1]._pool_parts, graph_neighbourhoods, nodes, offsets, permutation),
            expected,
        )
    monkeypatch.setattr(
        operands, "available_bytes", lambda device: 1 << 30
    )  # the table for a GPU, made here
    for_gpu = [operands.dense_table(table.table, PLAIN, torch.float32)[0] for table in tables]
    torch.testing.assert_close(*for_gpu)


def test_each_row_has_the_same_bits_among_few_and_among_many(mapped, generator):
    table, graph_neighbourhoods = (
        StoredTable(FeatureTable(mapped, mapped=True)),
        read_neighbourhoods(random_graph(60), MEAN, COMPILED, 2),
    )
    nodes, offsets, rows = (
        torch.arange(60),
        torch.rand(60, generator=generator),
        Permutation.draw(60, generator),
    )
    few = [table.pool(graph_neighbourhoods, some, offsets[some], rows) for some in nodes.split(5)]
    assert torch.equal(torch.cat(few), table.pool(graph_neighbourhoods, nodes, offsets, rows))


def test_rows_without_a_sample_are_kept(mapped, generator):
    table, graph_neighbourhoods = (
        StoredTable(FeatureTable(mapped, mapped=True)),
        read_neighbourhoods(random_graph(60), MEAN, COMPILED, 3),
    )
    known_rows = KnownRows.none(60, 7)
    for nodes in torch.randperm(60, generator=generator).repeat(2).split(40):
        offsets = torch.rand(len(nodes), generator=generator)
        expected = table.pool(graph_neighbourhoods, nodes, offsets)
        assert torch.equal(
            table.pool(graph_neighbourhoods, nodes, offsets, known_rows=known_rows), expected
        )
    assert known_rows.is_known.tolist() == (graph_neighbourhoods.starts.diff() <= 3).tolist()
    assert 0 < known_rows.is_known.sum() < 60


@pytest.mark.parametrize(
    ("cap", "expected"),
    [(6, [4 + 2, 6, 1, 7, 3 + 3, 7, 2]), (4, [4 + 2, 5, 1 + 5, 3 + 3, 5, 2])],
    ids=["wide", "capped"],
)
def test_parts_take_the_memory_allowed_and_no_more(cap, expected, monkeypatch):
    """Nodes whose neighbourhoods, the nodes themselves included, have no node in common; at most 6 rows are read."""
    counts, most = [3, 1, 5, 0, 9, 2, 2, 6, 1], 6
    leaves = np.arange(sum(counts)) + len(counts)
    graph = Graph.from_arrays(
        [np.repeat(np.arange(len(counts)), counts), leaves], np.eye(38, 4, dtype=np.float32)
    )
    table, read = StoredTable(FeatureTable(graph.features, mapped=True)), []
    monkeypatch.setattr(
        StoredTable,
        "gather",
        lambda self, rows, gather=table.gather: read.append(len(rows)) or gather(rows),
    )
    monkeypatch.setattr("infomax.views.stored.BYTES_PER_BLOCK", most * 4 * 4)
    nodes = torch.arange(len(counts))
    table.pool(read_neighbourhoods(graph, MEAN, PLAIN, cap), nodes, torch.zeros(len(nodes)))
    assert read == expected


def test_numba_reads_the_file_where_it_can(mapped, monkeypatch):
    graph = random_graph(60)
    graph_neighbourhoods, nodes = read_neighbourhoods(graph, MEAN, COMPILED, 1000), torch.arange(60)
    monkeypatch.setattr(StoredTable, "_pool_parts", lambda *_: "in parts")
    scaler = Scaler.fit(np.array(mapped), "columns")
    outcomes = {
        "float32": StoredTable(FeatureTable(mapped, scaler=scaler, mapped=True)),
        "a layer": StoredTable(FeatureTable(mapped, mapped=True)),
        "half": StoredTable(FeatureTable(mapped.astype(np.float16), scaler=scaler, mapped=True)),
        "by rows": StoredTable(FeatureTable(mapped, scaler=Scaler("rows"), mapped=True)),
        "double": StoredTable(FeatureTable(mapped.astype(np.float64), mapped=True)),
    }
    pooled = {
        name: table.pool(graph_neighbourhoods, nodes, torch.zeros(60))
        for name, table in outcomes.items()
    }
    assert [name for name, found in pooled.items() if isinstance(found, str)] == ["double"]


@pytest.mark.parametrize("precision", [np.float32, np.float16])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("rule", [MEAN, NEIGHBOURS], ids=["with itself", "neighbours alone"])
def test_what_is_not_finite_is_refused_where_it_is_read(
    precision, value, rule, mapped, tmp_path, monkeypatch
):
    x = np.array(mapped, precision)
    x[17, 3] = value
    np.save(tmp_path / "y.npy", x)
    scaler = Scaler.fit(np.array(mapped), "columns")
    features = FeatureTable(np.load(tmp_path / "y.npy", mmap_mode="c"), scaler=scaler, mapped=True)
    graph_neighbourhoods = read_neighbourhoods(random_graph(60), rule, COMPILED, 1000)
    monkeypatch.setattr(StoredTable, "_pool_parts", lambda *_: "in parts")
    monkeypatch.setattr(
        operands, "available_bytes", lambda device: 1 << 30
    )  # the table for a GPU, made here
    ways = {
        "numba": lambda: StoredTable(features).pool(
            graph_neighbourhoods, torch.arange(60), torch.zeros(60)
        ),
        "for a GPU": lambda: operands.dense_table(features, PLAIN, torch.half),
        "rows": lambda: features[15:20],
    }
    for read in ways.values():
        with pytest.raises(InputError, match=r"y.npy: expected finite numbers"):
            read()


def test_every_number_of_half_precision_is_read_as_it_is(monkeypatch):
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = np.append(bits[np.isfinite(bits)], [0] * 8).astype(np.float16)[:, None]
    graph_neighbourhoods = read_neighbourhoods(
        Graph.from_arrays(np.empty((0, 2), np.int64), np.float32(x)), MEAN, COMPILED, 1000
    )
    monkeypatch.setattr(StoredTable, "_pool_parts", lambda *_: "in parts")
    pooled = StoredTable(FeatureTable(x, mapped=True)).pool(
        graph_neighbourhoods, torch.arange(len(x)), torch.zeros(len(x))
    )
    np.testing.assert_array_equal(pooled.numpy(), x.astype(np.float32))


def test_a_process_ends_after_the_thread_that_reads_ahead():
    code = (
        "import time, torch\n"
        "from infomax.views import BatchView\n"
        "from infomax.views.batches import NextPair\n"
        "class Slow(BatchView):\n"
        "    def __init__(self): pass\n"
        "    def read(self):\n"
        "        until = time.monotonic() + 0.5\n"
        "        while time.monotonic() < until: torch.ones(1000).sum()\n"
        "NextPair(lambda generator: (Slow(), Slow()), torch.Generator().get_state())\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
