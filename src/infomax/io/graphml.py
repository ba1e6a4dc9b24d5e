"""GraphML, as NetworkX reads it; NetworkX also writes it."""

from __future__ import annotations

from pathlib import Path

from infomax.errors import InputError, warn
from infomax.io.attributes import from_attributes
from infomax.io.columns import Columns
from infomax.io.record import Record


def read_graphml(path: Path, columns: Columns, directed: bool | None) -> Record:
    """The graph of a GraphML file, as NetworkX reads it; attributes of nodes are read as columns of a table are."""
    import networkx

    try:
        graph = networkx.read_graphml(path)
    except Exception as error:  # its parser and NetworkX raise almost anything for a damaged file
        raise InputError(str(path), "a GraphML file", str(error) or type(error).__name__) from error
    if directed is None and graph.is_directed():
        message = f"{path}: edges are directed, as the file says (edgedefault). To change that: --undirected "
        warn(message + "(in Python: directed=False).")
    return from_attributes(graph, columns, directed, str(path))
