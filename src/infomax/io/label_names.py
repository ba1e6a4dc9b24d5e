"""Labels as a person names them: COLUMN or TABLE.COLUMN, in any case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from infomax.errors import InputError
from infomax.io.column_names import format_list

LABEL = "label:"
"""Columns and attributes of nodes whose names begin so are labels."""


def spelled_labels(words: Sequence[str], headers: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Labels that a person named, as the columns of some tables are spelt: COLUMN or TABLE.COLUMN.

    Args:
        words: as a person writes them.
        headers: the columns of each table.
    """
    names = [
        name
        for table, header in headers.items()
        for column in header
        for name in (column, column.removeprefix(LABEL), f"{table}.{column.removeprefix(LABEL)}")
    ]
    return tuple(dict.fromkeys(_spelled(word, names) or word for word in words))


def label_called(word: str, labels: Iterable[str], node_type: str = "") -> str:
    """The label of a type of nodes that a person means, by its name or TYPE.NAME; "" where there is none."""
    names = list(labels)
    spelled = _spelled(word, [*names, *(f"{node_type}.{name}" for name in names)])
    return spelled if spelled in names else spelled.removeprefix(f"{node_type}.")


def _spelled(word: str, names: Iterable[str]) -> str:
    """The name that is meant: spelt so, else the only one that is spelt so in another case; "" for none."""
    same = dict.fromkeys(name for name in names if name.casefold() == word.casefold())
    if word in same:
        return word
    if len(same) > 1:
        raise InputError("labels", "one column of that name, in any case", format_list(list(same)))
    return next(iter(same), "")
