"""A run folder: all one needs to embed, evaluate or resume, and it can be moved.

config.json             the resolved settings, versions, seed; what the graph was
graph.npz               the graph, its node ids, labels and splits
model.safetensors       the weights, the scaler and the feature names, hashed; there once training has ended
health.json             the report of the training
checkpoint.safetensors  the state of the training while it lasts
neighbours.*            the index of `infomax neighbours`, made when it is first needed
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.graphs.scaling import Scaler
from infomax.io.atomic import make_folder
from infomax.io.json import read_json, to_json, write_json
from infomax.io.npz import read_npz, write_npz
from infomax.training import checkpoints
from infomax.version import __version__

FORMAT = 1
CONFIG, GRAPH, MODEL = "config.json", "graph.npz", "model.safetensors"
HEALTH, CHECKPOINT = "health.json", "checkpoint.safetensors"


@dataclass(frozen=True)
class Run:
    """What a finished run folder holds, but for its graph."""

    config: dict[str, Any]
    weights: dict[str, Tensor]
    scaler: Scaler
    feature_names: tuple[str, ...]
    health: dict[str, Any]


def begin(
    folder: Path, graph: Graph, settings: dict[str, Any], seed: int, device: str, *, resumed: bool = False
) -> None:
    """Open a run folder: its settings and its graph; the same ones again where a training is resumed."""
    described = {"nodes": graph.num_nodes, "edges": graph.num_edges, "features": graph.num_features}
    config = {
        "format": FORMAT,
        "versions": {
            "infomax": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "seed": seed,
        "device": str(device),
        "settings": settings,
        "graph": described | {"directed": graph.directed, "labels": list(graph.labels)},
    }
    to_json(config)  # refuses what cannot be written before anything goes
    make_folder(folder)
    old = () if resumed else (MODEL, CHECKPOINT)
    for name in old:  # before all else: an old one beside the new graph would pass for its own
        (folder / name).unlink(missing_ok=True)
    write_npz(graph, folder / GRAPH)
    write_json(folder / CONFIG, config)


def finish(
    folder: Path, weights: dict[str, Tensor], scaler: Scaler, feature_names: tuple[str, ...], health: dict[str, Any]
) -> None:
    """Close a run folder: report, then model. With the model there it is finished; the checkpoint goes."""
    write_json(folder / HEALTH, health)
    tensors = {f"model.{name}": tensor for name, tensor in weights.items()}
    if scaler.mean is not None and scaler.deviation is not None:
        tensors |= {
            "scaler.mean": torch.from_numpy(scaler.mean),
            "scaler.deviation": torch.from_numpy(scaler.deviation),
        }
    checkpoints.save(folder / MODEL, tensors, {"scaler": scaler.kind, "feature_names": list(feature_names)})
    (folder / CHECKPOINT).unlink(missing_ok=True)


def read(folder: Path) -> Run:
    """A finished run folder."""
    if not (folder / CONFIG).exists():
        found = "no config.json in it" if folder.exists() else "nothing of that name"
        raise InputError(str(folder), "a run folder", found, "Make one: infomax train GRAPH --out RUN.")
    config = read_json(folder / CONFIG)
    if config.get("format") != FORMAT:
        writer = config.get("versions", {}).get("infomax", "unknown")
        found = f"format {config.get('format')} (written by infomax {writer})"
        raise InputError(
            str(folder / CONFIG), f"format {FORMAT}", found, "Train again, or use that version of infomax."
        )
    if not (folder / MODEL).exists():
        begun = (folder / CHECKPOINT).exists()
        remedy = f"Training did not end: {'go on with' if begun else 'try'} infomax train GRAPH --out RUN --resume."
        raise InputError(str(folder), "a finished run", "no model.safetensors in it", remedy)
    tensors, values = checkpoints.load(folder / MODEL)
    mean, deviation = (tensors.pop(f"scaler.{name}", None) for name in ("mean", "deviation"))
    return Run(
        config=config,
        weights={name.removeprefix("model."): tensor for name, tensor in tensors.items()},
        scaler=Scaler(
            values["scaler"],
            None if mean is None else mean.numpy(),
            None if deviation is None else deviation.numpy(),
        ),
        feature_names=tuple(values["feature_names"]),
        health=read_json(folder / HEALTH),
    )


def read_training_graph(folder: Path) -> Graph:
    """The graph that a run was trained on."""
    return read_npz(folder / GRAPH)


def refuse_model(folder: Path) -> None:
    """Refuse to write over a run that holds a model or an unfinished training."""
    choices = "Choose another folder, or remove this one"
    for name, what, remedy in (
        (MODEL, "a trained model", f"{choices}."),
        (CHECKPOINT, "an unfinished training", f"{choices}, or go on with --resume."),
    ):
        if (folder / name).exists():
            raise InputError(str(folder), "a folder without a run", what, remedy)


def fingerprint(graph: Graph, settings: dict[str, Any], seed: int, device: str) -> dict[str, str]:
    """What a checkpoint belongs to, the graph hashed, all else as JSON: resuming with anything else is refused."""
    values = {**settings, "seed": seed, "device": device}
    return graph_fingerprint(graph) | {name: to_json(value, sort_keys=True) for name, value in values.items()}


def graph_fingerprint(graph: Graph) -> dict[str, str]:
    """What a training takes from a graph, hashed part by part."""
    return {
        "graph": digest(graph.adjacency, graph.features),
        "grouping": digest(graph.groups),
        "list of ids": digest(graph.ids),
        "set of seen nodes": digest(graph.splits.get("seen")),
    }


def digest(*values: Any) -> str:
    """SHA-256 of arrays and sparse matrices, or of None."""
    content = hashlib.sha256()
    for value in values:
        for part in (value.indptr, value.indices, value.data) if sparse.issparse(value) else (value,):
            array = np.ascontiguousarray(part)
            content.update(json.dumps(array.tolist()).encode() if array.dtype == object else array.data)
    return content.hexdigest()
