"""What a finished run folder holds besides its graph: settings, weights, scaler, own part, report."""

from __future__ import annotations

from collections.abc import Collection
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

    def take(self, name: str, *shape: int) -> Tensor:
        """Take one of the tensors out; refused unless it is there, with finite numbers of this shape."""
        return _take(self.folder / runs.MODEL, self.tensors, name, shape)


def keep_vectors(folder: Path, kept: Embeddings | EmbeddingParts | None) -> dict[str, Any]:
    """Write the vectors of a run, some at a time; returns what its model file says of them."""
    if kept is None:
        return {}
    return {"vectors": _write_array(folder / runs.VECTORS, kept.vectors), "made_by": kept.model}


def _write_array(path: Path, table: Any) -> Any:
    """Write rows ``[N, d]`` as an npy, some at a time; returns a checksum."""
    (n, width), head = table.shape, BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (n, width)})
    step = max(1, _BYTES // (4 * width))
    rows = (np.ascontiguousarray(table[first : first + step], "<f4") for first in range(0, n, step))
    with replacing(path) as temporary, temporary.open("wb") as file:
        return write_checked(file, chain([head.getvalue()], rows))


def finish(run: Run, kept: dict[str, Any], recipe: Recipe, places: Places | None) -> None:
    """Write the report, then the model, which marks the run as finished, and remove the checkpoint.

    ``kept`` is what `keep_vectors` told of the vectors.
    """
    folder, tensors = run.folder, run.tensors | recipe.tensors()
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
    config, path = runs.check(folder), folder / runs.MODEL
    tensors, values = checkpoints.load(path)
    if values.get("config") != runs.config_hash(config):
        raise InputError(
            str(folder / runs.CONFIG), f"the settings that {runs.MODEL} was trained with", "others", RESTORE
        )
    names = values.get("feature_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(str(path), "a list of feature names", type(names).__name__, RESTORE)
    kinds = [name.removeprefix("scaler:") for name in values if name.startswith("scaler:")]
    others = {kind: _scaler(path, values, tensors, f"scaler:{kind}") for kind in kinds}
    scaler = replace(_scaler(path, values, tensors, "scaler", len(names)), others=others)
    return Run(folder, config, tensors, scaler, tuple(names), read_report(folder / runs.HEALTH), values)


def take_recipe(run: Run, encoder: Encoder, graph: Graph) -> tuple[Recipe | None, Places | None]:
    """What vectors are made with, and the positions of the nodes of a run; raise InputError for what does not fit."""
    path, told = run.folder / runs.MODEL, run.values.get("recipe", {})
    parts = {name: tuple(map(str, columns)) for name, columns in told["parts"].items()}
    plain = Recipe(encoder, run.scaler, parts, bool(told["smooth"]), kind=graph.kind)
    turn = run.take("recipe.turn", plain.width, plain.width) if "recipe.turn" in run.tensors else None
    if not parts:
        return (None if turn is None else replace(plain, turn=turn)), None
    projections = {}
    for name in [name for name in run.tensors if name.startswith("recipe.projection:")]:
        kind, count = name.removeprefix("recipe.projection:"), run.tensors[name].shape[-1]
        projections[kind] = run.take(name, graph.nodes[kind].num_features, count)
    recipe = replace(plain, projections=projections, turn=turn)
    expected = {"encoder": encoder.out_dim, "own": 0, "pooled": 0, "positions": 0}
    if "own" in parts:
        expected["own"] = projections[graph.kind].shape[1]
    if "pooled" in parts:
        expected["pooled"] = sum(projections[kind].shape[1] for kind in recipe.ends)
    places = None
    if "recipe.values" in run.tensors:
        values = run.take("recipe.values", len(parts.get("positions", ())))
        places = _read_places(run, graph, values)
        expected["positions"] = places.width
    if wrong := [name for name, columns in parts.items() if len(columns) != expected.get(name)]:
        raise InputError(str(path), f"as many columns of the part {wrong[0]} as it has", "others", RESTORE)
    centre, factor = (run.take(f"recipe.{name}", recipe.width) for name in ("centre", "factor"))
    return replace(recipe, centre=centre, factor=factor), places


def _read_places(run: Run, graph: Graph, values: Tensor) -> Places:
    """The positions of the nodes of a run, mapped; refused where they are not those that it was written with."""
    path, rows = run.folder / runs.POSITIONS, typed_ids(graph).rows
    expected = max(one.stop for one in rows.values()), 1 + len(values)
    if not path.is_file() or checksum(path) != run.values.get("positions"):
        raise InputError(str(path), "the positions that the model was trained with", "others, or none", RESTORE)
    table = np.load(path, mmap_mode="c", allow_pickle=False)
    if table.shape != expected or table.dtype != np.float32 or not (values > 0).all():
        raise InputError(str(path), f"positions of shape {list(expected)}", str(list(table.shape)), RESTORE)
    return Places(table, values.numpy(), rows)


def check_sizes(where: str, run: Run, own: Collection[str]) -> None:
    """Raise InputError for sizes that do not fit the weights of a run, before a model of that size is built."""
    settings, numbers = run.config["settings"], sum(tensor.numel() for tensor in run.tensors.values())
    sizes = [(run.config["seed"], "seed", 0, 2**64), (settings["dim"], "dim", 1, numbers)]
    for part, name, most in (
        ("encoder", "layers", sum(name.startswith("model.") for name in run.tensors)),
        ("readout", "clusters", numbers),
    ):
        if part not in own:
            sizes.append((settings[part].get(name, 1), name, 1, most))
    for value, name, least, most in sizes:
        if not isinstance(value, int) or not least <= value <= most:
            raise InputError(f"{where}, {name}", f"a whole number from {least} to {most}", repr(value))


def _named(scaler: Scaler) -> dict[str, Scaler]:
    """A scaler and those of the other types of nodes, by the names that a model file has for them."""
    return {"scaler": scaler} | {f"scaler:{kind}": one for kind, one in scaler.others.items()}


def _scaler(
    path: Path, values: dict[str, Any], tensors: dict[str, Tensor], name: str, width: int | None = None
) -> Scaler:
    """Build a scaler of a model file; takes its mean and deviation ``[F]`` out of the tensors."""
    kind = values.get(name)
    if kind not in ("rows", "columns", "none"):
        raise InputError(str(path), "a scaler of kind rows, columns or none", repr(kind), RESTORE)
    if kind != "columns":
        return Scaler(kind)
    width = len(tensors.get(f"{name}.mean", ())) if width is None else width
    mean, deviation = (_take(path, tensors, f"{name}.{part}", (width,)).numpy() for part in ("mean", "deviation"))
    if not (deviation > 0).all():
        raise InputError(str(path), f"{name}.deviation above 0", str(deviation.min()), RESTORE)
    return Scaler(kind, mean, deviation)


def _take(path: Path, tensors: dict[str, Tensor], name: str, shape: tuple[int, ...]) -> Tensor:
    """Take a tensor out of those of a model file; refused unless it is there, with finite numbers of this shape."""
    found = tensors.pop(name, None)
    if found is None or found.shape != shape or found.dtype != torch.float32 or not torch.isfinite(found).all():
        told = "none" if found is None else f"{found.dtype} of shape {list(found.shape)}, or NaN"
        raise InputError(str(path), f"{name} of shape {list(shape)}, finite numbers in float32", told, RESTORE)
    return found
