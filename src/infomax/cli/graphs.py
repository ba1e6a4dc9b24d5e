"""infomax info, infomax convert, infomax datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import Grouped, app
from infomax.cli.options import (
    Directed,
    GraphArgument,
    Labels,
    NodesArgument,
    has_options,
    open_graph,
    option,
    table_options,
    writable,
)
from infomax.errors import InputError, format_count, format_location
from infomax.memory import format_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.graphs.graph import Graph
    from infomax.io.encoding.column import Column
    from infomax.io.record import Record

MOST_DESCRIBED_TYPES = 3
"""Of more types of nodes, columns and paths are shown of those that --type names."""
MOST_RELATIONS = 14
"""Of more relations, those with most edges are shown."""
COLUMN_HEADINGS = ("column", "type", "distinct", "missing", "becomes")

datasets = typer.Typer(
    help="List the data sets that infomax knows, or download one.", invoke_without_command=True
)
app.add_typer(datasets, name="datasets")


@app.command(cls=Grouped)
@has_options(tables=table_options("schema"))
def info(
    graph: GraphArgument,
    nodes: NodesArgument = None,
    labels: Labels = None,
    directed: Directed = None,
    dim: Annotated[
        int, option("N", "Width of the encoder, for the memory estimate.", min=1, max=1 << 24)
    ] = 512,
    check: Annotated[
        bool, typer.Option("--check", help="Read a graph folder and compare its hashes first.")
    ] = False,
    node_types: Annotated[
        list[str] | None,
        option("NAME", "Of several types of nodes, describe this one. May be repeated.", "--type"),
    ] = None,
    schema: Annotated[
        Path | None,
        option(
            "FILE",
            "Write what all tables and columns are, and why; a file that differs is never "
            "overwritten. Change it, and train or prepare by it.",
            callback=writable,
        ),
    ] = None,
    obey: Annotated[
        Path | None,
        option("FILE", "Read by the schema in this file, as train --schema does: to check it."),
    ] = None,
    *,
    tables: dict[str, Any],
) -> None:
    """Describe a graph, and estimate the memory to train on it."""
    from infomax.arrays.folder_layout import is_folder
    from infomax.io.graph_folder import check_folder
    from infomax.training import runs

    if check:
        if not is_folder(Path(graph)):
            remedy = "Other graphs are checked when they are read."
            raise InputError(graph, "a graph folder, for --check", "none", remedy)
        check_folder(Path(graph))

    # A run has its graph as it was read, without the edges that were dropped.
    run = runs.first_in(Path(graph))
    is_run = (run / runs.CONFIG).exists()
    if is_run:
        _refuse_choices(graph, nodes, labels, directed, tables, obey)
        opened_graph = runs.read_training_graph(run)
    else:
        if obey is not None:
            tables = {**tables, "schema": str(obey)}
        # A database is described by its tables, from which no graph need be made.
        asks_for_graph = node_types or schema is not None or nodes is not None
        if not asks_for_graph and _show_database(graph, labels, tables):
            if obey is not None:
                # Only reading the cells shows whether each column can be what the schema says.
                opened_graph = open_graph(graph, labels, directed, tables)
                _show_changed_choices(opened_graph, obey)
            return
        opened_graph = open_graph(graph, labels, directed, tables, nodes=nodes)

    if schema is not None:
        _write_schema(opened_graph, graph, schema)
        return
    if obey is not None:
        _show_changed_choices(opened_graph, obey)
    if opened_graph.has_named_types:
        _show_types(graph, opened_graph, node_types or (), is_run=is_run)
        return
    if node_types:
        raise InputError("--type", "a graph of several types of nodes", "one type")
    rows = {}
    if check:
        rows["files"] = "all as they were written"
    rows |= _graph_rows(opened_graph, dim, is_run=is_run)
    show.table(graph, ("", ""), rows.items())
    _show_columns(opened_graph)


def _refuse_choices(
    run: str,
    nodes: str | None,
    labels: list[str] | None,
    directed: bool | None,
    tables: Mapping[str, Any],
    schema: Path | None,
) -> None:
    """Refuse choices about tables beside a run, whose tables were read when it was trained."""
    requested_options = []
    if nodes is not None:
        requested_options.append("NODES")
    requested_options += [f"--{name.replace('_', '-')}" for name in tables]
    if labels:
        requested_options.append("--labels")
    if directed is not None:
        requested_options.append("--directed/--undirected")
    if schema is not None:
        requested_options.append("--obey")
    if requested_options:
        remedy = "Leave it out, or describe the tables: infomax info GRAPH."
        expected = "no choices about tables beside a run"
        raise InputError(run, expected, requested_options[0], remedy)


def _show_database(name: str, labels: list[str] | None, table_choices: Mapping[str, Any]) -> bool:
    """Print what the tables of a database become. Returns whether the name is that of a database.

    Choices that train would refuse are refused, and warnings of train are given.
    """
    from infomax.io.choices import UserChoices
    from infomax.io.database import is_database, read_tables
    from infomax.io.database.graph_tables import graph_tables
    from infomax.io.database.in_words import HEADINGS, closing_lines, drawing, table_rows

    columns = UserChoices.of(labels or (), **table_choices)
    if not is_database(name, columns.text_format):
        return False
    snapshot = read_tables(name, columns)
    graph_tables(snapshot, columns)
    rows = table_rows(snapshot, table_choices.get("as_of"))
    show.out.print("\n".join(drawing(snapshot)))
    show.table(snapshot.location, HEADINGS, rows)
    show.out.print("\n".join(closing_lines(snapshot, columns.given_schema)))
    return True


def _write_schema(graph: Graph, name: str, path: Path) -> None:
    """Write what the tables of a graph are to a file, unless that would undo a person's edits."""
    from infomax.io.schema.schema_file import to_text, write_schema

    if graph.schema is None:
        raise InputError("--schema", "a graph that was made of tables", f"{name}, which was not")
    if path.exists() and path.read_bytes() != to_text(graph.schema).encode():
        remedy = (
            f"It was left as it is. To check it: infomax info {name} --obey {path}. "
            "To write a new one: choose another name, or remove it first."
        )
        expected = "a new file, or the same schema"
        raise InputError(str(path), expected, "a file that differs", remedy)
    write_schema(graph.schema, path)
    count = format_count(len(graph.schema.tables), "table")
    show.wrote(f"{path} ({count})")
    show.log.print(
        f"To check it after a change: infomax info {name} --obey {path}\n"
        f"To train by it: infomax train {name} --schema {path} --out RUN"
    )


