"""Features of nodes that are computed from the edges: positions in the graph, or bins of degrees.

They stand in where nodes have no features of their own. Numbers that an edge itself carries are
features of edges, see `infomax.arrays.edge_features`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Adjacency
from infomax.arrays.blocks import require_room
from infomax.arrays.positions import (
    FIRST_HOP,
    LAST_HOP,
    POSITION_NAMES,
    POSITION_WIDTH,
    positions,
    positions_bytes,
)

StructuralFeatures = Literal["degrees", "positions"]
DEGREE_BINS = 32
DEGREE_NAMES = tuple(
    f"degree {2**exponent - 1}-{2 ** (exponent + 1) - 2}" for exponent in range(DEGREE_BINS)
)
"""The names of the features of `degree_features`."""
STRUCTURAL_FEATURE_NAMES: dict[StructuralFeatures, tuple[str, ...]] = {
    "degrees": DEGREE_NAMES,
    "positions": POSITION_NAMES,
}
_DESCRIPTIONS: dict[StructuralFeatures, str] = {
    "degrees": f"no features: {DEGREE_BINS} bins of degrees",
    "positions": (
        f"no features: {POSITION_WIDTH} positions in the graph "
        f"(signs by id, averaged over {FIRST_HOP} to {LAST_HOP} hops)"
    ),
}


def structural_features_named(names: Sequence[str]) -> StructuralFeatures | None:
    """Which structural features have these names; None where they are other features."""
    for structural_features, structural_names in STRUCTURAL_FEATURE_NAMES.items():
        if tuple(names) == structural_names:
            return structural_features
    return None


def requested_structural_features(names: Sequence[str]) -> StructuralFeatures | None:
    """Which structural features a user asks for; None where other features are asked for.

    Args:
        names: the word "degrees" or "positions", some of the names of such features, or nothing.
    """
    for structural_features, structural_names in STRUCTURAL_FEATURE_NAMES.items():
        if set(names) <= {structural_features, *structural_names}:
            return structural_features
    return None


def describe_structural_features(names: Sequence[str]) -> str:
    """How structural features of these names were made, as a message; "" for other features."""
    structural_features = structural_features_named(names)
    return "" if structural_features is None else _DESCRIPTIONS[structural_features]


def default_structural_features(has_several_graphs: bool) -> StructuralFeatures:
    """The structural features that are made unless others are asked for.

    Positions are not comparable between several graphs, so there it is degrees.
    """
    return "degrees" if has_several_graphs else "positions"


def make_structural_features(
    structural_features: StructuralFeatures,
    edges: Adjacency,
    ids: Any,
    seen: NDArray[np.bool_] | None,
) -> Any:
    """The features ``[N, F]``, in memory.

    Args:
        structural_features: which to make.
        edges: the edges that they are made of.
        ids: ``[N]``.
        seen: ``[N]``, the nodes that training sees; None: all.
    """
    if structural_features == "degrees":
        return degree_features(edges.degrees())
    remedy = "Take --features degrees; or infomax prepare, which makes them on disk."
    require_room(positions_bytes(edges), f"make positions of {edges.n:,} nodes", remedy, "memory")
    return positions(edges, ids, seen)


def degree_features(degrees: NDArray[np.int64]) -> sparse.csr_array:
    """One-hot features ``[N, DEGREE_BINS]`` of the degrees ``[N]``.

    Column b is 1 where a degree d has ``floor(log2(d + 1)) == b``. The columns do not depend on the
    graph, so that a model trained on one graph can embed another.
    """
    num_nodes = len(degrees)
    bins = np.minimum(np.log2(degrees + 1).astype(np.int64), DEGREE_BINS - 1)
    ones = np.ones(num_nodes, dtype=np.float32)
    row_starts = np.arange(num_nodes + 1)
    return sparse.csr_array((ones, bins, row_starts), shape=(num_nodes, DEGREE_BINS))
