"""The citation graphs have the counts everybody finds in them, and a pickle that wants more is refused."""

import os
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from infomax.datasets import load_dataset, planetoid
from infomax.datasets.fetch import data_folders
from infomax.errors import InputError

needs_files = pytest.mark.skipif(
    not (Path(os.environ.get("INFOMAX_DATA", "")) / "planetoid").is_dir(),
    reason="the Planetoid files are not in INFOMAX_DATA",
)

#            nodes, edges, features, classes, isolated, train, all-zero rows
GOLDEN = {
    "cora": (2_708, 5_278, 1_433, 7, 0, 140, 0),
    "citeseer": (3_327, 4_552, 3_703, 6, 48, 120, 15),
    "pubmed": (19_717, 44_324, 500, 3, 0, 60, 0),
}


@needs_files
@pytest.mark.parametrize("name", GOLDEN)
def test_golden_counts(name: str) -> None:
    nodes, edges, features, classes, isolated, train, wordless = GOLDEN[name]
    graph = load_dataset(name)
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (nodes, edges, features)
    assert not graph.directed
    assert not graph.weighted
    assert (np.diff(graph.adjacency.indptr) == 0).sum() == isolated
    assert (np.diff(graph.features.indptr) == 0).sum() == wordless
    assert graph.features.dtype == np.float32
    assert graph.ids.tolist() == list(range(nodes))
    labels = graph.labels["class"]
    assert labels.dtype == np.int64
    assert set(labels.tolist()) - {-1} == set(range(classes))
    assert (labels == -1).sum() == wordless
    assert {split: mask.sum() for split, mask in graph.splits.items()} == {
        "train": train,
        "validation": 500,
        "test": 1000,
    }
    assert np.sum(list(graph.splits.values()), axis=0).max() == 1
    assert np.bincount(labels[graph.splits["train"]]).tolist() == [20] * classes
    assert (labels[graph.splits["test"]] >= 0).all()


@needs_files
def test_features_are_as_in_the_files() -> None:
    graph = load_dataset("cora")
    raw = planetoid.unpickle(data_folders()[0] / "planetoid/ind.cora.x")
    rows = graph.features[graph.splits["train"]]
    assert np.array_equal(rows.data, raw.data)
    assert np.array_equal(np.diff(rows.indptr), np.diff(raw.indptr))


@needs_files
def test_test_papers_get_their_own_words_and_citations() -> None:
    """The files list the test papers in another order than the graph: a slip there joins words to the wrong paper.

    A paper's words are like those it cites: linked papers share more of them than papers drawn at random.
    """
    graph = load_dataset("cora")
    ends = graph.adjacency.tocoo()
    kept = graph.splits["test"][ends.row]
    left, right = graph.features[ends.row[kept]], graph.features[ends.col[kept]]
    shuffled = graph.features[np.random.default_rng(0).permutation(ends.col[kept])]
    assert left.multiply(right).sum() > 1.8 * left.multiply(shuffled).sum()
    labels = graph.labels["class"]
    assert (labels[ends.row] == labels[ends.col])[kept].mean() > 0.75


class Attack:
    """Unpickled without care, it calls ``function(*arguments)``."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


ATTACKS = {
    "os.system": lambda shell: pickle.dumps(Attack(os.system, shell)),
    "deep inside": lambda shell: pickle.dumps(
        [1, {"x": Attack(subprocess.call, shell.split())}], protocol=2
    ),
    "getattr": lambda shell: (
        f"c__builtin__\ngetattr\n(c__builtin__\n__import__\n(S'os'\ntRS'system'\ntR(S'{shell}'\ntR.".encode()
    ),
    "dotted name": lambda shell: (
        b"\x80\x04\x8c\x02os\x8c\x0epath.os.system\x93\x8c"
        + bytes([len(shell)])
        + shell.encode()
        + b"\x85R."
    ),
    "old instance": lambda shell: f"(S'{shell}'\nios\nsystem\n.".encode(),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_malicious_pickle_is_refused_and_nothing_runs(
    attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = ATTACKS[attack]("touch trace")
    path = tmp_path / "ind.cora.x"
    path.write_bytes(content)
    with pytest.raises(InputError, match="asks for") as caught:
        planetoid.unpickle(path)
    assert caught.value.where == str(path)
    assert not (tmp_path / "trace").exists()
    pickle.loads(content)
    assert (tmp_path / "trace").exists()  # the attack was real


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x02]q\x00(K\x01", b"Pid\n."])
def test_a_damaged_pickle(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ind.cora.x"
    path.write_bytes(content)
    with pytest.raises(InputError, match="expected a pickle"):
        planetoid.unpickle(path)


def test_the_hash_is_checked_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INFOMAX_DATA", str(tmp_path))
    for file in planetoid.files("cora"):
        (tmp_path / Path(file.path).name).write_bytes(bytes(file.size))
    with pytest.raises(InputError, match="SHA-256"):
        load_dataset("cora")


def test_every_file_is_fetched_over_tls() -> None:
    assert all(file.url.startswith("https://") for name in GOLDEN for file in planetoid.files(name))
