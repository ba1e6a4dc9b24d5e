"""What a cell becomes: a gap the mean, by every door; large numbers keep their digits; keys are no numbers."""

from __future__ import annotations

import datetime
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_encoding import fitted, kinds_of
from test_faults import put, told
from test_two_doors import put_table

from infomax import DGI, Graph, InputError, read_graph
from infomax.arrays.sparsity import dense
from infomax.errors import InputWarning
from infomax.io.prepare import prepare

pytest.importorskip("duckdb", reason="prepare sorts with it")

RING = {
    "source": [f"n{row}" for row in range(6)],
    "target": [f"n{(row + 1) % 6}" for row in range(6)],
}
YEARS = [1990, 1992, 1994, 1996, 1998, 2000]
MEAN = 1995


def nodes(years: list[Any], first: int = 0, word: str = "Node") -> dict[str, list[Any]]:
    names = [f"n{row}" for row in range(first, first + len(years))]
    return {"id": names, "year": years, "full_name": [f"{word} {name}" for name in names]}


def written(
    folder: Path, years: list[Any], first: int = 0, edges: dict[str, list[str]] = RING
) -> Path:
    folder.mkdir()
    put_table(folder / "edges.csv", edges)
    put_table(
        folder / "nodes.csv",
        nodes(["" if year is None else year for year in years], first, folder.name),
    )
    return folder


@pytest.mark.parametrize("alone", [True, False], ids=["numbers alone", "with names"])
def test_a_gap_in_a_later_table_is_the_mean_in_every_door(tmp_path: Path, alone: bool) -> None:
    known = read_graph(written(tmp_path / "known", YEARS), ignore="full_name" if alone else ())
    assert alone == (known.encoding is None)
    assert alone or known.encoding.raw
    later = written(tmp_path / "later", [None, *YEARS[1:]])
    expected = [[MEAN], *([year] for year in YEARS[1:])]
    assert dense(read_graph(later, like=known).features).tolist() == expected
    prepare(later / "edges.csv", later / "nodes.csv", out=tmp_path / "later.graph", like=known)
    assert dense(Graph.open(tmp_path / "later.graph").features).tolist() == expected
    edges = {"source": ["n6", "n7"], "target": ["n0", "n1"]}
    new = written(tmp_path / "new", [None, 1991], 6, edges)
    for grown in (
        read_graph(new, attach_to=known),
        Graph.from_frames(
            pd.DataFrame(edges), pd.DataFrame(nodes([None, 1991], 6)), attach_to=known
        ),
    ):
        assert dense(grown.table[[6, 7]]).tolist() == [[MEAN], [1991]]


def test_a_gap_is_the_mean_of_its_type(tmp_path: Path) -> None:
    def tables(name: str, years: list[Any]) -> Path:
        folder = tmp_path / name
        (folder / "nodes").mkdir(parents=True)
        (folder / "edges").mkdir()
        put_table(
            folder / "nodes" / "race.csv", nodes(["" if year is None else year for year in years])
        )
        put_table(
            folder / "edges" / "race.at.circuit.csv",
            {"race": RING["source"], "circuit": ["a", "b"] * 3},
        )
        return folder

    known = read_graph(tables("known", YEARS)).target("race")
    later = read_graph(tables("later", [*YEARS[:5], None]), like=known).target("race")
    assert dense(later.features).tolist() == [*([year] for year in YEARS[:5]), [MEAN]]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_times_and_large_numbers_are_centred_before_they_are_rounded(
    tmp_path: Path, suffix: str
) -> None:
    first = datetime.datetime(2024, 5, 1, 12, 0)
    seconds = list(range(0, 600, 10))
    columns: dict[str, list[Any]] = {
        "at": [(first + datetime.timedelta(seconds=second)).isoformat(" ") for second in seconds],
        "stamp": [1_700_000_000 + second for second in seconds],
    }
    ids = {"id": [f"n{row}" for row in range(len(seconds))]}
    edges = put_table(tmp_path / "edges.csv", RING)
    expected = (np.array(seconds) - np.mean(seconds)) / np.std(seconds)
    for name, cells in columns.items():
        table = put_table(tmp_path / f"{name}.{suffix}", ids | {name: cells})
        prepare(edges, table, out=tmp_path / f"{name}.graph")
        for graph in (read_graph(edges, table), Graph.open(tmp_path / f"{name}.graph")):
            scaled = graph.scaler().transform(dense(graph.features))
            own = scaled[:, graph.feature_names.index("at: time" if name == "at" else name)]
            np.testing.assert_allclose(own / np.std(own), expected, atol=1e-4)
    graph = networkx.path_graph(60)
    networkx.set_node_attributes(graph, dict(enumerate(columns["stamp"])), "stamp")
    assert len(np.unique(dense(Graph.from_networkx(graph).features))) == 60


