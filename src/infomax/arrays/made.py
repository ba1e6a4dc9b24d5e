"""The features of nodes that have none: positions in the graph, or bins of degrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.adjacency import Adjacency
from infomax.arrays.blocks import require_room
from infomax.arrays.degrees import DEGREE_NAMES, degree_features
from infomax.arrays.memory import positions_bytes
from infomax.arrays.positions import FIRST, LAST, POSITION_NAMES, WIDTH, positions

Kind = Literal["degrees", "positions"]
MADE: dict[Kind, tuple[str, ...]] = {"degrees": DEGREE_NAMES, "positions": POSITION_NAMES}
_TOLD: dict[Kind, str] = {
    "degrees": "no features: 32 bins of degrees",
    "positions": f"no features: {WIDTH} positions in the graph (signs by id, averaged over {FIRST} to {LAST} hops)",
}


def made(names: Sequence[str]) -> Kind | None:
    """The kind of made features that features of these names are; None: they are others."""
    return next((kind for kind, known in MADE.items() if tuple(names) == known), None)


def asked(names: Sequence[str]) -> Kind | None:
    """The kind that is asked for by its own name, by names of its features, or by none; None: other features are."""
    return next((kind for kind, known in MADE.items() if set(names) <= {kind, *known}), None)


def told(names: Sequence[str]) -> str:
    """How features of these names were made, in words; nothing where they were not."""
    kind = made(names)
    return "" if kind is None else _TOLD[kind]


def usual(several: bool) -> Kind:
    """What is made where nothing is asked for: positions, which are not comparable between several graphs."""
    return "degrees" if several else "positions"


def make(kind: Kind, edges: Adjacency, ids: Any, seen: NDArray[np.bool_] | None) -> Any:
    """The features ``[N, F]`` of the edges in memory; training sees the nodes of a mask ``[N]``, or all."""
    if kind == "degrees":
        return degree_features(edges.degrees())[0]
    remedy = "Take --features degrees; or infomax prepare, which makes them on disk."
    require_room(positions_bytes(edges), f"make positions of {edges.n:,} nodes", remedy, "memory")
    return positions(edges, ids, seen)
