"""Graphs of PyTorch Geometric: the graph of a ``Data`` or a ``HeteroData``, and those of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from infomax.arrays.checks import check_ends, count_nodes
from infomax.arrays.relations import RELATION
from infomax.arrays.sparsity import dense, pack
from infomax.errors import InputError, library
from infomax.io.column_names import warn_unused
from infomax.io.record import Record
from infomax.io.unite import unite

MASKS = {"train": "train_mask", "validation": "val_mask", "test": "test_mask"}
"""Splits, and what PyG calls them."""


def from_pyg(data: Any, directed: bool, split: int | None) -> Record:
    """What `Graph.from_pyg` makes a graph of; a relation ``rev_NAME`` is left out where it is NAME backwards."""
    typed = bool(getattr(data, "edge_types", None))
    if not typed and getattr(data, "edge_index", None) is None:
        remedy = "For an adj_t, see Graph.from_scipy."
        if not hasattr(data, "keys"):
            remedy = (
                "Make one of several graphs: torch_geometric.data.Batch.from_data_list(graphs)."
            )
        raise InputError("data", "a PyG Data with edge_index", type(data).__name__, remedy)
    if typed:
        edges = {
            ends: _pyg_edges(data[ends], f"data[{', '.join(ends)}]") for ends in data.edge_types
        }
    else:
        edges = {("", RELATION, ""): _pyg_edges(data, "data", reads_features=True)}
    for ends in list(edges):
        forth = edges.get((ends[2], ends[1].removeprefix("rev_"), ends[0]))
        if ends[1].startswith("rev_") and forth and _same_pairs(edges[ends][0][::-1], forth[0]):
            del edges[ends]
    if typed:
        nodes = {
            node_type: _pyg_nodes(data[node_type], data[node_type].num_nodes, split)
            for node_type in data.node_types
        }
    else:
        # Where nothing else gives it, PyG counts nodes by the highest row number, without a bound.
        counted = any(key in data for key in ("x", "num_nodes", "pos", "batch"))
        count = count_nodes(
            data.num_nodes if counted else None, None, None, *(rows for rows, _ in edges.values())
        )
        groups = data.get("batch")
        nodes = {
            "": _pyg_nodes(data, count, split)
            | {"groups": None if groups is None else _array(groups)}
        }
    for ends in edges:
        for node_type in ends[::2]:
            if node_type not in nodes:
                raise InputError("data", f"nodes of type {node_type}, with x or num_nodes", "none")
    graph = unite(nodes, edges, directed=edges if directed else ())
    edge_features = None if typed else data.get("edge_attr")
    if edge_features is None:
        return graph
    return graph.with_edge_features(_array(data.edge_index), _array(edge_features.float()))


def _same_pairs(edges: Any, others: Any) -> bool:
    both = [rows[:, np.lexsort(rows)] for rows in (edges, others)]
    return bool(np.array_equal(*both))


def _pyg_edges(store: Any, where: str, *, reads_features: bool = False) -> tuple[Any, Any]:
    """Edges ``[2, E]`` and their weights ``[E]`` or None."""
    used = {"edge_index", "edge_weight"}
    if reads_features:
        used.add("edge_attr")
    unused = [key for key in store.edge_attrs() if key not in used]
    warn_unused(where, unused, "edge attributes")
    weight = store.get("edge_weight")
    return check_ends(_array(store.edge_index)), None if weight is None else _array(weight.float())


def _pyg_nodes(store: Any, count: int, split: int | None) -> dict[str, Any]:
    """Ids, features, labels and splits."""
    x, y = store.get("x"), store.get("y")
    if y is not None and y.dim() == 2 and y.shape[1] == 1:
        y = y[:, 0]
    x = None if x is None else _array(x.float())
    return {
        "ids": np.arange(count),
        "features": pack(x) if isinstance(x, np.ndarray) and x.ndim == 2 else x,
        "labels": {} if y is None else {"y": _array(y)},
        "splits": {
            name: _mask(key, _array(store[key]), split)
            for name, key in MASKS.items()
            if store.get(key) is not None
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
    pyg, graph = library("torch_geometric.data", "pyg", "to_pyg"), graph.loaded()
    if not graph.types:
        edges = _edge_tensors(graph.adjacency)
        edge_features = graph.relations[0].edge_features
        if edge_features is not None:
            senders, receivers = edges["edge_index"].numpy()
            edges["edge_attr"] = _tensor(edge_features.of_messages(senders, receivers))
        return pyg.Data(**edges, **_node_tensors(graph))
    data = pyg.HeteroData()
    for node_type, one in graph.by_type().items():
        data[node_type].update(_node_tensors(one))
    for relation in graph.relations:
        data[relation.ends].update(_edge_tensors(relation.edges.matrix()))
    return data


def _edge_tensors(matrix: Any) -> dict[str, Any]:
    import torch

    links = matrix.tocoo()
    fields = {"edge_index": torch.from_numpy(np.stack(links.coords).astype(np.int64))}
    return fields | (
        {"edge_weight": torch.from_numpy(links.data.copy())} if (links.data != 1).any() else {}
    )


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
        fields["batch"] = torch.from_numpy(
            np.unique(graph.groups, return_inverse=True)[1].reshape(-1)
        )
    masks = {
        MASKS[name]: torch.from_numpy(mask.copy())
        for name, mask in graph.splits.items()
        if name in MASKS
    }
    return fields | masks


def _tensor(array: Any) -> Any:
    import torch

    return torch.from_numpy(array)


def _array(tensor: Any) -> Any:
    """A tensor as an array; a sparse one as a scipy matrix."""
    values = tensor.detach().cpu()
    if not values.is_sparse and not values.is_sparse_csr:
        return values.numpy()
    values = values.to_sparse_coo().coalesce()
    return sparse.coo_array((values.values().numpy(), values.indices().numpy()), shape=values.shape)
