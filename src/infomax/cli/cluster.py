"""infomax cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, ResultFile, Seed, Threads, option
from infomax.cli.runs import OfType, RunArgument, vectors
from infomax.errors import InputError, format_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.evaluation.clustering import GroupCount
    from infomax.graphs.graph import Graph


NAMES_PER_CLUSTER = 5
"""Features, and nodes, that are named for each cluster."""
NODES_SEARCHED_FOR_CENTRE = 1000
"""Nodes of a cluster, the first ones, among which the most central ones are searched."""
BAR_WIDTH = 40
"""Characters of a bar for a difference of 1."""


@app.command()
def cluster(
    run: RunArgument,
    groups: Annotated[
        str,
        option(
            "auto|N",
            "How many groups; auto: the fewest that are nearly as clear as the clearest, by "
            "silhouettes.",
            "-k",
            "--groups",
        ),
    ] = "auto",
    out: ResultFile = None,
    seed: Seed = 0,
    device: Device = "auto",
    type: OfType = None,
    threads: Threads = None,
) -> None:
    """Group the nodes by k-means of their vectors.

    Shows the features that set each group apart and, with labels, how well the groups agree with
    them (NMI, ARI). Of a graph folder, the groups are found on a sample of the nodes; the others
    join the nearest. Of several types of nodes, each has groups of its own.
    """
    from infomax.io.result_files import write_result
    from infomax.training.runs import read_training_graph, types_of

    clustered_types: dict[str, ClusteredNodes] = {}
    for node_type in types_of(run) or [""]:
        if node_type:
            show.out.print(f"{node_type}:")
        graph = read_training_graph(run / node_type)
        is_count = groups.isdecimal() and 1 <= int(groups) <= graph.num_nodes
        if groups != "auto" and not is_count:
            expected = f"auto, or a number from 1 to {graph.num_nodes:,}"
            raise InputError("-k, --groups", expected, groups)
        embeddings = vectors(run / node_type, graph, device)
        clusters = _find_clusters(embeddings, groups, seed)
        _show_clusters(graph, embeddings, clusters)
        clustered_types[node_type] = ClusteredNodes(embeddings, clusters)
    if out is None:
        return

    write_result(out, _columns(clustered_types))
    summaries = []
    for node_type, (embeddings, clusters) in clustered_types.items():
        of_type = f" of {node_type}" if node_type else ""
        nodes = format_count(len(embeddings), "node")
        summaries.append(f"{nodes}{of_type}, {clusters.max() + 1} clusters")
    show.wrote(f"{out} ({'; '.join(summaries)})")


class ClusteredNodes(NamedTuple):
    """The nodes of a type, and the cluster ``[N]`` of each."""

    embeddings: Embeddings | StoredEmbeddings
    clusters: NDArray[Any]


def _find_clusters(
    embeddings: Embeddings | StoredEmbeddings, requested_groups: str, seed: int
) -> NDArray[Any]:
    """The cluster of each node ``[N]``.

    Where a person did not say how many, the numbers that were compared are printed.
    """
    from infomax.evaluation import clustering

    compared: list[clustering.GroupCount] = []
    with show.Steps("cluster", None) as steps:
        if requested_groups == "auto":
            compared = clustering.compare_group_counts(
                embeddings.vectors, seed=seed, progress=steps.update
            )
            count = clustering.best_group_count(compared)
        else:
            count = int(requested_groups)
        clusters = clustering.cluster(embeddings.vectors, count, seed=seed, progress=steps.update)
    # Nothing was compared where the number was given, or too few vectors differ.
    if compared:
        _show_compared_counts(compared, count)
    return clusters


def _show_compared_counts(compared: Sequence[GroupCount], best_count: int) -> None:
    """Print the numbers of groups that were compared, with a bar for how clear the groups are."""
    rows = []
    for candidate in compared:
        note = ""
        if candidate.count == best_count:
            note = "chosen"
        elif not candidate.is_even:
            note = "outliers are groups"
        bar = round(BAR_WIDTH * max(0.0, candidate.clarity)) * "█"
        scores = (f"{candidate.silhouette:.3f}", f"{candidate.by_chance:.3f}")
        rows.append((candidate.count, *scores, bar, note))
    title = "How many clusters: mean silhouette of k-means on a sample, and without any groups"
    show.table(title, ("k", "silhouette", "by chance", "difference", ""), rows)
    if max(candidate.clarity for candidate in compared) <= 0:
        show.out.print("No groups are clearer than those of vectors without any.")
    elif best_count == compared[-1].count:
        show.out.print(
            f"No more than {best_count} were compared, and that is the best: "
            "there may be more groups."
        )
    show.out.print("Other numbers are divisions worth a look, too: --groups sets the number.")


def _distinctive_features(graph: Graph, clusters: NDArray[Any]) -> list[str]:
    """What sets each cluster apart, by cluster: ``perl, module, less of python``.

    Positions, where they are the only features, have no meaning that could be named.
    """
    from infomax.arrays.structural_features import structural_features_named
    from infomax.evaluation.clustering import distinctive

    if structural_features_named(graph.feature_names) == "positions":
        return [""] * (int(clusters.max()) + 1)

    def describe(feature: int, distance: float) -> str:
        if graph.encoding is not None:
            return graph.encoding.describe(feature, more=distance > 0)
        name = graph.feature_names[feature]
        return name if distance > 0 else f"less of {name}"

    return [
        ", ".join(describe(feature, distance) for feature, distance in columns)
        for columns in distinctive(graph.table, clusters, top=NAMES_PER_CLUSTER)
    ]


def _central_nodes(
    graph: Graph, embeddings: Embeddings | StoredEmbeddings, rows: NDArray[Any]
) -> str:
    """The names of the nodes that are nearest to the middle of a cluster, whose rows are given."""
    import numpy as np

    members = embeddings.vectors[rows[:NODES_SEARCHED_FOR_CENTRE]]
    distances = np.linalg.norm(members - members.mean(axis=0), axis=1)
    nearest = np.argsort(distances, kind="stable")[:NAMES_PER_CLUSTER]
    return ", ".join(graph.display_names(rows[nearest]))


def _show_clusters(
    graph: Graph, embeddings: Embeddings | StoredEmbeddings, clusters: NDArray[Any]
) -> None:
    """Print what each cluster holds, and how well the clusters agree with every label."""
    import numpy as np

    from infomax.evaluation.clustering import agreement
    from infomax.evaluation.splits import encode_labels

    labels = {}
    for name, column in graph.labels.items():
        # One class, or several labels per node: there is nothing to compare with.
        with suppress(InputError):
            labels[name] = encode_labels(column)

    rows = []
    features = _distinctive_features(graph, clusters)
    for number, size in enumerate(np.bincount(clusters)):
        is_member = clusters == number
        lines = []
        if features[number]:
            lines.append(f"set apart by {features[number]}")
        for label, (codes, class_names) in labels.items():
            counts = np.bincount(codes[is_member & (codes >= 0)], minlength=len(class_names))
            if counts.any():
                share = f"{100 * counts.max() / size:.0f} %"
                lines.append(f"mostly, by {label}: {class_names[counts.argmax()]} ({share})")
        if graph.node_names is not None or not lines:
            central = _central_nodes(graph, embeddings, np.flatnonzero(is_member))
            lines.append(f"in its middle: {central}")
        rows.append((number, f"{size:,}", "\n".join(lines)))
    show.table("Clusters", ("cluster", "nodes", "what it holds"), rows)

    if labels:
        cells = []
        for name, (codes, _) in labels.items():
            score = agreement(clusters, codes)
            cells.append((name, f"{score['nmi']:.3f}", f"{score['ari']:.3f}"))
        show.table("Agreement with labels", ("label", "NMI", "ARI"), cells)


def _columns(clustered_types: dict[str, ClusteredNodes]) -> Iterator[dict[str, Any]]:
    """The columns of the result, some rows at a time.

    Of several types of nodes, the first column is the type.
    """
    import numpy as np

    from infomax.arrays.parquet_columns import IDS_PER_BLOCK

    have_names = any(
        embeddings.node_names is not None for embeddings, _ in clustered_types.values()
    )
    for node_type, (embeddings, clusters) in clustered_types.items():
        names = embeddings.node_names
        for first in range(0, len(embeddings), IDS_PER_BLOCK):
            block = slice(first, first + IDS_PER_BLOCK)
            ids = embeddings.ids[block]
            columns: dict[str, Any] = {}
            if node_type:
                columns["type"] = np.full(len(ids), node_type, object)
                ids = ids.astype(str).astype(
                    object
                )  # ids of one type may be numbers, of another text
            columns["id"] = ids
            if have_names:
                columns["name"] = np.full(len(ids), "", object) if names is None else names[block]
            columns["cluster"] = clusters[block]
            yield columns
