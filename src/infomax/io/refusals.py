"""What tables of nodes and edges are refused for, whether their rows are in memory or in a database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from infomax.arrays.times import format_time, parse_time
from infomax.errors import InputError, format_location, shorten
from infomax.io.blocks import FILE
from infomax.io.sources import Source


def no_nodes(nodes: Source) -> InputError:
    """The error for a table without nodes."""
    return InputError(str(nodes.path), "at least one node below the header", "none")


def no_times() -> InputError:
    """The error for a graph as of a day that has no times."""
    remedy = "Name the column of times: --time COLUMN (in Python: time=)."
    return InputError("as_of", "a graph whose rows have times", "one without", remedy)


def no_rows_until(kind: str, day: Any, first: int, *, may_leave_out: bool) -> InputError:
    """The error for a type of nodes of which all rows, the first of this time, are later than a day."""
    remedy = (
        f"Take a later day, or leave them out: --table {kind}=ignore."
        if may_leave_out
        else "Take a later day."
    )
    expected = f"rows of {kind or 'nodes'} up to {format_time(parse_time(day, 'as_of'))}"
    return InputError("as_of", expected, f"none; the first is of {format_time(first)}", remedy)


def refuse_twice(nodes: Source, column: str, rows: Iterable[tuple[Any, int]]) -> None:
    """Refuse an id that occurs twice among ids and the numbers of their rows, in order."""
    seen: dict[Any, int] = {}
    for identifier, number in rows:
        if (first := seen.setdefault(identifier, number)) != number:
            other = nodes.location(first).removeprefix(f"{nodes.files[number // FILE]}, ")
            found = f"{shorten(identifier)}, already in {other}"
            remedy = "Remove one of the rows."
            if column.lower() != "id" and column not in (
                nodes.columns.id,
                nodes.columns.remembered("id"),
            ):
                remedy += " Are ids in another column? --id COLUMN (in Python: id=)."
                remedy += " Is it the edge table? Edges come first."
            raise InputError(nodes.location(number, column), "each id once", found, remedy)


def id_unknown(edges: Source, column: str, identifier: Any, number: int, listed: str) -> InputError:
    """The error for an end of an edge, the row of this number, that is no node; ``listed`` says where nodes are."""
    remedy = (
        "Add a row for it there, or remove the edge (the edge table comes first). Write ids alike in both tables "
        "(pandas: read_csv(NAME, dtype=str) keeps zeros). Where ids are in another column: --id COLUMN (in Python: id=)"
    )
    named = edges.columns.names_ends(edges.ends)
    remedy += (
        "."
        if named
        else "; where edges are in other columns than the first two: --source and --target."
    )
    return InputError(
        edges.location(number, column), f"an id {listed}", shorten(identifier), remedy
    )


def refuse_other_type(edges: Source, nodes: Source, *, of_edges: bool, of_nodes: bool) -> None:
    """Refuse ids of edges of another type than those of nodes, by whether they are integers; text has no types."""
    if not edges.lines and not nodes.lines and of_edges != of_nodes:
        column = nodes.columns.identifier(nodes.path, nodes.names)
        kinds = {True: "integer ids", False: "text ids"}
        expected = f"{kinds[of_nodes]}, as in column {shorten(column)} of {nodes.path}"
        remedy = "Give the id columns of both one type (pandas: column.astype(str)). "
        remedy += "Are ids in another column? --id COLUMN (in Python: id=)."
        raise InputError(str(edges.path), expected, kinds[of_edges], remedy)


_SIDES = re.compile(
    "[a-z]|source|target|src|dst|dest|destination|origin|from|to|head|tail|start|end|begin|first|second|one|two|left|right"
    "|parent|child|in|out|sender|receiver|recipient|follower|followee|followed|citing|cited|caller|callee|subject|object"
    "|other|friend|neighbou?r"
)
"""What a column may be called that is one end of an edge within one type of nodes."""
_NO_KIND = {
    "",
    "id",
    "ids",
    "node",
    "nodes",
    "vertex",
    "key",
    "name",
    "no",
    "nr",
    "number",
    "code",
    "index",
    "idx",
}


def refuse_two_kinds(edges: Source, names: Sequence[str], overlap: Callable[[], bool]) -> None:
    """Refuse ends of edges that may be two types of nodes, as their columns are called, and have ids in common.

    Nothing is refused where the columns were named, or have usual names, or differ in words such as from and to.
    """
    columns = edges.columns
    split = (
        re.split("[^a-z]+", re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower()) for name in names
    )
    words = [set(found) - _NO_KIND for found in split]
    named = columns.source is not None and columns.target is not None
    usual = named or columns.names_ends(names) or all(map(_SIDES.fullmatch, words[0] ^ words[1]))
    if not usual and overlap():
        kinds = ",".join(re.sub("_?id$", "", name, flags=re.IGNORECASE) for name in names)
        found = (
            f"ids in common of {shorten(names[0])} and {shorten(names[1])}, which may be two types"
        )
        remedy = (
            f"Two types of nodes, each with ids of its own: --types {kinds}. One type: --source {names[0]} --target "
            f'{names[1]}. (In Python: types="{kinds}", or source= and target=.)'
        )
        raise InputError(
            str(edges.path), "edges whose ends are nodes of known types", found, remedy
        )


def refuse_missing_header(
    edges: Source, ends: Sequence[str], is_node: Callable[[int, str], bool]
) -> None:
    """Refuse names of both columns that are nodes, one at end 0, one at end 1: they are an edge that would be lost."""
    if edges.lines and not edges.columns.names_ends(ends) and all(map(is_node, (0, 1), ends)):
        raise InputError(
            format_location(edges.path, 1),
            "a header line",
            f"two node ids, {shorten(ends[0])} and {shorten(ends[1])}",
            'Add a first line "source,target"; if these two are the names of the columns, change them to that.',
        )
