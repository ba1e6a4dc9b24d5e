"""Graph folders: a graph of one type as `infomax.arrays.folder` says; one of several types in folders below.

graph.json                            format 2; the hash of each type's own graph.json; of each relation, its files
nodes/TYPE/                           the folder of a type, without edges
edges/TYPE.RELATION.TYPE/to_target/   indptr.npy, indices.npy and weights.npy: who sends to each node of the target
edges/TYPE.RELATION.TYPE/to_source/   the same for each node of the source; missing where both are one
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from infomax.arrays import folder as layout
from infomax.arrays.adjacency import Adjacency, MappedAdjacency, Senders
from infomax.arrays.blocks import row_blocks
from infomax.arrays.hashes import file_hash
from infomax.arrays.integrity import AGAIN, check_once
from infomax.arrays.relations import Relation
from infomax.arrays.scaling import Statistics
from infomax.arrays.table import Table
from infomax.errors import InputError
from infomax.io.array_files import GROUP, FeatureWriter, write_senders
from infomax.io.encoding.encoding import Encoding
from infomax.io.json import to_json
from infomax.io.nodes import Nodes
from infomax.io.parquet import arrow_column
from infomax.io.record import Record
from infomax.io.schema.schema_file import from_json as schema_from_json
from infomax.io.schema.schema_file import to_json as schema_to_json
from infomax.io.unite import Ends
from infomax.version import __version__

FORMAT = 2
SIDES = ("to_target", "to_source")
"""The directions of a relation; edges without directions within one type have the first alone."""


def write_folder(graph: Record, folder: Path) -> None:
    """Write the files of a graph in memory into an existing folder."""
    if not graph.types:
        finish(folder, write_arrays(graph, folder))
        return
    for node_type, nodes in graph.nodes.items():
        own = folder / "nodes" / node_type
        own.mkdir(parents=True)
        none = Adjacency(sparse.csr_array((nodes.num_nodes, nodes.num_nodes), dtype=np.float32))
        finish(own, write_arrays(Record.of_one_type(nodes, none), own))
    for relation in graph.relations:
        sides = {"to_target": relation.edges.senders}
        if relation.edges.directed:
            sides["to_source"] = relation.edges.receivers
        for side, senders in sides.items():
            path = place(folder, relation.ends, side)
            path.mkdir(parents=True)
            write_senders(path, senders)
    finish_types(folder, graph.types, [one.ends for one in graph.relations])


def write_arrays(graph: Record, folder: Path) -> dict[str, Any]:
    """Write the files of a graph that is in memory into an existing folder; returns what `finish` is to say."""
    if graph.groups is not None:
        raise InputError(
            "graph", "one graph", "several (it has groups)", "A graph folder holds one graph."
        )
    write_senders(folder, graph.edges.senders)
    with FeatureWriter(folder, "features", halved=False) as writer:
        for block in [graph.features] if graph.table.sparse else row_blocks(graph.features):
            writer.append(block)
    write_nodes(folder / layout.NODES, graph)
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "directed": graph.directed,
        "weighted": graph.weighted,
        "feature_names": list(graph.feature_names),
        "labels": list(graph.labels),
        "splits": list(graph.splits),
        "dropped": dict(graph.dropped),
        "edge_columns": graph.edge_columns,
        "schema": None if graph.schema is None else schema_to_json(graph.schema),
        **({} if graph.encoding is None else {"encoding": graph.encoding.to_json()}),
    }


def write_nodes(path: Path, graph: Record) -> None:
    """Write nodes.parquet of a graph in memory."""
    import pyarrow
    from pyarrow import parquet

    columns = {"id": pyarrow.array(graph.ids)}
    if graph.node_names is not None:
        columns[layout.NAME] = pyarrow.array(graph.node_names, pyarrow.string())
    if graph.own.times is not None:
        columns[layout.TIME] = pyarrow.array(graph.own.times, pyarrow.int64())
    for prefix, group in ((layout.LABEL, graph.labels), (layout.SPLIT, graph.splits)):
        for name, values in group.items():
            column = arrow_column(values)
            columns[prefix + name] = (
                column.dictionary_encode() if values.dtype == object else column
            )
    parquet.write_table(
        pyarrow.table(columns), path, row_group_size=GROUP, write_page_checksum=True
    )


def finish(folder: Path, about: dict[str, Any]) -> None:
    """Write graph.json, which makes a folder of arrays a graph folder; ``about`` is what it says besides the files.

    The statistics of the features are computed here unless ``about`` has them.
    """
    files = dict[str, Any]()
    weights = [layout.WEIGHTS] if about["weighted"] else []
    edges = (layout.STARTS, layout.NEIGHBOURS, *weights)
    sparse_ones = (
        (layout.FEATURE_STARTS, layout.FEATURE_COLUMNS)
        if (folder / layout.FEATURE_STARTS).exists()
        else ()
    )
    for name in (*edges, *sparse_ones, layout.FEATURES, layout.NODES):
        files[name] = describe(folder / name)
    if "statistics" not in about:
        features, _ = layout.map_features(
            folder, files, (about["nodes"], len(about["feature_names"]))
        )
        about = about | {"statistics": Statistics.of(Table(features, mapped=True)).to_json()}
    described = {"format": layout.FORMAT, "infomax": __version__, **about, "files": files}
    content = (to_json(described, indent=2) + "\n").encode()
    matrices = [
        (edges, about["nodes"]),
        *([(sparse_ones, len(about["feature_names"]))] if sparse_ones else []),
    ]
    mapped = [
        ({name: layout.map_array(folder / name) for name in names}, width)
        for names, width in matrices
    ]
    check_once(folder, files, hashlib.sha256(content).hexdigest(), mapped)
    (folder / layout.ABOUT).write_bytes(content)


def describe(path: Path) -> dict[str, Any]:
    """What graph.json says of a file."""
    told = {"bytes": path.stat().st_size, "sha256": file_hash(path)}
    if path.suffix == ".npy":
        array = layout.map_array(path)
        told |= {"dtype": str(array.dtype), "shape": list(array.shape)}
    return told


def finish_types(folder: Path, kinds: Sequence[str], relations: Sequence[Ends]) -> None:
    """Write graph.json, which makes folders of types and of relations a graph folder."""
    about: list[dict[str, Any]] = []
    for ends in sorted(relations):
        there = [side for side in SIDES if place(folder, ends, side).exists()]
        files = {
            side: {
                file.name: describe(file) for file in sorted(place(folder, ends, side).iterdir())
            }
            for side in there
        }
        about.append({"source": ends[0], "name": ends[1], "target": ends[2], "files": files})
    types = {
        node_type: layout.folder_hash(folder / "nodes" / node_type) for node_type in sorted(kinds)
    }
    described = {"format": FORMAT, "infomax": __version__, "types": types, "relations": about}
    (folder / layout.ABOUT).write_text(to_json(described, indent=2) + "\n", encoding="utf-8")


def open_folder(path: Path) -> Record:
    """The graph of a folder, its arrays mapped."""
    if not layout.is_folder(path):
        found = "no graph.json in it" if path.is_dir() else "nothing of that name"
        raise InputError(
            str(path),
            "a graph folder",
            found,
            "Make one: infomax prepare EDGES NODES --out FOLDER.",
        )
    with layout.described(path) as about:
        if "types" in about:
            return _open_types(path, about)
    nodes, edges, told = _map_nodes(path)
    return Record.of_one_type(nodes, edges, **told)


def _map_nodes(path: Path) -> tuple[Nodes, MappedAdjacency, dict[str, Any]]:
    """The nodes in a folder, its edges, and what else it says."""
    fields, edges, about = layout.map_folder(path)
    if about["schema"] is not None:
        about["schema"] = schema_from_json(about["schema"], partial(_schema_location, path))
    if fields["encoding"] is not None:
        fields["encoding"] = Encoding.from_json(fields["encoding"], str(path / layout.ABOUT))
    return Nodes(**fields), edges, about


def _open_types(path: Path, about: dict[str, Any]) -> Record:
    """The graph of a folder of several types, its arrays mapped; ``about`` is what graph.json says."""
    if about["format"] != FORMAT:
        raise ValueError(f"format {about['format']}")
    for node_type, told in about["types"].items():
        own = path / "nodes" / node_type
        if not layout.is_folder(own) or layout.folder_hash(own) != told:
            raise InputError(
                str(own / layout.ABOUT),
                f"the file that {path / layout.ABOUT} tells",
                "another",
                AGAIN,
            )
    folders = {node_type: _map_nodes(path / "nodes" / node_type) for node_type in about["types"]}
    nodes = {node_type: one for node_type, (one, _, _) in folders.items()}
    described, found = layout.folder_hash(path), []
    for one in about["relations"]:
        ends = (one["source"], one["name"], one["target"])
        sizes = {"to_target": (ends[2], ends[0]), "to_source": (ends[0], ends[2])}
        sides = dict[str, Senders]()
        for side, files in one["files"].items():
            there = place(path, ends, side)
            n, width = (nodes[node_type].num_nodes for node_type in sizes[side])
            entries = int(files[layout.NEIGHBOURS]["shape"][0])
            arrays = layout.map_files(there, files, layout.sides(n, entries))
            check_once(there, files, described, [(arrays, width)])
            sides[side] = Senders(
                arrays[layout.STARTS], arrays[layout.NEIGHBOURS], arrays.get(layout.WEIGHTS)
            )
        if ends[0] != ends[2] and len(sides) < 2:
            raise ValueError(f"one direction of {'.'.join(ends)}")
        edges = MappedAdjacency(sides["to_target"], len(sides) == 2, sides.get("to_source"))
        found.append(Relation(*ends, edges))
    first = min(nodes)
    return Record(
        nodes,
        tuple(found),
        first,
        **folders[first][2] | {"folder": path.resolve(), "node_type_is_first": True},
    )


def _schema_location(path: Path, keys: tuple[str, ...]) -> str:
    """Where a value of the schema is, in a message."""
    return f"{path / layout.ABOUT}, schema {'.'.join(keys)}"


def check_folder(path: Path) -> None:
    """Refuse a folder in which any file has another SHA-256 than graph.json says; all of it is read."""
    with layout.described(path) as about:
        for node_type in about.get("types", ()):
            check_folder(path / "nodes" / node_type)
        for one in about.get("relations", ()):
            for side, files in one["files"].items():
                layout.compare_hashes(
                    place(path, (one["source"], one["name"], one["target"]), side), files
                )
        if "files" in about:
            layout.compare_hashes(path, about["files"])


def place(path: Path, ends: Ends, side: str) -> Path:
    """The folder of the arrays of a relation in one direction."""
    return path / "edges" / ".".join(ends) / side
