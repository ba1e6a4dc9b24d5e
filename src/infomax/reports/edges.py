"""How well the vectors of a run tell edges, or other links, from random pairs of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.links import Links, find_links, hidden_links
from infomax.errors import InputError, TooFewEdgesError
from infomax.estimator import DGI
from infomax.evaluation import baselines, links
from infomax.graphs.graph import Graph
from infomax.progress import Progress, silent
from infomax.reports.compared_vectors import (
    EDGES,
    WRITES_ALL_OF_EDGES,
    ComparedVectors,
    KeepVectors,
    discard_vectors,
    trained_vectors,
    vectors_beside,
)

FEWEST_ENDS = 10
"""Nodes of the other type from which on links to it are scored by default.

Where there are only two, one of them is as good as guessed.
"""
CLEARLY_HIGHER = 0.005
"""By how much an AUC must be above that of the run to be named.

It is the deviation of the AUC of some thousand pairs.
"""


@dataclass(frozen=True)
class EdgeScore:
    """How well one score of pairs tells edges from random pairs.

    Attributes:
        method: the vectors, or what else makes the score.
        score: how a pair is scored: cosine, regression, count or product.
        auc: the area under the ROC curve.
        average_precision: the average precision.
        command: what writes the vectors.
    """

    method: str
    score: str
    auc: float
    average_precision: float
    command: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The score as ``--json`` writes it."""
        values = asdict(self)
        del values["command"]
        return values


@dataclass(frozen=True, eq=False)
class EdgeScores:
    """The scores of `compare_links`.

    Attributes:
        rows: the scores, those of the run first.
        edge_count: how many edges were scored.
        pair: which pair of types was scored, in words; "" in a graph of one type.
        other_pairs: the other pairs that could be scored.
        known_ends: for both ends of the scored edges, the share that has an edge which training
            knew.
    """

    rows: list[EdgeScore]
    edge_count: int
    pair: str
    other_pairs: list[str]
    known_ends: tuple[float, float]


@dataclass(frozen=True, eq=False)
class _Task:
    """The pairs to score, and the edges that training knew.

    Attributes:
        pairs: pairs of rows, among nodes of one type, or of two types after one another.
        adjacency: the known edges among these nodes.
        known_links: the same edges as links between two types; None in a graph of one type.
        other_pairs: other pairs of types that could be scored.
        rows_of_types: the rows of the nodes of each type.
    """

    pairs: links.NodePairs
    adjacency: sparse.csr_array
    known_links: Links | None
    other_pairs: list[str]
    rows_of_types: dict[str, slice]


def compare_links(
    model: DGI,
    pair: str | None = None,
    *,
    raw: bool = True,
    keep: KeepVectors = discard_vectors,
    progress: Progress = silent,
) -> EdgeScores:
    """Score how a trained model tells edges from random pairs.

    Beside it stand parts alone, Random-Init and baselines. The edges are those that the graph holds
    out; where it holds out none they are drawn from all edges, which training has seen. Half of the
    pairs fit the regression, and all scores are of the other half.

    In a graph of several types, links of the model's type to one other type are scored, by edges or
    by rows that refer to both. Only positions are compared, which nodes of all types have.

    Args:
        model: the trained model.
        pair: the other type, or ``TYPE:BY`` with the relation or the type of the rows. None takes
            the most numerous.
        raw: whether raw features, and averaged ones, are scored.
        keep: is called with the vectors of each row.
        progress: is told the steps done.
    """
    graph = model.graph_
    task = _task_of_types(graph, pair) if graph.has_named_types else _task_of_one_type(graph, pair)
    rows: list[EdgeScore] = []

    def add(method: str, score_name: str, values: NDArray[Any], command: str = "") -> None:
        rows.append(
            EdgeScore(method, score_name, **links.score(task.pairs, values), command=command)
        )

    for done, compared in enumerate(_compared_vectors(model, task, raw)):
        progress(done, compared.name)
        cosines = links.cosines(compared.vectors, task.pairs)
        add(compared.name, "cosine", cosines, compared.command)
        regression = links.regression(compared.vectors, task.pairs)
        add(compared.name, "regression", regression, compared.command)
        for node_type, type_rows in task.rows_of_types.items():
            keep(compared.name, node_type, compared.vectors[type_rows])

    if graph.has_named_types:
        degrees = np.diff(task.adjacency.indptr)
        add("Degrees", "product", degrees[task.pairs.ends].prod(axis=0))
    else:
        common = links.common_neighbours(task.adjacency, task.pairs, directed=graph.directed)
        add("Common neighbours", "count", common)

    is_scored_edge = task.pairs.joined & ~task.pairs.fitted
    scored_ends = task.pairs.ends[:, is_scored_edge]
    first_known, second_known = _has_edges(task.adjacency)[scored_ends].mean(axis=1)
    return EdgeScores(
        rows=rows,
        edge_count=int(is_scored_edge.sum()),
        pair="" if task.known_links is None else str(task.known_links),
        other_pairs=task.other_pairs,
        known_ends=(float(first_known), float(second_known)),
    )


