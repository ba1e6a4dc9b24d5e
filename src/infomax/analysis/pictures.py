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
ROUNDING = 1e-6
PERPLEXITY = 30.0
EARLY, LATE = 250, 750
"""Steps of t-SNE; both are those of its authors."""


def sample_rows(n: int, size: int, seed: int) -> NDArray[np.int64]:
    """At most ``size`` of the rows 0 to n - 1, drawn without replacement, in ascending order."""
    rows: NDArray[np.int64] = np.random.default_rng(seed).permutation(n)[:size]
    return np.sort(rows)


def tsne(vectors: Any, *, seed: int, progress: Progress = silent) -> NDArray[np.float32]:
    """t-SNE of ``[n, d]`` vectors (dense or CSR) in the plane ``[n, 2]``, from their first 50 principal components.

    It starts from the first two components, which keeps distant groups apart.
    """
    components = _principal(vectors, seed)
    if not components.any():
        return components[:, :2]
    # The perplexity must be below a third of the number of points.
    edges = affinities(components, min(PERPLEXITY, (len(components) - 1) / 3))
    start = (components[:, :2] / components[:, 0].std()).astype(np.float32)
    return descend(start, edges, EARLY, LATE, fine=True, progress=progress)


def umap(vectors: Any, *, seed: int, progress: Progress = silent) -> NDArray[np.float32]:
    """UMAP of ``[n, d]`` vectors in the plane ``[n, 2]``, from the same components and the same start as `tsne`.

    It tells no progress.
    """
    package = library("umap", "umap", "--projection umap")
    components = _principal(vectors, seed)
    if not components.any():
        return components[:, :2]
    neighbours = max(2, min(15, len(components) - 1))
    # One thread: with more, the result would depend on more than the seed.
    method = package.UMAP(n_neighbors=neighbours, init="pca", random_state=seed, n_jobs=1)
    points: NDArray[np.float32] = method.fit_transform(components)
    return points


def _principal(vectors: Any, seed: int) -> NDArray[Any]:
    """The first 50 principal components of ``[n, d]`` vectors, dense or CSR; all 0 if all vectors are equal."""
    from sklearn.decomposition import PCA

    n, d = vectors.shape
    if min(n, d) < 2:
        raise InputError("vectors", "at least two rows and two columns", f"shape [{n}, {d}]")
    if (vectors.max(axis=0) - vectors.min(axis=0)).max() <= ROUNDING * abs(vectors).max():
        return np.zeros(
            (n, 2), np.float32
        )  # all equal: t-SNE would divide by their deviation, 0 or rounding
    if sparse.issparse(vectors) and min(n, d) <= COMPONENTS:
        vectors = vectors.toarray()  # small, and the sparse solver cannot compute all components
    solver = "arpack" if sparse.issparse(vectors) else "auto"
    components: NDArray[Any] = PCA(
        min(COMPONENTS, n, d), svd_solver=solver, random_state=seed
    ).fit_transform(vectors)
    return components


def scatter(points: NDArray[Any], groups: NDArray[Any], path: str | Path, title: str) -> None:
    """Write points ``[n, 2]``, coloured by their groups ``[n]`` (text; "" = no group), as a PNG.

    The largest groups have a colour, a name where they are densest, and a line in the legend; the rest are grey.
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
    write_names(
        axes, [(name, _heart(points[names == name]), colour) for name, colour in colours.items()]
    )
    with replacing(Path(path)) as temporary:
        figure.savefig(temporary, format="png")


def colour_groups(names: NDArray[Any]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Colours for the largest groups of ``[n]`` names, and the legend's entries (colour, text) for all groups."""
    sizes = Counter(names.tolist())
    unknown = sizes.pop("", 0)
    colours = {
        name: colour for (name, _), colour in zip(sizes.most_common(), COLOURS, strict=False)
    }
    entries = [
        (colour, f"{shorten_middle(name)}  ({sizes[name]:,})") for name, colour in colours.items()
    ]
    if others := [size for name, size in sizes.items() if name not in colours]:
        entries.append((GREY, f"{len(others)} smaller groups  ({sum(others):,})"))
    if unknown:
        entries.append((PALE, f"no group  ({unknown:,})"))
    return colours, entries


def draw_points(
    axes: Any, points: NDArray[Any], names: NDArray[Any], colours: dict[str, str]
) -> None:
    """Draw points ``[n, 2]`` in the colours of their groups; in random order, so that no group covers another."""
    order = np.random.default_rng(0).permutation(len(points))
    order = order[np.argsort([names[row] in colours for row in order], kind="stable")]
    _dots(
        axes,
        points[order],
        alpha=0.85,
        c=[colours.get(name, GREY if name else PALE) for name in names[order]],
    )


