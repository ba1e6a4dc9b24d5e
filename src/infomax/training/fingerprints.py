"""Hashes of graphs and settings, by which a training is known again."""

from __future__ import annotations

import hashlib
import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from infomax.arrays.folder import folder_hash
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.json import to_json


def fingerprint(graph: Graph, settings: dict[str, Any], seed: int, device: str) -> dict[str, str]:
    """Identify a training: hashes of its graph, the rest as JSON. A checkpoint resumes only the same training."""
    values = {**settings, "seed": seed, "device": device}
    values.pop("preset", None)  # the settings say all that it does
    return graph_fingerprint(graph) | {name: to_json(value, sort_keys=True) for name, value in values.items()}


def graph_fingerprint(graph: Graph) -> dict[str, str]:
    """Hash each part of a graph that a training uses."""
    if graph.folder is not None:
        return {"graph": folder_hash(graph.folder)}
    if graph.table.mapped:
        remedy = "Add them to the tables, and make the folder again: infomax prepare."
        raise InputError("graph", "one that a folder holds", "a graph folder with attached nodes", remedy)
    of_types = [graph.nodes[kind] for kind in sorted(graph.nodes)]
    names = np.array([*graph.types, *chain.from_iterable(one.ends for one in graph.relations)], object)
    matrices = [relation.edges.matrix() for relation in graph.relations]
    tables = [nodes.table.loaded().values for nodes in of_types]
    found = {
        "graph": digest(*matrices, *tables, names),
        "grouping": digest(graph.groups),
        "list of ids": digest(*(one.ids for one in of_types)),
        "set of seen nodes": digest(*(one.splits.get("seen") for one in of_types)),
    }
    if any(one.times is not None for one in of_types):
        found["list of times"] = digest(*(one.times for one in of_types))
    return found


def digest(*values: Any) -> str:
    """Return the SHA-256 of arrays, sparse matrices or None."""
    content = hashlib.sha256()
    for value in values:
        parts = [value]
        if sparse.issparse(value):  # scipy's integers have 4 or 8 bytes, as a matrix was made
            integer = np.int32 if max(value.nnz, *value.shape) < 2**31 else np.int64
            parts = [value.indptr.astype(integer, copy=False), value.indices.astype(integer, copy=False), value.data]
        for part in parts:
            array = np.ascontiguousarray(part)
            content.update(json.dumps(array.tolist()).encode() if array.dtype == object else array.data)
    return content.hexdigest()


def refuse_other(
    graph: Graph, path: Path, found: dict[str, str], expected: dict[str, str], what: str = "a checkpoint"
) -> None:
    """Raise InputError for what another training left; it names both values, or the part if they are hashes."""
    for name in expected | found:
        value, other = expected.get(name, "none"), found.get(name, "none")
        if other != value:
            hashed = name in graph_fingerprint(graph)
            this, that = (f"this {name}", f"another {name}") if hashed else (f"{name} {value}", f"{name} {other}")
            remedy = "Resume with the original graph and settings, or choose another folder."
            raise InputError(str(path), f"{what} of {this}", f"one of {that}", remedy)
