"""Processes that share a training end where one process ends, and in the same bits whenever they are as many."""

from __future__ import annotations

import re
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from processes import in_processes
from sample_graphs import random_graph, typed_graph

from infomax import DGI, Graph, InputError, kernels
from infomax.kernels.ranks import LARGEST_GATHERED, Portion, Ranks
from infomax.parts.encoders import GCN, SkipMeanPool
from infomax.training import vectors as embedding
from infomax.views import Batches
from infomax.views import stored as tables
from infomax.views.batches import NextPair
from infomax_paper.patches import PATCHES as PATCHES_PRESET
from infomax_paper.patches import Patches

RANKS, NODES = 3, 31
PATCHES = {
    "preset": PATCHES_PRESET,
    "views": partial(Patches, fan_out=(3, 2), batch=10),
    "encoder": partial(SkipMeanPool, layers=2),
    "lr": 1e-2,
    "epochs": 3,
}
"""The last batch of an epoch has one node, so that two of three ranks have none."""
SETTINGS = {
    "batches": {"views": partial(Batches, batch=20)},
    "all nodes": {"views": partial(Batches, batch=99)},
    "two layers, capped": {
        "views": partial(Batches, batch=10, cap=2),
        "encoder": partial(GCN, layers=2),
    },
    "early stop": {"epochs": 40, "patience": 2},
    "patches": PATCHES,
    "several types": {"preset": "type-batches", "views": partial(Batches, batch=12)},
}
CASES = [(name, compiled) for name in SETTINGS for compiled in (False, True)]
DIFFERS = "another on each rank"
REFUSED = {
    "the preset batches, found WholeGraph": {"preset": "whole-graph"},
    "3 nodes or more, one for each process, found 2": {"views": partial(Batches, batch=2)},
    "rank 1: expected seed 0, as on rank 0, found 1": {"seed": DIFFERS},
    "rank 1: expected graph": {"graph": DIFFERS},
    "rank 2, preset: expected one of": {"preset": DIFFERS},
    "the paper's encoder, shuffle, readout": {"objective": torch.nn.functional.mse_loss},
}
"""A part of the message, and the settings."""


def trained(name: str, compiled: bool) -> list[NDArray[np.float32]]:
    """The weights of a small training; with numba's kernels where it is compiled."""
    before, kernels.FEWEST_NUMBERS_FOR_NUMBA = (
        kernels.FEWEST_NUMBERS_FOR_NUMBA,
        0 if compiled else kernels.FEWEST_NUMBERS_FOR_NUMBA,
    )
    try:
        settings = {"dim": 8, "epochs": 6, "preset": "batches", "seed": 1} | SETTINGS[name]
        graph = (
            typed_graph(dense=compiled)
            if name == "several types"
            else random_graph(NODES, dense=compiled)
        )
        model = DGI(**settings).fit(graph)
    finally:
        kernels.FEWEST_NUMBERS_FOR_NUMBA = before
    return [weight.detach().numpy() for weight in model.model_.parameters()]


def train_twice(name: str, compiled: bool) -> list[NDArray[np.float32]]:
    """The weights, which are the same bits again and on the other ranks."""
    first, second = trained(name, compiled), trained(name, compiled)
    for ours, again in zip(first, second, strict=True):
        np.testing.assert_array_equal(ours, again)
        assert len(set(Ranks.current().texts(ours.tobytes().hex()))) == 1
    return first


def refuse(settings: dict[str, object]) -> str:
    """The message with which all ranks refuse."""
    rank, graph = Ranks.current().rank, random_graph(NODES)
    differing = {"seed": rank, "preset": "batches" if rank < 2 else "none"}
    settings = {
        name: differing.get(name) if value == DIFFERS else value for name, value in settings.items()
    }
    if "graph" in settings:
        graph = random_graph(NODES, seed=rank)
        del settings["graph"]
    with pytest.raises(InputError) as error:
        DGI(**{"dim": 8, "epochs": 6, "preset": "batches"} | settings).fit(graph)
    return str(error.value)


def interrupt_one_rank(folder: Path) -> None:
    """A Ctrl-C that reaches only rank 1 stops all ranks after the same epoch; they resume to the same bits."""
    graph, model = random_graph(NODES), DGI(dim=8, **PATCHES)

    def stop(training) -> None:
        if training.ranks.rank == 1 and len(training.history) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(graph, run=folder, progress=stop)
    straight = DGI(dim=8, **PATCHES).fit(graph)
    assert (folder / "checkpoint.safetensors").exists()
    Ranks.current().wait()
    resumed = model.fit(graph, run=folder)
    for a, b in zip(resumed.model_.parameters(), straight.model_.parameters(), strict=True):
        assert torch.equal(a, b)
    assert (folder / "model.safetensors").exists()
    np.testing.assert_array_equal(
        DGI.load(folder).transform(graph).vectors, straight.transform(graph).vectors
    )


