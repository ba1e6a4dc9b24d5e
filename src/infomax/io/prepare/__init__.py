"""From tables of any size to a graph folder, in bounded memory."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from infomax.errors import InputError
from infomax.io.atomic import locked, make_folder, refuse_existing, writable
from infomax.io.columns import Columns
from infomax.io.known import read_like
from infomax.io.prepare.database import ANEW
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
    lie in a hidden folder beside ``out`` until the graph folder is whole and moved to its place; the same call goes on
    with the stage in which an earlier one was interrupted.

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
    work = place.with_name(f".{place.name}-prepare")
    lock = work.with_name(f"{work.name}.lock")
    if (
        place.exists() and not (work / GRAPH).exists()
    ):  # stopped, maybe, between moving the graph and cleaning up
        shutil.rmtree(work, ignore_errors=True)
        with suppress(OSError):  # Windows keeps one that is held
            lock.unlink(missing_ok=True)
    refuse_existing(place)
    from infomax.io.finding import find_tables  # which works with what is here

    tables = find_tables(edges, nodes, chosen)
    memory = memory or min(MEMORY, int(FREE * free_bytes()))
    make_folder(work)
    with locked(lock, place), writable(place, "a place where a folder can be written"):
        try:
            Preparation(work, tables, bool(directed), half, memory).run(progress)
        except InputError as error:
            if (
                error.__cause__ is None
            ):  # a fault in the tables or in work files: there is nothing to go on with
                shutil.rmtree(work)
            raise
        except FileNotFoundError as error:
            shutil.rmtree(work, ignore_errors=True)
            found = f"no {error.filename}"
            raise InputError(str(place), "all work files of an earlier call", found, ANEW) from None
        (work / GRAPH).replace(place)
        shutil.rmtree(work)
