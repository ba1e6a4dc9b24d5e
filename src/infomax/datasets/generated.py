"""A generated substitute for Reddit: communities, heavy-tailed degrees, and features that are weak for one node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError
from infomax.graphs.graph import Graph

NODES, DEGREE, FEATURES, COMMUNITIES = 232_965, 99.6, 602, 41
"""The values of Reddit."""

SPREAD, INSIDE, SIGNAL = 1.2, 0.5, 2.5
"""Standard deviation of the logarithm of the degrees; share of the edges drawn inside a community; length of a
community's mean features, beside noise of standard deviation 1 in every direction.

At Reddit's size a linear classifier scores 64 % on the test nodes from their own features and 96 % from the mean of
their neighbours' features (on Reddit: 59 %, and 93 % from an untrained encoder). With fewer training nodes the 64 % are
lower, 28 % at scale 0.02; with a small ``degree`` the 96 % are lower.
"""

_SHARES = {"train": 0.655, "validation": 0.102, "test": 0.243}
_BLOCK = 1 << 20


def read(
    scale: float = 1.0, seed: int = 0, features: int = FEATURES, degree: float = DEGREE
) -> Graph:
    """A graph like Reddit with ``scale`` times its nodes (1,000 to 10 million); same arguments, same graph.

    Nodes are in random order. The label is ``community``; the splits have Reddit's shares, and training sees the
    training nodes only. ``degree`` is the average degree; a graph much smaller than Reddit falls short of it, since
    hubs run out of nodes to be joined to (74 of 99.6 at scale 0.02).
    """
    n = round(NODES * scale)
    if not 1_000 <= n <= 10_000_000:
        raise InputError(
            "scale",
            f"{1_000 / NODES:.4f} to {10_000_000 / NODES:.1f}",
            f"{scale}, which is {n:,} nodes",
        )
    rng = np.random.default_rng(seed)
    size = 1 / np.arange(5, 5 + COMMUNITIES)
    community = rng.choice(COMMUNITIES, n, p=size / size.sum())
    edges = _draw_edges(rng, community, degree)
    part = rng.choice(len(_SHARES), n, p=list(_SHARES.values()))
    splits = {name: part == number for number, name in enumerate(_SHARES)}
    return Graph.from_arrays(
        edges,
        _draw_features(rng, community, features),
        labels={"community": community},
        splits=splits | {"seen": splits["train"]},
    )


def _draw_edges(
    rng: np.random.Generator, community: NDArray[np.int64], degree: float
) -> NDArray[np.int32]:
    """Edges ``[2, E]``; some occur twice, and a few are self-loops.

    Every node has a lognormal number of tickets. Every ticket makes an edge to the owner of another ticket, which is
    drawn from the same community or from all.
    """
    n = len(community)
    wish = rng.lognormal(sigma=SPREAD, size=n)
    wish *= 1.031 * degree / 2 / wish.mean()  # at Reddit's size, 3 % are duplicates
    tickets = (wish + rng.random(n)).astype(
        np.int64
    )  # rounds up or down at random, so the mean is kept
    order = np.argsort(community, kind="stable").astype(np.int32)
    owner = np.repeat(order, tickets[order])
    count = np.bincount(community, weights=tickets, minlength=COMMUNITIES).astype(np.int64)
    first = np.cumsum(count) - count
    edges = np.stack([owner, owner])
    for start in range(0, len(owner), _BLOCK):
        block = edges[1, start : start + _BLOCK]
        home, inside = community[block], rng.random(len(block)) < INSIDE
        drawn = rng.random(len(block)) * np.where(inside, count[home], len(owner))
        block[:] = owner[np.where(inside, first[home], 0) + drawn.astype(np.int64)]
    return edges


def _draw_features(
    rng: np.random.Generator, community: NDArray[np.int64], width: int
) -> NDArray[np.float32]:
    """Features ``[N, width]``: the mean of the community plus noise, made in blocks to save memory."""
    centre = rng.standard_normal((COMMUNITIES, width), dtype=np.float32) * np.float32(
        SIGNAL / width**0.5
    )
    features = rng.standard_normal((len(community), width), dtype=np.float32)
    rows = max(_BLOCK // width, 1)
    for start in range(0, len(features), rows):
        features[start : start + rows] += centre[community[start : start + rows]]
    return features
