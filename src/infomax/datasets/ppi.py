"""PPI: protein interactions, a graph for each of 24 human tissues, and 121 functions of proteins.

It is read from ``ppi.npz``, the data set rebuilt from its public sources, or from the twelve files
of the archive that PyG and DGL use. Both have 56,944 nodes, 793,632 edges (818,716 with self-loops)
and 50 features of 0 and 1; 20 graphs for training (44,906 nodes), 2 for validation (6,514) and 2
for testing (5,524).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.folder_layout import map_array
from infomax.datasets.local_files import LocalFiles, read_json, read_networkx_edges
from infomax.graphs.graph import Graph
from infomax.io.archive import read_arrays

FEATURES = 50
FUNCTIONS = 121
SPLITS = ("train", "validation", "test")


def _read_rebuilt(path: Path) -> Graph:
    """The graphs of ``ppi.npz``; a group is a tissue, an id is ``tissue/gene``, by Entrez number.

    The labels of 714 nodes are not known. Neither are the features of 402 training nodes; only the
    number of ones per column among them is. Each of these nodes gets the mean, so that every column
    keeps its mean.
    """
    arrays = read_arrays(path)
    tissues = arrays["tissue"]
    split_numbers = arrays["split"]
    is_unknown = ~arrays["feat_known"]

    features = np.unpackbits(arrays["feats"], axis=1, count=FEATURES).astype(np.float32)
    known_ones = features[split_numbers == 0].sum(axis=0)
    unknown_ones = arrays["train_feature_ones_total"] - known_ones
    features[is_unknown] = unknown_ones / max(np.count_nonzero(is_unknown), 1)

    functions = np.unpackbits(arrays["labels"], axis=1, count=FUNCTIONS).astype(np.int8)
    functions[~arrays["label_known"]] = -1
    tissue_names = arrays["tissue_names"]
    ids = [
        f"{tissue_names[tissue]}/{gene}"
        for tissue, gene in zip(tissues, arrays["gene"], strict=True)
    ]
    return _graph(arrays["edges"], features, functions, tissues, split_numbers, ids=ids)


def _read_archive(*paths: Path) -> Graph:
    """The graphs of the archive; ids are row numbers, and all features and labels are known.

    The features of the archive are standardised. A column still has two values, and the larger
    stands for 1, so they are turned back into 0 and 1: a model trained on one form can then embed
    the other.
    """
    # Four files of each split follow each other, see _ARCHIVE: edges, features, functions, groups.
    features_of_splits = [map_array(path, remedy="") for path in paths[1::4]]
    functions_of_splits = [map_array(path, remedy="") for path in paths[2::4]]
    groups_of_splits = [map_array(path, remedy="") for path in paths[3::4]]

    # Edges are rows of their split; here all splits are one graph.
    node_counts = [len(features) for features in features_of_splits]
    first_rows = np.cumsum([0, *node_counts[:-1]])
    edges = [
        read_networkx_edges(read_json(path)["links"]) + first_row
        for path, first_row in zip(paths[0::4], first_rows, strict=True)
    ]

    features = np.concatenate(features_of_splits)
    is_one = features > (features.min(axis=0) + features.max(axis=0)) / 2
    return _graph(
        np.concatenate(edges, axis=1),
        is_one,
        np.concatenate(functions_of_splits).astype(np.int8),
        np.concatenate(groups_of_splits),
        np.repeat(np.arange(len(SPLITS)), node_counts),
    )


def _graph(
    edges: NDArray[Any],
    features: NDArray[Any],
    functions: NDArray[np.int8],
    groups: NDArray[Any],
    split_numbers: NDArray[Any],
    **fields: Any,
) -> Graph:
    """The graph of all tissues, of which training sees those of its split alone."""
    splits = {name: split_numbers == number for number, name in enumerate(SPLITS)}
    splits["seen"] = splits["train"]
    return Graph.from_arrays(
        edges, features, labels={"functions": functions}, splits=splits, groups=groups, **fields
    )


_ARCHIVE = tuple(
    f"{split}_{part}"
    for split in ("train", "valid", "test")
    for part in ("graph.json", "feats.npy", "labels.npy", "graph_id.npy")
)
_SOURCE = (
    "The twelve are ppi.zip of PyG and DGL: torch_geometric.datasets.PPI(FOLDER) leaves them in "
    "FOLDER/raw."
)
FILES = LocalFiles("ppi", _SOURCE, {("ppi.npz",): _read_rebuilt, _ARCHIVE: _read_archive})
"""One graph with 24 groups; the label is ``functions`` ``[N, 121]``, -1 for unknown."""