def add_in_order() -> None:
    """Sums, small or large, are those of the ranks one after the other, bit for bit."""
    ranks = Ranks.current()
    for size in (1, 7, LARGEST_GATHERED, LARGEST_GATHERED + 1, 70_001):
        addends = [
            torch.randn(3, size, generator=torch.Generator().manual_seed(rank))
            for rank in range(ranks.count)
        ]
        total = sum(addends[1:], addends[0])
        mine = addends[ranks.rank]
        found = ranks.sum([mine, mine[:, 0]])
        assert torch.equal(found[0], total)
        assert torch.equal(found[1], total[:, 0])


def add_in_double_precision() -> None:
    """Numbers of single precision are added in double precision, then rounded once."""
    ranks = Ranks.current()
    mine = torch.tensor([[1e8, 1, 0.1], [1, 1e8, 0.1], [-1e8, -1e8, 0.1]])[ranks.rank]
    (found,) = Portion.of(NODES, ranks).sum(mine)
    assert found.dtype == torch.float32
    assert found.tolist() == torch.tensor([1, 1, 3 * torch.tensor(0.1).double()]).float().tolist()


def share_rows() -> None:
    """Every row is one rank's, in the order of the ranks, and the ranks have equally many or one more."""
    ranks = Ranks.current()
    for n in range(20):
        rows = ranks.rows(n)
        found = [tuple(map(int, text.split())) for text in ranks.texts(f"{rows.start} {rows.stop}")]
        assert [row for first, last in found for row in range(first, last)] == list(range(n))
        assert {last - first for first, last in found} <= {n // ranks.count, n // ranks.count + 1}


def share_parts(folder: Path, out: Path) -> None:
    """Each part of the vectors is written once, by one of the ranks, and every rank writes one."""
    parquet, ranks, names = pytest.importorskip("pyarrow.parquet"), Ranks.current(), []

    class Recorded(parquet.ParquetWriter):
        def __init__(self, where: Path, *arguments: Any, **options: Any) -> None:
            names.extend(re.findall(r"part-\d+", Path(where).name))
            super().__init__(where, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ParquetWriter", Recorded)
        patch.setattr(embedding, "NODES_PER_PART", NODES // RANKS)
        graph = Graph.open(folder)
        DGI(dim=4, epochs=0, preset="batches").fit(graph).write_vectors(graph, out)
    found = [text.split() for text in ranks.texts(" ".join(names))]
    assert all(found)
    assert sorted(chain.from_iterable(found)) == [
        f"part-{number:05d}" for number in range(RANKS + 1)
    ]


def read_ahead(folder: Path) -> None:
    """A training on a graph folder ends in the same bits whether a thread reads the next batch or not."""
    found, ahead = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            NextPair, "_read", lambda self, read=NextPair._read: (ahead.append(self), read(self))
        )
        for room in (1, 0):
            patch.setattr(tables, "SHARE_OF_FREE_MEMORY", room)
            model = DGI(dim=8, epochs=6, preset="batches", views=partial(Batches, batch=20)).fit(
                Graph.open(folder)
            )
            found.append(list(model.model_.parameters()))
            assert bool(ahead) == (room == 0)
    assert all(map(torch.equal, *found))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    place = tmp_path_factory.mktemp("group")
    tasks = [(train_twice, case) for case in CASES]
    tasks += [(refuse, (settings,)) for settings in REFUSED.values()] + [
        (interrupt_one_rank, (place / "run",))
    ]
    random_graph(NODES, dense=True).save(place / "g.graph")
    tasks += [
        (add_in_order, ()),
        (add_in_double_precision, ()),
        (share_rows, ()),
        (read_ahead, (place / "g.graph",)),
    ]
    tasks += [(share_parts, (place / "g.graph", place / "vectors"))]
    results = in_processes(RANKS, tasks)
    return dict(
        zip(
            [*CASES, *REFUSED, "interrupt", "sums", "precision", "rows", "ahead", "parts"],
            results,
            strict=True,
        )
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ranks_end_in_the_weights_of_one_process(case, outcomes):
    alone = trained(*case)
    for together in outcomes[case]:
        assert not isinstance(together, str), together
        for ours, theirs in zip(together, alone, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("message", REFUSED)
def test_all_ranks_refuse_with_one_message(message, outcomes):
    assert message in outcomes[message][0]
    assert len(set(outcomes[message])) == 1


def test_an_interrupt_on_one_rank_stops_all_and_resumes_to_the_same_bits(outcomes):
    assert outcomes["interrupt"] == (None,) * RANKS


def test_sums_are_added_in_the_order_of_the_ranks(outcomes):
    assert outcomes["sums"] == (None,) * RANKS


def test_sums_are_added_in_double_precision(outcomes):
    assert outcomes["precision"] == (None,) * RANKS


def test_rows_are_shared(outcomes):
    assert outcomes["rows"] == (None,) * RANKS


def test_parts_are_shared(outcomes):
    assert outcomes["parts"] == (None,) * RANKS


def test_reading_ahead_changes_nothing(outcomes):
    assert outcomes["ahead"] == (None,) * RANKS
