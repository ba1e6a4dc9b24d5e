"""The vectors of a graph: of all its nodes or of some, in memory; or written, block by block."""

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
from infomax.io.parts import ABOUT_FILE, Note, describe_damage, expected_parts, refuse_other_parts
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

MOST_NODES_AROUND = 0.25
"""The share of all nodes on which the vectors of some nodes may depend to be embedded alone.

Where they depend on more, one pass over all nodes is faster.
"""
BLOCKWISE_FORMATS = (".parquet", ".npy")
"""The formats of one file that vectors are written to block by block."""
NODES_PER_PART = 1 << 20
"""Nodes per file in a folder of parts."""
PASSES_FOLDER = ".layers"
"""The folder, in a folder of parts, of the passes: readers of parquet folders skip such names."""
WRITER_THREADS = {"cpu": 1, "cuda": 8}
"""Parts that are written at a time: a GPU computes vectors faster than one thread writes them."""


# Vectors in memory


def embed(
    recipe: Recipe,
    graph: Graph,
    device: str,
    *,
    rows: NDArray[np.int64] | None = None,
    outside_parts: Mapping[str, Any] | None = None,
) -> NDArray[np.float32]:
    """The vectors ``[N, d]`` of a graph, or those of some rows, ascending.

    The arguments are those of `embedder`.
    """
    if rows is not None:
        cpu = torch.device("cpu")
        return embed_some(recipe, graph, device, rows, outside_parts, cpu).numpy()
    engine = embedder(recipe, graph, device, outside_parts=outside_parts)
    vectors = engine.all()
    engine.close()
    return vectors


def embed_some(
    recipe: Recipe,
    graph: Graph,
    device: str,
    rows: NDArray[np.int64],
    outside_parts: Mapping[str, Any] | None = None,
    output_device: torch.device | None = None,
) -> Tensor:
    """The vectors ``[n, d]`` of some rows, ascending.

    Args:
        recipe: what vectors are made of.
        graph: the graph, in memory or on disk.
        device: where they are computed, by name.
        rows: the nodes.
        outside_parts: parts ``[N, K]`` that are computed elsewhere.
        output_device: where the vectors are returned; None: the device that computes them.
    """
    # A graph on disk whose vectors need no pass over all nodes is read where it is.
    needs_passes = recipe.hops > 0 or "pooled" in recipe.parts
    is_read_directly = graph.folder is not None and not needs_passes
    are_few_rows = len(rows) < graph.num_nodes
    if are_few_rows and not is_read_directly and not recipe.encoder.needs_whole_graph:
        node_count = sum(nodes.num_nodes for nodes in graph.nodes.values())
        bytes_per_node = max(nodes.table.bytes_to_load(1) for nodes in graph.nodes.values())
        most_in_memory = 4 * memory.BYTES_PER_BLOCK / max(bytes_per_node, 1)
        most_nodes = min(MOST_NODES_AROUND * node_count, most_in_memory)
        backend = Backend.of_embedding(choose_device(device), len(rows) * recipe.encoder.out_dim)
        parts_of_rows = {name: part[rows] for name, part in (outside_parts or {}).items()}
        vectors = embed_near(recipe, graph, rows, backend, parts_of_rows, most_nodes)
        if vectors is not None:
            return torch.from_numpy(vectors).to(output_device or backend.device)

    engine = embedder(recipe, graph, device, rows=rows, outside_parts=outside_parts)
    selected = engine.some(rows, output_device or engine.device)
    engine.close()
    return selected


def embed_near(
    recipe: Recipe,
    graph: Graph,
    rows: NDArray[np.int64],
    backend: Backend,
    outside_parts: Mapping[str, Any] | None = None,
    most_nodes: float = math.inf,
) -> NDArray[np.float32] | None:
    """The vectors ``[n, d]`` of some nodes, from the small graph `around` them.

    None is returned where that graph has too many nodes.

    Args:
        recipe: what vectors are made of.
        graph: the graph, in memory or on disk.
        rows: the nodes.
        backend: where vectors are computed.
        outside_parts: parts ``[n, K]`` of these nodes that are computed elsewhere.
        most_nodes: the most nodes of the small graph.
    """
    encoder = recipe.encoder
    paths, senders_weigh = walks(graph, encoder.rule, encoder.depth + recipe.hops)
    small_graph = around(graph, rows, paths, senders_weigh, most_nodes)
    if small_graph is None:
        return None
    engine = Embedder.of(recipe, small_graph, backend, outside_parts)
    vectors = engine.first(len(rows))
    engine.close()
    return vectors


