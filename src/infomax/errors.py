"""The one exception a user's mistake raises: what, where, expected, found, what to do."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """A mistake in what was handed in, told to the person who made it.

    The message reads ``WHERE: expected EXPECTED, found FOUND. REMEDY``; the command line prints it and exits with 2.
    """

    def __init__(self, where: str, expected: str, found: str, remedy: str = "") -> None:
        super().__init__(where, expected, found, remedy)  # all of them: pickle and copy make it anew from these
        self.where, self.expected, self.found, self.remedy = where, expected, found, remedy

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, found {self.found}." + (
            f" {self.remedy}" if self.remedy else ""
        )


def place(path: str | Path, line: int | None = None, column: str | int | None = None) -> str:
    """``edges.csv, line 3, column "weight"``."""
    parts = [str(path)]
    if line is not None:
        parts.append(f"line {line}")
    if column is not None:
        parts.append(f'column "{column}"' if isinstance(column, str) else f"column {column}")
    return ", ".join(parts)


def shorten(value: object, width: int = 60) -> str:
    """The value as the user wrote it, in quotes, cut to a readable length."""
    text = str(value)
    return f'"{text[: width - 1]}…"' if len(text) > width else f'"{text}"'


def whole(name: str, value: Any, least: int) -> int:
    """The value as a plain int; refused unless it is a whole number, from the least on."""
    if not isinstance(value, Integral) or int(value) < least:
        raise InputError(name, f"a whole number from {least}", repr(value))
    return int(value)
