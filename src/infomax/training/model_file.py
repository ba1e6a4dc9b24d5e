"""What a finished run folder holds besides its graph: settings, weights, scaler, own part, report."""

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
    """What the model file says besides its tensors."""


def keep_vectors(folder: Path, kept: Embeddings | EmbeddingParts | None) -> dict[str, Any]:
    """Write the vectors of a run, some at a time; returns what its model file says of them."""
    if kept is None:
        return {}
    return {"vectors": _write_array(folder / runs.VECTORS, kept.vectors), "made_by": kept.model}


def _write_array(path: Path, table: Any) -> str:
    """Write rows ``[N, d]`` as an npy, some at a time; returns its hash."""
    with replacing(path) as temporary, ArrayWriter(temporary, np.float32, table.shape[1]) as writer:
        for rows in row_blocks(table):
            writer.append(rows)
    return file_hash(path)


def finish(
    run: Run, kept: dict[str, Any], recipe: Recipe, places: SpectralPositions | None
) -> None:
    """Write the report, then the model, which marks the run as finished, and remove the checkpoint.

    ``kept`` is what `keep_vectors` told of the vectors.
    """
    folder = run.folder
    tensors = run.tensors | recipe.tensors()
    parts = {name: list(columns) for name, columns in recipe.parts.items()}
    kept = kept | {"recipe": {"parts": parts, "smooth": recipe.smooth}}
    if places is not None:
        kept["positions"] = _write_array(folder / runs.POSITIONS, places.table)
        tensors["recipe.values"] = torch.from_numpy(places.values)
    values = {
        "feature_names": list(run.feature_names),
        "config": runs.config_hash(run.config),
        **kept,
    }
    scalers = {"scaler": run.scaler} | {
        f"scaler:{kind}": one for kind, one in run.scaler.other_types.items()
    }
    for name, one in scalers.items():
        values[name] = one.scale
        fitted = {f"{name}.mean": one.mean, f"{name}.deviation": one.deviation}
        tensors |= {
            key: torch.from_numpy(array) for key, array in fitted.items() if array is not None
        }
    write_json(folder / runs.HEALTH, run.health)
    write_card(folder, run.config, run.health)
    checkpoints.save(folder / runs.MODEL, tensors, values)
    (folder / runs.CHECKPOINT).unlink(missing_ok=True)


def read(folder: Path) -> Run:
    """Read a finished run folder; raise InputError if its files do not belong together."""
    config, tensors, values = runs.load_model(folder)
    kinds = [name.removeprefix("scaler:") for name in values if name.startswith("scaler:")]
    other_types = {kind: _scaler(values, tensors, f"scaler:{kind}") for kind in kinds}
    scaler = replace(_scaler(values, tensors, "scaler"), other_types=other_types)
    names = tuple(values["feature_names"])
    return Run(folder, config, tensors, scaler, names, read_report(folder / runs.HEALTH), values)


def take_recipe(
    run: Run, encoder: Encoder, graph: Graph
) -> tuple[Recipe | None, SpectralPositions | None]:
    """What vectors are made with, taken out of the tensors, and the positions of the nodes of a run."""
    described = run.values["recipe"]
    taken = _taken(run.tensors, "recipe.")
    parts = {name: tuple(map(str, columns)) for name, columns in described["parts"].items()}
    recipe = Recipe(
        encoder,
        run.scaler,
        parts,
        bool(described["smooth"]),
        node_type=graph.node_type,
        turn=taken.get("turn"),
    )
    if not parts:
        return (None if recipe.turn is None else recipe), None
    projections = _taken(taken, "projection:")
    places = _read_places(run, graph, taken["values"]) if "values" in taken else None
    return replace(
        recipe, projections=projections, centre=taken["centre"], factor=taken["factor"]
    ), places


def _read_places(run: Run, graph: Graph, values: Tensor) -> SpectralPositions:
    """The positions of the nodes of a run, mapped; refused where they are not those that it was written with."""
    path = run.folder / runs.POSITIONS
    if not path.is_file() or file_hash(path) != run.values.get("positions"):
        raise InputError(
            str(path), "the positions that the model was trained with", "others, or none", RESTORE
        )
    return SpectralPositions(
        np.load(path, mmap_mode="c", allow_pickle=False), values.numpy(), typed_ids(graph).rows
    )


def _scaler(values: dict[str, Any], tensors: dict[str, Tensor], name: str) -> Scaler:
    """A scaler of a model file; takes its mean and deviation ``[F]`` out of the tensors."""
    if values[name] != "columns":
        return Scaler(values[name])
    return Scaler(
        "columns", tensors.pop(f"{name}.mean").numpy(), tensors.pop(f"{name}.deviation").numpy()
    )


def _taken(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, taken out, by the rest of their names."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}
