"""Lemma 1, Corollary 1 and both theorems of the paper checked on all graphs with four nodes, by exact enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations
from math import cos, log2, pi, sin
from typing import Any, TypeAlias

from infomax.analysis.report import Chapter
from infomax.analysis.style import BASELINE, BELOW, COLOURS, DASHED, INK, PAPER, panels
from infomax.errors import format_count

SmallGraph: TypeAlias = frozenset[tuple[int, int]]
"""The edges (i, j), i < j, of a graph with few nodes."""

NODES = 4


def small_graphs(nodes: int = NODES) -> list[SmallGraph]:
    """All graphs with this many nodes up to isomorphism, fewest edges first."""
    pairs = list(combinations(range(nodes), 2))
    chosen: dict[tuple[tuple[int, ...], ...], SmallGraph] = {}
    for size in range(len(pairs) + 1):
        # Of isomorphic graphs, take the one that is drawn with the fewest crossing edges.
        for edges in sorted(
            combinations(pairs, size), key=lambda edges: sum(j - i == nodes // 2 for i, j in edges)
        ):
            chosen.setdefault(_shape(edges, nodes), frozenset(edges))
    return list(chosen.values())


def _shape(edges: Iterable[tuple[int, int]], nodes: int) -> tuple[tuple[int, ...], ...]:
    """A canonical form: the smallest edge list over all renamings of the nodes."""
    renamings = permutations(range(nodes))
    return min(
        tuple(sorted(tuple(sorted((name[i], name[j]))) for i, j in edges)) for name in renamings
    )


def degrees(graph: SmallGraph) -> tuple[int, ...]:
    """The degrees of the `NODES` nodes, ascending."""
    return tuple(sorted(sum(node in edge for edge in graph) for node in range(NODES)))


def triangles(graph: SmallGraph) -> int:
    """The number of triangles in a graph."""
    return sum(
        all(pair in graph for pair in combinations(three, 2))
        for three in combinations(range(NODES), 3)
    )


READOUTS: dict[str, Callable[[SmallGraph], Hashable]] = {
    "constant": lambda graph: 0,
    "has a triangle?": lambda graph: triangles(graph) > 0,
    "triangles": triangles,
    "largest degree": lambda graph: degrees(graph)[-1],
    "mean degree": lambda graph: Fraction(sum(degrees(graph)), NODES),
    "all degrees": degrees,
}
"""Deterministic readouts, from constant to injective. "mean degree" is the paper's mean, with degrees as features."""


def patch(graph: SmallGraph) -> SmallGraph:
    """The patch of a two-layer encoder: all edges within two hops of a node with most neighbours, renamed node 0."""
    joined = {node: {i + j - node for i, j in graph if node in (i, j)} for node in range(NODES)}
    centre = max(joined, key=lambda node: len(joined[node]))
    reached = {centre} | joined[centre] | {far for near in joined[centre] for far in joined[near]}
    names = {node: place for place, node in enumerate([centre, *sorted(reached - {centre})])}
    edges = [tuple(sorted((names[i], names[j]))) for i, j in graph if {i, j} <= reached]
    # Of patches that differ only in the names of the nodes around the centre, the smallest edge list.
    others = permutations(range(1, NODES))
    renamed = [
        sorted(tuple(sorted((0, *other)[k] for k in edge)) for edge in edges) for other in others
    ]
    return frozenset((i, j) for i, j in min(renamed))


def _around(patch: SmallGraph, node: int = 0) -> list[int]:
    """The degrees of a node of a patch and of its neighbours, the node's own first."""
    near = [i + j - node for i, j in patch if node in (i, j)]
    return [sum(other in edge for edge in patch) for other in (node, *near)]


ENCODERS: dict[str, Callable[[SmallGraph], Hashable]] = {
    "constant": lambda patch: 0,
    "degree of the node": lambda patch: len(_around(patch)) - 1,
    "has a triangle?": lambda patch: triangles(patch) > 0,
    "mean pooling": lambda patch: Fraction(sum(_around(patch)), len(_around(patch))),
    "all degrees": degrees,
}
"""Deterministic encoders of a patch, from constant to injective. "mean pooling" is one layer, with degrees as input."""


def optimal_error(
    summaries: Sequence[Hashable], others: Sequence[Hashable] | None = None
) -> Fraction:
    """Error of the best classifier that separates joint from product pairs (X, s), both classes equally likely.

    All pairs are enumerated: for each, the best classifier errs with the smaller of its two probabilities.
    ``summaries`` are those of equally likely graphs. ``others`` replace X by a function of it, as h in (h, s).
    """
    n, counts = len(summaries), Counter(summaries)
    inputs = list(range(n) if others is None else others)
    joint, weights = Counter(zip(inputs, summaries, strict=True)), Counter(inputs)
    # In units of 1/n²: the joint probability of a pair, and the product of the probabilities of its two parts.
    smaller = sum(min(n * joint[x, s], weights[x] * counts[s]) for x in weights for s in counts)
    return Fraction(smaller, 2 * n * n)


