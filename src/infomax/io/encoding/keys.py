"""Columns that by their names hold the ids of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ID = re.compile(r"[\W_](id|ID|Id)$|[a-z](Id|ID)$")


def plain(name: str) -> str:
    """The letters and digits of a name, in lower case."""
    return re.sub("[^a-z0-9]", "", name.lower())


def singular(name: str) -> str:
    """The `plain` name of a table or a type in the singular: circuit for Circuits, category for categories."""
    word = plain(name)
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("ses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def called(word: str, kinds: Iterable[str]) -> str:
    """The type of nodes that a word means: in any case, in the singular or the plural; "" for none, or several."""
    known = list(kinds)
    alike = [word] if word in known else [kind for kind in known if singular(kind) == singular(word)]
    return alike[0] if len(alike) == 1 else ""


def spellings(kind: str) -> tuple[str, str, str]:
    """What a column of ids of a type is called, `plain`: driverid, iddriver or driver."""
    word = plain(kind)
    return f"{word}id", f"id{word}", word


def keys(names: Iterable[str], types: Iterable[str] = ()) -> list[str]:
    """Those names that end in an id, or are called after one of the types, in the singular or the plural."""
    known = {spelling for kind in types for word in (kind, kind.removesuffix("s")) for spelling in spellings(word)}
    return [name for name in names if _ID.search(name) or plain(name) in known]
