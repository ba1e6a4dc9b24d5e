"""The files of a graph folder that come from the database: who sends to each node, ids and
labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays import folder_layout as layout
from infomax.arrays.adjacency import Senders
from infomax.io.array_files import ROWS_PER_GROUP, ArrayWriter
from infomax.io.graph_folder import SIDES, relation_folder
from infomax.io.prepare.database import Database
from infomax.io.schema.schema import Ends

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32] | None]
"""Rows ``[n]``, columns ``[n]`` and values ``[n]`` of a matrix, ascending; no values where all are
1."""


Keys = tuple[NDArray[np.int64], NDArray[np.float32] | None]
"""Keys ``[e]`` of edges, ascending, and their weights ``[e]``; None: each counts once, however
often it is listed.

A key is ``2 (row * N + column) + back``: an edge listed from row to column has back = 0, one that
was listed the other way 1.
"""


def write_sides(
    database: Database,
    folder: Path,
    ends: Ends,
    sizes: tuple[int, int],
    *,
    weighted: bool,
    both_ways: bool,
) -> dict[str, Any]:
    """Write the files of a relation from table pairs; its name is empty where a graph has one type
    of nodes.

    Returns whether any weight is other than 1, how many entries there are and how many edges were
    left out.
    """
    zero, one_type = "weight = 0" if weighted else "false", ends[0] == ends[2]
    loop = "source = target" if one_type else "false"
    loops, zeros = database.row(
        f"SELECT count(*) FILTER ({loop}), count(*) FILTER (NOT ({loop}) AND {zero}) FROM pairs"
    )
    kept = f"FROM pairs WHERE NOT ({loop}) AND NOT ({zero})"
    sides = SIDES[: 1 if both_ways or not ends[0] else 2]
    places = [relation_folder(folder, ends, side) if ends[0] else folder for side in sides]
    duplicates = []
    for path, (row, column), (n, width) in zip(
        places, (("target", "source"), ("source", "target")), (sizes[::-1], sizes), strict=False
    ):
        dropped = Counter[str]()
        keys = _keys(database, kept, row, column, width, weighted=weighted, both_ways=both_ways)
        entries = write_entries(path, n, merge(keys, width, dropped))
        duplicates.append(dropped["duplicates"])
    found = {"entries": entries, "weighted": (places[0] / layout.WEIGHTS).exists()}
    return found | {"self_loops": loops, "duplicates": duplicates[0], "zero_weights": zeros}


def _keys(
    database: Database,
    kept: str,
    row: str,
    column: str,
    width: int,
    *,
    weighted: bool,
    both_ways: bool,
) -> Iterator[Keys]:
    """The keys of all edges, as `merge` takes them, in order."""
    weight = ", weight" if weighted else ""
    query = f"SELECT 2 * ({row} * {width} + {column}) AS key{weight} {kept}"
    if both_ways:
        query += f" UNION ALL SELECT 2 * ({column} * {width} + {row}) + 1 AS key{weight} {kept}"
    # Equal keys are in order of their weights, so that sums do not depend on the order of sorting.
    for batch in database.stream(f"SELECT * FROM ({query}) ORDER BY ALL"):
        yield batch["key"].to_numpy(), batch["weight"].to_numpy() if weighted else None


def write_entries(folder: Path, n: int, entries: Iterable[Entries]) -> int:
    """Write the files of a matrix of n rows, of entries in order; returns their number.

    There is no file of weights where all are 1.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count, weighted = 0, False
    with (
        ArrayWriter(folder / layout.STARTS, np.int64) as starts,
        ArrayWriter(folder / layout.NEIGHBOURS, np.int32) as neighbours,
        ArrayWriter(folder / layout.WEIGHTS, np.float32) as weights,
    ):
        starts.append(np.zeros(1))
        for rows, columns, values in entries:
            neighbours.append(columns)
            if values is not None:
                weights.append(values)
                weighted |= bool((values != 1).any())
            # Rows that end within this batch: all before its last, which may go on.
            ended = np.arange(starts.rows - 1, rows[-1])
            starts.append(count + np.searchsorted(rows, ended, side="right"))
            count += len(rows)
        starts.append(np.full(n + 1 - starts.rows, count))
    if not weighted:
        (folder / layout.WEIGHTS).unlink()
    return count


