"""Graph folders: written and opened.

A graph of one type is as `infomax.arrays.folder_layout` says. A graph of several types has folders:

graph.json
    format 2; the hash of each type's own graph.json; of each relation, its files
nodes/TYPE/
    the folder of a type, without edges
edges/TYPE.RELATION.TYPE/to_target/
    indptr.npy, indices.npy and weights.npy: who sends to each node of the target
edges/TYPE.RELATION.TYPE/to_source/
    the same for each node of the source; missing where both directions are one
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from infomax.arrays import folder_layout as layout
from infomax.arrays.adjacency import Adjacency, MappedAdjacency, Senders
from infomax.arrays.blocks import row_blocks
from infomax.arrays.hashes import file_hash
from infomax.arrays.integrity import PREPARE_AGAIN, check_once
from infomax.arrays.parquet_columns import StoredColumns, StoredRows, stored_ids
from infomax.arrays.relations import Relation
from infomax.arrays.scaling import Statistics
from infomax.arrays.table import FeatureTable
from infomax.errors import InputError, format_count
from infomax.io.array_files import ROWS_PER_GROUP, FeatureWriter, write_senders
from infomax.io.encoding.encoding import Encoding
from infomax.io.json import to_json
from infomax.io.nodes import Nodes
from infomax.io.parquet import arrow_column
from infomax.io.record import Record
from infomax.io.schema.schema import Ends
from infomax.io.schema.schema_file import from_json as schema_from_json
from infomax.io.schema.schema_file import to_json as schema_to_json
from infomax.version import __version__

FORMAT = 2
SIDES = ("to_target", "to_source")
"""The directions of a relation.

