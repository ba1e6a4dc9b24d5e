"""Cora, Citeseer and Pubmed: papers, their citations and their words, in the Planetoid split.

The files are pickles, and a pickle can call any function that it names. So they are read only after
their SHA-256 was checked, by an unpickler that knows the six names in them and refuses every other.
"""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.datasets.fetch import PublicFile
from infomax.errors import readable
from infomax.graphs.graph import Graph

VALIDATION = 500
"""The number of papers after those of the training split that are for validation."""

_FOLDER = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data"
_PARTS = json.loads(
    (resources.files("infomax.datasets") / "planetoid.json").read_text(encoding="utf-8")
)
"""Size and SHA-256 of each ind.NAME.PART, by name and part, in the order of `read`.

The eighth part, x, repeats the first rows of allx, and is not read."""


def files(name: str) -> list[PublicFile]:
    """The files of one data set, in the order of `read`."""
    return [
        PublicFile(f"planetoid/ind.{name}.{part}", f"{_FOLDER}/ind.{name}.{part}", size, sha256)
        for part, (size, sha256) in _PARTS[name].items()
    ]


def read(
    y: Path, allx: Path, ally: Path, tx: Path, ty: Path, test_index: Path, citations: Path
) -> Graph:
    """The graph in the files: unscaled features as in the files, and the label ``class``.

    ``allx`` holds the words of the first papers and ``tx`` those of the papers whose numbers are in
    ``test_index``; ``ally`` and ``ty`` hold their classes. Citeseer leaves out 15 numbers: papers
    of the graph that have no words and no class, which is -1.
    """
    test_papers = np.loadtxt(test_index, dtype=np.int64)
    features = sparse.vstack([unpickle(allx), unpickle(tx)], format="coo")
    one_hot_classes: NDArray[Any] = np.concatenate([unpickle(ally), unpickle(ty)])

    # The paper of each row of the features and the classes.
    paper_of_row = np.concatenate([np.arange(features.shape[0] - len(test_papers)), test_papers])
    n = int(paper_of_row.max()) + 1
    features = sparse.csr_array(
        (features.data, (paper_of_row[features.row], features.col)), shape=(n, features.shape[1])
    )
    classes = np.full(n, -1, dtype=np.int64)
    has_class = one_hot_classes.any(axis=1)
    classes[paper_of_row] = np.where(has_class, one_hot_classes.argmax(axis=1), -1)

    edges = [
        (paper, cited_paper)
        for paper, cited_papers in unpickle(citations).items()
        for cited_paper in cited_papers
    ]

    # `y` holds the classes of the training papers, which come first.
    papers = np.arange(n)
    train_count = len(unpickle(y))
    splits = {
        "train": papers < train_count,
        "validation": (train_count <= papers) & (papers < train_count + VALIDATION),
        "test": np.isin(papers, test_papers),
    }
    return Graph.from_arrays(np.array(edges).T, features, labels={"class": classes}, splits=splits)


def unpickle(path: Path) -> Any:
    """The content of a pickle that needs no more than the six names that these files use."""
    with path.open("rb") as file, readable(path, "a pickle of numpy arrays, as Planetoid has them"):
        return _Unpickler(file, fix_imports=False, encoding="latin1").load()


_ALLOWED = {
    ("scipy.sparse.csr", "csr_matrix"): sparse.csr_matrix,
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}
"""The six names, as Python 2 wrote them."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"one that asks for {module}.{name}")
        return _ALLOWED[module, name]
