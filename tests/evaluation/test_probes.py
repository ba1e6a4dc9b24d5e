import os

import numpy as np
import pytest
import torch
from scipy import sparse
from torch.nn import functional

from infomax.errors import InputError
from infomax.evaluation.logistic import logistic_path
from infomax.evaluation.probes import (
    PROBES,
    first_weights,
    fit_linear,
    linear_gradient,
    paper_probe,
    validated_probe,
)
from infomax.reports.comparison import majority


def blobs(n=240, d=8, classes=4, spread=1.0, seed=0):
    """Vectors around a centre a class, codes, and a split into halves and quarters."""
    generator = np.random.default_rng(seed)
    codes = np.arange(n) % classes
    vectors = 2 * generator.normal(size=(classes, d))[codes] + spread * generator.normal(
        size=(n, d)
    )
    part = generator.permutation(np.repeat([0, 1, 2, 2], n // 4))
    splits = {name: part == number for number, name in enumerate(("train", "validation", "test"))}
    return vectors.astype(np.float32), codes, splits


@pytest.fixture
def case():
    return blobs()


@pytest.mark.skipif(
    "INFOMAX_DATA" not in os.environ, reason="needs the Planetoid files: set INFOMAX_DATA"
)
@pytest.mark.parametrize(
    ("name", "printed", "validated"),
    [("cora", 47.9, 60.3), ("citeseer", 49.3, 61.3), ("pubmed", 69.1, 74.0)],
)
def test_raw_features_score_as_the_paper_prints(name, printed, validated):
    from infomax.datasets import load_dataset
    from infomax.evaluation.splits import encode_labels

    graph = load_dataset(name)
    codes, _ = encode_labels(next(iter(graph.labels.values())))
    totals = np.asarray(graph.features.sum(axis=1)).ravel()
    rows = sparse.diags_array(1 / np.where(totals == 0, 1, totals)) @ graph.features
    score = paper_probe(sparse.csr_array(rows), codes, graph.splits)
    assert 100 * score.value == pytest.approx(printed, abs=0.4)
    assert 0 < 100 * score.values.std() < 0.6
    assert 100 * validated_probe(
        sparse.csr_array(rows), codes, graph.splits
    ).value == pytest.approx(validated, abs=0.8)


@pytest.mark.parametrize("many", [False, True])
def test_the_closed_gradient_is_autograds(many):
    generator = torch.Generator().manual_seed(0)
    x, weight = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((7, 5), (5, 3, 4))
    )
    bias = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    codes = torch.tensor([0, 1, 2, 3, 0, 1, 2])
    y = functional.one_hot(codes).double()
    weight.requires_grad_()
    bias.requires_grad_()
    loss = torch.zeros((), dtype=torch.float64)
    for r in range(3):  # each restart is a regression of its own
        logits = x @ weight[:, r] + bias[r]
        loss += (
            functional.binary_cross_entropy_with_logits(logits, y)
            if many
            else functional.cross_entropy(logits, codes)
        )
    expected = torch.autograd.grad(loss, (weight, bias))
    found = linear_gradient(x, y, weight.detach(), bias.detach(), many)
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("many", [False, True])
def test_restarts_together_equal_restarts_one_by_one(case, many):
    vectors, codes, _ = case
    x, y = torch.from_numpy(vectors).double(), functional.one_hot(torch.from_numpy(codes)).double()
    start = first_weights(5, 8, 4, seed=1).double()
    weight, bias = fit_linear(x, y, start, many)
    for r in range(5):
        alone = fit_linear(x, y, start[:, r : r + 1], many)
        torch.testing.assert_close(weight[:, r : r + 1], alone[0], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(bias[r : r + 1], alone[1], rtol=1e-9, atol=1e-9)


def test_the_paper_probe_is_a_hundred_steps_of_adam(case):
    vectors, codes, splits = case
    layer = torch.nn.Linear(8, 4)
    with torch.no_grad():
        layer.weight.copy_(first_weights(1, 8, 4, seed=3)[:, 0].T)
        layer.bias.zero_()
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.01)
    x, y = torch.from_numpy(vectors[splits["train"]]), torch.from_numpy(codes[splits["train"]])
    for _ in range(100):
        optimiser.zero_grad()
        functional.cross_entropy(layer(x), y).backward()
        optimiser.step()
    expected = layer(torch.from_numpy(vectors[splits["test"]])).argmax(1).numpy()
    score = paper_probe(vectors, codes, splits, seed=3, restarts=1)
    np.testing.assert_array_equal(score.predictions[0], expected)
    assert score.value == pytest.approx((expected == codes[splits["test"]]).mean())


def test_first_weights_fill_their_bounds_and_do_not_depend_on_the_number_of_restarts():
    draws = first_weights(6, 40, 20, seed=0)
    assert draws.abs().max() == pytest.approx((6 / 60) ** 0.5, rel=1e-2)
    assert abs(float(draws.mean())) < 0.01
    torch.testing.assert_close(draws[:, :2], first_weights(2, 40, 20, seed=0))
    assert not torch.equal(draws, first_weights(6, 40, 20, seed=1))


@pytest.mark.parametrize("name", PROBES)
def test_test_labels_decide_nothing_but_the_score(case, name):
    vectors, codes, splits = case
    honest = PROBES[name](vectors, codes, splits)
    poisoned = np.where(splits["test"], 17, codes)
    again = PROBES[name](vectors, poisoned, splits)
    np.testing.assert_array_equal(again.predictions, honest.predictions)
    assert again.hyperparameters == honest.hyperparameters
    assert honest.value > 0.9
    assert again.value == 0


@pytest.mark.parametrize(("chosen", "better"), [(0.1, 100.0), (100.0, 0.1)])
def test_validation_chooses_even_where_the_test_nodes_prefer_another(chosen, better, monkeypatch):
    vectors, codes, splits = blobs(d=30, spread=9.0)
    for part, cost in (
        ("validation", chosen),
        ("test", better),
    ):  # labelled as a regression of that cost predicts
        with monkeypatch.context() as patch:
            patch.setattr("infomax.evaluation.probes.PROBE_COSTS", (cost,))
            codes[splits[part]] = validated_probe(
                vectors, codes, {**splits, "test": splits[part]}
            ).predictions[0]
    score = validated_probe(vectors, codes, splits)
    assert score.hyperparameters == {"C": chosen}
    assert score.value < 1


def test_of_equally_good_strengths_the_one_nearest_to_1_is_chosen():
    codes = np.arange(60) % 2
    vectors = (
        np.random.default_rng(0).normal(size=(60, 3)) + 50 * codes[:, None]
    )  # separated by any of them
    splits = {
        part: np.arange(60) // 20 == number
        for number, part in enumerate(("train", "validation", "test"))
    }
    score = validated_probe(vectors, codes, splits)
    assert (score.value, score.hyperparameters["C"]) == (1, 1)


@pytest.mark.parametrize(
    ("name", "many"), [("paper", False), ("paper", True), ("validated", False)]
)
def test_test_vectors_teach_nothing(name, many):
    """What is predicted of a test node does not depend on the others: of those, not even the scale is learnt."""
    vectors, codes, splits = blobs(spread=4.0)
    vectors *= np.logspace(-1, 1, 8, dtype=np.float32)
    labels = np.eye(4, dtype=np.uint8)[codes] if many else codes
    poisoned, half = vectors.copy(), np.flatnonzero(splits["test"])[::2]
    poisoned[half] = 1000 * poisoned[half] + 500
    honest, again = (PROBES[name](x, labels, splits).predictions for x in (vectors, poisoned))
    np.testing.assert_array_equal(again[:, 1::2], honest[:, 1::2])
    assert (again[:, ::2] != honest[:, ::2]).any()


@pytest.mark.parametrize("name", PROBES)
def test_unknown_labels_are_in_no_part(case, name):
    vectors, codes, splits = case
    honest = PROBES[name](vectors, codes, splits)
    lost = np.arange(0, len(codes), 7)
    unknown = codes.copy()
    unknown[lost] = -1
    without = {part: mask & (unknown >= 0) for part, mask in splits.items()}
    marked, left_out = (
        PROBES[name](vectors, labels, parts)
        for labels, parts in ((unknown, splits), (codes, without))
    )
    np.testing.assert_array_equal(marked.predictions, left_out.predictions)
    assert marked.predictions.shape[1] == without["test"].sum() < honest.predictions.shape[1]


@pytest.mark.parametrize("name", PROBES)
def test_arrays_tensors_and_sparse_rows_score_alike(case, name):
    vectors, codes, splits = case
    vectors = np.where(np.abs(vectors) < 1, 0, vectors)
    scores = [
        PROBES[name](form, codes, splits).value
        for form in (vectors, torch.from_numpy(vectors), sparse.csr_array(vectors))
    ]
    assert scores[0] == pytest.approx(scores[1]) == pytest.approx(scores[2])


@pytest.mark.parametrize("name", PROBES)
def test_a_long_test_part_is_predicted_in_blocks(case, name):
    at_once = PROBES[name](*case).predictions
    in_blocks = PROBES[name](*case, rows_per_block=7).predictions
    np.testing.assert_array_equal(in_blocks, at_once)


def test_the_seed_decides(case):
    vectors, codes, splits = case
    vectors = vectors / 50  # so small that a hundred steps do not forget where they began
    one, same, other = (paper_probe(vectors, codes, splits, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.predictions, same.predictions)
    assert (one.predictions != other.predictions).any()
    assert one.values.shape == (20,)
    assert one.value == pytest.approx(one.values.mean())


def test_many_labels_give_pooled_f1():
    generator = np.random.default_rng(0)
    hidden = generator.normal(size=(600, 6))
    labels = (hidden > 0.5).astype(np.uint8)
    vectors = (hidden @ generator.normal(size=(6, 12)) * np.logspace(-3, 3, 12) + 5).astype(
        np.float32
    )
    _, _, splits = blobs(n=600)
    score = paper_probe(vectors, labels, splits, restarts=3)
    assert score.metric == "micro-F1"
    assert score.predictions.shape == (3, int(splits["test"].sum()), 6)
    assert score.value > 0.8  # 0.73 unless the columns are brought to one scale
    poisoned = np.where(splits["test"][:, None], 1 - labels, labels)
    np.testing.assert_array_equal(
        paper_probe(vectors, poisoned, splits, restarts=3).predictions, score.predictions
    )


def test_mistakes_are_told(case):
    vectors, codes, splits = case
    nowhere = np.zeros(len(codes), dtype=bool)
    with pytest.raises(InputError, match="split 'test': expected at least one labelled node"):
        paper_probe(vectors, codes, {**splits, "test": nowhere})
    with pytest.raises(InputError, match="split 'validation'"):
        validated_probe(vectors, codes, {"train": splits["train"], "test": splits["test"]})
    with pytest.raises(InputError, match="two classes"):
        validated_probe(vectors, np.where(splits["train"], 0, codes), splits)
    with pytest.raises(InputError, match="one label per node"):
        validated_probe(vectors, np.ones((len(codes), 2)), splits)
    with pytest.raises(InputError, match="one per vector"):
        paper_probe(vectors[1:], codes, splits)


@pytest.mark.gpu
def test_on_a_gpu_no_step_waits_for_the_host(case):
    vectors, codes, splits = case
    x, y = (
        torch.from_numpy(vectors).cuda(),
        functional.one_hot(torch.from_numpy(codes)).float().cuda(),
    )
    start = first_weights(20, 8, 4, seed=0).cuda()
    fit_linear(x, y, start, False)
    torch.cuda.set_sync_debug_mode("error")
    try:
        fit_linear(x, y, start, False)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    here, there = (
        paper_probe(vectors, codes, splits, device=device).value for device in ("cpu", "cuda")
    )
    assert here == pytest.approx(there, abs=0.01)


def test_the_majority_class_is_that_of_training_and_validation_nodes():
    """Training nodes are often as many of each class: validation nodes tell which is frequent."""
    codes = np.array([0, 1, 1, 1, 0, 1, -1])
    parts = np.array([0, 0, 1, 1, 1, 2, 2])
    splits = {name: parts == part for part, name in enumerate(("train", "validation", "test"))}
    assert majority(codes, [splits]).mean == 100
    assert majority(codes, [{"train": parts == 0, "test": parts == 2}]).mean == 0
    flags = np.array([[1, 0], [0, 1], [1, 0], [1, 1], [0, 0], [1, 1], [-1, 0]])
    assert majority(flags, [splits]).mean == pytest.approx(2 / 3)


def test_labels_are_fitted_to_the_lowest_loss_whatever_the_shape_of_x():
    """Long, correlated, constant and repeated columns, a rare label, and one that no node has."""
    draws = torch.Generator().manual_seed(0)
    x = torch.randn(400, 4, generator=draws, dtype=torch.float64)
    y = (x + 2 * torch.randn(400, 4, generator=draws) > torch.tensor([0.0, 1, 4, 1e6])).float()
    shaped = torch.cat(
        [100 * x[:, :2] + 1000, x[:, 1:], x[:, :1] + x[:, 1:2], torch.ones(400, 1)], dim=1
    ).float()
    _, found = next(logistic_path(shaped, y.numpy(), [np.inf]))
    weight, bias = (torch.from_numpy(part).float() for part in (found.weights, found.bias))
    assert weight.isfinite().all()
    logits = shaped @ weight + bias
    error = (logits.sigmoid() - y)[:, :3].double() / 400
    assert (error.T @ x).abs().max() < 2e-3
    assert error.sum(0).abs().max() < 2e-3
    assert (logits[:, 3] < -3).all()


def test_the_converged_probe_of_many_labels_is_where_a_thousand_steps_end():
    vectors, codes, splits = blobs(n=1200, spread=3.0)
    flags = np.stack([codes == 0, codes < 2, codes > 3], axis=1).astype(np.int64)
    one, other = (PROBES["converged"](vectors, flags, splits, seed=seed) for seed in (0, 1))
    assert (one.metric, one.values.tolist()) == ("micro-F1", other.values.tolist())
    assert one.value == pytest.approx(
        paper_probe(vectors, flags, splits, steps=1000).value, abs=0.005
    )
    few = {**splits, "train": splits["train"] & (np.arange(1200) < 60)}
    found, expected = (
        PROBES["converged"](vectors, flags, few),
        paper_probe(vectors, flags, few, steps=1000),
    )
    assert (
        found.values.tolist() == expected.values.tolist()
    )  # of few nodes: a thousand steps, and no lowest loss
