"""Recommendation: which item does a user take next? Hits among ten of the last rating of each user, held out.

    python recipes/recommend.py [--users 1000] [--items 1500] [--ratings 60] [--seeds 3]

Ratings are generated: items differ in popularity (log-normal), users and items in twelve latent tastes, and a user
draws items by popularity times exp(taste). The graph has users, items and their ratings, without the last of each user.
All items that a user has not rated are ranked, by

    popularity       the number of its ratings
    0/1 matrix       singular vectors of the matrix of users and items, u s v
    positions        infomax: inner product of singular vectors of the normalised graph, times sqrt(popularity)
    default cosine   infomax: (1 + cosine of the part "positions") times sqrt(popularity)

How many singular vectors are taken is chosen on the rating before the last, for both.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from infomax import DGI, Graph
from infomax.arrays.relations import Relation
from infomax.io.nodes import Nodes

WIDTHS = (8, 12, 16, 24, 32, 48, 64, 128)
TASTES = 12


def generate(users: int, items: int, each: int, seed: int) -> list[np.ndarray]:
    """The items of each user in the order of their ratings, about ``each`` of them."""
    draw = np.random.default_rng(seed)
    popular = 1.2 * draw.standard_normal(items)
    tastes = 0.5 * draw.standard_normal((users, TASTES)) @ draw.standard_normal((items, TASTES)).T
    counts = np.clip(draw.geometric(1 / each, users), 8, items // 3)
    drawn = np.argsort(-(popular + tastes + draw.gumbel(size=(users, items))), axis=1)
    return [draw.permutation(row[:count]) for row, count in zip(drawn, counts, strict=True)]


class Task:
    """Ratings without the last ones of each user, and the first of these to find."""

    def __init__(self, ratings: list[np.ndarray], items: int, held_out: int) -> None:
        users, known = len(ratings), [one[:-held_out] for one in ratings]
        self.rows = np.repeat(np.arange(users), [len(one) for one in known])
        self.columns = np.concatenate(known)
        self.next = np.array([one[-held_out] for one in ratings])
        ones = np.ones(len(self.rows), np.float32)
        self.matrix = sparse.csr_array((ones, (self.rows, self.columns)), shape=(users, items))
        self.popularity = np.asarray(self.matrix.sum(axis=0))

    def hits(self, scores: np.ndarray) -> float:
        """The share in percent of users ``[U]`` whose next item is among the ten best of ``scores [U, I]``."""
        scores = scores.astype(np.float64)
        scores[self.rows, self.columns] = -np.inf
        following = scores[np.arange(len(scores)), self.next][:, None]
        return 100 * float(((scores > following).sum(axis=1) < 10).mean())

    def scores(self) -> dict[str, list[np.ndarray]]:
        """By method, the scores ``[U, I]``, of one width after the other."""
        root, (users, items) = np.sqrt(self.popularity), self.matrix.shape
        u, s, v = svds(self.matrix.astype(np.float64), k=WIDTHS[-1], random_state=0)
        order = np.argsort(-s)
        left, right = (u * s)[:, order], v.T[:, order]
        nodes = {
            "user": Nodes.of(users, np.ones((users, 1))),
            "item": Nodes.of(items, np.ones((items, 1))),
        }
        graph = Graph(nodes, (Relation.of("user", "rated", "item", self.matrix),), node_type="user")
        models = [
            DGI(epochs=0, vectors="positions", scale="none").fit(graph.target(kind))
            for kind in ("user", "item")
        ]
        ours, theirs = (models[0].singular_vectors(kind).vectors for kind in ("user", "item"))
        parts = [model.transform(model.graph_).vectors for model in models]
        near, far = (
            part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12) for part in parts
        )
        return {
            "popularity": [np.tile(self.popularity, (users, 1))],
            "0/1 matrix": [left[:, :k] @ right[:, :k].T for k in WIDTHS],
            "positions": [ours[:, :k] @ theirs[:, :k].T * root for k in WIDTHS],
            "default cosine": [(1 + near @ far.T) * root],
        }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("users", 1000), ("items", 1500), ("ratings", 60), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    found: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        ratings = generate(options.users, options.items, options.ratings, seed)
        before, last = (Task(ratings, options.items, held_out) for held_out in (2, 1))
        tried, scores = before.scores(), last.scores()
        for method, some in scores.items():
            best = int(np.argmax([before.hits(one) for one in tried[method]]))
            found.setdefault(method, []).append(last.hits(some[best]))
    print("| | hits among ten, in % |\n|---|---|")
    for method, hits in found.items():
        spread = f" ± {np.std(hits, ddof=1):.1f}" if len(hits) > 1 else ""
        print(f"| {method} | {np.mean(hits):.1f}{spread} |")


if __name__ == "__main__":
    main()
