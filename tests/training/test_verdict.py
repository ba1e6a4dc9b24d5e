"""The verdict on a training: ways to go wrong, each with a cause that fits, and trainings that are fine."""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sample_graphs import typed_graph
from scipy import sparse

from infomax import DGI, Graph
from infomax.arrays.relations import Relation
from infomax.datasets import load_dataset
from infomax.io.nodes import Nodes
from infomax.parts.encoders import PathMean
from infomax.training.verdict import judge, words

N = 120


def communities(n=N, seed=0, k=3):
    """Edges ``[2, E]`` mostly inside of k communities, and features ``[n, 16]`` that tell them apart."""
    draws = np.random.default_rng(seed)
    of = draws.integers(0, k, n)
    joined = np.triu(draws.random((n, n)) < np.where(of[:, None] == of, 0.15, 0.01), 1)
    return np.array(np.nonzero(joined)), (
        draws.normal(size=(k, 16))[of] + draws.normal(size=(n, 16))
    )


EDGES, FEATURES = communities()
SEEN = np.arange(N) < 50
APART = EDGES[:, ~SEEN[EDGES].all(axis=0)]
NONE = np.zeros((2, 0), dtype=np.int64)
STAR = np.stack([np.arange(1, N), np.zeros(N - 1, dtype=np.int64)])

WRONG = {
    "constant features": (EDGES, np.ones((N, 4)), {}, "The features are the same at every node."),
    "constant words": (
        EDGES,
        np.eye(4)[np.zeros(N, dtype=int)],
        {},
        "The features are the same at every node.",
    ),
    "zeros": (EDGES, np.zeros((N, 4)), {}, "The features are the same at every node."),
    "one end": (STAR, FEATURES, {}, "Every edge has an end that has no"),
    "no edges": (
        NONE,
        FEATURES,
        {},
        "No edge joins two of the nodes, so shuffling changes nothing.",
    ),
    "too fast": (EDGES, FEATURES, {"lr": 10.0}, "The learning rate of 10 is large."),
    "too slow": (
        EDGES,
        FEATURES,
        {"lr": 1e-12},
        "The weights have hardly changed, in 60 steps with a",
    ),
    "one node": (NONE, FEATURES[:1], {}, "There is only 1 node."),
    "pairs": (
        np.arange(4000).reshape(2, 2000),
        np.random.default_rng(2).normal(size=(4000, 16)),
        {},
        "The graph falls",
    ),
    "nodes and classes": (
        np.stack([np.arange(N), N + np.arange(N) % 9]),
        None,
        {},
        "Every edge has an end that has no",
    ),
    "nodes as edges": (
        np.stack([np.arange(N), N + np.arange(N)]),
        None,
        {},
        "The graph falls into parts of at most 2 nodes.",
    ),
}


def verdict_of(graph, **options):
    return (
        DGI(16, device="cpu", **({"epochs": 60, "patience": 20} | options))
        .fit(graph)
        .health_["verdict"]
    )


@pytest.mark.filterwarnings("ignore::infomax.errors.InputWarning")
@pytest.mark.parametrize("name", WRONG)
def test_a_training_that_goes_wrong_says_why(name):
    edges, features, options, cause = WRONG[name]
    verdict = verdict_of(Graph.from_arrays(edges, features), **options)
    assert verdict["verdict"] in (("weak",) if name == "one end" else ("learnt nothing", "weak"))
    assert verdict["causes"][0].startswith(cause)
    assert len(verdict["next"]) == len(verdict["causes"])
    assert words(verdict).split("\n")[1] == f"{verdict['causes'][0]} {verdict['next'][0]}"


@pytest.mark.parametrize(
    "name", ["constant features", "constant words", "zeros", "no edges", "one node"]
)
@pytest.mark.filterwarnings("ignore::infomax.errors.InputWarning")
def test_what_cannot_learn_has_learnt_nothing(name):
    edges, features, options, _ = WRONG[name]
    assert verdict_of(Graph.from_arrays(edges, features), **options)["verdict"] == "learnt nothing"


