"""What a finished run folder holds besides its graph: settings, weights, scaler, own part, report."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from infomax.arrays.hashes import checksum, write_checked
from infomax.arrays.scaling import Scaler
from infomax.embeddings import EmbeddingParts, Embeddings
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.atomic import replacing
from infomax.io.json import RESTORE, write_json
from infomax.parts.encoders import Encoder
from infomax.training import checkpoints, runs
from infomax.training.card import write_card
from infomax.training.health import read_report
from infomax.training.places import Places, typed_ids
from infomax.training.recipe import Recipe

_BYTES = 1 << 19
"""Bytes of vectors that are written at once: they stay in the cache."""


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


def _write_array(path: Path, table: Any) -> Any:
    """Write rows ``[N, d]`` as an npy, some at a time; returns a checksum."""
    (n, width) = table.shape
    head = BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (n, width)})
    step = max(1, _BYTES // (4 * width))
    rows = (np.ascontiguousarray(table[first : first + step], "<f4") for first in range(0, n, step))
    with replacing(path) as temporary, temporary.open("wb") as file:
        return write_checked(file, chain([head.getvalue()], rows))


def finish(run: Run, kept: dict[str, Any], recipe: Recipe, places: Places | None) -> None:
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
    values = {"feature_names": list(run.feature_names), "config": runs.config_hash(run.config), **kept}
    for name, one in _named(run.scaler).items():
        values[name] = one.kind
        if one.mean is not None and one.deviation is not None:
            tensors |= {
                f"{name}.mean": torch.from_numpy(one.mean),
                f"{name}.deviation": torch.from_numpy(one.deviation),
            }
    write_json(folder / runs.HEALTH, run.health)
    write_card(folder, run.config, run.health)
    checkpoints.save(folder / runs.MODEL, tensors, values)
    (folder / runs.CHECKPOINT).unlink(missing_ok=True)


def read(folder: Path) -> Run:
    """Read a finished run folder; raise InputError if its files do not belong together."""
    config = runs.check(folder)
    path = folder / runs.MODEL
    tensors, values = checkpoints.load(path)
    if values.get("config") != runs.config_hash(config):
        raise InputError(
            str(folder / runs.CONFIG), f"the settings that {runs.MODEL} was trained with", "others", RESTORE
        )
    kinds = [name.removeprefix("scaler:") for name in values if name.startswith("scaler:")]
    others = {kind: _scaler(values, tensors, f"scaler:{kind}") for kind in kinds}
    scaler = replace(_scaler(values, tensors, "scaler"), others=others)
    names = tuple(values["feature_names"])
    return Run(folder, config, tensors, scaler, names, read_report(folder / runs.HEALTH), values)


def take_recipe(run: Run, encoder: Encoder, graph: Graph) -> tuple[Recipe | None, Places | None]:
    """What vectors are made with, taken out of the tensors, and the positions of the nodes of a run."""
    described = run.values["recipe"]
    taken = _taken(run.tensors, "recipe.")
    parts = {name: tuple(map(str, columns)) for name, columns in described["parts"].items()}
    recipe = Recipe(encoder, run.scaler, parts, bool(described["smooth"]), kind=graph.kind, turn=taken.get("turn"))
    if not parts:
        return (None if recipe.turn is None else recipe), None
    projections = _taken(taken, "projection:")
    places = _read_places(run, graph, taken["values"]) if "values" in taken else None
    return replace(recipe, projections=projections, centre=taken["centre"], factor=taken["factor"]), places


def _read_places(run: Run, graph: Graph, values: Tensor) -> Places:
    """The positions of the nodes of a run, mapped; refused where they are not those that it was written with."""
    path = run.folder / runs.POSITIONS
    if not path.is_file() or checksum(path) != run.values.get("positions"):
        raise InputError(str(path), "the positions that the model was trained with", "others, or none", RESTORE)
    return Places(np.load(path, mmap_mode="c", allow_pickle=False), values.numpy(), typed_ids(graph).rows)


def _named(scaler: Scaler) -> dict[str, Scaler]:
    """A scaler and those of the other types of nodes, by the names that a model file has for them."""
    return {"scaler": scaler} | {f"scaler:{kind}": one for kind, one in scaler.others.items()}


def _scaler(values: dict[str, Any], tensors: dict[str, Tensor], name: str) -> Scaler:
    """A scaler of a model file; takes its mean and deviation ``[F]`` out of the tensors."""
    if values[name] != "columns":
        return Scaler(values[name])
    return Scaler("columns", tensors.pop(f"{name}.mean").numpy(), tensors.pop(f"{name}.deviation").numpy())


def _taken(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, taken out, by the rest of their names."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}
