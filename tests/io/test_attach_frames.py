"""New nodes from frames are encoded and attached as those of tables are."""

from __future__ import annotations

import warnings
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from test_faults import told

from infomax import DGI, Graph, InputError, read_graph
from infomax.arrays.sparsity import dense
from infomax.errors import InputWarning

polars = pytest.importorskip("polars", reason="frames of polars")

PEOPLE = {"who": list("abcd"), "city": ["Rome", "Oslo", "Rome", "Oslo"], "age": [1.5, None, 3, 4]}
KNOWS = {"from": list("abc"), "to": list("bcd")}
NEW_PEOPLE = {"who": ["x", "y"], "city": ["Rome", "Bern"], "age": [2.0, None]}
NEW_KNOWS = {"from": ["x", "a"], "to": ["y", "x"]}


def test_frames_attach_as_tables_do(tmp_path: Path) -> None:
    pd.DataFrame(KNOWS).to_csv(tmp_path / "edges.csv", index=False)
    pd.DataFrame(PEOPLE).to_csv(tmp_path / "nodes.csv", index=False)
    graph = read_graph(tmp_path, id="who")
    new = tmp_path / "new"
    new.mkdir()
    pd.DataFrame(NEW_KNOWS).to_csv(new / "edges.csv", index=False)
    pd.DataFrame(NEW_PEOPLE).to_csv(new / "nodes.csv", index=False)
    expected = read_graph(new, attach_to=graph)
    model = DGI(dim=4, epochs=2).fit(graph)
    vectors = model.transform(expected).vectors
    for kind in (pd.DataFrame, polars.DataFrame):
        grown = Graph.from_frames(kind(NEW_KNOWS), kind(NEW_PEOPLE), attach_to=graph)
        assert grown.ids.tolist() == [*PEOPLE["who"], "x", "y"]
        assert grown.splits["new"].tolist() == 4 * [False] + 2 * [True]
        np.testing.assert_array_equal(dense(grown.table[:]), dense(expected.table[:]))
        np.testing.assert_array_equal(model.transform(grown).vectors, vectors)


def test_the_index_is_the_id_of_new_nodes_too() -> None:
    people, edges = pd.DataFrame(PEOPLE).set_index("who"), pd.DataFrame(KNOWS)
    graph = Graph.from_frames(edges, people)
    grown = Graph.from_frames(
        pd.DataFrame(NEW_KNOWS), pd.DataFrame(NEW_PEOPLE).set_index("who"), attach_to=graph
    )
    assert grown.ids.tolist()[4:] == ["x", "y"]


def test_ids_that_pandas_made_floats_are_refused_rather_than_replaced_by_row_numbers() -> None:
    edges = pd.DataFrame({"from": [0, 1], "to": [2, 0]})
    for ids, told_of in (([2.0, 0.0, 1.0], "integers or text"), ([2.0, None, 1.0], "row 2")):
        told(
            ['column "customer"', told_of],
            Graph.from_frames,
            edges,
            pd.DataFrame({"customer": ids}),
        )
    for numbers in ([0.5, 1.0, 2.0], [1.0, 1.0, 2.0]):  # no ids: those are the index
        graph = Graph.from_frames(edges, pd.DataFrame({"x": numbers}))
        assert (graph.ids.tolist(), graph.feature_names) == ([0, 1, 2], ("x",))


