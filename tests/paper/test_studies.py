import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import random_graph

from infomax import DGI, Graph
from infomax.analysis import pictures
from infomax.analysis.corruption import BOTH, EDGES, FEATURES, NONE
from infomax.errors import InputError
from infomax.evaluation.probes import paper_probe
from infomax.evaluation.splits import encode_labels, random_splits
from infomax.paper import studies
from infomax.parts.corruptions import flip_edges, shuffle_features
from infomax.presets import PRESETS, Preset
from infomax.views import Patches

SMALL = Preset(dim=8, epochs=3, patience=None)
GRAPH = random_graph(60)
GROUPS = np.array([str(label) for label in GRAPH.labels["class"]], dtype=object)
CODES = encode_labels(GROUPS)[0]
SPLITS = random_splits(CODES, seed=0)[0]


def many_graphs() -> Graph:
    first, second = random_graph(40, seed=1, dense=True), random_graph(25, seed=2, dense=True)
    edges = np.concatenate([first.adjacency.nonzero(), np.add(second.adjacency.nonzero(), 40)], axis=1)
    features = np.concatenate([first.features, second.features])
    return Graph.from_arrays(edges, features, groups=np.repeat([7, 3], [40, 25]))


PATCHES = partial(Patches, fan_out=(3, 3, 3), batch=16)
REGIMES = {
    "whole": (GRAPH, SMALL),
    "flips": (GRAPH, replace(SMALL, corruption=partial(flip_edges, rho=0.3))),
    "patches": (GRAPH, replace(PRESETS["patches"], dim=4, epochs=1, views=PATCHES)),
    "many": (many_graphs(), replace(PRESETS["many-graphs"], dim=8, epochs=2)),
}


@pytest.mark.parametrize("regime", REGIMES)
def test_pairs_are_scored_as_the_discriminator_does(regime):
    graph, preset = REGIMES[regime]
    model = DGI(preset=preset, device="cpu").fit(graph)
    pairs = studies.draw_pairs(model)
    assert sorted(pairs.nodes.tolist()) == list(range(graph.num_nodes))
    assert len(pairs.negatives) == len(pairs.places) == len(pairs.negative_scores)
    assert (pairs.places < graph.num_nodes).all()
    if regime != "patches":  # whose vectors are sampled
        exact = model.transform(graph).vectors
        np.testing.assert_allclose(pairs.positives, exact[pairs.nodes], rtol=1e-4, atol=1e-6)
    if regime == "whole":
        h = torch.from_numpy(pairs.positives)
        logits = model.model_.discriminator(h, model.model_.readout(h, None)).detach().numpy()
        np.testing.assert_allclose(pairs.positive_scores, logits, rtol=1e-4, atol=1e-6)
    again = studies.draw_pairs(model)
    np.testing.assert_array_equal(pairs.negatives, again.negatives)
    assert (studies.draw_pairs(model, seed=1).negatives[: len(again.negatives)] != again.negatives).any()


