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

MOST_OF_A_FOLDER = 20_000
"""Nodes that the map of a graph folder shows."""
EACH_BY_ITSELF = (
    ". Each type has a picture of its own: places and cosines of two types cannot be compared."
)


class Part(NamedTuple):
    """What a map shows: nodes with their vectors, how they were drawn in words, and their columns ``[N]``."""

    nodes: Embeddings
    drawn: str
    columns: dict[str, NDArray[Any]]


def _page(path: Path) -> Path | None:
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
    out: Annotated[Path, option("FILE", "The HTML file to write.", callback=_page)],
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

    It is one HTML file that opens in any browser, without a network. Of a graph folder it shows a sample of the nodes,
    of several types of nodes all of them, coloured by type, each laid out by itself.
    """
    from infomax.analysis.map import write_map
    from infomax.kernels.device import choose_device
    from infomax.training.runs import types_of

    types = types_of(run)
    with show.Steps("map", None) as steps:
        parts = {
            node_type: _part(run / node_type, types, color, groups, seed, device, steps)
            for node_type in types or [""]
        }
        counts = [
            f"{node_type}: {part.drawn}" if node_type else part.drawn
            for node_type, part in parts.items()
        ]
        drawn = "; ".join(counts)
        shown = _together(parts) if types else parts[""]
        write_map(
            out,
            shown.nodes,
            shown.columns,
            title=run.resolve().name,
            drawn=f"{drawn}{EACH_BY_ITSELF}" if types else drawn,
            color=color,
            k=k,
            seed=seed,
            device=choose_device(device),
            node_types=shown.columns["type"] if types else None,
            progress=steps.update,
        )
    show.wrote(f"{out} ({drawn}, {out.stat().st_size / 1e6:.1f} MB)")


def _part(
    run: Path,
    types: Sequence[str],
    color: str | None,
    groups: int | None,
    seed: int,
    device: str,
    steps: show.Steps,
) -> Part:
    """The nodes of a run, or a sample of them, how many they are, and their columns ``[N]``, communities among them."""
    from infomax.analysis.map import check_color, node_columns
    from infomax.estimator import DGI
    from infomax.evaluation.clustering import best_group_count, cluster, compare_group_counts

    model = DGI.load(run, device=device)
    graph = model.graph_
    graphs = [graph.target(node_type) for node_type in types]
    check_color(graphs or [graph], color)

    rows = sampled_rows(model, MOST_OF_A_FOLDER, seed)
    nodes = model.transform(model.graph_, rows=rows)
    drawn = format_count(len(nodes), "node")
    if rows is not None:
        sample = f"drawn at random with seed {seed}; neighbours are among these"
        drawn = f"{drawn} of {graph.num_nodes:,}, {sample}"

    if groups is None:
        compared = compare_group_counts(nodes.vectors, seed=seed, progress=steps.update)
        groups = best_group_count(compared)
    clusters = cluster(nodes.vectors, groups, seed=seed, progress=steps.update)
    return Part(nodes, drawn, node_columns(model.graph_, clusters, color, rows))


def _together(parts: Mapping[str, Part]) -> Part:
    """The nodes of all types: ids such as paper:5, the type as the first column, others empty where a type has none."""
    import numpy as np

    from infomax.embeddings import Embeddings

    types = [np.full(len(part.nodes), node_type, object) for node_type, part in parts.items()]
    columns = {"type": np.concatenate(types)}
    column_names = dict.fromkeys(name for part in parts.values() for name in part.columns)
    for name in column_names:
        unique_name = "column type" if name == "type" else name
        columns[unique_name] = _joined_column(name, list(parts.values()))

    # Zeros beside vectors leave cosines as they are.
    width = max(part.nodes.shape[1] for part in parts.values())
    vectors = []
    ids = []
    node_names = []
    for node_type, part in parts.items():
        nodes = part.nodes
        vectors.append(np.pad(nodes.vectors, ((0, 0), (0, width - nodes.shape[1]))))
        ids += [f"{node_type}:{node}" for node in nodes]
        no_names = np.full(len(nodes), "", object)
        node_names.append(no_names if nodes.node_names is None else nodes.node_names)
    together = Embeddings(
        np.concatenate(vectors), np.array(ids, dtype=object), np.concatenate(node_names)
    )
    return Part(together, "", columns)


def _joined_column(name: str, parts: Sequence[Part]) -> NDArray[Any]:
    """A column ``[N]`` of all types, empty where a type has none; text where it is text for one of them."""
    import numpy as np

    is_text = any(name in part.columns and part.columns[name].dtype == object for part in parts)
    cells = []
    for part in parts:
        if name not in part.columns:
            empty = np.array([""], object) if is_text else np.array([np.nan])
            cells.append(np.repeat(empty, len(part.nodes)))
        elif is_text:
            cells.append(part.columns[name].astype(str).astype(object))
        else:
            cells.append(part.columns[name])
    return np.concatenate(cells)
