"""Embeddings: the vectors of nodes, with their ids, and the search for the nearest among them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.arrays import checks
from infomax.arrays.blocks import row_blocks
from infomax.arrays.parquet_columns import (
    IDS_PER_BLOCK,
    StoredRows,
    find_ids,
    stored_ids,
    stored_vectors,
)
from infomax.errors import InputError, SeveralNodesError, format_count, shorten, suggest
from infomax.io import parquet
from infomax.io import vectors as vector_files
from infomax.io.parts import checked_part_files, stored_model_hash
from infomax.neighbours.of_some import VECTORS_PER_BLOCK, cosines, nearest_to
from infomax.progress import Progress, silent

NearestNodes: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Rows and cosines ``[n, k]`` of the k nodes that are nearest to each of n, the nearest first."""
MOST_LISTED_NODES = 10
"""Nodes of a name that a message lists."""
MOST_SIMILAR_SEARCHED = 100_000
"""Nodes among whose ids and names a message suggests similar ones, to keep the wait short."""
SAMPLED_NODES = 1000
"""Nodes whose pairs, half a million, stand for all random pairs."""
PAIRS_PER_BLOCK = 1000
"""Common nodes whose vectors are multiplied at a time to find a rotation."""
_NUMBERED = re.compile(r"\d+ of \d+(, .+)?$")
"""The end of the names of columns that only have numbers; a half-life may follow."""


# Finding nodes


def rows_by_id(ids: NDArray[Any]) -> dict[str, int]:
    """The row of each of the ids ``[N]``, by its text."""
    # As text, since 42 typed in a shell may mean the integer or the text.
    return {str(node_id): row for row, node_id in enumerate(ids.tolist())}


def rows_of(ids: Any, names: Any, nodes: Sequence[Hashable]) -> NDArray[np.int64]:
    """The rows ``[n]`` of nodes, by their ids or names.

    Args:
        ids: ``[N]``, of all nodes, in memory or stored.
        names: ``[N]``, of all nodes, or None.
        nodes: the ids or names to look up.
    """
    rows = find_ids(ids, nodes)
    return np.array([find_row(rows, node, ids, names) for node in nodes], np.int64)


def find_row(rows: Mapping[str, int], node: Hashable, ids: Any, names: Any) -> int:
    """The row of a node by its id, by its name, or by a part of its name that no other node has.

    Args:
        rows: rows by the text of ids, with that of the node if there is such an id.
        node: the id, the name, or the part of a name.
        ids: ``[N]``, of all nodes.
        names: ``[N]``, of all nodes, or None.
    """
    row = rows.get(str(node))
    if row is not None:
        return row
    rows_of_name, rows_containing = rows_named(names, str(node))
    matching_rows = rows_of_name or rows_containing
    if len(matching_rows) == 1:
        return matching_rows[0]
    if matching_rows:
        raise _several_nodes(node, matching_rows, bool(rows_of_name), ids, names)
    raise _no_such_node(node, ids, names)


def _several_nodes(
    node: Hashable, matching_rows: list[int], has_whole_name: bool, ids: Any, names: Any
) -> SeveralNodesError:
    """The error for a name, or a part of a name, of several nodes; it lists some of them."""
    listed_rows = np.array(matching_rows[:MOST_LISTED_NODES])
    listed = [
        f"{node_id} ({shorten(name)})"
        for node_id, name in zip(ids[listed_rows].tolist(), names[listed_rows], strict=True)
    ]
    remedy = f"Give an id: {', '.join(listed)}"
    if len(matching_rows) > MOST_LISTED_NODES:
        remedy += f" and {len(matching_rows) - MOST_LISTED_NODES:,} more"

    relation = "the name of" if has_whole_name else "which is in the names of"
    found = f"{shorten(node)}, {relation} {len(matching_rows):,}"
    return SeveralNodesError("node", "the id or the name of one node", found, f"{remedy}.")


def _no_such_node(node: Hashable, ids: Any, names: Any) -> InputError:
    """The error for what is neither an id nor a name; it suggests similar ones."""
    expected = f"one of {len(ids):,} ids"
    choices = list(map(str, islice(ids, MOST_SIMILAR_SEARCHED)))
    remedies = []
    if names is None:
        remedies = ["Nodes have no names: train with --name COLUMN."]
    else:
        expected += " or names"
        choices += list(names[:MOST_SIMILAR_SEARCHED])
    suggestion = suggest(node, choices)
    if suggestion:
        remedies.insert(0, suggestion)
    return InputError("node", expected, shorten(node), " ".join(remedies))


