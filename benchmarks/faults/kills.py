"""Trainings that are killed: at random moments, and before every single operation on a file."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

from benchmarks.faults.children import Trials, run, start
from infomax import DGI, Graph, InputError
from infomax.training import resuming, runs
from infomax.training.card import CARD

FINISHED = {
    runs.CONFIG,
    runs.GRAPH,
    runs.MODEL,
    runs.VECTORS,
    runs.POSITIONS,
    runs.HEALTH,
    runs.METRICS,
    CARD,
}
KILLED = 77
_OPERATIONS = {
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.truncate",
    "os.link",
}


def small_graph(seed: int = 0, nodes: int = 40) -> Graph:
    """A random graph with ids, dense features and a label."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(nodes, size=(2, 3 * nodes))
    ids = [f"node {row}" for row in range(nodes)]
    labels = {"kind": np.array(["red", "blue"], dtype=object)[rng.integers(2, size=nodes)]}
    return Graph.from_arrays(edges, rng.normal(size=(nodes, 5)), ids=ids, labels=labels)


def train(folder: Path, epochs: int, stop_before: int = 0) -> None:
    """Train a small model into a folder, with a checkpoint at every pause; the work of a child
    process.

    With ``stop_before`` the process ends at once, as if killed, before that operation on a file of
    the folder.
    """
    torch.set_num_threads(1)
    resuming.CHECKPOINT_SECONDS = 0.0
    if stop_before:
        sys.addaudithook(_killer(folder, stop_before))
    DGI(dim=4, epochs=epochs, scale="columns").fit(small_graph(), run=folder)


def _killer(folder: Path, stop_before: int):
    left = stop_before

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in _OPERATIONS and any(
            str(argument).startswith(str(folder)) for argument in arguments[:2]
        ):
            left -= 1
            if left == 0:
                os._exit(KILLED)

    return hook


def kill_at_random(folder: Path, seed: int, kills: int, epochs: int = 200) -> Trials:
    """Kill trainings at random moments, up to three times each, and resume them."""
    whole = folder / "whole"
    run(train, whole, epochs)
    began = time.monotonic()
    run(train, folder / "timed", epochs)
    seconds = time.monotonic() - began
    rng, tried, number = np.random.default_rng(seed), 0, 0
    while tried < kills:
        cut, number = folder / f"cut-{number}", number + 1
        moments = [round(float(moment), 4) for moment in rng.uniform(0, seconds, 3)]
        what = f"killed after {moments} s"
        for moment in moments:
            if (cut / runs.MODEL).exists():  # it had ended before it was killed
                break
            process = start(train, cut, epochs)
            process.join(moment)
            process.kill()
            process.join()
            tried += 1
            yield 1, list(_readable(cut, whole, what))
        yield 0, list(_ends(cut, whole, epochs, what))


def kill_before_operations(
    folder: Path, operations: list[int] | None = None, epochs: int = 3
) -> Trials:
    """Kill a training before its first operation on a file of its folder, its second, ..., and
    resume it.

    Args:
        folder: where to work.
        operations: only these; None: all there are.
        epochs: of each training.
    """
    whole = folder / "whole"
    run(train, whole, epochs)
    for number in operations or range(1, 10_000):
        cut, what = folder / f"operation-{number}", f"killed before operation {number}"
        code = run(train, cut, epochs, number)
        if code == 0 and not operations:  # there are fewer operations than that
            return
        faults = [] if code in (0, KILLED) else [f"{what}: exit code {code}"]
        yield 1, [*faults, *_readable(cut, whole, what), *_ends(cut, whole, epochs, what)]


def _readable(cut: Path, whole: Path, what: str) -> Iterator[str]:
    """What a killed training left is refused, or is the finished model."""
    try:
        loaded = DGI.load(cut)
    except InputError:
        return
    except Exception as error:
        yield f"{what}: loading raised {error!r}"
        return
    if (
        loaded.transform(loaded.graph_).vectors != DGI.load(whole).transform(loaded.graph_).vectors
    ).any():
        yield f"{what}: loaded another model"


def _ends(cut: Path, whole: Path, epochs: int, what: str) -> Iterator[str]:
    """A training that is resumed ends in the same bytes, and leaves nothing else under a final
    name."""
    if not (cut / runs.MODEL).exists() and (code := run(train, cut, epochs)):
        yield f"{what}: resuming ended with exit code {code}"
        return
    if (cut / runs.MODEL).read_bytes() != (whole / runs.MODEL).read_bytes():
        yield f"{what}: resumed to other bytes"
    # A file that a killed process had begun stays under its temporary name until a later run finds
    # it a day old.
    left = {path.name for path in cut.iterdir() if "-tmp-" not in path.name} - FINISHED
    if left - {
        runs.CHECKPOINT,
        runs.LOCK,
    }:  # of one killed just after it had written the model, these two may stay
        yield f"{what}: left {sorted(left)}"
    with suppress(OSError):
        shutil.rmtree(cut)
