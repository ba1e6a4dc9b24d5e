"""Arguments and options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from infomax.cli import show
from infomax.errors import InputError

if TYPE_CHECKING:
    from infomax.graphs.graph import Graph

T = TypeVar("T")
GRAPH, MACHINE, COLUMNS = "Graph", "Machine", "Columns of tables"
"""Headings of options in ``infomax train --help``; what most people need has none, and comes first."""


def option(metavar: str, help: str, *names: str, heading: str | None = None, **more: Any) -> Any:
    """An option: what stands for its value, and what it does; typer makes its name of the parameter's."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=heading, **more)


def optional(kind: Any, metavar: str, help: str, *names: str, **more: Any) -> Any:
    """The annotation of an option for `has_options`, whose value is of a kind, or None."""
    return Annotated[kind | None, option(metavar, help, *names, **more)]


def _use_threads(count: int | None) -> None:
    if count is not None:
        os.environ["OMP_NUM_THREADS"] = str(count)  # for libraries that are loaded later
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(count)


def writable(path: Path | None) -> Path | None:
    """Check that a file can be written, before the work is done."""
    from infomax.io.atomic import check_place

    if path is not None:
        check_place(path)
    return path


def _result_file(path: Path | None) -> Path | None:
    """Check that a table of results can be written to a file, before the work is done."""
    from infomax.io.result_files import check_result

    return writable(check_result(path))


def _device_name(name: str) -> str:
    """Refuse what is no name of a device, also where a command comes to need none; torch is not loaded."""
    device_type, colon, number = name.partition(":")
    is_numbered = device_type == "cuda" and number.isdecimal()
    if device_type not in ("auto", "cpu", "cuda") or (colon and not is_numbered):
        expected = "auto, cpu, cuda, cuda:1, ..."
        raise InputError(f"device {name}", expected, "none of them", "Use auto or cpu.")
    return name


GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A data set's name, a folder with edges.* and nodes.*, edges.csv[,nodes.csv], an .npz, a .graphml, a "
        "folder of these, or one that prepare wrote; or a database: SQLite, DuckDB, postgresql://..., "
        "a folder of tables.",
    ),
]
NodesArgument = Annotated[
    str | None,
    typer.Argument(metavar="NODES", help="The node table, where GRAPH is an edge table alone."),
]
Labels = Annotated[
    list[str] | None,
    option("COLUMN", "A column of the node table that is a label, not a feature. May be repeated."),
]
Directed = Annotated[
    bool | None,
    typer.Option(
        "--directed/--undirected",
        help="Whether messages go from source to target only.  [default: as a .graphml says, else undirected]",
        rich_help_panel=GRAPH,
        show_default=False,
    ),
]
Device = Annotated[
    str,
    option("NAME", "auto, cpu, cuda, cuda:1, ...", heading=MACHINE, callback=_device_name),
]
Threads = Annotated[
    int | None,
    option(
        "N",
        "Use at most so many CPU threads.  [default: OMP_NUM_THREADS, else one per core]",
        heading=MACHINE,
        min=1,
        max=1024,  # libraries crash where the system cannot start so many
        callback=_use_threads,
        is_eager=True,
        expose_value=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Go on where this command was interrupted; start where it was not begun."
    ),
]
Half = Annotated[
    bool,
    typer.Option(
        "--half",
        help="Store in half precision, half the bytes: features, or vectors of a graph folder.",
    ),
]
Json = Annotated[
    Path | None, option("FILE", "Also write the result to this file, as JSON.", callback=writable)
]
ResultFile = Annotated[
    Path | None,
    option("FILE", "Write the result to a .csv, .tsv, .parquet or .json.", callback=_result_file),
]
Seed = Annotated[int, option("N", "Seed of all that is drawn at random.", min=0, max=2**32 - 1)]
PROBE_NAMES = "paper|converged|validated"
PROBE_HELP = (
    "paper: 100 steps of softmax regression, or of one logistic regression per label. converged: the same until it "
    "converges. validated: for one label per node, logistic regression with C chosen on validation nodes."
)
ProbeName = Annotated[str, option(PROBE_NAMES, PROBE_HELP)]

