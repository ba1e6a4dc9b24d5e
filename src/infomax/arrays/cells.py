"""Cells of a table, of any type of Arrow, as numbers, times and words."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import shorten

MISSING = ("", "#N/A", "#NA", "N/A", "NA", "n/a", "<NA>", "NULL", "Null", "null", "NaN", "nan", "-nan", "NaT", "None")
"""Text that stands for nothing, as pandas, R and databases write it."""
PAIRS = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("0", "1"))
"""What a boolean may be, in any case: no and yes."""
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_TIME = r"^(\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?|\d\d:\d\d(:\d\d(\.\d{1,6})?)?)$"
_ZONE = r":\d\d.*(Z|[+-]\d\d:?\d\d)$"
_DAY = 86_400_000_000


class UnreadableError(ValueError):
    """A cell, by its row, that is not what its column holds."""

    def __init__(self, row: int, expected: str, found: str) -> None:
        super().__init__(row, expected, found)
        self.row, self.column, self.expected, self.found = row, "", expected, found


def plain(values: Any) -> Any:
    """A column as an array of bool, int64, double, timestamp[us], large_string, or large lists of double or text.

    Nothing, NaN, and text that stands for nothing are null.
    """
    import pyarrow as pa
    from pyarrow import compute, types

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if types.is_boolean(kind):
        return values
    if types.is_integer(kind) and not types.is_uint64(kind):
        return values.cast(pa.int64())
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = values.cast(pa.float64())
        return compute.if_else(compute.is_nan(numbers), None, numbers)
    if types.is_date(kind) or types.is_timestamp(kind):
        return values.cast(pa.timestamp("us"), safe=False)
    if types.is_time(kind):
        return values.cast(pa.time64("us"), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = kind.value_type
        numeric = types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)
        return values.cast(pa.large_list(pa.float64() if numeric else pa.large_string()))
    if types.is_null(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        words = compute.utf8_trim_whitespace(values.cast(pa.large_string()))
        return compute.if_else(compute.is_in(words, pa.array(MISSING, pa.large_string())), None, words)
    raise UnreadableError(0, "a column of another type", f"type {kind}")


def shown(values: Any, row: int) -> str:
    """A cell for a message."""
    value = values[row].as_py()
    return shorten(value) if isinstance(value, str) else str(value)[:60]


def texts(values: Any) -> Any:
    """A plain column as text, one text for one number: 1.0 is 1."""
    import pyarrow as pa
    from pyarrow import compute

    if str(values.type) != "large_string":
        return values.cast(pa.large_string())
    return compute.replace_substring_regex(values, r"^(-?\d+)\.0+$", r"\1") if _has_digits(values) else values


def _has_digits(values: Any) -> bool:
    """Whether any text begins with a digit, a sign or a point: else it needs no search for numbers and times."""
    _, offsets, data = values.buffers()
    starts = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1] if len(values) else [0]
    first = np.frombuffer(data or b"", np.uint8)[starts[:-1][np.diff(starts) > 0]] if len(values) else starts
    return bool(np.isin(first, np.frombuffer(b"0123456789+-.", np.uint8)).any())


def numbers(values: Any) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """A plain column as numbers ``[n]``, NaN where there is none; and a mask ``[n]`` of what is no finite one."""
    import pyarrow as pa
    from pyarrow import compute, types

    known = values.is_valid().to_numpy(zero_copy_only=False)
    if types.is_large_string(values.type):
        if not _has_digits(values):
            return np.full(len(values), np.nan, np.float32), known
        digits = compute.if_else(compute.match_substring_regex(values, _NUMBER), values, None)
        values = compute.utf8_ltrim(digits, characters="+")
    elif not types.is_boolean(values.type) and not types.is_integer(values.type) and not types.is_floating(values.type):
        return np.full(len(values), np.nan, np.float32), known
    with np.errstate(over="ignore", invalid="ignore"):
        found = values.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float32)
    good = np.isfinite(found)
    return np.where(good, found, np.float32(np.nan)), known & ~good


def truths(values: Any) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """A plain column as 0 and 1 ``[n]``, NaN where there is neither; and a mask ``[n]`` of what is no boolean."""
    import pyarrow as pa
    from pyarrow import compute

    values = pa.array(values, pa.large_string()) if isinstance(values, list) else values
    words = pa.array([word for pair in PAIRS for word in pair], pa.large_string())
    at = compute.index_in(compute.utf8_lower(texts(values)), words).to_numpy(zero_copy_only=False).astype(np.float32)
    return at % 2, values.is_valid().to_numpy(zero_copy_only=False) & np.isnan(at)


def times(values: Any) -> tuple[Any, NDArray[np.bool_]]:
    """A plain column as timestamp[us], of text as ISO 8601 writes it; and a mask ``[n]`` of what is none."""
    import pyarrow as pa
    from pyarrow import compute, types

    known, when = values.is_valid().to_numpy(zero_copy_only=False), pa.timestamp("us")
    if types.is_timestamp(values.type):
        return values, known & False
    if not types.is_large_string(values.type) or not _has_digits(values):
        return pa.nulls(len(values), when), known
    written = compute.if_else(compute.match_substring_regex(values, _TIME), values, None)
    clock = compute.replace_substring_regex(written, r"^(\d\d:)", r"1970-01-01 \1")
    zoned = compute.match_substring_regex(clock, _ZONE)
    try:
        local = compute.if_else(zoned, None, clock).cast(when)
        instants = compute.if_else(zoned, clock, None).cast(pa.timestamp("us", "UTC")).cast(when)
        found = compute.coalesce(local, instants)
    except pa.ArrowInvalid:  # a day such as 2013-02-30: they are looked for one by one
        found = pa.concat_arrays([_time(value, when) for value in clock])
    return found, known & ~found.is_valid().to_numpy(zero_copy_only=False)


def _time(value: Any, when: Any) -> Any:
    import pyarrow as pa

    word = pa.array([value.as_py()], pa.large_string())
    for kind in (when, pa.timestamp("us", "UTC")):
        try:
            return word.cast(kind).cast(when)
        except pa.ArrowInvalid:
            continue
    return pa.nulls(1, when)


def days(values: Any) -> NDArray[np.float64]:
    """Days ``[n]`` since 2000 of timestamps that are there."""
    import pyarrow as pa

    moments: NDArray[np.float64] = values.cast(pa.int64()).to_numpy() / _DAY - 10_957
    return moments


_ASCII = bytes(ord(char.lower()) if char.isalnum() else 32 for char in map(chr, range(128))) + bytes(128)


def word_lists(values: Any) -> Any:
    """The words of each cell: lower case, letters and digits; of lists their entries."""
    import pyarrow as pa
    from pyarrow import compute, types

    if types.is_large_list(values.type):
        return values.cast(pa.large_list(pa.large_string()))
    values = texts(values)
    if values.offset or not compute.all(compute.string_is_ascii(values), min_count=0).as_py():
        small = compute.replace_substring_regex(compute.utf8_lower(values), r"[^\pL\pN]+", " ")
    else:  # the same, byte by byte, in a fraction of the time
        valid, offsets, data = values.buffers()
        letters = pa.py_buffer(data.to_pybytes().translate(_ASCII) if data else b"")
        small = pa.Array.from_buffers(values.type, len(values), [valid, offsets, letters])
    return compute.split_pattern(small, " ")


def hashed(lists: Any) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """The row ``[w]`` and a hash ``[w]`` (BLAKE2b) of every word of lists; each word is hashed once."""
    from pyarrow import compute

    lengths = compute.fill_null(compute.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    found = compute.fill_null(lists.flatten(), "").dictionary_encode()
    numbers = np.fromiter(map(_hash, found.dictionary.to_pylist()), np.uint32, len(found.dictionary))
    codes = found.indices.to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    if (empty := found.dictionary.index("").as_py()) < 0:
        return rows, numbers[codes]
    there = codes != empty
    return rows[there], numbers[codes[there]]


@lru_cache(1 << 18)
def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "little")
