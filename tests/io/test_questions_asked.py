"""Questions: which columns they are in, what they may ask, and that answers do not change them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from infomax import Graph
from infomax.errors import InputError
from infomax.io.questions import Answers, read_questions

DAYS = ["2009-03-01", "2009-06-01T12:30:00", "2010-05-01"]
HEADER = "order,age,code,long,vector,rate,date"
LINES = ["1,7,007,12345678901234567890123,a,0.5,2009-03-01", "2,8,010,1,b,1.25,2010-05-01"]


@pytest.fixture
def graph() -> Graph:
    orders = {"id": [1, 2, 3], "age": [1.5, 2.5, 4.0], "date": DAYS}
    people = {"id": [1, 2], "height": [1.5, 2.5]}
    edges = {("order", "of", "person"): pa.table({"source": [1, 2, 3], "target": [1, 1, 2]})}
    nodes = {"order": pa.table(orders), "person": pa.table(people)}
    return Graph.from_frames(edges, nodes, time="order.date").target("order")


def write_questions(path: Path, *lines: str, header: str = "id,date") -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def test_a_question_at_the_instant_of_the_row_is_allowed_and_one_before_is_not(
    tmp_path: Path, graph: Graph
) -> None:
    _, rows, _ = read_questions(write_questions(tmp_path / "q.csv", "2,2009-06-01 12:30:00"), graph)
    assert rows.tolist() == [1]
    early = write_questions(tmp_path / "q.csv", "2,2009-06-01 12:29:59")
    with pytest.raises(InputError, match=r'when order "2" was there.*since 2009-06-01 12:30:00'):
        read_questions(early, graph)


def test_how_many_questions_are_earlier_than_their_rows_is_told(
    tmp_path: Path, graph: Graph
) -> None:
    lines = ("2,2011-01-01", "2,2009-05-01", "2,2009-04-01")
    path = write_questions(tmp_path / "q.csv", *lines)
    with pytest.raises(InputError, match=r"line 3.*Leave out .*: 2 of 3 questions\."):
        read_questions(path, graph)


def test_the_column_of_ids_that_is_named_is_taken(tmp_path: Path, graph: Graph) -> None:
    path = write_questions(tmp_path / "q.csv", "1,3,2,2011-01-01", header="id,order,other,date")
    for named, row in ((None, 2), ("id", 0), ("other", 1)):
        _, rows, _ = read_questions(path, graph, id=named)
        assert rows.tolist() == [row], named


def test_an_unknown_id_is_shown(tmp_path: Path, graph: Graph) -> None:
    path = write_questions(tmp_path / "q.csv", "1,2011-01-01", "77,2011-01-01")
    with pytest.raises(InputError, match=r"line 3.*the id of a node of type order, found \"77\"\."):
        read_questions(path, graph)
    write_questions(path, "77,2011-01-01", "78,2011-01-01", "79,2011-01-01")
    with pytest.raises(InputError, match='found "77", and 2 other questions about others'):
        read_questions(path, graph)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_answers_leave_the_questions_as_they_are(tmp_path: Path, graph: Graph, suffix: str) -> None:
    path = write_questions(tmp_path / "q.csv", *LINES, header=HEADER)
    table, _, _ = read_questions(path, graph)
    vectors = np.arange(6, dtype=np.float32).reshape(2, 3)
    answers = Answers(table, vectors, ["age", "size", "age_"])
    out = tmp_path / f"answers{suffix}"
    answers.save(out)
    assert answers.to_frame("arrow").column_names == [*HEADER.split(","), "age_", "size", "age__"]
    if suffix == ".parquet":
        found = parquet.read_table(out)
        assert found.column_names == [*HEADER.split(","), "vector_"]
        cells: dict[str, Any] = found.to_pydict()
        assert cells["age"] == [7, 8]
        assert cells["code"] == ["007", "010"]
        assert cells["long"] == ["12345678901234567890123", "1"]
        assert cells["rate"] == [0.5, 1.25]
        assert cells["vector_"] == vectors.tolist()
        return
    mark = "," if suffix == ".csv" else "\t"
    lines = [line.replace('"', "").split(mark) for line in out.read_text().splitlines()]
    assert lines[0][:7] == HEADER.split(",")
    assert [line[:7] for line in lines[1:]] == [line.split(",") for line in LINES]
    assert [line[7:] for line in lines[1:]] == [["0", "1", "2"], ["3", "4", "5"]]
