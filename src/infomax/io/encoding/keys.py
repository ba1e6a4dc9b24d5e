"""Columns that by their names hold the ids of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ID = re.compile(r"[\W_](id|ID|Id)$|[a-z](Id|ID)$")


def plain(name: str) -> str:
    """The letters and digits of a name, in lower case."""
    return re.sub("[^a-z0-9]", "", name.lower())


def spellings(kind: str) -> tuple[str, str, str]:
    """What a column of ids of a type is called, `plain`: driverid, iddriver or driver."""
    word = plain(kind)
    return f"{word}id", f"id{word}", word


def keys(names: Iterable[str], types: Iterable[str] = ()) -> list[str]:
    """Those names that end in an id, or are called after one of the types, in the singular or the plural."""
    known = {spelling for kind in types for word in (kind, kind.removesuffix("s")) for spelling in spellings(word)}
    return [name for name in names if _ID.search(name) or plain(name) in known]
