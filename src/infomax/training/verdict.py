"""The verdict on a training: good, weak or learnt nothing, with likely causes and what to try next.

Five causes are known: edges that make no graph, as where a table of nodes is read as edges;
features that are the same at every node; neighbours that differ; a learning rate that is too large;
too short a training. A test shows each of them on real data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from infomax.arrays.resemblance import DIFFERENT_BELOW
from infomax.arrays.sparsity import dense
from infomax.errors import format_count
from infomax.evaluation.metrics import auc_standard_error
from infomax.graphs.graph import Graph

NO_FALL = 0.005
"""A loss that falls by a smaller share has learnt nothing.

The lowest loss of some hundred nodes falls by 0.3 to 1 % by luck, where the weights hardly change.
Useful encoders of PPI, the paper's slowest to learn, pass this share in their second epoch.
"""
LITTLE_FALL = 0.02
"""A loss that falls by a smaller share has learnt little; PPI passes it in the fourth epoch."""
GUESSING_ACCURACY = 0.52
"""A discriminator of lower accuracy guesses: of 300 nodes 52 % are right by luck."""
LUCKY_START = 0.1
"""A first epoch whose loss is by this share below the loss of guessing has learnt.

First weights come up to 3 % below the loss of guessing by luck.
"""
LEAST_RANK = 2.0
"""Vectors of a lower effective rank lie nearly on one line; ids as the only feature reach 3."""
FEWEST_TRAINED_NODES = 10
"""Of fewer nodes there are too few shufflings to learn from."""
ISOLATED_SHARE = 0.01
"""The share of nodes without edges from which on the verdict mentions them."""
LITTLE_CHANGE = 0.01
"""Weights hardly change where the number of steps times the learning rate is below this.

Adam changes a weight by about the rate in a step, and weights are about 0.05.
"""
LARGE_LEARNING_RATE = 0.05
"""A rate above this replaces the weights at every step."""
KNOWN_LINKS = 0.6
"""AUC on hidden links from which on an encoder is not blind.

Of 200 pairs chance reaches 0.56 at most. Encoders of films and rentals in a database whose rows
were drawn at random have 0.49 and 0.53, those of a shop's customers who buy at random 0.52, and
those of Cora 0.95.
"""
GAINED_LINKS = 0.05
"""How far an AUC below `KNOWN_LINKS` must be above the AUC before training."""
LUCKY_ERRORS = 2.0
"""Standard errors of the AUC by which it must be above the AUC before training to be better.