def test_edges_count_among_the_nodes_that_are_seen():
    verdict = verdict_of(Graph.from_arrays(APART, FEATURES, splits={"seen": SEEN}))
    assert verdict["verdict"] == "learnt nothing"
    assert verdict["causes"] == [
        "No edge joins two of the nodes that training sees, so shuffling changes nothing."
    ]
    assert (
        verdict_of(Graph.from_arrays(EDGES, FEATURES, splits={"seen": SEEN}))["verdict"] == "good"
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"seed": 1},
        {"lr": 0.01},
        {"preset": "batches"},
        {"preset": "mean-pool"},
        {"seed": 2, "epochs": 100},
    ],
    ids=str,
)
def test_a_training_that_is_fine_is_good(options):
    for edges, features in (communities(), communities(300, 5, 6)):
        verdict = verdict_of(Graph.from_arrays(edges, features), **options)
        assert (verdict["verdict"], verdict["causes"]) == ("good", [])


@pytest.mark.parametrize("objective", ["jensen_shannon", "binary_cross_entropy"])
def test_the_loss_is_held_against_that_of_guessing_by_the_same_objective(objective):
    from infomax.parts import objectives

    model = DGI(16, objective=getattr(objectives, objective), epochs=60).fit(
        Graph.from_arrays(EDGES, FEATURES)
    )
    times = 2 if objective == "jensen_shannon" else 1
    assert model.health_["guessing_loss"] == pytest.approx(times * np.log(2))
    assert model.health_["verdict"]["verdict"] == "good"


def test_random_init_is_not_trained():
    verdict = verdict_of(Graph.from_arrays(EDGES, FEATURES), epochs=0)
    assert (
        words(verdict) == "Verdict: not trained. The encoder has its first weights (Random-Init)."
    )


def report(**changes):
    """A report with the figures of PPI's third epoch, where vectors are useful already."""
    figures = {
        "epochs": 3,
        "steps": 60,
        "kept_epoch": 3,
        "stopped_early": False,
        "lr": 0.001,
        "guessing_loss": 0.6931,
    }
    figures |= {
        "loss": 0.6778,
        "discriminator_accuracy": 0.5366,
        "effective_rank": 25.0,
        "resemblance": 0.1,
    }
    return (
        figures
        | {"dead_dimensions": 0, "dimensions": 32, "curve": {"loss": [0.69, 0.685, 0.6778]}}
        | changes
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "weak"),
        ({"loss": 0.6608, "discriminator_accuracy": 0.593}, "good"),
        (
            {"loss": 0.6608, "discriminator_accuracy": 0.475},
            "weak",
        ),  # of few nodes the loss may fall all the same
        (
            {"loss": 0.6849, "discriminator_accuracy": 0.5027},
            "weak",
        ),  # its second epoch: the loss has fallen
        (
            {"loss": 0.6743, "curve": {"loss": [0.6808, 0.6743]}},
            "weak",
        ),  # luck of the first weights is not learnt
        (
            {"loss": 0.299, "curve": {"loss": [0.3, 0.299]}},
            "good",
        ),  # a first epoch of many steps has learnt
        ({"loss": 0.3, "epochs": 1, "curve": {"loss": [0.3]}}, "good"),
        ({"loss": 0.6925, "discriminator_accuracy": 0.53}, "weak"),
        ({"loss": 0.6925, "discriminator_accuracy": 0.50}, "learnt nothing"),
        ({"loss": 0.1, "discriminator_accuracy": 0.99, "effective_rank": 1.5}, "weak"),
        ({"loss": 0.1, "discriminator_accuracy": 0.99, "dead_dimensions": 17}, "weak"),
        ({"loss": 0.1, "discriminator_accuracy": 0.99, "dead_dimensions": 32}, "learnt nothing"),
        ({"loss": -3.0, "guessing_loss": 0.0, "curve": {"loss": [0.1, -3.0]}}, "good"),
    ],
    ids=str,
)
def test_only_a_loss_and_an_accuracy_of_guessing_are_nothing(changes, expected):
    assert judge(report(**changes), Graph.from_arrays(EDGES, FEATURES))["verdict"] == expected


