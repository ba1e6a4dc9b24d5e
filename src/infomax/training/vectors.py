"""The vectors of a graph, or of some of its nodes, in memory; and those of a graph folder, block by block to disk."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax import memory
from infomax.errors import InputError, other_extension, warn
from infomax.graphs.graph import Graph
from infomax.io.array_files import ArrayWriter
from infomax.io.atomic import locked, make_folder, remove_leftovers, replacing
from infomax.io.json import json_hash, write_json
from infomax.io.parts import ABOUT, Note, damage, expected_parts, refuse_other_parts
from infomax.io.vectors import write_blocks
from infomax.kernels import Backend, room
from infomax.kernels.device import choose_device
from infomax.kernels.ranks import Ranks
from infomax.parts.vectors import PAPER
from infomax.progress import Progress, silent
from infomax.training.embed import Embedder
from infomax.training.recipe import Recipe
from infomax.training.resuming import graph_fingerprint
from infomax.views.around import around
from infomax.views.steps import walks

SHARE = 0.25
"""Where the vectors of some nodes depend on a larger share of all nodes than this, one pass over all is faster."""
FILES = (".parquet", ".npy")
PART = 1 << 20
"""Nodes per file in a folder of parts."""
LAYERS = ".layers"  # readers of parquet folders skip such names
WRITERS = {"cpu": 1, "cuda": 8}
"""Parts that are written at a time: a GPU computes vectors faster than one thread writes them."""


def embed(
    recipe: Recipe,
    graph: Graph,
    device: str,
    *,
    rows: NDArray[np.int64] | None = None,
    given: Mapping[str, Any] | None = None,
) -> NDArray[np.float32]:
    """The vectors ``[N, d]`` of a graph, or those of some rows, ascending; the arguments are those of `embedder`."""
    if rows is not None:
        return embed_some(recipe, graph, device, rows, given, torch.device("cpu")).numpy()
    engine = embedder(recipe, graph, device, given=given)
    vectors = engine.all()
    engine.close()
    return vectors


def embed_some(
    recipe: Recipe,
    graph: Graph,
    device: str,
    rows: NDArray[np.int64],
    given: Mapping[str, Any] | None = None,
    to: torch.device | None = None,
) -> Tensor:
    """The vectors ``[n, d]`` of some rows, ascending, on a device; None: the one that computes them."""
    # A graph on disk whose vectors need no pass over all nodes is read as it is.
    needs_passes = recipe.hops > 0 or "pooled" in recipe.parts
    is_read_directly = graph.folder is not None and not needs_passes
    if (
        len(rows) < graph.num_nodes
        and not is_read_directly
        and not recipe.encoder.needs_whole_graph
    ):
        node_count = sum(nodes.num_nodes for nodes in graph.nodes.values())
        bytes_per_node = max(nodes.table.bytes_to_load(1) for nodes in graph.nodes.values())
        most_nodes = min(SHARE * node_count, 4 * memory.BYTES_PER_BLOCK / max(bytes_per_node, 1))
        backend = Backend.of_embedding(choose_device(device), len(rows) * recipe.encoder.out_dim)
        given_rows = {name: part[rows] for name, part in (given or {}).items()}
        vectors = embed_near(recipe, graph, rows, backend, given_rows, most_nodes)
        if vectors is not None:
            return torch.from_numpy(vectors).to(to or backend.device)

    engine = embedder(recipe, graph, device, rows=rows, given=given)
    selected = engine.some(rows, to or engine.device)
    engine.close()
    return selected


def embed_near(
    recipe: Recipe,
    graph: Graph,
    rows: NDArray[np.int64],
    backend: Backend,
    given: Mapping[str, Any] | None = None,
    most_nodes: float = math.inf,
) -> NDArray[np.float32] | None:
    """The vectors ``[n, d]`` of some nodes, from the small graph `around` them; None where that has too many nodes.

    ``given`` are their parts ``[n, K]`` that are computed elsewhere.
    """
    encoder = recipe.encoder
    paths_and_hops = walks(graph, encoder.rule, encoder.depth + recipe.hops)
    small_graph = around(graph, rows, *paths_and_hops, most_nodes)
    if small_graph is None:
        return None
    engine = Embedder.of(recipe, small_graph, backend, given)
    vectors = engine.first(len(rows))
    engine.close()
    return vectors


def embedder(
    recipe: Recipe,
    graph: Graph,
    device: str,
    *,
    rows: NDArray[np.int64] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Embedder:
    """The embedder of a graph, in memory or on disk; refused where memory is short.

    ``rows`` are the nodes that will be asked for; ``given`` are parts ``[N, K]`` that are computed elsewhere.
    """
    if graph.table.mapped:
        cpu = torch.device("cpu")
        vector_count = graph.num_nodes if rows is None else len(rows)
        remedy = "Allow more memory."
        if rows is None:
            remedy = (
                "Embed to a .parquet, an .npy or a folder, which takes less; or allow more memory."
            )
        needed = memory.stored_bytes(graph) + 4 * vector_count * recipe.width
        room.require(needed, cpu, remedy=remedy)

        # Some rows are read by a CPU, which does not need the others.
        reads_rows_alone = rows is not None and not recipe.hops
        torch_device = cpu if reads_rows_alone else device_for_folder(graph, device)
        backend = Backend.of_embedding(torch_device, vector_count * recipe.width)
        return Embedder.of(recipe, graph, backend, given)

    torch_device = choose_device(device)
    room.require(memory.embedding_bytes(graph, recipe.width, torch_device), torch_device)
    backend = Backend.of_embedding(torch_device, graph.num_nodes * recipe.encoder.out_dim)
    return Embedder.of(recipe, graph, backend, given)


def device_for_folder(graph: Graph, name: str) -> torch.device:
    """Choose the device to embed a graph folder on: ``auto`` is the GPU if there is one with room for the graph."""
    device = choose_device(name)
    if device.type == "cuda":
        needed = memory.resident_bytes(graph) + 4 * graph.num_nodes * graph.num_features
        if name != "auto" or needed < room.available_bytes(device):
            room.require(needed, device)
            return device
    room.require(memory.stored_bytes(graph), torch.device("cpu"), Ranks.current().on_this_host)
    return torch.device("cpu")


def write_embedding(
    recipe: Recipe,
    graph: Graph,
    out: Path,
    *,
    device: str,
    given: Mapping[str, Any] | None = None,
    half: bool = False,
    check: bool = True,
    progress: Progress = silent,
) -> None:
    """Write the vectors of all nodes: to one file, .parquet or .npy, or to a folder of parts, ``part-00000.parquet``...

    Existing parts are not computed again unless they are damaged, so the same call resumes an interrupted one. The
    processes of a process group share the parts. A GPU must have room for the whole graph. With ``check`` existing
    parts are read in whole; else those of a finished folder are checked by their footers.
    """
    node_count = graph.num_nodes
    ranks = Ranks.current()
    torch_device = device_for_folder(graph, device)
    backend = Backend(torch_device)
    described: dict[str, Any] = {
        "model": recipe.hash,
        "graph": graph_fingerprint(graph)["graph"],
        "vectors": ",".join(recipe.parts) or PAPER,
        "nodes": node_count,
        "half": half,
        "nodes_per_part": PART,
    }
    run = json_hash(described)
    if out.suffix:
        _refuse_file(out, ranks.count)
        engine = Embedder.of(
            recipe, graph, backend, given, out.with_name(f".{out.name}-layers") / run
        )
        _write_file(Writer(engine, graph, half, progress), out)
        return
    notes = expected_parts(run, node_count, PART)
    if not check and ranks.count == 1 and _finished(out, described, notes):
        return  # the folder may be one that cannot be written
    with ExitStack() as held:
        with ranks.together() as same:
            same |= {name: str(value) for name, value in described.items()}
            if ranks.rank == 0:
                make_folder(out)
                held.enter_context(locked(out / ".lock", out))
                _prepare(out, described, notes, check, WRITERS[torch_device.type])
        missing = [name for name in notes if not (out / name).exists()]
        if missing:
            engine = Embedder.of(recipe, graph, backend, given, out / LAYERS / run)
            if ranks.rank:
                ranks.wait()  # for the layers
            writer = Writer(engine, graph, half, progress)
            if ranks.rank == 0:
                ranks.wait()
            missing_count = sum(notes[name].stop - notes[name].first for name in missing)
            writer.done = node_count - missing_count

            def write(name: str) -> None:
                remove_leftovers(out / name)
                with replacing(out / name) as temporary:
                    writer.write(temporary, notes[name].first, notes[name].stop, notes[name])

            _in_threads(write, missing[ranks.rank :: ranks.count], WRITERS[torch_device.type])
            engine.close()  # the files of its passes stay mapped as long as something refers to them
        ranks.wait()
        if ranks.rank == 0:
            shutil.rmtree(out / LAYERS, ignore_errors=True)


def _refuse_file(out: Path, processes: int) -> None:
    """Refuse one file of another format, or by several processes."""
    if out.suffix.lower() not in FILES:
        raise other_extension(out, FILES)
    if processes > 1:
        expected = f"a folder of parts, which {processes} processes can share"
        raise InputError(str(out), expected, "one file", "Leave out the extension: vectors/.")


def _write_file(writer: Writer, out: Path) -> None:
    """Write the vectors of all nodes to one file; the files of the passes before are removed."""
    engine = writer.embedder
    with replacing(out) as temporary:
        writer.write(temporary, 0, engine.n)
    engine.close()
    shutil.rmtree(engine.work.parent, ignore_errors=True)


def _finished(out: Path, described: dict[str, Any], notes: dict[str, Note]) -> bool:
    """Whether a folder holds all parts, by their footers; refuse one with parts of other vectors."""
    refuse_other_parts(out, described, notes)
    return all(
        (out / name).exists() and not damage(out / name, note) for name, note in notes.items()
    )


def _prepare(
    out: Path, described: dict[str, Any], notes: dict[str, Note], check: bool, threads: int
) -> None:
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

    def __init__(self, embedder: Embedder, graph: Graph, half: bool, progress: Progress) -> None:
        self.embedder = embedder
        recipe = embedder.recipe
        work = embedder.work
        self.ids: Any = graph.ids
        self.names: Any = graph.node_names

        # Passes before the last are files. Those of another run are of no use any more.
        if recipe.hops or recipe.encoder.depth > 1 or graph.node_type:
            make_folder(work)
            for other in set(work.parent.glob("?" * len(work.name))) - {work}:
                shutil.rmtree(other, ignore_errors=True)
        self.embedder.prepare()
        self.dtype = torch.float16 if half else torch.float32
        self.progress = progress
        self.done = 0
        self.lock = Lock()

    def write(self, path: Path, start: int, stop: int, note: Note | None = None) -> None:
        """Write the nodes from start to stop: .npy, or the columns of .parquet; a part has a note of what it is."""
        recipe = self.embedder.recipe
        blocks = self._blocks(start, stop)
        if path.suffix.lower() == ".npy":
            dtype = np.float16 if self.dtype is torch.float16 else np.float32
            with ArrayWriter(path, dtype, recipe.width) as writer:
                for _, _, block in blocks:
                    writer.append(block)
            return
        parts = (
            (self.ids.arrow(first, last), block, self.names and self.names.arrow(first, last))
            for first, last, block in blocks
        )
        write_blocks(
            path, parts, None if note is None else note.metadata, recipe.hash, recipe.parts
        )

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        for first, last in self.embedder.blocks(start, stop):
            yield first, last, self.embedder.rows(first, last).to(self.dtype).cpu().numpy()
            with self.lock:
                self.done += last - first
                self.progress(self.done, "nodes")
