"""What a vector is made of: four parts side by side.

encoder    H + P^2 H with rows of length 1; in a graph of several types H
own        the node's scaled features, standardised where they are few; of many, the singular
           vectors; see `infomax.training.own_features`
pooled     P^2 of the own part; of several types, the means along paths of the own parts at their
           ends. Where rows have times, there is one such part for each half-life in the settings,
           such as "pooled 60d"; see `infomax.training.half_lives`
positions  singular vectors of the graph of all types, see `infomax.training.spectral_positions`

Each part is centred, and has a certain mean length on the nodes that training saw. Parts that are
built from features are scaled on the nodes that have features. Nodes without features have neither
own nor pooled parts: positions take their place. The recipe is the same for graphs of any size, but
for the number of positions. The paper's vectors are H alone.

The parts are chosen by `parts_for`, fitted by `infomax.estimator.vector_parts`, and computed by
`infomax.training.embed`.
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
from infomax.training.spectral_positions import SETTINGS, PositionSettings

FULL_LENGTH = 1.0
"""The mean length of the encoder's part, and of positions between several types."""
HALF_LENGTH = 0.5
"""The mean length of the other parts; see `part_lengths`.

On validation nodes of Cora, Citeseer, Pubmed, ACM, DBLP and debian half a length is best or within
0.5 points of it; positions at length 1 cost 0.2 to 4 points. Without features positions at length
1, and nothing else with the encoder, gain 0.2 to 0.8 points. Between several types positions have
length 1 always, since features may say little: this gains 0.4 points on DBLP with hashed titles,
and 4.7 on ACM with random columns.
"""
RAISED_LENGTH = 2.0
"""The own part's mean length where neighbours are not alike at all."""
RESEMBLANCE_DECAY = 0.0003
"""The resemblance over which the raise of the own part's length falls to 1 / e.

On validation nodes actors, with a resemblance of -0.0009, gain 2.6 points at length 2, and
chameleon, with 0.0010, loses 2 at length 1 and 3 at length 2.
"""
ENOUGH_ENTRIES = 5_000
"""Entries of the adjacency by which a resemblance is known well enough."""
MOST_FITTED_NODES = 200_000
"""Nodes to which parts are fitted, at most."""
SMALLEST_DIFFERENCE = 1e-5
"""Differences between nodes, as a share of the length of a part, that are only rounding."""
ROWS_PER_BLOCK = 1 << 12


def parts_for(
    graph: Graph,
    vectors: str,
    half_life: str | None = None,
    settings: PositionSettings = SETTINGS,
) -> tuple[tuple[str, ...], list[str]]:
    """The parts that a graph's vectors have, and notes for the user on parts that they lack.

    Args:
        graph: the graph of the training.
        vectors: the setting: "recipe", "paper", or names of parts with commas.
        half_life: half-lives of pooled parts; whoever asks for them gets pooled parts.
        settings: how many positions graphs have.
    """
    if vectors == PAPER:
        return (), []
    requested_parts = PARTS if vectors == RECIPE else tuple(vectors.split(","))
    notes: list[str] = []

    if graph.groups is not None and "positions" in requested_parts:
        requested_parts = tuple(name for name in requested_parts if name != "positions")
        if vectors != RECIPE:
            notes.append("vectors have no positions: those in several graphs cannot be compared")

    # Where nodes have no features but positions, these are a part of their own already.
    types_without_features = _types_without_features(graph)
    lacks_features = graph.node_type in types_without_features
    if vectors == RECIPE and "positions" in requested_parts and lacks_features:
        superfluous = {"own"}
        if len(types_without_features) == len(graph.nodes) and not half_life:
            superfluous.add("pooled")
        requested_parts = tuple(name for name in requested_parts if name not in superfluous)

    if "positions" in requested_parts:
        node_count = sum(nodes.num_nodes for nodes in graph.nodes.values())
        note = settings.note_for(node_count)
        if note is not None:
            notes.append(note)
    if not requested_parts:
        expected = "a part that this graph can have"
        raise InputError("vectors", expected, vectors, "Add another: encoder,own.")
    return requested_parts, notes


def _types_without_features(graph: Graph) -> set[str]:
    """The types whose nodes have no features but positions in the graph."""
    return {
        node_type
        for node_type, nodes in graph.nodes.items()
        if structural_features_named(nodes.feature_names) == "positions"
    }


