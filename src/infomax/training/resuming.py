"""Checkpoints of a training in its run folder, and the fingerprint that knows a training again.

Checkpoints are written at pauses and read to resume. A fingerprint has the settings of a training
and hashes of its graph: a checkpoint resumes only the same training.
"""

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

from infomax.arrays.folder_layout import folder_hash
from infomax.errors import InputError, in_words
from infomax.graphs.graph import Graph
from infomax.io.json import to_json
from infomax.training import checkpoints, runs
from infomax.training.loop import Training

CHECKPOINT_SECONDS = 20.0
"""Seconds between two checkpoints."""
HASHED = ("graph", "grouping", "list of ids", "set of seen nodes", "list of times")
"""The entries of a fingerprint that are hashes."""

Pause = Callable[[Training], None]


def resume(training: Training, folder: Path, fingerprint: dict[str, str]) -> bool:
    """Continue from the checkpoint in a run folder; returns whether there was one.

    Raises InputError for the checkpoint of another training.
    """
    checkpoint = folder / runs.CHECKPOINT
    if not checkpoint.exists():
        return False
    tensors, values = checkpoints.load(checkpoint)
    values.pop("preset", None)
    refuse_other(checkpoint, values.pop("fingerprint", {}), fingerprint)
    try:
        training.restore(tensors, values)
    except (KeyError, RuntimeError) as error:
        # A part of your own has the name of the one that was trained, and other weights.
        remedy = "Resume with the original parts, or choose another folder."
        expected = "the weights of these parts"
        raise InputError(str(checkpoint), expected, in_words(error), remedy) from error
    return True


def preset_begun(folder: Path) -> str:
    """Return the name of the preset that a run folder was begun with; "" where none was."""
    if (folder / runs.CHECKPOINT).exists():
        _, values = checkpoints.load(folder / runs.CHECKPOINT)
        name = values.get("preset")
    elif (folder / runs.MODEL).exists():
        name = runs.check(folder)["settings"].get("preset")
    else:
        return ""
    if not isinstance(name, str) or not name:
        found = "none: it is one of your own"
        raise InputError(str(folder), "a run that names its preset", found, "Name it: --preset.")
    return name


def refuse_other_run(folder: Path, graph: Graph, settings: dict[str, Any], seed: int) -> None:
    """Raise InputError for a finished run of another graph or other settings.

    The device may differ.
    """
    config, _, _ = runs.load_model(folder)
    run_graph = runs.read_training_graph(folder, graph.folder)
    found = fingerprint_of(run_graph, config["settings"], config["seed"], "")
    expected = fingerprint_of(graph, settings, seed, "")
    refuse_other(folder, found, expected, "a finished run")


def pausing(
    progress: Pause, folder: Path | None, fingerprint: dict[str, str], preset: str
) -> Pause:
    """Return a function for `Training.run` that calls ``progress``, and writes into a run folder.

    It writes a log of the epochs, and now and then a checkpoint with the name of the preset and
    the fingerprint. If ``progress`` raises KeyboardInterrupt on any rank, a checkpoint is written
    and all ranks stop after this step.
    """
    saved_at = time.monotonic()
    logged_count = 0

    def pause(training: Training) -> None:
        nonlocal saved_at, logged_count
        if folder is not None and len(training.history) > logged_count:
            # The first call writes all epochs, those before an interruption too.
            _log_epochs(folder / runs.METRICS, training, logged_count)
            logged_count = len(training.history)

        interruption: KeyboardInterrupt | None = None
        try:
            progress(training)
        except KeyboardInterrupt as raised:
            interruption = raised

        is_stopped = training.ranks.any(interruption is not None)
        if is_stopped or time.monotonic() - saved_at > CHECKPOINT_SECONDS:
            if folder is not None:
                tensors, values = training.state()
                values |= {"fingerprint": fingerprint, "preset": preset}
                checkpoints.save(folder / runs.CHECKPOINT, tensors, values)
            saved_at = time.monotonic()
        if is_stopped:
            raise interruption or KeyboardInterrupt("stopped on another rank")

    return pause


