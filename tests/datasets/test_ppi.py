"""PPI has the counts the papers print, in either form; what is not known is marked, and never invented."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from infomax.datasets import fetch_dataset, load_dataset
from infomax.datasets.fetch import data_folders
from infomax.errors import InputError
from infomax.graphs.graph import Graph

needs_file = pytest.mark.skipif(
    not (Path(os.environ.get("INFOMAX_DATA", "")) / "ppi" / "ppi.npz").is_file(),
    reason="ppi.npz is not in INFOMAX_DATA",
)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load_dataset("ppi")


@needs_file
def test_golden_counts(graph: Graph) -> None:
    assert (graph.num_nodes, graph.num_features) == (56_944, 50)
    assert graph.num_edges + graph.dropped["self_loops"] == 818_716  # as GraphSAGE counts
    assert (
        graph.part(graph.splits["train"]).num_edges == 613_184
    )  # as PyG counts, without self-loops
    assert len(np.unique(graph.groups)) == 24
    assert {name: mask.sum() for name, mask in graph.splits.items()} == {
        "train": 44_906,
        "validation": 6_514,
        "test": 5_524,
        "seen": 44_906,
    }
    assert (graph.splits["seen"] == graph.splits["train"]).all()
    assert [
        len(np.unique(graph.groups[graph.splits[name]])) for name in ("train", "validation", "test")
    ] == [20, 2, 2]


@needs_file
def test_labels(graph: Graph) -> None:
    functions = graph.labels["functions"]
    assert functions.shape == (56_944, 121)
    unknown = (functions == -1).all(axis=1)
    assert round(1 - unknown.mean(), 4) == 0.9875
    assert set(np.unique(functions[~unknown])) == {0, 1}


@needs_file
def test_features_have_the_mean_they_would_have_if_all_were_known(graph: Graph) -> None:
    archive = np.load(data_folders()[0] / "ppi" / "ppi.npz", allow_pickle=False)
    known = archive["feat_known"]
    assert round(known.mean(), 4) == 0.9929
    assert set(np.unique(graph.features[known])) == {0, 1}
    nothing = ~graph.features[known].any(axis=1)
    assert (
        round((nothing.sum() + (~known).sum()) / graph.num_nodes, 3) == 0.429
    )  # as the paper says
    train = graph.features[graph.splits["train"]].astype(np.float64)
    assert np.allclose(train.sum(axis=0), archive["train_feature_ones_total"], rtol=1e-6)


@needs_file
def test_a_gene_keeps_its_features_and_functions_in_every_tissue(graph: Graph) -> None:
    """A slip of one row would join them to another gene."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(graph.ids):
        rows.setdefault(name.partition("/")[2], []).append(row)
    often = max(rows.values(), key=len)
    assert len(often) == 24
    assert (graph.features[often] == graph.features[often[0]]).all()
    assert (graph.labels["functions"][often] == graph.labels["functions"][often[0]]).all()


SIZES = {"train": 7, "valid": 4, "test": 3}


def write_archive(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """A small archive of four graphs, two to train on; its features and functions as they were before scaling."""
    rng = np.random.default_rng(0)
    features, functions = (rng.random((14, width)) < 0.4 for width in (50, 121))
    features[:, 3] = False
    features[0, 4], features[1:7, 4], features[7:, 4] = False, True, False
    train = features[:7]
    spread = train.std(axis=0)
    scaled = (features - train.mean(axis=0)) / np.where(spread > 0, spread, 1)
    folder.mkdir(parents=True)
    start = 0
    for number, (split, size) in enumerate(SIZES.items()):
        rows = slice(start, start + size)
        links = [{"source": 0, "target": 1}, {"source": 1, "target": 0}, {"source": 2, "target": 2}]
        links += [{"source": size - 1, "target": 2 if number else 3}]
        nodes = [{"id": row} for row in range(size)]
        content = {
            "directed": True,
            "multigraph": False,
            "graph": {},
            "nodes": nodes,
            "links": links,
        }
        (folder / f"{split}_graph.json").write_text(json.dumps(content))
        np.save(folder / f"{split}_feats.npy", scaled[rows])
        np.save(folder / f"{split}_labels.npy", functions[rows].astype(np.int64))
        graph_id = np.array([1, 1, 1, 2, 2, 2, 2]) if number == 0 else np.full(size, number + 2)
        np.save(folder / f"{split}_graph_id.npy", graph_id)
        start += size
    return features, functions


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INFOMAX_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data" / "ppi"


def test_the_archive_of_pyg_and_dgl(folder: Path) -> None:
    features, functions = write_archive(folder)
    graph = load_dataset("ppi")
    assert graph.features.dtype == np.float32
    assert (graph.features == features).all()
    assert (graph.labels["functions"] == functions).all()
    assert graph.groups.tolist() == [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4]
    assert np.argwhere(np.triu(graph.adjacency.toarray())).tolist() == [
        [0, 1],
        [3, 6],
        [7, 8],
        [9, 10],
        [11, 12],
    ]
    splits = {name: np.flatnonzero(mask).tolist() for name, mask in graph.splits.items()}
    train, validation, test = list(range(7)), [7, 8, 9, 10], [11, 12, 13]
    assert splits == {"train": train, "validation": validation, "test": test, "seen": train}
    assert len(fetch_dataset("ppi")) == 12


def test_no_files(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"ppi\.npz; or train_graph\.json, train_feats\.npy.*INFOMAX_DATA"
    ) as caught:
        load_dataset("ppi")
    assert caught.value.where == str(folder)
    with pytest.raises(InputError, match="none of them"):
        fetch_dataset("ppi")


def test_half_an_archive(folder: Path) -> None:
    write_archive(folder)
    for path in folder.glob("t*"):
        path.unlink()
    with pytest.raises(
        InputError, match=r"found only valid_graph\.json, valid_feats\.npy, valid_labels\.npy"
    ):
        load_dataset("ppi")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train_graph.json", b'{"nodes": []}'),
        ("train_graph.json", b"{"),
        ("train_graph.json", b'{"links": [{"source": 0, "target": 99}]}'),
        ("train_graph.json", b'{"links": [{"source": 0, "target": 5}]}'),  # between two graphs
        ("valid_feats.npy", b"\x93NUMPY\x01\x00"),
        ("ppi.npz", b"PK\x03\x04"),
    ],
)
def test_a_damaged_file(folder: Path, name: str, content: bytes) -> None:
    write_archive(folder)
    (folder / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_dataset("ppi")
    assert str(folder) in caught.value.where


def test_a_pickle_is_refused(folder: Path) -> None:
    write_archive(folder)
    np.save(folder / "test_labels.npy", np.array([{}, []], dtype=object))
    with pytest.raises(InputError, match="Python objects") as caught:
        load_dataset("ppi")
    assert caught.value.where == str(folder / "test_labels.npy")