def draw_values(
    axes: Any, points: NDArray[Any], values: NDArray[Any], limits: tuple[float, float]
) -> Any:
    """Draw points ``[n, 2]`` coloured by values ``[n]``, the highest on top; returns the input of a colour bar."""
    order = np.argsort(values, kind="stable")
    return _dots(
        axes, points[order], c=values[order], cmap=SEQUENTIAL, vmin=limits[0], vmax=limits[1]
    )


def _dots(axes: Any, points: NDArray[Any], **paint: Any) -> Any:
    """Draw dots in a square, their size chosen by their number; as pixels, so that an SVG stays small."""
    low, high = points.min(axis=0), points.max(axis=0)
    # All panels are squares. Points that are all equal have no extent.
    (left, bottom), (right, top) = (
        (low + high) / 2 + side * ((high - low).max() or 1) for side in (-0.53, 0.53)
    )
    axes.set(xticks=[], yticks=[], aspect="equal", xlim=(left, right), ylim=(bottom, top))
    axes.spines[:].set_visible(False)
    reach = axes.get_position().width * axes.figure.get_figwidth()
    diameter = np.clip(30 * reach / np.sqrt(len(points)), 2, 9)
    return axes.scatter(*points.T, s=diameter**2, linewidths=0, rasterized=True, **paint)


def _heart(points: NDArray[Any]) -> NDArray[Any]:
    """The point of ``[n, 2]`` whose nearest quarter of all points is closest; it is never between two clusters."""
    from scipy.spatial import KDTree

    reach, _ = KDTree(points).query(points, k=[1 + len(points) // 4])
    heart: NDArray[Any] = points[reach[:, 0].argmin()]
    return heart


def shorten_middle(name: str, width: int = 24) -> str:
    """A name without control characters, and a long one without its middle: ids often differ at their ends."""
    name = visible(name)
    return (
        name
        if len(name) <= width
        else f"{name[: width // 2]}\N{HORIZONTAL ELLIPSIS}{name[1 - width // 2 :]}"
    )


def write_legend(
    figure: Any,
    entries: list[tuple[str, str]],
    place: str,
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
        loc=place,
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
    """Write names, each given with its place and colour, at their places or ``lift`` points above.

    A name that has no room there is put as near as possible and joined to its place by a line. Names stay inside the
    axes, do not overlap, and are written in a darker shade of their colours.
    """
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import Bbox

    axes.figure.draw_without_rendering()  # lays the figure out, so that positions on the page are known
    page = axes.get_window_extent()
    pixel = 72 / axes.figure.dpi  # in points, so that the layout does not depend on dpi
    spots = axes.transData.transform([place for _, place, _ in names])
    # A place whose name is above it must not be covered by another name.
    taken = (
        [Bbox.from_bounds(x, y, 0, 0).padded(lift / 2 / pixel) for x, y in spots] if lift else []
    )
    turns = np.radians([0, 45, -45, 90, -90, 135, -135, 180])
    steps = [
        reach / pixel * np.array([np.sin(a), np.cos(a)])
        for reach in np.arange(lift, 200, 2)
        for a in turns
    ]
    for (name, place, colour), spot in sorted(
        zip(names, spots, strict=True), key=lambda item: float(item[1][1])
    ):
        shade = INK if colour == INK else to_hex(tuple(0.6 * part for part in to_rgb(colour)))  # type: ignore[arg-type]
        text = axes.annotate(
            shorten_middle(name),
            place,
            (0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
        )
        halo = [withStroke(linewidth=4, foreground=PAPER)]
        text.set(
            fontsize=fontsize,
            fontweight="bold",
            color=shade,
            path_effects=halo,
            in_layout=False,
            parse_math=False,
        )
        start = text.get_window_extent().padded(
            fontsize / 4 / pixel, 0
        )  # keeps a gap between names side by side
        for step in steps:
            box = start.translated(*step)
            box = box.translated(
                *(np.maximum(page.min - box.min, 0) + np.minimum(page.max - box.max, 0))
            )
            if not any(box.overlaps(other) for other in taken):
                break
        taken.append(box)
        text.xyann = pixel * (box.min - start.min)
        edge = pixel * (np.clip(spot, box.min, box.max) - spot)
        if np.hypot(*edge) > lift:
            line = {
                "arrowstyle": "-",
                "color": shade,
                "linewidth": 0.8,
                "shrinkA": 0,
                "shrinkB": lift / 3,
            }
            axes.annotate(
                "", place, edge, textcoords="offset points", arrowprops=line, in_layout=False
            )
