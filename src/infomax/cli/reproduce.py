"""infomax reproduce."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from infomax.cli import figures, show, table
from infomax.cli.app import app
from infomax.cli.options import Device, Json, ProbeName

OPTIONS = {
    "table": ("runs", "probe", "device", "datasets", "methods", "out"),
    "DATASET": ("runs", "probe", "device"),
    "corruption": ("runs", "device", "dataset", "points", "out"),
    "theory": ("out",),
    "figures": ("runs", "device", "points", "out"),
}
"""What each part takes, beside --json."""


@app.command()
def reproduce(
    context: typer.Context,
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
    from infomax.errors import InputError
    from infomax.io.json import write_json
    from infomax.paper.comparison import EXPERIMENTS

    began, what = time.monotonic(), what.lower()
    known = ("table", *EXPERIMENTS, *figures.STUDIES)
    if what not in known:
        raise InputError("reproduce", f"one of {', '.join(known)}", what)
    _refuse_others(context, what)
    if what == "table":
        result = table.reproduce(
            out or Path(what), datasets=datasets, methods=methods, runs=runs or 50, probe=probe, device=device
        )
    elif what in figures.STUDIES:
        result = figures.reproduce(what, out, dataset=dataset, runs=runs or 1, points=points, device=device)
    else:
        result = _rows(what, runs=runs or 50, probe=probe, device=device)
    if json is not None:
        write_json(json, result)
        show.wrote(json, began)


def _refuse_others(context: typer.Context, what: str) -> None:
    """Refuse an option that this part would not heed."""
    from infomax.errors import InputError

    own = (*OPTIONS.get(what, OPTIONS["DATASET"]), "json")
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in (*own, "what") and source is not None and source.name == "COMMANDLINE":
            others = ", ".join(part for part, names in OPTIONS.items() if name in names)
            expected = ", ".join(f"--{option}" for option in own)
            raise InputError(f"reproduce {what}", expected, f"--{name}", f"It is an option of reproduce {others}.")


def _rows(dataset: str, *, runs: int, probe: str, device: str) -> dict[str, Any]:
    """DGI's rows of the table for one data set, printed."""
    from infomax.paper import comparison

    comparison.choose_probe(probe, [dataset])
    with show.Steps(dataset, 2 * runs) as steps:
        result = comparison.reproduce(dataset, runs=runs, probe=probe, device=device, progress=steps.at)
    show.scores(f"{dataset}: {probe} probe, the data set's split, ± over encoders", result["rows"])
    return result