def rows_named(names: Any, text: str) -> tuple[list[int], list[int]]:
    """The rows of names ``[N]`` that are a text, and the rows of longer names that contain it.

    Upper and lower case count where a name is spelled exactly as the text; where none is, they do
    not.
    """
    exact_rows: list[int] = []
    rows_in_any_case: list[int] = []
    rows_containing: list[int] = []
    folded_text = text.casefold()
    if names is None or not folded_text:
        return [], []
    for first in range(0, len(names), IDS_PER_BLOCK):
        for row, name in enumerate(names[first : first + IDS_PER_BLOCK].tolist(), first):
            folded_name = name.casefold()
            if folded_text not in folded_name:
                continue
            if name == text:
                exact_rows.append(row)
            elif folded_name == folded_text:
                rows_in_any_case.append(row)
            else:
                rows_containing.append(row)
    return exact_rows or rows_in_any_case, rows_containing


# Vectors


class SearchableVectors:
    """Nodes with vectors by which the nearest are found; in memory, stored, or in an index.

    Shapes:
        vectors: ``[N, d]``, ids: ``[N]``, node_names: ``[N]`` or None.
    """

    vectors: Any
    ids: Any
    node_names: Any
    model: str = ""
    """The hash of the model that made the vectors; "" where it is not known."""

    def vectors_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors ``[n, d]`` of some rows ``[n]``."""
        return np.asarray(self.vectors[rows])

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def _rows_by_id(self) -> dict[str, int]:
        return rows_by_id(self.ids)

    def _rows_for(self, node_id: Hashable) -> dict[str, int]:
        """Rows by the text of ids: of all nodes in memory, of stored ones at most of this one."""
        if isinstance(self.ids, np.ndarray):
            return self._rows_by_id
        return find_ids(self.ids, [node_id])

    def __contains__(self, node_id: Hashable) -> bool:
        return str(node_id) in self._rows_for(node_id)

    def row(self, node_id: Hashable) -> int:
        """The row of a node by its id or else its name; an integer and its text are the same id."""
        return find_row(self._rows_for(node_id), node_id, self.ids, self.node_names)

    def neighbours(self, node_id: Hashable, k: int = 10) -> list[tuple[Any, float]]:
        """The other nodes most similar to a node by cosine, as (id, cosine); ties in input order.

        The search is exact, but for that of an index. A vector of zeros has similarity 0 to all
        others.

        Args:
            node_id: the id of the node, or its name.
            k: how many nodes.
        """
        if k < 1:
            return []
        rows, similarity = self.nearest(np.array([self.row(node_id)]), k)
        return list(zip(self.ids[rows[0]].tolist(), similarity[0].tolist(), strict=True))

    def nearest(self, nodes: NDArray[Any], k: int) -> NearestNodes:
        """As `neighbours`, of several nodes or vectors: the rows ``[n, k]`` and cosines ``[n, k]``.

        Args:
            nodes: ``[n]``, the rows of nodes, each of which is no neighbour of its own; or
                ``[n, d]``, vectors.
            k: how many neighbours of each.
        """
        queries, own_rows = self.queries(nodes)
        rows = []
        similarity = []
        for first in range(0, len(own_rows), VECTORS_PER_BLOCK):
            block = slice(first, first + VECTORS_PER_BLOCK)
            all_vectors = row_blocks(self.vectors)
            neighbours = nearest_to(queries[block], own_rows[block], all_vectors, k)
            for neighbour_rows, neighbour_cosines in neighbours:
                rows.append(neighbour_rows)
                similarity.append(neighbour_cosines)
        return np.array(rows), np.array(similarity).clip(-1, 1)

    def queries(self, nodes: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The vectors ``[n, d]`` whose neighbours are searched, and the rows ``[n]`` they have.

        Args:
            nodes: ``[n]``, the rows of nodes; or ``[n, d]``, vectors of other things, whose rows
                are -1.
        """
        nodes = np.asarray(nodes)
        if nodes.ndim == 1 and nodes.dtype.kind in "iu":
            return self.vectors_of(nodes), nodes

        width = self.vectors_of(np.zeros(1, np.int64)).shape[1]
        if nodes.ndim != 2 or nodes.dtype.kind not in "iuf" or nodes.shape[1] != width:
            found = f"{nodes.dtype} of shape {list(nodes.shape)}"
            raise InputError("vectors", f"numbers of shape [n, {width}]", found)
        if not np.isfinite(nodes).all():
            raise InputError("vectors", "finite numbers", "others")
        return nodes.astype(np.float32), np.full(len(nodes), -1)

    def random_cosines(self, sampled_nodes: int = SAMPLED_NODES) -> NDArray[np.float32]:
        """The cosines of all pairs of a sample of nodes, ascending."""
        rows = np.random.default_rng(0).permutation(len(self))[:sampled_nodes]
        sample = self.vectors_of(np.sort(rows))
        each_pair_once = np.triu_indices(len(sample), 1)
        return np.sort(cosines(sample, sample)[each_pair_once])

    def standing(
        self, similarity: Sequence[float], sampled_nodes: int = SAMPLED_NODES
    ) -> NDArray[np.float64]:
        """The share ``[k]`` of random pairs of nodes that are less similar than cosines ``[k]``.

        Args:
            similarity: the cosines ``[k]``.
            sampled_nodes: the nodes whose pairs are the random ones.
        """
        random_cosines = self.random_cosines(sampled_nodes)
        less_similar = np.searchsorted(random_cosines, np.asarray(similarity, np.float32))
        return less_similar / max(len(random_cosines), 1)


