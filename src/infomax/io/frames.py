"""Frames of pandas, polars, pyarrow and others, by way of the Arrow interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.parquet_columns import readable
from infomax.arrays.relations import RELATION
from infomax.errors import InputError, shorten
from infomax.io.attach import attach
from infomax.io.column_names import as_said
from infomax.io.columns import Columns
from infomax.io.database import of_frames
from infomax.io.known import as_known, read_like
from infomax.io.prepare.in_memory import read_tables
from infomax.io.record import Record
from infomax.io.rows import edge_columns, refuse_unwritable, relation_columns, without_usual
from infomax.io.sources import Source
from infomax.io.typed import Tables, of_one_type, of_sources, of_tables
from infomax.io.unite import check_names, without_made
from infomax.io.writing import arrow_edges, arrow_nodes


def read_frames(
    edges: Any,
    nodes: Any,
    *,
    directed: bool | None,
    features: Any,
    attach_to: Record | None = None,
    like: Record | None = None,
    keys: Mapping[str, str] | Sequence[str] | None = None,
    **columns: Any,
) -> Record:
    """What `Graph.from_frames` returns."""
    if edges is None and isinstance(nodes, Mapping) and attach_to is None:
        chosen = Columns.of(features=features, key=as_said(keys or ()), **columns)
        chosen = chosen if like is None else read_like(chosen, like)
        tables = {str(name): frame_source(frame, f"nodes[{name}]").frame for name, frame in nodes.items()}
        return read_tables(of_frames(tables, chosen), directed=False)
    if keys is not None or edges is None:
        found_edges = "none" if edges is None else "edges"
        raise InputError("edges", "an edge frame, or frames of nodes by name, with keys, and no edges", found_edges)
    matrix = features if hasattr(features, "shape") else None
    chosen = Columns.of(features=None if matrix is not None else features, **columns)
    if like is not None:
        chosen = read_like(chosen, like)
        directed = like.directed if directed is None else directed
    chosen = as_known(chosen, attach_to)
    if isinstance(edges, Mapping) and attach_to is not None and not attach_to.types:
        raise InputError("edges", "one frame, as the known graph has one type of nodes", "one for each relation")
    if not isinstance(edges, Mapping):
        chosen = chosen.with_timed_rows(_header(edges), _header(nodes))
    if isinstance(edges, Mapping) or chosen.typed or (attach_to is not None and attach_to.types):
        if matrix is not None:
            raise InputError("features", "names of columns, for several types of nodes", "an array")
        found = _of_types(edges, nodes, chosen)
        return read_tables(found, directed=bool(directed)) if attach_to is None else attach(found, attach_to)
    node_source = None
    if nodes is None:
        if attach_to is None and like is None:
            chosen.refuse_without_nodes("that was given")
        if matrix is not None:
            raise InputError("features", "a node frame, to whose rows they belong", "none")
    else:
        named = chosen.id is not None or chosen.earlier.get("id") in list(getattr(nodes, "columns", ()))
        nodes = nodes.reset_index(names="id") if not named and _has_ids_as_index(nodes) else nodes
        node_source = frame_source(nodes, "nodes", replace(chosen, features=()) if matrix is not None else chosen)
    found = of_one_type(frame_source(edges, "edges", chosen), node_source, chosen)
    if attach_to is not None:
        return attach(found, attach_to, matrix=matrix)
    return read_tables(found, directed=bool(directed), matrix=matrix)


def _of_types(edges: Any, nodes: Any, columns: Columns) -> Tables:
    """Frames by type and relation, or two frames with columns of types."""
    if not isinstance(edges, Mapping):
        columns = columns.as_before()
        if not columns.typed:
            raise InputError("edges", "a frame for each relation, for several types of nodes", "one frame")
        return of_tables(frame_source(edges, "edges"), None if nodes is None else frame_source(nodes, "nodes"), columns)
    columns.refuse(("types", "edge_type", "node_type"), "one edge frame, rather than one for each relation")
    found = {}
    for key, frame in edges.items():
        if not isinstance(key, tuple) or len(key) not in (2, 3):
            raise InputError("edges", 'frames by relation, as in ("author", "writes", "paper")', shorten(str(key)))
        ends = (key[0], key[1] if len(key) == 3 else RELATION, key[-1])
        check_names(f"edges[{key}]", ends)
        if ends in found:
            raise InputError("edges", "one frame for each relation", f"two of {' '.join(ends)}")
        found[ends] = frame_source(frame, f"edges[{', '.join(ends)}]")
    if nodes is not None and not isinstance(nodes, Mapping):
        raise InputError("nodes", 'frames by type, as in {"author": frame}', type(nodes).__name__)
    of_nodes = {kind: frame_source(frame, f"nodes[{kind}]") for kind, frame in (nodes or {}).items()}
    return of_sources(of_nodes, found, columns.as_before("edges_as"))


def _header(frame: Any) -> list[str]:
    """The names of the columns of a frame of pandas, polars or pyarrow."""
    names = getattr(frame, "column_names", None)
    return list(getattr(frame, "columns", ()) if names is None else names)


def _has_ids_as_index(frame: Any) -> bool:
    """Whether the ids of a frame of pandas, which has no column of that name, are its index.

    An index of numbers without a name is that of the rows, unless the first column cannot hold ids. Whole numbers that
    pandas keeps as floats, 12.0, are ids that became so beside a gap: they are refused later, and by name.
    """
    names = [str(name).lower() for name in getattr(frame, "columns", ())]
    if not hasattr(frame, "reset_index") or not hasattr(frame, "columns") or "id" in names:
        return False
    index = frame.index
    of_rows = index.name is None and getattr(index.dtype, "kind", "O") in "iu"
    return index.nlevels == 1 and (not of_rows or frame.shape[1] == 0 or not _may_be_ids(frame.iloc[:, 0]))


def _may_be_ids(column: Any) -> bool:
    """Whether a column of pandas can hold ids: text, integers, or different whole numbers."""
    kind = getattr(column.dtype, "kind", "O")
    if kind != "f":
        return kind != "b"
    there = column.dropna()
    return bool(len(there) and there.is_unique and (there % 1 == 0).all())


def vector_frame(ids: NDArray[Any], vectors: NDArray[np.float32], kind: str, names: NDArray[Any] | None) -> Any:
    """A frame with the columns id, name if any, d0, d1, ..."""
    import pyarrow

    named = {} if names is None else {"name": pyarrow.array(names, pyarrow.string())}
    columns = {
        "id": pyarrow.array(ids),
        **named,
        **{f"d{at}": pyarrow.array(vectors[:, at]) for at in range(vectors.shape[1])},
    }
    return _from_arrow(pyarrow.table(columns), kind)


def write_frames(graph: Record, kind: str) -> tuple[Any, Any]:
    """What `Graph.to_frames` returns."""
    graph = graph.loaded()
    types, graph = without_made(graph), graph if graph.types else without_usual(graph)
    for one in types.values() if types else (graph,):
        refuse_unwritable(one, "to_frames", "parquet")
    if not types:
        return _from_arrow(arrow_edges(edge_columns(graph)), kind), _of_nodes(graph, kind)
    edges = {ends: _from_arrow(arrow_edges(columns), kind) for ends, columns in relation_columns(graph).items()}
    return edges, {of_type: _of_nodes(one, kind) for of_type, one in types.items()}


def _of_nodes(graph: Record, kind: str) -> Any:
    return _from_arrow(next(arrow_nodes(graph, graph.num_nodes)), kind)


def frame_source(frame: Any, name: str, columns: Columns | None = None) -> Source:
    """A frame, to be read as files are."""
    import pyarrow

    is_frame = hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__dataframe__")
    if not is_frame or hasattr(frame, "to_frame"):  # a series
        makes = ("collect", "reset_index", "to_frame")  # of a lazy frame, of series of pandas and of polars
        how = next((f"Its method {word}() makes one." for word in makes if hasattr(frame, word)), "")
        raise InputError(name, "a frame of pandas, polars or pyarrow", type(frame).__name__, how)
    remedy = "Give each column its name and one type, as column.astype(str) does, or leave it out."
    with readable(Path(name), "columns that Arrow can hold, each of one type", remedy):
        levels = list(frame.index.names) if hasattr(frame, "reset_index") else [None]
        if None not in levels and not set(levels) & set(frame.columns):
            frame = frame.reset_index()  # as after groupby: pyarrow would set them behind the other columns
        table = pyarrow.table(frame)
        plain = pyarrow.table([_plain(column) for column in table.columns], names=table.column_names)
    return Source([Path(name)], columns or Columns(), plain)


def _plain(column: Any) -> Any:
    """The column, with the words of a dictionary in a form that pyarrow can cast: those of polars are not."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or not pa.types.is_string_view(column.type.value_type):
        return column
    chunks = column.chunks
    words = [pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(pa.large_string())) for part in chunks]
    return pa.chunked_array(words, pa.dictionary(column.type.index_type, pa.large_string()))


def _from_arrow(table: Any, kind: str) -> Any:
    """A frame of pandas or polars, or the pyarrow table itself."""
    if kind == "arrow":
        return table
    if kind not in ("pandas", "polars"):
        raise InputError("kind", "pandas, polars or arrow", kind)
    try:
        if kind == "pandas":
            return table.to_pandas()
        import polars

        return polars.from_arrow(table)
    except ImportError:
        remedy = f"Install it: pip install {kind}. Or ask for another kind: pandas, polars or arrow."
        raise InputError("to_frame", kind, "none installed", remedy) from None
