"""Arguments and options that several commands share, and the graph that they name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
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
TABLES = "What the tables hold"
"""A heading of ``--help``. Options that most people need have none, and come first."""
MACHINE = "Where it runs"
MOST_THREADS = 1024
"""Libraries crash where the system cannot start as many threads as a person asks for."""


def option(metavar: str, help: str, *names: str, heading: str | None = None, **more: Any) -> Any:
    """An option of a command.

    Args:
        metavar: what stands for its value in ``--help``.
        help: what it does.
        names: its names; by default typer makes one of the parameter's name.
        heading: the heading under which ``--help`` lists it.
        more: what else `typer.Option` takes.
    """
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=heading, **more)


def optional(value_type: Any, metavar: str, help: str, *names: str, **more: Any) -> Any:
    """The annotation of an option for `has_options`: a value of a type, or None."""
    return Annotated[value_type | None, option(metavar, help, *names, **more)]


def _use_threads(count: int | None) -> None:
    if count is None:
        return
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
    """Refuse what is no name of a device, without loading torch.

    A command that comes to need no device refuses such a name as well.
    """
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
        help="A data set's name, a folder with edges.* and nodes.*, edges.csv[,nodes.csv], an "
        ".npz, a .graphml, a folder of these, or one that prepare wrote; or a database: SQLite, "
        "DuckDB, postgresql://..., a folder of tables.",
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
        help="Whether messages go from source to target only.  "
        "[default: as a .graphml says, else undirected]",
        rich_help_panel=TABLES,
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
        max=MOST_THREADS,
        callback=_use_threads,
        # Before a graph is read, so that libraries which reading loads obey it.
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
    "paper: 100 steps of softmax regression, or of one logistic regression per label. converged: "
    "the same until it converges. validated: for one label per node, logistic regression with C "
    "chosen on validation nodes."
)
ProbeName = Annotated[str, option(PROBE_NAMES, PROBE_HELP)]

_column = partial(optional, heading=TABLES)
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
        "The column of weights; count: how many rows an edge has.  "
        "[default: weight, if there is one]",
    ),
    "features": _column(
        list[str],
        "COLUMN|FILE",
        "A column that is a feature; others are then ignored. May be repeated. Or a file with one "
        "row per node: .npy, or .npz of scipy; or degrees or positions, made of the edges.  "
        "[default: all columns, else positions]",
    ),
    "columns": _column(
        list[str],
        "NAME=USE",
        "What a column, of several types TYPE.NAME, is: number, boolean, category, date, text, "
        "tokens, name, label, ignore, id, time; source, target, weight or relation of edges; type "
        "or group of nodes. May be repeated.  [default: found from its name and values]",
        "--column",
    ),
    "ignore": _column(
        list[str], "COLUMN", "A column of the node table to ignore. May be repeated."
    ),
    # It says what all others say, so it stands among the options that most people need.
    "schema": optional(
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
            help="Whether the first line of text tables names the columns; "
            "else they are column1, column2, ...",
            rich_help_panel=TABLES,
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
        "The column, or columns joined by +, that tell the rows of a table of a database apart. "
        "May be repeated.",
    ),
    "table": _column(
        list[str],
        "TABLE=ROLE",
        "What a table of a database becomes: nodes, facts, edges, lookup or ignore. "
        "May be repeated.",
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
        "Since when a row is there; of several types TYPE.COLUMN. Rows of edge tables then become "
        "nodes.",
    ),
    "as_of": _column(
        str, "DAY", "Leave out rows of a later time, and their edges: 2010-01-01, or with the hour."
    ),
}
"""The options about tables, by the names that `UserChoices.of` has for them."""
SAID_BY_COLUMN = ("id", "source", "target", "groups", "node_type", "edge_type")
"""Options that say what ``--column NAME=USE`` says; other tools type them."""
SAID_BY_SCHEMA = (*SAID_BY_COLUMN, "name", "weight", "ignore", "key", "pk", "table")
"""Options that say what a line of a schema says, and ``infomax info`` lists."""
TEXT_FORMAT = ("delimiter", "header", "encoding")
"""Options about text tables that are written otherwise than most are."""
FeatureFile = _column(str, "FILE", "A file with one row per node: .npy, or .npz of scipy.")
"""Features of a graph for a trained encoder, which knows the names of columns."""


def reads_tables(*names: str, **others: Any) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a command some of the options about tables, and others, in its parameter ``tables``."""
    return has_options(tables={name: TABLE_OPTIONS[name] for name in names} | others)


