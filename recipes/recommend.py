"""Recommendation: which item does a user take next? Hits among ten of the last rating of each user, held out.

    python recipes/recommend.py [--users 1000] [--items 1500] [--ratings 60] [--seeds 3] [--stars]

Ratings are generated: items differ in popularity (log-normal), users and items in twelve latent tastes, and a user
draws items by popularity times exp(taste). With --stars, edges have the stars as weights: one to five, more for an item
to the user's taste. The graph has users, items and their ratings, without the last of each user. All items that a user
has not rated are ranked, by

    popularity        the number of its ratings
    item neighbours   the cosines of its column with those of the items that the user has rated, of its 50 nearest
    0/1 matrix        singular vectors of the matrix of users and items, u s v
    command           infomax neighbours user:5 --type item: the cosine of the part "positions"
    cosine, popular   (1 + that cosine) times the root of popularity
    positions, root   inner product of the singular vectors of the normalised graph, times the root of popularity
    positions, fourth the same, times the fourth root of popularity

How many singular vectors are taken is chosen on the rating before the last, for each method that has them.
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
NEAREST_ITEMS = 50


def generate(
    users: int, items: int, ratings_each: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The items of each user in the order of their ratings, about ``ratings_each`` of them, and the
    stars of each."""
    draws = np.random.default_rng(seed)
    popularity = 1.2 * draws.standard_normal(items)
    user_tastes = 0.5 * draws.standard_normal((users, TASTES))
    tastes = user_tastes @ draws.standard_normal((items, TASTES)).T
    counts = np.clip(draws.geometric(1 / ratings_each, users), 8, items // 3)
    by_preference = np.argsort(-(popularity + tastes + draws.gumbel(size=(users, items))), axis=1)
    ratings = []
    for user, count in enumerate(counts):
        rated = draws.permutation(by_preference[user, :count])
        liking = 3 + tastes[user, rated] + draws.normal(size=count)
        ratings.append((rated, np.clip(np.round(liking), 1, 5)))
    return ratings


class Task:
    """Ratings without the last ones of each user, and the first of these to find."""

    def __init__(
        self,
        ratings: list[tuple[np.ndarray, np.ndarray]],
        items: int,
        held_out: int,
        *,
        with_stars: bool,
    ) -> None:
        users = len(ratings)
        known_items = [rated[:-held_out] for rated, _ in ratings]
        known_stars = [stars[:-held_out] for _, stars in ratings]
        self.users = np.repeat(np.arange(users), [len(known) for known in known_items])
        self.items = np.concatenate(known_items)
        self.next_items = np.array([rated[-held_out] for rated, _ in ratings])
        weights = np.ones(len(self.users))
        if with_stars:
            weights = np.concatenate(known_stars)
        entries = (weights.astype(np.float32), (self.users, self.items))
        self.matrix = sparse.csr_array(entries, shape=(users, items))
        self.popularity = np.bincount(self.items, minlength=items).astype(np.float64)

    def hits(self, scores: np.ndarray) -> float:
        """The share in percent of users ``[U]`` whose next item is among the ten best of ``scores
        [U, I]``."""
        scores = scores.astype(np.float64)
        scores[self.users, self.items] = -np.inf
        score_of_next = scores[np.arange(len(scores)), self.next_items][:, None]
        return 100 * float(((scores > score_of_next).sum(axis=1) < 10).mean())

    def scores(self) -> dict[str, list[np.ndarray]]:
        """By method, the scores ``[U, I]``, of one width after the other."""
        users = self.matrix.shape[0]
        user_vectors, item_vectors = self._singular_vectors_of_matrix()
        user_positions, item_positions, cosines = self._positions()
        root = np.sqrt(self.popularity)

        def products(left: np.ndarray, right: np.ndarray, factor: np.ndarray) -> list[np.ndarray]:
            return [(left[:, :width] @ right[:, :width].T) * factor for width in WIDTHS]

        return {
            "popularity": [np.tile(self.popularity, (users, 1))],
            "item neighbours": [self._by_item_neighbours()],
            "0/1 matrix": products(user_vectors, item_vectors, np.ones_like(root)),
            "command": [cosines],
            "cosine, popular": [(1 + cosines) * root],
            "positions, root": products(user_positions, item_positions, root),
            "positions, fourth": products(user_positions, item_positions, np.sqrt(root)),
        }

    def _by_item_neighbours(self) -> np.ndarray:
        lengths = np.sqrt((self.matrix.multiply(self.matrix)).sum(axis=0))
        columns = self.matrix @ sparse.diags_array(1 / np.maximum(lengths, 1e-12))
        similarity = (columns.T @ columns).toarray()
        np.fill_diagonal(similarity, 0)
        nearest = np.argsort(-similarity, axis=1)[:, :NEAREST_ITEMS]
        kept = np.zeros_like(similarity)
        np.put_along_axis(kept, nearest, np.take_along_axis(similarity, nearest, 1), 1)
        return np.asarray(self.matrix @ kept.T)

    def _singular_vectors_of_matrix(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of users times their values ``[U, K]``, and those of items ``[I, K]``, the leading
        first."""
        left, values, right = svds(self.matrix.astype(np.float64), k=WIDTHS[-1], random_state=0)
        order = np.argsort(-values)
        return (left * values)[:, order], right.T[:, order]

    def _positions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The singular vectors of infomax of users and items, and the cosines ``[U, I]`` of the
        part "positions"."""
        users, items = self.matrix.shape
        nodes = {
            "user": Nodes.of(users, np.ones((users, 1))),
            "item": Nodes.of(items, np.ones((items, 1))),
        }
        rated = Relation.of("user", "rated", "item", self.matrix)
        graph = Graph(nodes, (rated,), node_type="user")
        model = DGI(epochs=0, vectors="positions", scale="none").fit(graph)
        directions = []
        for node_type in ("user", "item"):
            positions = model.positions(node_type).vectors
            lengths = np.linalg.norm(positions, axis=1, keepdims=True)
            directions.append(positions / np.maximum(lengths, 1e-12))
        user_vectors = model.singular_vectors("user").vectors
        return user_vectors, model.singular_vectors("item").vectors, directions[0] @ directions[1].T


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("users", 1000), ("items", 1500), ("ratings", 60), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--stars", action="store_true")
    options = parser.parse_args()

    hits_of_methods: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        ratings = generate(options.users, options.items, options.ratings, seed)
        before_last = Task(ratings, options.items, 2, with_stars=options.stars)
        last = Task(ratings, options.items, 1, with_stars=options.stars)
        scores_before_last = before_last.scores()
        for method, scores in last.scores().items():
            hits = [before_last.hits(one) for one in scores_before_last[method]]
            chosen = scores[int(np.argmax(hits))]
            hits_of_methods.setdefault(method, []).append(last.hits(chosen))

    print("| | hits among ten, in % |\n|---|---|")
    for method, hits in hits_of_methods.items():
        spread = f" ± {np.std(hits, ddof=1):.1f}" if len(hits) > 1 else ""
        print(f"| {method} | {np.mean(hits):.1f}{spread} |")


if __name__ == "__main__":
    main()