def test_a_training_that_ended_while_it_learnt_should_be_longer():
    verdict = judge(report(), Graph.from_arrays(EDGES, FEATURES))
    assert verdict["causes"] == ["The loss was falling when it ended, after 3 epochs."]
    short = judge(report(steps=3), Graph.from_arrays(EDGES, FEATURES))
    assert (
        short["causes"][0]
        == "The weights have hardly changed, in 3 steps with a learning rate of 0.001."
    )
    assert short["next"] == [
        "Train longer, by --epochs or --steps."
    ]  # the rate is the usual one already
    once = judge(report(steps=1), Graph.from_arrays(EDGES, FEATURES))
    assert once["causes"] == [
        "The weights have hardly changed, in 1 step with a learning rate of 0.001."
    ]
    stopped = judge(report(stopped_early=True), Graph.from_arrays(EDGES, FEATURES))
    assert stopped["causes"] == ["The cause is not evident."]


def test_neighbours_that_differ_are_a_cause():
    verdict = judge(
        report(stopped_early=True, resemblance=0.004), Graph.from_arrays(EDGES, FEATURES)
    )
    assert verdict["causes"] == ["The features of neighbours do not resemble each other (0.004)."]
    assert verdict["next"] == ["Keep a node's own: leave out --vectors."]
    kept = judge(
        report(stopped_early=True, resemblance=0.004, parts={"own": 128}),
        Graph.from_arrays(EDGES, FEATURES),
    )
    assert kept["causes"] == ["The cause is not evident."]


def test_isolated_nodes_are_told_whatever_the_verdict_is():
    edges, features = communities(300, 5, 6)
    noise = np.random.default_rng(0).normal(size=(30, 16))
    verdict = verdict_of(Graph.from_arrays(edges, np.concatenate([features, noise])))
    assert verdict["verdict"] == "good"
    assert verdict["causes"] == [
        "30 of 330 nodes are isolated: their vectors are of their own features alone."
    ]
    noise = np.random.default_rng(0).normal(size=(400, 16))
    verdict = verdict_of(Graph.from_arrays(edges, np.concatenate([features, noise])))
    assert verdict["verdict"] == "weak"
    assert verdict["causes"][-1].startswith("400 of 700 nodes are isolated")


def test_isolated_nodes_of_a_type_have_one_vector_and_that_is_told():
    graph = typed_graph()
    few = dataclasses.replace(
        graph, relations=tuple(one for one in graph.relations if one.name == "by")
    )
    alone = np.flatnonzero(few.degrees() == 0)
    assert len(alone) > 3
    model = DGI(8, epochs=2, vectors="paper").fit(few)
    assert np.ptp(model.transform(few).vectors[alone], axis=0).max() == 0
    cause = model.health_["verdict"]["causes"][-1]
    assert (
        cause
        == f"{len(alone)} of 40 nodes of type paper are isolated: the encoder gives all of them one vector."
    )


def test_columns_that_no_part_holds_are_told():
    by = {"epochs": 2, "encoder": partial(PathMean, paths=("paper-author",))}
    cause = "No part of the vectors holds the 7 features of the nodes of type paper: no path leads back to them."
    for vectors, lost in (("paper", True), ("encoder,positions", True), ("recipe", False)):
        causes = DGI(8, vectors=vectors, **by).fit(typed_graph()).health_["verdict"]["causes"]
        assert (cause in causes) == lost


