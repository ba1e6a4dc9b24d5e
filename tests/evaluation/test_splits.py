import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infomax.errors import InputError
from infomax.evaluation import splits
from infomax.evaluation.splits import (
    check_classes,
    encode_flags,
    encode_labels,
    is_labelled,
    random_splits,
    splits_for,
    stratified_folds,
)


def test_text_labels():
    codes, names = encode_labels(np.array(["web", "", "net", "web", None], dtype=object))
    assert names == ["net", "web"]
    assert codes.tolist() == [1, -1, 0, 1, -1]
    assert codes.dtype == np.int64


def test_integer_labels_are_sorted_as_numbers():
    codes, names = encode_labels(np.array([10, 9, -1, 10], dtype=np.int32))
    assert names == ["9", "10"]
    assert codes.tolist() == [1, 0, -1, 1]


@pytest.mark.parametrize(
    "column", [np.array(["a", "a", ""], dtype=object), np.array([0.5, 1.5]), np.ones((3, 2), int)]
)
def test_labels_that_no_probe_can_use_are_refused(column):
    with pytest.raises(InputError, match="labels"):
        encode_labels(column)


def test_flags_in_every_spelling():
    table = np.array([["0", "1.0"], ["", "True"], ["false", "1"]], dtype=object)
    codes = encode_flags(table, "labels")
    assert codes.tolist() == [[0, 1], [-1, 1], [0, 1]]
    assert is_labelled(codes).tolist() == [True, False, True]
    np.testing.assert_array_equal(encode_flags(codes.astype(float), "labels"), codes)


@pytest.mark.parametrize(
    "column", [np.array(["0", "red"], dtype=object), np.array([0, 2]), np.array([0.5, 1.0])]
)
def test_what_is_no_flag_is_refused(column):
    with pytest.raises(InputError, match=r'labels kind: expected 0 or 1, .* found "(red|2|0.5)"'):
        encode_flags(column, "labels kind")


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 5))
def test_a_split_is_stratified_and_every_known_node_is_in_one_part(sizes, unknown):
    sizes = [3, *sizes]
    codes = np.random.default_rng(0).permutation(
        [*np.repeat(np.arange(len(sizes)), sizes), *[-1] * unknown]
    )
    [split] = random_splits(codes, seed=0)
    dropped = [code for code, size in enumerate(sizes) if size < 3]
    parts = split["train"].astype(int) + split["validation"] + split["test"]
    assert (parts == ((codes >= 0) & ~np.isin(codes, dropped))).all()
    for code, size in enumerate(sizes):
        if size >= 3:
            counts = [
                int((split[name] & (codes == code)).sum())
                for name in ("train", "validation", "test")
            ]
            assert counts[0] == counts[1] == max(1, round(size / 10))
            assert min(counts) >= 1


def test_splits_differ_and_the_seed_decides():
    codes = np.arange(300) % 3
    first, again = random_splits(codes, seed=4, count=2), random_splits(codes, seed=4, count=3)
    assert len(first) == 2
    np.testing.assert_array_equal(first[1]["train"], again[1]["train"])
    assert (first[0]["train"] != first[1]["train"]).any()
    assert (first[0]["train"] != random_splits(codes, seed=5)[0]["train"]).any()


def test_a_split_is_one_permutation_a_class_in_order():
    """The law that every score ever printed rests on: a seed's split is the same for ever."""
    codes = np.random.default_rng(1).integers(-1, 12, 200) * 5
    splits = random_splits(codes, seed=2, count=2)
    generator = np.random.default_rng(2)
    for split in splits:
        for code in range(0, 60, 5):
            members = generator.permutation(np.flatnonzero(codes == code))
            tenth = max(1, round(len(members) / 10))
            assert set(members[:tenth]) == set(np.flatnonzero(split["train"] & (codes == code)))
            assert set(members[tenth : 2 * tenth]) == set(
                np.flatnonzero(split["validation"] & (codes == code))
            )


def test_thousands_of_classes_are_split_in_one_pass(monkeypatch):
    codes, passes, flatnonzero = np.arange(6000) // 3, [], np.flatnonzero
    monkeypatch.setattr(
        np, "flatnonzero", lambda mask: passes.append(len(mask)) or flatnonzero(mask)
    )
    random_splits(codes, seed=0, count=2)
    assert sum(passes) <= len(codes)


