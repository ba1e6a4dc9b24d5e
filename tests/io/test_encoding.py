"""Columns of any kind become features: alike by every door, in any order of the rows, and the same for new nodes."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import tempfile
import unicodedata
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from test_faults import put, told
from test_two_doors import put_table

from infomax import DGI, Graph, read_graph
from infomax.arrays.sparsity import dense
from infomax.errors import InputWarning
from infomax.io import sources
from infomax.io.encoding import cells
from infomax.io.encoding.encoding import Encoding, read_column
from infomax.io.encoding.moments import Moments
from infomax.io.encoding.numbers import read_number_matrix
from infomax.io.encoding.survey import Survey
from infomax.io.encoding.text import WIDTH, Words
from infomax.io.encoding.times import read_times
from infomax.io.prepare import prepare

polars = pytest.importorskip("polars", reason="frames of polars")

pytest.importorskip("duckdb", reason="prepare sorts with it")

DAYS = [datetime.date(2013, 5, 27), datetime.date(1999, 12, 31), datetime.date(2024, 2, 29)]
HOURS = [
    datetime.datetime(2013, 5, 27, 8, 30),
    datetime.datetime(2013, 5, 28),
    datetime.datetime(1969, 7, 20, 20, 17, 40),
]
VALUES: dict[str, list[Any]] = {
    "number": [0.0, 1.5, -3e38, 1e-45, 16777217.0, 0.1],
    "whole": [0, 1, -7, 2**40],
    "truth": [True, False],
    "word": ["yes", "No", "YES"],
    "city": ["Rome", "rome", "é", "New York", "x=y", "=", "a|b", "c007"],
    "day": DAYS,
    "hour": HOURS,
    "text": [
        "The quick brown fox jumps over it",
        "a b c d e f g",
        "one two three four five six",
        "!!! ??? ... -- ++ ~~",
    ],
    "tags": ["a|b", "b;c|d", "e"],
}
MISSING = {"number": None, "city": "NA", "text": "", "word": "null"}


@st.composite
def odd_tables(draw: Any) -> dict[str, list[Any]]:
    """The columns of a node table, some of their cells missing."""
    n = draw(st.integers(2, 9))
    names = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4, unique=True))
    columns = {}
    for name in names:
        cells = st.sampled_from(VALUES[name])
        if draw(st.booleans()):
            cells = st.one_of(cells, st.just(MISSING.get(name)))
        columns[name] = draw(st.lists(cells, min_size=n, max_size=n))
    return {"id": [f"n{row}" for row in range(n)]} | columns


def arrow(columns: dict[str, list[Any]]) -> Any:
    kinds = {
        "number": pa.float64(),
        "whole": pa.int64(),
        "truth": pa.bool_(),
        "day": pa.date32(),
        "hour": pa.timestamp("us"),
    }
    return pa.table(
        {name: pa.array(cells, kinds.get(name, pa.string())) for name, cells in columns.items()}
    )


def as_text(columns: dict[str, list[Any]]) -> dict[str, list[str]]:
    return {
        name: ["" if cell is None else str(cell) for cell in cells]
        for name, cells in columns.items()
    }


def fitted(
    table: Any, column_types: dict[str, str] | None = None, step: int = 10**9, **limits: int
) -> Encoding:
    names = [name for name in table.column_names if name != "id"]
    survey = Survey(names, column_types or {}, **limits)
    for first in range(0, len(table), step):
        survey.add(table.slice(first, step), lambda row, name: name)
    encoding, faults = survey.finish()
    assert not faults
    return encoding


def alike(one: Graph, other: Graph) -> None:
    assert one.feature_names == other.feature_names
    np.testing.assert_array_equal(dense(one.features), dense(other.features))
    # Where all columns are numbers, that is all there is to know; text is asked how it writes true and false.
    first, second = (
        None if graph.encoding is None or graph.encoding.raw else graph.encoding
        for graph in (one, other)
    )
    assert first == second
    assert one.scaler().scale == other.scaler().scale


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(odd_tables(), st.integers(1, 4), st.sampled_from(["csv", "parquet"]))
def test_every_door_makes_the_same_features(
    columns: dict[str, list[Any]], rows: int, stored: str
) -> None:
    edges = {"source": ["n0"], "target": ["n1"]}
    with (
        tempfile.TemporaryDirectory() as name,
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        folder = Path(name)
        put_table(folder / "edges.csv", edges)
        put_table(folder / "nodes.csv", as_text(columns))
        pa.parquet.write_table(arrow(columns), folder / "nodes.parquet")
        graph = Graph.from_frames(pa.table(edges), arrow(columns))
        alike(graph, Graph.from_frames(pd.DataFrame(edges), arrow(columns).to_pandas()))
        alike(graph, Graph.from_frames(polars.DataFrame(edges), polars.from_arrow(arrow(columns))))
        patch.setattr(sources, "ROWS_PER_BLOCK", rows)
        for suffix in ("csv", "parquet"):
            alike(graph, read_graph(folder / "edges.csv", folder / f"nodes.{suffix}"))
        prepare(folder / "edges.csv", folder / f"nodes.{stored}", out=folder / "g.graph")
        alike(graph, Graph.open(folder / "g.graph"))


@settings(max_examples=40, deadline=None)
@given(odd_tables(), st.randoms(use_true_random=False), st.integers(1, 3))
def test_an_encoding_knows_no_order_and_no_other_row(
    columns: dict[str, list[Any]], draws: Any, step: int
) -> None:
    table = arrow(columns)
    rows = list(range(len(table)))
    draws.shuffle(rows)
    encoding = fitted(table)
    assert fitted(table.take(rows), step=step) == encoding
    assert Encoding.from_json(encoding.to_json()) == encoding
    if not encoding.feature_columns:
        return
    whole, some = encoding.transform(table).toarray(), rows[: len(rows) // 2 + 1]
    np.testing.assert_array_equal(encoding.transform(table.take(some)).toarray(), whole[some])
    if not encoding.raw:  # what one column becomes has length 1 in the mean
        start = 0
        for column in encoding.feature_columns:
            block = whole[:, start : start + len(column.feature_names)]
            start += len(column.feature_names)
            varies = block[
                :, : -1 if column.missing else None
            ].any()  # "yes" and "YES" are one value
            if varies and column.column_type not in ("text", "tokens"):  # what has no words is zero
                assert (block.astype(np.float64) ** 2).sum() / len(table) == pytest.approx(
                    1, abs=1e-5
                )


def kinds_of(**columns: Any) -> dict[str, str]:
    return {column.name: column.column_type for column in fitted(pa.table(columns)).columns}


def test_kinds_are_found_from_values() -> None:
    many = range(40)
    found = kinds_of(
        age=[f"{row}.5" for row in many], year=[1990 + row % 7 for row in many], flag=["t", "F"] * 20, bit=[0, 1] * 20,
        city=["Rome", "Paris", "NA", "Oslo"] * 10, born=[f"19{row + 10}-03-01" for row in many],
        at=["08:30", "23:59"] * 20,
        stamp=[f"2020-01-01T{row % 24:02d}:00:00Z" for row in many],
        about=[f"this is the long description of number {row}" for row in many],
        tags=[f"t{row % 3}|u{row}" for row in many], list=[["a", f"{row}"] for row in many],
        v=[[1.0, row] for row in many],
        title=[f"Name {row}" for row in many], code=[f"c{row}" for row in many], nothing=[None] * 40, m=["m", "f"] * 20,
    )  # fmt: skip
    assert found == {
        "age": "number", "year": "number", "flag": "boolean", "bit": "boolean", "city": "category", "born": "date",
        "at": "date", "stamp": "date", "about": "text", "tags": "tokens", "list": "tokens", "v": "numbers",
        "title": "name", "code": "id", "nothing": "ignore", "m": "category",
    }  # fmt: skip


def test_numbers_and_booleans() -> None:
    table = pa.table({"x": [1.0, 3.0, None, 5.0], "b": ["yes", "no", "no", "no"]})
    encoding = fitted(table)
    assert encoding.feature_names == ["x", "x: missing", "b"]
    deviation, p = np.sqrt(8 / 3), 0.25
    expected = [[-2 / deviation, 0, 0.75], [0, 0, -p], [0, 1, -p], [2 / deviation, 0, -p]]
    found = encoding.transform(table).toarray()
    np.testing.assert_allclose(found, np.array(expected) / [1, 1, np.sqrt(p * (1 - p))], rtol=1e-6)


def test_categories_the_rest_and_the_unseen() -> None:
    table = pa.table({"c": ["a"] * 3 + ["b"] * 2 + ["z", None]})
    encoding = fitted(table)
    assert encoding.feature_names == ["c=a", "c=b", "c: rest", "c: missing"]
    found = encoding.transform(pa.table({"c": ["b", "never seen", "z", "NA"]})).toarray()
    assert found.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    many = pa.table({"c": [f"v{row % 1500}" for row in range(6000)] + ["often"] * 6000})
    assert fitted(many).feature_names == ["c=often", "c: rest"]  # 4 of 12,000 are too few


def test_dates_have_the_parts_that_they_resolve() -> None:
    def parts(*cells: str) -> list[str]:
        return [
            name.split(": ")[1].split(",")[0]
            for name in fitted(pa.table({"d": [*cells, *cells]})).feature_names
        ]

    assert parts("2013-01-01", "2014-01-01", "2016-01-01") == ["time"]
    assert parts("2013-01-01", "2013-06-01") == ["time", "season", "season"]
    assert parts("2013-01", "2013-06") == ["time", "season", "season"]
    assert parts("2013-01-01", "2013-06-02") == ["time", *["season"] * 2, *["weekday"] * 2]
    assert parts("2013-01-01 10:00", "2013-06-02 11:00") == [
        "time",
        *["season"] * 2,
        *["weekday"] * 2,
        *["hour"] * 2,
    ]
    found = dense(
        fitted(pa.table({"d": ["2013-01-01 00:00", "2013-01-01 06:00"]})).transform(
            {"d": pa.array(["12:00"])}
        )
    )
    np.testing.assert_allclose(
        found[0, 1:] * np.sqrt(2), [-1, 0], atol=1e-6
    )  # noon is opposite of midnight


def test_words_are_hashed_and_rare_ones_count_more() -> None:
    texts = [f"the airport of the town number{row % 25} has a field" for row in range(50)]
    encoding = fitted(pa.table({"t": texts}))
    rows = encoding.transform(
        pa.table({"t": ["the", "number7 THE!", "number7", "number7 number7", "", None, "?"]})
    )
    assert sparse.issparse(rows)
    assert rows.shape == (7, WIDTH)
    the, both, rare, twice, *none = rows.toarray()
    np.testing.assert_allclose([np.linalg.norm(row) for row in (the, both, rare)], 1, rtol=1e-6)
    assert both @ rare > 3 * both @ the > 0
    np.testing.assert_array_equal(rare, twice)
    assert not np.any(none)


@given(st.lists(st.one_of(st.none(), st.text("ab1 B-|_éÉß日½", max_size=90))), st.integers(0, 3))
def test_the_words_of_texts_are_those_that_a_plain_loop_finds(
    texts: list[str | None], first: int
) -> None:
    texts = [
        *texts,
        "abcdefgh abcdefg abcdefghi ABCDEFGH",
        "x" * 64 + " " + "x" * 65 + " " + "x" * 65,
        "é",
    ]
    expected = [
        "".join(
            char if unicodedata.category(char)[0] in "LN" else " " for char in (text or "").lower()
        ).split()
        for text in texts[first:]
    ]
    words = Words(pa.array(texts, pa.large_string())[first:])
    codes, vocabulary = words.codes, words.vocabulary
    found = [vocabulary[code].decode() for code in codes]
    assert [found[start:stop] for start, stop in itertools.pairwise(words.starts)] == expected
    assert {hash.tobytes() for hash in words.hashes[codes]} == {
        hashlib.blake2b(word.encode(), digest_size=4).digest() for row in expected for word in row
    }


def test_moments_are_exact_in_any_order() -> None:
    values = np.array([3e38, 1e-45, -3e38, 1.0, 1.0, np.nan, -2.5], np.float32)
    counts = np.array([1, 2, 1, 3, 1, 9, 2])
    once, twice = Moments(), Moments()
    once.add(values, counts)
    for at in np.random.default_rng(0).permutation(len(values)):
        twice.add(values[[at]], counts[[at]])
    assert once.scale() == twice.scale()
    plain = Moments()
    plain.add(np.arange(5, dtype=np.float32), np.ones(5, np.int64))
    assert plain.scale() == {"centre": [2.0], "deviation": [np.sqrt(2)]}


def test_columns_that_are_read_at_once_are_those_that_are_read_one_by_one() -> None:
    """Whatever is missing in some of them, and whatever others hold that are no numbers."""
    draws = np.random.default_rng(0)
    columns = {}
    for number in range(60):
        column = [f"{value:.3f}" for value in draws.normal(size=40)]
        if number % 3 == 0:
            column[number % 40] = "" if number % 2 else "NA"
        columns[f"x{number}"] = column
    columns["x10"][3] = "nan"
    columns["x25"] = [""] * 40
    columns["x33"][5] = "abc"
    columns["x41"][2] = " 1"
    columns["x50"][2] = "1e60"
    names = list(columns)
    together = read_number_matrix(pa.table(columns), names, columns_at_once=8)
    alone = read_number_matrix(pa.table(columns), names, columns_at_once=1)
    np.testing.assert_array_equal(together.values, alone.values)
    np.testing.assert_array_equal(together.is_number, alone.is_number)
    np.testing.assert_array_equal(
        together.missing[together.is_number], alone.missing[alone.is_number]
    )
    others = [
        name for name, is_number in zip(names, together.is_number, strict=True) if not is_number
    ]
    assert others == ["x10", "x25", "x33", "x41", "x50"]
    assert (together.missing[3:7] == [1, 0, 0, 1]).all()


def test_a_table_of_numbers_is_taken_as_it_is(tmp_path: Path) -> None:
    edges = put(tmp_path / "edges.csv", "source,target\na,b\n")
    plain = read_graph(edges, put(tmp_path / "n.csv", "id,x,y\na,1,0\nb,2.5,1\nc,-3,0\n"))
    assert plain.encoding is None
    assert plain.features.tolist() == [[1, 0], [2.5, 1], [-3, 0]]
    named = read_graph(
        edges, put(tmp_path / "m.csv", "id,x,code,y\na,1,q,0\nb,2.5,r,1\nc,-3,s,0\n")
    )
    words = read_graph(
        edges, put(tmp_path / "w.csv", "id,x,y\na,1,False\nb,2.5,TRUE\nc,-3,False\n")
    )
    for graph in (named, words):
        np.testing.assert_array_equal(graph.features, plain.features)
        assert graph.feature_names == plain.feature_names
        np.testing.assert_array_equal(
            graph.scaler().transform(graph.features), plain.scaler().transform(plain.features)
        )


def test_a_short_text_is_a_feature_and_only_what_is_called_a_name_is_not(tmp_path: Path) -> None:
    edges = put(
        tmp_path / "e.csv", "source,target\n" + "".join(f"{k},{(k + 1) % 6}\n" for k in range(6))
    )
    rows = "".join(f"{k},red {k},Al {k},{k}\n" for k in range(6))
    both = read_graph(edges, put(tmp_path / "n.csv", "id,notes,page_name,x\n" + rows))
    assert both.node_names is not None
    assert both.node_names.tolist() == [f"Al {k}" for k in range(6)]
    assert {name.split("[")[0] for name in both.feature_names} == {"notes", "x"}
    title = put(
        tmp_path / "t.csv", "id,title,x\n" + "".join(f"{k},red {k},{k}\n" for k in range(6))
    )
    for one in (
        read_graph(edges, title),
        read_graph(edges, title, name="title", columns={"title": "text"}),
    ):
        assert one.node_names is not None
        assert one.node_names.tolist() == [f"red {k}" for k in range(6)]
        assert {name.split("[")[0] for name in one.feature_names} == {"title", "x"}
    assert {
        name.split("[")[0] for name in read_graph(edges, title, name="title").feature_names
    } == {"x"}


def test_what_a_person_says_goes_first(tmp_path: Path) -> None:
    edges = put(tmp_path / "edges.csv", "source,target\na,b\n")
    nodes = put(
        tmp_path / "n.csv",
        "key,x,zip,who,kind,when\n"
        + "".join(f"{k},{k % 3},0{k % 2},Al {k},p,b\n" for k in range(6)),
    )
    said = {
        "zip": "category",
        "x": "category",
        "who": "name",
        "kind": "label",
        "when": "ignore",
        "key": "id",
    }
    edges.write_text("source,target\n1,2\n")
    graph = read_graph(edges, nodes, columns=said)
    assert graph.feature_names == ("x=0", "x=1", "x=2", "zip=00", "zip=01")
    assert list(graph.labels) == ["kind"]
    assert graph.node_names.tolist() == [f"Al {k}" for k in range(6)]
    alike(
        graph, read_graph(edges, nodes, columns=[f"{name}={kind}" for name, kind in said.items()])
    )
    told(
        ["columns: ", "NAME=USE", '"x=numeric", "y=what"'],
        read_graph,
        edges,
        nodes,
        columns={"x": "numeric", "y": "what"},
    )
    told(["n.csv: ", '"p", "q"'], read_graph, edges, nodes, columns={"p": "text", "q": "date"})
    told(
        ['column "who"', "a date or a time", 'found "Al 0"'],
        read_graph,
        edges,
        nodes,
        columns={"who": "date"},
    )
    told(["columns: ", "a node table"], read_graph, edges, columns={"x": "text"})


def test_attributes_of_networkx_and_graphml_are_encoded_as_columns_are(tmp_path: Path) -> None:
    origin = networkx.path_graph(8)
    for k in origin:
        origin.nodes[k].update(
            city=["Rome", "Oslo"][k % 2], ok=bool(k % 3), born=f"20{k + 10}-03-01", kind="ab"[k % 2]
        )
        origin.nodes[k].update(
            about=f"this is a long text about node {k}", title=f"Node {k}", age=k / 2
        )
    del origin.nodes[2]["city"], origin.nodes[0]["age"]
    networkx.write_graphml(origin, tmp_path / "g.graphml")
    edges = pd.DataFrame(list(origin.edges), columns=["source", "target"])
    nodes = pd.DataFrame([{"id": k, **values} for k, values in origin.nodes(data=True)])
    expected = Graph.from_frames(edges, nodes, labels="kind")
    assert {column.column_type for column in expected.encoding.columns} == {
        "category",
        "boolean",
        "date",
        "text",
        "number",
    }
    for graph in (
        Graph.from_networkx(origin, labels="kind"),
        read_graph(tmp_path / "g.graphml", labels="kind"),
        Graph.from_networkx(origin, columns={"kind": "label"}),
    ):
        features = [
            dense(one.features)[:, np.argsort(one.feature_names)] for one in (expected, graph)
        ]
        np.testing.assert_array_equal(*features)
        assert sorted(graph.feature_names) == sorted(expected.feature_names)
        assert graph.node_names.tolist() == expected.node_names.tolist()
    said = Graph.from_networkx(
        origin, labels="kind", ignore=["city", "born", "about", "title"], columns={"ok": "category"}
    )
    assert set(said.feature_names) == {"ok=true", "ok=false", "age", "age: missing"}
    message = ['g.graphml, row 1, column "city"', "a date or a time", 'found "Rome"']
    told(message, read_graph, tmp_path / "g.graphml", columns={"city": "date"})


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_new_nodes_are_encoded_as_the_known_ones(tmp_path: Path, suffix: str) -> None:
    draws = np.random.default_rng(0)
    n = 60
    columns = {
        "id": [f"n{row}" for row in range(n)],
        "x": [
            None if row % 9 == 0 else float(value) for row, value in enumerate(draws.normal(size=n))
        ],
        "city": [str(value) for value in draws.choice(["Rome", "Paris", "Oslo"], n)],
        "since": [datetime.date(2010 + row % 9, 1 + row % 12, 1 + row % 28) for row in range(n)],
        "about": [
            " ".join(draws.choice(["red", "green", "blue", "dog", "cat"], 7)) for _ in range(n)
        ],
    }
    nodes = pa.table(columns)
    edges = put_table(
        tmp_path / "edges.csv", {"source": columns["id"], "target": [*columns["id"][1:], "n0"]}
    )
    where = put_table(tmp_path / f"nodes.{suffix}", as_text(columns) if suffix == "csv" else nodes)
    model = DGI(dim=8, epochs=3, seed=0, vectors="paper").fit(read_graph(edges, where))
    model.save(tmp_path / "run")
    loaded = DGI.load(tmp_path / "run")
    assert loaded.graph_.encoding == model.graph_.encoding
    assert loaded.scaler_.scale == "none"  # columns are balanced already
    (tmp_path / "new").mkdir()
    put_table(tmp_path / "new" / "edges.csv", {"source": ["m"], "target": ["n3"]})
    row = {"city": ["Lima"], "about": ["a red horse"], "since": [None], "x": [None], "id": ["m"]}
    put_table(tmp_path / "new" / "nodes.csv", as_text(row))
    grown = read_graph(tmp_path / "new", attach_to=loaded.graph_)
    new = dense(grown.table[[n]])[0]
    expected = loaded.graph_.encoding.transform(
        pa.table({**row, "since": pa.nulls(1, pa.date32())})
    ).toarray()[0]
    np.testing.assert_array_equal(new, expected)
    assert loaded.transform(grown).vectors.shape == (n + 1, 8)
    put_table(tmp_path / "new" / "nodes.csv", {"id": ["m"], "x": ["1"], "about": ["a"]})
    told(
        ["nodes.csv: ", 'feature column "city", "since"', "a cell may be empty"],
        read_graph,
        tmp_path / "new",
        attach_to=loaded.graph_,
    )
    put_table(tmp_path / "new" / "nodes.csv", as_text({**row, "x": ["tall"]}))
    with pytest.warns(InputWarning, match='nodes.csv, line 2, column "x".*"tall".* 1 cell'):
        odd = read_graph(tmp_path / "new", attach_to=loaded.graph_)
    np.testing.assert_array_equal(dense(odd.table[[n]])[0], expected)


def test_training_that_sees_some_rows_learns_from_them_alone(tmp_path: Path) -> None:
    edges = put(tmp_path / "edges.csv", "source,target\n0,1\n")
    rows = [f"{k},{'ab'[k % 2] if k < 8 else 'late'},{int(k < 8)}" for k in range(16)]
    graph = read_graph(edges, put(tmp_path / "n.csv", "id,c,split:seen\n" + "\n".join(rows)))
    assert graph.feature_names == ("c=a", "c=b")
    assert not dense(graph.features)[8:].any()


def test_a_number_is_not_lost_beside_a_category_of_many_values() -> None:
    """Two groups of nodes differ by one number alone; 200 random categories and as many words stand beside it."""
    draws = np.random.default_rng(1)
    n = 600
    group = np.arange(n) % 2
    table = pa.table(
        {
            "x": group * 2.0 + draws.normal(size=n) / 4,
            "city": [f"c{value}" for value in draws.integers(200, size=n)],
            "about": [
                " ".join(f"w{value}" for value in draws.integers(500, size=8)) for _ in range(n)
            ],
        }
    )
    encoding = fitted(table)
    rows = encoding.transform(table).toarray()
    assert 150 < len(encoding.feature_columns[1].feature_names) <= 201
    centres = rows[group == 0].mean(axis=0), rows[group == 1].mean(axis=0)
    nearest = [
        int(((row - centres[1]) ** 2).sum() < ((row - centres[0]) ** 2).sum()) for row in rows[:, :]
    ]
    apart = (centres[1] - centres[0]) ** 2
    assert apart[0] > 0.9 * apart.sum()  # the number tells the groups apart, not the many columns
    assert np.mean(nearest == group) > 0.99


def test_columns_that_look_wrong_are_noted() -> None:
    n = 200
    table = pa.table(
        {
            "number": [10**8 + 7 * row for row in range(n)],
            "second": [1_700_000_000 + 86_400 * row for row in range(n)],
            "same": ["x"] * n,
            "rare": ["a", "b"] + [None] * (n - 2),
            "kind_code": [f"k{row % 3}" for row in range(n)],
            "good": [row % 5 / 2 for row in range(n)],
        }
    )
    survey = Survey(table.column_names, {}, ["kind"])
    survey.add(table, lambda row, name: name)
    notes = {column.name: column.note for column in survey.finish()[0].columns}
    assert "it looks like an identifier or a code: --column number=ignore" in notes["number"]
    assert "2025-12-31" in notes["second"]
    assert "one value only" in notes["same"]
    assert "99 %" in notes["rare"]
    assert "label" in notes["kind_code"]
    assert notes["good"] == ""
    codes = {"code": [f"c{row}" for row in range(n)], "pair": [f"c{row // 2}" for row in range(n)]}
    encoding = fitted(pa.table(codes), step=9, most_distinct=50)
    assert [(column.column_type, column.distinct) for column in encoding.columns] == [
        ("id", None),
        ("id", None),
    ]


@pytest.mark.parametrize("word", ["", "red"])
def test_a_feature_that_is_called_like_a_label_is_told(tmp_path: Path, word: str) -> None:
    edges = put(tmp_path / "edges.csv", "source,target\na,b\n")
    rows = [f"{identifier},{at % 2},{word or at},{at % 3}" for at, identifier in enumerate("abcd")]
    nodes = put(tmp_path / "n.csv", "id,the target,c,wing\n" + "\n".join(rows))
    for door in (
        partial(read_graph, columns={"wing": "label"}),
        partial(prepare, out=tmp_path / "g", labels="wing"),
    ):
        with pytest.warns(
            InputWarning,
            match=r'n.csv: features .* a label: "the target"\. If so: --column NAME=label',
        ):
            door(edges, nodes)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*may tell a label")
        read_graph(edges, nodes, labels=["the target", "wing"])


def test_what_was_learnt_is_checked_when_it_is_read() -> None:
    good = fitted(
        pa.table({"c": ["a", "a", "b"], "t": ["a b c d e f g"] * 3, "x": [1, 2, None]})
    ).to_json()
    for change in (
        {"columns": 3},
        {"columns": [{}]},
        {"columns": [{**good["columns"][2], "column_type": "strange"}]},
        {},
    ):
        told(["encoding: ", "learnt"], Encoding.from_json, {"raw": False, **change})
    assert read_column(good["columns"][0]).feature_names == ["c=a", "c: rest"]


def test_what_pyarrow_alone_takes_for_numbers_and_times_is_text() -> None:
    def times(*texts: str) -> list[bool]:
        return read_times(cells.plain(pa.array(texts)))[0].is_valid().to_pylist()

    assert times("2013-05-27 08:30", "2013-05-27") == [True, True]
    assert times("2013-05-27 08", "2013-05-27") == [False, True]
    assert times("2013-05-27T08:30:00.5", "2013-02-30", "2013-05-27 08:30+02:00") == [
        True,
        False,
        True,
    ]
    assert cells.numbers(cells.plain(pa.array(["1", "inf", "-.5e3"])))[1].tolist() == [
        False,
        True,
        False,
    ]
    assert cells.numbers(cells.plain(pa.array(["+1", "1_0", ""])))[1].tolist() == [
        False,
        True,
        False,
    ]


def test_a_hashed_column_is_told_by_its_most_frequent_word() -> None:
    texts = [
        f"graph {'tree' if row % 2 else 'Wald'} of some w{row // 2} and w{row % 7} others"
        for row in range(200)
    ]
    encoding = fitted(pa.table({"notes": texts, "size": list(map(float, range(200)))}))
    (notes, size), counts = encoding.columns, dict.fromkeys(" ".join(texts).lower().split(), 0)
    for word in " ".join(texts).lower().split():
        counts[word] += 1
    for word, often in counts.items():
        row = encoding.transform(pa.table({"notes": [word], "size": [99.5]})).toarray()[0]
        (at,) = np.flatnonzero(row)
        best = notes.learnt["words"][at]
        assert (-counts[best], best) <= (-often, word)
        if best == word:
            assert encoding.describe(at, more=bool(row[at] > 0)) == f"notes: {word}"
            assert encoding.describe(at, more=bool(row[at] < 0)) == f"less of notes: {word}"
    assert encoding.describe(len(notes.feature_names), more=False) == f"less of {size.name}"
    empty = notes.learnt["words"].index("")
    assert encoding.describe(empty, more=True) == f"notes[{empty}]"


def test_a_text_of_too_many_words_has_no_words() -> None:
    texts = [f"one two three four five six{row}" for row in range(4)]
    few_words = fitted(pa.table({"notes": texts[:3]}), most_words=8)
    assert len(few_words.columns[0].learnt["words"]) == WIDTH
    encoding = fitted(pa.table({"notes": texts}), step=1, most_words=8)
    assert encoding.columns[0].learnt["words"] == []
    assert encoding.describe(3, more=True) == "notes[3]"


@pytest.mark.parametrize(
    ("cells", "is_told"),
    [
        (["$1,200.50", "$80", "-$3.20"], True),
        (["12 €", "1.200,50 €", "7 EUR"], True),
        ([f"+49 {row} 55123" for row in range(60)], True),
        ([f"9f3c1f0e-00{row}-4b52-8a57-0123456789ab" for row in range(60)], True),
        (['["vip", "late"]', '["late", "vip"]', "[]"], True),
        (['{"plan": "a"}', '{"plan":\n "b"}', '{"plan": "c"}'], True),
        ([f"https://example.org/page/{row}?of=all" for row in range(60)], True),
        (["01", "02", "10"], True),
        (["0", "0.5", "10"], False),
        (["Rome", "New York", "c007"], False),
    ],
)
def test_what_looks_like_a_code_is_told_in_one_line(cells: list[str], is_told: bool) -> None:
    table = pa.table({"x": 20 * cells if len(cells) < 20 else cells})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = [fitted(table, step=step).columns[0].note for step in (7, 10**9)]
    assert told[0] == told[1]
    assert ("it looks like an identifier or a code: --column x=" in told[0]) == is_told
    assert not fitted(table, {"x": "text"}).columns[0].note


@pytest.mark.parametrize(
    ("cells", "kind", "others"),
    [
        (["12 %", "7 %"], "category", "x=ignore; as"),
        (
            [f"9f3c1f0e-00{row}-4b52-8a57-0123456789ab" for row in range(60)],
            "id",
            "x=category, or x=text; as",
        ),
        ([f"${row},200" for row in range(60)], "id", "x=category, or x=text; as"),
    ],
)
def test_a_code_is_told_only_what_it_is_not_yet(cells: list[str], kind: str, others: str) -> None:
    column = fitted(pa.table({"x": 20 * cells if len(cells) < 20 else cells})).columns[0]
    assert column.column_type == kind
    assert f"--column {others}" in column.note


def test_amounts_name_no_nodes() -> None:
    words = ["one", "two", "three", "four", "five", "six"]
    for values, column_type, expected in (
        ([f"${row},200" for row in range(60)], "id", None),
        ([f"{words[row % 6]} {words[row // 6 % 6]} Inc {row}" for row in range(60)], "text", "x"),
    ):
        looked = Survey(["x"], {}, [])
        looked.add(pa.table({"x": values}), lambda row, name: name)
        assert looked.finish()[0].columns[0].column_type == column_type
        assert looked.name_column == expected


def test_durations_that_differ_are_no_ids() -> None:
    seconds = [datetime.timedelta(hours=hours) for hours in range(30)]
    assert not fitted(pa.table({"x": seconds})).columns[0].note
    assert (
        "looks like an identifier" in fitted(pa.table({"x": list(range(0, 90, 3))})).columns[0].note
    )


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
def test_times_of_nine_decimals_are_those_of_six(zone: str) -> None:
    """As pandas and pyarrow write a timestamp[ns]."""
    stems = [f"2024-05-{row:02d}T08:30:00.{row:06d}" for row in range(1, 29)]
    short, long = ([f"{stem}{more}{zone}" for stem in stems] for more in ("", "789"))
    assert fitted(pa.table({"x": long})).columns[0].column_type == "date"
    found = [read_times(cells.plain(pa.array(texts)))[0] for texts in (short, long)]
    assert found[0].equals(found[1])
    assert not found[0].null_count


def test_a_month_is_its_first_day() -> None:
    months, days = (
        [f"{year}-{month:02d}{day}" for year in (1999, 2024) for month in (1, 12)]
        for day in ("", "-01")
    )
    found = [
        read_times(cells.plain(pa.array(texts)))[0]
        for texts in (months, days, [*months[:2], *days[2:]])
    ]
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])
    assert read_times(cells.plain(pa.array(["2024-00", "2024-13", "1815-05", "2024-5"])))[1].all()


def test_what_databases_write_for_nothing_is_missing() -> None:
    column = fitted(pa.table({"x": ["1.5", r"\N", "2", "NULL", "3"]})).columns[0]
    assert (column.column_type, column.missing) == ("number", 2)


def test_booleans_are_found_in_any_case() -> None:
    written = ["true", "True", "TRUE", "false", "False", "FALSE", None]
    column = fitted(pa.table({"x": 5 * written})).columns[0]
    assert (column.column_type, column.feature_names) == ("boolean", ["x", "x: missing"])
    assert fitted(pa.table({"x": 5 * [*written, "maybe"]})).columns[0].column_type == "category"


def test_numbers_that_pandas_calls_categories_are_categories() -> None:
    edges = pd.DataFrame({"source": [0, 1], "target": [1, 2]})
    nodes = pd.DataFrame({"id": range(6), "x": pd.Categorical([30, 10, 20, 30, 10, None])})
    graph = Graph.from_frames(edges, nodes)
    assert graph.feature_names == ("x=10", "x=30", "x: rest", "x: missing")
    assert Graph.from_frames(edges, nodes, columns={"x": "number"}).feature_names == (
        "x",
        "x: missing",
    )
    new = Graph.from_frames(
        pd.DataFrame({"source": [7], "target": [0]}),
        pd.DataFrame({"id": [7], "x": [10]}),
        attach_to=graph,
    )
    assert dense(new.table[:])[6].tolist() == [1, 0, 0, 0]


def test_durations_are_numbers_of_seconds() -> None:
    lengths = [datetime.timedelta(seconds=1.5), None, datetime.timedelta(days=-1)]
    for unit in ("s", "ms", "us", "ns"):
        found = cells.plain(
            pa.array(lengths, pa.duration("us")).cast(pa.duration(unit), safe=False)
        ).to_pylist()
        assert found == [1.0 if unit == "s" else 1.5, None, -86_400.0]
    nodes = pd.DataFrame(
        {"id": [0, 1, 2], "took": pd.to_timedelta([1.5, None, 3], unit="s"), "city": list("aba")}
    )
    for frame in (nodes, polars.from_pandas(nodes)):
        graph = Graph.from_frames(pd.DataFrame({"source": [0, 1], "target": [1, 2]}), frame)
        assert graph.feature_names[:2] == ("took", "took: missing")


def test_what_cannot_be_a_feature_is_told_with_a_way_out() -> None:
    edges = pd.DataFrame({"source": [0, 1], "target": [1, 2]})
    nodes = pd.DataFrame({"id": [0, 1, 2], "city": ["Rome", "Oslo", "Rome"]})
    ways = ['column "odd"', "found type struct", "ignore=NAME"]
    told(ways, Graph.from_frames, edges, nodes.assign(odd=[{"a": 1}] * 3))
    ways = ["for column odd", "Could not convert 'a'", "column.astype(str)"]
    told(ways, Graph.from_frames, edges, nodes.assign(odd=[1, "a", 2]))
    graph = networkx.path_graph(3)
    networkx.set_node_attributes(graph, {0: object(), 1: object(), 2: object()}, "odd")
    told(
        ['attribute "odd"', "an object of type object", "Name it in ignore"],
        Graph.from_networkx,
        graph,
    )
    networkx.set_node_attributes(graph, 1, "odd")
    told(['Did you mean "odd"?'], Graph.from_networkx, graph, ignore="oddd")


@pytest.mark.parametrize(
    ("kind", "learnt"),
    [
        ("category", ["Rome", "Oslo", "Rome"]),
        ("date", ["2013-05-27", "1999-12-31", None]),
        ("number", [1.5, 2, None]),
        ("boolean", [True, False, None]),
    ],
)
@pytest.mark.parametrize("lists", [[None, ["a"]], [None, [1.0, 2]], [None, [[1]]], [None, DAYS]])
def test_a_list_where_a_single_value_was_learnt_is_refused(
    tmp_path: Path, kind: str, learnt: Any, lists: Any
) -> None:
    edges = pd.DataFrame({"source": [0, 1], "target": [1, 2]})
    graph = Graph.from_frames(
        edges, pa.table({"id": [0, 1, 2], "cell": learnt}), columns={"cell": kind}
    )
    assert graph.encoding is not None
    new = pa.table({"id": [3, 4], "cell": lists})
    nested = lists[1] == [[1]]
    with pytest.raises(cells.UnreadableError) as refused:
        graph.encoding.transform(new)
    assert (refused.value.column, refused.value.row) == ("cell", 0 if nested else 1)
    refusal = [
        f'row {1 if nested else 2}, column "cell"',
        "found type list" if nested else "found [",
    ]
    told(refusal, Graph.from_frames, edges, new, attach_to=graph)
    put_table(tmp_path / "edges.parquet", edges.to_dict("list"))
    put_table(tmp_path / "nodes.parquet", new)
    told(refusal, read_graph, tmp_path, attach_to=graph)
    told(
        ['features, column "cell"'], DGI(dim=2, epochs=1).fit(graph).vector, {"cell": lists[1]}, [0]
    )
    # Nothing at all is missing, of any type.
    if not nested:
        nothing = graph.encoding.transform(pa.table({"cell": pa.nulls(1)})).toarray()
        np.testing.assert_array_equal(graph.encoding.transform(new[:1]).toarray(), nothing)


@pytest.mark.parametrize("first", ["lists", "single values"])
def test_lists_beside_single_values_in_files_of_one_table_are_refused(
    tmp_path: Path, first: str
) -> None:
    edges = put_table(tmp_path / "edges.parquet", {"source": [0], "target": [1]})
    for at, kind in enumerate(sorted(["lists", "single values"], key=first.__ne__)):
        (tmp_path / "nodes").mkdir(exist_ok=True)
        put_table(
            tmp_path / "nodes" / f"{at}.parquet",
            {"id": [at], "x": [["a"]] if kind == "lists" else ["a"]},
        )
    other = "single values" if first == "lists" else "lists"
    refusal = ["1.parquet, row 1", 'column "x"', f"found {other}, unlike the rows before"]
    told(refusal, prepare, edges, tmp_path / "nodes", out=tmp_path / "graph")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"labels": "cty"}, 'Did you mean "city"?'),
        ({"name": "cty"}, 'Did you mean "city"?'),
        ({"id": "idd"}, 'Did you mean "id"?'),
        ({"features": ["cty"]}, 'Did you mean "city"?'),
        ({"columns": {"cty": "text"}}, 'Did you mean "city"?'),
        ({"columns": {"city": "txt"}}, 'Did you mean "text"?'),
        ({"columns": ["city"]}, 'found "city".'),
        (
            {"colums": {}},
            'schema, delimiter, header, encoding, found another. Did you mean "columns"?',
        ),
    ],
)
def test_a_slip_of_a_name_is_told(said: dict[str, Any], meant: str) -> None:
    edges = pd.DataFrame({"source": [0, 1], "target": [1, 2]})
    nodes = pd.DataFrame({"id": [0, 1, 2], "city": ["Rome", "Oslo", "Rome"]})
    told([meant], Graph.from_frames, edges, nodes, **said)
