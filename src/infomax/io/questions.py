"""Questions: a table of ids and times, each of which asks what was known of a row then; and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.times import UNKNOWN, told_time
from infomax.errors import InputError, number_of, other_extension, shorten
from infomax.io import parquet, text
from infomax.io.atomic import replacing
from infomax.io.column_names import listed
from infomax.io.columns import Columns
from infomax.io.encoding.keys import plain, spellings
from infomax.io.frames import _from_arrow, frame_source
from infomax.io.json import to_json
from infomax.io.parts import MODEL_KEY, PARTS_KEY
from infomax.io.record import Record
from infomax.io.sources import EXTENSIONS, Source

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

    def to_frame(self, kind: str = "pandas") -> Any:
        """A frame of the questions with a column for each number of the vectors, by its name."""
        return _from_arrow(self._beside(), kind)

    def save(self, path: str | Path) -> None:
        """Write the questions with their vectors: .parquet (a column ``vector``), .csv or .tsv (columns by name)."""
        out = Path(path)
        check_answers(out)
        with replacing(out) as temporary:
            if out.suffix.lower() != ".parquet":
                from pyarrow import csv

                csv.write_csv(
                    self._beside(), temporary, csv.WriteOptions(delimiter=text.DELIMITERS[out.suffix.lower()])
                )
                return
            table = self.questions.append_column("vector", parquet.arrow_column(self.vectors))
            told = {MODEL_KEY: self.model.encode(), PARTS_KEY: to_json({"at": list(self.names)}).encode()}
            parquet.write_tables(temporary, [table], told)

    def _beside(self) -> Any:
        import pyarrow as pa

        columns = {name: self.questions[name] for name in self.questions.column_names}
        return pa.table(columns | {name: pa.array(self.vectors[:, at]) for at, name in enumerate(self.names)})


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
        id: the column of ids. None: that called ``id``, or after the type, else the first.
        time: the column of times. None: one of `TIMES`.
    """
    if isinstance(questions, str | Path):
        path = Path(questions)
        if text.extension(path) not in EXTENSIONS or not path.is_file():
            found = "another" if path.exists() else "nothing of that name"
            raise InputError(str(path), f"a table of ids and times ({', '.join(EXTENSIONS)})", found)
        source = Source([path], Columns())
    else:
        source = frame_source(questions, "questions")
    names = source.names
    when = time or next((name for word in TIMES for name in names if name.lower() == word), None)
    if when is None or when not in names:
        expected = f"a column {shorten(time)} of times" if time else f"a column of times, called {' or '.join(TIMES)}"
        raise InputError(str(source.path), expected, listed(names), "Name it: --time COLUMN (in Python: time=).")
    called = spellings(graph.kind) if graph.kind else ()
    named = next((name for name in names if name.lower() == "id" or plain(name) in called), None)
    own = id or named or next(name for name in names if name != when)
    source.columns = Columns(id=own, time=when, features=(), learns=False)
    read = list(source.nodes())
    numbers = np.concatenate([block.numbers for block in read]) if read else np.empty(0, np.int64)
    if not len(numbers):
        raise InputError(str(source.path), "at least one question", "none")
    times = np.concatenate([block.times for block in read if block.times is not None])
    rows = _rows(graph, [block.ids for block in read])
    _refuse(source, graph, (own, when), numbers, rows, times)
    return _whole(source), rows, times


def _rows(graph: Record, ids: Sequence[Any]) -> NDArray[np.int64]:
    """The rows ``[Q]`` of ids, -1 for none; an integer and its text are the same id."""
    import pyarrow as pa
    from pyarrow import compute

    known = pa.array(graph.ids[:]).cast(pa.large_string())
    asked = pa.chunked_array([pa.array(block).cast(pa.large_string()) for block in ids])
    at = compute.index_in(asked, known).fill_null(-1).combine_chunks()
    return np.asarray(at.to_numpy(zero_copy_only=False), np.int64)


def _refuse(
    source: Source,
    graph: Record,
    columns: tuple[str, str],
    numbers: NDArray[np.int64],
    rows: NDArray[np.int64],
    times: NDArray[np.int64],
) -> None:
    """Refuse an unknown id, a question without a time, and one about a row that came later."""
    kind = graph.kind or "node"
    if (rows < 0).any():
        number = int(numbers[np.argmax(rows < 0)])
        found = f"{number_of(int((rows < 0).sum()), 'question')} about others"
        raise InputError(source.place(number, columns[0]), f"the id of a {kind} of the graph", found)
    if (times == UNKNOWN).any():
        raise InputError(source.place(int(numbers[np.argmax(times == UNKNOWN)]), columns[1]), "a time", "none")
    if graph.own.times is not None:
        since = np.asarray(graph.own.times[:])[rows]
        if (late := since > times).any():
            at = int(np.argmax(late))
            found = f"{told_time(int(times[at]))}; this {kind} is there since {told_time(int(since[at]))}"
            raise InputError(source.place(int(numbers[at]), columns[1]), f"a time when the {kind} was there", found)


def _whole(source: Source) -> Any:
    """All columns of a table, as pyarrow reads them."""
    if source.frame is not None:
        return source.frame
    with source.readable():
        if source.lines:
            from pyarrow import csv

            mark = text.DELIMITERS[text.extension(source.path)]
            return csv.read_csv(source.path, parse_options=csv.ParseOptions(delimiter=mark, newlines_in_values=True))
        from pyarrow import parquet as files

        return files.read_table(source.path)
