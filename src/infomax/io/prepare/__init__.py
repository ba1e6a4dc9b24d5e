"""From tables of any size to a graph folder, in bounded memory."""

from __future__ import annotations

import os
import shutil
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from infomax import machine
from infomax.errors import InputError, other_extension
from infomax.io import text
from infomax.io.atomic import locked, make_folder, refuse_existing, writable
from infomax.io.columns import DATABASE, Columns
from infomax.io.known import read_like
from infomax.io.other_tables import by_pandas
from infomax.io.prepare.database import ANEW
from infomax.io.prepare.on_disk import GRAPH, Preparation
from infomax.io.record import Record
from infomax.io.sources import EXTENSIONS, Source
from infomax.io.typed import Tables, is_typed, of_folder, of_one_type, of_tables
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
        edges: the edge table: one file, a folder of files or a pattern such as ``edges/*.parquet``.
        nodes: the node table, likewise.
        out: the folder to write.
        directed: keep the arrows. None: as in ``like``, else not.
        half: store features in half precision.
        memory: bytes to work in, about. None: 4 GB, or 80 % of the free memory where that is less.
        like: an earlier graph, by which columns become features, for a model that was fitted to it.
        progress: called after each stage.
        columns: labels, features, ignore, columns, id, name, source, target, weight, types,
            edge_type, node_type and edges_as as in `infomax.read_graph`.
    """
    place, chosen = Path(out), Columns.of(**columns)
    if like is not None:
        chosen, directed = read_like(chosen, like), like.directed if directed is None else directed
    work = place.with_name(f".{place.name}-prepare")
    if place.exists() and work.exists() and not (work / GRAPH).exists():
        shutil.rmtree(work, ignore_errors=True)  # stopped between moving the graph and cleaning up
    refuse_existing(place)
    if os.sep == "/" and (odd := {"\\", "?"} & set(str(place.resolve()))):
        found = f"one with {' and '.join(sorted(odd))} in it"
        raise InputError(str(place), "a path that DuckDB can open", found, "Choose another place.")
    tables = _tables(edges, nodes, chosen)
    memory = memory or min(MEMORY, int(FREE * machine.free_bytes()))
    make_folder(work)
    with locked(work.with_name(f"{work.name}.lock"), place), writable(place, "a place where a folder can be written"):
        try:
            Preparation(work, tables, bool(directed), half, memory).run(progress)
        except InputError as error:
            if error.__cause__ is None:  # a fault in the tables or in work files: there is nothing to go on with
                shutil.rmtree(work)
            raise
        except FileNotFoundError as error:
            shutil.rmtree(work, ignore_errors=True)
            found = f"no {error.filename}"
            raise InputError(str(place), "all work files of an earlier call", found, ANEW) from None
        (work / GRAPH).replace(place)
        shutil.rmtree(work)


def _tables(edges: str | Path, nodes: str | Path | None, columns: Columns) -> Tables:
    """The tables of a graph; one of one type has one type and one relation, both without a name."""
    from infomax.io.database import is_database, of_database  # which works with what is here

    if is_database(edges) and nodes is None:
        columns.refuse_other_types(edges, several=True)
        return of_database(edges, columns)
    columns.refuse(DATABASE, f"a database or a folder of tables with keys, rather than {edges}")
    columns.refuse_other_types(edges, several=is_typed(Path(edges)) or columns.as_before().typed)
    if is_typed(Path(edges)):
        if nodes is not None:
            raise InputError(str(nodes), f"no node table beside {edges}, which holds its own", "one")
        return of_folder(Path(edges), columns.as_before("edges_as"))
    columns = columns.as_before()
    columns.refuse(["as_of"], "a graph that is read into memory")
    pair = [file for stem in ("edges", "nodes") for file in sorted(Path(edges).glob(f"{stem}.*"))]
    if nodes is None and {file.stem for file in pair} == {"edges", "nodes"}:
        remedy = f"Name both: infomax prepare {pair[0]} {pair[-1]}."
        raise InputError(str(edges), "the files of an edge table", "a node table as well", remedy)
    edge_table = Source(_find_files(str(edges)), columns)
    node_table = None if nodes is None else Source(_find_files(str(nodes)), columns)
    columns = columns.with_timed_rows(edge_table.names, [] if node_table is None else node_table.names)
    if nodes is None and not columns.typed:
        columns.refuse_without_nodes(edges)
    if columns.typed:
        return of_tables(edge_table, node_table, columns)
    return of_one_type(edge_table, node_table, columns)


def _find_files(name: str) -> list[Path]:
    """The tables that a name means: a file, all tables in a folder, or those that a pattern such as ``*.csv`` fits."""
    path = Path(name)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if text.extension(file) in EXTENSIONS)
        found = "none in the folder"
    elif not path.exists() and has_magic(name):
        files, found = sorted(map(Path, glob(name, recursive=True))), "no file of such a name"  # noqa: PTH207  of any root
    else:
        files, found = [path] if path.is_file() else [], "nothing of that name"
    if not files:
        raise InputError(name, f"tables ({', '.join(EXTENSIONS)})" if path.is_dir() else "a file", found)
    for file in files:
        if text.extension(file) not in EXTENSIONS:
            raise other_extension(file, EXTENSIONS, by_pandas(file))
    return files
