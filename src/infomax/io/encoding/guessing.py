"""What the cells of a column say about its type, and what is wrong about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from infomax.errors import format_count, shorten
from infomax.io.column_names import is_called_code, is_called_number
from infomax.io.encoding import cells
from infomax.io.encoding.column_statistics import (
    LEAST_ROWS_TO_TELL,
    MANY_WORDS,
    RARE_SHARE,
    ColumnStatistics,
)
from infomax.io.encoding.column_types import EXPECTED_CELLS, FEATURE_TYPES

FEW_VALUES = 8
"""Values up to which a column may hold yes and no, written as true, True, TRUE, ..."""
MOSTLY_SHARE = 0.5
"""The share of numbers, or of dates, from which a note names the other cells of a column."""
WRITTEN_AS = {"number": "1200.50", "date": "2025-12-31"}
COMMON_WORDS = 0.6
"""Share of common words from which short texts that all differ are features.

It is 1 of genres, and 0.5 of titles with a year.
"""
CODE_NOTE = (
    "it looks like an identifier or a code: --column {}; as numbers and dates are read 1200.50 "
    "and 2025-12-31"
)
UNSHARED_NOTE = (
    "hardly two rows share what it holds, so it is no feature; to make features of it: "
    "--column {}={}"
)
CODE_NUMBERS_NOTE = (
    "it is called a code, and nearly all its numbers differ, so it is no feature; to make a "
    "feature of it: --column {}=number"
)
LARGEST_SHARE_OF_A_CELL = 0.99
"""The share of a column's squared deviations from which one cell leaves all others nearly equal.

