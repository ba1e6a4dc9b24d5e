"""k-means in several sets of points, or from several starts, at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.progress import Progress, silent

Floats = NDArray[np.floating[Any]]
ROUNDS, ENOUGH = 200, 1e-4
"""The most rounds; and the squared movement of all centres, as part of the mean variance, that ends them before."""
BLOCK = 1 << 22
"""Similarities of points and centres that are computed at a time."""


def starts(points: Floats, k: int, generator: np.random.Generator) -> Floats:
    """Centres ``[B, k, d]`` to start from, drawn among the points ``[B, n, d]`` by k-means++.

    Each is drawn with a chance by its squared distance from the centres before it; the best of a few draws is taken.
    """
    sets, n, _ = points.shape
    each, squares = np.arange(sets), (points**2).sum(axis=2)
    chosen = np.empty((sets, k), np.int64)
    chosen[:, 0] = generator.integers(n, size=sets)
    nearest = np.full((sets, n), np.inf, points.dtype)
    draws = chosen[:, :1]
    for number in range(k):
        if number:
            sums = nearest.cumsum(axis=1)
            levels = generator.random((sets, 2 + int(np.log(k)))) * sums[:, -1:]
            draws = np.stack([np.searchsorted(*pair) for pair in zip(sums, levels, strict=True)]).clip(0, n - 1)
        drawn = np.take_along_axis(points, draws[:, :, None], axis=1)
        apart = drawn @ points.transpose(0, 2, 1)
        apart *= -2
        apart += squares[:, None] + np.take_along_axis(squares, draws, axis=1)[:, :, None]
        np.clip(apart, 0, nearest[:, None], out=apart)
        best = apart.sum(axis=2).argmin(axis=1)
        nearest, chosen[:, number] = apart[each, best], draws[each, best]
    return np.take_along_axis(points, chosen[:, :, None], axis=1)


def kmeans(points: Floats, centres: Floats, progress: Progress = silent) -> tuple[Floats, Floats]:
    """Move the centres ``[B, k, d]`` of B sets ``[B, n, d]`` until they rest; also the mean squared distances ``[B]``.

    A centre without points stays where it is.
    """
    points, centres = np.asarray(points), centres.copy()
    enough = ENOUGH * points.var(axis=1).mean(axis=1)
    inertia, moving = np.zeros(len(points), points.dtype), np.arange(len(points))
    squares = (points**2).sum(axis=2).mean(axis=1)
    for done in range(ROUNDS):
        progress(done, "k-means", ROUNDS)
        some = points if len(moving) == len(points) else points[moving]
        codes, similar = nearest_centres(some, centres[moving])
        inertia[moving] = squares[moving] - 2 * similar.mean(axis=1)
        means = _means(some, codes, centres[moving])
        moved = ((means - centres[moving]) ** 2).sum(axis=(1, 2))
        centres[moving] = means
        moving = moving[moved > enough[moving]]
        if not len(moving):
            break
    return centres, inertia


def nearest_centres(points: Floats, centres: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The nearest of the centres ``[B, k, d]`` to each of the points ``[B, n, d]``, and x c - c c / 2 of both."""
    half, turned = (centres**2).sum(axis=2)[:, None] / 2, centres.transpose(0, 2, 1)
    codes, best = np.empty(points.shape[:2], np.int64), np.empty(points.shape[:2], points.dtype)
    step = max(1, BLOCK // (len(points) * centres.shape[1]))
    for first in range(0, points.shape[1], step):
        part = slice(first, first + step)
        similar = points[:, part] @ turned
        similar -= half
        codes[:, part] = similar.argmax(axis=2)
        best[:, part] = np.take_along_axis(similar, codes[:, part, None], axis=2)[:, :, 0]
    return codes, best


def _means(points: Floats, codes: NDArray[np.int64], centres: Floats) -> Floats:
    """The mean ``[B, k, d]`` of the points of each code; that of no points is the centre that was there."""
    (sets, n, width), k = points.shape, centres.shape[1]
    owner = (codes + k * np.arange(sets)[:, None]).ravel()
    counts = np.bincount(owner, minlength=sets * k)
    members = sparse.csc_array((np.ones(sets * n, points.dtype), owner, np.arange(sets * n + 1)), (sets * k, sets * n))
    sums = (members @ points.reshape(sets * n, width)) / np.maximum(counts, 1).astype(points.dtype)[:, None]
    return np.where((counts > 0)[:, None], sums, centres.reshape(-1, width)).reshape(centres.shape)
