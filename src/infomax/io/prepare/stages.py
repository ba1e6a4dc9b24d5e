"""The stages of a preparation: read, number, join, sort and write, each of them once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays import folder as layout
from infomax.arrays.adjacency import Senders
from infomax.arrays.blocks import row_blocks
from infomax.arrays.checks import check_sums
from infomax.arrays.made import usual
from infomax.arrays.sparsity import dense
from infomax.errors import InputError
from infomax.io.blocks import NotNumbersError, are_integers
from infomax.io.columns import Columns
from infomax.io.features import warn_if_ids
from infomax.io.folder import GROUP, ArrayWriter, FeatureWriter, finish
from infomax.io.prepare.checks import is_node, refuse_twice, refuse_unknown, refuse_unstorable
from infomax.io.prepare.database import Database, text_column
from infomax.io.prepare.features import copy_features, write_made
from infomax.io.prepare.merging import Counts, merge
from infomax.io.sources import (
    Source,
    find_files,
    listed_in,
    no_edges,
    no_nodes,
    refuse_missing_header,
    refuse_other_type,
    refuse_two_kinds,
)
from infomax.progress import Progress

GRAPH = "graph"
"""The folder among the work files that becomes the graph folder."""
LARGEST = 1 << 31
"""There are fewer nodes than this."""


class Preparation:
    """The stages, each of them done once."""

    def __init__(
        self,
        work: Path,
        edges: str | Path,
        nodes: str | Path | None,
        columns: Columns,
        directed: bool,
        halved: bool,
        memory: int,
    ) -> None:
        self.edges = Source(find_files(str(edges)), columns)
        self.nodes = None if nodes is None else Source(find_files(str(nodes)), columns)
        self.columns, self.directed, self.halved = columns, directed, halved
        array = () if columns.matrix is None else [columns.matrix]
        files = [*self.edges.files, *(self.nodes.files if self.nodes else ()), *array]
        stamps = [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
        asked = json.dumps([stamps, len(self.edges.files), asdict(columns), directed, halved], default=str)
        _keep_if_same(work, asked)
        self.folder = work / GRAPH
        self.folder.mkdir(exist_ok=True)
        self.database = Database(work, memory)

    def run(self, progress: Progress) -> None:
        """Do all stages that are not done yet."""
        stages = {
            "edges": ("reading edges", self._read_edges),
            **({} if self.nodes is None else {"nodes": ("reading nodes", self._read_nodes)}),
            **({"first": ("finding ids", self._find_ids)} if self.nodes is None else {}),
            "numbers": ("checking ids", self._number_nodes),
            "sources": ("joining sources", lambda: self._join("source", "edges", "half")),
            "targets": ("joining targets", lambda: self._join("target", "half", "pairs")),
            "rows": ("sorting edges", self._write_rows),
            "columns": ("writing ids and labels", self._write_nodes),
            "features": ("writing features", self._write_features),
        }
        try:
            notes: dict[str, Any] = {}
            for done, (name, (title, work)) in enumerate(stages.items()):
                progress(done, title, len(stages) + 1)
                self.notes = notes
                notes[name] = json.loads(self.database.stage(name, lambda work=work: json.dumps(work())))  # type: ignore[misc]
            progress(len(stages), "hashing", len(stages) + 1)
        finally:
            self.database.close()
        finish(self.folder, self._about(notes))

    def _about(self, notes: dict[str, Any]) -> dict[str, Any]:
        """What graph.json says."""
        ends, rows, entries = notes["edges"]["ends"], notes["rows"], notes["rows"]["entries"]
        return {
            "nodes": notes["numbers"]["nodes"],
            "edges": entries if self.directed else entries // 2,
            "directed": self.directed,
            "weighted": rows["weighted"],
            "feature_names": notes["features"],
            "labels": self._annotations(notes, "labels"),
            "splits": self._annotations(notes, "splits"),
            "dropped": {name: rows[name] for name in ("self_loops", "duplicates", "zero_weights")},
            "edge_columns": None if self.columns.names_ends(ends) else ends,
            "table_columns": notes["nodes"]["named"] if self.nodes else self.columns.named(),
            **({"encoding": notes["nodes"]["encoding"]} if self.nodes and notes["nodes"]["encoding"] else {}),
        }

    def _annotations(self, notes: dict[str, Any], kind: str) -> list[str]:
        """The names of the labels, of the splits, or of the column of names."""
        return list(notes["nodes"][kind]) if self.nodes else []

    def _read_edges(self) -> dict[str, Any]:
        """Table edges: number, source, target and, where edges have weights, weight."""
        weighted, integers = False, True

        def batches() -> Iterator[dict[str, Any]]:
            nonlocal weighted, integers
            for rows in self.edges.edges():
                weighted, integers = rows.weight is not None, integers and all(map(are_integers, rows.ends))
                source, target = map(text_column, rows.ends)
                weight = {} if rows.weight is None else {"weight": rows.weight}
                yield {"number": rows.numbers, "source": source, "target": target, **weight}

        count = self.database.create("edges", batches())
        if not count:
            if self.nodes is None:
                raise no_edges(self.edges)
            self.database.execute("CREATE OR REPLACE TABLE edges (number BIGINT, source BIGINT, target BIGINT)")
        return {"count": count, "weighted": weighted, "integers": integers, "ends": self.edges.ends}

    def _read_nodes(self) -> dict[str, Any]:
        """Table nodes, see `_node_rows`; where features are no numbers, what they become is learnt first."""
        assert self.nodes is not None  # noqa: S101  a stage of node tables
        try:
            return self._node_rows(self.nodes)
        except NotNumbersError:
            if not self.nodes.learn():
                raise
        self.database.execute("ROLLBACK")
        self.database.execute("BEGIN")
        return self._node_rows(self.nodes)

    def _node_rows(self, source: Source) -> dict[str, Any]:
        """Table nodes: node, number, id, labels, splits and names as l0, l1, ...; and the features, in order."""
        writer, integers = None, True
        with ExitStack() as stack:

            def batches() -> Iterator[dict[str, Any]]:
                nonlocal writer, integers
                count = 0
                for rows in source.nodes():
                    refuse_unstorable(source, rows)
                    integers = integers and are_integers(rows.ids)
                    if rows.features is not None:
                        if writer is None:
                            if self.columns.features is None and source.columns.encoding is None:
                                warn_if_ids(source.path, source.feature_names, rows.features)
                            width, where = rows.features.shape[1], str(source.path)
                            opened = FeatureWriter(self.folder, width, where, halved=self.halved)
                            writer = stack.enter_context(opened)
                        for block in row_blocks(rows.features):
                            writer.append(dense(block))
                    numbers = {"node": np.arange(count, count + len(rows.numbers)), "number": rows.numbers}
                    others = [*map(text_column, rows.labels.values()), *rows.splits.values()]
                    others += [] if rows.names is None else [text_column(rows.names)]
                    yield numbers | {"id": text_column(rows.ids)} | {f"l{at}": cells for at, cells in enumerate(others)}
                    count += len(rows.numbers)

            if not self.database.create("nodes", batches()):
                raise no_nodes(source)
        names, chosen = source.feature_names if writer is not None else [], source.chosen
        found = {"labels": list(chosen.labels), "splits": list(chosen.splits), "id": source.names[chosen.identifier]}
        found["names"] = [] if chosen.name is None else [layout.NAME]
        encoding = source.columns.encoding and source.columns.encoding.to_json()
        return {"features": names, "integers": integers, "named": source.columns.named(), "encoding": encoding, **found}

    def _find_ids(self) -> dict[str, Any]:
        """Without a node table: table first, where each id of the edges appears first."""
        self.database.execute(
            "CREATE TABLE first AS SELECT id, min(place) AS place, min(place % 2) <> max(place % 2) AS shared FROM ("
            "SELECT source AS id, 2 * number AS place FROM edges UNION ALL SELECT target, 2 * number + 1 FROM edges"
            ") GROUP BY id"
        )
        shared = self.database.execute("SELECT bool_or(shared) FROM first").fetchone()[0]
        refuse_two_kinds(self.edges, self.notes["edges"]["ends"], bool(shared))
        return {"features": [], "integers": self.notes["edges"]["integers"]}

    def _number_nodes(self) -> dict[str, Any]:
        """Table nodes complete, each id once."""
        database, edges = self.database, self.notes["edges"]
        if self.nodes is None:
            database.create("nodes", self._in_order())
            database.execute("DROP TABLE first")
        else:
            refuse_twice(database, self.nodes, self.notes["nodes"]["id"])
        count = database.execute("SELECT count(*) FROM nodes").fetchone()[0]
        if count >= LARGEST:
            raise InputError(str(self.edges.path), f"fewer than {LARGEST:,} nodes", f"{count:,}")
        if self.nodes is not None and edges["count"]:
            refuse_other_type(
                self.edges, self.nodes, of_edges=edges["integers"], of_nodes=self.notes["nodes"]["integers"]
            )
        refuse_missing_header(self.edges, edges["ends"], partial(is_node, database))
        return {"nodes": count}

    def _in_order(self) -> Iterator[dict[str, Any]]:
        """The ids of the edges in the order in which they appear first."""
        count = 0
        for batch in self.database.stream("SELECT place, id FROM first ORDER BY place"):
            yield {"node": np.arange(count, count + len(batch)), "number": batch["place"], "id": batch["id"]}
            count += len(batch)

    def _join(self, end: str, before: str, after: str) -> dict[str, Any]:
        """A table of edges with the numbers of nodes at one end in place of their ids."""
        edges, integers = self.notes["edges"], self.notes["nodes" if self.nodes else "first"]["integers"]
        # Ids are compared as integers where all of both tables are; else by their text.
        kind = "BIGINT" if integers and edges["integers"] else "VARCHAR"
        weight = ", weight" if edges["weighted"] else ""
        ends = "node AS source, target" if end == "source" else "source, node AS target"
        self.database.execute(
            f"CREATE TABLE {after} AS SELECT {before}.number, {ends}{weight} FROM {before} "  # noqa: S608  our own names
            f"LEFT JOIN (SELECT node, id::{kind} AS id FROM nodes) AS listed ON listed.id = {before}.{end}::{kind}"
        )
        if end == "target" and self.nodes is not None:
            refuse_unknown(self.database, self.edges, edges["ends"], listed_in(self.nodes, integers=integers))
        if end == "source":
            # The unknown sources are told with the targets, whichever comes first: the ids are kept till then.
            self.database.execute("CREATE TABLE strangers AS SELECT number, source AS id FROM edges LIMIT 0")
            self.database.execute(
                "INSERT INTO strangers SELECT edges.number, edges.source FROM edges "
                "SEMI JOIN (SELECT number FROM half WHERE source IS NULL) AS lost USING (number)"
            )
        self.database.execute(f"DROP TABLE {before}")
        return {}

    def _write_rows(self) -> dict[str, Any]:
        """Write the files of the matrix: its rows are the nodes that send to a node."""
        database, n, weighted = self.database, self.notes["numbers"]["nodes"], self.notes["edges"]["weighted"]
        zero = "weight = 0" if weighted else "false"
        loops, zeros = database.execute(
            f"SELECT count(*) FILTER (source = target), count(*) FILTER (source <> target AND {zero}) FROM pairs"  # noqa: S608
        ).fetchone()
        counts, entries = Counts(), 0
        with (
            ArrayWriter(self.folder / layout.STARTS, np.int64) as starts,
            ArrayWriter(self.folder / layout.NEIGHBOURS, np.int32) as neighbours,
            ArrayWriter(self.folder / layout.WEIGHTS, np.float32) as weights,
        ):
            starts.append(np.zeros(1))
            for rows, columns, values in merge(self._keys(weighted, zero), n, counts, turned=self.directed):
                neighbours.append(columns)
                weights.append(np.empty(0) if values is None else values)
                # Rows that end within this batch: all before its last, which may go on.
                ended = np.arange(starts.rows - 1, rows[-1])
                starts.append(entries + np.searchsorted(rows, ended, side="right"))
                entries += len(rows)
            starts.append(np.full(n + 1 - starts.rows, entries))
        if counts.weighted:
            parts = (layout.STARTS, layout.NEIGHBOURS, layout.WEIGHTS)
            senders = Senders(*(np.load(self.folder / name, mmap_mode="r") for name in parts))
            check_sums(senders, self._id, f"{self.edges.path}, ")
        else:
            (self.folder / layout.WEIGHTS).unlink()
        dropped = {"self_loops": loops, "duplicates": counts.duplicates, "zero_weights": zeros}
        return {"entries": entries, "weighted": counts.weighted, **dropped}

    def _id(self, node: int) -> Any:
        return self.database.execute("SELECT id FROM nodes WHERE node = ?", [node]).fetchone()[0]

    def _keys(self, weighted: bool, zero: str) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32] | None]]:
        """The keys of all edges, as `merge` takes them, in order."""
        n, weight = self.notes["numbers"]["nodes"], ", weight" if weighted else ""
        there, back = f"2 * (source * {n} + target)", f"2 * (target * {n} + source)"
        kept = f"FROM pairs WHERE source <> target AND NOT ({zero})"
        query = f"SELECT {back if self.directed else there} AS key{weight} {kept}"
        if not self.directed:
            query += f" UNION ALL SELECT {back} + 1 AS key{weight} {kept}"
        # Equal keys are in order of their weights, so that sums do not depend on the order of sorting.
        for batch in self.database.stream(f"SELECT * FROM ({query}) ORDER BY ALL"):  # noqa: S608
            yield batch["key"].to_numpy(), batch["weight"].to_numpy() if weighted else None

    def _write_nodes(self) -> dict[str, Any]:
        """Write nodes.parquet."""
        import pyarrow as pa
        from pyarrow import parquet

        integers = self.notes["nodes" if self.nodes else "first"]["integers"]
        labels, splits, names = (self._annotations(self.notes, kind) for kind in ("labels", "splits", "names"))
        fields = [pa.field("id", pa.int64() if integers else pa.string())]
        fields += [pa.field(layout.LABEL + name, pa.dictionary(pa.int32(), pa.string())) for name in labels]
        fields += [pa.field(layout.SPLIT + name, pa.bool_()) for name in splits]
        fields += [pa.field(name, pa.string()) for name in names]
        cells = ", ".join(["id", *(f"l{column}" for column in range(len(fields) - 1))])
        with parquet.ParquetWriter(self.folder / layout.NODES, pa.schema(fields), write_page_checksum=True) as writer:
            for batch in self.database.stream(f"SELECT {cells} FROM nodes ORDER BY node"):  # noqa: S608
                columns = [
                    pa.array(column).cast(field.type) for column, field in zip(batch.columns, fields, strict=True)
                ]
                writer.write_table(pa.table(columns, schema=pa.schema(fields)), row_group_size=GROUP)
        return {}

    def _write_features(self) -> list[str]:
        """Write features.npy where no stage has written it; the names of the features."""
        names = self.notes["nodes" if self.nodes else "first"]["features"]
        if names:
            return list(names)
        if self.columns.matrix is not None:
            return copy_features(self.columns.matrix, self.folder, self.notes["numbers"]["nodes"], halved=self.halved)
        kind, splits = self.columns.made or usual(False), self._annotations(self.notes, "splits")
        return write_made(self.folder, kind, splits, directed=self.directed, halved=self.halved)


def _keep_if_same(work: Path, asked: str) -> None:
    """Empty a work folder that was begun for other tables or with other options, or whose graph was moved away."""
    note = work / "asked.json"
    if note.exists() and note.read_bytes() == asked.encode() and (work / GRAPH).exists():
        return
    for path in work.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    note.write_bytes(asked.encode())
