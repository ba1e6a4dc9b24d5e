"""The loop: what it forgets, and what it lets go of."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from itertools import count

import pytest
import torch
from sample_graphs import random_graph

from infomax import DGI
from infomax.estimator import build
from infomax.kernels import Backend
from infomax.parts.corruptions import flip_edges
from infomax.parts.deep_graph_infomax import DeepGraphInfomax
from infomax.progress import training_position
from infomax.training.loop import Training
from infomax.training.presets import Preset
from infomax.training.schedule import ConstantRate
from infomax.views import operands


@pytest.mark.parametrize("stride", [1, 32])
def test_what_comes_after_the_stop_is_forgotten_even_a_nan(stride):
    numbers = count()

    def rising(scores, scores_negative):
        """A loss of 0, 1, 2 ..., and NaN from the tenth on: with a patience of 3 nobody gets there."""
        number = next(numbers)
        return (scores.sum() + scores_negative.sum()) * 0 + (number if number < 10 else torch.nan)

    graph, preset = random_graph(50, 5), Preset(dim=4)
    model = build(preset, graph.num_features, torch.Generator().manual_seed(0))
    views = preset.views(graph, model.encoder.rule, preset.corruption, Backend(torch.device("cpu")))
    generator = torch.Generator().manual_seed(0)
    method = DeepGraphInfomax(objective=rising)
    training = Training(
        model,
        views,
        method,
        schedule=ConstantRate(0.001),
        epochs=100,
        patience=3,
        generator=generator,
    )
    training.stride = stride
    training.run()
    assert [record.loss for record in training.history] == [0, 1, 2, 3]


@pytest.mark.parametrize("stride", [1, 32])
def test_training_stops_after_as_many_epochs_as_its_patience_and_not_one_later(stride):
    """The epoch after the stop would have the lowest loss of all: it must not be seen."""
    losses = [3.0, 2.0, 4.0, 4.0, 2.0, 1.0]  # equal to the lowest is not lower
    numbers = count()

    def given(scores, scores_negative):
        return (scores.sum() + scores_negative.sum()) * 0 + losses[min(next(numbers), 5)]

    graph, preset = random_graph(50, 5), Preset(dim=4)
    model = build(preset, graph.num_features, torch.Generator().manual_seed(0))
    views = preset.views(graph, model.encoder.rule, preset.corruption, Backend(torch.device("cpu")))
    generator = torch.Generator().manual_seed(0)
    method = DeepGraphInfomax(objective=given)
    training = Training(
        model,
        views,
        method,
        schedule=ConstantRate(0.001),
        epochs=100,
        patience=3,
        generator=generator,
    )
    training.stride = stride
    training.run()
    assert [record.loss for record in training.history] == losses[:5]
    assert training.kept_index == 1
    assert next(numbers) == (5 if stride == 1 else 32)


@pytest.fixture
def no_collector():
    """Whatever is freed is freed at once, by its last reference."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_a_training_is_let_go_of_with_all_it_holds(monkeypatch):
    born = followed(monkeypatch, Training), followed(monkeypatch, operands.SparseOperand)
    DGI(dim=4, epochs=2, device="cpu").fit(random_graph(50, 5))
    assert all(born)
    assert [sum(thing() is not None for thing in things) for things in born] == [0, 0]


@pytest.mark.usefixtures("no_collector")
def test_a_negative_graph_is_let_go_of_when_its_step_is_over(monkeypatch):
    flipped = followed(monkeypatch, operands.SparseOperand)
    alive = []
    flips = DGI(dim=4, epochs=10, device="cpu", corruption=partial(flip_edges, rho=0.01))
    flips.fit(
        random_graph(50, 5),
        progress=lambda training: alive.append(sum(one() is not None for one in flipped)),
    )
    assert len(flipped) > 10
    assert max(alive) == min(alive)


def followed(monkeypatch, kind):
    """References to all objects of a class that are made from now on."""
    born, make = [], kind.__init__

    def follow(self, *arguments, **options):
        make(self, *arguments, **options)
        born.append(weakref.ref(self))

    monkeypatch.setattr(kind, "__init__", follow)
    return born


def test_the_bar_of_a_training_has_a_total_that_it_reaches():
    """With patience it is where the training ends if the loss falls no more, at most the last epoch."""
    for settings in (
        {"epochs": 6, "patience": None},
        {"epochs": 300, "patience": 3},
        {"epochs": 4, "patience": 20},
    ):
        told = []
        model = DGI(8, **settings, lr=0.1, device="cpu")
        model.fit(
            random_graph(40),
            progress=lambda training, told=told: told.append(training_position(training)),
        )
        totals = [total for _, _, total in told]
        assert all(done <= total <= settings["epochs"] for done, _, total in told)
        assert totals == sorted(totals)
        assert told[-1][0] == totals[-1]
