"""Build the graph ``debian`` from apt's index of packages. The same index gives the same bytes.

    python scripts/build_debian.py [PACKAGES] [--out debian.npz]

Nodes: source packages, with their names as ids. A source package stands for all binary packages built from it.
Edges: undirected; two sources are joined if a binary package of one has a binary package of the other in its Depends.
    Alternatives (``a | b``) count, and so do virtual names that only one source provides: Rust, Haskell and OCaml
    packages depend on each other by such names, and without them 1,367 of the 1,504 Rust packages would be isolated. A
    name that several sources provide (``mail-transport-agent``) is ignored. Pre-Depends would add 0.4 % of edges, most
    of them to two packages; Recommends are not requirements. Neither is used.
Features: binary; the words of the short descriptions that occur in at least 8 sources and at most 8 % of them.
Label ``section``: the archive's section, see `choose_section`; unknown ("") in sections with fewer than 100 sources.
Splits: 20 nodes per section for training, 500 for validation, the other labelled nodes for testing, see `split`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import lzma
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.npz import write_npz

LISTS = Path("/var/lib/apt/lists")
OUT = Path(__file__).parents[1] / "src/infomax/datasets/debian.npz"

NAME = re.compile(r"(?:^|[,|])\s*([^\s,|(:]+)")  # foo and bar in "foo:any (>= 1.2) | bar"
WORD = r"[a-z][a-z+]{2,}"  # three letters or more; c++ is a word
LEAST_SOURCES, LARGEST_SHARE = 8, 0.08
LEAST_LABELLED, TRAIN, VALIDATION, SEED = 100, 20, 500, 0

# Sections of accompanying packages, which say little about the source; the least informative first.
ACCOMPANIMENTS = ("doc", "debug", "oldlibs", "libdevel", "libs")


class Package(NamedTuple):
    """A binary package."""

    name: str
    source: str
    depends: list[str]
    provides: list[str]
    section: str
    description: str


def find_index(lists: Path = LISTS) -> Path:
    """Find the index of the main archive among apt's lists."""
    found = sorted(lists.glob("*_main_binary-*_Packages*"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise InputError(
            str(lists),
            "one index *_main_binary-*_Packages",
            names,
            "Run apt update, or name the index.",
        )
    return found[0]


def read_lines(path: Path) -> list[str]:
    """Read the lines of an index, plain or compressed."""
    if not path.is_file():
        raise InputError(str(path), "an index of packages", "no such file")
    if path.suffix == ".lz4":  # the format of apt's own lists, which apt can decompress
        command = ["/usr/lib/apt/apt-helper", "cat-file", str(path)]
        return subprocess.run(
            command, check=True, capture_output=True, encoding="utf-8"
        ).stdout.split("\n")
    decompress = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, bytes)
    return decompress(path.read_bytes()).decode().split("\n")


def parse(lines: Iterable[str]) -> Iterator[Package]:
    """Parse the packages of an index: lines ``Name: value``, and an empty line after each package."""
    fields: dict[str, str] = {}
    for line in [*lines, ""]:
        name, colon, value = line.partition(": ")
        if colon and not name.startswith(" "):
            fields[name] = value
        elif not line and fields:
            yield Package(
                name=fields["Package"],
                source=fields.get("Source", fields["Package"]).split()[
                    0
                ],  # "Source: glibc (2.36-9)"
                depends=NAME.findall(fields.get("Depends", "")),
                provides=NAME.findall(fields.get("Provides", "")),
                section=fields["Section"].split("/")[-1],  # "contrib/net"
                description=fields["Description"],
            )
            fields = {}


def choose_section(sections: Iterable[str]) -> str:
    """The section of a source: the most frequent among its binaries, without accompaniments if others remain."""
    counts = Counter(sections)
    for accompaniment in ACCOMPANIMENTS:
        if len(counts) > 1:
            del counts[accompaniment]
    return min(counts, key=lambda section: (-counts[section], section))


def split(ids: list[str], sections: NDArray[np.object_]) -> dict[str, NDArray[np.bool_]]:
    """Split the labelled nodes by a hash of seed and name; masks ``[N]``.

    Unlike a random generator, a hash does not depend on the version of a library, and hardly on the release.
    """
    labelled = [row for row, section in enumerate(sections) if section]
    labelled.sort(key=lambda row: hashlib.sha256(f"{SEED}/{ids[row]}".encode()).digest())
    seen: Counter[str] = Counter()
    train: list[int] = []
    others: list[int] = []
    for row in labelled:
        seen[sections[row]] += 1
        (train if seen[sections[row]] <= TRAIN else others).append(row)
    parts = {"train": train, "validation": others[:VALIDATION], "test": others[VALIDATION:]}
    return {name: np.isin(np.arange(len(ids)), rows) for name, rows in parts.items()}


def depend(packages: list[Package], row: dict[str, int]) -> NDArray[np.int64]:
    """Edges ``[2, E]`` from the row of each source to those of the sources it depends on."""
    providers = defaultdict(set)
    for package in packages:
        for name in package.provides:
            providers[name].add(row[package.source])
    home = {name: min(rows) for name, rows in providers.items() if len(rows) == 1}
    home |= {package.name: row[package.source] for package in packages}
    edges = [
        (row[package.source], home[name])
        for package in packages
        for name in package.depends
        if name in home
    ]
    return np.array(edges, dtype=np.int64).reshape(-1, 2).T


def build(packages: list[Package]) -> Graph:
    """The graph of the source packages."""
    binaries = defaultdict(list)
    for package in packages:
        binaries[package.source].append(package)
    ids = sorted(binaries)
    words = CountVectorizer(
        token_pattern=WORD, binary=True, min_df=LEAST_SOURCES, max_df=LARGEST_SHARE
    )
    features = words.fit_transform(
        "\n".join(package.description for package in binaries[source]) for source in ids
    )
    sections = [choose_section(package.section for package in binaries[source]) for source in ids]
    sizes = Counter(sections)
    labels = np.array(
        [section if sizes[section] >= LEAST_LABELLED else "" for section in sections], dtype=object
    )
    return Graph.from_arrays(
        depend(packages, {source: row for row, source in enumerate(ids)}),
        features,
        ids=ids,
        feature_names=words.get_feature_names_out().tolist(),
        labels={"section": labels},
        splits=split(ids, labels),
    )


def main() -> None:
    """Build the graph and write it."""
    parser = argparse.ArgumentParser(
        description="Build the graph `debian` from apt's index of packages."
    )
    parser.add_argument(
        "packages", nargs="?", type=Path, help="Packages, plain, .gz, .xz or .lz4 (default: apt's)"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    try:
        graph = build(list(parse(read_lines(arguments.packages or find_index()))))
        write_npz(graph, arguments.out)
        np.savez_compressed(arguments.out, **np.load(arguments.out))
    except InputError as error:
        sys.exit(str(error))
    counts = ", ".join(f"{int(mask.sum()):,} {name}" for name, mask in graph.splits.items())
    sections = set(graph.labels["section"]) - {""}
    print(f"{graph}; {len(sections)} sections; {counts}; {arguments.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
