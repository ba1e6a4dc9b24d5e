"""What a graph folder holds is checked when it is opened: no value leads outside an array, and a change is noticed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from infomax import DGI, Graph, InputError
from infomax.arrays import folder_layout as layout
from infomax.arrays import integrity
from infomax.arrays.hashes import file_hash
from infomax.io.graph_folder import check_folder

pytest.importorskip("pyarrow", reason="a graph folder has a parquet file")

NODES = 300


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph folder with weights, opened by nobody."""
    rng = np.random.default_rng(0)
    graph = Graph.from_arrays(
        rng.integers(0, NODES, (2, 900)), rng.normal(size=(NODES, 8)), weight=rng.random(900) + 0.5,
        labels={"kind": rng.integers(0, 3, NODES)},
    )  # fmt: skip
    graph.save(tmp_path_factory.mktemp("whole") / "g.graph")
    return next(tmp_path_factory.getbasetemp().glob("whole*/g.graph"))


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(whole, tmp_path / "g.graph"))


def put(folder: Path, name: str, position: Any, value: float) -> None:
    """Change a value of an array and what graph.json says of it, as in a folder that is wrong from the start."""
    array = np.load(folder / name, mmap_mode="r+")
    array[position] = value
    array.flush()
    redescribe(folder, name)


def redescribe(folder: Path, name: str) -> None:
    entry = {"bytes": (folder / name).stat().st_size, "sha256": file_hash(folder / name)}
    rewrite(folder, lambda about: about["files"][name].update(entry))


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    about = json.loads((folder / layout.DESCRIPTION).read_text())
    change(about)
    (folder / layout.DESCRIPTION).write_text(json.dumps(about))


def refused(folder: Path, *messages: str) -> None:
    with pytest.raises(InputError) as raised:
        Graph.open(folder)
    for message in (*messages, "Restore a copy, or ", "infomax prepare"):
        assert message in str(raised.value)


