"""infomax embed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import options, show
from infomax.cli.app import Grouped, app
from infomax.cli.runs import OfType, RunOrRuns, per_run, written_once
from infomax.errors import InputError, format_count
from infomax.io.column_names import format_list

if TYPE_CHECKING:
    from infomax.embeddings import Embeddings, Searched
    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph
    from infomax.io.database.writing import VectorTable

ANSWERS = 1 << 29
"""Bytes of answers that are computed at once: a few blocks cost little more."""
TABLES = "infomax.tables"
"""Where a call keeps the tables that are to be written into a database."""


def _writable(path: Path | None) -> Path | None:
    """A file or a folder to write."""
    if path is not None and path.suffix:
        options.writable(path)
    return path


Out = Annotated[
    Path | None,
    options.option(
        "FILE",
        "The file to write: .parquet, .npy, .npz, .csv, .tsv or .kv (word2vec). For a graph folder also a "
        "folder of parquet files, written one at a time: vectors/",
        callback=_writable,
    ),
]


def _into(said: str | None) -> str | None:
    """The table of a database to write, refused before names of types are added."""
    from infomax.io.database.writing import destination

    if said is not None:
        destination(said)
    return said


Into = Annotated[
    str | None,
    options.option(
        "ADDRESS:TABLE",
        "Or a table of a database: sqlite:///shop.db:vectors, duckdb:///..., postgresql://...; TABLE_TYPE per type.",
        callback=_into,
    ),
]
Attach = Annotated[
    bool,
    typer.Option(
        "--attach",
        help="GRAPH has only new nodes and edges, to attach to the known graph: write theirs.",
    ),
]
Parts = Annotated[
    str | None,
    options.option(
        "PART,...", "Only some parts, as own,positions; or paper, the encoder's.  [default: all]"
    ),
]
At = Annotated[
    Path | None,
    options.option(
        "FILE",
        "A table of ids and times, which --id and --time name: one vector per row, of what was there by its time.",
    ),
]
HalfLife = Annotated[
    str | None,
    options.option(
        "LIFE,...", "With --at: half-lives of events.  [default: the run's, else 60d,365d,forever]"
    ),
]


def _is_asked(described: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether questions are about a type, the only one of the run or the one whose ids a column has."""
    from infomax.io.questions import id_column, opened
    from infomax.training.runs import schema_of, types_of

    kinds = types_of(given["run"])
    if given["at"] is None or len(kinds) < 2:
        return True
    names = opened(given["at"]).names
    schema = schema_of({"graph": described}, given["run"])
    asked = [node_type for node_type in kinds if id_column(names, node_type, schema)]
    if len(asked) != 1:
        found = (
            f"columns with ids of {format_list(asked)}"
            if asked
            else f"the columns {format_list(names)}"
        )
        raise InputError(
            "--at",
            "questions about one type of nodes",
            found,
            f"--type TYPE, one of {', '.join(kinds)}.",
        )
    return described["type"] in asked


@contextmanager
def _written_at_once(given: Mapping[str, Any]) -> Iterator[None]:
    """Write the tables of all types into a database once their vectors are computed, all or none of them."""
    from infomax.io.database.writing import destination, write_into

    tables = given["context"].meta[TABLES] = list[Any]()
    yield
    if tables:
        write_into(destination(given["into"]), tables)
    for table in tables:
        show.wrote(
            f"table {table.name} ({format_count(len(table.ids), 'row')}: {', '.join(table.columns)})"
        )


