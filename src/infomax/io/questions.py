"""Questions: a table of ids and times, each of which asks what was known of a row then; and the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.times import UNKNOWN, told_time
from infomax.errors import InputError, number_of, other_extension, shorten
from infomax.io import parquet, text
from infomax.io.atomic import replacing
from infomax.io.changes import rows_before
from infomax.io.column_names import listed, plain, singulars, spellings
from infomax.io.columns import Columns
from infomax.io.database.writing import primary_key
from infomax.io.features import existing
from infomax.io.finding import table_file
from infomax.io.frames import _from_arrow, frame_source
from infomax.io.json import to_json
from infomax.io.parts import MODEL_KEY, PARTS_KEY
from infomax.io.record import Record
from infomax.io.sources import Source

TIMES = ("time", "date", "timestamp", "when", "day")
"""What the column of times is called, unless it is named."""


@dataclass(frozen=True, eq=False)
class Answers:
    """One vector for each question, in their order.

    Attributes:
        questions: the table of the questions, of pyarrow, with all its columns.
        vectors: ``[Q, D]`` float32.
        names: D names of columns.
        model: the hash of the model.
    """

    questions: Any
    vectors: NDArray[np.float32]
    names: Sequence[str]
    model: str = ""

    def __repr__(self) -> str:
        return f"Answers({number_of(len(self.vectors), 'question')}, {number_of(len(self.names), 'column')})"

    def to_frame(self, node_type: str = "pandas") -> Any:
        """A frame of the questions with a column for each number of the vectors, by its name."""
        return _from_arrow(self.beside(), node_type)

    def save(self, path: str | Path) -> None:
        """Write the questions with their vectors: .parquet (a column ``vector``), .csv or .tsv (columns by name)."""
        save_answers(Path(path), iter([self]))

    def with_vectors(self) -> Any:
        """The table of the questions with a column ``vector``."""
        return self.questions.append_column("vector", parquet.arrow_column(self.vectors))

    def beside(self) -> Any:
        """The table of the questions with a column for each number of the vectors."""
        import pyarrow as pa

        columns = {name: self.questions[name] for name in self.questions.column_names}
        return pa.table(
            columns | {name: pa.array(self.vectors[:, at]) for at, name in enumerate(self.names)}
        )


def save_answers(out: Path, some: Iterator[Answers]) -> str:
    """Write answers, some of them at a time; the file appears whole or not at all. Says how many there were."""
    check_answers(out)
    first = next(some)
    suffix = out.suffix.lower()
    count = 0

    def tables() -> Iterator[Any]:
        nonlocal count
        for one in chain([first], some):
            count += len(one.vectors)
            yield one.with_vectors() if suffix == ".parquet" else one.beside()

    with replacing(out) as temporary:
        if suffix == ".parquet":
            told = {
                MODEL_KEY: first.model.encode(),
                PARTS_KEY: to_json({"at": list(first.names)}).encode(),
            }
            parquet.write_tables(temporary, tables(), told)
        else:
            text.write_tables(temporary, suffix, tables())
    return f"{number_of(count, 'question')}, {number_of(len(first.names), 'column')}"


def check_answers(path: Path) -> None:
    """Refuse a file that answers cannot be written to, before the work is done."""
    if path.suffix.lower() not in (".parquet", ".csv", ".tsv"):
        raise other_extension(path, (".parquet", ".csv", ".tsv"))


def read_questions(
    questions: Any, graph: Record, id: str | None = None, time: str | None = None
) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """The table of questions, of pyarrow, and for each the row ``[Q]`` that it is about and its time ``[Q]``.

    Args:
        questions: a file, or a frame of pandas, polars or pyarrow.
        graph: its rows, of the type that it is seen from, are asked for.
        id: the column of ids. None: that called as the primary key, after the type or ``id``, else the first.
        time: the column of times. None: one of `TIMES`.
    """
    source = opened(questions)
    names = source.names
    when = time or next((name for word in TIMES for name in names if name.lower() == word), None)
    if when is None or when not in names:
        expected = (
            f"a column {shorten(time)} of times"
            if time
            else f"a column of times, called {' or '.join(TIMES)}"
        )
        raise InputError(
            str(source.path), expected, listed(names), "Name it: --time COLUMN (in Python: time=)."
        )
    others = [name for name in names if name != when]
    named = id_column(others, graph.node_type, graph.table_columns)
    own = (
        id
        or named
        or next((name for name in others if name.lower() == "id"), others[0] if others else when)
    )
    source.columns = Columns(id=own, time=when, features=(), learns=False)
    read = list(source.nodes())
    numbers = np.concatenate([block.numbers for block in read]) if read else np.empty(0, np.int64)
    if not len(numbers):
        raise InputError(str(source.path), "at least one question", "none")
    times = np.concatenate([block.times for block in read if block.times is not None])
    rows = rows_before(
        graph.ids[:], np.array([one for block in read for one in block.ids.to_pylist()])
    )
    _refuse(source, graph, (own, when), numbers, rows, times)
    return _whole(source), rows, times


def opened(questions: Any) -> Source:
    """The table of questions, a file or a frame."""
    if isinstance(questions, str | Path):
        return Source([table_file(existing(Path(questions)))], Columns())
    return frame_source(questions, "questions")


def id_column(names: Sequence[str], node_type: str, choices: Mapping[str, str]) -> str:
    """The column that has ids of a type: called as its primary key is, or after the type; "" for none."""
    key = primary_key(choices, node_type)
    called = (
        {spelling for word in singulars(node_type) for spelling in spellings(word)}
        if node_type
        else set()
    )
    own = key if key in names and key.lower() != "id" else ""
    return own or next((name for name in names if plain(name) in called), "")


def _refuse(
    source: Source,
    graph: Record,
    columns: tuple[str, str],
    numbers: NDArray[np.int64],
    rows: NDArray[np.int64],
    times: NDArray[np.int64],
) -> None:
    """Refuse an unknown id, a question without a time, and one about a row that came later."""
    node_type = graph.node_type or "node"
    if (rows < 0).any():
        number = int(numbers[np.argmax(rows < 0)])
        found = f"{number_of(int((rows < 0).sum()), 'question')} about others"
        expected = f"the id of a node{graph.node_type and f' of type {node_type}'}"
        raise InputError(source.place(number, columns[0]), expected, found)
    if (times == UNKNOWN).any():
        raise InputError(
            source.place(int(numbers[np.argmax(times == UNKNOWN)]), columns[1]), "a time", "none"
        )
    if graph.own.times is not None:
        since = np.asarray(graph.own.times[:])[rows]
        if (late := since > times).any():
            at = int(np.argmax(late))
            found = f"{told_time(int(times[at]))}; this {node_type} is there since {told_time(int(since[at]))}"
            raise InputError(
                source.place(int(numbers[at]), columns[1]),
                f"a time when the {node_type} was there",
                found,
            )


def _whole(source: Source) -> Any:
    """All columns of a table, as pyarrow reads them."""
    if source.frame is not None:
        return source.frame
    with source.readable():
        if source.lines:
            from pyarrow import csv

            mark = text.DELIMITERS[text.extension(source.path)]
            return csv.read_csv(
                source.path, parse_options=csv.ParseOptions(delimiter=mark, newlines_in_values=True)
            )
        from pyarrow import parquet as files

        return files.read_table(source.path)
