"""Chapter: a figure of the report, its numbers, and a text that explains it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Chapter:
    """A figure of the report, with its numbers and text.

    Args:
        name: of its files, without the extension.
        title: its heading.
        story: the paragraphs that explain the figure.
        numbers: the data of the figure, as JSON values.
        draw: makes the figure; called with True, in one column, for a phone.
        facts: the rows of a small table, the first is its heading.
    """

    name: str
    title: str
    story: Sequence[str]
    numbers: dict[str, Any]
    draw: Callable[[bool], Any]
    facts: Sequence[Sequence[str]] = ()