def part_lengths(graph: Graph, resemblance: float | None) -> dict[str, float]:
    """The mean length of each part; that of the own part rises where neighbours are not alike."""
    own_length = HALF_LENGTH
    if resemblance is not None:
        certainty = min(1.0, graph.edges.nnz / ENOUGH_ENTRIES)
        unlikeness = math.exp(-max(resemblance, 0.0) / RESEMBLANCE_DECAY)
        own_length += certainty * (RAISED_LENGTH - HALF_LENGTH) * unlikeness

    position_length = HALF_LENGTH
    if graph.has_named_types or graph.node_type in _types_without_features(graph):
        position_length = FULL_LENGTH
    return {
        "encoder": FULL_LENGTH,
        "own": own_length,
        "pooled": HALF_LENGTH,
        "positions": position_length,
    }


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that vectors depend on besides the graph.

    The encoder reads features that the scaler has scaled. Without ``parts`` the vectors are the
    paper's.

    Shapes:
        projections: by type ("" where there is one), ``[F, K]`` of the scaled features
        centre, factor: ``[D]``, of all parts side by side; None: they are not fitted yet
        rotation: ``[D, D]``, which turns the result onto the vectors of an earlier model
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
    rotation: Tensor | None = None
    node_type: str = ""
    """The type of its nodes, of several."""

    @property
    def paths_by_end_type(self) -> dict[str, list[str]]:
        """The types whose own parts are pooled, each with the paths to it.

        Of a graph of one type it is that type, without a path.
        """
        if not isinstance(self.encoder.rule, tuple):
            return {self.node_type: []}
        paths_to_type: dict[str, list[str]] = {}
        for path in self.encoder.rule:
            last_type = path.rsplit("-", 1)[-1]
            paths_to_type.setdefault(last_type, []).append(path)
        return paths_to_type

    @property
    def width(self) -> int:
        """D."""
        if not self.parts:
            return self.encoder.out_dim
        return sum(map(len, self.parts.values()))

    @property
    def half_lives(self) -> dict[str, float]:
        """The half-lives of the pooled parts, in days by name.

        Empty where there is one pooled part, of plain means.
        """
        return parse_half_lives(
            [name.removeprefix(POOLED) for name in self.parts if name.startswith(POOLED)]
        )

    @property
    def hops(self) -> int:
        """Hops over which the encoder's output or the own part are pooled: 0 or 2."""
        # Among several types no path leads from a type to itself in all graphs.
        if isinstance(self.encoder.rule, tuple):
            return 0
        is_smoothed = self.smooth and "encoder" in self.parts
        return 2 if is_smoothed or "pooled" in self.parts else 0

    def only(self, vectors: str) -> Recipe:
        """The recipe of some of its parts, or of the paper's vectors."""
        if vectors == PAPER:
            return Recipe(self.encoder, self.scaler)

        requested_parts = vectors.split(",")
        known_parts = {part_family(name) for name in self.parts}
        if self.parts:
            known_parts.add(RECIPE)
        unknown_parts = [name for name in requested_parts if name not in known_parts]
        if unknown_parts:
            model_parts = ",".join(self.parts) or "the paper's vectors alone"
            expected = f"parts that this model has: {model_parts}"
            raise InputError("vectors", expected, unknown_parts[0], "Train it with them.")

        selected = [
            name for name in self.parts if vectors == RECIPE or part_family(name) in requested_parts
        ]
        if selected == list(self.parts):
            return self
        if self.rotation is not None:
            expected = "all parts, of vectors that were turned onto others"
            raise InputError("vectors", expected, vectors)

        columns_of_part = slices(self.parts)
        all_columns = np.arange(self.width)
        columns = np.concatenate([all_columns[columns_of_part[name]] for name in selected])
        return replace(
            self,
            parts={name: self.parts[name] for name in selected},
            centre=None if self.centre is None else self.centre[columns],
            factor=None if self.factor is None else self.factor[columns],
        )

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that a run keeps besides the encoder's."""
        # Run folders call the rotation "turn".
        fitted = {"centre": self.centre, "factor": self.factor, "turn": self.rotation}
        tensors = {
            f"recipe.{name}": tensor for name, tensor in fitted.items() if tensor is not None
        }
        for node_type, projection in self.projections.items():
            tensors[f"recipe.projection:{node_type}"] = projection
        return tensors

    @cached_property
    def hash(self) -> str:
        """The hash by which vectors are known as those of one model."""
        # A run is read in another order than it is written, so named values are sorted by name.
        other_scalers = [scaler for _, scaler in sorted(self.scaler.other_types.items())]
        content = hashlib.sha256()
        for scaler in (self.scaler, *other_scalers):
            content.update(to_json([scaler.scale, scaler.mean, scaler.deviation]).encode())
        column_names = {name: list(columns) for name, columns in self.parts.items()}
        content.update(to_json([self.smooth, column_names]).encode())
        tensors = self.encoder.state_dict() | dict(sorted(self.tensors().items()))
        for name, tensor in tensors.items():
            content.update(name.encode() + tensor.cpu().numpy().tobytes())
        return content.hexdigest()


