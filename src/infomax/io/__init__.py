"""Read graphs from files, and read and write vectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infomax.errors import InputError, shorten
from infomax.graphs.folder import is_folder
from infomax.graphs.graph import Graph
from infomax.io import parquet, tables, text

__all__ = ["read_graph", "read_labels"]

_TABLES = (*text.DELIMITERS, ".parquet")


def read_graph(
    edges: str | Path,
    nodes: str | Path | None = None,
    *,
    labels: str | Sequence[str] = (),
    features: Sequence[str] | None = None,
    directed: bool = False,
    attach_to: Graph | None = None,
) -> Graph:
    """Read a graph from an edge table and a node table, a folder, an npz or a GraphML file.

    Tables are csv, tsv or txt, each also packed by gzip, or parquet.

    >>> read_graph("edges.csv", "nodes.csv", labels="section")
    >>> read_graph("edges.csv,nodes.csv")
    >>> read_graph("folder/")  # edges.* and, if there is one, nodes.*
    >>> read_graph("graph.npz")
    >>> read_graph("big.graph")  # a folder that infomax prepare wrote; its arrays stay on disk

    Edge tables: the columns ``source`` and ``target``, else the first two; an optional ``weight``; other columns are
    ignored. Node tables: the column ``id``, else the first; every other column is a feature and must be numeric, unless
    it is named in ``labels``. Features are stored sparse where less than a tenth of them is not zero. Without a node
    table the nodes are the ids of the edges in order of first appearance; without features they get degree features.

    Text tables are UTF-8 with commas (.csv) or tabs (.tsv, .txt). Their first line names the columns; a first line of
    numbers only, or of two node ids, is refused, since an edge or a node would be lost. Ids are integers where all of
    them are written as integers, else text, exactly as written ("007" stays "007").

    With ``attach_to`` the tables hold only new nodes, and the edges that join them to each other and to the nodes of a
    known graph. The result is the known graph with the new nodes appended; ``splits["new"]`` marks them, and it has no
    labels. It has the features and the directedness of the known graph; degree features are counted again.

    >>> grown = read_graph("new/", attach_to=model.graph_)
    >>> model.transform(grown).part(grown.splits["new"])

    Args:
        edges: the edge table, or one of the other forms above.
        nodes: the node table.
        labels: names of the columns (GraphML: node attributes) that are labels; an empty cell means unlabelled.
        features: names of the columns that are features; other columns are then ignored. A table without any of them
            gets degree features. Not for an npz, which names its features itself.
        directed: keep the directions; otherwise an edge runs both ways. Not for an npz, which says so itself.
        attach_to: the graph that the tables' nodes are added to.
    """
    names = (labels,) if isinstance(labels, str) else tuple(labels)
    if nodes is None and attach_to is None and is_folder(Path(edges)):
        return with_labels(Graph.open(edges), names, str(edges))
    edge_path, node_path = _paths(edges, nodes)
    suffix = edge_path.suffix.lower()
    if attach_to is not None:
        return _attach(edge_path, node_path, names, attach_to)
    if suffix in (".npz", ".graphml"):
        if node_path is not None:
            raise InputError(str(node_path), "no node table", f"one beside {edge_path}, which holds its own nodes")
        if suffix == ".npz":
            return _read_npz(edge_path, names)
        return _read_graphml(edge_path, names, features, directed)
    if node_path is None and names:
        raise InputError("labels", "a node table that holds them", f"only the edge table {edge_path}")
    node_table = None if node_path is None else _format(node_path).read_nodes(node_path, names, features)
    return tables.build(_format(edge_path).read_edges(edge_path), node_table, directed)


def _attach(edges: Path, nodes: Path | None, labels: Sequence[str], known: Graph) -> Graph:
    if labels:
        raise InputError("labels", "none where nodes are attached to a graph", ", ".join(map(shorten, labels)))
    if edges.suffix.lower() in (".npz", ".graphml"):
        raise InputError(str(edges), f"tables of new nodes and their edges ({', '.join(_TABLES)})", "a whole graph")
    node_table = None if nodes is None else _format(nodes).read_nodes(nodes, (), known.feature_names)
    return tables.attach(_format(edges).read_edges(edges), node_table, known)


def read_labels(path: str | Path, column: str) -> dict[str, str]:
    """One column of a node table as a dictionary: the id as text -> the label ("" = unknown)."""
    file = _existing(Path(path))
    table: tables.NodeTable = _format(file).read_nodes(file, (column,), ())
    return dict(zip(map(str, table.ids), table.labels[column].tolist(), strict=True))


def is_table(source: str | Path) -> bool:
    """Whether a name is that of one table of text or parquet, rather than of a whole graph."""
    path = Path(source)
    return text.extension(path) in _TABLES and not path.is_dir() and (path.is_file() or "," not in str(source))


def _paths(edges: str | Path, nodes: str | Path | None) -> tuple[Path, Path | None]:
    """The paths of the edge table and the node table; both files exist."""
    path = Path(edges)
    if nodes is None and not path.exists() and str(edges).count(",") == 1:
        first, second = str(edges).split(",")
        path, nodes = Path(first.strip()), second.strip()
    if path.is_dir():
        found = _in_folder(path, "edges")
        if found is None:
            raise InputError(str(path), f"a file edges with one of {', '.join(_TABLES)}", "none in the folder")
        path, nodes = found, nodes or _in_folder(path, "nodes")
    return _existing(path), None if nodes is None else _existing(Path(nodes))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(str(path), "a file", "a folder" if path.is_dir() else "nothing of that name")
    return path


def _in_folder(folder: Path, stem: str) -> Path | None:
    """The table of that name in a folder, or None; two of them are refused."""
    found = sorted(path for path in folder.glob(f"{stem}.*") if text.extension(path) in _TABLES)
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


def _read_npz(path: Path, labels: Sequence[str]) -> Graph:
    from infomax.io.npz import read_npz

    return with_labels(read_npz(path), labels, str(path))


def with_labels(graph: Graph, names: Sequence[str], where: str) -> Graph:
    """The graph with the labels of these names first; a name that it does not have is refused."""
    for name in names:
        if name not in graph.labels:
            raise InputError(where, f"labels named {shorten(name)}", f"the labels {', '.join(graph.labels) or 'none'}")
    if not names:
        return graph
    return dataclasses.replace(graph, labels={name: graph.labels[name] for name in (*names, *graph.labels)})


def _read_graphml(path: Path, labels: Sequence[str], features: Sequence[str] | None, directed: bool) -> Graph:
    import networkx

    try:
        graph = networkx.read_graphml(path)
        if features is not None:
            wanted = {*features, *labels}
            for _, values in graph.nodes(data=True):
                kept = {name: value for name, value in values.items() if name in wanted}
                values.clear()
                values.update(kept)
        return Graph.from_networkx(graph, labels=labels, directed=directed)
    except InputError as error:
        raise InputError(f"{path}, {error.where}", error.expected, error.found, error.remedy) from error
    except (SyntaxError, OSError, LookupError, TypeError, ValueError, networkx.NetworkXException) as error:
        # The XML parser raises SyntaxError; networkx raises the others for odd attributes.
        raise InputError(str(path), "a GraphML file", str(error) or type(error).__name__) from error
