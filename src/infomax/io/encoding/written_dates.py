"""Dates as people write them, 01-Jan-1977 and 31/12/1999, in the form of ISO 8601."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

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


def may_be_dates(values: Any) -> bool:
    """Whether a plain column of text has cells that may be dates that begin with a day or a month."""
    from pyarrow import compute

    return bool(compute.any(compute.match_substring_regex(values, _MAY_BE_DATE)).as_py())


def are_numbers_alone(values: Any) -> NDArray[np.bool_]:
    """Which cells ``[n]`` of a plain column of text are dates of numbers alone, such as 31/12/1999."""
    from pyarrow import compute

    matches = compute.match_substring_regex(values, _NUMBERS_ALONE).fill_null(False)
    return np.asarray(matches.to_numpy(zero_copy_only=False))


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
