"""Labels as codes, and splits for labels that come without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, format_count, shorten, warn

Splits: TypeAlias = Mapping[str, NDArray[np.bool_]]
"""Name ("train", "validation", "test") -> ``[N]`` bool."""

SPLIT_PARTS = ("train", "validation", "test")
SMALLEST_CLASS = 3
"""Labelled nodes of a class, at least, so that it can have one in each part."""
USUAL_FOLDS = 5
"""Folds of a set too small for random splits."""
RANDOM_SPLITS = 10
"""Random splits of a larger set."""
NODES_PER_CLASS = 200
"""Labelled nodes per class, in the mean, from which random splits 10/10/80 are taken.

Of fewer, a tenth is too few to train on, and five folds find scores that are nearer to those on all
nodes (docs/explanation/evidence.md).
"""
FEW_CLASSES = 10
"""Numbers with at most so many different values are classes, whatever else they are."""
NODES_PER_NUMBER = 20
"""Different numbers that have fewer nodes each, in the mean, are rather a quantity than classes."""


def encode_labels(column: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Codes ``[N]``, -1 where unknown, and the sorted class names of a column ``[N]`` of labels.

    Unknown are "" and None among text and -1 among integers. Integer classes are sorted as numbers.
    """
    if column.ndim != 1 or column.dtype.kind not in "OUSiub":
        found = f"{column.dtype} of shape {list(column.shape)}"
        raise InputError("labels", "a column of text or integers, one label per node", found)

    if column.dtype.kind in "iub":
        values = column.astype(np.int64)
        is_known = values != -1
    else:
        texts = ["" if label is None else str(label) for label in column.tolist()]
        values = np.array(texts, dtype=object)
        is_known = values != ""

    classes, codes_of_labelled = np.unique(values[is_known], return_inverse=True)
    if len(classes) < 2:
        found = f"{len(classes)} among {format_count(int(is_known.sum()), 'labelled node')}"
        raise InputError("labels", "at least two classes", found)

    codes = np.full(len(column), -1, dtype=np.int64)
    codes[is_known] = codes_of_labelled
    return codes, [str(name) for name in classes]


def check_classes(where: str, codes: NDArray[np.int64], classes: Sequence[str]) -> None:
    """Refuse labels that most nodes have alone; warn of numbers that look like a quantity."""
    if len(classes) <= FEW_CLASSES:
        return
    class_sizes = np.bincount(codes[codes >= 0], minlength=len(classes))
    remedy = "Group a quantity (pandas: qcut), or fit a regression of your own to the vectors."

    if 2 * (class_sizes == 1).sum() > class_sizes.sum():
        labelled_nodes = format_count(int(class_sizes.sum()), "labelled node")
        found = f"{len(classes):,} different values among {labelled_nodes}"
        raise InputError(where, "classes, each of several nodes", found, remedy)

    try:
        numbers = np.array(classes, dtype=np.float64)
    except ValueError:
        return
    has_fractions = bool((numbers % 1 != 0).any())
    if has_fractions or class_sizes.mean() < NODES_PER_NUMBER:
        warn(
            f"{where}: {len(classes):,} different numbers are scored as classes, "
            f"so a near miss counts as a miss. {remedy}"
        )


CODE_OF_FLAG = {"": -1, "-1": -1, "0": 0, "0.0": 0, "false": 0, "1": 1, "1.0": 1, "true": 1}
"""The code of each text that is a flag."""


def encode_flags(values: NDArray[Any], where: str) -> NDArray[np.int8]:
    """Codes of flags, which are numbers or text, of any shape.

    A code is 1 where a node has the label, 0 where it does not, and -1 where that is unknown.
    """
    flags = values
    if values.dtype.kind in "OUS":
        codes = [CODE_OF_FLAG.get(str(flag).lower(), np.nan) for flag in values.flat]
        flags = np.array(codes).reshape(values.shape)

    is_wrong = ~np.isin(flags, (-1, 0, 1))
    if is_wrong.any():
        raise InputError(
            where,
            "0 or 1, as a node may have several labels",
            shorten(values[is_wrong][0]),
            "Name one column of classes, or several columns of 0 and 1.",
        )
    return flags.astype(np.int8)


