"""What can be written is read back as the same graph; all else is refused before anything is written."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from test_faults import told
from test_writing import assert_same

from infomax import Graph, InputError, read_graph
from infomax.arrays.sparsity import dense
from infomax.errors import InputWarning
from infomax.io import writing

NAMES = [
    "g.npz",
    "e.csv,n.csv",
    "e.tsv.gz,n.txt",
    "e.parquet,n.parquet",
    "e.csv,n.parquet",
    "tables",
]
TAME = [
    "a",
    "x y",
    "é,日",
    " s",
    "t ",
    "a, b",
    'q"q',
    "c\rd",
    "\te\n",
    "<&>",
    "007",
    "7",
    "-1",
    "id",
    "v",
    "v[0]",
    "v[1]",
]
ODD = ["", "ID", "Id", "iD", "weight", "nan", "None", "id[0]", "[0]", "label:x", "graph:name", "graph:name[0]", "x.npy",
       "node:name", "x", "x[0]", "utf8:x", "../y", "__index_level_0__", "\ud800",
       "\ud83d\ude00", "z\x00", "\ufffe"]  # fmt: skip
CHARACTERS = "aé \t\r\n\x00\x0b\x1c\u2028\ufeff\ud800,'\"\\\\<>&[]:"
KINDS = st.sampled_from(
    [st.sampled_from(TAME), st.sampled_from(TAME + ODD), st.text(CHARACTERS, max_size=4)]
)


@st.composite
def odd_graphs(draw: Any) -> Graph:
    """Small graphs with odd text, and with or without edges, weights, features, labels, splits, groups and names."""
    n, words = draw(st.integers(1, 5)), draw(KINDS)
    ends = st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=4)
    edges = np.array(draw(ends), dtype=np.int64).reshape(-1, 2).T
    columns = st.dictionaries(words, st.lists(draw(KINDS), min_size=n, max_size=n), max_size=2)
    labels: dict[str, Any] = {
        name: np.array(cells, dtype=object) for name, cells in draw(columns).items()
    }
    if draw(st.booleans()):
        labels[draw(words)] = np.arange(n) - 1
    groups = draw(st.sampled_from([None, np.full(n, -(2**63)), np.full(n, 2)]))
    names = draw(st.lists(words, max_size=4, unique_by=str) | st.lists(words, max_size=2))
    numbers = st.sampled_from([0.0, 1.0, -2.5, 1e-45, 3e38, 1 / 3, 0.1])
    features = np.array(
        draw(st.lists(numbers, min_size=n * len(names), max_size=n * len(names))), dtype=np.float32
    )
    features = features.reshape(n, len(names)) * draw(st.sampled_from([0, 1]))
    ids = draw(
        st.lists(draw(KINDS), min_size=n, max_size=n, unique=True) | st.just(list(range(-1, n - 1)))
    )
    return Graph.from_arrays(
        edges,
        None if not names else sparse.csr_array(features) if draw(st.booleans()) else features,
        weight=draw(st.sampled_from([None, np.linspace(0.1, 3, edges.shape[1])])),
        directed=draw(st.booleans()),
        ids=np.array(ids, dtype=object) if isinstance(ids[0], str) else ids,
        feature_names=names or None,
        labels=labels,
        splits={name: np.arange(n) % 2 == 0 for name in draw(st.lists(words, max_size=2))},
        groups=groups,
        node_names=draw(st.none() | st.lists(draw(KINDS), min_size=n, max_size=n)),
    )


def columns_of(graph: Graph, name: str) -> dict[str, list[str]]:
    """The labels of a graph by their text; of tables the first, -1, is unknown."""
    if name in ("g.npz", "g.graph"):
        return {key: list(map(str, column)) for key, column in graph.labels.items()}
    return {
        key: ["", *map(str, column[1:])] if column.dtype != object else column.tolist()
        for key, column in graph.labels.items()
    }


@pytest.mark.parametrize("name", [*NAMES, "g.graph"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graph=odd_graphs())
def test_a_written_graph_is_read_back_or_refused(name: str, graph: Graph) -> None:
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        path = ",".join(f"{place}/{part}" for part in name.split(","))
        try:
            graph.save(path)
        except InputError:
            assert not list(Path(place).iterdir())
            return
        found = read_graph(path, directed=graph.directed).loaded()
    assert found.directed == graph.directed
    assert list(map(str, found.ids)) == list(map(str, graph.ids))
    assert found.feature_names == graph.feature_names
    features = [
        one.features.toarray() if sparse.issparse(one.features) else one.features
        for one in (found, graph)
    ]
    np.testing.assert_array_equal(*features)
    np.testing.assert_array_equal(found.adjacency.toarray(), graph.adjacency.toarray())
    assert {key: column.tolist() for key, column in found.splits.items()} == {
        key: column.tolist() for key, column in graph.splits.items()
    }
    assert (found.groups is None) == (graph.groups is None)
    assert graph.groups is None or found.groups.tolist() == graph.groups.tolist()
    assert (found.node_names is None) == (graph.node_names is None)
    assert graph.node_names is None or found.node_names.tolist() == graph.node_names.tolist()
    assert columns_of(graph, name) == {
        key: list(map(str, column)) for key, column in found.labels.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_odd_but_ordinary_text_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ids = [" first", "last ", "c\rr", "l\nf", "a, b", "é"]
    names = (
        "x, y",
        "v[0]",
        "v[1]",
        "v",
    )  # a comma and a space in a header do not make cells lose their first space
    kinds = np.array([" p", "q\r", "\r\n", "", "t\t", 'x,"y"'], dtype=object)
    graph = Graph.from_arrays(
        [[], []], np.eye(6, 4), ids=ids, feature_names=names, labels={"kind": kinds}
    )
    graph.save(name)  # text ids without edges, too
    found = read_graph(name)
    assert_same(found, graph.replace(features=found.features))
    np.testing.assert_array_equal(dense(found.features), graph.features)


@pytest.mark.parametrize(
    ("name", "changes", "parts"),
    [
        ("e.csv,n.csv", {"feature_names": ("x ", "y")}, ["columns", "outer white space", ".npz"]),
        ("tables", {"feature_names": ("x", "x")}, ["tables: ", "each column name once"]),
        ("e.parquet,n.parquet", {"feature_names": ("__index_level_0__", "y")}, ["__index_level_"]),
        ("e.csv,n.csv", {"ids": np.array(["", "b"], dtype=object)}, ["ids: ", "not empty"]),
        (
            "e.parquet,n.parquet",
            {"ids": np.array(["\ud800", "b"], dtype=object)},
            ["ids: ", "ud800"],
        ),
        ("g.graph", {"ids": np.array(["\ud800", "b"], dtype=object)}, ["ids: ", "characters"]),
        ("g.npz", {"labels": {"x\x00": np.arange(2)}}, ["names of labels and splits", "NUL"]),
    ],
)
def test_what_would_be_read_as_something_else_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    changes: dict[str, Any],
    parts: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = Graph.from_arrays([[0], [1]], np.eye(2), ids=["a", "b"], feature_names=["x", "y"])
    told(parts, graph.replace(**changes).save, name)
    assert not list(tmp_path.iterdir())


def sparse_words(n: int, width: int, each: int) -> Graph:
    """A graph with sparse features, ``each`` per node; the first feature is zero everywhere."""
    draws = np.random.default_rng(0)
    ends = np.repeat(np.arange(n), each), draws.integers(1, width, n * each)
    features = sparse.csr_array((np.ones(n * each, dtype=np.float32), ends), shape=(n, width))
    return Graph.from_arrays(
        draws.integers(n, size=(2, 2 * n)), features, ids=[f"n{row}" for row in range(n)]
    )


def test_a_poor_choice_of_format_is_pointed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MANY_CELLS", 50_000)
    graph = sparse_words(200, 500, 4)
    for name, poor in (("g.npz", False), ("tables", True)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            graph.save(tmp_path / name)
        expected = f"{tmp_path / 'tables' / 'nodes.csv'}: 100,000 numbers as text"
        assert [expected in str(one.message) for one in caught] == [True] * poor
