"""infomax analyse."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, Threads, option
from infomax.cli.runs import OfType, RunArgument, in_memory, sampled_rows
from infomax.errors import InputError, library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph

SAMPLE, SEED = 10_000, 0
"""Nodes of a graph folder that are analysed, and the seed that draws them."""
FILES = "report.html, with all figures as .png and .svg and their numbers as .json"


@app.command()
def analyse(
    run: RunArgument,
    labels: Annotated[
        str | None,
        option(
            "SOURCE:COLUMN",
            "The classes, from a node table or any GRAPH (graph.npz:COLUMN); or COLUMN of the run.",
        ),
    ] = None,
    *,
    out: Annotated[Path, option("FOLDER", "Where to write.")],
    projection: Annotated[
        Literal["tsne", "umap"], typer.Option(help="How to place the nodes in the plane.")
    ] = "tsne",
    device: Device = "auto",
    type: OfType = None,
    threads: Threads = None,
) -> None:
    """Write figures, numbers and a report about what a run learnt.

    Of a graph folder it analyses a sample of the nodes.
    """
    from infomax.estimator import DGI
    from infomax.evaluation.splits import encode_labels, splits_for
    from infomax.io.atomic import make_folder
    from infomax.reports import analysis

    if projection == "umap":
        library("umap", "umap", "--projection umap")  # if it is missing, say so before the work
    model = DGI.load(run, device=device)
    rows, drawn = _sample(model, labels)
    column = classes(model.graph_, labels, rows)
    parts = {
        name: mask if rows is None else mask[rows] for name, mask in model.graph_.splits.items()
    }
    splits = [] if column is None else splits_for(encode_labels(column)[0], parts)[0]
    make_folder(out)
    with show.Steps("analysis", None) as steps:
        chapters = analysis.analyse(
            model, column, splits, projection=projection, rows=rows, progress=steps.at
        )
        title = f"What was learnt: {run.resolve().name}"
        analysis.write_analysis(model, out, chapters, title=title, drawn=drawn, progress=steps.at)
    show.wrote(f"{out}/{FILES}")


def _sample(model: DGI, labels: str | None) -> tuple[NDArray[np.int64] | None, str]:
    """The nodes to analyse where a run's graph is larger than memory, and a sentence about them."""
    graph = model.graph_
    if not model.preset_.regime.reads_folders or "seen" in graph.splits:
        in_memory(model)
        return None, ""
    own = {name: graph.labels[name] for name in graph.labels if labels in (None, name)}
    column = next((column for column in own.values() if column.ndim == 1), None)
    rows = sampled_rows(model, SAMPLE, SEED, column)
    if rows is None:
        return None, ""
    first = "" if column is None else "labelled ones first, "
    drawn = f"A sample of {len(rows):,} nodes, {first}drawn at random with seed {SEED}, of a graph folder with "
    show.log.print(f"{drawn}{graph.num_nodes:,} nodes")
    return rows, drawn


def classes(
    graph: Graph, labels: str | None, rows: NDArray[np.int64] | None = None
) -> NDArray[Any] | None:
    """The labels of the nodes ``[N]``: from a file, a label column, or the first usable one; None: there is none.

    With ``rows`` only of these nodes.
    """
    from infomax.cli.labels import aligned, read_source, source_column
    from infomax.evaluation.splits import encode_labels, random_splits

    some: Any = slice(None) if rows is None else rows
    if labels is None:
        for column in graph.labels.values():
            own: NDArray[Any] = column[some]
            with suppress(
                InputError
            ):  # names and constants cannot be divided into three parts by class
                random_splits(encode_labels(own)[0], seed=0)
                return own
        return None
    source, name = source_column(labels, graph) or ("", labels)
    found = read_source(source, [name], graph)
    column = (
        aligned(graph.ids[some], found.ids, found.labels[name])
        if source
        else found.labels[name][some]
    )
    if column.ndim != 1:
        raise InputError(
            "--labels", "a column with one label per node", f"{column.shape[1]} in {labels}"
        )
    return column
