"""Pictures of vectors: t-SNE or UMAP to the plane, and labelled scatter plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.analysis.style import COLOURS, GREY, INK, PALE, PAPER, SEQUENTIAL, matplotlib
from infomax.analysis.tsne import affinities, descend
from infomax.errors import InputError, library, visible
from infomax.io.atomic import replacing
from infomax.progress import Progress, silent

COMPONENTS = 50
"""Principal components that vectors are reduced to before they are projected to the plane."""
LARGEST_ROUNDING = 1e-6
"""Differences between vectors, as a share of their largest entry, that are only rounding."""
PERPLEXITY = 30.0
EARLY_STEPS, LATE_STEPS = 250, 750
"""Steps of t-SNE; both are those of its authors."""
SMALLEST_DOT, LARGEST_DOT = 2, 9
"""Diameters of a dot, in points."""
FARTHEST_NAME = 200
"""How far a name may be moved to find room, in points."""


# Projections


def sample_rows(row_count: int, size: int, seed: int) -> NDArray[np.int64]:
    """At most ``size`` rows, drawn without replacement, in ascending order."""
    rows: NDArray[np.int64] = np.random.default_rng(seed).permutation(row_count)[:size]
    return np.sort(rows)


def tsne(vectors: Any, *, seed: int, progress: Progress = silent) -> NDArray[np.float32]:
    """t-SNE of ``[n, d]`` vectors (dense or CSR) in the plane ``[n, 2]``.

    It is computed from their first 50 principal components, or from as many as there are, and
    starts from the first two: a random start loses the arrangement of distant groups.

    Args:
        vectors: the vectors.
        seed: of the solver of the components; nothing else is random.
        progress: is told the steps of the descent.
    """
    components = _principal_components(vectors, seed)
    if not components.any():
        return components[:, :2]
    # The perplexity must be below a third of the number of points.
    edges = affinities(components, min(PERPLEXITY, (len(components) - 1) / 3))
    # The descent expects a start with a deviation of about 1.
    start = (components[:, :2] / components[:, 0].std()).astype(np.float32)
    return descend(start, edges, EARLY_STEPS, LATE_STEPS, fine=True, progress=progress)


def umap(vectors: Any, *, seed: int, progress: Progress = silent) -> NDArray[np.float32]:
    """UMAP of ``[n, d]`` vectors in the plane ``[n, 2]``, from the same components as `tsne`.

    UMAP has no callback, so nothing is told to ``progress``.
    """
    package = library("umap", "umap", "--projection umap")
    components = _principal_components(vectors, seed)
    if not components.any():
        return components[:, :2]
    neighbour_count = max(2, min(15, len(components) - 1))
    # One thread: with more, the result would depend on more than the seed.
    method = package.UMAP(n_neighbors=neighbour_count, init="pca", random_state=seed, n_jobs=1)
    points: NDArray[np.float32] = method.fit_transform(components)
    return points


def _principal_components(vectors: Any, seed: int) -> NDArray[Any]:
    """The first principal components of ``[n, d]`` vectors; all 0 if all vectors are equal."""
    from sklearn.decomposition import PCA

    n, d = vectors.shape
    if min(n, d) < 2:
        raise InputError("vectors", "at least two rows and two columns", f"shape [{n}, {d}]")
    largest_difference = (vectors.max(axis=0) - vectors.min(axis=0)).max()
    if largest_difference <= LARGEST_ROUNDING * abs(vectors).max():
        # t-SNE would divide by their deviation, which is 0 or rounding.
        return np.zeros((n, 2), np.float32)

    solver = "auto"
    if sparse.issparse(vectors):
        solver = "arpack"
        if min(n, d) <= COMPONENTS:
            # They are small, and the sparse solver cannot compute all components.
            vectors = vectors.toarray()
            solver = "auto"
    method = PCA(min(COMPONENTS, n, d), svd_solver=solver, random_state=seed)
    components: NDArray[Any] = method.fit_transform(vectors)
    return components


# Scatter plots


def scatter(points: NDArray[Any], groups: NDArray[Any], path: str | Path, title: str) -> None:
    """Write points ``[n, 2]``, coloured by their groups ``[n]`` (text; "" = no group), as a PNG.

    The largest groups have a colour, a name where they are densest, and a line in the legend. All
    other points are grey.
    """
    matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    names = np.array([str(name) for name in groups.tolist()], dtype=object)
    colours, entries = colour_groups(names)
    figure = Figure(figsize=(10, 7), dpi=160, layout=ConstrainedLayoutEngine(w_pad=0.2, h_pad=0.2))
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=19, fontweight="bold", color=INK, pad=10)
    draw_points(axes, points, names, colours)
    write_legend(figure, entries, "outside right center", fontsize=13.5)
    labels = [
        (name, _densest_point(points[names == name]), colour) for name, colour in colours.items()
    ]
    write_names(axes, labels)
    with replacing(Path(path)) as temporary:
        figure.savefig(temporary, format="png")


def colour_groups(names: NDArray[Any]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Colours for the largest groups of ``[n]`` names, and the legend for all groups.

    The entries of the legend are pairs of a colour and a text.
    """
    sizes = Counter(names.tolist())
    size_without_group = sizes.pop("", 0)
    largest_first = [name for name, _ in sizes.most_common()]
    colours = dict(zip(largest_first, COLOURS, strict=False))

    entries = [
        (colour, f"{shorten_middle(name)}  ({sizes[name]:,})") for name, colour in colours.items()
    ]
    grey_sizes = [size for name, size in sizes.items() if name not in colours]
    if grey_sizes:
        entries.append((GREY, f"{len(grey_sizes)} smaller groups  ({sum(grey_sizes):,})"))
    if size_without_group:
        entries.append((PALE, f"no group  ({size_without_group:,})"))
    return colours, entries


