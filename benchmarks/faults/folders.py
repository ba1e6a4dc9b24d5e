"""Graph folders: killed at random moments, or on a disk that is full; the same call again ends in the same bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet

from benchmarks.faults.children import Trials, run, start
from infomax import DGI, Graph, InputError
from infomax.arrays import integrity
from infomax.io import parts
from infomax.io.prepare import prepare
from infomax.training import embed as engine
from infomax.training import resuming, runs
from infomax.training import vectors as embedding
from infomax.training.card import CARD

TOLD = 2
"""The exit code of a process that raised an `InputError`."""
ROOM = 1 << 30
GROWING = (runs.METRICS, parts.ABOUT_FILE)
"""Files that tell how far the work is."""


def write_tables(folder: Path, seed: int = 0, nodes: int = 2000) -> None:
    """Write a random graph as edges.parquet and nodes.parquet, with text ids, weights, a label and
    16 features."""
    rng = np.random.default_rng(seed)
    ids = np.array([f"node {number}" for number in rng.permutation(nodes)])
    ends = rng.integers(0, nodes, (2, 6 * nodes))
    edges = {"source": ids[ends[0]], "target": ids[ends[1]], "weight": rng.random(6 * nodes)}
    kinds = np.array(["red", "blue"])[rng.integers(2, size=nodes)]
    parquet.write_table(pa.table(edges), folder / "edges.parquet")
    vectors = list(rng.normal(size=(nodes, 16)))
    parquet.write_table(
        pa.table({"id": ids, "kind": kinds, "v": vectors}), folder / "nodes.parquet"
    )


def prepare_folder(tables: Path, out: Path) -> None:
    """Make a graph folder."""
    prepare(tables / "edges.parquet", tables / "nodes.parquet", out=out / "g.graph", labels="kind")


def train(tables: Path, out: Path) -> None:
    """Train on the graph folder beside the tables, with a checkpoint at every pause."""
    resuming.CHECKPOINT_SECONDS = 0.0
    if not (out / "run" / runs.MODEL).exists():
        DGI(dim=8, epochs=30, device="cpu").fit(Graph.open(tables / "g.graph"), run=out / "run")


def embed(tables: Path, out: Path) -> None:
    """Embed the graph folder to parts, on the CPU; there are files of passes too."""
    embedding.NODES_PER_PART, engine.NODES_PER_BLOCK_ON_DISK = 300, {"cpu": 100}
    model = DGI.load(tables / "run", device="cpu")
    model.write_vectors(model.graph_, out / "vectors")


STAGES: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "prepare": (prepare_folder, "g.graph"),
    "train": (train, "run"),
    "embed": (embed, "vectors"),
}
"""What is called, and the folder that it writes."""


def work(stage: str, tables: Path, out: Path) -> None:
    """The work of a child process: one stage; an `InputError` ends it with `TOLD`."""
    torch.set_num_threads(1)
    try:
        STAGES[stage][0](tables, out)
    except InputError:
        os._exit(TOLD)


def campaign(folder: Path, seed: int, kills: int, *, disks: bool = True) -> Trials:
    """Kill every stage ``kills`` times at random moments, and let its disk be full as often.

    Args:
        folder: where to work.
        seed: decides the moments and the sizes of disks.
        kills: per stage.
        disks: whether to mount disks that are full.
    """
    tables, rng = folder / "tables", np.random.default_rng(seed)
    tables.mkdir()
    write_tables(tables)
    for stage, (_, name) in STAGES.items():
        run(work, stage, tables, tables)  # the next stage reads it
        whole = folder / f"{stage}-whole"
        whole.mkdir()
        began = time.monotonic()
        if run(work, stage, tables, whole):
            yield 1, [f"{stage}: failed undisturbed"]
            continue
        seconds = time.monotonic() - began
        yield from _kill(stage, tables, whole, folder / f"{stage}-killed", rng, kills, seconds)
        most = sum(path.stat().st_size for path in (whole / name).rglob("*"))
        if disks:
            yield from _fill(stage, tables, whole, folder / f"{stage}-full", rng, kills, most)


def _kill(
    stage: str,
    tables: Path,
    whole: Path,
    cut: Path,
    rng: np.random.Generator,
    kills: int,
    seconds: float,
) -> Trials:
    tried = 0
    while tried < kills:
        cut.mkdir()
        moments = [round(float(moment), 4) for moment in rng.uniform(0, seconds, 3)]
        what = f"{stage}, killed after {moments} s"
        for moment in moments[: kills - tried]:
            process = start(work, stage, tables, cut)
            process.join(moment)
            process.kill()
            process.join()
            tried += 1
            yield 1, list(_half_written(stage, whole, cut, what))
        yield 0, list(_ends(stage, tables, whole, cut, what))
        shutil.rmtree(cut)


def _fill(
    stage: str,
    tables: Path,
    whole: Path,
    cut: Path,
    rng: np.random.Generator,
    trials: int,
    most: int,
) -> Trials:
    cut.mkdir()
    for _ in range(trials):
        room = int(rng.uniform(0.05, 1.5) * most)
        what = f"{stage}, on a disk of {room:,} bytes"
        with _disk(cut, room) as resize:
            if resize is None:  # only root may make a disk
                return
            code = run(work, stage, tables, cut)
            faults = [] if code in (0, TOLD) else [f"{what}: exit code {code}"]
            faults += _half_written(stage, whole, cut, what)
            resize(ROOM)
            yield 1, [*faults, *_ends(stage, tables, whole, cut, what)]


@contextmanager
def _disk(place: Path, room: int) -> Iterator[Callable[[int], None] | None]:
    """A disk with so much room in a folder; yields a function that changes its size, or None
    without permission."""

    def mount(options: str) -> int:
        words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        return subprocess.run(words, capture_output=True, check=False).returncode

    if shutil.which("mount") is None or mount(f"size={max(room, 4096)}"):
        yield None
        return
    try:
        yield lambda size: mount(f"remount,size={size}") and None
    finally:
        subprocess.run(["umount", str(place)], check=True)


def _contents(folder: Path) -> dict[str, bytes]:
    """The files that count: not the lock, nor what tells when and for how long it ran, or the times
    of files."""
    left_out = {runs.LOCK, runs.HEALTH, runs.CONFIG, CARD, integrity.CHECKED}
    files = (
        path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in left_out
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _half_written(stage: str, whole: Path, cut: Path, what: str) -> Iterator[str]:
    """What a stopped stage left under a final name is complete."""
    name = STAGES[stage][1]
    expected = _contents(whole / name)
    if stage == "prepare" and (cut / name).exists() and _contents(cut / name) != expected:
        yield f"{what}: {name} is not complete"
    for path, content in _contents(cut / name).items() if stage != "prepare" else ():
        if path in expected and path not in GROWING and content != expected[path]:
            yield f"{what}: {name}/{path} has other bytes"


def _ends(stage: str, tables: Path, whole: Path, cut: Path, what: str) -> Iterator[str]:
    """The same call again ends in the same bytes, and leaves nothing else."""
    name = STAGES[stage][1]
    if not (stage == "prepare" and (cut / name).exists()) and (
        code := run(work, stage, tables, cut)
    ):
        yield f"{what}: the same call again ended with exit code {code}"
        return
    found, expected = (_contents(place / name) for place in (cut, whole))
    if stage == "train":
        found.pop(runs.CHECKPOINT, None)  # of one killed just after it had written the model
    if found != expected:
        differ = sorted(
            path for path in found.keys() | expected.keys() if found.get(path) != expected.get(path)
        )
        yield f"{what}: ended with other bytes in {differ}"
    if left := sorted(
        path.name for path in cut.iterdir() if path.name not in (name, f".{name}-prepare.lock")
    ):
        yield f"{what}: left {left}"