def test_whole_numbers_beyond_float64_are_read(tmp_path: Path) -> None:
    edges = put_table(tmp_path / "edges.parquet", {"source": [0], "target": [1]})
    table = put_table(
        tmp_path / "n.parquet", {"id": [0, 1, 2], "x": [2**60, 2**61, 7], "c": ["a", "a", "b"]}
    )
    assert dense(read_graph(edges, table).features)[:, 0].argsort().tolist() == [2, 0, 1]


def test_a_key_never_becomes_a_number(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "edges").mkdir()
    for name in ("circuit_id", "circuitId", "circuitid", "circuit"):
        race = {"id": range(6), name: [3, 1, 2, 3, 1, 2], "laps": [50, 60, 70, 55, 66, 77]}
        put_table(tmp_path / "nodes" / "race.csv", race)
        put_table(
            tmp_path / "edges" / "race.at.circuit.csv",
            {"race": range(6), "circuit": [3, 1, 2, 3, 1, 2]},
        )
        assert read_graph(tmp_path).target("race").feature_names == ("laps",)
        prepare(tmp_path, out=tmp_path / f"{name}.graph")
        assert Graph.open(tmp_path / f"{name}.graph").target("race").feature_names == ("laps",)
    edges = put_table(tmp_path / "e.csv", {"source": range(6), "target": [1, 2, 3, 4, 5, 0]})
    alone = put_table(
        tmp_path / "n.csv", {"id": range(6), "team_id": [4, 4, 5, 5, 6, 6], "grid": range(6)}
    )
    assert read_graph(edges, alone).feature_names == ("grid",)
    assert read_graph(edges, alone, features=["team_id"]).feature_names == (
        "team_id",
    )  # as asked for
    said = read_graph(edges, alone, columns={"team_id": "category"})
    assert said.feature_names == ("team_id=4", "team_id=5", "team_id=6", "grid")


def test_addresses_and_codes_in_parts_are_ids() -> None:
    rows = range(60)
    found = kinds_of(
        url=[f"https://en.wikipedia.org/wiki/Page_{row}#a-b-c" for row in rows],
        mail=[f"person.{row}@mail.example.org" for row in rows],
        uuid=[f"9f3c1f0e-00{row}-4b52-8a57-0123456789ab" for row in rows],
        host=[f"https://example.org/{row % 7}" for row in rows],
        genres=[f"drama,of {row},comedy" for row in rows],
        notes=[f"see https://example.org/{row}" for row in rows],
    )
    assert found == {
        "url": "id", "mail": "id", "uuid": "id", "host": "category", "genres": "text", "notes": "text",
    }  # fmt: skip


def test_a_category_that_was_asked_for_keeps_values_that_differ() -> None:
    table = pa.table({"name": [f"genre {row}" for row in range(25)]})
    names = fitted(table, {"name": "category"}).feature_names
    assert names == [f"name={value}" for value in sorted(table["name"].to_pylist())]
    edges = pa.table({"source": [0], "target": [1]})
    many = pa.table({"id": range(2500), "name": [f"genre {row}" for row in range(2500)]})
    told(
        ['column "name"', "values that one row in 1,000 has", "found 2,500 different ones"],
        Graph.from_frames,
        edges,
        many,
        columns={"name": "category"},
    )


def test_a_label_is_no_feature_though_its_kind_is_said(tmp_path: Path) -> None:
    edges = put(tmp_path / "e.csv", "source,target\na,b\n")
    table = put(tmp_path / "n.csv", "id,city,x\na,Rome,1\nb,Oslo,2\nc,Rome,3\n")
    refusal = ['n.csv, column "city"', "found category, and a label"]
    told(refusal, read_graph, edges, table, labels="city", columns={"city": "category"})


