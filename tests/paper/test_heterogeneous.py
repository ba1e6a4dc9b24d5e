"""Graphs of several types by HeCo's splits: what is flattened, what is scored, and that labels come
last."""

from __future__ import annotations

import numpy as np
import pytest

from infomax import DGI, Graph
from infomax.evaluation.probes import Score
from infomax.io.building import from_edges
from infomax_paper import heterogeneous
from infomax_paper.heterogeneous import LABELS_PER_CLASS, flattened, score_types

CODES = np.arange(24) % 3


@pytest.fixture
def graph(monkeypatch) -> Graph:
    """24 papers of three classes by 6 authors, about 3 subjects, in place of ACM; training is one
    epoch."""
    part, ids = np.arange(24) // 3 % 3, np.arange(24)
    masks = {name: part == number for number, name in enumerate(("train", "validation", "test"))}
    paper = {
        "ids": ids,
        "features": np.eye(24, 7, dtype=np.float32),
        "labels": {"class": CODES},
        "splits": {
            f"{name}_{count}": mask for count in LABELS_PER_CLASS for name, mask in masks.items()
        },
    }
    nodes = {"paper": paper, "author": {"ids": np.arange(6)}, "subject": {"ids": np.arange(3)}}
    links = {
        ("paper", "by", "author"): (np.stack([ids, ids % 6]), None),
        ("paper", "about", "subject"): (np.stack([ids, ids % 3]), None),
    }
    graph = Graph.of(from_edges(nodes, links)).target("paper")
    monkeypatch.setattr(heterogeneous, "load_dataset", lambda name: graph)
    monkeypatch.setattr(heterogeneous, "DGI", lambda **given: DGI(4, **{"epochs": 1, **given}))
    return graph


def test_the_flattened_graph_has_all_nodes_and_edges_and_the_features_of_one_type(graph):
    flat = flattened(graph)
    author, subject = 24, 30
    expected = np.zeros((33, 33))
    expected[np.arange(24), author + np.arange(24) % 6] = 1
    expected[np.arange(24), subject + np.arange(24) % 3] = 1
    np.testing.assert_array_equal(flat.adjacency.toarray(), expected + expected.T)
    np.testing.assert_array_equal(flat.features.toarray()[:24], graph.features)
    assert not flat.features.toarray()[24:].any()


def test_each_encoder_is_scored_by_the_macro_f1_of_the_test_nodes(graph, monkeypatch):
    asked = []

    def guess(probe, vectors, codes, splits, device):
        asked.append(np.asarray(vectors))
        test = codes[splits[0]["test"]]
        right, none = test[None], np.zeros_like(test)[None]
        return [Score("accuracy", np.ones(1), answer) for answer in (right, none, right)]

    monkeypatch.setattr(heterogeneous, "score_splits", guess)
    result = score_types("heco-acm", runs=2, device="cpu")
    assert [row.get("runs") for row in result["rows"]] == [2, 2, 2, 2, None]
    # One class of three is found, with precision 1/3 and recall 1: its F1 is 1/2, that of the
    # others 0.
    np.testing.assert_allclose([row["mean"] for row in result["rows"]], [[100, 100 / 6, 100]] * 5)
    assert [len(vectors) for vectors in asked] == [24] * 9
    along = heterogeneous.partial(heterogeneous.PathMean, paths=result["paths"])
    first = DGI(4, epochs=0, seed=1, encoder=along, vectors="paper")
    np.testing.assert_array_equal(asked[3], first.fit_transform(graph).vectors)
    assert not np.array_equal(asked[0], asked[1])


def test_vectors_do_not_depend_on_labels(graph, monkeypatch):
    vectors = []

    def keep(probe, found, codes, splits, device):
        vectors.append(np.asarray(found))
        return [Score("accuracy", np.ones(1), codes[split["test"]][None]) for split in splits]

    monkeypatch.setattr(heterogeneous, "score_splits", keep)
    result = score_types("heco-acm", runs=1, device="cpu")
    assert [row["std"] for row in result["rows"][:4]] == [[0, 0, 0]] * 4  # of a single encoder
    other = graph.replace(labels={"class": CODES[::-1].copy()})
    monkeypatch.setattr(heterogeneous, "load_dataset", lambda name: other)
    score_types("heco-acm", runs=1, device="cpu")
    for one, another in zip(vectors[:5], vectors[5:], strict=True):
        np.testing.assert_array_equal(one, another)
