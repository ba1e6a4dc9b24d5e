"""Data sets whose files the user downloads: find the files and read them, without unpickling anything."""

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

    Args:
        folder: its name.
        source: tells the user where to download them.
        layouts: for each published form of the data set, the names of its files and the function that reads them.
    """

    folder: str
    source: str
    layouts: Mapping[tuple[str, ...], Callable[..., Graph]]

    def find(self) -> list[Path]:
        """The files of the first layout that is complete."""
        for place in data_folders():
            for names in self.layouts:
                paths = [place / self.folder / name for name in names]
                if all(path.is_file() for path in paths):
                    return paths
        place = data_path() / self.folder
        there = [name for names in self.layouts for name in names if (place / name).is_file()]
        raise InputError(
            str(place),
            "; or ".join(", ".join(names) for names in self.layouts),
            f"only {', '.join(there)}" if there else "none of them",
            f"Put them there, or set INFOMAX_DATA to the folder that holds {self.folder}/. {self.source}",
        )

    def read(self, *paths: Path) -> Graph:
        """The graph in the files that `find` returned."""
        folder = paths[0].parent
        with within(folder), readable(folder, "the files as they were published"):
            return self.layouts[tuple(path.name for path in paths)](*paths)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    return json.read_json(path, remedy="Download it again.")


def read_links(links: Sequence[Mapping[str, int]]) -> NDArray[np.int32]:
    """Edges ``[2, E]`` from the list that networkx writes: one ``{"source": 0, "target": 1}`` per edge."""
    return np.stack(
        [np.fromiter((link[end] for link in links), np.int32) for end in ("source", "target")]
    )
