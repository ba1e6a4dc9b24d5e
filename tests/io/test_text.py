"""Text files: pyarrow finds the cells that Python's csv reader finds, and messages name lines."""

from __future__ import annotations

import csv
import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from infomax.errors import InputError
from infomax.io import text
from infomax.io.sources import Block, Source

CELLS = st.sampled_from(["a", "", '"b"', '"x, ""y"""', "é", '""', '"p\nq"', "1_0", " 2"])
ROWS = st.lists(st.tuples(CELLS, CELLS).map(",".join) | st.just(""), max_size=12).map("\n".join)


def blocks_of(path: Path, only: tuple[str, str] | None = None) -> list[Block]:
    """All rows, with y as the feature."""
    return list(Source([path], rows_with=only).blocks(["x"], ["y"]))


def cells(path: Path, only: tuple[str, str] | None = None) -> list[tuple[int, str, str]]:
    """The line and both cells of all rows."""
    found: list[tuple[int, str, str]] = []
    for block in blocks_of(path, only):
        lines = [text.line_of(path, int(number)) for number in block.numbers]
        found += zip(
            lines, block.words("x", {}).tolist(), block.arrow()["y"].to_pylist(), strict=True
        )
    return found


@settings(deadline=None, max_examples=60)
@given(ROWS, st.sampled_from(["x,y\n", '"x","y"\r\n', "\n\nx,y\n"]), st.sampled_from([64, 1 << 20]))
@example("a,1\n\nb,2", "x,y\n", 64)
@example('a,"1\n2"\nb,2', "x,y\n", 64)
def test_cells_and_lines_are_those_of_pythons_reader(rows: str, header: str, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "PIECE", size)
        path = Path(folder) / "nodes.csv"
        path.write_bytes((header + rows).encode())
        expected, line = [], 1
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            for row in reader:
                expected += [(line, *row)] if row else []
                line = reader.line_num + 1
        assert cells(path) == expected[1:]
        assert cells(path, ("x", "a")) == [one for one in expected[1:] if one[1] == "a"]


def test_packed_files_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "PIECE", 1000)
    path = tmp_path / "nodes.csv.gz"
    rows = [f'"n, {row}",{row / 8}\r\n' for row in range(500)]
    path.write_bytes(gzip.compress(("x,y\r\n" + "".join(rows)).encode()))
    blocks = blocks_of(path)
    assert [name for block in blocks for name in block.ids("x").to_pylist()] == [
        f"n, {row}" for row in range(500)
    ]
    np.testing.assert_array_equal(
        np.concatenate([block.features({}, "") for block in blocks])[:, 0] * 8, range(500)
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x,y\n" + b"a,1\n" * 99 + b"b,1,2\n" + b"a,1\n" * 99, "line 101: expected 2 columns"),
        (b'x,y\na,1\nb,"2\n' + b"a,1\n" * 99, "double quote"),
        (b"x,y\na,1\n\xff,2\n", "line 3: expected text in UTF-8"),
        (b'x, y\na, "b c"\n', "no space before double quotes"),
    ],
)
def test_the_line_of_a_fault_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        cells(path)


def test_the_space_after_a_delimiter_belongs_to_no_cell_where_the_header_has_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("x, y\na, b\nc,d\n")
    assert cells(path) == [(2, "a", "b"), (3, "c", "d")]


def test_a_name_may_hold_what_python_takes_for_the_end_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("x,y\x1cz\n1,2\n")
    assert text.TextFile(path).names == ["x", "y\x1cz"]
