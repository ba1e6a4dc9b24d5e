"""The content of a finished run folder besides its graph: settings, weights, scaler, report.

`finish` writes the model file last, which marks the run as finished; `read` and `take_recipe` read
it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from infomax.arrays.blocks import row_blocks
from infomax.arrays.hashes import file_hash
from infomax.arrays.scaling import Scaler
from infomax.embeddings import EmbeddingParts, Embeddings
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.array_files import ArrayWriter
from infomax.io.atomic import replacing
from infomax.io.json import RESTORE, write_json
from infomax.parts.encoders import Encoder
from infomax.training import checkpoints, runs
from infomax.training.card import write_card
from infomax.training.health import read_report
from infomax.training.recipe import Recipe
from infomax.training.spectral_positions import SpectralPositions, typed_ids

SCALER = "scaler"
"""The name of the scaler in the model file; those of other types are "scaler:TYPE"."""


@dataclass(frozen=True)
class Run:
    """The content of a run folder, without its graph."""

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    """The weights ("model.*"), and what vectors are made with ("recipe.*")."""
    scaler: Scaler
    feature_names: tuple[str, ...]
    health: dict[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    """The JSON values of the model file."""


def keep_vectors(folder: Path, vectors: Embeddings | EmbeddingParts | None) -> dict[str, Any]:
    """Write the vectors of a run, block by block; returns what its model file says of them."""
    if vectors is None:
        return {}
    vectors_hash = _write_array(folder / runs.VECTORS, vectors.vectors)
    return {"vectors": vectors_hash, "made_by": vectors.model}


def _write_array(path: Path, table: Any) -> str:
    """Write rows ``[N, d]`` as an npy, block by block; returns its hash."""
    with replacing(path) as temporary, ArrayWriter(temporary, np.float32, table.shape[1]) as writer:
        for rows in row_blocks(table):
            writer.append(rows)
    return file_hash(path)


def finish(
    run: Run, kept_vectors: dict[str, Any], recipe: Recipe, positions: SpectralPositions | None
) -> None:
    """Write the report, then the model, which marks the run as finished.

    The checkpoint is removed.

    Args:
        run: the folder, and what was trained.
        kept_vectors: what `keep_vectors` returned.
        recipe: what vectors are made of.
        positions: those of the training graph.
    """
    folder = run.folder
    part_columns = {name: list(columns) for name, columns in recipe.parts.items()}
    tensors = run.tensors | recipe.tensors()
    values = {
        "feature_names": list(run.feature_names),
        "config": runs.config_hash(run.config),
        **kept_vectors,
        "recipe": {"parts": part_columns, "smooth": recipe.smooth},
    }
    if positions is not None:
        values["positions"] = _write_array(folder / runs.POSITIONS, positions.table)
        tensors["recipe.values"] = torch.from_numpy(positions.values)

    scalers = {SCALER: run.scaler}
    for node_type, scaler in run.scaler.other_types.items():
        scalers[f"{SCALER}:{node_type}"] = scaler
    for name, scaler in scalers.items():
        values[name] = scaler.scale
        fitted = {f"{name}.mean": scaler.mean, f"{name}.deviation": scaler.deviation}
        for tensor_name, array in fitted.items():
            if array is not None:
                tensors[tensor_name] = torch.from_numpy(array)

    write_json(folder / runs.HEALTH, run.health)
    write_card(folder, run.config, run.health)
    checkpoints.save(folder / runs.MODEL, tensors, values)
    (folder / runs.CHECKPOINT).unlink(missing_ok=True)


def read(folder: Path) -> Run:
    """Read a finished run folder; raise InputError if its files do not belong together."""
    config, tensors, values = runs.load_model(folder)
    prefix = f"{SCALER}:"
    other_types = {
        name.removeprefix(prefix): _take_scaler(values, tensors, name)
        for name in values
        if name.startswith(prefix)
    }
    scaler = replace(_take_scaler(values, tensors, SCALER), other_types=other_types)
    feature_names = tuple(values["feature_names"])
    health = read_report(folder / runs.HEALTH)
    return Run(folder, config, tensors, scaler, feature_names, health, values)


def take_recipe(
    run: Run, encoder: Encoder, graph: Graph
) -> tuple[Recipe | None, SpectralPositions | None]:
    """What vectors are made with, and the positions of the nodes of a run.

    The tensors of both are taken out of the run's tensors; those of the encoder are left. None
    stands for the paper's vectors.
    """
    described = run.values["recipe"]
    tensors = _take_with_prefix(run.tensors, "recipe.")
    parts = {name: tuple(map(str, columns)) for name, columns in described["parts"].items()}
    recipe = Recipe(
        encoder,
        run.scaler,
        parts,
        bool(described["smooth"]),
        node_type=graph.node_type,
        rotation=tensors.get("turn"),
    )
    if not parts:
        # The paper's vectors may have been turned onto those of an earlier run.
        return (None if recipe.rotation is None else recipe), None

    projections = _take_with_prefix(tensors, "projection:")
    positions = None
    if "values" in tensors:
        positions = _read_positions(run, graph, tensors["values"])
    recipe = replace(
        recipe, projections=projections, centre=tensors["centre"], factor=tensors["factor"]
    )
    return recipe, positions


def _read_positions(run: Run, graph: Graph, values: Tensor) -> SpectralPositions:
    """The positions of the nodes of a run, mapped.

    Positions that the run was not written with are refused.
    """
    path = run.folder / runs.POSITIONS
    if not path.is_file() or file_hash(path) != run.values.get("positions"):
        expected = "the positions that the model was trained with"
        raise InputError(str(path), expected, "others, or none", RESTORE)
    table = np.load(path, mmap_mode="c", allow_pickle=False)
    return SpectralPositions(table, values.numpy(), typed_ids(graph).rows)


def _take_scaler(values: dict[str, Any], tensors: dict[str, Tensor], name: str) -> Scaler:
    """A scaler of a model file; its mean and deviation ``[F]`` are taken out of the tensors."""
    if values[name] != "columns":
        return Scaler(values[name])
    mean = tensors.pop(f"{name}.mean").numpy()
    deviation = tensors.pop(f"{name}.deviation").numpy()
    return Scaler("columns", mean, deviation)


def _take_with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Take the tensors whose names begin with a prefix out, by what follows the prefix."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}
