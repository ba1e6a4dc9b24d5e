"""The names of columns: those of an edge table and of a node table by what they are, and how a person says them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from infomax.errors import shorten, warn


class EdgeColumns(NamedTuple):
    """The names of the columns of an edge table."""

    source: str
    target: str
    weight: str | None
    relation: str | None


class NodeColumns(NamedTuple):
    """The names of the columns of a node table; those of labels and splits by what these are called."""

    identifier: str
    features: list[str]
    labels: dict[str, str]
    splits: dict[str, str]
    groups: str | None
    name: str | None
    time: str | None = None

    @property
    def annotations(self) -> list[str]:
        """The columns that are no features: labels, splits, groups, names and times."""
        others = [column for column in (self.groups, self.name, self.time) if column is not None]
        return [*self.labels.values(), *self.splits.values(), *others]


def as_said(choices: Mapping[str, str] | Sequence[str]) -> list[str]:
    """Choices as a person says them, such as results.driverId=drivers."""
    if isinstance(choices, Mapping):
        return [f"{left}={right}" for left, right in choices.items()]
    return list(several(choices))


def apart(word: str) -> list[str]:
    """The columns of ids, or of names, in one word; of several types it is such as ``paper.title,author.name``."""
    words = word.split(",")
    return words if all("." in name for name in words) else [word]


def several(names: str | Path | Iterable[str]) -> tuple[str, ...]:
    """One name, or several, as a tuple."""
    return (str(names),) if isinstance(names, str | Path) else tuple(map(str, names))


def listed(names: Sequence[str], limit: int = 12) -> str:
    """Some names in quotes, for a message."""
    shown = ", ".join(map(shorten, names[:limit]))
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown or "none"


def warn_unused(where: str, names: Sequence[Any], what: str, hint: str = "") -> None:
    """Name the columns or attributes of edges that are neither ends nor weights: they have no effect."""
    if names:
        warn(f"{where}: {what} that are not used: {listed(names)}.{hint}")
