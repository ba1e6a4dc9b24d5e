"""infomax neighbours."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Device, result_file
from infomax.cli.runs import OfType, SourceArgument, written_once
from infomax.errors import InputError, number_of, shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from infomax.embeddings import Embeddings, Searched, StoredEmbeddings
    from infomax.index import NeighbourIndex

EXACT = 100_000
"""Up to this number of nodes ``--all`` compares all pairs, on a CPU."""
AGREEING = 3
"""Columns that --why names for each neighbour."""
_APART = "Only nodes of one type are searched at a time."


@app.command()
def neighbours(
    source: SourceArgument,
    nodes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NODE",
            help="Ids of nodes, or their names; of several types also TYPE:NODE. Write -- before one that begins with "
            "a dash.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many nodes to show.", min=1)] = 10,
    file: Annotated[
        Path | None,
        typer.Option("--nodes", metavar="FILE", help="A file of nodes: a line for each, or a table with a column id."),
    ] = None,
    vector: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Vectors in place of nodes: an .npy of shape [n, d], or a .parquet, .csv, .tsv, .npz or .kv with ids.",
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="The neighbours of all nodes, for --out: exact up to 100,000 nodes and on a GPU, else by "
            "an index (faiss).",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=result_file, help="Write them to a .csv, .tsv, .parquet or .json."),
    ] = None,
    use_index: Annotated[
        bool | None,
        typer.Option(
            "--index/--exact",
            help="Build an index first, and keep it; or search all vectors.  [default: an index that there is; built "
            "for a run in memory of over 50,000 nodes]",
            show_default=False,
        ),
    ] = None,
    why: Annotated[
        bool,
        typer.Option(
            "--why", help="Show how much of each cosine comes from each part of the vectors, and which columns agree."
        ),
    ] = False,
    device: Device = "auto",
    type: OfType = None,
) -> None:
    """Show the nodes nearest to a node, by cosine similarity.

    With --type they are nodes of that type. Where the node is of another one, positions are compared, which all types
    share.
    """
    import numpy as np

    from infomax import index
    from infomax.embeddings import Embeddings, StoredEmbeddings, rows_of
    from infomax.io.parts import has_parts

    began = time.monotonic()
    wanted = [*(nodes or ()), *([] if file is None else _nodes_in(file))]
    if bool(wanted) + everything + (vector is not None) != 1 or (everything and out is None):
        several = "both" if wanted or vector else "no --out"
        found = several if wanted or everything else "none"
        raise InputError("neighbours", "nodes, --nodes FILE, --vector FILE, or --all --out FILE", found)
    asked = None if vector is None else Embeddings.read(vector)
    source, wanted, other = _of_one_type(source, wanted)
    indexed = False if everything else use_index
    if other is not None:
        searched: Searched = _positions(other, [])
        asked = _positions(source, wanted)
    elif has_parts(source):
        searched = _of_parts(source, StoredEmbeddings.open(source), indexed)
    else:
        searched = Embeddings.read(source) if source.is_file() else _of_run(source, indexed, wanted)
    if everything:
        blocks = _all(searched, k, use_index, device)
    elif asked is not None:
        blocks = iter([(np.arange(len(asked)), *searched.nearest(asked.vectors, k))])
    else:
        rows = rows_of(searched.ids, searched.node_names, wanted)
        blocks = iter([(rows, *searched.nearest(rows, k))])
    if out is None:
        for part in blocks:
            _show(searched, asked or searched, *part, parts=_parts_of(searched) if why and not asked else None)
    else:
        from infomax.io.result_files import write_result

        write_result(out, _columns(searched, asked or searched, blocks))
        each, many = min(k, len(searched.ids) - 1), len(searched.ids) if everything else len(wanted)
        counted = number_of(many, "node") if vector is None else number_of(len(asked or ()), "vector")
        show.wrote(f"{out} ({number_of(each, 'neighbour')} of {counted})", began)
    if isinstance(searched, index.NeighbourIndex):
        show.out.print(str(searched))


def _of_one_type(source: Path, wanted: list[str]) -> tuple[Path, list[str], Path | None]:
    """The run of one type and its nodes, where the run is of several types; nodes may be given as TYPE:NODE.

    Where these are of another type than the one whose nodes are to be near them, the run of that one is the last.
    """
    from infomax.io.encoding.keys import called
    from infomax.training import runs

    kinds, one = runs.types_of(source), ""
    if not kinds and source.name in (beside := runs.types_of(source.parent)):  # RUN/TYPE, or --type TYPE
        source, one, kinds = source.parent, source.name, beside
    if not kinds:
        return source, wanted, None
    if not wanted and not one:
        raise InputError("neighbours", f"--type TYPE, one of {', '.join(kinds)}", "none", _APART)
    apart = [(word, *word.partition(":")[::2]) for word in wanted]
    pairs = [(kind, node) if (kind := called(said, kinds)) else (one, word) for word, said, node in apart]
    said = {kind for kind, _ in pairs}
    other = source / one if one and said and said != {one} else None
    if len(said) > 1 or "" in said:
        said = _types_of_nodes(runs.first_in(source), kinds, pairs)
    return source / (said.pop() if said else one), [node for _, node in pairs], other


def _positions(run: Path, nodes: Sequence[str]) -> Embeddings:
    """The positions of some nodes of a run, or of all, in the space that all types share."""
    from infomax.embeddings import Embeddings, rows_of

    found = _parts_of(_of_run(run, False, nodes))
    if "positions" not in found.parts:
        remedy = "Only positions stand in one space: train with them, by the default --vectors."
        raise InputError(str(run), "vectors with positions", ",".join(found.parts), remedy)
    some = rows_of(found.ids, found.node_names, [*dict.fromkeys(nodes)]) if nodes else slice(None)
    names = None if found.node_names is None else found.node_names[some]
    return Embeddings(found.vectors[some, found.columns["positions"]], found.ids[some], names)


def _types_of_nodes(run: Path, kinds: Sequence[str], pairs: Sequence[tuple[str, str]]) -> set[str]:
    """The one type that has all nodes, each with its type or "", by their ids or names; refused where there is none."""
    from infomax.embeddings import rows_of
    from infomax.training.runs import read_training_graph

    graph, found = read_training_graph(run), list[dict[str, Any]]()
    for said, node in pairs:
        here, remedies = dict[str, Any](), list[str]()
        for kind in [said] if said else kinds:
            one = graph.target(kind)
            try:
                here[kind] = one.ids[rows_of(one.ids, one.node_names, [node])][0]
            except InputError as error:
                remedies += [f"{kind}: {error.remedy}"] if error.remedy else []
        if not here:
            expected = f"the id or the name of a node of type {said or ', '.join(kinds)}"
            raise InputError("node", expected, shorten(node), " ".join(remedies))
        found.append(here)
    common = set(found[0]).intersection(*found)
    if not common:
        each = [f"{kind}:{shown}" for here in found for kind, shown in here.items()]
        raise InputError("neighbours", "nodes of one type", ", ".join(each[:10]), _APART)
    if len(common) > 1:
        which = " or ".join(f"{kind}:{found[0][kind]}" for kind in sorted(common))
        raise InputError(
            "node", "a node of one type", f"{shorten(pairs[0][1])}, which several have", f"Say which: {which}."
        )
    return common


def _nodes_in(file: Path) -> list[str]:
    """The nodes in a file: ids of a table, or a line for each."""
    from infomax.io import text
    from infomax.io.columns import Columns
    from infomax.io.prepare.in_memory import read_node_table
    from infomax.io.sources import Source

    if file.suffix.lower() in (".csv", ".tsv", ".parquet") and file.is_file():
        return list(map(str, read_node_table(Source([file], Columns(features=())))["ids"]))
    with text.opened(file) as lines:
        found = [line.rstrip("\r\n") for line in lines if line.strip()]
    if not found:
        raise InputError(str(file), "a node in every line", "none")
    return found


def _parts_of(searched: Searched) -> Embeddings:
    """The vectors, if they are in memory and have parts."""
    from infomax.embeddings import Embeddings

    if not isinstance(searched, Embeddings) or not searched.parts:
        found = "the encoder's alone" if isinstance(searched, Embeddings) else "an index, or vectors on disk"
        raise InputError("--why", "vectors of several parts, in memory", found, "Leave it out, or take --exact.")
    return searched


def _show(
    searched: Searched,
    asked: Searched,
    rows: NDArray[np.int64],
    found: NDArray[np.int64],
    cosines: NDArray[Any],
    parts: Embeddings | None = None,
) -> None:
    """A table per row of those that were asked for; with ``parts``, also the share of each of them in the cosines."""
    names = searched.node_names
    heads = ["node", *(() if names is None else ("name",)), "cosine"]
    heads += ["closer than ... of random pairs"] if parts is None else [*parts.parts, "agree in"]
    shares = searched.standing(cosines.ravel().tolist()).reshape(cosines.shape)
    for row, near, similar, closer in zip(rows, found, cosines, shares, strict=True):
        node, its_names = asked.ids[[row]][0], asked.node_names
        title = node if its_names is None or not its_names[[row]][0] else f"{node} ({its_names[[row]][0]})"
        called = [] if names is None else [names[near]]
        known = [*zip(searched.ids[near].tolist(), *called, (f"{cosine:.3f}" for cosine in similar), strict=True)]
        if parts is None:
            shown = [(*cells, _percent(share)) for cells, share in zip(known, closer, strict=True)]
        else:
            each = zip(*parts.shares(int(row), near).values(), parts.agreeing(int(row), near, AGREEING), strict=True)
            shown = [
                (*cells, *(f"{one:.3f}" for one in some), ", ".join(columns))
                for cells, (*some, columns) in zip(known, each, strict=True)
            ]
        show.table(f"Nearest to {title}", heads, shown)


def _columns(
    searched: Searched, asked: Searched, blocks: Iterator[tuple[NDArray[np.int64], Any, Any]]
) -> Iterator[dict[str, Any]]:
    """The columns of a result: node, rank, neighbour, cosine, and both names where there are any."""
    import numpy as np

    ids, names = searched.ids[:], None if searched.node_names is None else searched.node_names[:]
    own_ids, own_names = (ids, names) if asked is searched else (asked.ids, asked.node_names)
    for rows, found, cosines in blocks:
        k = found.shape[1]
        own, other = np.repeat(rows, k), found.ravel()
        called = {} if own_names is None else {"name": own_names[own]}
        near = {} if names is None else {"neighbour_name": names[other]}
        rank = np.tile(np.arange(1, k + 1), len(rows))
        yield {
            "id": own_ids[own],
            **called,
            "rank": rank,
            "neighbour": ids[other],
            **near,
            "cosine": cosines.ravel(),
        }


def _all(searched: Any, k: int, use_index: bool | None, device: str) -> Iterator[tuple[NDArray[np.int64], Any, Any]]:
    """The neighbours of all nodes, some nodes at a time; says how they were searched."""
    import numpy as np

    from infomax import index
    from infomax.arrays.blocks import require_room
    from infomax.arrays.parquet_columns import ID_ROWS
    from infomax.kernels.device import choose_device
    from infomax.neighbours.of_all import nearest

    place, (n, width) = choose_device(device), searched.vectors.shape
    remedy = "Ask for some nodes: --nodes FILE; or allow more memory."
    require_room(12 * n * (width + k), "hold all vectors and neighbours", remedy, "neighbours --all")
    vectors = searched.vectors[:]
    with show.Steps("neighbours", n) as steps:
        exact = use_index is False or (use_index is None and (n <= EXACT or place.type == "cuda"))
        if exact or not index.has_faiss():
            rows, cosines = nearest(vectors, k, device=place, progress=steps.at)
            show.out.print("all pairs compared: exact")
        else:
            rows, cosines, how = index.nearest_of_all(vectors, k, steps.at)
            show.out.print(how)
    for first in range(0, n, ID_ROWS // 8):
        some = np.arange(first, min(first + ID_ROWS // 8, n))
        yield some, rows[some], cosines[some]


def _percent(share: float) -> str:
    """A share of sampled pairs, in which the last few are left to luck."""
    return "over 99.9 %" if share > 0.999 else f"{100 * share:.1f} %"


def _of_parts(folder: Path, stored: StoredEmbeddings, use_index: bool | None) -> StoredEmbeddings | NeighbourIndex:
    """The vectors of a folder of parts, which stay on disk, or the index beside them."""
    from infomax import index

    indexed = None
    if use_index is not False:
        with show.Steps("indexing", len(stored)) as steps:
            indexed = index.open_stored_index(folder, stored, make=bool(use_index), progress=steps.at)
    if indexed is None and use_index is None and len(stored) > index.LIMIT:
        show.log.print(f"searching all {len(stored):,} vectors; --index builds an index for faster answers")
    return indexed or stored


def _of_run(run: Path, use_index: bool | None, nodes: Sequence[str]) -> Searched:
    """The vectors of a run, or their index. Those of a graph folder are written into the run folder once."""
    from infomax import index
    from infomax.embeddings import rows_of
    from infomax.training.runs import vectors_of_run

    if not use_index and (written := vectors_of_run(run)) is not None:
        return written

    from infomax.estimator import DGI

    model = DGI.load(run)
    graph = model.graph_
    rows_of(graph.ids, graph.node_names, nodes)  # refuses a node that is not there before the work
    if graph.table.mapped:
        return _of_parts(run / "vectors", written_once(model, run), use_index)
    large = graph.num_nodes > index.LIMIT
    if use_index is False or not (large or use_index):
        return model.transform(graph)

    def embed() -> Embeddings:
        show.log.print(f"searching {graph.num_nodes:,} vectors; an index is built only once")
        return model.transform(graph)

    return index.open_index(run, graph.ids, embed, graph.node_names)