def test_zeros_in_the_first_rows_and_a_gap_later_are_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infomax.io.sources.ROWS_PER_BLOCK", 3)
    edges = put_table(tmp_path / "edges.csv", RING)
    table = put_table(
        tmp_path / "nodes.csv",
        {"id": RING["source"], "x": [0, 0, 0, 0, "", 5], "y": [0, 0, 0, 1, 2, 3]},
    )
    prepare(edges, table, out=tmp_path / "g.graph")
    expected = dense(read_graph(edges, table).features)
    np.testing.assert_array_equal(dense(Graph.open(tmp_path / "g.graph").features), expected)


@pytest.mark.parametrize("lists", [[[], [], []], [[], None, []]])
def test_a_column_of_empty_lists_is_refused_or_nothing(tmp_path: Path, lists: list[Any]) -> None:
    edges = put_table(tmp_path / "edges.parquet", {"source": [0], "target": [1]})
    empty = pa.array(lists, pa.list_(pa.float64()))
    for number, others in enumerate(({"x": [1.0, 2.0, 3.0]}, {"x": ["a", "a", "b"]})):
        table = pa.table({"id": [0, 1, 2], **others, "v": empty})
        pa.parquet.write_table(table, tmp_path / "n.parquet")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = read_graph(edges, tmp_path / "n.parquet")
            prepare(edges, tmp_path / "n.parquet", out=tmp_path / f"{number}.graph")
        assert all(name.startswith("x") for name in graph.feature_names)
        assert Graph.open(tmp_path / f"{number}.graph").feature_names == graph.feature_names


def test_bad_columns_of_a_table_are_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "edges").mkdir()
    codes = ["1010", "4020", "EC1A 1BB"]
    for kind in ("customer", "supplier"):
        put_table(
            tmp_path / "nodes" / f"{kind}.csv", {"id": range(3), "postal": codes, "fax": codes}
        )
    put_table(tmp_path / "edges" / "customer.buys.supplier.csv", {"customer": [0], "supplier": [1]})
    said = {"postal": "number", "fax": "number"}
    for read in (
        lambda: read_graph(tmp_path, columns=said),
        lambda: prepare(tmp_path, out=tmp_path / "g.graph", columns=said),
    ):
        with pytest.raises(InputError) as error:
            read()
        for column in ("postal", "fax"):
            assert f'line 4, column "{column}": "EC1A 1BB", not a finite number' in str(error.value)
        assert "for codes, USE is category" in str(error.value)


def test_a_time_with_a_zone_is_that_of_utc() -> None:
    """Converted, not stripped: the hour and the day of 23:30 at -02:00 are those of 01:30 the next day."""
    for zoned, utc in (
        ("2024-05-01T23:30:00-02:00", "2024-05-02T01:30:00"),
        ("2024-05-01T01:15:00+05:45", "2024-04-30T19:30:00"),
        ("2024-05-01T12:00:00Z", "2024-05-01T12:00:00"),
    ):
        others = ["2020-01-01T00:00:00", "2021-03-04T05:06:07"]
        encoding = fitted(pa.table({"d": [utc, *others]}))
        assert (
            fitted(pa.table({"d": [zoned, *others]})).columns[0].learnt
            == encoding.columns[0].learnt
        )
        both = encoding.transform(pa.table({"d": [zoned, utc]})).toarray()
        np.testing.assert_array_equal(both[0], both[1])
    stamped = pa.array(
        [datetime.datetime(2024, 5, 1, 23, 30)], pa.timestamp("s", "America/New_York")
    )
    expected = encoding.transform(pa.table({"d": ["2024-05-01T23:30:00"]})).toarray()
    np.testing.assert_array_equal(encoding.transform(pa.table({"d": stamped})).toarray(), expected)


def test_a_word_weighs_by_its_inverse_document_frequency() -> None:
    """ln((1 + n) / (1 + n_w)) + 1, as docs/reference/formats.md gives it."""
    texts = ["alpha beta one", "alpha gamma two", "alpha beta three", "alpha delta four"]
    encoding = fitted(pa.table({"t": texts}), {"t": "text"})
    row = encoding.transform(pa.table({"t": ["alpha beta gamma"]})).toarray()[0]
    weights = np.log(5 / (1 + np.array([4, 2, 1]))) + 1  # of 4 texts, 4, 2 and 1 have these words
    found = np.sort(np.abs(row[row != 0]))
    np.testing.assert_allclose(found, np.sort(weights / np.linalg.norm(weights)), rtol=1e-6)


