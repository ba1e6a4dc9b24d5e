"""Whether edges have directions: every door keeps it, and a graph that is read like another one has them as it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_faults import told
from test_prepare import tabled
from test_typed import CITES, PAPERS, relations, write

from infomax import DGI, Graph, read_graph
from infomax.io.prepare import prepare

ONE_WAY = {"source": [7, 5, 5], "target": [5, 3, 1]}


def tables(folder: Path) -> Path:
    return write(folder, **{"edges__paper.cites.paper": ONE_WAY})


def test_a_graph_of_several_types_is_read_with_the_directions_of_an_earlier_one(
    tmp_path: Path,
) -> None:
    folder = tables(tmp_path / "t")
    graph = read_graph(folder, labels="field", directed=True)
    assert graph.directed
    assert "directed edge" in repr(graph)
    assert not read_graph(folder, labels="field").directed
    later = read_graph(folder, labels="field", like=graph)
    prepare(folder, out=tmp_path / "g.graph", labels="field", like=graph)
    for one in (later, Graph.open(tmp_path / "g.graph")):
        assert one.directed
        assert relations(one) == relations(graph)


def test_frames_are_read_with_the_directions_of_an_earlier_graph() -> None:
    frames = {("paper", "cites", "paper"): pd.DataFrame(ONE_WAY)}, {"paper": pd.DataFrame(PAPERS)}
    graph = Graph.from_frames(*frames, directed=True, labels="field")
    assert relations(Graph.from_frames(*frames, like=graph, labels="field")) == relations(graph)
    plain = pd.DataFrame(CITES)
    assert Graph.from_frames(plain, like=Graph.from_frames(plain, directed=True)).directed


@pytest.mark.parametrize("name", ["g.npz", "g.graph"])
@pytest.mark.parametrize("several", [False, True])
def test_a_graph_that_says_otherwise_is_refused(tmp_path: Path, name: str, several: bool) -> None:
    path = tables(tmp_path / "t") if several else tabled(tmp_path / "e.csv", ONE_WAY)
    read_graph(path, directed=True).save(tmp_path / name)
    read_graph(path).save(tmp_path / f"other-{name}")
    assert read_graph(tmp_path / name, directed=True).directed
    told(
        [name, "edges that run both ways", "--undirected"],
        read_graph,
        tmp_path / name,
        directed=False,
    )
    told(["edges that have directions"], read_graph, tmp_path / f"other-{name}", directed=True)


def test_directions_between_two_types_are_refused(tmp_path: Path) -> None:
    path = tabled(tmp_path / "e.csv", {"user": [1, 2], "item": [5, 6]})
    told(["directed", "run both ways"], read_graph, path, types="user,item", directed=True)
    told(["directed"], prepare, path, out=tmp_path / "g.graph", types="user,item", directed=True)


@pytest.mark.parametrize("several", [False, True])
def test_a_model_refuses_a_graph_whose_edges_run_otherwise(tmp_path: Path, several: bool) -> None:
    path = tables(tmp_path / "t") if several else tabled(tmp_path / "e.csv", ONE_WAY)
    chosen: dict[str, Any] = {"labels": "field"} if several else {}

    def read(directed: bool) -> Graph:
        graph = read_graph(path, directed=directed, **chosen)
        return graph.target("paper") if several else graph

    model = DGI(dim=4, epochs=1).fit(read(True))
    np.testing.assert_array_equal(
        model.transform(read(True)).vectors, model.transform(model.graph_).vectors
    )
    for use in (model.transform, model.update):
        told(["edges that have directions", "like=model.graph_"], use, read(False))
