"""infomax prepare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import Grouped, app
from infomax.cli.options import Directed, Half, Labels, has_options, option, table_options
from infomax.errors import InputError

UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
LEAST_BYTES = 10**8
"""Memory below which DuckDB does not get far."""


@app.command(cls=Grouped)
@has_options(tables=table_options("groups"))
def prepare(
    edges: Annotated[
        str,
        typer.Argument(
            metavar="EDGES",
            help="The edge table: a file, a folder of files, or a pattern in quotes.",
        ),
    ],
    nodes: Annotated[
        str | None, typer.Argument(metavar="NODES", help="The node table, likewise.")
    ] = None,
    *,
    out: Annotated[Path, option("FOLDER", "The graph folder to write.")],
    labels: Labels = None,
    directed: Directed = None,
    half: Half = False,
    memory: Annotated[
        str | None,
        option("SIZE", "Memory to work in, about.  [default: 4GB, or 80% of what is free]"),
    ] = None,
    like: Annotated[
        Path | None,
        option("RUN", "Make features of columns as in the graph of a run, to embed with it."),
    ] = None,
    tables: dict[str, Any],
) -> None:
    """Make a graph folder from tables that need not fit into memory.

    Tables are .parquet, .csv, .tsv or .txt, the last three also packed (.gz). Every command takes
    the folder as a GRAPH.
    """
    from infomax.graphs.graph import Graph
    from infomax.io.prepare import prepare as write_graph_folder
    from infomax.training import runs

    trained_graph = None
    if like is not None:
        run = runs.first_in(like)
        runs.check(run)
        trained_graph = runs.read_training_graph(run)
    with show.Steps("prepare", None) as steps:
        write_graph_folder(
            edges,
            nodes,
            out=out,
            labels=labels or (),
            directed=directed,
            half=half,
            memory=None if memory is None else _bytes(memory),
            like=trained_graph,
            progress=steps.update,
            **tables,
        )
    show.wrote(f"{out}/ ({Graph.open(out)!r})")


def _bytes(text: str) -> int:
    """The bytes that ``4GB`` or ``500M`` means; refused where they are too few."""
    number = text.strip().lower().removesuffix("b").rstrip()
    unit = number[-1:] if number[-1:] in UNITS else ""
    try:
        size = int(float(number.removesuffix(unit)) * UNITS[unit])
    except (ValueError, OverflowError):
        size = 0
    if size < LEAST_BYTES:
        raise InputError("--memory", "a size from 100MB, as in 4GB", text)
    return size
