"""Questions and their answers.

A question is an id and a time: what was known of a row at that time? Questions are a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.times import UNKNOWN_TIME, format_time
from infomax.errors import InputError, format_count, other_extension, shorten
from infomax.io import parquet, text
from infomax.io.atomic import replacing
from infomax.io.changes import rows_before
from infomax.io.choices import UserChoices
from infomax.io.column_names import format_list, plain, singulars, spellings
from infomax.io.database.writing import primary_key
from infomax.io.frames import _from_arrow, frame_source
from infomax.io.json import to_json
from infomax.io.parts import MODEL_KEY, PARTS_KEY
from infomax.io.reading import table_file
from infomax.io.record import Record
from infomax.io.schema.resolving import resolve_node_table
from infomax.io.schema.schema import Schema
from infomax.io.sources import Source, existing

TIMES = ("time", "date", "timestamp", "when", "day")
"""What the column of times is called, unless it is named."""
QUESTIONS_PER_BATCH = 1 << 17


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
        questions = format_count(len(self.vectors), "question")
        return f"Answers({questions}, {format_count(len(self.names), 'column')})"

    def to_frame(self, library: str = "pandas") -> Any:
        """A frame of the questions with a column for each number of the vectors, by its name.

        A name that a column of the questions has gets ``_`` at its end.
        """
        return _from_arrow(self.with_columns(), library)

    def save(self, path: str | Path) -> None:
        """Write the questions with their vectors.

        In .parquet they are one column ``vector``, in .csv and .tsv a column by each name.
        """
        save_answers(Path(path), iter([self]))

    def with_vectors(self) -> Any:
        """The table of the questions with a column ``vector``."""
        (name,) = _free_names(["vector"], self.questions.column_names)
        return self.questions.append_column(name, parquet.arrow_column(self.vectors))

    def with_columns(self) -> Any:
        """The table of the questions with a column for each number of the vectors."""
        import pyarrow as pa

        names = _free_names(self.names, self.questions.column_names)
        columns = [pa.array(self.vectors[:, index]) for index in range(len(names))]
        questions = self.questions.columns
        return pa.table([*questions, *columns], [*self.questions.column_names, *names])


def _free_names(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names of columns, with ``_`` at the ends of those that the columns of the questions have."""
    free: list[str] = []
    for name in names:
        while name in taken or name in free:
            name += "_"
        free.append(name)
    return free


def save_answers(out: Path, blocks: Iterator[Answers]) -> str:
    """Write answers, some of them at a time; the file appears whole or not at all.

    Returns:
        How many there were, as a message.
    """
    check_answers(out)
    first = next(blocks)
    suffix = out.suffix.lower()
    count = 0

    def tables() -> Iterator[Any]:
        nonlocal count
        for answers in chain([first], blocks):
            count += len(answers.vectors)
            yield answers.with_vectors() if suffix == ".parquet" else answers.with_columns()

    with replacing(out) as temporary:
        if suffix == ".parquet":
            metadata = {
                MODEL_KEY: first.model.encode(),
                PARTS_KEY: to_json({"at": list(first.names)}).encode(),
            }
            parquet.write_tables(temporary, tables(), metadata)
        else:
            text.write_tables(temporary, suffix, tables())
    return f"{format_count(count, 'question')}, {format_count(len(first.names), 'column')}"


def check_answers(path: Path) -> None:
    """Refuse a file that answers cannot be written to, before the work is done."""
    if path.suffix.lower() not in (".parquet", ".csv", ".tsv"):
        raise other_extension(path, (".parquet", ".csv", ".tsv"))


def read_questions(
    questions: Any, graph: Record, id: str | None = None, time: str | None = None
) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """The table of questions, of pyarrow; the rows ``[Q]`` asked about; and the times ``[Q]``.

    Args:
        questions: a file, or a frame of pandas, polars or pyarrow.
        graph: the graph whose rows, of the type that it is seen from, are asked about.
        id: the column of ids. None: the column that is called as the primary key or the type is,
            or ``id``, else the first.
        time: the column of times. None: one of `TIMES`.
    """
    source = opened(questions)
    time_column = _time_column(source, time)
    other_columns = [name for name in source.names if name != time_column]
    ids_column = id or _column_of_ids(other_columns, graph) or time_column

    # Read ids and times by the same rules as a node table; other columns are kept as they are.
    choices = UserChoices(id=ids_column, time=time_column, features=())
    blocks = list(resolve_node_table(source, choices).rows())
    if not blocks or not sum(len(block.numbers) for block in blocks):
        raise InputError(str(source.path), "at least one question", "none")
    ids = np.array([node_id for block in blocks for node_id in block.ids.to_pylist()])
    times = np.concatenate([block.times for block in blocks if block.times is not None])
    rows = rows_before(graph.ids[:], ids)
    numbers = np.concatenate([block.numbers for block in blocks])
    _refuse_unknown_ids(source, graph, ids_column, numbers, ids, rows)
    _refuse_times(source, graph, time_column, numbers, rows, times)
    return _all_columns(source), rows, times


