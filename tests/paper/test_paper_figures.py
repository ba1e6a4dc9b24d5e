"""The figures of the paper that `analyse` does not draw."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sample_graphs import random_graph

from infomax import DGI
from infomax.analysis.scores import ScoredVectors
from infomax.analysis.style import in_style
from infomax.reports.analysis import draw_pairs
from infomax.training.presets import Preset
from infomax_paper import figures
from infomax_paper.figures import activations, biased_dimensions
from infomax_paper.patches import PATCHES, Patches

PRESET = {
    "whole": Preset(dim=8, epochs=3, patience=None),
    "patches": replace(
        PATCHES, dim=4, epochs=1, views=partial(Patches, fan_out=(3, 3, 3), batch=16)
    ),
}


def test_the_biased_dimension_is_found_and_lies_at_the_end(monkeypatch):
    monkeypatch.setattr("infomax_paper.figures.EXAMPLES", 10)
    positives, negatives = (
        np.random.default_rng(0).normal([9, 0, 0], size=(2, 60, 3)).astype(np.float32)
    )
    direction = np.array([-0.1, 1, 0], dtype=np.float32)
    places = np.arange(60)
    pairs = ScoredVectors(
        places, places, positives, negatives, positives * direction, negatives * direction, -0.5
    )
    assert np.flatnonzero(biased_dimensions(pairs)).tolist() == [0]
    chapter = activations(pairs)
    with in_style():
        chapter.draw(True).draw_without_rendering()
    assert chapter.numbers["biased"] == [0]
    assert chapter.numbers["order"][-1] == 0
    assert chapter.numbers["score_from_biased"]["negatives"] == pytest.approx(-0.9, abs=0.1)
    assert chapter.numbers["highest_positives"] == np.argsort(-pairs.positive_scores)[:10].tolist()


@pytest.mark.parametrize("regime", PRESET)
@pytest.mark.parametrize("inductive", [False, True])
def test_features_untrained_and_trained_vectors_of_the_same_nodes_are_placed(
    regime, inductive, monkeypatch
):
    graph, placed = random_graph(60), []
    seen = np.arange(graph.num_nodes) % 3 > 0 if inductive else np.ones(graph.num_nodes, dtype=bool)
    graph = graph.replace(splits={"seen": seen} if inductive else {})
    model = DGI(preset=PRESET[regime], device="cpu").fit(graph)
    monkeypatch.setattr(
        figures, "tsne", lambda vectors, seed: placed.append(vectors) or np.eye(len(seen), 2)[:1]
    )
    monkeypatch.setattr(figures, "projections", lambda points, groups: list(points))
    assert next(figures.figures(model)) == ["Raw features", "Random-Init", "DGI"]
    raw, before, learnt = placed
    pairs = draw_pairs(model)
    rows = np.searchsorted(np.flatnonzero(seen), pairs.nodes)
    untrained = (
        DGI(preset=PRESET[regime], epochs=0, device="cpu", vectors="paper")
        .fit(graph)
        .transform(graph.seen())
        .vectors
    )
    assert (abs(raw - model.scaler_.transform(graph.features)[pairs.nodes]) > 0).sum() == 0
    np.testing.assert_array_equal(before, untrained[rows])
    np.testing.assert_array_equal(learnt, pairs.positives)
