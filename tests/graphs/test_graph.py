"""Making a graph: what is accepted, and what is refused with which message."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import torch
from scipy import sparse

from infomax import DGI, Graph, InputError
from infomax.evaluation.splits import encode_labels

EDGES, FEATURES = [[0, 1, 2], [1, 2, 3]], np.eye(4)


@pytest.mark.parametrize(
    "ids",
    [
        np.array([0, 1, 2, 2**63], dtype=np.uint64),
        [0, 1, 2, 2**63],
        [0, 1, 2, -(2**63) - 1],
        np.array([0, 1, 2, 2**70], dtype=object),
    ],
    ids=["uint64", "list", "negative", "objects"],
)
def test_integers_that_do_not_fit_are_no_ids(ids):
    with pytest.raises(InputError, match=r"ids: expected integers of 64 bits .*Make .* text"):
        Graph.from_arrays(EDGES, FEATURES, ids=ids)


@pytest.mark.parametrize(
    "ids", [np.array([0, 1, 2, 2**63 - 1], dtype=np.uint64), [0, 1, -(2**63), 2**63 - 1]]
)
def test_integers_that_fit_stay_what_they_are(ids):
    graph = Graph.from_arrays(EDGES, FEATURES, ids=ids)
    assert graph.ids.tolist() == list(ids)
    assert graph.ids.dtype == np.int64


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["a", None, "b", float("nan")], ["a", "", "b", ""]),
        (["a", "b", "b", float("nan")], ["a", "b", "b", ""]),
        (np.array(["a", np.nan, "", "None"], dtype=object), ["a", "", "", "None"]),
        ([7, None, 8, 7], ["7", "", "8", "7"]),
    ],
    ids=["both", "NaN", "objects", "integers"],
)
def test_missing_labels_are_unknown_and_survive_a_run_folder(column, expected, tmp_path):
    graph = Graph.from_arrays(EDGES, FEATURES, labels={"kind": column})
    DGI(dim=2, epochs=1).fit(graph).save(tmp_path)
    for labels in (graph.labels["kind"], DGI.load(tmp_path).graph_.labels["kind"]):
        assert labels.dtype == object
        assert labels.tolist() == expected
        assert encode_labels(labels)[1] == sorted(set(expected) - {""})


def test_missing_labels_of_networkx_are_unknown():
    origin = networkx.Graph()
    for node, kind in enumerate(["a", None, float("nan"), 4]):
        origin.add_node(node, kind=kind)
    origin.add_node(4)
    assert Graph.from_networkx(origin, labels=["kind"]).labels["kind"].tolist() == [
        "a",
        "",
        "",
        "4",
        "",
    ]


def test_numbers_stay_numbers():
    labels = {
        "class": np.array([3, -1, 0, 1]),
        "many": np.eye(4, 2, dtype=np.uint8),
        "size": np.ones(4),
    }
    found = Graph.from_arrays(EDGES, FEATURES, labels=labels).labels
    assert {name: column.dtype for name, column in found.items()} == {
        n: c.dtype for n, c in labels.items()
    }


@pytest.mark.parametrize(
    ("column", "where"),
    [
        ({"splits": {"train": np.ones((4, 10), dtype=bool)}}, "splits['train']"),
        ({"groups": np.zeros((4, 10), dtype=int)}, "groups"),
        ({"labels": {"kind": np.full((4, 10), "a")}}, "labels['kind']"),
    ],
)
def test_several_columns_for_one_are_refused(column, where):
    with pytest.raises(InputError) as caught:
        Graph.from_arrays(EDGES, FEATURES, **column)
    assert (
        str(caught.value)
        == f"{where}: expected 4 values, one per node, found shape [4, 10]. Choose one of its columns."
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sparse_matrix_stays_as_its_owner_made_it(dtype):
    data, indices, indptr = np.array([1, 2, 0, 3], dtype=dtype), [1, 1, 0, 0], [0, 2, 4]
    features = sparse.csr_array((data, indices, indptr), shape=(2, 2))
    found = Graph.from_arrays([[0], [1]], features).features
    assert (found.data.tolist(), found.indices.tolist()) == ([3, 3], [1, 0])
    assert (features.data.tolist(), features.indices.tolist()) == ([1, 2, 0, 3], [1, 1, 0, 0])


@pytest.mark.parametrize("directed", [False, True])
def test_what_is_left_out_is_counted_once_and_for_what_it_is(directed):
    edges, weight = [[0, 0, 0, 1, 2, 2], [1, 1, 1, 2, 1, 2]], [1, 2, 0, 0, 1, 0]
    graph = Graph.from_arrays(edges, weight=weight, num_nodes=3, directed=directed)
    assert graph.dropped == {"self_loops": 1, "duplicates": 1, "zero_weights": 2}
    assert (graph.adjacency[0, 1], graph.adjacency[2, 1], graph.num_edges) == (3, 1, 2)
    assert Graph.from_arrays(edges, num_nodes=3).dropped == {
        "self_loops": 1,
        "duplicates": 2,
        "zero_weights": 0,
    }


def test_a_symmetric_matrix_has_no_duplicates():
    matrix = networkx.to_scipy_sparse_array(networkx.karate_club_graph())
    assert Graph.from_scipy(matrix).dropped == {"self_loops": 0, "duplicates": 0, "zero_weights": 0}


def test_tensors_at_the_nodes_of_networkx_are_numbers():
    origin, x = networkx.path_graph(6), np.random.default_rng(0).random((6, 3), np.float32)
    networkx.set_node_attributes(origin, dict(enumerate(torch.from_numpy(x))), "x")
    graph = Graph.from_networkx(origin)
    assert graph.feature_names == ("x[0]", "x[1]", "x[2]")
    np.testing.assert_array_equal(graph.features, x)


def test_arrows_of_an_undirected_networkx_run_both_ways():
    origin = networkx.Graph([(0, 1), (2, 1)])
    found = Graph.from_networkx(origin, directed=True)
    assert found.directed
    np.testing.assert_array_equal(found.adjacency.toarray(), networkx.to_numpy_array(origin))
    arrows = networkx.DiGraph([(0, 1), (2, 1)])
    np.testing.assert_array_equal(
        Graph.from_networkx(arrows).adjacency.toarray(), networkx.to_numpy_array(arrows)
    )


def test_one_label_of_networkx_is_named_by_its_text():
    club = networkx.karate_club_graph()
    labels = Graph.from_networkx(club, labels="club").labels
    assert {name: column.tolist() for name, column in labels.items()} == {
        "club": [club.nodes[i]["club"] for i in club]
    }


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        (None, "graph: expected a NetworkX graph, found NoneType"),
        (
            networkx.grid_2d_graph(3, 3),
            "ids: expected all integers or all text, found tuple. Make all of them text",
        ),
        (
            networkx.Graph([(0, 1, {"weight": 2}), (1, 2, {"weight": "much"})]),
            "weight of an edge: expected a number, found could not convert string to float: .much.",
        ),
        (
            networkx.Graph([("a", "b", {"weight": -1})]),
            "edge 0 -> 1: expected a weight of zero or more, at most 1e.24, found -1",
        ),
    ],
    ids=["none", "tuples", "weight", "negative"],
)
def test_what_networkx_allows_and_a_graph_does_not(origin, message):
    with pytest.raises(InputError, match=message):
        Graph.from_networkx(origin)


RAGGED = [[1, 2], [1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": [["a"]] * 4}, "features: expected numbers, found dtype <U1"),
        (
            {"features": [[1], [1, 2], [1], [1]]},
            "features: expected numbers, found .*inhomogeneous",
        ),
        (
            {"features": np.array([["a"]] * 4, dtype=object)},
            "features: expected numbers, found could not convert",
        ),
        (
            {"features": np.empty((4, 0))},
            "features: expected 1 to 4,000,000 columns, found 0. Pass None",
        ),
        ({"features": FEATURES * 1j}, "features: expected numbers, found dtype complex128"),
        (
            {"features": sparse.csr_array(FEATURES * 1j)},
            "features: expected numbers, found dtype complex128",
        ),
        (
            {"features": torch.eye(4, requires_grad=True)},
            "features: expected numbers, found .*requires grad",
        ),
        ({"edges": RAGGED}, "edges: expected row numbers .* found .*inhomogeneous"),
        ({"weight": ["a", "b", "c"]}, "weight: expected numbers, found dtype <U1"),
        ({"num_nodes": "4"}, "num_nodes: expected a whole number from 0, found '4'"),
        ({"num_nodes": 4.0}, "num_nodes: expected a whole number from 0, found 4.0"),
        ({"num_nodes": -1}, "num_nodes: expected a whole number from 0, found -1"),
        ({"groups": ["a", "b", "a", "b"]}, "groups: expected integers, found dtype <U1"),
        ({"groups": [0, 0, 0, np.nan]}, "groups: expected integers, found dtype float64"),
        ({"groups": [0, 0, 0, 0.5]}, "groups: expected integers, found dtype float64"),
        (
            {"labels": ["a", "b", "a", "b"]},
            "labels: expected a mapping of names to columns, found list",
        ),
        (
            {"labels": {"y": RAGGED}},
            r"labels\['y'\]: expected text or numbers, found .*inhomogeneous",
        ),
        (
            {"splits": [True, False, True, False]},
            "splits: expected a mapping of names to columns, found list",
        ),
        (
            {"splits": {"train": ["no", "yes", "True", "False"]}},
            r"splits\['train'\]: expected booleans, found dtype <U5",
        ),
        (
            {"splits": {"train": [0, 1, 2, 3]}},
            r"splits\['train'\]: expected booleans, or 0 and 1, found 2",
        ),
        (
            {"features": None, "feature_names": list("abcd")},
            "feature_names: expected features that .*, found none",
        ),
    ],
)
def test_what_is_no_graph_is_told(arguments, message):
    with pytest.raises(InputError, match=message):
        Graph.from_arrays(**{"edges": EDGES, "features": FEATURES} | arguments)


@pytest.mark.parametrize("dtype", [bool, int, float])
def test_splits_are_booleans_or_0_and_1(dtype):
    mask = Graph.from_arrays(
        EDGES, FEATURES, splits={"train": np.array([1, 0, 0, 1], dtype=dtype)}
    ).splits["train"]
    assert (mask.dtype, mask.tolist()) == (bool, [True, False, False, True])


def test_text_is_no_adjacency():
    with pytest.raises(InputError, match="adjacency: expected numbers, found dtype <U1"):
        Graph.from_scipy(np.array([["a", "b"], ["c", "d"]]))


def test_a_list_is_no_adjacency():
    with pytest.raises(InputError, match="adjacency: expected a square matrix, found list"):
        Graph.from_scipy([[0, 1], [1, 0]])


@pytest.mark.parametrize("mask", [[0, 1], [0, 1, 0, 1], [True, False]])
def test_a_part_is_taken_by_a_mask_alone(mask):
    with pytest.raises(InputError, match="mask: expected"):
        Graph.from_arrays(EDGES, FEATURES).part(mask)


@pytest.mark.parametrize(
    ("column", "expected"),
    [([1.0, np.nan, 2, 0], [1, -1, 2, 0]), ([0.5, np.nan, 1, 2], [0.5, np.nan, 1, 2])],
)
def test_integers_among_nan_are_integers_again(column, expected):
    found = Graph.from_arrays(EDGES, FEATURES, labels={"y": column}).labels["y"]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.array(expected).dtype


class TestPyG:
    """What PyG calls a graph."""

    @pytest.fixture(autouse=True)
    def _data(self):
        self.pyg = pytest.importorskip("torch_geometric.data")

    @pytest.mark.parametrize(
        "x",
        [
            torch.eye(4, requires_grad=True),
            torch.eye(4, dtype=torch.bfloat16),
            torch.eye(4).to_sparse(),
            torch.eye(4).to_sparse_csr(),
        ],
        ids=["gradient", "bfloat16", "COO", "CSR"],
    )
    def test_features_of_every_form(self, x):
        features = Graph.from_pyg(self.pyg.Data(x=x, edge_index=torch.tensor(EDGES))).features
        dense = features.toarray() if sparse.issparse(features) else features
        np.testing.assert_array_equal(dense, FEATURES)

    @pytest.mark.parametrize("kind", ["Data", "HeteroData"])
    def test_without_edge_index(self, kind):
        data = getattr(self.pyg, kind)()
        with pytest.raises(
            InputError, match=f"data: expected a PyG Data with edge_index, found {kind}"
        ):
            Graph.from_pyg(data)

    def test_several_graphs_are_made_one(self):
        one = self.pyg.Data(x=torch.eye(4), edge_index=torch.tensor(EDGES))
        with pytest.raises(InputError, match=r"found list. Make one .*Batch.from_data_list"):
            Graph.from_pyg([one, one])

    def test_a_batch_has_groups_and_a_column_of_labels_is_one(self):
        one = self.pyg.Data(
            x=torch.eye(4), edge_index=torch.tensor(EDGES), y=torch.arange(4)[:, None]
        )
        graph = Graph.from_pyg(self.pyg.Batch.from_data_list([one, one]))
        assert graph.groups.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
        assert graph.labels["y"].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize("weight", [2e24, np.inf, np.nan])
def test_weights_whose_sum_may_overflow_are_refused(weight):
    Graph.from_arrays([[0, 0], [1, 2]], np.eye(3), weight=[1, 1e24])
    with pytest.raises(
        InputError, match=r"edge 0 -> 2: expected a weight of zero or more, at most 1e\+24, found"
    ):
        Graph.from_arrays([[0, 0], [1, 2]], np.eye(3), weight=[1, weight])


@pytest.mark.parametrize(
    "row", [100_000, 200_000_000, 2_000_000_000, 2**62, 2**63 - 1, 2**64 - 1], ids=str
)
def test_ids_used_as_row_numbers_are_refused(row):
    edges = np.array([[0], [row]], dtype=np.uint64 if row >= 2**63 else np.int64)
    with pytest.raises(
        InputError, match=f"row numbers below 100,000, .* found {row}. If these are ids"
    ):
        Graph.from_arrays(edges)
    if row > 2**31:
        message = (
            "at most 2,147,483,647 nodes"
            if row + 1 < 2**63
            else "a whole number from 0 to 9223372036854775807"
        )
        with pytest.raises(InputError, match=message):
            Graph.from_arrays(edges, num_nodes=row + 1)


def test_row_numbers_may_be_as_large_as_many_edges_allow():
    edges = np.arange(20_000).reshape(2, -1) * 10
    assert Graph.from_arrays(edges, "degrees").num_nodes == 199_991


def test_more_columns_than_any_encoder_can_have_are_refused():
    with pytest.raises(
        InputError, match=r"features: expected 1 to 4,000,000 columns, found 1,099,511,627,776"
    ):
        Graph.from_arrays([[0], [1]], sparse.csr_array((2, 2**40)))


def test_degrees_count_the_edges_at_a_node_in_either_direction():
    edges = [[0, 0, 1, 2], [1, 2, 0, 2]]  # 0 -> 1, 0 -> 2, 1 -> 0 and a self-loop
    assert Graph.from_arrays(edges, num_nodes=4).degrees().tolist() == [2, 1, 1, 0]
    directed = Graph.from_arrays(edges, "degrees", num_nodes=4, directed=True)
    assert directed.degrees().tolist() == [3, 2, 1, 0]
    assert directed.features.indices.tolist() == [2, 1, 1, 0]  # degree features use the same count
