"""The graph that comes with the package, and the script that builds it."""

import gzip
import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from infomax.datasets import load_dataset
from infomax.errors import InputError
from infomax.graphs.graph import Graph


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load_dataset("debian")


def joined(graph: Graph, a: str, b: str) -> bool:
    return bool(graph.adjacency[row(graph, a), row(graph, b)])


def row(graph: Graph, name: str) -> int:
    return graph.ids.tolist().index(name)


def test_golden_counts(graph: Graph) -> None:
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (34_003, 157_410, 3_221)
    assert (np.diff(graph.adjacency.indptr) == 0).sum() == 1_600
    assert graph.features.nnz == 172_945
    assert (graph.features.data == 1).all()


def test_words_are_neither_rare_nor_everywhere(graph: Graph) -> None:
    packages = np.bincount(graph.features.indices, minlength=graph.num_features)
    assert packages.min() >= 8
    assert packages.max() <= 0.08 * graph.num_nodes
    numpy = graph.features[[row(graph, "numpy")]].indices
    assert {"fast", "array", "facility"} <= {graph.feature_names[word] for word in numpy}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("numpy", "scipy"),
        ("pandas", "numpy"),
        ("vim", "ncurses"),
        ("git", "curl"),
        ("rust-serde-json", "rust-serde"),  # by a virtual name
        ("haskell-aeson", "haskell-vector"),
    ],
)
def test_known_dependencies(graph: Graph, a: str, b: str) -> None:
    assert joined(graph, a, b)
    assert joined(graph, b, a)


def test_strangers(graph: Graph) -> None:
    assert not joined(graph, "vim", "numpy")


def test_sections(graph: Graph) -> None:
    section = dict(zip(graph.ids, graph.labels["section"], strict=True))
    assert section["numpy"] == "python"
    assert section["vim"] == "editors"
    assert section["zlib"] == "libs"
    names, sizes = np.unique(graph.labels["section"].astype(str), return_counts=True)
    assert sum(names != "") == 40
    assert sizes[names != ""].min() >= 100


def test_splits(graph: Graph) -> None:
    assert {name: mask.sum() for name, mask in graph.splits.items()} == {
        "train": 800,
        "validation": 500,
        "test": 31_980,
    }
    labelled = graph.labels["section"] != ""
    assert (
        np.sum(list(graph.splits.values()), axis=0) == labelled
    ).all()  # each labelled node in exactly one
    _, sizes = np.unique(
        graph.labels["section"][graph.splits["train"]].astype(str), return_counts=True
    )
    assert sizes.tolist() == [20] * 40


def test_it_loads_in_a_blink(graph: Graph) -> None:
    """Nothing is done for one node at a time: there are fewer calls of functions than nodes."""
    calls = Counter[str]()
    sys.setprofile(lambda frame, event, argument: calls.update([event]))
    try:
        load_dataset("debian")
    finally:
        sys.setprofile(None)
    assert 0 < calls["call"] < graph.num_nodes


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "build_debian.py"
    spec = importlib.util.spec_from_file_location("build_debian", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


INDEX = """\
Package: editor
Depends: libtext1 (>= 1.2) | libtext0, python3:any, feature-api, mail-agent
Description: Edit text: fast
Section: contrib/editors

Package: editor-doc
Source: editor (1.0-2)
Depends: editor
Description: Edit text (manual)
Tag: role::documentation,
 made-of::html
Section: doc

Package: libtext1
Source: text
Provides: feature-api (= 3), mail-agent
Description: Text in C++
Section: libs

Package: libtext-dev
Source: text
Description: Text in C++ (headers)
Section: libdevel

Package: mailer
Provides: mail-agent
Description: Post
Section: mail
"""


@pytest.fixture
def tiny(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Graph:
    for name, value in {
        "LEAST_SOURCES": 1,
        "LARGEST_SHARE": 1.0,
        "LEAST_LABELLED": 1,
        "TRAIN": 1,
    }.items():
        monkeypatch.setattr(script, name, value)
    return script.build(list(script.parse(INDEX.split("\n"))))


def test_a_tiny_index(tiny: Graph) -> None:
    assert tiny.ids.tolist() == ["editor", "mailer", "text"]
    # By name and by the virtual name that only text provides; not by the one that two provide.
    assert tiny.num_edges == 1
    assert joined(tiny, "editor", "text")
    assert tiny.feature_names == ("c++", "edit", "fast", "headers", "manual", "post", "text")
    assert tiny.features.toarray()[0].tolist() == [0, 1, 1, 0, 1, 0, 1]
    assert tiny.labels["section"].tolist() == ["editors", "mail", "libs"]


def test_the_index_may_be_compressed(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "Packages.gz").write_bytes(gzip.compress(INDEX.encode()))
    assert script.read_lines(tmp_path / "Packages.gz") == INDEX.split("\n")


def test_the_index_is_looked_for(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="apt update"):
        script.find_index(tmp_path)
    index = tmp_path / "mirror_dists_stable_main_binary-amd64_Packages.lz4"
    index.touch()
    assert script.find_index(tmp_path) == index


def test_the_split_depends_on_names_alone(script: ModuleType, graph: Graph) -> None:
    again = script.split(graph.ids.tolist(), graph.labels["section"])
    assert all((again[name] == mask).all() for name, mask in graph.splits.items())
