"""Lemma 1, Corollary 1 and both theorems of the paper checked on all graphs with four nodes, by
exact enumeration."""

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

    def crossing_edges(edges: tuple[tuple[int, int], ...]) -> int:
        return sum(j - i == nodes // 2 for i, j in edges)

    pairs = list(combinations(range(nodes), 2))
    graph_by_form: dict[tuple[tuple[int, ...], ...], SmallGraph] = {}
    for size in range(len(pairs) + 1):
        # Of isomorphic graphs, take the one that is drawn with the fewest crossing edges.
        for edges in sorted(combinations(pairs, size), key=crossing_edges):
            graph_by_form.setdefault(_canonical_form(edges, nodes), frozenset(edges))
    return list(graph_by_form.values())


def _canonical_form(edges: Iterable[tuple[int, int]], nodes: int) -> tuple[tuple[int, ...], ...]:
    """The smallest edge list over all renamings of the nodes; isomorphic graphs have the same."""
    forms = []
    for new_names in permutations(range(nodes)):
        renamed = [tuple(sorted((new_names[i], new_names[j]))) for i, j in edges]
        forms.append(tuple(sorted(renamed)))
    return min(forms)


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
"""Deterministic readouts, from constant to injective. "mean degree" is the paper's mean, with
degrees as features."""


def patch(graph: SmallGraph) -> SmallGraph:
    """The patch of a two-layer encoder: all edges within two hops of a node with most neighbours,
    renamed node 0."""
    # The other end of an edge (i, j) of a node is i + j - node.
    neighbours = {node: {i + j - node for i, j in graph if node in (i, j)} for node in range(NODES)}
    centre = max(neighbours, key=lambda node: len(neighbours[node]))
    second_neighbours = {far for near in neighbours[centre] for far in neighbours[near]}
    reached = {centre} | neighbours[centre] | second_neighbours
    order = [centre, *sorted(reached - {centre})]
    names = {node: name for name, node in enumerate(order)}
    edges = [(names[i], names[j]) for i, j in graph if {i, j} <= reached]

    # Of patches that differ only in the names of the nodes around the centre, the smallest edge
    # list.
    renamed_patches = []
    for other_names in permutations(range(1, NODES)):
        new_names = (0, *other_names)
        renamed = [tuple(sorted((new_names[i], new_names[j]))) for i, j in edges]
        renamed_patches.append(sorted(renamed))
    return frozenset((i, j) for i, j in min(renamed_patches))


def _degrees_around(patch: SmallGraph, node: int = 0) -> list[int]:
    """The degrees of a node of a patch and of its neighbours, the node's own first."""
    neighbours = [i + j - node for i, j in patch if node in (i, j)]
    return [sum(member in edge for edge in patch) for member in (node, *neighbours)]


def _mean_pooling(patch: SmallGraph) -> Fraction:
    node_degrees = _degrees_around(patch)
    return Fraction(sum(node_degrees), len(node_degrees))


ENCODERS: dict[str, Callable[[SmallGraph], Hashable]] = {
    "constant": lambda patch: 0,
    "degree of the node": lambda patch: len(_degrees_around(patch)) - 1,
    "has a triangle?": lambda patch: triangles(patch) > 0,
    "mean pooling": _mean_pooling,
    "all degrees": degrees,
}
"""Deterministic encoders of a patch, from constant to injective. "mean pooling" is one layer, with
degrees as input."""


def optimal_error(
    summaries: Sequence[Hashable], inputs: Sequence[Hashable] | None = None
) -> Fraction:
    """Error of the best classifier that separates joint from product pairs (X, s), both classes
    equally likely.

    All pairs are enumerated: for each, the best classifier errs with the smaller of its two
    probabilities.

    Args:
        summaries: the summary of each of some equally likely graphs.
        inputs: a function of each graph, as h in (h, s); None: the graph itself, X.
    """
    n = len(summaries)
    if inputs is None:
        inputs = range(n)
    summary_counts = Counter(summaries)
    input_counts = Counter(inputs)
    joint_counts = Counter(zip(inputs, summaries, strict=True))

    # In units of 1/n²: the joint probability of a pair, and the product of those of its two parts.
    smaller = 0
    for x, x_count in input_counts.items():
        for s, s_count in summary_counts.items():
            smaller += min(n * joint_counts[x, s], x_count * s_count)
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
    """All ways to write a number as a sum: the sizes of the groups into which a readout can divide
    the graphs."""
    if total == 0:
        yield ()
    for first in range(min(total, largest or total), 0, -1):
        for further in partitions(total - first, first):
            yield (first, *further)


def groupings(count: int) -> list[list[int]]:
    """The group of each of so many things, for all ways to divide them into groups, up to the order
    of the things."""
    return [
        [group for group, size in enumerate(sizes) for _ in range(size)]
        for sizes in partitions(count)
    ]


def theory() -> Chapter:
    """The chapter about the paper's theory: named readouts and encoders, and all possible ones."""
    # Readouts of all graphs.
    graphs = small_graphs()
    readouts = {
        name: _measure([readout(graph) for graph in graphs]) for name, readout in READOUTS.items()
    }
    every_readout = [_measure(summaries) for summaries in groupings(len(graphs))]
    least_errors = {}
    for count in range(1, len(graphs) + 1):
        least_errors[count] = min(
            row["error"] for row in every_readout if row["summaries"] == count
        )

    # Encoders of the patches of connected graphs. A graph with four nodes is connected if two hops
    # from a node with most neighbours reach all of them.
    connected_patches = set()
    for graph in graphs:
        edges = patch(graph)
        reached = {node for edge in edges for node in edge}
        if len(reached) == NODES:
            connected_patches.add(edges)
    patches = sorted(connected_patches, key=lambda edges: (len(edges), *edges))
    encoders = {
        name: _measure_encoder([encoder(edges) for edges in patches])
        for name, encoder in ENCODERS.items()
    }
    every_encoder = [_measure_encoder(vectors) for vectors in groupings(len(patches))]

    facts = [
        ["readout, or encoder of a patch", "states", "information", "error", "bound, as printed"]
    ]
    for name, row in {
        **readouts,
        **{f"patch: {name}": row for name, row in encoders.items()},
    }.items():
        cells = [
            name,
            str(row["summaries"]),
            f"{row['information']:.2f} bits",
            f"{row['error_exact']} = {row['error']:.3f}",
            f"{row['bound']:.3f}",
        ]
        facts.append(cells)
    numbers = {
        "graphs": [sorted(graph) for graph in graphs],
        "readouts": readouts,
        "every_readout": every_readout,
        "least_errors": least_errors,
        "patches": [sorted(edges) for edges in patches],
        "encoders": encoders,
        "every_encoder": every_encoder,
    }
    story = _story(readouts, least_errors, encoders, len(graphs), len(patches))
    draw = partial(_draw, graphs, readouts, every_readout, encoders)
    return Chapter("theory", "The paper's theory on eleven graphs", story, numbers, draw, facts)


def _story(
    readouts: dict[str, dict[str, Any]],
    least_errors: dict[int, float],
    encoders: dict[str, dict[str, Any]],
    graph_count: int,
    patch_count: int,
) -> tuple[str, ...]:
    injective_readout = readouts["all degrees"]
    injective_encoder = list(encoders.values())[-1]
    some_least_errors = ", ".join(
        f"{format_count(count, 'state')} is {least_errors[count]:.3f}"
        for count in (1, 2, 5, graph_count - 1)
    )
    return (
        f"Take the {graph_count} graphs with {NODES} nodes, all equally likely, and a readout that "
        "maps each to a summary. A classifier is given a graph and a summary and must say whether "
        "they belong together. Its smallest possible error is found by enumerating all pairs; no "
        "network, no sampling.",
        f"Theorem 1: an injective readout keeps all {injective_readout['information']:.2f} bits "
        f"and errs {injective_readout['error_exact']} of the time; a constant one keeps none and "
        "errs half of the time. The smallest error and the largest mutual information are reached "
        "by the same readout, and refining a readout never increases the error. Otherwise the two "
        "orders agree mostly but not always: of two readouts that group the graphs differently, "
        "the one with more information can have the larger error.",
        "Lemma 1: the injective readout meets the bound exactly. As printed, the bound sums over "
        "graphs: a summary is counted once for each graph that has it: for the constant readout "
        f"the bound is {readouts['constant']['bound']:g}, more than chance. Summed over summaries, "
        "it equals the error.",
        "Corollary 1: the best summary has as many states as there are graphs. The least error of "
        f"all readouts with {some_least_errors}, and only {graph_count} states reach "
        f"{least_errors[graph_count]:.3f}.",
        "Theorem 2: now the classifier is given the vector of one node, computed from the node's "
        "patch (all within two hops), and the summary of the graph. In the "
        f"{patch_count} connected graphs the patch of a node with most neighbours determines the "
        "graph, as the theorem assumes. Of all encoders of these patches the one with the smallest "
        f"error, {injective_encoder['error_exact']}, also keeps the most of the patch, all "
        f"{injective_encoder['information']:.2f} bits: it gives different patches different "
        "vectors.",
    )


def _measure_encoder(vectors: Sequence[Hashable]) -> dict[str, Any]:
    """The numbers of an encoder of patches, given the vector of each patch; the summaries are
    injective."""
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
    readouts: dict[str, dict[str, Any]],
    every_readout: list[dict[str, Any]],
    encoders: dict[str, dict[str, Any]],
    stacked: bool,
) -> Any:
    figure, (left, middle, right) = panels(3, stacked, ratios=(0.75, 1.1, 1.1))
    _draw_graphs(left, graphs)
    _draw_bounds(middle, readouts)
    _draw_information(right, readouts, every_readout, encoders)
    return figure


