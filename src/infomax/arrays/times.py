"""Times of rows: microseconds since 1970-01-01 UTC as int64, and the words that people write for them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, number_of, shorten

UNKNOWN = int(np.iinfo(np.int64).min)
"""The time of a row that has none: it is always there. numpy's NaT is the same number."""
DAY = 86_400_000_000
WRITTEN = "a day or a time such as 2010-12-31 or 2010-12-31 18:30"
FOREVER = "forever"
HALF_LIVES = ("60d", "365d", FOREVER)
"""Half-lives of the weights of events, unless others are named; ``forever``: all events weigh the same; ``latest``:
those of the last time alone count."""
_ENDS = {"latest": 0.0, FOREVER: float("inf")}
_UNITS = {"h": 1 / 24, "d": 1, "w": 7, "y": 365.25}


def check_times(times: Any, n: int) -> NDArray[np.int64]:
    """Times ``[N]`` of integers (microseconds) or of numpy's dates."""
    found = np.asarray(times)
    if found.dtype.kind == "M":
        found = found.astype("datetime64[us]").astype(np.int64)
    if found.shape != (n,) or found.dtype.kind not in "iu":
        expected = f"{number_of(n, 'time')}, dates of numpy or microseconds since 1970"
        raise InputError("times", expected, f"{found.dtype} of shape {list(found.shape)}")
    return found.astype(np.int64, copy=False)


def parse_time(word: Any, where: str = "time") -> int:
    """The microseconds of a day or a time, in UTC unless it says otherwise; a day is its first moment."""
    if isinstance(word, int | np.integer) and not isinstance(word, bool):
        return int(word)
    text = word.isoformat() if hasattr(word, "isoformat") else str(word)
    try:
        if not re.match(r"\d{4}-\d\d-\d\d", text):
            raise ValueError(text)
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(where, WRITTEN, shorten(text)) from None
    found = found.replace(tzinfo=found.tzinfo or datetime.UTC)
    return (found - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(
        microseconds=1
    )


def told_time(time: int) -> str:
    """A time as people write it, without the hour at midnight."""
    text = str(np.datetime64(int(time), "us")).replace("T", " ")
    return text.removesuffix(".000000").removesuffix(" 00:00:00")


def iso_times(times: NDArray[np.int64]) -> NDArray[Any]:
    """Times ``[N]`` as text ``[N]`` of ISO 8601, "" where they are unknown."""
    words = times.astype("datetime64[us]").astype(str).astype(object)
    words[times == UNKNOWN] = ""
    return words


def parse_half_lives(words: str | Sequence[str], where: str = "half_life") -> dict[str, float]:
    """Half-lives in days by how they were written: ``60d``, ``12h``, ``2w``, ``1y``, ``latest`` (0) or ``forever``."""
    expected = "half-lives such as 60d, 12h, 2w, 1y, latest or forever"
    parts = words.split(",") if isinstance(words, str) else words
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise InputError(where, expected, shorten(str(words)))
    found: dict[str, float] = {}
    for word in parts:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([hdwy])", word.strip())
        if word.strip() not in _ENDS and (match is None or not float(match[1])):
            raise InputError(where, expected, shorten(word))
        found[word.strip()] = (
            _ENDS[word.strip()] if match is None else float(match[1]) * _UNITS[match[2]]
        )
    return found
