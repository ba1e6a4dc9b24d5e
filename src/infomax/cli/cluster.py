"""infomax cluster."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, RunArgument, writable, written_once
from infomax.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.evaluation.clustering import Stability
    from infomax.graphs.graph import Graph


NAMED = 5
"""How many features are named per cluster."""


@app.command()
def cluster(
    run: RunArgument,
    k: Annotated[
        str,
        typer.Option(
            "-k",
            metavar="auto|N",
            help="How many clusters; auto: from 2 to 30, or to 100 where more are better, by how well two halves of "
            "the nodes agree.",
        ),
    ] = "auto",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=writable, help="Write ids and clusters to a .csv, .tsv or .parquet."),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of the sample and of k-means.", min=0, max=2**32 - 1)
    ] = 0,
    device: Device = "auto",
) -> None:
    """Group the nodes by k-means of their vectors.

    Shows the features that set each group apart and, with labels, how well the groups agree with them (NMI, ARI). Of a
    graph folder, the groups are found on a sample of the nodes; the others join the nearest.
    """
    from infomax.evaluation import clustering

    began = time.monotonic()
    if out is not None and out.suffix.lower() not in FORMATS:
        raise InputError(str(out), f"one of {', '.join(FORMATS)}", f"the extension {out.suffix!r}")
    embeddings, graph = _read(run, device)
    if k == "auto":
        scores = clustering.choose_k(embeddings.vectors, seed=seed)
        number = clustering.best_k(scores)
        _show_choice(scores, number)
    else:
        number = int(k) if k.isdecimal() else 0
        if not 1 <= number <= len(embeddings):
            raise InputError("-k", f"auto, or a number from 1 to {len(embeddings):,}", k)
    clusters = clustering.cluster(embeddings.vectors, number, seed=seed)
    if out is not None:
        FORMATS[out.suffix.lower()](out, embeddings, clusters)
    _show(graph, clusters)
    if out is not None:
        show.wrote(f"{out} ({len(embeddings):,} nodes, {clusters.max() + 1} clusters)", began)


def _read(run: Path, device: str) -> tuple[Embeddings | StoredEmbeddings, Graph]:
    """The vectors and the graph of a run; without torch where the run holds its vectors."""
    from infomax.training.runs import read_training_graph, vectors_of_run

    if device == "auto" and (written := vectors_of_run(run)) is not None:
        return written, read_training_graph(run)

    from infomax.estimator import DGI

    model = DGI.load(run)
    model.device = device
    if model.graph_.table.mapped:
        return written_once(model, run), model.graph_
    return model.transform(model.graph_), model.graph_


def _show_choice(scores: dict[int, Stability], chosen: int) -> None:
    """The curve of the stability, how far its peaks are above what is expected, and what was chosen."""
    from infomax.evaluation.clustering import levels, peaks

    if not scores:  # too few vectors differ
        return
    rows, level, above = [], levels(scores), peaks(scores)
    for k, (found, _) in scores.items():
        peak = f"{above[k]:5.2f} {round(40 * max(0.0, above[k])) * '█'}" if k in above else ""
        rows.append((k, f"{found:.2f}", f"{level[k]:.2f}", peak, "chosen" if k == chosen else ""))
    columns = ("k", "agreement", "without groups", "a peak's difference", "")
    show.table("How many clusters: agreement (ARI) of k-means on two halves of a sample", columns, rows)
    if chosen == max(scores):
        show.out.print(f"No more than {chosen} were tried, and that is the best: there may be more groups.")
    show.out.print("Other peaks of the agreement are divisions worth a look, too: -k sets the number.")


def _features(graph: Graph, clusters: NDArray[Any]) -> list[str]:
    """What sets each cluster apart: ``perl, module, less of python``."""
    from infomax.evaluation.clustering import distinctive

    return [
        ", ".join(graph.feature_names[f] if apart > 0 else f"less of {graph.feature_names[f]}" for f, apart in columns)
        for columns in distinctive(graph.table, clusters, top=NAMED)
    ]


def _show(graph: Graph, clusters: NDArray[Any]) -> None:
    """The clusters with the label that is most frequent in each, and how well they agree with every label."""
    import numpy as np

    from infomax.evaluation.clustering import agreement
    from infomax.evaluation.splits import encode_labels

    labels = {}
    for name, column in graph.labels.items():
        with suppress(InputError):  # one class, or several labels per node: nothing to compare with
            labels[name] = encode_labels(column)
    rows, told = [], _features(graph, clusters)
    for number, size in enumerate(np.bincount(clusters)):
        row = [number, f"{size:,}", told[number]]
        for codes, names in labels.values():
            counts = np.bincount(codes[(clusters == number) & (codes >= 0)], minlength=len(names))
            row.append(f"{names[counts.argmax()]} ({100 * counts.max() / size:.0f} %)" if counts.any() else "")
        rows.append(row)
    show.table("Clusters", ("cluster", "nodes", "set apart by", *(f"mostly, by {name}" for name in labels)), rows)
    if labels:
        scores = [(name, agreement(clusters, codes)) for name, (codes, _) in labels.items()]
        cells = [(name, f"{score['nmi']:.3f}", f"{score['ari']:.3f}") for name, score in scores]
        show.table("Agreement with labels", ("label", "NMI", "ARI"), cells)


def _write_text(path: Path, embeddings: Embeddings | StoredEmbeddings, clusters: NDArray[Any]) -> None:
    import csv

    from infomax.io.atomic import replacing

    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        # All text is quoted: csv would leave a lone carriage return bare, which then reads as the end of a row.
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(("id", "cluster"))
        writer.writerows(zip(embeddings, map(int, clusters), strict=True))


def _write_parquet(path: Path, embeddings: Embeddings | StoredEmbeddings, clusters: NDArray[Any]) -> None:
    from infomax.arrays.parquet_columns import ID_ROWS
    from infomax.io.atomic import replacing
    from infomax.io.parquet import need_pyarrow

    pyarrow, parquet = need_pyarrow(path)
    ids = embeddings.ids
    schema = pyarrow.schema([("id", pyarrow.array(ids[:1]).type), ("cluster", pyarrow.int64())])
    with replacing(path) as temporary, parquet.ParquetWriter(temporary, schema) as writer:
        for first in range(0, len(ids), ID_ROWS):
            block = slice(first, first + ID_ROWS)
            writer.write_table(pyarrow.table([pyarrow.array(ids[block]), clusters[block]], schema=schema))


FORMATS = {".csv": _write_text, ".tsv": _write_text, ".parquet": _write_parquet}
