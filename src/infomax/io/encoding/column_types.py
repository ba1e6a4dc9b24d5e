"""The types of columns: which become features, and which a person can name."""

from __future__ import annotations

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
COLUMN_CHOICES = (
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