def open_senders(folder: Path) -> Senders:
    """What `write_entries` wrote, mapped."""
    starts, neighbours = (
        np.load(folder / name, mmap_mode="r") for name in (layout.STARTS, layout.NEIGHBOURS)
    )
    weights = (
        np.load(folder / layout.WEIGHTS, mmap_mode="r")
        if (folder / layout.WEIGHTS).exists()
        else None
    )
    return Senders(starts, neighbours, weights)


def write_nodes(database: Database, table: str, path: Path, note: dict[str, Any]) -> None:
    """Write nodes.parquet from a table of nodes; the note says which labels, splits, names and
    times it has."""
    import pyarrow as pa
    from pyarrow import parquet

    fields = [pa.field("id", pa.int64() if note["integers"] else pa.string())]
    fields += [
        pa.field(layout.LABEL + name, pa.dictionary(pa.int32(), pa.string()))
        for name in note["labels"]
    ]
    fields += [pa.field(layout.SPLIT + name, pa.bool_()) for name in note["splits"]]
    fields += [pa.field(name, pa.string()) for name in note["names"]]
    fields += [pa.field(name, pa.int64()) for name in note["times"]]
    cells = ", ".join(["id", *(f"l{column}" for column in range(len(fields) - 1))])
    with parquet.ParquetWriter(path, pa.schema(fields), write_page_checksum=True) as writer:
        for batch in database.stream(f"SELECT {cells} FROM {table} WHERE node >= 0 ORDER BY node"):
            columns = [
                pa.array(column).cast(field.type)
                for column, field in zip(batch.columns, fields, strict=True)
            ]
            writer.write_table(
                pa.table(columns, schema=pa.schema(fields)), row_group_size=ROWS_PER_GROUP
            )


def merge(batches: Iterable[Keys], n: int, dropped: Counter[str]) -> Iterator[Entries]:
    """The entries of a matrix of N columns, from batches of its keys, in order; ``dropped`` counts
    the duplicates.

    Weights of the same key add up, then the larger of both directions is taken.
    """
    rest: Keys | None = None
    for keys, weights in batches:
        if rest is not None:
            keys = np.concatenate([rest[0], keys])
            weights = (
                None if weights is None or rest[1] is None else np.concatenate([rest[1], weights])
            )
        # The last pair may go on in the next batch.
        stop = int(np.searchsorted(keys >> 1, keys[-1] >> 1)) if len(keys) else 0
        rest = keys[stop:].copy(), None if weights is None else weights[stop:].copy()
        if stop:
            yield _merged(keys[:stop], None if weights is None else weights[:stop], n, dropped)
    if rest is not None and len(rest[0]):
        yield _merged(*rest, n, dropped)


def _merged(
    keys: NDArray[np.int64], weights: NDArray[np.float32] | None, n: int, dropped: Counter[str]
) -> Entries:
    """The entries of complete pairs."""
    starts = _first_of_each(keys)
    distinct = keys[starts]
    forward = int(np.count_nonzero(keys & 1 == 0))
    dropped["duplicates"] += forward - int(np.count_nonzero(distinct & 1 == 0))
    pairs = distinct >> 1
    firsts = _first_of_each(pairs)
    rows, columns = np.divmod(pairs[firsts], n)
    if weights is None:
        return rows, columns, None
    sums = np.add.reduceat(weights.astype(np.float64), starts).astype(np.float32)
    return rows, columns, np.maximum.reduceat(sums, firsts)


def _first_of_each(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places where ascending values ``[n]`` change, the first place included."""
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
