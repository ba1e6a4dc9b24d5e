"""How well the vectors of a run tell edges, or other links, from random pairs of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    trained_vectors,
    vectors_beside,
)

FEWEST_ENDS = 10
"""Nodes of the other type from which on links to it are scored by default: of two, one is as good as guessed."""
CLEARLY = 0.005
"""By how much an AUC must be above the default's to be named: the deviation of one of some thousand pairs."""


@dataclass(frozen=True, eq=False)
class EdgeScores:
    """The scores of `compare_links`.

    Attributes:
        rows: "method", "score", "auc" and "average_precision" of each.
        count: the number of edges scored.
        pair: which pair of types is scored, in words; "" in a graph of one type.
        others: the other pairs that could be.
        known_ends: the shares of both ends of the scored edges that have an edge which training knew.
    """

    rows: list[dict[str, Any]]
    count: int
    pair: str
    others: list[str]
    known_ends: tuple[float, float]


class _Task(NamedTuple):
    """The pairs to score, among nodes of one type or of two after one another, and the edges that are known."""

    pairs: links.NodePairs
    adjacency: sparse.csr_array
    known_links: Links | None
    others: list[str]
    rows_of_types: dict[str, slice]
    """By type, its nodes."""


def keep_nothing(name: str, node_type: str, vectors: Any) -> None:
    """Vectors are scored, and not written."""


def compare_links(
    model: DGI,
    pair: str | None = None,
    *,
    raw: bool = True,
    keep: Callable[[str, str, Any], None] = keep_nothing,
    progress: Progress = silent,
) -> EdgeScores:
    """Score how a trained model tells edges from random pairs, beside parts alone, Random-Init and baselines.

    The edges are those that its graph holds out; where it holds out none they are drawn from all, which training has
    seen. Half of the pairs fit the regression, and all scores are of the other half. In a graph of several types links
    of the model's type to one other are scored, by edges or by rows that refer to both, and only positions are
    compared, which nodes of all types have.

    Args:
        model: the trained model.
        pair: the other type, or ``TYPE:BY`` with the relation or the type of the rows. None takes the most numerous.
        raw: score raw features, and averaged ones, too.
        keep: is given the name of each row, a type of nodes and their vectors.
        progress: is told the steps done.
    """
    graph = model.graph_
    task = _typed_task(graph, pair) if graph.node_type else _task(graph, pair)
    rows: list[dict[str, Any]] = []

    def add(method: str, by: str, values: NDArray[Any], command: str = "") -> None:
        scores = links.score(task.pairs, values)
        rows.append({"method": method, "score": by, **scores, "command": command})

    for done, compared in enumerate(_compared(model, task, raw)):
        progress(done, compared.name)
        cosines = links.cosines(compared.vectors, task.pairs)
        add(compared.name, "cosine", cosines, compared.command)
        regression = links.regression(compared.vectors, task.pairs)
        add(compared.name, "regression", regression, compared.command)
        for node_type, nodes in task.rows_of_types.items():
            keep(compared.name, node_type, compared.vectors[nodes])

    if graph.node_type:
        degrees = np.diff(task.adjacency.indptr)
        add("Degrees", "product", degrees[task.pairs.ends].prod(axis=0))
    else:
        common = links.common_neighbours(task.adjacency, task.pairs, directed=graph.directed)
        add("Common neighbours", "count", common)

    is_scored = task.pairs.joined & ~task.pairs.fitted
    has_edges = _has_edges(task.adjacency)
    first_known, second_known = has_edges[task.pairs.ends[:, is_scored]].mean(axis=1)
    return EdgeScores(
        rows,
        int(is_scored.sum()),
        "" if task.known_links is None else str(task.known_links),
        task.others,
        (float(first_known), float(second_known)),
    )


def _has_edges(adjacency: sparse.csr_array) -> NDArray[np.bool_]:
    """Which nodes ``[N]`` have an edge in either direction."""
    outgoing = np.diff(adjacency.indptr)
    incoming = np.bincount(adjacency.indices, minlength=adjacency.shape[0])
    return np.asarray(outgoing + incoming > 0)


