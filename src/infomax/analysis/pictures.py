"""Pictures of vectors: t-SNE or UMAP to the plane, and a scatter plot that anyone can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.analysis.style import COLOURS, GREY, INK, PALE, PAPER, SEQUENTIAL, matplotlib
from infomax.errors import InputError
from infomax.io.atomic import replacing

COMPONENTS = 50
ROUNDING = 1e-6


def sample_rows(n: int, size: int, seed: int) -> NDArray[np.int64]:
    """At most ``size`` of the rows 0 to n - 1, drawn without replacement, in ascending order."""
    rows: NDArray[np.int64] = np.random.default_rng(seed).permutation(n)[:size]
    return np.sort(rows)


def tsne(vectors: Any, *, seed: int, iterations: int = 500) -> NDArray[np.float32]:
    """t-SNE of ``[n, d]`` vectors (dense or CSR) in the plane ``[n, 2]``, from their first 50 principal components.

    It starts from the first two components, so that what is far apart there begins far apart. Time grows a little
    faster than n: draw a few thousand rows with `sample_rows` first.
    """
    from sklearn.manifold import TSNE

    components = _principal(vectors, seed)
    if not components.any():
        return components[:, :2]
    # A neighbourhood cannot be wider than a third of what there is.
    perplexity = min(30.0, (len(components) - 1) / 3)
    method = TSNE(init="pca", perplexity=perplexity, max_iter=iterations, random_state=seed)
    points: NDArray[np.float32] = method.fit_transform(components)
    return points


def umap(vectors: Any, *, seed: int) -> NDArray[np.float32]:
    """UMAP of ``[n, d]`` vectors in the plane ``[n, 2]``, from the same components and the same start as `tsne`."""
    library, components = umap_library(), _principal(vectors, seed)
    if not components.any():
        return components[:, :2]
    neighbours = max(2, min(15, len(components) - 1))
    # One thread: with more, a seed would not be kept.
    method = library.UMAP(n_neighbors=neighbours, init="pca", random_state=seed, n_jobs=1)
    points: NDArray[np.float32] = method.fit_transform(components)
    return points


def umap_library() -> Any:
    """The module, or the advice to install it."""
    try:
        import umap
    except ModuleNotFoundError:
        raise InputError("--projection umap", "umap-learn", "none installed", "pip install 'infomax[umap]'") from None
    return umap


def _principal(vectors: Any, seed: int) -> NDArray[Any]:
    """The first 50 principal components of ``[n, d]`` vectors, dense or CSR; all 0 where all vectors are alike."""
    from sklearn.decomposition import PCA

    n, d = vectors.shape
    if min(n, d) < 2:
        raise InputError("vectors", "at least two rows and two columns", f"shape [{n}, {d}]")
    if (vectors.max(axis=0) - vectors.min(axis=0)).max() <= ROUNDING * abs(vectors).max():
        return np.zeros((n, 2), np.float32)  # all in one place: their deviation is 0 or rounding, and is divided by
    if sparse.issparse(vectors) and min(n, d) <= COMPONENTS:
        vectors = vectors.toarray()  # small, and the sparse solver cannot give all of its components
    solver = "arpack" if sparse.issparse(vectors) else "auto"
    components: NDArray[Any] = PCA(min(COMPONENTS, n, d), svd_solver=solver, random_state=seed).fit_transform(vectors)
    return components


def scatter(points: NDArray[Any], groups: NDArray[Any], path: str | Path, title: str) -> None:
    """Points ``[n, 2]`` coloured by their groups ``[n]`` (text; "" = no group), as a PNG at ``path``.

    The largest groups have a colour, a name where they are densest and a line in the legend; the rest are grey.
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
    write_names(axes, [(name, _heart(points[names == name]), colour) for name, colour in colours.items()])
    with replacing(Path(path)) as temporary:
        figure.savefig(temporary, format="png")


