"""Write graph folders; see `infomax.arrays.folder`."""

from __future__ import annotations

import hashlib
import io
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from infomax.arrays import folder as layout
from infomax.arrays.adjacency import MappedAdjacency, Senders, transposed
from infomax.arrays.blocks import row_blocks
from infomax.arrays.hashes import file_hash
from infomax.arrays.integrity import check_once, sample_hash
from infomax.arrays.scaling import Statistics
from infomax.arrays.sparsity import dense, mostly_zero
from infomax.arrays.table import MappedTable
from infomax.errors import InputError
from infomax.io.encoding.encoding import Encoding
from infomax.io.json import to_json
from infomax.io.nodes import Nodes
from infomax.io.parquet import arrow_column
from infomax.io.record import Record
from infomax.version import __version__

_HEADER = 128
GROUP = 1 << 18
"""Rows per row group of nodes.parquet."""


class ArrayWriter:
    """An .npy file that is written row by row; its header comes last, when the number of rows is known."""

    def __init__(self, path: Path, dtype: DTypeLike, width: int | None = None) -> None:
        self.dtype, self.width, self.rows = np.dtype(dtype), width, 0
        self.file = path.open("wb")
        self.file.write(bytes(_HEADER))

    def append(self, block: NDArray[Any]) -> None:
        """Add rows ``[n]`` or ``[n, width]``."""
        self.file.write(np.ascontiguousarray(block, self.dtype).data)
        self.rows += len(block)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            shape = (self.rows,) if self.width is None else (self.rows, self.width)
            header = io.BytesIO()
            described = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(header, described)
            # The header is text that ends in spaces and a line feed: more spaces make it as long as the gap.
            text = header.getvalue()[10:].rstrip().ljust(_HEADER - 11) + b"\n"
            self.file.seek(0)
            self.file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
            self.file.flush()
            os.fsync(self.file.fileno())
        self.file.close()


class FeatureWriter(ExitStack):
    """The files of the features ``[N, width]`` of a graph folder, in half precision where asked; ``where`` they are.

    They are stored sparse where the first rows are `mostly_zero`.
    """

    def __init__(self, folder: Path, width: int, where: str, *, halved: bool) -> None:
        super().__init__()
        self.folder, self.width, self.where, self.halved, self.rows = folder, width, where, halved, 0
        self.files: list[ArrayWriter] = []
        for name in (layout.FEATURES, layout.FEATURE_COLUMNS, layout.FEATURE_STARTS):
            (folder / name).unlink(missing_ok=True)  # of an attempt before, which may have stored them otherwise

    def append(self, block: Any) -> None:
        """Add rows ``[n, width]``, dense or CSR."""
        if not self.files:
            kind = np.float16 if self.halved else np.float32
            if mostly_zero([block]):
                self._open(layout.FEATURES, kind)
                self._open(layout.FEATURE_COLUMNS, np.int32)
                self._open(layout.FEATURE_STARTS, np.int64)
                self.files[2].append(np.zeros(1))
            else:
                self._open(layout.FEATURES, kind, self.width)
        if self.halved:
            _refuse_too_large(block, self.where, self.rows)
        if len(self.files) == 1:
            for part in row_blocks(block):
                self.files[0].append(dense(part))
        else:
            rows, (entries, columns, starts) = sparse.csr_array(block), self.files
            starts.append(entries.rows + rows.indptr[1:].astype(np.int64))
            entries.append(rows.data)
            columns.append(rows.indices)
        self.rows += block.shape[0]

    def _open(self, name: str, kind: DTypeLike, width: int | None = None) -> None:
        self.files.append(self.enter_context(ArrayWriter(self.folder / name, kind, width)))


def _refuse_too_large(block: Any, where: str, first: int) -> None:
    """Refuse features ``[n, F]`` that are too large for half precision; ``first`` is their first row."""
    values = block.data if sparse.issparse(block) else block
    with np.errstate(over="ignore"):
        if np.isfinite(values.astype(np.float16)).all():
            return
        wrong = ~np.isfinite(dense(block).astype(np.float16))
    row, column = divmod(int(np.argmax(wrong)), block.shape[1])
    place = f"{where}, row {first + row + 1}, feature {column + 1}"
    expected, remedy = "a number that half precision can hold, up to 65,504", "Leave out --half."
    raise InputError(place, expected, str(dense(block)[row, column]), remedy)


