"""A graph in one plain ``.npz``: nothing pickled, and simple enough to write by hand with `numpy.savez`.

==================  ===========  =========================================================================
key                 shape
==================  ===========  =========================================================================
``edges``           ``[2, E]``   row numbers, integers; an undirected edge once. The only key that must be.
``directed``        ``[]``       bool, False where missing
``weight``          ``[E]``      non-negative numbers, 1 where missing
``features``        ``[N, F]``   dense numbers; or the parts of a CSR matrix, ``features.indices``,
                                 ``features.indptr``, ``features.shape`` and, unless all are 1, ``features.data``
``ids``             ``[N]``      integers or text, 0 to N - 1 where missing
``feature_names``   ``[F]``      text
``label:NAME``      ``[N]``      text ("" = unknown) or integers (-1 = unknown); or ``[N, C]`` of 0/1
``split:NAME``      ``[N]``      bool
``groups``          ``[N]``      integers, which of several graphs a node belongs to; one graph where missing
==================  ===========  =========================================================================

A text column KEY is a numpy array of strings. numpy makes every string as wide as the longest, so what `write_npz`
writes is instead ``utf8:KEY``: the strings as UTF-8 (uint8), each ended by the byte 255, which UTF-8 never uses.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.errors import InputError
from infomax.graphs.graph import Features, Graph
from infomax.io.atomic import replacing

Arrays: TypeAlias = dict[str, NDArray[Any]]

_NUMBERS, _INTEGERS = ("biuf", "numbers"), ("iu", "integers")
# The dtype.kind each key may have, and its name.
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
}


def write_npz(graph: Graph, path: str | Path, *, compress: bool = False) -> None:
    """Write the graph whole or not at all; the same graph gives the same bytes."""
    save = np.savez_compressed if compress else np.savez
    with replacing(Path(path)) as temporary, temporary.open("wb") as file:
        save(file, allow_pickle=False, **_to_arrays(graph))


def read_npz(path: str | Path) -> Graph:
    """The graph that `write_npz`, or a person, wrote."""
    path = Path(path)
    arrays = _load(path)
    for key, values in arrays.items():
        _check_kind(path, key, values)
    if "edges" not in arrays:
        raise InputError(str(path), 'a key "edges"', f"only {', '.join(arrays) or 'an empty file'}")
    columns = {key.removeprefix("utf8:"): _decode(path, key, values) for key, values in arrays.items()}
    features = _read_features(path, columns)
    try:
        return Graph.from_arrays(
            columns["edges"].astype(np.int64),
            features,
            weight=columns.get("weight"),
            directed=bool(columns.get("directed", np.False_).any()),
            ids=columns.get("ids"),
            feature_names=columns.get("feature_names"),
            labels=_named(columns, "label:"),
            splits=_named(columns, "split:"),
            groups=columns.get("groups"),
        )
    except InputError as error:
        raise InputError(f"{path}, {error.where}", error.expected, error.found, error.remedy) from error


def _to_arrays(graph: Graph) -> Arrays:
    edges = sparse.coo_array(graph.adjacency if graph.directed else sparse.triu(graph.adjacency))
    arrays = {"edges": _narrow(np.stack(edges.coords)), "directed": np.array(graph.directed)}
    if graph.weighted:
        arrays["weight"] = edges.data
    arrays |= _write_features(graph.features)
    arrays |= _encode("ids", graph.ids)
    arrays |= _encode("feature_names", np.array(graph.feature_names, dtype=object))
    if graph.groups is not None:
        arrays["groups"] = graph.groups
    for name, column in graph.labels.items():
        arrays |= _encode(f"label:{name}", column)
    return arrays | {f"split:{name}": mask for name, mask in graph.splits.items()}


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
        matrix = sparse.csr_array((data, indices, arrays["features.indptr"]), shape=shape)
        matrix.check_format(full_check=True)
    except (KeyError, TypeError, ValueError) as error:
        expected = "the parts of a CSR matrix: indices, indptr, shape and data"
        raise InputError(f"{path}, keys features.*", expected, str(error)) from error
    return matrix


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """The same non-negative integers in the smallest type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _encode(key: str, column: NDArray[Any]) -> Arrays:
    if column.dtype != object:
        return {key: column}
    text = b"".join(string.encode(errors="surrogatepass") + b"\xff" for string in column)
    return {f"utf8:{key}": np.frombuffer(text, dtype=np.uint8)}


def _decode(path: Path, key: str, values: NDArray[Any]) -> NDArray[Any]:
    if not key.startswith("utf8:"):
        return values
    *strings, rest = values.tobytes().split(b"\xff")
    try:
        if rest:
            raise ValueError("more after the last of them")
        return np.array([string.decode(errors="surrogatepass") for string in strings], dtype=object)
    except ValueError as error:
        expected = "strings in UTF-8, each ended by the byte 255"
        raise InputError(f'{path}, key "{key}"', expected, str(error)) from error


def _named(columns: Arrays, prefix: str) -> Arrays:
    return {key.removeprefix(prefix): values for key, values in columns.items() if key.startswith(prefix)}


def _check_kind(path: Path, key: str, values: NDArray[Any]) -> None:
    """Refuse a wrong dtype, and a key that no graph has: a misspelt one would otherwise be left out in silence."""
    where = f'{path}, key "{key}"'
    text = key.startswith("utf8:")
    head, colon, _ = key.removeprefix("utf8:").partition(":")
    kinds, expected = _KINDS.get(head + colon, ("", ""))
    if text:
        kinds, expected = ("u" if "U" in kinds else "", "uint8")
    if not kinds:
        raise InputError(where, f"a key that a graph has ({', '.join(_KINDS)})", "another", "Is it an npz of a graph?")
    if values.dtype.kind not in kinds:
        raise InputError(where, expected, f"dtype {values.dtype}")


def _load(path: Path) -> Arrays:
    """Every array of the file, or an error that names the first one that cannot be read."""
    where, arrays = str(path), {}
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("another format, or a file cut short")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            # numpy writes no comments: where there is one, a damaged length made it swallow the entries that follow.
            if any(entry.comment for entry in archive.zip.infolist()):
                raise ValueError("a damaged table of contents")
            for key in archive.files:
                where = f'{path}, key "{key}"'
                arrays[key] = np.asarray(archive[key])
    except Exception as error:  # a damaged archive makes zipfile, zlib and numpy raise almost anything
        found = getattr(error, "strerror", None) or str(error)
        raise InputError(where, "an npz file of plain arrays", found) from error
    return arrays
