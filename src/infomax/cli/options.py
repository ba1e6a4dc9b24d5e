"""Arguments and options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from infomax.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from infomax.arrays.encoding import Encoding
    from infomax.embeddings import StoredEmbeddings
    from infomax.estimator import DGI
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


def _finished(context: typer.Context, run: Path) -> Path:
    """Check that a run folder is one, before torch is loaded, which takes seconds; with --type, the run of that."""
    from infomax.training import runs

    run = _of_type(context, run)
    runs.check(run)
    return run


def _of_type(context: typer.Context, run: Path) -> Path:
    """RUN/TYPE, where a command was given --type."""
    from infomax.training import runs

    kind: str | None = context.params.get("type")
    if kind is None:
        return run
    if kind not in (kinds := runs.types_of(run)):
        raise InputError("--type", f"one of {', '.join(kinds)}" if kinds else "a run of several types of nodes", kind)
    return run / kind


def _finished_or_vectors(context: typer.Context, source: Path) -> Path:
    from infomax.io.parts import has_parts

    source = _of_type(context, source)
    if not source.exists():
        raise InputError(str(source), "a run folder, or what embed wrote", "nothing of that name")
    return source if source.is_file() or has_parts(source) else _finished_runs(source)


def per_run(command: Callable[..., Any]) -> Callable[..., None]:
    """Do what a command does with a run for each run in a folder: of types of nodes, or of several seeds.

    Files that it writes then have the name of the run in their own. Where ``evaluate`` scores several encoders, means
    and deviations over them come last; types without labels are left out.
    """
    own = signature(command, eval_str=True).parameters
    first = next(iter(own))

    @wraps(command)
    def run(**given: Any) -> None:
        from infomax.cli import show
        from infomax.training import runs

        folder, names = given[first], runs.runs_in(given[first])
        if not names:
            command(**given)
        scored = []
        for name in names:
            if command.__name__ == "evaluate" and not runs.check(folder / name)["graph"]["labels"]:
                continue
            written = {option: _of_run(path, name) for option in ("out", "json") if (path := given.get(option))}
            show.log.print(f"{name}:")
            scored.append(command(**{**given, **written, first: folder / name}))
        if len(scored) > 1 and all(name.parts[-1].startswith("seed-") for name in names) and all(scored):
            from infomax.evaluation.results import Row, over_encoders

            show.scores(f"{folder}: mean ± over {len(scored)} encoders", map(Row.to_dict, over_encoders(scored)))

    return _taking(run, list(own.values()))


def _of_run(path: Path, name: Path) -> Path:
    """The file or folder of one run: vectors.paper.parquet for vectors.parquet, vectors/paper for vectors/."""
    return path.with_suffix(f".{'.'.join(name.parts)}{path.suffix}") if path.suffix else path / name


def _finished_runs(run: Path) -> Path:
    """As `_finished`, of a run or a folder of runs."""
    from infomax.training import runs

    for name in runs.runs_in(run) or [Path()]:
        runs.check(run / name)
    return run


RunOrRuns = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        callback=_finished_runs,
        help="A run folder, written by train; of several types or seeds, all or one: RUN/TYPE.",
    ),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", callback=_finished, help="A run folder, written by train.")]
SourceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN|VECTORS",
        callback=_finished_or_vectors,
        help="A run folder, or a file or a folder of parts that embed wrote.",
    ),
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


THREADS = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        callback=_use_threads,
        is_eager=True,
        help="Use at most so many CPU threads.  [default: OMP_NUM_THREADS, else one per core]",
        rich_help_panel=MACHINE,
    ),
]


def _column(*names: str, many: bool = False, metavar: str = "COLUMN", help: str) -> Any:
    """The type of an option that names a column of a table, or several."""
    return Annotated[
        (list[str] if many else str) | None,
        typer.Option(*names, metavar=metavar, help=help, rich_help_panel="Columns of tables"),
    ]


COLUMNS = {
    "id": _column("--id", help="The column of ids in the node table.  [default: id, else the first]"),
    "name": _column("--name", help="The column of the node table that holds names, to show beside ids."),
    "source": _column("--source", help="The column of the edge table where edges begin.  [default: source]"),
    "target": _column("--target", help="The column of the edge table where edges end.  [default: target]"),
    "weight": _column("--weight", help="The column of weights in the edge table.  [default: weight, if there is one]"),
    "features": _column(
        "--features",
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
        "ignore. May be repeated.  [default: found from its values]",
    ),
    "ignore": _column("--ignore", many=True, help="A column of the node table to ignore. May be repeated."),
}
KNOWN_FEATURES = {name: COLUMNS[name] for name in ("id", "name", "source", "target", "weight")} | {
    "features": _column("--features", metavar="FILE", help="A file with one row per node: .npy, or .npz of scipy."),
}
"""Of a graph for a trained encoder, which knows the names of its features."""
TYPES = {
    "types": _column(
        "--types", metavar="TYPE,TYPE", help="The types of nodes where edges begin and where they end, as in user,item."
    ),
    "edge_type": _column("--edge-type", help="The column of the edge table that names the relation of an edge."),
    "node_type": _column("--node-type", help="The column of the node table that names the type of a node."),
    "edges_as": _column(
        "--edges-as",
        metavar="TYPE",
        help="Make every row of the edge table a node of this type, with the other columns as features.",
    ),
}
GROUPS = TYPES | {
    "groups": _column("--groups", help="The column of the node table that names the graph of a node, of several."),
}


def _unseen(name: str, option: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option that it need not know."""

    def give(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            given.pop(name)
            command(**given)

        own = signature(command, eval_str=True).parameters.values()
        return _taking(run, [*own, Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option)])

    return give


