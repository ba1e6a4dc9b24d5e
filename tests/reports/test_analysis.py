import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import random_graph, typed_graph

from infomax import DGI, Graph, InputError
from infomax.analysis import pictures
from infomax.evaluation.probes import validated_probe
from infomax.evaluation.splits import encode_labels, random_splits
from infomax.parts.corruptions import flip_edges
from infomax.parts.discriminators import Bilinear
from infomax.reports import analysis
from infomax.training.presets import PRESETS, Preset
from infomax_paper.patches import PATCHES as PATCHES_PRESET
from infomax_paper.patches import Patches

SMALL = Preset(dim=8, epochs=3, patience=None)
GRAPH = random_graph(60)
LABELS = GRAPH.labels["class"]
CODES = encode_labels(LABELS)[0]
SPLITS = random_splits(CODES, seed=0)


def many_graphs() -> Graph:
    first, second = random_graph(40, seed=1, dense=True), random_graph(25, seed=2, dense=True)
    edges = np.concatenate(
        [first.adjacency.nonzero(), np.add(second.adjacency.nonzero(), 40)], axis=1
    )
    features = np.concatenate([first.features, second.features])
    return Graph.from_arrays(edges, features, groups=np.repeat([7, 3], [40, 25]))


PATCHES = partial(Patches, fan_out=(3, 3, 3), batch=16)
REGIMES = {
    "whole": (GRAPH, SMALL),
    "flips": (GRAPH, replace(SMALL, corruption=partial(flip_edges, rho=0.3))),
    "patches": (GRAPH, replace(PATCHES_PRESET, dim=4, epochs=1, views=PATCHES)),
    "many": (many_graphs(), replace(PRESETS["many-graphs"], dim=8, epochs=2)),
    "types": (typed_graph(), replace(PRESETS["types"], dim=8, epochs=2)),
}


@pytest.mark.parametrize("regime", REGIMES)
def test_pairs_are_scored_as_the_discriminator_does(regime):
    graph, preset = REGIMES[regime]
    model = DGI(preset=preset, device="cpu", vectors="paper").fit(graph)
    pairs = analysis.draw_pairs(model)
    assert sorted(pairs.nodes.tolist()) == list(range(graph.num_nodes))
    assert len(pairs.negatives) == len(pairs.negative_nodes) == len(pairs.negative_scores)
    assert (pairs.negative_nodes < graph.num_nodes).all()
    if regime != "patches":  # whose vectors are sampled
        exact = model.transform(graph).vectors
        np.testing.assert_allclose(pairs.positives, exact[pairs.nodes], rtol=1e-4, atol=1e-6)
    if regime == "whole":
        h = torch.from_numpy(pairs.positives)
        logits = model.model_.discriminator(h, model.model_.readout(h, None)).detach().numpy()
        np.testing.assert_allclose(pairs.positive_scores, logits, rtol=1e-4, atol=1e-6)
    again = analysis.draw_pairs(model)
    np.testing.assert_array_equal(pairs.negatives, again.negatives)
    assert (
        analysis.draw_pairs(model, seed=1).negatives[: len(again.negatives)] != again.negatives
    ).any()