def test_edge_columns_that_are_not_used_are_named_once() -> None:
    edges, people = pd.DataFrame(KNOWS).assign(since=2024), pd.DataFrame(PEOPLE)
    with pytest.warns(InputWarning, match='not used: "since"'):
        graph = Graph.from_frames(edges, people, id="who")
    later, new = pd.DataFrame(NEW_KNOWS).assign(since=2025), pd.DataFrame(NEW_PEOPLE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Graph.from_frames(later, new, attach_to=graph)
        Graph.from_frames(edges, people, like=graph)


def test_new_nodes_may_have_an_array_or_nothing() -> None:
    graph = Graph.from_frames(
        pd.DataFrame(KNOWS), pd.DataFrame({"id": list("abcd")}), features=np.eye(4, 3)
    )
    new = pd.DataFrame({"id": ["x", "y"]})
    for features in (np.ones((2, 3)), sparse.csr_array(np.ones((2, 3)))):
        grown = Graph.from_frames(pd.DataFrame(NEW_KNOWS), new, features=features, attach_to=graph)
        assert dense(grown.table[:])[4:].tolist() == [[1, 1, 1], [1, 1, 1]]
    bare = Graph.from_frames(pd.DataFrame(KNOWS))
    assert Graph.from_frames(pd.DataFrame(NEW_KNOWS), attach_to=bare).num_nodes == 6


def test_several_types() -> None:
    edges = {("user", "buys", "item"): pd.DataFrame({"source": ["a", "b"], "target": [1, 2]})}
    users = pd.DataFrame({"id": list("abcd"), "city": ["Rome", "Oslo", "Oslo", "Rome"]})
    graph = Graph.from_frames(edges, {"user": users})
    new = {("user", "buys", "item"): pd.DataFrame({"source": ["x"], "target": [2]})}
    grown = Graph.from_frames(
        new, {"user": pd.DataFrame({"id": ["x"], "city": ["Rome"]})}, attach_to=graph
    )
    assert grown.target("user").ids.tolist() == [*"abcdx"]
    assert (
        dense(grown.target("user").table[:])[4].tolist()
        == dense(graph.target("user").table[:])[0].tolist()
    )
    plain = pd.DataFrame({"source": ["x"], "target": [2]})
    told(["edges: ", "a table for each relation"], Graph.from_frames, plain, attach_to=graph)
    one = Graph.from_frames(pd.DataFrame(KNOWS))
    told(["edges: ", "the known graph has one type"], Graph.from_frames, new, attach_to=one)


def test_what_new_nodes_may_not_say() -> None:
    graph = Graph.from_frames(pd.DataFrame(KNOWS), pd.DataFrame(PEOPLE))
    frames = pd.DataFrame(NEW_KNOWS), pd.DataFrame(NEW_PEOPLE)
    told(
        ["labels: ", "none where nodes are attached"],
        Graph.from_frames,
        *frames,
        labels="city",
        attach_to=graph,
    )
    without = pd.DataFrame(NEW_PEOPLE).drop(columns="city")
    told(
        ["nodes: ", '"city"', "a cell may be empty"],
        Graph.from_frames,
        frames[0],
        without,
        attach_to=graph,
    )
    weighted = Graph.from_frames(
        pd.DataFrame(KNOWS).assign(often=2.0), pd.DataFrame(PEOPLE), weight="often"
    )
    told(['edges: expected a column "often"'], Graph.from_frames, *frames, attach_to=weighted)


@pytest.mark.parametrize("kind", [pd.Series, polars.Series])
def test_a_series_is_no_frame(kind: type) -> None:
    for frames in ((kind([1, 2]), None), (pd.DataFrame(KNOWS), kind([1, 2]))):
        told(
            ["frame of pandas, polars or pyarrow, found Series", "() makes one"],
            Graph.from_frames,
            *frames,
        )


def test_a_lazy_frame_is_none_yet_and_frames_are_no_files() -> None:
    lazy = polars.DataFrame(KNOWS).lazy()
    told(["found LazyFrame", "collect() makes one"], Graph.from_frames, lazy)
    told(
        ["edges: ", "found DataFrame", "Graph.from_frames"],
        read_graph,
        pd.DataFrame(KNOWS),
        pd.DataFrame(PEOPLE),
    )


def test_the_index_that_groupby_makes_comes_before_the_columns() -> None:
    payments = pd.DataFrame({"payer": [1, 1, 2], "payee": [2, 2, 3], "amount": [5, 6, 7]})
    counts = payments.groupby(["payer", "payee"]).agg(weight=("amount", "count"))
    graph = Graph.from_frames(counts, pd.DataFrame({"id": [1, 2, 3], "x": [0.5, 1, 2]}))
    assert graph.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    nodes = pd.DataFrame({"who": [3, 2, 1], "team": ["r", "s", "r"], "x": [0.5, 1, 2]}).set_index(
        ["who", "team"]
    )
    assert Graph.from_frames(counts, nodes, labels="team").ids.tolist() == [3, 2, 1]


def test_ids_of_two_types_are_told_with_their_column() -> None:
    nodes = pd.DataFrame({"city": ["Rome", "Oslo"], "x": [0.5, 1]})
    parts = ['text ids, as in column "city" of nodes', "found integer ids", "--id COLUMN"]
    told(parts, Graph.from_frames, pd.DataFrame({"from": [1], "to": [2]}), nodes)


def test_a_column_of_empty_lists_is_no_feature() -> None:
    nodes = pa.table(
        {"id": list("abcd"), "x": [1.0, 2, 3, 5], "v": pa.array([[]] * 4, pa.list_(pa.float64()))}
    )
    assert Graph.from_frames(pd.DataFrame(KNOWS), nodes).feature_names == ("x",)


def test_a_whole_graph_like_an_earlier_one(tmp_path: Path) -> None:
    graph = Graph.from_frames(pd.DataFrame(KNOWS), pd.DataFrame(PEOPLE).set_index("who"))
    edges, nodes = pd.DataFrame({"from": ["x"], "to": ["y"]}), pd.DataFrame(NEW_PEOPLE)
    later = Graph.from_frames(edges, nodes, like=graph)
    grown = Graph.from_frames(pd.DataFrame(NEW_KNOWS), nodes, attach_to=graph)
    np.testing.assert_array_equal(dense(later.table[:]), dense(grown.table[:])[4:])
    edges.to_csv(tmp_path / "edges.csv", index=False)
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    read = read_graph(tmp_path, like=graph)
    assert read.feature_names == later.feature_names == graph.feature_names
    np.testing.assert_array_equal(dense(read.table[:]), dense(later.table[:]))
    assert DGI(dim=4, epochs=2, vectors="paper").fit(graph).transform(later).vectors.shape == (2, 4)
    told(
        ["columns: ", "those of another graph"],
        Graph.from_frames,
        edges,
        nodes,
        like=graph,
        columns={"age": "date"},
    )
    types = Graph.from_frames({("a", "b"): pd.DataFrame(KNOWS)}, {"a": pd.DataFrame(PEOPLE)})
    again = Graph.from_frames({("a", "b"): edges}, {"a": nodes}, like=types)
    assert again.target("a").feature_names == types.target("a").feature_names


def test_columns_that_a_later_graph_encodes_by_its_own_values_are_named(tmp_path: Path) -> None:
    edges, nodes = (
        pd.DataFrame(KNOWS),
        pd.DataFrame({"id": list("abcd"), "age": [1.5, None, 3, 4], "x": [1, 2, 3, 5]}),
    )
    graph, older = Graph.from_frames(edges, nodes), nodes.assign(age=nodes.age + 30)
    DGI(dim=4, epochs=2).fit(graph).save(tmp_path / "run")
    model = DGI.load(tmp_path / "run")
    with pytest.warns(
        InputWarning, match='columns "age" were encoded by this graph\'s values.*like=model.graph_'
    ):
        model.transform(Graph.from_frames(edges, older))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(graph)
        model.transform(Graph.from_frames(edges, older, like=model.graph_))
        model.transform(
            Graph.from_frames(
                pd.DataFrame(NEW_KNOWS), older[:2].assign(id=["x", "y"]), attach_to=graph
            )
        )


def test_features_are_found_by_their_names_in_any_order(tmp_path: Path) -> None:
    edges, nodes = (
        pd.DataFrame({"source": ["a"], "target": ["b"]}),
        pd.DataFrame({"id": ["a", "b"], "x": 1, "y": [2, 3]}),
    )
    graph, turned = Graph.from_frames(edges, nodes), nodes[["y", "id", "x"]]
    edges.to_csv(tmp_path / "edges.csv", index=False)
    turned.to_csv(tmp_path / "nodes.csv", index=False)
    turned.to_parquet(tmp_path / "nodes.parquet")
    network = networkx.Graph([("a", "b")])
    networkx.set_node_attributes(network, turned.set_index("id").to_dict("index"))
    networkx.write_graphml(network, tmp_path / "g.graphml")
    laters = [
        read_graph(tmp_path / "edges.csv", tmp_path / f"nodes.{kind}", like=graph)
        for kind in ("csv", "parquet")
    ]
    for later in (
        *laters,
        read_graph(tmp_path / "g.graphml", like=graph),
        Graph.from_frames(edges, turned, like=graph),
    ):
        assert later.feature_names == ("x", "y")
        np.testing.assert_array_equal(later.features, graph.features)
    new = pd.DataFrame({"y": [5], "x": [4], "id": ["c"]})
    grown = Graph.from_frames(
        pd.DataFrame({"source": ["c"], "target": ["a"]}), new, attach_to=graph
    )
    assert grown.features[2].tolist() == [4, 5]


def test_graphml_is_encoded_as_an_earlier_graph_was(tmp_path: Path) -> None:
    for name, start, other in (("first", 0, "Oslo"), ("second", 100, "Bonn")):
        network = networkx.cycle_graph(6)
        cities = ("Rome", other, "Rome", "Oslo", "Rome", "Oslo")
        for node, city in enumerate(cities):
            network.nodes[node].update(age=node + start, city=city)
        networkx.write_graphml(network, tmp_path / f"{name}.graphml")
    graph = read_graph(tmp_path / "first.graphml")
    later = read_graph(tmp_path / "second.graphml", like=graph)
    assert later.feature_names == graph.feature_names == ("age", "city=Oslo", "city=Rome")
    deviation = np.arange(6).std()
    np.testing.assert_allclose(
        later.features[:, 0] - graph.features[:, 0], 100 / deviation, rtol=1e-5
    )
    assert later.features[1, 1:].tolist() == [0, 0]  # Bonn, which was never seen
    networkx.set_node_attributes(network, "old", "age")
    networkx.write_graphml(network, tmp_path / "bad.graphml")
    with pytest.warns(InputWarning, match='bad.graphml, row 1, column "age".*"old".* 6 cells'):
        bad = read_graph(tmp_path / "bad.graphml", like=graph)
    assert not bad.features[:, 0].any()


def test_lists_of_labels_are_told_how_to_become_columns() -> None:
    nodes = pd.DataFrame(
        {"id": list("abcd"), "x": [1.0, 2, 3, 5], "tags": [["vip"], ["late", "vip"], [], ["new"]]}
    )
    told(
        ['column "tags"', "get_dummies"],
        Graph.from_frames,
        pd.DataFrame(KNOWS),
        nodes,
        labels="tags",
    )
    flags = nodes.tags.str.join("|").str.get_dummies()
    graph = Graph.from_frames(
        pd.DataFrame(KNOWS), nodes[["id", "x"]].join(flags), labels=list(flags)
    )
    assert {name: label.tolist() for name, label in graph.labels.items()} == {
        "late": ["0", "1", "0", "0"], "new": ["0", "0", "0", "1"], "vip": ["1", "1", "0", "0"]
    }  # fmt: skip


def test_a_cell_that_is_no_date_has_the_remedy_of_dates() -> None:
    nodes = pd.DataFrame(
        {"id": list("abcd"), "day": ["2024-01-01", "01.02.2024", "2024-01-03", "2024-01-05"]}
    )
    with pytest.raises(InputError) as caught:
        Graph.from_frames(pd.DataFrame(KNOWS), nodes, columns={"day": "date"})
    assert "dates as 2025-12-31" in caught.value.remedy
    assert "leave the cell empty" in caught.value.remedy


def test_row_numbers_of_pandas_are_no_ids() -> None:
    edges, nodes = (
        pd.DataFrame({"from": [0, 1], "to": [1, 2]}),
        pd.DataFrame({"customer": [2, 0, 1], "x": [0.5, 1, 2]}),
    )
    written, numbered = (frame.reset_index(names="Unnamed: 0") for frame in (edges, nodes))
    told(['found "Unnamed: 0"', "index_col=0", "--id COLUMN"], Graph.from_frames, edges, numbered)
    told(['found "Unnamed: 0"', "index_col=0", "--source"], Graph.from_frames, written, nodes)
    for more in ({"id": "customer"}, {"ignore": "Unnamed: 0"}):
        assert Graph.from_frames(edges, numbered, **more).ids.tolist() == [2, 0, 1]
    assert Graph.from_frames(written, nodes, source="from", target="to").num_edges == 2