Edges without directions within one type have the first alone.
"""


def write_folder(graph: Record, folder: Path) -> None:
    """Write the files of a graph in memory into an existing folder."""
    if not graph.has_named_types:
        finish(folder, write_arrays(graph, folder))
        return
    for node_type, nodes in graph.nodes.items():
        type_folder = folder / "nodes" / node_type
        type_folder.mkdir(parents=True)
        shape = (nodes.num_nodes, nodes.num_nodes)
        # The folder of a type is one of a graph of one type, but its edges are in other folders.
        no_edges = Adjacency(sparse.csr_array(shape, dtype=np.float32))
        nodes_alone = Record.of_one_type(nodes, no_edges)
        finish(type_folder, write_arrays(nodes_alone, type_folder))
    for relation in graph.relations:
        sides = {"to_target": relation.edges.senders}
        if relation.edges.directed:
            sides["to_source"] = relation.edges.receivers
        for side, senders in sides.items():
            side_folder = relation_folder(folder, relation.ends, side)
            side_folder.mkdir(parents=True)
            write_senders(side_folder, senders)
    finish_types(folder, graph.types, [relation.ends for relation in graph.relations])


def write_arrays(graph: Record, folder: Path) -> dict[str, Any]:
    """Write the files of a graph of one type that is in memory into an existing folder.

    Returns:
        What graph.json is to say besides the files, for `finish`.
    """
    if graph.groups is not None:
        remedy = "A graph folder holds one graph."
        raise InputError("graph", "one graph", "several (it has groups)", remedy)
    write_senders(folder, graph.edges.senders)
    with FeatureWriter(folder, "features", halved=False) as writer:
        blocks = [graph.features] if graph.table.sparse else row_blocks(graph.features)
        for block in blocks:
            writer.append(block)
    _write_nodes(folder / layout.NODES, graph.nodes_in_view)
    description = {
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
        description["encoding"] = graph.encoding.to_json()
    return description


def _write_nodes(path: Path, nodes: Nodes) -> None:
    """Write nodes.parquet."""
    import pyarrow
    from pyarrow import parquet

    columns = {"id": pyarrow.array(nodes.ids)}
    if nodes.node_names is not None:
        columns[layout.NAME] = pyarrow.array(nodes.node_names, pyarrow.string())
    if nodes.times is not None:
        columns[layout.TIME] = pyarrow.array(nodes.times, pyarrow.int64())
    for prefix, columns_by_name in ((layout.LABEL, nodes.labels), (layout.SPLIT, nodes.splits)):
        for name, values in columns_by_name.items():
            column = arrow_column(values)
            if values.dtype == object:
                column = column.dictionary_encode()
            columns[prefix + name] = column
    table = pyarrow.table(columns)
    parquet.write_table(table, path, row_group_size=ROWS_PER_GROUP, write_page_checksum=True)


def finish(folder: Path, description: dict[str, Any]) -> None:
    """Write graph.json, which makes a folder of arrays a graph folder.

    Args:
        folder: holds the arrays.
        description: what graph.json says besides the files. The statistics of the features are
            computed here, unless it has them.
    """
    edge_files = [layout.STARTS, layout.NEIGHBOURS]
    if description["weighted"]:
        edge_files.append(layout.WEIGHTS)
    sparse_files: list[str] = []
    if (folder / layout.FEATURE_STARTS).exists():
        sparse_files = [layout.FEATURE_STARTS, layout.FEATURE_COLUMNS]
    names = [*edge_files, *sparse_files, layout.FEATURES, layout.NODES]
    files = {name: describe_file(folder / name) for name in names}

    num_nodes, width = description["nodes"], len(description["feature_names"])
    if "statistics" not in description:
        features, _ = layout.map_features(folder, files, (num_nodes, width))
        statistics = Statistics.of(FeatureTable(features, mapped=True))
        description = description | {"statistics": statistics.to_json()}
    description = {"format": layout.FORMAT, "infomax": __version__, **description, "files": files}
    content = (to_json(description, indent=2) + "\n").encode()

    # What is checked here is not checked again when the folder is first opened.
    matrices = [(_mapped(folder, edge_files), num_nodes)]
    if sparse_files:
        matrices.append((_mapped(folder, sparse_files), width))
    check_once(folder, files, hashlib.sha256(content).hexdigest(), matrices)
    (folder / layout.DESCRIPTION).write_bytes(content)


def _mapped(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    return {name: layout.map_array(folder / name) for name in names}


def describe_file(path: Path) -> dict[str, Any]:
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
            side_folder = relation_folder(folder, ends, side)
            if side_folder.exists():
                side_files = sorted(side_folder.iterdir())
                files[side] = {file.name: describe_file(file) for file in side_files}
        source, name, target = ends
        described_relations.append(
            {"source": source, "name": name, "target": target, "files": files}
        )
    type_hashes = {
        node_type: layout.folder_hash(folder / "nodes" / node_type)
        for node_type in sorted(node_types)
    }
    description = {
        "format": FORMAT,
        "infomax": __version__,
        "types": type_hashes,
        "relations": described_relations,
    }
    content = to_json(description, indent=2) + "\n"
    (folder / layout.DESCRIPTION).write_text(content, encoding="utf-8")


def open_folder(path: Path) -> Record:
    """The graph of a folder, its arrays mapped."""
    if not layout.is_folder(path):
        found = "no graph.json in it" if path.is_dir() else "nothing of that name"
        remedy = "Make one: infomax prepare EDGES NODES --out FOLDER."
        raise InputError(str(path), "a graph folder", found, remedy)
    with layout.description_of(path) as description:
        has_types = "types" in description
        if has_types:
            return _open_types(path, description)
    return _open_one_type(path)


def _open_one_type(path: Path) -> Record:
    """The graph of a folder of one type, its arrays mapped and checked by `check_once`."""
    with layout.description_of(path) as description:
        if description["format"] != layout.FORMAT:
            raise ValueError(f"format {description['format']}")
        files = description["files"]
        expected_files = {layout.STARTS, layout.NEIGHBOURS, layout.FEATURES, layout.NODES}
        if description["weighted"]:
            expected_files.add(layout.WEIGHTS)
        if {*files} - {layout.FEATURE_STARTS, layout.FEATURE_COLUMNS} != expected_files:
            raise ValueError(f"entries for {', '.join(sorted(files))}")

        num_nodes, width = description["nodes"], len(description["feature_names"])
        # An undirected edge is stored at both of its ends.
        entries_per_edge = 1 if description["directed"] else 2
        num_entries = description["edges"] * entries_per_edge
        edge_arrays = layout.map_files(path, files, layout.senders_layout(num_nodes, num_entries))
        features, feature_arrays = layout.map_features(path, files, (num_nodes, width))
        # Compiled code will read these arrays without looking.
        matrices = [(edge_arrays, num_nodes)]
        if feature_arrays:
            matrices.append((feature_arrays, width))
        check_once(path, files, layout.folder_hash(path), matrices)

        edges = MappedAdjacency(_senders(edge_arrays), description["directed"])
        nodes = _map_nodes(path, description, features)
        dropped = dict(description["dropped"])
        edge_columns = description["edge_columns"]
    schema = description.get("schema")
    if schema is not None:
        schema = schema_from_json(schema, partial(_schema_location, path))
    return Record.of_one_type(
        nodes,
        edges,
        dropped=dropped,
        edge_columns=tuple(edge_columns) if edge_columns else edge_columns,
        schema=schema,
        folder=path.resolve(),
    )


def _senders(arrays: Mapping[str, Any]) -> Senders:
    """Who sends to each node, by the names of the files."""
    return Senders(arrays[layout.STARTS], arrays[layout.NEIGHBOURS], arrays.get(layout.WEIGHTS))


def _map_nodes(path: Path, description: dict[str, Any], features: Any) -> Nodes:
    """The nodes in a folder, whose columns are read when they are asked for."""
    nodes_path = path / layout.NODES
    num_nodes, labels, splits = (description[key] for key in ("nodes", "labels", "splits"))
    ids = stored_ids(nodes_path)
    columns = {
        "id",
        *(layout.LABEL + name for name in labels),
        *(layout.SPLIT + name for name in splits),
    }
    has_columns = columns <= set(ids.names) and str(ids.type) in ("int64", "string")
    if len(ids) != num_nodes or not has_columns:
        names = ", ".join(sorted(columns))
        expected = f"{format_count(num_nodes, 'row')} of {names}, with ids of int64 or string"
        found = f"{len(ids)} of {', '.join(ids.names)}"
        raise InputError(str(nodes_path), expected, found, PREPARE_AGAIN)

    feature_names = tuple(description["feature_names"])
    statistics = Statistics.from_json(description["statistics"])
    numbers = np.stack([statistics.mean, statistics.variance])
    are_of_features = numbers.shape[1] == len(feature_names) and bool(feature_names)
    if not are_of_features or not np.isfinite(numbers).all():
        raise ValueError(f"statistics of other features than {', '.join(feature_names[:5])}")

    encoding = description.get("encoding")
    if encoding is not None:
        encoding = Encoding.from_json(encoding, str(path / layout.DESCRIPTION))
    node_names: Any = None
    if layout.NAME in ids.names:
        node_names = StoredRows(nodes_path, column=layout.NAME)
    times: Any = None
    if layout.TIME in ids.names:
        times = StoredRows(nodes_path, column=layout.TIME)
    stored: Any = ids
    return Nodes(
        table=FeatureTable(features, statistics, mapped=True),
        ids=stored,
        feature_names=feature_names,
        labels=StoredColumns(nodes_path, layout.LABEL, tuple(labels)),
        splits=StoredColumns(nodes_path, layout.SPLIT, tuple(splits)),
        node_names=node_names,
        encoding=encoding,
        times=times,
    )


def _open_types(path: Path, description: dict[str, Any]) -> Record:
    """The graph of a folder of several types, its arrays mapped."""
    if description["format"] != FORMAT:
        raise ValueError(f"format {description['format']}")
    for node_type, expected_hash in description["types"].items():
        type_folder = path / "nodes" / node_type
        if not layout.is_folder(type_folder) or layout.folder_hash(type_folder) != expected_hash:
            location = str(type_folder / layout.DESCRIPTION)
            expected = f"the file that {path / layout.DESCRIPTION} tells"
            raise InputError(location, expected, "another", PREPARE_AGAIN)
    graphs = {
        node_type: _open_one_type(path / "nodes" / node_type) for node_type in description["types"]
    }
    nodes = {node_type: graph.nodes_in_view for node_type, graph in graphs.items()}
    sizes = {node_type: graph.num_nodes for node_type, graph in graphs.items()}
    description_hash = layout.folder_hash(path)
    relations = [
        _open_relation(path, described, sizes, description_hash)
        for described in description["relations"]
    ]

    # What is said of the whole graph is said in the folder of each type.
    first_type = min(nodes)
    first_graph = graphs[first_type]
    return Record(
        nodes,
        tuple(relations),
        first_type,
        dropped=first_graph.dropped,
        edge_columns=first_graph.edge_columns,
        schema=first_graph.schema,
        folder=path.resolve(),
        node_type_is_first=True,
    )


def _open_relation(
    path: Path, described: dict[str, Any], sizes: dict[str, int], description_hash: str
) -> Relation:
    """A relation of a folder of several types, mapped; ``described`` is its entry in graph.json."""
    ends = (described["source"], described["name"], described["target"])
    source, name, target = ends
    types_of_side = {"to_target": (target, source), "to_source": (source, target)}
    # In each direction nodes of one type receive, and those of the other send.
    sides: dict[str, Senders] = {}
    for side, files in described["files"].items():
        num_receivers, num_senders = (sizes[node_type] for node_type in types_of_side[side])
        num_entries = int(files[layout.NEIGHBOURS]["shape"][0])
        side_folder = relation_folder(path, ends, side)
        side_layout = layout.senders_layout(num_receivers, num_entries)
        arrays = layout.map_files(side_folder, files, side_layout)
        check_once(side_folder, files, description_hash, [(arrays, num_senders)])
        sides[side] = _senders(arrays)
    if source != target and len(sides) < 2:
        raise ValueError(f"one direction of {'.'.join(ends)}")
    edges = MappedAdjacency(sides["to_target"], len(sides) == 2, sides.get("to_source"))
    return Relation(source, name, target, edges)


def _schema_location(path: Path, keys: tuple[str, ...]) -> str:
    """Where a value of the schema is, in a message."""
    return f"{path / layout.DESCRIPTION}, schema {'.'.join(keys)}"


def check_folder(path: Path) -> None:
    """Refuse a folder in which any file has another SHA-256 than graph.json says.

    All of the folder is read.
    """
    with layout.description_of(path) as description:
        for node_type in description.get("types", ()):
            check_folder(path / "nodes" / node_type)
        for relation in description.get("relations", ()):
            ends = (relation["source"], relation["name"], relation["target"])
            for side, files in relation["files"].items():
                layout.compare_hashes(relation_folder(path, ends, side), files)
        if "files" in description:
            layout.compare_hashes(path, description["files"])


def relation_folder(path: Path, ends: Ends, side: str) -> Path:
    """The folder of the arrays of a relation in one direction."""
    return path / "edges" / ".".join(ends) / side
