"""infomax map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, Seed, Threads, option, writable
from infomax.cli.runs import OfType, RunArgument, sampled_rows
from infomax.errors import InputError, format_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.embeddings import Embeddings

MOST_SAMPLED_NODES = 20_000
"""Nodes that the map of a graph folder shows."""
NOTE_ON_TYPES = (
    ". Each type has a picture of its own: places and cosines of two types cannot be compared."
)


class MappedNodes(NamedTuple):
    """Nodes that a map shows.

    Attributes:
        embeddings: the nodes with their vectors.
        sample_note: how many they are, and how they were drawn, in words.
        columns: what is shown of each node: columns ``[N]`` by name.
    """

    embeddings: Embeddings
    sample_note: str
    columns: dict[str, NDArray[Any]]


def _html_file(path: Path) -> Path | None:
    """Check that a page can be written to a file, before the work is done."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            "--out", "a name that ends in .html", str(path), "Pictures are made by infomax analyse."
        )
    return writable(path)


@app.command("map")
def draw_map(
    run: RunArgument,
    *,
    out: Annotated[Path, option("FILE", "The HTML file to write.", callback=_html_file)],
    color: Annotated[
        str | None,
        option("COLUMN", "Shown first: a label, community, split, degree, a column or a feature."),
    ] = None,
    k: Annotated[
        int, option("N", "Nearest neighbours to show per node; 0 shows none.", "-k", min=0)
    ] = 10,
    groups: Annotated[
        int | None,
        option("N", "How many communities are coloured.  [default: as cluster finds]", min=1),
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    type: OfType = None,
    threads: Threads = None,
) -> None:
    """Write an interactive map of the nodes.

    It is one HTML file that opens in any browser, without a network. All types of nodes are shown,
    coloured by type, each laid out by itself. Of a graph folder a sample of the nodes is shown.
    """
    from infomax.analysis.map import write_map
    from infomax.kernels.device import choose_device
    from infomax.training.runs import types_of

    # `type` and `threads` were read by their callbacks: with --type, RUN is RUN/TYPE by now.
    node_types = types_of(run)
    with show.Steps("map", None) as steps:
        # A run of one type of nodes is its own folder: its name stands for no subfolder.
        mapped_types = {
            node_type: _mapped_nodes(
                run / node_type, node_types, color, groups, seed, device, steps
            )
            for node_type in node_types or [""]
        }
        if node_types:
            mapped = _together(mapped_types)
        else:
            mapped = mapped_types[""]
        write_map(
            out,
            mapped.embeddings,
            mapped.columns,
            title=run.resolve().name,
            drawn=mapped.sample_note + (NOTE_ON_TYPES if node_types else ""),
            color=color,
            k=k,
            seed=seed,
            device=choose_device(device),
            node_types=mapped.columns["type"] if node_types else None,
            progress=steps.update,
        )
    show.wrote(f"{out} ({mapped.sample_note}, {out.stat().st_size / 1e6:.1f} MB)")


def _mapped_nodes(
    run: Path,
    node_types: Sequence[str],
    color: str | None,
    groups: int | None,
    seed: int,
    device: str,
    steps: show.Steps,
) -> MappedNodes:
    """The nodes of a run of one type, or a sample of them, with their communities.

    Args:
        run: the run folder of the type.
        node_types: all types that the map shows, one of which must have the column of colours.
        color: the column by which nodes are coloured first.
        groups: how many communities; None: as many as are found.
        seed: decides what is drawn at random.
        device: where vectors are computed.
        steps: shows the progress.
    """
    from infomax.analysis.map import check_color, node_columns
    from infomax.estimator import DGI
    from infomax.evaluation.clustering import best_group_count, cluster, compare_group_counts

    model = DGI.load(run, device=device)
    graph = model.graph_
    check_color([graph.target(node_type) for node_type in node_types] or [graph], color)

    # A graph folder of few nodes is read into memory here, and is another graph from then on.
    rows = sampled_rows(model, MOST_SAMPLED_NODES, seed)
    embeddings = model.transform(model.graph_, rows=rows)
    sample_note = format_count(len(embeddings), "node")
    if rows is not None:
        sample_note += (
            f" of {graph.num_nodes:,}, drawn at random with seed {seed}; neighbours are among these"
        )

    if groups is None:
        compared = compare_group_counts(embeddings.vectors, seed=seed, progress=steps.update)
        groups = best_group_count(compared)
    communities = cluster(embeddings.vectors, groups, seed=seed, progress=steps.update)
    columns = node_columns(model.graph_, communities, color, rows)
    return MappedNodes(embeddings, sample_note, columns)


def _together(mapped_types: Mapping[str, MappedNodes]) -> MappedNodes:
    """The nodes of all types.

    Their ids are such as paper:5, and the type is the first column. Other columns are empty where a
    type has none.
    """
    import numpy as np

    from infomax.embeddings import Embeddings

    all_mapped = list(mapped_types.values())
    types = [
        np.full(len(mapped.embeddings), node_type, object)
        for node_type, mapped in mapped_types.items()
    ]
    columns = {"type": np.concatenate(types)}
    for name in dict.fromkeys(name for mapped in all_mapped for name in mapped.columns):
        unique_name = "column type" if name == "type" else name
        columns[unique_name] = _joined_column(name, all_mapped)

    # Zeros beside vectors leave cosines as they are.
    width = max(mapped.embeddings.shape[1] for mapped in all_mapped)
    vectors = []
    ids = []
    node_names = []
    sample_notes = []
    for node_type, mapped in mapped_types.items():
        embeddings = mapped.embeddings
        missing_width = width - embeddings.shape[1]
        vectors.append(np.pad(embeddings.vectors, ((0, 0), (0, missing_width))))
        ids += [f"{node_type}:{node_id}" for node_id in embeddings]
        no_names = np.full(len(embeddings), "", object)
        node_names.append(no_names if embeddings.node_names is None else embeddings.node_names)
        sample_notes.append(f"{node_type}: {mapped.sample_note}")
    together = Embeddings(
        np.concatenate(vectors), np.array(ids, dtype=object), np.concatenate(node_names)
    )
    return MappedNodes(together, "; ".join(sample_notes), columns)


def _joined_column(name: str, all_mapped: Sequence[MappedNodes]) -> NDArray[Any]:
    """A column ``[N]`` of all types, empty where a type has none.

    It is text where it is text for one of the types.
    """
    import numpy as np

    is_text = any(
        name in mapped.columns and mapped.columns[name].dtype == object for mapped in all_mapped
    )
    cells = []
    for mapped in all_mapped:
        if name not in mapped.columns:
            empty = np.array([""], object) if is_text else np.array([np.nan])
            cells.append(np.repeat(empty, len(mapped.embeddings)))
        elif is_text:
            cells.append(mapped.columns[name].astype(str).astype(object))
        else:
            cells.append(mapped.columns[name])
    return np.concatenate(cells)
