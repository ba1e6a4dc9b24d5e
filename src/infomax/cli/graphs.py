"""infomax info, infomax convert, infomax datasets."""

from __future__ import annotations

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
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from infomax.graphs.graph import Graph
    from infomax.io.encoding.column import Column
    from infomax.io.record import Record

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
    kinds: Annotated[
        list[str] | None,
        option("NAME", "Of several types of nodes, describe this one. May be repeated.", "--type"),
    ] = None,
    schema: Annotated[
        Path | None,
        option(
            "FILE",
            "Write what all tables and columns are, and why. Change it, and train or prepare by it.",
            callback=writable,
        ),
    ] = None,
    *,
    tables: dict[str, Any],
) -> None:
    """Describe a graph, and estimate the memory to train on it."""
    from infomax.arrays.folder import is_folder
    from infomax.io.folder import check_folder
    from infomax.training import runs

    if check:
        if not is_folder(Path(graph)):
            remedy = "Other graphs are checked when they are read."
            raise InputError(graph, "a graph folder, for --check", "none", remedy)
        check_folder(Path(graph))
    run = runs.first_in(Path(graph))
    trained = (run / runs.CONFIG).exists()  # a run has its graph without what was dropped
    if trained:
        _refuse_choices(graph, nodes, labels, directed, tables)
        found = runs.read_training_graph(run)
    else:
        if not kinds and schema is None and nodes is None and _is_database(graph, labels, tables):
            return
        found = open_graph(graph, labels, directed, tables, nodes=nodes)
    if schema is not None:
        _write_schema(found, graph, schema)
        return
    if found.types:
        _show_types(graph, found, trained, kinds or ())
    elif kinds:
        raise InputError("--type", "a graph of several types of nodes", "one type")
    else:
        rows = {
            "files": "all as they were written" if check else "",
            **_described(found, trained, dim),
        }
        show.table(graph, ("", ""), ((name, text) for name, text in rows.items() if text))
        _show_columns(found)


def _refuse_choices(
    run: str,
    nodes: str | None,
    labels: list[str] | None,
    directed: bool | None,
    tables: dict[str, Any],
) -> None:
    """Refuse choices about tables where a run is described, whose graph was read when it was trained."""
    requested = [f"--{name.replace('_', '-')}" for name in tables]
    if nodes is not None:
        requested.insert(0, "NODES")
    if labels:
        requested.append("--labels")
    if directed is not None:
        requested.append("--directed/--undirected")
    if requested:
        remedy = "Leave it out, or describe the tables: infomax info GRAPH."
        raise InputError(run, "no choices about tables beside a run", requested[0], remedy)


def _write_schema(graph: Graph, name: str, path: Path) -> None:
    """Write what the tables of a graph are to a file."""
    from infomax.io.schema.schema_file import write_schema

    if graph.schema is None:
        raise InputError("--schema", "a graph that was made of tables", f"{name}, which was not")
    write_schema(graph.schema, path)
    count = format_count(len(graph.schema.tables), "table")
    show.wrote(f"{path} ({count}); to obey it: infomax train {name} --schema {path} --out RUN")


def _described(graph: Graph, trained: bool, dim: int) -> dict[str, str]:
    """What to show of a graph of one type of nodes, by name; "" for what does not apply."""
    import numpy as np

    from infomax.arrays.resemblance import in_words, resemblance
    from infomax.arrays.structural_features import describe_structural_features
    from infomax.memory import training_bytes

    degree = graph.degrees()
    generated = describe_structural_features(graph.feature_names)
    rows = {}
    if graph.groups is not None:
        sizes = np.unique(graph.groups, return_counts=True)[1]
        rows["graphs"] = f"{len(sizes):,}, of {sizes.min():,} to {sizes.max():,} nodes"
    rows["nodes"] = f"{graph.num_nodes:,}"
    kind = (" (directed)" if graph.directed else "") + (", weighted" if graph.weighted else "")
    rows["edges"] = f"{graph.num_edges:,}{kind}"
    rows["edges held out"] = "" if graph.held_out is None else f"{graph.held_out.shape[1]:,}"
    rows["edges run from, to"] = ", ".join(graph.edge_columns or ())
    rows["features"] = generated
    if not generated:
        stored = "sparse" if graph.table.sparse else "dense"
        filled = graph.table.statistics.nonzero_count
        rows["features"] = (
            f"{graph.num_features:,}, {stored}, {filled / graph.num_nodes:.1f} non-zero per node"
        )
        rows["features of neighbours"] = in_words(
            resemblance(graph.table, graph.edges, graph.scaler())
        )
    rows["degree: mean, median, highest"] = (
        f"{degree.mean():.2f}, {int(np.median(degree))}, {int(degree.max()):,}"
    )
    rows["isolated nodes"] = f"{int((degree == 0).sum()):,}"
    rows["edges dropped"] = "" if trained else _dropped(graph)
    rows["labels"] = (
        ", ".join(f"{name} ({_classes(column)})" for name, column in graph.labels.items()) or "none"
    )
    rows["split"] = (
        ", ".join(f"{name} {int(mask.sum()):,}" for name, mask in graph.splits.items()) or "none"
    )
    rows[f"memory to train, dim {dim}"] = (
        f"about {format_size(training_bytes(graph, dim))}, plus that of Python and torch"
    )
    return rows


