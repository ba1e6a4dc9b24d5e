"""The types of columns: which become features, and which a person can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infomax.errors import InputError, shorten, suggest

FEATURE_TYPES = ("number", "boolean", "category", "date", "text", "tokens", "numbers")
"""The types of the columns that become features."""
ARGUMENT_OF_USE = {
    "id": "id",
    "name": "name",
    "time": "time",
    "source": "source",
    "target": "target",
    "weight": "weight",
    "group": "groups",
    "type": "node_type",
    "relation": "edge_type",
}
"""Uses of a column other than as a feature or a label, and the argument of Python for each."""
CHOICES = (
    "number",
    "boolean",
    "category",
    "date",
    "text",
    "tokens",
    "label",
    "ignore",
    *ARGUMENT_OF_USE,
)
"""What a person can say that a column is."""
READABLE_CELLS = "text, numbers, booleans, dates, times or lists"
EXPECTED_CELLS = {
    "type": READABLE_CELLS,
    "number": "a finite number (32-bit float)",
    "boolean": "true or false, yes or no, 1 or 0",
    "category": "a single value",
    "date": "a date or a time such as 2013-05-27 or 2013-05-27 08:30",
    "numbers": "lists of numbers, all of one length",
}
"""What the cells of a column must be, for messages: of any column (``type``), and of some types."""


def parse_column_choices(columns: Mapping[str, str] | str | Sequence[str]) -> dict[str, str]:
    """What a person said that columns are, by the name of the column.

    Args:
        columns: a mapping, or texts NAME=USE. All choices that are unknown are in one message.
    """
    choices: dict[str, str] = {}
    if isinstance(columns, Mapping):
        choices = {str(name): str(choice) for name, choice in columns.items()}
    else:
        for text in [columns] if isinstance(columns, str) else columns:
            name, _, choice = str(text).rpartition("=")
            choices[name] = choice

    unknown = {
        name: choice for name, choice in choices.items() if choice not in CHOICES or not name
    }
    if unknown:
        shown = [shorten(f"{name}={choice}".removeprefix("=")) for name, choice in unknown.items()]
        remedy = suggest(next(iter(unknown.values())), CHOICES)
        expected = f"NAME=USE, with one of {', '.join(CHOICES)}"
        raise InputError("columns", expected, ", ".join(shown), remedy)
    return choices
