"""Graphs of several types of nodes: tables of the nodes of each type, and of the edges of each relation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, shorten
from infomax.io import tables, text
from infomax.io.blocks import typed
from infomax.io.columns import MATRICES, Columns
from infomax.io.features import read_nodes
from infomax.io.interchange import LABEL
from infomax.io.record import Record
from infomax.io.sources import (
    EXTENSIONS,
    Source,
    id_unknown,
    listed_in,
    refuse_missing_header,
    refuse_other_type,
)
from infomax.io.tables import EdgeTable, NodeTable
from infomax.io.unite import RELATION, Ends, check_names, unite


def is_typed(folder: Path) -> bool:
    """Whether a folder holds tables of several types: folders ``edges`` and, optionally, ``nodes`` and ``features``."""
    return (folder / "edges").is_dir()


def read_folder(folder: Path, columns: Columns, *, directed: bool = False, work: Path | None = None) -> Record:
    """The graph of the tables ``nodes/TYPE.*`` and ``edges/TYPE.RELATION.TYPE.*`` or ``edges/TYPE.TYPE.*``.

    A type without a node table has the nodes of its edges. ``features/TYPE.npy`` or ``.npz`` are features of a type.
    """
    columns.refuse(
        ("groups", "matrix", "types", "edge_type", "node_type"),
        f"one type of nodes, rather than the several of {folder}",
    )
    return read_sources(*find_tables(folder, columns), columns, directed=directed, work=work)


def find_tables(folder: Path, columns: Columns) -> tuple[dict[str, Source], dict[Ends, Source], dict[str, Path]]:
    """The node tables of a folder by type, its edge tables by relation, and files of features by type."""
    nodes = {kind: Source([path], columns) for (kind,), path in _files(folder / "nodes", EXTENSIONS).items()}
    edges = {
        (ends[0], RELATION, ends[-1]) if len(ends) == 2 else ends: Source([path], columns)
        for ends, path in _files(folder / "edges", EXTENSIONS).items()
    }
    matrices = {kind: path for (kind,), path in _files(folder / "features", MATRICES).items()}
    for kind in matrices.keys() - nodes.keys():
        raise InputError(str(matrices[kind]), f"a table nodes/{kind}.*, to whose rows they belong", "none")
    return nodes, edges, matrices


def _files(folder: Path, extensions: Iterable[str]) -> dict[Any, Path]:
    """The files of a folder by the words of their names; none where there is no such folder."""
    found: dict[tuple[str, ...], Path] = {}
    counts = (2, 3) if folder.name == "edges" else (1,)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith("."):
            continue
        suffix = text.extension(path)
        if suffix not in extensions or not path.is_file():
            raise InputError(str(path), f"a file with one of {', '.join(extensions)}", "another")
        words = tuple(path.name[: -len(suffix)].split("."))
        if len(words) not in counts:
            expected = (
                "a name such as paper.writes.author or paper.author" if len(counts) == 2 else "the name of a type"
            )
            raise InputError(str(path), expected, shorten(".".join(words)), "Names have no dots.")
        check_names(str(path), (words[0], words[1] if len(words) == 3 else RELATION, words[-1]))
        if words in found:
            raise InputError(str(folder), f"one file {'.'.join(words)}.*", f"{found[words].name} and {path.name}")
        found[words] = path
    if not found and folder.name == "edges":
        raise InputError(str(folder), "tables such as paper.writes.author.csv", "none")
    return found


def rows_as_nodes(
    columns: Columns, table: EdgeTable, edges: Mapping[Ends, EdgeTable], nodes: dict[str, NodeTable]
) -> dict[Ends, EdgeTable]:
    """Make the rows of an edge table nodes of a type: one relation leads to them and one from them, for each it has.

    Their features are the other columns of the table. Their ids are in the column ``id``, or else numbers from 1.
    """
    source, kind = table.source, str(columns.edges_as)
    if kind in nodes or any(kind in ends[::2] for ends in edges):
        raise InputError("edges_as", "a new type of nodes", f"{shorten(kind)}, a type of which there are nodes")
    chosen = of_table(columns, kind, source.names, None)
    own = chosen.place(source.path, source.names, "id")
    others = [*source.ends, *([columns.edge_type] if columns.edge_type else [])]
    ignored = dict.fromkeys([*chosen.ignore, *(others if own is not None else others[1:])])
    chosen = replace(chosen, ignore=tuple(ignored), numbered=own is None)
    chosen = replace(chosen, id=source.ends[0]) if own is None else chosen
    rows = nodes[kind] = read_nodes(Source(source.files, chosen, source.frame))
    integers, found = not isinstance(rows.ids[0], str), dict[Ends, EdgeTable]()
    ids: Any = [*table.ids, *rows.ids]
    for ends, part in edges.items():
        at = len(table.ids) + np.searchsorted(table.numbers, part.numbers)
        for end, (name, pair) in enumerate({"source": (part.ends[0], at), "target": (at, part.ends[1])}.items()):
            kinds = (ends[0], kind) if end == 0 else (kind, ends[2])
            whole = [integers, *source.integers[1:]] if end else [*source.integers[:1], integers]
            owner = replace(source, integers=whole)
            found[kinds[0], name if len(edges) == 1 else f"{ends[1]} {name}", kinds[1]] = replace(
                part, source=owner, ids=ids, ends=np.stack(pair), weight=None
            )
    return found


def with_columns(source: Source, columns: Columns) -> Source:
    """The source itself, with these choices."""
    source.columns = columns
    return source


def read_sources(
    nodes: Mapping[str, Source],
    edges: Mapping[Ends, Source],
    matrices: Mapping[str, Path],
    columns: Columns,
    *,
    directed: bool = False,
    work: Path | None = None,
) -> Record:
    """The graph of node tables by type and edge tables by relation.

    A column that is named need only be in one of them.
    """
    refuse_missing(columns, nodes.values(), edges.values())
    of_nodes = {
        kind: read_nodes(with_columns(source, of_table(columns, kind, source.header(), matrices.get(kind))))
        for kind, source in nodes.items()
    }
    of_edges: dict[Ends, EdgeTable] = {}
    as_nodes = [ends for ends in edges if columns.edges_as == ends[1]]
    if columns.edges_as and not as_nodes:
        raise InputError(
            "edges_as", f"a relation of that name ({', '.join(sorted(e[1] for e in edges))})", columns.edges_as
        )
    for ends, source in edges.items():
        source.apart = ends[0] != ends[2]
        chosen = replace(
            of_ends(columns, source.header(), ends), edges_as=columns.edges_as if ends in as_nodes else None
        )
        table = tables.read_edges(with_columns(source, chosen))
        of_edges |= rows_as_nodes(columns, table, {ends: table}, of_nodes) if ends in as_nodes else {ends: table}
        del table
    return build(of_nodes, of_edges, columns, directed=directed, work=work)


def refuse_missing(columns: Columns, nodes: Iterable[Source], edges: Iterable[Source]) -> None:
    """Refuse a column that was named and is in no table."""
    for sources, words in (
        (nodes, ("id", "labels", "features", "ignore", "name", "node_type", "kinds")),
        (edges, _OF_EDGES),
    ):
        sources = list(sources)
        there = {name for source in sources for name in source.header()}
        for word in words:
            given = getattr(columns, word) or ()
            for name in (given,) if isinstance(given, str) else given:
                if name not in there and LABEL + name not in there and not (word == "features" and columns.made):
                    read = ", ".join(str(source.path) for source in sources) or "no node table"
                    raise InputError(word, f"a column {shorten(name)} in one of the tables", f"none in {read}")


_OF_EDGES = ("source", "target", "weight", "edge_type")


def of_table(columns: Columns, kind: str, header: list[str], matrix: Path | None) -> Columns:
    """The choices that concern the node table of a type, with this header."""
    features = columns.features
    chosen = Columns(
        labels=tuple(name for name in columns.labels if name in header or LABEL + name in header),
        ignore=tuple(name for name in columns.ignore if name in header),
        features=features if features is None or columns.made else tuple(n for n in features if n in header),
        matrix=matrix,
        earlier={**columns.earlier, **columns.named()},
        kinds={name: kind for name, kind in columns.kinds.items() if name in header},
        learns=columns.learns,
    )
    return chosen.like(*columns.of_types[kind]) if kind in columns.of_types else chosen


def of_ends(columns: Columns, header: list[str], ends: Ends) -> Columns:
    """The choices that concern the edge table with this header, whose columns may have the names of the types."""
    named = {**columns.earlier, **columns.named()}
    for suffix in ("", "_id"):
        both = [kind + suffix for kind in ends[::2]]
        if both[0] != both[1] and set(both) <= set(header):
            named |= dict(zip(("source", "target"), both, strict=True))
    return Columns(earlier=named)


def build(
    nodes: Mapping[str, NodeTable],
    edges: dict[Ends, EdgeTable],
    columns: Columns,
    *,
    directed: bool,
    work: Path | None = None,
) -> Record:
    """The graph of tables in memory, which are given up; types without a node table have the ids of their edges."""
    found: dict[str, dict[str, Any]] = {kind: _columns(table) for kind, table in nodes.items()}
    for kind in sorted({kind for ends in edges for kind in ends[::2]} - nodes.keys()):
        found[kind] = {"ids": _ids_of_edges(kind, edges)}
    position = {kind: {str(node): row for row, node in enumerate(columns["ids"])} for kind, columns in found.items()}
    links = {}
    for ends in list(edges):
        table = edges.pop(ends)
        links[ends] = (find_rows(ends, table, nodes, position), table.weight)
    del table, position
    graph = unite(found, links, directed=list(links) if directed else (), made=columns.made, work=work)
    return replace(graph, table_columns=columns.named())


def _columns(table: NodeTable) -> dict[str, Any]:
    """What `unite` takes of a node table."""
    if table.groups is not None:
        raise InputError(str(table.source.path), "one graph, where there are several types", "a column of graphs")
    return {
        "ids": table.ids,
        "features": table.features,
        "feature_names": None if table.features is None else table.feature_names,
        "labels": table.labels,
        "splits": table.splits,
        "node_names": table.names,
        "encoding": None if table.features is None else table.source.columns.encoding,
    }


def _ids_of_edges(kind: str, edges: Mapping[Ends, EdgeTable]) -> list[Any]:
    """The ids of a type in all edge tables, in order of first appearance; integers where all of them are."""
    of_type = [(table, end) for ends, table in edges.items() for end in (0, 1) if ends[2 * end] == kind]
    integers, found = all(table.source.lines or table.source.integers[end] for table, end in of_type), dict[str, None]()
    # Parts of one table share its ids, and are put in the order of its rows.
    for path in dict.fromkeys(table.source.path for table, _ in of_type):
        parts = [(table, end) for table, end in of_type if table.source.path == path]
        ids, codes = parts[0][0].ids, parts[0][0].ends[parts[0][1]]
        if len(parts) > 1:
            places = np.concatenate([2 * table.numbers + end for table, end in parts])
            codes = np.concatenate([table.ends[end] for table, end in parts])[np.argsort(places)]
        first = np.full(len(ids), len(codes))
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # what is written last stays: the first place of each
        words = [str(ids[code]) for code in np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]]
        integers = integers and (not parts[0][0].source.lines or typed(words) is not words)
        found |= dict.fromkeys(words)
    return [int(word) for word in found] if integers else list(found)


def find_rows(
    ends: Ends, table: EdgeTable, nodes: Mapping[str, NodeTable], position: Mapping[str, Mapping[str, int]]
) -> NDArray[np.int32]:
    """The rows ``[2, E]`` of the nodes that the edges join; an id that is none of its type is refused."""
    out, source = np.empty(table.ends.shape, np.int32), table.source
    missing = all(name in position[kind] for name, kind in zip(source.ends, ends[::2], strict=True))
    refuse_missing_header(source, source.ends, lambda _: missing)
    for end, kind in enumerate(ends[::2]):
        if kind in nodes and len(table.ids):
            of_nodes = not isinstance(nodes[kind].ids[0], str)
            if not source.lines:
                refuse_other_type(source, nodes[kind].source, of_edges=source.integers[end], of_nodes=of_nodes)
        rows = np.array([position[kind].get(str(node), -1) for node in table.ids], dtype=np.int32)
        out[end] = rows[table.ends[end]]
        if (out[end] < 0).any():
            edge = int(np.argmax(out[end] < 0))
            identifier, where = table.ids[table.ends[end, edge]], listed_in(nodes[kind].source, integers=of_nodes)
            raise id_unknown(source, source.ends[end], identifier, int(table.numbers[edge]), where)
    return out