@app.command(cls=Grouped)
@partial(per_run, has=_is_asked, around=_written_at_once)
@options.reads_tables(
    "id", "name", "source", "target", "weight", "time", "as_of", features=options.FeatureFile
)
def embed(
    run: RunOrRuns,
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH", help="A graph with the same features.  [default: the training graph]"
        ),
    ] = None,
    nodes: options.NodesArgument = None,
    *,
    out: Out = None,
    into: Into = None,
    attach: Attach = False,
    vectors: Parts = None,
    half: options.Half = False,
    at: At = None,
    half_life: HalfLife = None,
    device: options.Device = "auto",
    type: OfType = None,
    threads: options.Threads = None,
    tables: dict[str, Any],
    context: typer.Context,
) -> None:
    """Write the vectors of a graph's nodes, with their ids."""
    from infomax.io.vectors import check_extension

    if (out is None) == (into is None):
        raise InputError(
            "embed", "--out FILE or --into ADDRESS:TABLE", "none" if out is None else "both"
        )
    if at is not None:
        _answer(run, at, out, tables, context.params)
        return
    about = [name for name in tables if name != "as_of"]
    if graph is None and (attach or about):
        option = "--attach" if attach else f"--{about[0]}"
        raise InputError(option, "GRAPH, the tables that it is about", "none")
    if half_life or "time" in tables:
        raise InputError(
            "--half-life" if half_life else "--time",
            "questions, which it is about: --at FILE",
            "none",
        )
    if out is not None and out.suffix:
        check_extension(out)
    found = _vectors(run, out, tables, context.params)
    if found is not None and into is not None:
        context.meta[TABLES].append(_table(into, run, found))
    elif found is not None and out is not None:
        _save(found, out)


def _vectors(run: Path, out: Path | None, columns: dict[str, Any], given: dict[str, Any]) -> Any:
    """The vectors to write: those that the run holds, without torch, or computed ones; None if they are written."""
    from infomax.cli.torchrun import joined, started
    from infomax.io.vectors import check_extension
    from infomax.training.runs import vectors_of_run

    attach, half, device = (given[name] for name in ("attach", "half", "device"))
    as_trained = given["graph"] is None and not columns and given["vectors"] is None
    folder = out is not None and not out.suffix
    if as_trained and not (folder or half or device != "auto" or started()):
        held = vectors_of_run(run)
        if held is not None:
            return held
    with joined(device, timedelta(days=1)) as ranks:  # they wait for each other only at the end
        with ranks.together():
            model, source = open_run(
                run, given["graph"], columns, nodes=given["nodes"], attach=attach, device=device
            )
            to_parts = out is not None and out.suffix.lower() in ("", ".parquet", ".npy")
            in_parts = source.table.mapped and not attach and to_parts
            if ranks.count > 1 and not (in_parts and folder):
                expected = f"a graph folder and a folder of parts (vectors/), which {ranks.count} processes can share"
                raise InputError("embed", expected, "a graph in memory" if folder else str(out))
        if in_parts and out is not None:
            with show.Steps("embed", source.num_nodes, "Go on with the same command.") as steps:
                model.write_vectors(
                    source, out, vectors=given["vectors"], half=half, progress=steps.at
                )
            show.wrote(f"{out} ({format_count(source.num_nodes, 'node')})")
            return None
    if out is not None:
        check_extension(out)
    elif source.table.mapped and as_trained:
        return written_once(model, run)
    if half:
        raise InputError(
            "--half", "a graph folder, to a .parquet, an .npy or a folder of parts", str(out)
        )
    return _computed(model, source, given["vectors"], attach)


def _computed(model: DGI, graph: Graph, vectors: str | None, attach: bool) -> Embeddings | None:
    """Compute the vectors of a graph, or of the nodes that were attached to it; None if there are no new ones."""
    import numpy as np

    rows = np.flatnonzero(graph.splits["new"]) if attach else None
    if rows is not None and not len(rows) and graph.node_type:
        show.out.print(f"there are no new nodes of type {graph.node_type}: nothing to write")
        return None
    with show.Steps("embed", graph.num_nodes if rows is None else len(rows)) as steps:
        steps.at(0, "vectors")
        return model.transform(graph, vectors=vectors, rows=rows)


