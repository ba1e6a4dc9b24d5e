"""Parts of Deep Graph Infomax by name, as run folders write them down and read them again."""

from __future__ import annotations

from functools import partial
from typing import Any

from infomax.parts.corruptions import (
    drop_features,
    flip_and_shuffle,
    flip_edges,
    shuffle_features,
)
from infomax.parts.discriminators import Bilinear
from infomax.parts.encoders import GCN, DenseSkipMeanPool, MeanPool, PathMean, SkipMeanPool, TwoHops
from infomax.parts.methods import Part
from infomax.parts.objectives import binary_cross_entropy, jensen_shannon
from infomax.parts.readouts import DiffPool, Set2Set, SigmoidMean
from infomax.training.schedule import ConstantRate, WarmUpCosine
from infomax.views import Batches, ManyGraphs, WholeGraph

_OURS: tuple[Part, ...] = (
    WholeGraph, Batches, ManyGraphs,
    GCN, MeanPool, SkipMeanPool, DenseSkipMeanPool, TwoHops, PathMean,
    shuffle_features, flip_edges, flip_and_shuffle, drop_features,
    SigmoidMean, Set2Set, DiffPool,
    Bilinear,
    binary_cross_entropy, jensen_shannon,
    WarmUpCosine, ConstantRate,
)  # fmt: skip
PARTS_BY_NAME = {part.__name__: part for part in _OURS}
"""Parts by the names that run folders have for them."""


def register_parts(*parts: Part) -> None:
    """Make parts of another package known, so that a run folder that names them can be read."""
    PARTS_BY_NAME.update({part.__name__: part for part in parts})


def is_known(part: Part) -> bool:
    """Whether a part, or what is bound in a partial, has a name in run folders."""
    return partial(part).func in PARTS_BY_NAME.values()


def part_name(part: Part) -> str:
    """Return a part's name; with its module if it is your own, since names may coincide."""
    name = getattr(part, "__qualname__", type(part).__qualname__)
    if PARTS_BY_NAME.get(name) is part:
        return name
    return f"{part.__module__}.{name}"


def describe_setting(value: Any) -> Any:
    """A setting as a JSON value: of a part its name and its bound arguments."""
    if not callable(value):
        return value
    bound = partial(value)
    return {"part": part_name(bound.func), **bound.keywords}


def restore_part(described: dict[str, Any]) -> Part:
    """The part that `describe_setting` described; its name must be known."""
    arguments = {name: value for name, value in described.items() if name != "part"}
    part = PARTS_BY_NAME[described["part"]]
    return partial(part, **arguments) if arguments else part


def show_setting(described: Any) -> str:
    """A described setting in a representation: of a part its name, with the bound arguments."""
    if not isinstance(described, dict):
        return repr(described)
    arguments = [f"{name}={value!r}" for name, value in described.items() if name != "part"]
    name = str(described["part"])
    return f"{name}({', '.join(arguments)})" if arguments else name