def _log_epochs(path: Path, training: Training, logged_count: int) -> None:
    """Append the epochs that the log lacks, a JSON object each; with none logged, begin anew."""
    new_records = enumerate(training.history[logged_count:], logged_count + 1)
    lines = [to_json({"epoch": epoch, **record._asdict()}) + "\n" for epoch, record in new_records]
    with path.open("a" if logged_count else "w", encoding="utf-8") as file:
        file.writelines(lines)


def fingerprint_of(
    graph: Graph, settings: dict[str, Any], seed: int, device: str
) -> dict[str, str]:
    """Identify a training: hashes of its graph, settings as JSON."""
    values = {**settings, "seed": seed, "device": device}
    values.pop("preset", None)  # the other settings say all that it does
    described = {name: to_json(value, sort_keys=True) for name, value in values.items()}
    return graph_fingerprint(graph) | described


def graph_fingerprint(graph: Graph) -> dict[str, str]:
    """Hash each part of a graph that a training uses."""
    if graph.folder is not None:
        return {"graph": folder_hash(graph.folder)}
    if graph.table.mapped:
        found = "a graph folder with attached nodes"
        remedy = "Add them to the tables, and make the folder again: infomax prepare."
        raise InputError("graph", "one that a folder holds", found, remedy)

    nodes_of_types = [graph.nodes[node_type] for node_type in sorted(graph.nodes)]
    end_types = chain.from_iterable(relation.ends for relation in graph.relations)
    type_names = np.array([*graph.types, *end_types], object)
    matrices = [relation.edges.matrix() for relation in graph.relations]
    tables = [nodes.table.loaded().values for nodes in nodes_of_types]
    fingerprint = {
        "graph": digest(*matrices, *tables, type_names),
        "grouping": digest(graph.groups),
        "list of ids": digest(*(nodes.ids for nodes in nodes_of_types)),
        "set of seen nodes": digest(*(nodes.splits.get("seen") for nodes in nodes_of_types)),
    }
    if any(nodes.times is not None for nodes in nodes_of_types):
        fingerprint["list of times"] = digest(*(nodes.times for nodes in nodes_of_types))
    return fingerprint


def digest(*values: Any) -> str:
    """Return the SHA-256 of arrays, sparse matrices or None."""
    content = hashlib.sha256()
    for value in values:
        for array in _arrays_of(value):
            if array.dtype == object:
                content.update(json.dumps(array.tolist()).encode())
            else:
                content.update(array.data)
    return content.hexdigest()


def _arrays_of(value: Any) -> list[Any]:
    """The contiguous arrays that a value consists of."""
    if not sparse.issparse(value):
        return [np.ascontiguousarray(value)]
    # scipy's integers have 4 or 8 bytes, as a matrix was made.
    fits_in_32_bits = max(value.nnz, *value.shape) < 2**31
    integer = np.int32 if fits_in_32_bits else np.int64
    return [
        np.ascontiguousarray(value.indptr.astype(integer, copy=False)),
        np.ascontiguousarray(value.indices.astype(integer, copy=False)),
        np.ascontiguousarray(value.data),
    ]


def refuse_other(
    path: Path, found: dict[str, str], expected: dict[str, str], file_role: str = "a checkpoint"
) -> None:
    """Raise InputError for a file that another training left.

    The message names both values, or the part of the graph where these are hashes.
    """
    remedy = "Resume with the original graph and settings, or choose another folder."
    for name in expected | found:
        expected_value = expected.get(name, "none")
        found_value = found.get(name, "none")
        if found_value == expected_value:
            continue
        if name in HASHED:
            expected_training = f"this {name}"
            found_training = f"another {name}"
        else:
            expected_training = f"{name} {expected_value}"
            found_training = f"{name} {found_value}"
        raise InputError(
            str(path), f"{file_role} of {expected_training}", f"one of {found_training}", remedy
        )
