"""HeCo's ACM and DBLP: who is joined to whom, and which nodes are in which split."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from infomax.arrays.structural_features import structural_features_named
from infomax.datasets import load_dataset
from infomax.errors import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four papers, three authors, two subjects, in HeCo's files."""
    monkeypatch.setenv("INFOMAX_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "data" / "heco" / "acm"
    path.mkdir(parents=True)
    sparse.save_npz(path / "p_feat.npz", sparse.csr_matrix(np.arange(20.0).reshape(4, 5)))
    (path / "pa.txt").write_text("0\t2\n1\t0\n2\t1\n3\t1\n3\t2\n")
    (path / "ps.txt").write_text("0\t1\n1\t0\n2\t0\n3\t0\n")
    np.save(path / "labels.npy", np.array([0.0, 1, 1, 2]))
    for count in (20, 40, 60):
        for part, row in (("train", 0), ("val", 3), ("test", 1)):
            np.save(
                path / f"{part}_{count}.npy",
                np.array([row, count // 40 + 1][: 1 + (part == "test")]),
            )
    return path


def test_the_files_are_one_graph_of_three_types(folder: Path) -> None:
    graph = load_dataset("heco-acm")
    assert (graph.node_type, graph.types, graph.num_nodes) == (
        "paper",
        ("author", "paper", "subject"),
        4,
    )
    joined = {
        (one.source, one.name, one.target): one.edges.matrix().toarray() for one in graph.relations
    }
    assert joined["paper", "by", "author"].tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert joined["paper", "about", "subject"].tolist() == [[0, 1], [1, 0], [1, 0], [1, 0]]
    assert (graph.table[np.arange(4)] == np.arange(20).reshape(4, 5)).all()
    assert [
        structural_features_named(graph.nodes[kind].feature_names)
        for kind in graph.types
        if kind != graph.node_type
    ] == [
        "positions",
        "positions",
    ]
    assert graph.labels["class"].tolist() == [0, 1, 1, 2]
    assert graph.splits["validation_40"].tolist() == [False, False, False, True]
    assert graph.splits["test_40"].tolist() == [False, True, True, False]


def test_a_file_that_is_not_there_is_named(folder: Path) -> None:
    (folder / "ps.txt").unlink()
    with pytest.raises(InputError, match=r"ps\.txt"):
        load_dataset("heco-acm")


def test_a_damaged_file_is_named(folder: Path) -> None:
    (folder / "ps.txt").write_text("0\tx\n")
    with pytest.raises(InputError, match=r"ps\.txt.*two columns of row numbers"):
        load_dataset("heco-acm")