_column = partial(optional, heading=COLUMNS)
TABLE_OPTIONS = {
    "id": _column(
        str, "COLUMN", "The column of ids in the node table.  [default: id, else the first]"
    ),
    "name": _column(
        str, "COLUMN", "The column of the node table that holds names, to show beside ids."
    ),
    "source": _column(
        str, "COLUMN", "The column of the edge table where edges begin.  [default: source]"
    ),
    "target": _column(
        str, "COLUMN", "The column of the edge table where edges end.  [default: target]"
    ),
    "weight": _column(
        str,
        "COLUMN",
        "The column of weights; count: how many rows an edge has.  [default: weight, if there is one]",
    ),
    "features": _column(
        list[str],
        "COLUMN|FILE",
        "A column that is a feature; others are then ignored. May be repeated. Or a file with one row per node: "
        ".npy, or .npz of scipy; or degrees or positions, made of the edges.  [default: all columns, else positions]",
    ),
    "columns": _column(
        list[str],
        "NAME=KIND",
        "What a column, of several types TYPE.NAME, is: number, boolean, category, date, text, tokens, name, label, "
        "ignore, id, time; source, target, weight or relation of edges; type or group of nodes. May be repeated.  "
        "[default: found from its name and values]",
        "--column",
    ),
    "ignore": _column(
        list[str], "COLUMN", "A column of the node table to ignore. May be repeated."
    ),
    "schema": _column(
        str,
        "FILE",
        "What all tables and columns are; infomax info GRAPH --schema FILE writes it.",
    ),
    "delimiter": _column(
        str,
        "CHARACTER",
        "What separates the cells of text tables, whatever their extension: a character, or tab, "
        "bar, space, semicolon.  [default: commas in .csv, tabs in .tsv and .txt]",
    ),
    "header": Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line of text tables names the columns; else they are column1, column2, ...",
            rich_help_panel=COLUMNS,
            show_default=False,
        ),
    ],
    "encoding": _column(
        str, "NAME", "The encoding of text tables, such as latin-1.  [default: utf-8]"
    ),
    "key": _column(
        list[str],
        "TABLE.COLUMN=TABLE",
        "A key of a database that is neither declared nor found; or =none. May be repeated.",
    ),
    "pk": _column(
        list[str],
        "TABLE.COLUMN",
        "The column, or columns joined by +, that tell the rows of a table of a database apart. May be repeated.",
    ),
    "table": _column(
        list[str],
        "TABLE=ROLE",
        "What a table of a database becomes: nodes, facts, edges, lookup or ignore. May be repeated.",
    ),
    "types": _column(
        str, "TYPE,TYPE", "The types of nodes where edges begin and end, as user,item."
    ),
    "edge_type": _column(
        str, "COLUMN", "The column of the edge table that names the relation of an edge."
    ),
    "node_type": _column(
        str, "COLUMN", "The column of the node table that names the type of a node."
    ),
    "edges_as": _column(
        str, "TYPE", "Make every row of the edge table a node of this type, with features."
    ),
    "groups": _column(
        str, "COLUMN", "The column of the node table that names the graph of a node, of several."
    ),
    "time": _column(
        list[str],
        "COLUMN",
        "Since when a row is there; of several types TYPE.COLUMN. Rows of edge tables then become nodes.",
    ),
    "as_of": _column(
        str, "DAY", "Leave out rows of a later time, and their edges: 2010-01-01, or with the hour."
    ),
}
"""The options about tables, by the names that `Columns.of` has for them."""
SAID_BY_COLUMN = ("id", "source", "target", "groups", "node_type", "edge_type")
"""Options that say what ``--column NAME=USE`` says; other tools type them."""
FeatureFile = _column(str, "FILE", "A file with one row per node: .npy, or .npz of scipy.")
"""Features of a graph for a trained encoder, which knows the names of columns."""


def reads_tables(*names: str, **others: Any) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a command some of the options about tables, and others; ``tables`` has those that were given."""
    return has_options(tables={name: TABLE_OPTIONS[name] for name in names} | others)


def table_options(*left_out: str) -> dict[str, Any]:
    """The options about tables of a command that reads a new graph, but for some.

    Those that ``--column NAME=USE`` says as well are not listed by ``--help``.
    """
    return {
        name: _unlisted(annotation) if name in SAID_BY_COLUMN else annotation
        for name, annotation in TABLE_OPTIONS.items()
        if name not in left_out
    }


def _unlisted(annotation: Any) -> Any:
    """The annotation of an option that ``--help`` does not list."""
    value_type, info = get_args(annotation)
    info = copy(info)
    info.hidden = True
    return Annotated[value_type, info]


def has_options(**groups: Mapping[str, Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a command groups of options, by name, in place of a parameter; it has the values that were given."""

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        parameters: list[Parameter] = []
        for name, own in signature(command, eval_str=True).parameters.items():
            more = groups.get(name, {}).items()
            added = [
                Parameter(one, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
                for one, kind in more
            ]
            parameters += added or [own]

        @wraps(command)
        def run(**given: Any) -> T:
            for group, names in groups.items():
                values = {name: given.pop(name) for name in names}
                given[group] = {
                    name: value for name, value in values.items() if value not in (None, [], "")
                }
            return command(**given)

        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def open_graph(
    name: str,
    labels: list[str] | None,
    directed: bool | None,
    columns: Mapping[str, Any],
    *,
    nodes: str | None = None,
    like: Graph | None = None,
    labels_like: Graph | None = None,
) -> Graph:
    """Read the graph that GRAPH and NODES name, with the columns that a person chose, or as those of another graph.

    For labels of the nodes of a known graph, ``labels_like``, no features are read.
    """
    from infomax.datasets import DATASETS, load_dataset
    from infomax.graphs.graph import Graph
    from infomax.io.columns import Columns
    from infomax.io.known import like_known
    from infomax.io.reading import check_directions, read_record, with_labels

    path = Path(name)
    if path.exists() or path.suffix or "," in name or "://" in name or nodes is not None:
        chosen = Columns.of(labels or (), **columns)
        if like is not None:
            chosen = like_known(chosen, like)
        elif labels_like is not None:
            chosen = replace(chosen, schema=labels_like.schema).like((), None)
        with show.Steps("reading", None) as steps:
            graph = Graph.of(read_record(name, nodes, chosen, directed=directed, progress=steps.at))
    elif name.lower() not in DATASETS:
        raise InputError(
            name, f"a file, a folder or a data set ({', '.join(DATASETS)})", "nothing of that name"
        )
    elif columns:
        raise InputError(
            f"--{next(iter(columns))}", "tables to choose columns of", f"the data set {name}"
        )
    else:
        graph = with_labels(
            load_dataset(name), labels or (), f"{name} --labels {','.join(labels or ())}"
        )
        check_directions(graph, directed, name)
    return graph
