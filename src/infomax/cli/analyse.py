"""infomax analyse."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, Threads, option
from infomax.cli.runs import OfType, RunArgument, read_into_memory, sampled_rows
from infomax.errors import InputError, library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph

MOST_SAMPLED_NODES = 10_000
"""Nodes of a graph folder that are analysed."""
SAMPLE_SEED = 0
REPORT_FILES = "report.html, with all figures as .png and .svg and their numbers as .json"


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
        # If the library is missing, this is said before the work.
        library("umap", "umap", "--projection umap")
    model = DGI.load(run, device=device)
    rows, sample_note = _sample(model, labels)
    label_column = classes(model.graph_, labels, rows)
    splits = []
    if label_column is not None:
        own_split = model.graph_.splits
        if rows is not None:
            own_split = {name: mask[rows] for name, mask in own_split.items()}
        splits = splits_for(encode_labels(label_column)[0], own_split)[0]
    make_folder(out)

    with show.Steps("analysis", None) as steps:
        chapters = analysis.analyse(
            model, label_column, splits, projection=projection, rows=rows, progress=steps.update
        )
        title = f"What was learnt: {run.resolve().name}"
        analysis.write_analysis(
            model, out, chapters, title=title, sample_note=sample_note, progress=steps.update
        )
    show.wrote(f"{out}/{REPORT_FILES}")


def _sample(model: DGI, labels: str | None) -> tuple[NDArray[np.int64] | None, str]:
    """The rows to analyse of a graph that is larger than memory, and a sentence about them."""
    graph = model.graph_
    if not model.preset_.regime.reads_folders or "seen" in graph.splits:
        read_into_memory(model)
        return None, ""

    # Nodes with a label of the graph's own are drawn first: there may be few.
    label_column = None
    for name, column in graph.labels.items():
        is_requested = labels is None or name == labels
        if is_requested and column.ndim == 1:
            label_column = column
            break
    rows = sampled_rows(model, MOST_SAMPLED_NODES, SAMPLE_SEED, label_column)
    if rows is None:
        return None, ""
    order = "" if label_column is None else "labelled ones first, "
    sample_note = (
        f"A sample of {len(rows):,} nodes, {order}drawn at random with seed {SAMPLE_SEED}, "
        "of a graph folder with "
    )
    show.log.print(f"{sample_note}{graph.num_nodes:,} nodes")
    return rows, sample_note


def classes(
    graph: Graph, labels: str | None, rows: NDArray[np.int64] | None = None
) -> NDArray[Any] | None:
    """The labels of the nodes ``[N]``; None where there are none.

    Args:
        graph: the graph of the run.
        labels: a label of the graph, or SOURCE:COLUMN. By default the first label of the graph
            that has classes.
        rows: ``[n]``, the rows of some nodes; then the labels are ``[n]``.
    """
    from infomax.cli.labels import LabelColumn, aligned, read_source, source_column

    requested_rows: Any = slice(None) if rows is None else rows
    if labels is None:
        return _first_classes([column[requested_rows] for column in graph.labels.values()])

    source_name, column_name = source_column(labels, graph) or LabelColumn("", labels)
    source = read_source(source_name, [column_name], graph)
    column: NDArray[Any] = source.labels[column_name]
    if source_name:
        column = aligned(graph.ids[requested_rows], source.ids, column)
    else:
        column = column[requested_rows]
    if column.ndim != 1:
        found = f"{column.shape[1]} in {labels}"
        raise InputError("--labels", "a column with one label per node", found)
    return column


def _first_classes(columns: list[NDArray[Any]]) -> NDArray[Any] | None:
    """The first label column whose classes can be split in three; names and constants cannot."""
    from infomax.evaluation.splits import encode_labels, random_splits

    for column in columns:
        with suppress(InputError):
            random_splits(encode_labels(column)[0], seed=0)
            return column
    return None
