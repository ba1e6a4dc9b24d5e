"""Arguments and options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from infomax.cli import show
from infomax.errors import InputError

if TYPE_CHECKING:
    from infomax.graphs.graph import Graph

GRAPH, MACHINE = "Graph", "Machine"
"""Headings of options in ``infomax train --help``; what most people need has none, and comes first."""
GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A data set's name, a folder with edges.* and nodes.*, edges.csv[,nodes.csv], an .npz, a .graphml, a "
        "folder of such graphs, or one that prepare wrote.",
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


def _refuse_gone(context: typer.Context, option: typer.CallbackParam, given: str | None) -> None:
    if given is not None:
        remedy = "Say what vectors are made of: --vectors recipe, paper, or encoder,own,pooled,positions."
        remedy = remedy if context.command.name != "evaluate" else "infomax embed RUN --vectors paper writes others."
        raise InputError(f"--{option.name}", "an option of this version", "one that is gone", remedy)


Gone = Annotated[str | None, typer.Option(hidden=True, callback=_refuse_gone)]
"""An option that is gone: it names what took its place."""


def _use_threads(count: int | None) -> None:
    if count is not None:
        os.environ["OMP_NUM_THREADS"] = str(count)  # for libraries that are loaded later
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(count)


THREADS = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=1024,  # libraries crash where the system cannot start so many
        callback=_use_threads,
        is_eager=True,
        help="Use at most so many CPU threads.  [default: OMP_NUM_THREADS, else one per core]",
        rich_help_panel=MACHINE,
    ),
]


def _column(*names: str, many: bool = False, metavar: str = "COLUMN", help: str) -> Any:
    """The type of an option that names a column of a table, or several; typer makes its name of the parameter's."""
    return Annotated[
        (list[str] if many else str) | None,
        typer.Option(*names, metavar=metavar, help=help, rich_help_panel="Columns of tables"),
    ]


COLUMNS = {
    "id": _column(help="The column of ids in the node table.  [default: id, else the first]"),
    "name": _column(help="The column of the node table that holds names, to show beside ids."),
    "source": _column(help="The column of the edge table where edges begin.  [default: source]"),
    "target": _column(help="The column of the edge table where edges end.  [default: target]"),
    "weight": _column(
        help="The column of weights in the edge table; count: an edge weighs as much as it has rows.  "
        "[default: weight, if there is one]"
    ),
    "features": _column(
        many=True,
        metavar="COLUMN|FILE",
        help="A column that is a feature; others are then ignored. May be repeated. Or a file with one row per node: "
        ".npy, or .npz of scipy. Or degrees or positions, made of the edges.  [default: all columns; where there are "
        "none, positions]",
    ),
    "columns": _column(
        "--column",
        many=True,
        metavar="NAME=KIND",
        help="What a column of the node table is: number, boolean, category, date, text, tokens, name, label, id or "
        "ignore. TYPE.NAME is the column of one of several types. May be repeated.  [default: found from its values]",
    ),
    "ignore": _column(many=True, help="A column of the node table to ignore. May be repeated."),
}
KNOWN_FEATURES = {name: COLUMNS[name] for name in ("id", "name", "source", "target", "weight")} | {
    "features": _column(metavar="FILE", help="A file with one row per node: .npy, or .npz of scipy."),
}
"""Of a graph for a trained encoder, which knows the names of its features."""
TYPES = {
    "types": _column(
        metavar="TYPE,TYPE", help="The types of nodes where edges begin and where they end, as in user,item."
    ),
    "edge_type": _column(help="The column of the edge table that names the relation of an edge."),
    "node_type": _column(help="The column of the node table that names the type of a node."),
    "edges_as": _column(
        metavar="TYPE",
        help="Make every row of the edge table a node of this type, with the other columns as features.",
    ),
}
GROUPS = TYPES | {
    "groups": _column(help="The column of the node table that names the graph of a node, of several."),
}


def adding(options: Mapping[str, Any], name: str = "") -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Give a command these options; those that were used become its parameter ``name``, if one is named here."""

    def add(command: Callable[..., Any]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            used = {option: value for option in options if (value := given.pop(option))}
            command(**given, **({name: used} if name else {}))

        own = [one for one in signature(command, eval_str=True).parameters.values() if one.name != name]
        added = (Parameter(key, Parameter.KEYWORD_ONLY, default=None, annotation=options[key]) for key in options)
        return taking(run, [*own, *added])

    return add


threaded = adding({"threads": THREADS})
"""Gives a command ``--threads``, which holds for the whole process."""
choosing = partial(adding, name="columns")
"""Gives a command options such as `COLUMNS`; it receives those that were used as ``columns``."""


def grouping(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option per field of each parameter that is a dataclass; it receives the dataclasses.

    ``--help`` lists the options of each under its ``heading``.
    """
    own = signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: one.annotation for name, one in own.items() if is_dataclass(one.annotation)}

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    options = []
    for name, one in own.items():
        if name in groups:
            kinds = get_type_hints(groups[name], include_extras=True)
            for field in fields(groups[name]):
                (option,) = kinds[field.name].__metadata__
                option.rich_help_panel = groups[name].heading
                options.append(one.replace(name=field.name, default=field.default, annotation=kinds[field.name]))
        else:
            options.append(one)
    return taking(run, options)


def taking(run: Callable[..., None], parameters: list[Parameter]) -> Callable[..., None]:
    """The function with these parameters, of which typer makes options."""
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


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
    from infomax.io.attach import like_known
    from infomax.io.columns import Columns
    from infomax.io.reading import check_directions, read_record, with_labels

    path = Path(name)
    if path.exists() or path.suffix or "," in name or nodes is not None:
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
