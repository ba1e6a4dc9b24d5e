"""infomax evaluate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.labels import aligned, read_aligned, table_column
from infomax.cli.options import PROBE_HELP, PROBE_NAMES, Json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.evaluation.splits import Splits
    from infomax.graphs.graph import Graph


@app.command()
def evaluate(
    source: Annotated[Path, typer.Argument(metavar="RUN|FILE", help="A run folder, or a file that embed wrote.")],
    labels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="nodes.csv:COLUMN",
            help="Labels by node id, in a table; or a column of the run. Repeated: columns of 0 and 1, a label each.",
        ),
    ] = None,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="Take labels and split of a data set.")] = None,
    probe: Annotated[
        str | None,
        typer.Option(
            metavar=PROBE_NAMES, help=f"{PROBE_HELP}  [default: validated; paper where a node may have several labels]"
        ),
    ] = None,
    json: Json = None,
) -> None:
    """Score vectors with a linear probe: by accuracy, or by micro-F1 where a node may have several labels.

    A run is scored beside the same encoder untrained (Random-Init) and beside its raw features.
    """
    from infomax.embeddings import Embeddings
    from infomax.errors import InputError
    from infomax.estimator import DGI
    from infomax.evaluation.splits import known
    from infomax.io.json import write_json
    from infomax.paper.comparison import choose_probe, compare, splits_for, vectors_row

    began = time.monotonic()
    if not source.exists():
        raise InputError(str(source), "a run folder, or a file that embed wrote", "nothing of that name")
    scored = DGI.load(source) if source.is_dir() else Embeddings.read(source)
    graph, ids = (scored.graph_, scored.graph_.ids) if isinstance(scored, DGI) else (None, scored.ids)
    codes, own, names = _labels(ids, labels or [], dataset, graph, numbered=source.suffix == ".npy")
    splits, name = splits_for(codes, own)
    probe = probe or ("validated" if codes.ndim == 1 else "paper")
    measure = choose_probe(probe)
    if isinstance(scored, DGI):
        rows = compare(scored, codes, splits, measure)
    else:
        rows = [vectors_row(str(source), scored.vectors, codes, splits, measure, time.perf_counter())]
    values = [row.to_dict() for row in rows]
    show.scores(f"{', '.join(names)}: {probe} probe, {name}, {int(known(codes).sum()):,} labelled nodes", values)
    if json is not None:
        write_json(json, {"source": str(source), "labels": names, "probe": probe, "split": name, "rows": values})
        show.wrote(json, began)


def _labels(
    ids: NDArray[Any], labels: list[str], dataset: str | None, graph: Graph | None, *, numbered: bool
) -> tuple[NDArray[Any], Splits | None, list[str]]:
    """Codes of the nodes, ``[N]`` or, of several labels a node, ``[N, C]``; the split with them; the labels' names."""
    import numpy as np

    from infomax.datasets import load_dataset
    from infomax.errors import InputError
    from infomax.evaluation.splits import encode_flags, encode_labels

    if labels and dataset is not None:
        raise InputError("evaluate", "--labels or --dataset", "both")
    graph = graph if dataset is None else load_dataset(dataset)
    columns = {label: _column(ids, label, graph, numbered=numbered) for label in labels or _first(graph)}
    first = next(iter(columns.values()))
    if len(columns) == 1 and first.ndim == 1:
        codes: NDArray[Any] = encode_labels(first)[0]
    else:
        codes = np.column_stack([encode_flags(column, f"labels {label}") for label, column in columns.items()])
    if graph is None or any(table_column(label, graph) for label in columns):
        return codes, None, list(columns)
    splits = {part: aligned(ids, graph.ids.tolist(), mask, False) for part, mask in graph.splits.items()}
    return codes, splits, list(columns)


def _first(graph: Graph | None) -> list[str]:
    """The name of the graph's labels, of the first if it has several."""
    from infomax.errors import InputError

    if graph is None or not graph.labels:
        raise InputError("evaluate", "labels", "none", "Name them: --labels nodes.csv:COLUMN, or --dataset NAME.")
    return list(graph.labels)[:1]


def _column(ids: NDArray[Any], label: str, graph: Graph | None, *, numbered: bool) -> NDArray[Any]:
    """The labels of the nodes ``[N]`` or ``[N, C]``, of a table or of the graph."""
    from infomax.errors import InputError

    if (named := table_column(label, graph)) is not None:
        return read_aligned(ids, *named, numbered=numbered)
    if graph is None or label not in graph.labels:
        known = ", ".join(graph.labels) if graph else ""
        raise InputError("--labels", f"one of {known}" if known else "nodes.csv:COLUMN", label)
    values = graph.labels[label]
    return aligned(ids, graph.ids.tolist(), values, "" if values.dtype == object else -1, numbered=numbered)
