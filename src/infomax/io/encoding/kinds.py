"""The kinds of columns: which become features, which a person can name, and what their cells must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infomax.errors import InputError, shorten, suggest
from infomax.io.encoding.cells import READABLE

FEATURES = ("number", "boolean", "category", "date", "text", "tokens", "numbers")
"""The kinds of columns that become features."""
OPTION_OF_USE = {
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
"""What else than a feature or a label a column can be used as, and the argument of Python that says the same."""
CHOICES = (
    "number",
    "boolean",
    "category",
    "date",
    "text",
    "tokens",
    "label",
    "ignore",
    *OPTION_OF_USE,
)
"""What a person can say that a column is."""
EXPECTED = {
    "type": READABLE,
    "number": "a finite number (32-bit float)",
    "boolean": "true or false, yes or no, 1 or 0",
    "category": "a single value",
    "date": "a date or a time such as 2013-05-27 or 2013-05-27 08:30",
    "numbers": "lists of numbers, all of one length",
}


def kinds_said(columns: Mapping[str, str] | str | Sequence[str]) -> dict[str, str]:
    """The kinds that a person said, by column, as a mapping or as NAME=KIND; all unknown ones are in one message."""
    if isinstance(columns, Mapping):
        kinds = {str(name): str(kind) for name, kind in columns.items()}
    else:
        texts = [columns] if isinstance(columns, str) else columns
        kinds = {name: kind for name, _, kind in (str(text).rpartition("=") for text in texts)}
    if wrong := {name: kind for name, kind in kinds.items() if kind not in CHOICES or not name}:
        said = ", ".join(
            shorten(f"{name}={kind}" if name else kind) for name, kind in wrong.items()
        )
        remedy = suggest(next(iter(wrong.values())), CHOICES)
        raise InputError("columns", f"NAME=KIND, with one of {', '.join(CHOICES)}", said, remedy)
    return kinds