@dataclass(frozen=True, eq=False)
class Embeddings(SearchableVectors):
    """One vector per node, found by its id: ``embeddings[id]``.

    Attributes:
        vectors: ``[N, d]`` float32.
        ids: ``[N]``, int64 or str objects, unique, in input order.
        node_names: ``[N]`` str objects ("" = none), by which nodes are found, too. None: nodes have
            only ids.
        model: the hash of the model that made them; "" where it is not known. Vectors of two models
            are not comparable.
        parts: what vectors are made of: the names of the columns of each part, in their order;
            empty for one part.
    """

    vectors: NDArray[np.float32]
    ids: NDArray[Any]
    node_names: NDArray[Any] | None = None
    model: str = ""
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        vectors = checks.check_array(
            "vectors", self.vectors, checks.NUMBER_DTYPES, "numbers [N, d]", np.float32
        )
        if vectors.ndim != 2:
            raise InputError("vectors", "an array of shape [N, d]", f"shape {list(vectors.shape)}")
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "ids", checks.check_ids(self.ids, len(vectors)))
        if self.node_names is not None:
            node_names = checks.check_names(self.node_names, len(vectors))
            object.__setattr__(self, "node_names", node_names)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the ids."""
        return iter(self.ids.tolist())

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N, d)``."""
        return self.vectors.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The vectors, so that embeddings can be passed to NumPy and scikit-learn."""
        return np.array(self.vectors, dtype, copy=copy)

    def __repr__(self) -> str:
        nodes, dimensions = self.vectors.shape
        return f"Embeddings({format_count(nodes, 'node')}, {format_count(dimensions, 'dimension')})"

    def __getitem__(self, node_id: Hashable) -> NDArray[np.float32]:
        """The vector ``[d]`` of a node."""
        vector: NDArray[np.float32] = self.vectors[self.row(node_id)]
        return vector

    def part(self, mask: NDArray[np.bool_]) -> Embeddings:
        """The embeddings of the nodes of a mask ``[N]``, such as a split of a graph."""
        names = None if self.node_names is None else self.node_names[mask]
        return Embeddings(self.vectors[mask], self.ids[mask], names, self.model, self.parts)

    @property
    def columns(self) -> dict[str, slice]:
        """The columns of each part: ``embeddings.vectors[:, embeddings.columns["own"]]``."""
        return slices(self.parts)

    def shares(self, row: int, other_rows: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
        """How much each part adds to the cosines ``[k]`` of a node and other ones, by part.

        The shares add up to the cosines.

        Args:
            row: the row of the node.
            other_rows: the rows ``[k]`` of the other nodes.
        """
        products = self._cosine_terms(row, other_rows)
        return {name: products[:, columns].sum(axis=1) for name, columns in self.columns.items()}

    def agreeing(self, row: int, other_rows: NDArray[np.int64], count: int) -> list[list[str]]:
        """For each other node, the names of the columns that add most to its cosine with a node.

        Columns of the encoder, positions and singular vectors have only numbers for names, and are
        left out, as are columns that add nothing.

        Args:
            row: the row of the node.
            other_rows: the rows ``[k]`` of the other nodes.
            count: how many columns, at most.
        """
        names = [name for columns in self.parts.values() for name in columns]
        has_meaning = np.array([not _NUMBERED.search(name) for name in names], bool)
        products = np.where(has_meaning, self._cosine_terms(row, other_rows), 0)
        largest_columns = np.argsort(-products, axis=1, kind="stable")[:, :count]
        agreeing_names = []
        for products_of_pair, columns in zip(products, largest_columns, strict=True):
            names_of_pair = [names[column] for column in columns if products_of_pair[column] > 0]
            agreeing_names.append(names_of_pair)
        return agreeing_names

    def _cosine_terms(self, row: int, other_rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """What each column adds to the cosines of a row and other ones ``[k]``: ``[k, d]``."""
        vectors = self.vectors[[row, *other_rows]]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit_vectors = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
        return np.asarray(unit_vectors[1:] * unit_vectors[0])

    def rotation(self, onto: Embeddings) -> NDArray[np.float32]:
        """The rotation ``[d, d]`` that brings these vectors nearest to others, at common nodes.

        It is the orthogonal matrix R with the least squared distances between V R and the vectors
        ``onto``, by one SVD.
        """
        rows_onto = onto._rows_by_id
        common_rows = [
            (row, rows_onto[node_id])
            for node_id, row in self._rows_by_id.items()
            if node_id in rows_onto
        ]
        pairs = np.array(common_rows, np.int64)
        width = self.shape[1]
        if width != onto.shape[1] or not len(pairs):
            common = format_count(len(pairs), "common node")
            found = f"{common}; dimensions: {width:,} and {onto.shape[1]:,}"
            raise InputError("vectors to align", "common nodes and as many dimensions", found)

        product = np.zeros((width, width))
        for block in np.array_split(pairs, 1 + len(pairs) // PAIRS_PER_BLOCK):
            product += self.vectors[block[:, 0]].T.astype(np.float64) @ onto.vectors[block[:, 1]]

        # Each part is rotated by itself, so that its columns stay columns of that part.
        rotation = np.zeros_like(product)
        for columns in self.columns.values() or [slice(None)]:
            left, _, right = np.linalg.svd(product[columns, columns])
            rotation[columns, columns] = left @ right
        return np.asarray(rotation, np.float32)

    def align(self, onto: Embeddings) -> Embeddings:
        """The same vectors, rotated onto those of another model, such as yesterday's."""
        return replace(self, vectors=self.vectors @ self.rotation(onto), model="")

    def save(self, path: str | Path, progress: Progress = silent) -> None:
        """Write a file in the format of its extension.

        Parquet has the columns ``id``, ``name`` where nodes have names, and ``vector``, a
        fixed-size list of float32; csv and tsv have ``d0, d1, ...`` in its place. An npz has the
        arrays ``ids``, ``vectors`` and ``node_names``, an npy the vectors alone. A kv is the text
        format of word2vec, which gensim and others read.

        Args:
            path: the file, .parquet, .npz, .npy, .csv, .tsv or .kv.
            progress: is told the number of nodes done where text is written, which takes long.
        """
        vector_files.write_vectors(
            self.ids, self.vectors, Path(path), self.node_names, self.model, progress, self.parts
        )

    @classmethod
    def read(cls, path: str | Path) -> Embeddings:
        """Read a file that `save` wrote. An npy has no ids: row numbers are used."""
        ids, vectors, names, model, parts = vector_files.read_vectors(Path(path))
        return cls(vectors, ids, names, model, parts)

    def to_frame(self, library: str = "pandas") -> Any:
        """A frame with the columns ``id, d0, d1, ...``, and ``name`` where nodes have names.

        Args:
            library: "pandas", "polars" or "arrow" (pyarrow).
        """
        from infomax.io.frames import vector_frame

        return vector_frame(self.ids, self.vectors, library, self.node_names)

    @classmethod
    def from_frame(cls, frame: Any) -> Embeddings:
        """The embeddings of a frame as `to_frame` makes it.

        It may also have a column of lists in place of ``d0, d1, ...``.
        """
        from infomax.io.frames import frame_source

        source = frame_source(frame, "frame")
        ids, vectors, names = vector_files.table_vectors(source)
        return cls(vectors, ids, names)


