"""Graphs from PyTorch Geometric's ``Data`` and ``HeteroData``, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.checks import check_ends, count_nodes
from infomax.arrays.relations import RELATION
from infomax.arrays.sparsity import dense, pack
from infomax.errors import InputError, library
from infomax.io.building import WeightedEdges, from_edges, with_edge_features
from infomax.io.column_names import warn_unused
from infomax.io.record import Record
from infomax.io.schema.schema import Ends

MASKS = {"train": "train_mask", "validation": "val_mask", "test": "test_mask"}
"""Splits, and what PyG calls them."""


def from_pyg(data: Any, directed: bool, split: int | None) -> Record:
    """The graph of a ``Data``, ``Batch`` or ``HeteroData``; see `Graph.from_pyg`."""
    has_types = bool(getattr(data, "edge_types", None))
    if has_types:
        edges = {
            ends: _read_edges(data[ends], f"data[{', '.join(ends)}]") for ends in data.edge_types
        }
        edges = _without_reversed(edges)
        nodes = {
            node_type: _read_nodes(data[node_type], data[node_type].num_nodes, split)
            for node_type in data.node_types
        }
    else:
        _refuse_without_edges(data)
        edges = {("", RELATION, ""): _read_edges(data, "data", reads_features=True)}
        nodes = {"": _read_only_nodes(data, edges["", RELATION, ""], split)}
    for source, _, target in edges:
        for node_type in (source, target):
            if node_type not in nodes:
                raise InputError("data", f"nodes of type {node_type}, with x or num_nodes", "none")

    graph = from_edges(nodes, edges, directed=edges if directed else ())
    edge_features = None if has_types else data.get("edge_attr")
    if edge_features is None:
        return graph
    return with_edge_features(graph, _array(data.edge_index), _array(edge_features.float()))


def _refuse_without_edges(data: Any) -> None:
    if getattr(data, "edge_index", None) is not None:
        return
    remedy = "For an adj_t, see Graph.from_scipy."
    if not hasattr(data, "keys"):
        remedy = "Make one of several graphs: torch_geometric.data.Batch.from_data_list(graphs)."
    raise InputError("data", "a PyG Data with edge_index", type(data).__name__, remedy)


def _without_reversed(edges: Mapping[Ends, WeightedEdges]) -> dict[Ends, WeightedEdges]:
    """The edges without relations ``rev_NAME`` that are NAME backwards: PyG adds them."""
    kept_edges = dict(edges)
    for ends, (rows, _) in edges.items():
        source, name, target = ends
        forward = kept_edges.get((target, name.removeprefix("rev_"), source))
        if name.startswith("rev_") and forward and _are_same_pairs(rows[::-1], forward[0]):
            del kept_edges[ends]
    return kept_edges


def _are_same_pairs(edges: NDArray[Any], other_edges: NDArray[Any]) -> bool:
    """Whether edges ``[2, E]`` are the same, in whatever order."""
    sorted_edges = edges[:, np.lexsort(edges)]
    other_sorted_edges = other_edges[:, np.lexsort(other_edges)]
    return bool(np.array_equal(sorted_edges, other_sorted_edges))


def _read_edges(store: Any, where: str, *, reads_features: bool = False) -> WeightedEdges:
    """Edges ``[2, E]`` and their weights ``[E]`` or None."""
    used_attributes = {"edge_index", "edge_weight"}
    if reads_features:
        used_attributes.add("edge_attr")
    unused = [name for name in store.edge_attrs() if name not in used_attributes]
    warn_unused(where, unused, "edge attributes")
    weight = store.get("edge_weight")
    rows = check_ends(_array(store.edge_index))
    return rows, None if weight is None else _array(weight.float())


def _read_only_nodes(data: Any, edges: WeightedEdges, split: int | None) -> dict[str, Any]:
    """The arguments of `Nodes.of` of a ``Data`` without types."""
    # Where nothing else gives it, PyG counts nodes by the highest row number, without a bound.
    says_count = any(name in data for name in ("x", "num_nodes", "pos", "batch"))
    num_nodes = count_nodes(data.num_nodes if says_count else None, None, None, edges[0])
    groups = data.get("batch")
    nodes = _read_nodes(data, num_nodes, split)
    nodes["groups"] = None if groups is None else _array(groups)
    return nodes


def _read_nodes(store: Any, num_nodes: int, split: int | None) -> dict[str, Any]:
    """The arguments of `Nodes.of`: ids, features, labels and splits."""
    x, y = store.get("x"), store.get("y")
    features = None if x is None else _array(x.float())
    if isinstance(features, np.ndarray) and features.ndim == 2:
        features = pack(features)
    # One label per node may be a column.
    if y is not None and y.dim() == 2 and y.shape[1] == 1:
        y = y[:, 0]
    return {
        "ids": np.arange(num_nodes),
        "features": features,
        "labels": {} if y is None else {"y": _array(y)},
        "splits": {
            name: _read_mask(pyg_name, _array(store[pyg_name]), split)
            for name, pyg_name in MASKS.items()
            if store.get(pyg_name) is not None
        },
    }


def _read_mask(pyg_name: str, mask: Any, split: int | None) -> Any:
    """A mask ``[N]``, or the column of ``[N, k]`` that ``split`` names."""
    if mask.ndim != 2:
        return mask
    num_splits = mask.shape[1]
    if split is None or not 0 <= split < num_splits:
        expected = (
            f"split=, a column from 0 to {num_splits - 1}, "
            f"as {pyg_name} has the shape {list(mask.shape)}"
        )
        raise InputError("from_pyg", expected, str(split))
    return mask[:, split]


def to_pyg(graph: Record) -> Any:
    """The graph as a ``Data`` or a ``HeteroData``; see `Graph.to_pyg`."""
    pyg = library("torch_geometric.data", "pyg", "to_pyg")
    graph = graph.loaded()
    if not graph.has_named_types:
        edges = _edge_tensors(graph.adjacency)
        edge_features = graph.relations[0].edge_features
        if edge_features is not None:
            senders, receivers = edges["edge_index"].numpy()
            edges["edge_attr"] = _tensor(edge_features.of_messages(senders, receivers))
        return pyg.Data(**edges, **_node_tensors(graph))
    data = pyg.HeteroData()
    for node_type, typed_graph in graph.by_type().items():
        data[node_type].update(_node_tensors(typed_graph))
    for relation in graph.relations:
        data[relation.ends].update(_edge_tensors(relation.edges.matrix()))
    return data


def _edge_tensors(matrix: sparse.csr_array) -> dict[str, Any]:
    entries = matrix.tocoo()
    tensors = {"edge_index": _tensor(np.stack(entries.coords).astype(np.int64))}
    if (entries.data != 1).any():
        tensors["edge_weight"] = _tensor(entries.data.copy())
    return tensors


def _node_tensors(graph: Record) -> dict[str, Any]:
    tensors = {"x": _tensor(np.array(dense(graph.features)))}
    for labels in list(graph.labels.values())[:1]:
        tensors["y"] = _tensor(_as_numbers(labels))
    if graph.groups is not None:
        _, group_numbers = np.unique(graph.groups, return_inverse=True)
        tensors["batch"] = _tensor(group_numbers.reshape(-1))
    for name, mask in graph.splits.items():
        if name in MASKS:
            tensors[MASKS[name]] = _tensor(mask.copy())
    return tensors


def _as_numbers(labels: NDArray[Any]) -> NDArray[Any]:
    """Text labels by their number in alphabetical order, unknown ones -1; others are copied."""
    if labels.dtype != object:
        return np.array(labels)
    names = sorted(set(labels.tolist()) - {""})
    number_by_name = {name: number for number, name in enumerate(names)}
    number_by_name[""] = -1
    return np.array([number_by_name[name] for name in labels.tolist()])


def _tensor(array: Any) -> Any:
    import torch

    return torch.from_numpy(array)


def _array(tensor: Any) -> Any:
    """A tensor as an array; a sparse one as a scipy matrix."""
    values = tensor.detach().cpu()
    if not values.is_sparse and not values.is_sparse_csr:
        return values.numpy()
    values = values.to_sparse_coo().coalesce()
    ends = values.indices().numpy()
    return sparse.coo_array((values.values().numpy(), ends), shape=values.shape)