def _draw_graphs(axes: Any, graphs: list[SmallGraph]) -> None:
    """Draw each graph on a small circle, three per row."""
    axes.set_title("The graphs")
    axes.set_aspect("equal")
    axes.set_anchor("N")
    axes.axis("off")
    angles = [pi / 4 + node * pi / 2 for node in range(NODES)]
    corners = [(0.32 * cos(angle), 0.32 * sin(angle)) for angle in angles]
    for number, graph in enumerate(graphs):
        column, row = number % 3, number // 3
        points = [(column + x, y - row) for x, y in corners]
        for i, j in graph:
            axes.plot(*zip(points[i], points[j], strict=True), color=INK, linewidth=1.8)
        axes.scatter(*zip(*points, strict=True), s=36, color=COLOURS[0], zorder=3)


def _draw_bounds(axes: Any, readouts: dict[str, dict[str, Any]]) -> None:
    """Draw the error and the printed bound of each readout, joined by a line."""
    axes.set_title("Error against the bound")
    axes.set_xscale("log")
    axes.vlines(0.5, -1.1, 3.7, color=BASELINE, linewidth=1.4, linestyle=DASHED, zorder=0)
    axes.annotate(
        "chance", (0.5, -0.7), (5, 0), textcoords="offset points", color=BASELINE, va="center"
    )
    heights = range(len(readouts))
    errors = [row["error"] for row in readouts.values()]
    bounds = [row["bound"] for row in readouts.values()]
    axes.hlines(heights, errors, bounds, color=BASELINE, linewidth=1.4, zorder=1)
    ring = {"s": 80, "facecolor": PAPER, "edgecolor": COLOURS[1], "linewidth": 2}
    axes.scatter(bounds, heights, **ring, label="bound, as printed")
    axes.scatter(errors, heights, s=40, color=COLOURS[0], label="error")
    axes.set_yticks(heights, readouts)
    axes.set_ylim(len(readouts) - 0.4, -1.1)
    axes.set_xlim(0.032, 9)
    axes.set_xticks([0.05, 0.5, 5], ["0.05", "0.5", "5"])
    axes.minorticks_off()
    axes.set_xlabel("error rate (log axis)")
    axes.legend(**BELOW, handletextpad=0.1, columnspacing=1)


def _draw_information(
    axes: Any,
    readouts: dict[str, dict[str, Any]],
    every_readout: list[dict[str, Any]],
    encoders: dict[str, dict[str, Any]],
) -> None:
    """Draw error against mutual information, for all possible readouts, and for the named encoders
    of patches."""
    axes.set_title("Error against information")
    axes.scatter(
        [row["information"] for row in every_readout],
        [row["error"] for row in every_readout],
        s=26,
        color=BASELINE,
        alpha=0.5,
        linewidths=0,
        label="every possible readout",
    )
    axes.scatter(
        [row["information"] for row in encoders.values()],
        [row["error"] for row in encoders.values()],
        s=60,
        marker="D",
        color=COLOURS[1],
        zorder=2,
        label="encoders of patches",
    )
    for name, row in readouts.items():
        point = row["information"], row["error"]
        axes.scatter(*point, s=60, color=COLOURS[0], zorder=3)
        axes.annotate(name, point, (7, 7), textcoords="offset points", fontsize=12)
    axes.set_ylim(0, 0.56)
    axes.set_xlim(-0.15, 4.9)
    axes.set_xlabel("mutual information (bits)")
    axes.set_ylabel("error of the best classifier")
    axes.legend(**BELOW, handletextpad=0)