def _time_column(source: Source, time: str | None) -> str:
    """The column of times: the one that is named, else one that is called as times are."""
    names = source.names
    usual_columns = [name for usual_name in TIMES for name in names if name.lower() == usual_name]
    time_column = time or next(iter(usual_columns), None)
    if time_column is None or time_column not in names:
        expected = f"a column of times, called {' or '.join(TIMES)}"
        if time:
            expected = f"a column {shorten(time)} of times"
        remedy = "Name it: --time COLUMN (in Python: time=)."
        raise InputError(str(source.path), expected, format_list(names), remedy)
    return time_column


def _column_of_ids(names: Sequence[str], graph: Record) -> str:
    """The column of ids, where none is named.

    It is called as the primary key or the type is, or ``id``; else it is the first.
    """
    column_of_type = id_column(names, graph.node_type, graph.schema)
    if column_of_type:
        return column_of_type
    usual_columns = [name for name in names if name.lower() == "id"]
    return next(iter([*usual_columns, *names]), "")


def opened(questions: Any) -> Source:
    """The table of questions, a file or a frame."""
    if isinstance(questions, str | Path):
        return Source([table_file(existing(Path(questions)))])
    return frame_source(questions, "questions")


def id_column(names: Sequence[str], node_type: str, schema: Schema | None) -> str:
    """The column that is called as the primary key of a type is, or as the type; "" for none."""
    key = primary_key(schema, node_type)
    if key in names and key.lower() != "id":
        return key
    if not node_type:
        return ""
    type_spellings = {
        spelling for singular in singulars(node_type) for spelling in spellings(singular)
    }
    return next((name for name in names if plain(name) in type_spellings), "")


def _refuse_unknown_ids(
    source: Source,
    graph: Record,
    column: str,
    numbers: NDArray[np.int64],
    ids: NDArray[Any],
    rows: NDArray[np.int64],
) -> None:
    """Refuse the id of no node."""
    is_unknown = rows < 0
    if not is_unknown.any():
        return
    first = int(np.argmax(is_unknown))
    expected = "the id of a node"
    if graph.has_named_types:
        expected += f" of type {graph.node_type}"
    found = shorten(str(ids[first]))
    count = int(is_unknown.sum())
    if count > 1:
        found += f", and {format_count(count - 1, 'other question')} about others"
    raise InputError(source.location(int(numbers[first]), column), expected, found)


def _refuse_times(
    source: Source,
    graph: Record,
    column: str,
    numbers: NDArray[np.int64],
    rows: NDArray[np.int64],
    times: NDArray[np.int64],
) -> None:
    """Refuse a question without a time, and one about a row that came later.

    At its very time a row is there.
    """
    is_without = times == UNKNOWN_TIME
    if is_without.any():
        location = source.location(int(numbers[np.argmax(is_without)]), column)
        raise InputError(location, "a time", "none")
    if graph.nodes_in_view.times is None:
        return
    since = np.asarray(graph.nodes_in_view.times[:])[rows]
    is_early = since > times
    if is_early.any():
        first = int(np.argmax(is_early))
        node_id = graph.ids[rows[[first]]].tolist()[0]
        expected = f"a time when {graph.node_type or 'node'} {shorten(str(node_id))} was there"
        question_time = format_time(int(times[first]))
        found = f"{question_time}; it is there since {format_time(int(since[first]))}"
        counted = f"{int(is_early.sum()):,} of {format_count(len(times), 'question')}"
        remedy = f"Leave out what is asked before its row was there: {counted}."
        raise InputError(source.location(int(numbers[first]), column), expected, found, remedy)


def _all_columns(source: Source) -> Any:
    """All columns of a table, as pyarrow reads them; those of text as they are written."""
    if source.frame is not None:
        return source.frame
    with source.readable():
        if source.is_text:
            return _typed(_text_columns(source.path))
        from pyarrow import parquet as files

        return files.read_table(source.path)


def _text_columns(path: Path) -> Any:
    """All columns of a text file, as text; nothing where a cell is empty."""
    import pyarrow as pa
    from pyarrow import compute

    file = text.TextFile(path)
    table = pa.Table.from_batches(file.batches(file.names, QUESTIONS_PER_BATCH))
    nothing = pa.scalar(None, pa.large_string())
    columns = [compute.if_else(compute.equal(cells, ""), nothing, cells) for cells in table.columns]
    return pa.table(columns, file.names)


def _typed(table: Any) -> Any:
    """Columns of text as numbers and dates, if they are written the same way again.

    So 007 stays text.
    """
    import pyarrow as pa

    types = (pa.int64(), pa.float64(), pa.date32(), pa.timestamp("s"))
    columns = []
    for cells in table.columns:
        typed_cells = cells
        for arrow_type in types:
            try:
                cast_cells = cells.cast(arrow_type)
                is_same = cast_cells.cast(pa.large_string()).equals(cells)
            except pa.ArrowInvalid:
                continue
            if is_same and cells.null_count < len(cells):
                typed_cells = cast_cells
                break
        columns.append(typed_cells)
    return pa.table(columns, table.column_names)
