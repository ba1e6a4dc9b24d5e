"""Files that a user puts in place: found, and read without unpickling anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.datasets.fetch import data_folders, data_path
from infomax.errors import InputError
from infomax.graphs.graph import Graph

Layouts: TypeAlias = Mapping[tuple[str, ...], Callable[..., Graph]]
"""For each form a data set is handed round in: the names of its files, and what reads them."""


def find(folder: str, layouts: Layouts, source: str) -> list[Path]:
    """The files of the first layout that is there whole, in ``folder`` below one of the data folders.

    ``source`` tells the user where to get them.
    """
    for place in data_folders():
        for names in layouts:
            paths = [place / folder / name for name in names]
            if all(path.is_file() for path in paths):
                return paths
    place = data_path() / folder
    there = [name for names in layouts for name in names if (place / name).is_file()]
    raise InputError(
        str(place),
        "; or ".join(", ".join(names) for names in layouts),
        f"only {', '.join(there)}" if there else "none of them",
        f"Put them there, or name the folder that has {folder}/ in it in INFOMAX_DATA. {source}",
    )


def read(layouts: Layouts, paths: Sequence[Path]) -> Graph:
    """The graph in the files that `find` found."""
    with telling(paths[0].parent, "the files as they were published"):
        return layouts[tuple(path.name for path in paths)](*paths)


def read_array(path: Path) -> NDArray[Any]:
    """The array of an ``.npy``, mapped: only what is used is read."""
    with telling(path, "an npy file of numbers"):
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array


def read_arrays(path: Path, *keys: str) -> list[NDArray[Any]]:
    """Some of the arrays of an ``.npz``."""
    with telling(path, f"an npz file with {', '.join(keys)}"), np.load(path, allow_pickle=False) as archive:
        return [archive[key] for key in keys]


def read_matrix(path: Path) -> sparse.sparray:
    """A sparse matrix that scipy wrote."""
    with telling(path, "an npz file of a sparse matrix, as scipy writes it"):
        return sparse.load_npz(path)


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    with telling(path, "a JSON file"), path.open(encoding="utf-8") as file:
        return json.load(file)


def read_links(links: Sequence[Mapping[str, int]]) -> NDArray[np.int32]:
    """Edges ``[2, E]`` from what networkx writes, ``{"source": 0, "target": 1}`` an edge."""
    return np.stack([np.fromiter((link[end] for link in links), np.int32) for end in ("source", "target")])


@contextmanager
def telling(path: Path, expected: str) -> Iterator[None]:
    """Tell whatever goes wrong inside as an `InputError` about ``path``."""
    try:
        yield
    except InputError as error:
        where = error.where if error.where.startswith(str(path)) else f"{path}, {error.where}"
        raise InputError(where, error.expected, error.found, error.remedy) from error
    except Exception as error:  # a damaged file makes zipfile, zlib, numpy, scipy and json raise almost anything
        found = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise InputError(str(path), expected, found) from error
