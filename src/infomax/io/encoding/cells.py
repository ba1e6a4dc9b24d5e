"""Cells of a table, of any type of Arrow, as numbers, times and words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.times import UNKNOWN
from infomax.errors import shorten
from infomax.io.encoding.written_dates import DateOrder, as_iso, may_be_dates

_PANDAS = (
    "#N/A",
    "#NA",
    "N/A",
    "NA",
    "n/a",
    "<NA>",
    "NULL",
    "Null",
    "null",
    "NaN",
    "nan",
    "-nan",
    "NaT",
    "None",
)
MISSING = ("", *_PANDAS, "\\N")
"""Text that stands for nothing, as pandas, R and databases write it."""
PAIRS = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("0", "1"))
"""What a boolean may be, in any case: no and yes."""
LARGEST = float(np.finfo(np.float32).max) * (1 + 2.0**-25)
"""Numbers from this on are infinite as float32."""
READABLE = "text, numbers, booleans, dates, times or lists"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_INFINITE = r"(?i)^[+-]?inf(inity)?$"
_TIME = (
    r"^(\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?|(19|20)\d\d-(0\d|1[0-2])|"
    r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?)$"
)
_ZONE = r":\d\d.*(Z|[+-]\d\d:?\d\d)$"
_DAY = 86_400_000_000


class UnreadableError(ValueError):
    """A cell, by its row, that is not what its column holds; and a mask ``[n]`` of all such rows, if it is not all."""

    def __init__(
        self, row: int, expected: str, found: str, bad: NDArray[np.bool_] | None = None
    ) -> None:
        super().__init__(row, expected, found)
        self.row, self.column, self.expected, self.found, self.bad = row, "", expected, found, bad


def is_list(kind: Any) -> bool:
    """Whether a type of pyarrow is that of lists."""
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def plain(values: Any) -> Any:
    """A column as an array of one of few types of pyarrow.

    These are bool, int64, double, timestamp[us], large_string, and large lists of double or text.
    Nothing, NaN, and text that stands for nothing are null.
    """
    import pyarrow as pa
    from pyarrow import compute, types

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    data_type = values.type

    # Numbers
    if types.is_boolean(data_type):
        return values
    if types.is_integer(data_type) and not types.is_uint64(data_type):
        return values.cast(pa.int64())
    if types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type):
        numbers = values.cast(pa.float64())
        return compute.if_else(compute.is_nan(numbers), None, numbers)

    # Times; a duration is a number of seconds, and an hour is one of the first day of 1970.
    if types.is_duration(data_type):
        microseconds = values.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return compute.divide(microseconds.cast(pa.float64()), 1e6)
    if types.is_date(data_type) or types.is_timestamp(data_type):
        return values.cast(pa.timestamp("us"), safe=False)
    if types.is_time(data_type):
        return values.cast(pa.time64("us"), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))

    if is_list(data_type):
        return _plain_lists(values)
    if _is_text(data_type):
        trimmed = compute.utf8_trim_whitespace(values.cast(pa.large_string()))
        is_missing = compute.is_in(trimmed, pa.array(MISSING, pa.large_string()))
        return compute.if_else(is_missing, None, trimmed) if is_missing.true_count else trimmed
    raise UnreadableError(0, READABLE, f"type {data_type}")


def _is_text(data_type: Any) -> bool:
    """Whether a type of pyarrow is text; a column without any value may be text as well."""
    from pyarrow import types

    tests = (types.is_null, types.is_string, types.is_large_string, types.is_string_view)
    return any(test(data_type) for test in tests)


def _plain_lists(values: Any) -> Any:
    """Lists of numbers or of text; a list without any number is nothing."""
    import pyarrow as pa
    from pyarrow import compute, types

    entry_type = values.type.value_type
    if types.is_nested(entry_type):
        raise UnreadableError(0, READABLE, f"type {values.type}")
    tests = (types.is_integer, types.is_floating, types.is_boolean)
    if not any(test(entry_type) for test in tests):
        return values.cast(pa.large_list(pa.large_string()))
    is_empty = compute.equal(compute.list_value_length(values), 0)
    return compute.if_else(is_empty, None, values).cast(pa.large_list(pa.float64()))


def single(values: Any, expected: str) -> Any:
    """A column of single values as it is; `UnreadableError` at the first list, if there is one."""
    import pyarrow as pa

    if not is_list(values.type):
        return values
    lists = plain(values)
    is_present = lists.is_valid().to_numpy(zero_copy_only=False)
    if is_present.any():
        row = int(np.argmax(is_present))
        raise UnreadableError(row, expected, shown(lists, row))
    return pa.nulls(len(values))


def distinct(values: Any, repeated: bool = True) -> tuple[Any, Any]:
    """The different cells of a column, plain, as they appear, and which of them each row has.

    Args:
        values: a column of pyarrow.
        repeated: whether cells are repeated. Where they are not, each counts as another.

    Returns:
        the different cells ``[k]``, and the position ``[n]`` of that of each row, null for none
    """
    import pyarrow as pa
    from pyarrow import types

    if not repeated:
        cells = plain(values)
        is_present = cells.is_valid().to_numpy(zero_copy_only=False)
        return cells.drop_null(), pa.array(np.cumsum(is_present) - 1, mask=~is_present)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not types.is_string(values.type) and not types.is_large_string(values.type):
        encoded = plain(values).dictionary_encode()
        return encoded.dictionary, encoded.indices

    # Of text, white space is removed from the different cells alone. Two may become one then.
    encoded = values.dictionary_encode()
    written = encoded.dictionary.cast(pa.large_string())
    texts_without_space = plain(written)
    if texts_without_space.equals(written):
        return texts_without_space, encoded.indices
    merged = texts_without_space.dictionary_encode()
    return merged.dictionary, merged.indices.take(encoded.indices)


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
    if not compute.match_substring(values, ".0").true_count:
        return values
    return compute.replace_substring_regex(values, r"^(-?\d+)\.0+$", r"\1")


def utf8(values: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each text begins and the last one ends ``[n + 1]`` among the bytes, and their bytes."""
    _, offsets, data = values.buffers()
    starts = (
        np.frombuffer(offsets, np.int64)[values.offset :] if len(values) else np.zeros(1, np.int64)
    )
    starts = starts[: len(values) + 1]
    return starts - starts[0] if starts[0] else starts, np.frombuffer(data or b"", np.uint8)[
        starts[0] : starts[-1]
    ]