def test_nothing_to_split_is_told():
    with pytest.raises(InputError, match="three nodes"):
        random_splits(np.array([0, 1, 1, -1]), seed=0)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([f"{k / 7:.3f}" for k in range(60)], "60 different values among 60 labelled nodes"),
        ([str(k % 30) for k in range(90)], "30 different numbers are scored as classes"),
        ([str(k % 12 + 0.5) for k in range(600)], "12 different numbers are scored as classes"),
        ([str(k % 30) for k in range(900)], ""),
        ([f"class {k % 30}" for k in range(90)], ""),
        ([str(k) for k in range(6)], ""),
    ],
)
def test_a_quantity_is_no_class(labels, message):
    codes, classes = encode_labels(np.array([*labels, ""], dtype=object))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_classes("label", codes, classes)
            found = [str(one.message) for one in caught]
        except InputError as error:
            found = [str(error)]
    assert len(found) == bool(message)
    assert all(message in line and "Group a quantity" in line for line in found)


@pytest.mark.parametrize("parts", [("train",), ("train", "validation"), ("train", "test"), ()])
def test_a_split_that_lacks_a_part_is_not_scored_on(parts):
    """Its nodes of training would be scored as if they were others."""
    codes = np.arange(60) % 3
    own = {part: np.arange(60) % 3 == at for at, part in enumerate(parts)}
    found, name = splits.splits_for(codes, own, nodes_per_class=20)
    assert (len(found), name) == (10, "mean of 10 random splits 10/10/80 %")
    assert all(set(split) == set(splits.SPLIT_PARTS) and split["test"].any() for split in found)
    own_split = {part: np.arange(60) % 3 == at for at, part in enumerate(splits.SPLIT_PARTS)}
    assert splits.splits_for(codes, own_split) == ([own_split], "the data set's split")


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(3, 6))
def test_every_labelled_node_is_tested_in_one_fold(class_sizes, fold_count):
    class_sizes = [6, *class_sizes]
    codes = np.random.default_rng(0).permutation(
        [*np.repeat(np.arange(len(class_sizes)), class_sizes), -1]
    )
    folds = stratified_folds(codes, fold_count)
    kept_classes = [code for code, size in enumerate(class_sizes) if size >= 3]
    tested = np.sum([fold["test"] for fold in folds], axis=0)
    assert (tested == np.isin(codes, kept_classes)).all()
    for fold in folds:
        assert (fold["train"] | fold["validation"] | fold["test"]).sum() == tested.sum()
        assert not (fold["train"] & fold["test"]).any()
        assert not (fold["train"] & fold["validation"]).any()
    for code in kept_classes:
        tested_of_class = [int((fold["test"] & (codes == code)).sum()) for fold in folds]
        assert max(tested_of_class) - min(tested_of_class) <= 1


def test_small_sets_have_folds_and_a_number_of_folds_can_be_asked_for():
    """Ten of 77 products are too few to train on."""
    small, large = np.arange(77) % 8, np.arange(2000) % 8
    assert splits_for(small, None)[1] == "mean of 5 stratified folds"
    assert splits_for(large, None)[1] == "mean of 10 random splits 10/10/80 %"
    assert splits_for(np.arange(4) % 1, None)[1] == "mean of 4 stratified folds"
    found, name = splits_for(large, None, folds=3)
    assert (len(found), name) == (3, "mean of 3 stratified folds")
    own = {part: np.arange(77) % 3 == at for at, part in enumerate(splits.SPLIT_PARTS)}
    assert splits_for(small, own)[1] == "the data set's split"
    assert splits_for(small, own, folds=4)[1] == "mean of 4 stratified folds"
    for folds in (2, 78):
        with pytest.raises(InputError, match="folds: expected from 3 to 77"):
            splits_for(small, None, folds=folds)


def test_folds_of_several_labels_per_node_divide_all_labelled_nodes():
    codes = np.array([[0, 1], [1, 0], [-1, 0]] * 20)
    found, _ = splits_for(codes, None)
    assert np.sum([fold["test"] for fold in found], axis=0).tolist() == [1, 1, 0] * 20
