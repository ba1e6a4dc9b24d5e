"""Times of rows, as int64 microseconds since 1970-01-01 UTC, and how people write them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, format_count, shorten

UNKNOWN_TIME = int(np.iinfo(np.int64).min)
"""The time of a row that has none: it is always there. numpy's NaT is the same number."""
DAY_IN_MICROSECONDS = 86_400_000_000
WRITTEN = "a day or a time such as 2010-12-31 or 2010-12-31 18:30"
FOREVER = "forever"
HALF_LIVES = ("60d", "365d", FOREVER)
"""Half-lives of the weights of events, unless others are named.

With ``forever`` all events weigh the same; with ``latest`` those of the last time alone count.
"""
_DAYS_BY_NAME = {"latest": 0.0, FOREVER: float("inf")}
_DAYS_PER_UNIT = {"h": 1 / 24, "d": 1, "w": 7, "y": 365.25}


def check_times(times: Any, n: int) -> NDArray[np.int64]:
    """Times ``[N]`` of integers (microseconds) or of numpy's dates."""
    microseconds = np.asarray(times)
    if microseconds.dtype.kind == "M":
        microseconds = microseconds.astype("datetime64[us]").astype(np.int64)
    if microseconds.shape != (n,) or microseconds.dtype.kind not in "iu":
        expected = f"{format_count(n, 'time')}, dates of numpy or microseconds since 1970"
        found = f"{microseconds.dtype} of shape {list(microseconds.shape)}"
        raise InputError("times", expected, found)
    return microseconds.astype(np.int64, copy=False)


def parse_time(time: Any, where: str = "time") -> int:
    """The microseconds of a time, in UTC unless it says otherwise; a day is its first moment."""
    if isinstance(time, int | np.integer) and not isinstance(time, bool):
        return int(time)
    text = time.isoformat() if hasattr(time, "isoformat") else str(time)
    try:
        # `fromisoformat` also reads weeks, and days without hyphens, which may be other numbers.
        if not re.match(r"\d{4}-\d\d-\d\d", text):
            raise ValueError(text)
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(where, WRITTEN, shorten(text)) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    since_1970 = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return since_1970 // datetime.timedelta(microseconds=1)


def format_time(time: int) -> str:
    """A time as people write it, without the hour at midnight."""
    text = str(np.datetime64(int(time), "us")).replace("T", " ")
    return text.removesuffix(".000000").removesuffix(" 00:00:00")


def iso_times(times: NDArray[np.int64]) -> NDArray[Any]:
    """Times ``[N]`` as text ``[N]`` of ISO 8601, "" where they are unknown."""
    texts = times.astype("datetime64[us]").astype(str).astype(object)
    texts[times == UNKNOWN_TIME] = ""
    return texts


def parse_half_lives(half_lives: str | Sequence[str], where: str = "half_life") -> dict[str, float]:
    """Half-lives in days, by how they were written.

    Args:
        half_lives: such as ``60d``, ``12h``, ``2w``, ``1y``, ``latest`` (0) or ``forever``.
        where: what a message names.
    """
    expected = "half-lives such as 60d, 12h, 2w, 1y, latest or forever"
    texts = half_lives.split(",") if isinstance(half_lives, str) else half_lives
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise InputError(where, expected, shorten(str(half_lives)))
    days_by_name: dict[str, float] = {}
    for text in texts:
        name = text.strip()
        if name in _DAYS_BY_NAME:
            days_by_name[name] = _DAYS_BY_NAME[name]
            continue
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([hdwy])", name)
        if match is None or float(match[1]) == 0:
            raise InputError(where, expected, shorten(text))
        days_by_name[name] = float(match[1]) * _DAYS_PER_UNIT[match[2]]
    return days_by_name
