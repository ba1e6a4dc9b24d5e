"""Graph folders of several types of nodes: a graph folder for the nodes of each type, and arrays for each relation.

graph.json                            format 2; the hash of each type's own graph.json; of each relation, its files
nodes/TYPE/                           a graph folder without edges, see `infomax.arrays.folder`
edges/TYPE.RELATION.TYPE/to_target/   indptr.npy, indices.npy and weights.npy: who sends to each node of the target
edges/TYPE.RELATION.TYPE/to_source/   the same for each node of the source; missing where both are one
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from infomax.arrays import folder as layout
from infomax.arrays.adjacency import Adjacency, MappedAdjacency, Senders
from infomax.arrays.integrity import AGAIN, check_once
from infomax.arrays.relations import Relation
from infomax.errors import InputError
from infomax.io.folder import describe, finish, map_nodes, open_folder, write_arrays, write_senders
from infomax.io.json import to_json
from infomax.io.record import Record
from infomax.io.unite import Ends, check_names
from infomax.version import __version__

FORMAT = 2
SIDES = ("to_target", "to_source")
"""The directions of a relation; edges without directions within one type have the first alone."""
_BROKEN = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


def write_graph_folder(graph: Record, folder: Path) -> None:
    """Write the files of a graph in memory into an existing folder."""
    if graph.types:
        write_types(graph, folder)
    else:
        finish(folder, write_arrays(graph, folder))


def open_graph_folder(path: Path) -> Record:
    """The graph of a folder, its arrays mapped."""
    return open_types(path) if is_of_types(path) else open_folder(path)


def write_types(graph: Record, folder: Path) -> None:
    """Write the files of a graph of several types into an existing folder."""
    for kind, one in graph.by_type().items():
        (folder / "nodes" / kind).mkdir(parents=True)
        empty = Adjacency(sparse.csr_array((one.num_nodes, one.num_nodes), dtype=np.float32))
        bare = Record.of_one_type(one.own, empty)
        finish(folder / "nodes" / kind, write_arrays(bare, folder / "nodes" / kind))
    for relation in graph.relations:
        for side in SIDES[: 2 if relation.edges.directed else 1]:
            path = place(folder, relation.ends, side)
            path.mkdir(parents=True)
            write_senders(path, getattr(relation, side))
    finish_types(folder, graph.types, [one.ends for one in graph.relations])


def finish_types(folder: Path, kinds: Sequence[str], relations: Sequence[Ends]) -> None:
    """Write graph.json, which makes folders of types and of relations a graph folder."""
    about: list[dict[str, Any]] = []
    for ends in sorted(relations):
        there = [side for side in SIDES if place(folder, ends, side).exists()]
        files = {
            side: {file.name: describe(file) for file in sorted(place(folder, ends, side).iterdir())} for side in there
        }
        about.append({"source": ends[0], "name": ends[1], "target": ends[2], "files": files})
    types = {kind: layout.folder_hash(folder / "nodes" / kind) for kind in sorted(kinds)}
    described = {"format": FORMAT, "infomax": __version__, "types": types, "relations": about}
    (folder / layout.ABOUT).write_text(to_json(described, indent=2) + "\n", encoding="utf-8")


def open_types(path: Path) -> Record:
    """The graph of a folder of several types, its arrays mapped."""
    about = _read(path)
    folders = {kind: map_nodes(path / "nodes" / kind) for kind in about["types"]}
    nodes = {kind: one for kind, (one, _, _) in folders.items()}
    described, found = layout.folder_hash(path), []
    for one in about["relations"]:
        ends, sides = (one["source"], one["name"], one["target"]), dict[str, Senders]()
        sizes = {"to_target": (ends[2], ends[0]), "to_source": (ends[0], ends[2])}
        for side, files in one["files"].items():
            there, (n, width) = place(path, ends, side), (nodes[kind].num_nodes for kind in sizes[side])
            entries = int(files[layout.NEIGHBOURS]["shape"][0])
            arrays = layout.map_files(there, files, layout.sides(n, entries))
            check_once(there, files, described, [(arrays, width)])
            sides[side] = Senders(arrays[layout.STARTS], arrays[layout.NEIGHBOURS], arrays.get(layout.WEIGHTS))
        edges = MappedAdjacency(sides["to_target"], len(sides) == 2, sides.get("to_source"))
        found.append(Relation(*ends, edges))
    first = min(nodes)
    return Record(nodes, tuple(found), first, **folders[first][2] | {"folder": path.resolve(), "kind_is_first": True})


def check_graph_folder(path: Path) -> None:
    """Refuse a folder in which any file has another SHA-256 than graph.json says; all of it is read."""
    if not is_of_types(path):
        layout.check_hashes(path)
        return
    about = _read(path)
    for kind in about["types"]:
        layout.check_hashes(path / "nodes" / kind)
    for side, files in _sides(path, about):
        layout.compare_hashes(side, files)


def is_of_types(path: Path) -> bool:
    """Whether a graph folder says that it holds several types of nodes."""
    try:
        return "types" in json.loads((path / layout.ABOUT).read_text(encoding="utf-8"))
    except _BROKEN:
        return False


def _read(path: Path) -> dict[str, Any]:
    """What graph.json says, refused where the files are others."""
    file = path / layout.ABOUT
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']}")
        for one in about["relations"]:
            ends = (one["source"], one["name"], one["target"])
            check_names(str(file), ends)
            wanted = {"to_target"} | ({"to_source"} if ends[0] != ends[2] or len(one["files"]) > 1 else set())
            if set(one["files"]) != wanted or not {ends[0], ends[2]} <= set(about["types"]):
                raise ValueError(f"other files or types for {'.'.join(ends)}")
        for kind in about["types"]:
            check_names(str(file), (kind, "to", kind))
        for side, files in _sides(path, about):
            layout.check_sizes(side, files, {layout.STARTS, layout.NEIGHBOURS})
    except _BROKEN as error:
        raise InputError(str(file), "the description of a graph folder", str(error), AGAIN) from None
    for kind, told in about["types"].items():
        if not layout.is_folder(path / "nodes" / kind) or layout.folder_hash(path / "nodes" / kind) != told:
            raise InputError(str(path / "nodes" / kind / layout.ABOUT), f"the file that {file} tells", "another", AGAIN)
    return about  # type: ignore[no-any-return]


def _sides(path: Path, about: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The folder of each direction of each relation, and what graph.json says of its files."""
    for one in about["relations"]:
        for side, files in one["files"].items():
            yield place(path, (one["source"], one["name"], one["target"]), side), files


def place(path: Path, ends: Ends, side: str) -> Path:
    """The folder of the arrays of a relation in one direction."""
    return path / "edges" / ".".join(ends) / side
