"""Features of edges follow their edges, whatever is done to the graph."""

from pathlib import Path

import numpy as np
import pytest
import torch

from infomax import DGI, Graph, read_graph
from infomax.arrays.edge_features import EdgeFeatures
from infomax.errors import InputError
from infomax.kernels import Backend
from infomax.parts.corruptions import flip_edges
from infomax.views import NEIGHBOURS, WholeView

EDGES = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
VALUES = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])


def ring(*, directed: bool = False) -> Graph:
    return Graph.from_arrays(EDGES, np.eye(4), edge_features=VALUES, directed=directed)


def features_by_message(graph: Graph) -> dict[tuple[int, int], list[float]]:
    view = WholeView.of(graph, NEIGHBOURS, Backend.of_training(torch.device("cpu"), 0, 0))
    assert view.has_edge_features
    pairs = map(tuple, view.edges.T.tolist())
    return dict(zip(pairs, view.edge_features.tolist(), strict=True))


def test_a_view_gives_each_message_the_features_of_its_edge() -> None:
    expected = {(0, 1): [1, 10], (1, 2): [2, 20], (2, 3): [3, 30], (3, 0): [4, 40]}
    assert features_by_message(ring(directed=True)) == expected
    backwards = {(receiver, sender): values for (sender, receiver), values in expected.items()}
    assert features_by_message(ring()) == expected | backwards


def test_an_edge_that_is_listed_twice_has_the_mean() -> None:
    edges, values = np.array([[0, 1, 0], [1, 0, 1]]), np.array([3.0, 6.0, 9.0])
    undirected = EdgeFeatures.of(edges, values, None, num_nodes=2, directed=False)
    directed = EdgeFeatures.of(edges, values, None, num_nodes=2, directed=True)
    ends = np.array([0, 1]), np.array([1, 0])
    assert undirected.of_messages(*ends).ravel().tolist() == [6, 6]
    assert directed.of_messages(*ends).ravel().tolist() == [6, 6]
    assert directed.names == ("e0",)


def test_the_features_of_a_part_are_those_of_the_whole() -> None:
    random = np.random.default_rng(0)
    edges, values = random.integers(30, size=(2, 120)), random.normal(size=(120, 3))
    graph = Graph.from_arrays(edges, np.eye(30), edge_features=values, directed=True)
    kept = random.random(30) < 0.6
    rows = np.flatnonzero(kept)
    of_whole = features_by_message(graph)
    for (sender, receiver), features in features_by_message(graph.part(kept)).items():
        assert features == of_whole[int(rows[sender]), int(rows[receiver])]


def test_edges_that_are_held_out_or_drawn_anew_take_no_others_features() -> None:
    graph = ring().hold_out_edges(0.25)
    assert features_by_message(graph).items() <= features_by_message(ring()).items()
    view = WholeView.of(ring(), NEIGHBOURS, Backend.of_training(torch.device("cpu"), 0, 0))
    generator = torch.Generator().manual_seed(0)
    flipped = flip_edges(view, generator, rho=0.5, largest_sparse_rate=1)
    assert flipped.has_edge_features
    assert flipped.edges.tolist() != view.edges.tolist()
    expected = features_by_message(ring())
    for pair, features in zip(
        flipped.edges.T.tolist(), flipped.edge_features.tolist(), strict=True
    ):
        assert features == expected.get(tuple(pair), [0, 0])
    unlisted = flip_edges(view, generator, rho=0.5)
    assert unlisted.has_edge_features
    with pytest.raises(InputError, match="edges that can be listed"):
        unlisted.edge_features.sum()


def test_features_that_edges_do_not_have_are_refused_and_can_be_asked_for() -> None:
    bare = Graph.from_arrays(EDGES, np.eye(4))
    view = WholeView.of(bare, NEIGHBOURS, Backend.of_training(torch.device("cpu"), 0, 0))
    assert not view.has_edge_features
    with pytest.raises(InputError, match=r"graph: .*found none.*graph.with_edge_features"):
        view.edge_features @ torch.ones(2)