def matched(values: Any, pattern: str) -> NDArray[np.bool_]:
    """Which cells ``[n]`` of a plain column are text in which a regular expression is found."""
    from pyarrow import compute

    if str(values.type) != "large_string":
        return np.zeros(len(values), bool)
    matches = compute.match_substring_regex(values, pattern).fill_null(False)
    return np.asarray(matches.to_numpy(zero_copy_only=False))


def are_padded(values: Any) -> bool:
    """Whether a column, if it is text, has a cell that begins with a zero and another digit."""
    import pyarrow as pa
    from pyarrow import types

    if not types.is_large_string(values.type) and not types.is_string(values.type):
        return False
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    starts, letters = utf8(values.cast("large_string"))
    begins = starts[:-1][np.diff(starts) > 1]
    second = letters[begins + 1]
    return bool(((letters[begins] == ord("0")) & (second >= ord("0")) & (second <= ord("9"))).any())


def wordy(values: Any) -> bool:
    """Whether a plain column is text that never begins as numbers and times do."""
    if str(values.type) != "large_string" or matched(values, r"^[0-9+.-]").any():
        return False
    return not may_be_dates(values)


def numbers(values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A plain column as numbers that float32 can hold.

    Returns:
        the numbers ``[n]``, NaN where there is none, and a mask ``[n]`` of cells that are no numbers
    """
    import pyarrow as pa
    from pyarrow import compute, types

    is_present = values.is_valid().to_numpy(zero_copy_only=False)
    no_numbers = np.full(len(values), np.nan), is_present
    if types.is_large_string(values.type):
        if wordy(values):
            return no_numbers
        try:
            values = values.cast(pa.float64())
        except pa.ArrowInvalid:  # some are no numbers, or not as pyarrow reads them
            is_number = compute.match_substring_regex(values, _NUMBER)
            if not is_number.true_count:
                return no_numbers
            written = compute.if_else(is_number, values, None)
            values = compute.utf8_ltrim(written, characters="+")
    elif not any(
        test(values.type) for test in (types.is_boolean, types.is_integer, types.is_floating)
    ):
        return no_numbers
    all_numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    is_small = np.abs(all_numbers) <= LARGEST
    return np.where(is_small, all_numbers, np.nan), is_present & ~is_small


def written_as_numbers(values: Any) -> NDArray[np.bool_]:
    """Which cells ``[n]`` of a plain column are numbers, though float32 may not hold them."""
    from pyarrow import types

    if types.is_large_string(values.type):
        return matched(values, _NUMBER) | matched(values, _INFINITE)
    is_number = types.is_integer(values.type) or types.is_floating(values.type)
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False) & is_number)


def truths(values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A plain column, or a list of text, as 0 and 1.

    Returns:
        the numbers ``[n]``, NaN where there is neither, and a mask ``[n]`` of cells that are no booleans
    """
    import pyarrow as pa
    from pyarrow import compute, types

    if isinstance(values, list):
        values = pa.array(values, pa.large_string())
    elif types.is_boolean(values.type):
        return numbers(values)
    pairs = pa.array([text for pair in PAIRS for text in pair], pa.large_string())
    positions = compute.index_in(compute.utf8_lower(texts(values)), pairs)
    positions = positions.to_numpy(zero_copy_only=False).astype(np.float64)
    is_present = values.is_valid().to_numpy(zero_copy_only=False)
    return positions % 2, is_present & np.isnan(positions)


def times(values: Any, order: DateOrder = "") -> tuple[Any, NDArray[np.bool_]]:
    """A plain column as timestamp[us], of text as `as_iso` reads it; and a mask ``[n]`` of what is none."""
    import pyarrow as pa
    from pyarrow import compute, types

    known, when = values.is_valid().to_numpy(zero_copy_only=False), pa.timestamp("us")
    if types.is_timestamp(values.type):
        return values, known & False
    if not types.is_large_string(values.type) or wordy(values):
        return pa.nulls(len(values), when), known
    values = as_iso(values, order)
    lengths = np.diff(utf8(values)[0])
    if (
        (lengths == 10) | (lengths > 15) | ~known
    ).all():  # pyarrow reads an hour alone as well, 2013-05-27 08
        with suppress(pa.ArrowInvalid):
            return values.cast(when), known & False
    written = compute.match_substring_regex(values, _TIME)
    if not written.true_count:
        return pa.nulls(len(values), when), known
    clock = compute.replace_substring_regex(
        compute.if_else(written, values, None), r"^(\d\d:)", r"1970-01-01 \1"
    )
    clock = compute.replace_substring_regex(clock, r"(\.\d{6})\d+", r"\1")
    clock = compute.replace_substring_regex(clock, r"^(\d{4}-\d\d)$", r"\1-01")
    zoned = compute.match_substring_regex(clock, _ZONE)
    try:
        local = compute.if_else(zoned, None, clock).cast(when)
        instants = compute.if_else(zoned, clock, None).cast(pa.timestamp("us", "UTC")).cast(when)
        found = compute.coalesce(local, instants)
    except pa.ArrowInvalid:  # a day such as 2013-02-30: they are looked for one by one
        found = pa.concat_arrays([_time(value, when) for value in clock])
    return found, known & ~found.is_valid().to_numpy(zero_copy_only=False)


def moments(values: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """A plain column as times ``[n]`` in microseconds since 1970, `UNKNOWN` for none; and a mask ``[n]`` of others."""
    when, bad = times(values)
    bad |= matched(values, r"^\d\d:")  # an hour alone is no time
    return when.cast("int64").fill_null(UNKNOWN).to_numpy(zero_copy_only=False), bad


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


def hours(values: Any) -> NDArray[np.float64]:
    """The part ``[n]`` of the day that has passed, of timestamps that are there."""
    at = days(values)
    return at - np.floor(at)


def offsets(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Where each of n spans of these lengths ``[n]`` begins, and where the last one ends, ``[n + 1]``."""
    return np.concatenate([[0], np.cumsum(lengths)])


def lists(values: Any, width: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A plain column as lists of numbers of one length.

    Returns:
        the numbers ``[n, W]``, NaN where there is no list, and a mask ``[n]`` of other cells
    """
    from pyarrow import compute, types

    is_present = values.is_valid().to_numpy(zero_copy_only=False)
    entries = np.full((len(values), width), np.nan)
    if not types.is_large_list(values.type) or types.is_large_string(values.type.value_type):
        return entries, is_present
    lengths = compute.fill_null(compute.list_value_length(values), -1)
    has_width = lengths.to_numpy(zero_copy_only=False) == width
    lists_of_width = values.filter(has_width).flatten().to_numpy(zero_copy_only=False)
    entries[has_width] = lists_of_width.reshape(-1, width)

    # A list with a number that float32 cannot hold is none.
    is_good = has_width.copy()
    is_good[has_width] = (np.abs(entries[has_width]) <= LARGEST).all(axis=1)
    entries[~is_good] = np.nan
    return entries, is_present & ~is_good
