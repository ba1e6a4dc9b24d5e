"""From tables of any size to a graph folder, in bounded memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from infomax.io.atomic import locked, make_folder, refuse_existing, writable
from infomax.io.choices import UserChoices, reading_like
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

    The tables are read as `infomax.read_graph` reads them, and make the same graph; `Graph.open`
    opens it. Work files lie in a hidden folder beside ``out`` until the graph folder is whole and
    moved to its place. An interruption removes the work files; those of a process that was killed
    are removed by the next call.

    Args:
        edges: the edge table: one file, a folder of files or a pattern such as ``edges/*.parquet``;
            or all tables, by any name that `infomax.read_graph` takes.
        nodes: the node table, likewise.
        out: the folder to write.
        directed: keep the arrows. None: as in ``like``, else not.
        half: store features in half precision.
        memory: bytes to work in, about. None: 4 GB, or 80 % of the free memory where that is less.
        like: an earlier graph, by which columns become features, for a model that was fitted to it.
        progress: called after each stage.
        columns: labels, features, ignore, columns, id, name, source, target, weight, time, as_of,
            types, edge_type, node_type and edges_as as in `infomax.read_graph`.
    """
    from infomax.io.reading import find_tables  # which works with what is in this folder

    out_path = Path(out)
    choices, directed = reading_like(UserChoices.of(**columns), like, directed)
    refuse_existing(out_path)
    tables = find_tables(edges, nodes, choices)
    memory = memory or min(MEMORY, int(FREE * free_bytes()))

    work = out_path.with_name(f".{out_path.name}-prepare")
    make_folder(out_path.parent)
    with (
        locked(work.with_name(f"{work.name}.lock"), out_path),
        writable(out_path, "a place where a folder can be written"),
    ):
        shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
        make_folder(work)
        try:
            Preparation(work, tables, bool(directed), half, memory).run(progress)
            (work / GRAPH).replace(out_path)
        finally:
            shutil.rmtree(work, ignore_errors=True)
