"""Tables of edges and of nodes, read into the database; features go to their file at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from infomax.arrays import folder as layout
from infomax.io.blocks import are_integers
from infomax.io.folder import FeatureWriter
from infomax.io.prepare.checks import refuse_unstorable
from infomax.io.prepare.database import Database, text_column
from infomax.io.refusals import no_edges, no_nodes
from infomax.io.sources import Source


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

    count = database.create(table, batches())
    if not count:
        if alone:
            raise no_edges(source)
        database.execute(f"CREATE OR REPLACE TABLE {table} (number BIGINT, source BIGINT, target BIGINT)")
    named = count > 0 and source.columns.edge_type is not None
    return {"count": count, "weighted": weighted, "integers": integers, "ends": source.ends, "named": named}


def read_nodes(database: Database, table: str, source: Source, folder: Path, *, halved: bool) -> dict[str, Any]:
    """Make a table of nodes, see `Preparation._table`, and write their features, in order, into a folder."""
    writer, integers = None, True
    with ExitStack() as stack:

        def batches() -> Iterator[dict[str, Any]]:
            nonlocal writer, integers
            count, first = 0, None
            for rows in source.nodes():
                refuse_unstorable(source, rows)
                if rows.features is not None:
                    if writer is None:
                        first = rows.features
                        width, where = rows.features.shape[1], str(source.path)
                        writer = stack.enter_context(FeatureWriter(folder, width, where, halved=halved))
                    writer.append(rows.features)
                at = np.arange(count, count := count + len(rows.numbers))
                ids = at + 1 if source.columns.numbered else text_column(rows.ids)
                integers = integers and (source.columns.numbered or are_integers(rows.ids, lines=source.lines))
                others = [*map(text_column, rows.labels.values()), *rows.splits.values()]
                others += [] if rows.names is None else [text_column(rows.names)]
                others += [] if rows.times is None else [rows.times]
                cells = {f"l{column}": cells for column, cells in enumerate(others)}
                yield {"node": at, "number": rows.numbers, "id": ids, **cells}
            if first is not None:
                source.warn_of_features(first)

        if not database.create(table, batches()):
            raise no_nodes(source)
    names, chosen = source.feature_names if writer is not None else [], source.chosen
    found = {"labels": list(chosen.labels), "splits": list(chosen.splits), "id": chosen.identifier}
    found["names"] = [] if chosen.name is None else [layout.NAME]
    found["times"] = [] if chosen.time is None else [layout.TIME]
    encoding = source.columns.encoding and source.columns.encoding.to_json()
    return {"features": names, "integers": integers, "named": source.columns.named(), "encoding": encoding, **found}
