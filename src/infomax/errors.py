"""The exception for a mistake in the input: where it is, what was expected, what was found, what to do."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import Any

# Control characters, line separators, marks of writing direction, lone surrogates and what XML does not allow.
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


class InputError(ValueError):
    """A mistake in the input, reported to the person who made it.

    The message reads ``WHERE: expected EXPECTED, found FOUND. REMEDY``; the command line prints it and exits with 2.

    Args:
        where: the file, line and column, or the argument.
        expected: what should be there.
        found: what is there.
        remedy: what to do, in sentences.
    """

    def __init__(self, where: str, expected: str, found: str, remedy: str = "") -> None:
        super().__init__(
            where, expected, found, remedy
        )  # all of them: pickle and copy rebuild the error from these
        self.where, self.expected, self.found, self.remedy = where, expected, found, remedy

    def __str__(self) -> str:
        remedy = f" {self.remedy}" if self.remedy else ""
        return visible(f"{self.where}: expected {self.expected}, found {self.found}.{remedy}")


class SeveralNodesError(InputError):
    """A name that several nodes have."""


class TooFewEdgesError(InputError):
    """A graph, or one of its types of nodes, has too few edges to score vectors on."""


@contextmanager
def within(where: object) -> Iterator[None]:
    """Put ``where`` before the place that an InputError raised in this context names, unless it begins with it."""
    try:
        yield
    except InputError as error:
        full = error.where if error.where.startswith(str(where)) else f"{where}, {error.where}"
        raise InputError(full, error.expected, error.found, error.remedy) from error


@contextmanager
def readable(
    path: Path, expected: str = "a parquet file that can be read", remedy: str = ""
) -> Iterator[None]:
    """Raise an InputError for what a library, or a conversion after it, cannot do with a file."""
    try:
        yield
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(
            str(path), "text in UTF-8", "other bytes", remedy or "Write the file again, in UTF-8."
        ) from None
    except Exception as error:  # a damaged file makes pyarrow, numpy, scipy, zipfile and json raise almost anything
        told = (
            ": ".join(map(str, error.args[::-1]))
            if all(isinstance(one, str) for one in error.args)
            else str(error)
        )
        reason = (told.splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(str(path), expected, reason, remedy) from error


class InputWarning(UserWarning):
    """Something in the input that works, but hardly as its author meant."""


def warn(message: str) -> None:
    """Give an `InputWarning` at the line that called this library, which its author knows, and not at one within."""
    frame, level = sys._getframe(1), 2
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] == __package__
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, InputWarning, stacklevel=level)


def visible(text: str) -> str:
    """The text with escapes such as ``\\x1b`` for characters that would act on a terminal or break an SVG file."""
    return _INVISIBLE.sub(lambda found: repr(found[0])[1:-1], text)


def format_location(path: str | Path, line: int = 0, column: str = "") -> str:
    """``edges.csv, line 3, column "weight"``; without what is not given."""
    return (
        str(path) + (f", line {line}" if line else "") + (f', column "{column}"' if column else "")
    )


def shorten(value: object, width: int = 60) -> str:
    """The value in quotes, cut to a readable length."""
    text = str(value)
    return f'"{text[: width - 1]}…"' if len(text) > width else f'"{text}"'


def one_line(error: Exception) -> str:
    """What an error of another library says, in one line."""
    return " ".join(str(error).split()).rstrip(".")


def in_words(error: Exception) -> str:
    """The message of an error of torch's in one line."""
    return f"others ({one_line(error)})"


def other_extension(path: Path, known: Iterable[str], remedy: str = "") -> InputError:
    """The error for a file that has none of the known extensions."""
    return InputError(
        str(path), f"one of {', '.join(known)}", f"the extension {shorten(path.suffix)}", remedy
    )


def format_count(count: int, what: str) -> str:
    """``1 node``, ``1,024 nodes``."""
    return (
        f"{count:,} {what}"
        if count == 1
        else f"{count:,} {what}{'es' if what.endswith('s') else 's'}"
    )


def suggest(word: object, known: Iterable[str], most: int = 3) -> str:
    """``Did you mean "weight"?``, of what is known and similar, in any case; "" where nothing is."""
    from difflib import get_close_matches

    spelling = {one.lower(): one for one in known}
    similar = [spelling[one] for one in get_close_matches(str(word).lower(), spelling, n=most)]
    return f"Did you mean {' or '.join(map(shorten, similar))}?" if similar else ""


def library(name: str, extra: str, where: str, use: str = "", otherwise: str = "") -> Any:
    """A module of a library that one of the extras brings; where it is missing, an error says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        expected, remedy = (
            name.split(".")[0] + use,
            f"Install it: pip install 'infomax[{extra}]'.{otherwise}",
        )
        raise InputError(where, expected, "none installed", remedy) from None


def check_whole_number(name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """The value as a plain int; refused unless it is a whole number from ``least`` to ``most``."""
    if not isinstance(value, Integral) or not least <= int(value) <= most:
        large = isinstance(value, Integral) and int(value) > most
        raise InputError(
            name, f"a whole number from {least}{f' to {most}' if large else ''}", repr(value)
        )
    return int(value)
