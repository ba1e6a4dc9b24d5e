"""infomax embed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import options, show
from infomax.cli.app import Grouped, app
from infomax.cli.runs import OfType, RunOrRuns, per_run, written_once
from infomax.errors import InputError, format_count, warn
from infomax.io.column_names import format_list

if TYPE_CHECKING:
    from infomax.embeddings import Embeddings, SearchableVectors
    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph
    from infomax.io.database.writing import VectorTable

BYTES_OF_ANSWERS = 1 << 29
"""Bytes of answers that are computed at once: a few blocks cost little more."""
TABLES_TO_WRITE = "infomax.tables"
"""Where a call keeps the tables that are to be written into a database."""
LONGEST_WAIT = timedelta(days=1)
"""Processes of torchrun wait for each other only at the end, when all parts are written."""


def _writable_file(path: Path | None) -> Path | None:
    """Check that a file can be written; a folder is made later."""
    if path is not None and path.suffix:
        options.writable(path)
    return path


def _table_of_database(address: str | None) -> str | None:
    """Check the address of a table, before names of types are added to the name of the table."""
    from infomax.io.database.writing import parse_destination

    if address is not None:
        parse_destination(address)
    return address


Out = Annotated[
    Path | None,
    options.option(
        "FILE",
        "The file to write: .parquet, .npy, .npz, .csv, .tsv or .kv (word2vec). For a graph folder "
        "also a folder of parquet files, written one at a time: vectors/",
        callback=_writable_file,
    ),
]
Into = Annotated[
    str | None,
    options.option(
        "ADDRESS:TABLE",
        "Or a table of a database: sqlite:///shop.db:vectors, duckdb:///..., postgresql://...; "
        "TABLE_TYPE per type.",
        callback=_table_of_database,
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
        "A table of ids and times, which --id and --time name: one vector per row, of what was "
        "there by its time.",
    ),
]
HalfLife = Annotated[
    str | None,
    options.option(
        "LIFE,...", "With --at: half-lives of events.  [default: the run's, else 60d,365d,forever]"
    ),
]


def _is_asked_about(description: Mapping[str, Any], choices: Mapping[str, Any]) -> bool:
    """Whether a type of a run is embedded: with questions, only the type whose ids they have."""
    from infomax.io.questions import id_column, opened
    from infomax.training.runs import schema_of, types_of

    node_types = types_of(choices["run"])
    if choices["at"] is None or len(node_types) < 2:
        return True

    column_names = opened(choices["at"]).names
    schema = schema_of({"graph": description}, choices["run"])
    types_with_ids = [
        node_type for node_type in node_types if id_column(column_names, node_type, schema)
    ]
    if len(types_with_ids) != 1:
        found = f"the columns {format_list(column_names)}"
        if types_with_ids:
            found = f"columns with ids of {format_list(types_with_ids)}"
        remedy = f"--type TYPE, one of {', '.join(node_types)}."
        raise InputError("--at", "questions about one type of nodes", found, remedy)
    return description["type"] in types_with_ids


@contextmanager
def _written_at_once(choices: Mapping[str, Any]) -> Iterator[None]:
    """Write the tables of all types into a database once all vectors are computed: all or none."""
    from infomax.io.database.writing import parse_destination, write_into

    tables: list[VectorTable] = []
    choices["context"].meta[TABLES_TO_WRITE] = tables
    yield
    if not tables:
        return
    write_into(parse_destination(choices["into"]), tables)
    for table in tables:
        rows = format_count(len(table.ids), "row")
        show.wrote(f"table {table.name} ({rows}: {', '.join(table.columns)})")


@app.command(cls=Grouped)
@partial(per_run, applies=_is_asked_about, around=_written_at_once)
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
        found = "none" if out is None else "both"
        raise InputError("embed", "--out FILE or --into ADDRESS:TABLE", found)
    request = _Request(run, graph, nodes, tables, out, attach, vectors, half, device)
    if at is not None:
        _answer(request, at, half_life)
        return

    # The time of a run's own graph can be chosen; its tables were read when it was trained.
    table_options = [name for name in tables if name != "as_of"]
    if graph is None and (attach or table_options):
        option_name = "--attach" if attach else f"--{table_options[0]}"
        raise InputError(option_name, "GRAPH, the tables that it is about", "none")
    if half_life or "time" in tables:
        option_name = "--half-life" if half_life else "--time"
        raise InputError(option_name, "questions, which it is about: --at FILE", "none")
    if out is not None and out.suffix:
        check_extension(out)

    embeddings = _stored_vectors(request)
    if embeddings is None:
        embeddings = _computed_vectors(request)
    if embeddings is None:
        return
    if into is not None:
        context.meta[TABLES_TO_WRITE].append(_vector_table(into, run, embeddings))
    elif out is not None:
        _save(embeddings, out)


@dataclass(frozen=True)
class _Request:
    """What a person asked `embed` for, by the names of its arguments and options."""

    run: Path
    graph: str | None
    nodes: str | None
    tables: dict[str, Any]
    out: Path | None
    attach: bool
    parts: str | None
    half: bool
    device: str

    @property
    def is_as_trained(self) -> bool:
        """Whether the vectors are those of the run itself, with all parts."""
        return self.graph is None and not self.tables and self.parts is None

    @property
    def writes_folder(self) -> bool:
        """Whether a folder of parts is written."""
        return self.out is not None and not self.out.suffix


def _stored_vectors(request: _Request) -> Any:
    """The vectors that the run holds, read without torch; None where others are asked for."""
    from infomax.cli.torchrun import started
    from infomax.training.runs import vectors_of_run

    if not request.is_as_trained or request.writes_folder:
        return None
    if request.half or request.device != "auto" or started():
        return None
    return vectors_of_run(request.run)


def _computed_vectors(request: _Request) -> Any:
    """Compute vectors; None where they are written already, or there are none to write."""
    from infomax.cli.torchrun import joined
    from infomax.io.vectors import check_extension

    out = request.out
    with joined(request.device, LONGEST_WAIT) as ranks:
        with ranks.together():
            model, graph = open_run(
                request.run,
                request.graph,
                request.tables,
                nodes=request.nodes,
                attach=request.attach,
                device=request.device,
            )
            if "as_of" in request.tables:
                _warn_of_later_training(model.graph_, request.tables["as_of"])
            is_on_disk = graph.table.mapped and not request.attach
            # These are written as they are computed: they may be larger than memory.
            writes_parts = (
                is_on_disk and out is not None and out.suffix.lower() in ("", ".parquet", ".npy")
            )
            if ranks.count > 1 and not (writes_parts and request.writes_folder):
                expected = (
                    f"a graph folder and a folder of parts (vectors/), "
                    f"which {ranks.count} processes can share"
                )
                found = "a graph in memory" if request.writes_folder else str(out)
                raise InputError("embed", expected, found)
        if writes_parts and out is not None:
            with show.Steps("embed", graph.num_nodes, "Go on with the same command.") as steps:
                model.write_vectors(
                    graph, out, vectors=request.parts, half=request.half, progress=steps.update
                )
            show.wrote(f"{out} ({format_count(graph.num_nodes, 'node')})")
            return None

    if out is not None:
        check_extension(out)
    elif graph.table.mapped and request.is_as_trained:
        return written_once(model, request.run)
    if request.half:
        expected = "a graph folder, to a .parquet, an .npy or a folder of parts"
        raise InputError("--half", expected, str(out))
    return _transformed(model, graph, request)


def _warn_of_later_training(training_graph: Graph, day: str) -> None:
    """Warn where vectors as of a day are of an encoder that was trained on later rows."""
    from infomax.arrays.times import format_time, parse_time
    from infomax.io.past import last_time

    end_of_training = last_time(training_graph)
    if end_of_training is None or end_of_training <= parse_time(day, "--as-of"):
        return
    warn(
        f"--as-of {day}: the run was trained on rows up to {format_time(end_of_training)}, and its "
        "encoder knows them. For predictions: embed --at QUESTIONS; for an encoder that knows "
        f'nothing later: train --as-of "{day}".'
    )


def _transformed(model: DGI, graph: Graph, request: _Request) -> Embeddings | None:
    """The vectors of a graph in memory, or of its new nodes; None if it has no new ones."""
    import numpy as np

    new_rows = None
    if request.attach:
        new_rows = np.flatnonzero(graph.splits["new"])
        if graph.has_named_types and not len(new_rows):
            show.out.print(f"there are no new nodes of type {graph.node_type}: nothing to write")
            return None
    count = graph.num_nodes if new_rows is None else len(new_rows)
    with show.Steps("embed", count) as steps:
        steps.update(0, "vectors")
        return model.transform(graph, vectors=request.parts, rows=new_rows)


def _save(embeddings: Embeddings, out: Path) -> None:
    """Write vectors to a file.

    A bar is drawn, and its library loaded, only for text, whose writing takes long.
    """
    from infomax.io.vectors import TEXT

    if out.suffix.lower() in TEXT:
        with show.Steps("embed", len(embeddings)) as steps:
            embeddings.save(out, steps.update)
    else:
        embeddings.save(out)
    show.wrote(f"{out} ({embeddings!r})")


def _vector_table(into: str, run: Path, embeddings: SearchableVectors) -> VectorTable:
    """The table of a database for the vectors of a run."""
    from infomax.io.database.writing import VectorTable, key_columns, parse_destination
    from infomax.training.runs import check, schema_of

    config = check(run)
    node_type = config["graph"].get("type", "")
    key = key_columns(schema_of(config, run), node_type, embeddings.ids)
    return VectorTable(parse_destination(into).table, embeddings.ids, embeddings.vectors, key)


def _answer(request: _Request, questions: Path, half_life: str | None) -> None:
    """Write one vector per question."""
    from infomax.estimator.questions import answer_in_blocks
    from infomax.io.questions import check_answers, save_answers

    if request.out is None:
        raise InputError("--at", "--out FILE, for the vectors of the questions", "--into")
    check_answers(request.out)
    other_choices = {
        "--attach": request.attach,
        "--vectors": request.parts,
        "--half": request.half,
    }
    for option_name, value in other_choices.items():
        if value:
            raise InputError(option_name, "no --at, which has vectors of its own", "both")

    # Here these name columns of the questions, not of a graph.
    tables = dict(request.tables)
    id_column = tables.pop("id", None)
    time_columns = tables.pop("time", [None])
    if len(time_columns) > 1:
        raise InputError("--time", "one column of the questions", ", ".join(time_columns))

    model, graph = open_run(
        request.run, request.graph, tables, nodes=request.nodes, positions=False
    )
    with show.Steps("embed", None) as steps:
        steps.update(0, "answers")
        answers = answer_in_blocks(
            model.fitted_,
            questions,
            graph,
            half_life=half_life,
            id_column=id_column,
            time_column=time_columns[0],
            bytes_per_block=BYTES_OF_ANSWERS,
        )
        description = save_answers(request.out, answers)
    show.wrote(f"{request.out} ({description})")


def open_run(
    run: Path,
    graph_name: str | None,
    tables: dict[str, Any],
    labels: list[str] | None = None,
    *,
    nodes: str | None = None,
    attach: bool = False,
    device: str = "auto",
    positions: bool = True,
) -> tuple[DGI, Graph]:
    """Read a run, and the graph to embed.

    Args:
        run: the run folder.
        graph_name: GRAPH, another graph with the same features; None for the graph of the run.
        tables: the options about tables that a person gave.
        labels: the columns of the other graph that are labels.
        nodes: NODES, the node table of the other graph.
        attach: whether the other graph has only new nodes and edges.
        device: where vectors will be computed.
        positions: whether vectors will have positions.
    """
    from infomax.arrays.structural_features import structural_features_named
    from infomax.estimator import DGI
    from infomax.estimator.same_features import check_same_features
    from infomax.graphs.reading import read_graph
    from infomax.io.features import MATRICES

    feature_file = tables.get("features")
    if feature_file and Path(feature_file).suffix.lower() not in MATRICES:
        remedy = (
            "Columns of tables are found by the names of the features that the run was trained on."
        )
        raise InputError("--features", f"a file {' or '.join(MATRICES)}", feature_file, remedy)

    model = DGI.load(run, device=device, moved_to=None if attach else graph_name)
    training_graph = model.graph_
    if graph_name is None:
        if "as_of" in tables:
            return model, training_graph.as_of(tables["as_of"])
        return model, training_graph
    if attach:
        if "as_of" in tables:
            raise InputError("--as-of", "a whole graph", "--attach, new nodes alone")
        return model, read_graph(graph_name, nodes, attach_to=training_graph, **tables)

    try:
        graph = options.open_graph(
            graph_name, labels, training_graph.directed, tables, nodes=nodes, like=training_graph
        ).target(training_graph.node_type)
        check_same_features(graph, training_graph)
    except InputError as error:
        # Tables of new rows alone often lack what a whole graph must have.
        hint = (
            "It must be the whole graph. If it has only new nodes: "
            f"infomax embed {run} {graph_name} --attach."
        )
        remedy = f"{error.remedy} {hint}".strip()
        location = f"{graph_name}: {error.where}"
        raise InputError(location, error.expected, error.found, remedy) from error

    if positions and structural_features_named(model.feature_names_) == "positions":
        show.log.print(
            "Positions in this graph resemble those in the training graph as far as both share ids."
        )
    if training_graph.weighted and not graph.weighted:
        show.log.print(
            "The edges of the training graph have weights, these have none: each counts as 1. "
            "Where a column holds them: --weight COLUMN."
        )
    return model, graph
