"""A text table whose columns are learnt is parsed once, unless it is large."""

from __future__ import annotations

import pyarrow as pa
import pytest

from infomax.io.sources import KeptBatches


def batches(count: int) -> list[pa.RecordBatch]:
    return [
        pa.RecordBatch.from_pydict({"id": [number], "x": [f"text {number}"]})
        for number in range(count)
    ]


def kept(most_bytes: int) -> KeptBatches:
    """Three batches that were read, and kept if they are no larger."""
    kept_batches = KeptBatches(most_bytes)
    shares = iter([0.3, 0.6, 1.0])
    read = list(kept_batches.keep(0, iter(batches(3)), lambda: next(shares)))
    assert read == list(zip(batches(3), [0.3, 0.6, 1.0], strict=True))
    return kept_batches


def test_batches_are_read_again_once() -> None:
    kept_batches = kept(1 << 20)
    again = kept_batches.take(0, ["x"])
    assert again is not None
    assert [share for _, share in again] == [0.3, 0.6, 1.0]
    assert kept_batches.take(0, ["x"]) is None


@pytest.mark.parametrize(
    ("most_bytes", "file_number", "columns"),
    [(40, 0, ["x"]), (1 << 20, 1, ["x"]), (1 << 20, 0, ["x", "y"])],
    ids=["too large", "another file", "another column"],
)
def test_other_batches_are_parsed(most_bytes: int, file_number: int, columns: list[str]) -> None:
    assert kept(most_bytes).take(file_number, columns) is None


def test_a_file_that_was_not_read_to_its_end_is_parsed_again() -> None:
    kept_batches = KeptBatches()
    next(kept_batches.keep(0, iter(batches(3)), lambda: 0.5))
    assert kept_batches.take(0, ["x"]) is None
