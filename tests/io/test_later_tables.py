"""Tables that are read like those of a known graph: by its schema, and nothing is decided anew."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sample_shop
from pyarrow import parquet

from infomax import Graph, InputError, read_database, read_graph
from infomax.arrays.sparsity import dense

NEW_TABLE = [
    "CREATE TABLE log (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers, x REAL)",
    *(f"INSERT INTO log VALUES ({n}, {1 + n % 20}, {n * 0.37})" for n in range(1, 30)),
]


def put(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    """A csv file, whose folder is made as well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def typed_folder(path: Path, size: object = 0.25) -> Path:
    """Users who buy items; an item has a size and a day."""
    items = [[f"i{n}", n * 0.7, f"2024-01-{n + 1:02}"] for n in range(12)]
    items[4][1] = size
    put(path / "nodes" / "item.csv", [["id", "size", "made"], *items])
    put(path / "nodes" / "user.csv", [["id", "age"], *([f"u{n}", n * 0.5] for n in range(30))])
    bought = [[f"u{n}", f"i{n * 5 % 12}"] for n in range(30)]
    put(path / "edges" / "user.buys.item.csv", [["source", "target"], *bought])
    return path


def people(path: Path, born: str = "1954-01-05", age: object = 3.25) -> Path:
    """A folder of one type of nodes: two columns of names, days and numbers."""
    rows = [
        [f"n{n}", f"person {n}", f"the title {n}", f"19{50 + n}-01-05", 0.25 + n] for n in range(40)
    ]
    rows[4][3] = born
    rows[3][4] = age
    put(path / "nodes.csv", [["id", "person", "title", "born", "age"], *rows])
    put(
        path / "edges.csv",
        [["source", "target"], *([f"n{n}", f"n{n * 7 % 40}"] for n in range(40))],
    )
    return path


def differing_rows(graph: Graph, other: Graph) -> list[int]:
    """The nodes whose features differ in two graphs."""
    difference = dense(graph.features) - dense(other.features)
    return np.flatnonzero(abs(difference).sum(axis=1)).tolist()


def test_a_day_that_is_unknown_is_a_gap_and_names_stay(tmp_path: Path) -> None:
    graph = read_graph(people(tmp_path / "g"))
    with pytest.warns(UserWarning, match=r'line 6, column "born".*1 cell of the column'):
        later = read_graph(people(tmp_path / "later", born="unknown"), like=graph)
    assert later.feature_names == graph.feature_names
    assert later.node_names.tolist() == graph.node_names.tolist()
    assert later.schema == graph.schema
    assert differing_rows(graph, later) == [4]
    empty = read_graph(people(tmp_path / "empty", born=""), like=graph)
    assert not differing_rows(later, empty)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_text_among_plain_numbers_is_a_gap(tmp_path: Path, suffix: str) -> None:
    def folder(name: str, cell: object) -> Path:
        path = people(tmp_path / name)
        rows = [[f"n{n}", n + 0.5] for n in range(40)]
        rows[3][1] = cell
        (path / "nodes.csv").unlink()
        if suffix == "csv":
            put(path / "nodes.csv", [["id", "age"], *rows])
        else:
            column = [row[1] for row in rows]
            if cell == "many":
                column = list(map(str, column))
            table = pa.table({"id": [row[0] for row in rows], "age": column})
            parquet.write_table(table, path / "nodes.parquet")
        return path

    graph = read_graph(folder("g", 3.5))
    with pytest.warns(UserWarning, match=r'column "age".*found "many". 1 cell of the column'):
        later = read_graph(folder("later", "many"), like=graph)
    mean = graph.table.statistics.mean[0]
    assert dense(later.features)[3, 0] == pytest.approx(mean)
    assert differing_rows(graph, later) == [3]
    with pytest.raises(InputError, match="finite number"):
        read_graph(folder("infinite", float("inf")), like=graph)


def test_a_cell_of_another_type_in_a_typed_folder_is_a_gap(tmp_path: Path) -> None:
    graph = read_graph(typed_folder(tmp_path / "g"))
    with pytest.warns(UserWarning, match=r'column "size".*found "huge". 1 cell of the column'):
        later = read_graph(typed_folder(tmp_path / "later", "huge"), like=graph)
    assert differing_rows(graph.target("item"), later.target("item")) == [4]


def test_a_cell_of_another_type_in_an_edge_table_whose_rows_are_nodes_is_a_gap(
    tmp_path: Path,
) -> None:
    def ratings(name: str, stars: object) -> Path:
        rows = [[f"u{n % 13}", f"i{n % 7}", n % 5] for n in range(80)]
        rows[5][2] = stars
        return put(tmp_path / name, [["user", "item", "stars"], *rows])

    graph = read_graph(ratings("e.csv", 2), types="user,item", edges_as="rating")
    with pytest.warns(UserWarning, match=r'line 7, column "stars"'):
        later = read_graph(ratings("later.csv", "many"), like=graph)
    assert differing_rows(graph.target("rating"), later.target("rating")) == [5]


