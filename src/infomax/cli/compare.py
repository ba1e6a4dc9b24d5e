"""infomax compare."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Json
from infomax.errors import InputError

NAME, RUN = 24, 18
"""Columns of a terminal that the name of a setting takes, and the values of a run."""


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    json: Json = None,
) -> None:
    """Show runs side by side: settings that differ, health, scores.

    Scores are those that infomax evaluate has shown of each run. Of several types of nodes, each is shown by itself.
    """
    from infomax.reports.comparison import compare_runs

    by_type = _by_type(runs)
    of_types: dict[str, Any] = {kind: compare_runs(folders) for kind, folders in by_type.items()}
    for kind, found in of_types.items():
        paths = [folder.absolute() for folder in by_type[kind]]
        above = os.path.commonpath([path.parent for path in paths])
        heads = (
            "",
            *(str(path.relative_to(above)) for path in paths),
        )  # without the folders that all are in
        for section, rows in found.items():
            for title, values in _titled(section, rows).items():
                _side_by_side(f"{kind}: {title}" if kind else title, heads, values)
    if not any(found["scores"] for found in of_types.values()):
        show.log.print("No scores: infomax evaluate RUN adds them.")
    show.write_result(json, {"runs": list(map(str, runs)), **of_types.get("", {"types": of_types})})


def _side_by_side(title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table of runs, or several below each other where the terminal is too narrow for all of them."""
    together = max(1, (show.out.console.width - NAME) // RUN)
    for first in range(1, len(heads), together):
        shown = slice(first, first + together)
        cells = [(row[0], *row[shown]) for row in rows if any(row[shown])]
        show.table(title, ("", *heads[shown]), cells)


def _by_type(folders: list[Path]) -> dict[str, list[Path]]:
    """The runs to show beside each other: those of each type of nodes, or all; a folder of seeds has several."""
    from infomax.training.runs import runs_in, types_of

    found: dict[str, list[Path]] = {}
    for folder in folders:
        kinds = types_of(folder)
        for name in runs_in(folder) or [Path()]:
            found.setdefault(name.parts[0] if kinds else "", []).append(folder / name)
    if "" in found and len(found) > 1:
        raise InputError("compare", "runs of several types of nodes, or of one", "both")
    return found


def _titled(section: str, rows: dict[str, list[Any]]) -> dict[str, list[tuple[str, ...]]]:
    """The cells of a section by the title of their table; scores of one evaluation have one, before their method."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    for name, values in rows.items():
        title, _, method = name.rpartition(": ") if section == "scores" else ("", "", name)
        cells = (
            "" if one is None else f"{one:.4g}" if isinstance(one, float) else str(one)
            for one in values
        )
        tables.setdefault(f"{section}, {title}" if title else section, []).append((method, *cells))
    return tables
