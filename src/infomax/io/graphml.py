"""GraphML: NetworkX reads it; it is written element by element."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from scipy import sparse

from infomax.errors import InputError, warn
from infomax.io.atomic import replacing
from infomax.io.attributes import from_attributes
from infomax.io.columns import SPLIT, Columns
from infomax.io.record import Record
from infomax.io.rows import edge_columns, flat_annotations, refuse_too_many
from infomax.progress import Progress, followed


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


def write_graphml(graph: Record, path: Path, progress: Progress) -> None:
    """Write GraphML: features are attributes of type double, splits are booleans; of sparse features only non-zeros."""
    refuse_too_many(graph, str(path), "graphml")
    features, annotations, edges = graph.feature_names, flat_annotations(graph), edge_columns(graph)
    zero = "<default>0</default>" if sparse.issparse(graph.features) else ""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(
            '<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        )
        for key, name in enumerate((*features, *annotations)):
            kind = (
                "double"
                if key < len(features)
                else "boolean"
                if name.startswith(SPLIT)
                else "string"
            )
            inside = zero if key < len(features) else ""
            file.write(
                f'<key id="d{key}" for="node" attr.name={_attribute(name)} attr.type="{kind}">{inside}</key>\n'
            )
        if "weight" in edges:
            file.write('<key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n')
        file.write(f'<graph edgedefault="{"directed" if graph.directed else "undirected"}">\n')
        places = range(len(features), len(features) + len(annotations))
        others = [column.tolist() for column in annotations.values()]
        for row, identifier in enumerate(
            followed(graph.ids.tolist(), progress, "nodes", graph.num_nodes)
        ):
            at, words = _features(graph.features, row)
            cells = [escape(str(column[row]), {"\r": "&#13;"}) for column in others]
            content = zip((*at, *places), (*words, *cells), strict=True)
            inside = "".join(f'<data key="d{key}">{word}</data>' for key, word in content)
            file.write(f"<node id={_attribute(str(identifier))}>{inside}</node>\n")
        for source, target, *weight in zip(
            *(column.tolist() for column in edges.values()), strict=True
        ):
            inside = "".join(f'<data key="weight">{value}</data>' for value in weight)
            ends = f"source={_attribute(str(source))} target={_attribute(str(target))}"
            file.write(f"<edge {ends}>{inside}</edge>\n")
        file.write("</graph>\n</graphml>\n")


def _features(features: Any, row: int) -> tuple[Iterable[int], list[str]]:
    """The positions and the text of a node's features, of sparse ones of those that are not zero.

    Each number has the fewest digits that read back as the same float32.
    """
    if isinstance(features, np.ndarray):
        return range(features.shape[1]), features[row].astype(str).tolist()
    entries = slice(features.indptr[row], features.indptr[row + 1])
    return features.indices[entries].tolist(), features.data[entries].astype(str).tolist()


def _attribute(word: str) -> str:
    return quoteattr(word, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