def edge_advice(rows: list[dict[str, Any]], run: str = "RUN") -> list[str]:
    """Which rows tell edges better than the vectors of the run, by their best score, and what writes their vectors."""
    best: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["method"] not in best or row["auc"] > best[row["method"]]["auc"]:
            best[row["method"]] = row
    ours, *others = best.values()
    lines = []
    for row in others:
        if row["auc"] > ours["auc"] + CLEARLY:
            aucs = f"{row['auc']:.3f} against {ours['auc']:.3f}"
            sentence = f"{row['method']} ({row['score']}) has a higher AUC: {aucs}."
            if row["command"]:
                sentence += f" To write them: {row['command'].replace('RUN', run)}"
            lines.append(sentence)
    return lines


def _compared(model: DGI, task: _Task, raw: bool) -> Iterator[ComparedVectors]:
    """The vectors of the nodes of a task."""
    graph = model.graph_
    if task.known_links is None:
        yield from trained_vectors(model.transform(graph))
        yield from vectors_beside(model, raw=raw, command=WRITES_ALL_OF_EDGES)
        return

    types = dict.fromkeys((task.known_links.first_type, task.known_links.second_type))
    positions = [model.positions(node_type).vectors for node_type in types]
    command = "infomax embed RUN --vectors positions"
    yield ComparedVectors("Positions", np.concatenate(positions), command)
    pair = f"{task.known_links.second_type}:{task.known_links.by}"
    command = f"{WRITES_ALL_OF_EDGES} --pair {pair}"
    yield ComparedVectors(EDGES, baselines.edge_vectors(task.adjacency), command)


def _task(graph: Graph, pair: str | None) -> _Task:
    if pair is not None:
        raise InputError("--pair", "a graph of several types of nodes", "one of one type")
    pairs = links.draw_pairs(graph.adjacency, graph.held_out, graph.groups)
    return _Task(pairs, graph.adjacency, None, [], {"": slice(None)})


def _typed_task(graph: Graph, pair: str | None) -> _Task:
    """The pairs of the model's type with one other."""
    known = find_links(graph.relations, graph.node_type)
    if not known:
        raise TooFewEdgesError("edges to score vectors on", "links of the type", "none")
    chosen = known[choose_links(known, graph, pair)]
    others = [str(one) for one in known if one is not chosen]

    first_count = graph.num_nodes
    second_count = graph.nodes[chosen.second_type].num_nodes
    is_within = chosen.first_type == chosen.second_type
    offset = 0 if is_within else first_count
    count = first_count if is_within else first_count + second_count

    ones = np.ones(len(chosen), np.float32)
    ends = (chosen.first, chosen.second + offset)
    adjacency = sparse.csr_array((ones, ends), shape=(count, count))
    adjacency.sum_duplicates()
    adjacency = sparse.csr_array(adjacency.maximum(adjacency.T))
    adjacency.data[:] = 1

    held_out = None
    if graph.held_out is not None:
        hidden = hidden_links(graph.held_out, graph.first_rows, graph.relations, chosen)
        held_out = np.stack([hidden.first, hidden.second + offset])
        is_new = np.asarray(adjacency[held_out[0], held_out[1]] == 0).ravel()
        held_out = held_out[:, is_new]  # a pair may be linked by another row as well
        if not held_out.shape[1]:
            raise TooFewEdgesError("edges to score vectors on", f"hidden links {chosen}", "none")
    types = np.repeat([0, 1], [first_count, count - first_count])
    pairs = links.draw_pairs(adjacency, held_out, types=types)
    rows_of_types = {graph.node_type: slice(first_count)}
    if not is_within:
        rows_of_types[chosen.second_type] = slice(first_count, count)
    return _Task(pairs, adjacency, chosen, others, rows_of_types)


def choose_links(
    known: list[Links], graph: Graph, pair: str | None, fewest_ends: int = FEWEST_ENDS
) -> int:
    """Which links are scored: those asked for as ``TYPE`` or ``TYPE:BY``, else the most numerous to enough nodes."""
    ends = [graph.nodes[one.second_type].num_nodes for one in known]
    if pair is None:
        return max(range(len(known)), key=lambda at: (ends[at] >= fewest_ends, len(known[at])))
    node_type, _, by = pair.partition(":")
    fitting = [
        at
        for at, one in enumerate(known)
        if one.second_type.casefold() == node_type.casefold()
        and by.casefold() in ("", one.by.casefold())
    ]
    if not fitting:
        choices = dict.fromkeys(f"{one.second_type}:{one.by}" for one in known)
        raise InputError("--pair", f"one of {', '.join(choices)}", pair)
    return max(fitting, key=lambda at: len(known[at]))
