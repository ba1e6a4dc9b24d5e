"""The names of columns and tables.

Some names have a meaning. People write them in many ways, and messages list them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from infomax.errors import InputError, shorten, warn

LABEL, SPLIT = "label:", "split:"
"""Columns and attributes of nodes whose names begin so are labels, and splits."""
GROUPS, NAME, TIME = "graph:name", "node:name", "node:time"
"""Columns and attributes of these names hold the graph, the name and the time of each node."""
_ID = re.compile(r"[\W_](id|ID|Id)$|[a-z](Id|ID)$")
_REGULAR = (("s", ""), ("es", ""), ("ies", "y"), ("ves", "f"), ("ves", "fe"))
_PLURALS = (
    *_REGULAR,
    ("people", "person"),
    ("children", "child"),
    ("men", "man"),
    ("ices", "ix"),
    ("ices", "ex"),
)
"""How names of several end, and those of one."""


_CODE = re.compile(
    "code|id|uid|uuid|guid|isbn|issn|ean|upc|gtin|asin|sku|barcode|iban|ssn|vin|imei"
    "|phone|telephone|tel|fax|mobile"
)
"""The last words of names of codes: of HomePhone and isbn_13, not of phone_calls."""
_NUMBER = re.compile("number|num|no|nr")
"""The last words of names of numbers that may be codes, as of a card, or counts, as of atoms."""


def as_said(choices: Mapping[str, str] | Sequence[str], joint: str = "=") -> list[str]:
    """Choices as a person says them, such as results.driverId=drivers.

    The sign between the two parts is ``joint``.
    """
    if isinstance(choices, Mapping):
        return [f"{left}{joint}{right}" for left, right in choices.items()]
    return list(as_tuple(choices))


def split_by_type(word: str) -> list[str]:
    """The columns of ids, or of names, as one option.

    Of several types it is such as ``paper.title,author.name``.
    """
    words = word.split(",")
    return words if all("." in name for name in words) else [word]


def as_tuple(names: str | Path | Iterable[str]) -> tuple[str, ...]:
    """One name, or several, as a tuple."""
    return (str(names),) if isinstance(names, str | Path) else tuple(map(str, names))


def format_list(names: Sequence[str], limit: int = 12) -> str:
    """Some names in quotes, for a message."""
    shown = ", ".join(map(shorten, names[:limit]))
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown or "none"


def warn_unused(where: str, names: Sequence[Any], what: str, hint: str = "") -> None:
    """Warn of columns or attributes of edges that have no effect: neither ends nor weights."""
    if names:
        warn(f"{where}: {what} that are not used: {format_list(names)}.{hint}")


def check_column_names(where: str, names: Sequence[str]) -> None:
    """Refuse a column without a name, and two of the same name."""
    if "" in names:
        remedy = "Name it or delete it; pandas leaves its row numbers out with index=False."
        raise InputError(
            where, "a name for every column", f"none for column {names.index('') + 1}", remedy
        )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InputError(
            where, "each column name once", f"{shorten(name)} {count} times", "Rename them."
        )


def plain(name: str) -> str:
    """The letters and digits of a name, in lower case."""
    return re.sub("[^a-z0-9]", "", name.lower())


def singulars(name: str) -> list[str]:
    """What the `plain` name of a table or a type may be in the singular, and the name: movie, movy
    and movies.

    Spelling alone does not tell movies from categories, or houses from boxes.
    """
    word = plain(name)
    found = [
        word.removesuffix(end) + one
        for end, one in _PLURALS
        if len(word) > 3 and word.endswith(end)
    ]
    return [*found, word]


def matching_type(word: str, kinds: Iterable[str]) -> str:
    """The type of nodes that a word means, in any case, in the singular or the plural.

    "" where the word means none, or several.
    """
    known = list(kinds)
    own = {*singulars(word)}
    alike = (
        [word] if word in known else [kind for kind in known if not own.isdisjoint(singulars(kind))]
    )
    return alike[0] if len(alike) == 1 else ""


def spellings(kind: str) -> tuple[str, str, str]:
    """What a column of ids of a type is called, `plain`: driverid, iddriver or driver."""
    word = plain(kind)
    return f"{word}id", f"id{word}", word


def is_called_code(name: str) -> bool:
    """Whether a column is called as a code is: isbn, home_phone, barCode.

    Postal codes are not among them: near numbers are near places, even where all of them differ.
    """
    if re.search("zip|post", name, re.IGNORECASE):
        return False
    return _CODE.fullmatch(_last_word(name)) is not None


def is_called_number(name: str) -> bool:
    """Whether a column is called a number, which may be a code: card_number, accountNo."""
    return _NUMBER.fullmatch(_last_word(name)) is not None


def _last_word(name: str) -> str:
    """The last word of a name, in lower case: `phone` of homePhone, `isbn` of ISBN_13."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return words[-1].lower() if words else ""


def keys(names: Iterable[str], types: Iterable[str] = ()) -> list[str]:
    """The names that end in an id, or are called after a type, in the singular or the plural."""
    known = {spelling for kind in types for word in singulars(kind) for spelling in spellings(word)}
    return [name for name in names if _ID.search(name) or plain(name) in known]


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


def find_label(requested_name: str, labels: Iterable[str], node_type: str = "") -> str:
    """The label of a type of nodes that a person means, by its name or TYPE.NAME.

    "" where there is none.
    """
    names = list(labels)
    full_names = [f"{node_type}.{name}" for name in names]
    spelled = _spelled(requested_name, [*names, *full_names])
    return spelled if spelled in names else spelled.removeprefix(f"{node_type}.")


def _spelled(requested_name: str, names: Iterable[str]) -> str:
    """The name that is meant: spelt so, else the only one that is spelt so in another case.

    "" where there is none.
    """
    folded = requested_name.casefold()
    same_in_any_case = list(dict.fromkeys(name for name in names if name.casefold() == folded))
    if requested_name in same_in_any_case:
        return requested_name
    if len(same_in_any_case) > 1:
        expected = "one column of that name, in any case"
        raise InputError("labels", expected, format_list(same_in_any_case))
    return same_in_any_case[0] if same_in_any_case else ""
