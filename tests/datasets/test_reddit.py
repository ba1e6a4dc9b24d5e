"""The three forms of Reddit give one graph."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

from infomax.datasets import load_dataset
from infomax.errors import InputError

N = 12


class Truth(NamedTuple):
    adjacency: np.ndarray
    features: np.ndarray
    community: np.ndarray
    part: np.ndarray  # 1 training, 2 validation, 3 test


@pytest.fixture
def truth() -> Truth:
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((N, N)) < 0.3, 1)
    return Truth(
        upper | upper.T, rng.normal(size=(N, 5)), rng.integers(0, 41, N), 1 + np.arange(N) % 3
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INFOMAX_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "data" / "reddit"
    path.mkdir(parents=True)
    return path


def write_reddit2(folder: Path, truth: Truth) -> None:
    sparse.save_npz(folder / "adj_full.npz", sparse.csr_matrix(truth.adjacency))
    np.save(folder / "feats.npy", truth.features)
    classes = {str(row): int(truth.community[row]) for row in reversed(range(N))}
    (folder / "class_map.json").write_text(json.dumps(classes))
    role = {
        key: np.flatnonzero(truth.part == part).tolist()
        for part, key in enumerate(("tr", "va", "te"), 1)
    }
    (folder / "role.json").write_text(json.dumps(role))


def write_reddit(folder: Path, truth: Truth) -> None:
    sparse.save_npz(folder / "reddit_graph.npz", sparse.coo_matrix(truth.adjacency.astype(float)))
    # Some copies number the posts with objects, which are never looked at.
    ids = np.array([str(row) for row in range(N)], dtype=object)
    np.savez(
        folder / "reddit_data.npz",
        feature=truth.features,
        label=truth.community,
        node_types=truth.part,
        node_ids=ids,
        allow_pickle=True,
    )


def write_graphsage(folder: Path, truth: Truth) -> None:
    """Feature rows in another order than the nodes, and two of them of posts that are not in the graph."""
    place = np.random.default_rng(1).permutation(N + 2)
    feats = np.full((N + 2, 5), np.nan)
    feats[place[:N]] = truth.features
    np.save(folder / "reddit-feats.npy", feats)
    names = [f"2h{row:x}" for row in range(N + 2)]
    nodes = [
        {"test": bool(truth.part[row] == 3), "id": names[row], "val": bool(truth.part[row] == 2)}
        for row in range(N)
    ]
    pairs = np.argwhere(np.triu(truth.adjacency)).tolist()
    links = [{"test_removed": False, "source": a, "target": b} for a, b in pairs]
    graph = {"directed": False, "graph": {}, "multigraph": False, "nodes": nodes, "links": links}
    (folder / "reddit-G.json").write_text(json.dumps(graph))
    (folder / "reddit-id_map.json").write_text(
        json.dumps(dict(zip(names, place.tolist(), strict=True)))
    )
    classes = {names[row]: int(truth.community[row]) for row in range(N)}
    (folder / "reddit-class_map.json").write_text(json.dumps(classes))


@pytest.mark.parametrize("write", [write_reddit2, write_reddit, write_graphsage])
def test_three_forms_of_one_graph(folder: Path, truth: Truth, write: object) -> None:
    write(folder, truth)
    graph = load_dataset("reddit")
    assert (graph.adjacency.toarray() == truth.adjacency).all()
    assert graph.features.dtype == np.float32
    assert np.allclose(graph.features, truth.features)
    assert (graph.labels["community"] == truth.community).all()
    assert list(graph.splits) == ["train", "validation", "test", "seen"]
    for name, part in {"train": 1, "validation": 2, "test": 3, "seen": 1}.items():
        assert (graph.splits[name] == (truth.part == part)).all()


def test_no_files(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"adj_full\.npz, feats\.npy, class_map\.json, role\.json; or"
    ) as told:
        load_dataset("reddit")
    assert told.value.where == str(folder)
    assert "GraphSAGE" in told.value.remedy


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("adj_full.npz", b""),
        ("feats.npy", b"not numpy"),
        ("class_map.json", b'{"0": 1}'),
        ("role.json", b'{"tr": [0], "va": [1]}'),
        ("role.json", b'{"tr": '),
    ],
)
def test_a_damaged_file(folder: Path, truth: Truth, name: str, content: bytes) -> None:
    write_reddit2(folder, truth)
    (folder / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_dataset("reddit")
    assert str(folder) in caught.value.where


def test_a_pickle_is_refused(folder: Path, truth: Truth) -> None:
    write_reddit(folder, truth)
    np.savez(
        folder / "reddit_data.npz", feature=np.array([{}], dtype=object), label=[0], node_types=[1]
    )
    with pytest.raises(InputError, match="allow_pickle=False"):
        load_dataset("reddit")
