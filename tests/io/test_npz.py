"""A graph comes back from its npz as it went in, and a bad npz is told apart."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.graphs.reading import read_graph
from infomax.io.archive import write_arrays
from infomax.io.npz import read_npz, write_npz


def same(a: Graph, b: Graph) -> bool:
    return (
        a.directed == b.directed
        and a.adjacency.shape == b.adjacency.shape
        and (a.adjacency != b.adjacency).nnz == 0
        and sparse.issparse(a.features) == sparse.issparse(b.features)
        and a.features.shape == b.features.shape
        and np.array_equal(dense(a), dense(b))
        and a.ids.dtype == b.ids.dtype
        and a.ids.tolist() == b.ids.tolist()
        and a.feature_names == b.feature_names
        and np.array_equal(a.groups, b.groups)
        and all(same_columns(getattr(a, kind), getattr(b, kind)) for kind in ("labels", "splits"))
    )


def dense(graph: Graph) -> np.ndarray:
    return graph.features.toarray() if sparse.issparse(graph.features) else graph.features


def same_columns(a: dict, b: dict) -> bool:
    return list(a) == list(b) and all(
        a[k].dtype == b[k].dtype and np.array_equal(a[k], b[k]) for k in a
    )


def example(**changes) -> Graph:
    arguments = {
        "edges": [[0, 1, 2], [1, 2, 3]],
        "features": sparse.csr_array(np.eye(4, 7)),
        "ids": ["", "x" * 10_000, "日本\x00", "a,\n\"b'"],
        "labels": {
            "class": np.array([0, -1, 2, 1]),
            "odd:name.utf8": np.array(["", "α", "b", ""], dtype=object),
            "many": np.eye(4, 3, dtype=np.uint8),
        },
        "splits": {"train": [True, False, False, True], "test": [False, True, False, False]},
    }
    return Graph.from_arrays(**(arguments | changes))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.npz"


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"weight": [0.5, 2, 1e-30]},
        {"directed": True, "edges": [[0, 1, 3], [1, 0, 0]], "weight": [1, 3, 2]},
        {"features": np.random.default_rng(0).normal(size=(4, 3))},
        {"features": sparse.csr_array(np.diag([0.5, 0, 3, 1]))},
        {"features": sparse.csr_array((4, 70_000))},
        {"features": None},
        {"ids": [7, -3, 2**62, 0]},
        {"edges": [[], []]},
        {"edges": [[0, 2], [1, 3]], "groups": [-1, -1, 7, 7]},
    ],
)
def test_a_round_trip_changes_nothing(path: Path, changes: dict, compress: bool) -> None:
    graph = example(**changes)
    write_npz(graph, path)
    if compress:
        np.savez_compressed(path, **np.load(path))
    assert same(read_npz(path), graph)


@settings(max_examples=50, deadline=None)
@given(ids=st.lists(st.text(st.characters(codec=None), max_size=20), min_size=1, unique=True))
def test_text_survives(ids: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("text") / "graph.npz"
    labels = np.array(ids[::-1], dtype=object)
    write_npz(Graph.from_arrays([[], []], ids=ids, labels={"kind": labels}), path)
    graph = read_npz(path)
    assert graph.ids.tolist() == ids
    assert graph.labels["kind"].tolist() == ids[::-1]


def test_the_file_stays_small(path: Path) -> None:
    ids = [str(row) for row in range(999)] + ["long" * 10_000]
    graph = Graph.from_arrays([[], []], sparse.csr_array(np.ones((1000, 50))), ids=ids)
    write_npz(graph, path)
    # 50,000 ones take a byte each (their column) and no data; one long id does not widen the others.
    assert path.stat().st_size < 50_000 + 45_000 + 10_000


def test_the_same_graph_gives_the_same_bytes(path: Path) -> None:
    write_npz(example(), path)
    first = path.read_bytes()
    write_npz(read_npz(path), path)
    assert path.read_bytes() == first


def test_written_by_hand(path: Path) -> None:
    np.savez(
        path,
        edges=np.array([[0, 0], [1, 2]]),
        features=np.arange(6.0).reshape(3, 2),
        ids=np.array(["vim", "emacs", "nano"]),
        feature_names=np.array(["size", "age"]),
        **{"label:kind": np.array(["modal", "", "plain"])},
    )
    graph = read_npz(path)
    assert (graph.num_nodes, graph.num_edges, graph.directed) == (3, 2, False)
    assert graph.ids.tolist() == ["vim", "emacs", "nano"]
    assert graph.labels["kind"].tolist() == ["modal", "", "plain"]
    assert graph.feature_names == ("size", "age")
    assert graph.splits == {}


EDGES = np.array([[0], [1]])


@pytest.mark.parametrize(
    ("arrays", "culprit"),
    [
        ({}, "edges"),
        ({"data": np.ones(3)}, "data"),
        ({"edges": EDGES, "feature": np.ones((2, 2))}, "feature"),
        ({"edges": EDGES + 0.5}, "edges"),
        (
            {"edges": EDGES, "ids": np.array(["a", "b", "c"]), "weight": np.array(["heavy"])},
            "weight",
        ),
        ({"edges": EDGES, "ids": np.array([{}, []], dtype=object)}, "ids"),
        ({"edges": EDGES, "ids": np.array(["a", "a"])}, "ids"),
        ({"edges": EDGES + 5, "features": np.ones((2, 2))}, "edges"),
        ({"edges": EDGES, "features": np.array([[1.0], [np.nan]])}, "features"),
        ({"edges": EDGES, "features.indices": np.array([0, 9])}, "features"),
        (
            {
                "edges": EDGES,
                "features.indices": np.array([0, 9]),
                "features.indptr": np.array([0, 1, 2]),
                "features.shape": np.array([2, 3]),
            },
            "features",
        ),
        ({"edges": EDGES, "utf8:ids": np.frombuffer(b"a\xffb", dtype=np.uint8)}, "utf8:ids"),
        ({"edges": EDGES, "utf8:ids": np.frombuffer(b"\xc3\xffb\xff", dtype=np.uint8)}, "utf8:ids"),
        ({"utf8:edges": np.frombuffer(b"a\xffb\xff", dtype=np.uint8)}, "edges"),
        ({"edges": EDGES, "split:train": np.array([1, 2])}, "train"),
        ({"edges": EDGES, "label:kind": np.array([1, 0, 3])}, "kind"),
        ({"edges": EDGES, "groups": np.array([0.0, 0.0])}, "groups"),
        ({"edges": EDGES, "ids": np.array([0, 1]), "groups": np.array([0, 1])}, "groups"),
    ],
)
def test_a_foreign_npz_is_told_by_file_and_key(path: Path, arrays: dict, culprit: str) -> None:
    np.savez(path, **arrays)
    with pytest.raises(InputError) as caught:
        read_npz(path)
    assert str(path) in caught.value.where
    assert culprit in str(caught.value)


CSR = {"features.indices": np.array([0]), "features.indptr": np.array([0, 1, 1, 1])}


@pytest.mark.parametrize(
    ("arrays", "parts"),
    [
        (
            {"edges": np.array([[0], [200_000_000]])},
            ["edges", "row numbers below 100,000", "If these are ids"],
        ),
        ({"edges": np.array([[0], [2**62]])}, ["edges", "row numbers below 100,000"]),
        (
            {"edges": EDGES, **CSR, "features.shape": np.array([3, 2**40])},
            ["features", "4,000,000 columns"],
        ),
        ({"edges": EDGES, **CSR, "features.shape": np.array([2**40, 3])}, ["features.*"]),
        ({"edges": EDGES, **CSR, "features.shape": np.array([-3, 2])}, ["features.*"]),
        (
            {"edges": EDGES, **CSR, "features.shape": np.array([3, 2**63], dtype=np.uint64)},
            ["features.*"],
        ),
        (
            {"edges": EDGES, "features": np.zeros((3, 5_000_000), np.int8)},
            ["features", "4,000,000", "5,000,000"],
        ),
    ],
)
def test_a_small_file_that_would_make_a_huge_graph_is_refused(
    path: Path, arrays: dict, parts: list[str]
) -> None:
    np.savez_compressed(path, **arrays)
    assert path.stat().st_size < 20_000
    with pytest.raises(InputError) as caught:
        read_npz(path)
    assert [part for part in parts if part not in str(caught.value)] == []


def claim(path: Path, shape: tuple[int, ...], content: bytes = b"") -> None:
    """An npz whose header claims an array that is not there."""
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        member, {"descr": "<i8", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("edges.npy", member.getvalue() + content)


@pytest.mark.parametrize("shape", [(2, 2**40), (2**62, 2**62), (2, 3)])
def test_a_header_that_claims_more_than_there_is(path: Path, shape: tuple[int, ...]) -> None:
    claim(path, shape)
    with pytest.raises(InputError, match=r'key "edges": expected an npz file of plain arrays'):
        read_npz(path)


@pytest.mark.parametrize("content", [b"", b"source,target\na,b\n", b"PK\x03\x04 and no more"])
def test_no_npz_at_all(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match="expected an npz file"):
        read_npz(path)


def test_a_single_array_is_no_graph(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, EDGES)
    with pytest.raises(InputError, match="expected an npz file"):
        read_npz(path)


def test_a_missing_file(path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_npz(path)


@pytest.mark.parametrize("compress", [False, True])
def test_damage_is_never_read_as_another_graph(path: Path, compress: bool) -> None:
    graph = example(ids=["a", "b", "c", "d"])
    write_npz(graph, path)
    if compress:
        np.savez_compressed(path, **np.load(path))
    content = path.read_bytes()
    refused = 0
    for position in range(0, len(content), 11):
        for damaged in (
            content[:position],
            content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :],
        ):
            path.write_bytes(damaged)
            try:
                assert same(read_npz(path), graph)  # a byte the zip format does not use
            except InputError:
                refused += 1
    assert refused > len(content) / 11  # every cut and more


def test_arrays_are_written_as_numpy_writes_them(path: Path) -> None:
    wide = np.arange(300_000.0).reshape(3, -1)  # more than is written at once
    arrays = {
        "wide": wide,
        "one": np.array(True),
        "none": np.zeros((0, 3), np.float32),
        "text": np.array(["ab", "日"]),
    }
    np.savez(path, **arrays)
    expected = path.read_bytes()
    write_arrays(path, arrays)
    assert path.read_bytes() == expected
    write_arrays(path, {"turned": wide.T})
    np.testing.assert_array_equal(np.load(path)["turned"], wide.T)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.coo_matrix])
@pytest.mark.parametrize("directed", [False, True])
def test_a_matrix_that_scipy_wrote_is_a_graph(tmp_path, make, directed):
    weights = np.random.default_rng(0).integers(0, 3, (12, 12)).astype(float)
    np.fill_diagonal(weights, 0)
    sparse.save_npz(tmp_path / "a.npz", make(weights))
    graph = read_graph(tmp_path / "a.npz", directed=directed, features="degrees")
    assert same(graph, Graph.from_scipy(make(weights), "degrees", directed=directed))
    assert read_graph(tmp_path / "a.npz").num_features > 0


def test_a_matrix_of_scipy_that_is_no_graph_is_told(tmp_path):
    sparse.save_npz(tmp_path / "x.npz", sparse.random_array((5, 7), density=0.5))
    with pytest.raises(InputError, match=r"x.npz: expected a square matrix of edges, found shape"):
        read_graph(tmp_path / "x.npz")
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[60:90] = bytes(30)
    (tmp_path / "x.npz").write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"x.npz"):
        read_graph(tmp_path / "x.npz")
