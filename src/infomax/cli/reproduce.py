"""infomax reproduce."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, Json, ProbeName


@app.command()
def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="cora|citeseer|pubmed|ppi|reddit|debian-inductive|...",
            help="The rows of the paper's table to make.",
        ),
    ],
    runs: Annotated[int, typer.Option(help="Encoders to train.", min=1)] = 50,
    probe: ProbeName = "paper",
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Make the paper's numbers, beside what the paper printed."""
    from infomax import comparison
    from infomax.errors import InputError
    from infomax.runs import write_json

    began = time.monotonic()
    if what not in comparison.EXPERIMENTS:
        raise InputError("reproduce", f"one of {', '.join(comparison.EXPERIMENTS)}", what)
    comparison.choose_probe(probe)
    with show.Steps(what, 2 * runs) as steps:
        result = comparison.reproduce(what, runs=runs, probe=probe, device=device, progress=steps.at)
    show.scores(f"{what}: {probe} probe, the data set's split, ± over encoders", result["rows"])
    if json is not None:
        write_json(json, result)
        show.wrote(json, began)
