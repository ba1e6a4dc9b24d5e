"""infomax embed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import options, show
from infomax.cli.app import Grouped, app
from infomax.cli.options import Device, NodesArgument, open_graph, writable
from infomax.cli.runs import OfType, RunOrRuns, per_run, written_once
from infomax.errors import InputError, number_of, shorten

if TYPE_CHECKING:
    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph


def _writable(path: Path | None) -> Path | None:
    """A file or a folder to write."""
    if path is not None and path.suffix:
        writable(path)
    return path


Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=_writable,
        help="The file to write: .parquet, .npy, .npz, .csv, .tsv or .kv (word2vec). For a graph folder also a "
        "folder of parquet files, written one at a time: vectors/",
    ),
]
Into = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS:TABLE",
        help="Or write a table of a database, with the primary key and the vector: sqlite:///shop.db:vectors, "
        "duckdb:///... or postgresql://... Of several types each has its own, vectors_TYPE.",
    ),
]
Attach = Annotated[
    bool,
    typer.Option(
        "--attach",
        help="GRAPH has only new nodes and their edges: attach them to the training graph, and write only theirs.",
    ),
]
Parts = Annotated[
    str | None,
    typer.Option(
        metavar="PART,...",
        help="Write only some of the run's parts, as own,positions; or paper, the encoder's own.  [default: all]",
    ),
]
At = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Questions: a table of ids and times. One vector per row, in its order and with its other columns, each "
        "from rows up to its own time only; --id and --time name its columns.",
    ),
]
HalfLife = Annotated[
    str | None,
    typer.Option(
        metavar="LIFE,...", help="With --at: half-lives of the weights of events.  [default: 60d,365d,forever]"
    ),
]


@app.command(cls=Grouped)
@per_run
def embed(
    run: RunOrRuns,
    graph: Annotated[
        str | None,
        typer.Argument(metavar="GRAPH", help="A graph with the same features.  [default: the training graph]"),
    ] = None,
    nodes: NodesArgument = None,
    *,
    out: Out = None,
    into: Into = None,
    attach: Attach = False,
    vectors: Parts = None,
    half: Annotated[
        bool, typer.Option("--half", help="Vectors of a graph folder in half precision, half the bytes.")
    ] = False,
    at: At = None,
    half_life: HalfLife = None,
    device: Device = "auto",
    type: OfType = None,
    threads: options.Threads = None,
    id: options.Id = None,
    name: options.Name = None,
    source: options.Source = None,
    target: options.Target = None,
    weight: options.Weight = None,
    features: options.FeatureFile = None,
    time: options.Time = None,
    as_of: options.AsOf = None,
    context: typer.Context,
) -> None:
    """Write the vectors of a graph's nodes, with their ids."""
    began = monotonic()
    columns = options.given_columns(context)
    if at is not None:
        if out is None or into is not None:
            raise InputError(
                "--at", "--out FILE, for the vectors of the questions", "none" if out is None else "--into"
            )
        _answer(run, graph, nodes, at, out, context)
        return
    tables = [name for name in columns if name != "as_of"]
    if graph is None and (attach or tables):
        option = "--attach" if attach else f"--{tables[0]}"
        raise InputError(option, "GRAPH, the tables that it is about", "none")
    if half_life or "time" in columns:
        raise InputError("--half-life" if half_life else "--time", "questions, which it is about: --at FILE", "none")
    if (out is None) == (into is None):
        raise InputError("embed", "--out FILE or --into ADDRESS:TABLE", "none" if out is None else "both")
    if out is None:
        written = _write_into(str(into), run, graph, nodes, columns, attach=attach, vectors=vectors, device=device)
        show.wrote(written, began)
        return
    _write_out(run, graph, nodes, out, context, began)


def _write_out(
    run: Path, graph: str | None, nodes: str | None, out: Path, context: typer.Context, began: float
) -> None:
    """Write vectors to a file, or to a folder of parts: those that the run holds, or computed ones."""
    from infomax.cli.torchrun import joined, started
    from infomax.io.vectors import check_extension

    given = context.params
    columns = options.given_columns(context)
    attach, vectors, half, device = (given[name] for name in ("attach", "vectors", "half", "device"))
    if out.suffix:
        check_extension(out)
    as_trained = graph is None and not columns and vectors is None and not half and device == "auto" and not started()
    if as_trained and out.suffix and _write_stored(run, out, began):
        return
    with joined(device, timedelta(days=1)) as ranks:  # they wait for each other only at the end
        with ranks.together():
            model, found = open_run(run, graph, columns, nodes=nodes, attach=attach, device=device)
            in_parts = found.table.mapped and not attach and out.suffix.lower() in ("", ".parquet", ".npy")
            if ranks.count > 1 and (out.suffix or not in_parts):
                expected = f"a graph folder and a folder of parts (vectors/), which {ranks.count} processes can share"
                raise InputError("embed", expected, str(out if out.suffix else "a graph in memory"))
        if in_parts:
            with show.Steps("embed", found.num_nodes, "Go on with the same command.") as steps:
                model.write_vectors(found, out, vectors=vectors, half=half, progress=steps.at)
            show.wrote(f"{out} ({number_of(found.num_nodes, 'node')})", began)
            return
    check_extension(out)
    if half:
        raise InputError("--half", "a graph folder, to a .parquet, an .npy or a folder of parts", str(out))
    _write_computed(model, found, out, vectors, attach, began)