def test_pairs_of_two_types_are_no_graph():
    pair = Relation.of("a", "of", "b", sparse.csr_array(np.eye(60, dtype=np.float32)))
    draws = np.random.default_rng(0)
    nodes = {kind: Nodes.of(60, draws.normal(size=(60, 8))) for kind in "ab"}
    graph = Graph(nodes, (pair,), "a")
    verdict = verdict_of(graph)
    assert verdict["verdict"] != "good"
    assert verdict["causes"][0] == "No node has two edges, so the graph is separate pairs."


def test_vectors_on_a_line_are_weak():
    graph = Graph.from_arrays(EDGES, FEATURES)
    report = DGI(16, epochs=60).fit(graph).health_
    assert judge(report, graph)["verdict"] == "good"
    verdict = judge(report | {"effective_rank": 1.1}, graph)
    assert verdict["verdict"] == "weak"
    assert "the vectors use 1.1 of 16 dimensions" in verdict["reason"]


@pytest.fixture(scope="module")
def packages():
    """Packages of debian, of the first 4,000 those that depend on others of these."""
    graph = load_dataset("debian")
    graph = graph.part(np.arange(graph.num_nodes) < 4000)
    return graph.part(graph.degrees() > 0)


def test_packages_as_they_are_are_learnt(packages):
    assert verdict_of(packages, epochs=100, patience=None)["verdict"] == "good"


def test_a_table_of_packages_read_as_edges_is_told(packages):
    """Its two columns of text are the package and its section."""
    sections = packages.labels["section"].tolist()
    number = {name: len(sections) + row for row, name in enumerate(dict.fromkeys(sections))}
    edges = np.array([[row, number[name]] for row, name in enumerate(sections)]).T
    verdict = verdict_of(Graph.from_arrays(edges), epochs=2)
    assert verdict["causes"][0].startswith("Every edge has an end that has no other edge")


def test_packages_with_one_feature_for_all_are_told(packages):
    alike = Graph.from_arrays(_edges_of(packages), np.ones((packages.num_nodes, 3)))
    assert verdict_of(alike, epochs=2)["causes"] == ["The features are the same at every node."]


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"epochs": 12}, "The loss was falling when it ended, after 12 epochs."),
        ({"epochs": 3, "lr": 1e-5}, "The weights have hardly changed, in 3 steps"),
        ({"epochs": 30, "lr": 10.0}, "The learning rate of 10 is large."),
    ],
    ids=["short", "slow", "fast"],
)
def test_packages_trained_badly_say_how(packages, options, cause):
    verdict = verdict_of(packages, vectors="paper", **options)
    assert verdict["verdict"] != "good"
    assert verdict["causes"][0].startswith(cause)


def test_neighbours_of_actors_differ():
    path = Path(os.environ.get("INFOMAX_DATA", ""), "heterophilous", "actor.npz")
    if not path.is_file():
        pytest.skip("needs heterophilous/: set INFOMAX_DATA")
    with np.load(path) as arrays:
        graph = Graph.from_arrays(arrays["edges"].T, arrays["node_features"])
    verdict = verdict_of(graph, epochs=12, vectors="paper")
    assert verdict["causes"][0].startswith("The features of neighbours do not resemble each other")


def _edges_of(graph):
    links = sparse.triu(graph.adjacency).tocoo()
    return np.stack([links.row, links.col])


def shop(*, tells: bool, n: int = 300, seed: int = 0) -> Graph:
    """Customers and items that they buy at random, or by a taste that the features of customers tell."""
    draws = np.random.default_rng(seed)
    tastes = draws.integers(0, 3, n)
    features = np.eye(3)[tastes] + 0.3 * draws.normal(size=(n, 3))
    chance = np.where(tastes[:, None] == np.arange(n) % 3, 0.06, 0.0) if tells else 0.02
    bought = sparse.csr_array((draws.random((n, n)) < chance).astype(np.float32))
    nodes = {"customer": Nodes.of(n, features), "item": Nodes.of(n, np.ones((n, 1)))}
    return Graph(nodes, (Relation.of("customer", "bought", "item", bought),), node_type="customer")


