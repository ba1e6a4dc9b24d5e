"""After the training: a new node at once has the vector that it has when it is attached to the graph."""

from __future__ import annotations

from datetime import date
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sample_graphs import random_graph
from scipy import sparse

from infomax import DGI, Graph, InputError, read_graph
from infomax.parts.encoders import GCN, SkipMeanPool
from infomax.views import NEIGHBOURS

Apart = type("Apart", (SkipMeanPool,), {"rule": NEIGHBOURS})
NEW = np.isin(np.arange(40), [3, 8, 20, 39])  # no two are joined, the last to none


def world(**kind):
    """A graph whose NEW nodes are not joined to each other, as the law needs."""
    graph = random_graph(**kind)
    coo = graph.adjacency.tocoo()
    kept = ~(NEW[coo.row] & NEW[coo.col])
    ends = coo.row[kept], coo.col[kept]
    graph = graph.replace(adjacency=sparse.csr_array((coo.data[kept], ends), shape=coo.shape))
    return graph.replace(ids=np.array([f"n{row}" for row in range(40)], dtype=object))


def neighbours(graph):
    """Who sends to each of the NEW nodes, with the weights of the edges."""
    place, senders, weights = graph.edges.received(np.flatnonzero(NEW))
    ids = graph.ids[senders]
    return [dict(zip(ids[place == new], weights[place == new].tolist(), strict=True)) for new in range(NEW.sum())]


def without_edges_to_known(graph):
    """A directed graph in which no NEW node sends: only edges to it can be told."""
    coo = graph.adjacency.tocoo()
    kept = ~NEW[coo.row]
    return graph.replace(adjacency=sparse.csr_array((coo.data[kept], (coo.row[kept], coo.col[kept])), shape=coo.shape))


@pytest.mark.parametrize("kind", ["plain", "weighted", "directed", "dense"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"encoder": partial(GCN, layers=3)},
        {"encoder": partial(Apart, layers=2), "vectors": "encoder,own"},
        {"vectors": "paper", "scale": "columns"},
    ],
    ids=["gcn", "deep", "no positions", "paper"],
)
def test_a_node_at_once_has_the_vector_of_the_whole_graph(kind, settings):
    whole = world(**({} if kind == "plain" else {kind: True}))
    whole = without_edges_to_known(whole) if kind == "directed" else whole
    model = DGI(dim=8, epochs=2, **settings).fit(whole.part(~NEW))
    expected, joined = model.transform(whole).vectors[NEW], neighbours(whole)
    features = whole.features[NEW] if kind == "dense" else whole.features[NEW].toarray()
    told = joined if kind == "weighted" else [list(one) for one in joined]
    np.testing.assert_allclose(model.vectors_of(features, told), expected, rtol=1e-4, atol=1e-6)
    alone = model.vector(dict(zip(whole.feature_names, features[3], strict=True)), [])
    np.testing.assert_allclose(alone, expected[3], rtol=1e-4, atol=1e-6)
    assert not np.allclose(model.vector(features[0], []), expected[0], atol=1e-3)  # the neighbours matter


@pytest.mark.parametrize("features", ["positions", "degrees"])
@pytest.mark.parametrize("directed", [False, True])
def test_made_features_are_made_as_for_attached_nodes(tmp_path, features, directed):
    whole = world(directed=directed)
    whole = without_edges_to_known(whole) if directed else whole
    known = Graph.from_scipy(whole.part(~NEW).adjacency, features, directed=directed, ids=whole.ids[~NEW])
    model = DGI(dim=8, epochs=2).fit(known)
    told = [list(one) for one in neighbours(whole)]
    rows = [f"{near},new{new}" for new, ids in enumerate(told) for near in ids]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *rows]))
    (tmp_path / "nodes.csv").write_text("\n".join(["id", *(f"new{new}" for new in range(len(told)))]))
    grown = read_graph(tmp_path, attach_to=known)
    expected = model.transform(grown).part(grown.splits["new"])
    np.testing.assert_allclose(model.vectors_of(None, told), expected.vectors, rtol=1e-4, atol=1e-6)


def test_of_a_graph_folder_as_of_memory(tmp_path):
    whole = world(dense=True)
    known, folder = whole.part(~NEW), tmp_path / "g.graph"
    known.save(folder)
    model, mapped = (DGI(dim=8, epochs=2, preset="batches").fit(graph) for graph in (known, Graph.open(folder)))
    told = [list(one) for one in neighbours(whole)]
    features = whole.features[NEW]
    np.testing.assert_allclose(
        mapped.vectors_of(features, told), model.vectors_of(features, told), rtol=1e-4, atol=1e-6
    )


