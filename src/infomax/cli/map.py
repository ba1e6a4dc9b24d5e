"""infomax map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, Seed, Threads, option, writable
from infomax.cli.runs import OfType, RunArgument, sampled_rows
from infomax.errors import InputError, number_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.embeddings import Embeddings

    Part = tuple[Embeddings, str, dict[str, NDArray[Any]]]

SAMPLE = 20_000
"""Nodes that the map of a graph folder shows."""


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
        drawn = "; ".join(
            f"{node_type}: {told}" if node_type else told
            for node_type, (_, told, _) in parts.items()
        )
        nodes, note, columns = _together(parts) if types else (parts[""][0], "", parts[""][2])
        kinds = columns["type"] if types else None
        write_map(
            out, nodes, columns, title=run.resolve().name, drawn=drawn + note, color=color, k=k, seed=seed,
            device=choose_device(device), kinds=kinds, progress=steps.at,
        )  # fmt: skip
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
    check_color([graph.target(node_type) for node_type in types] or [graph], color)
    rows = sampled_rows(model, SAMPLE, seed)
    found = model.transform(model.graph_, rows=rows)
    drawn = number_of(len(found), "node")
    if rows is not None:
        drawn = f"{drawn} of {graph.num_nodes:,}, drawn at random with seed {seed}; neighbours are among these"
    if groups is None:
        compared = compare_group_counts(found.vectors, seed=seed, progress=steps.at)
        groups = best_group_count(compared)
    clusters = cluster(found.vectors, groups, seed=seed, progress=steps.at)
    return found, drawn, node_columns(model.graph_, clusters, color, rows)


def _together(parts: dict[str, Part]) -> Part:
    """The nodes of all types: ids such as paper:5, the type as the first column, others empty where a type has none."""
    import numpy as np

    from infomax.embeddings import Embeddings

    nodes = {node_type: own for node_type, (own, _, _) in parts.items()}
    heads = dict.fromkeys(name for *_, own in parts.values() for name in own)
    columns = {
        "type": np.concatenate(
            [np.full(len(own), node_type, object) for node_type, own in nodes.items()]
        )
    }
    for name in heads:
        cells = [own.get(name) for *_, own in parts.values()]
        text = any(own is not None and own.dtype == object for own in cells)
        empty = np.array([""], object) if text else np.array([np.nan])
        filled = [
            np.repeat(empty, len(own))
            if some is None
            else some.astype(str).astype(object)
            if text
            else some
            for some, own in zip(cells, nodes.values(), strict=True)
        ]
        columns["column type" if name == "type" else name] = np.concatenate(filled)
    width = max(
        own.shape[1] for own in nodes.values()
    )  # zeros beside vectors leave cosines as they are
    vectors = [np.pad(own.vectors, ((0, 0), (0, width - own.shape[1]))) for own in nodes.values()]
    ids = np.array(
        [f"{node_type}:{node}" for node_type, own in nodes.items() for node in own], dtype=object
    )
    names = [
        np.full(len(own), "", object) if own.node_names is None else own.node_names
        for own in nodes.values()
    ]
    note = (
        ". Each type has a picture of its own: places and cosines of two types cannot be compared."
    )
    return Embeddings(np.concatenate(vectors), ids, np.concatenate(names)), note, columns
