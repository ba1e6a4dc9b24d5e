"""Labels are found as COLUMN or TABLE.COLUMN in any case, in every door; one that is a key takes its edges along."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sample_shop
from shell import infomax, refused

from infomax import Embeddings, InputError, read_database, read_graph
from infomax.io.column_names import find_label, spelled_labels
from infomax.io.reading import with_labels

FAST = ("--dim", 4, "--epochs", 1)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Country", "country"),
        ("PEOPLE.country", "people.country"),
        ("Shops.Size", "shops.size"),
        ("size", "size"),
        ("colour", "colour"),
        ("nowhere", "nowhere"),
    ],
)
def test_a_label_is_spelt_as_its_column(word: str, expected: str) -> None:
    headers = {"people": ["id", "country", "label:colour"], "shops": ["id", "size"]}
    assert spelled_labels([word], headers) == (expected,)


def test_a_label_that_may_be_two_columns_is_refused() -> None:
    headers = {"people": ["Size", "SIZE"]}
    assert spelled_labels(["SIZE"], headers) == ("SIZE",)
    with pytest.raises(InputError, match=r'one column of that name.*"Size", "SIZE"'):
        spelled_labels(["size"], headers)


def test_a_label_of_a_type_is_called_by_it() -> None:
    assert find_label("Orders.STATUS", ["status"], "orders") == "status"
    assert find_label("status", ["Status"]) == "Status"
    assert find_label("people.status", ["status"], "orders") == ""


@pytest.mark.parametrize("word", ["Section", "nodes.section", "NODES.SECTION"])
def test_labels_of_one_table(tmp_path: Path, word: str) -> None:
    (tmp_path / "nodes.csv").write_text("id,x,section\na,1,p\nb,2,q\nc,3,p\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    graph = read_graph(tmp_path, labels=word)
    assert {name: labels.tolist() for name, labels in graph.labels.items()} == {
        "section": ["p", "q", "p"]
    }
    assert graph.feature_names == ("x",)
    with pytest.raises(InputError, match=r'label column "sektion".*Did you mean "section"'):
        read_graph(tmp_path, labels="sektion")
    stored = with_labels(graph, [word.rpartition(".")[2]], "g.npz")
    assert list(stored.labels) == ["section"]


@pytest.mark.parametrize("word", ["ZIP", "products.zip", "Products.Zip"])
def test_labels_of_a_database(tmp_path: Path, word: str) -> None:
    database = sample_shop.sqlite_file(tmp_path / "shop.db")
    graph = read_database(database, labels=word).target("products")
    assert list(graph.labels) == ["zip"]
    assert not any(name.startswith("zip") for name in graph.feature_names)
    with pytest.raises(InputError, match=r'a column "products.zap".*"products.zip"'):
        read_database(database, labels="products.zap")


def test_a_key_of_one_table_that_is_the_id_of_another_is_the_label_of_the_first(
    tmp_path: Path,
) -> None:
    database = sample_shop.sqlite_file(tmp_path / "shop.db")
    with pytest.warns(UserWarning, match="orders.customer_id is a label: edges to customers"):
        graph = read_database(database, labels="Customer_ID")
    assert {name: list(nodes.labels) for name, nodes in graph.nodes.items() if nodes.labels} == {
        "orders": ["customer_id"]
    }


@pytest.mark.parametrize(
    ("roles", "note"),
    [({}, "values of cities would give it away"), ({"cities": "nodes"}, "edges to cities")],
    ids=["lookup", "nodes"],
)
def test_a_label_that_is_a_key_takes_its_edges_along_now_and_later(
    tmp_path: Path, roles: dict[str, str], note: str
) -> None:
    database = sample_shop.sqlite_file(tmp_path / "shop.db")
    with pytest.warns(UserWarning, match=note):
        graph = read_database(database, labels="customers.CITY_ID", tables=roles)
    later = read_database(database, like=graph)
    for one in (graph, later):
        assert not any("cit" in name for name in one.target("customers").feature_names)
        ends = {relation.ends[::2] for relation in one.relations}
        assert ("customers", "cities") not in ends
    assert later.num_edges == graph.num_edges
    assert graph.schema.tables["customers"].columns["city_id"].role == "label"
    again = read_database(database, schema=graph.schema)
    assert again.num_edges == graph.num_edges
    assert list(again.target("customers").labels) == ["city_id"]


def test_labels_of_a_database_score_a_run(tmp_path: Path) -> None:
    database = sample_shop.sqlite_file(tmp_path / "shop.db")
    run = tmp_path / "run"
    assert infomax("train", database, "--table", "cities=nodes", "--out", run, *FAST).code == 0
    for word in ("customers.city_id", "Customers.City_ID"):
        outcome = infomax("evaluate", run, "--labels", f"{database}:{word}")
        assert outcome.code == 0, outcome.err  # the type is in the label
        if word == "customers.city_id":  # Python shows a warning once
            told = 'training has had the edges of "city_id", so the vectors know them'
            assert told in " ".join(outcome.err.split())
        assert "20 labelled nodes" in " ".join(outcome.out.split())
    refused(infomax("evaluate", run, "--labels", f"{database}:city_id"), "--type TYPE")
    refused(
        infomax("evaluate", run, "--type", "customers", "--labels", f"{database}:customers.cty_id"),
        'a column "customers.cty_id"',
        '"customers.city_id"',
    )


def test_refused_labels_of_a_database_say_how_it_is_named(tmp_path: Path) -> None:
    """A database has no nodes.csv."""
    database = sample_shop.sqlite_file(tmp_path / "shop.db")
    run = tmp_path / "run"
    assert infomax("train", database, "--out", run, *FAST).code == 0
    remedy = "name the database: --labels DATABASE:TABLE.COLUMN."
    refused(infomax("evaluate", run, "--labels", "customers.zip"), "customers.zip", remedy)
    outcome = infomax("evaluate", run, "--type", "customers", "--labels", "zip")
    refused(outcome, "--labels: expected DATABASE:TABLE.COLUMN", "zip")


def test_labels_of_a_run_are_found_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(
        "id,x,Section\n" + "\n".join(f"n{n},{n},{'pq'[n % 2]}" for n in range(40))
    )
    (tmp_path / "edges.csv").write_text(
        "source,target\n" + "\n".join(f"n{n},n{n * 7 % 40}" for n in range(40))
    )
    run = tmp_path / "run"
    outcome = infomax("train", tmp_path, "--labels", "section", "--out", run, *FAST)
    assert "labels: Section" in outcome.err
    assert infomax("evaluate", run, "--labels", "SECTION").code == 0
    assert infomax("evaluate", run, "--labels", f"{tmp_path}/nodes.csv:section").code == 0
    refused(infomax("evaluate", run, "--labels", "sort"), "Section or nodes.csv:COLUMN", "sort")


def test_labels_of_a_database_score_vectors_alone(tmp_path: Path) -> None:
    database = sample_shop.sqlite_file(tmp_path / "shop.db")
    path = tmp_path / "vectors.customers.parquet"
    ids = np.arange(1, 21)
    vectors = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    Embeddings(vectors, ids).save(path)
    label = f"{database}:customers.city_id"
    outcome = infomax("evaluate", path, "--labels", label, "--json", tmp_path / "s.json")
    assert outcome.code == 0, outcome.err
    assert "20 labelled nodes" in outcome.out
    # Names of two types: which of them the vectors are of is for the person to say.
    refused(infomax("evaluate", path, "--labels", f"{database}:name"), "products.name", "one type")