def table_options(*left_out: str, hidden: Collection[str] = SAID_BY_COLUMN) -> dict[str, Any]:
    """The options about tables of a command that reads a new graph.

    Args:
        left_out: the options that the command does not have.
        hidden: the options that it has, and that its ``--help`` only names.
    """
    options = {}
    for name, annotation in TABLE_OPTIONS.items():
        if name not in left_out:
            options[name] = as_hidden(annotation) if name in hidden else annotation
    return options


def as_hidden(annotation: Any) -> Any:
    """The annotation of the same option, which ``--help`` only names."""
    value_type, info = get_args(annotation)
    info = copy(info)
    info.hidden = True
    return Annotated[value_type, info]


def has_options(**groups: Mapping[str, Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a command groups of options.

    Each group takes the place of the parameter of its name. The command gets a dictionary there,
    of those options that a person has given.

    Args:
        groups: the annotations of the options, by group and option.
    """

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        parameters: list[Parameter] = []
        for name, parameter in signature(command, eval_str=True).parameters.items():
            if name not in groups:
                parameters.append(parameter)
                continue
            for option_name, annotation in groups[name].items():
                parameters.append(
                    Parameter(
                        option_name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation
                    )
                )

        @wraps(command)
        def run(**values: Any) -> T:
            for group, option_names in groups.items():
                values_of_group = {name: values.pop(name) for name in option_names}
                values[group] = {
                    name: value
                    for name, value in values_of_group.items()
                    if value not in (None, [], "")
                }
            return command(**values)

        # Typer makes the options of a command from its signature.
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def open_graph(
    name: str,
    labels: list[str] | None,
    directed: bool | None,
    table_choices: Mapping[str, Any],
    *,
    nodes: str | None = None,
    like: Graph | None = None,
    labels_like: Graph | None = None,
) -> Graph:
    """Read the graph that GRAPH and NODES name.

    Args:
        name: GRAPH, as a person types it: a path, an address, or the name of a data set.
        labels: the columns that are labels.
        directed: whether edges have a direction; None: as the file says.
        table_choices: the options about tables that a person gave, by name.
        nodes: NODES, the node table.
        like: a graph; the tables are read as its tables were.
        labels_like: a graph for whose nodes labels are read, without features.
    """
    from infomax.datasets import DATASETS, load_dataset
    from infomax.graphs.graph import Graph
    from infomax.io.choices import UserChoices
    from infomax.io.reading import check_directions, read_record, with_labels

    path = Path(name)
    if path.exists() or path.suffix or "," in name or "://" in name or nodes is not None:
        choices = UserChoices.of(labels or (), **table_choices)
        if like is not None:
            choices = replace(choices, like=like, features=None)
        elif labels_like is not None:
            choices = replace(choices, like=labels_like, features=())
        with show.Steps("reading", None) as steps:
            record = read_record(name, nodes, choices, directed=directed, progress=steps.update)
            return Graph.of(record)

    if name.lower() not in DATASETS:
        expected = f"a file, a folder or a data set ({', '.join(DATASETS)})"
        raise InputError(name, expected, "nothing of that name")
    if table_choices:
        option_name = f"--{next(iter(table_choices))}"
        raise InputError(option_name, "tables to choose columns of", f"the data set {name}")
    location = f"{name} --labels {','.join(labels or ())}"
    graph = with_labels(load_dataset(name), labels or (), location)
    check_directions(graph, directed, name)
    return graph
