"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph

GRAPH, METHOD, TRAINING, MACHINE = "Graph", "Method", "Training", "Machine"
"""Headings of options in ``infomax train --help``; what most people need has none, and comes first."""
GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A data set's name, a folder with edges.* and nodes.*, edges.csv[,nodes.csv], an .npz, a .graphml, or a "
        "folder that prepare wrote.",
    ),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, written by train.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column of the node table that is a label, not a feature. May be repeated."),
]
Directed = Annotated[
    bool,
    typer.Option(
        "--directed",
        help="Keep the direction of edges: messages go from source to target.",
        rich_help_panel=GRAPH,
    ),
]
Device = Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, ...", rich_help_panel=MACHINE)]


def writable(path: Path | None) -> Path | None:
    """Check that a file can be written, before the work is done."""
    from infomax.io.atomic import check_place

    if path is not None:
        check_place(path)
    return path


Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", callback=writable, help="Also write the result to this file, as JSON."),
]
PROBE_NAMES = "paper|converged|validated"
PROBE_HELP = (
    "paper: 100 steps of softmax regression, or of one logistic regression per label. converged: the same with 1,000 "
    "steps. validated: logistic regression with C chosen on validation nodes, for one label per node."
)
ProbeName = Annotated[str, typer.Option("--probe", metavar=PROBE_NAMES, help=PROBE_HELP)]


def in_memory(model: DGI) -> None:
    """Read the graph of a run into memory where it is a graph folder, if there is room for it and its vectors."""
    from infomax.kernels.device import choose_device
    from infomax.training import memory

    if model.graph_.folder is not None:
        memory.require(memory.embedding_bytes(model.graph_, model.model_.encoder.out_dim), choose_device("cpu"))
        model.graph_ = model.graph_.loaded()


def open_graph(
    name: str, labels: list[str] | None = None, directed: bool = False, features: tuple[str, ...] | None = None
) -> Graph:
    """Read the graph that a GRAPH argument names."""
    from infomax.datasets import DATASETS, load_dataset
    from infomax.errors import InputError
    from infomax.io import read_graph, with_labels

    path = Path(name)
    if path.exists() or path.suffix or "," in name:
        return read_graph(name, labels=labels or (), directed=directed, features=features)
    if name.lower() not in DATASETS:
        raise InputError(name, f"a file, a folder or a data set ({', '.join(DATASETS)})", "nothing of that name")
    graph = load_dataset(name)
    if directed and not graph.directed:
        raise InputError(name, "tables with arrows to keep (--directed)", "a data set whose edges run both ways")
    return with_labels(graph, labels, f"{name} --labels {','.join(labels)}") if labels else graph
