"""From tables of any size to a graph folder, in bounded memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from infomax.io.atomic import locked, make_folder, refuse_existing, writable
from infomax.io.columns import Columns
from infomax.io.known import read_like
from infomax.io.prepare.on_disk import GRAPH, Preparation
from infomax.io.record import Record
from infomax.memory import free_bytes
from infomax.progress import Progress, silent

__all__ = ["prepare"]

MEMORY = 4 * 10**9
"""Bytes to work in where the caller names none and as many are free."""
FREE = 0.8
"""The share of the free memory to work in where that is less."""


def prepare(
    edges: str | Path,
    nodes: str | Path | None = None,
    *,
    out: str | Path,
    directed: bool | None = None,
    half: bool = False,
    memory: int | None = None,
    like: Record | None = None,
    progress: Progress = silent,
    **columns: Any,
) -> None:
    """Write a graph folder from an edge table and a node table that need not fit into memory.

    The tables are read as `infomax.read_graph` reads them, and make the same graph; `Graph.open` opens it. Work files
    lie in a hidden folder beside ``out`` until the graph folder is whole and moved to its place. An interruption
    removes the work files; those of a process that was killed are removed by the next call.

    Args:
        edges: the edge table: one file, a folder of files or a pattern such as ``edges/*.parquet``; or all tables, by
            any name that `infomax.read_graph` takes.
        nodes: the node table, likewise.
        out: the folder to write.
        directed: keep the arrows. None: as in ``like``, else not.
        half: store features in half precision.
        memory: bytes to work in, about. None: 4 GB, or 80 % of the free memory where that is less.
        like: an earlier graph, by which columns become features, for a model that was fitted to it.
        progress: called after each stage.
        columns: labels, features, ignore, columns, id, name, source, target, weight, time, as_of, types,
            edge_type, node_type and edges_as as in `infomax.read_graph`.
    """
    place = Path(out)
    chosen, directed = read_like(Columns.of(**columns), like, directed)
    refuse_existing(place)
    from infomax.io.finding import find_tables  # which works with what is here

    tables = find_tables(edges, nodes, chosen)
    memory = memory or min(MEMORY, int(FREE * free_bytes()))

    work = place.with_name(f".{place.name}-prepare")
    make_folder(place.parent)
    with (
        locked(work.with_name(f"{work.name}.lock"), place),
        writable(place, "a place where a folder can be written"),
    ):
        shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
        make_folder(work)
        try:
            Preparation(work, tables, bool(directed), half, memory).run(progress)
            (work / GRAPH).replace(place)
        finally:
            shutil.rmtree(work, ignore_errors=True)
