"""infomax compare."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Json
from infomax.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME_WIDTH = 24
"""Columns of a terminal that the name of a setting takes."""
RUN_WIDTH = 18
"""Columns of a terminal that the values of a run take."""


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    json: Json = None,
) -> None:
    """Show runs side by side: settings that differ, health, scores.

    Scores are those that infomax evaluate has shown of each run. Of several types of nodes, each is
    shown by itself.
    """
    from infomax.reports.comparison import compare_runs

    folders_by_type = _folders_by_type(runs)
    sections_by_type: dict[str, Any] = {
        node_type: compare_runs(folders) for node_type, folders in folders_by_type.items()
    }
    for node_type, sections in sections_by_type.items():
        run_names = _names_of_runs(folders_by_type[node_type])
        for section, values_by_name in sections.items():
            for title, rows in _tables(section, values_by_name).items():
                if node_type:
                    title = f"{node_type}: {title}"
                _show_side_by_side(title, run_names, rows)

    if not any(sections["scores"] for sections in sections_by_type.values()):
        show.log.print("No scores: infomax evaluate RUN adds them.")
    # Of one type, the sections stand beside the runs.
    result = sections_by_type.get("", {"types": sections_by_type})
    show.write_result(json, {"runs": list(map(str, runs)), **result})


def _folders_by_type(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """The runs to show side by side, by type of nodes; "" for graphs of one type.

    A folder of several seeds has several runs.
    """
    from infomax.training.runs import runs_in, types_of

    folders_by_type: dict[str, list[Path]] = {}
    for folder in folders:
        has_types = bool(types_of(folder))
        for name in runs_in(folder) or [Path()]:
            node_type = name.parts[0] if has_types else ""
            folders_by_type.setdefault(node_type, []).append(folder / name)
    if "" in folders_by_type and len(folders_by_type) > 1:
        raise InputError("compare", "runs of several types of nodes, or of one", "both")
    return folders_by_type


def _names_of_runs(folders: Sequence[Path]) -> list[str]:
    """The paths of runs, without the folders that all are in."""
    paths = [folder.absolute() for folder in folders]
    common_folder = os.path.commonpath([path.parent for path in paths])
    return [str(path.relative_to(common_folder)) for path in paths]


def _tables(section: str, values_by_name: dict[str, list[Any]]) -> dict[str, list[tuple[str, ...]]]:
    """The tables of a section by their titles: a row for each name, with a value for each run.

    The scores of each evaluation are a table of their own. Their names are ``EVALUATION: METHOD``.
    """
    tables: dict[str, list[tuple[str, ...]]] = {}
    for name, values in values_by_name.items():
        title = section
        row_name = name
        if section == "scores":
            evaluation, _, row_name = name.rpartition(": ")
            if evaluation:
                title = f"{section}, {evaluation}"
        tables.setdefault(title, []).append((row_name, *map(_cell, values)))
    return tables


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _show_side_by_side(
    title: str, run_names: Sequence[str], rows: Sequence[tuple[str, ...]]
) -> None:
    """Print a table of runs, or several below each other where the terminal is too narrow."""
    runs_per_table = max(1, (show.out.console.width - NAME_WIDTH) // RUN_WIDTH)
    for first in range(0, len(run_names), runs_per_table):
        shown = slice(first, first + runs_per_table)
        cells = []
        for name, *values in rows:
            if any(values[shown]):
                cells.append((name, *values[shown]))
        show.table(title, ("", *run_names[shown]), cells)
