"""Write the vectors of a graph folder to disk, block by block."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError
from infomax.graphs.folder import folder_hash
from infomax.graphs.graph import Graph
from infomax.graphs.scaling import Scaler
from infomax.io.atomic import make_folder, remove_leftovers, replacing
from infomax.io.folder import ArrayWriter
from infomax.io.json import read_json, to_json, write_json
from infomax.io.locking import locked
from infomax.io.parquet import need_pyarrow
from infomax.kernels.ranks import Ranks
from infomax.parts.encoders import Encoder
from infomax.progress import Progress, silent
from infomax.training.stored import StoredEncoder, blocks

PART = 1 << 20
"""Nodes per file in a folder of parts."""
ABOUT, LAYERS = "_parts.json", ".layers"  # readers of parquet folders skip such names
FORMATS = (".parquet", ".npy")
"""File formats that can be written without all vectors in memory."""

Rows = Callable[[int, int], NDArray[np.float32]]
"""A function that returns the vectors of the nodes from start to stop."""


def write_vectors(
    encoder: Encoder,
    graph: Graph,
    scaler: Scaler,
    out: Path,
    *,
    smooth: int = 0,
    half: bool = False,
    progress: Progress = silent,
) -> None:
    """Write the vectors of all nodes: to one file, .parquet or .npy, or to a folder of parts, ``part-00000.parquet``...

    Existing parts are not computed again, so the same call resumes an interrupted one. The processes of a process group
    share the parts.

    Args:
        encoder: the trained encoder.
        graph: a graph opened from a graph folder.
        scaler: the fitted scaler of its features.
        out: a file, or a folder if it has no extension.
        smooth: number of hops to smooth the vectors over.
        half: whether to write in half precision.
        progress: called with the number of nodes done.
    """
    stored, n = StoredEncoder(encoder, graph, scaler), graph.num_nodes
    if out.suffix:
        if (count := Ranks.current().count) > 1:
            remedy = "Leave out the extension: vectors/."
            raise InputError(str(out), f"a folder of parts, which {count} processes can share", "one file", remedy)
        work = out.with_name(f".{out.name}-layers")
        rows = _passes(stored, work, smooth)
        with replacing(out) as temporary:
            writer = _write_parquet if out.suffix.lower() == ".parquet" else _write_npy
            writer(temporary, graph, rows, 0, n, half, progress)
        shutil.rmtree(work, ignore_errors=True)
        return
    ranks, described = Ranks.current(), _described(encoder, graph, scaler, smooth, half)
    paths = {first: out / f"part-{first // PART:05d}.parquet" for first in range(0, n, PART)}
    with ExitStack() as held:
        with ranks.together() as same:
            same |= {name: str(value) for name, value in described.items()}
            if ranks.rank == 0:
                make_folder(out)
                held.enter_context(locked(out / ".lock", out))
                _same_vectors(out, described)
            missing = [first for first, path in paths.items() if not path.exists()]
        if not missing:
            return
        if ranks.rank:
            ranks.wait()  # for the layers
        rows = _passes(stored, out / LAYERS, smooth)
        if ranks.rank == 0:
            ranks.wait()
        for first in missing[ranks.rank :: ranks.count]:
            remove_leftovers(paths[first], all_of_them=True)
            with replacing(paths[first]) as temporary:
                _write_parquet(temporary, graph, rows, first, min(first + PART, n), half, progress)
        ranks.wait()
        if ranks.rank == 0:
            shutil.rmtree(out / LAYERS, ignore_errors=True)


def _passes(stored: StoredEncoder, work: Path, smooth: int) -> Rows:
    """Prepare all vectors, with files of intermediate layers if the encoder is deep or vectors are smoothed."""
    if smooth or stored.encoder.depth > 1:
        make_folder(work)
    return stored.layers(work, smooth)


def _described(encoder: Encoder, graph: Graph, scaler: Scaler, smooth: int, half: bool) -> dict[str, Any]:
    """Describe all that the vectors depend on, as JSON values."""
    content = hashlib.sha256(to_json([scaler.kind, scaler.mean, scaler.deviation]).encode())
    for name, weight in encoder.state_dict().items():
        content.update(name.encode() + weight.cpu().numpy().tobytes())
    assert graph.folder is not None  # noqa: S101  only graph folders are embedded in parts
    made = {"encoder": content.hexdigest(), "graph": folder_hash(graph.folder)}
    return made | {"nodes": graph.num_nodes, "smooth": smooth, "half": half, "nodes_per_part": PART}


def _same_vectors(out: Path, described: dict[str, Any]) -> None:
    """Raise InputError for a folder with other vectors; in a new folder, write the description."""
    if (out / ABOUT).exists():
        found = read_json(out / ABOUT, "Remove the folder, or choose another.")
        if found != described:
            names = ", ".join(name for name, value in described.items() if found.get(name) != value)
            remedy = "Remove the folder, or choose another."
            raise InputError(str(out), "a new folder, or parts of the same vectors", f"others (by {names})", remedy)
        return
    if any(out.glob("part-*.parquet")):
        raise InputError(str(out), "a new folder", "one with parts of other vectors", "Choose another.")
    write_json(out / ABOUT, described)


def _write_parquet(path: Path, graph: Graph, rows: Rows, start: int, stop: int, half: bool, progress: Progress) -> None:
    """Write columns ``id`` and ``vector`` of the nodes from start to stop."""
    pyarrow, parquet = need_pyarrow(path)
    ids: Any = graph.ids
    writer = None
    try:
        for first, last, block in _blocks(rows, start, stop, half, progress):
            flat = pyarrow.array(block.ravel())
            vector = pyarrow.FixedSizeListArray.from_arrays(flat, block.shape[1])
            table = pyarrow.table({"id": ids.arrow(first, last), "vector": vector})
            # The numbers hardly repeat, so a dictionary or compression would save little.
            writer = writer or parquet.ParquetWriter(path, table.schema, use_dictionary=False, compression="none")
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _write_npy(path: Path, graph: Graph, rows: Rows, start: int, stop: int, half: bool, progress: Progress) -> None:
    width = rows(start, min(start + 1, stop)).shape[1]
    with ArrayWriter(path, np.float16 if half else np.float32, width) as writer:
        for _, _, block in _blocks(rows, start, stop, half, progress):
            writer.append(block)


def _blocks(
    rows: Rows, start: int, stop: int, half: bool, progress: Progress
) -> Iterator[tuple[int, int, NDArray[Any]]]:
    for first, last in blocks(start, stop):
        block = rows(first, last)
        yield first, last, block.astype(np.float16) if half else block
        progress(last, "nodes")