def draw_points(
    axes: Any, points: NDArray[Any], names: NDArray[Any], colours: dict[str, str]
) -> None:
    """Draw points ``[n, 2]`` in the colours of their groups, by the names ``[n]`` of these.

    They are drawn in random order, so that no group covers another; grey ones come first.
    """
    order = np.random.default_rng(0).permutation(len(points))
    has_colour = [names[row] in colours for row in order]
    order = order[np.argsort(has_colour, kind="stable")]
    dot_colours = []
    for name in names[order]:
        grey = GREY if name else PALE
        dot_colours.append(colours.get(name, grey))
    _draw_dots(axes, points[order], alpha=0.85, c=dot_colours)


def draw_values(
    axes: Any, points: NDArray[Any], values: NDArray[Any], limits: tuple[float, float]
) -> Any:
    """Draw points ``[n, 2]`` coloured by values ``[n]``, the highest on top.

    Returns what a colour bar is made of.
    """
    order = np.argsort(values, kind="stable")
    low, high = limits
    return _draw_dots(axes, points[order], c=values[order], cmap=SEQUENTIAL, vmin=low, vmax=high)


def _draw_dots(axes: Any, points: NDArray[Any], **paint: Any) -> Any:
    """Draw dots in a square, whose size depends on their number.

    They are pixels also in an SVG, so that it stays small.
    """
    # All panels are squares. Points that are all equal have no extent.
    low = points.min(axis=0)
    high = points.max(axis=0)
    side = (high - low).max() or 1
    left, bottom = (low + high) / 2 - 0.53 * side
    right, top = (low + high) / 2 + 0.53 * side
    axes.set(xticks=[], yticks=[], aspect="equal", xlim=(left, right), ylim=(bottom, top))
    axes.spines[:].set_visible(False)

    width_in_inches = axes.get_position().width * axes.figure.get_figwidth()
    diameter = np.clip(30 * width_in_inches / np.sqrt(len(points)), SMALLEST_DOT, LARGEST_DOT)
    return axes.scatter(*points.T, s=diameter**2, linewidths=0, rasterized=True, **paint)


