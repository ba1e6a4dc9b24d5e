"""Vectors in tables of databases: beside the rows, whole or not at all."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_shop import duckdb_file, sqlite_file

from infomax import read_database
from infomax.errors import InputError
from infomax.io.database.writing import (
    Destination,
    VectorTable,
    key_columns,
    parse_destination,
    primary_key,
    write_into,
)
from infomax.io.schema.schema import Schema, TableSchema, Use

duckdb = pytest.importorskip("duckdb")
ID = {"id": "BIGINT"}
IDS, VECTORS = np.array([7, 3]), np.array([[0.1, -2.5], [1e-7, 3]], np.float32)


def in_sqlite(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_sqlite_has_arrays_that_sql_reads(tmp_path: Path) -> None:
    path = tmp_path / "a b.db"
    for _ in range(2):  # a table of the same two columns is replaced
        write_into(
            parse_destination(f"sqlite:///{path}:vectors"),
            [VectorTable("vectors", IDS, VECTORS, {"ArtistId": "BIGINT"})],
        )
    rows = in_sqlite(path, "SELECT ArtistId, vector FROM vectors ORDER BY 1 DESC")
    np.testing.assert_array_equal(
        np.array([json.loads(cell) for _, cell in rows], np.float32), VECTORS
    )
    assert in_sqlite(path, "SELECT sum(value) FROM vectors, json_each(vector) WHERE ArtistId = 3")[
        0
    ][0] == pytest.approx(3)


def test_duckdb_has_arrays_of_floats(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    table = VectorTable("vectors", np.array(["a", "b"], object), VECTORS, {"id": "VARCHAR"})
    write_into(parse_destination(f"duckdb:///{path}:vectors"), [table])
    with duckdb.connect(path) as connection:
        rows = connection.execute(
            "SELECT id, array_cosine_similarity(vector, vector), typeof(vector) FROM vectors"
        ).fetchall()
    assert [row[::2] for row in rows] == [("a", "FLOAT[2]"), ("b", "FLOAT[2]")]


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_other_tables_are_refused_and_nothing_is_left_of_a_failure(
    tmp_path: Path, kind: str
) -> None:
    place = parse_destination(f"{kind}:///{tmp_path}/x.db:vectors")
    with pytest.raises(InputError, match="can be written"):
        write_into(place, [VectorTable("vectors", np.array([1, 1]), VECTORS, ID)])
    assert not any(tmp_path.iterdir())
    write_into(place, [VectorTable("vectors", IDS, VECTORS, {"other": "BIGINT"})])
    before = (tmp_path / "x.db").read_bytes()
    with pytest.raises(InputError, match=r"table vectors: .*columns other, vector"):
        write_into(
            place,
            [VectorTable("first", IDS, VECTORS, ID), VectorTable("vectors", IDS, VECTORS, ID)],
        )
    if kind == "sqlite":
        assert (tmp_path / "x.db").read_bytes() == before
    else:
        with duckdb.connect(tmp_path / "x.db") as connection:
            assert connection.execute("SHOW TABLES").fetchall() == [("vectors",)]


@pytest.mark.parametrize(
    "said", ["x.db", "sqlite:///x.db", "sqlite://x.db:t", "mysql:///x:t", "sqlite:///a:b/c"]
)
def test_addresses_say_a_database_and_a_table(said: str) -> None:
    with pytest.raises(InputError, match="--into"):
        parse_destination(said)


def test_the_primary_key_is_that_of_the_type() -> None:
    schema = Schema({"Artist": TableSchema(node_type="Artist", id=Use(("ArtistId",)))})
    assert [primary_key(schema, kind) for kind in ("Artist", "Song")] == ["ArtistId", "id"]
    assert primary_key(Schema({"nodes": TableSchema(id=Use(("paper",)))}), "") == "paper"


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_key_of_several_columns_is_written_as_these_columns(tmp_path: Path, kind: str) -> None:
    path = {"sqlite": sqlite_file, "duckdb": duckdb_file}[kind](tmp_path / "shop.db")
    lines = read_database(path).target("lines")
    vectors = np.arange(2 * lines.num_nodes, dtype=np.float32).reshape(-1, 2)
    key = key_columns(lines.schema, "lines", lines.ids)
    assert list(key) == ["order_id", "line"]
    for _ in range(2):
        write_into(
            parse_destination(f"{kind}:///{path}:vectors"),
            [VectorTable("vectors", lines.ids, vectors, key)],
        )
    query = "SELECT order_id, line, vector FROM lines JOIN vectors USING (order_id, line) ORDER BY lines.rowid"
    if kind == "sqlite":
        rows = [(order, line, json.loads(cell)) for order, line, cell in in_sqlite(path, query)]
        types = in_sqlite(path, "SELECT DISTINCT typeof(order_id) FROM vectors")
    else:
        with duckdb.connect(path) as connection:
            rows = connection.execute(query).fetchall()
            types = connection.execute("SELECT DISTINCT typeof(order_id) FROM vectors").fetchall()
    assert [f"{order}|{line}" for order, line, _ in rows] == lines.ids.tolist()
    np.testing.assert_array_equal([vector for *_, vector in rows], vectors)
    assert types == [("integer" if kind == "sqlite" else "INTEGER",)]
    assert "vectors" not in read_database(path).types, "it is not data later"


def test_keys_have_the_types_that_they_had(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    keys = {
        "a": "(id UUID PRIMARY KEY, x REAL)",
        "b": "(day DATE, part SMALLINT, a UUID REFERENCES a, PRIMARY KEY (day, part))",
    }
    with duckdb.connect(path) as connection:
        for name, columns in keys.items():
            connection.execute(f"CREATE TABLE {name} {columns}")
        connection.execute("INSERT INTO a SELECT uuid(), i FROM range(5) s(i)")
        connection.execute(
            "INSERT INTO b SELECT DATE '2024-01-01', row_number() OVER (), id FROM a"
        )
    graph = read_database(path)
    choices = graph.schema
    found = {kind: key_columns(choices, kind, graph.target(kind).ids) for kind in graph.types}
    assert found == {"a": {"id": "UUID"}, "b": {"day": "DATE", "part": "SMALLINT"}}
    tables = [
        VectorTable(f"v_{kind}", graph.target(kind).ids, VECTORS[[0] * 5], found[kind])
        for kind in found
    ]
    write_into(parse_destination(f"duckdb:///{path}:v"), tables)
    with duckdb.connect(path) as connection:
        assert connection.execute(
            "SELECT count(*) FROM b JOIN v_b USING (day, part) JOIN v_a ON v_a.id = b.a"
        ).fetchone() == (5,)


def test_ids_that_do_not_tell_their_columns_are_one_column() -> None:
    of_b = TableSchema(node_type="b", id=Use(("x", "y")), id_types=("VARCHAR", "VARCHAR"))
    of_c = TableSchema(node_type="c", id=Use(("n",)), id_types=("BIGINT",))
    choices = Schema({"b": of_b, "c": of_c})
    assert key_columns(choices, "b", np.array(["a|1", "b|2"], object)) == {
        "x": "VARCHAR",
        "y": "VARCHAR",
    }
    assert key_columns(choices, "b", np.array(["a|1", "b|c|2"], object)) == {"id": "VARCHAR"}
    assert key_columns(choices, "c", np.array(["A1"], object)) == {"n": "VARCHAR"}, (
        "text in a later graph"
    )
    assert key_columns(None, "", np.array([3])) == ID
    of_nodes = Schema({"nodes": TableSchema(id=Use(("vector",)))})
    assert key_columns(of_nodes, "", np.array([3])) == {"vector_id": "BIGINT"}


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_an_address_to_write_is_that_which_is_read(tmp_path: Path, kind: str) -> None:
    place = parse_destination(f"{kind}:///{tmp_path}/a%20b.db:v")
    write_into(place, [VectorTable("v", IDS, VECTORS, ID)])
    assert [file.name for file in tmp_path.iterdir()] == ["a b.db"]
    with pytest.raises(InputError, match=r"--into: expected .*the path of a file.*in memory"):
        parse_destination(f"{kind}:///:memory::v")


def test_a_file_of_another_database_is_refused_by_its_name(tmp_path: Path) -> None:
    table = VectorTable("v", IDS, VECTORS, ID)
    for kind, other, name in (("duckdb", "sqlite", "DuckDB"), ("sqlite", "duckdb", "SQLite")):
        path = tmp_path / f"{other}.db"
        write_into(parse_destination(f"{other}:///{path}:v"), [table])
        before = path.read_bytes()
        with pytest.raises(InputError, match=f"a file of {name}, found one of .*{other}:///"):
            write_into(parse_destination(f"{kind}:///{path}:v"), [table])
        assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_full_disk_leaves_nothing_that_would_damage_a_later_database(
    tmp_path: Path, kind: str
) -> None:
    resource = pytest.importorskip("resource")
    place = parse_destination(f"{kind}:///{tmp_path}/v.db:v")
    vectors = np.random.default_rng(1).normal(size=(20_000, 32)).astype(np.float32)
    table = VectorTable("v", np.arange(20_000), vectors, ID)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, usual[1]))
    try:
        with pytest.raises(InputError):
            write_into(place, [table])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert not any(tmp_path.iterdir())
    write_into(place, [table])
    before = {"v.db"}
    assert {file.name for file in tmp_path.iterdir()} == before


def _write_for_ever(place: Destination, table: VectorTable) -> None:
    """Write a table until it is interrupted, however fast the machine is."""
    while True:
        write_into(place, [table])


def test_ctrl_c_ends_a_writing_as_it_ends_other_work(tmp_path: Path) -> None:
    import os
    import signal
    import threading

    place = parse_destination(f"duckdb:///{tmp_path}/v.duckdb:v")
    rows = 200_000
    table = VectorTable("v", np.arange(rows), np.ones((rows, 64), np.float32), ID)
    has_ended = threading.Event()

    def press_ctrl_c() -> None:
        # Again where the signal came in a callback of a library, which Python drops; the command line does so itself.
        pause = 0.3
        while not has_ended.wait(pause):
            os.kill(os.getpid(), signal.SIGINT)
            pause = 5.0

    # A process that a shell has started in the background ignores Ctrl-C.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    presses = threading.Thread(target=press_ctrl_c)
    presses.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            _write_for_ever(place, table)
    finally:
        has_ended.set()
        presses.join()
        signal.signal(signal.SIGINT, handler)
    assert {file.name for file in tmp_path.iterdir()} <= {"v.duckdb"}


def test_text_of_vectors_gives_each_number_back(tmp_path: Path) -> None:
    bits = np.random.default_rng(5).integers(0, 2**32, 4000, dtype=np.uint32)
    numbers = bits.view(np.float32)
    numbers = numbers[np.isfinite(numbers)][:3000].reshape(-1, 3)
    table = VectorTable("v", np.arange(len(numbers)), numbers, ID)
    write_into(parse_destination(f"sqlite:///{tmp_path}/v.db:v"), [table])
    rows = in_sqlite(tmp_path / "v.db", "SELECT vector FROM v ORDER BY id")
    found = np.array([json.loads(row[0]) for row in rows], np.float32)
    np.testing.assert_array_equal(found.view(np.uint32), numbers.view(np.uint32))


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_table_of_a_key_and_a_vector_that_refers_to_others_is_data(
    tmp_path: Path, kind: str
) -> None:
    make = {"sqlite": sqlite_file, "duckdb": duckdb_file}[kind]
    table = "CREATE TABLE sizes (id INTEGER PRIMARY KEY REFERENCES customers (customer_id), vector REAL)"
    rows = "INSERT INTO sizes VALUES (1, 0.5), (2, 1.5), (3, 7.5)"
    assert "sizes" in read_database(make(tmp_path / "shop.db", table, rows)).types
