import json

import numpy as np
import pytest

from infomax.analysis.dimensions import dimensions, distinction, removable
from infomax.analysis.health import health
from infomax.analysis.projections import projections
from infomax.analysis.scores import HIGHEST, ScoredVectors, scores
from infomax.analysis.style import in_style
from infomax.evaluation.metrics import silhouette, singular_values


@pytest.fixture
def pairs() -> ScoredVectors:
    """Sixty positives and negatives; dimension 0 is biased, 1 separates them well, 2 a little, the others not."""
    generator = np.random.default_rng(0)
    positives, negatives = generator.normal(size=(2, 60, 6)).astype(np.float32)
    for vectors in (positives, negatives):
        vectors[:, 0] += 9
    positives[:, 1] += 4
    positives[:, 2] += 1
    direction = np.array([-0.1, 1, 0.2, 0, 0, 0], dtype=np.float32)
    nodes = np.arange(60)
    return ScoredVectors(
        nodes, nodes, positives, negatives, positives * direction, negatives * direction, -0.5
    )


def drawn(chapter):
    """The chapter's numbers, after both layouts of its figure were drawn and its numbers written as JSON."""
    with in_style():
        for stacked in (False, True):
            chapter.draw(stacked).draw_without_rendering()
    assert chapter.story
    assert all(len(row) == len(chapter.facts[0]) for row in chapter.facts)
    return json.loads(json.dumps(chapter.numbers, allow_nan=False))


def test_scores_are_the_sum_of_their_terms(pairs):
    direction = np.array([-0.1, 1, 0.2, 0, 0, 0])
    np.testing.assert_allclose(
        pairs.positive_scores, pairs.positives @ direction - 0.5, rtol=1e-5, atol=1e-5
    )


def test_the_t_test_orders_dimensions_and_survives_what_p_does_not(pairs):
    strength = distinction(pairs.positives, pairs.negatives)
    assert np.argsort(-strength)[:2].tolist() == [1, 2]
    x = np.array(
        [[0.0], [2.0]]
    )  # means 1 and 5, variances 2 and 2, two examples each: t = -4 / sqrt(2/2 + 2/2)
    assert distinction(x, x + 4)[0] == pytest.approx(4 / np.sqrt(2))
    far = np.random.default_rng(0).normal([100, 200], size=(500, 2))  # both p-values round to zero
    assert np.argsort(distinction(far, far - far.mean(axis=0))).tolist() == [0, 1]
    constant = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert distinction(constant, constant).tolist() == [0, 0]
    assert (distinction(constant, constant + 1) > 1e300).all()  # they tell them apart without fail


def test_without_removal_all_is_as_it_was_and_both_ends_agree(pairs):
    seen = []

    def accuracy(kept):
        seen.append(kept.tolist())
        return len(kept) / 6

    numbers = drawn(dimensions(pairs, accuracy, {"floor": 0.5, "sky": 1.1}, points=6))
    most, least = numbers["curves"]["most"], numbers["curves"]["least"]
    assert numbers["removed"] == [0, 1, 2, 3, 4, 5]
    assert seen[0] == list(range(6))
    assert most["accuracy"][0] == least["accuracy"][0] == 1
    assert (
        most["bad_positives"][0]
        == least["bad_positives"][0]
        == int((pairs.positive_scores <= 0).sum())
    )
    assert (
        most["bad_negatives"][0]
        == least["bad_negatives"][0]
        == int((pairs.negative_scores >= 0).sum())
    )
    # Without its best dimension the discriminator fails; with that dimension alone it does not.
    assert most["bad_positives"][1] > 50
    assert least["bad_positives"][5] < 5
    assert seen[1] == [0, 2, 3, 4, 5]
    assert seen[-1] == [1]
    assert numbers["removable"] == {
        "floor": {"most": 3, "least": 3},
        "sky": {"most": None, "least": None},
    }


def test_what_can_go_before_the_first_fall():
    assert removable([0, 10, 20, 30], [0.9, 0.85, 0.7, 0.9], 0.8) == 10
    assert removable([0, 10], [0.9, 0.9], 0.9) == 10
    assert removable([0, 10], [0.5, 0.9], 0.8) is None


def test_the_dimension_study_without_labels(pairs):
    numbers = drawn(dimensions(pairs, floors={"floor": 0.5}))
    assert numbers["curves"]["most"]["accuracy"] == []
    assert numbers["removable"] == {}


def test_silhouettes_belong_to_the_points_of_each_method():
    generator = np.random.default_rng(0)
    groups = np.array(["a", "b", "c"] * 20, dtype=object)
    apart = generator.normal(size=(60, 2)) + 50 * np.array([[0, 0], [1, 0], [0, 1]] * 20)
    mixed = generator.normal(size=(60, 2))
    groups[:3] = ""
    numbers = drawn(projections({"Raw features": mixed, "DGI": apart}, groups))
    assert numbers["silhouette"]["DGI"] == pytest.approx(
        silhouette(apart[3:], np.array([0, 1, 2] * 19))
    )
    assert numbers["silhouette"]["DGI"] > 0.9
    assert numbers["silhouette"]["Raw features"] < 0.1
    assert drawn(projections({"DGI": apart}))["silhouette"] == {}
    assert (
        projections({"DGI": apart}, np.array(["a"] * 60, dtype=object)).numbers["silhouette"] == {}
    )


