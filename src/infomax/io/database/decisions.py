"""What was decided about the tables of a database, each decision with its origin and one sentence of reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Origin: TypeAlias = Literal["declared", "said", "found"]
"""The database declares it, a person said it, or names and values of cells tell it."""


@dataclass(frozen=True)
class Key:
    """Columns of a table whose values are those of ``target``, columns of another table or of the same."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]
    origin: Origin = "declared"
    reason: str = "the database declares it"
    filled: int = 0
    """The number of rows that have a value in all columns."""
    lost: int = 0
    """The number of those whose value no row of the other table has."""
    is_float: bool = False
    """Whether its values are text such as 12.0, as pandas writes integers some of which are missing."""

    @property
    def name(self) -> str:
        """The columns as one word."""
        return "+".join(self.columns)


@dataclass(frozen=True)
class PrimaryKey:
    """The columns that tell the rows of a table apart; none: the numbers of the rows do."""

    columns: tuple[str, ...] = ()
    origin: Origin = "found"
    reason: str = "no column tells the rows apart: their ids are their numbers"


@dataclass(frozen=True)
class RoleDecision:
    """What a table becomes: nodes, facts, edges, lookup or ignore."""

    role: str
    origin: Origin
    reason: str


@dataclass(frozen=True)
class NameDecision:
    """The columns that make the name of a row."""

    columns: tuple[str, ...]
    origin: Origin
    reason: str
    is_category: bool = False
    """Whether the name is a feature as well: a category, as the row is a value that many rows have."""


@dataclass(frozen=True)
class TimeDecision:
    """When the rows of a table came to be: a column of times, or the latest of the rows that some keys refer to."""

    column: str | None
    keys: tuple[Key, ...]
    origin: Origin
    reason: str
    unit: str = ""
    """Of a column of numbers: years, seconds, milliseconds, microseconds or nanoseconds."""
    candidates: tuple[str, ...] = ()
    """All columns of times that could be taken."""

    @property
    def exists(self) -> bool:
        """Whether rows have a time at all."""
        return self.column is not None or bool(self.keys)


@dataclass(frozen=True)
class DroppedColumn:
    """A column that becomes no feature."""

    column: str
    origin: Origin
    reason: str


@dataclass(frozen=True)
class TableDecision:
    """All that was decided about one table."""

    role: RoleDecision
    primary_key: PrimaryKey
    keys: tuple[Key, ...] = ()
    name: NameDecision | None = None
    time: TimeDecision | None = None
    dropped: tuple[DroppedColumn, ...] = ()


Decisions: TypeAlias = Mapping[str, TableDecision]
"""Those about all tables of a database, by name."""


def decisions_to_json(decisions: Decisions) -> dict[str, Any]:
    """The decisions as plain dicts and lists."""
    return {name: dataclasses.asdict(decision) for name, decision in decisions.items()}


def decisions_from_json(stored: Mapping[str, Any]) -> dict[str, TableDecision]:
    """The decisions that `decisions_to_json` wrote."""
    return {name: _table_decision(decision) for name, decision in stored.items()}


def _table_decision(stored: Mapping[str, Any]) -> TableDecision:
    name = stored["name"]
    time = stored["time"]
    return TableDecision(
        role=RoleDecision(**stored["role"]),
        primary_key=PrimaryKey(**_with_tuples(stored["primary_key"])),
        keys=tuple(Key(**_with_tuples(key)) for key in stored["keys"]),
        name=None if name is None else NameDecision(**_with_tuples(name)),
        time=None if time is None else _time_decision(time),
        dropped=tuple(DroppedColumn(**column) for column in stored["dropped"]),
    )


def _time_decision(stored: Mapping[str, Any]) -> TimeDecision:
    keys = tuple(Key(**_with_tuples(key)) for key in stored["keys"])
    return TimeDecision(**{**_with_tuples(stored), "keys": keys})


def _with_tuples(stored: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no tuples: its lists become such."""
    return {
        field: tuple(value) if isinstance(value, list) else value for field, value in stored.items()
    }
