"""infomax neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, ResultFile, option
from infomax.cli.runs import OfType, SourceArgument
from infomax.errors import InputError, format_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from infomax.cli.searching import Nearest, Search
    from infomax.embeddings import Embeddings

COLUMNS_OF_WHY = 3
"""Columns that --why names for each neighbour."""
CERTAIN_SHARE = 0.999
"""Above this share of sampled pairs, the last few of them are left to luck."""

Nodes = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NODE",
        help="Ids or names of nodes, also TYPE:NODE; -- before one that begins with a dash.",
    ),
]
NodesFile = Annotated[
    Path | None,
    option("FILE", "A file of nodes: a line for each, or a table with a column id.", "--nodes"),
]
VectorFile = Annotated[
    Path | None,
    option("FILE", "Vectors in place of nodes: an .npy of shape [n, d], or a file with ids."),
]
All = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Of all nodes, for --out: exact up to 100,000 nodes and on a GPU, else by an index "
        "(faiss).",
    ),
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="With --all, compare all pairs, rather than build an index."),
]
Why = Annotated[
    bool,
    typer.Option(
        "--why",
        help="Show what each part of the vectors adds to a cosine, and which columns agree.",
    ),
]
Known = Annotated[
    bool,
    typer.Option(
        "--known",
        help="With --type and nodes of another type: also show those that a node is linked to "
        "already.",
    ),
]
Popular = Annotated[
    bool,
    typer.Option(
        "--popular",
        help="With --type and nodes of another type: rank by 1 + the cosine, times the root of the "
        "number of links.",
    ),
]


@app.command()
def neighbours(
    source: SourceArgument,
    nodes: Nodes = None,
    k: Annotated[int, option("N", "How many nodes to show.", "-k", min=1)] = 10,
    file: NodesFile = None,
    vector: VectorFile = None,
    all_nodes: All = False,
    out: ResultFile = None,
    exact: Exact = False,
    why: Why = False,
    known: Known = False,
    popular: Popular = False,
    device: Device = "auto",
    type: OfType = None,
) -> None:
    """Show the nodes nearest to a node, by cosine similarity.

    With --type they are nodes of that type. Where the node is of another one, positions are
    compared, which all types share, and nodes that it is linked to already, as a user to what was
    bought, are left out.
    """
    from infomax.cli import searching
    from infomax.io.result_files import write_result

    requested_nodes = list(nodes or ())
    if file is not None:
        requested_nodes += searching.nodes_in(file)
    _refuse_other_queries(bool(requested_nodes), vector is not None, all_nodes, out)
    if why and (vector is not None or out is not None):
        found = "--out" if vector is None else "--vector"
        raise InputError("--why", "nodes of the run, and no file: shares are printed", found)
    if exact and not all_nodes:
        remedy = "Leave it out: the search for some nodes is exact."
        raise InputError("--exact", "--all, the neighbours of all nodes", "some nodes", remedy)

    search = searching.Search.open(
        source, requested_nodes, vector, device, with_linked=known, popular_first=popular
    )
    # Links between nodes count only where those of another type are searched.
    has_one_type = vector is not None or search.is_among_searched
    if has_one_type and (known or popular):
        option_name = "--known" if known else "--popular"
        remedy = "Leave it out: among nodes of one type all are shown, the nearest first."
        expected = "nodes of one type near a node of another"
        raise InputError(option_name, expected, "one type", remedy)

    if all_nodes:
        with show.Steps("neighbours", len(search.searched)) as steps:
            blocks, description = search.nearest_of_all(
                k,
                device,
                exact=exact,
                most_exact_nodes=searching.MOST_EXACT_NODES,
                progress=steps.update,
            )
        show.out.print(description)
    else:
        blocks = search.nearest(k)
    if out is None:
        for block in blocks:
            _show(search, block, why=why)
        _show_notes(search, why=why)
        return

    write_result(out, search.columns(blocks))
    each = format_count(min(k, len(search.searched) - 1), "neighbour")
    query_count = len(search.searched) if all_nodes else len(search.nodes or search.queries)
    queries = format_count(query_count, "node" if vector is None else "vector")
    show.wrote(f"{out} ({each} of {queries})")


def _refuse_other_queries(
    has_nodes: bool, has_vectors: bool, all_nodes: bool, out: Path | None
) -> None:
    """Refuse more or less than one of: nodes, vectors of a file, all nodes for a file."""
    query_count = [has_nodes, has_vectors, all_nodes].count(True)
    if query_count == 1 and (out is not None or not all_nodes):
        return
    found = "no --out"
    if query_count == 0:
        found = "none"
    elif query_count > 1:
        found = "both"
    expected = "nodes, --nodes FILE, --vector FILE, or --all --out FILE"
    raise InputError("neighbours", expected, found)


def _show(search: Search, nearest: Nearest, *, why: bool) -> None:
    """Print a table for each node that was asked for.

    With ``why`` it has the share of each part in the cosines, and the columns that agree.
    """
    from infomax.cli.searching import with_parts

    searched = search.searched
    names = searched.node_names
    embeddings = None
    if why and search.is_among_searched:
        embeddings = with_parts(searched)
    headings = ["node"]
    if names is not None:
        headings.append("name")
    headings.append("cosine")
    if embeddings is None:
        headings.append("closer than ... of random pairs")
    else:
        headings += embeddings.parts

    random_shares = searched.standing(nearest.cosines.ravel().tolist())
    random_shares = random_shares.reshape(nearest.cosines.shape)
    for row, neighbours, cosines, shares in zip(*nearest, random_shares, strict=True):
        columns: list[Any] = [searched.ids[neighbours].tolist()]
        if names is not None:
            columns.append(names[neighbours])
        columns.append([f"{cosine:.3f}" for cosine in cosines])
        if embeddings is None:
            columns.append([_share_in_words(share) for share in shares])
        else:
            for part_shares in embeddings.shares(int(row), neighbours).values():
                columns.append([f"{share:.3f}" for share in part_shares])
        show.table(_title(search, row), headings, zip(*columns, strict=True))
        if embeddings is not None:
            _show_agreeing_columns(embeddings, int(row), neighbours)


def _show_agreeing_columns(embeddings: Embeddings, row: int, neighbours: NDArray[np.int64]) -> None:
    """Print a line for each neighbour: names of columns are too long for cells of a table."""
    agreeing_columns = embeddings.agreeing(row, neighbours, COLUMNS_OF_WHY)
    for neighbour, column_names in zip(neighbours, agreeing_columns, strict=True):
        name = str(embeddings.ids[[neighbour]][0])
        if embeddings.node_names is not None:
            name = str(embeddings.node_names[[neighbour]][0]) or name
        agreement = "; ".join(column_names) or "no column that has a name"
        show.out.print(f"  {name}: agree in {agreement}")


def _title(search: Search, row: Any) -> str:
    """``Nearest to 50 (Metallica)``."""
    queries = search.queries
    title = f"Nearest to {queries.ids[[row]][0]}"
    if queries.node_names is not None:
        name = queries.node_names[[row]][0]
        if name:
            title += f" ({name})"
    return title


def _share_in_words(share: float) -> str:
    return "over 99.9 %" if share > CERTAIN_SHARE else f"{100 * share:.1f} %"


def _show_notes(search: Search, *, why: bool) -> None:
    """Say how nodes of two types were compared, and how many were left out."""
    if search.is_among_searched:
        return
    if why:
        show.out.print(
            "Nodes of two types are compared by their positions alone, the one part that all "
            "types share."
        )
    if search.popularity is not None:
        show.out.print("Ranked by 1 + the cosine, times the root of the number of links.")
    if search.linked is not None and search.linked.nnz:
        links = format_count(search.linked.nnz, "node")
        show.out.print(f"Left out: {links} with a link already; --known shows them.")
