"""Read graphs from files, and read and write vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from infomax.arrays.folder import is_folder
from infomax.errors import InputError, shorten
from infomax.graphs.graph import Graph
from infomax.graphs.many import join
from infomax.io import parquet, tables, text
from infomax.io.columns import MATRICES, Columns
from infomax.io.features import warn_if_ids, with_matrix
from infomax.io.npz import read_npz

__all__ = ["read_graph", "read_labels"]

_TABLES = (*text.DELIMITERS, ".parquet")
_COLUMNS = ("id", "source", "target", "weight", "groups", "matrix")


def read_graph(
    edges: str | Path,
    nodes: str | Path | None = None,
    *,
    labels: str | Sequence[str] = (),
    features: str | Path | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    groups: str | None = None,
    directed: bool | None = None,
    attach_to: Graph | None = None,
) -> Graph:
    """Read a graph from an edge table and a node table, a folder, an npz or a GraphML file.

    Tables are csv, tsv or txt, each also packed by gzip, or parquet.

    >>> read_graph("edges.csv", "nodes.csv", labels="section")
    >>> read_graph("edges.csv,nodes.csv")
    >>> read_graph("folder/")  # edges.* and, if there are any, nodes.* and features.npy or features.npz
    >>> read_graph("graphs/")  # a folder of such folders, .npz or .graphml files: many graphs
    >>> read_graph("graph.npz")
    >>> read_graph("big.graph")  # a folder that infomax prepare wrote; its arrays stay on disk

    Edge tables: the columns ``source`` and ``target``, else the first two; an optional ``weight``; a
    warning names other columns, which are not used. Node tables: the column ``id``, else the first; every other column
    is a feature and must be numeric, unless it is named in ``labels``. Features are stored sparse where less than a
    tenth of them is not zero. Without a node table the nodes are the ids of the edges in order of first appearance;
    without features they get degree features.

    Text tables are UTF-8 with commas (.csv) or tabs (.tsv, .txt). Their first line names the columns; a first line of
    numbers only, or of two node ids, is refused, since an edge or a node would be lost. Ids are integers where all of
    them are written as integers, else text, exactly as written ("007" stays "007").

    With ``attach_to`` the tables hold only new nodes, and the edges that join them to each other and to the nodes of a
    known graph. The result is the known graph with the new nodes appended; ``splits["new"]`` marks them, and it has no
    labels. It has the features and the directedness of the known graph; degree features are counted again. Columns
    that were named for the known graph need not be named again.

    >>> grown = read_graph("new/", attach_to=model.graph_)
    >>> model.transform(grown).part(grown.splits["new"])

    Args:
        edges: the edge table, or one of the other forms above.
        nodes: the node table.
        labels: names of the columns (GraphML: node attributes) that are labels; an empty cell means unlabelled.
            Columns that are called ``label:NAME`` are labels, and ``split:NAME`` splits, without being named here.
        features: names of the columns that are features; other columns are then ignored. Or a file with one row per
            row of the node table, which then has no features: .npy, or the .npz of a sparse matrix of scipy.
        ignore: names of columns of the node table that are not read.
        id: the column of ids in the node table.
        source, target, weight: the columns of the edge table, where they have other names.
        groups: the column of the node table that names the graph of each node, where there are several graphs.
        directed: keep the directions; False: an edge runs both ways. None: as a GraphML file says; of tables, False.
            Not for an npz, which says so itself.
        attach_to: the graph that the tables' nodes are added to.
    """
    columns = Columns.of(
        labels, features, ignore, id=id, source=source, target=target, weight=weight, groups=groups
    )  # fmt: skip
    return read_chosen(edges, nodes, columns, directed=directed, attach_to=attach_to)


def read_chosen(
    edges: str | Path,
    nodes: str | Path | None,
    columns: Columns,
    *,
    directed: bool | None = None,
    attach_to: Graph | None = None,
) -> Graph:
    """What `read_graph` returns for these columns."""
    if nodes is None and attach_to is None and is_folder(Path(edges)):
        columns.refuse((*_COLUMNS, "ignore"), f"tables, rather than the graph folder {edges}")
        return with_labels(Graph.open(edges), columns.labels, str(edges))
    if nodes is None and (members := _members(Path(edges))):
        columns.refuse(["groups"], f"one graph, rather than the folder of graphs {edges}")
        if attach_to is not None:
            raise InputError("attach_to", "tables of new nodes and their edges", "a folder of graphs")
        graphs = {name: read_chosen(path, None, columns, directed=directed) for name, path in members.items()}
        return Graph(**join({name: graph.loaded() for name, graph in graphs.items()}))
    edge_path, node_path, beside = _paths(edges, nodes)
    if columns.matrix is None:
        columns = replace(columns, matrix=beside)
    suffix = edge_path.suffix.lower()
    if attach_to is not None:
        return _attach(edge_path, node_path, columns, attach_to)
    if suffix in (".npz", ".graphml"):
        if node_path is not None:
            raise InputError(str(node_path), "no node table", f"one beside {edge_path}, which holds its own nodes")
        columns.refuse(_COLUMNS, f"tables, rather than {edge_path}")
        if suffix == ".npz":
            columns.refuse(["ignore"], f"tables, rather than {edge_path}")
            return with_labels(read_npz(edge_path), columns.labels, str(edge_path))
        from infomax.io.graphml import read_graphml

        return read_graphml(edge_path, columns, directed)
    if node_path is None:
        columns.refuse_without_nodes(edge_path)
    node_table = None if node_path is None else _read_nodes(node_path, columns)
    return tables.build(_format(edge_path).read_edges(edge_path, columns), node_table, bool(directed), columns)


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


def _read_nodes(path: Path, columns: Columns) -> tables.NodeTable:
    table: tables.NodeTable = _format(path).read_nodes(path, columns)
    if columns.matrix is not None:
        return with_matrix(table, columns.matrix, columns.features)
    if columns.features is None and table.features is not None:
        warn_if_ids(path, table.feature_names, table.features)
    return table


def _attach(edges: Path, nodes: Path | None, columns: Columns, known: Graph) -> Graph:
    columns.refuse(("labels", "ignore", "groups"), "none where nodes are attached to a graph")
    if edges.suffix.lower() in (".npz", ".graphml"):
        raise InputError(str(edges), f"tables of new nodes and their edges ({', '.join(_TABLES)})", "a whole graph")
    columns = replace(columns, features=known.feature_names, known=known.table_columns)
    node_table = None if nodes is None else _read_nodes(nodes, columns)
    return tables.attach(_format(edges).read_edges(edges, columns), node_table, known)


def read_labels(
    path: str | Path, column: str, *, id: str | None = None, known: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """One column of a node table as a dictionary: the id as text -> the label ("" = unknown).

    The ids are in the column ``id``, else in that of ``known``, the ``table_columns`` of a graph, if it is there.
    """
    file = _existing(Path(path))
    table: tables.NodeTable = _format(file).read_nodes(file, Columns(id, labels=(column,), features=(), known=known))
    return dict(zip(map(str, table.ids), table.labels[column].tolist(), strict=True))


def is_table(source: str | Path) -> bool:
    """Whether a name is that of one table of text or parquet, rather than of a whole graph."""
    path = Path(source)
    return text.extension(path) in _TABLES and not path.is_dir() and (path.is_file() or "," not in str(source))


def _paths(edges: str | Path, nodes: str | Path | None) -> tuple[Path, Path | None, Path | None]:
    """The paths of the edge table, the node table and, in a folder, the file of features; all of them exist."""
    path, features = Path(edges), None
    if nodes is None and not path.exists() and str(edges).count(",") == 1:
        first, second = str(edges).split(",")
        path, nodes = Path(first.strip()), second.strip()
    if path.is_dir():
        found = _in_folder(path, "edges")
        if found is None:
            raise InputError(str(path), f"a file edges with one of {', '.join(_TABLES)}", "none in the folder")
        features = _in_folder(path, "features", MATRICES)
        path, nodes = found, nodes or _in_folder(path, "nodes")
    return _existing(path), None if nodes is None else _existing(Path(nodes)), features


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(str(path), "a file", "a folder" if path.is_dir() else "nothing of that name")
    return path


def _in_folder(folder: Path, stem: str, extensions: Sequence[str] = _TABLES) -> Path | None:
    """The file of that name in a folder, or None; two of them are refused."""
    found = sorted(path for path in folder.glob(f"{stem}.*") if text.extension(path) in extensions)
    if len(found) > 1:
        listed = " and ".join(path.name for path in found)
        raise InputError(
            str(folder), f"one file {stem}.*", listed, "Remove one, or name the files: edges.csv,nodes.csv."
        )
    return found[0] if found else None


def _format(path: Path) -> Any:
    """The module that reads tables with this extension."""
    suffix = text.extension(path)
    if suffix not in _TABLES:
        known = ", ".join((*_TABLES, ".npz", ".graphml"))
        raise InputError(str(path), f"one of {known}", f"the extension {shorten(path.suffix)}")
    return parquet if suffix == ".parquet" else text


def with_labels(graph: Graph, names: Sequence[str], where: str) -> Graph:
    """The graph with the labels of these names first; a name that it does not have is refused."""
    for name in names:
        if name not in graph.labels:
            raise InputError(where, f"labels named {shorten(name)}", f"the labels {', '.join(graph.labels) or 'none'}")
    if not names:
        return graph
    return replace(graph, labels={name: graph.labels[name] for name in (*names, *graph.labels)})
