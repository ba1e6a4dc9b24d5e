"""Vectors in tables of databases: beside the rows, whole or not at all."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from infomax.errors import InputError
from infomax.io.database.writing import VectorTable, destination, primary_key, write_into

IDS, VECTORS = np.array([7, 3]), np.array([[0.1, -2.5], [1e-7, 3]], np.float32)


def in_sqlite(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_sqlite_has_arrays_that_sql_reads(tmp_path: Path) -> None:
    path = tmp_path / "a b.db"
    for _ in range(2):  # a table of the same two columns is replaced
        write_into(destination(f"sqlite:///{path}:vectors"), [VectorTable("vectors", IDS, VECTORS, "ArtistId")])
    rows = in_sqlite(path, "SELECT ArtistId, vector FROM vectors ORDER BY 1 DESC")
    np.testing.assert_array_equal(np.array([json.loads(cell) for _, cell in rows], np.float32), VECTORS)
    assert in_sqlite(path, "SELECT sum(value) FROM vectors, json_each(vector) WHERE ArtistId = 3")[0][
        0
    ] == pytest.approx(3)


def test_duckdb_has_arrays_of_floats(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    table = VectorTable("vectors", np.array(["a", "b"], object), VECTORS, "id")
    write_into(destination(f"duckdb:///{path}:vectors"), [table])
    with duckdb.connect(path) as connection:
        rows = connection.execute(
            "SELECT id, array_cosine_similarity(vector, vector), typeof(vector) FROM vectors"
        ).fetchall()
    assert [row[::2] for row in rows] == [("a", "FLOAT[2]"), ("b", "FLOAT[2]")]


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_other_tables_are_refused_and_nothing_is_left_of_a_failure(tmp_path: Path, kind: str) -> None:
    place = destination(f"{kind}:///{tmp_path}/x.db:vectors")
    with pytest.raises(InputError, match="can be written"):
        write_into(place, [VectorTable("vectors", np.array([1, 1]), VECTORS, "id")])
    assert not any(tmp_path.iterdir())
    write_into(place, [VectorTable("vectors", IDS, VECTORS, "other")])
    before = (tmp_path / "x.db").read_bytes()
    with pytest.raises(InputError, match=r"table vectors: .*columns other, vector"):
        write_into(place, [VectorTable("first", IDS, VECTORS, "id"), VectorTable("vectors", IDS, VECTORS, "id")])
    if kind == "sqlite":
        assert (tmp_path / "x.db").read_bytes() == before
    else:
        with duckdb.connect(tmp_path / "x.db") as connection:
            assert connection.execute("SHOW TABLES").fetchall() == [("vectors",)]


@pytest.mark.parametrize("said", ["x.db", "sqlite:///x.db", "sqlite://x.db:t", "mysql:///x:t", "sqlite:///a:b/c"])
def test_addresses_say_a_database_and_a_table(said: str) -> None:
    with pytest.raises(InputError, match="--into"):
        destination(said)


def test_the_primary_key_is_that_of_the_type() -> None:
    choices = {"id": "Album.AlbumId,Artist.ArtistId"}
    assert [primary_key(choices, kind) for kind in ("Artist", "Song")] == ["ArtistId", "id"]
    assert primary_key({"id": "paper"}, "") == "paper"
