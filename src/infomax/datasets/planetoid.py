"""Cora, Citeseer and Pubmed: papers, their citations and their words, in the Planetoid split.

The files are pickles, and a pickle can call any function that it names. So they are read only after their SHA-256 was
checked, by an unpickler that knows the six names in them and refuses every other.
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
# Size and SHA-256 of each ind.NAME.PART, in the order of `read`. (The eighth part, x, repeats the first rows of allx.)
_PARTS = json.loads(
    (resources.files("infomax.datasets") / "planetoid.json").read_text(encoding="utf-8")
)


def files(name: str) -> list[PublicFile]:
    """The files of one data set, in the order of `read`."""
    return [
        PublicFile(f"planetoid/ind.{name}.{part}", f"{_FOLDER}/ind.{name}.{part}", size, sha256)
        for part, (size, sha256) in _PARTS[name].items()
    ]


def read(
    y: Path, allx: Path, ally: Path, tx: Path, ty: Path, test_index: Path, citations: Path
) -> Graph:
    """The graph in the files: unscaled features as in the files, and the label ``class``, -1 where there is none.

    ``allx`` holds the first papers and ``tx`` those whose numbers are in ``test_index``. Citeseer leaves out 15
    numbers: papers of the graph that have no words and no class.
    """
    test = np.loadtxt(test_index, dtype=np.int64)
    features = sparse.vstack([unpickle(allx), unpickle(tx)], format="coo")
    onehot: NDArray[Any] = np.concatenate([unpickle(ally), unpickle(ty)])
    row = np.concatenate([np.arange(features.shape[0] - len(test)), test])
    n = int(row.max()) + 1
    paper = np.arange(n)
    classes = np.full(n, -1, dtype=np.int64)
    classes[row] = np.where(onehot.any(axis=1), onehot.argmax(axis=1), -1)
    train = len(unpickle(y))
    return Graph.from_arrays(
        np.array(
            [(one, cited) for one, all_cited in unpickle(citations).items() for cited in all_cited]
        ).T,
        sparse.csr_array(
            (features.data, (row[features.row], features.col)), shape=(n, features.shape[1])
        ),
        labels={"class": classes},
        splits={
            "train": paper < train,
            "validation": (train <= paper) & (paper < train + VALIDATION),
            "test": np.isin(paper, test),
        },
    )


def unpickle(path: Path) -> Any:
    """The content of a pickle that needs no more than the six names that these files use."""
    with path.open("rb") as file, readable(path, "a pickle of numpy arrays, as Planetoid has them"):
        return _Unpickler(file, fix_imports=False, encoding="latin1").load()


# The six names, as Python 2 wrote them.
_ALLOWED = {
    ("scipy.sparse.csr", "csr_matrix"): sparse.csr_matrix,
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"one that asks for {module}.{name}")
        return _ALLOWED[module, name]
