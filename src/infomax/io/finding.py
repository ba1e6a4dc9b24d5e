"""Which tables a name means: files, folders and patterns of files, folders by type, and databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path

from infomax.errors import InputError, other_extension
from infomax.io import text
from infomax.io.columns import DATABASE, MATRICES, Columns
from infomax.io.database import is_database, tables_of_database
from infomax.io.features import existing
from infomax.io.known import as_known
from infomax.io.record import Record
from infomax.io.sources import EXTENSIONS, Source
from infomax.io.text_format import AS_THE_EXTENSION_SAYS, TextFormat
from infomax.io.typed import Tables, is_typed, of_folder, of_two

GRAPHS = (".npz", ".graphml")
"""Files that hold a whole graph."""


def find_tables(
    edges: str | Path, nodes: str | Path | None, columns: Columns, known: Record | None = None
) -> Tables:
    """The tables of a graph, or of new nodes of a ``known`` one, each with the choices that concern it."""
    if nodes is None and is_database(edges, columns.text_format):
        if known is not None:
            remedy = "infomax update RUN DATABASE takes a run to a later one."
            raise InputError(
                "attach_to", "tables of new nodes and their edges", "a database", remedy
            )
        columns.refuse_other_types(edges, has_several_types=True)
        columns.refuse_schema_of_others(is_database=True)
        return tables_of_database(edges, columns)
    columns.refuse_schema_of_others(is_database=False)
    columns.refuse(DATABASE, f"a database or a folder of tables with keys, rather than {edges}")
    if is_typed(Path(edges)):
        if nodes is not None:
            raise InputError(
                str(nodes), f"no node table beside {edges}, which holds its own", "one"
            )
        if known is not None and not known.has_named_types:
            raise InputError(
                str(edges), "tables of one type of nodes, as the known graph has", "several types"
            )
        columns = as_known(columns, known).as_before("edges_as")
        columns.refuse_other_types(edges, has_several_types=True)
        return of_folder(Path(edges), columns, attaches=known is not None)
    return _of_two(edges, nodes, columns, known)


def _of_two(
    edges: str | Path, nodes: str | Path | None, columns: Columns, known: Record | None
) -> Tables:
    """An edge table and, where there is one, a node table."""
    edges, nodes = pair_of_names(edges, nodes)
    folder, beside = Path(edges), None
    if (
        folder.is_dir()
        and (found := in_folder(folder, "edges", text_format=columns.text_format)) is not None
    ):
        beside = in_folder(folder, "features", MATRICES)
        edges, nodes = found, nodes or in_folder(folder, "nodes", text_format=columns.text_format)
    if columns.matrix is None:
        columns = replace(columns, matrix=beside)
    columns = as_known(columns, known)
    edge_table = Source(_files(str(edges), columns.text_format), columns.of_edge_table())
    alone = nodes is None and Path(edges).is_dir() and len(edge_table.files) == 1
    if alone and not columns.names_ends(
        edge_table.ends
    ):  # a table of something else, by its columns
        raise _no_edges(str(edges), f"only {edge_table.path.name}")
    return of_two(
        edge_table,
        None if nodes is None else Source(_files(str(nodes), columns.text_format), columns),
        columns,
        known,
    )


def pair_of_names(
    edges: str | Path, nodes: str | Path | None
) -> tuple[str | Path, str | Path | None]:
    """The names of the edge table and the node table, which may be given as one: ``edges.csv,nodes.csv``."""
    if nodes is None and not Path(edges).exists() and str(edges).count(",") == 1:
        first, second = str(edges).split(",")
        return first.strip(), second.strip()
    return edges, nodes


def in_folder(
    folder: Path,
    stem: str,
    extensions: Sequence[str] = (),
    text_format: TextFormat = AS_THE_EXTENSION_SAYS,
) -> Path | None:
    """The file of that name in a folder, by default a table, or None; two of them are refused."""
    named = sorted(folder.glob(f"{stem}.*"))
    if extensions:
        found = [path for path in named if text.extension(path) in extensions]
    else:
        found = [path for path in named if text.is_table_file(path, text_format)]
    if len(found) > 1:
        listed = " and ".join(path.name for path in found)
        remedy = "Remove one, or name the files: edges.csv,nodes.csv."
        raise InputError(str(folder), f"one file {stem}.*", listed, remedy)
    return found[0] if found else None


def _files(name: str, text_format: TextFormat) -> list[Path]:
    """The files of one table: a file, all tables in a folder, or those that a pattern such as ``*.csv`` fits."""
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
        remedy = "Write them as one graph, whose node table tells the graph of each node: --groups COLUMN."
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
