"""New rows of frames with keys are attached to the graph of earlier rows, by its schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sample_shop

from infomax import DGI, Graph, InputError
from infomax.arrays.sparsity import dense


def frames(**new_rows: dict[str, list[Any]]) -> dict[str, pd.DataFrame]:
    """The shop's tables, or these rows of some tables."""
    tables = new_rows or sample_shop.TABLES
    return {name: pd.DataFrame(columns) for name, columns in tables.items()}


NEW: dict[str, dict[str, list[Any]]] = {
    "cities": sample_shop.TABLES["cities"],
    "customers": {
        "customer_id": [101, 102],
        "first_name": ["Zoe", "Max"],
        "last_name": ["Bell", "Bell"],
        "age": [30.5, 31.5],
        "city_id": [1, 2],
    },
    "orders": {
        "id": [201, 202, 203],
        "customer_id": [101.0, 1.0, np.nan],
        "ordered": ["2024-02-01", "2024-02-02", "2024-02-03"],
    },
    "lines": {"order_id": [201, 1], "line": [1, 9], "product_id": [10, 20], "amount": [2, 3]},
    "staff": {"id": [4], "name": ["Ben"], "wage": [2.5], "parent_id": [1]},
    "product_tags": {"product_id": [20], "tag_id": [2]},
}


def neighbours(graph: Graph, source: str, name: str, target: str, node: object) -> list[Any]:
    """The ids of the nodes to which edges of a relation lead from a node."""
    (relation,) = [one for one in graph.relations if one.ends == (source, name, target)]
    row = graph.nodes[source].ids[:].tolist().index(node)
    columns = relation.edges.matrix()[[row]].indices
    return sorted(graph.nodes[target].ids[:][columns].tolist())


def test_new_rows_refer_to_new_and_to_known_ones() -> None:
    known = Graph.from_frames(nodes=frames())
    grown = Graph.from_frames(nodes=frames(**NEW), attach_to=known)
    new = {name: grown.target(name).splits["new"].sum() for name in grown.types}
    assert new == {"customers": 2, "lines": 2, "orders": 3, "products": 0, "staff": 1, "tags": 0}
    assert neighbours(grown, "orders", "customer_id", "customers", 201) == [101]
    assert neighbours(grown, "orders", "customer_id", "customers", 202) == [1]
    assert neighbours(grown, "orders", "customer_id", "customers", 203) == []
    assert neighbours(grown, "staff", "parent_id", "staff", 4) == [1]
    assert grown.num_edges == known.num_edges + 2 + 4 + 1 + 1


def test_new_rows_have_the_features_that_they_have_among_all_rows() -> None:
    known = Graph.from_frames(nodes=frames())
    grown = Graph.from_frames(nodes=frames(**NEW), attach_to=known)
    together = {
        name: pd.concat([table, pd.DataFrame(NEW[name])])
        if name in NEW and name != "cities"
        else table
        for name, table in frames().items()
    }
    whole = Graph.from_frames(nodes=together, like=known)
    for node_type in ("customers", "lines", "orders", "products", "staff"):
        one, other = grown.target(node_type), whole.target(node_type)
        if node_type not in ("lines", "staff"):
            assert one.ids[:].tolist() == other.ids[:].tolist()
        np.testing.assert_array_equal(dense(one.features), dense(other.features))
    assert grown.num_edges == whole.num_edges


def test_rows_without_a_primary_key_get_the_numbers_that_follow() -> None:
    tables = {
        "people": {"id": list(range(1, 9)), "x": [n * 0.5 for n in range(8)]},
        "visits": {
            "people_id": [n % 8 + 1 for n in range(12)],
            "length": [n * 1.5 for n in range(12)],
        },
    }
    known = Graph.from_frames(nodes=frames(**tables))
    visits = {"people_id": [3, 4], "length": [1.0, 2.0]}
    grown = Graph.from_frames(nodes=frames(visits=visits), attach_to=known)
    assert grown.nodes["visits"].ids[:].tolist()[-2:] == [13, 14]
    assert neighbours(grown, "visits", "people_id", "people", 14) == [4]


def test_a_model_gives_vectors_of_new_rows_and_answers_questions() -> None:
    known = Graph.from_frames(nodes=frames())
    model = DGI(4, epochs=1).fit(known.target("customers"))
    grown = Graph.from_frames(nodes=frames(**NEW), attach_to=known).target("customers")
    vectors = model.transform(grown, rows=np.flatnonzero(grown.splits["new"])).vectors
    assert vectors.shape[0] == 2
    assert np.isfinite(vectors).all()
    when = pd.to_datetime(["2024-01-05", "2024-01-09"])
    questions = pd.DataFrame({"customer_id": [1, 2], "when": when})
    assert len(model.at(questions, known).vectors) == 2  # turned to the model's type by itself


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({"customers": NEW["customers"]}, 'a table "cities", whose values stand'),
        ({"custmers": NEW["customers"]}, 'Did you mean "customers"'),
        (
            {"orders": {**NEW["orders"], "customer_id": [101, 1, 999]}},
            "an id of the known graph, or listed in",
        ),
        ({"staff": {**NEW["staff"], "id": [1]}}, "already row 1 of the known graph"),
    ],
    ids=["no lookup", "unknown table", "unknown row", "known row"],
)
def test_what_cannot_be_attached_is_refused(tables: dict[str, Any], expected: str) -> None:
    known = Graph.from_frames(nodes=frames())
    with pytest.raises(InputError) as refused:
        Graph.from_frames(nodes=frames(**tables), attach_to=known)
    assert expected in str(refused.value)


def test_frames_are_attached_to_graphs_of_tables_with_keys_alone() -> None:
    other = Graph.from_frames(
        pd.DataFrame({"source": [1, 2], "target": [2, 3]}),
        pd.DataFrame({"id": [1, 2, 3], "x": [1.0, 2.0, 4.0]}),
    )
    with pytest.raises(InputError, match="attach_to: expected a graph of tables with keys"):
        Graph.from_frames(nodes=frames(**NEW), attach_to=other)
