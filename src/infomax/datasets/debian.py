"""Debian's source packages: dependencies, the words of their descriptions, and sections.

``scripts/build_debian.py`` made it from the index of Debian 12.15 (bookworm), main, arm64, of 11
July 2026: 34,003 packages, 157,410 dependencies, 3,221 words. 40 sections of 100 packages or more
label 33,280 of them: 800 for training (20 per section), 500 for validation, 31,980 for testing.
"""

import hashlib
from importlib.resources import as_file, files

import numpy as np

from infomax.graphs.graph import Graph
from infomax.io.npz import read_npz

HELD_OUT_SHARE = 0.2


def read() -> Graph:
    """The graph; ids are the names of the packages, the label is ``section``, "" for none."""
    with as_file(files("infomax.datasets") / "debian.npz") as path:
        return Graph.of(read_npz(path))


def read_inductive() -> Graph:
    """The graph with a fifth of its packages held out: training may use the split "seen" only.

    All labelled training and validation packages are seen, so nothing is fitted or chosen on a
    held-out package; "test" is divided into "test-seen" and "test-unseen".
    """
    graph = read()
    candidates = np.flatnonzero(~graph.splits["train"] & ~graph.splits["validation"])

    # In the order of a hash of their names, the same packages are held out always and everywhere.
    def name_hash(row: np.integer) -> bytes:
        return hashlib.sha256(f"held out/{graph.ids[row]}".encode()).digest()

    shuffled_candidates = sorted(candidates, key=name_hash)
    held_out = shuffled_candidates[: round(HELD_OUT_SHARE * graph.num_nodes)]
    seen = np.ones(graph.num_nodes, dtype=bool)
    seen[held_out] = False

    test = graph.splits["test"]
    splits = {**graph.splits, "seen": seen, "test-seen": test & seen, "test-unseen": test & ~seen}
    return graph.replace(splits=splits)
