"""What no two rows share is no feature: rare words, titles, phones, codes; dates are read as people write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from test_encoding import fitted, kinds_of
from test_two_doors import put_table

from infomax import DGI, read_graph
from infomax.errors import InputWarning
from infomax.io.encoding.column import Column
from infomax.io.encoding.encoding import Encoding
from infomax.io.encoding.text import TextColumn

ROWS = range(60)
FIRST = ["Star", "Toy", "Annie", "Blade", "Fargo", "Alien"]


def encoded(cells: list[str], column_type: str = "") -> tuple[Column, Encoding]:
    encoding = fitted(pa.table({"x": cells}), {"x": column_type} if column_type else {})
    return encoding.columns[0], encoding


def title(row: int) -> str:
    return f"{FIRST[row % 6]} w{row} z{row} ({1970 + row % 5})"


def test_a_word_of_one_text_is_left_out_now_and_later() -> None:
    texts = [f"the town of river{row % 9} has one airport and number{row}" for row in ROWS]
    column, encoding = encoded(texts)
    later = ["number7", "neverseen", "river7", "the neverseen"]
    rows = encoding.transform(pa.table({"x": later})).toarray()
    assert not rows[:2].any()
    np.testing.assert_allclose(np.linalg.norm(rows[2:], axis=1), 1, rtol=1e-6)
    of_the = encoding.transform(pa.table({"x": ["the"]})).toarray()
    np.testing.assert_array_equal(rows[3], of_the[0])
    assert Encoding.from_json(encoding.to_json()) == encoding
    assert isinstance(column, TextColumn)
    assert column.shared_words


def test_the_words_of_a_small_table_are_kept() -> None:
    _, encoding = encoded([f"the town of number{row}" for row in range(6)], "text")
    assert encoding.transform(pa.table({"x": ["number3"]})).toarray().any()


def test_texts_without_a_shared_word_are_no_feature() -> None:
    texts = [f"a{row} b{row} c{row} d{row} e{row} f{row} g{row}" for row in ROWS]
    column, encoding = encoded(texts)
    assert not encoding.feature_columns
    assert column.column_type == "text"


@pytest.mark.parametrize(
    ("cells", "column_type"),
    [
        ([title(row) for row in ROWS], "name"),
        ([title(row) for row in range(12)], "text"),
        ([f"drama, of {row}, comedy" for row in ROWS], "text"),
        ([f"{row} Mainstreet w{row}" for row in ROWS], "id"),
        ([f"+49 (30) 00743{row:02}" for row in ROWS], "id"),
        ([f"(171) 555-{1000 + row // 4}" for row in ROWS], "category"),
        ([f"{row:05}" for row in ROWS], "id"),
        ([f"{row % 7:05}" for row in ROWS], "category"),
    ],
)
def test_what_rows_do_not_share_is_no_feature(cells: list[str], column_type: str) -> None:
    column, encoding = encoded(cells)
    assert column.column_type == column_type
    assert bool(encoding.feature_columns) == (column_type in ("text", "category"))
    if column_type in ("name", "id"):
        assert "--column x=" in column.note


def test_numbers_of_phones_are_known_by_the_name_of_their_column() -> None:
    numbers = [5_550_100_000 + 7919 * row for row in ROWS]
    assert kinds_of(Phone=numbers, Fax=numbers, income=numbers) == {
        "Phone": "id",
        "Fax": "id",
        "income": "number",
    }


def test_neighbours_follow_what_a_film_is_and_not_its_title(tmp_path: Path) -> None:
    """Films of a genre are watched together; titles begin with one of six words at random."""
    draws = np.random.default_rng(0)
    films = 120
    genre = np.arange(films) % 4
    nodes = {
        "id": list(range(films)),
        "code_name": [f"f{row}" for row in range(films)],
        "title": [title(int(row)) for row in draws.permutation(films)],
        "genre": [("drama", "comedy", "war", "horror")[number] for number in genre],
    }
    sources = np.repeat(np.arange(films), 4)
    targets = (sources + 4 * draws.integers(1, films // 4, len(sources))) % films
    put_table(tmp_path / "edges.csv", {"source": sources, "target": targets})
    put_table(tmp_path / "nodes.csv", nodes)
    with pytest.warns(InputWarning) as caught:
        graph = read_graph(tmp_path)
    told = " ".join(str(warning.message) for warning in caught)
    assert 'no features, as hardly two rows share what they hold: "title".' in told
    assert "--column title=text" in told
    assert all(name.startswith("genre") for name in graph.feature_names)

    vectors = DGI(8, epochs=2, vectors="own").fit(graph).transform(graph)
    rows, _ = vectors.nearest(np.arange(films), 5)
    assert (genre[rows] == genre[:, None]).mean() > 0.99

    put_table(tmp_path / "nodes.csv", {**nodes, "title": nodes["title"][::-1]})
    np.testing.assert_array_equal(read_graph(tmp_path).features, graph.features)
    kept = read_graph(tmp_path, columns={"title": "text"})
    assert any(name.startswith("title") for name in kept.feature_names)


@pytest.mark.parametrize(
    ("cells", "iso"),
    [
        (["01-Jan-1977", "24-Dec-1995"], ["1977-01-01", "1995-12-24"]),
        (["1 January 1977", "24 dec. 1995"], ["1977-01-01", "1995-12-24"]),
        (["January 1, 1977", "Dec 24 1995"], ["1977-01-01", "1995-12-24"]),
        (["01/02/1999", "31/12/1999"], ["1999-02-01", "1999-12-31"]),
        (["1.2.1999", "31.12.1999"], ["1999-02-01", "1999-12-31"]),
        (["01/02/1999", "12/31/1999"], ["1999-01-02", "1999-12-31"]),
        (["01/02/1999 10:30", "31/12/1999 11:00"], ["1999-02-01 10:30", "1999-12-31 11:00"]),
        (["2000-01-01", "31/12/1999"], ["2000-01-01", "1999-12-31"]),
    ],
)
def test_dates_are_read_as_people_write_them(cells: list[str], iso: list[str]) -> None:
    column, encoding = encoded(20 * cells)
    expected = fitted(pa.table({"x": 20 * iso}))
    assert column.column_type == "date"
    assert encoding.feature_names == expected.feature_names
    np.testing.assert_array_equal(
        encoding.transform(pa.table({"x": cells})).toarray(),
        expected.transform(pa.table({"x": iso})).toarray(),
    )
    assert Encoding.from_json(encoding.to_json()) == encoding


@pytest.mark.parametrize(
    "cells", [["01/02/1999", "03/04/1999"], ["31/12/1999", "12/31/1999"], ["1/2/99", "3/4/99"]]
)
def test_dates_that_may_begin_with_either_are_none(cells: list[str]) -> None:
    column, _ = encoded(20 * cells)
    assert column.column_type == "category"
    has_years_of_four_digits = "1999" in cells[0]
    assert ("write them as 2025-12-31" in column.note) == has_years_of_four_digits
