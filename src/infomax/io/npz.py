"""A graph in one ``.npz`` file of plain arrays.

Nothing is pickled, and such a file is simple enough to write by hand with `numpy.savez`.
``docs/reference/formats.md`` lists the keys. A graph of several types has the keys of nodes for
each type, as in ``nodes/paper/ids``, and those of edges for each relation, as in
``edges/paper.writes.author/edges``.

A text column KEY is a numpy array of strings. NumPy stores every string as wide as the longest, so
`write_npz` writes ``utf8:KEY`` instead: the strings as UTF-8 (uint8), each ended by the byte 255,
which UTF-8 never uses.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.checks import check_ends, count_nodes
from infomax.arrays.relations import RELATION, Relation
from infomax.arrays.structural_features import StructuralFeatures
from infomax.arrays.table import Features
from infomax.errors import InputError, within
from infomax.io.archive import Arrays, read_arrays, write_arrays
from infomax.io.atomic import replacing
from infomax.io.building import WeightedEdges, from_edges, with_edge_features
from infomax.io.encoding.encoding import Encoding
from infomax.io.nodes import Nodes
from infomax.io.record import Record
from infomax.io.schema.schema import Ends

TEXT_PREFIX = "utf8:"
_END_OF_STRING = b"\xff"
_NODES = "nodes/"
_EDGES = "edges/"
_SECTION_KEY = re.compile("((?:nodes|edges)/[^/]*)/(.*)", re.DOTALL)
"""A key of one type or of one relation: its section, and the key in the section."""
_COLUMNS = ("ids", "feature_names", "node_names", "times")


def write_npz(graph: Record, path: str | Path) -> None:
    """Write the graph to a file that appears whole or not at all.

    The same graph gives the same bytes.
    """
    arrays: Arrays = {}
    for relation in graph.relations:
        section = f"{_EDGES}{'.'.join(relation.ends)}/" if relation.source else ""
        for key, values in _edge_arrays(relation).items():
            stored_key, stored_values = _encode(f"{section}{key}", values)
            arrays[stored_key] = stored_values
    for node_type, nodes in sorted(graph.nodes.items()):
        section = f"{_NODES}{node_type}/" if node_type else ""
        for key, values in _node_arrays(nodes).items():
            stored_key, stored_values = _encode(f"{section}{key}", values)
            arrays[stored_key] = stored_values
    if graph.held_out is not None:
        arrays["held_out"] = _in_smallest_type(graph.held_out)
    with replacing(Path(path)) as temporary:
        write_arrays(temporary, arrays)


def read_npz(path: str | Path, structural_features: StructuralFeatures | None = None) -> Record:
    """The graph of a file that `write_npz` or a person wrote.

    Args:
        path: the file.
        structural_features: what to make where the file has no features.
    """
    path = Path(path)
    sections, has_sections = _read_sections(path)
    held_out = sections[""].pop("held_out", None)
    if not has_sections:
        # A plain graph: its edges and its nodes are in one section, and the nodes have no type.
        plain_section = sections[""]
        sections = {f"{_EDGES}.{RELATION}.": plain_section, _NODES: plain_section}

    # Only edges of a plain graph have features. Between types the keys are refused as unknown ones.
    edge_features = edge_feature_names = None
    if not has_sections and "edge_features" in plain_section:
        edge_features = plain_section.pop("edge_features")
        if "edge_feature_names" in plain_section:
            edge_feature_names = plain_section.pop("edge_feature_names").tolist()

    edges: dict[Ends, WeightedEdges] = {}
    directed: list[Ends] = []
    for name in sections:
        if name.startswith(_EDGES):
            ends = _ends_of(path, name, sections[name])
            edges[ends], is_directed = _take_edges(path, sections[name])
            if is_directed:
                directed.append(ends)
    node_types = {name.removeprefix(_NODES) for name in sections if name.startswith(_NODES)}
    for source, _, target in edges:
        node_types |= {source, target}
    nodes = {}
    for node_type in node_types:
        section_of_nodes = sections.setdefault(f"{_NODES}{node_type}", {})
        nodes[node_type] = _take_nodes(path, section_of_nodes, has_groups=not node_type)
    _refuse_remaining_keys(path, sections, has_sections)

    with within(path):
        for node_type, columns in nodes.items():
            if columns["ids"] is None:
                columns["ids"] = np.arange(_count_nodes(node_type, columns["features"], edges))
        graph = from_edges(
            nodes,
            edges,
            directed=directed,
            structural_features=structural_features,
            held_out=held_out,
        )
        if edge_features is None:
            return graph
        ((rows, _),) = edges.values()
        return with_edge_features(graph, rows, edge_features, edge_feature_names)


def _read_sections(path: Path) -> tuple[dict[str, Arrays], bool]:
    """The arrays by section and key, and whether there are sections of types and relations.

    The section without a name has the keys that belong to no type and no relation. All arrays are
    in it where the graph is plain.
    """
    sections: dict[str, Arrays] = defaultdict(dict)
    arrays = read_arrays(path)
    for stored_key, values in arrays.items():
        key = stored_key.removeprefix(TEXT_PREFIX)
        section = ""
        if match := _SECTION_KEY.fullmatch(key):
            section, key = match.groups()
        sections[section][key] = _decode(path, stored_key, values)

    has_sections = bool(sections.keys() - {""})
    keys = sections[""].keys() - {"held_out"}
    is_plain_graph = not has_sections and "edges" in keys
    is_typed_graph = has_sections and not keys
    if not is_plain_graph and not is_typed_graph:
        found = f"only {', '.join(arrays) or 'an empty file'}"
        raise InputError(str(path), 'a key "edges"', found)
    return sections, has_sections


def _ends_of(path: Path, section_name: str, section: Arrays) -> Ends:
    """The relation of a section."""
    names = section_name.removeprefix(_EDGES).split(".")
    if len(names) != 3 or "edges" not in section:
        expected = "keys such as edges/paper.writes.author/edges"
        raise InputError(str(path), expected, f"only {section_name}/{next(iter(section))}")
    source, name, target = names
    return source, name, target


def _take_edges(path: Path, section: Arrays) -> tuple[WeightedEdges, bool]:
    """Take the edges of a relation out of its section, and whether they have directions."""
    with within(path):
        rows = check_ends(section.pop("edges"))
    weights = section.pop("weight", None)
    is_directed = bool(section.pop("directed", np.False_).any())
    return (rows, weights), is_directed


def _take_nodes(path: Path, section: Arrays, *, has_groups: bool) -> dict[str, Any]:
    """Take the arguments of `Nodes.of` out of the section of a type."""
    columns: dict[str, Any] = {key: section.pop(key, None) for key in _COLUMNS}
    if has_groups:
        columns["groups"] = section.pop("groups", None)
    for argument, prefix in (("labels", "label:"), ("splits", "split:")):
        keys = [key for key in section if key.startswith(prefix)]
        columns[argument] = {key.removeprefix(prefix): section.pop(key) for key in keys}
    columns["encoding"] = _take_encoding(path, section)
    columns["features"] = _take_features(path, section)
    return columns


def _take_encoding(path: Path, section: Arrays) -> Encoding | None:
    encoding = section.pop("encoding", None)
    if encoding is None:
        return None
    try:
        return Encoding.from_json(json.loads(encoding.tolist()[0]))
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        location = f"{path}, key encoding"
        expected = "what was learnt of the columns of a table"
        raise InputError(location, expected, str(error)) from None


def _take_features(path: Path, section: Arrays) -> NDArray[Any] | sparse.csr_array | None:
    """Take dense features, or the parts of a CSR matrix, out of a section."""
    part_names = ("indices", "indptr", "shape", "data")
    parts: dict[str, Any] = {name: section.pop(f"features.{name}", None) for name in part_names}
    indices = parts["indices"]
    if indices is None:
        return section.pop("features", None)
    # Data that are all 1 are left out of the file.
    data = parts["data"]
    if data is None:
        data = np.ones(len(indices), np.float32)
    try:
        matrix = sparse.csr_array((data, indices, parts["indptr"]), shape=parts["shape"].tolist())
        matrix.check_format(full_check=True)
    except (AttributeError, TypeError, ValueError, OverflowError, MemoryError) as error:
        expected = "the parts of a CSR matrix: indices, indptr, shape and data"
        raise InputError(f"{path}, keys features.*", expected, str(error)) from error
    return matrix


def _refuse_remaining_keys(path: Path, sections: Mapping[str, Arrays], has_sections: bool) -> None:
    """Refuse keys that were not taken: a misspelt one would otherwise be ignored in silence."""
    for name, section in sections.items():
        for key in section:
            stored_key = f"{name}/{key}" if has_sections else key
            location = f'{path}, key "{stored_key}"'
            remedy = "Is it an npz of a graph?"
            raise InputError(location, "a key that a graph has", "another", remedy)


def _count_nodes(node_type: str, features: Any, edges: Mapping[Ends, WeightedEdges]) -> int:
    """The number of nodes of a type without ids: by its features, else by its edges."""
    rows_of_type = [np.empty((1, 0), np.int64)]
    for (source, _, target), (rows, _) in edges.items():
        is_end_of_type = [source == node_type, target == node_type]
        rows_of_type.append(rows[is_end_of_type])
    return max(count_nodes(None, features, None, rows) for rows in rows_of_type)


def _edge_arrays(relation: Relation) -> Arrays:
    """The arrays of edges, an undirected one once."""
    matrix = relation.edges.matrix()
    row_type = np.min_scalar_type(max(matrix.shape))
    sources = np.arange(matrix.shape[0], dtype=row_type).repeat(np.diff(matrix.indptr))
    targets = matrix.indices.astype(row_type)
    weights = matrix.data
    if not relation.edges.directed:
        # The matrix is symmetric.
        is_once = np.flatnonzero(sources < targets)
        sources, targets, weights = (part.take(is_once) for part in (sources, targets, weights))
    arrays: Arrays = {"edges": np.stack([sources, targets])}
    if relation.within_one_type:
        arrays["directed"] = np.array(relation.directed)
    if (weights != 1).any():
        arrays["weight"] = weights
    if relation.edge_features is not None:
        # An undirected edge has the same features in both directions.
        senders = sources.astype(np.int64)
        receivers = targets.astype(np.int64)
        arrays["edge_features"] = relation.edge_features.of_messages(senders, receivers)
        arrays["edge_feature_names"] = np.array(relation.edge_features.names, dtype=object)
    return arrays


def _node_arrays(nodes: Nodes) -> Arrays:
    arrays = _feature_arrays(nodes.table.loaded().values)
    arrays["ids"] = nodes.ids
    arrays["feature_names"] = np.array(nodes.feature_names, dtype=object)
    if nodes.groups is not None:
        arrays["groups"] = nodes.groups
    if nodes.node_names is not None:
        arrays["node_names"] = nodes.node_names
    if nodes.times is not None:
        arrays["times"] = nodes.times
    if nodes.encoding is not None:
        arrays["encoding"] = np.array([json.dumps(nodes.encoding.to_json())], dtype=object)
    arrays |= {f"label:{name}": column for name, column in nodes.labels.items()}
    arrays |= {f"split:{name}": mask for name, mask in nodes.splits.items()}
    return arrays


def _feature_arrays(features: Features) -> Arrays:
    if isinstance(features, np.ndarray):
        return {"features": features}
    arrays = {
        "features.indices": _in_smallest_type(features.indices),
        "features.indptr": _in_smallest_type(features.indptr),
        "features.shape": np.array(features.shape),
    }
    if (features.data != 1).any():
        arrays["features.data"] = features.data
    return arrays


def _in_smallest_type(values: NDArray[Any]) -> NDArray[Any]:
    """The same non-negative integers in the smallest type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _encode(key: str, column: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """The key and the array under which a column is stored."""
    if column.dtype != object:
        return key, column
    strings = [string.encode(errors="surrogatepass") + _END_OF_STRING for string in column]
    return f"{TEXT_PREFIX}{key}", np.frombuffer(b"".join(strings), dtype=np.uint8)


def _decode(path: Path, stored_key: str, values: NDArray[Any]) -> NDArray[Any]:
    """The column of a stored array."""
    if not stored_key.startswith(TEXT_PREFIX):
        return values
    *strings, after_last = values.tobytes().split(_END_OF_STRING)
    try:
        if after_last:
            raise ValueError("bytes after the last one")
        return np.array([string.decode(errors="surrogatepass") for string in strings], dtype=object)
    except ValueError as error:
        location = f'{path}, key "{stored_key}"'
        expected = "strings in UTF-8, each ended by the byte 255"
        raise InputError(location, expected, str(error)) from error