def test_pairs_of_many_nodes_are_a_sample():
    model = DGI(preset=SMALL, device="cpu").fit(GRAPH)
    pairs = studies.draw_pairs(model, limit=20)
    assert len(pairs.nodes) == len(set(pairs.nodes.tolist())) == 20
    np.testing.assert_allclose(pairs.positives, model.transform(GRAPH).vectors[pairs.nodes], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("regime", REGIMES)
def test_pairs_are_drawn_among_the_seen_nodes(regime):
    graph, preset = REGIMES[regime]
    seen = np.arange(graph.num_nodes) % 3 > 0
    graph = replace(graph, splits={"seen": seen})
    model = DGI(preset=preset, device="cpu").fit(graph)
    pairs = studies.draw_pairs(model)
    assert sorted(pairs.nodes.tolist()) == np.flatnonzero(seen).tolist()
    assert set(pairs.places.tolist()) <= set(pairs.nodes.tolist())
    if regime != "patches":  # whose vectors are sampled
        vectors = np.zeros((graph.num_nodes, preset.dim), dtype=np.float32)
        vectors[seen] = model.transform(graph.seen()).vectors
        np.testing.assert_allclose(pairs.positives, vectors[pairs.nodes], rtol=1e-4, atol=1e-6)


CHAPTERS = ["projections", "scores", "activations", "dimensions", "health", "theory"]


def test_an_analysis_tells_its_chapters_in_order(tmp_path, monkeypatch):
    pages = []
    monkeypatch.setattr(studies, "write_report", lambda *page: pages.append((*page[:-1], list(page[-1]))))
    monkeypatch.setattr(pictures, "LATE", 0)
    model = DGI(preset=SMALL, device="cpu").fit(GRAPH)
    done = []
    numbers = studies.write_analysis(
        model, tmp_path, GROUPS, SPLITS, title="T", progress=lambda number, note: done.append(number)
    )
    [(folder, title, lead, chapters)] = pages
    assert (folder, title) == (tmp_path, "T")
    assert lead.startswith("60 nodes, ")
    assert [chapter.name for chapter in chapters] == list(numbers) == CHAPTERS
    assert done == [0, 1, 2, 3, 4, 5]
    json.dumps(numbers, allow_nan=False)
    full = numbers["dimensions"]["curves"]["least"]["accuracy"][0]
    assert full == studies._accuracy(model.transform(GRAPH).vectors, CODES, SPLITS, torch.device("cpu"))


def test_an_analysis_without_labels_leaves_out_what_needs_them(monkeypatch):
    monkeypatch.setattr(pictures, "LATE", 0)
    chapters = {chapter.name: chapter for chapter in studies.analyse(DGI(preset=SMALL, device="cpu").fit(GRAPH))}
    assert list(chapters) == CHAPTERS
    assert chapters["projections"].numbers["silhouette"] == {}
    assert chapters["dimensions"].numbers["curves"]["most"]["accuracy"] == []
    assert chapters["scores"].facts[0] == ["highest-scored node", "neighbours", "score"]


@pytest.mark.parametrize("regime", ["whole", "patches"])
def test_an_inductive_run_is_mapped_by_the_vectors_that_are_scored(regime, monkeypatch):
    graph, preset = REGIMES[regime]
    seen = np.arange(graph.num_nodes) % 3 > 0
    model = DGI(preset=preset, device="cpu").fit(replace(graph, splits={"seen": seen}))
    placed, scored = [], []
    monkeypatch.setattr(studies, "tsne", lambda vectors, **_: placed.append(vectors) or vectors[:, :2])
    monkeypatch.setattr(studies, "scores", lambda pairs, points, *_: scored.append((pairs, points)))
    monkeypatch.setattr(studies, "projections", lambda *_, **__: None)
    chapters = studies.analyse(model)
    next(chapters), next(chapters)
    [(pairs, points)] = scored
    _, untrained, learnt, negatives = placed
    np.testing.assert_array_equal(learnt, pairs.positives)
    np.testing.assert_array_equal(points, pairs.positives[:, :2])
    np.testing.assert_array_equal(negatives, pairs.negatives)
    rows = np.searchsorted(np.flatnonzero(seen), pairs.nodes)
    expected = DGI(preset=preset, epochs=0, device="cpu").fit(model.graph_).transform(model.graph_.seen()).vectors
    np.testing.assert_array_equal(untrained, expected[rows])


def study(folder, **changes):
    given = {"graph": GRAPH, "preset": SMALL, "codes": CODES, "splits": SPLITS, "rates": [1e-3, 0.5], "runs": 1}
    return studies.corruption_study(folder=folder, device="cpu", **(given | changes))


def test_a_study_trains_every_point_once_and_goes_on_where_it_stopped(tmp_path):
    told = []
    whole = study(tmp_path, progress=lambda done, note: told.append((done, note)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert (1, f"{FEATURES}, epoch 1") in told
    assert told[-1] == (6, f"{BOTH}, rho 0.5")
    assert len(whole["rows"]) == studies.trainings([1e-3, 0.5], 1) == 6
    assert {(row["corruption"], row["rho"]) for row in whole["rows"]} == {
        (NONE, None), (FEATURES, None), (EDGES, 1e-3), (EDGES, 0.5), (BOTH, 1e-3), (BOTH, 0.5),
    }  # fmt: skip
    assert {row["epochs"] for row in whole["rows"] if row["corruption"] == NONE} == {0}

    def stop(done, note):
        if done == 4:
            raise KeyboardInterrupt

    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(KeyboardInterrupt):
        study(other, progress=stop)
    assert len(json.loads((other / "corruption.json").read_text())["rows"]) == 4
    assert study(other) == whole
    before = (other / "corruption.json").stat().st_mtime_ns
    assert study(other) == whole
    assert (other / "corruption.json").stat().st_mtime_ns == before  # nothing was left to train


def test_a_study_agrees_with_a_training_of_its_own(tmp_path):
    rows = study(tmp_path, rates=[0.5], runs=1)["rows"]
    for kind, corruption in ((FEATURES, shuffle_features), (EDGES, partial(flip_edges, rho=0.5))):
        vectors = DGI(preset=SMALL, corruption=corruption, device="cpu").fit_transform(GRAPH).vectors
        expected = studies._accuracy(vectors, CODES, SPLITS, torch.device("cpu"))
        assert [row["accuracy"] for row in rows if row["corruption"] == kind] == [expected]


def test_what_a_study_refuses(tmp_path):
    study(tmp_path, rates=[0.5], runs=1)
    turned = np.roll(np.arange(60), 1)
    for other in (
        {"preset": replace(SMALL, dim=9)},
        {"graph": replace(GRAPH, features=GRAPH.features[turned])},
        {"graph": replace(GRAPH, adjacency=GRAPH.adjacency[turned][:, turned])},
        {"codes": CODES[turned]},
        {"splits": [*SPLITS, *SPLITS]},
        {"splits": [SPLITS[0] | {"train": SPLITS[0]["test"], "test": SPLITS[0]["train"]}]},
    ):
        with pytest.raises(InputError, match=r"corruption\.json: expected a corruption study of this graph"):
            study(tmp_path, **other)
    with pytest.raises(InputError, match="whole graph"):
        study(tmp_path, preset=PRESETS["patches"])


def communities() -> Graph:
    """Three groups of 40 nodes; features that tell little of the group, edges that tell more."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 40)
    likely = np.where(codes[:, None] == codes, 0.12, 0.01)
    edges = np.argwhere(np.triu(rng.random(likely.shape) < likely, 1)).T
    features = rng.standard_normal((120, 12)) + 0.9 * np.eye(3)[codes].repeat(4, axis=1)
    splits = {name: np.arange(120) % 10 % 5 == part for part, name in enumerate(("train", "validation"))}
    return Graph.from_arrays(edges, features, labels={"group": codes}, splits=splits | {"test": ~splits["train"]})


@pytest.mark.parametrize("rho", [0.01, 0.2], ids=["sparse", "dense"])
def test_every_entry_of_sigma_or_every_pair_give_the_same_accuracy(rho):
    """The paper draws every entry of the matrix: flips of the same graph with every edge in both directions."""
    graph, encoders = communities(), 5
    codes, found = graph.labels["group"], {}
    for name, kind in (("pairs", graph), ("entries", replace(graph, directed=True))):
        assert (kind.adjacency != graph.adjacency).nnz == 0
        for seed in range(encoders):
            settings = replace(SMALL, epochs=20, corruption=partial(flip_edges, rho=rho), lr=0.02)
            vectors = DGI(preset=settings, seed=seed, device="cpu").fit_transform(kind).vectors
            found.setdefault(name, []).append(paper_probe(vectors, codes, graph.splits, seed=seed, restarts=3).value)
    pairs, entries = (np.array(found[name]) for name in ("pairs", "entries"))
    assert (pairs != entries).any()
    error = np.sqrt((pairs.var(ddof=1) + entries.var(ddof=1)) / encoders)
    assert abs(pairs.mean() - entries.mean()) < 4 * error


def test_rates_run_from_a_millionth_to_one():
    assert studies.rates(7) == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    assert len(set(studies.rates())) == 13
