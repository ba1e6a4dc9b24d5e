"""GraphML is read as NetworkX reads it."""

import warnings
from pathlib import Path

import networkx
import numpy as np
import pytest

from infomax.errors import InputError, InputWarning
from infomax.graphs.graph import Graph
from infomax.graphs.reading import read_graph


@pytest.mark.filterwarnings("ignore:GraphML port")
@pytest.mark.parametrize(
    "kind", [networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph]
)
@pytest.mark.parametrize("directed", [False, True])
def test_graphml_is_read_as_networkx_reads_it(tmp_path: Path, kind: type, directed: bool) -> None:
    draws, origin = np.random.default_rng(1), kind()
    for row in range(20):
        values = {
            "x": float(draws.random()),
            "y": row % 3,
            "z": row % 2 == 0,
            "kind": "é<&" if row % 4 else "",
        }
        origin.add_node(f"n{row}", **values)
    for source, target in draws.integers(20, size=(60, 2)):
        origin.add_edge(f"n{source}", f"n{target}", weight=float(draws.random()))
    path = tmp_path / "g.graphml"
    networkx.write_graphml(origin, path)
    expected = Graph.from_networkx(networkx.read_graphml(path), labels="kind", directed=directed)
    plain = path.read_text(encoding="utf-8")
    unusual = plain.replace("</node>", '<port name="p"/></node>', 1)  # read by networkx itself
    for content in (plain, unusual):
        path.write_text(content, encoding="utf-8")
        graph = read_graph(path, labels="kind", directed=directed)
        assert (graph.adjacency != expected.adjacency).nnz == 0
        assert (graph.ids.tolist(), graph.feature_names) == (
            expected.ids.tolist(),
            expected.feature_names,
        )
        np.testing.assert_array_equal(graph.features, expected.features)
        assert graph.labels["kind"].tolist() == expected.labels["kind"].tolist()
        assert graph.dropped == expected.dropped


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph])
def test_the_file_says_whether_edges_are_directed(tmp_path: Path, kind: type) -> None:
    path = tmp_path / "g.graphml"
    networkx.write_graphml(kind([("a", "b"), ("c", "b")]), path)
    directed = kind is networkx.DiGraph
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = read_graph(path)
    assert graph.directed == Graph.from_networkx(networkx.read_graphml(path)).directed == directed
    assert ["directed, as the file says" in str(one.message) for one in caught] == [True] * directed
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        for chosen in (False, True):
            assert read_graph(path, directed=chosen).directed == chosen


def test_defaults_of_a_file_are_the_values_of_nodes_and_edges_without_one(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    keys = {
        "x": ("node", "double", "0"),
        "y": ("node", "int", "7"),
        "kind": ("node", "string", "p"),
    }
    keys["weight"] = "edge", "double", "0.5"
    declared = "".join(
        f'<key id="{name}" for="{owner}" attr.name="{name}" attr.type="{kind}"><default>{value}</default></key>'
        for name, (owner, kind, value) in keys.items()
    )
    nodes = (
        '<node id="a"><data key="y">1</data></node>'
        '<node id="b"><data key="x">3</data><data key="kind">q</data></node>'
    )
    content = f'{nodes}<edge source="a" target="b"/>'
    path.write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        f'{declared}<graph edgedefault="undirected">{content}</graph></graphml>'
    )
    graph = read_graph(path, labels="kind")
    assert (graph.feature_names, graph.features.tolist()) == (("x", "y"), [[0, 1], [3, 7]])
    assert graph.labels["kind"].tolist() == ["p", "q"]
    assert graph.adjacency.toarray().tolist() == [[0, 0.5], [0.5, 0]]
    assert read_graph(path, labels="kind", ignore="x").feature_names == ("y",)


def test_a_short_text_that_is_feature_and_name_is_read_again_for_a_model(tmp_path: Path) -> None:
    origin = networkx.path_graph(40)
    for node in origin:
        origin.nodes[node].update(
            note=f"the {['red', 'blue', 'green'][node % 3]} house {node}", x=float(node)
        )
    networkx.write_graphml(origin, tmp_path / "g.graphml")
    graph = read_graph(tmp_path / "g.graphml", columns={"note": "text"}, name="note")
    again = read_graph(tmp_path / "g.graphml", like=graph)
    assert (again.feature_names, again.node_names.tolist()) == (
        graph.feature_names,
        graph.node_names.tolist(),
    )
    assert (again.features != graph.features).sum() == 0


def test_a_file_that_is_no_graphml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    for content in (
        "",
        "<graphml>",
        "<html></html>",
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"/>',
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=r"g\.graphml: expected a GraphML file"):
            read_graph(path)
