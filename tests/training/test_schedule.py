"""Schedules: the rate of each step, and which one a training takes."""

from __future__ import annotations

import pytest
import torch
from sample_graphs import random_graph

from infomax import DGI
from infomax.kernels import Adam, Backend
from infomax.progress import training_position
from infomax.training.schedule import ConstantRate, WarmUpCosine, peak_rate


@pytest.mark.parametrize("step_count", [0, 1, 2, 3, 9, 10, 200])
def test_a_rate_for_each_step_rises_to_the_peak_and_then_falls_but_stays_above_zero(step_count):
    rates = WarmUpCosine(0.5).rates(step_count)
    assert len(rates) == step_count
    assert all(0 < rate <= 0.5 for rate in rates)
    if step_count:
        highest = rates.index(max(rates))
        assert max(rates) == 0.5
        assert rates[: highest + 1] == sorted(rates[: highest + 1])
        assert rates[highest:] == sorted(rates[highest:], reverse=True)


def test_the_rate_in_the_middle_of_the_cosine_is_half_of_the_peak():
    rates = WarmUpCosine(0.002, warm_up_share=0.2).rates(100)
    assert rates[9] == pytest.approx(0.001)
    assert rates[19] == rates[20] == 0.002
    assert rates[60] == pytest.approx(0.001)


def test_narrow_encoders_take_a_higher_rate():
    assert (peak_rate(512), peak_rate(64)) == (0.002, 0.004)
    assert ConstantRate.usual_peak(64) == 0.001


@pytest.mark.parametrize("large", [0, 1 << 62], ids=["compiled", "plain"])
def test_adam_takes_the_rate_of_each_step(large, generator):
    start, rates = torch.randn(30, generator=generator), [0.1, 0.3, 0.02]
    ours, theirs = start.clone(), start.clone().requires_grad_()
    adam = Adam([ours], rates, Backend(torch.device("cpu"), fewest_numbers=large))
    reference = torch.optim.Adam([theirs], lr=1.0)
    for rate in rates:
        gradient = torch.randn(30, generator=generator)
        reference.param_groups[0]["lr"] = rate
        adam.step([gradient])
        theirs.grad = gradient.clone()
        reference.step()
    torch.testing.assert_close(ours, theirs.detach())


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({}, (WarmUpCosine, 0.002, 200, None)),
        ({"dim": 64, "epochs": 9}, (WarmUpCosine, 0.004, 9, None)),
        ({"preset": "batches"}, (WarmUpCosine, 0.002, 200, None)),
        ({"preset": "many-graphs"}, (WarmUpCosine, 0.001, 20, None)),
        ({"vectors": "paper"}, (ConstantRate, 0.001, 10_000, 20)),
        ({"vectors": "paper", "dim": 64, "epochs": 9}, (ConstantRate, 0.001, 9, None)),
        ({"vectors": "paper", "preset": "batches"}, (ConstantRate, 0.001, 300, None)),
        ({"vectors": "paper", "preset": "many-graphs"}, (ConstantRate, 0.001, 20, None)),
        ({"patience": 7}, (ConstantRate, 0.001, 10_000, 7)),
        ({"patience": 7, "epochs": 50, "lr": 0.1}, (ConstantRate, 0.1, 50, 7)),
        ({"vectors": "paper", "schedule": WarmUpCosine}, (WarmUpCosine, 0.002, 200, None)),
        ({"schedule": ConstantRate}, (ConstantRate, 0.001, 200, None)),
    ],
    ids=str,
)
def test_what_is_given_decides_about_schedule_rate_epochs_and_patience(options, settings):
    preset = DGI(**options).settings()
    assert (preset.schedule, preset.lr, preset.epochs, preset.patience) == settings


def test_patience_for_a_model_that_was_trained_by_a_schedule_takes_the_papers_rate(graph):
    preset = DGI(dim=4, epochs=2).fit(graph).preset_
    again = DGI(preset=preset, patience=3).settings()
    assert (again.schedule, again.lr, again.epochs) == (ConstantRate, 0.001, 2)


def test_a_run_by_the_papers_protocol_is_described_as_before_there_were_schedules():
    settings = DGI(vectors="paper").settings().describe()
    assert "schedule" not in settings
    assert DGI().settings().describe()["schedule"] == {"part": "WarmUpCosine"}


def test_the_length_of_a_training_is_known_before_its_first_epoch():
    totals = []
    model = DGI(4, device="cpu")
    model.fit(
        random_graph(40), progress=lambda training: totals.append(training_position(training)[2])
    )
    assert set(totals) == {200}
    assert model.health_["epochs"] == model.health_["kept_epoch"] == 200


def test_weights_are_kept_only_where_a_training_may_stop_early():
    kept = []
    for options in ({}, {"patience": 3, "epochs": 4}):
        DGI(4, epochs=options.pop("epochs", 3), device="cpu", **options).fit(
            random_graph(40),
            progress=lambda training: kept.append(training.ledger.kept_weights is None),
        )
    assert set(kept[:3]) == {True}
    assert set(kept[3:]) == {False}
