"""The same decisions about tables give the same graph as before, by every door.

`FROZEN` holds what each door gave when it was last changed on purpose. ``graph`` is a hash of ids, names, labels, times
and edges, ``names`` one of the names of features, and ``features`` a number that depends on every feature, which is
compared to 1e-5 so that no test depends on a machine. A change of a decision (a role, a column type) changes some of
them: then say in the commit which and why. A change of code that decides the same changes none.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sample_shop
from pyarrow import csv, parquet

from infomax import Graph, read_database, read_graph
from infomax.arrays.sparsity import dense
from infomax.errors import InputWarning
from infomax.io.prepare import prepare

DATA = Path(os.environ.get("INFOMAX_DATA", ""), "relational")
PEOPLE = {
    "id": list(range(40)),
    "age": [20 + number % 7 for number in range(40)],
    "city": [("Bern", "Basel", "Chur")[number % 3] for number in range(40)],
    "born": [f"19{60 + number % 30}-0{1 + number % 9}-11" for number in range(40)],
    "about": [
        f"likes {('tea', 'cups', 'pots')[number % 3]} and item{number}" for number in range(40)
    ],
    "section": [("a", "b", "")[number % 3] for number in range(40)],
    "split:train": [int(number % 2) for number in range(40)],
}
LINKS = {
    "source": list(range(40)) * 2,
    "target": [(number * 7 + 3) % 40 for number in range(40)]
    + [(number * 11 + 5) % 40 for number in range(40)],
    "weight": [1 + number % 3 for number in range(80)],
    "note": ["x"] * 80,
}
ITEMS = {
    "id": [f"i{number}" for number in range(15)],
    "price": [1.5 * number for number in range(15)],
}
BOUGHT = {
    "person": [number % 40 for number in range(60)],
    "item": [f"i{number % 15}" for number in range(60)],
    "when": [f"2024-01-{1 + number % 28:02}" for number in range(60)],
    "amount": [number % 5 for number in range(60)],
}


def fingerprint(graph: Graph) -> dict[str, Any]:
    """What tells a graph from another one, whatever the machine."""
    structure, names = hashlib.sha256(), hashlib.sha256()
    total = 0.0
    for node_type, nodes in sorted(graph.nodes.items()):
        columns = [nodes.ids[:].tolist()]
        columns += [[name, column.tolist()] for name, column in sorted(nodes.labels.items())]
        columns += [[name, mask.tolist()] for name, mask in sorted(nodes.splits.items())]
        columns += [None if nodes.node_names is None else nodes.node_names[:].tolist()]
        columns += [None if nodes.times is None else nodes.times[:].tolist()]
        structure.update(repr([node_type, columns]).encode())
        names.update(repr([node_type, nodes.feature_names]).encode())
        features = dense(nodes.table[:]).astype(np.float64)
        rows = np.cos(np.arange(features.shape[0]))
        total += float(rows @ features @ np.sin(1 + np.arange(features.shape[1])))
    for relation in sorted(graph.relations, key=lambda relation: relation.ends):
        matrix = relation.edges.matrix()
        matrix.sort_indices()
        arrays = (matrix.indptr, matrix.indices, 1000 * matrix.data)
        structure.update(repr([relation.ends, relation.directed]).encode())
        for array in arrays:
            structure.update(array.astype(np.int64).tobytes())
    return {
        "graph": structure.hexdigest()[:16],
        "names": names.hexdigest()[:16],
        "features": float(f"{total:.9g}"),
    }


def written(folder: Path, suffix: str, **tables: dict[str, list[Any]]) -> list[Path]:
    """Tables as files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write = csv.write_csv if suffix == "csv" else parquet.write_table
    paths = [folder / f"{name}.{suffix}" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        write(pa.table(table), path)
    return paths


def typed(folder: Path) -> Path:
    """A folder of several types of nodes."""
    written(folder / "nodes", "csv", person=PEOPLE, item=ITEMS)
    written(folder / "edges", "csv", **{"person.bought.item": BOUGHT, "person.knows.person": LINKS})
    return folder


def two_files(folder: Path, suffix: str) -> Graph:
    edges, nodes = written(folder, suffix, edges=LINKS, nodes=PEOPLE)
    return read_graph(edges, nodes, labels="section")


def prepared(folder: Path) -> Graph:
    edges, nodes = written(folder, "csv", edges=LINKS, nodes=PEOPLE)
    prepare(edges, nodes, out=folder / "g.graph", labels="section")
    return Graph.open(folder / "g.graph")


def type_columns(folder: Path) -> Graph:
    people = pd.DataFrame(PEOPLE).assign(type="person")
    items = pd.DataFrame(ITEMS).assign(type="item")
    nodes = pd.concat([people.astype({"id": str}), items]).astype({"split:train": "Int64"})
    edges = pd.DataFrame(BOUGHT).assign(how="bought").astype({"person": str})
    folder.mkdir(exist_ok=True)
    nodes.to_csv(folder / "n.csv", index=False)
    edges.to_csv(folder / "e.csv", index=False)
    columns = {"node_type": "type", "edge_type": "how", "source": "person", "target": "item"}
    return read_graph(folder / "e.csv", folder / "n.csv", labels="section", **columns)


def edges_as(folder: Path) -> Graph:
    (edges,) = written(folder, "csv", edges=BOUGHT)
    return read_graph(edges, types="person,item", edges_as="sale", time="sale.when")


def sakila(folder: Path) -> Path:
    """Sakila's tables as csv, from the dump for Postgres."""
    folder.mkdir()
    dump = (DATA / "sakila" / "data.sql").read_text(encoding="utf-8")
    for name, header, rows in re.findall(
        r"^COPY public\.(\w+) \((.*?)\) FROM stdin;\n(.*?)^\\\.$", dump, re.DOTALL | re.MULTILINE
    ):
        cells = [line.split("\t") for line in rows.splitlines()]
        frame = pd.DataFrame(cells, columns=header.split(", ")).replace({"\\N": None})
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def no_key(folder: Path) -> Graph:
    """A table without a primary key and a declared key that is text in one table and a number in the other."""
    with closing(sqlite3.connect(folder)) as connection:
        connection.execute("CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT, age INTEGER)")
        connection.execute("CREATE TABLE pet (owner_id TEXT REFERENCES owner (id), weight REAL)")
        for number in range(12):
            connection.execute("INSERT INTO owner VALUES (?, ?, ?)", (number, f"n{number}", number))
            connection.execute("INSERT INTO pet VALUES (?, ?)", (str(number % 5), number / 4))
        connection.commit()
    return read_database(folder)


DOORS: dict[str, Callable[[Path], Graph]] = {
    "two csv files": lambda path: two_files(path, "csv"),
    "two parquet files": lambda path: two_files(path, "parquet"),
    "a graph folder": prepared,
    "frames": lambda path: Graph.from_frames(
        pd.DataFrame(LINKS), pd.DataFrame(PEOPLE), labels="section"
    ),
    "frames by type": lambda path: Graph.from_frames(
        {("person", "bought", "item"): pd.DataFrame(BOUGHT)},
        {"person": pd.DataFrame(PEOPLE), "item": pd.DataFrame(ITEMS)},
    ),
    "a typed folder": lambda path: read_graph(typed(path), labels="section"),
    "type columns": type_columns,
    "edges as nodes": edges_as,
    "frames with keys": lambda path: Graph.from_frames(
        nodes={name: pd.DataFrame(table) for name, table in sample_shop.TABLES.items()}
    ),
    "a shop in SQLite": lambda path: read_database(sample_shop.sqlite_file(path)),
    "a shop in DuckDB": lambda path: read_database(sample_shop.duckdb_file(path)),
    "a shop in csv": lambda path: read_database(sample_shop.folder(path, "csv")),
    "no primary key": no_key,
    "Chinook": lambda path: read_database(DATA / "chinook.sqlite"),
    "Formula 1": lambda path: read_database(DATA / "f1"),
    "Sakila": lambda path: read_database(sakila(path)),
}
FROZEN: dict[str, dict[str, Any]] = {
    "two csv files": {
        "graph": "46a5f3cd3d611b3d",
        "names": "99e84251b0793a72",
        "features": 12.2056992,
    },
    "two parquet files": {
        "graph": "46a5f3cd3d611b3d",
        "names": "99e84251b0793a72",
        "features": 12.2056992,
    },
    "a graph folder": {
        "graph": "46a5f3cd3d611b3d",
        "names": "99e84251b0793a72",
        "features": 12.2056992,
    },
    "frames": {"graph": "46a5f3cd3d611b3d", "names": "99e84251b0793a72", "features": 12.2056992},
    "frames by type": {
        "graph": "7f4f20aa5ea78f46",
        "names": "81e76495c55a7c68",
        "features": 29.0703707,
    },
    "a typed folder": {
        "graph": "25325ff43aa2db5e",
        "names": "c2caed5e136b4ee3",
        "features": 28.2499548,
    },
    "type columns": {
        "graph": "7c08b3f3492f620c",
        "names": "c2caed5e136b4ee3",
        "features": 28.2499548,
    },
    "edges as nodes": {
        "graph": "d5b8e9b5f9eb0457",
        "names": "479fca1cc5c7ba87",
        "features": -10.3161816,
    },
    "frames with keys": {
        "graph": "cf22a7f2bb35e411",
        "names": "c4ffa7ab0dbaa3df",
        "features": -9.53273053,
    },
    "a shop in SQLite": {
        "graph": "445558efa5bcd908",
        "names": "c4ffa7ab0dbaa3df",
        "features": -8.80114323,
    },
    "a shop in DuckDB": {
        "graph": "445558efa5bcd908",
        "names": "c4ffa7ab0dbaa3df",
        "features": -8.80114323,
    },
    "a shop in csv": {
        "graph": "cf22a7f2bb35e411",
        "names": "c4ffa7ab0dbaa3df",
        "features": -9.53273053,
    },
    "no primary key": {
        "graph": "2b8d25eb823c91ad",
        "names": "dde84ac4e38a2ef5",
        "features": -11.7028631,
    },
    "Chinook": {"graph": "86e03f5ff068e761", "names": "09de99c197dc2b5c", "features": -24.5060975},
    "Formula 1": {"graph": "93cb57dbcf4ba8b5", "names": "67c683e9cc5403e0", "features": 106.517178},
    "Sakila": {"graph": "20ebcd275016ac90", "names": "0dd9bcff65a6b8a8", "features": -107.949593},
}


@pytest.mark.parametrize("door", DOORS)
def test_a_door_gives_the_same_graph_as_before(door: str, tmp_path: Path) -> None:
    if door in ("Chinook", "Formula 1", "Sakila") and not DATA.is_dir():
        pytest.skip("needs relational/: set INFOMAX_DATA")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        found = fingerprint(DOORS[door](tmp_path / "door"))
    assert found == {**FROZEN[door], "features": pytest.approx(FROZEN[door]["features"], rel=1e-5)}
