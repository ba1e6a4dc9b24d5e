"""The vectors that `infomax neighbours` searches: of a run, of a file or of parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax import index
from infomax.arrays.blocks import require_room
from infomax.arrays.links import linked_rows
from infomax.arrays.parquet_columns import IDS_PER_BLOCK
from infomax.cli.runs import vectors
from infomax.embeddings import Embeddings, SearchableVectors, StoredEmbeddings, rows_of
from infomax.errors import InputError, SeveralNodesError, shorten
from infomax.io import text
from infomax.io.choices import UserChoices
from infomax.io.column_names import matching_type
from infomax.io.parts import has_parts
from infomax.io.prepare.in_memory import read_node_table
from infomax.io.schema.resolving import resolve_node_table
from infomax.io.sources import Source
from infomax.neighbours.of_some import VECTORS_PER_BLOCK
from infomax.progress import Progress, silent
from infomax.training import runs

MOST_EXACT_NODES = 100_000
"""Up to this number of nodes all pairs are compared on a CPU; above, an index is searched."""
ROWS_PER_BLOCK = IDS_PER_BLOCK // 8
"""Nodes whose neighbours are written at a time: there are several neighbours of each."""
MOST_LISTED_NODES = 10
"""Nodes that a message lists."""
_ONE_TYPE = "Only nodes of one type are searched at a time; TYPE:NODE says of which a node is."


class Nearest(NamedTuple):
    """The nearest nodes of some nodes or vectors.

    Shapes:
        rows: ``[n]``, of what was asked for, neighbours: ``[n, k]``, rows of what was searched
        cosines: ``[n, k]``
    """

    rows: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    cosines: NDArray[np.float32]


@dataclass(frozen=True)
class Search:
    """What is searched, and for what.

    Attributes:
        searched: vectors in memory or on disk.
        queries: the vectors whose neighbours are asked for: the searched ones, or others.
        nodes: the ids or names of the nodes among the queries that are asked for.
        linked: 0/1 ``[n, N]``, the nodes of the other type that each query is linked to, and which
            are left out; None where none are.
        popularity: ``[N]``, how many nodes of the queries' type are linked to each searched node;
            None where that does not count.
    """

    searched: SearchableVectors
    queries: SearchableVectors
    nodes: list[str]
    linked: sparse.csr_array | None = None
    popularity: NDArray[np.float64] | None = None

    @classmethod
    def open(
        cls,
        source: Path,
        requested_nodes: list[str],
        vector_file: Path | None,
        device: str = "auto",
        *,
        with_linked: bool = False,
        popular_first: bool = False,
    ) -> Search:
        """Read the vectors of a run, of a file or of parts.

        Nodes of another type than the searched ones are compared by their positions.

        Args:
            source: a run, a file of vectors or a folder of parts.
            requested_nodes: the nodes whose neighbours are asked for, by their ids or names.
            vector_file: a file of vectors that are asked for in place of nodes.
            device: where vectors are computed that the run does not hold.
            with_linked: whether nodes of another type are found that a node is linked to already.
            popular_first: whether nodes of another type are ranked by their links, too.
        """
        query_run, nodes, searched_run = of_one_type(source, requested_nodes)
        if searched_run is not None:
            linked, popularity = _linked_nodes(query_run, nodes, searched_run)
            return cls(
                searched=_positions(searched_run, [], device),
                queries=_positions(query_run, nodes, device),
                nodes=nodes,
                linked=None if with_linked else linked,
                popularity=popularity if popular_first else None,
            )

        searched: SearchableVectors
        if has_parts(query_run):
            searched = StoredEmbeddings.open(query_run)
        elif query_run.is_file():
            searched = Embeddings.read(query_run)
        else:
            searched = _vectors_of_run(query_run, nodes, device)
        if vector_file is None:
            return cls(searched, searched, nodes)
        queries = Embeddings.read(vector_file)
        _refuse_other_model(query_run, searched.model, vector_file, queries.model)
        return cls(searched, queries, nodes)

    @property
    def is_among_searched(self) -> bool:
        """Whether the queries are nodes of what is searched, not of another type or of a file."""
        return self.queries is self.searched

    def nearest(self, k: int) -> Iterator[Nearest]:
        """The neighbours of the nodes or vectors that are asked for."""
        if self.is_among_searched:
            rows = rows_of(self.searched.ids, self.searched.node_names, self.nodes)
            yield Nearest(rows, *self.searched.nearest(rows, k))
        elif self.linked is None and self.popularity is None:
            rows = np.arange(len(self.queries))
            yield Nearest(rows, *self.searched.nearest(self.queries.vectors, k))
        else:
            yield from self._nearest_of_other_type(k)

    def _nearest_of_other_type(self, k: int) -> Iterator[Nearest]:
        """The neighbours of each node, without those that it is linked to.

        There are fewer than k where fewer remain.
        """
        for first in range(0, len(self.queries), VECTORS_PER_BLOCK):
            rows = np.arange(first, min(first + VECTORS_PER_BLOCK, len(self.queries)))
            # So many that k remain without the linked ones; popularity may raise any node.
            count = k
            if self.linked is not None:
                count += int(np.diff(self.linked.indptr)[rows].max())
            if self.popularity is not None:
                count = len(self.searched)
            count = min(count, len(self.searched))
            all_neighbours, all_cosines = self.searched.nearest(self.queries.vectors[rows], count)

            for row, neighbours, cosines in zip(rows, all_neighbours, all_cosines, strict=True):
                if self.popularity is not None:
                    scores = (1 + cosines) * np.sqrt(self.popularity[neighbours])
                    order = np.argsort(-scores, kind="stable")
                    neighbours, cosines = neighbours[order], cosines[order]
                if self.linked is not None:
                    is_new = ~np.isin(neighbours, self.linked[[row]].indices)
                    neighbours, cosines = neighbours[is_new], cosines[is_new]
                yield Nearest(np.array([row]), neighbours[None, :k], cosines[None, :k])

    def nearest_of_all(
        self,
        k: int,
        device: str,
        *,
        exact: bool = False,
        most_exact_nodes: int = MOST_EXACT_NODES,
        progress: Progress = silent,
    ) -> tuple[Iterator[Nearest], str]:
        """The neighbours of all nodes, some nodes at a time; and how they were searched, in words.

        Args:
            k: how many neighbours of each.
            device: where they are searched; a GPU compares all pairs.
            exact: whether all pairs are compared, however many there are.
            most_exact_nodes: up to how many nodes all pairs are compared on a CPU.
            progress: is told the nodes done.
        """
        from infomax.kernels.device import choose_device
        from infomax.neighbours.of_all import nearest

        torch_device = choose_device(device)
        node_count, width = self.searched.vectors.shape
        remedy = "Ask for some nodes: --nodes FILE; or allow more memory."
        needed_bytes = 12 * node_count * (width + k)
        require_room(needed_bytes, "hold all vectors and neighbours", remedy, "neighbours --all")

        all_vectors = self.searched.vectors[:]
        compares_all_pairs = exact or node_count <= most_exact_nodes or torch_device.type == "cuda"
        if compares_all_pairs or not index.has_faiss():
            neighbours, cosines = nearest(all_vectors, k, device=torch_device, progress=progress)
            description = "all pairs compared: exact"
        else:
            neighbours, cosines, description = index.nearest_of_all(all_vectors, k, progress)
        return _in_blocks(neighbours, cosines), description

    def columns(self, blocks: Iterator[Nearest]) -> Iterator[dict[str, Any]]:
        """The columns of a result: node, rank, neighbour, cosine, and names if there are any."""
        ids, names = _ids_and_names(self.searched)
        query_ids, query_names = _ids_and_names(self.queries)
        for rows, neighbours, cosines in blocks:
            k = neighbours.shape[1]
            query_rows = np.repeat(rows, k)
            neighbour_rows = neighbours.ravel()
            columns: dict[str, Any] = {"id": query_ids[query_rows]}
            if query_names is not None:
                columns["name"] = query_names[query_rows]
            columns["rank"] = np.tile(np.arange(1, k + 1), len(rows))
            columns["neighbour"] = ids[neighbour_rows]
            if names is not None:
                columns["neighbour_name"] = names[neighbour_rows]
            columns["cosine"] = cosines.ravel()
            yield columns


def _in_blocks(
    neighbours: NDArray[np.int64],
    cosines: NDArray[np.float32],
    rows_per_block: int = ROWS_PER_BLOCK,
) -> Iterator[Nearest]:
    """The neighbours ``[N, k]`` of all nodes, some nodes at a time."""
    for first in range(0, len(neighbours), rows_per_block):
        rows = np.arange(first, min(first + rows_per_block, len(neighbours)))
        yield Nearest(rows, neighbours[rows], cosines[rows])


def _ids_and_names(searched: SearchableVectors) -> tuple[NDArray[Any], NDArray[Any] | None]:
    names = None if searched.node_names is None else searched.node_names[:]
    return searched.ids[:], names


def _refuse_other_model(source: Path, model_hash: str, file: Path, other_hash: str) -> None:
    """Refuse vectors that another model has made, where both files say which.

    Vectors of two models have nothing in common.
    """
    if model_hash and other_hash and model_hash != other_hash:
        expected = f"vectors of the model of {source} ({model_hash[:12]})"
        remedy = "Embed these nodes by that model: infomax embed RUN GRAPH --out FILE."
        raise InputError(str(file), expected, f"those of another ({other_hash[:12]})", remedy)


def _linked_nodes(
    run: Path, nodes: Sequence[str], other_run: Path
) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """The links of some nodes to the nodes of another type, and how many links each of these has.

    Returns:
        0/1 ``[n, N]``, of the nodes that were asked for; and ``[N]``, over all nodes of the type.
    """
    graph = runs.read_training_graph(run)
    rows = rows_of(graph.ids, graph.node_names, [*dict.fromkeys(nodes)])
    other_type = other_run.name
    sizes = (graph.num_nodes, graph.nodes[other_type].num_nodes)
    linked = linked_rows(graph.relations, graph.node_type, other_type, sizes)
    return linked[rows], np.asarray(linked.sum(axis=0), np.float64)


def nodes_in(file: Path) -> list[str]:
    """The nodes in a file: ids of a table, or a line for each."""
    if file.suffix.lower() in (".csv", ".tsv", ".parquet") and file.is_file():
        table = resolve_node_table(Source([file]), UserChoices(features=()))
        ids = read_node_table(table)["ids"]
        return list(map(str, ids))
    with text.opened(file) as lines:
        nodes = [line.rstrip("\r\n") for line in lines if line.strip()]
    if not nodes:
        raise InputError(str(file), "a node in every line", "none")
    return nodes


class NodesOfRun(NamedTuple):
    """Nodes that a person named, and the runs of their type and of the type to search.

    Attributes:
        run: the run of the nodes' type.
        nodes: their ids or names, without types.
        searched_run: the run of another type, whose nodes are searched; None for the same type.
    """

    run: Path
    nodes: list[str]
    searched_run: Path | None


def of_one_type(source: Path, requested_nodes: list[str]) -> NodesOfRun:
    """Find the run of one type whose nodes a person named; refused where they are of several.

    Args:
        source: a run, or the run of one type in a run of several. Its nodes are searched.
        requested_nodes: ids or names, also as TYPE:NODE.
    """
    # A run of one type may be given as RUN/TYPE, which --type TYPE means as well.
    node_types = runs.types_of(source)
    searched_type = ""
    if not node_types:
        types_of_parent = runs.types_of(source.parent)
        if source.name in types_of_parent:
            searched_type = source.name
            source = source.parent
            node_types = types_of_parent
    if not node_types:
        return NodesOfRun(source, requested_nodes, None)
    if not requested_nodes and not searched_type:
        expected = f"--type TYPE, one of {', '.join(node_types)}"
        raise InputError("neighbours", expected, "none", _ONE_TYPE)

    typed_nodes = [
        _type_and_node(node, node_types, default_type=searched_type) for node in requested_nodes
    ]
    named_types = {node_type for node_type, _ in typed_nodes} or {searched_type}
    requested_type = ""
    if len(named_types) == 1:
        requested_type = named_types.pop()
    if not requested_type:
        requested_type = _type_with_nodes(runs.first_in(source), node_types, typed_nodes)

    searched_run = None
    if searched_type and searched_type != requested_type:
        searched_run = source / searched_type
    return NodesOfRun(source / requested_type, [node for _, node in typed_nodes], searched_run)


def _type_and_node(
    text_of_node: str, node_types: Sequence[str], default_type: str
) -> tuple[str, str]:
    """The type and the node that TYPE:NODE names.

    A node without a type, whose id may have a colon, is of the default type.
    """
    before_colon, _, after_colon = text_of_node.partition(":")
    node_type = matching_type(before_colon, node_types)
    if node_type:
        return node_type, after_colon
    return default_type, text_of_node


def _type_with_nodes(
    run: Path, node_types: Sequence[str], typed_nodes: Sequence[tuple[str, str]]
) -> str:
    """The one type that has all nodes, by their ids or names; refused where there is none.

    Args:
        run: a run, whose graph has all types.
        node_types: the types that are searched.
        typed_nodes: each node with its type, which is "" where it was not named.
    """
    graph = runs.read_training_graph(run)
    candidates_of_nodes: list[dict[str, str]] = []
    for named_type, node in typed_nodes:
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
        all_nodes = [node for candidates in candidates_of_nodes for node in candidates.values()]
        listed_nodes = ", ".join(all_nodes[:MOST_LISTED_NODES])
        raise InputError("neighbours", "nodes of one type", listed_nodes, _ONE_TYPE)
    return common_types.pop()


def _positions(run: Path, nodes: Sequence[str], device: str) -> Embeddings:
    """The positions of some nodes of a run, or of all, in the space that all types share."""
    embeddings = with_parts(_vectors_of_run(run, nodes, device))
    if "positions" not in embeddings.parts:
        remedy = "Only positions stand in one space: train with them, by the default --vectors."
        parts = ",".join(embeddings.parts)
        raise InputError(str(run), "vectors with positions", parts, remedy)

    rows: Any = slice(None)
    if nodes:
        rows = rows_of(embeddings.ids, embeddings.node_names, [*dict.fromkeys(nodes)])
    names = None if embeddings.node_names is None else embeddings.node_names[rows]
    positions = embeddings.vectors[rows, embeddings.columns["positions"]]
    return Embeddings(positions, embeddings.ids[rows], names)


def with_parts(searched: SearchableVectors) -> Embeddings:
    """The vectors, if they are in memory and have parts; else --why is refused."""
    if isinstance(searched, Embeddings) and searched.parts:
        return searched
    found = "the encoder's alone" if isinstance(searched, Embeddings) else "vectors on disk"
    raise InputError("--why", "vectors of several parts, in memory", found, "Leave it out.")


def _vectors_of_run(run: Path, nodes: Sequence[str], device: str) -> SearchableVectors:
    """The vectors of a run. Those of a graph folder are written into the run folder once."""
    runs.check(run)
    graph = runs.read_training_graph(run)
    # A node that is not there is refused before vectors are computed.
    rows_of(graph.ids, graph.node_names, nodes)
    return vectors(run, graph, device)
