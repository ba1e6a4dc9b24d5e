"""Parts of one's own, and the library's with odd arguments."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from torch import nn

from infomax import DGI, InputError
from infomax.kernels import FEWEST_NUMBERS_FOR_NUMBA
from infomax.kernels.initialisation import glorot
from infomax.parts.encoders import GCN, Encoder, SkipMeanPool
from infomax.parts.readouts import DiffPool, Set2Set
from infomax.training.schedule import ConstantRate
from infomax.views import SYMMETRIC
from infomax_paper.patches import PATCHES, Patches


class Namesake(GCN):
    """An encoder of one's own by the name of one of infomax's."""

    def layer(self, k, view, h):
        return torch.tanh(self.linear(k, view, h))


Namesake.__name__ = Namesake.__qualname__ = "GCN"


class Normed(Encoder):
    """One whose layer remembers: running means, which are no weights."""

    rule, depth = SYMMETRIC, 1

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__()
        self.out_dim, self.weight, self.norm = (
            dim,
            glorot((in_dim, dim), generator=generator),
            nn.BatchNorm1d(dim),
        )

    def layer(self, k, view, h):
        return self.norm(view.pooled(h, self.weight))


class Dropping(Normed):
    """One that drops half of what it computes while it is trained."""

    def layer(self, k, view, h):
        return nn.functional.dropout(super().layer(k, view, h), training=self.training)


def test_a_namesake_is_not_taken_for_infomaxs_own(tmp_path):
    graph = random_graph()
    model = DGI(dim=4, encoder=Namesake, epochs=2, device="cpu").fit(graph, run=tmp_path / "run")
    with pytest.raises(
        InputError, match=r"encoder test_parts.GCN: .* in Python: DGI.load\(run, encoder=...\)"
    ):
        DGI.load(tmp_path / "run")
    loaded = DGI.load(tmp_path / "run", encoder=Namesake, device="cpu")
    np.testing.assert_array_equal(loaded.transform(graph).vectors, model.transform(graph).vectors)


def test_what_a_part_remembers_is_kept_with_the_weights(tmp_path):
    graph = random_graph(200, 8)
    settings = {"dim": 8, "encoder": Normed, "lr": 0.05, "device": "cpu"}
    stopped = DGI(patience=4, epochs=500, **settings).fit(graph, run=tmp_path / "run")
    best = stopped.health_["kept_epoch"]
    assert best < stopped.health_["epochs"]
    for name, value in (
        DGI(patience=500, epochs=best, **settings).fit(graph).model_.state_dict().items()
    ):
        torch.testing.assert_close(stopped.model_.state_dict()[name], value, rtol=0, atol=0)


def test_vectors_are_the_same_in_many_threads():
    graph = random_graph(3000, 8)
    model = DGI(dim=8, encoder=Dropping, epochs=1, device="cpu").fit(graph)
    expected = model.transform(graph).vectors
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: model.transform(graph).vectors, range(12)):
            np.testing.assert_array_equal(found, expected)


def test_a_training_leaves_torchs_settings_alone():
    with ThreadPoolExecutor(4) as threads:
        list(
            threads.map(
                lambda seed: DGI(dim=4, epochs=5, seed=seed, device="cpu").fit(random_graph()),
                range(8),
            )
        )
    assert torch.get_float32_matmul_precision() == "highest"


def test_torchs_settings_do_not_change_a_training():
    graph, model = random_graph(), DGI(dim=4, epochs=3, device="cpu")
    expected = model.fit_transform(graph).vectors
    with torch.no_grad():
        np.testing.assert_array_equal(model.fit_transform(graph).vectors, expected)
    torch.set_default_dtype(torch.float64)
    try:
        np.testing.assert_array_equal(model.fit_transform(graph).vectors, expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_child_that_was_forked_trains_as_well():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # torch's own do not survive a fork either
    try:
        train_large()
        child = multiprocessing.get_context("fork").Process(target=train_large)
        child.start()
        child.join(60)
        assert child.exitcode == 0
    finally:
        torch.set_num_threads(threads)


def train_large():
    """On as much as takes the compiled kernels."""
    DGI(dim=256, epochs=1, device="cpu").fit(random_graph(FEWEST_NUMBERS_FOR_NUMBA // 256 + 1, 8))


def test_saved_is_the_seed_that_it_was_trained_with(tmp_path):
    graph = random_graph()
    model = DGI(dim=4, epochs=2, seed=3, device="cpu").fit(graph)
    model.set_params(seed=7).save(tmp_path / "run")
    again = DGI.load(tmp_path / "run", device="cpu").fit(graph)
    np.testing.assert_array_equal(again.transform(graph).vectors, model.transform(graph).vectors)


class Exploding(ConstantRate):
    """A schedule of your own, with rates that no option allows."""

    def rates(self, step_count):
        return 1e38


def test_weights_that_the_last_step_lost_are_refused():
    with pytest.raises(InputError, match="finite weights"):
        DGI(dim=4, epochs=1, schedule=Exploding, device="cpu").fit(random_graph())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"views": partial(Patches, fan_out="5,5")}, "fan_out: expected a whole number"),
        (
            {"views": partial(Patches, batch="3")},
            "batch: expected a whole number from 1, found '3'",
        ),
        (
            {"views": partial(Patches, weighting="mean")},
            "weighting: expected sample or degree, found 'mean'",
        ),
        (
            {"encoder": partial(GCN, layers=2.0)},
            "layers: expected a whole number from 1, found 2.0",
        ),
        ({"encoder": partial(SkipMeanPool, layers="2")}, "layers: expected a whole number"),
        ({"readout": partial(Set2Set, steps=0)}, "steps: expected a whole number from 1"),
        ({"readout": partial(DiffPool, clusters=-1)}, "clusters: expected a whole number from 1"),
        ({"objective": torch.add}, r"objective: expected one number.* found .* of shape \[40\]"),
        (
            {"corruption": lambda view, generator: view.with_features(torch.zeros(19, 12))},
            r"corruption: .* features of shape \[40, 12\], found .* features of shape \[19, 12\]",
        ),
    ],
)
def test_odd_arguments_are_refused(settings, message):
    preset = PATCHES if "views" in settings else "whole-graph"
    with pytest.raises(InputError, match=message):
        DGI(dim=4, epochs=1, preset=preset, device="cpu", **settings).fit(random_graph())


def test_a_fan_out_may_be_an_array():
    views = partial(Patches, fan_out=np.array([2, 2, 2]))
    DGI(dim=4, epochs=1, preset=PATCHES, views=views, device="cpu").fit(random_graph())