@pytest.mark.parametrize(("count", "is_told"), [(10, True), (9, False)])
def test_words_among_numbers_or_dates_make_a_category_and_are_told_where_these_are_half(
    count: int, is_told: bool
) -> None:
    words = [f"word {row % 3}" for row in range(20 - count)]
    for cells, plural in (("{}.5", "numbers"), ("2024-05-{:02}", "dates")):
        column = [cells.format(row % 2 + 1) for row in range(count)] + words
        encoding = fitted(pa.table({"x": column}))
        assert encoding.columns[0].column_type == "category"
        expected = f'x: found "word 0" among {plural} (10 cells of 20), so the column is of the type category'
        assert (expected in encoding.columns[0].note) == is_told


DOORS = ("csv", "parquet", "frame", "folder of types", "sqlite", "folder of a database")


def graph_of_codes(door: str, folder: Path, codes: list[str]) -> Graph:
    """Users with postal codes, and who follows whom, read by one of the doors."""
    ages = [20 + row % 9 for row in range(len(codes))]
    users = {"id": [f"u{row}" for row in range(len(codes))], "zip": codes, "age": ages}
    follows = {"source": users["id"], "target": [*users["id"][1:], "u0"]}
    if door == "frame":
        return Graph.from_frames(pa.table(follows), pa.table(users))
    if door in ("csv", "parquet"):
        put_table(folder / "edges.csv", follows)
        return read_graph(folder / "edges.csv", put_table(folder / f"nodes.{door}", users))
    if door == "folder of types":
        (folder / "nodes").mkdir()
        (folder / "edges").mkdir()
        put_table(folder / "nodes" / "user.csv", users)
        put_table(folder / "edges" / "user.follows.user.csv", follows)
        return read_graph(folder)
    orders = {"id": list(range(len(codes))), "user_id": users["id"], "size": [1.5] * len(codes)}
    if door == "folder of a database":
        put_table(folder / "user.csv", users)
        put_table(folder / "order.csv", orders)
        return read_graph(folder, key="order.user_id=user").target("user")
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.execute("CREATE TABLE user (id TEXT PRIMARY KEY, zip, age INTEGER)")
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id REFERENCES user)")
        database.executemany("INSERT INTO user VALUES (?, ?, ?)", zip(*users.values(), strict=True))
        database.executemany(
            "INSERT INTO orders VALUES (?, ?)", zip(orders["id"], orders["user_id"], strict=True)
        )
        database.commit()
    return read_graph(folder / "shop.db").target("user")


@pytest.mark.parametrize("door", DOORS)
def test_a_code_among_numbers_makes_a_category_in_every_door(door: str, tmp_path: Path) -> None:
    codes = ["85711", "94043", "32067", "43537"] * 5 + ["T8H1N"] * 2
    with pytest.warns(InputWarning, match='found "T8H1N" among numbers .2 cells of 22.'):
        graph = graph_of_codes(door, tmp_path, codes)
    assert set(graph.feature_names) == {"age", *(f"zip={code}" for code in codes)}
    assert graph.encoding is not None
    owner = "user." if door in DOORS[4:] else ""
    (zip_column,) = (column for column in graph.encoding.columns if column.name == "zip")
    assert f"--column {owner}zip=number" in zip_column.note


@pytest.mark.parametrize(("differ", "kind"), [(96, "id"), (95, "category")])
def test_a_column_is_of_ids_if_more_than_nineteen_of_twenty_differ(differ: int, kind: str) -> None:
    assert kinds_of(x=[f"c{min(row, differ - 1)}" for row in range(100)])["x"] == kind


@pytest.mark.parametrize(("first", "cell"), [(1_700_000_000, 1_700_000_010), (1950, None)])
def test_a_new_node_at_once_is_encoded_though_features_are_called_as_columns_are(
    first: int, cell: int | None
) -> None:
    nodes = {
        "id": list(range(40)),
        "name": [f"Person {at}" for at in range(40)],
        "year": [*range(first, first + 40)],
    }
    known = Graph.from_frames(
        pd.DataFrame({"source": range(40), "target": [*range(1, 40), 0]}),
        pd.DataFrame(nodes),
        columns={"year": "number"},
    )
    assert known.feature_names == ("year",)
    model = DGI(4, epochs=1).fit(known)
    row = {"id": [90], "name": ["New"], "year": [cell]}
    grown = Graph.from_frames(
        pd.DataFrame({"source": [90], "target": [3]}), pd.DataFrame(row), attach_to=known
    )
    np.testing.assert_allclose(
        model.vector({"year": cell}, [3]), model.transform(grown).vectors[-1], atol=1e-6
    )