Near 0.75 the error is 0.022 for 250 pairs and 0.008 for 2,000. The smaller error of the difference
on the same pairs would say too much: other first weights alone change the AUC by up to 0.02. After
5 epochs the AUC for drivers of Formula 1 had risen by 3.7 such errors from one seed, and fallen by
5.3 from another.
"""
MOST_COMPARED_ROWS = 1000
"""Nodes whose features are compared, and of wide features the columns."""
Finding = tuple[str, str]
"""A likely cause, and what to try next."""


def judge(report: dict[str, Any], graph: Graph) -> dict[str, Any]:
    """The verdict on a training, as JSON values.

    ``verdict`` is "not trained", "learnt nothing", "weak" or "good"; ``next`` has what to try for
    each of the ``causes``. A good verdict may have a reservation, ``but``, and what to do about it,
    ``but_next``.

    Args:
        report: the report on the training.
        graph: the graph that training saw.
    """
    if not report["epochs"]:
        return _verdict("not trained", "The encoder has its first weights (Random-Init).", [])

    accuracy = report.get("discriminator_accuracy")
    is_guessing = accuracy is not None and accuracy < GUESSING_ACCURACY
    fall = _fall_of_loss(report)
    rank = report["effective_rank"]
    dead = report["dead_dimensions"]
    dimensions = report["dimensions"]
    isolated = _count_isolated(graph)
    fault = _fault_of_graph(report, graph)

    learnt_nothing = fall < NO_FALL and (accuracy is None or is_guessing)
    learnt_little = fall < LITTLE_FALL or is_guessing
    poor_vectors = rank < LEAST_RANK or 2 * dead > dimensions or 2 * isolated > graph.num_nodes
    notes = list(_notes(report, graph, isolated))
    reason = _reason(report)
    if dead == dimensions or learnt_nothing:
        verdict = "learnt nothing"
    elif fault is not None or learnt_little or poor_vectors or _is_blind(report):
        verdict = "weak"
    else:
        return _verdict("good", reason, notes) | _reservation(report)

    causes = [fault] if fault is not None else list(_likely_causes(report, graph))
    findings = causes + notes
    if not findings:
        remedy = (
            "See what the vectors are worth beside raw features and Random-Init:"
            " infomax evaluate RUN."
        )
        findings = [("The cause is not evident.", remedy)]
    return _verdict(verdict, reason, findings)


def words(verdict: dict[str, Any]) -> str:
    """A verdict as text: one line, and one for its reservation and for each of its causes."""
    pairs = zip(verdict["causes"], verdict["next"], strict=True)
    causes = [f"{cause} {remedy}" for cause, remedy in pairs]
    if "but" in verdict:
        causes.insert(0, verdict["but_next"])
    return "\n".join([f"Verdict: {headline(verdict)}. {verdict['reason']}", *causes])


def headline(verdict: dict[str, Any]) -> str:
    """A verdict in a few words, with its reservation."""
    name: str = verdict["verdict"]
    return f"{name}, but {verdict['but']}" if "but" in verdict else name


def _verdict(verdict: str, reason: str, findings: list[Finding]) -> dict[str, Any]:
    causes = [cause for cause, _ in findings]
    remedies = [remedy for _, remedy in findings]
    return {"verdict": verdict, "reason": reason, "causes": causes, "next": remedies}


# What is compared


def _guessing_loss(report: dict[str, Any]) -> float:
    """The loss of guessing; the loss of the first epoch for methods that have no such loss."""
    loss: float = report.get("guessing_loss", report["curve"]["loss"][0])
    return loss


def _fall_of_loss(report: dict[str, Any]) -> float:
    """By which share the loss has fallen.

    It fell from the loss of guessing or, where that is lower, from the loss of the first epoch.
    """
    guessing = _guessing_loss(report)
    first = report["curve"]["loss"][0] if report["epochs"] > 1 else guessing
    start = min(first, guessing)
    if first < guessing - LUCKY_START * abs(guessing):
        start = guessing
    # The first loss of a method of your own may be 0.
    share: float = (start - report["loss"]) / (abs(guessing) or 1.0)
    return share


def _reason(report: dict[str, Any]) -> str:
    """The figures that decide, in a sentence."""
    guessing = f"{_guessing_loss(report):.4g}"
    has_guessing_loss = "guessing_loss" in report
    parts = [
        f"where guessing gives {guessing}" if has_guessing_loss else f"and began at {guessing}"
    ]
    accuracy = report.get("discriminator_accuracy")
    if accuracy is not None:
        parts.append(f"the discriminator is right about {100 * accuracy:.1f} % of the nodes")
    rank = report["effective_rank"]
    parts.append(f"the vectors use {rank:.1f} of {report['dimensions']} dimensions")
    if "hidden_links" in report:
        parts.append(_hidden_links_in_words(report["hidden_links"]))
    return f"The loss is {report['loss']:.4g}, {'; '.join(parts)}."


def _is_blind(report: dict[str, Any]) -> bool:
    """Whether training has not helped the encoder to tell hidden links from random pairs."""
    scores = report.get("hidden_links")
    if scores is None:
        return False
    has_gained = scores["trained"] >= scores["untrained"] + GAINED_LINKS
    return bool(scores["trained"] < KNOWN_LINKS and not has_gained)


def _reservation(report: dict[str, Any]) -> dict[str, str]:
    """What to add to a good verdict where hidden links were told as well before training, or {}.

    This alone makes no training weak. The loss has fallen, so something was learnt; and where the
    first weights tell hidden links as well, they may still tell classes worse.
    """
    scores = report.get("hidden_links")
    if scores is None:
        return {}
    pair_count = scores["pairs"]
    luck = LUCKY_ERRORS * auc_standard_error(scores["trained"], pair_count, pair_count)
    gain = scores["trained"] - scores["untrained"]
    if gain > luck:
        return {}

    change = f"The AUC has changed by {gain:+.3f}, where {luck:.3f} may be luck."
    compared = "hardly better"
    if gain < -luck:
        compared = "worse"
    elif gain <= 0:
        compared = "no better"
    return {
        "but": f"hidden links are told {compared} than before training",
        "but_next": f"{change} See whether Random-Init does as well: infomax evaluate RUN.",
    }


def _hidden_links_in_words(scores: dict[str, Any]) -> str:
    links = "edges" if scores["links"] == "edges" else f"links {scores['links']}"
    trained = f"hidden {links} are told from random pairs with AUC {scores['trained']:.3f}"
    return f"{trained} (before training {scores['untrained']:.3f})"


def _count_isolated(graph: Graph) -> int:
    """The number of nodes without edges; 0 for a graph folder, of which all edges would be read."""
    if graph.table.mapped:
        return 0
    return int((graph.degrees() == 0).sum())


# What is said whatever the verdict is


def _notes(report: dict[str, Any], graph: Graph, isolated: int) -> Iterator[Finding]:
    if isolated and ISOLATED_SHARE * graph.num_nodes <= isolated < graph.num_nodes:
        of_type = f" of type {graph.node_type}" if graph.has_named_types else ""
        vectors = "their vectors are of their own features alone"
        if graph.has_named_types:
            vectors = "the encoder gives all of them one vector"
        nodes = f"{isolated:,} of {format_count(graph.num_nodes, 'node')}{of_type}"
        remedy = "Give them edges, or leave them out of what you compare."
        yield f"{nodes} are isolated: {vectors}.", remedy
    lost = report.get("columns_lost")
    if lost:
        features = f"the {format_count(lost, 'feature')} of the nodes of type {graph.node_type}"
        cause = f"No part of the vectors holds {features}: no path leads back to them."
        yield cause, "Keep them: leave out --vectors."


# What makes a training useless, whatever its figures are


def _fault_of_graph(report: dict[str, Any], graph: Graph) -> Finding | None:
    """Edges that make no graph, or features that are the same at every node; else None."""
    seen = " that training sees" if "seen" in graph.splits else ""
    see_tables = "See how the tables were read: infomax info GRAPH."
    if graph.num_nodes < FEWEST_TRAINED_NODES:
        verb = "is" if graph.num_nodes == 1 else "are"
        cause = f"There {verb} only {format_count(graph.num_nodes, 'node')}{seen}."
        return cause, "Train on a larger graph."
    if graph.num_edges == 0:
        cause = f"No edge joins two of the nodes{seen}, so shuffling changes nothing."
        return cause, f"{see_tables} Mark more nodes as seen." if seen else see_tables
    cause = _separate_parts(graph)
    if cause:
        return cause, f"{see_tables} Name the columns of the edges: --source, --target."
    if report["effective_rank"] < LEAST_RANK and _features_are_constant(graph):
        remedy = "Leave them out (give the edges alone), or give others."
        return "The features are the same at every node.", remedy
    return None


def _separate_parts(graph: Graph) -> str:
    """What to say of a graph in memory in which hardly any nodes are connected; "" of others."""
    if graph.table.mapped or graph.groups is not None:
        return ""
    if graph.has_named_types:
        are_pairs = all(
            graph.target(node_type).degrees().max(initial=0) <= 1 for node_type in graph.types
        )
        return "No node has two edges, so the graph is separate pairs." if are_pairs else ""
    part_of_node = connected_components(graph.adjacency, directed=False)[1]
    largest = int(np.bincount(part_of_node).max())
    if largest < FEWEST_TRAINED_NODES:
        return f"The graph falls into parts of at most {format_count(largest, 'node')}."
    degrees = graph.degrees()
    links = graph.adjacency.tocoo()
    if (np.minimum(degrees[links.row], degrees[links.col]) <= 1).all():
        cause = "Every edge has an end that has no other edge"
        return f"{cause}, as where a table of nodes is read as edges."
    return ""


def _features_are_constant(graph: Graph) -> bool:
    """Whether the first nodes have the same features, by the first columns where these are many."""
    count = min(MOST_COMPARED_ROWS, graph.num_nodes)
    rows: NDArray[np.float32] = dense(graph.table[:count][:, :MOST_COMPARED_ROWS])
    return bool((np.ptp(rows, axis=0) == 0).all())


# What may have made a training weak


def _likely_causes(report: dict[str, Any], graph: Graph) -> Iterator[Finding]:
    """What may have made a training weak, the likeliest cause first."""
    losses = report["curve"]["loss"]
    lr = report["lr"]
    steps = report["steps"]
    longer = "Train longer, by --epochs or --steps"
    if lr > LARGE_LEARNING_RATE:
        yield f"The learning rate of {lr:g} is large.", "Leave it out, or take --lr 0.001."

    has_hardly_changed = lr * steps < LITTLE_CHANGE
    if has_hardly_changed:
        done = f"in {format_count(steps, 'step')} with a learning rate of {lr:g}"
        faster = ", or faster: --lr 0.001" if lr < 0.001 else ""
        yield f"The weights have hardly changed, {done}.", f"{longer}{faster}."

    resemblance = report.get("resemblance")
    has_own_part = "own" in report.get("parts", {})
    if resemblance is not None and resemblance < DIFFERENT_BELOW and not has_own_part:
        cause = f"The features of neighbours do not resemble each other ({resemblance:.3f})."
        yield cause, "Keep a node's own: leave out --vectors."

    if _is_blind(report):
        cause = (
            "The encoder is blind: it tells hidden links from random pairs hardly better than"
            " chance."
        )
        remedy = (
            "Features and edges may say nothing of each other. See what each part of the vectors is"
            " worth: infomax evaluate RUN."
        )
        yield cause, remedy

    epochs_since_lowest = len(losses) - int(np.argmin(losses))
    was_falling = epochs_since_lowest <= 1 + len(losses) // 10
    if was_falling and not has_hardly_changed and not report["stopped_early"]:
        ended = f"after {format_count(len(losses), 'epoch')}"
        yield f"The loss was falling when it ended, {ended}.", f"{longer}."
