"""Stopped and resumed = never stopped, bit for bit; and a run folder survives what happens to folders."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from scipy import sparse

from infomax import DGI, InputError
from infomax.parts.encoders import GCN
from infomax.training import checkpoints, loop, resuming
from infomax.training.resuming import digest
from infomax.views import Batches
from infomax_paper.patches import PATCHES, Patches


class Stop:
    """Interrupts at the k-th pause, as a Ctrl-C does."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, training) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": 30, "vectors": "encoder,own"},
        {"patience": 3},
        {"preset": "batches", "epochs": 30, "views": partial(Batches, batch=15, cap=3)},
    ],
    ids=["fixed epochs", "patience", "batches"],
)
@pytest.mark.parametrize("after", [1, 7])
def test_resumed_equals_uninterrupted(tmp_path, graph, settings, after):
    DGI(dim=8, seed=3, **settings).fit(graph, run=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        DGI(dim=8, seed=3, **settings).fit(graph, run=tmp_path / "cut", progress=Stop(after))
    assert not (tmp_path / "cut" / "model.safetensors").exists()
    DGI(dim=8, seed=3, **settings).fit(graph, run=tmp_path / "cut")
    whole, cut = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut"))
    assert whole == cut
    curves = [
        json.loads((tmp_path / name / "health.json").read_text())["curve"]
        for name in ("whole", "cut")
    ]
    assert curves[0] == curves[1]
    assert not (tmp_path / "cut" / "checkpoint.safetensors").exists()


@pytest.mark.parametrize("preset", [PATCHES, "many-graphs"], ids=["patches", "many graphs"])
@pytest.mark.parametrize("after", [1, 4, 9])
def test_resumed_within_an_epoch(tmp_path, monkeypatch, preset, after):
    """An epoch of many steps pauses on the way; from there it goes on with the very same batches."""
    monkeypatch.setattr(loop, "PAUSE_SECONDS", 0.0)
    graph = random_graph(dense=True)
    graph = graph.replace(
        groups=np.arange(40) // 7, adjacency=sparse.csr_array((40, 40), dtype=np.float32)
    )
    views = partial(Patches, fan_out=(2, 2, 2), batch=9) if preset is PATCHES else None
    settings = {"dim": 8, "preset": preset, "epochs": 3, "lr": 0.01, "views": views}
    DGI(**settings).fit(graph, run=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        DGI(**settings).fit(graph, run=tmp_path / "cut", progress=Stop(after))
    DGI(**settings).fit(graph, run=tmp_path / "cut")
    whole, cut = (tmp_path / name for name in ("whole", "cut"))
    assert (whole / "model.safetensors").read_bytes() == (cut / "model.safetensors").read_bytes()
    curves = [json.loads((run / "health.json").read_text())["curve"] for run in (whole, cut)]
    assert curves[0] == curves[1]


def test_interrupted_at_its_very_end_nothing_is_trained_again(tmp_path, graph):
    trained = []
    with pytest.raises(KeyboardInterrupt):
        DGI(dim=8, epochs=5).fit(graph, run=tmp_path / "run", progress=Stop(5))
    DGI(dim=8, epochs=5).fit(graph, run=tmp_path / "run", progress=trained.append)
    assert trained == []
    DGI(dim=8, epochs=5).fit(graph, run=tmp_path / "whole")
    runs = (tmp_path / name / "model.safetensors" for name in ("run", "whole"))
    assert len({run.read_bytes() for run in runs}) == 1


def outlives(k: int, work: Callable[[], object]) -> bool:
    """Whether the work ends although the machine stops at the k-th file that is moved into place."""
    moves, replace = [None] * (k - 1) + [SystemExit("killed")], Path.replace

    def move(self: Path, target: Path) -> None:
        if moves and (end := moves.pop(0)):
            raise end
        replace(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", move)
        try:
            work()
        except SystemExit:
            return False
    return True


def test_killed_at_any_write_leaves_something_to_resume(tmp_path, graph, monkeypatch):
    """The machine stops at the k-th file that is moved into place, for every k, and the run is begun again."""
    monkeypatch.setattr(resuming, "CHECKPOINT_SECONDS", 0.0)
    expected = DGI(dim=4, epochs=4).fit(graph).transform(graph).vectors
    for k in range(1, 20):
        run = tmp_path / str(k)
        finished = outlives(k, lambda run=run: DGI(dim=4, epochs=4).fit(graph, run=run))
        if finished:
            break
        DGI(dim=4, epochs=4).fit(graph, run=run)
        loaded = DGI.load(run)
        np.testing.assert_array_equal(loaded.transform(loaded.graph_).vectors, expected)
    assert finished
    assert k > 5


@pytest.mark.parametrize("old", ["model", "checkpoint"])
def test_killed_while_a_run_is_replaced_mixes_nothing(tmp_path, old):
    graphs = [random_graph(), random_graph(seed=8)]
    models = [DGI(dim=4, epochs=4).fit(graph) for graph in graphs]
    for k in range(1, 20):
        run = tmp_path / str(k)
        if old == "checkpoint":
            with pytest.raises(KeyboardInterrupt):
                DGI(dim=4, epochs=4).fit(graphs[0], run=run, progress=Stop(2))
        else:
            models[0].save(run)
        finished = outlives(k, lambda run=run: models[1].save(run, overwrite=True))
        if not finished:
            with pytest.raises(InputError, match="expected a finished run"):
                DGI.load(run)
            DGI(dim=4, epochs=4).fit(graphs[0], run=run)
        loaded, expected = DGI.load(run), models[finished]
        vectors = loaded.transform(loaded.graph_).vectors
        np.testing.assert_array_equal(vectors, expected.transform(expected.graph_).vectors)
        if finished:
            break
    assert finished
    assert k > 4


def test_moved_folder_gives_the_same_vectors(tmp_path):
    graph = random_graph(weighted=True, directed=True, dense=True)
    model = DGI(dim=8, epochs=5).fit(graph)
    model.save(tmp_path / "run")
    shutil.move(tmp_path / "run", tmp_path / "elsewhere")
    loaded = DGI.load(tmp_path / "elsewhere")
    np.testing.assert_array_equal(
        loaded.transform(loaded.graph_).vectors, model.transform(graph).vectors
    )
    assert loaded.graph_.directed
    assert loaded.health_ == model.health_


def test_model_is_never_overwritten_silently(tmp_path, graph):
    model = DGI(dim=4, epochs=1).fit(graph)
    model.save(tmp_path / "run")
    with pytest.raises(InputError, match="a trained model"):
        model.save(tmp_path / "run")
    before = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    with pytest.raises(InputError, match="a trained model"):
        DGI(dim=4, epochs=1, seed=1).fit(graph, run=tmp_path / "run")
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == before
    model.save(tmp_path / "run", overwrite=True)


def test_numbers_of_numpy_are_plain_in_a_run(tmp_path, graph):
    encoder = partial(GCN, layers=np.int64(2))
    settings = {
        "dim": np.int64(4),
        "epochs": np.int32(1),
        "lr": np.float32(0.5),
        "seed": np.int64(1),
    }
    model = DGI(**settings, encoder=encoder, device=torch.device("cpu")).fit(graph, run=tmp_path)
    loaded = DGI.load(tmp_path)
    assert (loaded.seed, loaded.preset_.dim, loaded.preset_.lr) == (1, 4, 0.5)
    np.testing.assert_array_equal(loaded.transform(graph).vectors, model.transform(graph).vectors)


def test_what_cannot_be_written_is_refused_before_the_old_run_goes(tmp_path, graph):
    def bent(in_dim, dim, *, bend, generator):
        return GCN(in_dim, dim, generator=generator)

    DGI(dim=4, epochs=1).fit(graph).save(tmp_path)
    before = DGI.load(tmp_path).transform(graph).vectors
    model = DGI(dim=4, epochs=2, encoder=partial(bent, bend=torch.relu)).fit(graph)
    with pytest.raises(InputError, match="which a run folder can hold"):
        model.save(tmp_path, overwrite=True)
    np.testing.assert_array_equal(DGI.load(tmp_path).transform(graph).vectors, before)


@pytest.mark.parametrize("harm", ["truncate", "flip", "header"])
@pytest.mark.parametrize("name", ["model", "checkpoint"])
def test_damage_is_found(tmp_path, graph, harm, name):
    run = tmp_path / "run"
    if name == "model":
        DGI(dim=4, epochs=2).fit(graph, run=run)
    else:
        with pytest.raises(KeyboardInterrupt):
            DGI(dim=4, epochs=5).fit(graph, run=run, progress=Stop(2))
    path = run / f"{name}.safetensors"
    content = bytearray(path.read_bytes())
    if harm == "truncate":
        content = content[:-9]
    else:
        content[-9 if harm == "flip" else 40] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"safetensors: expected .*(cut short|changed)"):
        DGI.load(run) if name == "model" else DGI(dim=4, epochs=5).fit(graph, run=run)


def test_a_full_disk_is_told_and_the_old_file_stays(tmp_path):
    path, limits = tmp_path / "model.safetensors", resource.getrlimit(resource.RLIMIT_FSIZE)
    checkpoints.save(path, {"a": torch.ones(2)}, {})
    before = path.read_bytes()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(
            InputError, match=r"model.safetensors: expected a place .* found File too large\."
        ):
            checkpoints.save(path, {"a": torch.ones(1000)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_other_settings_do_not_resume(tmp_path, graph):
    with pytest.raises(KeyboardInterrupt):
        DGI(dim=4, epochs=5).fit(graph, run=tmp_path, progress=Stop(2))
    with pytest.raises(InputError, match="a checkpoint of seed 1, found one of seed 0"):
        DGI(dim=4, epochs=5, seed=1).fit(graph, run=tmp_path)
    with pytest.raises(InputError, match="a checkpoint of epochs 6, found one of epochs 5"):
        DGI(dim=4, epochs=6).fit(graph, run=tmp_path)


def test_what_a_run_has_lost_is_written_again_when_it_is_resumed(tmp_path, graph):
    with pytest.raises(KeyboardInterrupt):
        DGI(dim=4, epochs=5).fit(graph, run=tmp_path, progress=Stop(2))
    for name in ("graph.npz", "config.json"):
        (tmp_path / name).unlink()
    model = DGI(dim=4, epochs=5).fit(graph, run=tmp_path)
    loaded = DGI.load(tmp_path)
    np.testing.assert_array_equal(
        loaded.transform(loaded.graph_).vectors, model.transform(graph).vectors
    )


def test_a_folder_that_cannot_be_written_is_refused_before_training_goes_on(
    tmp_path, graph, monkeypatch
):
    with pytest.raises(KeyboardInterrupt):
        DGI(dim=4, epochs=5).fit(graph, run=tmp_path, progress=Stop(2))

    def denied(self: Path, **_: object) -> None:  # even to root
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", denied)
    trained = []
    with pytest.raises(InputError, match="a folder that can be written, found Permission denied"):
        DGI(dim=4, epochs=5).fit(graph, run=tmp_path, progress=trained.append)
    assert trained == []


@pytest.mark.parametrize(
    ("change", "other"),
    [
        ({"adjacency": random_graph(seed=8).adjacency}, "graph"),
        ({"features": random_graph(seed=8).features}, "graph"),
        ({"groups": np.arange(40) // 40}, "grouping"),
        ({"ids": np.array([f"n{row}" for row in range(40)], dtype=object)}, "list of ids"),
        ({"splits": {"seen": np.arange(40) < 39}}, "set of seen nodes"),
        ({"splits": {}}, "set of seen nodes"),
    ],
)
def test_another_graph_does_not_resume(tmp_path, graph, change, other):
    graph = graph.replace(splits={"seen": np.arange(40) < 30})
    with pytest.raises(KeyboardInterrupt):
        DGI(dim=4, epochs=5).fit(graph, run=tmp_path, progress=Stop(2))
    with pytest.raises(InputError, match=f"of this {other}, found one of another {other}"):
        DGI(dim=4, epochs=5).fit(graph.replace(**change), run=tmp_path)


def test_another_format_is_refused(tmp_path, graph):
    DGI(dim=4, epochs=1).fit(graph, run=tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"format": 99}))
    with pytest.raises(InputError, match="expected format 5, found format 99"):
        DGI.load(tmp_path)


def test_a_graph_is_known_again_by_its_numbers_not_by_their_width(graph):
    adjacency = graph.adjacency
    wide = sparse.csr_array(
        (adjacency.data, adjacency.indices.astype(np.int64), adjacency.indptr.astype(np.int64))
    )
    narrow = sparse.csr_array(
        (adjacency.data, adjacency.indices.astype(np.int32), adjacency.indptr.astype(np.int32))
    )
    assert digest(wide) == digest(narrow) != digest(2 * narrow)
