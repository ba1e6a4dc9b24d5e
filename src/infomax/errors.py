"""The exception for a mistake in the input, and the helpers that word messages.

An `InputError` says where the mistake is, what was expected, what was found and what to do.
"""

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

# Control characters, line separators, marks of writing direction, lone surrogates, and what XML
# does not allow.
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


class InputError(ValueError):
    """A mistake in the input, reported to the person who made it.

    The message reads ``WHERE: expected EXPECTED, found FOUND. REMEDY``; the command line prints it
    and exits with 2.

    Args:
        where: the file, line and column, or the argument.
        expected: what should be there.
        found: what is there.
        remedy: what to do, in sentences.
    """

    def __init__(self, where: str, expected: str, found: str, remedy: str = "") -> None:
        # All four, since pickle and copy rebuild an error from the arguments of Exception.
        super().__init__(where, expected, found, remedy)
        self.where = where
        self.expected = expected
        self.found = found
        self.remedy = remedy

    def __str__(self) -> str:
        remedy = f" {self.remedy}" if self.remedy else ""
        return visible(f"{self.where}: expected {self.expected}, found {self.found}.{remedy}")


class SeveralNodesError(InputError):
    """A name that several nodes have."""


class TooFewEdgesError(InputError):
    """A graph, or a type of its nodes, has too few edges to score vectors on."""


@contextmanager
def within(where: object) -> Iterator[None]:
    """Put ``where`` before the location of an InputError that is raised in this context.

    A location that begins with it already stays as it is.
    """
    try:
        yield
    except InputError as error:
        location = error.where
        if not location.startswith(str(where)):
            location = f"{where}, {location}"
        raise InputError(location, error.expected, error.found, error.remedy) from error


@contextmanager
def readable(
    path: Path, expected: str = "a parquet file that can be read", remedy: str = ""
) -> Iterator[None]:
    """Turn every error that reading a file raises into an InputError.

    Args:
        path: the file, for the message.
        expected: what the file should be.
        remedy: what a person can do.
    """
    try:
        yield
    except InputError:
        raise
    except UnicodeDecodeError:
        encoding_remedy = remedy or "Write the file again, in UTF-8."
        raise InputError(str(path), "text in UTF-8", "other bytes", encoding_remedy) from None
    except Exception as error:
        # A damaged file makes pyarrow, numpy, scipy, zipfile and json raise almost anything. Where
        # all arguments of the error are text, the last one says most.
        message = str(error)
        if all(isinstance(argument, str) for argument in error.args):
            message = ": ".join(error.args[::-1])
        lines = message.splitlines() or [type(error).__name__]
        raise InputError(str(path), expected, lines[0].rstrip("."), remedy) from error


class InputWarning(UserWarning):
    """Something in the input works, but hardly as its author meant."""


def warn(message: str) -> None:
    """Give an `InputWarning` at the line that called this library, which its author knows."""
    frame = sys._getframe(1)
    stack_level = 2
    while frame.f_back is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package != __package__:
            break
        frame = frame.f_back
        stack_level += 1
    warnings.warn(message, InputWarning, stacklevel=stack_level)


def visible(text: str) -> str:
    """The text with escapes such as ``\\x1b`` for characters that act on a terminal or in SVG."""
    return _INVISIBLE.sub(lambda match: repr(match[0])[1:-1], text)


def format_location(path: str | Path, line: int = 0, column: str = "") -> str:
    """``edges.csv, line 3, column "weight"``; line 0 and column "" are left out."""
    location = str(path)
    if line:
        location += f", line {line}"
    if column:
        location += f', column "{column}"'
    return location


def shorten(value: object, width: int = 60) -> str:
    """The value in quotes, cut to a readable length."""
    text = str(value)
    return f'"{text[: width - 1]}…"' if len(text) > width else f'"{text}"'


def one_line(error: Exception) -> str:
    """The message of another library's error, in one line."""
    return " ".join(str(error).split()).rstrip(".")


def in_words(error: Exception) -> str:
    """What an error of torch's found, for an InputError about settings: other settings."""
    return f"others ({one_line(error)})"


def other_extension(path: Path, extensions: Iterable[str], remedy: str = "") -> InputError:
    """The error for a file that has none of the extensions that can be read or written."""
    expected = f"one of {', '.join(extensions)}"
    return InputError(str(path), expected, f"the extension {shorten(path.suffix)}", remedy)


def format_count(count: int, noun: str) -> str:
    """``1 node``, ``1,024 nodes``, ``2 classes``."""
    if count == 1:
        return f"{count:,} {noun}"
    ending = "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


def suggest(text: object, choices: Iterable[str], most: int = 3) -> str:
    """``Did you mean "weight"?``: the choices that are spelled like a text, in any case.

    The suggestion is empty where no choice is similar.
    """
    from difflib import get_close_matches

    spellings = {choice.lower(): choice for choice in choices}
    matches = get_close_matches(str(text).lower(), spellings, n=most)
    if not matches:
        return ""
    similar = [shorten(spellings[match]) for match in matches]
    return f"Did you mean {' or '.join(similar)}?"


def library(name: str, extra: str, where: str, use: str = "", otherwise: str = "") -> Any:
    """Import a module of a library that one of the extras brings.

    Args:
        name: the module.
        extra: the extra of this package that installs it.
        where: the option or the function that needs the library, for the message.
        use: what the library is needed for; it follows its name in the message.
        otherwise: what can be done without the library; it ends the message.
    """
    try:
        return import_module(name)
    except ImportError:
        expected = name.split(".")[0] + use
        remedy = f"Install it: pip install 'infomax[{extra}]'.{otherwise}"
        raise InputError(where, expected, "none installed", remedy) from None


def check_whole_number(name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """The value as a plain int; refused unless it is a whole number from ``least`` to ``most``."""
    expected = f"a whole number from {least}"
    if isinstance(value, Integral):
        if least <= int(value) <= most:
            return int(value)
        if int(value) > most:
            expected += f" to {most}"
    raise InputError(name, expected, repr(value))