def _densest_point(points: NDArray[Any]) -> NDArray[Any]:
    """The point of ``[n, 2]`` whose nearest quarter of all points is closest.

    Unlike the mean, it never lies between two clusters.
    """
    from scipy.spatial import KDTree

    distances, _ = KDTree(points).query(points, k=[1 + len(points) // 4])
    densest: NDArray[Any] = points[distances[:, 0].argmin()]
    return densest


# Names and legends


def shorten_middle(name: str, width: int = 24) -> str:
    """A name without control characters, and a long one without its middle.

    Ids often differ at their ends.
    """
    name = visible(name)
    if len(name) <= width:
        return name
    return f"{name[: width // 2]}\N{HORIZONTAL ELLIPSIS}{name[1 - width // 2 :]}"


def write_legend(
    figure: Any,
    entries: list[tuple[str, str]],
    location: str,
    *,
    columns: int = 1,
    fontsize: float = 12,
) -> None:
    """Write a legend outside the axes: one dot and one text per entry."""
    from matplotlib.lines import Line2D

    shape: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 8}
    dots = [Line2D([], [], color=colour, label=text, **shape) for colour, text in entries]
    legend = figure.legend(
        handles=dots,
        loc=location,
        frameon=False,
        fontsize=fontsize,
        labelcolor=INK,
        handletextpad=0,
        ncols=columns,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a name may contain dollar signs


def write_names(
    axes: Any,
    names: Sequence[tuple[str, NDArray[Any], str]],
    *,
    fontsize: float = 14,
    lift: float = 0,
) -> None:
    """Write names at their points, or ``lift`` typographic points above.

    A name that has no room there is put as near as possible and joined to its point by a line.
    Names stay inside the axes, do not overlap, and are written in a darker shade of their colours.

    Args:
        axes: what they are written on.
        names: each name, its point ``[2]``, and its colour.
        fontsize: the size of the letters.
        lift: how far above its point a name is written.
    """
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import Bbox

    axes.figure.draw_without_rendering()  # lays the figure out: positions on the page are known
    page = axes.get_window_extent()
    pixel = 72 / axes.figure.dpi  # in points, so that the layout does not depend on dpi
    spots = axes.transData.transform([point for _, point, _ in names])

    # A point whose name is above it must not be covered by another name.
    taken = []
    if lift:
        taken = [Bbox.from_bounds(x, y, 0, 0).padded(lift / 2 / pixel) for x, y in spots]

    # The moves that are tried, the nearest first: eight directions, above before below.
    angles = np.radians([0, 45, -45, 90, -90, 135, -135, 180])
    moves = [
        distance / pixel * np.array([np.sin(angle), np.cos(angle)])
        for distance in np.arange(lift, FARTHEST_NAME, 2)
        for angle in angles
    ]

    # From the bottom up.
    named_spots = sorted(zip(names, spots, strict=True), key=lambda pair: float(pair[1][1]))
    for (name, point, colour), spot in named_spots:
        shade = _darker(colour)
        text = axes.annotate(
            shorten_middle(name),
            point,
            (0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
        )
        text.set(
            fontsize=fontsize,
            fontweight="bold",
            color=shade,
            path_effects=[withStroke(linewidth=4, foreground=PAPER)],
            in_layout=False,
            parse_math=False,
        )

        # The padding keeps a gap between names side by side.
        centred_box = text.get_window_extent().padded(fontsize / 4 / pixel, 0)
        for move in moves:
            box = centred_box.translated(*move)
            into_page = np.maximum(page.min - box.min, 0) + np.minimum(page.max - box.max, 0)
            box = box.translated(*into_page)
            if not any(box.overlaps(taken_box) for taken_box in taken):
                break
        taken.append(box)
        text.xyann = pixel * (box.min - centred_box.min)

        nearest_edge = pixel * (np.clip(spot, box.min, box.max) - spot)
        if np.hypot(*nearest_edge) > lift:
            line = {
                "arrowstyle": "-",
                "color": shade,
                "linewidth": 0.8,
                "shrinkA": 0,
                "shrinkB": lift / 3,
            }
            axes.annotate(
                "",
                point,
                nearest_edge,
                textcoords="offset points",
                arrowprops=line,
                in_layout=False,
            )


def _darker(colour: str) -> str:
    """A darker shade of a colour, in which text is readable."""
    from matplotlib.colors import to_hex, to_rgb

    if colour == INK:
        return INK
    red, green, blue = to_rgb(colour)
    return str(to_hex((0.6 * red, 0.6 * green, 0.6 * blue)))
