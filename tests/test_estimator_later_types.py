"""A new node of a graph of several types has at once the vector that it has when it is attached to the graph."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_graphs import typed_graph
from scipy import sparse

from infomax import DGI, Graph, InputError, read_graph
from infomax.arrays.made import made
from infomax.arrays.relations import Relation, steps
from infomax.arrays.sparsity import dense
from infomax.parts.encoders import PathMean

NEW = np.isin(np.arange(40), [3, 8, 20, 39])


def world(kind: str = "dense") -> Graph:
    """Papers, authors and subjects. NEW papers do not cite each other; where edges are directed, they cite none."""
    graph = typed_graph(dense=kind != "sparse", weighted=kind == "weighted")
    by, on, cites = graph.relations
    matrix = cites.edges.matrix().toarray()
    matrix[np.ix_(NEW, NEW)] = 0
    if kind == "directed":
        matrix = np.triu(matrix)
        matrix[NEW] = 0
    cites = Relation.of("paper", "cites", "paper", sparse.csr_array(matrix), kind == "directed")
    return graph.replace(relations=(by, on, cites))


def senders(graph: Graph, *, weights: bool = False) -> list[dict[str, Any]]:
    """Who sends to the NEW papers, by relation."""
    found: list[dict[str, Any]] = [{} for _ in range(NEW.sum())]
    for step in steps(graph.relations, "paper"):
        place, others, values = step.senders.of(np.flatnonzero(NEW))
        ids = graph.target(step.sender).ids[others]
        for new, one in enumerate(found):
            mine = dict(zip(ids[place == new].tolist(), values[place == new].tolist(), strict=True))
            one[step.relation.name] = mine if weights else list(mine)
    return found


@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "directed"])
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_node_at_once_has_the_vector_of_the_whole_graph(kind: str, hops: int) -> None:
    whole = world(kind)
    model = DGI(8, epochs=2, encoder=partial(PathMean, hops=hops)).fit(whole.part(~NEW))
    expected, features = model.transform(whole).vectors[NEW], dense(whole.features[NEW])
    told = senders(whole, weights=kind == "weighted")
    np.testing.assert_allclose(model.vectors_of(features, told), expected, rtol=1e-4, atol=1e-5)
    assert not np.allclose(model.vector(features[0]), expected[0], atol=1e-3)  # the neighbours matter


def test_neighbours_are_named_by_type_by_relation_or_by_both() -> None:
    whole = world()
    model = DGI(8, epochs=2).fit(whole.part(~NEW))
    features, told = whole.features[NEW][0], senders(whole)[0]
    expected = model.vector(features, told)
    for names in (("author", "subject", "paper"), ("paper.by.author", "paper.on.subject", "paper.cites.paper")):
        same = dict(zip(names, (told[one] for one in ("by", "on", "cites")), strict=True))
        np.testing.assert_array_equal(model.vector(features, same), expected)


def test_of_a_graph_folder_as_of_memory(tmp_path: Path) -> None:
    whole, folder = world("weighted"), tmp_path / "g.graph"
    whole.part(~NEW).save(folder)
    model = DGI(8, epochs=2).fit(Graph.open(folder).target("paper"))
    assert model.graph_.table.mapped
    told, expected = senders(whole, weights=True), model.transform(whole).vectors[NEW]
    np.testing.assert_allclose(model.vectors_of(whole.features[NEW], told), expected, rtol=1e-4, atol=1e-5)


def write(folder: Path, name: str, head: str, *rows: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")


@pytest.fixture(params=["positions", "degrees"])
def known(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    """Papers with features, where they are not degrees; authors without; two relations join them."""
    folder, draw = tmp_path / "known", np.random.default_rng(0)
    write(folder, "nodes/paper", "id,x,y", *(f"{paper},{paper % 3},{paper % 5}" for paper in range(12)))
    for name in ("writes", "reads"):
        pairs = {(author, paper) for author in range(6) for paper in draw.integers(0, 12, 4).tolist()}
        rows = (f"a{author},{paper}" for author, paper in sorted(pairs))
        write(folder, f"edges/author.{name}.paper", "author,paper", *rows)
    write(folder, "edges/author.knows.author", "source,target", "a0,a1", "a1,a2", "a3,a4")
    return read_graph(folder, features="degrees" if request.param == "degrees" else None)


def test_made_features_are_made_as_for_attached_nodes(known: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    write(folder, "edges/author.writes.paper", "author,paper", "new0,3", "new0,5", "new1,5")
    write(folder, "edges/author.reads.paper", "author,paper", "new0,3", "new1,7", "new2,1")
    write(folder, "edges/author.knows.author", "source,target", "new1,a0", "a3,new2")
    grown = read_graph(folder, attach_to=known).target("author")
    # the paths end at authors, too: their features are read
    paths = ["author-[writes]-paper", "author-author", "author-[reads]-paper-[writes]-author-author"]
    model = DGI(8, epochs=2, encoder=partial(PathMean, paths=paths)).fit(known.target("author"))
    attached = model.transform(grown)
    expected = np.stack([attached[f"new{new}"] for new in range(3)])
    told: list[dict[str, Any]] = [
        {"writes": [3, 5], "reads": [3]},
        {"writes": [5], "reads": [7], "author": ["a0"]},
        {"reads": [1], "knows": ["a3"]},
    ]
    assert made(known.target("author").feature_names)
    np.testing.assert_allclose(model.vectors_of(None, told), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("neighbours", "words"),
    [
        (["a1"], "ids by type or relation: author, reads, writes, found"),
        ({"paper": [3]}, 'one of author, reads, writes, found "paper", which is several'),
        ({"wrties": [3]}, 'found "wrties". Did you mean "writes"'),
        ({"writes": [99]}, 'writes: expected ids of the 12 known nodes of type paper, found "99"'),
        ({"writes": 3}, "a list of ids"),
        ({"author": ["a1"], "knows": ["a2"]}, "each relation once"),
        ({"writes": {3: -1}}, "zero or more"),
    ],
)
def test_mistakes_are_named(known: Graph, neighbours: Any, words: str) -> None:
    model = DGI(4, epochs=1).fit(known.target("author"))
    with pytest.raises(InputError, match=words):
        model.vector(None, neighbours)


def test_an_edge_of_weight_zero_is_none(known: Graph) -> None:
    model = DGI(8, epochs=2).fit(known.target("author"))
    expected = model.vectors_of(None, [{"writes": {3: 1}, "reads": {7: 2}}, {"writes": {5: 1}}])
    found = model.vectors_of(None, [{"writes": {3: 1, 5: 0}, "reads": {7: 2}}, {"writes": {5: 1}, "reads": {1: 0}}])
    np.testing.assert_array_equal(found, expected)
