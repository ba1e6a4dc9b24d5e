"""Graph folders with damaged arrays: never a crash or a training without end, and refused if of another type or shape.

A value that leads nowhere outside is read as another graph: only ``infomax info FOLDER --check`` compares all bytes.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import torch

import infomax.kernels
from benchmarks.faults.children import Trials, start
from benchmarks.faults.folders import TOLD
from infomax import DGI, Graph, InputError
from infomax.arrays import folder_layout as layout
from infomax.arrays.hashes import file_hash

SECONDS, NODES = 120, 200
ARRAYS = (layout.STARTS, layout.NEIGHBOURS, layout.WEIGHTS, layout.FEATURES)
VALUES = {
    "i": (-(2**63), -(2**31), -3, -1, 7, NODES, NODES + 5, 2**30, 2**31 - 1, 2**62),
    "f": (np.nan, np.inf, -np.inf, -1.0, 3e38),
}


def write_folder(path: Path) -> None:
    """Write a graph folder with weights."""
    rng = np.random.default_rng(0)
    ends, weights = rng.integers(0, NODES, (2, 4 * NODES)), rng.random(4 * NODES) + 0.5
    Graph.from_arrays(ends, rng.normal(size=(NODES, 16)), weight=weights).save(path)


def damage(folder: Path, rng: np.random.Generator) -> tuple[str, bool]:
    """Damage an array; returns what was done, and whether the folder may now be read as another
    graph."""
    name = ARRAYS[rng.integers(len(ARRAYS))]
    array = np.load(folder / name)
    described = bool(rng.integers(2))
    kind = ("value", "range", "bytes", "type", "shape")[rng.integers(5)]
    flat, at = array.reshape(-1), int(rng.choice([0, array.size - 1, rng.integers(array.size)]))
    limits = np.iinfo(array.dtype) if array.dtype.kind == "i" else np.finfo(array.dtype)
    values = [
        value
        for value in VALUES[array.dtype.kind]
        if not limits.min > value and not value > limits.max
    ]
    value = values[rng.integers(len(values))]
    if kind == "value":
        flat[at] = value
    elif kind == "range":
        flat[at : at + int(rng.integers(1, 50))] = value
    elif kind == "bytes":
        array.view(np.uint8).reshape(-1)[at : at + 8] ^= rng.integers(1, 256, 8, dtype=np.uint8)[
            : array.nbytes - at
        ]
    elif kind == "type":
        array = array.astype(["int16", "int64", "float64", ">f4", "S4"][rng.integers(5)])
    else:
        array = [array[:-1], array.reshape(-1, 1), array[None], np.concatenate([array, array])][
            rng.integers(4)
        ]
    np.save(folder / name, array)
    if described:
        about = json.loads((folder / layout.DESCRIPTION).read_text())
        file = folder / name
        entry = {"bytes": file.stat().st_size, "sha256": file_hash(file)}
        about["files"][name] |= entry | {"dtype": str(array.dtype), "shape": list(array.shape)}
        (folder / layout.DESCRIPTION).write_text(json.dumps(about))
    return (
        f"{name}, {kind} at {at} ({value}), {'described' if described else 'not described'}",
        described
        or kind
        in (
            "value",
            "range",
            "bytes",
        ),
    )


def use(folder: Path) -> None:
    """The work of a child process: read, train and embed with compiled code; an `InputError` ends
    it with `TOLD`."""
    torch.set_num_threads(1)
    infomax.kernels.FEWEST_NUMBERS_FOR_NUMBA = 0
    try:
        graph = Graph.open(folder)
        graph.loaded()
        DGI(dim=4, epochs=1, device="cpu").fit(graph).transform(graph)
    except InputError:
        os._exit(TOLD)


def campaign(folder: Path, seed: int, trials: int) -> Trials:
    """Damage a graph folder so many times, each time from the whole one."""
    write_folder(folder / "whole.graph")
    rng = np.random.default_rng(seed)
    for trial in range(trials):
        place = Path(shutil.copytree(folder / "whole.graph", folder / f"{trial}.graph"))
        what, readable = damage(place, rng)
        process = start(use, place)
        process.join(SECONDS)
        process.kill()
        process.join()
        right = (0, TOLD) if readable else (TOLD,)
        yield (
            1,
            []
            if process.exitcode in right
            else [f"trial {trial}, {what}: exit code {process.exitcode}"],
        )
        shutil.rmtree(place)
