"""infomax explain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, option
from infomax.cli.runs import OfType, RunArgument
from infomax.errors import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infomax.estimator.explaining import ExplainedColumn, ExplainedNumber, Explanation

MOST_COLUMNS = 20
"""Columns that are printed; --json has all of them."""
MOST_FEATURES = 2
"""Features of a column that are printed, where the column was not asked for."""
CELL_WIDTH = 26
"""Characters of a cell, or a name, that are printed."""


@app.command()
def explain(
    run: RunArgument,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The id or the name of a node.")],
    column: Annotated[
        str | None, option("NAME", "Follow this column alone, with all of its numbers.")
    ] = None,
    number: Annotated[
        int | None, option("N", "Follow the number in this position of the vector, from 0 on.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all numbers as JSON instead.")
    ] = False,
    device: Device = "auto",
    type: OfType = None,
) -> None:
    """Show what the vector of a node is made of.

    Cells become features, which the encoder reads scaled; edges say whose features are pooled;
    parts are centred and get their lengths, and stand side by side in the vector.
    """
    from infomax.cli.searching import of_one_type
    from infomax.estimator import DGI

    run_of_type, (node_of_type,), _ = of_one_type(run, [node])
    model = DGI.load(run_of_type)
    explanation = model.explain(node_of_type, column=column, number=number, device=device)
    if as_json:
        show.out.print(json.dumps(explanation.to_json(), indent=1, ensure_ascii=False))
        return
    _show_cells(explanation, has_one_column=column is not None or number is not None)
    _show_paths(explanation)
    _show_parts(explanation)
    if column is not None or number is not None:
        show.out.print("functions that make these steps")
        _print_rows(list(explanation.functions.items()), most_characters=80)


def _show_cells(explanation: Explanation, *, has_one_column: bool) -> None:
    name = f" ({explanation.name})" if explanation.name else ""
    show.out.print(f"{explanation.node_type} {explanation.id}{name}".strip())
    if not explanation.columns:
        return  # a number is followed that no cell of this node is part of
    show.out.print("cells -> features -> what the encoder reads; their length in the own part")
    rows: list[tuple[str, ...]] = []
    for column in explanation.columns[:MOST_COLUMNS]:
        most_features = len(column.features) if has_one_column else MOST_FEATURES
        rows += _rows_of_column(column, most_features)
    _print_rows(rows)
    hidden_count = len(explanation.columns) - MOST_COLUMNS
    if hidden_count > 0:
        show.out.print(f"  {hidden_count} more columns: --column NAME, or --json")


def _rows_of_column(column: ExplainedColumn, most_features: int) -> list[tuple[str, ...]]:
    """A line for each feature of a column, the largest first."""
    cell = "missing" if column.cell is None else _cell_text(column.cell)
    own_length = "" if column.own_length is None else f"own {column.own_length:.4g}"
    features = sorted(column.features, key=lambda feature: -abs(feature.scaled))[:most_features]
    rows: list[tuple[str, ...]] = []
    for feature in features:
        numbers = (f"{feature.encoded:.4g}", f"{feature.scaled:.4g}")
        rows.append((column.name, column.column_type, cell, feature.name, *numbers, own_length))
    if not rows:
        rows.append((column.name, column.column_type, cell, "all features 0", "0", "0", own_length))
    # What belongs to the column as a whole stands in its first line.
    for position, row in enumerate(rows[1:], 1):
        rows[position] = ("", "", "", *row[3:6], "")
    hidden_count = len(column.features) - len(features)
    if hidden_count > 0:
        rows.append(("", "", "", f"{hidden_count} more features", "", "", ""))
    return rows


def _cell_text(cell: Any) -> str:
    from infomax.estimator.explaining import time_in_words

    # Nine digits tell every float32.
    return f"{cell:.9g}" if isinstance(cell, float) else time_in_words(cell)


def _show_paths(explanation: Explanation) -> None:
    show.out.print("neighbours whose features the encoder pools, and their shares of the messages")
    rows = []
    for path in explanation.paths:
        senders = [
            f"{100 * sender.share:.1f} % {sender.name or sender.id}" for sender in path.senders
        ]
        path_name = path.name or "edges, and itself"
        rows.append((path_name, format_count(path.sender_count, "node"), *senders))

    # Names of paths begin alike: those that do not fit beside the others have lines of their own.
    if all(len(path_name) <= CELL_WIDTH for path_name, *_ in rows):
        _print_rows(rows)
        return
    for path_name, *cells in rows:
        show.out.print(f"  {path_name}")
        show.out.print("    " + ", ".join(cells))


def _show_parts(explanation: Explanation) -> None:
    from infomax.arrays.resemblance import in_words
    from infomax.training.recipe import HALF_LENGTH, RAISED_LENGTH

    show.out.print(
        "parts of the vector: length -> after centring -> after the factor; share of the vector"
    )
    rows = []
    for part in explanation.parts:
        lengths = (f"{part.raw_length:.4g}", f"{part.centred_length:.4g}", f"{part.length:.4g}")
        numbers = format_count(part.width, "number")
        rows.append((part.name, numbers, *lengths, f"{100 * part.share:.1f} %"))
    _print_rows(rows)
    if explanation.resemblance is not None:
        length_range = f"{HALF_LENGTH:g}, or up to {RAISED_LENGTH:g} where neighbours are not alike"
        resemblance = in_words(explanation.resemblance)
        show.out.print(f"  the mean length of own is {length_range}: {resemblance}")

    show.out.print("numbers of the vector, [N] as for --number, from 0 on: (raw - centre) x factor")
    for part in explanation.parts:
        for number in part.numbers:
            made = f"({number.raw:.4g} - {number.centre:.4g}) x {number.factor:.4g}"
            show.out.print(f"  [{number.position}] {number.name}: {made} = {number.value:.4g}")
            if number.terms:
                show.out.print(f"    {_sum_of_terms(number)}")
    rotated = ", then turned onto earlier vectors" if explanation.is_rotated else ""
    width = format_count(len(explanation.vector), "number")
    show.out.print(f"vector: {width} of length {explanation.length:.4g}{rotated}")


def _sum_of_terms(number: ExplainedNumber) -> str:
    """What a raw number is the sum of: ``2.121 = 2.121 of city 7 x 1``."""
    terms = [f"{term.value:.4g} of {term.name} x {term.weight:.4g}" for term in number.terms]
    hidden_count = number.term_count - len(terms)
    if hidden_count > 0:
        terms.append(f"{hidden_count:,} more")
    return f"{number.raw:.4g} = {' + '.join(terms)}"


def _print_rows(rows: Sequence[Sequence[str]], most_characters: int = CELL_WIDTH) -> None:
    """Print cells below each other, none of more characters than the limit."""
    cells = [[_cut(cell, most_characters) for cell in row] for row in rows]
    column_count = max(map(len, cells), default=0)
    widths = [
        max(len(row[column]) for row in cells if len(row) > column)
        for column in range(column_count)
    ]
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        show.out.print("  " + "  ".join(padded).rstrip())


def _cut(text: str, most_characters: int) -> str:
    if len(text) <= most_characters:
        return text
    return f"{text[: most_characters - 1]}…"
