"""infomax compare."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Json


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    json: Json = None,
) -> None:
    """Show runs side by side: settings that differ, health, scores.

    Scores are those that infomax evaluate has shown of each run.
    """
    from infomax.reports.runs import compare_runs

    began, found = time.monotonic(), compare_runs(runs)
    for section, rows in found.items():
        cells = [(name, *map(_cell, values)) for name, values in rows.items()]
        if cells:
            show.table(section, ("", *map(str, runs)), cells)
    if not found["scores"]:
        show.log.print("No scores: infomax evaluate RUN adds them.")
    show.write_result(json, {"runs": list(map(str, runs)), **found}, began)


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