def _show_changed_choices(graph: Graph, path: Path) -> None:
    """Print which choices of a schema are a person's own, after nothing in it was refused."""
    from infomax.io.schema.edits import choices_of_person

    names = [] if graph.schema is None else choices_of_person(graph.schema)
    yours = ", ".join(names) or "none"
    show.out.print(f"{path} can be obeyed. Chosen by you: {yours}")


def _graph_rows(graph: Graph, dim: int, *, is_run: bool) -> dict[str, str]:
    """What is shown of a graph of one type of nodes, by name."""
    import numpy as np

    from infomax.memory import training_bytes

    rows = {}
    if graph.groups is not None:
        sizes = np.unique(graph.groups, return_counts=True)[1]
        rows["graphs"] = f"{len(sizes):,}, of {sizes.min():,} to {sizes.max():,} nodes"
    rows["nodes"] = f"{graph.num_nodes:,}"
    rows["edges"] = f"{graph.num_edges:,}"
    if graph.directed:
        rows["edges"] += " (directed)"
    if graph.weighted:
        rows["edges"] += ", weighted"
    if graph.held_out is not None:
        rows["edges held out"] = f"{graph.held_out.shape[1]:,}"
    if graph.edge_columns:
        rows["edges run from, to"] = ", ".join(graph.edge_columns)
    rows |= _feature_rows(graph)

    degrees = graph.degrees()
    rows["degree: mean, median, highest"] = (
        f"{degrees.mean():.2f}, {int(np.median(degrees))}, {int(degrees.max()):,}"
    )
    rows["isolated nodes"] = f"{int((degrees == 0).sum()):,}"
    if not is_run:
        rows["edges dropped"] = _dropped_edges(graph)

    labels = [f"{name} ({_class_count(column)})" for name, column in graph.labels.items()]
    rows["labels"] = ", ".join(labels) or "none"
    rows["split"] = _split_sizes(graph) or "none"
    size = format_size(training_bytes(graph, dim))
    rows[f"memory to train, dim {dim}"] = f"about {size}, plus that of Python and torch"
    return rows


