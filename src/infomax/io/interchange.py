"""Graphs of other libraries: the arguments of `Graph.from_arrays` for theirs, and theirs for a `Graph`."""

from __future__ import annotations

import math
import warnings
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.encoding import Encoding
from infomax.arrays.made import Kind
from infomax.arrays.sparsity import dense, pack, stack
from infomax.arrays.survey import Survey
from infomax.errors import InputError, InputWarning, shorten
from infomax.io.blocks import NotNumbersError, typed
from infomax.io.record import Record
from infomax.io.unite import unite

LABEL, SPLIT, GROUPS, NAME = "label:", "split:", "graph:name", "node:name"
"""Columns and attributes of nodes whose names begin so are labels and splits; others name the graph and the node."""
MASKS = {"train": "train_mask", "validation": "val_mask", "test": "test_mask"}
"""Splits, and what PyG calls them."""


class Attributed(NamedTuple):
    """Nodes, and edges by the nodes at their ends, with attributes, as NetworkX has them."""

    nodes: list[tuple[Any, dict[Any, Any]]]
    links: list[tuple[Any, Any, dict[Any, Any]]]
    directed: bool
    unset: Sequence[str] = ()
    """Attributes that are 0 at nodes without them."""

    @classmethod
    def of(cls, graph: Any) -> Attributed:
        """Those of a graph of NetworkX."""
        if not hasattr(graph, "is_directed"):
            raise InputError("graph", "a NetworkX graph", type(graph).__name__)
        return cls(list(graph.nodes(data=True)), list(graph.edges(data=True)), graph.is_directed())


def from_attributes(
    graph: Attributed,
    labels: Iterable[str],
    directed: bool | None,
    ignore: Iterable[str] = (),
    name: str | None = None,
    where: str = "graph",
    kinds: Mapping[str, str] = MappingProxyType({}),
    made: Kind | None = None,
) -> Record:
    """What `Graph.from_networkx` returns.

    Attributes of the ``kinds`` that a person said, and those that are no numbers, are encoded as columns are; features
    of the kind ``made`` are made where there is no attribute.
    """
    nodes, links, has_directions, unset = graph
    if directed and not has_directions:
        links = [*links, *((v, u, attributes) for u, v, attributes in links if u != v)]
    names = list(dict.fromkeys([*unset, *(one for _, attributes in nodes for one in attributes)]))
    for one in ignore:
        _refuse_missing("attribute to ignore", one, names)
        names.remove(one)
    marked = [one for one in names if isinstance(one, str) and one.startswith(LABEL)]
    wanted = dict.fromkeys(labels)
    for one in wanted:
        if f"{LABEL}{one}" not in names:
            _refuse_missing("label attribute", one, names)
    if name is not None:
        _refuse_missing("name attribute", name, names)
    named = NAME if name is None and NAME in names else name
    splits = [one for one in names if isinstance(one, str) and one.startswith(SPLIT)]
    grouped = GROUPS in names and GROUPS not in wanted
    others = {*wanted, *marked, *splits, named, *([GROUPS] if grouped else [])}
    features = [one for one in names if one not in others]
    columns = {one: [attributes.get(one) for _, attributes in nodes] for one in names if one in others}
    position = {node: row for row, (node, _) in enumerate(nodes)}
    used = dict.fromkeys(one for *_, attributes in links for one in attributes)
    warn_unused(where, [one for one in used if one != "weight"], "edge attributes")
    own = [one for one in wanted if one in names]
    found, encoding, called = _encoded(nodes, features, {*unset}, kinds, [*own, *marked], named)
    if called != named:
        named, columns = called, columns | {called: [attributes.get(called) or "" for _, attributes in nodes]}
    record = Record.from_arrays(
        np.array([[position[u], position[v]] for u, v, _ in links], dtype=np.int64).reshape(-1, 2).T,
        features=made if found is None else found,
        weight=_weights(links),
        num_nodes=len(nodes),
        directed=has_directions if directed is None else directed,
        ids=np.fromiter(position, dtype=object),
        feature_names=None if found is None else features if encoding is None else encoding.feature_names,
        labels={
            one.removeprefix(LABEL) if one in marked else one: np.fromiter(columns[one], dtype=object)
            for one in (*own, *marked)
        },
        node_names=None if named is None else np.fromiter(columns[named], dtype=object),
        groups=number_groups(list(map(str, columns[GROUPS]))) if grouped else None,
        splits={one.removeprefix(SPLIT): [value or False for value in columns[one]] for one in splits},
    )
    return replace(record, encoding=encoding)


