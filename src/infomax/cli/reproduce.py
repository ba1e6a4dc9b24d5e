"""infomax reproduce."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from infomax.cli import figures, show, table
from infomax.cli.app import app
from infomax.cli.options import Device, Json, ProbeName


@app.command()
def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="table|cora|citeseer|pubmed|ppi|reddit|debian-inductive|...|corruption|theory|figures",
            help="The paper's table with every method, DGI's rows of it by data set, its corruption study, its theory, "
            "or all its figures on Cora.",
        ),
    ],
    runs: Annotated[
        int | None, typer.Option(help="Encoders to train.  [default: 50; 1 a point of the corruption study]", min=1)
    ] = None,
    probe: ProbeName = "paper",
    json: Json = None,
    device: Device = "auto",
    dataset: Annotated[str, typer.Option(metavar="NAME", help="Data set of the corruption study.")] = "cora",
    points: Annotated[
        int, typer.Option(help="Points of the corruption study; 0 leaves it out of the figures.", min=0)
    ] = 13,
    datasets: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Columns of the table, with commas.  [default: the paper's]")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Rows of the table, with commas.  [default: all]")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where table, corruption, theory and figures write. A table goes on from what is there.",
        ),
    ] = None,
) -> None:
    """Make the paper's numbers, beside what the paper printed."""
    if what == "table":
        table.reproduce(
            out or Path("table"), datasets=datasets, methods=methods, runs=runs or 50, probe=probe, device=device
        )
        return
    if what in figures.STUDIES:
        figures.reproduce(what, out, dataset=dataset, runs=runs or 1, points=points, device=device)
        return
    from infomax import comparison
    from infomax.errors import InputError
    from infomax.runs import write_json

    began, runs = time.monotonic(), runs or 50
    if what not in comparison.EXPERIMENTS:
        known = ", ".join(("table", *comparison.EXPERIMENTS, *figures.STUDIES))
        raise InputError("reproduce", f"one of {known}", what)
    comparison.choose_probe(probe)
    with show.Steps(what, 2 * runs) as steps:
        result = comparison.reproduce(what, runs=runs, probe=probe, device=device, progress=steps.at)
    show.scores(f"{what}: {probe} probe, the data set's split, ± over encoders", result["rows"])
    if json is not None:
        write_json(json, result)
        show.wrote(json, began)