def printed_bound(summaries: Sequence[Hashable]) -> Fraction:
    """The bound of Lemma 1 as printed: half the sum of p(s)² over all *graphs*."""
    counts = Counter(summaries)
    return Fraction(sum(counts[summary] ** 2 for summary in summaries), 2 * len(summaries) ** 2)


def mutual_information(summaries: Sequence[Hashable]) -> float:
    """MI(X; s) in bits: the entropy of s, since s is a function of X."""
    n = len(summaries)
    return sum(count / n * log2(n / count) for count in Counter(summaries).values())


def partitions(total: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a sum: the sizes of the groups into which a readout can divide the graphs."""
    if total == 0:
        yield ()
    for first in range(min(total, largest or total), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


def groupings(count: int) -> list[list[int]]:
    """The group of each of so many things, for all ways to divide them into groups, up to the order of the things."""
    return [
        [group for group, size in enumerate(sizes) for _ in range(size)]
        for sizes in partitions(count)
    ]


def theory() -> Chapter:
    """The chapter about the paper's theory: named readouts and encoders, and all possible ones."""
    graphs = small_graphs()
    named = {
        name: _measure([readout(graph) for graph in graphs]) for name, readout in READOUTS.items()
    }
    every = [_measure(summaries) for summaries in groupings(len(graphs))]
    counts = range(1, len(graphs) + 1)
    least = {
        count: min(row["error"] for row in every if row["summaries"] == count) for count in counts
    }
    # A graph with four nodes is connected if two hops from a node with most neighbours reach all of them.
    reached = {one: {node for edge in one for node in edge} for one in map(patch, graphs)}
    patches = sorted(
        (one for one in reached if len(reached[one]) == NODES),
        key=lambda edges: (len(edges), *edges),
    )
    encoders = {
        name: _encode([encoder(one) for one in patches]) for name, encoder in ENCODERS.items()
    }
    every_encoder = [_encode(vectors) for vectors in groupings(len(patches))]
    head = ["readout, or encoder of a patch", "states", "information", "error", "bound, as printed"]
    facts = [
        [
            name,
            str(row["summaries"]),
            f"{row['information']:.2f} bits",
            f"{row['error_exact']} = {row['error']:.3f}",
            f"{row['bound']:.3f}",
        ]
        for name, row in {
            **named,
            **{f"patch: {name}": row for name, row in encoders.items()},
        }.items()
    ]
    numbers = {
        "graphs": [sorted(graph) for graph in graphs],
        "readouts": named,
        "every_readout": every,
        "least_errors": least,
        "patches": [sorted(one) for one in patches],
        "encoders": encoders,
        "every_encoder": every_encoder,
    }
    story = _story(named, least, encoders, len(graphs), len(patches))
    draw = partial(_draw, graphs, named, every, encoders)
    return Chapter(
        "theory", "The paper's theory on eleven graphs", story, numbers, draw, [head, *facts]
    )


def _story(
    named: dict[str, dict[str, Any]],
    least: dict[int, float],
    encoders: dict[str, dict[str, Any]],
    graphs: int,
    patches: int,
) -> tuple[str, ...]:
    best, finest = named["all degrees"], list(encoders.values())[-1]
    return (
        f"Take the {graphs} graphs with {NODES} nodes, all equally likely, and a readout that maps each to a "
        "summary. A classifier is given a graph and a summary and must say whether they belong together. Its smallest "
        "possible error is found by enumerating all pairs; no network, no sampling.",
        f"Theorem 1: an injective readout keeps all {best['information']:.2f} bits and errs {best['error_exact']} of "
        "the time; a constant one keeps none and errs half of the time. The smallest error and the largest mutual "
        "information are reached by the same readout, and refining a readout never increases the error. Otherwise the "
        "two orders agree mostly but not always: of two readouts that group the graphs differently, the one with more "
        "information can have the larger error.",
        "Lemma 1: the injective readout meets the bound exactly. As printed, the bound sums over graphs: a summary "
        "is counted once for each graph that has it: for the constant readout the bound is "
        f"{named['constant']['bound']:g}, more than chance. Summed over summaries, it equals the error.",
        "Corollary 1: the best summary has as many states as there are graphs. The least error of all readouts with "
        + ", ".join(
            f"{format_count(count, 'state')} is {least[count]:.3f}"
            for count in (1, 2, 5, graphs - 1)
        )
        + f", and only {graphs} states reach {least[graphs]:.3f}.",
        "Theorem 2: now the classifier is given the vector of one node, computed from the node's patch (all within two "
        f"hops), and the summary of the graph. In the {patches} connected graphs the patch of a node with most "
        "neighbours determines the graph, as the theorem assumes. Of all encoders of these patches the one with the "
        f"smallest error, {finest['error_exact']}, also keeps the most of the patch, all {finest['information']:.2f} "
        "bits: it gives different patches different vectors.",
    )


def _encode(vectors: Sequence[Hashable]) -> dict[str, Any]:
    """The numbers of an encoder of patches, given the vector of each patch; the summaries are injective."""
    error = optimal_error(range(len(vectors)), vectors)
    return _measure(vectors) | {"error": float(error), "error_exact": str(error)}


def _measure(summaries: Sequence[Hashable]) -> dict[str, Any]:
    error = optimal_error(summaries)
    return {
        "summaries": len(set(summaries)),
        "information": mutual_information(summaries),
        "error": float(error),
        "error_exact": str(error),
        "bound": float(printed_bound(summaries)),
    }


def _draw(
    graphs: list[SmallGraph],
    named: dict[str, dict[str, Any]],
    every: list[dict[str, Any]],
    encoders: dict[str, dict[str, Any]],
    stacked: bool,
) -> Any:
    figure, (left, middle, right) = panels(3, stacked, ratios=(0.75, 1.1, 1.1))
    _draw_graphs(left, graphs)
    _draw_bounds(middle, named)
    _draw_information(right, named, every, encoders)
    return figure


def _draw_graphs(axes: Any, graphs: list[SmallGraph]) -> None:
    """Draw each graph on a small circle, three per row."""
    axes.set_title("The graphs")
    axes.set_aspect("equal")
    axes.set_anchor("N")
    axes.axis("off")
    corners = [
        (0.32 * cos(pi / 4 + k * pi / 2), 0.32 * sin(pi / 4 + k * pi / 2)) for k in range(NODES)
    ]
    for place, graph in enumerate(graphs):
        spots = [(place % 3 + x, y - place // 3) for x, y in corners]
        for i, j in graph:
            axes.plot(*zip(spots[i], spots[j], strict=True), color=INK, linewidth=1.8)
        axes.scatter(*zip(*spots, strict=True), s=36, color=COLOURS[0], zorder=3)


def _draw_bounds(axes: Any, named: dict[str, dict[str, Any]]) -> None:
    """Draw the error and the printed bound of each readout, joined by a line."""
    axes.set_title("Error against the bound")
    axes.set_xscale("log")
    axes.vlines(0.5, -1.1, 3.7, color=BASELINE, linewidth=1.4, linestyle=DASHED, zorder=0)
    axes.annotate(
        "chance", (0.5, -0.7), (5, 0), textcoords="offset points", color=BASELINE, va="center"
    )
    places, errors, bounds = (
        range(len(named)),
        *([row[key] for row in named.values()] for key in ("error", "bound")),
    )
    axes.hlines(places, errors, bounds, color=BASELINE, linewidth=1.4, zorder=1)
    ring = {"s": 80, "facecolor": PAPER, "edgecolor": COLOURS[1], "linewidth": 2}
    axes.scatter(bounds, places, **ring, label="bound, as printed")
    axes.scatter(errors, places, s=40, color=COLOURS[0], label="error")
    axes.set_yticks(places, named)
    axes.set_ylim(len(named) - 0.4, -1.1)
    axes.set_xlim(0.032, 9)
    axes.set_xticks([0.05, 0.5, 5], ["0.05", "0.5", "5"])
    axes.minorticks_off()
    axes.set_xlabel("error rate (log axis)")
    axes.legend(**BELOW, handletextpad=0.1, columnspacing=1)


def _draw_information(
    axes: Any,
    named: dict[str, dict[str, Any]],
    every: list[dict[str, Any]],
    encoders: dict[str, dict[str, Any]],
) -> None:
    """Draw error against mutual information, for all possible readouts, and for the named encoders of patches."""
    axes.set_title("Error against information")
    information, errors = ([row[key] for row in every] for key in ("information", "error"))
    axes.scatter(
        information,
        errors,
        s=26,
        color=BASELINE,
        alpha=0.5,
        linewidths=0,
        label="every possible readout",
    )
    places = list(
        zip(*((row["information"], row["error"]) for row in encoders.values()), strict=True)
    )
    axes.scatter(*places, s=60, marker="D", color=COLOURS[1], zorder=2, label="encoders of patches")
    for name, row in named.items():
        place = row["information"], row["error"]
        axes.scatter(*place, s=60, color=COLOURS[0], zorder=3)
        axes.annotate(name, place, (7, 7), textcoords="offset points", fontsize=12)
    axes.set_ylim(0, 0.56)
    axes.set_xlim(-0.15, 4.9)
    axes.set_xlabel("mutual information (bits)")
    axes.set_ylabel("error of the best classifier")
    axes.legend(**BELOW, handletextpad=0)
