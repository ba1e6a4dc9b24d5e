"""infomax cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, ResultFile, Seed, Threads, option
from infomax.cli.runs import OfType, RunArgument, vectors
from infomax.errors import InputError, number_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.graphs.graph import Graph


NAMED = 5
"""How many features, and nodes, are named per cluster."""
SAMPLE = 1000


@app.command()
def cluster(
    run: RunArgument,
    k: Annotated[
        str,
        option(
            "auto|N",
            "How many clusters; auto: 2 to 30, or to 100 where more are better, by the silhouette.",
            "-k",
        ),
    ] = "auto",
    out: ResultFile = None,
    seed: Seed = 0,
    device: Device = "auto",
    type: OfType = None,
    threads: Threads = None,
) -> None:
    """Group the nodes by k-means of their vectors.

    Shows the features that set each group apart and, with labels, how well the groups agree with them (NMI, ARI). Of a
    graph folder, the groups are found on a sample of the nodes; the others join the nearest. Of several types of nodes,
    each has groups of its own.
    """
    from infomax.io.result_files import write_result
    from infomax.training.runs import read_training_graph, types_of

    types = types_of(run)
    found = {}
    for node_type in types or [""]:
        if node_type:
            show.out.print(f"{node_type}:")
        graph = read_training_graph(run / node_type)
        if k != "auto" and not (k.isdecimal() and 1 <= int(k) <= graph.num_nodes):
            raise InputError("-k", f"auto, or a number from 1 to {graph.num_nodes:,}", k)
        embeddings = vectors(run / node_type, graph, device)
        found[node_type] = embeddings, _clustered(embeddings, k, seed)
        _show(graph, *found[node_type])
    if out is not None:
        write_result(out, _columns(found))
        counts = (
            f"{number_of(len(nodes), 'node')}{' of ' + node_type if node_type else ''}, {clusters.max() + 1} clusters"
            for node_type, (nodes, clusters) in found.items()
        )
        show.wrote(f"{out} ({'; '.join(counts)})")


def _clustered(embeddings: Embeddings | StoredEmbeddings, k: str, seed: int) -> NDArray[Any]:
    """The clusters ``[N]``; with k "auto", how many there are is shown with the silhouettes."""
    from infomax.evaluation import clustering

    with show.Steps("cluster", None) as steps:
        scores = (
            clustering.choose_k(embeddings.vectors, seed=seed, progress=steps.at)
            if k == "auto"
            else {}
        )
        chosen = clustering.best_k(scores) if k == "auto" else int(k)
        clusters = clustering.cluster(embeddings.vectors, chosen, seed=seed, progress=steps.at)
    if scores:  # else the number was given, or too few vectors differ
        bars = {number: round(40 * max(0.0, score)) * "█" for number, score in scores.items()}
        marks = {chosen: "chosen"}
        rows = [
            (number, f"{scores[number]:.3f}", bar, marks.get(number, ""))
            for number, bar in bars.items()
        ]
        show.table(
            "How many clusters: mean silhouette of k-means on a sample",
            ("k", "silhouette", "", ""),
            rows,
        )
        if chosen == max(scores):
            show.out.print(
                f"No more than {chosen} were tried, and that is the best: there may be more groups."
            )
        show.out.print("Other peaks are divisions worth a look, too: -k sets the number.")
    return clusters


def _features(graph: Graph, clusters: NDArray[Any]) -> list[str]:
    """What sets each cluster apart: ``perl, module, less of python``; nothing by positions, which have no meaning."""
    from infomax.arrays.structural_features import structural_features_named
    from infomax.evaluation.clustering import distinctive

    if structural_features_named(graph.feature_names) == "positions":
        return [""] * (int(clusters.max()) + 1)

    def named(feature: int, apart: float) -> str:
        if graph.encoding is not None:
            return graph.encoding.describe(feature, more=apart > 0)
        return (
            graph.feature_names[feature] if apart > 0 else f"less of {graph.feature_names[feature]}"
        )

    return [
        ", ".join(named(*one) for one in columns)
        for columns in distinctive(graph.table, clusters, top=NAMED)
    ]


def _central(graph: Graph, embeddings: Embeddings | StoredEmbeddings, rows: NDArray[Any]) -> str:
    """The names of the nodes that are nearest to the middle of a cluster, of its first thousand."""
    import numpy as np

    first = embeddings.vectors[rows[:SAMPLE]]
    distance = np.linalg.norm(first - first.mean(axis=0), axis=1)
    return ", ".join(graph.called(rows[np.argsort(distance, kind="stable")[:NAMED]]))


def _show(graph: Graph, embeddings: Embeddings | StoredEmbeddings, clusters: NDArray[Any]) -> None:
    """The clusters with the label that is most frequent in each, and how well they agree with every label."""
    import numpy as np

    from infomax.evaluation.clustering import agreement
    from infomax.evaluation.splits import encode_labels

    labels = {}
    for name, column in graph.labels.items():
        with suppress(InputError):  # one class, or several labels per node: nothing to compare with
            labels[name] = encode_labels(column)
    rows = []
    features = _features(graph, clusters)
    for number, size in enumerate(np.bincount(clusters)):
        holds = [f"set apart by {features[number]}"] if features[number] else []
        for label, (codes, names) in labels.items():
            counts = np.bincount(codes[(clusters == number) & (codes >= 0)], minlength=len(names))
            if counts.any():
                holds.append(
                    f"mostly, by {label}: {names[counts.argmax()]} ({100 * counts.max() / size:.0f} %)"
                )
        if graph.node_names is not None or not holds:
            holds.append(
                f"in its middle: {_central(graph, embeddings, np.flatnonzero(clusters == number))}"
            )
        rows.append((number, f"{size:,}", "\n".join(holds)))
    show.table("Clusters", ("cluster", "nodes", "what it holds"), rows)
    if labels:
        scores = [(name, agreement(clusters, codes)) for name, (codes, _) in labels.items()]
        cells = [(name, f"{score['nmi']:.3f}", f"{score['ari']:.3f}") for name, score in scores]
        show.table("Agreement with labels", ("label", "NMI", "ARI"), cells)


def _columns(
    found: dict[str, tuple[Embeddings | StoredEmbeddings, NDArray[Any]]],
) -> Iterator[dict[str, Any]]:
    """The columns of the result, some rows at a time; of several types of nodes the type is the first."""
    import numpy as np

    from infomax.arrays.parquet_columns import ID_ROWS

    named = any(embeddings.node_names is not None for embeddings, _ in found.values())
    for node_type, (embeddings, clusters) in found.items():
        for first in range(0, len(embeddings), ID_ROWS):
            block, names = slice(first, first + ID_ROWS), embeddings.node_names
            ids = embeddings.ids[block]
            columns = (
                {"type": np.full(len(ids), node_type, object), "id": ids.astype(str).astype(object)}
                if node_type
                else {"id": ids}
            )
            if named:
                columns["name"] = np.full(len(ids), "", object) if names is None else names[block]
            yield columns | {"cluster": clusters[block]}
