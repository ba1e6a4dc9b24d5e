"""Labels as codes, and splits for labels that come without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, number_of, shorten, warn

Splits: TypeAlias = Mapping[str, NDArray[np.bool_]]
"""Name ("train", "validation", "test") -> ``[N]`` bool."""

PARTS = ("train", "validation", "test")


def encode_labels(column: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Codes ``[N]`` (-1: unknown) and the C class names, in sorted order, of a column ``[N]`` of labels.

    Unknown are "" and None among text and -1 among integers. Integer classes are sorted as numbers.
    """
    if column.ndim != 1 or column.dtype.kind not in "OUSiub":
        found = f"{column.dtype} of shape {list(column.shape)}"
        raise InputError("labels", "a column of text or integers, one label per node", found)
    if column.dtype.kind in "iub":
        values = column.astype(np.int64)
        known = values != -1
    else:
        values = np.array(
            ["" if label is None else str(label) for label in column.tolist()], dtype=object
        )
        known = values != ""
    classes, codes = np.unique(values[known], return_inverse=True)
    if len(classes) < 2:
        found = f"{len(classes)} among {number_of(int(known.sum()), 'labelled node')}"
        raise InputError("labels", "at least two classes", found)
    encoded = np.full(len(column), -1, dtype=np.int64)
    encoded[known] = codes
    return encoded, [str(name) for name in classes]


def check_classes(where: str, codes: NDArray[np.int64], classes: Sequence[str]) -> None:
    """Refuse labels that most nodes have alone, and warn of numbers that are rather a quantity than classes."""
    nodes = np.bincount(codes[codes >= 0], minlength=len(classes))
    if len(classes) <= _FEW:
        return
    remedy = "Group a quantity (pandas: qcut), or fit a regression of your own to the vectors"
    if 2 * (nodes == 1).sum() > nodes.sum():
        found = f"{len(classes):,} different values among {number_of(int(nodes.sum()), 'labelled node')}"
        raise InputError(where, "classes, each of several nodes", found, f"{remedy}.")
    try:
        numbers = np.array(classes, dtype=np.float64)
    except ValueError:
        return
    if (numbers % 1 != 0).any() or nodes.mean() < _USUAL:
        told = f"{where}: {len(classes):,} different numbers are scored as classes, so a near miss counts as a miss."
        warn(f"{told} {remedy}.")


_FEW, _USUAL = 10, 20
"""Numbers that are more than so many, each of fewer nodes than so many in the mean, are rather a quantity."""


def encode_flags(values: NDArray[Any], where: str) -> NDArray[np.int8]:
    """Codes (1: the node has the label, 0: it has not, -1: unknown) of flags, as numbers or text, of any shape."""
    if values.dtype.kind in "OUS":
        flags = np.array([_FLAGS.get(str(flag).lower(), np.nan) for flag in values.flat]).reshape(
            values.shape
        )
    else:
        flags = values
    wrong = ~np.isin(flags, (-1, 0, 1))
    if wrong.any():
        remedy = "Name one column of classes, or several columns of 0 and 1."
        raise InputError(
            where, "0 or 1, as a node may have several labels", shorten(values[wrong][0]), remedy
        )
    return flags.astype(np.int8)


_FLAGS = {"": -1, "-1": -1, "0": 0, "0.0": 0, "false": 0, "1": 1, "1.0": 1, "true": 1}


def known(codes: NDArray[Any]) -> NDArray[np.bool_]:
    """The labelled nodes ``[N]``, of codes ``[N]`` or ``[N, C]``: those whose codes are all known."""
    return np.asarray((codes >= 0).reshape(len(codes), -1).all(axis=1))


def random_splits(codes: NDArray[np.int64], seed: int, count: int = 1) -> list[Splits]:
    """``count`` stratified splits of the labelled nodes: 10 % train, 10 % validation, 80 % test.

    Each class has at least one node in every part; classes of fewer than three nodes cannot, so they are in none.

    Shapes:
        codes: ``[N]``, -1 where unknown.
    """
    generator = np.random.default_rng(seed)
    labelled = np.flatnonzero(codes >= 0)
    sizes = np.unique(codes[labelled], return_counts=True)[1]
    if not (sizes >= 3).any():
        found = f"at most {number_of(max(sizes, default=0), 'node')} per class"
        raise InputError("labels", "a class of three nodes or more", found)
    # One sort, not one pass over the nodes per class: there may be thousands. Stable, so that only the seed decides.
    groups = np.split(labelled[np.argsort(codes[labelled], kind="stable")], np.cumsum(sizes)[:-1])
    splits: list[Splits] = []
    for _ in range(count):
        masks = {name: np.zeros(len(codes), dtype=bool) for name in PARTS}
        for group in (group for group in groups if len(group) >= 3):
            members = generator.permutation(group)
            tenth = max(1, round(len(members) / 10))
            for mask, rows in zip(
                masks.values(), np.split(members, [tenth, 2 * tenth]), strict=True
            ):
                mask[rows] = True
        splits.append(masks)
    return splits


def splits_for(
    codes: NDArray[Any], own: Splits | None, count: int = 10
) -> tuple[list[Splits], str]:
    """The splits to score on, and their name: the graph's own, otherwise ``count`` random ones, stratified by class."""
    if own is not None and set(PARTS) <= set(own):
        return [own], "the data set's split"
    strata = codes if codes.ndim == 1 else known(codes) - 1
    return random_splits(strata, seed=0, count=count), f"mean of {count} random splits 10/10/80 %"
