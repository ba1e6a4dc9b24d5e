"""Arguments and options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.errors import InputError

if TYPE_CHECKING:
    from infomax.graphs.graph import Graph

GRAPH, MACHINE, COLUMNS = "Graph", "Machine", "Columns of tables"
"""Headings of options in ``infomax train --help``; what most people need has none, and comes first."""
GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A data set's name, a folder with edges.* and nodes.*, edges.csv[,nodes.csv], an .npz, a .graphml, a "
        "folder of such graphs, or one that prepare wrote. Or a database: a SQLite or DuckDB file, postgresql://..., "
        "or a folder of tables with keys.",
    ),
]

NodesArgument = Annotated[
    str | None, typer.Argument(metavar="NODES", help="The node table, where GRAPH is an edge table alone.")
]


Labels = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column of the node table that is a label, not a feature. May be repeated."),
]
Directed = Annotated[
    bool | None,
    typer.Option(
        "--directed/--undirected",
        help="Keep the direction of edges: messages go from source to target. Or not.  [default: as a .graphml says, "
        "else undirected]",
        rich_help_panel=GRAPH,
        show_default=False,
    ),
]
Device = Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, ...", rich_help_panel=MACHINE)]


def _use_threads(count: int | None) -> None:
    if count is not None:
        os.environ["OMP_NUM_THREADS"] = str(count)  # for libraries that are loaded later
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(count)


Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=1024,  # libraries crash where the system cannot start so many
        callback=_use_threads,
        is_eager=True,
        expose_value=False,
        help="Use at most so many CPU threads.  [default: OMP_NUM_THREADS, else one per core]",
        rich_help_panel=MACHINE,
    ),
]


def _in_columns(*names: str, metavar: str = "COLUMN", help: str) -> Any:
    """An option under the heading of columns; typer makes its name of the parameter's."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=COLUMNS)


Id = Annotated[str | None, _in_columns(help="The column of ids in the node table.  [default: id, else the first]")]
Name = Annotated[str | None, _in_columns(help="The column of the node table that holds names, to show beside ids.")]
Source = Annotated[str | None, _in_columns(help="The column of the edge table where edges begin.  [default: source]")]
Target = Annotated[str | None, _in_columns(help="The column of the edge table where edges end.  [default: target]")]
Weight = Annotated[
    str | None,
    _in_columns(
        help="The column of weights in the edge table; count: an edge weighs as much as it has rows.  "
        "[default: weight, if there is one]"
    ),
]
Features = Annotated[
    list[str] | None,
    _in_columns(
        metavar="COLUMN|FILE",
        help="A column that is a feature; others are then ignored. May be repeated. Or a file with one row per node: "
        ".npy, or .npz of scipy. Or degrees or positions, made of the edges.  [default: all columns; where there are "
        "none, positions]",
    ),
]
FeatureFile = Annotated[
    str | None, _in_columns(metavar="FILE", help="A file with one row per node: .npy, or .npz of scipy.")
]
"""Features of a graph for a trained encoder, which knows the names of columns."""
ColumnKinds = Annotated[
    list[str] | None,
    _in_columns(
        "--column",
        metavar="NAME=KIND",
        help="What a column of the node table is: number, boolean, category, date, text, tokens, name, label, id or "
        "ignore. TYPE.NAME is the column of one of several types. May be repeated.  [default: found from its values]",
    ),
]
Ignore = Annotated[list[str] | None, _in_columns(help="A column of the node table to ignore. May be repeated.")]
Types = Annotated[
    str | None,
    _in_columns(metavar="TYPE,TYPE", help="The types of nodes where edges begin and where they end, as in user,item."),
]
EdgeType = Annotated[str | None, _in_columns(help="The column of the edge table that names the relation of an edge.")]
NodeType = Annotated[str | None, _in_columns(help="The column of the node table that names the type of a node.")]
EdgesAs = Annotated[
    str | None,
    _in_columns(
        metavar="TYPE",
        help="Make every row of the edge table a node of this type, with the other columns as features.",
    ),
]
Time = Annotated[
    list[str] | None,
    _in_columns(
        help="The column that says since when a row is there; of several types TYPE.COLUMN, once for each. Of an edge "
        "table, its rows become nodes.",
    ),
]
AsOf = Annotated[
    str | None,
    _in_columns(metavar="DAY", help="Leave out rows of a later time, and their edges: 2010-01-01, or with the hour."),
]
Groups = Annotated[
    str | None, _in_columns(help="The column of the node table that names the graph of a node, of several.")
]