@dataclass(frozen=True, eq=False)
class StoredEmbeddings(SearchableVectors):
    """Vectors and ids in a folder of parquet parts, or in one such file, read when needed."""

    vectors: StoredRows
    ids: StoredRows
    node_names: StoredRows | None = None
    model: str = ""

    @classmethod
    def open(cls, path: str | Path) -> StoredEmbeddings:
        """Open what ``infomax embed`` wrote for a graph folder."""
        paths = checked_part_files(Path(path))
        ids = stored_ids(*paths)
        names = StoredRows(*paths, column="name") if "name" in ids.names else None
        with parquet.opened(paths[0]) as file:
            model = stored_model_hash(file)
        return cls(stored_vectors(*paths), ids, names, model)


class EmbeddingParts(NamedTuple):
    """The fields of `Embeddings`, in their order, before the vectors are copied.

    A run can be written from them.
    """

    vectors: Any
    """``[N, d]``, `Patched`."""
    ids: NDArray[Any]
    node_names: NDArray[Any] | None
    model: str
    parts: Mapping[str, Sequence[str]]


# Parts of vectors


def slices(parts: Mapping[str, Sequence[str]]) -> dict[str, slice]:
    """The columns of each part in a vector, from the names of the columns of each."""
    columns_of_part: dict[str, slice] = {}
    first = 0
    for name, columns in parts.items():
        columns_of_part[name] = slice(first, first + len(columns))
        first += len(columns)
    return columns_of_part


def columns_in_words(names: Sequence[str]) -> str:
    """The names of a part's columns; of columns that are only numbered, the first and the last."""
    names_with_meaning = [name for name in names if not _NUMBERED.search(name)]
    return ", ".join(names_with_meaning) or f"{names[0]} to {names[-1]}"
