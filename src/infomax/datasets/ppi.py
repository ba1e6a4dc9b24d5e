"""PPI: protein interactions in 24 human tissues, one graph per tissue, and 121 functions a protein may have.

Read from ``ppi.npz``, the data set rebuilt from its public sources, or from the twelve files of the archive that PyG
and DGL use. Both have 56,944 nodes, 793,632 edges (818,716 with self-loops) and 50 features of 0 and 1; 20 graphs for
training (44,906 nodes), 2 for validation (6,514) and 2 for testing (5,524).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.folder import map_array
from infomax.datasets.local_files import LocalFiles, read_json, read_links
from infomax.graphs.graph import Graph
from infomax.io.archive import read_arrays

FEATURES, FUNCTIONS = 50, 121

_SPLITS = ("train", "validation", "test")


def _read_rebuilt(path: Path) -> Graph:
    """The graphs of ``ppi.npz``; a group is a tissue, an id is ``tissue/gene``, the gene by its Entrez number.

    The labels of 714 nodes are not known. Neither are the features of 402 training nodes; only the number of ones
    per column among them is. Each of these nodes gets the mean, so that every column keeps its mean.
    """
    arrays = read_arrays(path)
    tissue = arrays["tissue"]
    split = arrays["split"]
    names = arrays["tissue_names"]
    unknown = ~arrays["feat_known"]
    features = np.unpackbits(arrays["feats"], axis=1, count=FEATURES).astype(np.float32)
    missing = arrays["train_feature_ones_total"] - features[split == 0].sum(axis=0)
    features[unknown] = missing / max(np.count_nonzero(unknown), 1)
    functions = np.unpackbits(arrays["labels"], axis=1, count=FUNCTIONS).astype(np.int8)
    functions[~arrays["label_known"]] = -1
    ids = [f"{names[place]}/{number}" for place, number in zip(tissue, arrays["gene"], strict=True)]
    return _graph(arrays["edges"], features, functions, tissue, split, ids=ids)


def _read_archive(*paths: Path) -> Graph:
    """The graphs of the archive; ids are row numbers, and all features and labels are known.

    The features of the archive are standardised. A column still has two values, and the larger stands for 1, so they
    are turned back into 0 and 1: a model trained on one form can then embed the other.
    """
    columns = [[map_array(path, remedy="") for path in paths[part::4]] for part in (1, 2, 3)]
    sizes = [len(features) for features in columns[0]]
    starts = np.cumsum([0, *sizes[:-1]])
    edges = [
        read_links(read_json(path)["links"]) + start
        for path, start in zip(paths[::4], starts, strict=True)
    ]
    features, functions, groups = map(np.concatenate, columns)
    ones = features > (features.min(axis=0) + features.max(axis=0)) / 2
    split = np.repeat(np.arange(len(sizes)), sizes)
    return _graph(np.concatenate(edges, axis=1), ones, functions.astype(np.int8), groups, split)


def _graph(
    edges: NDArray[Any],
    features: NDArray[Any],
    functions: NDArray[np.int8],
    groups: NDArray[Any],
    split: NDArray[Any],
    **columns: Any,
) -> Graph:
    splits = {name: split == number for number, name in enumerate(_SPLITS)}
    splits["seen"] = splits["train"]
    labels = {"functions": functions}
    return Graph.from_arrays(
        edges, features, labels=labels, splits=splits, groups=groups, **columns
    )


_ARCHIVE = tuple(
    f"{split}_{part}"
    for split in ("train", "valid", "test")
    for part in ("graph.json", "feats.npy", "labels.npy", "graph_id.npy")
)
_SOURCE = "The twelve are ppi.zip of PyG and DGL: torch_geometric.datasets.PPI(FOLDER) leaves them in FOLDER/raw."
FILES = LocalFiles("ppi", _SOURCE, {("ppi.npz",): _read_rebuilt, _ARCHIVE: _read_archive})
"""One graph with 24 groups; the label is ``functions`` ``[N, 121]``, with rows of -1 where it is not known."""
