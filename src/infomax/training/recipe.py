"""What a vector is made of: the encoder, the node's own features, the same pooled, and positions, side by side.

encoder    H + P^2 H with rows of length 1; in a graph of several types, and in very large ones, H
own        the node's scaled features, standardised where they are few; of many, divided by the root of their
           deviation, the singular vectors; see `infomax.training.own`
pooled     P^2 of the own part; of several types, the means along paths of the own parts at their ends; where rows have
           times, one such part per half-life that was asked for, "pooled 60d"; see `infomax.training.decay`
positions  singular vectors of the whole graph, see `infomax.training.places`

Each part is centred, and has a mean length of its own on the nodes that training saw; parts that are made of features
have it on those of them that have any. Nodes without features have neither own nor pooled parts: positions take their
place. The paper's vectors are H alone.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax.arrays.scaling import Scaler
from infomax.arrays.structural_features import structural_features_named
from infomax.arrays.times import parse_half_lives
from infomax.embeddings import slices
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.json import to_json
from infomax.parts.encoders import Encoder
from infomax.parts.vectors import PAPER, PARTS, POOLED, RECIPE

HALF, WHOLE = 0.5, 1.0
"""Mean lengths of parts, where the encoder's is 1: `lengths`.

On validation nodes of Cora, Citeseer, Pubmed, ACM, DBLP and debian half a length of the own part, the pooled part and
the positions is best or within 0.5 points of it; positions at length 1 cost 0.2 to 4 points. The encoder smoothed over
5 hops changes at most 0.3 points. Without features it is the other way round: positions at length 1, and nothing else
beside the encoder, gain 0.8 points on Cora, 0.5 on Citeseer, 0.4 on ACM and 0.2 on DBLP.

Between several types positions have length 1 always, since features may say little. On validation nodes (H200) this
gains 0.4 points on DBLP with hashed titles as features, and 4.7 on ACM with random columns; ACM and DBLP as they are
change by at most 0.5.
"""
LONG = 2.0
FALL = 0.0003
"""The own part's length where neighbours are not alike at all, and the resemblance over which that falls to 1 / e.

