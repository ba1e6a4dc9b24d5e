"""Cells of a table as dates and times: of any type of Arrow, and as people write them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.times import UNKNOWN_TIME
from infomax.io.encoding.cells import as_numpy, is_present, matched, utf8, with_gaps

DateOrder = Literal["", "day", "month"]
"""What a date of numbers alone begins with; "" where such dates are not read."""
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"({'|'.join(MONTHS)})[a-z]*\.?"
_DAY_NUMBER = r"(0?[1-9]|[12]\d|3[01])"
_MONTH_NUMBER = r"(0?[1-9]|1[0-2])"
_MAY_BE_DATE = r"(?i)^(\d{1,2}[-/. ]|\d{1,2}[a-z]{3}|[a-z]{3,9}\.? \d{1,2},? \d{4})"
_NAMED_MONTH = rf"(?i)^{_DAY_NUMBER}[-/. ]?{_MONTH},?[-/. ]?(\d{{4}})\b"
_NAMED_MONTH_FIRST = rf"(?i)^{_MONTH} {_DAY_NUMBER},? (\d{{4}})\b"
_DAY_FIRST = rf"^{_DAY_NUMBER}[-/.]{_MONTH_NUMBER}[-/.](\d{{4}})\b"
_MONTH_FIRST = rf"^{_MONTH_NUMBER}[-/.]{_DAY_NUMBER}[-/.](\d{{4}})\b"
_NUMBERS_ALONE = r"^\d{1,2}[-/.]\d{1,2}[-/.]\d{4}\b"
_ISO = (
    r"^(\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?"
    r"|(19|20)\d\d-(0\d|1[0-2])|\d\d:\d\d(:\d\d(\.\d{1,9})?)?)$"
)
_ZONE = r":\d\d.*(Z|[+-]\d\d:?\d\d)$"
_MICROSECONDS_PER_DAY = 86_400_000_000
_DAYS_FROM_1970_TO_2000 = 10_957


def read_times(values: Any, order: DateOrder = "") -> tuple[Any, NDArray[np.bool_]]:
    """A plain column as timestamp[us], of text as `as_iso` reads it.

    Returns:
        the timestamps ``[n]``, null for none, and a mask ``[n]`` of cells that are no times
    """
    import pyarrow as pa
    from pyarrow import compute, types

    has_cell = is_present(values)
    timestamp = pa.timestamp("us")
    if types.is_timestamp(values.type):
        return values, np.zeros(len(values), bool)
    if not types.is_large_string(values.type) or are_words_alone(values):
        return pa.nulls(len(values), timestamp), has_cell

    # pyarrow reads an hour alone as well, 2013-05-27 08, which is no time here.
    values = as_iso(values, order)
    lengths = np.diff(utf8(values)[0])
    if ((lengths == 10) | (lengths > 15) | ~has_cell).all():
        with suppress(pa.ArrowInvalid):
            return values.cast(timestamp), np.zeros(len(values), bool)

    is_written_as_time = compute.match_substring_regex(values, _ISO)
    if not is_written_as_time.true_count:
        return pa.nulls(len(values), timestamp), has_cell
    texts = with_gaps(values, compute.invert(is_written_as_time))
    texts = compute.replace_substring_regex(texts, r"^(\d\d:)", r"1970-01-01 \1")
    texts = compute.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
    texts = compute.replace_substring_regex(texts, r"^(\d{4}-\d\d)$", r"\1-01")
    has_zone = compute.match_substring_regex(texts, _ZONE)
    try:
        local = with_gaps(texts, has_zone).cast(timestamp)
        zoned = with_gaps(texts, compute.invert(has_zone)).cast(pa.timestamp("us", "UTC"))
        times = compute.coalesce(local, zoned.cast(timestamp))
    except pa.ArrowInvalid:  # a day such as 2013-02-30: each cell is read by itself
        times = pa.concat_arrays([_read_time(texts[row : row + 1]) for row in range(len(texts))])
    return times, has_cell & ~is_present(times)


def _read_time(text: Any) -> Any:
    """An array of one text as an array of one timestamp, null where it is none."""
    import pyarrow as pa

    timestamp = pa.timestamp("us")
    for data_type in (timestamp, pa.timestamp("us", "UTC")):
        with suppress(pa.ArrowInvalid):
            return text.cast(data_type).cast(timestamp)
    return pa.nulls(1, timestamp)


def read_instants(values: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """A plain column as times in microseconds since 1970.

    Returns:
        the times ``[n]``, `UNKNOWN_TIME` for none, and a mask ``[n]`` of cells that are no times
    """
    times, is_other = read_times(values)
    is_other |= matched(values, r"^\d\d:")  # an hour without a day
    return as_numpy(times.cast("int64"), null=UNKNOWN_TIME).copy(), is_other


def days_since_2000(times: Any) -> NDArray[np.float64]:
    """Days ``[n]`` of timestamps without null."""
    import pyarrow as pa

    microseconds = as_numpy(times.cast(pa.int64()))
    return microseconds / _MICROSECONDS_PER_DAY - _DAYS_FROM_1970_TO_2000


def passed_share_of_day(times: Any) -> NDArray[np.float64]:
    """How much ``[n]`` of the day has passed, from 0 to 1, of timestamps without null."""
    days = days_since_2000(times)
    return days - np.floor(days)


def are_words_alone(values: Any) -> bool:
    """Whether a plain column is text that never begins as numbers and times do."""
    if str(values.type) != "large_string" or matched(values, r"^[0-9+.-]").any():
        return False
    return not may_be_dates(values)


def may_be_dates(values: Any) -> bool:
    """Whether a plain column of text has cells that may begin with a day or a month."""
    return bool(matched(values, _MAY_BE_DATE).any())


def are_numbers_alone(values: Any) -> NDArray[np.bool_]:
    """Which cells ``[n]`` of a plain column of text are dates of numbers, such as 31/12/1999."""
    return matched(values, _NUMBERS_ALONE)


def as_iso(values: Any, order: DateOrder = "") -> Any:
    """A plain column of text with dates in the form of ISO 8601; all other cells as they are.

    A date of numbers alone, such as 03/04/2020, is read only where its ``order`` is known.
    """
    from pyarrow import compute

    if not may_be_dates(values):
        return values
    values = compute.replace_substring_regex(values, _NAMED_MONTH, r"\3-\2-\1")
    values = compute.replace_substring_regex(values, _NAMED_MONTH_FIRST, r"\3-\1-\2")
    for number, month in enumerate(MONTHS, 1):
        pattern = rf"(?i)^(\d{{4}})-{month}-"
        values = compute.replace_substring_regex(values, pattern, rf"\1-{number:02}-")
    if order == "day":
        values = compute.replace_substring_regex(values, _DAY_FIRST, r"\3-\2-\1")
    if order == "month":
        values = compute.replace_substring_regex(values, _MONTH_FIRST, r"\3-\1-\2")

    # Days and months of one digit have two in ISO 8601.
    values = compute.replace_substring_regex(values, r"^(\d{4})-(\d)-", r"\1-0\2-")
    return compute.replace_substring_regex(values, r"^(\d{4}-\d\d)-(\d)\b", r"\1-0\2")