def embedder(
    recipe: Recipe,
    graph: Graph,
    device: str,
    *,
    rows: NDArray[np.int64] | None = None,
    outside_parts: Mapping[str, Any] | None = None,
) -> Embedder:
    """The embedder of a graph, in memory or on disk; refused where memory is short.

    Args:
        recipe: what vectors are made of.
        graph: the graph.
        device: where vectors are computed, by name.
        rows: the nodes that will be asked for; None: all.
        outside_parts: parts ``[N, K]`` that are computed elsewhere.
    """
    if graph.table.mapped:
        cpu = torch.device("cpu")
        vector_count = graph.num_nodes if rows is None else len(rows)
        remedy = "Allow more memory."
        if rows is None:
            remedy = (
                "Embed to a .parquet, an .npy or a folder, which takes less; or allow more memory."
            )
        needed_bytes = memory.stored_bytes(graph) + 4 * vector_count * recipe.width
        room.require(needed_bytes, cpu, remedy=remedy)

        # Some rows are read by a CPU, which does not need the others.
        reads_rows_alone = rows is not None and not recipe.hops
        torch_device = cpu if reads_rows_alone else device_for_folder(graph, device)
        backend = Backend.of_embedding(torch_device, vector_count * recipe.width)
        return Embedder.of(recipe, graph, backend, outside_parts)

    torch_device = choose_device(device)
    room.require(memory.embedding_bytes(graph, recipe.width, torch_device), torch_device)
    backend = Backend.of_embedding(torch_device, graph.num_nodes * recipe.encoder.out_dim)
    return Embedder.of(recipe, graph, backend, outside_parts)


def device_for_folder(graph: Graph, name: str) -> torch.device:
    """Choose the device to embed a graph folder on.

    ``auto`` is the GPU if there is one with room for the graph.
    """
    device = choose_device(name)
    if device.type == "cuda":
        needed_bytes = memory.resident_bytes(graph) + 4 * graph.num_nodes * graph.num_features
        if name != "auto" or needed_bytes < room.available_bytes(device):
            room.require(needed_bytes, device)
            return device
    room.require(memory.stored_bytes(graph), torch.device("cpu"), Ranks.current().on_this_host)
    return torch.device("cpu")


# Vectors on disk


def write_embedding(
    recipe: Recipe,
    graph: Graph,
    out: Path,
    *,
    device: str,
    outside_parts: Mapping[str, Any] | None = None,
    half: bool = False,
    check: bool = True,
    progress: Progress = silent,
) -> None:
    """Write the vectors of all nodes to one file, or to a folder of parts.

    A file is .parquet or .npy; parts are ``part-00000.parquet`` and so on. Existing parts are not
    computed again unless they are damaged, so the same call resumes an interrupted one. The
    processes of a process group share the parts. A GPU must have room for the whole graph.

    Args:
        recipe: what vectors are made of.
        graph: the graph.
        out: the file or the folder.
        device: where vectors are computed, by name.
        outside_parts: parts ``[N, K]`` that are computed elsewhere.
        half: whether vectors are written in half precision.
        check: whether existing parts are read whole; else those of a finished folder are checked by
            their footers.
        progress: is called with the number of nodes that are written.
    """
    node_count = graph.num_nodes
    ranks = Ranks.current()
    torch_device = device_for_folder(graph, device)
    backend = Backend(torch_device)
    # All that vectors depend on: parts of other vectors are never mixed with these.
    description: dict[str, Any] = {
        "model": recipe.hash,
        "graph": graph_fingerprint(graph)["graph"],
        "vectors": ",".join(recipe.parts) or PAPER,
        "nodes": node_count,
        "half": half,
        "nodes_per_part": NODES_PER_PART,
    }
    description_hash = json_hash(description)

    if out.suffix:
        _refuse_file(out, ranks.count)
        work_folder = out.with_name(f".{out.name}-layers") / description_hash
        engine = Embedder.of(recipe, graph, backend, outside_parts, work_folder)
        _write_file(Writer(engine, graph, half, progress), out)
        return

    notes = expected_parts(description_hash, node_count, NODES_PER_PART)
    if not check and ranks.count == 1 and _is_finished(out, description, notes):
        return  # the folder may be one that cannot be written
    with ExitStack() as locks:
        # All processes must write the same vectors; the first one prepares the folder for them.
        with ranks.together() as shared_values:
            shared_values |= {name: str(value) for name, value in description.items()}
            if ranks.rank == 0:
                make_folder(out)
                locks.enter_context(locked(out / ".lock", out))
                _prepare_folder(out, description, notes, check, WRITER_THREADS[torch_device.type])

        missing_parts = [name for name in notes if not (out / name).exists()]
        if missing_parts:
            work_folder = out / PASSES_FOLDER / description_hash
            engine = Embedder.of(recipe, graph, backend, outside_parts, work_folder)
            # The first process computes the passes, which the others then read.
            if ranks.rank:
                ranks.wait()
            writer = Writer(engine, graph, half, progress)
            if ranks.rank == 0:
                ranks.wait()
            missing_count = sum(notes[name].stop - notes[name].first for name in missing_parts)
            writer.written_count = node_count - missing_count

            def write_part(name: str) -> None:
                remove_leftovers(out / name)
                with replacing(out / name) as temporary:
                    writer.write(temporary, notes[name].first, notes[name].stop, notes[name])

            parts_of_rank = missing_parts[ranks.rank :: ranks.count]
            _in_threads(write_part, parts_of_rank, WRITER_THREADS[torch_device.type])
            # The files of passes stay mapped as long as something refers to them.
            engine.close()
        ranks.wait()
        if ranks.rank == 0:
            shutil.rmtree(out / PASSES_FOLDER, ignore_errors=True)