def _save(found: Embeddings, out: Path) -> None:
    """Write vectors to a file; a bar is drawn, and loaded, only where text is written, which takes long."""
    from infomax.io.vectors import TEXT

    if out.suffix.lower() in TEXT:
        with show.Steps("embed", len(found)) as steps:
            found.save(out, steps.at)
    else:
        found.save(out)
    show.wrote(f"{out} ({found!r})")


def _table(into: str, run: Path, found: Searched) -> VectorTable:
    """The table of a database for the vectors of a run."""
    from infomax.io.database.writing import VectorTable, destination, key_columns
    from infomax.training.runs import check, schema_of

    config = check(run)
    key = key_columns(schema_of(config, run), config["graph"].get("type", ""), found.ids)
    return VectorTable(destination(into).table, found.ids, found.vectors, key)


def _answer(
    run: Path, questions: Path, out: Path | None, columns: dict[str, Any], given: dict[str, Any]
) -> None:
    """Write one vector per question."""
    from infomax.estimator.questions import answer_in_blocks
    from infomax.io.questions import check_answers, save_answers

    if out is None:
        raise InputError("--at", "--out FILE, for the vectors of the questions", "--into")
    check_answers(out)
    for name in ("attach", "vectors", "half"):
        if given[name]:
            raise InputError(f"--{name}", "no --at, which has vectors of its own", "both")
    own = columns.pop("id", None)
    times = columns.pop("time", [None])
    if len(times) > 1:
        raise InputError("--time", "one column of the questions", ", ".join(times))
    model, source = open_run(run, given["graph"], columns, nodes=given["nodes"], positions=False)
    with show.Steps("embed", None) as steps:
        steps.at(0, "answers")
        found = answer_in_blocks(
            model.fitted_,
            questions,
            source,
            half_life=given["half_life"],
            id_column=own,
            time_column=times[0],
            bytes_per_block=ANSWERS,
        )
        told = save_answers(out, found)
    show.wrote(f"{out} ({told})")


def open_run(
    run: Path,
    graph: str | None,
    columns: dict[str, Any],
    labels: list[str] | None = None,
    *,
    nodes: str | None = None,
    attach: bool = False,
    device: str = "auto",
    positions: bool = True,
) -> tuple[DGI, Graph]:
    """Read a run and the graph to embed: its own, another, or its own with new nodes; ``positions`` may be used."""
    from infomax.arrays.structural_features import structural_features_named
    from infomax.estimator import DGI
    from infomax.estimator.same_features import check_same_features
    from infomax.graphs.reading import read_graph
    from infomax.io.columns import MATRICES

    if (file := columns.get("features")) and Path(file).suffix.lower() not in MATRICES:
        remedy = (
            "Columns of tables are found by the names of the features that the run was trained on."
        )
        raise InputError("--features", f"a file {' or '.join(MATRICES)}", file, remedy)
    model = DGI.load(run, device=device, moved_to=None if attach else graph)
    known = model.graph_
    if graph is None:
        return model, known.as_of(columns["as_of"]) if "as_of" in columns else known
    if attach and "as_of" in columns:
        raise InputError("--as-of", "a whole graph", "--attach, new nodes alone")
    if attach:
        return model, read_graph(graph, nodes, attach_to=known, **columns)
    try:
        source = options.open_graph(
            graph, labels, known.directed, columns, nodes=nodes, like=known
        ).target(known.node_type)
        check_same_features(source, known)
    except InputError as error:
        whole = f"It must be the whole graph. If it has only new nodes: infomax embed {run} {graph} --attach."
        remedy = f"{error.remedy} {whole}".strip()
        raise InputError(f"{graph}: {error.where}", error.expected, error.found, remedy) from error
    if positions and structural_features_named(model.feature_names_) == "positions":
        show.log.print(
            "Positions in this graph resemble those in the training graph as far as both share ids."
        )
    if known.weighted and not source.weighted:
        unweighted = (
            "The edges of the training graph have weights, these have none: each counts as 1."
        )
        show.log.print(f"{unweighted} Where a column holds them: --weight COLUMN.")
    return model, source