The others then have a tenth of the deviation, or less, and become features within about 0.1."""
OUTLIER_NOTE = (
    "one cell, {}, is so far from all others that these become nearly the same feature; if it is "
    "wrong, mend or empty it"
)
LEAST_GAP_OF_CODES = 100
"""Numbers that are codes are so far apart, in the mean."""
OTHER_TYPES_OF_CODES = {"category": ("ignore",), "id": ("category", "text")}
"""What a column that looks like a code may be instead, by what it is."""
LABEL_NAMES = {"label", "labels", "target", "outcome"}

Fault: TypeAlias = tuple[str, str, str]
"""The location of a cell that is wrong, what is expected, and what is found."""


def guess_column_type(column: ColumnStatistics) -> str:
    """The type of a column by its cells."""
    if not column.present:
        return "ignore"
    if column.holds_lists:
        return "tokens" if column.documents else "numbers"
    are_numbers = column.number_cells == column.present
    if column.is_key and are_numbers:
        return "id"
    if _holds_yes_and_no(column):
        return "boolean"
    if column.is_dictionary and are_numbers:
        return "category"  # as pandas calls numbers that are codes
    # One cell of another type makes a column of numbers one of codes, such as postal codes. A
    # number that is too large makes it none: that is a fault.
    if column.number_cells + column.too_large_cells == column.present:
        if column.are_padded or column.are_phones:
            return _type_of_codes(column)
        return "id" if holds_code_numbers(column) else "number"
    if column.date_cells == column.present:
        return "date"
    if 2 * column.separated_cells >= column.present:
        return "tokens"
    return _guess_text_type(column)


def _holds_yes_and_no(column: ColumnStatistics) -> bool:
    if column.distinct_values > FEW_VALUES:
        return False
    texts = {value.lower() for value in column.values()}
    return bool(texts) and any(texts <= set(pair) for pair in cells.PAIRS)


def holds_code_numbers(column: ColumnStatistics) -> bool:
    """Whether a column of whole numbers, nearly all different, is called as codes are.

    Such names are isbn and card_number.

    Prices and amounts may all differ as well, so the name must tell. A column that is only called a
    number is one of codes where its numbers are far apart: those of atoms, or of the chapters of a
    book, follow each other.
    """
    if column.number_cells != column.present or column.present < LEAST_ROWS_TO_TELL:
        return False
    if not column.are_whole or not column.are_different:
        return False
    range_of_numbers = column.numbers.high[0] - column.numbers.low[0]
    is_sparse = bool(range_of_numbers > LEAST_GAP_OF_CODES * column.present)
    return is_called_code(column.name) or (is_called_number(column.name) and is_sparse)


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
    # Words, codes and addresses of pages: the latter two have parts, and no spaces.
    are_single_words = words_per_text <= 1.5 or 2 * column.spaced_cells < column.documents
    if words_per_text >= MANY_WORDS and not are_single_words:
        return "text"
    if not are_single_words and _are_titles(column):
        return "name" if column.can_be_titles else "id"
    if column.tells_rows_apart or (are_single_words and column.are_different):
        if is_called_name(column.name):
            return "name"
        return "id" if are_single_words else "text"
    is_repeated = 2 * column.distinct_values <= column.present
    is_category = is_repeated or words_per_text < 2 or are_single_words
    return "category" if is_category else "text"


def _are_titles(column: ColumnStatistics) -> bool:
    """Whether texts of several words tell rows apart, as titles do: rows share few of their words.

    In a few rows texts may all differ by chance.
    """
    if column.present < LEAST_ROWS_TO_TELL or not column.are_short_and_differ:
        return False
    return column.share_of_common_words() < COMMON_WORDS


def is_called_name(column_name: str) -> bool:
    """Whether a column is called as one of names is."""
    return re.search(r"names?$", column_name, re.IGNORECASE) is not None


def find_fault(column: ColumnStatistics, column_type: str) -> Fault | None:
    """The first cell that is not of the column type; None: there is none."""
    if "type" in column.first_other_cells:
        location, cell = column.first_other_cells["type"]
        return location, EXPECTED_CELLS["type"], cell
    column_location = f'column "{column.name}"'
    is_requested_category = column.requested_type == "category"
    if is_requested_category and column.distinct_values and not column.frequent_values():
        found = f"{column.distinct_values:,} different ones in {column.rows:,} rows"
        expected = f"values that one row in {RARE_SHARE:,} has, or more"
        return column_location, expected, found

    location, found = "", "lists" if column.holds_lists else "other values"
    if column_type == "date" and "unclear date" in column.first_other_cells:
        location, found = column.first_other_cells["unclear date"]
    if column_type in column.first_other_cells:
        location, found = column.first_other_cells[column_type]

    takes_lists = column_type in ("numbers", "tokens", "text", "ignore", "name")
    has_fault = column.holds_lists and not takes_lists
    if column_type in ("number", "numbers"):
        has_fault = has_fault or column.number_cells != column.present
    elif column_type == "date":
        has_fault = has_fault or column.date_cells != column.present
    elif column_type == "boolean" and column.present:
        other_value = _value_that_is_no_boolean(column)
        if other_value:
            has_fault = True
            location = ""
            found = other_value
    if not has_fault:
        return None
    return location or column_location, EXPECTED_CELLS.get(column_type, f"a {column_type}"), found


def _value_that_is_no_boolean(column: ColumnStatistics) -> str:
    """A value that is neither yes nor no, for a message; empty: there is none."""
    values = list(column.values())
    if not values:
        return "many values"
    _, are_others = cells.truths(values)
    return shorten(values[int(np.argmax(are_others))]) if are_others.any() else ""


def find_note(column: ColumnStatistics, column_type: str, labels: Sequence[str]) -> str:
    """What looks wrong about a column; empty where nothing does."""
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
    outlier_note = find_outlier_note(column, column_type)
    if outlier_note:
        return outlier_note

    # Of a column whose use a person or its name decides, nothing is to be said but a label's name.
    if not column.requested_type and not column.is_key:
        if column_type == "id" and holds_code_numbers(column):
            return CODE_NUMBERS_NOTE.format(column.name)
        if _looks_like_code(column, column_type):
            other_types = OTHER_TYPES_OF_CODES.get(column_type, ("ignore", "category"))
            options = [f"{column.name}={other_type}" for other_type in other_types]
            return CODE_NOTE.format(", or ".join(options))
        if column_type in ("id", "name"):
            has_several_words = column.words > 1.5 * column.documents
            is_text = column_type == "name" or has_several_words
            return UNSHARED_NOTE.format(column.name, "text" if is_text else "category")
    if column_type in FEATURE_TYPES and tells_label(column.name, labels):
        return "by its name it may tell a label"
    return ""


def find_odd_cell_note(column: ColumnStatistics, column_type: str) -> str:
    """What to say of a column that would be of numbers, or of dates, but for some of its cells."""
    if column.requested_type or column.number_cells == column.present:
        return ""
    for other_type, cell_count, plural in (
        ("number", column.number_cells, "numbers"),
        ("date", column.date_cells, "dates"),
    ):
        is_mostly = cell_count >= MOSTLY_SHARE * column.present and column_type != other_type
        if is_mostly and cell_count < column.present and other_type in column.first_other_cells:
            location, cell = column.first_other_cells[other_type]
            becomes = "no feature" if column_type == "id" else f"of the type {column_type}"
            odd_cell_count = format_count(column.present - cell_count, "cell")
            return (
                f"{location}: found {cell} among {plural} ({odd_cell_count} of "
                f"{column.present:,}), so the column is {becomes}. If {plural} are meant, which "
                f"are written as {WRITTEN_AS[other_type]}, mend or empty the cell, and say "
                f"--column {column.name}={other_type}"
            )
    return ""


def find_outlier_note(column: ColumnStatistics, column_type: str) -> str:
    """What to say of a column of numbers where one of them is far from all others; mostly nothing.

    A cell deviates by at most ``sqrt(N - 1)`` deviations, when all others are equal. Few cells, or
    others that are equal anyway, are no reason for a note.
    """
    row_count = int(column.numbers.count[0])
    others_are_equal = column.distinct is not None and column.distinct <= 2
    if column_type != "number" or row_count < LEAST_ROWS_TO_TELL or others_are_equal:
        return ""
    scale = column.numbers.scale()
    centre, deviation = scale["centre"][0], scale["deviation"][0]
    extremes = float(column.numbers.low[0]), float(column.numbers.high[0])
    furthest = max(extremes, key=lambda number: abs(number - centre))
    share = ((furthest - centre) / deviation) ** 2 / (row_count - 1)
    # The deviation of a column that is constant to float64 precision is set to 1, so that a share
    # may be of any size; no share of a true deviation is above 1 by more than a few in 100.
    is_constant = share > 1.1
    # No two cells can have so large a share, so the furthest number is that of one cell.
    if is_constant or share < LARGEST_SHARE_OF_A_CELL:
        return ""
    return OUTLIER_NOTE.format(f"{furthest:.15g}")


def _looks_like_code(column: ColumnStatistics, column_type: str) -> bool:
    if column_type == "date":
        return False
    if column_type == "number":
        is_huge = bool(column.numbers.low[0] >= 2**24)
        are_many = column.distinct is None or column.distinct > 0.99 * column.present
        return column.are_whole and column.present >= 10 and (is_huge or are_many)
    are_padded_codes = column.are_padded and column.number_cells == column.present
    has_parts = column_type == "id" and column.words > 1.5 * column.documents
    return column.is_letterless or has_parts or are_padded_codes or column.are_phones


def tells_label(name: str, labels: Sequence[str]) -> bool:
    """Whether a column that is no label is called like one, or after one of the labels."""
    name_parts = set(re.split(r"[^a-z0-9]+", name.lower()))
    return not name_parts.isdisjoint({*LABEL_NAMES, *map(str.lower, labels)})
