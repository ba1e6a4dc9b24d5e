"""A graph in one ``.npz`` file: nothing is pickled, and it is simple enough to write by hand with `numpy.savez`.

``docs/reference/formats.md`` lists the keys. A graph of several types has those of nodes for each type, as in
``nodes/paper/ids``, and those of edges for each relation, as in ``edges/paper.writes.author/edges``.

A text column KEY is a numpy array of strings. numpy stores every string as wide as the longest, so `write_npz` writes
``utf8:KEY`` instead: the strings as UTF-8 (uint8), each ended by the byte 255, which UTF-8 never uses.
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
from infomax.arrays.table import Features
from infomax.errors import InputError, within
from infomax.io.archive import Arrays, read_arrays, write_arrays
from infomax.io.atomic import replacing
from infomax.io.encoding.encoding import Encoding
from infomax.io.nodes import Nodes
from infomax.io.record import Record
from infomax.io.unite import unite

_OWNED = re.compile("((?:nodes|edges)/[^/]*)/(.*)", re.DOTALL)
"""A key of one type or of one relation."""
_COLUMNS = ("ids", "feature_names", "node_names", "times")


def write_npz(graph: Record, path: str | Path) -> None:
    """Write the graph to a file that appears whole or not at all; the same graph gives the same bytes."""
    arrays: Arrays = {}
    for relation in graph.relations:
        owner = f"edges/{'.'.join(relation.ends)}/" if relation.source else ""
        arrays |= {f"{owner}{key}": values for key, values in _edge_arrays(relation).items()}
    for kind, nodes in sorted(graph.nodes.items()):
        owner = f"nodes/{kind}/" if kind else ""
        arrays |= dict(
            _encode(f"{owner}{key}", values) for key, values in _node_arrays(nodes).items()
        )
    if graph.held_out is not None:
        arrays["held_out"] = _narrow(graph.held_out)
    with replacing(Path(path)) as temporary:
        write_arrays(temporary, arrays)


def read_npz(path: str | Path, structural_features: str | None = None) -> Record:
    """The graph of a file that `write_npz` or a person wrote; without features it gets ``structural_features``."""
    path = Path(path)
    owned = defaultdict[str, Arrays](dict)
    arrays = read_arrays(path)
    for key, values in arrays.items():
        word = key.removeprefix("utf8:")
        found = _OWNED.fullmatch(word)
        owned[found[1] if found else ""][found[2] if found else word] = _decode(path, key, values)
    whole = owned.pop("", {})
    held_out = whole.pop("held_out", None)
    if whole or not owned:
        if owned or "edges" not in whole:
            raise InputError(
                str(path), 'a key "edges"', f"only {', '.join(arrays) or 'an empty file'}"
            )
        owned |= {f"edges/.{RELATION}.": whole, "nodes/": whole}
    links = dict[Any, Any]()
    directed = list[Any]()
    for owner in [owner for owner in owned if owner.startswith("edges/")]:
        ends = tuple(owner.removeprefix("edges/").split("."))
        own = owned[owner]
        if len(ends) != 3 or "edges" not in own:
            expected = "keys such as edges/paper.writes.author/edges"
            raise InputError(str(path), expected, f"only {owner}/{next(iter(own))}")
        with within(path):
            links[ends] = check_ends(own.pop("edges")), own.pop("weight", None)
        directed += [ends] if own.pop("directed", np.False_).any() else []
    kinds = {owner.removeprefix("nodes/") for owner in owned if owner.startswith("nodes/")}
    kinds = kinds.union(*(ends[::2] for ends in links))
    nodes = {kind: _read_nodes(path, owned[f"nodes/{kind}"], grouped=not kind) for kind in kinds}
    for owner, own in owned.items():
        for key in own:  # a misspelt one would otherwise be ignored in silence
            where = f'{path}, key "{key if whole else f"{owner}/{key}"}"'
            raise InputError(where, "a key that a graph has", "another", "Is it an npz of a graph?")
    with within(path):
        for kind, columns in nodes.items():
            if columns["ids"] is None:
                columns["ids"] = np.arange(_count(kind, columns["features"], links))
        return unite(
            nodes,
            links,
            directed=directed,
            structural_features=structural_features,
            held_out=held_out,
        )


def _read_nodes(path: Path, arrays: Arrays, *, grouped: bool) -> dict[str, Any]:
    """What `Nodes.of` takes of the nodes of a type, which is taken out of the arrays."""
    columns: dict[str, Any] = {
        key: arrays.pop(key, None) for key in (*_COLUMNS, *(["groups"] if grouped else []))
    }
    for name in ("label", "split"):
        keys = [key for key in arrays if key.startswith(f"{name}:")]
        columns[f"{name}s"] = {key.removeprefix(f"{name}:"): arrays.pop(key) for key in keys}
    try:
        told = arrays.pop("encoding", None)
        columns["encoding"] = (
            None if told is None else Encoding.from_json(json.loads(told.tolist()[0]))
        )
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        where = f"{path}, key encoding"
        raise InputError(where, "what was learnt of the columns of a table", str(error)) from None
    return columns | {"features": _read_features(path, arrays)}


def _read_features(path: Path, arrays: Arrays) -> NDArray[Any] | sparse.csr_array | None:
    parts: dict[str, Any] = {
        name: arrays.pop(f"features.{name}", None)
        for name in ("indices", "indptr", "shape", "data")
    }
    if (indices := parts["indices"]) is None:
        return arrays.pop("features", None)
    data = np.ones(len(indices), np.float32) if parts["data"] is None else parts["data"]
    try:
        matrix = sparse.csr_array((data, indices, parts["indptr"]), shape=parts["shape"].tolist())
        matrix.check_format(full_check=True)
    except (AttributeError, TypeError, ValueError, OverflowError, MemoryError) as error:
        expected = "the parts of a CSR matrix: indices, indptr, shape and data"
        raise InputError(f"{path}, keys features.*", expected, str(error)) from error
    return matrix


def _count(kind: str, features: Any, links: Mapping[Any, Any]) -> int:
    """The number of nodes of a type without ids, by their features or by the largest row number of an edge."""
    ends = [
        rows[[at for at in (0, 1) if ends[2 * at] == kind]] for ends, (rows, _) in links.items()
    ]
    return max(
        count_nodes(None, features, None, rows) for rows in [*ends, np.empty((1, 0), np.int64)]
    )


def _edge_arrays(relation: Relation) -> Arrays:
    """The arrays of edges, an undirected one once."""
    matrix = relation.edges.matrix()
    narrow = np.min_scalar_type(max(matrix.shape))
    rows = np.arange(matrix.shape[0], dtype=narrow).repeat(np.diff(matrix.indptr))
    parts = [rows, matrix.indices.astype(narrow), matrix.data]
    if not relation.edges.directed:
        kept = np.flatnonzero(rows < parts[1])
        parts = [part.take(kept) for part in parts]
    arrays = {"edges": np.stack(parts[:2])} | (
        {"directed": np.array(relation.directed)} if relation.within_one_type else {}
    )
    return arrays | ({"weight": parts[2]} if (parts[2] != 1).any() else {})


def _node_arrays(nodes: Nodes) -> Arrays:
    columns = {"ids": nodes.ids, "feature_names": np.array(nodes.feature_names, dtype=object)}
    others = {"groups": nodes.groups, "node_names": nodes.node_names, "times": nodes.times}
    columns |= {key: column for key, column in others.items() if column is not None}
    if nodes.encoding is not None:
        columns["encoding"] = np.array([json.dumps(nodes.encoding.to_json())], dtype=object)
    columns |= {f"label:{name}": column for name, column in nodes.labels.items()}
    columns |= {f"split:{name}": mask for name, mask in nodes.splits.items()}
    return _feature_arrays(nodes.table.loaded().values) | columns


def _feature_arrays(features: Features) -> Arrays:
    if isinstance(features, np.ndarray):
        return {"features": features}
    parts = {name: _narrow(getattr(features, name)) for name in ("indices", "indptr")}
    parts["shape"] = np.array(features.shape)
    if (features.data != 1).any():
        parts["data"] = features.data
    return {f"features.{name}": part for name, part in parts.items()}


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """The same non-negative integers in the smallest type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _encode(key: str, column: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    if column.dtype != object:
        return key, column
    text = b"".join(string.encode(errors="surrogatepass") + b"\xff" for string in column)
    return f"utf8:{key}", np.frombuffer(text, dtype=np.uint8)


def _decode(path: Path, key: str, values: NDArray[Any]) -> NDArray[Any]:
    if not key.startswith("utf8:"):
        return values
    *strings, rest = values.tobytes().split(b"\xff")
    try:
        if rest:
            raise ValueError("bytes after the last one")
        return np.array([string.decode(errors="surrogatepass") for string in strings], dtype=object)
    except ValueError as error:
        expected = "strings in UTF-8, each ended by the byte 255"
        raise InputError(f'{path}, key "{key}"', expected, str(error)) from error