VALUES = {
    "a neighbour behind the last": ("indices.npy", 17, NODES),
    "a neighbour far outside": ("indices.npy", -1, 2**30),
    "a negative neighbour": ("indices.npy", 0, -3),
    "rows that begin late": ("indptr.npy", 0, 7),
    "rows that end early": ("indptr.npy", -1, 7),
    "rows that end late": ("indptr.npy", -1, 10**6),
    "rows that descend": ("indptr.npy", 5, 10**6),
    "a descent that overflows": ("indptr.npy", slice(5, 7), [2**63 - 1, -(2**63)]),
    "a negative weight": ("weights.npy", 3, -1.0),
    "an infinite weight": ("weights.npy", 3, np.inf),
    "no weight": ("weights.npy", 3, np.nan),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_that_lead_outside_are_refused(name: str, folder: Path) -> None:
    file, position, value = VALUES[name]
    (folder / integrity.CHECKED).unlink()
    put(folder, file, position, value)
    refused(folder, file)
    assert not (folder / integrity.CHECKED).exists()


def test_a_changed_folder_is_noticed_after_it_was_opened(folder: Path) -> None:
    Graph.open(folder)
    put(folder, "indices.npy", 17, NODES)
    refused(folder, "indices.npy, entry 18", f"from 0 to {NODES - 1}", f"found {NODES}")


def test_values_are_checked_once_in_a_state(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Path] = []
    monkeypatch.setattr(integrity, "check_values", lambda path, *_: checked.append(path))
    monkeypatch.setattr(integrity, "_checked_states", set())
    for _ in range(2):
        Graph.open(folder)
    assert len(checked) == 1
    integrity._checked_states.clear()  # as in another process
    Graph.open(folder)
    assert len(checked) == 1
    os.utime(folder / "indices.npy", ns=(0, 0))
    Graph.open(folder)
    assert len(checked) == 2
    rewrite(folder, lambda about: about.update(infomax="another"))
    Graph.open(folder)
    assert len(checked) == 3
    (folder / integrity.CHECKED).unlink()
    (folder / integrity.CHECKED).mkdir()  # cannot be written
    Graph.open(folder)
    assert len(checked) == 3
    integrity._checked_states.clear()
    for _ in range(2):
        Graph.open(folder)
    assert len(checked) == 4


def test_what_was_checked_when_it_was_written_is_not_checked_again(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "check_values", lambda *_: pytest.fail("checked again"))
    monkeypatch.setattr(integrity, "_checked_states", set())
    Graph.open(whole)


def test_times_alone_do_not_hide_a_change(folder: Path) -> None:
    Graph.open(folder)
    times = (folder / "indices.npy").stat()
    put(folder, "indices.npy", 17, -1)
    os.utime(folder / "indices.npy", ns=(times.st_atime_ns, times.st_mtime_ns))
    refused(folder, "indices.npy, entry 18")


def test_pieces_leave_nothing_out(folder: Path) -> None:
    """Whatever the size of a piece, the first and the last value of each is looked at."""
    starts, neighbours = (
        np.array(np.load(folder / name)) for name in ("indptr.npy", "indices.npy")
    )

    def check(starts: np.ndarray, neighbours: np.ndarray) -> None:
        arrays = {"indptr.npy": starts, "indices.npy": neighbours}
        integrity.check_values(folder, arrays, NODES, values_per_piece=7)

    check(starts, neighbours)
    for entry in (*range(20), len(neighbours) - 1):
        wrong = neighbours.copy()
        wrong[entry] = NODES
        with pytest.raises(InputError, match=f"entry {entry + 1}:"):
            check(starts, wrong)
    for row in (*range(1, 20), len(starts) - 2):
        wrong = starts.copy()
        wrong[row] = len(neighbours) + 1
        with pytest.raises(InputError, match="ascend"):
            check(wrong, neighbours)


@pytest.mark.parametrize("file", ["indptr.npy", "indices.npy", "weights.npy", "features.npy"])
def test_arrays_of_another_type_or_shape_are_refused(file: str, folder: Path) -> None:
    array = np.load(folder / file)
    other = {"int64": np.float64, "int32": np.float32, "float32": np.int32}[str(array.dtype)]
    for changed in (
        array.astype(other),
        array.reshape(-1, 1),
        array[:-1],
        array.astype(array.dtype.newbyteorder()),
    ):
        np.save(folder / file, changed)
        redescribe(folder, file)
        refused(folder, file)


DESCRIPTIONS: dict[str, Callable[[dict[str, Any]], object]] = {
    "directed": lambda about: about.update(directed=True),
    "nodes": lambda about: about.update(nodes=NODES + 1),
    "nodes as text": lambda about: about.update(nodes="many"),
    "no nodes": lambda about: about.update(nodes=-1),
    "edges": lambda about: about.update(edges=None),
    "names": lambda about: about.update(feature_names=5),
    "no names": lambda about: about.update(feature_names=[]),
    "labels": lambda about: about.update(labels="kind"),
    "other labels": lambda about: about.update(labels=["nobody"]),
    "statistics": lambda about: about.update(statistics=[]),
    "statistics of other numbers": lambda about: about["statistics"].update(
        mean=[float("nan")] * 8
    ),
    "files": lambda about: about.update(files=[]),
    "a file": lambda about: about["files"].update({"indices.npy": "all of it"}),
    "a dtype": lambda about: about["files"]["indices.npy"].update(dtype="int64"),
    "a shape": lambda about: about["files"]["indices.npy"].update(shape=[7]),
    "a further file": lambda about: about["files"].update({"../g": {"bytes": 1}}),
    "weights left out": lambda about: about["files"].pop("weights.npy"),
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_description_that_is_not_of_these_files_is_refused(name: str, folder: Path) -> None:
    rewrite(folder, DESCRIPTIONS[name])
    refused(folder)


def test_weights_that_are_gone_are_missed(folder: Path) -> None:
    (folder / "weights.npy").unlink()
    refused(folder, "weights.npy")
    rewrite(folder, lambda about: about["files"].pop("weights.npy"))
    refused(folder, "graph.json")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", "7", '{"format": 1}', '{"format": 1, "files": {}}', "\udcff"]
)
def test_what_is_no_description_is_refused(text: str, folder: Path) -> None:
    (folder / layout.DESCRIPTION).write_text(text, errors="surrogateescape")
    refused(folder, "graph.json")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite_are_named_when_they_are_read(
    value: float, folder: Path
) -> None:
    model = DGI(dim=4, epochs=1).fit(Graph.open(folder))
    put(folder, "features.npy", (40, 3), value)
    graph = Graph.open(folder)
    for read in (DGI(dim=4, epochs=3).fit, model.transform, Graph.loaded):
        with pytest.raises(InputError, match=r"features.npy: expected finite numbers"):
            read(graph)


@pytest.fixture
def sparse_folder(tmp_path: Path) -> Path:
    """A graph folder whose features are stored sparse, 20 of 300 columns in each row."""
    rng = np.random.default_rng(0)
    columns = np.array([np.sort(rng.choice(300, 20, replace=False)) for _ in range(NODES)])
    features = sparse.csr_array(
        (rng.random(20 * NODES) + 0.5, columns.ravel(), 20 * np.arange(NODES + 1))
    )
    Graph.from_arrays(rng.integers(0, NODES, (2, 900)), features.astype(np.float32)).save(
        tmp_path / "s.graph"
    )
    return tmp_path / "s.graph"


SPARSE = {
    "a column behind the last": ("feature_indices.npy", 17, 300),
    "a negative column": ("feature_indices.npy", 0, -1),
    "rows that descend": ("feature_indptr.npy", 5, 10**6),
    "rows that end early": ("feature_indptr.npy", -1, 7),
}


@pytest.mark.parametrize("name", SPARSE)
def test_columns_of_sparse_features_that_lead_outside_are_refused(
    name: str, sparse_folder: Path
) -> None:
    file, position, value = SPARSE[name]
    put(sparse_folder, file, position, value)
    refused(sparse_folder, file)


@pytest.mark.parametrize("file", ["feature_indptr.npy", "feature_indices.npy"])
def test_sparse_features_need_all_of_their_files(file: str, sparse_folder: Path) -> None:
    (sparse_folder / file).unlink()
    refused(sparse_folder, file)
    rewrite(sparse_folder, lambda about: about["files"].pop(file))
    refused(sparse_folder)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_sparse_features_that_are_not_finite_are_named_when_they_are_read(
    value: float, sparse_folder: Path
) -> None:
    model = DGI(dim=4, epochs=1).fit(Graph.open(sparse_folder))
    put(sparse_folder, "features.npy", 20 * 40 + 3, value)
    graph = Graph.open(sparse_folder)
    for read in (DGI(dim=4, epochs=3).fit, model.transform, Graph.loaded):
        with pytest.raises(InputError, match=r"features.npy: expected finite numbers"):
            read(graph)


def test_whole_hashes_are_compared_when_asked_for(folder: Path) -> None:
    check_folder(folder)
    rewrite(folder, lambda about: about["files"]["features.npy"].update(sha256="0"))
    with pytest.raises(
        InputError, match=r"features.npy: expected the file that graph.json describes"
    ):
        check_folder(folder)


def test_a_footer_that_is_no_text_is_refused(folder: Path) -> None:
    """The name of a column in the footer, in bytes that are no UTF-8, with the hash that fits them."""
    content = (folder / layout.NODES).read_bytes()
    (folder / layout.NODES).write_bytes(content.replace(b"label:kind", b"label:k\xff\xfed"))
    redescribe(folder, layout.NODES)
    refused(folder, layout.NODES)
