"""Edge tables and node tables in memory, and the graph they make together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.sparsity import pack, stack
from infomax.errors import number_of
from infomax.io.blocks import Ids, NotNumbersError, number_groups, typed
from infomax.io.features import read_features
from infomax.io.parquet import encode
from infomax.io.refusals import (
    id_twice,
    id_unknown,
    listed_in,
    no_nodes,
    refuse_other_type,
)
from infomax.io.sources import NodeTable, Source


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Edges between ids.

    Shapes:
        numbers: ``[E]`` int64, of the rows of the source.
        ids: each id once, in order of first appearance, read row by row.
        ends: ``[2, E]`` int64, positions in ids.
        weight: ``[E]`` float32.
        relations: ``[E]`` str objects.
    """

    source: Source
    numbers: NDArray[np.int64]
    ids: Ids
    ends: NDArray[np.int64]
    weight: NDArray[np.float32] | None
    relations: NDArray[Any] | None = None

    def overlaps(self) -> bool:
        """Whether an id is at both ends of edges."""
        return bool(np.intersect1d(*self.ends).size)

    def part(self, rows: NDArray[np.bool_]) -> EdgeTable:
        """The edges of a mask ``[E]``."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, numbers=self.numbers[rows], ends=self.ends[:, rows], weight=weight, relations=None)


def read_edges(source: Source) -> EdgeTable:
    """An edge table in memory."""
    numbers, weights, relations, ends = [], [], [], list[Any]()
    with source.readable():
        for block in source.edges():
            numbers.append(block.numbers)
            ends.append(block.ends)
            weights += [] if block.weight is None else [block.weight]
            relations += [] if block.relations is None else [block.relations]
        ids, codes = (
            encode(list(zip(*ends, strict=True)), lines=source.lines) if ends else ([], np.empty((2, 0), np.int64))
        )
    return EdgeTable(
        source=source,
        numbers=_joined(numbers),
        ids=ids,
        ends=codes,
        weight=np.concatenate(weights) if weights else None,
        relations=np.concatenate(relations) if relations else None,
    )


def read_nodes(source: Source) -> NodeTable:
    """A node table in memory, each id once; columns that are no numbers are encoded, or a file has the features."""
    try:
        return _read_nodes(source)
    except NotNumbersError:
        if not source.learn():
            raise
    return _read_nodes(source)


def _read_nodes(source: Source) -> NodeTable:
    with source.readable():
        blocks, features, ids = [], [], list[Any]()
        for block in source.nodes():
            ids += block.ids.to_pylist()
            features += [] if block.features is None else [pack(block.features)]
            blocks.append(replace(block, ids=None, features=None))
    if not ids:
        raise no_nodes(source)
    numbers, one = _joined([block.numbers for block in blocks]), blocks[0]
    if source.columns.numbered:
        ids = list(map(str, range(1, len(ids) + 1))) if source.lines else list(range(1, len(ids) + 1))
    seen: dict[Hashable, int] = {}
    for row, identifier in enumerate(ids):
        if (first := seen.setdefault(identifier, row)) != row:
            column = source.chosen.identifier
            raise id_twice(source, column, identifier, int(numbers[first]), int(numbers[row]))
    columns, names, matrix = source.columns, source.feature_names, stack(features) if features else None
    if columns.matrix is not None and columns.made is None:
        names, matrix = read_features(columns.matrix, len(ids), columns.features)
    source.warn_of_nodes(matrix if features else None)
    return NodeTable(
        source=source,
        numbers=numbers,
        ids=typed(ids) if source.lines else ids,
        feature_names=names,
        features=matrix,
        labels={name: np.concatenate([block.labels[name] for block in blocks]) for name in one.labels},
        splits={name: np.concatenate([block.splits[name] for block in blocks]) for name in one.splits},
        groups=None if one.groups is None else number_groups([name for block in blocks for name in block.groups]),
        names=None if one.names is None else np.concatenate([block.names for block in blocks]),
        times=None if one.times is None else np.concatenate([block.times for block in blocks]),
    )


def _joined(numbers: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(numbers) if numbers else np.empty(0, np.int64)


class Listed(NamedTuple):
    """The nodes that one end of edges may be: their table, where there is one, and their rows by the text of the id."""

    nodes: NodeTable | None
    position: Mapping[str, int]
    where: str = ""
    """Where they are listed, in messages; by default in their table."""
    ids: Sequence[Any] | NDArray[Any] = ()
    """All ids, where the rows are those of some only."""


def find_rows(edges: EdgeTable, first: Listed, last: Listed) -> NDArray[np.int32]:
    """The rows of the graph ``[2, E]`` that the edges join, of the nodes that sources and targets may be."""
    rows = [_rows_of_ids(edges, 0, first)]
    rows.append(rows[0] if last is first else _rows_of_ids(edges, 1, last))
    ends = np.stack([of_ids[codes] for of_ids, codes in zip(rows, edges.ends, strict=True)])
    if (ends < 0).any():
        edge, end = divmod(int(np.argmax(ends.T.ravel() < 0)), 2)
        nodes, position, where, ids = (first, last)[end]
        if nodes is not None and not where:
            where = listed_in(nodes.source, integers=_integers(nodes.ids), first=nodes.ids[0])
        identifier = edges.ids[edges.ends[end, edge]]
        share = f"{int((ends < 0).any(axis=0).sum()):,} of {number_of(ends.shape[1], 'edge')}"
        column, number = edges.source.ends[end], int(edges.numbers[edge])
        raise id_unknown(edges.source, column, identifier, number, where, share, chain(position, ids))
    return ends


def _rows_of_ids(edges: EdgeTable, end: int, listed: Listed) -> NDArray[np.int32]:
    """The row of each id of an edge table among the nodes that one end may be; -1 where it is none of them."""
    if edges.ids and listed.nodes is not None and not edges.source.lines:
        of_edges, of_nodes = edges.source.integers[end], _integers(listed.nodes.ids)
        refuse_other_type(edges.source, listed.nodes.source, of_edges=of_edges, of_nodes=of_nodes)
    return np.array([listed.position.get(str(identifier), -1) for identifier in edges.ids], dtype=np.int32)


def _integers(ids: Ids) -> bool:
    return not isinstance(ids[0], str)
