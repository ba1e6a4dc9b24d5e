"""infomax evaluate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Json, ProbeName

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.evaluation.splits import Splits
    from infomax.graph import Graph


@app.command()
def evaluate(
    source: Annotated[Path, typer.Argument(metavar="RUN|FILE", help="A run folder, or a file that embed wrote.")],
    labels: Annotated[
        str | None,
        typer.Option(metavar="nodes.csv:COLUMN", help="Labels by node id, in a table; or a column of the run."),
    ] = None,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="Take labels and split of a data set.")] = None,
    probe: ProbeName = "validated",
    json: Json = None,
) -> None:
    """Score vectors with a linear probe.

    A run is scored beside the same encoder untrained (Random-Init) and beside its raw features.
    """
    from infomax.comparison import choose_probe, compare, splits_for, vectors_row
    from infomax.embedding import Embeddings
    from infomax.errors import InputError
    from infomax.estimator import DGI
    from infomax.runs import write_json

    measure, began = choose_probe(probe), time.monotonic()
    if not source.exists():
        raise InputError(str(source), "a run folder, or a file that embed wrote", "nothing of that name")
    if source.is_dir():
        model = DGI.load(source)
        codes, own = _labels(model.graph_.ids, labels, dataset, model.graph_)
        splits, name = splits_for(codes, own)
        rows = compare(model, codes, splits, measure)
    else:
        embeddings = Embeddings.read(source)
        codes, own = _labels(embeddings.ids, labels, dataset, None)
        splits, name = splits_for(codes, own)
        rows = [vectors_row(str(source), embeddings.vectors, codes, splits, measure, time.perf_counter())]
    values = [row.to_dict() for row in rows]
    show.scores(f"{probe} probe, {name}, {int((codes >= 0).sum()):,} labelled nodes", values)
    if json is not None:
        write_json(json, {"source": str(source), "probe": probe, "split": name, "rows": values})
        show.wrote(json, began)


def _labels(
    ids: NDArray[Any], labels: str | None, dataset: str | None, graph: Graph | None
) -> tuple[NDArray[Any], Splits | None]:
    """Codes ``[N]`` of the nodes, and the split that comes with them."""
    import numpy as np

    from infomax.datasets import load_dataset
    from infomax.errors import InputError
    from infomax.evaluation.splits import encode_labels
    from infomax.io import read_labels

    if labels is not None and dataset is not None:
        raise InputError("evaluate", "--labels or --dataset", "both")
    if labels is not None and ":" in labels:
        path, column = labels.rsplit(":", 1)
        known, splits = read_labels(path, column), {}
    else:
        graph = graph if dataset is None else load_dataset(dataset)
        if graph is None or not graph.labels:
            raise InputError("evaluate", "labels", "none", "Name them: --labels nodes.csv:COLUMN, or --dataset NAME.")
        column = labels or next(iter(graph.labels))
        if column not in graph.labels:
            raise InputError("--labels", f"one of {', '.join(graph.labels)}", column)
        known = dict(zip(map(str, graph.ids.tolist()), graph.labels[column].tolist(), strict=True))
        splits = {name: dict(zip(known, mask.tolist(), strict=True)) for name, mask in graph.splits.items()}
    names = [str(identifier) for identifier in ids.tolist()]
    if known.keys().isdisjoint(names):
        remedy = "An .npy holds no ids: embed to another format."
        raise InputError("labels", "some of these nodes", f"none of them among {len(known):,} ids", remedy)
    missing = "" if any(isinstance(value, str) for value in known.values()) else -1
    column_values = [known.get(name, missing) for name in names]
    codes, _ = encode_labels(np.array(column_values, dtype=object if missing == "" else np.int64))
    masks = {part: np.array([mask.get(name, False) for name in names]) for part, mask in splits.items()}
    return codes, masks or None
