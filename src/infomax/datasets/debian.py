"""Debian's source packages: who depends on whom, what each says it is, and the section it is kept in.

Made by ``scripts/build_debian.py``, which says how, from the index of Debian 12.15 (bookworm), main, arm64, of 11 July
2026: 34,003 packages, 157,410 dependencies, 3,221 words. 40 sections of 100 packages or more label 33,280 of them: 800
for training (20 a section), 500 for validation, 31,980 for testing.
"""

from importlib.resources import as_file, files

from infomax.graph import Graph
from infomax.io.npz import read_npz


def read() -> Graph:
    """The graph; ids are the names of the packages, the label is ``section``, "" where there is none."""
    with as_file(files("infomax.datasets") / "debian.npz") as path:
        return read_npz(path)