On validation nodes actors, with a resemblance of -0.0009, gain 2.6 points at length 2, and chameleon, with 0.0010,
loses 2 at length 1 and 3 at length 2.
"""
ENOUGH = 5_000
"""Entries of the adjacency by which a resemblance is known well enough."""
LARGE = 2_000_000
"""Nodes above which neither the encoder is smoothed, nor are there pooled parts and positions: the passes over all
nodes, which these need, would take longer than the training."""
HUGE = 20_000_000
"""Nodes of a type above which the own part is left out unless it is asked for: it would be most of what is written."""
FITTED = 200_000
"""Nodes to which parts are fitted, at most."""
ROUNDING = 1e-5
"""Differences between nodes, as a share of the length of a part, that are but the rounding of single precision."""
_ROWS = 1 << 12


def parts_for(
    graph: Graph, vectors: str, half_life: str | None = None
) -> tuple[tuple[str, ...], list[str]]:
    """The parts that a graph can have of those asked for, and in words what is left out and why.

    Half-lives are those of pooled parts, so who asks for them has these.
    """
    wanted, told = PARTS if vectors == RECIPE else tuple(vectors.split(",")), list[str]()
    if vectors == PAPER:
        return (), told
    nodes = sum(one.num_nodes for one in graph.nodes.values())
    if nodes > LARGE:
        kept = ("encoder",) if graph.num_nodes > HUGE and vectors == RECIPE else ("encoder", "own")
        left_out = [name for name in wanted if name not in kept]
        wanted = tuple(name for name in wanted if name in kept)
        what = (
            f"have no {', '.join(left_out)} and are not smoothed"
            if left_out
            else "are not smoothed"
        )
        told.append(f"vectors {what}: of {nodes:,} nodes, that would take longer than the training")
    if graph.groups is not None and "positions" in wanted:
        wanted = tuple(name for name in wanted if name != "positions")
        if vectors != RECIPE:
            told.append("vectors have no positions: those in several graphs cannot be compared")
    bare = _without_features(graph)
    if vectors == RECIPE and "positions" in wanted and graph.node_type in bare:
        needless = {"own", "pooled"} if len(bare) == len(graph.nodes) and not half_life else {"own"}
        wanted = tuple(name for name in wanted if name not in needless)
    if not wanted:
        raise InputError(
            "vectors", "a part that this graph can have", vectors, "Add another: encoder,own."
        )
    return wanted, told


def _without_features(graph: Graph) -> set[str]:
    """The types whose nodes have no features but positions in the graph."""
    return {
        node_type
        for node_type, nodes in graph.nodes.items()
        if structural_features_named(nodes.feature_names) == "positions"
    }


def lengths(graph: Graph, resemblance: float | None) -> dict[str, float]:
    """The mean length of each part; that of the own part rises where neighbours are not alike."""
    raised = 0.0
    if resemblance is not None:
        sure = min(1.0, graph.edges.nnz / ENOUGH)
        raised = sure * (LONG - HALF) * math.exp(-max(resemblance, 0.0) / FALL)
    has_several_types = bool(graph.node_type)
    if has_several_types or graph.node_type in _without_features(graph):
        positions = WHOLE
    else:
        positions = HALF
    return {"encoder": WHOLE, "own": HALF + raised, "pooled": HALF, "positions": positions}


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that vectors depend on besides the graph.

    The encoder reads features that the scaler has scaled. Without ``parts`` the vectors are the paper's.

    Shapes:
        projections: by type ("" where there is one), ``[F, K]`` of the scaled features
        centre, factor: ``[D]``, of all parts side by side; None: they are not fitted yet
        turn: ``[D, D]``, a rotation of the result
    """

    encoder: Encoder
    scaler: Scaler
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The names of the columns of each part."""
    smooth: bool = False
    """Whether the encoder's vectors are smoothed."""
    projections: Mapping[str, Tensor] = field(default_factory=dict)
    centre: Tensor | None = None
    factor: Tensor | None = None
    turn: Tensor | None = None
    node_type: str = ""
    """The type of its nodes, of several."""

    @property
    def ends(self) -> dict[str, list[str]]:
        """The types whose own parts are pooled, each with the paths to it; of one type only itself, and no path."""
        if not isinstance(self.encoder.rule, tuple):
            return {self.node_type: []}
        found: dict[str, list[str]] = {}
        for path in self.encoder.rule:
            found.setdefault(path.rsplit("-", 1)[-1], []).append(path)
        return found

    @property
    def width(self) -> int:
        """D."""
        return sum(map(len, self.parts.values())) if self.parts else self.encoder.out_dim

    @property
    def half_lives(self) -> dict[str, float]:
        """Those of the pooled parts, in days by name; none where there is one pooled part, of plain means."""
        return parse_half_lives(
            [name.removeprefix(POOLED) for name in self.parts if name.startswith(POOLED)]
        )

    @property
    def hops(self) -> int:
        """Hops over which the encoder's output or the own part are pooled: 0 or 2."""
        if isinstance(
            self.encoder.rule, tuple
        ):  # there is no way from a type to itself that all such graphs have
            return 0
        return 2 if "pooled" in self.parts or (self.smooth and "encoder" in self.parts) else 0

    def only(self, vectors: str) -> Recipe:
        """The same with some of its parts, or with the paper's vectors."""
        if vectors == PAPER:
            return Recipe(self.encoder, self.scaler)
        asked = vectors.split(",")
        held = {family(name) for name in self.parts} | ({RECIPE} if self.parts else set())
        if lacking := set(asked) - held:
            known = ",".join(self.parts) or "the paper's vectors alone"
            told = min(lacking, key=asked.index)
            raise InputError(
                "vectors", f"parts that this model has: {known}", told, "Train it with them."
            )
        wanted = [name for name in self.parts if vectors == RECIPE or family(name) in asked]
        if list(wanted) == list(self.parts):
            return self
        if self.turn is not None:
            raise InputError(
                "vectors", "all parts, of vectors that were turned onto others", vectors
            )
        places = slices(self.parts)
        columns = np.concatenate([np.arange(self.width)[places[name]] for name in wanted])
        centre, factor = (
            None if one is None else one[columns] for one in (self.centre, self.factor)
        )
        return replace(
            self, parts={name: self.parts[name] for name in wanted}, centre=centre, factor=factor
        )

    def tensors(self) -> dict[str, Tensor]:
        """What a run keeps beside the encoder."""
        one = {"centre": self.centre, "factor": self.factor, "turn": self.turn}
        found = {f"recipe.{name}": tensor for name, tensor in one.items() if tensor is not None}
        return found | {
            f"recipe.projection:{node_type}": tensor
            for node_type, tensor in self.projections.items()
        }

    @cached_property
    def hash(self) -> str:
        """The hash by which vectors are known as those of one model."""
        others = [
            one for _, one in sorted(self.scaler.others.items())
        ]  # a run is read in another order
        scalers = (to_json([one.kind, one.mean, one.deviation]) for one in (self.scaler, *others))
        content = hashlib.sha256("".join(scalers).encode())
        content.update(
            to_json([self.smooth, {name: list(one) for name, one in self.parts.items()}]).encode()
        )
        for name, weight in (
            self.encoder.state_dict() | dict(sorted(self.tensors().items()))
        ).items():
            content.update(name.encode() + weight.cpu().numpy().tobytes())
        return content.hexdigest()


