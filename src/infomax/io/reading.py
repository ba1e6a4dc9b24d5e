"""Read a graph under any name that one can be written to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from infomax import memory
from infomax.arrays.folder import is_folder
from infomax.arrays.structural_features import structural_features_named
from infomax.arrays.times import format_time, parse_time
from infomax.errors import InputError, shorten, warn, within
from infomax.io import text
from infomax.io.attach import attach
from infomax.io.building import from_scipy
from infomax.io.column_names import format_list
from infomax.io.columns import Columns
from infomax.io.features import existing, is_sparse_matrix, read_adjacency
from infomax.io.finding import GRAPHS, find_tables, pair_of_names, table_file
from infomax.io.folder import open_folder
from infomax.io.label_names import spelled_labels
from infomax.io.nodes import Nodes
from infomax.io.npz import read_npz
from infomax.io.past import as_of
from infomax.io.prepare.in_memory import read_node_table, read_tables
from infomax.io.record import Record
from infomax.io.schema.schema import TableSchema
from infomax.io.sources import EXTENSIONS, Source
from infomax.progress import Progress, silent

MEMORY_PER_BYTE = {True: 3, False: 6}
"""Bytes of memory per byte of tables of text, and of others: 2.8 and 6.6 were measured, with 64 features."""
SMALL = 1 << 24
"""Bytes of tables that are read without asking how much memory is free."""
READING = 0.7
"""The share of the work that is told; joining edges with nodes, which follows, is the rest."""
_OF_WHOLE = ("labels", "features", "as_of")
"""What can be chosen of a graph that is stored whole."""


AnyRecord = TypeVar("AnyRecord", bound=Record)


def read_record(
    edges: str | Path,
    nodes: str | Path | None,
    columns: Columns,
    *,
    directed: bool | None = None,
    attach_to: Record | None = None,
    progress: Progress = silent,
) -> Record:
    """Read a graph as `infomax.read_graph` does, with these columns; ``progress`` is told how far tables are read."""
    if nodes is None and attach_to is None and is_folder(Path(edges)):
        columns.refuse_others(_OF_WHOLE, f"tables, rather than the graph folder {edges}")
        return _as_asked(open_folder(Path(edges)), columns, directed, str(edges))
    graph, beside = pair_of_names(edges, nodes)
    if Path(graph).suffix.lower() in GRAPHS:
        if attach_to is not None:
            expected = f"tables of new nodes and their edges ({', '.join(EXTENSIONS)})"
            raise InputError(str(graph), expected, "a whole graph")
        if beside is not None:
            raise InputError(
                str(beside), "no node table", f"one beside {graph}, which holds its own nodes"
            )
        return _read_graph(existing(Path(graph)), columns, directed)
    found = find_tables(edges, nodes, columns, attach_to)
    _follow(found.sources, progress)
    return (
        read_tables(found, directed=bool(directed))
        if attach_to is None
        else attach(found, attach_to)
    )


def _read_graph(path: Path, columns: Columns, directed: bool | None) -> Record:
    """The graph of a file that holds a whole one."""
    whole = path.suffix.lower() == ".npz"
    columns.refuse_others(
        _OF_WHOLE if whole else (*_OF_WHOLE, "ignore", "name", "time", "kinds"),
        f"tables, rather than {path}",
    )
    if whole and is_sparse_matrix(path):
        with within(path):
            graph = from_scipy(
                read_adjacency(path), columns.structural_features, directed=bool(directed)
            )
        return _as_asked(graph, columns, directed, str(path))
    if whole:
        return _as_asked(read_npz(path, columns.structural_features), columns, directed, str(path))
    from infomax.io.graphml import read_graphml

    return read_graphml(path, columns, directed)


def _as_asked(graph: Record, columns: Columns, directed: bool | None, where: str) -> Record:
    """A graph that is stored whole; refused where it cannot have the features or the directions that were asked for."""
    kinds = {structural_features_named(one.feature_names) for one in graph.nodes.values()}
    if (
        columns.learns
        and columns.features is not None
        and columns.structural_features not in kinds - {None}
    ):
        expected = (
            f"tables or GraphML to choose features of, rather than {where}, which holds its own"
        )
        raise InputError("features", expected, format_list(columns.features))
    graph = with_labels(check_directions(graph, directed, where), columns.labels, where)
    if columns.as_of is None:
        return graph
    if columns.learns:
        _refuse_later_rows(graph, parse_time(columns.as_of, "as_of"), where)
    return as_of(graph, columns.as_of)


def _refuse_later_rows(graph: Record, until: int, where: str) -> None:
    """Refuse a stored graph with rows of a later time among those from which it was learnt what columns become."""
    for kind, nodes in graph.nodes.items():
        learnt = nodes.encoding is not None and not nodes.encoding.raw
        if learnt and nodes.times is not None and (nodes.times[:] > until).any():
            day = format_time(until)
            expected = f"columns that were learnt from rows up to {day}"
            found = f"later rows of {kind or 'nodes'}"
            remedy = (
                f'Make it of the tables again: infomax prepare TABLES --as-of "{day}" --out FOLDER.'
            )
            raise InputError(where, expected, found, remedy)


def check_directions(graph: AnyRecord, directed: bool | None, where: str) -> AnyRecord:
    """The graph, refused where it was asked to have directions, or to have none, and says otherwise itself."""
    if directed is None or graph.directed == directed:
        return graph
    told = {True: "edges that have directions", False: "edges that run both ways"}
    remedy = "Only tables and GraphML are read either way: --directed, --undirected (in Python: directed=)."
    raise InputError(where, told[directed], told[not directed], remedy)


def _follow(sources: Sequence[Source], progress: Progress) -> None:
    """Let tables tell how far the work with all of them is, in percent of their bytes; warn of too many bytes."""
    sizes = [_bytes(source) for source in sources]
    whole = max(1, sum(sizes))
    needed = sum(
        MEMORY_PER_BYTE[source.lines] * size for source, size in zip(sources, sizes, strict=True)
    )
    if whole > SMALL and needed > (free := memory.free_bytes()):
        where = sources[0].path.parent
        used = f"take about {memory.format_size(needed)} of memory"
        message = f"{where}: tables of {memory.format_size(whole)} {used}, and {memory.format_size(free)} are free"
        remedy = "If they do not fit, make a graph folder of them: infomax prepare"
        warn(f"{message}. {remedy}.")

    def tell(name: str, before: int, size: int, share: float) -> None:
        progress(int(100 * READING * (before + size * share) / whole), name, 100)

    for source, size, end in zip(sources, sizes, accumulate(sizes), strict=True):
        source.tell = partial(tell, source.path.name, end - size, size)


def _bytes(source: Source) -> int:
    """The size of the files of a table, or of its cells where it has no files."""
    if source.frame is not None:
        return int(source.frame.nbytes)
    return sum(path.stat().st_size for path in source.files)


def read_labels(
    path: str | Path, names: Sequence[str], id: str | None, known_table: TableSchema | None
) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """The ids ``[N]`` of a node table, and its labels of these names.

    The ids are in the column ``id``, else in that which the ``known_table`` of a graph has for them, if it is there.
    """
    chosen = Columns(id, labels=tuple(names), features=(), known_table=known_table)
    table = read_node_table(Source([table_file(existing(Path(path)))], chosen))
    return table["ids"], table["labels"]


def is_table(source: str | Path) -> bool:
    """Whether a name is that of one table of text or parquet, rather than of a whole graph."""
    path = Path(source)
    return (
        text.extension(path) in EXTENSIONS
        and not path.is_dir()
        and (path.is_file() or "," not in str(source))
    )


def with_labels(graph: AnyRecord, names: Sequence[str], where: str) -> AnyRecord:
    """The graph with the labels of these names first, of each type; a name that no type has is refused."""
    known = list(dict.fromkeys(name for nodes in graph.nodes.values() for name in nodes.labels))
    spelled = spelled_labels(
        names, {node_type: nodes.labels for node_type, nodes in graph.nodes.items()}
    )
    if not names:
        return graph

    chosen = []
    for name in spelled:
        owner, _, label = name.partition(".")
        is_of_type = name not in known and label in known and owner in graph.nodes
        chosen.append(label if is_of_type else name)
        if chosen[-1] not in known:
            expected = f"labels named {shorten(name)}"
            raise InputError(where, expected, f"the labels {', '.join(known) or 'none'}")

    def labels_first(_: str, nodes: Nodes) -> Nodes:
        order = [name for name in (*chosen, *nodes.labels) if name in nodes.labels]
        return replace(nodes, labels={name: nodes.labels[name] for name in order})

    return graph.with_nodes(labels_first)
