"""Graphs of several types of nodes: tables of the nodes of each type, and of the edges of each relation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.made import Kind
from infomax.errors import InputError, shorten
from infomax.io import tables, text
from infomax.io.blocks import typed
from infomax.io.columns import MATRICES, Columns
from infomax.io.features import read_nodes
from infomax.io.interchange import LABEL
from infomax.io.record import Record
from infomax.io.sources import EXTENSIONS, Source, id_unknown, listed_in, refuse_missing_header, refuse_other_type
from infomax.io.tables import EdgeTable, NodeTable
from infomax.io.unite import RELATION, Ends, check_names, unite


def is_typed(folder: Path) -> bool:
    """Whether a folder holds tables of several types: folders ``edges`` and, optionally, ``nodes`` and ``features``."""
    return (folder / "edges").is_dir()


def read_folder(folder: Path, columns: Columns, *, directed: bool = False) -> Record:
    """The graph of the tables ``nodes/TYPE.*`` and ``edges/TYPE.RELATION.TYPE.*`` or ``edges/TYPE.TYPE.*``.

    A type without a node table has the nodes of its edges. ``features/TYPE.npy`` or ``.npz`` are features of a type.
    """
    columns.refuse(("groups", "matrix"), f"one type of nodes, rather than the several of {folder}")
    nodes = {kind: Source([path], columns) for (kind,), path in _files(folder / "nodes", EXTENSIONS).items()}
    edges = {
        (ends[0], RELATION, ends[-1]) if len(ends) == 2 else ends: Source([path], columns)
        for ends, path in _files(folder / "edges", EXTENSIONS).items()
    }
    matrices = {kind: path for (kind,), path in _files(folder / "features", MATRICES).items()}
    for kind in matrices.keys() - nodes.keys():
        raise InputError(str(matrices[kind]), f"a table nodes/{kind}.*, to whose rows they belong", "none")
    return read_sources(nodes, edges, columns, directed=directed, matrices=matrices)


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


def read_sources(
    nodes: Mapping[str, Source],
    edges: Mapping[Ends, Source],
    columns: Columns,
    *,
    directed: bool = False,
    matrices: Mapping[str, Path] | None = None,
) -> Record:
    """The graph of node tables by type and edge tables by relation.

    A column that is named need only be in one of them.
    """
    headers = {kind: source.header() for kind, source in nodes.items()}
    everywhere = {name for header in headers.values() for name in header}
    for what in ("id", "labels", "features", "ignore", "name"):
        _refuse_missing(what, columns, nodes.values(), lambda name: name in everywhere or LABEL + name in everywhere)
    of_nodes, of_edges = {}, {}
    for kind, source in nodes.items():
        source.columns = _of_table(columns, headers[kind], (matrices or {}).get(kind))
        of_nodes[kind] = read_nodes(source)
    for ends, source in edges.items():
        source.columns = _of_ends(columns, source.header(), ends)
        source.apart = ends[0] != ends[2]
        of_edges[ends] = tables.read_edges(source)
    for what in ("source", "target", "weight"):
        _refuse_missing(what, columns, edges.values(), lambda name: any(name in one.names for one in edges.values()))
    graph = build(of_nodes, of_edges, directed=directed, made=columns.made)
    return replace(graph, table_columns=columns.named())


def _refuse_missing(what: str, columns: Columns, sources: Iterable[Source], there: Callable[[str], bool]) -> None:
    """Refuse a column that was named and is in no table."""
    given = getattr(columns, what) or ()
    for name in (given,) if isinstance(given, str) else given:
        if not there(name) and not (what == "features" and columns.made):
            tables_read = ", ".join(str(source.path) for source in sources) or "no table"
            raise InputError(what, f"a column {shorten(name)} in one of the tables", f"none in {tables_read}")


def _of_table(columns: Columns, header: list[str], matrix: Path | None) -> Columns:
    """The choices that concern the node table with this header."""
    features = columns.features
    return Columns(
        labels=tuple(name for name in columns.labels if name in header or LABEL + name in header),
        ignore=tuple(name for name in columns.ignore if name in header),
        features=features if features is None or columns.made else tuple(n for n in features if n in header),
        matrix=matrix,
        earlier={**columns.earlier, **columns.named()},
    )


def _of_ends(columns: Columns, header: list[str], ends: Ends) -> Columns:
    """The choices that concern the edge table with this header, whose columns may have the names of the types."""
    named = {**columns.earlier, **columns.named()}
    for suffix in ("", "_id"):
        both = [kind + suffix for kind in ends[::2]]
        if both[0] != both[1] and set(both) <= set(header):
            named |= dict(zip(("source", "target"), both, strict=True))
    return Columns(earlier=named)


def build(
    nodes: Mapping[str, NodeTable], edges: Mapping[Ends, EdgeTable], *, directed: bool, made: Kind | None = None
) -> Record:
    """The graph of tables in memory; types without a node table have the ids of their edges."""
    found: dict[str, dict[str, Any]] = {kind: _columns(table) for kind, table in nodes.items()}
    for kind in sorted({kind for ends in edges for kind in ends[::2]} - nodes.keys()):
        found[kind] = {"ids": _ids_of_edges(kind, edges)}
    position = {kind: {str(node): row for row, node in enumerate(columns["ids"])} for kind, columns in found.items()}
    links = {ends: (_rows(ends, table, nodes, position), table.weight) for ends, table in edges.items()}
    return unite(found, links, directed=links if directed else (), made=made)


def _columns(table: NodeTable) -> dict[str, Any]:
    """What `unite` takes of a node table."""
    return {
        "ids": table.ids,
        "features": table.features,
        "feature_names": None if table.features is None else table.feature_names,
        "labels": table.labels,
        "splits": table.splits,
        "node_names": table.names,
    }


def _ids_of_edges(kind: str, edges: Mapping[Ends, EdgeTable]) -> list[Any]:
    """The ids of a type in all edge tables, in order of first appearance; integers where all of them are."""
    found, whole = dict[str, None](), True
    for ends, table in edges.items():
        for end, owner in enumerate(ends[::2]):
            if owner == kind:
                ids, integers = _ids_of_end(table, end)
                found |= dict.fromkeys(ids)
                whole = whole and integers
    return [int(word) for word in found] if whole else list(found)


def _ids_of_end(table: EdgeTable, end: int) -> tuple[list[str], bool]:
    """The ids at one end of edges as text, in order of first appearance; and whether they are integers."""
    words = [str(table.ids[code]) for code in np.unique(table.ends[end])]
    if table.source.lines:
        return words, typed(words) is not words
    return words, table.source.integers[end]


def _rows(
    ends: Ends, table: EdgeTable, nodes: Mapping[str, NodeTable], position: Mapping[str, Mapping[str, int]]
) -> NDArray[np.int64]:
    """The rows ``[2, E]`` of the nodes that the edges join; an id that is none of its type is refused."""
    out, source = np.empty_like(table.ends), table.source
    missing = all(name in position[kind] for name, kind in zip(source.ends, ends[::2], strict=True))
    refuse_missing_header(source, source.ends, lambda _: missing)
    for end, kind in enumerate(ends[::2]):
        if kind in nodes and len(table.ids):
            of_nodes = not isinstance(nodes[kind].ids[0], str)
            if not source.lines:
                refuse_other_type(source, nodes[kind].source, of_edges=source.integers[end], of_nodes=of_nodes)
        rows = np.array([position[kind].get(str(node), -1) for node in table.ids], dtype=np.int64)
        out[end] = rows[table.ends[end]]
        if (out[end] < 0).any():
            edge = int(np.argmax(out[end] < 0))
            identifier, where = table.ids[table.ends[end, edge]], listed_in(nodes[kind].source, integers=of_nodes)
            raise id_unknown(source, source.ends[end], identifier, int(table.numbers[edge]), where)
    return out
