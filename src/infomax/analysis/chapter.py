"""Chapter: one figure, the numbers behind it, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Chapter:
    """A figure of the report.

    Args:
        name: the stem of its files.
        title: its heading.
        story: what is seen, in plain paragraphs.
        numbers: what the figure is made of, as JSON values.
        draw: the figure itself; called with True it stands in one column, for a phone.
        facts: the rows of a small table, the first its heading.
    """

    name: str
    title: str
    story: Sequence[str]
    numbers: dict[str, Any]
    draw: Callable[[bool], Any]
    facts: Sequence[Sequence[str]] = ()