def _show_columns(source: Record) -> None:
    """Print what the columns of a node table are and become; nothing of a wide table of numbers."""
    from infomax.arrays.structural_features import structural_features_named

    encoding = source.encoding
    if encoding is None:
        if structural_features_named(source.feature_names) or source.num_features > _MOST_COLUMNS:
            return
        import pyarrow as pa

        from infomax.arrays.sparsity import dense
        from infomax.io.encoding.survey import Survey

        survey = Survey(source.feature_names, {}, list(source.labels))
        block = dense(source.table[:_MOST_ROWS])
        survey.add(
            dict(zip(source.feature_names, map(pa.array, block.T), strict=True)),
            lambda row, name: name,
        )
        encoding = survey.finish()[0]
    rows = [_column_row(column, encoding.name_column) for column in encoding.columns]
    show.table("Columns" + (f" of {source.node_type}" if source.node_type else ""), _HEADINGS, rows)
    for column in encoding.columns:
        if column.note:
            show.out.print(f"warning{format_location('', column=column.name)}: {column.note}.")


_MOST_COLUMNS, _MOST_ROWS = 50, 1 << 17
"""Of a table of numbers more columns are not told, and more rows are not looked at."""
_MOST_TYPES, _MOST_RELATIONS = 3, 14
"""Of more types, columns and paths are told when they are asked for; of relations, those with most edges."""
_HEADINGS = ("column", "kind", "distinct", "missing", "becomes")


def _column_row(column: Column, called: str | None) -> tuple[str, ...]:
    """A row of the table of columns; ``called`` is the one of names."""
    becomes = []
    if column.feature_names:
        count = format_count(len(column.feature_names), "feature")
        becomes.append(f"{count}: {', '.join(column.feature_parts)}")
    if column.name == called:
        becomes.append("the names of nodes")
    distinct = "many" if column.distinct is None else f"{column.distinct:,}"
    return (
        column.name,
        column.column_type,
        distinct,
        f"{column.missing:,}",
        "; ".join(becomes) or "nothing",
    )


def _dropped(graph: Record) -> str:
    """How many rows of edge tables are no edges of their own, by the reason, and what those that repeat one do."""
    repeated = "their weights add up" if graph.weighted else "--weight count would count them"
    told = {
        "self_loops": "self-loops",
        "duplicates": f"duplicates ({repeated})",
        "zero_weights": "of weight 0",
    }
    return (
        ", ".join(f"{count:,} {told[name]}" for name, count in graph.dropped.items() if count)
        or "none"
    )


def _is_database(name: str, labels: list[str] | None, columns: dict[str, Any]) -> bool:
    """Whether a name is that of a database; then what its tables become is printed.

    Choices that train would refuse are refused, and what it would warn of is said.
    """
    from infomax.io.columns import Columns
    from infomax.io.database import is_database, read_tables
    from infomax.io.database.graph_tables import graph_tables
    from infomax.io.database.in_words import HEADINGS, closing_lines, drawing, table_rows

    choices = Columns.of(labels or (), **columns)
    if not is_database(name, choices.text_format):
        return False
    snapshot = read_tables(name, choices)
    graph_tables(snapshot, choices)
    rows = table_rows(snapshot, columns.get("as_of"))
    show.out.print("\n".join(drawing(snapshot)))
    show.table(snapshot.location, HEADINGS, rows)
    show.out.print("\n".join(closing_lines(snapshot)))
    return True


