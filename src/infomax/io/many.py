"""Several graphs as one, whose ``groups`` tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Adjacency
from infomax.arrays.sparsity import stack
from infomax.arrays.structural_features import (
    DEGREE_NAMES,
    degree_features,
    structural_features_named,
)
from infomax.arrays.table import Table
from infomax.arrays.times import UNKNOWN
from infomax.errors import InputError, shorten
from infomax.io.column_names import listed
from infomax.io.nodes import Nodes
from infomax.io.record import Record


def join(graphs: Mapping[str, Record]) -> Record:
    """One record with all nodes of graphs by their names: a node is ``NAME/ID``.

    All of them have the same features and labels. Positions in different graphs have nothing in common: degree features
    take their place.
    """
    first, one = next(iter(graphs.items()))
    for name, graph in graphs.items():
        pairs = {
            "feature names": (graph.feature_names, one.feature_names),
            "labels": ({*graph.labels}, {*one.labels}),
        }
        for what, (names, wanted) in pairs.items():
            if names != wanted:
                raise InputError(
                    name, f"the {what} of {first}", listed([*({*names} - {*wanted} or names)])
                )
        if graph.directed != one.directed:
            found = "a directed graph" if graph.directed else "an undirected graph"
            raise InputError(name, f"edges as those of {first}", found)
        if graph.groups is not None or graph.held_out is not None:
            raise InputError(
                name, "one graph with all its edges", "several graphs, or edges held out"
            )
    sizes = [graph.num_nodes for graph in graphs.values()]
    splits = dict.fromkeys(split for graph in graphs.values() for split in graph.splits)
    dropped: Counter[str] = Counter()
    for graph in graphs.values():
        dropped.update(graph.dropped)
    blocks = sparse.block_diag([graph.adjacency for graph in graphs.values()], format="csr")
    edges = Adjacency(sparse.csr_array(blocks), one.directed)
    anew = structural_features_named(one.feature_names) == "positions"
    features = (
        degree_features(edges.degrees())
        if anew
        else stack([graph.features for graph in graphs.values()])
    )
    nodes = Nodes(
        table=Table(features),
        ids=np.array(
            [f"{name}/{node}" for name, graph in graphs.items() for node in graph.ids], dtype=object
        ),
        feature_names=DEGREE_NAMES if anew else one.feature_names,
        labels={
            label: _joined(label, [graph.labels[label] for graph in graphs.values()])
            for label in one.labels
        },
        splits={
            split: _together(graphs, [graph.splits.get(split) for graph in graphs.values()], False)
            for split in splits
        },
        groups=np.repeat(np.arange(len(sizes)), sizes),
        node_names=_together(
            graphs, [graph.node_names for graph in graphs.values()], np.array("", object)
        ),
        encoding=one.encoding,
        times=_together(graphs, [graph.own.times for graph in graphs.values()], UNKNOWN),
    )
    about = {"edge_columns": one.edge_columns, "table_columns": one.table_columns}
    return Record.of_one_type(nodes, edges, dropped=dict(dropped), **about)


def _together(
    graphs: Mapping[str, Record], columns: Sequence[NDArray[Any] | None], none: Any
) -> Any:
    """A column ``[N]`` of all graphs, ``none`` in one without; None where none has it."""
    if all(column is None for column in columns):
        return None
    pairs = zip(graphs.values(), columns, strict=True)
    return np.concatenate(
        [np.full(one.num_nodes, none) if column is None else column for one, column in pairs]
    )


def _joined(label: str, columns: list[NDArray[Any]]) -> NDArray[Any]:
    """One label of all graphs: as text where one of them has text."""
    if len({column.shape[1:] for column in columns}) > 1:
        raise InputError(
            f"label {shorten(label)}", "as many columns in every graph", "different numbers"
        )
    if any(column.dtype == object for column in columns):
        columns = [column.astype(str).astype(object) for column in columns]
    return np.concatenate(columns)
