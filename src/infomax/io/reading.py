"""Read a graph under any name that a graph can be written to.

The functions find which files a name means, and what is in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from glob import glob, has_magic
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from infomax import memory
from infomax.arrays.folder_layout import is_folder
from infomax.arrays.structural_features import structural_features_named
from infomax.arrays.times import format_time, parse_time
from infomax.errors import InputError, other_extension, shorten, warn, within
from infomax.io import text
from infomax.io.attach import attach
from infomax.io.building import from_scipy
from infomax.io.choices import CHOICES_OF_DATABASES, UserChoices, reading_new_nodes
from infomax.io.column_names import format_list, spelled_labels
from infomax.io.database import is_database, tables_of_database
from infomax.io.features import MATRICES, is_sparse_matrix, read_adjacency
from infomax.io.graph_folder import open_folder
from infomax.io.nodes import Nodes
from infomax.io.npz import read_npz
from infomax.io.past import as_of
from infomax.io.prepare.in_memory import read_node_table, read_tables
from infomax.io.record import Record
from infomax.io.schema.resolving import resolve_edge_table, resolve_node_table
from infomax.io.schema.schema import TableSchema
from infomax.io.schema.tables_by_type import folder_tables, is_typed, two_tables
from infomax.io.sources import EXTENSIONS, Source, existing
from infomax.io.tables import Tables
from infomax.io.text import AS_THE_EXTENSION_SAYS, TextFormat
from infomax.progress import Progress, silent

GRAPHS = (".npz", ".graphml")
"""Files that hold a whole graph."""
MEMORY_PER_BYTE_OF_TEXT, MEMORY_PER_BYTE = 3, 6
"""Bytes of memory per byte of text tables, and of others; measured with 64 features."""
SMALL = 1 << 24
"""Bytes of tables that are read without asking how much memory is free."""
READING = 0.7
"""The share of the work that is told; joining edges with nodes, which follows, is the rest."""
_CHOICES_OF_STORED_GRAPHS = ("labels", "features", "as_of")
"""What can be chosen of a graph that is stored whole."""

AnyRecord = TypeVar("AnyRecord", bound=Record)


def read_record(
    edges: str | Path,
    nodes: str | Path | None,
    choices: UserChoices,
    *,
    directed: bool | None = None,
    attach_to: Record | None = None,
    progress: Progress = silent,
) -> Record:
    """Read a graph as `infomax.read_graph` does; ``progress`` is told how far tables are read."""
    if nodes is None and attach_to is None and is_folder(Path(edges)):
        expected = f"tables, rather than the graph folder {edges}"
        choices.refuse_others(_CHOICES_OF_STORED_GRAPHS, expected)
        return _as_asked(open_folder(Path(edges)), choices, directed, str(edges))

    graph_file, nodes_file = pair_of_names(edges, nodes)
    if Path(graph_file).suffix.lower() in GRAPHS:
        if attach_to is not None:
            expected = f"tables of new nodes and their edges ({', '.join(EXTENSIONS)})"
            raise InputError(str(graph_file), expected, "a whole graph")
        if nodes_file is not None:
            found = f"one beside {graph_file}, which holds its own nodes"
            raise InputError(str(nodes_file), "no node table", found)
        return _read_graph_file(existing(Path(graph_file)), choices, directed)

    tables = find_tables(edges, nodes, choices, attach_to)
    _follow(tables.sources, progress)
    if attach_to is not None:
        return attach(tables, attach_to)
    return read_tables(tables, directed=bool(directed))


def find_tables(
    edges: str | Path,
    nodes: str | Path | None,
    choices: UserChoices,
    attach_to: Record | None = None,
) -> Tables:
    """The tables of a graph, or of new nodes of a known one, and what their columns are."""
    if nodes is None and is_database(edges, choices.text_format):
        if attach_to is not None:
            remedy = "infomax update RUN DATABASE takes a run to a later one."
            expected = "tables of new nodes and their edges"
            raise InputError("attach_to", expected, "a database", remedy)
        choices.refuse_other_types(edges, has_several_types=True)
        choices.refuse_schema_of_others(is_database=True)
        return tables_of_database(edges, choices)

    choices.refuse_schema_of_others(is_database=False)
    expected = f"a database or a folder of tables with keys, rather than {edges}"
    choices.refuse(CHOICES_OF_DATABASES, expected)
    if is_typed(Path(edges)):
        if nodes is not None:
            expected = f"no node table beside {edges}, which holds its own"
            raise InputError(str(nodes), expected, "one")
        if attach_to is not None and not attach_to.has_named_types:
            expected = "tables of one type of nodes, as the known graph has"
            raise InputError(str(edges), expected, "several types")
        choices = reading_new_nodes(choices, attach_to)
        choices.refuse_other_types(edges, has_several_types=True)
        return folder_tables(Path(edges), choices)
    return _find_two_tables(edges, nodes, reading_new_nodes(choices, attach_to))


def _find_two_tables(edges: str | Path, nodes: str | Path | None, choices: UserChoices) -> Tables:
    """An edge table and, where there is one, a node table: two files, or the files of a folder."""
    text_format = choices.text_format
    edges, nodes = pair_of_names(edges, nodes)
    folder = Path(edges)
    feature_file = None
    edge_file = None
    if folder.is_dir():
        edge_file = _file_in_folder(folder, "edges", text_format=text_format)
    if edge_file is not None:
        feature_file = _file_in_folder(folder, "features", MATRICES)
        edges = edge_file
        nodes = nodes or _file_in_folder(folder, "nodes", text_format=text_format)

    edge_source = Source(_files(str(edges), text_format), text_format=text_format)
    node_source = None
    if nodes is not None:
        node_source = Source(_files(str(nodes), text_format), text_format=text_format)
    # The only table of a folder is one of edges if its columns say so; else the edges are missing.
    is_alone = nodes is None and Path(edges).is_dir() and len(edge_source.files) == 1
    if is_alone:
        edge_table = resolve_edge_table(edge_source, choices, warns_of_unused=False)
        if not edge_table.are_ends_named:
            raise _no_edges(str(edges), f"only {edge_source.path.name}")
    return two_tables(edge_source, node_source, choices, feature_file)


def pair_of_names(
    edges: str | Path, nodes: str | Path | None
) -> tuple[str | Path, str | Path | None]:
    """The names of the edge table and the node table.

    Both may be given as one name: ``edges.csv,nodes.csv``.
    """
    if nodes is None and not Path(edges).exists() and str(edges).count(",") == 1:
        first, second = str(edges).split(",")
        return first.strip(), second.strip()
    return edges, nodes


def _file_in_folder(
    folder: Path,
    stem: str,
    extensions: Sequence[str] = (),
    text_format: TextFormat = AS_THE_EXTENSION_SAYS,
) -> Path | None:
    """The file of that name in a folder, by default a table, or None; two of them are refused."""
    named = sorted(folder.glob(f"{stem}.*"))
    if extensions:
        files = [path for path in named if text.extension(path) in extensions]
    else:
        files = [path for path in named if text.is_table_file(path, text_format)]
    if len(files) > 1:
        names = " and ".join(path.name for path in files)
        remedy = "Remove one, or name the files: edges.csv,nodes.csv."
        raise InputError(str(folder), f"one file {stem}.*", names, remedy)
    return files[0] if files else None


def _files(name: str, text_format: TextFormat) -> list[Path]:
    """The files of one table.

    They are a file, all tables in a folder, or those that a pattern such as ``*.csv`` fits.
    """
    path = Path(name)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if text.is_table_file(file, text_format))
        if not files:
            raise _no_edges(name, "none in the folder")
        return files
    if not path.exists() and has_magic(name):
        files = sorted(map(Path, glob(name, recursive=True)))  # noqa: PTH207  of any root
        if not files:
            raise InputError(name, "a file", "no file of such a name")
    else:
        remedy = "" if path.suffix else "In Python load_dataset reads a data set by its name."
        files = [existing(path, remedy)]
    return [table_file(file, text_format) for file in files]


def _no_edges(folder: str, found: str) -> InputError:
    remedy = (
        "Of several types of nodes: tables nodes/TYPE.csv and edges/TYPE.RELATION.TYPE.csv in it."
    )
    if (Path(folder) / "config.json").exists():
        found = "a run folder"
        remedy = f"Name the graph in it: {Path(folder) / 'graph.npz'}."
    elif any(Path(folder).glob("*/edges.*")):
        found = "folders of several graphs"
        remedy = (
            "Write them as one graph, whose node table tells the graph of each node: "
            "--groups COLUMN."
        )
    return InputError(folder, f"a file edges with one of {', '.join(EXTENSIONS)}", found, remedy)


def table_file(path: Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> Path:
    """The path of a file, refused unless it has one of the extensions of tables."""
    suffix = text.extension(path)
    if not text.is_table_file(path, text_format):
        remedy = text.by_pandas(path) if path.is_file() else ""
        if suffix in (".data", ".dat", ".item", ".user"):
            remedy = f"Say what separates its cells: --delimiter tab, --no-header. {remedy}"
        raise other_extension(
            path, EXTENSIONS if suffix in GRAPHS else (*EXTENSIONS, *GRAPHS), remedy
        )
    return path


def _read_graph_file(path: Path, choices: UserChoices, directed: bool | None) -> Record:
    """The graph of a file that holds a whole one."""
    expected = f"tables, rather than {path}"
    if path.suffix.lower() == ".graphml":
        from infomax.io.networkx import read_graphml

        of_attributes = ("ignore", "name", "time", "column_types")
        choices.refuse_others((*_CHOICES_OF_STORED_GRAPHS, *of_attributes), expected)
        return read_graphml(path, choices, directed)

    choices.refuse_others(_CHOICES_OF_STORED_GRAPHS, expected)
    structural_features = choices.structural_features
    if is_sparse_matrix(path):
        with within(path):
            graph = from_scipy(read_adjacency(path), structural_features, directed=bool(directed))
    else:
        graph = read_npz(path, structural_features)
    return _as_asked(graph, choices, directed, str(path))


def _as_asked(graph: Record, choices: UserChoices, directed: bool | None, location: str) -> Record:
    """A graph that is stored as a graph.

    It is refused where it cannot have the features or the directions that a person asked for.
    """
    is_like_another = choices.like is not None
    if choices.features is not None and not is_like_another:
        stored = {structural_features_named(nodes.feature_names) for nodes in graph.nodes.values()}
        asked = choices.structural_features
        if asked is None or asked not in stored:
            expected = (
                f"tables or GraphML to choose features of, rather than {location}, "
                "which holds its own"
            )
            raise InputError("features", expected, format_list(choices.features))
    graph = with_labels(check_directions(graph, directed, location), choices.labels, location)
    if choices.as_of is None:
        return graph
    if not is_like_another:
        _refuse_later_rows(graph, parse_time(choices.as_of, "as_of"), location)
    return as_of(graph, choices.as_of)


def _refuse_later_rows(graph: Record, until: int, location: str) -> None:
    """Refuse a stored graph whose columns were learnt from rows that are later than ``until``."""
    for node_type, nodes in graph.nodes.items():
        was_learnt = nodes.encoding is not None and not nodes.encoding.raw
        if was_learnt and nodes.times is not None and (nodes.times[:] > until).any():
            day = format_time(until)
            expected = f"columns that were learnt from rows up to {day}"
            found = f"later rows of {node_type or 'nodes'}"
            remedy = (
                f'Make it of the tables again: infomax prepare TABLES --as-of "{day}" --out FOLDER.'
            )
            raise InputError(location, expected, found, remedy)


def check_directions(graph: AnyRecord, directed: bool | None, location: str) -> AnyRecord:
    """The graph, refused where a person says other directions than it has."""
    if directed is None or graph.directed == directed:
        return graph
    descriptions = {True: "edges that have directions", False: "edges that run both ways"}
    remedy = (
        "Only tables and GraphML are read either way: "
        "--directed, --undirected (in Python: directed=)."
    )
    raise InputError(location, descriptions[directed], descriptions[not directed], remedy)


def _follow(sources: Sequence[Source], progress: Progress) -> None:
    """Let tables report how far the work with all of them is, in percent of their bytes.

    Warn of too many bytes.
    """
    sizes = [_bytes(source) for source in sources]
    total = max(1, sum(sizes))
    needed = 0
    for source, size in zip(sources, sizes, strict=True):
        needed += size * (MEMORY_PER_BYTE_OF_TEXT if source.is_text else MEMORY_PER_BYTE)
    if total > SMALL:
        free = memory.free_bytes()
        if needed > free:
            used = f"take about {memory.format_size(needed)} of memory"
            warn(
                f"{sources[0].path.parent}: tables of {memory.format_size(total)} {used}, and "
                f"{memory.format_size(free)} are free. If they do not fit, make a graph folder of "
                "them: infomax prepare."
            )

    def tell(name: str, bytes_before: int, size: int, share: float) -> None:
        progress(int(100 * READING * (bytes_before + size * share) / total), name, 100)

    for source, size, end in zip(sources, sizes, accumulate(sizes), strict=True):
        source.tell = partial(tell, source.path.name, end - size, size)


def _bytes(source: Source) -> int:
    """The size of the files of a table, or of its cells where it has no files."""
    if source.frame is not None:
        return int(source.frame.nbytes)
    return sum(path.stat().st_size for path in source.files)


def read_labels(
    path: str | Path, names: Sequence[str], id: str | None, earlier_table: TableSchema | None
) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """The ids ``[N]`` of a node table, and its labels of these names.

    The ids are in the column ``id``, else in that which the ``earlier_table`` of a graph has for
    them, if it is there.
    """
    source = Source([table_file(existing(Path(path)))])
    choices = UserChoices(id=id, labels=tuple(names), features=())
    columns = read_node_table(resolve_node_table(source, choices, earlier_table))
    return columns["ids"], columns["labels"]


def is_table(source: str | Path) -> bool:
    """Whether a name is that of one table of text or parquet, rather than of a whole graph."""
    path = Path(source)
    if text.extension(path) not in EXTENSIONS or path.is_dir():
        return False
    return path.is_file() or "," not in str(source)


def with_labels(graph: AnyRecord, names: Sequence[str], location: str) -> AnyRecord:
    """The graph with the labels of these names first, of each type.

    A name that no type has is refused.
    """
    labels_of_types = {node_type: nodes.labels for node_type, nodes in graph.nodes.items()}
    spelled = spelled_labels(names, labels_of_types)
    if not names:
        return graph

    known_labels = list(
        dict.fromkeys(name for labels in labels_of_types.values() for name in labels)
    )
    first_labels = []
    for name in spelled:
        node_type, _, label = name.partition(".")
        is_of_type = name not in known_labels and label in known_labels and node_type in graph.nodes
        if is_of_type:
            name = label
        if name not in known_labels:
            found = f"the labels {', '.join(known_labels) or 'none'}"
            raise InputError(location, f"labels named {shorten(name)}", found)
        first_labels.append(name)

    def labels_first(_: str, nodes: Nodes) -> Nodes:
        order = [name for name in (*first_labels, *nodes.labels) if name in nodes.labels]
        return replace(nodes, labels={name: nodes.labels[name] for name in order})

    return graph.with_nodes(labels_first)
