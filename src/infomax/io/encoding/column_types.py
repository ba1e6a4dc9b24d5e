"""What the cells of a column say about its type, and what is wrong about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from infomax.errors import format_count, shorten
from infomax.io.encoding import cells
from infomax.io.encoding.column_statistics import (
    LEAST_ROWS_TO_TELL,
    MANY_WORDS,
    RARE_SHARE,
    ColumnStatistics,
)
from infomax.io.encoding.kinds import EXPECTED, FEATURES

FEW_VALUES = 8
"""Values up to which a column may hold two words, written as true, True, TRUE, ..."""
MOSTLY_SHARE = 0.5
"""The share of numbers, or of dates, from which a note names the cells of a column that are none."""
WRITTEN_AS = {"number": "1200.50", "date": "2025-12-31"}
COMMON_WORDS = 0.6
"""Share of common words from which short texts that all differ are features: 1 of genres, 0.5 of
titles with a year."""
CODE_NOTE = (
    "it looks like an identifier or a code: --column {}; as numbers and dates are read 1200.50 "
    "and 2025-12-31"
)
UNSHARED_NOTE = "hardly two rows share what it holds, so it is no feature; to make features of it: --column {}={}"
OTHER_TYPES_OF_CODES = {"category": ("ignore",), "id": ("category", "text")}
"""What a column that looks like a code may be instead, by what it is; an id is no feature already."""
LABEL_NAMES = {"label", "labels", "target", "outcome"}

Fault: TypeAlias = tuple[str, str, str]
"""Where a cell is wrong, what is expected, and what is found there."""


def guess_column_type(column: ColumnStatistics) -> str:
    """The type of a column by its cells."""
    if not column.present:
        return "ignore"
    if column.holds_lists:
        return "tokens" if column.documents else "numbers"
    if column.is_key and column.number_cells == column.present:
        return "id"
    if _holds_yes_and_no(column):
        return "boolean"
    if column.is_dictionary and column.number_cells == column.present:
        return "category"  # as pandas calls numbers that are codes
    # One cell of another type makes a column of numbers one of codes, such as postal codes. A
    # number that is too large makes it none: that is a fault.
    if column.number_cells + column.too_large_cells == column.present:
        if column.are_padded or column.are_phones:
            return _type_of_codes(column)
        return "number"
    if column.date_cells == column.present:
        return "date"
    if 2 * column.separated >= column.present:
        return "tokens"
    return _guess_text_type(column)


def _holds_yes_and_no(column: ColumnStatistics) -> bool:
    values = column.values() if column.merged <= FEW_VALUES else {}
    words = {value.lower() for value in values}
    return bool(words) and any(words <= set(pair) for pair in cells.PAIRS)


def _are_titles(column: ColumnStatistics, *, is_word: bool) -> bool:
    """Whether short texts tell rows apart, as titles and addresses do: rows share few of their words.

    In a few rows texts may all differ by chance.
    """
    if is_word or column.present < LEAST_ROWS_TO_TELL or not column.are_short_and_differ:
        return False
    return column.share_of_common_words() < COMMON_WORDS


def is_called_name(column: str) -> bool:
    """Whether a column is called as one of names is."""
    return re.search(r"names?$", column, re.IGNORECASE) is not None


def _type_of_codes(column: ColumnStatistics) -> str:
    """Codes that rows share are a category; others tell rows apart."""
    column.count_deferred()
    column.merge()
    is_repeated = column.distinct is not None and 2 * column.distinct <= column.present
    return "category" if is_repeated else "id"


def _guess_text_type(column: ColumnStatistics) -> str:
    """The type of a column of words: text, a category, names, or codes that tell rows apart."""
    if column.are_phones:
        return _type_of_codes(column)
    words_per_text = column.words / max(1, column.documents)
    # A word, or a code or an address: these have parts, and no spaces.
    is_word = words_per_text <= 1.5 or 2 * column.spaced < column.documents
    if words_per_text >= MANY_WORDS and not is_word:
        return "text"
    if _are_titles(column, is_word=is_word):
        return "name" if column.can_be_titles else "id"
    if column.tells_apart or (is_word and column.are_different):
        if is_called_name(column.name):
            return "name"
        return "id" if is_word else "text"
    is_repeated = 2 * column.merged <= column.present
    return "category" if is_repeated or words_per_text < 2 or is_word else "text"


def find_fault(column: ColumnStatistics, column_type: str) -> Fault | None:
    """The first cell that is not of the column type; None: there is none."""
    if "type" in column.first_others:
        location, found = column.first_others["type"]
        return location, EXPECTED["type"], found
    if column.said_type == "category" and column.merged and not column.frequent_values():
        found = f"{column.merged:,} different ones in {column.rows:,} rows"
        expected = f"values that one row in {RARE_SHARE:,} has, or more"
        return f'column "{column.name}"', expected, found

    nothing_noted = ("", "lists" if column.holds_lists else "other values")
    if column_type == "date":
        nothing_noted = column.first_others.get("unclear date", nothing_noted)
    location, found = column.first_others.get(column_type, nothing_noted)
    right_cells = column.present
    if column_type in ("number", "numbers"):
        right_cells = column.number_cells
    elif column_type == "date":
        right_cells = column.date_cells
    elif column_type == "boolean" and column.present:
        values = list(column.values())
        are_others = cells.truths(values)[1] if values else np.ones(1, bool)
        if are_others.any():
            right_cells = 0
            location = ""
            found = shorten(values[int(np.argmax(are_others))]) if values else "many values"
    if column.holds_lists and column_type not in ("numbers", "tokens", "text", "ignore", "name"):
        right_cells = -1
    if right_cells == column.present:
        return None
    expected = EXPECTED.get(column_type, f"a {column_type}")
    return location or f'column "{column.name}"', expected, found


def find_note(column: ColumnStatistics, column_type: str, labels: Sequence[str]) -> str:
    """What looks wrong about a column; nothing where nothing does."""
    if column.dates_may_begin_with_either and column_type != "date":
        return (
            "it may hold dates, and no cell tells whether they begin with the day or the month: "
            "write them as 2025-12-31"
        )
    if column.missing >= 0.99 * column.rows:
        return f"{100 * column.missing // max(1, column.rows)} % of its values are missing"
    if column.distinct == 1 and not column.missing:
        return "it has one value only, so it is no feature"
    odd_cell_note = find_odd_cell_note(column, column_type)
    if odd_cell_note:
        return odd_cell_note
    if column_type in ("id", "name") and not column.said_type and not column.is_key:
        kept = (
            "text" if column_type == "name" or column.words > 1.5 * column.documents else "category"
        )
        if not _looks_like_code(column, column_type):
            return UNSHARED_NOTE.format(column.name, kept)
    if _looks_like_code(column, column_type) and not column.said_type and not column.is_key:
        other_types = OTHER_TYPES_OF_CODES.get(column_type, ("ignore", "category"))
        return CODE_NOTE.format(", or ".join(f"{column.name}={other}" for other in other_types))
    if column_type in FEATURES and tells_label(column.name, labels):
        return "by its name it may tell a label"
    return ""


def find_odd_cell_note(column: ColumnStatistics, column_type: str) -> str:
    """What to say of a column that would be of numbers, or of dates, but for some of its cells."""
    if column.said_type:
        return ""
    for other_type, cell_count, plural in (
        ("number", column.number_cells, "numbers"),
        ("date", column.date_cells, "dates"),
    ):
        is_mostly = cell_count >= MOSTLY_SHARE * column.present and column_type != other_type
        if is_mostly and cell_count < column.present and other_type in column.first_others:
            location, cell = column.first_others[other_type]
            becomes = "no feature" if column_type == "id" else f"of the type {column_type}"
            odd_cell_count = format_count(column.present - cell_count, "cell")
            return (
                f"{location}: found {cell} among {plural} ({odd_cell_count} of {column.present:,}), "
                f"so the column is {becomes}. If {plural} are meant, which are written as "
                f"{WRITTEN_AS[other_type]}, mend or empty the cell, and say "
                f"--column {column.name}={other_type}"
            )
    return ""


def _looks_like_code(column: ColumnStatistics, column_type: str) -> bool:
    if column_type == "date":
        return False
    if column_type != "number":
        are_padded_codes = column.are_padded and column.number_cells == column.present
        has_parts = column_type == "id" and column.words > 1.5 * column.documents
        return column.is_letterless or has_parts or are_padded_codes or column.are_phones
    are_many = column.distinct is None or column.distinct > 0.99 * column.present
    is_huge = bool(column.numbers.low[0] >= 2**24)
    return column.are_whole and column.present >= 10 and (is_huge or are_many)


def tells_label(name: str, labels: Sequence[str]) -> bool:
    """Whether a column that is no label is called like one, or after one of the labels."""
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    return not words.isdisjoint({*LABEL_NAMES, *map(str.lower, labels)})
