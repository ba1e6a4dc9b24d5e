"""infomax neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, ResultFile, option
from infomax.cli.runs import OfType, SourceArgument
from infomax.errors import InputError, format_count

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
        help="Of all nodes, for --out: exact up to 100,000 nodes and on a GPU, else by an index (faiss).",
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
        help="With --type and nodes of another type: also show those that a node is linked to already.",
    ),
]
Popular = Annotated[
    bool,
    typer.Option(
        "--popular",
        help="With --type and nodes of another type: rank by 1 + the cosine, times the root of the number of links.",
    ),
]


@app.command()
def neighbours(
    source: SourceArgument,
    nodes: Nodes = None,
    k: Annotated[int, option("N", "How many nodes to show.", "-k", min=1)] = 10,
    file: NodesFile = None,
    vector: VectorFile = None,
    everything: All = False,
    out: ResultFile = None,
    exact: Exact = False,
    why: Why = False,
    known: Known = False,
    popular: Popular = False,
    device: Device = "auto",
    type: OfType = None,
) -> None:
    """Show the nodes nearest to a node, by cosine similarity.

    With --type they are nodes of that type. Where the node is of another one, positions are compared, which all types
    share, and nodes that it is linked to already, as a user to what was bought, are left out.
    """
    from infomax.cli import searching
    from infomax.io.result_files import write_result

    wanted = [*(nodes or ()), *([] if file is None else searching.nodes_in(file))]
    if bool(wanted) + everything + (vector is not None) != 1 or (everything and out is None):
        several = "both" if wanted or vector else "no --out"
        found = several if wanted or everything else "none"
        raise InputError(
            "neighbours", "nodes, --nodes FILE, --vector FILE, or --all --out FILE", found
        )
    if why and (vector is not None or out is not None):
        found = "--out" if vector is None else "--vector"
        raise InputError("--why", "nodes of the run, and no file: shares are printed", found)
    if exact and not everything:
        remedy = "Leave it out: the search for some nodes is exact."
        raise InputError("--exact", "--all, the neighbours of all nodes", "some nodes", remedy)
    search = searching.Search.of(
        source, wanted, vector, device, with_linked=known, popular_first=popular
    )
    of_one_type = vector is not None or search.asked is search.searched
    if of_one_type and (known or popular):
        option_name = "--known" if known else "--popular"
        remedy = "Leave it out: among nodes of one type all are shown, the nearest first."
        expected = "nodes of one type near a node of another"
        raise InputError(option_name, expected, "one type", remedy)
    blocks = search.all(k, device, exact=exact) if everything else search.nearest(k)
    if out is None:
        for part in blocks:
            search.show(*part, why=why)
        search.show_notes(why=why)
    else:
        write_result(out, search.columns(blocks))
        each = format_count(min(k, len(search.searched) - 1), "neighbour")
        many = len(search.searched) if everything else len(search.nodes or search.asked)
        show.wrote(
            f"{out} ({each} of {format_count(many, 'node' if vector is None else 'vector')})"
        )
