"""Databases as graphs: four kinds of them give one graph, keys and roles, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sample_shop import TABLES, duckdb_file, folder, sqlite_file

from infomax import Graph, read_database
from infomax.arrays.sparsity import dense
from infomax.errors import InputError
from infomax.io.columns import Columns
from infomax.io.database import is_database, planned
from infomax.io.prepare import prepare

KINDS = ("sqlite", "duckdb", "csv", "parquet")
RELATIONS = {
    ("customers", "city_id", "cities"): False,
    ("lines", "order_id", "orders"): False,
    ("lines", "product_id", "products"): False,
    ("orders", "customer_id", "customers"): False,
    ("products", "product_tags", "tags"): False,
    ("staff", "parent_id", "staff"): True,
}


def shop(place: Path, kind: str, **parts: Any) -> Path:
    make = {"sqlite": sqlite_file, "duckdb": duckdb_file}
    return make[kind](place / f"shop.{kind}", **parts) if kind in make else folder(place / kind, kind, **parts)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_database_is_the_same_graph(tmp_path: Path, kind: str) -> None:
    graph = read_database(shop(tmp_path, kind), tables={"cities": "nodes"})
    assert {one.ends: one.directed for one in graph.relations} == RELATIONS
    types = graph.by_type()
    assert {name: one.num_nodes for name, one in types.items()} == {
        "cities": 2, "customers": 20, "lines": 24, "orders": 12, "products": 3, "staff": 3, "tags": 2,
    }  # fmt: skip
    assert list(types["customers"].feature_names) == ["age"], "keys are no numbers, and names no features"
    assert types["customers"].node_names[:2].tolist() == ["Ann0 Bell", "Ann1 Bell"]
    np.testing.assert_array_equal(dense(types["lines"].features).ravel(), TABLES["lines"]["amount"])
    assert types["products"].ids.tolist() == [10, 20, 30]
    lines = types["lines"].ids[:3].tolist()
    assert lines == (["1|1", "1|2", "2|1"] if kind in ("sqlite", "duckdb") else [1, 2, 3])
    edges = next(one for one in graph.relations if one.ends[0] == "lines" and one.ends[2] == "products")
    names = types["products"].node_names[edges.to_source.indices]
    assert names[:3].tolist() == ["tea", "cup", "pot"]


def test_a_graph_folder_of_a_database_is_the_graph_in_memory(tmp_path: Path) -> None:
    path = shop(tmp_path, "sqlite")
    prepare(path, out=tmp_path / "shop.graph")
    there, here = Graph.open(tmp_path / "shop.graph").loaded(), read_database(path)
    assert [(one.ends, one.directed) for one in there.relations] == [(one.ends, one.directed) for one in here.relations]
    for kind, one in here.by_type().items():
        other = there.target(kind)
        assert one.ids.tolist() == other.ids.tolist()
        assert one.feature_names == other.feature_names
        np.testing.assert_allclose(dense(one.features), dense(other.features), atol=1e-5)
    assert there.table_columns == here.table_columns


def test_roles_follow_from_keys_and_can_be_said(tmp_path: Path) -> None:
    path = shop(tmp_path, "sqlite")
    plan, _ = planned(path, Columns())
    assert plan.roles == {
        "cities": "lookup", "customers": "nodes", "lines": "facts", "notes": "ignore", "orders": "nodes",
        "product_tags": "edges", "products": "nodes", "staff": "facts", "tags": "nodes",
    }  # fmt: skip
    graph = read_database(path)
    assert set(graph.target("customers").feature_names) == {"age", "cities=Bern", "cities=Basel"}
    said = read_database(path, tables=["product_tags=nodes", "staff=ignore"])
    assert "staff" not in said.types
    assert ("product_tags", "tag_id", "tags") in [one.ends for one in said.relations]


def test_a_later_database_is_read_with_the_choices_of_the_first(tmp_path: Path) -> None:
    first = read_database(shop(tmp_path, "csv"))
    few = {name: {column: cells[:2] for column, cells in table.items()} for name, table in TABLES.items()}
    few["customers"] = {column: cells[:4] for column, cells in TABLES["customers"].items()}
    later = read_database(folder(tmp_path / "later", "csv", few), like=first)
    assert later.types == first.types, "a lookup stays one where it has few rows"
    for kind in first.types:
        assert later.target(kind).feature_names == first.target(kind).feature_names


def test_found_keys_tell_how_many_values_are_missing(tmp_path: Path) -> None:
    orders = {"id": list(range(60)), "customer_id": [1] * 59 + [99], "total": [n / 2 for n in range(60)]}
    path = folder(tmp_path / "csv", "csv", {"orders": orders, "customers": TABLES["customers"]})
    plan, _ = planned(path, Columns())
    (key,) = plan.tables["orders"].keys
    assert (key.how, key.filled, key.lost) == ("found", 60, 1)
    assert read_database(path).relations[0].edges.count == 59
    with pytest.raises(InputError, match="keys that refer to each other"):
        read_database(path, keys={"orders.customer_id": "none"})


@pytest.mark.parametrize(
    ("name", "table", "found"),
    [
        ("driverId", "drivers", True),
        ("driver_id", "drivers", True),
        ("driverid", "driver", True),
        ("id_driver", "drivers", True),
        ("driver", "drivers", True),
        ("second_driver_id", "drivers", True),
        ("driver", "cars", False),
        ("drive", "drivers", False),
    ],
)
def test_undeclared_keys_are_found_by_name_and_values(tmp_path: Path, name: str, table: str, found: bool) -> None:
    tables = {
        table: {"id": [1, 2, 3], "speed": [1.0, 2.0, 4.0]},
        "results": {"n": [7, 8], name: [3, 1], "other": [2, 9]},
    }
    path = folder(tmp_path / "f", "csv", {**tables, "x": {"id": [1], "z": [2.5]}, "y": {"x_id": [1], "q": [1.5]}})
    plan, _ = planned(path, Columns())
    assert [key.table for key in plan.tables["results"].keys] == ([table] if found else [])


def test_frames_with_keys_are_a_database(tmp_path: Path) -> None:
    frames = {name: pa.table(columns) for name, columns in TABLES.items()}
    there, here = read_database(shop(tmp_path, "parquet")), Graph.from_frames(nodes=frames)
    assert [(one.ends, one.edges.count) for one in there.relations] == [
        (one.ends, one.edges.count) for one in here.relations
    ]
    frames["lines"] = frames["lines"].rename_columns(["order_id", "line", "what", "amount"])
    keyed = Graph.from_frames(nodes=frames, keys={"lines.what": "products"})
    assert ("lines", "what", "products") in [one.ends for one in keyed.relations]
    with pytest.raises(InputError, match="an edge frame"):
        Graph.from_frames(keys={"a.b": "c"})


def test_times_are_found_and_inherited(tmp_path: Path) -> None:
    path, day = shop(tmp_path, "sqlite"), np.datetime64("2024-01-01", "us").astype(np.int64)
    graph = read_database(path)
    assert graph.nodes["orders"].times[0] == day
    assert graph.nodes["lines"].times[:3].tolist() == [day, day, day + 86_400_000_000], "as their orders"
    assert graph.nodes["customers"].times is None
    assert "orders.ordered" in graph.table_columns["time"]
    with pytest.raises(InputError, match=r"orders\.ordered"):
        read_database(path, time="orders.date")


REFUSED = {
    "key of no table": ({"keys": ["lines.product_id=wares"]}, "wares"),
    "key of no column": ({"keys": ["lines.ware=products"]}, "ware"),
    "key to a table without one": ({"keys": ["staff.wage=product_tags"]}, "primary key has 0 columns"),
    "key that points nowhere": ({"keys": ["customers.age=products"]}, "none of 20 values of age"),
    "role of no table": ({"tables": ["wares=nodes"]}, "wares"),
    "no role": ({"tables": ["tags=rows"]}, "Roles are"),
    "edges of one key": ({"tables": ["orders=edges"]}, "two keys to nodes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_choices_are_refused(tmp_path: Path, case: str) -> None:
    choices, words = REFUSED[case]
    with pytest.raises(InputError, match=words):
        read_database(shop(tmp_path, "sqlite"), **choices)


def test_bad_databases_are_refused(tmp_path: Path) -> None:
    lost = sqlite_file(
        tmp_path / "lost.db", "CREATE TABLE odd (id INTEGER PRIMARY KEY, a INTEGER REFERENCES gone (id))"
    )
    with pytest.raises(InputError, match='"gone", which is not there'):
        read_database(lost)
    assert "odd" not in read_database(lost, tables=["odd=ignore"]).types
    torn = tmp_path / "torn.db"
    torn.write_bytes(lost.read_bytes()[:3000])
    with pytest.raises(InputError, match="SQLite database that can be read"):
        read_database(torn)
    views = sqlite_file(tmp_path / "views.db", "CREATE VIEW v AS SELECT * FROM orders")
    assert "v" not in read_database(views).types
    assert "v" in read_database(views, tables=["v=facts"], keys=["v.customer_id=customers"]).types
    more = ("CREATE SCHEMA s", "CREATE TABLE s.orders (id INTEGER PRIMARY KEY)")
    twice = duckdb_file(tmp_path / "twice.duckdb", *more)
    with pytest.raises(InputError, match="in two schemas"):
        read_database(twice)
    assert "orders" in read_database(twice, tables=["s.orders=ignore"]).types


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_empty_tables_and_keys_without_values_are_no_obstacle(tmp_path: Path, kind: str) -> None:
    more = (
        "CREATE TABLE visits (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (customer_id), x REAL)",
        "DELETE FROM staff WHERE parent_id IS NOT NULL",
        "CREATE VIEW v AS SELECT * FROM orders",
    )
    make = {"sqlite": sqlite_file, "duckdb": duckdb_file}[kind]
    path = make(tmp_path / f"shop.{kind}", *more)
    graph = read_database(path, tables=["v=facts"], keys=["v.customer_id=customers"])
    assert "visits" not in graph.types
    assert graph.target("v").num_nodes == 12
    counts = {one.ends: one.edges.count for one in graph.relations}
    assert counts["staff", "parent_id", "staff"] == 0


def test_only_folders_of_different_tables_are_databases(tmp_path: Path) -> None:
    parts = folder(tmp_path / "parts", "csv", {"a": {"x": [1], "y": [2]}, "b": {"x": [3], "y": [4]}})
    assert not is_database(parts)
    edges = folder(tmp_path / "edges", "csv", {"edges": {"source": [1], "target": [2]}, "nodes": {"id": [1, 2]}})
    assert not is_database(edges)
    assert is_database(shop(tmp_path, "csv"))
    assert not is_database("cora")
