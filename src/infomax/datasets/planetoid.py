"""Cora, Citeseer and Pubmed: papers, their citations and their words, in the Planetoid split.

The files are pickles, and a pickle can call any function that it names. An unpickler reads them that knows six names,
gives harmless classes for them and refuses every other name.
"""

from __future__ import annotations

import json
import pickle
import re
from collections import defaultdict
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.datasets.fetch import PublicFile
from infomax.errors import InputError
from infomax.graphs.graph import Graph

VALIDATION = 500
"""The number of papers after those of the training split that are for validation."""

_FOLDER = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data"
# Size and SHA-256 of each ind.NAME.PART, in the order of `read`. (The eighth part, x, repeats the first rows of allx.)
_PARTS = json.loads((resources.files("infomax.datasets") / "planetoid.json").read_text(encoding="utf-8"))


def files(name: str) -> list[PublicFile]:
    """The files of one data set, in the order of `read`."""
    return [
        PublicFile(f"planetoid/ind.{name}.{part}", f"{_FOLDER}/ind.{name}.{part}", size, sha256)
        for part, (size, sha256) in _PARTS[name].items()
    ]


def read(y: Path, allx: Path, ally: Path, tx: Path, ty: Path, test_index: Path, citations: Path) -> Graph:
    """The graph in the files: unscaled features as in the files, and the label ``class``, -1 where there is none.

    ``allx`` holds the first papers and ``tx`` those whose numbers are in ``test_index``. Citeseer leaves out 15
    numbers: papers of the graph that have no words and no class.
    """
    test = np.loadtxt(test_index, dtype=np.int64)
    features = sparse.vstack([read_matrix(allx), read_matrix(tx)], format="coo")
    onehot: NDArray[Any] = np.concatenate([read_array(ally), read_array(ty)])
    row = np.concatenate([np.arange(features.shape[0] - len(test)), test])
    n = int(row.max()) + 1
    paper = np.arange(n)
    classes = np.full(n, -1, dtype=np.int64)
    classes[row] = np.where(onehot.any(axis=1), onehot.argmax(axis=1), -1)
    train = len(read_array(y))
    return Graph.from_arrays(
        np.array([(one, cited) for one, all_cited in unpickle(citations).items() for cited in all_cited]).T,
        sparse.csr_array((features.data, (row[features.row], features.col)), shape=(n, features.shape[1])),
        labels={"class": classes},
        splits={
            "train": paper < train,
            "validation": (train <= paper) & (paper < train + VALIDATION),
            "test": np.isin(paper, test),
        },
    )


def unpickle(path: Path) -> Any:
    """The content of a pickle that needs no more than the six names that these files use.

    An array is a `PickledArray`, a sparse matrix a `PickledMatrix`: NumPy's own way of restoring an array from a pickle
    can be made to read outside its memory.
    """
    with path.open("rb") as file:
        try:
            return _Unpickler(file, fix_imports=False, encoding="latin1").load()
        except Exception as error:  # a bad pickle makes the unpickler raise almost anything
            raise InputError(str(path), "a pickle of numpy arrays, as Planetoid has them", str(error)) from error


class PickledDtype:
    """Stands in for `numpy.dtype`: numbers only, no objects."""

    def __init__(self, code: str, *_: object) -> None:
        if not isinstance(code, str) or not re.fullmatch(r"[biuf][1248]", code):
            raise pickle.UnpicklingError(f"an array of dtype {code!r}, where only numbers are allowed")
        self.code, self.order = code, "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError(f"the byte order {state[1]!r}")
        self.order = state[1]


class PickledArray:
    """Stands in for `numpy.ndarray`; ``values`` is the array."""

    def __init__(self, *_: object) -> None:
        self.values: NDArray[Any] = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, columns_first, data = state
        content = data.encode("latin1") if isinstance(data, str) else data
        flat = np.frombuffer(content, dtype=np.dtype(dtype.order + dtype.code))
        self.values = flat.reshape(shape, order="F" if columns_first else "C")


class PickledMatrix:
    """Stands in for scipy's csr_matrix."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state


# The six names, as Python 2 wrote them.
_ALLOWED = {
    ("scipy.sparse.csr", "csr_matrix"): PickledMatrix,
    ("numpy.core.multiarray", "_reconstruct"): PickledArray,
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): PickledDtype,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"one that asks for {module}.{name}")
        return _ALLOWED[module, name]


def read_matrix(path: Path) -> sparse.csr_array:
    """The sparse matrix in a pickle."""
    found = unpickle(path)
    try:
        data, indices, indptr = (found.state[name].values for name in ("data", "indices", "indptr"))
        matrix = sparse.csr_array((data, indices, indptr), shape=found.state["_shape"])
        matrix.check_format(full_check=True)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(str(path), "a pickled csr_matrix", str(error)) from error
    return matrix


def read_array(path: Path) -> NDArray[Any]:
    """The array in a pickle."""
    found = unpickle(path)
    if not isinstance(found, PickledArray):
        raise InputError(str(path), "a pickled array", type(found).__name__)
    return found.values