def _has_edges(adjacency: sparse.csr_array) -> NDArray[np.bool_]:
    """Which nodes ``[N]`` have an edge in either direction."""
    outgoing = np.diff(adjacency.indptr)
    incoming = np.bincount(adjacency.indices, minlength=adjacency.shape[0])
    return np.asarray(outgoing + incoming > 0)


def edge_advice(
    rows: Sequence[EdgeScore], run: str = "RUN", clearly_higher: float = CLEARLY_HIGHER
) -> list[str]:
    """Which methods tell edges better than the run, by their best score, in sentences.

    Args:
        rows: the scores, those of the run first.
        run: the path of the run, for the commands that write vectors.
        clearly_higher: by how much an AUC must be above that of the run.
    """
    best_by_method: dict[str, EdgeScore] = {}
    for row in rows:
        best = best_by_method.get(row.method)
        if best is None or row.auc > best.auc:
            best_by_method[row.method] = row

    run_score, *other_scores = best_by_method.values()
    sentences = []
    for other in other_scores:
        if other.auc <= run_score.auc + clearly_higher:
            continue
        aucs = f"{other.auc:.3f} against {run_score.auc:.3f}"
        sentence = f"{other.method} ({other.score}) has a higher AUC: {aucs}."
        if other.command:
            sentence += f" To write them: {other.command.replace('RUN', run)}"
        sentences.append(sentence)
    return sentences


def _compared_vectors(model: DGI, task: _Task, raw: bool) -> Iterator[ComparedVectors]:
    """The vectors of the nodes of a task."""
    graph = model.graph_
    if task.known_links is None:
        yield from trained_vectors(model.transform(graph))
        yield from vectors_beside(model, raw=raw, command=WRITES_ALL_OF_EDGES)
        return

    node_types = dict.fromkeys((task.known_links.first_type, task.known_links.second_type))
    positions = [model.positions(node_type).vectors for node_type in node_types]
    command = "infomax embed RUN --vectors positions"
    yield ComparedVectors("Positions", np.concatenate(positions), command)

    pair = f"{task.known_links.second_type}:{task.known_links.by}"
    command = f"{WRITES_ALL_OF_EDGES} --pair {pair}"
    yield ComparedVectors(EDGES, baselines.edge_vectors(task.adjacency), command)


def _task_of_one_type(graph: Graph, pair: str | None) -> _Task:
    if pair is not None:
        raise InputError("--pair", "a graph of several types of nodes", "one of one type")
    pairs = links.draw_pairs(graph.adjacency, graph.held_out, graph.groups)
    return _Task(pairs, graph.adjacency, None, [], {"": slice(None)})


