"""Data sets whose files the user downloads: find the files and read them, without unpickling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.datasets.fetch import data_folders, data_path
from infomax.errors import InputError, readable, within
from infomax.graphs.graph import Graph
from infomax.io import json


@dataclass(frozen=True)
class LocalFiles:
    """The files of a data set, which the user puts into ``folder`` inside one of the data folders.

    Attributes:
        folder: its name.
        source: tells the user where to download them.
        layouts: for each published form of the data set, the names of its files and the function
            that reads them.
    """

    folder: str
    source: str
    layouts: Mapping[tuple[str, ...], Callable[..., Graph]]

    def find(self) -> list[Path]:
        """The files of the first layout that is complete."""
        for data_folder in data_folders():
            for file_names in self.layouts:
                paths = [data_folder / self.folder / name for name in file_names]
                if all(path.is_file() for path in paths):
                    return paths

        # A layout of which some files are missing is named, so that a user sees which.
        folder = data_path() / self.folder
        existing_files = [
            name for file_names in self.layouts for name in file_names if (folder / name).is_file()
        ]
        expected = "; or ".join(", ".join(file_names) for file_names in self.layouts)
        found = f"only {', '.join(existing_files)}" if existing_files else "none of them"
        remedy = (
            f"Put them there, or set INFOMAX_DATA to the folder that holds {self.folder}/. "
            f"{self.source}"
        )
        raise InputError(str(folder), expected, found, remedy)

    def read(self, *paths: Path) -> Graph:
        """The graph in the files that `find` returned."""
        folder = paths[0].parent
        read_layout = self.layouts[tuple(path.name for path in paths)]
        with within(folder), readable(folder, "the files as they were published"):
            return read_layout(*paths)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    return json.read_json(path, remedy="Download it again.")


def read_networkx_edges(links: Sequence[Mapping[str, int]]) -> NDArray[np.int32]:
    """Edges ``[2, E]`` from the list that NetworkX writes: ``{"source": 0, "target": 1}`` each."""
    sources = np.fromiter((link["source"] for link in links), np.int32)
    targets = np.fromiter((link["target"] for link in links), np.int32)
    return np.stack([sources, targets])
