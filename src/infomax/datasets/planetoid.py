"""Cora, Citeseer and Pubmed: papers, their citations and their words, in the Planetoid split.

The files are pickles, and a pickle can call any function that it names. An unpickler reads them that knows six names,
gives harmless classes for them and refuses every other name.
"""

from __future__ import annotations

import pickle
import re
from collections import defaultdict
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
_PARTS = {
    "cora": {
        "y": (4_054, "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"),
        "allx": (257_305, "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"),
        "ally": (47_959, "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"),
        "tx": (148_025, "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"),
        "ty": (28_135, "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"),
        "test.index": (5_000, "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"),
        "graph": (59_847, "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"),
    },
    "citeseer": {
        "y": (3_014, "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"),
        "allx": (595_021, "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"),
        "ally": (55_623, "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"),
        "tx": (260_321, "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"),
        "ty": (24_135, "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"),
        "test.index": (5_000, "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"),
        "graph": (61_987, "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"),
    },
    "pubmed": {
        "y": (854, "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3"),
        "allx": (7_578_385, "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e"),
        "ally": (224_739, "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e"),
        "tx": (405_505, "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d"),
        "ty": (12_135, "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd"),
        "test.index": (6_000, "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5"),
        "graph": (471_808, "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9"),
    },
}


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