def name_columns(
    recipe: Recipe,
    part_names: Sequence[str],
    position_count: int,
    features: Mapping[str, Sequence[str]],
) -> Recipe:
    """The recipe with parts whose columns have names.

    Args:
        recipe: the encoder and the projections of own parts.
        part_names: the parts that vectors have; those without columns are left out.
        position_count: the number of positions.
        features: the names of the features of each type.
    """
    pooled_columns: list[str] = []
    for node_type in recipe.paths_by_end_type:
        names = _own_columns(recipe, features, node_type, f"pooled {node_type}".rstrip())
        if _keeps_features(recipe, features, node_type):
            names = [f"mean of {name} over {node_type or 'two hops'}" for name in names]
        pooled_columns += names

    columns = {
        "encoder": numbered_columns("encoder", recipe.encoder.out_dim),
        "own": _own_columns(recipe, features, recipe.node_type, "own"),
        "pooled": pooled_columns,
        "positions": numbered_columns("position", position_count),
    }
    for part_name in part_names:
        if part_name.startswith(POOLED):
            half_life = part_name.removeprefix(POOLED)
            columns[part_name] = [f"{name}, {half_life}" for name in pooled_columns]
    return replace(
        recipe, parts={name: tuple(columns[name]) for name in part_names if columns[name]}
    )


def _own_columns(
    recipe: Recipe, features: Mapping[str, Sequence[str]], node_type: str, part_name: str
) -> list[str]:
    """The names of the own part's columns of a type.

    They are the names of its features, where these are kept as they are.
    """
    if node_type not in recipe.projections:  # vectors have neither its own part nor pooled ones
        return []
    if _keeps_features(recipe, features, node_type):
        return list(features[node_type])
    return numbered_columns(part_name, recipe.projections[node_type].shape[1])


def _keeps_features(recipe: Recipe, features: Mapping[str, Sequence[str]], node_type: str) -> bool:
    """Whether the own part of a type has a column for each feature."""
    projection = recipe.projections.get(node_type)
    return projection is not None and projection.shape[1] == len(features[node_type])


def numbered_columns(part_name: str, width: int) -> list[str]:
    """The names of columns that have no names of their own: ``own 1 of 128``."""
    return [f"{part_name} {number} of {width}" for number in range(1, width + 1)]


def part_family(part_name: str) -> str:
    """The name of a part without its half-life."""
    return part_name.split(" ")[0]


def balance(
    raw: Tensor,
    parts: Mapping[str, Sequence[str]],
    mean_lengths: Mapping[str, float],
    has_features: NDArray[np.bool_],
) -> tuple[Tensor, Tensor]:
    """The centre ``[D]``, and the factor ``[D]`` that gives each part its mean length.

    Parts that are built from features have their mean length on the nodes that have features: where
    most nodes have none, the others would else be far from the centre, and positions small against
    their parts. Pooled parts of several half-lives have their length together. A part that is the
    same at every node gets the factor 0.

    Args:
        raw: ``[n, D]``, the parts of a sample of nodes, as they are computed.
        parts: the names of the columns of each part.
        mean_lengths: by part, the length that it gets.
        has_features: ``[n]``, which nodes have features.
    """
    part_columns = slices(parts)

    # Which nodes count for which part.
    all_nodes = np.ones_like(has_features)
    described = has_features if has_features.any() else all_nodes
    counted_nodes = [all_nodes if name == "positions" else described for name in parts]
    counts = torch.from_numpy(np.stack(counted_nodes, axis=1)).to(raw.device)
    node_counts = counts.sum(dim=0, dtype=torch.float64)

    # Sums in double precision, block by block.
    blocks = [slice(first, first + ROWS_PER_BLOCK) for first in range(0, len(raw), ROWS_PER_BLOCK)]
    block_sums = [raw[block].sum(dim=0, dtype=torch.float64) for block in blocks]
    centre = torch.stack(block_sums).sum(dim=0) / len(raw)
    length_sum = torch.zeros(len(parts), dtype=torch.float64, device=raw.device)
    centred_length_sum = torch.zeros_like(length_sum)
    for block in blocks:
        rows = raw[block].double()
        length_sum += (_lengths_by_part(rows, part_columns) * counts[block]).sum(dim=0)
        centred_lengths = _lengths_by_part(rows - centre, part_columns)
        centred_length_sum += (centred_lengths * counts[block]).sum(dim=0)

    parts_of_family = Counter(map(part_family, parts))
    factor = torch.zeros_like(centre)
    for number, (name, columns) in enumerate(part_columns.items()):
        if centred_length_sum[number] > SMALLEST_DIFFERENCE * length_sum[number]:
            family = part_family(name)
            mean_length = mean_lengths[family] / math.sqrt(parts_of_family[family])
            factor[columns] = mean_length * node_counts[number] / centred_length_sum[number]
    return centre.float().cpu(), factor.float().cpu()


def _lengths_by_part(rows: Tensor, part_columns: Mapping[str, slice]) -> Tensor:
    """The length of each part of some rows ``[n, D]``, ``[n, parts]``."""
    return torch.stack([rows[:, columns].norm(dim=1) for columns in part_columns.values()], dim=1)
