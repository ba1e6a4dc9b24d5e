"""Write a graph under any name that a graph can be read from."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.sparsity import dense
from infomax.errors import InputError, other_extension, shorten
from infomax.io import parquet, text
from infomax.io.atomic import make_folder, refuse_existing, replacing, writable
from infomax.io.columns import GROUPS, NAME, TIME
from infomax.io.features import matrix_names
from infomax.io.folder import write_folder
from infomax.io.npz import write_npz
from infomax.io.record import Record
from infomax.io.rows import (
    annotation_columns,
    edge_columns,
    flat_annotations,
    id_name,
    refuse_too_many,
    refuse_unwritable,
    relation_columns,
)
from infomax.io.sources import EXTENSIONS
from infomax.io.unite import without_features, without_structural_features
from infomax.progress import Progress, followed, silent

NAMES = "a .npz, edges.csv,nodes.csv (or .tsv, .txt, .parquet), a folder for tables, or NAME.graph"
_BLOCK_CELLS = 1 << 23


def write_graph(graph: Record, path: str | Path, progress: Progress = silent) -> None:
    """Write a graph in the format that the name tells; nothing appears before it is whole.

    What would be read back as another graph is refused. ``progress`` is told the nodes that text holds so far.
    """
    place, name, suffix = Path(path), str(path), text.extension(Path(path))
    graph = graph.loaded()
    if any(relation.edge_features is not None for relation in graph.relations):
        remedy = "Keep the table of edges, and add its features when the graph is read."
        raise InputError(name, "a graph whose edges have no features", "features of edges", remedy)
    if graph.held_out is not None and suffix != ".npz":
        raise InputError(
            name,
            "an .npz, for a graph with edges held out",
            f"the extension {shorten(place.suffix)}",
        )
    if graph.types and (suffix not in ("", ".npz", ".graph", *EXTENSIONS) or "," in name):
        found = f"the extension {shorten(place.suffix)}"
        expected = "a folder for tables (also NAME.parquet), an .npz or NAME.graph, for several types of nodes"
        raise InputError(name, expected, found)
    if suffix not in (".npz", ".graph"):
        graph = without_structural_features(graph)
    if name.count(",") == 1:
        first, second = (Path(part.strip()) for part in name.split(","))
        _write_tables(graph, first, second, progress)
    elif graph.types and suffix in ("", *EXTENSIONS):
        _write_whole(place, lambda work: _write_typed(graph, work, suffix or ".csv", progress))
    elif suffix == "":
        _write_in_folder(graph, place, progress)
    elif suffix in (".npz", ".graph"):
        refuse_unwritable(graph, name, suffix[1:])
        if suffix == ".npz":
            write_npz(graph, place)
        else:
            _write_whole(place, lambda work: write_folder(graph, work))
    elif suffix in EXTENSIONS:
        remedy = f"Name both: {place},{place.with_name(f'nodes{suffix}')}."
        raise InputError(name, "an edge table and a node table", "one of them", remedy)
    else:
        raise InputError(name, NAMES, f"the extension {shorten(place.suffix)}")


def _write_in_folder(graph: Record, folder: Path, progress: Progress) -> None:
    """Write edges.csv and nodes.csv into a folder, which is made if there is none."""
    files = (folder / "edges.csv", folder / "nodes.csv")
    for stem in ("edges", "nodes", "features"):
        for other in set(folder.glob(f"{stem}.*")) - set(files):
            raise InputError(
                str(folder),
                "a folder without other tables of a graph",
                other.name,
                "Choose another one.",
            )
    new = not folder.exists()
    refuse_unwritable(graph, str(folder), "text")
    make_folder(folder)
    try:
        _write_tables(graph, *files, progress)
    except BaseException:
        if new:
            folder.rmdir()
        raise


def how_to_read(graph: Record, path: str | Path) -> str:
    """The option that a file needs to be read as the same graph, or nothing."""
    tells = Path(path).suffix.lower() in (".npz", ".graph") and "," not in str(path)
    return " --directed" if graph.directed and not tells else ""


def _write_whole(place: Path, write: Callable[[Path], None]) -> None:
    """Write a new folder, which appears when it is whole."""
    refuse_existing(place)
    work = place.with_name(f".{place.name}-write")
    make_folder(work)
    with writable(place, "a place where a folder can be written"):
        try:
            write(work)
            work.replace(place)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _write_typed(graph: Record, folder: Path, suffix: str, progress: Progress) -> None:
    """Write tables ``nodes/TYPE.*`` and ``edges/TYPE.RELATION.TYPE.*``; unnamed features as ``features/TYPE.npz``."""
    for part in ("nodes", "edges"):
        (folder / part).mkdir()
    for node_type, one in graph.by_type().items():
        if one.feature_names and list(one.feature_names) == matrix_names(one.num_features):
            (folder / "features").mkdir(exist_ok=True)
            whole = sparse.issparse(one.features)
            save: Any = sparse.save_npz if whole else np.save
            save(folder / "features" / f"{node_type}.{'npz' if whole else 'npy'}", one.features)
            one = one.replace(**vars(without_features(one.own)))
        refuse_unwritable(one, str(folder), "parquet" if suffix == ".parquet" else "text")
        if suffix != ".parquet":
            refuse_too_many(one, str(folder))
        _write_nodes(one, folder / "nodes" / f"{node_type}{suffix}", suffix, progress)
    for ends, columns in relation_columns(graph).items():
        text.write_tables(
            folder / "edges" / f"{'.'.join(ends)}{suffix}", suffix, iter([arrow_edges(columns)])
        )


def _write_tables(graph: Record, edges: Path, nodes: Path, progress: Progress) -> None:
    kinds = [text.extension(path) for path in (edges, nodes)]
    for path, node_type in zip((edges, nodes), kinds, strict=True):
        if node_type not in EXTENSIONS:
            raise other_extension(path, EXTENSIONS)
    if edges == nodes:
        raise InputError(str(edges), "two files, for edges and for nodes", "one name twice")
    for path, node_type in zip((edges, nodes), kinds, strict=True):
        refuse_unwritable(graph, str(path), "parquet" if node_type == ".parquet" else "text")
    if kinds[1] != ".parquet":
        refuse_too_many(graph, str(nodes))
    # Both are moved to their places only when both are whole.
    with replacing(edges) as first, replacing(nodes) as second:
        text.write_tables(first, kinds[0], iter([arrow_edges(edge_columns(graph))]))
        _write_nodes(graph, second, kinds[1], progress)


def _write_nodes(graph: Record, path: Path, node_type: str, progress: Progress) -> None:
    step = max(1, _BLOCK_CELLS // max(1, graph.num_features))
    tables = arrow_nodes(graph, step, flat=node_type != ".parquet")
    text.write_tables(
        path, node_type, followed(tables, progress, "nodes", -(-graph.num_nodes // step), 1)
    )


def arrow_edges(columns: dict[str, NDArray[Any]]) -> Any:
    """The edge table of these columns as a pyarrow table."""
    import pyarrow as pa

    kinds = {
        "i": pa.int64(),
        "O": pa.string(),
        "f": pa.float32(),
    }  # which a column without edges cannot tell
    return pa.table(
        {name: pa.array(column, kinds[column.dtype.kind]) for name, column in columns.items()}
    )


def arrow_nodes(graph: Record, step: int, *, flat: bool = False) -> Iterator[Any]:
    """The node table as pyarrow tables of some rows.

    Features ``v[0]`` to ``v[W-1]`` are one column of lists, unless all is to be ``flat``, as text is.
    """
    import pyarrow as pa

    names = graph.feature_names
    annotations = flat_annotations(graph) if flat else annotation_columns(graph)
    taken = {id_name(graph), GROUPS, NAME, TIME, "", *names}
    for first in range(0, graph.num_nodes, step):
        rows = slice(first, first + step)
        columns = {id_name(graph): pa.array(graph.ids[rows])}
        block = dense(graph.features[rows])
        for name, start, stop in _owners(
            names, {*taken, *(name.removesuffix("[0]") for name in names if flat)}
        ):
            columns[name] = parquet.arrow_column(
                block[:, start:stop] if name != names[start] else block[:, start]
            )
        yield pa.table(
            columns
            | {name: parquet.arrow_column(column[rows]) for name, column in annotations.items()}
        )


def _owners(names: Sequence[str], taken: set[str]) -> Iterator[tuple[str, int, int]]:
    """Columns of features with their first and last position: ``v`` for the names ``v[0]`` to ``v[W-1]``."""
    at = 0
    while at < len(names):
        owner = names[at].removesuffix("[0]")
        owner = names[at] if owner in taken else owner
        stop = at + 1
        while owner != names[at] and stop < len(names) and names[stop] == f"{owner}[{stop - at}]":
            stop += 1
        yield owner, at, stop
        at = stop