def test_the_highest_nodes_are_named_and_false_positives_counted(pairs):
    points = np.random.default_rng(0).normal(size=(60, 2))
    ids = np.array([f"node {k}" for k in range(60)], dtype=object)
    degrees = np.where(pairs.negative_scores >= 0, 1, 7)
    chapter = scores(pairs, points, points, ids, degrees, np.array(["x"] * 60, dtype=object))
    numbers = drawn(chapter)
    highest = np.argsort(-pairs.positive_scores)[:HIGHEST]
    assert [node["id"] for node in numbers["highest"]] == ids[highest].tolist()
    assert [row[0] for row in chapter.facts[1:]] == ids[highest].tolist()
    assert numbers["false_positives"] == int((pairs.negative_scores >= 0).sum()) > 0
    assert numbers["median_degree"] == {"false_positives": 1, "all_negatives": 7}


def test_the_highest_nodes_are_called_by_their_names(pairs):
    points, ids = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60)
    names = np.array([f"Port {row}" for row in ids], dtype=object)
    chapter = scores(pairs, points, points, ids, np.ones(60), node_names=names)
    assert all(one["name"] == f"Port {one['id']}" for one in drawn(chapter)["highest"])
    assert chapter.facts[0] == ["highest-scored node", "id", "neighbours", "score"]
    assert [row[0] for row in chapter.facts[1:]] == [f"Port {row[1]}" for row in chapter.facts[1:]]
    with in_style():
        assert chapter.facts[1][0] in [
            text.get_text() for text in chapter.draw(False).axes[0].texts
        ]


def test_nodes_whose_ids_begin_alike_are_all_named(pairs):
    points = np.random.default_rng(0).normal(size=(60, 2))
    ids = np.array([f"http://example.org/a/long/path/{k}/end" for k in range(60)], dtype=object)
    with in_style():
        texts = scores(pairs, points, points, ids, np.ones(60)).draw(False).axes[0].texts
    assert sum("…" in text.get_text() for text in texts) == HIGHEST


def test_of_scores_that_are_all_alike_nothing_is_claimed():
    same, points, nodes = np.ones((9, 2), np.float32), np.zeros((9, 2)), np.arange(9)
    chapter = scores(
        ScoredVectors(nodes, nodes, same, same, same, same, 0.0),
        points,
        points,
        nodes,
        np.full(9, 2),
    )
    drawn(chapter)
    assert chapter.story[1:] == [
        "The median score in the graph is 2.0, the highest 2.0; the 8 highest-scored nodes are named.",
        "9 negatives are classified as real; the median number of neighbours of their nodes is 2, of all nodes 2.",
    ]
    figure = chapter.draw(False)
    colours = [panel.collections[0].to_rgba(2.0) for panel in figure.axes[:2]]
    assert (
        colours[0] == colours[1] == pytest.approx((0.128, 0.567, 0.551, 1), abs=0.01)
    )  # the middle one


def test_panels_of_points_are_squares_whose_titles_align():
    points = np.random.default_rng(0).normal(size=(50, 2))
    with in_style():
        figure = projections(
            {"wide": points * [9, 1], "high": points * [1, 9], "one": points * 0}
        ).draw(False)
        figure.draw_without_rendering()
        boxes = [panel.get_window_extent() for panel in figure.axes]
        titles = [panel._left_title.get_window_extent() for panel in figure.axes]
    assert [box.width for box in boxes] == pytest.approx([box.height for box in boxes])
    assert [title.y0 for title in titles] == pytest.approx([titles[0].y0] * 3)
    assert max(title.y1 for title in titles) < figure.bbox.y1


@pytest.mark.parametrize("trained", [True, False])
def test_the_health_figure_has_the_spectrum(trained):
    vectors = np.random.default_rng(0).normal(size=(50, 4)) * [8, 4, 2, 0]
    report = {
        "effective_rank": 2.5,
        "dead_dimensions": 1,
        "dimensions": 4,
        "epochs": 0,
        "seconds": 0,
        "kept_epoch": 0,
    }
    if trained:
        curve = {
            "loss": [0.7, 0.5],
            "discriminator_accuracy": [0.5, 0.9],
            "summary_spread": [0.1, 0.2],
        }
        report |= {
            "loss": 0.5,
            "discriminator_accuracy": 0.9,
            "summary_spread": 0.2,
            "curve": curve,
            "kept_epoch": 2,
        }
        report["guessing_loss"] = 1.3863  # that of an objective twice the paper's
        assert "guessing gives 1.3863" in health(report, vectors).story[0]
    numbers = drawn(health(report, vectors))
    expected = np.linalg.svd(vectors, compute_uv=False)
    np.testing.assert_allclose(singular_values(vectors), expected, atol=1e-8)
    np.testing.assert_allclose(
        numbers["singular_values"], expected / expected[0], rtol=1e-5, atol=1e-8
    )
