"""Tables, times and questions, drawn anew in each run: one graph by every door, and no later row changes a byte.

The seed is printed; ``INFOMAX_TEST_SEED`` repeats it, and ``INFOMAX_TEST_SECONDS`` allows more processor time.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sample_shop

from infomax import DGI, Graph, read_database
from infomax.arrays.sparsity import dense
from infomax.arrays.times import DAY_IN_MICROSECONDS, parse_time
from infomax.errors import InputError, InputWarning

TABLE_NAMES = ("artist", "album", "track", "genre", "client", "invoice")
WORDS = ("oak", "elm", "sun", "owl", "tea", "cup", "pot", "red")
FIRST_DAY = date(2020, 1, 1)

Columns = dict[str, list[Any]]
Tables = dict[str, Columns]
Keys = dict[str, dict[str, str]]
"""For each table the columns that refer to another, and which."""


def rounds(seed: int, seconds: float) -> Iterator[random.Random]:
    """Generators for rounds, until the processor time is used up; one round at least."""
    started = time.process_time()
    number = 0
    while number == 0 or time.process_time() - started < seconds:
        yield random.Random(f"{seed}/{number}")
        number += 1


def with_gaps(draw: random.Random, cells: list[Any], share: float) -> list[Any]:
    """The cells, of which some are missing, but not the first."""
    return cells[:1] + [None if draw.random() < share else cell for cell in cells[1:]]


def random_feature(draw: random.Random, count: int) -> tuple[str, list[Any]]:
    """The name and the cells of a column."""
    name = draw.choice(["size", "price", "colour", "rank", "born", "words", "flag"])
    cells: list[Any]
    if name == "size":
        cells = [draw.randint(0, 9) for _ in range(count)]
    elif name == "price":
        cells = [round(draw.uniform(-5, 5), 3) for _ in range(count)]
    elif name == "colour":
        cells = [draw.choice(WORDS[: draw.randint(2, 8)]) for _ in range(count)]
    elif name == "rank":
        cells = [10 ** draw.randint(0, 12) for _ in range(count)]
    elif name == "born":
        cells = [str(FIRST_DAY - timedelta(days=draw.randint(0, 20_000))) for _ in range(count)]
    elif name == "words":
        cells = [" ".join(draw.choices(WORDS, k=7)) for _ in range(count)]
    else:
        cells = [draw.randint(0, 1) for _ in range(count)]
    return name, with_gaps(draw, cells, draw.choice([0, 0, 0.2]))


def random_tables(draw: random.Random) -> tuple[Tables, Keys]:
    """Two to six tables with keys to the tables before them."""
    tables: Tables = {}
    keys: Keys = {}
    for name in TABLE_NAMES[: draw.randint(2, 6)]:
        count = draw.randint(20, 60)
        ids: list[Any] = draw.sample(range(1, 1000), count)
        if draw.random() < 0.3:
            ids = [f"{name[:2].upper()}-{number}" for number in ids]
        columns: Columns = {"id": ids}
        # The second table refers to the first: tables without any key are no graph.
        fewest = 1 if len(tables) == 1 else 0
        owners = draw.sample([*tables], min(len(tables), draw.randint(fewest, 2)))
        for owner in owners:
            cells = draw.choices(tables[owner]["id"], k=count)
            columns[f"{owner}_id"] = with_gaps(draw, cells, draw.choice([0, 0.1]))
        for _ in range(draw.randint(0, 3)):
            column, cells = random_feature(draw, count)
            columns.setdefault(column, cells)
        tables[name] = columns
        keys[name] = {f"{owner}_id": owner for owner in owners}
    return tables, keys


def sql_type(cells: list[Any]) -> str:
    filled = next(cell for cell in cells if cell is not None)
    return {str: "TEXT", int: "BIGINT", float: "DOUBLE PRECISION"}[type(filled)]


def fill(connection: Any, tables: Tables, keys: Keys) -> None:
    """Make the tables of a database, with their keys declared."""
    for name, columns in tables.items():
        parts = [f'"{column}" {sql_type(cells)}' for column, cells in columns.items()]
        parts.append("PRIMARY KEY (id)")
        for column, owner in keys[name].items():
            parts.append(f'FOREIGN KEY ("{column}") REFERENCES "{owner}" (id)')
        connection.execute(f'CREATE TABLE "{name}" ({", ".join(parts)})')
        marks = ", ".join("?" * len(columns))
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)


def through_doors(folder: Path, tables: Tables, keys: Keys) -> dict[str, Graph]:
    """The graph of the tables by each of five doors."""
    with closing(sqlite3.connect(folder / "db.sqlite")) as connection:
        fill(connection, tables, keys)
        connection.commit()
    with duckdb.connect(folder / "db.duckdb") as connection:
        fill(connection, tables, keys)
    sample_shop.folder(folder / "csv", "csv", tables)
    sample_shop.folder(folder / "parquet", "parquet", tables)
    frames = {name: pa.table(columns) for name, columns in tables.items()}
    return {
        "sqlite": read_database(folder / "db.sqlite"),
        "duckdb": read_database(folder / "db.duckdb"),
        "csv": read_database(folder / "csv"),
        "parquet": read_database(folder / "parquet"),
        "frames": Graph.from_frames(nodes=frames),
    }


def contents(graph: Graph) -> dict[str, Any]:
    """All that a graph holds, by ids."""
    found: dict[str, Any] = {}
    for node_type, nodes in graph.nodes.items():
        found[node_type] = {
            "ids": [str(node_id) for node_id in nodes.ids[:].tolist()],
            "feature names": list(nodes.feature_names),
            "features": np.round(dense(nodes.table[:]).astype(np.float64), 4).tolist(),
            "names": None if nodes.node_names is None else nodes.node_names[:].tolist(),
            "times": None if nodes.times is None else nodes.times[:].tolist(),
        }
    for relation in graph.relations:
        matrix = relation.edges.matrix().tocoo()
        entries = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
        found[".".join(relation.ends)] = [relation.directed, sorted(entries)]
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_random_tables_are_one_graph_by_every_door(
    campaign_seed: int, campaign_seconds: float
) -> None:
    for draw in rounds(campaign_seed, campaign_seconds):
        tables, keys = random_tables(draw)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            graphs = through_doors(Path(folder), tables, keys)
        first = contents(graphs["sqlite"])
        for door, graph in graphs.items():
            found = contents(graph)
            assert found.keys() == first.keys(), door
            for part, values in found.items():
                if isinstance(values, dict):
                    for name in values:
                        assert values[name] == first[part][name], (door, part, name)
                assert values == first[part], (door, part)


def with_times(draw: random.Random, tables: Tables, keys: Keys) -> list[str]:
    """Give some tables that refer to others days at which their rows came; returns these columns."""
    said = []
    for name in tables:
        if keys[name] and draw.random() < 0.7:
            count = len(tables[name]["id"])
            days = [str(FIRST_DAY + timedelta(days=draw.randint(0, 50))) for _ in range(count)]
            tables[name]["day"] = days
            said.append(f"{name}.day")
    return said


def later_rows(draw: random.Random, tables: Tables, keys: Keys, said: list[str]) -> Tables:
    """The tables with rows of later days at any place, whose cells are like no others."""
    grown = {name: {key: [*cells] for key, cells in one.items()} for name, one in tables.items()}
    for column in said:
        name = column.removesuffix(".day")
        for number in range(draw.randint(1, 4)):
            row = draw.randint(1, len(grown[name]["id"]))
            for key, cells in grown[name].items():
                cell: Any = cells[0]
                if key == "id":
                    cell = 5000 + number if isinstance(cell, int) else f"new {number}"
                elif key == "day":
                    cell = str(FIRST_DAY + timedelta(days=draw.randint(101, 200)))
                elif key not in keys[name]:
                    cell = f"odd {number}" if isinstance(cell, str) else 10**6 + number
                cells.insert(row, cell)
    return grown


def graph_of(tables: Tables, said: list[str], **options: Any) -> Graph:
    frames = {name: pa.table(columns) for name, columns in tables.items()}
    return Graph.from_frames(nodes=frames, time=said, **options)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_later_row_changes_a_byte_and_a_vector_is_that_of_the_graph_cut_at_its_day(
    campaign_seed: int, campaign_seconds: float
) -> None:
    for draw in rounds(campaign_seed, campaign_seconds):
        tables, keys = random_tables(draw)
        said = with_times(draw, tables, keys)
        if not said:
            continue
        last_day = FIRST_DAY + timedelta(days=100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            early = graph_of(tables, said, as_of=str(last_day))
            late = graph_of(later_rows(draw, tables, keys, said), said, as_of=str(last_day))
            assert contents(late) == contents(early)

            node_type = draw.choice([*early.types])
            seen = early.target(node_type)
            first, second = (DGI(4, epochs=1).fit(one.target(node_type)) for one in (early, late))
            assert np.array_equal(
                first.transform(seen).vectors, second.transform(late.target(node_type)).vectors
            )
            compare_questions(draw, first, seen)


def compare_questions(draw: random.Random, model: DGI, graph: Graph) -> None:
    """Ask about some rows as of some days, of the graph and of the graph cut at each of these days."""
    since = graph.nodes[graph.node_type].times
    count = graph.num_nodes
    for offset in (0, draw.randint(1, 40), 100):
        moment = parse_time(FIRST_DAY) + offset * DAY_IN_MICROSECONDS + draw.choice([0, 0, 1, -1])
        there = np.arange(count) if since is None else np.flatnonzero(since[:] <= moment)
        try:
            cut = graph.as_of(moment)
        except InputError:  # no row of some type is there
            continue
        if not len(there):
            continue
        rows = draw.choices(there.tolist(), k=5)
        times = np.full(5, moment).astype("datetime64[us]")
        questions = pa.table({"id": graph.ids[:][rows], "time": times})
        try:
            expected = model.at(questions, cut).vectors
        except InputError:  # there is nothing that a vector could be made of
            with pytest.raises(InputError, match="a type with features, or with neighbours"):
                model.at(questions, graph)
            return
        assert np.array_equal(model.at(questions, graph).vectors, expected)
