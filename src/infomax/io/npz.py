"""A graph in one ``.npz`` file: nothing is pickled, and it is simple enough to write by hand with `numpy.savez`.

==================  ===========  =========================================================================
key                 shape
==================  ===========  =========================================================================
``edges``           ``[2, E]``   row numbers, integers; an undirected edge once. The only key that is required.
``directed``        ``[]``       bool, False where missing
``weight``          ``[E]``      non-negative numbers, 1 where missing
``features``        ``[N, F]``   dense numbers; or the parts of a CSR matrix, ``features.indices``,
                                 ``features.indptr``, ``features.shape`` and, unless all are 1, ``features.data``
``ids``             ``[N]``      integers or text, 0 to N - 1 where missing
``feature_names``   ``[F]``      text
``label:NAME``      ``[N]``      text ("" = unknown) or integers (-1 = unknown); or ``[N, C]`` of 0/1
``split:NAME``      ``[N]``      bool
``groups``          ``[N]``      integers, the graph of each node where there are several; one graph where missing
``held_out``        ``[2, H]``   row numbers, edges set aside to score vectors on; they are not among ``edges``
``encoding``        ``[1]``      JSON: how the features were made of the columns of a table
``node_names``      ``[N]``      text, shown beside the ids ("" = none)
``times``           ``[N]``      integers, microseconds since 1970-01-01 UTC; the least int64: unknown
==================  ===========  =========================================================================

A graph of several types of nodes has the keys of nodes for each type, as in ``nodes/paper/ids``, and those of edges for
each relation, as in ``edges/paper.writes.author/edges``: row numbers of sources and of targets.

A text column KEY is a numpy array of strings. numpy stores every string as wide as the longest, so `write_npz` writes
``utf8:KEY`` instead: the strings as UTF-8 (uint8), each ended by the byte 255, which UTF-8 never uses.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.checks import MOST_FEATURES, check_ends, count_nodes
from infomax.arrays.held_out import check_held_out
from infomax.arrays.table import Features
from infomax.errors import InputError, within
from infomax.io.archive import Arrays, read_arrays, write_arrays
from infomax.io.atomic import replacing
from infomax.io.encoding.encoding import Encoding
from infomax.io.record import Record
from infomax.io.unite import unite, whole_adjacency

_ROWS, _ENTRIES = 1 << 15, 1 << 20
"""Rows of a matrix whose edges a thread lists at once, and entries that it looks at."""

_NUMBERS, _INTEGERS = ("biuf", "numbers"), ("iu", "integers")
# The kinds of dtype that each key may have, and what they are called in messages.
_KINDS = {
    "edges": _INTEGERS,
    "directed": ("b", "bool"),
    "weight": _NUMBERS,
    "features": _NUMBERS,
    "features.data": _NUMBERS,
    "features.indices": _INTEGERS,
    "features.indptr": _INTEGERS,
    "features.shape": _INTEGERS,
    "ids": ("iuU", "integers or text"),
    "feature_names": ("U", "text"),
    "label:": ("biufU", "numbers or text"),
    "split:": ("b", "bool"),
    "groups": _INTEGERS,
    "held_out": _INTEGERS,
    "encoding": ("U", "text"),
    "node_names": ("U", "text"),
    "times": _INTEGERS,
}
_OF_EDGES, _OF_GRAPH = ("edges", "directed", "weight"), ("groups", "held_out")
_OWNED = re.compile("((?:nodes|edges)/[^/]*)/(.*)", re.DOTALL)
"""A key of one type or of one relation."""


def write_npz(graph: Record, path: str | Path) -> None:
    """Write the graph to a file that appears whole or not at all; the same graph gives the same bytes."""
    with replacing(Path(path)) as temporary:
        write_arrays(temporary, _to_arrays(graph))


def read_npz(path: str | Path, made: str | None = None) -> Record:
    """The graph of a file that `write_npz` or a person wrote; without features it gets those of the kind ``made``."""
    path = Path(path)
    arrays = read_arrays(path)
    for key, values in arrays.items():
        _check_kind(path, key, values)
    columns = {key.removeprefix("utf8:"): _decode(path, key, values) for key, values in arrays.items()}
    owned: defaultdict[str, Arrays] = defaultdict(dict)
    for key in list(columns):
        if found := _OWNED.fullmatch(key):
            owned[found[1]][found[2]] = columns.pop(key)
    if ("edges" not in columns and not owned) or (columns.keys() - {"held_out"} and owned):
        raise InputError(str(path), 'a key "edges"', f"only {', '.join(arrays) or 'an empty file'}")
    with within(path):
        if owned:
            typed = _read_typed(path, owned, made)
            if "held_out" not in columns:
                return typed
            return replace(typed, held_out=check_held_out(columns["held_out"], whole_adjacency(typed)))
        features = _read_features(path, columns)
        return Record.from_arrays(
            columns["edges"],
            made if features is None else features,
            weight=columns.get("weight"),
            directed=bool(columns.get("directed", np.False_).any()),
            groups=columns.get("groups"),
            held_out=columns.get("held_out"),
            **_of_nodes(columns),
        )


def _of_nodes(columns: Arrays) -> dict[str, Any]:
    return {
        "ids": columns.get("ids"),
        "feature_names": columns.get("feature_names"),
        "labels": _named(columns, "label:"),
        "splits": _named(columns, "split:"),
        "node_names": columns.get("node_names"),
        "times": columns.get("times"),
        "encoding": _read_encoding(columns["encoding"]) if "encoding" in columns else None,
    }


def _read_encoding(texts: NDArray[Any]) -> Encoding:
    """What was learnt of the columns of a table, as JSON."""
    try:
        return Encoding.from_json(json.loads(texts.tolist()[0]))
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise InputError("key encoding", "what was learnt of the columns of a table", str(error)) from None


def _read_typed(path: Path, owned: Mapping[str, Arrays], made: Any) -> Record:
    """The graph of the arrays of each type, and of each relation."""
    links, directed = dict[Any, Any](), list[Any]()
    for owner in [owner for owner in owned if owner.startswith("edges/")]:
        ends, arrays = tuple(owner.removeprefix("edges/").split(".")), owned[owner]
        if len(ends) != 3 or "edges" not in arrays:
            expected, found = "keys such as edges/paper.writes.author/edges", f"{owner}/{next(iter(arrays))}"
            raise InputError(str(path), expected, f"only {found}")
        links[ends] = check_ends(arrays["edges"]), arrays.get("weight")
        directed += [ends] if arrays.get("directed", np.False_).any() else []
    kinds = {owner.removeprefix("nodes/") for owner in owned if owner.startswith("nodes/")}
    nodes = {}
    for kind in sorted(kinds.union(*(ends[::2] for ends in links))):
        columns = owned.get(f"nodes/{kind}", {})
        nodes[kind] = _of_nodes(columns) | {"features": _read_features(path, columns)}
        if nodes[kind]["ids"] is None:
            rows = [rows[end] for ends, (rows, _) in links.items() for end in (0, 1) if ends[2 * end] == kind]
            all_rows = np.concatenate([*rows, np.empty(0, np.int64)])[None]
            nodes[kind]["ids"] = np.arange(count_nodes(None, nodes[kind]["features"], None, all_rows))
    return unite(nodes, links, directed=directed, made=made)


def _to_arrays(graph: Record) -> Arrays:
    arrays: Arrays = {}
    if not graph.types:
        return _edge_arrays(graph.adjacency, graph.directed) | _node_arrays(graph)
    for relation in graph.relations:
        of_edges = _edge_arrays(relation.edges.matrix(), relation.edges.directed)
        if not relation.within:
            del of_edges["directed"]
        arrays |= {f"edges/{'.'.join(relation.ends)}/{key}": values for key, values in of_edges.items()}
    for kind in graph.types:
        arrays |= _node_arrays(replace(graph.target(kind), held_out=None), f"nodes/{kind}/")
    return arrays | ({} if graph.held_out is None else {"held_out": _narrow(graph.held_out)})


def _edge_arrays(matrix: sparse.csr_array, directed: bool) -> Arrays:
    """The arrays of edges, an undirected one once."""
    narrow, count = np.min_scalar_type(max(matrix.shape)), matrix.nnz if directed else matrix.nnz // 2
    ends, at = np.empty((2, count), narrow), 0

    def other(first: int) -> bool:
        return bool((matrix.data[first : first + _ENTRIES] != 1).any())

    def edges(first: int) -> list[NDArray[Any]]:
        starts = matrix.indptr[first : first + _ROWS + 1]
        span = slice(starts[0], starts[-1])
        rows = np.arange(first, first + len(starts) - 1, dtype=narrow).repeat(np.diff(starts))
        parts = [rows, matrix.indices[span].astype(narrow), *(data[span] for data in weights)]
        kept = None if directed else np.flatnonzero(rows < parts[1])
        return parts if kept is None else [part.take(kept) for part in parts]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        weights = [matrix.data] if any(pool.map(other, range(0, matrix.nnz, _ENTRIES))) else []
        columns = [*ends, *(np.empty(count, np.float32) for _ in weights)]
        for found in pool.map(edges, range(0, matrix.shape[0], _ROWS)):
            for column, part in zip(columns, found, strict=True):
                column[at : at + len(part)] = part
            at += len(found[0])
    assert at == count  # noqa: S101  a matrix without directions is symmetric, and none has loops
    arrays = {"edges": ends, "directed": np.array(directed)}
    return arrays | ({"weight": columns[2]} if weights else {})


def _node_arrays(graph: Record, owner: str = "") -> Arrays:
    """The arrays of nodes; ``owner`` is before their keys."""
    columns = {"ids": graph.ids, "feature_names": np.array(graph.feature_names, dtype=object)}
    others = {"groups": graph.groups, "held_out": graph.held_out, "node_names": graph.node_names}
    others["times"] = graph.own.times
    columns |= {key: column for key, column in others.items() if column is not None}
    if graph.held_out is not None:
        columns["held_out"] = _narrow(graph.held_out)
    if graph.encoding is not None:
        columns["encoding"] = np.array([json.dumps(graph.encoding.to_json())], dtype=object)
    columns |= {f"label:{name}": column for name, column in graph.labels.items()}
    columns |= {f"split:{name}": mask for name, mask in graph.splits.items()}
    return dict(_encode(f"{owner}{key}", column) for key, column in (_write_features(graph.features) | columns).items())


def _write_features(features: Features) -> Arrays:
    if isinstance(features, np.ndarray):
        return {"features": features}
    parts = {name: _narrow(getattr(features, name)) for name in ("indices", "indptr")}
    parts["shape"] = np.array(features.shape)
    if (features.data != 1).any():
        parts["data"] = features.data
    return {f"features.{name}": part for name, part in parts.items()}


def _read_features(path: Path, arrays: Arrays) -> NDArray[Any] | sparse.csr_array | None:
    if "features.indices" not in arrays:
        return arrays.get("features")
    indices = arrays["features.indices"]
    try:
        data = arrays.get("features.data", np.ones(len(indices), dtype=np.float32))
        shape = arrays["features.shape"].tolist()
        if len(shape) != 2 or not 0 <= shape[1] <= MOST_FEATURES:
            raise ValueError(f"shape {shape}, where at most {MOST_FEATURES:,} columns are possible")
        matrix = sparse.csr_array((data, indices, arrays["features.indptr"]), shape=shape)
        matrix.check_format(full_check=True)
    except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
        expected = "the parts of a CSR matrix: indices, indptr, shape and data"
        raise InputError(f"{path}, keys features.*", expected, str(error)) from error
    return matrix


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


def _named(columns: Arrays, prefix: str) -> Arrays:
    return {key.removeprefix(prefix): values for key, values in columns.items() if key.startswith(prefix)}


def _check_kind(path: Path, key: str, values: NDArray[Any]) -> None:
    """Refuse a wrong dtype, and an unknown key: a misspelt one would otherwise be ignored in silence."""
    where = f'{path}, key "{key}"'
    text, word = key.startswith("utf8:"), key.removeprefix("utf8:")
    owned = _OWNED.fullmatch(word)
    head, colon, _ = (owned[2] if owned else word).partition(":")
    kinds, expected = _KINDS.get(head + colon, ("", ""))
    if owned and (head in _OF_GRAPH or (head in _OF_EDGES) != word.startswith("edges/")):
        kinds = ""
    if text:
        kinds, expected = ("u" if "U" in kinds else "", "uint8")
    if not kinds:
        raise InputError(where, f"a key that a graph has ({', '.join(_KINDS)})", "another", "Is it an npz of a graph?")
    if values.dtype.kind not in kinds:
        raise InputError(where, expected, f"dtype {values.dtype}")
