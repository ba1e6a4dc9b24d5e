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
from infomax.arrays.table import FeatureTable
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
        type_folder = folder / "nodes" / node_type
        type_folder.mkdir(parents=True)
        shape = (nodes.num_nodes, nodes.num_nodes)
        no_edges = Adjacency(sparse.csr_array(shape, dtype=np.float32))
        nodes_alone = Record.of_one_type(nodes, no_edges)
        finish(type_folder, write_arrays(nodes_alone, type_folder))
    for relation in graph.relations:
        sides = {"to_target": relation.edges.senders}
        if relation.edges.directed:
            sides["to_source"] = relation.edges.receivers
        for side, senders in sides.items():
            path = place(folder, relation.ends, side)
            path.mkdir(parents=True)
            write_senders(path, senders)
    finish_types(folder, graph.types, [relation.ends for relation in graph.relations])


def write_arrays(graph: Record, folder: Path) -> dict[str, Any]:
    """Write the files of a graph that is in memory into an existing folder; returns what `finish` is to say."""
    if graph.groups is not None:
        remedy = "A graph folder holds one graph."
        raise InputError("graph", "one graph", "several (it has groups)", remedy)
    write_senders(folder, graph.edges.senders)
    with FeatureWriter(folder, "features", halved=False) as writer:
        blocks = [graph.features] if graph.table.sparse else row_blocks(graph.features)
        for block in blocks:
            writer.append(block)
    write_nodes(folder / layout.NODES, graph)
    about = {
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
    }
    if graph.encoding is not None:
        about["encoding"] = graph.encoding.to_json()
    return about


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
            if values.dtype == object:
                column = column.dictionary_encode()
            columns[prefix + name] = column
    table = pyarrow.table(columns)
    parquet.write_table(table, path, row_group_size=GROUP, write_page_checksum=True)


def finish(folder: Path, about: dict[str, Any]) -> None:
    """Write graph.json, which makes a folder of arrays a graph folder; ``about`` is what it says besides the files.

    The statistics of the features are computed here unless ``about`` has them.
    """
    edge_files = [layout.STARTS, layout.NEIGHBOURS]
    if about["weighted"]:
        edge_files.append(layout.WEIGHTS)
    sparse_files: list[str] = []
    if (folder / layout.FEATURE_STARTS).exists():
        sparse_files = [layout.FEATURE_STARTS, layout.FEATURE_COLUMNS]
    names = [*edge_files, *sparse_files, layout.FEATURES, layout.NODES]
    files = {name: describe(folder / name) for name in names}

    width = len(about["feature_names"])
    if "statistics" not in about:
        features, _ = layout.map_features(folder, files, (about["nodes"], width))
        statistics = Statistics.of(FeatureTable(features, mapped=True))
        about = about | {"statistics": statistics.to_json()}
    description = {"format": layout.FORMAT, "infomax": __version__, **about, "files": files}
    content = (to_json(description, indent=2) + "\n").encode()

    # What is checked here is not checked again when the folder is first opened.
    matrices = [(_mapped(folder, edge_files), about["nodes"])]
    if sparse_files:
        matrices.append((_mapped(folder, sparse_files), width))
    check_once(folder, files, hashlib.sha256(content).hexdigest(), matrices)
    (folder / layout.ABOUT).write_bytes(content)