def colour_groups(names: NDArray[Any]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The largest groups of ``[n]`` names by colour, and the entries of a legend, (colour, text), for all there are."""
    sizes = Counter(names.tolist())
    unknown = sizes.pop("", 0)
    colours = {name: colour for (name, _), colour in zip(sizes.most_common(), COLOURS, strict=False)}
    entries = [(colour, f"{shorten_middle(name)}  ({sizes[name]:,})") for name, colour in colours.items()]
    if others := [size for name, size in sizes.items() if name not in colours]:
        entries.append((GREY, f"{len(others)} smaller groups  ({sum(others):,})"))
    if unknown:
        entries.append((PALE, f"no group  ({unknown:,})"))
    return colours, entries


def draw_points(axes: Any, points: NDArray[Any], names: NDArray[Any], colours: dict[str, str]) -> None:
    """Points ``[n, 2]`` in the colours of their groups, in random order so that none is on top; grey ones below."""
    order = np.random.default_rng(0).permutation(len(points))
    order = order[np.argsort([names[row] in colours for row in order], kind="stable")]
    _dots(axes, points[order], alpha=0.85, c=[colours.get(name, GREY if name else PALE) for name in names[order]])


def draw_values(axes: Any, points: NDArray[Any], values: NDArray[Any], limits: tuple[float, float]) -> Any:
    """Points ``[n, 2]`` in the colours of their values ``[n]``, the highest on top; what a colour bar needs."""
    order = np.argsort(values, kind="stable")
    return _dots(axes, points[order], c=values[order], cmap=SEQUENTIAL, vmin=limits[0], vmax=limits[1])


def _dots(axes: Any, points: NDArray[Any], **paint: Any) -> Any:
    """Dots whose size suits their number and the page, in a square; as pixels, so that an SVG stays small."""
    low, high = points.min(axis=0), points.max(axis=0)
    # Squares are all laid out alike. Points that are all in one place have no extent.
    (left, bottom), (right, top) = ((low + high) / 2 + side * ((high - low).max() or 1) for side in (-0.53, 0.53))
    axes.set(xticks=[], yticks=[], aspect="equal", xlim=(left, right), ylim=(bottom, top))
    axes.spines[:].set_visible(False)
    reach = axes.get_position().width * axes.figure.get_figwidth()
    diameter = np.clip(30 * reach / np.sqrt(len(points)), 2, 9)
    return axes.scatter(*points.T, s=diameter**2, linewidths=0, rasterized=True, **paint)


def _heart(points: NDArray[Any]) -> NDArray[Any]:
    """The one of ``[n, 2]`` points that has a quarter of them closest around it; never between two clusters."""
    from scipy.spatial import KDTree

    reach, _ = KDTree(points).query(points, k=[1 + len(points) // 4])
    heart: NDArray[Any] = points[reach[:, 0].argmin()]
    return heart


def shorten_middle(name: str, width: int = 24) -> str:
    """A long name without its middle: ids and classes are often told apart by their ends."""
    return name if len(name) <= width else f"{name[: width // 2]}\N{HORIZONTAL ELLIPSIS}{name[1 - width // 2 :]}"


def write_legend(
    figure: Any,
    entries: list[tuple[str, str]],
    place: str,
    *,
    columns: int = 1,
    fontsize: float = 12,
    markersize: float = 8,
) -> None:
    """A dot and a text an entry, outside the picture."""
    from matplotlib.lines import Line2D

    dots = [Line2D([], [], linestyle="", marker="o", color=colour, label=text) for colour, text in entries]
    for dot in dots:
        dot.set_markersize(markersize)
    legend = figure.legend(
        handles=dots, loc=place, frameon=False, fontsize=fontsize, labelcolor=INK, handletextpad=0, ncols=columns
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a name may have dollars in it


def write_names(
    axes: Any, names: Sequence[tuple[str, NDArray[Any], str]], *, fontsize: float = 14, lift: float = 0
) -> None:
    """Names, each with its place and colour: there or ``lift`` points above; else as near as there is room, by a line.

    They keep inside the axes and off each other, and are written in a darker shade of their colours.
    """
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import Bbox

    axes.figure.draw_without_rendering()  # only then is it known where on the page a place is
    page, pixel = axes.get_window_extent(), 72 / axes.figure.dpi  # in points, so that a picture of any dpi is the same
    spots = axes.transData.transform([place for _, place, _ in names])
    # A place that has its name above is not to be covered by another's.
    taken = [Bbox.from_bounds(x, y, 0, 0).padded(lift / 2 / pixel) for x, y in spots] if lift else []
    turns = np.radians([0, 45, -45, 90, -90, 135, -135, 180])
    steps = [reach / pixel * np.array([np.sin(a), np.cos(a)]) for reach in np.arange(lift, 200, 2) for a in turns]
    for (name, place, colour), spot in sorted(zip(names, spots, strict=True), key=lambda item: float(item[1][1])):
        shade = INK if colour == INK else to_hex(tuple(0.6 * part for part in to_rgb(colour)))  # type: ignore[arg-type]
        text = axes.annotate(shorten_middle(name), place, (0, 0), textcoords="offset points", ha="center", va="center")
        halo = [withStroke(linewidth=4, foreground=PAPER)]
        text.set(
            fontsize=fontsize, fontweight="bold", color=shade, path_effects=halo, in_layout=False, parse_math=False
        )
        start = text.get_window_extent().padded(fontsize / 4 / pixel, 0)  # two names side by side are not one
        for step in steps:
            box = start.translated(*step)
            box = box.translated(*(np.maximum(page.min - box.min, 0) + np.minimum(page.max - box.max, 0)))
            if not any(box.overlaps(other) for other in taken):
                break
        taken.append(box)
        text.xyann = pixel * (box.min - start.min)
        edge = pixel * (np.clip(spot, box.min, box.max) - spot)
        if np.hypot(*edge) > lift:
            line = {"arrowstyle": "-", "color": shade, "linewidth": 0.8, "shrinkA": 0, "shrinkB": lift / 3}
            axes.annotate("", place, edge, textcoords="offset points", arrowprops=line, in_layout=False)
