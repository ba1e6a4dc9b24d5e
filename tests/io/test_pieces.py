"""Large text files: pyarrow's reader and Python's find the same cells and lines, or refuse the same line."""

from __future__ import annotations

import gzip
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from infomax.errors import InputError
from infomax.io import pieces, text
from infomax.io.columns import Columns
from infomax.io.sources import Source
from infomax.io.tables import read_edges

ROWS = st.lists(st.text('ab,"\t\r\n é\0', max_size=12), max_size=6).map("\n".join)
QUOTED = st.sampled_from(["a", "", '"b"', '"x, ""y"""', "é", '""'])
NUMBERS = st.sampled_from(["1", "0.25", " 2", "+3", "1e39", "-1e400", "1_0", "nan", "", "x"])
PLAIN = st.lists(st.tuples(QUOTED, NUMBERS).map(",".join)).map("\n".join)


def read(path: Path, large: float, size: int, only: tuple[str, str] | None) -> tuple[list[Any], str]:
    """The lines and cells of all rows that are read, and the message of what is refused."""
    found: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LARGE", large)
        patch.setattr(pieces, "PIECE", size)
        try:
            for block in text.TextFile(path).blocks(["x"], ["y"], 1, 100, only):
                cells = block.words("x", {}).tolist(), block.arrow().to_pydict()["y"]
                found += zip(block.numbers.tolist(), *cells, strict=True)
                found.append(block.features({}, "").tolist())
        except InputError as error:
            return found, str(error)
    return found, ""


@settings(deadline=None)
@given(st.one_of(ROWS, PLAIN), st.sampled_from(["x,y\n", '"x","y"\r\n', "x, y\n"]), st.integers(8, 99))
@example('"a,1\nb,2', "x,y\n", 1 << 20)
@example('""a,1\n', "x,y\n", 1 << 20)
@example('a,1\n"b\nb",1\n,2', "x,y\n", 48)
@example(f"{'a' * 200_000},1\n", "x,y\n", 1 << 20)
def test_both_readers_find_the_same_cells(rows: str, header: str, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nodes.csv"
        path.write_bytes((header + rows).encode())
        for only in (None, ("x", "a")):
            assert read(path, 0, size, only) == read(path, math.inf, size, only)


ENDS = st.sampled_from(
    ["1", "2", "30", "-4", "007", "+1", "-0", "9223372036854775808", "a", "é", '"b, c"', '"d""e"', ""]
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=12), st.integers(8, 99), st.booleans())
@example([("1", "2"), ("2", "30"), ("30", "1"), ("a", "1")], 8, True)
def test_edges_join_the_same_ids_whoever_reads_them(ends: list[tuple[str, str]], size: int, broken: bool) -> None:
    """A quoted line break in the weights makes the last rows ones that only Python's reader takes."""
    rows = "".join(f"{source},{target},1\n" for source, target in ends) + '2,1,"1\n"\n' * broken
    found: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.csv"
        path.write_text("source,target,weight\n" + rows)
        for large in (0, math.inf):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(pieces, "LARGE", large)
                patch.setattr(pieces, "PIECE", size)
                try:
                    table = read_edges(Source([path], Columns()))
                    found.append((table.ids, table.ends.tolist(), table.numbers.tolist(), table.weight.tolist()))
                except InputError as error:
                    found.append(str(error))
    assert found[0] == found[1]


def test_plain_files_are_not_read_by_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "nodes.csv.gz"
    rows = [f'"n, {row}",{row / 8}\r\n' for row in range(500)]
    path.write_bytes(gzip.compress(("x,y\r\n" + "".join(rows)).encode()))
    monkeypatch.setattr(pieces, "LARGE", 0)
    monkeypatch.setattr(pieces, "PIECE", 1000)
    monkeypatch.setattr(text.TextFile, "_read", None)
    blocks = list(text.TextFile(path).blocks(["x"], ["y"], 10**6, 10**6, None))
    assert [name for block in blocks for name in block.ids("x").to_pylist()] == [f"n, {row}" for row in range(500)]
    np.testing.assert_array_equal(np.concatenate([block.numbers for block in blocks]), np.arange(2, 502))
    np.testing.assert_array_equal(np.concatenate([block.features({}, "") for block in blocks])[:, 0] * 8, range(500))


def test_the_rows_before_a_fault_are_read_and_its_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_bytes(b"x,y\n" + b"a,1\n" * 99 + b"b,1,2\n" + b"a,1\n" * 99)
    rows, message = read(path, 0, 60, None)
    assert (rows, message) == read(path, math.inf, 60, None)
    assert len(rows) == 2 * 99
    assert "line 101" in message
