"""Frames of pandas, polars, pyarrow and others, by way of the Arrow interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.relations import RELATION
from infomax.errors import InputError, readable, shorten
from infomax.io.attach import attach
from infomax.io.building import check_relation_names, without_structural_features
from infomax.io.choices import Choices, UserChoices, reading_like, reading_new_nodes
from infomax.io.column_names import as_said
from infomax.io.database import tables_of_frames
from infomax.io.database.new_rows import tables_of_new_rows
from infomax.io.prepare.in_memory import read_tables
from infomax.io.record import Record
from infomax.io.schema.schema import Ends
from infomax.io.schema.tables_by_type import two_tables, typed_tables
from infomax.io.sources import Source
from infomax.io.tables import Tables
from infomax.io.vectors import flat_table
from infomax.io.writing import arrow_edges, arrow_nodes, refuse_unwritable, relation_columns


def read_frames(
    edges: Any,
    nodes: Any,
    *,
    directed: bool | None,
    features: Any,
    attach_to: Record | None = None,
    like: Record | None = None,
    keys: Mapping[str, str] | Sequence[str] | None = None,
    **columns: Unpack[Choices],
) -> Record:
    """What `Graph.from_frames` returns."""
    if edges is None and isinstance(nodes, Mapping):
        choices = UserChoices.of(features=features, key=as_said(keys or ()), **columns)
        frames = {
            str(name): frame_source(frame, f"nodes[{name}]").frame for name, frame in nodes.items()
        }
        if attach_to is not None:
            choices = reading_new_nodes(choices, attach_to)
            return attach(tables_of_new_rows(frames, choices, attach_to), attach_to)
        choices, _ = reading_like(choices, like, None)
        return read_tables(tables_of_frames(frames, choices), directed=False)

    if keys is not None or edges is None:
        expected = "an edge frame, or frames of nodes by name, with keys, and no edges"
        raise InputError("edges", expected, "none" if edges is None else "edges")
    matrix = features if hasattr(features, "shape") else None
    choices = UserChoices.of(features=None if matrix is not None else features, **columns)
    choices, directed = reading_like(choices, like, directed)
    choices = reading_new_nodes(choices, attach_to)
    if matrix is not None:
        choices = replace(choices, features=())
    if isinstance(edges, Mapping):
        if attach_to is not None and not attach_to.has_named_types:
            expected = "one frame, as the known graph has one type of nodes"
            raise InputError("edges", expected, "one for each relation")
        tables = _tables_by_relation(edges, nodes, choices)
    else:
        node_source = _node_source(nodes, choices)
        tables = two_tables(frame_source(edges, "edges"), node_source, choices)
        if matrix is not None and nodes is None:
            raise InputError("features", "a node frame, to whose rows they belong", "none")
    if matrix is not None and "" not in tables.nodes:
        raise InputError("features", "names of columns, for several types of nodes", "an array")
    if attach_to is not None:
        return attach(tables, attach_to, matrix=matrix)
    return read_tables(tables, directed=bool(directed), matrix=matrix)


def _tables_by_relation(edges: Mapping[Any, Any], nodes: Any, choices: UserChoices) -> Tables:
    """Frames by relation and by type."""
    choices.refuse(
        ("types", "edge_type", "node_type"), "one edge frame, rather than one for each relation"
    )
    edge_sources: dict[Ends, Source] = {}
    for key, frame in edges.items():
        if not isinstance(key, tuple) or len(key) not in (2, 3):
            expected = 'frames by relation, as in ("author", "writes", "paper")'
            raise InputError("edges", expected, shorten(str(key)))
        relation = key[1] if len(key) == 3 else RELATION
        ends = (key[0], relation, key[-1])
        check_relation_names(f"edges[{key}]", ends)
        if ends in edge_sources:
            raise InputError("edges", "one frame for each relation", f"two of {' '.join(ends)}")
        edge_sources[ends] = frame_source(frame, f"edges[{', '.join(ends)}]")
    if nodes is not None and not isinstance(nodes, Mapping):
        raise InputError("nodes", 'frames by type, as in {"author": frame}', type(nodes).__name__)
    node_sources = {
        node_type: frame_source(frame, f"nodes[{node_type}]")
        for node_type, frame in (nodes or {}).items()
    }
    return typed_tables(node_sources, edge_sources, choices)


def _node_source(nodes: Any, choices: UserChoices) -> Source | None:
    """The frame of nodes, if there is one.

    Its index becomes the column of ids where no column has them.
    """
    if nodes is None:
        return None
    earlier_table = None if choices.schema is None else choices.schema.of_type("")
    earlier_column = None
    if earlier_table is not None and len(earlier_table.id.columns) == 1:
        earlier_column = earlier_table.id.column
    is_named = choices.id is not None or earlier_column in list(getattr(nodes, "columns", ()))
    if not is_named and _has_ids_as_index(nodes):
        nodes = nodes.reset_index(names="id")
    return frame_source(nodes, "nodes")


def _has_ids_as_index(frame: Any) -> bool:
    """Whether the ids of a frame of pandas, which has no column of that name, are its index.

    An index of numbers without a name is that of the rows, unless the first column cannot hold ids.
    Whole numbers that pandas keeps as floats, 12.0, are ids that became so beside a gap: they are
    refused later, and by name.
    """
    names = [str(name).lower() for name in getattr(frame, "columns", ())]
    if not hasattr(frame, "reset_index") or not hasattr(frame, "columns") or "id" in names:
        return False
    index = frame.index
    of_rows = index.name is None and getattr(index.dtype, "kind", "O") in "iu"
    return index.nlevels == 1 and (
        not of_rows or frame.shape[1] == 0 or not _may_be_ids(frame.iloc[:, 0])
    )


def _may_be_ids(column: Any) -> bool:
    """Whether a column of pandas can hold ids: text, integers, or different whole numbers."""
    kind = getattr(column.dtype, "kind", "O")
    if kind != "f":
        return kind != "b"
    there = column.dropna()
    return bool(len(there) and there.is_unique and (there % 1 == 0).all())


def vector_frame(
    ids: NDArray[Any], vectors: NDArray[np.float32], kind: str, names: NDArray[Any] | None
) -> Any:
    """A frame with the columns id, name if any, d0, d1, ..."""
    return _from_arrow(flat_table(ids, vectors, names, slice(None)), kind)


def write_frames(graph: Record, kind: str) -> tuple[Any, Any]:
    """What `Graph.to_frames` returns."""
    graph = without_structural_features(graph.loaded())
    nodes = {}
    for of_type in sorted(graph.nodes):
        one = graph.target(of_type)
        refuse_unwritable(one, "to_frames", "parquet")
        nodes[of_type] = _from_arrow(next(arrow_nodes(one, one.num_nodes)), kind)
    edges = {
        ends: _from_arrow(arrow_edges(columns), kind)
        for ends, columns in relation_columns(graph).items()
    }
    return (edges, nodes) if graph.has_named_types else (edges.popitem()[1], nodes[""])


def frame_source(frame: Any, name: str) -> Source:
    """A frame, to be read as files are."""
    import pyarrow

    is_frame = hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__dataframe__")
    if not is_frame or hasattr(frame, "to_frame"):  # a series
        remedy = "Of a lazy frame collect() makes one, of a series to_frame()."
        raise InputError(name, "a frame of pandas, polars or pyarrow", type(frame).__name__, remedy)
    remedy = "Give each column its name and one type, as column.astype(str) does, or leave it out."
    with readable(Path(name), "columns that Arrow can hold, each of one type", remedy):
        levels = list(frame.index.names) if hasattr(frame, "reset_index") else [None]
        if None not in levels and not set(levels) & set(frame.columns):
            frame = (
                frame.reset_index()
            )  # as after groupby: pyarrow would set them behind the other columns
        table = pyarrow.table(frame)
        plain = pyarrow.table(
            [_plain(column) for column in table.columns], names=table.column_names
        )
    return Source([Path(name)], plain)


def _plain(column: Any) -> Any:
    """The column, with the words of a dictionary in a form that pyarrow can cast.

    Those of polars are not in such a form.
    """
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or not pa.types.is_string_view(
        column.type.value_type
    ):
        return column
    chunks = column.chunks
    words = [
        pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(pa.large_string()))
        for part in chunks
    ]
    return pa.chunked_array(words, pa.dictionary(column.type.index_type, pa.large_string()))


def _from_arrow(table: Any, library: str) -> Any:
    """A frame of pandas or polars, or the pyarrow table itself."""
    if library == "arrow":
        return table
    if library not in ("pandas", "polars"):
        raise InputError("library", "pandas, polars or arrow", library)
    try:
        if library == "pandas":
            return table.to_pandas()
        import polars

        return polars.from_arrow(table)
    except ImportError:
        remedy = f"Install it: pip install {library}. Or choose another: pandas, polars or arrow."
        raise InputError("to_frame", library, "none installed", remedy) from None
