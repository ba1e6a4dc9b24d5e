"""Databases as graphs: four kinds of them give one graph, keys and roles, and what is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sample_shop import TABLES, duckdb_file, folder, sqlite_file

from infomax import DGI, Graph, read_database, read_graph
from infomax.arrays.sparsity import dense
from infomax.arrays.times import UNKNOWN_TIME
from infomax.errors import InputError, InputWarning
from infomax.io.choices import UserChoices
from infomax.io.column_names import matching_type
from infomax.io.database import is_database, read_tables, sqlite
from infomax.io.database.writing import VectorTable, parse_destination, write_into
from infomax.io.prepare import prepare
from infomax.training.resuming import graph_fingerprint

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
    return (
        make[kind](place / f"shop.{kind}", **parts)
        if kind in make
        else folder(place / kind, kind, **parts)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_database_is_the_same_graph(tmp_path: Path, kind: str) -> None:
    graph = read_database(shop(tmp_path, kind), tables={"cities": "nodes"})
    assert {one.ends: one.directed for one in graph.relations} == RELATIONS
    types = graph.by_type()
    assert {name: one.num_nodes for name, one in types.items()} == {
        "cities": 2, "customers": 20, "lines": 24, "orders": 12, "products": 3, "staff": 3, "tags": 2,
    }  # fmt: skip
    assert list(types["customers"].feature_names) == ["age"], (
        "keys are no numbers, and names no features"
    )
    assert types["customers"].node_names[:2].tolist() == ["Ann0 Bell", "Ann1 Bell"]
    np.testing.assert_array_equal(dense(types["lines"].features).ravel(), TABLES["lines"]["amount"])
    assert types["products"].ids.tolist() == [10, 20, 30]
    lines = types["lines"].ids[:3].tolist()
    assert lines == (["1|1", "1|2", "2|1"] if kind in ("sqlite", "duckdb") else [1, 2, 3])
    edges = next(
        one for one in graph.relations if one.ends[0] == "lines" and one.ends[2] == "products"
    )
    names = types["products"].node_names[edges.edges.receivers.indices]
    assert names[:3].tolist() == ["tea", "cup", "pot"]


def test_a_graph_folder_of_a_database_is_the_graph_in_memory(tmp_path: Path) -> None:
    path = shop(tmp_path, "sqlite")
    prepare(path, out=tmp_path / "shop.graph")
    there, here = Graph.open(tmp_path / "shop.graph").loaded(), read_database(path)
    assert [(one.ends, one.directed) for one in there.relations] == [
        (one.ends, one.directed) for one in here.relations
    ]
    for kind, one in here.by_type().items():
        other = there.target(kind)
        assert one.ids.tolist() == other.ids.tolist()
        assert one.feature_names == other.feature_names
        np.testing.assert_allclose(dense(one.features), dense(other.features), atol=1e-5)
    assert there.schema == here.schema


def test_a_graph_folder_as_of_a_day_is_trained_in_memory(tmp_path: Path) -> None:
    prepare(shop(tmp_path, "sqlite"), out=tmp_path / "shop.graph")
    early = Graph.open(tmp_path / "shop.graph").as_of("2024-01-03").target("customers")
    assert early.nodes["orders"].num_nodes == 3
    DGI(4, epochs=1).fit(early).save(tmp_path / "run")
    assert DGI.load(tmp_path / "run").graph_.nodes["lines"].num_nodes == 6


def _later_orders() -> dict[str, dict[str, list[Any]]]:
    """The shop with an order of a later year, and a line of it, in the middle of the tables."""
    tables = {
        name: {column: list(cells) for column, cells in one.items()} for name, one in TABLES.items()
    }
    tables["orders"]["total"] = [10.25 + n for n in range(12)]
    tables["lines"]["words"] = ["1", "2"] * 12
    for column, cell in (("id", 99), ("customer_id", 3), ("ordered", "2025-01-01"), ("total", 1e9)):
        tables["orders"][column].insert(4, cell)
    for column, cell in (
        ("order_id", 99),
        ("line", 1),
        ("product_id", 30),
        ("amount", 10**6),
        ("words", "gift"),
    ):
        tables["lines"][column].insert(9, cell)
    return tables


def test_no_later_row_changes_a_byte_of_a_folder_prepared_as_of_a_day(tmp_path: Path) -> None:
    later = _later_orders()
    gone = {"orders": 4, "lines": 9}
    early = {
        name: {
            column: [cell for at, cell in enumerate(cells) if at != gone.get(name)]
            for column, cells in one.items()
        }
        for name, one in later.items()
    }
    found = []
    for name, tables in (("early", early), ("later", later)):
        (tmp_path / name).mkdir()
        path = shop(tmp_path / name, "sqlite", tables=tables)
        prepare(path, out=tmp_path / name / "graph", as_of="2024-06-01", time="orders.ordered")
        files = [
            file
            for file in sorted((tmp_path / name / "graph").rglob("*"))
            if file.suffix in (".npy", ".parquet")
        ]
        graph = Graph.open(tmp_path / name / "graph").target("orders")
        vectors = DGI(4, epochs=2).fit(graph).transform(graph).vectors
        memory = read_database(path, as_of="2024-06-01", time="orders.ordered").target("orders")
        assert graph_fingerprint(memory) == graph_fingerprint(graph.loaded())
        names = [str(file.relative_to(tmp_path / name)) for file in files]
        found.append((names, [file.read_bytes() for file in files], vectors.tobytes()))
        assert graph.nodes["orders"].num_nodes == 12
        assert graph.nodes["lines"].num_nodes == 24
    assert len(found[0][0]) > 10
    assert found[0] == found[1]


def test_a_folder_that_has_learnt_from_later_rows_is_refused_as_of_a_day(tmp_path: Path) -> None:
    path = shop(tmp_path, "sqlite", tables=_later_orders())
    prepare(path, out=tmp_path / "all.graph", time="orders.ordered")
    with pytest.raises(
        InputError, match=r'later rows of .*prepare TABLES --as-of "2024-06-01" --out'
    ):
        read_graph(tmp_path / "all.graph", as_of="2024-06-01")
    assert read_graph(tmp_path / "all.graph", as_of="2025-06-01").nodes["orders"].num_nodes == 13
    with pytest.raises(
        InputError, match=r"rows of .* up to 2000-01-01, found none; the first is of 2024-01-01"
    ):
        prepare(path, out=tmp_path / "none.graph", time="orders.ordered", as_of="2000-01-01")
    assert not (tmp_path / "none.graph").exists()


def test_roles_follow_from_keys_and_can_be_said(tmp_path: Path) -> None:
    path = shop(tmp_path, "sqlite")
    tables = read_tables(path, UserChoices()).tables
    assert {name: table.role for name, table in tables.items()} == {
        "cities": "lookup", "customers": "nodes", "lines": "facts", "notes": "ignored", "orders": "nodes",
        "product_tags": "edges", "products": "nodes", "staff": "facts", "tags": "nodes",
    }  # fmt: skip
    graph = read_database(path)
    assert set(graph.target("customers").feature_names) == {"age", "cities=Bern", "cities=Basel"}
    said = read_database(path, tables=["product_tags=nodes", "staff=ignore"])
    assert "staff" not in said.types
    assert ("product_tags", "tag_id", "tags") in [one.ends for one in said.relations]


def test_a_later_database_is_read_with_the_choices_of_the_first(tmp_path: Path) -> None:
    first = read_database(shop(tmp_path, "csv"))
    few = {
        name: {column: cells[:2] for column, cells in table.items()}
        for name, table in TABLES.items()
    }
    few["customers"] = {column: cells[:4] for column, cells in TABLES["customers"].items()}
    later = read_database(folder(tmp_path / "later", "csv", few), like=first)
    assert later.types == first.types, "a lookup stays one where it has few rows"
    for kind in first.types:
        assert later.target(kind).feature_names == first.target(kind).feature_names


def test_later_cells_of_another_kind_are_gaps_and_told(tmp_path: Path) -> None:
    """As of a day a column has numbers or dates alone, as places in Formula 1 until one team was excluded."""
    codes = {
        "place": [*map(str, range(10)), "E", "E"],
        "paid": [*TABLES["orders"]["ordered"][:10], "never", None],
    }
    tables = TABLES | {"orders": TABLES["orders"] | codes}
    path = shop(tmp_path, "csv", tables=tables)
    choices: dict[str, Any] = {"time": "orders.ordered"}
    early = read_database(path, **choices, as_of="2024-01-10")
    with pytest.warns(InputWarning) as told:
        later = read_database(path, like=early)
    words = [str(one.message) for one in told]
    assert any(
        'column "place": expected a finite number' in one and '"E". 2 cells of the column' in one
        for one in words
    ), words
    assert any(
        'column "paid": expected a date' in one and '"never". 1 cell of the column' in one
        for one in words
    ), words
    found, known = (dense(one.target("orders").features) for one in (later, early))
    np.testing.assert_array_equal(found[:10], known)
    assert np.isfinite(found).all()
    with pytest.raises(
        InputError, match=r"rows of lines up to 2023-01-01, found none.*Take a later day\.$"
    ):
        read_database(path, like=early, as_of="2023-01-01")


def test_found_keys_tell_how_many_values_are_missing(tmp_path: Path) -> None:
    orders = {
        "id": list(range(60)),
        "customer_id": [1] * 59 + [99],
        "total": [n / 2 for n in range(60)],
    }
    path = folder(tmp_path / "csv", "csv", {"orders": orders, "customers": TABLES["customers"]})
    (key,) = read_tables(path, UserChoices()).tables["orders"].keys
    assert (key.origin, key.filled, key.lost) == ("found", 60, 1)
    assert read_database(path).relations[0].edges.num_edges == 59
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
def test_undeclared_keys_are_found_by_name_and_values(
    tmp_path: Path, name: str, table: str, found: bool
) -> None:
    tables = {
        table: {"id": [1, 2, 3], "speed": [1.0, 2.0, 4.0]},
        "results": {"n": [7, 8], name: [3, 1], "other": [2, 9]},
    }
    path = folder(
        tmp_path / "f",
        "csv",
        {**tables, "x": {"id": [1], "z": [2.5]}, "y": {"x_id": [1], "q": [1.5]}},
    )
    tables = read_tables(path, UserChoices()).tables
    assert [key.table for key in tables["results"].keys] == ([table] if found else [])


@pytest.mark.parametrize("kind", ["csv", "parquet", "frames"])
def test_integers_that_pandas_has_made_floats_are_keys(tmp_path: Path, kind: str) -> None:
    buyers = [None, *map(float, TABLES["orders"]["customer_id"][1:])]
    tables = TABLES | {"orders": TABLES["orders"] | {"customer_id": buyers}}
    if kind == "csv":
        path = shop(tmp_path, kind, tables=tables)
        words = "\n".join(
            f"{n + 1},{buyer or ''},2024-01-{n + 1:02}" for n, buyer in enumerate(buyers)
        )
        (path / "orders.csv").write_text(f"id,customer_id,ordered\n{words}\n")
        graph = read_database(path)
    elif kind == "parquet":
        graph = read_database(shop(tmp_path, kind, tables=tables))
    else:
        graph = Graph.from_frames(
            nodes={name: pa.table(columns) for name, columns in tables.items()}
        )
    (edges,) = (
        one.edges for one in graph.relations if one.ends == ("orders", "customer_id", "customers")
    )
    assert edges.num_edges == 11
    assert graph.nodes["customers"].ids[edges.receivers.indices[:3]].tolist() == [2, 3, 4]


def test_frames_with_keys_are_a_database(tmp_path: Path) -> None:
    frames = {name: pa.table(columns) for name, columns in TABLES.items()}
    there, here = read_database(shop(tmp_path, "parquet")), Graph.from_frames(nodes=frames)
    assert [(one.ends, one.edges.num_edges) for one in there.relations] == [
        (one.ends, one.edges.num_edges) for one in here.relations
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
    assert graph.nodes["lines"].times[:3].tolist() == [day, day, day + 86_400_000_000], (
        "as their orders"
    )
    assert graph.nodes["customers"].times is None
    assert graph.schema.tables["orders"].time.column == "ordered"
    with pytest.raises(InputError, match=r"orders\.ordered"):
        read_database(path, time="orders.date")


def with_times(cells: list[Any]) -> dict[str, Any]:
    return TABLES | {"orders": TABLES["orders"] | {"ordered": cells}}


MOMENT = np.datetime64("2023-12-31T22:00", "us").astype(np.int64)


@pytest.mark.parametrize("kind", KINDS)
def test_a_written_time_zone_counts(tmp_path: Path, kind: str) -> None:
    tables = with_times([f"2024-01-{n + 1:02}T00:00:00+02:00" for n in range(12)])
    assert read_database(shop(tmp_path, kind, tables=tables)).nodes["orders"].times[0] == MOMENT


def test_times_of_a_type_with_a_zone_are_read_and_infinite_ones_are_none(tmp_path: Path) -> None:
    moments = [int(MOMENT)] * 10 + [2**63 - 1, 1 - 2**63]
    cells = pa.array(moments, pa.int64()).cast(pa.timestamp("us", "UTC"))
    path = shop(tmp_path, "parquet", tables=with_times(cells))
    with pytest.warns(InputWarning, match=r"no time in 2 cells of 12, such as \"infinity\""):
        graph = read_database(path)
    assert graph.nodes["orders"].times.tolist() == [MOMENT] * 10 + [UNKNOWN_TIME] * 2
    assert np.isfinite(dense(graph.target("orders").features)).all()


@pytest.mark.parametrize("scale", [1, 1.0, 1000])
def test_numbers_are_seconds_since_1970_or_thousandths(tmp_path: Path, scale: float) -> None:
    tables = with_times([int(MOMENT) // 1_000_000 * scale + n for n in range(12)])
    graph = read_database(shop(tmp_path, "sqlite", tables=tables), time="orders.ordered")
    assert graph.nodes["orders"].times[0] == MOMENT


@pytest.mark.parametrize(
    "cells", [["03/29/2024"] * 12, list(range(5, 17)), ["2024-01"] * 12], ids=str
)
def test_a_column_without_times_is_refused(tmp_path: Path, cells: list[Any]) -> None:
    path = shop(tmp_path, "sqlite", tables=with_times(cells))
    with pytest.raises(InputError, match=rf"column ordered: expected .* found \"{cells[0]}\""):
        read_database(path, time="orders.ordered", as_of="2024-02-01")


def test_cells_that_are_no_times_are_told(tmp_path: Path) -> None:
    path = shop(
        tmp_path, "sqlite", tables=with_times([*TABLES["orders"]["ordered"][1:], "unknown"])
    )
    with pytest.warns(InputWarning, match=r"no time in 1 cell of 12, such as \"unknown\""):
        read_database(path, time="orders.ordered")


REFUSED = {
    "key of no table": ({"keys": ["lines.product_id=wares"]}, "wares"),
    "key of no column": ({"keys": ["lines.ware=products"]}, "ware"),
    "key to a table without one": (
        {"keys": ["staff.wage=product_tags"]},
        "product_tags, which has no primary key",
    ),
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


def test_a_row_with_more_cells_than_the_header_is_named(tmp_path: Path) -> None:
    path = shop(tmp_path, "csv")
    (path / "tags.csv").write_text("id,label\n1\n2,b,c,d\n")
    with pytest.raises(InputError, match=r"tags.csv, line 3: expected at most 2 cells, found 4\."):
        read_database(path)


def test_bad_databases_are_refused(tmp_path: Path) -> None:
    lost = sqlite_file(
        tmp_path / "lost.db",
        "CREATE TABLE odd (id INTEGER PRIMARY KEY, a INTEGER REFERENCES gone (id))",
    )
    with pytest.raises(InputError, match='"gone", which is not there'):
        read_database(lost)
    assert "odd" not in read_database(lost, tables=["odd=ignore"]).types
    torn = tmp_path / "torn.db"
    torn.write_bytes(lost.read_bytes()[:3000])
    with pytest.raises(InputError, match="SQLite database that can be read"):
        read_database(torn)
    broken = "CREATE VIEW broken AS SELECT * FROM nowhere"  # it is not read unless it is asked for
    views = sqlite_file(tmp_path / "views.db", "CREATE VIEW v AS SELECT * FROM orders", broken)
    assert "v" not in read_database(views).types
    assert "v" in read_database(views, tables=["v=facts"], keys=["v.customer_id=customers"]).types
    more = ("CREATE SCHEMA s", "CREATE TABLE s.orders (id INTEGER PRIMARY KEY)")
    twice = duckdb_file(tmp_path / "twice.duckdb", *more)
    with pytest.raises(InputError, match="in two schemas"):
        read_database(twice)
    (tmp_path / "text.sqlite").write_text("no database")
    for address, found in (("text.sqlite", "another file"), ("none.db", "nothing of that name")):
        with pytest.raises(InputError, match=rf"{address}: expected a database.*{found}"):
            read_graph(f"sqlite:///{tmp_path / address}")
    with pytest.raises(InputError, match="a file of SQLite or DuckDB, found another file"):
        read_graph(tmp_path / "text.sqlite")
    with pytest.raises(
        InputError, match=r"mysql://me@server/shop: expected .*postgresql://, found mysql://"
    ):
        read_graph("mysql://me@server/shop")
    left = read_database(twice, tables=["s.orders=ignore"])
    assert {one.ends for one in left.relations} >= {("lines", "order_id", "orders")}, (
        "the keys to the other one stay"
    )


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
    counts = {one.ends: one.edges.num_edges for one in graph.relations}
    assert counts["staff", "parent_id", "staff"] == 0


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_tables_of_vectors_are_not_read_unless_named(tmp_path: Path, kind: str) -> None:
    path = shop(tmp_path, kind, keys={})
    place = parse_destination(f"{kind}:///{path}:a_customers")
    vectors, key = np.ones((20, 2), np.float32), {"customer_id": "BIGINT"}
    write_into(place, [VectorTable(place.table, np.arange(1, 21), vectors, key)])
    graph = read_database(path)
    assert ("orders", "customer_id", "customers") in {one.ends for one in graph.relations}
    assert "a_customers" not in graph.types
    assert "a_customers" in read_database(path, tables=["a_customers=nodes"]).types


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError

    path = shop(tmp_path, "sqlite")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="expected permission to read it, found none"):
        read_database(path)


def test_a_file_with_a_log_is_read_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: Any
) -> None:
    path = shop(tmp_path, "sqlite")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode = wal").fetchone() == ("wal",)
    before, during, copy = set(tmp_path.iterdir()), set[Path](), sqlite._copy
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr(
        sqlite, "_copy", lambda *given: (copy(*given), during.update(tmp_path.iterdir()))
    )
    assert read_database(path).types
    assert during == before, "SQLite makes no file beside it"


def test_only_folders_of_different_tables_are_databases(tmp_path: Path) -> None:
    parts = folder(
        tmp_path / "parts", "csv", {"a": {"x": [1], "y": [2]}, "b": {"x": [3], "y": [4]}}
    )
    assert not is_database(parts)
    edges = folder(
        tmp_path / "edges",
        "csv",
        {"edges": {"source": [1], "target": [2]}, "nodes": {"id": [1, 2]}},
    )
    assert not is_database(edges)
    assert is_database(shop(tmp_path, "csv"))
    assert not is_database("cora")


@pytest.mark.parametrize("cell", ["number", "date", "word"])
def test_a_row_of_one_column_is_read_from_text_as_from_parquet(tmp_path: Path, cell: str) -> None:
    values = {
        "number": [n % 7 / 2 for n in range(40)],
        "date": [date(2024, 1, 1 + n % 28) for n in range(40)],
    }
    tables: dict[str, dict[str, list[Any]]] = {
        "films": {"id": [1, 2, 3, 4], "value": values.get(cell, ["a", "b", "c", "d"])[:4]},
        "users": {"id": [*range(8)], "age": [20.5 + n for n in range(8)]},
        "seen": {"film_id": [1 + n % 4 for n in range(40)], "user_id": [n % 8 for n in range(40)]},
    }
    if cell != "word":
        tables["seen"]["value"] = values[cell]
    text, columns = (
        read_database(folder(tmp_path / suffix, suffix, tables)) for suffix in ("csv", "parquet")
    )
    assert text.types == columns.types
    for kind in text.types:
        assert text.target(kind).feature_names == columns.target(kind).feature_names
    if cell != "word":
        assert text.target("seen").num_features == columns.target("seen").num_features > 0


@pytest.mark.parametrize("kind", ["sqlite", "csv"])
def test_a_full_disk_is_told_by_its_own_name(tmp_path: Path, monkeypatch: Any, kind: str) -> None:
    resource = pytest.importorskip("resource")
    numbers = list(range(50_000))
    tables = {
        "cities": TABLES["cities"],
        "flats": {"id": numbers, "size": numbers, "city_id": [1, 2] * 25_000},
    }
    path = shop(tmp_path, kind, tables=tables)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (1 << 16, usual[1])
    )  # a disk that is full: files cannot grow
    try:
        with pytest.raises(
            InputError, match=f"^{tmp_path}: expected room for a copy of all tables.*TMPDIR"
        ):
            read_database(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


PLURALS = {
    "people": "person_id",
    "categories": "categoryId",
    "companies": "home_company_id",
    "addresses": "address_id",
    "boxes": "box_id",
    "children": "id_child",
    "movies": "movie_id",
    "houses": "house",
    "shelves": "shelfid",
    "women": "woman_id",
    "indices": "index_id",
    "news": "news_id",
}


def test_keys_are_found_by_the_plurals_of_english(tmp_path: Path) -> None:
    tables: dict[str, dict[str, list[Any]]] = {
        name: {"id": list(range(100 * at, 100 * at + 8)), "size": [0.5 * n for n in range(8)]}
        for at, name in enumerate(PLURALS)
    }
    columns = {column: tables[name]["id"] for name, column in PLURALS.items()}
    path = folder(
        tmp_path / "f", "csv", {**tables, "facts": {**columns, "x": [n / 3 for n in range(8)]}}
    )
    keys = {one.ends[1]: one.ends[2] for one in read_database(path).relations}
    assert keys == {column: name for name, column in PLURALS.items()}


def test_names_of_one_and_of_several_mean_one_type() -> None:
    kinds = ["Movies", "houses", "addresses", "people"]
    assert [
        matching_type(word, kinds) for word in ("movie", "house", "Address", "person", "dog")
    ] == [
        *kinds,
        "",
    ]