def is_labelled(codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which nodes ``[N]`` are labelled: those whose codes ``[N]`` or ``[N, C]`` are all known."""
    return np.asarray((codes >= 0).reshape(len(codes), -1).all(axis=1))


def nodes_by_class(codes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The nodes, ascending, of each class that has enough of them for three parts.

    Labels of which no class has enough are refused.
    """
    labelled = np.flatnonzero(codes >= 0)
    class_sizes = np.unique(codes[labelled], return_counts=True)[1]
    if not (class_sizes >= SMALLEST_CLASS).any():
        found = f"at most {format_count(max(class_sizes, default=0), 'node')} per class"
        raise InputError("labels", "a class of three nodes or more", found)

    # One sort, not one pass over the nodes per class: there may be thousands. The sort is stable,
    # so that only the seed decides.
    by_class = labelled[np.argsort(codes[labelled], kind="stable")]
    groups = np.split(by_class, np.cumsum(class_sizes)[:-1])
    return [group for group in groups if len(group) >= SMALLEST_CLASS]


def random_splits(codes: NDArray[np.int64], seed: int, count: int = 1) -> list[Splits]:
    """``count`` stratified splits of the labelled nodes: 10 % train, 10 % validation, 80 % test.

    Each class has at least one node in every part; classes of fewer than three nodes cannot, so
    they are in none.

    Shapes:
        codes: ``[N]``, -1 where unknown.
    """
    generator = np.random.default_rng(seed)
    groups = nodes_by_class(codes)
    splits: list[Splits] = []
    for _ in range(count):
        masks = {name: np.zeros(len(codes), dtype=bool) for name in SPLIT_PARTS}
        for group in groups:
            members = generator.permutation(group)
            tenth = max(1, round(len(members) / 10))
            masks["train"][members[:tenth]] = True
            masks["validation"][members[tenth : 2 * tenth]] = True
            masks["test"][members[2 * tenth :]] = True
        splits.append(masks)
    return splits


def stratified_folds(codes: NDArray[np.int64], fold_count: int, seed: int = 0) -> list[Splits]:
    """Each of ``fold_count`` folds is tested once, by a model that trains on the others.

    The next fold is the validation part. Classes of fewer than three nodes are in none.

    Shapes:
        codes: ``[N]``, -1 where unknown.
    """
    generator = np.random.default_rng(seed)
    shuffled = np.concatenate([generator.permutation(group) for group in nodes_by_class(codes)])
    if not SMALLEST_CLASS <= fold_count <= len(shuffled):
        expected = f"from {SMALLEST_CLASS} to {len(shuffled):,}, the labelled nodes"
        raise InputError("folds", expected, str(fold_count))

    # Nodes are dealt class after class, so folds differ by one node at most, in all and by class.
    fold_of_node = np.full(len(codes), -1, dtype=np.int64)
    fold_of_node[shuffled] = np.arange(len(shuffled)) % fold_count

    splits: list[Splits] = []
    for fold in range(fold_count):
        is_test = fold_of_node == fold
        is_validation = fold_of_node == (fold + 1) % fold_count
        is_train = (fold_of_node >= 0) & ~is_test & ~is_validation
        splits.append({"train": is_train, "validation": is_validation, "test": is_test})
    return splits


def splits_for(
    codes: NDArray[Any],
    own_split: Splits | None,
    count: int = RANDOM_SPLITS,
    *,
    folds: int | None = None,
    nodes_per_class: int = NODES_PER_CLASS,
) -> tuple[list[Splits], str]:
    """The splits to score on, and their name for a title.

    They are stratified folds where ``folds`` are asked for; else the graph's own split; else
    stratified folds where there are few labelled nodes per class; else random splits 10/10/80 %.

    Args:
        codes: ``[N]`` classes as numbers, or ``[N, C]`` of 0/1 for several labels per node.
        own_split: the split that the graph has.
        count: how many random splits.
        folds: how many folds; None: the other rules above decide.
        nodes_per_class: labelled nodes per class below which there are few.
    """
    if own_split is not None and set(SPLIT_PARTS) <= set(own_split) and folds is None:
        return [own_split], "the data set's split"

    has_one_label_per_node = codes.ndim == 1
    if has_one_label_per_node:
        strata = codes
    else:
        # All labelled nodes are one stratum; -1 stands for an unknown label.
        strata = np.where(is_labelled(codes), 0, -1)
    groups = nodes_by_class(strata)
    labelled_nodes = sum(len(group) for group in groups)
    # Each of several labels has two classes, 0 and 1.
    class_count = len(groups) if has_one_label_per_node else 2
    if folds is None and labelled_nodes < nodes_per_class * class_count:
        folds = min(USUAL_FOLDS, labelled_nodes)
    if folds is not None:
        return stratified_folds(strata, folds), f"mean of {folds} stratified folds"
    return (
        random_splits(strata, seed=0, count=count),
        f"mean of {count} random splits 10/10/80 %",
    )
