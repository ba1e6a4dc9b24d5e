"""Checkpoints of a training in its run folder: written at pauses, read to resume; and hashes that know it again."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from infomax.arrays.folder import folder_hash
from infomax.errors import InputError, in_words
from infomax.graphs.graph import Graph
from infomax.io.json import to_json
from infomax.training import checkpoints, runs
from infomax.training.loop import Training

CHECKPOINT_SECONDS = 20.0
HASHED = ("graph", "grouping", "list of ids", "set of seen nodes", "list of times")
"""What a fingerprint has hashes of."""

Pause = Callable[[Training], None]


def resume(training: Training, folder: Path, fingerprint: dict[str, str]) -> bool:
    """Continue from the checkpoint in a run folder, if there is one; raise InputError for that of another training."""
    checkpoint = folder / runs.CHECKPOINT
    if not checkpoint.exists():
        return False
    tensors, values = checkpoints.load(checkpoint)
    values.pop("preset", None)
    refuse_other(checkpoint, values.pop("fingerprint", {}), fingerprint)
    try:
        training.restore(tensors, values)
    except (
        KeyError,
        RuntimeError,
    ) as error:  # a part of one's own has the same name, and other weights
        remedy = "Resume with the original parts, or choose another folder."
        raise InputError(
            str(checkpoint), "the weights of these parts", in_words(error), remedy
        ) from error
    return True


def preset_begun(folder: Path) -> str:
    """Return the name of the preset that a run folder was begun with; "" where none was."""
    if (folder / runs.CHECKPOINT).exists():
        name = checkpoints.load(folder / runs.CHECKPOINT)[1].get("preset")
    elif (folder / runs.MODEL).exists():
        name = runs.check(folder)["settings"].get("preset")
    else:
        return ""
    if not isinstance(name, str) or not name:
        found = "none: it is one of your own"
        raise InputError(str(folder), "a run that names its preset", found, "Name it: --preset.")
    return name


def refuse_other_run(folder: Path, graph: Graph, settings: dict[str, Any], seed: int) -> None:
    """Raise InputError for a finished run of another graph or of other settings; the device may differ."""
    config = runs.load_model(folder)[0]
    known = runs.read_training_graph(folder, graph.folder)
    found = fingerprint_of(known, config["settings"], config["seed"], "")
    expected = fingerprint_of(graph, settings, seed, "")
    refuse_other(folder, found, expected, "a finished run")


def pausing(
    progress: Pause, folder: Path | None, fingerprint: dict[str, str], preset: str
) -> Pause:
    """Return a function for `Training.run` that calls ``progress``, and writes a log and checkpoints into a folder.

    A checkpoint holds the name of the preset and the fingerprint of the training. If ``progress`` raises
    KeyboardInterrupt on any rank, a checkpoint is written and all ranks stop after this step.
    """
    saved, logged = time.monotonic(), 0

    def pause(training: Training) -> None:
        nonlocal saved, logged
        if (
            folder is not None and len(training.history) > logged
        ):  # the first call writes all, also of a resumed one
            rows = enumerate(training.history[logged:], logged + 1)
            lines = [to_json({"epoch": epoch, **record._asdict()}) + "\n" for epoch, record in rows]
            with (folder / runs.METRICS).open("a" if logged else "w", encoding="utf-8") as file:
                file.writelines(lines)
            logged = len(training.history)
        interruption = None
        try:
            progress(training)
        except KeyboardInterrupt as interrupted:
            interruption = interrupted
        stopped = training.ranks.any(interruption is not None)
        if stopped or time.monotonic() - saved > CHECKPOINT_SECONDS:
            if folder is not None:
                tensors, values = training.state()
                values |= {"fingerprint": fingerprint, "preset": preset}
                checkpoints.save(folder / runs.CHECKPOINT, tensors, values)
            saved = time.monotonic()
        if stopped:
            raise interruption or KeyboardInterrupt("stopped on another rank")

    return pause


def fingerprint_of(
    graph: Graph, settings: dict[str, Any], seed: int, device: str
) -> dict[str, str]:
    """Identify a training: hashes of its graph, the rest as JSON. A checkpoint resumes only the same training."""
    values = {**settings, "seed": seed, "device": device}
    values.pop("preset", None)  # the settings say all that it does
    return graph_fingerprint(graph) | {
        name: to_json(value, sort_keys=True) for name, value in values.items()
    }


def graph_fingerprint(graph: Graph) -> dict[str, str]:
    """Hash each part of a graph that a training uses."""
    if graph.folder is not None:
        return {"graph": folder_hash(graph.folder)}
    if graph.table.mapped:
        remedy = "Add them to the tables, and make the folder again: infomax prepare."
        raise InputError(
            "graph", "one that a folder holds", "a graph folder with attached nodes", remedy
        )
    of_types = [graph.nodes[node_type] for node_type in sorted(graph.nodes)]
    names = np.array(
        [*graph.types, *chain.from_iterable(one.ends for one in graph.relations)], object
    )
    matrices = [relation.edges.matrix() for relation in graph.relations]
    tables = [nodes.table.loaded().values for nodes in of_types]
    found = {
        "graph": digest(*matrices, *tables, names),
        "grouping": digest(graph.groups),
        "list of ids": digest(*(one.ids for one in of_types)),
        "set of seen nodes": digest(*(one.splits.get("seen") for one in of_types)),
    }
    if any(one.times is not None for one in of_types):
        found["list of times"] = digest(*(one.times for one in of_types))
    return found


def digest(*values: Any) -> str:
    """Return the SHA-256 of arrays, sparse matrices or None."""
    content = hashlib.sha256()
    for value in values:
        parts = [value]
        if sparse.issparse(value):  # scipy's integers have 4 or 8 bytes, as a matrix was made
            integer = np.int32 if max(value.nnz, *value.shape) < 2**31 else np.int64
            parts = [
                value.indptr.astype(integer, copy=False),
                value.indices.astype(integer, copy=False),
                value.data,
            ]
        for part in parts:
            array = np.ascontiguousarray(part)
            content.update(
                json.dumps(array.tolist()).encode() if array.dtype == object else array.data
            )
    return content.hexdigest()


def refuse_other(
    path: Path, found: dict[str, str], expected: dict[str, str], what: str = "a checkpoint"
) -> None:
    """Raise InputError for what another training left; it names both values, or the part if they are hashes."""
    for name in expected | found:
        value, other = expected.get(name, "none"), found.get(name, "none")
        if other != value:
            hashed = name in HASHED
            this, that = (
                (f"this {name}", f"another {name}")
                if hashed
                else (f"{name} {value}", f"{name} {other}")
            )
            remedy = "Resume with the original graph and settings, or choose another folder."
            raise InputError(str(path), f"{what} of {this}", f"one of {that}", remedy)
