"""The corruption study: every point once, continued after a stop, and drawn."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import random_graph

from infomax import DGI, Graph
from infomax.analysis.style import in_style
from infomax.errors import InputError
from infomax.evaluation.probes import paper_probe
from infomax.evaluation.splits import encode_labels, random_splits
from infomax.parts.corruptions import flip_edges, shuffle_features
from infomax.training.presets import Preset
from infomax_paper import corruption as studies
from infomax_paper.corruption import BOTH, EDGES, FEATURES, NONE, corruption
from infomax_paper.patches import PATCHES
from infomax_paper.study import accuracies, accuracy

SMALL = Preset(dim=8, epochs=3, patience=None)
GRAPH = random_graph(60)
CODES = encode_labels(GRAPH.labels["class"])[0]
SPLITS = random_splits(CODES, seed=0)


def study(folder, **changes):
    given = {
        "graph": GRAPH,
        "preset": SMALL,
        "codes": CODES,
        "splits": SPLITS,
        "rates": [1e-3, 0.5],
        "runs": 1,
    }
    return studies.corruption_study(folder=folder, device="cpu", **(given | changes))


def test_a_study_trains_every_point_once_and_goes_on_where_it_stopped(tmp_path):
    told, totals = [], set()
    whole = study(
        tmp_path, progress=lambda done, note, total: told.append((done, note)) or totals.add(total)
    )
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert (1, f"{FEATURES}, epoch 1") in told
    assert told[-1] == (6, f"{BOTH}, rho 0.5")
    assert totals == {len(whole["rows"])} == {6}
    assert {(row["corruption"], row["rho"]) for row in whole["rows"]} == {
        (NONE, None), (FEATURES, None), (EDGES, 1e-3), (EDGES, 0.5), (BOTH, 1e-3), (BOTH, 0.5),
    }  # fmt: skip
    assert {row["epochs"] for row in whole["rows"] if row["corruption"] == NONE} == {0}

    def stop(done, note, total):
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
    for kind, negative in ((FEATURES, shuffle_features), (EDGES, partial(flip_edges, rho=0.5))):
        vectors = (
            DGI(preset=SMALL, corruption=negative, vectors="paper", device="cpu")
            .fit_transform(GRAPH)
            .vectors
        )
        expected = accuracy(vectors, CODES, SPLITS, torch.device("cpu"))
        assert [row["accuracy"] for row in rows if row["corruption"] == kind] == [expected]


def test_what_a_study_refuses(tmp_path):
    study(tmp_path, rates=[0.5], runs=1)
    turned = np.roll(np.arange(60), 1)
    for other in (
        {"preset": replace(SMALL, dim=9)},
        {"graph": GRAPH.replace(features=GRAPH.features[turned])},
        {"graph": GRAPH.replace(adjacency=GRAPH.adjacency[turned][:, turned])},
        {"codes": CODES[turned]},
        {"splits": [*SPLITS, *SPLITS]},
        {"splits": [SPLITS[0] | {"train": SPLITS[0]["test"], "test": SPLITS[0]["train"]}]},
    ):
        with pytest.raises(InputError, match=r"corruption\.json: expected a study of this graph"):
            study(tmp_path, **other)
    with pytest.raises(InputError, match="whole graph"):
        study(tmp_path, preset=PATCHES)


def communities() -> Graph:
    """Three groups of 40 nodes; features that tell little of the group, edges that tell more."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 40)
    likely = np.where(codes[:, None] == codes, 0.12, 0.01)
    edges = np.argwhere(np.triu(rng.random(likely.shape) < likely, 1)).T
    features = rng.standard_normal((120, 12)) + 0.9 * np.eye(3)[codes].repeat(4, axis=1)
    splits = {
        name: np.arange(120) % 10 % 5 == part for part, name in enumerate(("train", "validation"))
    }
    return Graph.from_arrays(
        edges, features, labels={"group": codes}, splits=splits | {"test": ~splits["train"]}
    )


@pytest.mark.parametrize("rho", [0.01, 0.2], ids=["sparse", "dense"])
def test_every_entry_of_sigma_or_every_pair_give_the_same_accuracy(rho):
    """The paper draws every entry of the matrix: flips of the same graph with every edge in both
    directions."""
    graph, encoders = communities(), 5
    codes, found = graph.labels["group"], {}
    for name, kind in (("pairs", graph), ("entries", graph.replace(directed=True))):
        assert (kind.adjacency != graph.adjacency).nnz == 0
        for seed in range(encoders):
            settings = replace(SMALL, epochs=20, corruption=partial(flip_edges, rho=rho), lr=0.02)
            vectors = (
                DGI(preset=settings, vectors="paper", seed=seed, device="cpu")
                .fit_transform(kind)
                .vectors
            )
            found.setdefault(name, []).append(
                paper_probe(vectors, codes, graph.splits, seed=seed, restarts=3).value
            )
    pairs, entries = (np.array(found[name]) for name in ("pairs", "entries"))
    assert (pairs != entries).any()
    error = np.sqrt((pairs.var(ddof=1) + entries.var(ddof=1)) / encoders)
    assert abs(pairs.mean() - entries.mean()) < 4 * error


def test_rates_run_from_a_millionth_to_one():
    assert studies.rates(7) == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    assert len(set(studies.rates())) == 13


def test_the_corruption_study_is_drawn_by_rate():
    rows = [
        {"corruption": kind, "rho": rho, "seed": seed, "accuracy": value + 0.01 * seed, "epochs": 1}
        for seed in range(2)
        for kind, rho, value in (
            (NONE, None, 0.5), (FEATURES, None, 0.8), (EDGES, 0.1, 0.7), (EDGES, 1e-6, 0.5), (BOTH, 0.1, 0.8),
        )
    ]  # fmt: skip
    assert {rho: found.tolist() for rho, found in accuracies(rows, "rho", corruption=EDGES).items()} == {
        1e-6: [0.5, 0.51], 0.1: [0.7, 0.71],
    }  # fmt: skip
    assert list(accuracies(rows, "rho", corruption=EDGES)) == [1e-6, 0.1]
    chapter = corruption({"nodes": 100, "edges": 200, "epochs_at_most": 5, "rows": rows})
    with in_style():
        figure, stacked = (chapter.draw(one) for one in (False, True))
    assert len(figure.axes) == len(stacked.axes) == 2
    (legend,) = figure.legends
    assert "± one standard deviation, 2 encoders" in [
        text.get_text() for text in legend.get_texts()
    ]
    assert chapter.facts[1:] == [
        ["10⁻⁶", "50.5 ± 0.7 %", ""],
        ["10⁻¹", "70.5 ± 0.7 %", "80.5 ± 0.7 %"],
    ]