def test_pairs_of_many_nodes_are_a_sample():
    model = DGI(preset=SMALL, device="cpu", vectors="paper").fit(GRAPH)
    pairs = analysis.draw_pairs(model, most_positives=20)
    assert len(pairs.nodes) == len(set(pairs.nodes.tolist())) == 20
    np.testing.assert_allclose(
        pairs.positives, model.transform(GRAPH).vectors[pairs.nodes], rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("regime", REGIMES)
def test_pairs_are_drawn_among_the_seen_nodes(regime):
    graph, preset = REGIMES[regime]
    seen = np.arange(graph.num_nodes) % 3 > 0
    graph = graph.replace(splits={"seen": seen})
    model = DGI(preset=preset, device="cpu", vectors="paper").fit(graph)
    pairs = analysis.draw_pairs(model)
    assert sorted(pairs.nodes.tolist()) == np.flatnonzero(seen).tolist()
    assert set(pairs.negative_nodes.tolist()) <= set(pairs.nodes.tolist())
    if regime != "patches":  # whose vectors are sampled
        vectors = np.zeros((graph.num_nodes, preset.dim), dtype=np.float32)
        vectors[seen] = model.transform(graph.seen()).vectors
        np.testing.assert_allclose(pairs.positives, vectors[pairs.nodes], rtol=1e-4, atol=1e-6)


CHAPTERS = ["projections", "scores", "dimensions", "health"]


@pytest.mark.parametrize("vectors", ["paper", "recipe"])
def test_a_report_says_of_which_part_of_the_vectors_it_is(tmp_path, monkeypatch, vectors):
    leads = []
    monkeypatch.setattr(
        analysis, "write_report", lambda folder, title, lead, chapters: leads.append(lead)
    )
    analysis.write_analysis(
        DGI(preset=SMALL, device="cpu", vectors=vectors).fit(GRAPH), tmp_path, [], title="T"
    )
    assert ("about the encoder's own vectors" in leads[0]) == (vectors == "recipe")


def test_an_analysis_tells_its_chapters_in_order(tmp_path, monkeypatch):
    pages = []
    monkeypatch.setattr(
        analysis, "write_report", lambda *page: pages.append((*page[:-1], list(page[-1])))
    )
    monkeypatch.setattr(pictures, "LATE_STEPS", 0)
    model = DGI(preset=SMALL, device="cpu", vectors="paper").fit(GRAPH)
    done = []

    def follow(*step):
        done.append(step)

    made = analysis.analyse(model, LABELS, SPLITS, progress=follow)
    numbers = analysis.write_analysis(model, tmp_path, made, title="T", progress=follow)
    [(folder, title, lead, chapters)] = pages
    assert (folder, title) == (tmp_path, "T")
    assert lead.startswith(f"Verdict: {model.health_['verdict']['verdict']}. ")
    assert " 60 nodes, " in lead
    assert [chapter.name for chapter in chapters] == list(numbers) == CHAPTERS
    computed, drawn = done[: -len(CHAPTERS)], done[-len(CHAPTERS) :]
    assert list(dict.fromkeys(number for number, _, _ in computed)) == [
        *range(32 + 17)
    ]  # 8 of either order
    assert {total for _, _, total in computed} == {32 + 17}
    assert drawn == [(at, "drawing", len(CHAPTERS)) for at in range(len(CHAPTERS))]
    json.dumps(numbers, allow_nan=False)
    scored = (
        numbers["dimensions"]["curves"]["least"]["accuracy"][0],
        numbers["dimensions"]["floors"]["Random-Init"],
    )
    for score, encoder in zip(
        scored, (model, DGI(preset=SMALL, epochs=0, device="cpu").fit(GRAPH)), strict=True
    ):
        assert score == validated_probe(encoder.transform(GRAPH).vectors, CODES, SPLITS[0]).value


def test_an_analysis_without_labels_leaves_out_what_needs_them(monkeypatch):
    monkeypatch.setattr(pictures, "LATE_STEPS", 0)
    chapters = {
        chapter.name: chapter
        for chapter in analysis.analyse(DGI(preset=SMALL, device="cpu", vectors="paper").fit(GRAPH))
    }
    assert list(chapters) == CHAPTERS
    assert chapters["projections"].numbers["silhouette"] == {}
    assert chapters["dimensions"].numbers["curves"]["most"]["accuracy"] == []
    assert chapters["scores"].facts[0] == ["highest-scored node", "neighbours", "score"]


class Squared(Bilinear):
    def forward(self, h, summary):
        return super().forward(h, summary) + 10 * (h**2).sum(1)


def test_a_discriminator_whose_score_is_no_sum_over_dimensions_is_refused():
    model = DGI(preset=replace(SMALL, discriminator=Squared), device="cpu").fit(GRAPH)
    with pytest.raises(InputError, match=r"discriminator: expected one that is linear.*Squared"):
        analysis.draw_pairs(model)