def test_new_tables_of_a_typed_folder_are_left_out(tmp_path: Path) -> None:
    graph = read_graph(typed_folder(tmp_path / "g"))
    folder = typed_folder(tmp_path / "later")
    put(folder / "edges" / "user.views.item.csv", [["source", "target"], ["u1", "i2"]])
    put(folder / "nodes" / "shop.csv", [["id", "x"], ["s1", 1.5], ["s2", 2.5]])
    put(folder / "edges" / "user.at.shop.csv", [["source", "target"], ["u1", "s2"]])
    names = ["nodes/shop.csv", "edges/user.at.shop.csv", "edges/user.views.item.csv"]
    left_out = ", ".join(str(folder / name) for name in names)
    with pytest.warns(UserWarning, match=re.escape(f"has no such table: {left_out}.")):
        later = read_graph(folder, like=graph)
    assert later.types == graph.types
    assert [one.ends for one in later.relations] == [one.ends for one in graph.relations]
    assert later.num_edges == graph.num_edges
    (folder / "edges" / "user.buys.item.csv").unlink()
    with pytest.raises(InputError, match=r"a relation of the known graph \(user.buys.item\)"):
        read_graph(folder, like=graph)


def test_a_new_table_of_a_database_is_left_out(tmp_path: Path) -> None:
    graph = read_database(sample_shop.sqlite_file(tmp_path / "shop.db"))
    later = read_database(sample_shop.sqlite_file(tmp_path / "later.db", *NEW_TABLE), like=graph)
    assert later.types == graph.types
    assert later.num_edges == graph.num_edges
    assert later.schema.tables["log"].role == "ignored"


def test_an_ignored_table_stays_ignored(tmp_path: Path) -> None:
    database = sample_shop.sqlite_file(tmp_path / "shop.db", *NEW_TABLE)
    graph = read_database(database, tables={"log": "ignore"})
    assert "log" in read_database(database).types
    later = read_database(database, like=graph)
    assert later.types == graph.types
    assert later.schema == graph.schema


def test_keys_of_empty_tables_and_odd_names_are_never_parsed_again(tmp_path: Path) -> None:
    statements = [
        "CREATE TABLE people (id TEXT PRIMARY KEY, x REAL)",
        "CREATE TABLE kinds (id TEXT PRIMARY KEY, about TEXT)",
        "CREATE TABLE of_kind (person TEXT REFERENCES people (id), kind TEXT REFERENCES kinds (id))",
        'CREATE TABLE parks ("park.key" TEXT PRIMARY KEY, y REAL)',
        'CREATE TABLE games (id INTEGER PRIMARY KEY, "park.key" TEXT REFERENCES parks ("park.key"), '
        'person TEXT REFERENCES people (id), "a,b" REAL, "c=d" TEXT, "line\nbreak" REAL)',
        *(f"INSERT INTO people VALUES ('p{n}', {n * 0.3})" for n in range(20)),
        *(f"INSERT INTO parks VALUES ('k{n}', {n * 0.4})" for n in range(5)),
        *(
            f"INSERT INTO games VALUES ({n}, 'k{n % 5}', 'p{n % 20}', {n * 0.9}, '{'abc'[n % 3]}', {n})"
            for n in range(1, 60)
        ),
    ]
    made = {"tables": {}, "keys": {}}
    database = sample_shop.sqlite_file(tmp_path / "g.db", *statements, **made)
    filled = ["INSERT INTO kinds VALUES ('k', 'x')", "INSERT INTO of_kind VALUES ('p1', 'k')"]
    later_database = sample_shop.sqlite_file(tmp_path / "later.db", *statements, *filled, **made)
    graph = read_database(database)
    later = read_database(later_database, like=graph)
    assert later.types == graph.types == ("games", "parks", "people")
    for node_type in graph.types:
        assert not differing_rows(graph.target(node_type), later.target(node_type))
    assert [one.ends for one in later.relations] == [one.ends for one in graph.relations]


def test_odd_names_of_columns_of_files_are_read_again(tmp_path: Path) -> None:
    nodes = [[f"n{n}", n * 0.5, "xyz"[n % 3], n * 0.1, f"Ann {n}"] for n in range(40)]
    edges = [[f"n{n}", f"n{n * 7 % 40}", 1 + n % 3] for n in range(40)]
    put(tmp_path / "nodes.csv", [["the,id", "a,b", "c=d", "line\nbreak", "na,me"], *nodes])
    put(tmp_path / "edges.csv", [["fr,om", "t=o", "we\night"], *edges])
    tables = (tmp_path / "edges.csv", tmp_path / "nodes.csv")
    graph = read_graph(*tables, source="fr,om", weight="we\night", name="na,me")
    later = read_graph(*tables, like=graph)
    assert later.schema == graph.schema
    assert not differing_rows(graph, later)
    assert later.node_names.tolist() == graph.node_names.tolist()
    assert abs(later.adjacency - graph.adjacency).sum() == 0


def test_times_of_an_edge_table_with_types_make_its_rows_events(tmp_path: Path) -> None:
    rows = [[f"u{n % 13}", f"i{n % 7}", n % 5, f"2024-01-{1 + n % 28:02}"] for n in range(80)]
    path = put(tmp_path / "e.csv", [["user", "item", "stars", "when"], *rows])
    graph = read_graph(path, types="user,item", time="when")
    assert graph.types == ("event", "item", "user")
    assert graph.as_of("2024-01-10").nodes["event"].num_nodes < 80
    assert read_graph(path, like=graph).types == graph.types
