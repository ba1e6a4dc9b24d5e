"""Features of nodes that are computed from the edges: positions in the graph, or bins of degrees.

They stand in where nodes have no features of their own. Numbers that an edge itself carries are `edge_features`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Adjacency
from infomax.arrays.blocks import require_room
from infomax.arrays.positions import FIRST, LAST, POSITION_NAMES, WIDTH, positions, positions_bytes

StructuralFeatures = Literal["degrees", "positions"]
DEGREE_NAMES = tuple(f"degree {2**b - 1}-{2 ** (b + 1) - 2}" for b in range(32))
"""The names of the features of `degree_features`."""
STRUCTURAL_FEATURE_NAMES: dict[StructuralFeatures, tuple[str, ...]] = {
    "degrees": DEGREE_NAMES,
    "positions": POSITION_NAMES,
}
_DESCRIPTIONS: dict[StructuralFeatures, str] = {
    "degrees": "no features: 32 bins of degrees",
    "positions": f"no features: {WIDTH} positions in the graph (signs by id, averaged over {FIRST} to {LAST} hops)",
}


def structural_features_named(names: Sequence[str]) -> StructuralFeatures | None:
    """Which edge features have these names; None: they were not made of the edges."""
    return next(
        (word for word, known in STRUCTURAL_FEATURE_NAMES.items() if tuple(names) == known), None
    )


def asked_structural_features(names: Sequence[str]) -> StructuralFeatures | None:
    """Those that are asked for: as one word, by their names or by no name. None: other features are."""
    return next(
        (word for word, known in STRUCTURAL_FEATURE_NAMES.items() if set(names) <= {word, *known}),
        None,
    )


def structural_features_in_words(names: Sequence[str]) -> str:
    """How features of these names were made, in words; "" where they were not made."""
    structural_features = structural_features_named(names)
    return "" if structural_features is None else _DESCRIPTIONS[structural_features]


def default_structural_features(several: bool) -> StructuralFeatures:
    """What is made where nothing is asked for: positions, which are not comparable between several graphs."""
    return "degrees" if several else "positions"


def make_structural_features(
    word: StructuralFeatures, edges: Adjacency, ids: Any, seen: NDArray[np.bool_] | None
) -> Any:
    """The features ``[N, F]`` of the edges in memory; training sees the nodes of a mask ``[N]``, or all."""
    if word == "degrees":
        return degree_features(edges.degrees())
    remedy = "Take --features degrees; or infomax prepare, which makes them on disk."
    require_room(positions_bytes(edges), f"make positions of {edges.n:,} nodes", remedy, "memory")
    return positions(edges, ids, seen)


def degree_features(degrees: NDArray[np.int64]) -> sparse.csr_array:
    """One-hot features ``[N, 32]`` of the degrees ``[N]``, for graphs that have no features.

    Column b is 1 where a degree d has ``floor(log2(d + 1)) == b``. The columns do not depend on the graph, so that a
    model trained on one graph can embed another.
    """
    bucket = np.minimum(np.log2(degrees + 1).astype(np.int64), 31)
    n = len(degrees)
    return sparse.csr_array((np.ones(n, dtype=np.float32), bucket, np.arange(n + 1)), shape=(n, 32))
