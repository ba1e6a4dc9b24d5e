"""Another method in the loop that trains DGI: the recipe of BGRL has history, health, checkpoints and a run folder."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import torch
from recipes.bgrl import BGRL, augment
from sample_graphs import random_graph
from torch.nn.functional import cosine_similarity

from infomax import DGI, InputError
from infomax.kernels import Backend
from infomax.parts.methods import Method
from infomax.reports.analysis import draw_pairs
from infomax.views import WholeGraph

GRAPH = random_graph(60, 12)
SETTINGS = {
    "dim": 8,
    "method": BGRL,
    "corruption": augment,
    "epochs": 40,
    "patience": 9,
    "lr": 0.01,
    "device": "cpu",
}


def weights(model):
    return {name: value.clone() for name, value in model.model_.state_dict().items()}


def test_it_learns_and_is_reported_by_the_names_of_its_metrics(tmp_path):
    model = DGI(**SETTINGS).fit(GRAPH, run=tmp_path / "run")
    curve = model.health_["curve"]
    assert list(curve) == ["loss", "vector_spread"]
    assert curve["loss"][-1] < 0.8 * curve["loss"][0]
    first = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    assert list(first) == ["epoch", "loss", "vector_spread"]
    assert model.health_["loss"] == pytest.approx(min(curve["loss"]), abs=1e-6)
    assert "discriminator" not in model.health_["verdict"]["reason"]
    assert "guessing_loss" not in model.health_
    again = DGI.load(tmp_path / "run", method=BGRL, corruption=augment, device="cpu")
    np.testing.assert_array_equal(again.transform(GRAPH).vectors, model.transform(GRAPH).vectors)
    assert again.health_ == json.loads(json.dumps(model.health_))
    with pytest.raises(InputError, match="another method"):
        draw_pairs(model)


@pytest.mark.parametrize("patience", [None, 9])
def test_resumed_is_as_never_stopped_with_the_target(tmp_path, patience):
    settings = SETTINGS | {"patience": patience}

    def stop(training):
        if len(training.history) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DGI(**settings).fit(GRAPH, run=tmp_path, progress=stop)
    resumed, whole = DGI(**settings).fit(GRAPH, run=tmp_path), DGI(**settings).fit(GRAPH)
    for (name, one), other in zip(weights(resumed).items(), weights(whole).values(), strict=True):
        assert torch.equal(one, other), name
    assert resumed.health_["curve"] == whole.health_["curve"]


def test_the_target_follows_the_encoder_and_is_not_trained():
    start = DGI(**SETTINGS | {"epochs": 0, "patience": None}).fit(GRAPH).model_
    model = (
        DGI(**SETTINGS | {"epochs": 1, "patience": None, "method": partial(BGRL, decay=0.75)})
        .fit(GRAPH)
        .model_
    )
    for before, fast, slow in zip(
        start.encoder.parameters(),
        model.encoder.parameters(),
        model.target.parameters(),
        strict=True,
    ):
        torch.testing.assert_close(slow, 0.75 * before + 0.25 * fast)
        assert not slow.requires_grad
    kept = DGI(**SETTINGS | {"epochs": 2, "patience": 1, "lr": 10.0}).fit(GRAPH)
    assert (
        kept.health_["kept_epoch"] == 1
    )  # the first weights: the target is kept as it was beside them
    for fast, slow in zip(
        kept.model_.encoder.parameters(), kept.model_.target.parameters(), strict=True
    ):
        assert torch.equal(fast, slow)


def test_the_loss_is_that_of_encoder_and_target_apart():
    """Views keep products of features and weights: those of the target are not taken for the encoder's."""
    model = DGI(**SETTINGS | {"epochs": 3, "patience": None}).fit(GRAPH)
    generator = torch.Generator().manual_seed(0)
    pair = WholeGraph(GRAPH, model.model_.encoder.rule, augment, Backend(torch.device("cpu"))).pair(
        None, generator
    )
    found = BGRL().loss(model.model_, pair)[0]
    seen, augmented = model.model_.encoder(*(view.fresh() for view in pair))
    target, other = model.model_.target(*(view.fresh() for view in pair))
    predict = model.model_.predictor
    mean = (
        cosine_similarity(predict(seen), other).mean()
        + cosine_similarity(predict(augmented), target).mean()
    )
    torch.testing.assert_close(found, 1 - mean / 2)
    assert not torch.equal(seen, target)


class Unnamed(BGRL):
    metrics = ("loss",)


@pytest.mark.parametrize(
    ("method", "told"),
    [
        (Unnamed, "loss of Unnamed: expected numbers of shape [1]"),
        (dict, "Method"),
        (3, "method: expected a class"),
        (Method, ""),
    ],
    ids=str,
)
def test_what_is_no_method_is_refused(method, told):
    with pytest.raises((InputError, NotImplementedError)) as refusal:
        DGI(**SETTINGS | {"method": method}).fit(GRAPH)
    assert told in str(refusal.value)
