"""The vectors that `infomax neighbours` searches: of a run, of a file or of parts; and what it finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax import index
from infomax.arrays.blocks import require_room
from infomax.arrays.links import linked_rows
from infomax.arrays.parquet_columns import IDS_PER_BLOCK
from infomax.cli import show
from infomax.cli.runs import vectors
from infomax.embeddings import Embeddings, Searched, StoredEmbeddings, rows_of
from infomax.errors import InputError, SeveralNodesError, format_count, shorten
from infomax.io import text
from infomax.io.column_names import matching_type
from infomax.io.columns import Columns
from infomax.io.parts import has_parts
from infomax.io.prepare.in_memory import read_node_table
from infomax.io.sources import Source
from infomax.neighbours.of_some import BLOCK
from infomax.training import runs

EXACT = 100_000
"""Up to this number of nodes ``--all`` compares all pairs, on a CPU."""
AGREEING = 3
"""Columns that --why names for each neighbour."""
_ONE_TYPE = "Only nodes of one type are searched at a time; TYPE:NODE says of which a node is."
Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""The rows ``[n]`` of what is asked for, and the rows and cosines ``[n, k]`` of the nearest."""


@dataclass(frozen=True)
class Search:
    """What is searched, in memory or on disk; and what is asked for: nodes of it, or all of others."""

    searched: Searched
    asked: Searched
    nodes: list[str]
    linked: sparse.csr_array | None = None
    """Of each node that is asked for, the nodes of the other type that it is linked to, and which are left out."""
    popularity: NDArray[np.float64] | None = None
    """Of each node that is searched, how many nodes of the type that is asked for are linked to it, if they count."""

    @classmethod
    def of(
        cls,
        source: Path,
        wanted: list[str],
        vector: Path | None,
        device: str = "auto",
        *,
        with_linked: bool = False,
        popular_first: bool = False,
    ) -> Search:
        """Read the vectors of a run, of a file or of parts; nodes of another type are asked for by their positions.

        Args:
            source: a run, a file of vectors or a folder of parts.
            wanted: the nodes that are asked for, by their ids or names.
            vector: a file of vectors that are asked for in place of nodes.
            device: where vectors are computed that the run does not hold.
            with_linked: whether nodes of another type are found that a node is linked to already.
            popular_first: whether nodes of another type are ranked by how many links they have, too.
        """
        source, wanted, other = of_one_type(source, wanted)
        if other is not None:
            linked, popularity = _linked_nodes(source, wanted, other)
            return cls(
                _positions(other, [], device),
                _positions(source, wanted, device),
                wanted,
                None if with_linked else linked,
                popularity if popular_first else None,
            )

        searched: Searched
        if has_parts(source):
            searched = StoredEmbeddings.open(source)
        elif source.is_file():
            searched = Embeddings.read(source)
        else:
            searched = _of_run(source, wanted, device)
        if vector is None:
            return cls(searched, searched, wanted)
        asked_vectors = Embeddings.read(vector)
        _refuse_other_model(source, searched.model, vector, asked_vectors.model)
        return cls(searched, asked_vectors, wanted)

    def nearest(self, k: int) -> Iterator[Found]:
        """The neighbours of the nodes that were asked for."""
        if self.asked is self.searched:
            rows = rows_of(self.searched.ids, self.searched.node_names, self.nodes)
            yield (rows, *self.searched.nearest(rows, k))
        elif self.linked is None and self.popularity is None:
            yield (np.arange(len(self.asked)), *self.searched.nearest(self.asked.vectors, k))
        else:
            yield from self._nearest_of_other_type(k)

    def _nearest_of_other_type(self, k: int) -> Iterator[Found]:
        """The neighbours of each node, without those that it is linked to; fewer where fewer are left."""
        for first in range(0, len(self.asked), BLOCK):
            rows = np.arange(first, min(first + BLOCK, len(self.asked)))
            count = k
            if self.linked is not None:
                count += int(np.diff(self.linked.indptr)[rows].max())
            if self.popularity is not None:
                count = len(self.searched)
            neighbours, cosines = self.searched.nearest(
                self.asked.vectors[rows], min(count, len(self.searched))
            )
            for row, near, similar in zip(rows, neighbours, cosines, strict=True):
                if self.popularity is not None:
                    scores = (1 + similar) * np.sqrt(self.popularity[near])
                    order = np.argsort(-scores, kind="stable")
                    near, similar = near[order], similar[order]
                if self.linked is not None:
                    is_new = ~np.isin(near, self.linked[[row]].indices)
                    near, similar = near[is_new], similar[is_new]
                yield np.array([row]), near[None, :k], similar[None, :k]

    def all(self, k: int, device: str, *, exact: bool) -> Iterator[Found]:
        """The neighbours of all nodes, some nodes at a time; says how they were searched."""
        from infomax.kernels.device import choose_device
        from infomax.neighbours.of_all import nearest

        chosen = choose_device(device)
        n, width = self.searched.vectors.shape
        remedy = "Ask for some nodes: --nodes FILE; or allow more memory."
        require_room(
            12 * n * (width + k), "hold all vectors and neighbours", remedy, "neighbours --all"
        )
        vectors = self.searched.vectors[:]
        with show.Steps("neighbours", n) as steps:
            exact = exact or n <= EXACT or chosen.type == "cuda"
            if exact or not index.has_faiss():
                rows, cosines = nearest(vectors, k, device=chosen, progress=steps.at)
                show.out.print("all pairs compared: exact")
            else:
                rows, cosines, how = index.nearest_of_all(vectors, k, steps.at)
                show.out.print(how)
        for first in range(0, n, IDS_PER_BLOCK // 8):
            some = np.arange(first, min(first + IDS_PER_BLOCK // 8, n))
            yield some, rows[some], cosines[some]

    def show(
        self,
        rows: NDArray[Any],
        neighbours: NDArray[Any],
        cosines: NDArray[Any],
        *,
        why: bool,
    ) -> None:
        """A table per row of those that were asked for; with ``why``, also the share of each part in the cosines."""
        names = self.searched.node_names
        embeddings = None
        if why and self.asked is self.searched:
            embeddings = _with_parts(self.searched)
        headings = ["node"]
        if names is not None:
            headings.append("name")
        headings.append("cosine")
        if embeddings is None:
            headings.append("closer than ... of random pairs")
        else:
            headings += [*embeddings.parts, "agree in"]

        shares = self.searched.standing(cosines.ravel().tolist()).reshape(cosines.shape)
        for row, near, similar, closer in zip(rows, neighbours, cosines, shares, strict=True):
            cells: list[Any] = [self.searched.ids[near].tolist()]
            if names is not None:
                cells.append(names[near])
            cells.append([f"{cosine:.3f}" for cosine in similar])
            if embeddings is None:
                cells.append([_share_in_words(share) for share in closer])
            else:
                for part_shares in embeddings.shares(int(row), near).values():
                    cells.append([f"{share:.3f}" for share in part_shares])
                agreeing = embeddings.agreeing(int(row), near, AGREEING)
                cells.append([", ".join(column_names) for column_names in agreeing])

            title = f"Nearest to {self.asked.ids[[row]][0]}"
            if self.asked.node_names is not None and self.asked.node_names[[row]][0]:
                title = f"{title} ({self.asked.node_names[[row]][0]})"
            show.table(title, headings, zip(*cells, strict=True))

    def show_notes(self, *, why: bool) -> None:
        """How nodes of two types were compared, and how many were left out."""
        if self.asked is self.searched:
            return
        if why:
            show.out.print(
                "Nodes of two types are compared by their positions alone, the one part that all types share."
            )
        if self.popularity is not None:
            show.out.print("Ranked by 1 + the cosine, times the root of the number of links.")
        if self.linked is not None and self.linked.nnz:
            links = format_count(self.linked.nnz, "node")
            show.out.print(f"Left out: {links} with a link already; --known shows them.")

    def columns(self, blocks: Iterator[Found]) -> Iterator[dict[str, Any]]:
        """The columns of a result: node, rank, neighbour, cosine, and both names where there are any."""
        ids, names = _ids_and_names(self.searched)
        asked_ids, asked_names = _ids_and_names(self.asked)
        for rows, neighbours, cosines in blocks:
            k = neighbours.shape[1]
            asked_rows = np.repeat(rows, k)
            neighbour_rows = neighbours.ravel()
            columns: dict[str, Any] = {"id": asked_ids[asked_rows]}
            if asked_names is not None:
                columns["name"] = asked_names[asked_rows]
            columns["rank"] = np.tile(np.arange(1, k + 1), len(rows))
            columns["neighbour"] = ids[neighbour_rows]
            if names is not None:
                columns["neighbour_name"] = names[neighbour_rows]
            columns["cosine"] = cosines.ravel()
            yield columns


def _share_in_words(share: float) -> str:
    """A share of sampled pairs; the last few of them are left to luck."""
    return "over 99.9 %" if share > 0.999 else f"{100 * share:.1f} %"


def _ids_and_names(searched: Searched) -> tuple[NDArray[Any], NDArray[Any] | None]:
    names = None if searched.node_names is None else searched.node_names[:]
    return searched.ids[:], names


def _refuse_other_model(source: Path, known: str, file: Path, model: str) -> None:
    """Refuse vectors that another model has made, where both files say which: they have nothing in common."""
    if known and model and known != model:
        expected = f"vectors of the model of {source} ({known[:12]})"
        remedy = "Embed these nodes by that model: infomax embed RUN GRAPH --out FILE."
        raise InputError(str(file), expected, f"those of another ({model[:12]})", remedy)


def _linked_nodes(
    run: Path, nodes: Sequence[str], other_run: Path
) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """Which nodes of another type some nodes are linked to, 0/1 ``[n, M]``; and how many all nodes are, ``[M]``."""
    graph = runs.read_training_graph(run)
    rows = rows_of(graph.ids, graph.node_names, [*dict.fromkeys(nodes)])
    other_type = other_run.name
    sizes = (graph.num_nodes, graph.nodes[other_type].num_nodes)
    linked = linked_rows(graph.relations, graph.node_type, other_type, sizes)
    return linked[rows], np.asarray(linked.sum(axis=0), np.float64)


def nodes_in(file: Path) -> list[str]:
    """The nodes in a file: ids of a table, or a line for each."""
    if file.suffix.lower() in (".csv", ".tsv", ".parquet") and file.is_file():
        return list(map(str, read_node_table(Source([file], Columns(features=())))["ids"]))
    with text.opened(file) as lines:
        found = [line.rstrip("\r\n") for line in lines if line.strip()]
    if not found:
        raise InputError(str(file), "a node in every line", "none")
    return found


def of_one_type(source: Path, wanted: list[str]) -> tuple[Path, list[str], Path | None]:
    """The run of one type and its nodes, where the run is of several types; nodes may be given as TYPE:NODE.

    Where these are of another type than the one whose nodes are to be near them, the run of that one is the last.
    """
    node_types = runs.types_of(source)
    type_of_run = ""
    types_beside = [] if node_types else runs.types_of(source.parent)
    if source.name in types_beside:  # RUN/TYPE, or --type TYPE
        type_of_run = source.name
        source = source.parent
        node_types = types_beside
    if not node_types:
        return source, wanted, None
    if not wanted and not type_of_run:
        expected = f"--type TYPE, one of {', '.join(node_types)}"
        raise InputError("neighbours", expected, "none", _ONE_TYPE)

    pairs = [_type_and_node(text_of_node, node_types, type_of_run) for text_of_node in wanted]
    named_types = {node_type for node_type, _ in pairs} or {type_of_run}
    asked_type = named_types.pop() if len(named_types) == 1 else ""
    if not asked_type:
        asked_type = _type_of_nodes(runs.first_in(source), node_types, pairs)
    other_run = None
    if type_of_run and asked_type != type_of_run:
        other_run = source / type_of_run
    return source / asked_type, [node for _, node in pairs], other_run


def _type_and_node(
    text_of_node: str, node_types: Sequence[str], default_type: str
) -> tuple[str, str]:
    """The type and the node that TYPE:NODE names; of a node alone, whose id may have a colon, a default type."""
    before_colon, _, after_colon = text_of_node.partition(":")
    node_type = matching_type(before_colon, node_types)
    return (node_type, after_colon) if node_type else (default_type, text_of_node)


def _type_of_nodes(run: Path, node_types: Sequence[str], pairs: Sequence[tuple[str, str]]) -> str:
    """The one type that has all nodes, each with its type or "", by their ids or names; refused where there is none."""
    graph = runs.read_training_graph(run)
    candidates_of_nodes: list[dict[str, str]] = []
    for named_type, node in pairs:
        candidates: dict[str, str] = {}
        exact_candidates: dict[str, str] = {}
        mistakes: list[InputError] = []
        for node_type in [named_type] if named_type else node_types:
            nodes = graph.target(node_type)
            try:
                row = rows_of(nodes.ids, nodes.node_names, [node])[0]
            except InputError as mistake:
                mistakes.append(mistake)
                continue
            candidates[node_type] = f"{node_type}:{nodes.ids[row]}"
            names = [str(nodes.ids[row])]
            if nodes.node_names is not None:
                names.append(str(nodes.node_names[row]))
            if node.casefold() in map(str.casefold, names):
                exact_candidates[node_type] = candidates[node_type]

        # A complete name comes before a part of another.
        candidates = exact_candidates or candidates
        ambiguous = [mistake for mistake in mistakes if isinstance(mistake, SeveralNodesError)]
        if not candidates and ambiguous:
            raise ambiguous[0]
        if not candidates:
            types_in_words = named_type or ", ".join(node_types)
            expected = f"the id or the name of a node of type {types_in_words}"
            raise InputError("node", expected, shorten(node))
        candidates_of_nodes.append(candidates)

    common_types = set(candidates_of_nodes[0]).intersection(*candidates_of_nodes)
    if len(common_types) != 1:
        shown = [node for candidates in candidates_of_nodes for node in candidates.values()]
        raise InputError("neighbours", "nodes of one type", ", ".join(shown[:10]), _ONE_TYPE)
    return common_types.pop()


def _positions(run: Path, nodes: Sequence[str], device: str) -> Embeddings:
    """The positions of some nodes of a run, or of all, in the space that all types share."""
    found = _with_parts(_of_run(run, nodes, device))
    if "positions" not in found.parts:
        remedy = "Only positions stand in one space: train with them, by the default --vectors."
        raise InputError(str(run), "vectors with positions", ",".join(found.parts), remedy)
    some = rows_of(found.ids, found.node_names, [*dict.fromkeys(nodes)]) if nodes else slice(None)
    names = None if found.node_names is None else found.node_names[some]
    return Embeddings(found.vectors[some, found.columns["positions"]], found.ids[some], names)


def _with_parts(searched: Searched) -> Embeddings:
    """The vectors, if they are in memory and have parts."""
    if not isinstance(searched, Embeddings) or not searched.parts:
        in_memory = isinstance(searched, Embeddings)
        found = "the encoder's alone" if in_memory else "vectors on disk"
        raise InputError("--why", "vectors of several parts, in memory", found, "Leave it out.")
    return searched


def _of_run(run: Path, nodes: Sequence[str], device: str) -> Searched:
    """The vectors of a run. Those of a graph folder are written into the run folder once."""
    runs.check(run)
    graph = runs.read_training_graph(run)
    rows_of(graph.ids, graph.node_names, nodes)  # refuses a node that is not there before the work
    return vectors(run, graph, device)