def _mapped(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    return {name: layout.map_array(folder / name) for name in names}


def describe(path: Path) -> dict[str, Any]:
    """What graph.json says of a file."""
    entry: dict[str, Any] = {"bytes": path.stat().st_size, "sha256": file_hash(path)}
    if path.suffix == ".npy":
        array = layout.map_array(path)
        entry |= {"dtype": str(array.dtype), "shape": list(array.shape)}
    return entry


def finish_types(folder: Path, node_types: Sequence[str], relations: Sequence[Ends]) -> None:
    """Write graph.json, which makes folders of types and of relations a graph folder."""
    described_relations: list[dict[str, Any]] = []
    for ends in sorted(relations):
        files = {}
        for side in SIDES:
            path = place(folder, ends, side)
            if path.exists():
                files[side] = {file.name: describe(file) for file in sorted(path.iterdir())}
        source, name, target = ends
        described_relations.append(
            {"source": source, "name": name, "target": target, "files": files}
        )
    described_types = {
        node_type: layout.folder_hash(folder / "nodes" / node_type)
        for node_type in sorted(node_types)
    }
    description = {
        "format": FORMAT,
        "infomax": __version__,
        "types": described_types,
        "relations": described_relations,
    }
    (folder / layout.ABOUT).write_text(to_json(description, indent=2) + "\n", encoding="utf-8")


def open_folder(path: Path) -> Record:
    """The graph of a folder, its arrays mapped."""
    if not layout.is_folder(path):
        found = "no graph.json in it" if path.is_dir() else "nothing of that name"
        remedy = "Make one: infomax prepare EDGES NODES --out FOLDER."
        raise InputError(str(path), "a graph folder", found, remedy)
    with layout.described(path) as about:
        if "types" in about:
            return _open_types(path, about)
    nodes, edges, more = _map_nodes(path)
    return Record.of_one_type(nodes, edges, **more)


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
    for node_type, expected_hash in about["types"].items():
        type_folder = path / "nodes" / node_type
        if not layout.is_folder(type_folder) or layout.folder_hash(type_folder) != expected_hash:
            location = str(type_folder / layout.ABOUT)
            expected = f"the file that {path / layout.ABOUT} tells"
            raise InputError(location, expected, "another", AGAIN)
    folders = {node_type: _map_nodes(path / "nodes" / node_type) for node_type in about["types"]}
    nodes = {node_type: type_nodes for node_type, (type_nodes, _, _) in folders.items()}
    sizes = {node_type: type_nodes.num_nodes for node_type, type_nodes in nodes.items()}
    description_hash = layout.folder_hash(path)
    relations = [
        _open_relation(path, described, sizes, description_hash) for described in about["relations"]
    ]
    first = min(nodes)
    more = folders[first][2] | {"folder": path.resolve(), "node_type_is_first": True}
    return Record(nodes, tuple(relations), first, **more)


def _open_relation(
    path: Path, described: dict[str, Any], sizes: dict[str, int], description_hash: str
) -> Relation:
    """A relation of a folder of several types, mapped; ``described`` is what graph.json says of it."""
    ends = (described["source"], described["name"], described["target"])
    source, name, target = ends
    types_of_side = {"to_target": (target, source), "to_source": (source, target)}
    sides: dict[str, Senders] = {}
    for side, files in described["files"].items():
        receiver_count, sender_count = (sizes[node_type] for node_type in types_of_side[side])
        entry_count = int(files[layout.NEIGHBOURS]["shape"][0])
        folder = place(path, ends, side)
        arrays = layout.map_files(folder, files, layout.sides(receiver_count, entry_count))
        check_once(folder, files, description_hash, [(arrays, sender_count)])
        starts, neighbours = arrays[layout.STARTS], arrays[layout.NEIGHBOURS]
        sides[side] = Senders(starts, neighbours, arrays.get(layout.WEIGHTS))
    if source != target and len(sides) < 2:
        raise ValueError(f"one direction of {'.'.join(ends)}")
    edges = MappedAdjacency(sides["to_target"], len(sides) == 2, sides.get("to_source"))
    return Relation(source, name, target, edges)


def _schema_location(path: Path, keys: tuple[str, ...]) -> str:
    """Where a value of the schema is, in a message."""
    return f"{path / layout.ABOUT}, schema {'.'.join(keys)}"


def check_folder(path: Path) -> None:
    """Refuse a folder in which any file has another SHA-256 than graph.json says; all of it is read."""
    with layout.described(path) as about:
        for node_type in about.get("types", ()):
            check_folder(path / "nodes" / node_type)
        for relation in about.get("relations", ()):
            ends = (relation["source"], relation["name"], relation["target"])
            for side, files in relation["files"].items():
                layout.compare_hashes(place(path, ends, side), files)
        if "files" in about:
            layout.compare_hashes(path, about["files"])


def place(path: Path, ends: Ends, side: str) -> Path:
    """The folder of the arrays of a relation in one direction."""
    return path / "edges" / ".".join(ends) / side
