"""infomax embed, infomax neighbours."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, RunArgument, in_memory, open_graph, writable

if TYPE_CHECKING:
    from infomax.embeddings import Embeddings
    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph


def _writable(path: Path) -> Path:
    """A file or a folder to write."""
    if path.suffix:
        writable(path)
    return path


@app.command()
def embed(
    run: RunArgument,
    graph: Annotated[
        str | None,
        typer.Argument(metavar="GRAPH", help="A graph with the same features.  [default: the training graph]"),
    ] = None,
    *,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            callback=_writable,
            help="The file to write: .parquet, .npy, .npz, .csv, .tsv or .kv (word2vec). For a graph folder also a "
            "folder of parquet files, written one at a time: vectors/",
        ),
    ],
    attach: Annotated[
        bool,
        typer.Option(
            "--attach",
            help="GRAPH has only new nodes and their edges: attach them to the training graph, and write only theirs.",
        ),
    ] = False,
    smooth: Annotated[
        int | None,
        typer.Option(
            metavar="HOPS", help="Smooth the vectors over so many hops, such as 5.  [default: the run's]", min=0
        ),
    ] = None,
    half: Annotated[
        bool, typer.Option("--half", help="Vectors of a graph folder in half precision, half the bytes.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Write the vectors of a graph's nodes, with their ids."""
    from infomax.cli.torchrun import joined, started
    from infomax.errors import InputError
    from infomax.io.vectors import check_extension
    from infomax.training.runs import read_vectors

    if attach and graph is None:
        raise InputError("--attach", "GRAPH, the tables of the new nodes and their edges", "none")
    began = time.monotonic()
    if out.suffix:
        check_extension(out)
        as_trained = graph is None and smooth is None and not half and device == "auto" and not started()
        if as_trained and (written := read_vectors(run)) is not None:
            written.save(out)
            show.wrote(f"{out} ({written!r})", began)
            return

    with joined(device, timedelta(days=1)) as ranks:  # they wait for each other only at the end
        with ranks.together():
            model, source = _open(run, graph, attach)
            model.device = device
            in_parts = source.folder is not None and out.suffix.lower() in ("", ".parquet", ".npy")
            if ranks.count > 1 and (out.suffix or not in_parts):
                expected = f"a graph folder and a folder of parts (vectors/), which {ranks.count} processes can share"
                raise InputError("embed", expected, str(out if out.suffix else "a graph in memory"))
        if in_parts:
            with show.Steps("embed", source.num_nodes, "Go on with the same command.") as steps:
                model.write_vectors(source, out, smooth=smooth, half=half, progress=steps.at)
            show.wrote(f"{out} ({source.num_nodes:,} nodes)", began)
            return
    check_extension(out)
    if half:
        raise InputError("--half", "a graph folder, to a .parquet, an .npy or a folder of parts", str(out))
    embeddings = model.transform(source, smooth=smooth)
    if attach:
        embeddings = embeddings.part(source.splits["new"])
    embeddings.save(out)
    show.wrote(f"{out} ({embeddings!r})", began)


def _open(run: Path, graph: str | None, attach: bool) -> tuple[DGI, Graph]:
    """Read a run and the graph to embed: its own, another, or its own with new nodes."""
    from infomax.errors import InputError, shorten
    from infomax.estimator import DGI
    from infomax.io import read_graph

    model = DGI.load(run)
    if attach:
        in_memory(model)
    source = model.graph_
    if graph is not None and attach:
        source = read_graph(graph, attach_to=source)
    elif graph is not None:
        try:
            source = open_graph(graph, directed=source.directed, features=model.feature_names_)
        except InputError as error:
            known = source.ids.tolist() if source.folder is None else []
            if error.found in map(shorten, known):  # an edge to a node of the run's graph
                remedy = f"{error.remedy} If it has only new nodes, add --attach."
                raise InputError(error.where, error.expected, error.found, remedy) from error
            raise
        if model.graph_.weighted and not source.weighted:
            show.log.print("The edges of the training graph have weights, these have none: each counts as 1.")
    return model, source


@app.command()
def neighbours(
    run: Annotated[Path, typer.Argument(metavar="RUN|FILE", help="A run folder, or a file that embed wrote.")],
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="The id of a node; write -- before an id that begins with a dash.")
    ],
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many nodes to show.", min=1)] = 10,
) -> None:
    """Show the nodes nearest to a node, by cosine similarity."""
    from infomax.embeddings import Embeddings
    from infomax.training.runs import read_vectors

    written = Embeddings.read(run) if run.is_file() else read_vectors(run)
    if written is not None:
        _show_neighbours(node, written.neighbours(node, k))
        return

    from infomax import index
    from infomax.estimator import DGI

    model = DGI.load(run)
    graph = model.graph_
    large, indexed = graph.num_nodes > index.LIMIT, None
    if large and index.installed():
        indexed = index.open_index(run, graph.ids, lambda: _embed_once(model))
    elif large:
        show.log.print("An index would make this faster from the second call on: pip install 'infomax[index]'")
    _show_neighbours(node, (indexed or model.transform(graph)).neighbours(node, k))
    if indexed:
        show.out.print(str(indexed))


def _show_neighbours(node: str, found: list[tuple[Any, float]]) -> None:
    show.table(f"Nearest to {node}", ("node", "cosine"), [(name, f"{cosine:.3f}") for name, cosine in found])


def _embed_once(model: DGI) -> Embeddings:
    """Compute the vectors to index, and say why it takes a while."""
    show.log.print(f"indexing {model.graph_.num_nodes:,} vectors (only once)")
    return model.transform(model.graph_)
