"""A real Postgres server: read in one transaction, written in one, and what is refused. Skipped where there is none."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_shop import sqlite_file, statements

from infomax import read_database
from infomax.arrays.sparsity import dense
from infomax.errors import InputError
from infomax.io.database import postgres
from infomax.io.database.writing import VectorTable, key_columns, parse_destination, write_into

dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the driver of Postgres")
ID = {"id": "BIGINT"}
PROGRAM = shutil.which("initdb") or next(
    iter(sorted(glob("/usr/lib/postgresql/*/bin/initdb"))), None
)
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Postgres server is installed")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server on a socket in a folder of its own; root cannot run one, so another user does."""
    programs = Path(str(PROGRAM)).resolve().parent
    place = Path(tempfile.mkdtemp(prefix="pg"))
    prefix = list[str]()
    if os.getuid() == 0:
        known = {one.pw_name for one in pwd.getpwall()}
        user = "postgres" if "postgres" in known else "nobody"
        shutil.chown(place, user)
        prefix = ["setpriv", f"--reuid={user}", "--clear-groups", "--"]

    def call(program: str, *arguments: str) -> None:
        command = [*prefix, str(programs / program), "-D", str(place / "data"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=120)
        if done.returncode:
            pytest.skip(f"{program} does not run here: {done.stderr[-300:]}")

    call("initdb", "-U", "me", "-A", "trust", "--no-sync")
    call(
        "pg_ctl",
        "-w",
        "-l",
        str(place / "log"),
        "-o",
        f"-c listen_addresses='' -c fsync=off -k {place}",
        "start",
    )
    try:
        yield f"postgresql:///postgres?host={place}&user=me"
    finally:
        call("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def run(server: str) -> Callable[..., list[Any]]:
    """Runs statements; the shop is there before each test, and nothing else."""

    def execute(*all_of: str) -> list[Any]:
        with dbapi.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in all_of:
                cursor.execute(statement)
            return cursor.fetchall() if all_of[-1].startswith("SELECT") else []

    execute(
        "DROP SCHEMA IF EXISTS other CASCADE",
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
        *statements(),
    )
    return execute


@pytest.mark.usefixtures("run")
def test_a_server_gives_the_graph_of_a_file(server: str, tmp_path: Path) -> None:
    there, here = read_database(server), read_database(sqlite_file(tmp_path / "shop.db"))
    assert [(one.ends, one.directed, one.edges.num_edges) for one in there.relations] == [
        (one.ends, one.directed, one.edges.num_edges) for one in here.relations
    ]
    for kind, one in here.by_type().items():
        other = there.target(kind)
        assert one.ids.tolist() == other.ids.tolist()
        assert one.feature_names == other.feature_names
        np.testing.assert_allclose(dense(one.features), dense(other.features), atol=1e-5)


def test_types_of_columns_become_features_or_are_left_out(
    server: str, run: Callable[..., list[Any]]
) -> None:
    run(
        "ALTER TABLE products ADD w numeric(10,2), ADD n numeric(4,0), ADD u uuid, ADD j json, ADD b bytea, ADD d date",
        "UPDATE products SET w = id / 4.0, n = id, u = gen_random_uuid(), j = '{}', b = 'x', d = '2020-01-01'",
    )
    names = {column.name for column in read_database(server).nodes["products"].encoding.columns}
    assert {"w", "n", "u", "d"} <= names
    assert not {"j", "b"} & names


def test_what_cannot_be_read_is_refused(server: str, run: Callable[..., list[Any]]) -> None:
    run(
        "CREATE SCHEMA other",
        "CREATE TABLE other.orders (id integer PRIMARY KEY)",
        "CREATE VIEW v AS SELECT 1 AS a",
    )
    with pytest.raises(InputError, match=r"orders.* in two schemas"):
        read_database(server)
    run(
        "INSERT INTO other.orders VALUES (1)",
        "CREATE TABLE other.gone (number integer REFERENCES other.orders (id))",
    )
    run("INSERT INTO other.gone VALUES (1)")
    graph = read_database(server, tables=["other.orders=ignore"])
    assert {"v", "gone"}.isdisjoint(graph.types), (
        "a key to the table that is left out is none to the other"
    )
    assert ("lines", "order_id", "orders") in {one.ends for one in graph.relations}
    run("DROP SCHEMA other CASCADE", "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")
    guest = server.replace("user=me", "user=guest")
    with pytest.raises(InputError, match="permission to read table"):
        read_database(guest)
    with pytest.raises(InputError, match="lets you in"):
        read_database("postgresql://me:secret@127.0.0.1:1/x")


def test_rows_of_tables_that_inherit_from_another_are_read_once(
    server: str, run: Callable[..., list[Any]]
) -> None:
    before = read_database(server).nodes["lines"].num_nodes
    run(
        "CREATE TABLE lines_of_may () INHERITS (lines)",
        "INSERT INTO lines_of_may SELECT * FROM lines",
        "UPDATE lines_of_may SET line = line + 100",
    )
    graph = read_database(server)
    assert "lines_of_may" not in graph.types
    assert graph.nodes["lines"].num_nodes == 2 * before


def test_passwords_are_not_shown() -> None:
    assert (
        postgres.address_without_password("postgresql://me:secret@host/db?password=x")
        == "postgresql://me@host/db"
    )


def test_a_connection_that_breaks_is_told(
    server: str, run: Callable[..., list[Any]], monkeypatch: Any
) -> None:
    copy = postgres._copy

    def cut(*arguments: Any) -> None:
        """The server ends all other connections while tables are read."""
        copy(*arguments)
        run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'me'"
        )

    monkeypatch.setattr(postgres, "_copy", cut)
    with pytest.raises(InputError, match=r"read to their end.*Nothing was written"):
        read_database(server)


def test_vectors_are_written_in_one_transaction(server: str, run: Callable[..., list[Any]]) -> None:
    place, vectors = (
        parse_destination(f"{server}:vectors"),
        np.array([[0.5, -2], [1, 3]], np.float32),
    )
    with pytest.raises(InputError, match="can be written"):
        write_into(place, [VectorTable("first", np.array([10, 20]), vectors, ID),
                           VectorTable("vectors", np.array([10, 10]), vectors, ID)])  # fmt: skip
    assert run("SELECT to_regclass('vectors') IS NULL AND to_regclass('first') IS NULL")[0][0]
    for _ in range(2):
        write_into(
            place,
            [VectorTable(name, np.array([10, 20]), vectors, ID) for name in ("first", "vectors")],
        )
    rows = run(
        "SELECT products.name, vectors.vector FROM products JOIN vectors USING (id) ORDER BY 1"
    )
    assert [(name, list(vector)) for name, vector in rows] == [("cup", [1, 3]), ("tea", [0.5, -2])]
    with pytest.raises(InputError, match="columns id, label"):
        write_into(place, [VectorTable("tags", np.array([1, 2]), vectors, ID)])


def test_keys_have_the_types_that_they_had(server: str, run: Callable[..., list[Any]]) -> None:
    run(
        "CREATE TABLE users (id uuid PRIMARY KEY, age integer)",
        "CREATE TABLE visits (day date, part smallint, who uuid REFERENCES users, x real, PRIMARY KEY (day, part))",
        "INSERT INTO users SELECT gen_random_uuid(), i FROM generate_series(1, 5) i",
        "INSERT INTO visits SELECT '2024-01-01', row_number() OVER (), id, age FROM users",
    )
    graph = read_database(server)
    tables = []
    for kind in ("users", "visits"):
        ids = graph.target(kind).ids
        key = key_columns(graph.schema, kind, ids)
        tables.append(VectorTable(f"v_{kind}", ids, np.ones((5, 2), np.float32), key))
    for _ in range(2):
        write_into(parse_destination(f"{server}:v"), tables)
    query = "SELECT count(*) FROM visits JOIN v_visits USING (day, part) JOIN users ON id = who JOIN v_users USING (id)"
    assert run(query) == [(5,)]
    assert {"v_users", "v_visits"}.isdisjoint(read_database(server).types), (
        "they are not data later"
    )


def test_a_table_called_vector_is_not_the_type_of_pgvector(
    server: str, run: Callable[..., list[Any]]
) -> None:
    table = VectorTable("vector", np.array([10, 20]), np.array([[0.5, -2], [1, 3]], np.float32), ID)
    for _ in range(2):
        write_into(parse_destination(f"{server}:vector"), [table])
    assert run("SELECT vector::text FROM vector ORDER BY id") == [("{0.5,-2}",), ("{1,3}",)]


def test_pgvector_searches_what_is_written(server: str, run: Callable[..., list[Any]]) -> None:
    if not run("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
        pytest.skip("the server has no pgvector")
    # As hosted servers have it: in a schema of its own, in which nothing is looked for unless it is named.
    run("CREATE SCHEMA other", "CREATE EXTENSION vector SCHEMA other")
    vectors = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    write_into(
        parse_destination(f"{server}:vectors"), [VectorTable("vectors", np.arange(30), vectors, ID)]
    )
    run("CREATE INDEX ON vectors USING hnsw (vector other.vector_cosine_ops)")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for sign, distance in (
        ("<->", np.linalg.norm(vectors - vectors[7], axis=1)),
        ("<=>", 1 - unit @ unit[7]),
    ):
        asked = "(SELECT vector FROM vectors WHERE id = 7)"
        query = f"SELECT id FROM vectors ORDER BY vector OPERATOR(other.{sign}) {asked}"
        assert [row[0] for row in run(f"{query} LIMIT 5")] == np.argsort(distance)[:5].tolist()
    run("ALTER TABLE products ADD photo other.vector(3)", "UPDATE products SET photo = '[1, 2, 3]'")
    assert (
        sum(
            name.startswith("photo")
            for name in read_database(server).target("products").feature_names
        )
        == 3
    )


def test_vectors_are_of_the_type_of_pgvector_where_there_is_one(
    server: str, run: Callable[..., list[Any]]
) -> None:
    run(  # a type of that name with a width, as the extension has
        "CREATE TYPE vector",
        "CREATE FUNCTION vin(cstring, oid, integer) RETURNS vector AS 'textin' LANGUAGE internal IMMUTABLE STRICT",
        "CREATE FUNCTION vout(vector) RETURNS cstring AS 'textout' LANGUAGE internal IMMUTABLE STRICT",
        "CREATE TYPE vector (INPUT = vin, OUTPUT = vout, TYPMOD_IN = varchartypmodin, TYPMOD_OUT = varchartypmodout)",
        "CREATE CAST (real[] AS vector) WITH INOUT",
    )
    vectors = np.array([[0.5, -2], [1, 3]], np.float32)
    write_into(
        parse_destination(f"{server}:vectors"),
        [VectorTable("vectors", np.array([10, 20]), vectors, ID)],
    )
    query = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
    assert run(f"{query} WHERE attrelid = 'vectors'::regclass AND attname = 'vector'") == [
        ("vector(2)",)
    ]
    assert run("SELECT vector::text FROM vectors ORDER BY id") == [("{0.5,-2}",), ("{1,3}",)]
