"""What was learnt of the columns of a node table, as choices by which the table is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Sequence
from dataclasses import replace
from pathlib import Path

from infomax.errors import InputError, shorten, warn
from infomax.io.column_names import format_list
from infomax.io.columns import Columns
from infomax.io.encoding.cells import MISSING
from infomax.io.encoding.column_statistics import LEAST_ROWS_TO_TELL
from infomax.io.encoding.column_types import EXPECTED_CELLS
from infomax.io.encoding.encoding import Encoding
from infomax.io.encoding.guessing import (
    Fault,
    find_odd_cell_note,
    holds_code_numbers,
    tells_label,
)
from infomax.io.encoding.survey import Survey
from infomax.io.schema.obeying import schema_location


def _refuse(path: str, faults: Sequence[Fault], columns: Columns) -> None:
    """Refuse columns of a table that cannot become features, all in one message."""
    remedy = (
        "Correct it, or leave the cell empty where nothing is known; or say what the column is: "
    )
    remedy += "--column NAME=USE (in Python: columns={NAME: USE}). "
    remedy += "Numbers are written as 1200.50, dates as 2025-12-31; of codes the kind is category."
    if all(expected == EXPECTED_CELLS["type"] for _, expected, _ in faults):
        remedy = "Turn it into one of these, or leave it out: --column NAME=ignore (in Python: ignore=NAME)."
    known = columns.known_table
    if columns.obeys_schema and known is not None:
        # A fault names its column in its place, in quotes.
        wrong = [name for name in known.columns if f'column "{name}"' in faults[0][0]]
        where = schema_location(columns, "columns", *wrong[:1])
        remedy = f"Correct it, or change what the schema says of it: {where}."
    if len(faults) == 1:
        raise InputError(*faults[0], remedy)
    told = "; ".join(f"{where}: {found}, not {expected}" for where, expected, found in faults)
    raise InputError(path, "columns that become features", told.replace(f"{path}, ", ""), remedy)


def learnt(columns: Columns, survey: Survey, path: Path, names: Sequence[str]) -> Columns:
    """The choices with what was learnt: an encoding, and columns to ignore. All faults are in one message."""
    encoding, faults = survey.finish()
    if faults:
        _refuse(str(path), faults, columns)
    for column in encoding.columns:
        odd_cell_note = find_odd_cell_note(survey.columns[column.name], column.column_type)
        if odd_cell_note:
            warn(f"{odd_cell_note}.")
    called = columns.name_among(names)
    if called is None and not columns.obeys_schema:
        called = survey.name_column
    encoding = with_type_in_notes(encoding, columns)
    code_numbers = [
        name
        for name, column in survey.columns.items()
        if name not in {called, *survey.keys, *columns.kinds} and holds_code_numbers(column)
    ]
    warn_of_code_numbers(path, code_numbers)
    warn_of_unshared(path, encoding, {called, *survey.keys, *columns.kinds, *code_numbers})
    used = [column.name for column in encoding.feature_columns]
    warn_of_labels(path, used, survey.labels)
    lost = [column for column in encoding.columns if column.name != called]
    if lost and not used:
        told = ", ".join(
            f"{shorten(one.name)} ({'one value' if one.distinct == 1 else one.column_type})"
            for one in lost
        )
        warn(
            f"{path}: no column becomes features: {told}. To say what a column is: --column NAME=USE."
        )
    if columns.features and not used and not columns.obeys_schema:
        # Without features the other columns would be taken, which the person did not name.
        names_and_types = [
            f"{shorten(column.name)} ({column.column_type})" for column in encoding.columns
        ]
        first_name = encoding.columns[0].name
        remedy = f"Say what it is: --column {first_name}=number, category or text."
        raise InputError(
            "features",
            f"columns of {path} that become features",
            ", ".join(names_and_types),
            remedy,
        )
    chosen = used if called in used else [name for name in columns.features or () if name in used]
    kept = {*used, called}
    unused = (column.name for column in encoding.columns if column.name not in kept)
    return replace(
        columns,
        name=called,
        ignore=(*columns.ignore, *unused),
        features=tuple(chosen) or None,
        kinds={},
        encoding=replace(encoding, name_column=called) if used else None,
        learns=False,
    )


def with_type_in_notes(encoding: Encoding, columns: Columns) -> Encoding:
    """The same encoding; where there are several types of nodes, notes name an option with its type."""
    node_type = "" if columns.known_table is None else columns.known_table.node_type
    if not node_type:
        return encoding
    noted = tuple(
        replace(column, note=column.note.replace("--column ", f"--column {node_type}."))
        for column in encoding.columns
    )
    return replace(encoding, columns=noted)


def warn_of_unshared(path: Path, encoding: Encoding, others: Container[str | None]) -> None:
    """Name the columns that become no features since no two rows share what they hold, but for some others.

    In a few rows all cells may differ by chance.
    """
    unshared = [
        column
        for column in encoding.columns
        if column.column_type in ("id", "name") and column.note and column.name not in others
        if column.rows >= LEAST_ROWS_TO_TELL
    ]
    if unshared:
        names = format_list([column.name for column in unshared])
        first = unshared[0].name
        warn(
            f"{path}: no features, as hardly two rows share what they hold: {names}. To make features "
            f"of one: --column {first}=text, or {first}=category."
        )


def warn_of_code_numbers(path: Path, names: Sequence[str]) -> None:
    """Name the columns of numbers that become no features since they are codes: an ISBN, a number of a phone."""
    if names:
        warn(
            f"{path}: no features, as they are called codes, and nearly all their numbers differ: "
            f"{format_list(names)}. To make a feature of one: --column {names[0]}=number."
        )


def warn_of_labels(path: Path, names: Sequence[str], labels: Sequence[str]) -> None:
    """Name the columns that become features and are called like a label: what is to be predicted is no feature."""
    if told := [name for name in names if tells_label(name, labels)]:
        remedy = "If so: --column NAME=label, or NAME=ignore (in Python: columns={NAME: 'label'})."
        warn(
            f"{path}: features that by their names may tell a label: {format_list(told)}. {remedy}"
        )


def warn_missing(where: str, words: Container[str], what: str, remedy: str) -> None:
    """Name the ids or labels that are words for nothing: NA, NULL and the like."""
    if found := [word for word in MISSING[1:] if word in words]:
        warn(f"{where}: {what} {format_list(found)}. If it means nothing: {remedy}.")


CLASSES = 10_000
"""Different labels that are looked at; where there are more, case and spaces are the least of it."""


def warn_of_classes(where: str, labels: Collection[str]) -> None:
    """Name words for nothing, and labels with outer spaces or that differ in case: each is a class as it is written."""
    warn_missing(where, labels, "a label", "leave the cell empty")
    known = set(labels).difference(MISSING)
    if spaced := sorted(label for label in known if label != label.strip()):
        remedy = "Remove the spaces where they mean nothing."
        warn(
            f"{where}: labels with outer spaces, each a class of its own: {format_list(spaced)}. {remedy}"
        )
    same = Counter(label.casefold() for label in known.difference(spaced))
    if cased := sorted(label for label in known.difference(spaced) if same[label.casefold()] > 1):
        warn(
            f"{where}: labels that differ only in case, each a class of its own: {format_list(cased)}."
        )