def _encoded(
    nodes: list[tuple[Any, dict[Any, Any]]],
    names: list[Any],
    unset: set[str],
    kinds: Mapping[str, str],
    labels: Sequence[str],
    name: str | None,
) -> tuple[Any, Encoding | None, str | None]:
    """The features ``[N, F]`` of attributes, how they were made if not of numbers, and the attribute of node names."""
    from infomax.io.columns import Columns
    from infomax.io.learning import learnt

    try:
        if not names or not kinds:
            return _features(nodes, names, unset) if names else None, None, name
    except NotNumbersError:
        if find_spec("pyarrow") is None:
            raise
    table = {
        str(one): _arrow([attributes.get(one, 0 if one in unset else None) for _, attributes in nodes]) for one in names
    }
    survey, seen = Survey(list(table), kinds, labels), f"{SPLIT}seen"
    rows = [row for row, (_, attributes) in enumerate(nodes) if attributes.get(seen)] or [*range(len(nodes))]
    survey.add(
        {one: values.take(rows) for one, values in table.items()},
        lambda row, one: f"node {shorten(nodes[rows[row]][0])}, attribute {shorten(one)}",
    )
    columns = learnt(Columns(name=name), survey, Path("attributes"), list(table))
    encoding = columns.encoding
    return encoding and stack([encoding.transform(table)]), encoding, columns.name


