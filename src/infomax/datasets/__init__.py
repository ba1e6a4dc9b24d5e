"""Data sets by name: one file per data set, and the table below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from infomax.datasets import debian, generated, heco, planetoid, ppi, reddit
from infomax.datasets.fetch import PublicFile, data_path, obtain
from infomax.datasets.local_files import LocalFiles
from infomax.errors import InputError, shorten, suggest
from infomax.graphs.graph import Graph
from infomax.progress import Progress, silent

__all__ = ["DATASETS", "data_path", "fetch_dataset", "load_dataset"]


class _Dataset(NamedTuple):
    """A data set: where its files come from, and how they are read."""

    description: str
    read: Callable[..., Graph]
    """Makes the graph from the paths of the files, and from the options."""
    public_files: Sequence[PublicFile] = ()
    """Files that are downloaded where they are missing."""
    find_local_files: Callable[[], list[Path]] = list
    """Finds files that a user has downloaded."""
    options: Sequence[str] = ()
    """The names of the options of `read`."""

    def paths(self, progress: Progress) -> list[Path]:
        return [*obtain(self.public_files, progress), *self.find_local_files()]


def _local(description: str, files: LocalFiles) -> _Dataset:
    """A data set whose files the user downloads."""
    return _Dataset(
        f"{description}; files to download yourself", files.read, find_local_files=files.find
    )


_TABLE = {
    "debian": _Dataset(
        "Debian's source packages and their dependencies; included in infomax", debian.read
    ),
    "cora": _Dataset(
        "2,708 papers on machine learning and their citations",
        planetoid.read,
        planetoid.files("cora"),
    ),
    "citeseer": _Dataset(
        "3,327 papers and their citations", planetoid.read, planetoid.files("citeseer")
    ),
    "pubmed": _Dataset(
        "19,717 papers on diabetes and their citations", planetoid.read, planetoid.files("pubmed")
    ),
    "debian-inductive": _Dataset(
        "debian, a fifth of its packages unseen in training", debian.read_inductive
    ),
    "ppi": _local("proteins in 24 human tissues, a graph for each", ppi.FILES),
    "reddit": _local("232,965 posts and who commented", reddit.FILES),
    "heco-acm": _local(
        "4,019 papers, their authors and subjects, as HeCo uses them", heco.files("acm")
    ),
    "heco-dblp": _local(
        "4,057 authors, their papers, conferences and terms, as HeCo uses them", heco.files("dblp")
    ),
    "generated-reddit": _Dataset(
        "a random graph of Reddit's size and degrees, or of any size",
        generated.read,
        options=("scale", "seed", "features", "degree"),
    ),
}

DATASETS = {name: dataset.description for name, dataset in _TABLE.items()}
"""Every name that `load_dataset` knows, with a short description."""


def load_dataset(name: str, progress: Progress = silent, **options: Any) -> Graph:
    """Load a data set as a graph; missing files are downloaded where there is a public source.

    >>> load_dataset("debian")
    Graph(34,003 nodes, 157,410 edges, 3,221 features)

    Args:
        name: a name that ``infomax datasets list`` shows, in upper or lower case.
        progress: called with the number of bytes done and in total.
        options: only of "generated-reddit": ``scale`` (1.0: as many nodes as Reddit, 232,965),
            ``seed``, ``features`` (602) and ``degree``, the mean degree (99.6).
    """
    dataset = _look_up(name)
    for option in options.keys() - set(dataset.options):
        expected = f"one of {', '.join(dataset.options)}" if dataset.options else "none"
        raise InputError(f"options of {name}", expected, shorten(option))
    return dataset.read(*dataset.paths(progress), **options)


def fetch_dataset(name: str, progress: Progress = silent) -> list[Path]:
    """The files of a data set; missing files are downloaded.

    A data set that is included in infomax has none.
    """
    return _look_up(name).paths(progress)


def _look_up(name: str) -> _Dataset:
    """The data set of a name, in upper or lower case."""
    lower_name = name.lower()
    if lower_name not in _TABLE:
        remedy = suggest(lower_name, _TABLE, 1)
        raise InputError("data set", f"one of {', '.join(_TABLE)}", shorten(name), remedy)
    return _TABLE[lower_name]