def _show_types(title: str, graph: Graph, trained: bool, chosen: Sequence[str]) -> None:
    """Print the types of nodes of a graph and the relations between them; paths and columns of a few types."""
    from infomax.arrays.structural_features import structural_features_named

    types = graph.by_type()
    rows = []
    lines = []
    described = {kind: graph.target(kind) for kind in chosen} or (
        types if len(types) <= _MOST_TYPES else {}
    )
    for kind, one in types.items():
        degree = one.degrees()
        labels = (f"{name} ({_classes(column)})" for name, column in one.labels.items())
        features = structural_features_named(one.feature_names) or f"{one.num_features:,}"
        isolated = f"{int((degree == 0).sum()):,}"
        rows.append(
            (
                kind,
                f"{one.num_nodes:,}",
                features,
                ", ".join(labels),
                f"{degree.mean():.2f}",
                isolated,
            )
        )
        if kind not in described:
            continue
        if one.splits:
            masks = ", ".join(f"{name} {int(mask.sum()):,}" for name, mask in one.splits.items())
            lines.append(f"split of {kind}: {masks}")
        try:
            lines.append(f"paths from {kind}, up to 2 steps: {', '.join(one.paths())}")
        except InputError as error:
            lines.append(str(error))
    show.table(title, ("type", "nodes", "features", "labels", "edges per node", "isolated"), rows)
    arrows = (
        (one, ">" if one.directed else "─")
        for one in sorted(graph.relations, key=lambda one: -one.edges.count)
    )
    drawn = [
        (f"{one.source} ─ {one.name} ─{end} {one.target}", f"{one.edges.count:,}")
        for one, end in arrows
    ]
    left = [(f"{len(drawn) - _MOST_RELATIONS} more", "")] if len(drawn) > _MOST_RELATIONS else []
    show.table("", ("relation", "edges"), [*drawn[:_MOST_RELATIONS], *left])
    if not trained:
        lines.append(f"edges dropped: {_dropped(graph)}")
    if not described:
        lines.append("The columns of a type, and the paths from it: --type NAME")
    for line in lines:
        show.out.print(line)
    for one in described.values():
        _show_columns(one)


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
            "What to write: g.npz, edges.csv,nodes.csv (or .tsv, .txt, .parquet, .csv.gz), a folder "
            "for tables (of several types also NAME.parquet), or a graph folder: NAME.graph",
        ),
    ],
    labels: Labels = None,
    directed: Directed = None,
    tables: dict[str, Any],
) -> None:
    """Write a graph in another format."""
    from infomax.io.writing import how_to_read

    found = open_graph(graph, labels, directed, tables, nodes=nodes)
    with show.Steps("convert", found.num_nodes) as steps:
        found.save(out, progress=steps.at)
    if option := how_to_read(found, out):
        show.log.print(f"To read it as a directed graph:{option}")
    encodings = [
        one.encoding for one in (*found.by_type().values(), found) if one.encoding is not None
    ]
    if encodings and Path(out).suffix.lower() not in (".npz", ".graph"):
        names = dict.fromkeys(
            column.name for encoding in encodings for column in encoding.feature_columns
        )
        kept = (
            "not the columns. An .npz or NAME.graph also keeps how they were made, for new nodes."
        )
        show.log.print(
            f"Written are the features that the columns {', '.join(names)} became, {kept}"
        )
    show.wrote(f"{out} ({found!r})")


def _classes(column: NDArray[Any]) -> str:
    """The number of classes in a column ``[N]``, or of labels in ``[N, C]``."""
    if column.ndim == 2:
        return f"{format_count(column.shape[1], 'label')}, several per node"
    return format_count(len(set(column.tolist()) - {"", None, -1}), "class")


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
        paths = fetch_dataset(name, steps.at)
    where = f" in {paths[0].parent}" if paths else ", inside the package"
    show.out.print(f"{name}: {format_count(len(paths), 'file')}{where}")


@datasets.command()
def path() -> None:
    """Show the folders of data sets; the last one is the cache."""
    from infomax.datasets.fetch import data_folders

    for folder in data_folders():
        show.out.print(str(folder))
