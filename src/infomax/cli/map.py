"""infomax map."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, Threads, writable
from infomax.cli.runs import OfType, RunOfTypes, sampled_rows
from infomax.errors import InputError, number_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.embeddings import Embeddings

SAMPLE = 20_000
"""Nodes that the map of a graph folder shows."""


def _page(path: Path) -> Path | None:
    """Check that a page can be written to a file, before the work is done."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError("--out", "a name that ends in .html", str(path), "Pictures are made by infomax analyse.")
    return writable(path)


@app.command("map")
def draw_map(
    run: RunOfTypes,
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", callback=_page, help="The HTML file to write.")],
    color: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column shown first: a label, community, split, degree, a column of the node table or a "
            "feature.  [default: the first label]",
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", metavar="N", min=0, help="Nearest neighbours to show per node; 0 shows none.")
    ] = 10,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Seed of the layout, of the communities and of a sample.", min=0, max=2**32 - 1),
    ] = 0,
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

    began = time.monotonic()
    types = types_of(run)
    with show.Steps("map", None) as steps:
        parts = {kind: _part(run / kind, types, color, seed, device, steps) for kind in types or [""]}
        drawn = "; ".join(f"{kind}: {part.drawn}" if kind else part.drawn for kind, part in parts.items())
        whole = _together(parts) if types else parts[""]
        note = "; neighbours are among these" if any(part.sampled for part in parts.values()) else ""
        if types:
            note += ". Each type has a picture of its own: places and cosines of two types cannot be compared."
        write_map(
            out,
            whole.nodes,
            whole.columns,
            title=run.resolve().name,
            drawn=drawn + note,
            color=color,
            k=k,
            seed=seed,
            device=choose_device(device),
            kinds=whole.columns["type"] if types else None,
            progress=steps.at,
        )
    show.wrote(f"{out} ({drawn}, {out.stat().st_size / 1e6:.1f} MB)", began)


@dataclass
class _Part:
    """The nodes of one type that a map shows, and columns ``[N]``."""

    nodes: Embeddings
    columns: dict[str, NDArray[Any]]
    drawn: str = ""
    sampled: bool = False


def _part(run: Path, types: Sequence[str], color: str | None, seed: int, device: str, steps: show.Steps) -> _Part:
    """The nodes of a run, or a sample of them, with their communities."""
    from infomax.analysis.map import check_color, node_columns
    from infomax.estimator import DGI
    from infomax.evaluation.clustering import best_k, choose_k, cluster

    model = DGI.load(run, device=device)
    graph = model.graph_
    check_color([graph.target(kind) for kind in types] or [graph], color)
    rows = sampled_rows(model, SAMPLE, seed)
    found = model.transform(model.graph_, rows=rows)
    drawn = number_of(len(found), "node")
    if rows is not None:
        drawn = f"{len(rows):,} of {graph.num_nodes:,} nodes, drawn at random with seed {seed}"
    number = best_k(choose_k(found.vectors, seed=seed, progress=steps.at))
    clusters = cluster(found.vectors, number, seed=seed, progress=steps.at)
    columns = node_columns(model.graph_, clusters, color, rows)
    return _Part(found, columns, drawn, rows is not None)


def _filled(cells: NDArray[Any] | None, count: int, text: bool) -> NDArray[Any]:
    """A column ``[n]`` as text or as numbers; without one, as many empty cells."""
    import numpy as np

    if cells is None:
        return np.full(count, "" if text else np.nan, object if text else np.float64)
    return cells.astype(str).astype(object) if text else cells


def _together(parts: dict[str, _Part]) -> _Part:
    """The nodes of all types: ids such as paper:5, the type as the first column, others empty where a type has none."""
    import numpy as np

    from infomax.embeddings import Embeddings

    nodes = {kind: part.nodes for kind, part in parts.items()}
    heads = dict.fromkeys(name for part in parts.values() for name in part.columns)
    columns = {"type": np.concatenate([np.full(len(own), kind, object) for kind, own in nodes.items()])}
    for name in heads:
        cells = [part.columns.get(name) for part in parts.values()]
        text = any(own is not None and own.dtype == object for own in cells)
        filled = [_filled(own, len(part.nodes), text) for own, part in zip(cells, parts.values(), strict=True)]
        columns["column type" if name == "type" else name] = np.concatenate(filled)
    width = max(own.shape[1] for own in nodes.values())  # zeros beside vectors leave cosines as they are
    vectors = [np.pad(own.vectors, ((0, 0), (0, width - own.shape[1]))) for own in nodes.values()]
    ids = np.array([f"{kind}:{node}" for kind, own in nodes.items() for node in own], dtype=object)
    names = [np.full(len(own), "", object) if own.node_names is None else own.node_names for own in nodes.values()]
    return _Part(Embeddings(np.concatenate(vectors), ids, np.concatenate(names)), columns)
