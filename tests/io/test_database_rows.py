"""Rows and columns of databases: their order, their ids, and what is read of odd ones."""

from __future__ import annotations

import csv as standard_csv
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from infomax import Graph, read_database
from infomax.arrays.sparsity import dense
from infomax.errors import InputError
from infomax.io.choices import UserChoices
from infomax.io.database import read_tables

duckdb = pytest.importorskip("duckdb")
OWNERS = "CREATE TABLE owners (id INTEGER PRIMARY KEY, age REAL)"
FILL_OWNERS = "INSERT INTO owners VALUES (1, 20.5), (2, 31.5), (3, 44.0)"


def in_sqlite(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def in_duckdb(path: Path, *statements: str) -> Path:
    with duckdb.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


MAKE = {"sqlite": in_sqlite, "duckdb": in_duckdb}


def values(graph: Graph, node_type: str, feature: str) -> list[float]:
    column = list(graph.target(node_type).feature_names).index(feature)
    return dense(graph.target(node_type).features)[:, column].tolist()


def test_rows_of_sqlite_are_read_in_their_order_and_not_in_that_of_an_index(tmp_path: Path) -> None:
    create = "CREATE TABLE pets (owner_id INTEGER REFERENCES owners, weight REAL)"
    pets = "INSERT INTO pets VALUES (3, 9.5), (1, 7.25), (2, 8.0), (1, 1.5)"
    index = "CREATE INDEX by_owner ON pets (owner_id, weight)"
    path = in_sqlite(tmp_path / "a.db", OWNERS, FILL_OWNERS, create, pets, index)
    weights = [9.5, 7.25, 8.0, 1.5]
    graph = read_database(path)
    assert graph.nodes["pets"].ids.tolist() == [1, 2, 3, 4]
    assert values(graph, "pets", "weight") == weights
    in_sqlite(path, "INSERT INTO pets VALUES (1, 0.5)")
    later = read_database(path)
    assert values(later, "pets", "weight") == [*weights, 0.5], "one more row renumbers no other"


def test_a_table_whose_columns_take_all_names_of_row_numbers_is_read_in_order(
    tmp_path: Path,
) -> None:
    create = (
        "CREATE TABLE pets (owner_id INTEGER REFERENCES owners, rowid REAL, oid REAL, _rowid_ REAL)"
    )
    pets = "INSERT INTO pets VALUES (3, 9.5, 1, 2), (1, 7.25, 4, 1), (2, 8.0, 2, 7)"
    index = "CREATE INDEX by_owner ON pets (owner_id, rowid, oid, _rowid_)"
    path = in_sqlite(tmp_path / "a.db", OWNERS, FILL_OWNERS, create, pets, index)
    assert values(read_database(path), "pets", "rowid") == [9.5, 7.25, 8.0]


def test_rows_without_a_key_are_numbered_from_one_on_where_rows_were_deleted(
    tmp_path: Path,
) -> None:
    path = in_duckdb(
        tmp_path / "a.duckdb",
        OWNERS,
        FILL_OWNERS,
        "CREATE TABLE pets AS SELECT 1 + i % 3 AS owner_id, i + 0.5 AS weight FROM range(9) s(i)",
        "DELETE FROM pets WHERE weight < 4",
    )
    graph = read_database(path, keys={"pets.owner_id": "owners"})
    assert graph.nodes["pets"].ids.tolist() == [1, 2, 3, 4, 5]
    assert values(graph, "pets", "weight") == [4.5, 5.5, 6.5, 7.5, 8.5]
    (relation,) = graph.relations
    assert relation.edges.receivers.indices.tolist() == [1, 2, 0, 1, 2]


@pytest.mark.parametrize("door", ["csv", "sqlite", "duckdb"])
def test_a_column_called_rowid_is_a_column(tmp_path: Path, door: str) -> None:
    rows = [(2, 7.5), (1, 3.25), (3, 5.0), (1, 8.0)]
    if door == "csv":
        path = tmp_path / "shop"
        path.mkdir()
        (path / "owners.csv").write_text("id,age\n1,20.5\n2,31.5\n3,44.0\n")
        text = "".join(f"{owner},{number}\n" for owner, number in rows)
        (path / "pets.csv").write_text("owner_id,rowid\n" + text)
    else:
        pets = ", ".join(str(row) for row in rows)
        path = MAKE[door](
            tmp_path / "shop.db",
            OWNERS,
            FILL_OWNERS,
            "CREATE TABLE pets (owner_id INTEGER REFERENCES owners, rowid REAL)",
            f"INSERT INTO pets VALUES {pets}",
        )
    graph = read_database(path)
    assert graph.nodes["pets"].ids.tolist() == [1, 2, 3, 4]
    assert values(graph, "pets", "rowid") == [number for _, number in rows]
    (relation,) = graph.relations
    assert graph.nodes["owners"].ids[relation.edges.receivers.indices].tolist() == [2, 1, 3, 1]


def test_keys_of_bytes_and_generated_columns_are_read_from_sqlite(tmp_path: Path) -> None:
    path = in_sqlite(
        tmp_path / "a.db",
        "CREATE TABLE owners (id BLOB PRIMARY KEY, age REAL, number INTEGER UNIQUE)",
        "INSERT INTO owners VALUES (x'00ff', 20.5, 1), (x'0a0b', 31.5, 2), (x'c0', 44, 3)",
        "CREATE TABLE pets (id INTEGER PRIMARY KEY, owner BLOB REFERENCES owners, weight REAL, "
        "heavy REAL AS (weight * 10), twice REAL AS (weight * 2) STORED, "
        "number INTEGER AS (id) REFERENCES owners (number))",
        "INSERT INTO pets (id, owner, weight) VALUES (1, x'0a0b', 2), (2, x'00ff', 4), (3, x'c0', 5)",
    )
    graph = read_database(path)
    assert graph.nodes["owners"].ids.tolist() == ["00ff", "0a0b", "c0"]
    assert values(graph, "pets", "heavy") == [20, 40, 50]
    assert values(graph, "pets", "twice") == [4, 8, 10]
    ends = {relation.ends[1]: relation.edges.receivers.indices for relation in graph.relations}
    assert ends["owner"].tolist() == [1, 0, 2]
    assert ends["number"].tolist() == [0, 1, 2]


def test_keys_of_bytes_are_read_from_duckdb(tmp_path: Path) -> None:
    path = in_duckdb(
        tmp_path / "a.duckdb",
        "CREATE TABLE owners (id BLOB PRIMARY KEY, age REAL, photo BLOB)",
        "INSERT INTO owners VALUES ('\\x00\\xFF', 20.5, 'a'), ('\\x0A', 31.5, 'b')",
        "CREATE TABLE pets (id INTEGER PRIMARY KEY, owner BLOB REFERENCES owners, weight REAL)",
        "INSERT INTO pets VALUES (1, '\\x0A', 2), (2, '\\x00\\xFF', 4)",
    )
    graph = read_database(path)
    assert graph.nodes["owners"].ids.tolist() == ["00ff", "0a"]
    assert graph.relations[0].edges.receivers.indices.tolist() == [1, 0]
    assert "photo" in read_tables(path, UserChoices()).tables["owners"].left_out


def test_a_damaged_sqlite_file_is_refused_whatever_is_damaged(tmp_path: Path) -> None:
    rows = ", ".join(f"({number}, {number + 0.5}, 'ä{number}')" for number in range(1, 60))
    path = in_sqlite(
        tmp_path / "whole.db",
        "CREATE TABLE owners (id INTEGER PRIMARY KEY, age REAL, größe TEXT)",
        f"INSERT INTO owners VALUES {rows}",
        "CREATE TABLE pets (owner_id INTEGER REFERENCES owners, weight REAL)",
        "INSERT INTO pets SELECT id, age FROM owners",
    )
    whole = path.read_bytes()
    name = whole.index("größe".encode())
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(whole[: name + 2] + b"\xff\xfe" + whole[name + 4 :])
    with pytest.raises(InputError, match="a SQLite database that can be read"):
        read_database(damaged)
    generator = random.Random(4)
    for _ in range(60):
        torn = bytearray(whole)
        for _ in range(20):
            torn[generator.randrange(100, len(torn))] = generator.randrange(256)
        damaged.write_bytes(torn)
        try:
            read_database(damaged)
        except InputError:
            continue


def test_tables_that_differ_in_case_alone_are_two_tables(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "Tag.csv").write_text("id,weight\n1,0.5\n2,1.5\n")
    (folder / "tag.csv").write_text("id,size\n1,7.5\n2,8.5\n")
    if len(list(folder.iterdir())) < 2:
        pytest.skip("file names have no case here")
    (folder / "posts.csv").write_text("id,Tag_id,new_tag_id,x\n1,1,2,0.5\n2,2,1,3.5\n3,2,2,4.5\n")
    keys = {key.name: key.table for key in read_tables(folder, UserChoices()).tables["posts"].keys}
    assert keys == {"Tag_id": "Tag", "new_tag_id": "tag"}
    said = read_database(folder, keys=["posts.Tag_id=Tag", "posts.new_tag_id=tag"])
    assert {relation.ends for relation in said.relations} == {
        ("posts", "Tag_id", "Tag"),
        ("posts", "new_tag_id", "tag"),
    }


def test_an_enum_is_a_category_whatever_its_values_are(tmp_path: Path) -> None:
    words = ["JSON", "UNION ALL", "MAP", "BLOB", "STRUCT(a)", "TIMESTAMP", "INT"]
    path = in_duckdb(
        tmp_path / "a.duckdb",
        OWNERS,
        FILL_OWNERS,
        f"CREATE TYPE form AS ENUM ({', '.join(map(repr, words))})",
        "CREATE TABLE files (id INTEGER PRIMARY KEY, owner_id INTEGER REFERENCES owners, kind form, size REAL)",
        *(
            f"INSERT INTO files VALUES ({n}, {1 + n % 3}, '{words[n % len(words)]}', {n}.5)"
            for n in range(42)
        ),
    )
    features = read_database(path).target("files").feature_names
    assert {f"kind={word}" for word in words} <= set(features)


@pytest.mark.parametrize("door", ["csv", "parquet", "frames"])
@pytest.mark.parametrize("names", [("y", "y"), ("y", "Y")])
def test_columns_of_one_name_are_refused_in_the_same_words(
    tmp_path: Path, door: str, names: tuple[str, str]
) -> None:
    table = pa.Table.from_arrays([pa.array([1, 2, 3])] * 3, names=["owner_id", *names])
    owners = pa.table({"id": [1, 2, 3], "age": [1.5, 2.5, 4.5]})
    parquet.write_table(owners, tmp_path / "owners.parquet")
    if door == "csv":
        (tmp_path / "pets.csv").write_text(f"owner_id,{names[0]},{names[1]}\n1,1,1\n2,2,2\n")
    else:
        parquet.write_table(table, tmp_path / "pets.parquet")
    expected = 'each column name once, found "y" 2 times'
    if names == ("y", "Y"):
        expected = 'each column name once, in any case, found "y" and "Y"'
    frames = {"owners": owners, "pets": table}
    with pytest.raises(InputError, match=expected):
        _ = Graph.from_frames(nodes=frames) if door == "frames" else read_database(tmp_path)


@pytest.mark.parametrize("cell", ["a\nb", "x" * 3_000_000, '"Weird Al" Yankovic'], ids=len)
@pytest.mark.parametrize("is_short", [False, True])
def test_any_cell_of_a_csv_is_read_by_the_one_reader(
    tmp_path: Path, cell: str, is_short: bool
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    quoted = '"' + cell.replace('"', '""') + '"'
    last = "3,9.5" if is_short else "3,9.5,"
    (folder / "owners.csv").write_text(f"id,age,name\n1,7.5,{quoted}\n2,8.5,Ida\n{last}\n")
    (folder / "pets.csv").write_text("owner_id,weight\n1,2.5\n2,3.5\n3,4.5\n")
    limit = standard_csv.field_size_limit()
    owners = read_database(folder).nodes["owners"]
    assert owners.node_names.tolist() == [cell, "Ida", ""]
    assert owners.ids.tolist() == [1, 2, 3]
    assert standard_csv.field_size_limit() == limit, "a limit of the process stays as it was"


def test_lists_of_dates_are_left_out_and_said(tmp_path: Path) -> None:
    path = in_duckdb(
        tmp_path / "a.duckdb",
        OWNERS,
        FILL_OWNERS,
        "CREATE TABLE pets (owner_id INTEGER REFERENCES owners, weight REAL, seen DATE[], words TEXT[])",
        "INSERT INTO pets SELECT 1 + i % 3, i + 0.5, [DATE '2024-01-01'], ['a', 'b'] FROM range(20) s(i)",
    )
    pets = read_tables(path, UserChoices()).tables["pets"]
    assert pets.schema.columns["seen"].reason == ("no features are made of columns of type DATE[]")
    assert "weight" in read_database(path).target("pets").feature_names


@pytest.mark.parametrize("door", ["duckdb", "parquet"])
def test_durations_are_seconds(tmp_path: Path, door: str) -> None:
    if door == "duckdb":
        path = in_duckdb(
            tmp_path / "a.duckdb",
            OWNERS,
            FILL_OWNERS,
            "CREATE TABLE walks (owner_id INTEGER REFERENCES owners, took INTERVAL)",
            "INSERT INTO walks SELECT 1 + i % 3, (90 + i) * INTERVAL 1 SECOND FROM range(6) s(i)",
        )
    else:
        path = tmp_path / "shop"
        path.mkdir()
        parquet.write_table(
            pa.table({"id": [1, 2, 3], "age": [1.5, 2, 3]}), path / "owners.parquet"
        )
        took = pa.array([90 + i for i in range(6)], pa.int64()).cast(pa.duration("s"))
        walks = pa.table({"owner_id": [1 + i % 3 for i in range(6)], "took": took})
        parquet.write_table(walks, path / "walks.parquet")
    assert values(read_database(path), "walks", "took") == [90 + i for i in range(6)]


def test_columns_without_values_are_left_out_and_said(tmp_path: Path) -> None:
    path = in_sqlite(
        tmp_path / "a.db",
        "CREATE TABLE language (id INTEGER PRIMARY KEY, name TEXT)",
        "INSERT INTO language VALUES (1, 'en'), (2, 'de')",
        "CREATE TABLE film (id INTEGER PRIMARY KEY, length REAL, note TEXT, "
        "language_id INTEGER REFERENCES language, original_id INTEGER REFERENCES language)",
        "CREATE TABLE copies (film_id INTEGER REFERENCES film, price REAL)",
        *(f"INSERT INTO film VALUES ({n}, {n}.5, NULL, {1 + n % 2}, NULL)" for n in range(1, 31)),
        *(f"INSERT INTO copies VALUES ({n}, {n % 7}.25)" for n in range(1, 31)),
    )
    graph = read_database(path, tables={"language": "lookup"})
    assert set(graph.target("film").feature_names) >= {"length", "language_id=en", "language_id=de"}
    film = read_tables(path, UserChoices()).tables["film"]
    assert film.schema.columns["note"].reason == "it is empty in every row"


def test_views_and_vectors_have_no_holes_in_their_numbers(tmp_path: Path) -> None:
    path = in_duckdb(
        tmp_path / "a.duckdb",
        OWNERS,
        FILL_OWNERS,
        "CREATE TABLE pets (owner_id INTEGER REFERENCES owners, rowid REAL)",
        "INSERT INTO pets SELECT 1 + i % 3, i + 0.5 FROM range(6) s(i)",
        "CREATE VIEW old AS SELECT * FROM pets WHERE rowid > 2",
    )
    graph = read_database(path, tables=["old=facts"], keys=["old.owner_id=owners"])
    assert graph.nodes["old"].ids.tolist() == [1, 2, 3, 4]
    assert np.allclose(values(graph, "old", "rowid"), [2.5, 3.5, 4.5, 5.5])