threaded = _unseen("threads", THREADS)
"""Gives a command ``--threads``, which holds for the whole process."""
of_type = _unseen(
    "type",
    Annotated[
        str | None,  # read before RUN, which becomes RUN/TYPE
        typer.Option("--type", metavar="NAME", help="Of a run of several types of nodes, this one.", is_eager=True),
    ],
)
"""Gives a command ``--type``: its run, or its vectors, are those of RUN/TYPE."""


def choosing(options: Mapping[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options, such as `COLUMNS`; it receives those that were used as ``columns``."""

    def choose(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            columns = {name: value for name in options if (value := given.pop(name))}
            command(**given, columns=columns)

        own = [one for name, one in signature(command, eval_str=True).parameters.items() if name != "columns"]
        added = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in options.items()
        ]
        return _taking(run, [*own, *added])

    return choose


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
    return _taking(run, options)


def _taking(run: Callable[..., None], parameters: list[Parameter]) -> Callable[..., None]:
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
    from infomax.io.results import check_result

    return writable(check_result(path))


Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", callback=writable, help="Also write the result to this file, as JSON."),
]
PROBE_NAMES = "paper|converged|validated"
PROBE_HELP = (
    "paper: 100 steps of softmax regression, or of one logistic regression per label. converged: the same to the "
    "lowest loss; for one label per node, 1,000 steps. validated: logistic regression with C chosen on validation "
    "nodes, for one label per node."
)
ProbeName = Annotated[str, typer.Option("--probe", metavar=PROBE_NAMES, help=PROBE_HELP)]


def in_memory(model: DGI) -> None:
    """Read the graph of a run into memory where it is a graph folder, if there is room for it and its vectors."""
    from infomax.arrays import memory
    from infomax.kernels import room
    from infomax.kernels.device import choose_device

    if model.graph_.table.mapped:
        room.require(memory.embedding_bytes(model.graph_, model.model_.encoder.out_dim), choose_device("cpu"))
        model.graph_ = model.graph_.loaded()


def written_once(model: DGI, run: Path) -> StoredEmbeddings:
    """The vectors of a run on a graph folder: parquet parts in the run folder, which are written where they lack."""
    from infomax.cli import show
    from infomax.embeddings import StoredEmbeddings

    with show.Steps("embed", model.graph_.num_nodes, "Go on with the same command.") as steps:
        # The pages are checked when they are read.
        model.write_vectors(model.graph_, run / "vectors", check=False, progress=steps.at)
    return StoredEmbeddings.open(run / "vectors")


def sampled_rows(graph: Graph, most: int, seed: int, column: NDArray[Any] | None = None) -> NDArray[np.int64] | None:
    """So many rows of a graph folder, in order, drawn at random; those with a label in a column come first.

    None for a graph in memory, and where the folder has no more nodes than that.
    """
    import numpy as np

    if not graph.table.mapped or graph.num_nodes <= most:
        return None
    draws = np.random.default_rng(seed)
    rows = draws.choice(graph.num_nodes, most, replace=False)
    if column is not None:
        labelled = draws.permutation(np.flatnonzero(column != ("" if column.dtype == object else -1)))[:most]
        rows = np.concatenate([labelled, rows[~np.isin(rows, labelled)]])[:most]
    return np.sort(rows)


def open_graph(
    name: str,
    labels: list[str] | None = None,
    directed: bool | None = None,
    columns: Mapping[str, Any] = MappingProxyType({}),
    features: tuple[str, ...] | None = None,
    earlier: Mapping[str, str] = MappingProxyType({}),
    nodes: str | None = None,
    encoding: Encoding | None = None,
    types: Mapping[str, tuple[tuple[str, ...], Encoding | None]] = MappingProxyType({}),
) -> Graph:
    """Read the graph that GRAPH and NODES name, with the columns that a person chose or the features of a model.

    Columns of an ``earlier`` graph are taken where tables have them, and features are made by its ``encoding``; those
    of several ``types`` by theirs.
    """
    from infomax.datasets import DATASETS, load_dataset
    from infomax.graphs.graph import Graph
    from infomax.io.columns import Columns
    from infomax.io.reading import read_record, with_labels

    path = Path(name)
    if path.exists() or path.suffix or "," in name or nodes is not None:
        chosen = Columns.of(labels or (), **{"earlier": earlier, **columns})
        if types:
            chosen = chosen.like_types(types)
        elif features is not None and "features" not in columns:
            chosen = chosen.like(features, encoding)
        graph = Graph.of(read_record(name, nodes, chosen, directed=directed))
    elif name.lower() not in DATASETS:
        raise InputError(name, f"a file, a folder or a data set ({', '.join(DATASETS)})", "nothing of that name")
    elif columns:
        raise InputError(f"--{next(iter(columns))}", "tables to choose columns of", f"the data set {name}")
    else:
        graph = with_labels(load_dataset(name), labels or (), f"{name} --labels {','.join(labels or ())}")
    if features is None and directed is not None and graph.directed != directed:
        found = f"a graph whose edges {'are directed' if graph.directed else 'run both ways'}"
        raise InputError(name, f"tables or GraphML, for --{'' if directed else 'un'}directed", found)
    return graph
