"""Tables of edges and of nodes, read into the database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from infomax.arrays import folder as layout
from infomax.errors import InputError
from infomax.io.blocks import are_integers
from infomax.io.prepare.database import Database, text_column
from infomax.io.refusals import no_edges, no_nodes
from infomax.io.sources import NodeTable, Source


def read_edges(database: Database, table: str, source: Source, *, alone: bool) -> dict[str, Any]:
    """Make a table of edges: number, source, target and, where edges have them, weight and relation.

    Without edges it is refused if it is ``alone``, without a node table.
    """
    weighted, integers = False, [True, True]

    def batches() -> Iterator[dict[str, Any]]:
        nonlocal weighted, integers
        for rows in source.edges():
            weighted = rows.weight is not None
            own = (are_integers(end, lines=True) for end in rows.ends) if source.lines else source.integers
            integers = [before and now for before, now in zip(integers, own, strict=True)]
            first, last = map(text_column, rows.ends)
            others = {} if rows.weight is None else {"weight": rows.weight}
            others |= {} if rows.relations is None else {"relation": text_column(rows.relations)}
            yield {"number": rows.numbers, "source": first, "target": last, **others}

    count = _create(database, table, source, batches())
    source.columns.warn_unused(source.path, source.names)
    if not count:
        if alone:
            raise no_edges(source)
        database.execute(f"CREATE OR REPLACE TABLE {table} (number BIGINT, source BIGINT, target BIGINT)")
    named = count > 0 and source.columns.edge_type is not None
    return {"count": count, "weighted": weighted, "integers": integers, "ends": source.ends, "named": named}


def _create(database: Database, table: str, source: Source, batches: Iterator[dict[str, Any]]) -> int:
    """Create a table, see `Database.create`; refuse text that is not UTF-8, which parquet files may hold."""
    try:
        return database.create(table, batches)
    except UnicodeError:
        raise InputError(str(source.path), "text in UTF-8", "other bytes", "Write the file again, in UTF-8.") from None


class NodeKeeper(AbstractContextManager[Any]):
    """Keeps the rows of a node table while they are read."""

    @abstractmethod
    def add(self, rows: NodeTable) -> list[Any]:
        """Keep some rows; returns the columns ``[n]`` that the database is to keep."""


def read_nodes(database: Database, table: str, source: Source, keeper: NodeKeeper) -> dict[str, Any]:
    """Make a table of nodes, see `Stages._table`, in order; ``keeper`` gets all of their columns."""
    integers, sample = True, None
    with keeper:

        def batches() -> Iterator[dict[str, Any]]:
            nonlocal integers, sample
            count = 0
            for rows in source.nodes():
                sample = rows.features if sample is None else sample
                cells = {f"l{column}": cells for column, cells in enumerate(keeper.add(rows))}
                at = np.arange(count, count := count + len(rows.numbers))
                ids = at + source.first_id if source.columns.numbered else text_column(rows.ids)
                integers = integers and (source.columns.numbered or are_integers(rows.ids, lines=source.lines))
                yield {"node": at, "number": rows.numbers, "id": ids, **cells}

        if not _create(database, table, source, batches()):
            raise no_nodes(source)
    source.warn_of_nodes(sample)
    names, chosen = [] if sample is None else source.feature_names, source.chosen
    found = {"labels": list(chosen.labels), "splits": list(chosen.splits), "id": chosen.identifier}
    found["names"] = [] if chosen.name is None else [layout.NAME]
    found["times"] = [] if chosen.time is None else [layout.TIME]
    encoding = source.columns.encoding and source.columns.encoding.to_json()
    return {"features": names, "integers": integers, "named": source.columns.named(), "encoding": encoding, **found}
