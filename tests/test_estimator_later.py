"""After the training: a new node at once has the vector that it has when it is attached, among one type or several."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sample_graphs import random_graph, typed_graph
from scipy import sparse

from infomax import DGI, Graph, InputError, read_graph
from infomax.arrays.relations import Relation, steps
from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import structural_features_named
from infomax.parts.encoders import GCN, PathMean, SkipMeanPool
from infomax.views import NEIGHBOURS

Apart = type("Apart", (SkipMeanPool,), {"rule": NEIGHBOURS})
NEW = np.isin(np.arange(40), [3, 8, 20, 39])  # of one type the last is joined to none


def world(types: bool, kind: str = "dense") -> Graph:
    """Nodes of one type, or papers with others. NEW ones are not joined; by directed edges they only receive."""
    if types:
        graph = typed_graph(dense=kind != "sparse", weighted=kind == "weighted")
    else:
        graph = random_graph(
            dense=kind == "dense", weighted=kind == "weighted", directed=kind == "directed"
        )
        graph = graph.replace(ids=np.array([f"n{row}" for row in range(40)], dtype=object))
    relations = []
    for one in graph.relations:
        matrix = one.edges.matrix().toarray()
        if one.within_one_type:
            matrix[np.ix_(NEW, NEW)] = 0
        if one.within_one_type and kind == "directed":
            matrix = np.triu(matrix) if types else matrix
            matrix[NEW] = 0
        relations.append(
            Relation.of(
                *one.ends, sparse.csr_array(matrix), one.within_one_type and kind == "directed"
            )
        )
    return graph.replace(relations=tuple(relations))


def neighbours(graph: Graph, *, weights: bool = False) -> list[Any]:
    """Who sends to each of the NEW nodes, among several types by relation."""
    found: list[dict[str, Any]] = [{} for _ in range(NEW.sum())]
    for step in steps(graph.relations, graph.node_type):
        place, others, values = step.received(np.flatnonzero(NEW))
        ids = graph.target(step.sender).ids[others]
        for new, one in enumerate(found):
            mine = dict(zip(ids[place == new].tolist(), values[place == new].tolist(), strict=True))
            one[step.relation.name] = mine if weights else list(mine)
    return found if graph.node_type else [one["to"] for one in found]


SETTINGS: dict[str, tuple[bool, dict[str, Any]]] = {
    "gcn": (False, {}),
    "deep": (False, {"encoder": partial(GCN, layers=3)}),
    "no positions": (False, {"encoder": partial(Apart, layers=2), "vectors": "encoder,own"}),
    "paper": (False, {"vectors": "paper", "scale": "columns"}),
    "types, 1 hop": (True, {"encoder": partial(PathMean, hops=1)}),
    "types, 2 hops": (True, {}),
    "types, 3 hops": (True, {"encoder": partial(PathMean, hops=3)}),
}


@pytest.mark.parametrize("kind", ["sparse", "weighted", "directed", "dense"])
@pytest.mark.parametrize(("types", "settings"), SETTINGS.values(), ids=SETTINGS)
def test_a_node_at_once_has_the_vector_of_the_whole_graph(
    kind: str, types: bool, settings: dict[str, Any]
) -> None:
    whole_graph = world(types, kind)
    model = DGI(dim=8, epochs=2, **settings).fit(whole_graph.part(~NEW))
    expected, features = model.transform(whole_graph).vectors[NEW], dense(whole_graph.features[NEW])
    neighbours_of_new = neighbours(whole_graph, weights=kind == "weighted")
    np.testing.assert_allclose(
        model.vectors_of(features, neighbours_of_new), expected, rtol=1e-4, atol=1e-5
    )
    if not types:
        alone = model.vector(dict(zip(whole_graph.feature_names, features[3], strict=True)), [])
        np.testing.assert_allclose(alone, expected[3], rtol=1e-4, atol=1e-6)
    assert not np.allclose(
        model.vector(features[0]), expected[0], atol=1e-3
    )  # the neighbours matter


@pytest.mark.parametrize("types", [False, True], ids=["one type", "types"])
def test_of_a_graph_folder_as_of_memory(tmp_path: Path, types: bool) -> None:
    whole_graph, folder = world(types, "weighted"), tmp_path / "g.graph"
    whole_graph.part(~NEW).save(folder)
    model = DGI(8, epochs=2).fit(Graph.open(folder).target(whole_graph.node_type))
    assert model.graph_.table.mapped
    neighbours_of_new, expected = (
        neighbours(whole_graph, weights=True),
        model.transform(whole_graph).vectors[NEW],
    )
    np.testing.assert_allclose(
        model.vectors_of(dense(whole_graph.features[NEW]), neighbours_of_new),
        expected,
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("features", ["positions", "degrees"])
@pytest.mark.parametrize("directed", [False, True])
def test_made_features_are_made_as_for_attached_nodes(
    tmp_path: Path, features: str, directed: bool
) -> None:
    whole_graph = world(False, "directed" if directed else "sparse")
    known = Graph.from_scipy(
        whole_graph.part(~NEW).adjacency, features, directed=directed, ids=whole_graph.ids[~NEW]
    )
    model = DGI(dim=8, epochs=2).fit(known)
    neighbours_of_new = neighbours(whole_graph)
    rows = [f"{near},new{new}" for new, ids in enumerate(neighbours_of_new) for near in ids]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *rows]))
    (tmp_path / "nodes.csv").write_text(
        "\n".join(["id", *(f"new{new}" for new in range(len(neighbours_of_new)))])
    )
    grown = read_graph(tmp_path, attach_to=known)
    expected = model.transform(grown).part(grown.splits["new"])
    # Rounding of float32 in features, about 1e-7, grows where centred parts are scaled up: more so with more threads.
    np.testing.assert_allclose(
        model.vectors_of(None, neighbours_of_new), expected.vectors, rtol=1e-4, atol=1e-5
    )


def test_neighbours_are_named_by_type_by_relation_or_by_both() -> None:
    whole_graph = world(True)
    model = DGI(8, epochs=2).fit(whole_graph.part(~NEW))
    features, neighbours_of_new = whole_graph.features[NEW][0], neighbours(whole_graph)[0]
    expected = model.vector(features, neighbours_of_new)
    for names in (
        ("author", "subject", "paper"),
        ("paper.by.author", "paper.on.subject", "paper.cites.paper"),
    ):
        same = dict(
            zip(names, (neighbours_of_new[one] for one in ("by", "on", "cites")), strict=True)
        )
        np.testing.assert_array_equal(model.vector(features, same), expected)


def write(folder: Path, name: str, head: str, *rows: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")


@pytest.fixture(params=["positions", "degrees"])
def known(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    """Papers with features, where they are not degrees; authors without; two relations join them."""
    folder, draw = tmp_path / "known", np.random.default_rng(0)
    write(
        folder,
        "nodes/paper",
        "id,x,y",
        *(f"{paper},{paper % 3},{paper % 5}" for paper in range(12)),
    )
    for name in ("writes", "reads"):
        pairs = {
            (author, paper) for author in range(6) for paper in draw.integers(0, 12, 4).tolist()
        }
        rows = (f"a{author},{paper}" for author, paper in sorted(pairs))
        write(folder, f"edges/author.{name}.paper", "author,paper", *rows)
    write(folder, "edges/author.knows.author", "source,target", "a0,a1", "a1,a2", "a3,a4")
    return read_graph(folder, features="degrees" if request.param == "degrees" else None)


def test_made_features_of_several_types_are_made_as_for_attached_nodes(
    known: Graph, tmp_path: Path
) -> None:
    folder = tmp_path / "new"
    write(folder, "edges/author.writes.paper", "author,paper", "new0,3", "new0,5", "new1,5")
    write(folder, "edges/author.reads.paper", "author,paper", "new0,3", "new1,7", "new2,1")
    write(folder, "edges/author.knows.author", "source,target", "new1,a0", "a3,new2")
    grown = read_graph(folder, attach_to=known).target("author")
    # the paths end at authors, too: their features are read
    paths = [
        "author-[writes]-paper",
        "author-author",
        "author-[reads]-paper-[writes]-author-author",
    ]
    model = DGI(8, epochs=2, encoder=partial(PathMean, paths=paths)).fit(known.target("author"))
    attached = model.transform(grown)
    expected = np.stack([attached[f"new{new}"] for new in range(3)])
    neighbours_of_new: list[dict[str, Any]] = [
        {"writes": [3, 5], "reads": [3]},
        {"writes": [5], "reads": [7], "author": ["a0"]},
        {"reads": [1], "knows": ["a3"]},
    ]
    assert structural_features_named(known.target("author").feature_names)
    np.testing.assert_allclose(
        model.vectors_of(None, neighbours_of_new), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("neighbours", "words"),
    [
        (["a1"], "ids by type or relation: author, reads, writes, found"),
        ({"paper": [3]}, 'one of author, reads, writes, found "paper"'),
        ({"wrties": [3]}, 'found "wrties". Did you mean "writes"'),
        ({"writes": [99]}, 'writes: expected ids of the 12 known nodes of type paper, found "99"'),
        ({"writes": 3}, "a list of ids"),
        ({"author": ["a1"], "knows": ["a2"]}, "each relation once"),
        ({"writes": {3: -1}}, "zero or more"),
    ],
)
def test_mistakes_of_several_types_are_named(known: Graph, neighbours: Any, words: str) -> None:
    model = DGI(4, epochs=1).fit(known.target("author"))
    with pytest.raises(InputError, match=words):
        model.vector(None, neighbours)


def test_an_edge_of_weight_zero_is_none(known: Graph) -> None:
    model = DGI(8, epochs=2).fit(known.target("author"))
    expected = model.vectors_of(None, [{"writes": {3: 1}, "reads": {7: 2}}, {"writes": {5: 1}}])
    found = model.vectors_of(
        None, [{"writes": {3: 1, 5: 0}, "reads": {7: 2}}, {"writes": {5: 1}, "reads": {1: 0}}]
    )
    np.testing.assert_array_equal(found, expected)


def test_mistakes_are_named() -> None:
    model = DGI(dim=4, epochs=1).fit(world(False))
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
        DGI(dim=4, epochs=1).fit(world(False, "weighted")).vector(row, ["n1"])
    many = world(False, "sparse").replace(groups=np.zeros(40, np.int64))
    with pytest.raises(InputError, match="one graph"):
        DGI(dim=4, epochs=1, preset="whole-graph").fit(many).vector(row, ["n1"])


@pytest.mark.parametrize("kind", [tuple, set, np.array])
def test_cells_of_several_entries_may_be_of_any_kind(kind):
    nodes = pd.DataFrame({"id": range(4), "words": [["New York", "b"], ["c"], ["b"], ["York"]]})
    graph = Graph.from_frames(pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3]}), nodes)
    model = DGI(dim=4, epochs=1).fit(graph)
    words = ["New York"]
    np.testing.assert_array_equal(
        model.vector({"words": kind(words)}, [0]), model.vector({"words": words}, [0])
    )
    assert (model.vector({"words": words}, [0]) != model.vector({"words": "New York"}, [0])).any()


def test_columns_of_a_table_are_encoded_as_those_of_attached_nodes(tmp_path):
    rows = [
        f"{k},Node {k},{k % 3 or ''},{'ab'[k % 2]},20{k:02d}-05-0{k % 9 + 1},red stone {k % 4}"
        for k in range(30)
    ]
    head = "id,name,score,city,joined,note"
    (tmp_path / "nodes.csv").write_text("\n".join([head, *rows]))
    (tmp_path / "edges.csv").write_text(
        "source,target\n" + "\n".join(f"{k},{(3 * k + 1) % 30}" for k in range(30))
    )
    model = DGI(dim=8, epochs=2).fit(read_graph(tmp_path))
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "nodes.csv").write_text(
        f"{head}\n97,Late,2.5,b,2020-01-02,red\n98,Later,,c,,stone of gold"
    )
    (tmp_path / "new" / "edges.csv").write_text("source,target\n97,3\n97,5\n98,7")
    grown = read_graph(tmp_path / "new", attach_to=model.graph_)
    expected = model.transform(grown).part(grown.splits["new"]).vectors
    first = {"name": "Late", "score": 2.5, "city": "b", "joined": date(2020, 1, 2), "note": "red"}
    other = {"score": None, "city": "c", "joined": "", "note": "stone of gold"}
    np.testing.assert_allclose(
        model.vectors_of([first, other], [[3, 5], [7]]), expected, rtol=1e-4, atol=1e-6
    )
    frame = pd.DataFrame([first, other])
    np.testing.assert_array_equal(
        model.vectors_of(frame, [[3, 5], [7]]), model.vectors_of([first, other], [[3, 5], [7]])
    )
    np.testing.assert_array_equal(model.vector(frame.loc[0], [3, 5]), model.vector(first, [3, 5]))
    whole_row = pd.Series(
        {"id": 97, **first, "label": "x"}
    )  # as in the table, with what is no feature
    np.testing.assert_array_equal(model.vector(whole_row, [3, 5]), model.vector(first, [3, 5]))
    for wrong, word in (
        (
            {"town" if name == "city" else name: cell for name, cell in first.items()},
            'the columns "city"',
        ),
        ({**first, "score": "much"}, 'features, column "score": expected a finite number'),
        ({**first, "city": ["a", 1]}, 'column "city"'),
        ({"score": 1}, 'the columns "city", "joined", "note"'),
    ):
        with pytest.raises(InputError, match=word):
            model.vector(wrong, [3])
    with pytest.raises(InputError, match=r"shape \[2, F\]"):
        model.vectors_of([first], [[3], [5]])
    polars = pytest.importorskip("polars", reason="frames of polars")
    numbers = DGI(dim=2, epochs=1).fit(
        Graph.from_arrays([[0, 1], [1, 2]], np.eye(3, 2), feature_names=["a", "b"])
    )
    expected = numbers.vector([1, 2], [0])
    for given in (pd.Series([1, 2]), pd.Series({"b": 2, "id": 7, "a": 1}), np.array([1, 2])):
        np.testing.assert_array_equal(numbers.vector(given, [0]), expected)
    for rows in (
        pd.DataFrame([[1, 2]]),
        pd.DataFrame({"b": [2], "a": [1]}),
        polars.DataFrame({"b": [2], "a": [1]}),
    ):
        np.testing.assert_array_equal(numbers.vectors_of(rows, [[0]])[0], expected)
