"""Embeddings: one vector per node, beside its id."""

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
from infomax.io import vectors as files
from infomax.io.parts import parquet_files, stored_model_hash
from infomax.neighbours.of_some import BLOCK, cosines, nearest_to
from infomax.progress import Progress, silent

Found: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Rows and cosines ``[n, k]`` of the k nodes that are nearest to each of n, the nearest first."""
LISTED = 10
"""Nodes of a name that a message lists."""
_NUMBERED = re.compile(r"\d+ of \d+$")
"""The end of the names of columns that only have numbers."""
SAMPLE = 1000
"""Nodes whose pairs stand for all random pairs: half a million of them, from rows that are quickly read."""


def rows_by_id(ids: NDArray[Any]) -> dict[str, int]:
    """The row of each of the ids ``[N]``, by its text."""
    # As text, since 42 typed in a shell may mean the integer or the text.
    return {str(node_id): row for row, node_id in enumerate(ids.tolist())}


def rows_of(ids: Any, names: Any, nodes: Sequence[Hashable]) -> NDArray[np.int64]:
    """The rows ``[n]`` of nodes, by their ids or names, among ``ids [N]`` and ``names [N]``, in memory or stored."""
    known = find_ids(ids, nodes)
    return np.array([find_row(known, node, ids, names) for node in nodes], np.int64)


def find_row(rows: Mapping[str, int], node_id: Hashable, ids: Any, names: Any) -> int:
    """The row of a node, by its id or else by its name, or a part of it that no other name has; else it is refused.

    ``rows`` has the rows of ids by their text, of all ``ids [N]`` beside their ``names [N]``.
    """
    row = rows.get(str(node_id))
    if row is not None:
        return row
    same, holding = rows_named(names, str(node_id))
    several = same or holding
    if len(several) == 1:
        return several[0]
    if several:
        some = np.array(several[:LISTED])
        shown = [
            f"{one} ({shorten(name)})"
            for one, name in zip(ids[some].tolist(), names[some], strict=True)
        ]
        more = f" and {len(several) - LISTED:,} more" if len(several) > LISTED else ""
        found = f"{shorten(node_id)}, {'the name of' if same else 'which is in the names of'} {len(several):,}"
        raise SeveralNodesError(
            "node",
            "the id or the name of one node",
            found,
            f"Give an id: {', '.join(shown)}{more}.",
        )
    # Only the first 100,000 nodes are searched for similar ones, to keep the wait short.
    texts = [*map(str, islice(ids, 100_000)), *([] if names is None else names[:100_000])]
    expected = f"one of {len(ids):,} ids{'' if names is None else ' or names'}"
    remedies = [
        suggest(node_id, texts),
        "Nodes have no names: train with --name COLUMN." if names is None else "",
    ]
    raise InputError("node", expected, shorten(node_id), " ".join(filter(None, remedies)))


def rows_named(names: Any, word: str) -> tuple[list[int], list[int]]:
    """The rows of names ``[N]`` that are a word, in any case if none is in its own; and of those that contain it."""
    exact, same, holding, low = list[int](), list[int](), list[int](), word.casefold()
    for first in range(0, 0 if names is None else len(names), IDS_PER_BLOCK):
        for row, name in enumerate(names[first : first + IDS_PER_BLOCK].tolist(), first):
            folded = name.casefold()
            if low and low in folded:
                (exact if name == word else same if folded == low else holding).append(row)
    return exact or same, holding


class Searched:
    """Nodes among which the nearest are found by their vectors: `Embeddings`, `StoredEmbeddings` or an index of them.

    Shapes:
        vectors: ``[N, d]``, ids: ``[N]``, node_names: ``[N]`` or None; in memory or stored
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
    def _position(self) -> dict[str, int]:
        return rows_by_id(self.ids)

    def _rows(self, node_id: Hashable) -> dict[str, int]:
        return self._position if isinstance(self.ids, np.ndarray) else find_ids(self.ids, [node_id])

    def __contains__(self, node_id: Hashable) -> bool:
        return str(node_id) in self._rows(node_id)

    def row(self, node_id: Hashable) -> int:
        """The row of a node, by its id or else by its name; an integer and its text are the same id."""
        return find_row(self._rows(node_id), node_id, self.ids, self.node_names)

    def neighbours(self, node_id: Hashable, k: int = 10) -> list[tuple[Any, float]]:
        """The nodes most similar to a node by cosine, without itself, as (id, cosine); ties in input order.

        The search is exact, but for that of an index. A vector of zeros has similarity 0 to all others.

        Args:
            node_id: the id of the node, or its name.
            k: how many nodes.
        """
        if k < 1:
            return []
        rows, cosine = self.nearest(np.array([self.row(node_id)]), k)
        return list(zip(self.ids[rows[0]].tolist(), cosine[0].tolist(), strict=True))

    def nearest(self, nodes: NDArray[Any], k: int) -> Found:
        """As `neighbours`, of several nodes or vectors: the rows ``[n, k]`` and the cosines ``[n, k]``.

        Args:
            nodes: ``[n]``, the rows of nodes, each of which is no neighbour of its own; or ``[n, d]``, vectors.
            k: how many neighbours of each.
        """
        queries, own = self.queries(nodes)
        some = [slice(first, first + BLOCK) for first in range(0, len(own), BLOCK)]
        found = [
            pair
            for part in some
            for pair in nearest_to(queries[part], own[part], row_blocks(self.vectors), k)
        ]
        return np.array([near for near, _ in found]), np.array(
            [cosine for _, cosine in found]
        ).clip(-1, 1)

    def queries(self, nodes: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The vectors ``[n, d]`` of the rows ``[n]`` of nodes, and the rows; of vectors themselves the rows are -1."""
        nodes, width = np.asarray(nodes), self.vectors_of(np.zeros(1, np.int64)).shape[1]
        if nodes.ndim == 1 and nodes.dtype.kind in "iu":
            return self.vectors_of(nodes), nodes
        if nodes.ndim != 2 or nodes.dtype.kind not in "iuf" or nodes.shape[1] != width:
            raise InputError(
                "vectors",
                f"numbers of shape [n, {width}]",
                f"{nodes.dtype} of shape {list(nodes.shape)}",
            )
        if not np.isfinite(nodes).all():
            raise InputError("vectors", "finite numbers", "others")
        return nodes.astype(np.float32), np.full(len(nodes), -1)

    def random_cosines(self) -> NDArray[np.float32]:
        """The cosines of all pairs of a sample of nodes, ascending."""
        sample = self.vectors_of(np.sort(np.random.default_rng(0).permutation(len(self))[:SAMPLE]))
        return np.sort(cosines(sample, sample)[np.triu_indices(len(sample), 1)])

    def standing(self, similarity: Sequence[float]) -> NDArray[np.float64]:
        """The share ``[k]`` of random pairs of nodes that are less similar than each of ``[k]`` cosines."""
        pairs = self.random_cosines()
        return np.searchsorted(pairs, np.asarray(similarity, np.float32)) / max(len(pairs), 1)


@dataclass(frozen=True, eq=False)
class Embeddings(Searched):
    """One vector per node, found by its id: ``embeddings[id]``.

    Attributes:
        vectors: ``[N, d]`` float32.
        ids: ``[N]``, int64 or str objects, unique, in input order.
        node_names: ``[N]`` str objects ("" = none), by which nodes are found, too. None: nodes have only ids.
        model: the hash of the model that made them; "" where it is not known. Vectors of two models are not comparable.
        parts: what vectors are made of: the names of the columns of each part, in their order; empty for one part.
    """

    vectors: NDArray[np.float32]
    ids: NDArray[Any]
    node_names: NDArray[Any] | None = None
    model: str = ""
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        vectors = checks.check_array(
            "vectors", self.vectors, checks.NUMBERS, "numbers [N, d]", np.float32
        )
        if vectors.ndim != 2:
            raise InputError("vectors", "an array of shape [N, d]", f"shape {list(vectors.shape)}")
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "ids", checks.check_ids(self.ids, len(vectors)))
        if self.node_names is not None:
            object.__setattr__(
                self, "node_names", checks.check_names(self.node_names, len(vectors))
            )

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
        return f"Embeddings({format_count(len(self.vectors), 'node')}, {format_count(self.vectors.shape[1], 'dimension')})"

    def __getitem__(self, node_id: Hashable) -> NDArray[np.float32]:
        """The vector ``[d]`` of a node."""
        vector: NDArray[np.float32] = self.vectors[self.row(node_id)]
        return vector

    def part(self, mask: NDArray[np.bool_]) -> Embeddings:
        """The embeddings of the nodes of a mask ``[N]``, such as a split of a graph."""
        names = None if self.node_names is None else self.node_names[mask]
        return Embeddings(self.vectors[mask], self.ids[mask], names, self.model, self.parts)

    def shares(self, row: int, others: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
        """By part, how much of the cosine of a node and each of some others ``[k]`` it makes; they add up to it.

        Args:
            row: the row of the node.
            others: the rows of the others.
        """
        products = self._products(row, others)
        return {name: products[:, columns].sum(axis=1) for name, columns in self.columns.items()}

    def agreeing(self, row: int, others: NDArray[np.int64], count: int) -> list[list[str]]:
        """The columns with a name of their own that make most of the cosine of a node and each of some others ``[k]``.

        Columns of the encoder, positions and singular vectors only have numbers, and are left out.

        Args:
            row: the row of the node.
            others: the rows of the others.
            count: how many columns, at most; a column that does not agree is never among them.
        """
        names = [name for columns in self.parts.values() for name in columns]
        told = np.array([not _NUMBERED.search(name) for name in names], bool)
        products = np.where(told, self._products(row, others), 0)
        best = np.argsort(-products, axis=1, kind="stable")[:, :count]
        return [
            [names[at] for at in line if one[at] > 0]
            for one, line in zip(products, best, strict=True)
        ]

    def _products(self, row: int, others: NDArray[np.int64]) -> NDArray[np.float32]:
        """By column, what it adds to the cosines of a row and others ``[k]``: ``[k, d]``."""
        unit = self.vectors[[row, *others]]
        unit = unit / np.maximum(
            np.linalg.norm(unit, axis=1, keepdims=True), np.finfo(np.float32).tiny
        )
        return np.asarray(unit[1:] * unit[0])

    @property
    def columns(self) -> dict[str, slice]:
        """By part, its columns: ``embeddings.vectors[:, embeddings.columns["own"]]``."""
        return slices(self.parts)

    def rotation(self, onto: Embeddings) -> NDArray[np.float32]:
        """The rotation ``[d, d]`` that brings these vectors nearest to others, over the nodes that both have.

        It is the orthogonal matrix R with the least squared distances between V R and the others, by one SVD.
        """
        known, others = self._position, onto._position
        pairs = np.array(
            [(row, others[text]) for text, row in known.items() if text in others], np.int64
        )
        if self.shape[1] != onto.shape[1] or not len(pairs):
            found = f"{format_count(len(pairs), 'common node')}; dimensions: {self.shape[1]:,} and {onto.shape[1]:,}"
            raise InputError("vectors to align", "common nodes and as many dimensions", found)
        product = np.zeros((self.shape[1], self.shape[1]))
        for rows in np.array_split(pairs, 1 + len(pairs) // SAMPLE):
            product += self.vectors[rows[:, 0]].T.astype(np.float64) @ onto.vectors[rows[:, 1]]
        turn = np.zeros_like(product)
        for block in self.columns.values() or [slice(None)]:  # each part stays by itself
            left, _, right = np.linalg.svd(product[block, block])
            turn[block, block] = left @ right
        return np.asarray(turn, np.float32)

    def align(self, onto: Embeddings) -> Embeddings:
        """The same vectors, turned onto those of another model, such as yesterday's; see `rotation`."""
        return replace(self, vectors=self.vectors @ self.rotation(onto), model="")

    def save(self, path: str | Path, progress: Progress = silent) -> None:
        """Write a file in the format of its extension.

        Parquet has the columns ``id``, ``name`` where nodes have names, and ``vector``, a fixed-size list of float32;
        csv and tsv have ``d0, d1, ...`` in its place. An npz has the arrays ``ids``, ``vectors`` and ``node_names``, an
        npy the vectors alone. A kv is the text format of word2vec, which gensim and others read.

        Args:
            path: the file, .parquet, .npz, .npy, .csv, .tsv or .kv.
            progress: is told the number of nodes done where text is written, which takes long.
        """
        files.write_vectors(
            self.ids, self.vectors, Path(path), self.node_names, self.model, progress, self.parts
        )

    @classmethod
    def read(cls, path: str | Path) -> Embeddings:
        """Read a file that `save` wrote. An npy has no ids: row numbers are used."""
        ids, vectors, names, model, parts = files.read_vectors(Path(path))
        return cls(vectors, ids, names, model, parts)

    def to_frame(self, kind: str = "pandas") -> Any:
        """A frame of "pandas", "polars" or "arrow" (pyarrow) with the columns ``id, d0, d1, ...``, and ``name``."""
        from infomax.io.frames import vector_frame

        return vector_frame(self.ids, self.vectors, kind, self.node_names)

    @classmethod
    def from_frame(cls, frame: Any) -> Embeddings:
        """The embeddings of a frame as `to_frame` makes it, or with a column of lists in place of ``d0, d1, ...``."""
        from infomax.io.frames import frame_source

        ids, vectors, names = files.table_vectors(frame_source(frame, "frame", files.COLUMNS))
        return cls(vectors, ids, names)


def columns_in_words(names: Sequence[str]) -> str:
    """The names of the columns of a part; those that are only numbered as the first and the last."""
    named = [name for name in names if not _NUMBERED.search(name)]
    return ", ".join(named) or f"{names[0]} to {names[-1]}"


def slices(parts: Mapping[str, Sequence[str]]) -> dict[str, slice]:
    """The columns of each part in a vector, from the names of the columns of each."""
    found = dict[str, slice]()
    first = 0
    for name, columns in parts.items():
        found[name] = slice(first, first + len(columns))
        first += len(columns)
    return found


class EmbeddingParts(NamedTuple):
    """The fields of `Embeddings`, in their order, before the vectors are copied; a run can be written from them."""

    vectors: Any
    """``[N, d]``, `Patched`."""
    ids: NDArray[Any]
    node_names: NDArray[Any] | None
    model: str
    parts: Mapping[str, Sequence[str]]


@dataclass(frozen=True, eq=False)
class StoredEmbeddings(Searched):
    """Vectors and ids in a folder of parquet parts, or in one such file; rows are read when they are needed."""

    vectors: StoredRows
    ids: StoredRows
    node_names: StoredRows | None = None
    model: str = ""

    @classmethod
    def open(cls, path: str | Path) -> StoredEmbeddings:
        """Open what ``infomax embed`` wrote for a graph folder."""
        paths = parquet_files(Path(path))
        ids = stored_ids(*paths)
        names = StoredRows(*paths, column="name") if "name" in ids.names else None
        with parquet.opened(paths[0]) as file:
            model = stored_model_hash(file)
        return cls(stored_vectors(*paths), ids, names, model)