def _refuse_file(out: Path, process_count: int) -> None:
    """Refuse one file of another format, or by several processes."""
    if out.suffix.lower() not in BLOCKWISE_FORMATS:
        raise other_extension(out, BLOCKWISE_FORMATS)
    if process_count > 1:
        expected = f"a folder of parts, which {process_count} processes can share"
        raise InputError(str(out), expected, "one file", "Leave out the extension: vectors/.")


def _write_file(writer: Writer, out: Path) -> None:
    """Write the vectors of all nodes to one file; the files of the passes are removed."""
    engine = writer.embedder
    with replacing(out) as temporary:
        writer.write(temporary, 0, engine.n)
    engine.close()
    shutil.rmtree(engine.work_folder.parent, ignore_errors=True)


def _is_finished(out: Path, description: dict[str, Any], notes: dict[str, Note]) -> bool:
    """Whether a folder holds all parts, by their footers.

    A folder with parts of other vectors is refused.
    """
    refuse_other_parts(out, description, notes)
    return all(
        (out / name).exists() and not describe_damage(out / name, note)
        for name, note in notes.items()
    )


def _prepare_folder(
    out: Path, description: dict[str, Any], notes: dict[str, Note], check: bool, threads: int
) -> None:
    """Begin a folder of parts, or remove damaged ones from it and say so.

    A folder with parts of other vectors is refused.
    """
    refuse_other_parts(out, description, notes)

    def examine(name: str) -> None:
        part = out / name
        reason = describe_damage(part, notes[name], reads_all_pages=check) if part.exists() else ""
        if reason:
            warn(f"{part}: found {reason}. Its vectors are computed again.")
            part.unlink()

    _in_threads(examine, list(notes), threads)
    if not (out / ABOUT_FILE).exists():
        write_json(out / ABOUT_FILE, description)


def _in_threads(work: Callable[[str], None], parts: list[str], threads: int) -> None:
    """Do some work for each part, on several threads at a time.

    After an exception, no other work begins.
    """
    if threads == 1:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, parts))


class Writer:
    """Writes the vectors of some nodes to files, block by block; several threads may do so."""

    def __init__(self, embedder: Embedder, graph: Graph, half: bool, progress: Progress) -> None:
        self.embedder = embedder
        recipe = embedder.recipe
        work_folder = embedder.work_folder
        self.ids: Any = graph.ids
        self.names: Any = graph.node_names

        # Passes before the last are files. Those of other vectors are of no use any more.
        if recipe.hops or recipe.encoder.depth > 1 or graph.has_named_types:
            make_folder(work_folder)
            folders = set(work_folder.parent.glob("?" * len(work_folder.name)))
            for other_folder in folders - {work_folder}:
                shutil.rmtree(other_folder, ignore_errors=True)
        self.embedder.prepare()
        self.dtype = torch.float16 if half else torch.float32
        self.progress = progress
        self.written_count = 0
        self.lock = Lock()

    def write(self, path: Path, start: int, stop: int, note: Note | None = None) -> None:
        """Write the nodes from start to stop.

        Args:
            path: .npy, or .parquet with columns of ids and names.
            start: the first node.
            stop: the node after the last.
            note: what the footer of a part says of it.
        """
        recipe = self.embedder.recipe
        blocks = self._blocks(start, stop)
        if path.suffix.lower() == ".npy":
            dtype = np.float16 if self.dtype is torch.float16 else np.float32
            with ArrayWriter(path, dtype, recipe.width) as writer:
                for _, _, block in blocks:
                    writer.append(block)
            return

        def columns() -> Iterator[tuple[Any, NDArray[Any], Any]]:
            for first, last, block in blocks:
                names = None if self.names is None else self.names.arrow(first, last)
                yield self.ids.arrow(first, last), block, names

        metadata = None if note is None else note.metadata
        write_blocks(path, columns(), metadata, recipe.hash, recipe.parts)

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """The vectors of the nodes from start to stop, each block with its first and last node."""
        for first, last in self.embedder.blocks(start, stop):
            yield first, last, self.embedder.rows(first, last).to(self.dtype).cpu().numpy()
            with self.lock:
                self.written_count += last - first
                self.progress(self.written_count, "nodes")