def name_columns(
    recipe: Recipe, wanted: Sequence[str], places: int, features: Mapping[str, Sequence[str]]
) -> Recipe:
    """The recipe with the parts wanted, whose columns have names.

    ``places`` is the number of positions; ``features`` are the names of features by type.
    """

    def projected(
        node_type: str, part: str = "own", before: str = "", after: str = ""
    ) -> list[str]:
        if node_type not in recipe.projections:  # neither it nor what is pooled of it is wanted
            return []
        width, known = recipe.projections[node_type].shape[1], features[node_type]
        if width == len(known):
            return [f"{before}{name}{after}" for name in known]
        return numbered(part, width)

    pooled = [
        projected(
            node_type,
            f"pooled {node_type}".rstrip(),
            "mean of ",
            f" over {node_type or 'two hops'}",
        )
        for node_type in recipe.ends
    ]
    made = {
        "encoder": numbered("encoder", recipe.encoder.out_dim),
        "own": projected(recipe.node_type),
        "pooled": [name for names in pooled for name in names],
        "positions": numbered("position", places),
    }
    for part in wanted:
        if part.startswith(POOLED):
            made[part] = [f"{name}, {part.removeprefix(POOLED)}" for name in made["pooled"]]
    return replace(recipe, parts={name: tuple(made[name]) for name in wanted if made[name]})


def numbered(part: str, width: int) -> list[str]:
    """The names of columns that have no names of their own: ``own 1 of 128``."""
    return [f"{part} {at} of {width}" for at in range(1, width + 1)]


def family(part: str) -> str:
    """The name of a part without its half-life."""
    return part.split(" ")[0]


def balance(
    raw: Tensor,
    parts: Mapping[str, Sequence[str]],
    length: Mapping[str, float],
    known: NDArray[np.bool_],
) -> list[Tensor]:
    """The centre ``[D]`` and the factor ``[D]`` by which each part of rows ``[n, D]`` gets its mean length.

    Parts that are made of features have it at the nodes that have any, ``known [n]``: where most have none, these would
    else be far from the centre, and positions nothing beside them. Pooled parts of several half-lives have that length
    together. A part that is the same at every node gets none.
    """
    described = known if known.any() else np.ones_like(known)
    counted = [np.ones_like(known) if name == "positions" else described for name in parts]
    among = torch.from_numpy(np.stack(counted, axis=1)).to(raw.device)
    nodes = among.sum(dim=0, dtype=torch.float64)
    columns, blocks = slices(parts), range(0, len(raw), _ROWS)
    centre = torch.stack(
        [raw[first : first + _ROWS].sum(dim=0, dtype=torch.float64) for first in blocks]
    )
    centre = centre.sum(dim=0) / len(raw)
    whole, apart = torch.zeros(2, len(parts), dtype=torch.float64, device=raw.device)
    for first in blocks:
        here = raw[first : first + _ROWS].double()
        for total, x in ((whole, here), (apart, here - centre)):
            lengths_of = torch.stack([x[:, at].norm(dim=1) for at in columns.values()], dim=1)
            total += (lengths_of * among[first : first + _ROWS]).sum(dim=0)
    count, factor = Counter(map(family, parts)), torch.zeros_like(centre)
    for part, (name, at) in enumerate(columns.items()):
        if apart[part] > ROUNDING * whole[part]:  # else the part is the same at every node
            target = length[family(name)] / math.sqrt(count[family(name)])
            factor[at] = target * nodes[part] / apart[part]
    return [one.float().cpu() for one in (centre, factor)]
