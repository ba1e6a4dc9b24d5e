"""infomax map."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, threaded, writable
from infomax.cli.runs import RunArgument, of_type, sampled_rows

SAMPLE = 20_000
"""Nodes that the map of a graph folder shows."""


@app.command("map")
@threaded
@of_type
def draw_map(
    run: RunArgument,
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", callback=writable, help="The HTML file to write.")],
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
) -> None:
    """Write an interactive map of the nodes.

    It is one HTML file that opens in any browser, without a network. Of a graph folder it shows a sample of the nodes.
    """
    from infomax.analysis.map import check_color, node_columns, write_map
    from infomax.estimator import DGI
    from infomax.evaluation.clustering import best_k, choose_k, cluster
    from infomax.kernels.device import choose_device

    began = time.monotonic()
    model = DGI.load(run, device=device)
    graph = model.graph_
    check_color(graph, color)
    rows = sampled_rows(model, SAMPLE, seed)
    embeddings = model.transform(model.graph_, rows=rows)
    drawn = (
        f"{len(embeddings):,} nodes"
        if rows is None
        else f"{len(rows):,} of {graph.num_nodes:,} nodes, drawn at random with seed {seed}"
    )
    with show.Steps("map", None) as steps:
        scores = choose_k(embeddings.vectors, seed=seed, progress=steps.at)
        clusters = cluster(embeddings.vectors, best_k(scores), seed=seed)
        write_map(
            out,
            embeddings.ids,
            embeddings.vectors,
            node_columns(model.graph_, clusters, color, rows),
            title=run.resolve().name,
            drawn=drawn if rows is None else f"{drawn}; neighbours are among these",
            color=color,
            k=k,
            names=embeddings.node_names,
            seed=seed,
            device=choose_device(device),
            progress=steps.at,
        )
    show.wrote(f"{out} ({drawn}, {out.stat().st_size / 1e6:.1f} MB)", began)
