"""A generated substitute for Reddit.

It has communities, heavy-tailed degrees, and features that are weak for one node alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError
from infomax.graphs.graph import Graph

# The values of Reddit
REDDIT_NODES = 232_965
REDDIT_DEGREE = 99.6
REDDIT_FEATURES = 602
REDDIT_COMMUNITIES = 41
SHARE_OF_SPLIT = {"train": 0.655, "validation": 0.102, "test": 0.243}

# At Reddit's size a linear classifier scores 64 % on the test nodes from their own features and
# 96 % from the mean of their neighbours' features (on Reddit: 59 %, and 93 % from an untrained
# encoder). With fewer training nodes the 64 % are lower, 28 % at scale 0.02; with a small degree
# the 96 % are lower.
DEGREE_SPREAD = 1.2
"""Standard deviation of the logarithm of the degrees."""
SHARE_INSIDE = 0.5
"""Share of the edges that are drawn inside a community."""
COMMUNITY_MEAN_LENGTH = 2.5
"""Length of the mean features of a community, beside noise of standard deviation 1 everywhere."""
DRAWN_PER_EDGE = 1.031
"""Edges that are drawn for one that is left: at Reddit's size, 3 % are drawn twice."""

LEAST_GENERATED_NODES = 1_000
MOST_GENERATED_NODES = 10_000_000
CELLS_PER_BLOCK = 1 << 20


def read(
    scale: float = 1.0,
    seed: int = 0,
    features: int = REDDIT_FEATURES,
    degree: float = REDDIT_DEGREE,
) -> Graph:
    """A graph like Reddit, in random order of nodes; same arguments, same graph.

    The label is ``community``; the splits have Reddit's shares, and training sees the training
    nodes only.

    Args:
        scale: the number of nodes, in multiples of Reddit's; there are 1,000 to 10 million nodes.
        seed: the seed of all random numbers.
        features: the number of features.
        degree: the average degree. A graph much smaller than Reddit falls short of it, since hubs
            run out of nodes to be joined to (74 of 99.6 at scale 0.02).
    """
    n = round(REDDIT_NODES * scale)
    if not LEAST_GENERATED_NODES <= n <= MOST_GENERATED_NODES:
        smallest_scale = LEAST_GENERATED_NODES / REDDIT_NODES
        largest_scale = MOST_GENERATED_NODES / REDDIT_NODES
        expected = f"{smallest_scale:.4f} to {largest_scale:.1f}"
        raise InputError("scale", expected, f"{scale}, which is {n:,} nodes")

    rng = np.random.default_rng(seed)
    # Sizes fall as 1/5, 1/6, ..., 1/45: the largest community is nine times the smallest.
    community_size = 1 / np.arange(5, 5 + REDDIT_COMMUNITIES)
    community = rng.choice(REDDIT_COMMUNITIES, n, p=community_size / community_size.sum())
    edges = _draw_edges(rng, community, degree)
    split_of_node = rng.choice(len(SHARE_OF_SPLIT), n, p=list(SHARE_OF_SPLIT.values()))
    splits = {name: split_of_node == number for number, name in enumerate(SHARE_OF_SPLIT)}
    return Graph.from_arrays(
        edges,
        _draw_features(rng, community, features),
        labels={"community": community},
        splits={**splits, "seen": splits["train"]},
    )


def _draw_edges(
    rng: np.random.Generator, community: NDArray[np.int64], degree: float
) -> NDArray[np.int32]:
    """Edges ``[2, E]``; some occur twice, and a few are self-loops.

    Every node has a lognormal number of tickets. Every ticket makes an edge to the owner of another
    ticket, which is drawn from the same community or from all.
    """
    n = len(community)
    wanted_tickets = rng.lognormal(sigma=DEGREE_SPREAD, size=n)
    wanted_tickets *= DRAWN_PER_EDGE * degree / 2 / wanted_tickets.mean()
    # Rounded up or down at random, so that the mean is kept.
    tickets = (wanted_tickets + rng.random(n)).astype(np.int64)

    # The tickets of a community follow each other, so that one of them is drawn by its number.
    nodes_by_community = np.argsort(community, kind="stable").astype(np.int32)
    owner = np.repeat(nodes_by_community, tickets[nodes_by_community])
    ticket_count = np.bincount(community, weights=tickets, minlength=REDDIT_COMMUNITIES).astype(
        np.int64
    )
    first_ticket = np.cumsum(ticket_count) - ticket_count

    edges = np.stack([owner, owner])
    for start in range(0, len(owner), CELLS_PER_BLOCK):
        block = edges[1, start : start + CELLS_PER_BLOCK]
        home = community[block]
        is_inside = rng.random(len(block)) < SHARE_INSIDE
        choices = np.where(is_inside, ticket_count[home], len(owner))
        drawn = (rng.random(len(block)) * choices).astype(np.int64)
        block[:] = owner[np.where(is_inside, first_ticket[home], 0) + drawn]
    return edges


def _draw_features(
    rng: np.random.Generator, community: NDArray[np.int64], width: int
) -> NDArray[np.float32]:
    """Features ``[N, width]``: the mean of the community plus noise."""
    means = rng.standard_normal((REDDIT_COMMUNITIES, width), dtype=np.float32)
    means *= np.float32(COMMUNITY_MEAN_LENGTH / width**0.5)
    features = rng.standard_normal((len(community), width), dtype=np.float32)
    # The means of all nodes at once would take as much memory as the features.
    row_count = max(CELLS_PER_BLOCK // width, 1)
    for start in range(0, len(features), row_count):
        rows = slice(start, start + row_count)
        features[rows] += means[community[rows]]
    return features
