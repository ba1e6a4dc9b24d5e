"""Read a graph under any name that one can be written to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from infomax import machine
from infomax.arrays.folder import is_folder
from infomax.arrays.made import made
from infomax.errors import InputError, other_extension, shorten, warn
from infomax.io import text
from infomax.io.attach import attach
from infomax.io.columns import DATABASE, MATRICES, TYPES, Columns, listed
from infomax.io.database import is_database, of_database
from infomax.io.features import existing
from infomax.io.folder import open_folder
from infomax.io.known import as_known
from infomax.io.many import join
from infomax.io.nodes import Nodes
from infomax.io.npz import read_npz
from infomax.io.other_tables import by_pandas
from infomax.io.prepare.in_memory import read_node_table, read_tables
from infomax.io.record import Record
from infomax.io.sources import EXTENSIONS, Source
from infomax.io.typed import Tables, is_typed, of_folder, of_one_type, of_tables
from infomax.progress import Progress, silent

MEMORY_PER_BYTE = {True: 3, False: 6}
"""Bytes of memory per byte of tables of text, and of others: 2.8 and 6.6 were measured, with 64 features."""
SMALL = 1 << 24
"""Bytes of tables that are read without asking how much memory is free."""
READING = 0.7
"""The share of the work that is told; joining edges with nodes, which follows, is the rest."""
_COLUMNS = ("id", "source", "target", "weight", "groups", "matrix", "kinds", *TYPES)


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
        columns.refuse((*_COLUMNS, "ignore", "name"), f"tables, rather than the graph folder {edges}")
        return _as_asked(open_folder(Path(edges)), columns, directed, str(edges))
    if nodes is None and is_typed(Path(edges)):
        if attach_to is not None and not attach_to.types:
            raise InputError(str(edges), "tables of one type of nodes, as the known graph has", "several types")
        columns = as_known(columns, attach_to).as_before("edges_as")
        columns.refuse_other_types(edges, several=True)
        return _read_tables(of_folder(Path(edges), columns), directed, attach_to, progress)
    if nodes is None and is_database(edges):
        if attach_to is not None:
            remedy = "infomax update RUN DATABASE takes a run to a later one."
            raise InputError("attach_to", "tables of new nodes and their edges", "a database", remedy)
        columns.refuse_other_types(edges, several=True)
        return _read_tables(of_database(edges, columns), directed, None, progress)
    columns.refuse(DATABASE, f"a database or a folder of tables with keys, rather than {edges}")
    if nodes is None and (members := _members(Path(edges))):
        columns.refuse(["groups"], f"one graph, rather than the folder of graphs {edges}")
        if attach_to is not None:
            raise InputError("attach_to", "tables of new nodes and their edges", "a folder of graphs")
        if columns.learns and columns.made == "positions":
            raise InputError("features", "degrees, for several graphs", "positions, which they do not share")
        return join({name: graph.loaded() for name, graph in _read_members(members, columns, directed).items()})
    edge_path, node_path, beside = _paths(edges, nodes)
    if columns.matrix is None:
        columns = replace(columns, matrix=beside)
    suffix = edge_path.suffix.lower()
    if suffix in (".npz", ".graphml"):
        if attach_to is not None:
            expected = f"tables of new nodes and their edges ({', '.join(EXTENSIONS)})"
            raise InputError(str(edge_path), expected, "a whole graph")
        if node_path is not None:
            raise InputError(str(node_path), "no node table", f"one beside {edge_path}, which holds its own nodes")
        columns.refuse([word for word in _COLUMNS if word != "kinds"], f"tables, rather than {edge_path}")
        if suffix == ".npz":
            columns.refuse(["ignore", "name", "kinds"], f"tables, rather than {edge_path}")
            return _as_asked(read_npz(edge_path, columns.made), columns, directed, str(edge_path))
        from infomax.io.graphml import read_graphml

        return read_graphml(edge_path, columns, directed)
    columns = as_known(columns, attach_to).as_before()
    edge_table = _source(edge_path, columns)
    node_table = None if node_path is None else _source(node_path, columns)
    columns = columns.with_timed_rows(edge_table.names, [] if node_table is None else node_table.names)
    if attach_to is None:
        columns.refuse_other_types(edges, several=columns.typed)
    if columns.typed:
        return _read_tables(of_tables(edge_table, node_table, columns), directed, attach_to, progress)
    if attach_to is not None and attach_to.types:
        raise InputError(str(edges), "a folder of tables, for several types of nodes", "one edge table")
    if attach_to is None and node_table is None:
        columns.refuse_without_nodes(edge_path)
    return _read_tables(of_one_type(edge_table, node_table, columns), directed, attach_to, progress)


def _read_members(members: Mapping[str, Path], columns: Columns, directed: bool | None) -> dict[str, Record]:
    """The graphs of a folder; what their columns become is learnt from the node tables of all, if they have some."""
    graphs = {}
    for name, path in members.items():
        graphs[name] = graph = read_record(path, None, columns, directed=directed)
        if graph.encoding is not None and columns.encoding is None:
            tables = [_in_folder(path, "nodes") if path.is_dir() else None for path in members.values()]
            together = Source([table for table in tables if table is not None], columns)
            if None not in tables and together.learn() and together.columns.encoding is not None:
                return _read_members(members, together.columns, directed)
            columns = columns.like(graph.feature_names, graph.encoding)  # else the first graph decides
    return graphs


def _read_tables(found: Tables, directed: bool | None, attach_to: Record | None, progress: Progress) -> Record:
    _follow(found.sources, progress)
    return read_tables(found, directed=bool(directed)) if attach_to is None else attach(found, attach_to)


def _as_asked(graph: Record, columns: Columns, directed: bool | None, where: str) -> Record:
    """A graph that is stored whole; refused where it cannot have the features or the directions that were asked for."""
    kinds = {made(one.feature_names) for one in graph.nodes.values()}
    if columns.learns and columns.features is not None and columns.made not in kinds - {None}:
        expected = f"tables or GraphML to choose features of, rather than {where}, which holds its own"
        raise InputError("features", expected, listed(columns.features))
    graph = with_labels(check_directions(graph, directed, where), columns.labels, where)
    return graph if columns.as_of is None else graph.as_of(columns.as_of)


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
    needed = sum(MEMORY_PER_BYTE[source.lines] * size for source, size in zip(sources, sizes, strict=True))
    if whole > SMALL and needed > (free := machine.free_bytes()):
        where, used = sources[0].path.parent, f"take about {machine.size(needed)} of memory"
        message = f"{where}: tables of {machine.size(whole)} {used}, and {machine.size(free)} are free"
        remedy = "If they do not fit, make a graph folder of them: infomax prepare"
        warn(f"{message}. {remedy}.")
    for source, size, end in zip(sources, sizes, accumulate(sizes), strict=True):
        source.tell = partial(_tell, progress, source.path.name, (end - size) / whole, size / whole)


def _bytes(source: Source) -> int:
    """The size of the files of a table, or of its cells where it has no files."""
    if source.frame is not None:
        return int(source.frame.nbytes)
    return sum(path.stat().st_size for path in source.files)


def _tell(progress: Progress, name: str, before: float, part: float, share: float) -> None:
    progress(int(100 * READING * (before + part * share)), name, 100)


def _members(folder: Path) -> dict[str, Path]:
    """The graphs in a folder of graphs by their names: folders with tables, and files .npz and .graphml."""
    if not folder.is_dir() or _in_folder(folder, "edges") is not None:
        return {}
    if (folder / "config.json").exists() and (folder / "graph.npz").exists():
        remedy = f"Name the graph in it: {folder / 'graph.npz'}."
        raise InputError(str(folder), "a graph, or a folder of graphs", "a run folder", remedy)
    entries = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    files = {path.stem: path for path in entries if path.suffix.lower() in (".npz", ".graphml")}
    folders = {path.name: path for path in entries if path.is_dir() and _in_folder(path, "edges") is not None}
    if both := files.keys() & folders.keys():
        raise InputError(str(folder), "a name for each graph", f"two graphs called {shorten(min(both))}", "Rename one.")
    return files | folders


def read_labels(
    path: str | Path, names: Sequence[str], id: str | None, earlier: Mapping[str, str]
) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """The ids ``[N]`` of a node table, and its labels of these names.

    The ids are in the column ``id``, else in that of ``earlier``, the ``table_columns`` of a graph, if it is there.
    """
    chosen = Columns(id, labels=tuple(names), features=(), earlier=earlier)
    table = read_node_table(_source(existing(Path(path)), chosen))
    return table["ids"], table["labels"]


def is_table(source: str | Path) -> bool:
    """Whether a name is that of one table of text or parquet, rather than of a whole graph."""
    path = Path(source)
    return text.extension(path) in EXTENSIONS and not path.is_dir() and (path.is_file() or "," not in str(source))


def _paths(edges: str | Path, nodes: str | Path | None) -> tuple[Path, Path | None, Path | None]:
    """The paths of the edge table, the node table and, in a folder, the file of features; all of them exist."""
    path, features = Path(edges), None
    if nodes is None and not path.exists() and str(edges).count(",") == 1:
        first, second = str(edges).split(",")
        path, nodes = Path(first.strip()), second.strip()
    if path.is_dir():
        found = _in_folder(path, "edges")
        if found is None:
            remedy = "Of several types of nodes: tables nodes/TYPE.csv and edges/TYPE.RELATION.TYPE.csv in it."
            raise InputError(
                str(path), f"a file edges with one of {', '.join(EXTENSIONS)}", "none in the folder", remedy
            )
        features = _in_folder(path, "features", MATRICES)
        path, nodes = found, nodes or _in_folder(path, "nodes")
    remedy = "" if path.suffix else "In Python load_dataset reads a data set by its name."
    return existing(path, remedy), None if nodes is None else existing(Path(nodes)), features


def _in_folder(folder: Path, stem: str, extensions: Sequence[str] = EXTENSIONS) -> Path | None:
    """The file of that name in a folder, or None; two of them are refused."""
    found = sorted(path for path in folder.glob(f"{stem}.*") if text.extension(path) in extensions)
    if len(found) > 1:
        listed = " and ".join(path.name for path in found)
        raise InputError(
            str(folder), f"one file {stem}.*", listed, "Remove one, or name the files: edges.csv,nodes.csv."
        )
    return found[0] if found else None


def _source(path: Path, columns: Columns) -> Source:
    """The table of a file, with one of the extensions of tables."""
    if text.extension(path) not in EXTENSIONS:
        remedy = by_pandas(path)
        raise other_extension(path, (*EXTENSIONS, ".npz", ".graphml"), remedy)
    return Source([path], columns)


def with_labels(graph: AnyRecord, names: Sequence[str], where: str) -> AnyRecord:
    """The graph with the labels of these names first, of each type; a name that no type has is refused."""
    known = list(dict.fromkeys(name for nodes in graph.nodes.values() for name in nodes.labels))
    for name in names:
        if name not in known:
            raise InputError(where, f"labels named {shorten(name)}", f"the labels {', '.join(known) or 'none'}")
    if not names:
        return graph

    def labels_first(_: str, nodes: Nodes) -> Nodes:
        order = [name for name in (*names, *nodes.labels) if name in nodes.labels]
        return replace(nodes, labels={name: nodes.labels[name] for name in order})

    return graph.with_nodes(labels_first)
