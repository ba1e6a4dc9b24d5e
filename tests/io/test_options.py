"""Each option through each kind of input: it does what it says, or it is refused; none is ignored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import pytest
from test_faults import told
from test_prepare import tabled

from infomax import Graph, read_graph
from infomax.arrays.structural_features import structural_features_named
from infomax.errors import InputError
from infomax.io.prepare import prepare

NODES = {
    "id": list("abcd"),
    "year": [1, 2, 2, 4],
    "size": [5, 1, 2, 3],
    "note": ["w x", "y", "z y", "v"],
    "g": [0, 0, 0, 0],
}
EDGES = {
    "source": list("abcd"),
    "target": list("bcda"),
    "back": list("bcda"),
    "w": [1, 2, 3, 4],
    "how": ["r", "r", "s", "s"],
}
INPUTS = ("edges", "tables", "types", "npz", "graphml", "graph")


def given(folder: Path, kind: str) -> Path:
    """The same graph as an input of some kind."""
    tables = folder / "tables"
    tables.mkdir()
    tabled(tables / "edges.csv", EDGES)
    if kind == "edges":
        return tables / "edges.csv"
    tabled(tables / "nodes.csv", NODES)
    if kind == "types":
        for name, columns in (("nodes/p", NODES), ("edges/p.r.p", EDGES)):
            (folder / "types" / name).parent.mkdir(parents=True)
            tabled(folder / "types" / f"{name}.csv", columns)
        return folder / "types"
    names = {"npz": "g.npz", "graph": "g.graph"}
    if kind == "graphml":
        network = networkx.Graph(list(zip(EDGES["source"], EDGES["target"], strict=True)))
        for name in ("year", "size"):
            values = dict(zip(NODES["id"], map(float, NODES[name]), strict=True))
            networkx.set_node_attributes(network, values, name)
        networkx.write_graphml(network, folder / "g.graphml")
        return folder / "g.graphml"
    if kind in names:
        graph = read_graph(tables, ignore=["note", "g"])
        graph.save(folder / names[kind])
        return folder / names[kind]
    return tables


def features(graph: Graph) -> set[str]:
    return (
        {*graph.feature_names}
        if structural_features_named(graph.feature_names) is None
        else {str(structural_features_named(graph.feature_names))}
    )


def has(*names: str) -> Callable[[Graph], bool]:
    return lambda graph: features(graph) == {*names}


MATRIX: list[tuple[dict[str, Any], str, Callable[[Graph], bool]]] = [
    ({"features": "year"}, "tables types graphml", has("year")),
    ({"features": "degrees"}, "edges tables types graphml", has("degrees")),
    ({"features": "positions"}, "edges tables types graphml", has("positions")),
    ({"features": ["year", "nosuch"]}, "", has()),
    ({"features": "nosuch"}, "", has()),
    ({"ignore": "year"}, "tables types graphml", lambda graph: "year" not in features(graph)),
    ({"ignore": "nosuch"}, "", has()),
    (
        {"columns": {"year": "category"}},
        "tables types graphml",
        lambda graph: "year=2" in features(graph),
    ),
    ({"columns": {"nosuch": "text"}}, "", has()),
    ({"labels": "year"}, "tables types graphml", lambda graph: list(graph.labels) == ["year"]),
    ({"labels": "nosuch"}, "", has()),
    ({"name": "year"}, "tables types graphml", lambda graph: graph.node_names is not None),
    ({"name": "nosuch"}, "", has()),
    ({"id": "id"}, "tables types", lambda graph: graph.ids.tolist() == list("abcd")),
    (
        {"source": "target", "target": "back"},
        "edges tables types",
        lambda graph: graph.num_edges == 0,
    ),
    (
        {"weight": "w"},
        "edges tables types",
        lambda graph: graph.weighted or bool(graph.relations[0].edges.receivers.data.any()),
    ),
    ({"groups": "g"}, "tables", lambda graph: graph.groups is not None),
    ({"types": "p,q"}, "edges", lambda graph: graph.types == ("p", "q")),
    ({"edge_type": "how"}, "edges tables", lambda graph: len(graph.relations) == 2),
    ({"node_type": "g"}, "tables", lambda graph: graph.types == ("0",)),
    ({"edges_as": "r"}, "edges tables types", lambda graph: "r" in graph.types),
    ({"directed": True}, "edges tables types graphml", lambda graph: graph.directed),
]


@pytest.mark.filterwarnings("ignore::infomax.errors.InputWarning")
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize(
    ("option", "honoured", "seen"), MATRIX, ids=[str(row[0]) for row in MATRIX]
)
def test_an_option_is_honoured_or_refused(
    tmp_path: Path, kind: str, option: dict[str, Any], honoured: str, seen: Callable[[Graph], bool]
) -> None:
    path = given(tmp_path, kind)
    if kind in honoured.split():
        assert seen(read_graph(path, **option))
    else:
        told([next(iter(option)).rstrip("s")[:4]], read_graph, path, **option)
    if kind in ("edges", "tables", "types") and "groups" not in option:
        tables = (path / "edges.csv", path / "nodes.csv") if kind == "tables" else (path,)
        if kind in honoured.split():
            prepare(*tables, out=tmp_path / "prepared.graph", **option)
            assert seen(Graph.open(tmp_path / "prepared.graph"))
        else:
            with pytest.raises(InputError):
                prepare(*tables, out=tmp_path / "prepared.graph", **option)