def finish(folder: Path, about: dict[str, Any]) -> None:
    """Write graph.json, which makes a folder of arrays a graph folder; ``about`` is what it says besides the files.

    The statistics of the features are computed here unless ``about`` has them.
    """
    files = dict[str, Any]()
    weights = [layout.WEIGHTS] if about["weighted"] else []
    edges = (layout.STARTS, layout.NEIGHBOURS, *weights)
    sparse_ones = (layout.FEATURE_STARTS, layout.FEATURE_COLUMNS) if (folder / layout.FEATURE_STARTS).exists() else ()
    for name in (*edges, *sparse_ones, layout.FEATURES, layout.NODES):
        files[name] = describe(folder / name)
    if "statistics" not in about:
        features, _ = layout.map_features(folder, files, (about["nodes"], len(about["feature_names"])))
        about = about | {"statistics": Statistics.of(MappedTable(features)).to_json()}
    described = {"format": layout.FORMAT, "infomax": __version__, **about, "files": files}
    content = (to_json(described, indent=2) + "\n").encode()
    matrices = [(edges, about["nodes"]), *([(sparse_ones, len(about["feature_names"]))] if sparse_ones else [])]
    mapped = [({name: layout.map_array(folder / name) for name in names}, width) for names, width in matrices]
    check_once(folder, files, hashlib.sha256(content).hexdigest(), mapped)
    (folder / layout.ABOUT).write_bytes(content)


def describe(path: Path) -> dict[str, Any]:
    """What graph.json says of a file."""
    told = {"bytes": path.stat().st_size, "sha256": file_hash(path), "sample": sample_hash(path)}
    if path.suffix == ".npy":
        array = layout.map_array(path)
        told |= {"dtype": str(array.dtype), "shape": list(array.shape)}
    return told


def open_folder(path: Path) -> Record:
    """The graph of a folder, its arrays mapped."""
    if not layout.is_folder(path):
        found = "no graph.json in it" if path.is_dir() else "nothing of that name"
        raise InputError(str(path), "a graph folder", found, "Make one: infomax prepare EDGES NODES --out FOLDER.")
    nodes, edges, about = map_nodes(path)
    return Record.of_one_type(nodes, edges, **about)


def map_nodes(path: Path) -> tuple[Nodes, MappedAdjacency, dict[str, Any]]:
    """The nodes in a folder, its edges, and what else it says."""
    fields, edges, about = layout.map_folder(path)
    if fields["encoding"] is not None:
        fields["encoding"] = Encoding.from_json(fields["encoding"], str(path / layout.ABOUT))
    return Nodes(**fields), edges, about


def write_arrays(graph: Record, folder: Path) -> dict[str, Any]:
    """Write the files of a graph that is in memory into an existing folder; returns what `finish` is to say."""
    if graph.groups is not None:
        raise InputError("graph", "one graph", "several (it has groups)", "A graph folder holds one graph.")
    received = transposed(graph.adjacency) if graph.directed else graph.adjacency
    received.sort_indices()
    write_senders(folder, Senders.of_matrix(received))
    with FeatureWriter(folder, graph.num_features, "features", halved=False) as writer:
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
        "table_columns": dict(graph.table_columns),
        **({} if graph.encoding is None else {"encoding": graph.encoding.to_json()}),
    }


def write_senders(folder: Path, senders: Senders) -> None:
    """Write who sends to each node; there is no file of weights where all are 1."""
    names = ((layout.STARTS, np.int64), (layout.NEIGHBOURS, np.int32), (layout.WEIGHTS, np.float32))
    for (name, dtype), array in zip(names, senders, strict=True):
        if array is not None:
            with ArrayWriter(folder / name, dtype) as writer:
                writer.append(array)


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
            columns[prefix + name] = column.dictionary_encode() if values.dtype == object else column
    parquet.write_table(pyarrow.table(columns), path, row_group_size=GROUP, write_page_checksum=True)
