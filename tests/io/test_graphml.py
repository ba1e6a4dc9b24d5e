"""GraphML is read as NetworkX reads it."""

from pathlib import Path

import networkx
import numpy as np
import pytest

from infomax.graphs.graph import Graph
from infomax.io import read_graph


@pytest.mark.filterwarnings("ignore:GraphML port")
@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph])
@pytest.mark.parametrize("directed", [False, True])
def test_graphml_is_read_as_networkx_reads_it(tmp_path: Path, kind: type, directed: bool) -> None:
    draws, origin = np.random.default_rng(1), kind()
    for row in range(20):
        values = {"x": float(draws.random()), "y": row % 3, "z": row % 2 == 0, "kind": "é<&" if row % 4 else ""}
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
        assert (graph.ids.tolist(), graph.feature_names) == (expected.ids.tolist(), expected.feature_names)
        np.testing.assert_array_equal(graph.features, expected.features)
        assert graph.labels["kind"].tolist() == expected.labels["kind"].tolist()
        assert graph.dropped == expected.dropped