@pytest.mark.parametrize(("tells", "expected"), [(True, "good"), (False, "weak")])
def test_an_encoder_that_knows_no_hidden_links_is_not_good(tells, expected):
    model = DGI(16, device="cpu", epochs=60).fit(shop(tells=tells))
    scores = model.health_["hidden_links"]
    verdict = model.health_["verdict"]
    assert verdict["verdict"] == expected
    assert scores["links"] == "customer - item by bought"
    assert (
        f"hidden links {scores['links']} are told from random pairs with AUC" in verdict["reason"]
    )
    assert verdict["causes"][:1] == (
        []
        if tells
        else [
            "The encoder is blind: it tells hidden links from random pairs hardly better than chance."
        ]
    )
    assert (scores["trained"] > 0.6) == tells


def test_the_same_graph_gives_the_same_scores_of_hidden_links():
    edges, features = communities(300, 5, 6)
    first, second = (
        DGI(16, device="cpu", epochs=5).fit(Graph.from_arrays(edges, features)) for _ in "ab"
    )
    assert first.health_["hidden_links"] == second.health_["hidden_links"]
    assert first.health_["hidden_links"]["trained"] > 0.6


def test_few_links_and_features_that_are_made_of_edges_are_not_scored():
    assert (
        "hidden_links"
        not in DGI(8, device="cpu", epochs=2).fit(Graph.from_arrays(EDGES, FEATURES)).health_
    )
    edges, _ = communities(300, 5, 6)
    assert (
        "hidden_links" not in DGI(8, device="cpu", epochs=2).fit(Graph.from_arrays(edges)).health_
    )


@pytest.mark.parametrize(
    ("trained", "untrained", "expected"),
    [
        (0.95, 0.87, "good"),
        (0.927, 0.941, "good"),
        (0.5, 0.5, "weak"),
        (0.58, 0.57, "weak"),
        (0.57, 0.5, "good"),
    ],
)
def test_good_is_what_knows_hidden_links_or_has_learnt_them(trained, untrained, expected):
    scores = {"links": "edges", "pairs": 500, "trained": trained, "untrained": untrained}
    trained_report = report(loss=0.3, discriminator_accuracy=0.9, hidden_links=scores)
    assert judge(trained_report, Graph.from_arrays(EDGES, FEATURES))["verdict"] == expected


@pytest.mark.parametrize(
    ("pairs", "trained", "untrained", "expected"),
    [
        (1950, 0.749, 0.742, ("hardly better", "+0.007, where 0.016")),
        (250, 0.749, 0.712, ("hardly better", "+0.037, where 0.044")),
        (1950, 0.749, 0.712, None),
        (1099, 0.848, 0.802, None),
        (1950, 0.749, 0.751, ("no better", "-0.002, where 0.016")),
        (1950, 0.927, 0.961, ("worse", "-0.034, where 0.009")),
    ],
)
def test_a_good_verdict_says_where_the_first_weights_tell_hidden_links_as_well(
    pairs, trained, untrained, expected
):
    scores = {"links": "edges", "pairs": pairs, "trained": trained, "untrained": untrained}
    figures = report(loss=0.3, discriminator_accuracy=0.9, hidden_links=scores)
    verdict = judge(figures, Graph.from_arrays(EDGES, FEATURES))
    assert verdict["verdict"] == "good"
    if expected is None:
        assert "but" not in verdict
        assert words(verdict).startswith("Verdict: good. The loss is")
    else:
        compared, change = expected
        first_line, remedy = words(verdict).split("\n")
        start = (
            f"Verdict: good, but hidden links are told {compared} than before training. The loss"
        )
        assert first_line.startswith(start)
        assert remedy == (
            f"The AUC has changed by {change} may be luck. See whether Random-Init does as well: "
            "infomax evaluate RUN."
        )