def _write_into(
    into: str,
    run: Path,
    graph: str | None,
    nodes: str | None,
    columns: dict[str, Any],
    *,
    attach: bool,
    vectors: str | None,
    device: str,
) -> str:
    """Write vectors into a table of a database, those that the run holds, or computed ones; says which table."""
    import numpy as np

    from infomax.embeddings import Searched
    from infomax.io.database.writing import destination, primary_key, write_into
    from infomax.training.runs import check, vectors_of_run

    place, described = destination(into), check(run)["graph"]
    found: Searched | None = vectors_of_run(run) if graph is None and not columns and vectors is None else None
    if found is None:
        model, whole = open_run(run, graph, columns, nodes=nodes, attach=attach, device=device)
        if whole.table.mapped and graph is None and not columns and vectors is None:
            found = written_once(model, run)
        else:
            rows = np.flatnonzero(whole.splits["new"]) if attach else None
            found = model.transform(whole, vectors=vectors, rows=rows)
    key = primary_key(described.get("columns", {}), described.get("type", ""))
    write_into(place, found.ids, found.vectors, key)
    return f"table {place.table} ({number_of(len(found.ids), 'row')}: {key}, vector)"


def _answer(
    run: Path, graph: str | None, nodes: str | None, questions: Path, out: Path, context: typer.Context
) -> None:
    """Write one vector per question."""
    from infomax.io.questions import check_answers

    given, columns, began = context.params, options.given_columns(context), monotonic()
    check_answers(out)
    for option in ("attach", "vectors", "half"):
        if given[option]:
            raise InputError(f"--{option}", "no --at, which has vectors of its own", "both")
    own, times = columns.pop("id", None), columns.pop("time", [])
    if len(times) > 1:
        raise InputError("--time", "one column of the questions", ", ".join(times))
    model, source = open_run(run, graph, columns, nodes=nodes)
    with show.Steps("embed", None) as steps:
        steps.at(0, "answers")
        found = model.at(
            questions,
            source,
            half_life=given["half_life"],
            id=own,
            time=times[0] if times else None,
        )
        found.save(out)
    show.wrote(f"{out} ({found!r})", began)


def _write_stored(run: Path, out: Path, began: float) -> bool:
    """Write the vectors that a run holds, without torch, to a file; False if it holds none."""
    from infomax.io.vectors import TEXT
    from infomax.training.runs import vectors_of_run

    if (stored := vectors_of_run(run)) is None:
        return False
    if out.suffix.lower() in TEXT:
        with show.Steps("embed", len(stored)) as steps:
            stored.save(out, steps.at)
    else:  # at once, without loading what draws a bar
        stored.save(out)
    show.wrote(f"{out} ({stored!r})", began)
    return True


def _write_computed(model: DGI, graph: Graph, out: Path, vectors: str | None, attach: bool, began: float) -> None:
    """Compute the vectors of a graph, or of the nodes that were attached to it, and write them to a file."""
    import numpy as np

    rows = np.flatnonzero(graph.splits["new"]) if attach else None
    if rows is not None and not len(rows) and graph.kind:
        show.out.print(f"there are no new nodes of type {graph.kind}: nothing to write")
        return
    with show.Steps("embed", graph.num_nodes if rows is None else len(rows)) as steps:
        steps.at(0, "vectors")
        embeddings = model.transform(graph, vectors=vectors, rows=rows)
        embeddings.save(out, steps.at)
    show.wrote(f"{out} ({embeddings!r})", began)


def open_run(
    run: Path,
    graph: str | None,
    columns: dict[str, Any],
    labels: list[str] | None = None,
    *,
    nodes: str | None = None,
    attach: bool = False,
    device: str = "auto",
) -> tuple[DGI, Graph]:
    """Read a run and the graph to embed: its own, another, or its own with new nodes."""
    from infomax.arrays.made import made
    from infomax.estimator import DGI
    from infomax.graphs.reading import read_graph
    from infomax.io.columns import MATRICES

    if (file := columns.get("features")) and Path(file).suffix.lower() not in MATRICES:
        remedy = "Columns of tables are found by the names of the features that the run was trained on."
        raise InputError("--features", f"a file {' or '.join(MATRICES)}", file, remedy)
    model = DGI.load(run, device=device, moved_to=None if attach else graph)
    source = model.graph_
    if "as_of" in columns and attach:
        raise InputError("--as-of", "a whole graph", "--attach, new nodes alone")
    if "as_of" in columns and graph is None:
        source = source.as_of(columns["as_of"])
    if graph is not None and attach:
        source = read_graph(graph, nodes, attach_to=source, **columns)
    elif graph is not None:
        try:
            source = open_graph(graph, labels, source.directed, columns, nodes=nodes, like=source)
            source = source.target(model.graph_.kind) if model.graph_.kind else source
            model._check_features(source)
        except InputError as error:
            if _only_new(model.graph_, source, error):
                remedy = f"It must be the whole graph. If it has only new nodes: infomax embed {run} {graph} --attach."
                raise InputError(f"{graph}: {error.where}", error.expected, error.found, remedy) from error
            raise
        if made(model.feature_names_) == "positions":
            show.log.print("Positions in this graph resemble those in the training graph as far as both share ids.")
        if model.graph_.weighted and not source.weighted:
            unweighted = "The edges of the training graph have weights, these have none: each counts as 1."
            show.log.print(f"{unweighted} Where a column holds them: --weight COLUMN.")
    return model, source


def _only_new(before: Graph, later: Graph, error: InputError) -> bool:
    """Whether a later graph was refused because it has only new nodes: the table of others, or these, are missing."""
    from infomax.arrays.made import made

    known = {kind: before.target(kind) for kind in before.types} or {"": before}
    if later is before:  # it could not be read: is it an edge to a node of the run's graph?
        return any(error.found in map(shorten, one.ids.tolist()) for one in known.values() if not one.table.mapped)
    bare = (later.target(kind) for kind in known if not made(known[kind].feature_names))
    return any(made(one.feature_names) for one in bare)