def _arrow(values: list[Any]) -> Any:
    """Values of any type as an array of pyarrow; those of several types as text."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.large_string())


def _refuse_missing(what: str, name: Any, names: Sequence[Any]) -> None:
    if name not in names:
        expected = f"one of {', '.join(map(shorten, names))}" if names else "nodes with attributes"
        raise InputError(f"{what} {shorten(name)}", expected, "no node with that attribute")


def _features(nodes: list[tuple[Any, dict[Any, Any]]], names: list[Any], unset: set[str]) -> Any:
    """Features ``[N, F]`` of attributes that are numbers, sparse where most of them are zero."""
    place = {name: column for column, name in enumerate(names)}
    rows, columns, values = array("q"), array("q"), array("d")
    needed = [name for name in names if name not in unset]
    for row, (node, attributes) in enumerate(nodes):
        there = [name for name in attributes if name in place]
        numbers = [attributes[name] for name in there]
        bad = _not_number(numbers)
        lack = next((name for name in needed if name not in attributes), None)
        if bad is not None or lack is not None:
            name = there[bad] if bad is not None else lack
            found = "none" if attributes.get(name) is None else shorten(attributes[name])
            where = f"node {shorten(node)}, attribute {shorten(name)}"
            raise NotNumbersError(where, "a finite number", found, "Name the attribute in labels, or remove it.")
        rows.extend([row] * len(there))
        columns.extend(place[name] for name in there)
        values.extend(map(float, numbers))
    with np.errstate(over="ignore"):
        entries = np.array(values).astype(np.float32)
    ends = np.array(rows), np.array(columns)
    return stack([sparse.csr_array((entries, ends), shape=(len(nodes), len(names)))])


def warn_unused(where: str, names: Sequence[Any], what: str, hint: str = "") -> None:
    """Name the columns or attributes of edges that are neither ends nor weights: they have no effect."""
    if names:
        shown = ", ".join(map(shorten, names[:12])) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        warnings.warn(f"{where}: {what} that are not used: {shown}.{hint}", InputWarning, stacklevel=2)


def _weights(links: list[tuple[Any, Any, dict[Any, Any]]]) -> list[float] | None:
    """The weights of edges, 1 where one has none; None where none has one."""
    weights: list[Any] = [attributes.get("weight") for *_, attributes in links]
    if all(weight is None for weight in weights):
        return None
    weights = [1.0 if weight is None else weight for weight in weights]
    if (bad := _not_number(weights, least=0)) is not None:
        where = f"weight of the edge {shorten(links[bad][0])} -> {shorten(links[bad][1])}"
        raise InputError(where, "a finite number of zero or more", shorten(weights[bad]))
    return list(map(float, weights))


def _not_number(values: list[Any], least: float = -math.inf) -> int | None:
    """The position of the first value that is no finite number, or one below ``least``."""
    for place, value in enumerate(values):
        try:
            if not math.isfinite(number := float(value)) or number < least:
                return place
        except (TypeError, ValueError):
            return place
    return None


def number_groups(words: list[str]) -> NDArray[np.int64]:
    """The groups ``[N]`` of their names: the integers that they are, else numbers in order of first appearance."""
    names = list(dict.fromkeys(words))
    numbers = typed(names)
    number = dict(zip(names, range(len(names)) if numbers is names else numbers, strict=True))
    return np.array([number[word] for word in words], dtype=np.int64)


def from_pyg(data: Any, directed: bool, split: int | None) -> Record:
    """What `Graph.from_pyg` makes a graph of."""
    if getattr(data, "edge_types", None):
        return _from_hetero(data, directed, split)
    if getattr(data, "edge_index", None) is None:
        remedy = "For an adj_t, see Graph.from_scipy."
        raise InputError("data", "a PyG Data with edge_index", type(data).__name__, remedy)
    groups = data.get("batch")
    # Where nothing else gives it, PyG counts nodes by the highest row number, without a bound.
    counted = any(key in data for key in ("x", "num_nodes", "pos", "batch"))
    edges, weight = _pyg_edges(data, "data")
    return Record.from_arrays(
        edges,
        weight=weight,
        num_nodes=data.num_nodes if counted else None,
        directed=directed,
        groups=None if groups is None else _array(groups),
        **_pyg_nodes(data, split),
    )


def _from_hetero(data: Any, directed: bool, split: int | None) -> Record:
    """The graph of a PyG ``HeteroData``; a relation ``rev_NAME`` is left out where it is NAME backwards."""
    edges = {ends: _pyg_edges(data[ends], f"data[{', '.join(ends)}]") for ends in data.edge_types}
    for ends in list(edges):
        forth = edges.get((ends[2], ends[1].removeprefix("rev_"), ends[0]))
        if ends[1].startswith("rev_") and forth and _same_pairs(edges[ends][0][::-1], forth[0]):
            del edges[ends]
    nodes: dict[str, dict[str, Any]] = {
        kind: {"ids": np.arange(data[kind].num_nodes)} | _pyg_nodes(data[kind], split) for kind in data.node_types
    }
    for ends in edges:
        for kind in ends[::2]:
            if kind not in nodes:
                raise InputError("data", f"nodes of type {kind}, with x or num_nodes", "none")
    return unite(nodes, edges, directed=edges if directed else ())


def _same_pairs(edges: Any, others: Any) -> bool:
    both = [rows[:, np.lexsort(rows)] for rows in (edges, others)]
    return bool(np.array_equal(*both))


def _pyg_edges(store: Any, where: str) -> tuple[Any, Any]:
    """Edges ``[2, E]`` and their weights ``[E]`` or None."""
    used, weight = ("edge_index", "edge_weight"), store.get("edge_weight")
    warn_unused(where, [key for key in store.edge_attrs() if key not in used], "edge attributes")
    return _array(store.edge_index), None if weight is None else _array(weight.float())


def _pyg_nodes(store: Any, split: int | None) -> dict[str, Any]:
    """Features, labels and splits."""
    x, y = store.get("x"), store.get("y")
    if y is not None and y.dim() == 2 and y.shape[1] == 1:
        y = y[:, 0]
    x = None if x is None else _array(x.float())
    return {
        "features": pack(x) if isinstance(x, np.ndarray) and x.ndim == 2 else x,
        "labels": {} if y is None else {"y": _array(y)},
        "splits": {
            name: _mask(key, _array(store[key]), split) for name, key in MASKS.items() if store.get(key) is not None
        },
    }


def _mask(key: str, mask: Any, split: int | None) -> Any:
    """A mask ``[N]``, or the column of ``[N, k]`` that ``split`` names."""
    if mask.ndim != 2:
        return mask
    if split is None or not 0 <= split < mask.shape[1]:
        expected = f"split=, a column from 0 to {mask.shape[1] - 1}, as {key} has the shape {list(mask.shape)}"
        raise InputError("from_pyg", expected, str(split))
    return mask[:, split]


def to_pyg(graph: Record) -> Any:
    """What `Graph.to_pyg` returns."""
    try:
        from torch_geometric.data import Data, HeteroData
    except ImportError:
        remedy = "Install it: pip install 'infomax[pyg]'."
        raise InputError("to_pyg", "torch_geometric", "none installed", remedy) from None
    graph = graph.loaded()
    if not graph.types:
        return Data(**_edge_tensors(graph.adjacency), **_node_tensors(graph))
    data = HeteroData()
    for kind, one in graph.by_type().items():
        data[kind].update(_node_tensors(one))
    for relation in graph.relations:
        data[relation.source, relation.name, relation.target].update(_edge_tensors(relation.matrix()))
    return data


def _edge_tensors(matrix: Any) -> dict[str, Any]:
    import torch

    links = matrix.tocoo()
    fields = {"edge_index": torch.from_numpy(np.stack(links.coords).astype(np.int64))}
    return fields | ({"edge_weight": torch.from_numpy(links.data.copy())} if (links.data != 1).any() else {})


def _node_tensors(graph: Record) -> dict[str, Any]:
    import torch

    fields: dict[str, Any] = {"x": torch.from_numpy(np.array(dense(graph.features)))}
    for column in list(graph.labels.values())[:1]:
        if column.dtype == object:
            names = sorted(set(column.tolist()) - {""})
            number = {"": -1} | {name: at for at, name in enumerate(names)}
            column = np.array([number[name] for name in column.tolist()])
        fields["y"] = torch.from_numpy(np.array(column))
    if graph.groups is not None:
        fields["batch"] = torch.from_numpy(np.unique(graph.groups, return_inverse=True)[1].reshape(-1))
    masks = {MASKS[name]: torch.from_numpy(mask.copy()) for name, mask in graph.splits.items() if name in MASKS}
    return fields | masks


def _array(tensor: Any) -> Any:
    """A tensor as an array; a sparse one as a scipy matrix."""
    values = tensor.detach().cpu()
    if not values.is_sparse and not values.is_sparse_csr:
        return values.numpy()
    values = values.to_sparse_coo().coalesce()
    return sparse.coo_array((values.values().numpy(), values.indices().numpy()), shape=values.shape)
