"""Several graphs as one, whose ``groups`` tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Adjacency
from infomax.arrays.made import DEGREE_NAMES, degree_features, made
from infomax.arrays.sparsity import stack
from infomax.arrays.table import Table
from infomax.arrays.times import UNKNOWN
from infomax.errors import InputError, number_of, shorten
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
        for what in ("feature_names", "directed"):
            if getattr(graph, what) != getattr(one, what):
                raise InputError(name, f"the {what.replace('_', ' ')} of {first}", _difference(graph, one, what))
        if set(graph.labels) != set(one.labels):
            raise InputError(name, f"the labels of {first}, {listed([*one.labels])}", listed([*graph.labels]))
        if graph.groups is not None or graph.held_out is not None:
            raise InputError(name, "one graph with all its edges", "several graphs, or edges held out")
    sizes = [graph.num_nodes for graph in graphs.values()]
    splits = dict.fromkeys(split for graph in graphs.values() for split in graph.splits)
    dropped: Counter[str] = Counter()
    for graph in graphs.values():
        dropped.update(graph.dropped)
    blocks = sparse.block_diag([graph.adjacency for graph in graphs.values()], format="csr")
    edges, anew = Adjacency(sparse.csr_array(blocks), one.directed), made(one.feature_names) == "positions"
    features = degree_features(edges.degrees()) if anew else stack([graph.features for graph in graphs.values()])
    nodes = Nodes(
        table=Table(features),
        ids=np.array([f"{name}/{node}" for name, graph in graphs.items() for node in graph.ids], dtype=object),
        feature_names=DEGREE_NAMES if anew else one.feature_names,
        labels={label: _joined(label, [graph.labels[label] for graph in graphs.values()]) for label in one.labels},
        splits={
            split: np.concatenate(
                [graph.splits.get(split, np.zeros(graph.num_nodes, dtype=bool)) for graph in graphs.values()]
            )
            for split in splits
        },
        groups=np.repeat(np.arange(len(sizes)), sizes),
        node_names=_names(list(graphs.values())),
        encoding=one.encoding,
        times=_times(list(graphs.values())),
    )
    about = {"edge_columns": one.edge_columns, "table_columns": one.table_columns}
    return Record.of_one_type(nodes, edges, dropped=dict(dropped), **about)


def _names(graphs: list[Record]) -> NDArray[Any] | None:
    """The names of the nodes of all graphs, "" in one without; None where none has any."""
    names = [np.full(one.num_nodes, "", object) if one.node_names is None else one.node_names for one in graphs]
    return np.concatenate(names) if any(one.node_names is not None for one in graphs) else None


def _times(graphs: list[Record]) -> NDArray[np.int64] | None:
    """The times of the nodes of all graphs; None where none has any."""
    times = [np.full(one.num_nodes, UNKNOWN) if one.own.times is None else one.own.times for one in graphs]
    return np.concatenate(times) if any(one.own.times is not None for one in graphs) else None


def _joined(label: str, columns: list[NDArray[Any]]) -> NDArray[Any]:
    """One label of all graphs: as text where one of them has text."""
    if len({column.shape[1:] for column in columns}) > 1:
        raise InputError(f"label {shorten(label)}", "as many columns in every graph", "different numbers")
    if any(column.dtype == object for column in columns):
        columns = [column.astype(str).astype(object) for column in columns]
    return np.concatenate(columns)


def _difference(graph: Record, one: Record, what: str) -> str:
    if what == "directed":
        return "a directed graph" if graph.directed else "an undirected graph"
    strange = [name for name in graph.feature_names if name not in set(one.feature_names)]
    return number_of(graph.num_features, "feature") + (f", among them {shorten(strange[0])}" if strange else "")