def test_mistakes_are_named():
    model = DGI(dim=4, epochs=1).fit(world(dense=True))
    row = np.zeros(12)
    for given, word in (
        ((row, ["n1", "nobody"]), "nobody"),
        ((row, "n1"), "a list of ids"),
        ((row[:5], ["n1"]), "12 numbers per node"),
        ((None, ["n1"]), "features"),
        ((dict.fromkeys(model.feature_names_[1:], 0), ["n1"]), "no column 'x0'"),
        ((np.full(12, np.nan), ["n1"]), "finite"),
        ((row, {"n1": -1}), "zero or more"),
        ((row, {"n1": "much"}), "numbers"),
        ((row, {"n1": [1, 2]}), "zero or more, found lists"),
    ):
        with pytest.raises(InputError, match=word):
            model.vector(*given)
    with pytest.raises(InputError, match="weights by id"):
        DGI(dim=4, epochs=1).fit(world(weighted=True)).vector(row, ["n1"])
    many = world().replace(groups=np.zeros(40, np.int64))
    with pytest.raises(InputError, match="one graph"):
        DGI(dim=4, epochs=1, preset="whole-graph").fit(many).vector(row, ["n1"])


@pytest.mark.parametrize("kind", [tuple, set, np.array])
def test_cells_of_several_entries_may_be_of_any_kind(kind):
    nodes = pd.DataFrame({"id": range(4), "words": [["New York", "b"], ["c"], ["b"], ["York"]]})
    graph = Graph.from_frames(pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3]}), nodes)
    model = DGI(dim=4, epochs=1).fit(graph)
    words = ["New York"]
    np.testing.assert_array_equal(model.vector({"words": kind(words)}, [0]), model.vector({"words": words}, [0]))
    assert (model.vector({"words": words}, [0]) != model.vector({"words": "New York"}, [0])).any()


def test_columns_of_a_table_are_encoded_as_those_of_attached_nodes(tmp_path):
    rows = [f"{k},Node {k},{k % 3 or ''},{'ab'[k % 2]},20{k:02d}-05-0{k % 9 + 1},red stone {k % 4}" for k in range(30)]
    head = "id,name,score,city,joined,note"
    (tmp_path / "nodes.csv").write_text("\n".join([head, *rows]))
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"{k},{(3 * k + 1) % 30}" for k in range(30)))
    model = DGI(dim=8, epochs=2).fit(read_graph(tmp_path))
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "nodes.csv").write_text(f"{head}\n97,Late,2.5,b,2020-01-02,red\n98,Later,,c,,stone of gold")
    (tmp_path / "new" / "edges.csv").write_text("source,target\n97,3\n97,5\n98,7")
    grown = read_graph(tmp_path / "new", attach_to=model.graph_)
    expected = model.transform(grown).part(grown.splits["new"]).vectors
    first = {"name": "Late", "score": 2.5, "city": "b", "joined": date(2020, 1, 2), "note": "red"}
    other = {"score": None, "city": "c", "joined": "", "note": "stone of gold"}
    np.testing.assert_allclose(model.vectors_of([first, other], [[3, 5], [7]]), expected, rtol=1e-4, atol=1e-6)
    frame = pd.DataFrame([first, other])
    np.testing.assert_array_equal(
        model.vectors_of(frame, [[3, 5], [7]]), model.vectors_of([first, other], [[3, 5], [7]])
    )
    np.testing.assert_array_equal(model.vector(frame.loc[0], [3, 5]), model.vector(first, [3, 5]))
    whole_row = pd.Series({"id": 97, **first, "label": "x"})  # as in the table, with what is no feature
    np.testing.assert_array_equal(model.vector(whole_row, [3, 5]), model.vector(first, [3, 5]))
    for wrong, word in (
        ({"town" if name == "city" else name: cell for name, cell in first.items()}, 'the columns "city"'),
        ({**first, "score": "much"}, 'features, column "score": expected a finite number'),
        ({**first, "city": ["a", 1]}, 'column "city"'),
        ({"score": 1}, 'the columns "city", "joined", "note"'),
    ):
        with pytest.raises(InputError, match=word):
            model.vector(wrong, [3])
    with pytest.raises(InputError, match=r"shape \[2, F\]"):
        model.vectors_of([first], [[3], [5]])
    polars = pytest.importorskip("polars", reason="frames of polars")
    numbers = DGI(dim=2, epochs=1).fit(Graph.from_arrays([[0, 1], [1, 2]], np.eye(3, 2), feature_names=["a", "b"]))
    expected = numbers.vector([1, 2], [0])
    for given in (pd.Series([1, 2]), pd.Series({"b": 2, "id": 7, "a": 1}), np.array([1, 2])):
        np.testing.assert_array_equal(numbers.vector(given, [0]), expected)
    for rows in (pd.DataFrame([[1, 2]]), pd.DataFrame({"b": [2], "a": [1]}), polars.DataFrame({"b": [2], "a": [1]})):
        np.testing.assert_array_equal(numbers.vectors_of(rows, [[0]])[0], expected)
