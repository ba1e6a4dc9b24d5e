"""The verdict on a training: good, weak or learnt nothing, each with its likely causes and what to try next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from infomax.arrays.resemblance import DIFFERENT
from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import structural_features_named
from infomax.errors import number_of
from infomax.graphs.graph import Graph

NO_FALL, LITTLE_FALL = 0.005, 0.02
"""Shares by which the loss falls of one who learns nothing, and of one who learns little.

The lowest loss of some hundred nodes falls by 0.3 to 1 % by luck, where the weights hardly change. Useful encoders of
PPI, the paper's slowest to learn, pass 0.5 % in their second epoch and 2 % in their fourth.
"""
COIN = 0.52
"""Accuracy of a discriminator that guesses: about 300 nodes it is right in 52 % by luck."""
LUCK = 0.1
"""First weights come up to 3 % below the loss of guessing by luck; a first epoch that comes so far below has learnt."""
LINE = 2.0
"""Vectors of a lower effective rank lie nearly on one line; ids as the only feature reach 3."""
FEW = 10
"""Of fewer nodes there are too few shufflings to learn from."""
ISOLATED = 0.01
"""Share of nodes without edges from which on they are told."""
HUB = 0.9
"""Share of the edges at one node from which on the table was joined wrongly; real hubs are far below."""
HARDLY, FAST = 0.01, 0.05
"""Adam changes a weight by about the learning rate in a step, and weights are about 0.05: steps times rate below the
first hardly change them; a rate above the second replaces them at every step."""
FAR = 1.5
"""First weights guess, so that the loss begins at that of guessing; so many times above, the features are too large."""
LOOKED_AT = 1000
"""Nodes whose features are looked at."""
Finding = tuple[str, str]
"""A likely cause, and what to try next."""


def judge(report: dict[str, Any], graph: Graph) -> dict[str, Any]:
    """The verdict on a training, as JSON values, from its report and the graph that it has seen.

    ``verdict`` is "not trained", "learnt nothing", "weak" or "good"; ``causes`` and ``next`` belong together.
    """
    if not report["epochs"]:
        return _verdict("not trained", "The encoder has its first weights (Random-Init).", [])
    loss, accuracy = report["loss"], report.get("discriminator_accuracy")
    guessing = report.get(
        "guessing_loss", report["curve"]["loss"][0]
    )  # a method of your own begins somewhere
    rank, dead, dimensions = (
        report["effective_rank"],
        report["dead_dimensions"],
        report["dimensions"],
    )
    first = report["curve"]["loss"][0] if report["epochs"] > 1 else guessing
    began = guessing if first < guessing - LUCK * abs(guessing) else min(first, guessing)
    fall = (began - loss) / (abs(guessing) or 1.0)  # an objective of your own may begin at 0
    course = (
        f"where guessing gives {guessing:.4g}; "
        if "guessing_loss" in report
        else f"and began at {guessing:.4g}; "
    )
    if accuracy is not None:
        course += f"the discriminator is right about {100 * accuracy:.1f} % of the nodes; "
    reason = (
        f"The loss is {loss:.4g}, {course}the vectors use {rank:.1f} of {dimensions} dimensions."
    )
    fact = _fact(report, graph)
    isolated = (
        0 if graph.table.mapped else int((graph.degrees() == 0).sum())
    )  # of a folder, all edges would be read
    notes: list[Finding] = []
    if isolated and ISOLATED * graph.num_nodes <= isolated < graph.num_nodes:
        of_type = graph.node_type and f" of type {graph.node_type}"
        alone = "their vectors are of their own features alone"
        vectors = "the encoder gives all of them one vector" if graph.node_type else alone
        told = (
            f"{isolated:,} of {number_of(graph.num_nodes, 'node')}{of_type} are isolated: {vectors}"
        )
        notes.append((f"{told}.", "Give them edges, or leave them out of what you compare."))
    if lost := report.get("columns_lost"):
        named = f"No part of the vectors holds the {number_of(lost, 'feature')} of the nodes of type {graph.node_type}"
        notes.append((f"{named}: no path leads back to them.", "Keep them: leave out --vectors."))
    if dead == dimensions or (fall < NO_FALL and (accuracy or 0.0) < COIN):
        verdict = "learnt nothing"
    elif (
        fact
        or fall < LITTLE_FALL
        or rank < LINE
        or 2 * dead > dimensions
        or 2 * isolated > graph.num_nodes
        or (accuracy is not None and accuracy < COIN)
    ):
        verdict = "weak"
    else:
        return _verdict("good", reason, notes)
    causes = [fact] if fact else list(_guesses(report, graph))
    look = (
        "See what the vectors are worth beside raw features and Random-Init: infomax evaluate RUN."
    )
    return _verdict(verdict, reason, causes + notes or [("The cause is not evident.", look)])


def words(verdict: dict[str, Any]) -> str:
    """A verdict as text: one line, and one for each of its causes."""
    pairs = zip(verdict["causes"], verdict["next"], strict=True)
    causes = [f"{cause} {remedy}" for cause, remedy in pairs]
    return "\n".join([f"Verdict: {verdict['verdict']}. {verdict['reason']}", *causes])


def _verdict(verdict: str, reason: str, findings: list[Finding]) -> dict[str, Any]:
    causes, then = [cause for cause, _ in findings], [remedy for _, remedy in findings]
    return {"verdict": verdict, "reason": reason, "causes": causes, "next": then}


def _fact(report: dict[str, Any], graph: Graph) -> Finding | None:
    """What makes a training useless, whatever its figures are; None where nothing does."""
    seen = " that training sees" if "seen" in graph.splits else ""
    nodes, edges = graph.num_nodes, graph.num_edges
    how = "See how the tables were read: infomax info GRAPH."
    columns = "Name the columns of the edges: --source, --target."
    if nodes < FEW:
        there = "is" if nodes == 1 else "are"
        return f"There {there} only {number_of(nodes, 'node')}{seen}.", "Train on a larger graph."
    if edges == 0:
        marked = " Mark more nodes as seen." if seen else ""
        return f"No edge joins two of the nodes{seen}, so shuffling changes nothing.", how + marked
    if features := structural_features_named(
        graph.feature_names
    ):  # positions tell pairs apart at the most
        degrees = graph.degrees()
        if np.ptp(degrees) == 0 and (features == "degrees" or degrees[0] <= 1):
            told = "There are no features, and the degrees of all nodes are alike."
            return told, f"Give nodes a table. Or is it a table of edges? {columns}"
    if separate := _separate_parts(graph):
        return separate, f"{how} {columns}"
    if report["effective_rank"] < LINE and (np.ptp(_rows(graph), axis=0) == 0).all():
        return (
            "The features are the same at every node.",
            "Leave them out (give the edges alone), or give others.",
        )
    if graph.table.mapped or edges <= FEW:  # of a graph folder, all edges would be read
        return None
    degrees = graph.degrees()
    hub = int(degrees.argmax())
    if degrees[hub] > HUB * edges:
        share = min(100 * degrees[hub] / edges, 100)
        found = f"{share:.0f} % of the edges are at node {graph.ids[hub]}: two tables may have been joined wrongly."
        return found, columns
    if not graph.node_type and graph.groups is None:
        links = graph.adjacency.tocoo()
        if (np.minimum(degrees[links.row], degrees[links.col]) <= 1).all():
            found = "Every edge has an end that has no other edge, as where a table of nodes is read as edges."
            return found, f"{how} {columns}"
    return None


def _separate_parts(graph: Graph) -> str:
    """What to say of a graph in memory that is none, since no ten of its nodes hang together; "" of others."""
    if graph.table.mapped or graph.groups is not None:
        return ""
    if graph.node_type:
        pairs = all(graph.target(kind).degrees().max(initial=0) <= 1 for kind in graph.types)
        return "No node has two edges, so the graph is separate pairs." if pairs else ""
    largest = int(np.bincount(connected_components(graph.adjacency, directed=False)[1]).max())
    return (
        ""
        if largest >= FEW
        else f"The graph falls into parts of at most {number_of(largest, 'node')}."
    )


def _guesses(report: dict[str, Any], graph: Graph) -> Iterator[Finding]:
    """What may have made a training weak, the likeliest first."""
    curve, lr, steps = report["curve"]["loss"], report["lr"], report["steps"]
    hardly, longer = lr * steps < HARDLY, "Train longer, by --epochs or --steps"
    if lr > FAST:
        yield f"The learning rate of {lr:g} is large.", "Leave it out, or take --lr 0.001."
    if hardly:
        cause = f"The weights have hardly changed, in {number_of(steps, 'step')} with a learning rate of {lr:g}."
        faster = ", or faster: --lr 0.001" if lr < 0.001 else ""
        yield cause, f"{longer}{faster}."
    if curve[0] > FAR * report.get("guessing_loss", np.inf):
        yield (
            f"The features are large: the loss begins at {curve[0]:.4g}.",
            "Scale them: --scale columns.",
        )
    rows = np.sort(_rows(graph), axis=0)
    # Larger numbers than these are whole in float32, whatever they were.
    whole = (rows % 1 == 0).all(axis=0) & (abs(rows[[0, -1]]).max(axis=0) < 2**24)
    if ids := [
        graph.feature_names[at] for at in np.flatnonzero(whole & np.diff(rows, axis=0).all(axis=0))
    ]:
        names, remedy = ", ".join(ids[:3]), " ".join(f"--ignore {name}" for name in ids[:3])
        yield (
            f"A feature is another whole number at every node, as ids are: {names}.",
            f"Leave it out: {remedy}.",
        )
    if (
        (alike := report.get("resemblance")) is not None
        and alike < DIFFERENT
        and "own" not in report.get("parts", {})
    ):
        yield (
            f"The features of neighbours do not resemble each other ({alike:.3f}).",
            "Keep a node's own: leave out --vectors.",
        )
    if (
        not (hardly or report["stopped_early"])
        and len(curve) - int(np.argmin(curve)) <= 1 + len(curve) // 10
    ):
        yield (
            f"The loss was falling when it ended, after {number_of(len(curve), 'epoch')}.",
            f"{longer}.",
        )
    if (rank := report["effective_rank"]) < LINE:
        yield (
            f"The vectors lie nearly on one line: their effective rank is {rank:.2g}.",
            "Give nodes more features.",
        )


def _rows(graph: Graph) -> NDArray[np.float32]:
    """Features ``[n, f]`` of the first nodes; of very wide ones the first columns."""
    rows: NDArray[np.float32] = dense(graph.table[: min(LOOKED_AT, graph.num_nodes)][:, :LOOKED_AT])
    return rows