def _feature_rows(graph: Graph) -> dict[str, str]:
    """What is shown of the features of a graph, by name."""
    from infomax.arrays.resemblance import in_words, resemblance
    from infomax.arrays.structural_features import describe_structural_features

    structural_features = describe_structural_features(graph.feature_names)
    if structural_features:
        return {"features": structural_features}
    storage = "sparse" if graph.table.sparse else "dense"
    nonzero_per_node = graph.table.statistics.nonzero_count / graph.num_nodes
    features = f"{graph.num_features:,}, {storage}, {nonzero_per_node:.1f} non-zero per node"
    resembling = resemblance(graph.table, graph.edges, graph.scaler())
    return {"features": features, "features of neighbours": in_words(resembling)}


def _split_sizes(graph: Record) -> str:
    """``train 140, test 1,000``."""
    return ", ".join(f"{name} {int(mask.sum()):,}" for name, mask in graph.splits.items())


def _dropped_edges(graph: Record) -> str:
    """How many rows of edge tables are no edges, by the reason."""
    repeated = "their weights add up" if graph.weighted else "--weight count would count them"
    reasons = {
        "self_loops": "self-loops",
        "duplicates": f"duplicates ({repeated})",
        "zero_weights": "of weight 0",
    }
    counts = [f"{count:,} {reasons[name]}" for name, count in graph.dropped.items() if count]
    return ", ".join(counts) or "none"


def _class_count(column: NDArray[Any]) -> str:
    """The number of classes of a label ``[N]``, or of labels ``[N, C]``."""
    if column.ndim == 2:
        return f"{format_count(column.shape[1], 'label')}, several per node"
    return format_count(len(set(column.tolist()) - {"", None, -1}), "class")


def _show_columns(record: Record) -> None:
    """Print what the columns of a node table are and become; nothing of a wide table of numbers."""
    from infomax.reports.columns import describe_columns

    encoding = describe_columns(record)
    if encoding is None:
        return
    title = "Columns"
    if record.has_named_types:
        title = f"Columns of {record.node_type}"
    rows = [_column_row(column, encoding.name_column) for column in encoding.columns]
    show.table(title, COLUMN_HEADINGS, rows)
    for column in encoding.columns:
        if column.note:
            show.out.print(f"warning{format_location('', column=column.name)}: {column.note}.")


def _column_row(column: Column, name_column: str | None) -> tuple[str, ...]:
    """The cells about a column; ``name_column`` is the one that holds the names of nodes."""
    uses = []
    if column.feature_names:
        count = format_count(len(column.feature_names), "feature")
        uses.append(f"{count}: {', '.join(column.feature_parts)}")
    if column.name == name_column:
        uses.append("the names of nodes")
    distinct = "many" if column.distinct is None else f"{column.distinct:,}"
    return (
        column.name,
        column.column_type,
        distinct,
        f"{column.missing:,}",
        "; ".join(uses) or "nothing",
    )


def _show_types(
    title: str,
    graph: Graph,
    requested_types: Sequence[str],
    *,
    is_run: bool,
    most_described: int = MOST_DESCRIBED_TYPES,
) -> None:
    """Print the types of nodes of a graph and the relations between them.

    Paths and columns are printed of the types that a person named, or of all where they are few.
    """
    graph_by_type = graph.by_type()
    described_types: dict[str, Graph] = {}
    if requested_types:
        described_types = {name: graph.target(name) for name in requested_types}
    elif len(graph_by_type) <= most_described:
        described_types = dict(graph_by_type)

    rows = [_type_row(node_type, of_type) for node_type, of_type in graph_by_type.items()]
    headings = ("type", "nodes", "features", "labels", "edges per node", "isolated")
    show.table(title, headings, rows)
    _show_relations(graph)

    for node_type, of_type in graph_by_type.items():
        if node_type in described_types:
            _show_split_and_paths(node_type, of_type)
    if not is_run:
        show.out.print(f"edges dropped: {_dropped_edges(graph)}")
    if not described_types:
        show.out.print("The columns of a type, and the paths from it: --type NAME")
    for of_type in described_types.values():
        _show_columns(of_type)


