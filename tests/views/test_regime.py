"""A regime of one's own: what it says of itself is asked, and a training in it is resumed with its preset."""

from __future__ import annotations

import json
from functools import partial

import pytest
import torch
from sample_graphs import random_graph

from infomax import DGI, InputError
from infomax.kernels import Backend, room
from infomax.kernels.ranks import Ranks
from infomax.parts.corruptions import flip_edges, shuffle_features
from infomax.training import checkpoints
from infomax.views import MEAN, Batches, WholeGraph


class MyBatches(Batches):
    """Its name contains that of another regime."""


class Greedy(WholeGraph):
    corruptions = ("shuffle_features",)

    def __init__(self, *args, appetite):
        super().__init__(*args)

    @classmethod
    def bytes(cls, graph, sizes, device, *, appetite):
        return appetite * graph.num_nodes * sizes.dim * sizes.layers * sizes.out_dim


def stop(training) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("views", [MyBatches, None], ids=["own", "infomax's"])
def test_a_training_is_resumed_with_the_preset_that_it_was_begun_with(
    tmp_path, graph, monkeypatch, views
):
    """Also where less memory is free by then, so that another would be chosen."""
    DGI(dim=8, patience=2, views=views).fit(graph, run=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        DGI(dim=8, patience=2, views=views).fit(graph, run=tmp_path / "cut", progress=stop)
    monkeypatch.setattr(room, "available_bytes", lambda device: 0)
    monkeypatch.setattr(Batches, "bytes", lambda *_, **__: 0)
    assert DGI().choose_preset(graph, torch.device("cpu"))[0] == "batches"
    monkeypatch.setattr(room, "require", lambda *args: None)
    DGI(dim=8, patience=2, views=views).fit(graph, run=tmp_path / "cut")
    whole, cut = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut"))
    assert whole == cut


def test_a_run_names_its_preset(tmp_path, graph):
    DGI(dim=8, preset="batches", epochs=1).fit(graph, run=tmp_path / "run")
    assert (
        json.loads((tmp_path / "run" / "config.json").read_text())["settings"]["preset"]
        == "batches"
    )
    assert DGI.load(tmp_path / "run").preset_.name == "batches"


def test_a_checkpoint_that_names_no_preset_is_resumed_only_if_the_preset_is_named(tmp_path, graph):
    with pytest.raises(KeyboardInterrupt):
        DGI(dim=8, epochs=3).fit(graph, run=tmp_path / "run", progress=stop)
    path = tmp_path / "run" / "checkpoint.safetensors"
    tensors, values = checkpoints.load(path)
    assert values.pop("preset") == "whole-graph"
    checkpoints.save(path, tensors, values)
    with pytest.raises(InputError, match=r"a run that names its preset, .* Name it: --preset"):
        DGI(dim=8, epochs=3).fit(graph, run=tmp_path / "run")
    DGI(dim=8, epochs=3, preset="whole-graph").fit(graph, run=tmp_path / "run")


def test_a_regime_estimates_its_own_memory(graph, monkeypatch):
    asked = []
    monkeypatch.setattr(room, "require", lambda needed, device, *further: asked.append(needed))
    DGI(dim=8, views=partial(Greedy, appetite=3), epochs=0, vectors="paper").fit(graph)
    assert asked[0] == 3 * graph.num_nodes * 8 * 8


def test_a_regime_says_which_corruptions_fit_it(graph):
    with pytest.raises(
        InputError, match="corruption: expected shuffle_features, for Greedy, found flip_edges"
    ):
        DGI(dim=8, views=partial(Greedy, appetite=1), corruption=partial(flip_edges, rho=0.1)).fit(
            graph
        )
    own = partial(lambda view, generator, rate: shuffle_features(view, generator), rate=1)
    DGI(dim=8, views=partial(Greedy, appetite=1), corruption=own, epochs=1).fit(graph)


def test_a_regime_is_a_subclass_of_views(graph):
    class Bare:
        def __init__(self, graph, rule, corruption, device):
            pass

    for views in (
        Bare,
        lambda graph, rule, corruption, backend: WholeGraph(graph, rule, corruption, backend),
    ):
        with pytest.raises(
            InputError, match=r"^views: expected a subclass of infomax.views.Views, found "
        ):
            DGI(dim=8, views=views).fit(graph)


def test_a_regime_that_does_not_divide_its_steps_runs_in_one_process():
    with pytest.raises(
        InputError, match=r"training in 3 processes: .* found WholeGraph, which runs in one process"
    ):
        WholeGraph(random_graph(), MEAN, shuffle_features, Backend(torch.device("cpu"))).divide(
            Ranks(0, 3)
        )