def _task_of_types(graph: Graph, pair: str | None) -> _Task:
    """The pairs of the graph's type with one other type."""
    all_links = find_links(graph.relations, graph.node_type)
    if not all_links:
        raise TooFewEdgesError("edges to score vectors on", "links of the type", "none")
    scored_links = all_links[choose_links(all_links, graph, pair)]
    other_pairs = [str(other) for other in all_links if other is not scored_links]

    # The nodes of the second type are numbered after those of the first.
    first_count = graph.num_nodes
    is_within_type = scored_links.first_type == scored_links.second_type
    offset = 0
    node_count = first_count
    if not is_within_type:
        offset = first_count
        node_count += graph.nodes[scored_links.second_type].num_nodes

    ends = (scored_links.first, scored_links.second + offset)
    adjacency = _symmetric_adjacency(ends, node_count)
    held_out = _held_out_pairs(graph, scored_links, offset, adjacency)
    types = np.repeat([0, 1], [first_count, node_count - first_count])
    pairs = links.draw_pairs(adjacency, held_out, types=types)

    rows_of_types = {graph.node_type: slice(first_count)}
    if not is_within_type:
        rows_of_types[scored_links.second_type] = slice(first_count, node_count)
    return _Task(pairs, adjacency, scored_links, other_pairs, rows_of_types)


def _symmetric_adjacency(
    ends: tuple[NDArray[np.int64], NDArray[np.int64]], node_count: int
) -> sparse.csr_array:
    """A 0/1 matrix ``[N, N]`` of links, each in both directions."""
    ones = np.ones(len(ends[0]), np.float32)
    adjacency = sparse.csr_array((ones, ends), shape=(node_count, node_count))
    adjacency.sum_duplicates()
    adjacency = sparse.csr_array(adjacency.maximum(adjacency.T))
    adjacency.data[:] = 1
    return adjacency


def _held_out_pairs(
    graph: Graph, scored_links: Links, offset: int, adjacency: sparse.csr_array
) -> NDArray[np.int64] | None:
    """The pairs ``[2, H]`` that only hidden edges link; None where the graph hides none."""
    if graph.held_out is None:
        return None
    hidden = hidden_links(graph.held_out, graph.first_rows, graph.relations, scored_links)
    held_out = np.stack([hidden.first, hidden.second + offset])

    # Another row may link the same pair, and training has seen that one.
    is_unknown = np.asarray(adjacency[held_out[0], held_out[1]] == 0).ravel()
    held_out = held_out[:, is_unknown]
    if not held_out.shape[1]:
        raise TooFewEdgesError("edges to score vectors on", f"hidden links {scored_links}", "none")
    return held_out


def choose_links(
    all_links: Sequence[Links], graph: Graph, pair: str | None, fewest_ends: int = FEWEST_ENDS
) -> int:
    """Which links are scored, as an index among them.

    Links are pairs of nodes that an edge joins, or a row that refers to both.

    Args:
        all_links: the links of the nodes in view, a list for each other type and way.
        graph: the graph.
        pair: what a person asked for: the other type, or ``TYPE:BY``, where BY is the relation, or
            the type of the rows that join both. None takes the most numerous links to a type of
            enough nodes; where no type has enough, the most numerous of all.
        fewest_ends: how many nodes are enough. Among fewer a random pair is often an edge as well,
            and guessing is easy.
    """
    indices = range(len(all_links))

    def by_size(index: int) -> tuple[bool, int]:
        candidate = all_links[index]
        has_enough_ends = graph.nodes[candidate.second_type].num_nodes >= fewest_ends
        return has_enough_ends, len(candidate)

    if pair is None:
        return max(indices, key=by_size)

    matching = [index for index in indices if is_pair(all_links[index], pair)]
    if not matching:
        raise no_such_pair(all_links, pair)
    return max(matching, key=lambda index: len(all_links[index]))


def is_pair(candidate: Links, pair: str) -> bool:
    """Whether links are those that ``TYPE`` or ``TYPE:BY`` names, in any case."""
    node_type, _, by = pair.casefold().partition(":")
    return candidate.second_type.casefold() == node_type and by in ("", candidate.by.casefold())


def no_such_pair(candidates: Sequence[Links], pair: str) -> InputError:
    """The error for a pair that no links have."""
    choices = dict.fromkeys(f"{other.second_type}:{other.by}" for other in candidates)
    return InputError("--pair", f"one of {', '.join(choices)}", pair)