Key = Annotated[
    list[str] | None,
    _in_columns(
        metavar="TABLE.COLUMN=TABLE",
        help="Of a database: a key that is neither declared nor found, as orders.buyer=customers; or =none. May be "
        "repeated.",
    ),
]
TableRole = Annotated[
    list[str] | None,
    _in_columns(
        metavar="TABLE=ROLE",
        help="Of a database: what a table becomes: nodes, facts, edges, lookup or ignore. May be repeated.",
    ),
]


def given_columns(context: typer.Context) -> dict[str, Any]:
    """The options about columns of tables that were given to a command, as `Columns.of` takes them."""
    names = [one.name for one in context.command.params if getattr(one, "rich_help_panel", None) == COLUMNS]
    return {name: value for name in names if name is not None and (value := context.params[name])}


def writable(path: Path | None) -> Path | None:
    """Check that a file can be written, before the work is done."""
    from infomax.io.atomic import check_place

    if path is not None:
        check_place(path)
    return path


def result_file(path: Path | None) -> Path | None:
    """Check that a table of results can be written to a file, before the work is done."""
    from infomax.io.result_files import check_result

    return writable(check_result(path))


Json = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=writable, help="Also write the result to this file, as JSON."),
]
PROBE_NAMES = "paper|converged|validated"
PROBE_HELP = (
    "paper: 100 steps of softmax regression, or of one logistic regression per label. converged: the same to the "
    "lowest loss; for one label per node, 1,000 steps. validated: logistic regression with C chosen on validation "
    "nodes, for one label per node."
)
ProbeName = Annotated[str, typer.Option(metavar=PROBE_NAMES, help=PROBE_HELP)]


def open_graph(
    name: str,
    labels: list[str] | None,
    directed: bool | None,
    columns: Mapping[str, Any],
    *,
    nodes: str | None = None,
    like: Graph | None = None,
    earlier: Mapping[str, str] | None = None,
) -> Graph:
    """Read the graph that GRAPH and NODES name, with the columns that a person chose, or as those of another graph.

    With those of an ``earlier`` graph, which are taken where tables have them, no features are read.
    """
    from infomax.datasets import DATASETS, load_dataset
    from infomax.graphs.graph import Graph
    from infomax.io.columns import Columns
    from infomax.io.known import like_known
    from infomax.io.reading import check_directions, read_record, with_labels

    path = Path(name)
    if path.exists() or path.suffix or "," in name or "://" in name or nodes is not None:
        chosen = Columns.of(labels or (), earlier=earlier or {}, **columns)
        if like is not None:
            chosen = like_known(chosen, like)
        elif earlier is not None:
            chosen = chosen.like((), None)
        with show.Steps("reading", None) as steps:
            graph = Graph.of(read_record(name, nodes, chosen, directed=directed, progress=steps.at))
    elif name.lower() not in DATASETS:
        raise InputError(name, f"a file, a folder or a data set ({', '.join(DATASETS)})", "nothing of that name")
    elif columns:
        raise InputError(f"--{next(iter(columns))}", "tables to choose columns of", f"the data set {name}")
    else:
        graph = with_labels(load_dataset(name), labels or (), f"{name} --labels {','.join(labels or ())}")
        check_directions(graph, directed, name)
    return graph
