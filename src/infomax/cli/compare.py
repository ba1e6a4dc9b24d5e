"""infomax compare."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Json
from infomax.errors import InputError


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    json: Json = None,
) -> None:
    """Show runs side by side: settings that differ, health, scores.

    Scores are those that infomax evaluate has shown of each run. Of several types of nodes, each is shown by itself.
    """
    from infomax.reports.side_by_side import compare_runs

    began, by_type = time.monotonic(), _by_type(runs)
    of_types: dict[str, Any] = {kind: compare_runs(folders) for kind, folders in by_type.items()}
    for kind, found in of_types.items():
        for section, rows in found.items():
            cells = [(name, *map(_cell, values)) for name, values in rows.items()]
            if cells:
                show.table(f"{kind}: {section}" if kind else section, ("", *map(str, by_type[kind])), cells)
    if not any(found["scores"] for found in of_types.values()):
        show.log.print("No scores: infomax evaluate RUN adds them.")
    show.write_result(json, {"runs": list(map(str, runs)), **of_types.get("", {"types": of_types})}, began)


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


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
