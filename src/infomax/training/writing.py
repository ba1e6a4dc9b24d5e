"""Write the vectors of a graph folder to disk, block by block."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.errors import InputError, warn
from infomax.graphs.graph import Graph
from infomax.io.array_files import ArrayWriter
from infomax.io.atomic import locked, make_folder, remove_leftovers, replacing
from infomax.io.json import json_hash, write_json
from infomax.io.parts import ABOUT, Note, damage, expected_parts, refuse_other_parts
from infomax.io.vectors import write_blocks
from infomax.kernels.ranks import Ranks
from infomax.parts.vectors import PAPER
from infomax.progress import Progress, silent
from infomax.training.embed import Embedder, OnDisk, blocks
from infomax.training.fingerprints import graph_fingerprint
from infomax.training.recipe import Recipe
from infomax.training.vectors import device_for_folder

PART = 1 << 20
"""Nodes per file in a folder of parts."""
LAYERS = ".layers"  # readers of parquet folders skip such names

WRITERS = {"cpu": 1, "cuda": 8}
"""Parts that are written at a time: a GPU computes vectors faster than one thread writes them."""


def write_embedding(
    recipe: Recipe,
    graph: Graph,
    out: Path,
    *,
    device: str,
    places: NDArray[np.float32] | None = None,
    half: bool = False,
    check: bool = True,
    progress: Progress = silent,
) -> None:
    """Write the vectors of all nodes: to one file, .parquet or .npy, or to a folder of parts, ``part-00000.parquet``...

    Existing parts are not computed again unless they are damaged, so the same call resumes an interrupted one. The
    processes of a process group share the parts. A GPU must have room for the whole graph. With ``check`` existing
    parts are read in whole; else those of a finished folder are checked by their footers.
    """
    n = graph.num_nodes
    ranks = Ranks.current()
    torch_device = device_for_folder(graph, device)
    described: dict[str, Any] = {"model": recipe.hash, "graph": graph_fingerprint(graph)["graph"]}
    described |= {"vectors": ",".join(recipe.parts) or PAPER, "nodes": n, "half": half, "nodes_per_part": PART}
    run = json_hash(described)
    if out.suffix:
        if ranks.count > 1:
            expected = f"a folder of parts, which {ranks.count} processes can share"
            raise InputError(str(out), expected, "one file", "Leave out the extension: vectors/.")
        work = out.with_name(f".{out.name}-layers")
        source = OnDisk(graph, recipe, torch_device, work / run, places)
        _write_file(Writer(recipe, graph, source, half, progress), out, n)
        shutil.rmtree(work, ignore_errors=True)
        return
    notes = expected_parts(run, n, PART)
    if not check and ranks.count == 1 and _finished(out, described, notes):
        return  # the folder may be one that cannot be written
    with ExitStack() as held:
        with ranks.together() as same:
            same |= {name: str(value) for name, value in described.items()}
            if ranks.rank == 0:
                make_folder(out)
                held.enter_context(locked(out / ".lock", out))
                _prepare(out, described, notes, check, WRITERS[torch_device.type])
        if missing := [name for name in notes if not (out / name).exists()]:
            source = OnDisk(graph, recipe, torch_device, out / LAYERS / run, places)
            if ranks.rank:
                ranks.wait()  # for the layers
            writer = Writer(recipe, graph, source, half, progress)
            if ranks.rank == 0:
                ranks.wait()
            writer.done = n - sum(notes[name].stop - notes[name].first for name in missing)

            def write(name: str) -> None:
                remove_leftovers(out / name, all_of_them=True)
                with replacing(out / name) as temporary:
                    writer.parquet(temporary, notes[name].first, notes[name].stop, notes[name])

            _in_threads(write, missing[ranks.rank :: ranks.count], WRITERS[torch_device.type])
        ranks.wait()
        if ranks.rank == 0:
            shutil.rmtree(out / LAYERS, ignore_errors=True)


def _write_file(writer: Writer, out: Path, n: int) -> None:
    """Write the vectors of all nodes to one file."""
    with replacing(out) as temporary:
        (writer.parquet if out.suffix.lower() == ".parquet" else writer.npy)(temporary, 0, n)


def _finished(out: Path, described: dict[str, Any], notes: dict[str, Note]) -> bool:
    """Whether a folder holds all parts, by their footers; refuse one with parts of other vectors."""
    refuse_other_parts(out, described, notes)
    return all((out / name).exists() and not damage(out / name, note) for name, note in notes.items())


def _prepare(out: Path, described: dict[str, Any], notes: dict[str, Note], check: bool, threads: int) -> None:
    """Begin a folder of parts, or remove damaged ones from it and say so; refuse one with parts of other vectors."""
    refuse_other_parts(out, described, notes)

    def examine(name: str) -> None:
        if (out / name).exists() and (reason := damage(out / name, notes[name], whole=check)):
            warn(f"{out / name}: found {reason}. Its vectors are computed again.")
            (out / name).unlink()

    _in_threads(examine, list(notes), threads)
    if not (out / ABOUT).exists():
        write_json(out / ABOUT, described)


def _in_threads(work: Callable[[str], None], parts: list[str], threads: int) -> None:
    """Do some work for each part, on several threads at a time; after an exception, no other work begins."""
    if threads == 1:
        for part in parts:
            work(part)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, parts))


class Writer:
    """Writes the vectors of some nodes to files, block by block; several threads may do so at a time."""

    def __init__(self, recipe: Recipe, graph: Graph, source: OnDisk, half: bool, progress: Progress) -> None:
        self.embedder = Embedder(recipe, source)
        self.model = recipe.hash
        self.ids: Any = graph.ids
        self.names: Any = graph.node_names
        if recipe.hops or recipe.encoder.depth > 1 or graph.kind:  # passes before the last are files
            make_folder(source.work)
            for other in set(source.work.parent.glob("?" * len(source.work.name))) - {source.work}:  # of another run
                shutil.rmtree(other, ignore_errors=True)
        self.embedder.prepare()
        self.dtype = torch.float16 if half else torch.float32
        self.progress = progress
        self.done = 0
        self.lock = Lock()

    def parquet(self, path: Path, start: int, stop: int, note: Note | None = None) -> None:
        """Write the columns of the nodes from start to stop; a part has a note of what it is."""
        parts = (
            (self.ids.arrow(first, last), block, self.names and self.names.arrow(first, last))
            for first, last, block in self._blocks(start, stop)
        )
        write_blocks(path, parts, None if note is None else note.metadata, self.model, self.embedder.recipe.parts)

    def npy(self, path: Path, start: int, stop: int) -> None:
        """Write the vectors of the nodes from start to stop."""
        dtype = np.float16 if self.dtype is torch.float16 else np.float32
        with ArrayWriter(path, dtype, self.embedder.recipe.width) as writer:
            for _, _, block in self._blocks(start, stop):
                writer.append(block)

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        for first, last in blocks(self.embedder.source, start, stop):
            yield first, last, self.embedder.rows(first, last).to(self.dtype).cpu().numpy()
            with self.lock:
                self.done += last - first
                self.progress(self.done, "nodes")