def _type_row(node_type: str, graph: Graph) -> tuple[str, ...]:
    """The cells about a type, of the graph as seen from the type."""
    from infomax.arrays.structural_features import structural_features_named

    degrees = graph.degrees()
    labels = [f"{name} ({_class_count(column)})" for name, column in graph.labels.items()]
    return (
        node_type,
        f"{graph.num_nodes:,}",
        structural_features_named(graph.feature_names) or f"{graph.num_features:,}",
        ", ".join(labels),
        f"{degrees.mean():.2f}",
        f"{int((degrees == 0).sum()):,}",
    )


def _show_relations(graph: Graph, most_relations: int = MOST_RELATIONS) -> None:
    """Print the relations of a graph, the largest first."""
    rows = []
    for relation in sorted(graph.relations, key=lambda relation: -relation.edges.num_edges):
        arrowhead = ">" if relation.directed else "─"
        arrow = f"{relation.source} ─ {relation.name} ─{arrowhead} {relation.target}"
        rows.append((arrow, f"{relation.edges.num_edges:,}"))
    hidden_count = len(rows) - most_relations
    if hidden_count > 0:
        rows = [*rows[:most_relations], (f"{hidden_count} more", "")]
    show.table("", ("relation", "edges"), rows)


def _show_split_and_paths(node_type: str, graph: Graph) -> None:
    if graph.splits:
        show.out.print(f"split of {node_type}: {_split_sizes(graph)}")
    try:
        paths = ", ".join(graph.paths())
    except InputError as error:
        # No path leads from the type to others: that is worth reading, and no mistake.
        show.out.print(str(error))
    else:
        show.out.print(f"paths from {node_type}, up to 2 steps: {paths}")


@app.command(cls=Grouped)
@has_options(tables=table_options())
def convert(
    graph: GraphArgument,
    nodes: NodesArgument = None,
    *,
    out: Annotated[
        str,
        option(
            "NAME",
            "What to write: g.npz, edges.csv,nodes.csv (or .tsv, .txt, .parquet, .csv.gz), a "
            "folder for tables (of several types also NAME.parquet), or a graph folder: NAME.graph",
        ),
    ],
    labels: Labels = None,
    directed: Directed = None,
    tables: dict[str, Any],
) -> None:
    """Write a graph in another format."""
    from infomax.io.writing import how_to_read

    opened_graph = open_graph(graph, labels, directed, tables, nodes=nodes)
    with show.Steps("convert", opened_graph.num_nodes) as steps:
        opened_graph.save(out, progress=steps.update)
    reading_option = how_to_read(opened_graph, out)
    if reading_option:
        show.log.print(f"To read it as a directed graph:{reading_option}")

    keeps_encoding = Path(out).suffix.lower() in (".npz", ".graph")
    names = _encoded_columns(opened_graph)
    if names and not keeps_encoding:
        show.log.print(
            f"Written are the features that the columns {', '.join(names)} became, not the "
            "columns. An .npz or NAME.graph also keeps how they were made, for new nodes."
        )
    show.wrote(f"{out} ({opened_graph!r})")


def _encoded_columns(graph: Graph) -> list[str]:
    """The columns of all types of nodes from which features were made."""
    names: dict[str, None] = {}
    for of_type in (*graph.by_type().values(), graph):
        if of_type.encoding is not None:
            names |= dict.fromkeys(column.name for column in of_type.encoding.feature_columns)
    return list(names)


@datasets.callback()
def choose(context: typer.Context) -> None:
    """List the data sets if no command is given."""
    if context.invoked_subcommand is None:
        list_datasets()


@datasets.command("list")
def list_datasets() -> None:
    """List the data sets."""
    from infomax.datasets import DATASETS

    show.table("Data sets", ("name", "what it is"), DATASETS.items())


@datasets.command()
def fetch(name: Annotated[str, typer.Argument(help="A data set's name.")]) -> None:
    """Download a data set into the cache, and check its size and SHA-256."""
    from infomax.datasets import fetch_dataset

    with show.Steps(name, None) as steps:
        paths = fetch_dataset(name, steps.update)
    location = ", inside the package"
    if paths:
        location = f" in {paths[0].parent}"
    show.out.print(f"{name}: {format_count(len(paths), 'file')}{location}")


@datasets.command()
def path() -> None:
    """Show the folders of data sets; the last one is the cache."""
    from infomax.datasets.fetch import data_folders

    for folder in data_folders():
        show.out.print(str(folder))