def test_nodes_that_are_new_have_edges_without_features() -> None:
    known = ring().relations[0].edge_features
    assert known is not None
    assert known.of_messages(np.array([4]), np.array([0])).tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (VALUES[:3], "one row of numbers for each of the 4 edges"),
        (np.where(VALUES == 20, np.nan, VALUES), "none at edge 1"),
        (np.array(["a", "b", "c", "d"]), "numbers"),
    ],
)
def test_values_that_do_not_fit_are_refused(values: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Graph.from_arrays(EDGES, np.eye(4), edge_features=values)


@pytest.mark.parametrize("name", ["ring.graph", "ring", "edges.csv,nodes.csv"])
def test_a_graph_with_features_of_edges_is_not_written_without_them(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match=r"an \.npz, for a graph with features of edges"):
        ring().save(",".join(str(tmp_path / part) for part in name.split(",")))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_an_npz_and_a_run_keep_the_features_of_edges(tmp_path: Path, directed: bool) -> None:
    random = np.random.default_rng(0)
    # Self-loops and edges that are listed twice are among these.
    edges = random.integers(20, size=(2, 150))
    graph = Graph.from_arrays(edges, random.random((20, 5)), directed=directed)
    graph = graph.with_edge_features(edges, random.normal(size=(150, 2)), ["length", "lanes"])

    graph.save(tmp_path / "graph.npz")
    DGI(4, epochs=1).fit(graph, run=tmp_path / "run")
    for kept in (read_graph(tmp_path / "graph.npz"), DGI.load(tmp_path / "run").graph_):
        assert features_by_message(kept) == features_by_message(graph)
        assert kept.relations[0].edge_features.names == ("length", "lanes")  # type: ignore[union-attr]

    read_graph(tmp_path / "graph.npz").save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "graph.npz").read_bytes()


def test_an_npz_that_a_person_wrote_has_a_row_of_features_per_edge(tmp_path: Path) -> None:
    path = tmp_path / "ring.npz"
    np.savez(path, edges=EDGES, features=np.eye(4), edge_features=VALUES)
    assert features_by_message(read_graph(path)) == features_by_message(ring())
    np.savez(path, edges=EDGES, features=np.eye(4), edge_features=VALUES[:3])
    with pytest.raises(InputError, match=r"ring.npz.*one row of numbers for each of the 4 edges"):
        read_graph(path)


def test_the_columns_of_a_table_or_a_frame_become_features_of_edges(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"from": list("abcd"), "to": list("bcda"), "length": VALUES[:, 0], "lanes": VALUES[:, 1]}
    )
    frame.to_csv(tmp_path / "roads.csv", index=False)
    plain = Graph.from_arrays(EDGES, np.eye(4), ids=list("abcd"), directed=True)
    expected = features_by_message(ring(directed=True))
    for table in (tmp_path / "roads.csv", frame):
        graph = plain.with_edge_table(table, ["length", "lanes"], source="from", target="to")
        assert features_by_message(graph) == expected
        assert graph.relations[0].edge_features.names == ("length", "lanes")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        ("a,b,1", ["width"], "roads.csv: .*width"),
        ("a,z,1", ["length"], "roads.csv, line 2.*z"),
        ("a,b,far", ["length"], 'roads.csv, line 2, column "length".*far'),
    ],
)
def test_a_table_that_does_not_fit_is_refused_by_its_line(
    tmp_path: Path, rows: str, columns: list[str], message: str
) -> None:
    (tmp_path / "roads.csv").write_text(f"source,target,length\n{rows}\n")
    graph = Graph.from_arrays([[0], [1]], ids=["a", "b"])
    with pytest.raises(InputError, match=message):
        graph.with_edge_table(tmp_path / "roads.csv", columns)


def test_pytorch_geometrics_edge_attr_goes_in_and_comes_out() -> None:
    pyg = pytest.importorskip("torch_geometric.data")
    data = pyg.Data(
        x=torch.eye(4),
        edge_index=torch.from_numpy(EDGES),
        edge_attr=torch.from_numpy(VALUES),
    )
    graph = Graph.from_pyg(data, directed=True)
    assert features_by_message(graph) == features_by_message(ring(directed=True))
    again = Graph.from_pyg(graph.to_pyg(), directed=True)
    assert features_by_message(again) == features_by_message(graph)
