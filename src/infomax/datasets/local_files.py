"""Data sets whose files the user downloads: find the files and read them, without unpickling anything."""

from __future__ import annotations

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
from infomax.io import json

Layouts: TypeAlias = Mapping[tuple[str, ...], Callable[..., Graph]]
"""For each published form of a data set: the names of its files, and the function that reads them."""


def find(folder: str, layouts: Layouts, source: str) -> list[Path]:
    """The files of the first layout that is complete, in ``folder`` inside one of the data folders.

    ``source`` tells the user where to download them.
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
        f"Put them there, or set INFOMAX_DATA to the folder that holds {folder}/. {source}",
    )


def read(layouts: Layouts, paths: Sequence[Path]) -> Graph:
    """The graph in the files that `find` returned."""
    with reporting(paths[0].parent, "the files as they were published"):
        return layouts[tuple(path.name for path in paths)](*paths)


def read_array(path: Path) -> NDArray[Any]:
    """The array of an ``.npy``, memory-mapped: only the rows that are used are read."""
    with reporting(path, "an npy file of numbers"):
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array


def read_arrays(path: Path, *keys: str) -> list[NDArray[Any]]:
    """The arrays of an ``.npz`` that have these keys."""
    with reporting(path, f"an npz file with {', '.join(keys)}"), np.load(path, allow_pickle=False) as archive:
        return [archive[key] for key in keys]


def read_matrix(path: Path) -> sparse.sparray:
    """A sparse matrix that scipy wrote."""
    with reporting(path, "an npz file of a sparse matrix, as scipy writes it"):
        return sparse.load_npz(path)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    return json.read_json(path, remedy="Download it again.")


def read_links(links: Sequence[Mapping[str, int]]) -> NDArray[np.int32]:
    """Edges ``[2, E]`` from the list that networkx writes: one ``{"source": 0, "target": 1}`` per edge."""
    return np.stack([np.fromiter((link[end] for link in links), np.int32) for end in ("source", "target")])


@contextmanager
def reporting(path: Path, expected: str) -> Iterator[None]:
    """Turn any error inside the block into an `InputError` that names ``path``."""
    try:
        yield
    except InputError as error:
        where = error.where if error.where.startswith(str(path)) else f"{path}, {error.where}"
        raise InputError(where, error.expected, error.found, error.remedy) from error
    except Exception as error:  # a damaged file makes zipfile, zlib, numpy, scipy and json raise almost anything
        found = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise InputError(str(path), expected, found) from error
