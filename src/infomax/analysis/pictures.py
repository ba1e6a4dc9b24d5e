"""Pictures of vectors: t-SNE to the plane, and a scatter plot that anyone can read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError
from infomax.io.atomic import replacing

# Twelve colours chosen so that the closest two stay apart for all eyes: in OKLab by 0.18 with full colour vision and by
# 0.09 with no red or no green cones (Okabe and Ito's seven: 0.08). The first few are the furthest apart.
COLOURS = (
    "#3b7ced", "#bf3c37", "#b6d00c", "#780e6c", "#01b4a9", "#1738a7",
    "#d68af7", "#693a0b", "#10796a", "#ac49b3", "#fa7777", "#a7861f",
)  # fmt: skip
GREY, PALE, INK = "#c7c7c7", "#e4e4e4", "#2b2b2b"


def sample_rows(n: int, size: int, seed: int) -> NDArray[np.int64]:
    """At most ``size`` of the rows 0 to n - 1, drawn without replacement, in ascending order."""
    rows: NDArray[np.int64] = np.random.default_rng(seed).permutation(n)[:size]
    return np.sort(rows)


def tsne(vectors: NDArray[Any], *, seed: int) -> NDArray[np.float32]:
    """t-SNE of ``[n, d]`` vectors in the plane ``[n, 2]``, from their first 50 principal components.

    It starts from the first two components, so that what is far apart there begins far apart. Time grows a little
    faster than n: draw a few thousand rows with `sample_rows` first.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    n, d = vectors.shape
    if min(n, d) < 2:
        raise InputError("vectors", "at least two rows and two columns", f"shape [{n}, {d}]")
    components = PCA(min(50, n, d), random_state=seed).fit_transform(vectors)
    # A neighbourhood cannot be wider than a third of what there is.
    method = TSNE(init="pca", perplexity=min(30.0, (n - 1) / 3), max_iter=500, random_state=seed)
    points: NDArray[np.float32] = method.fit_transform(components)
    return points


def scatter(points: NDArray[Any], groups: NDArray[Any], path: str | Path, title: str) -> None:
    """Points ``[n, 2]`` coloured by their groups ``[n]`` (text; "" = no group), as a PNG at ``path``.

    The largest groups have a colour, a name where they are densest and a line in the legend; the rest are grey.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ModuleNotFoundError:
        raise InputError("picture", "matplotlib", "none installed", "pip install 'infomax[viz]'") from None

    names = np.array([str(name) for name in groups.tolist()], dtype=object)
    sizes = Counter(names.tolist())
    unknown = sizes.pop("", 0)
    colours = {name: colour for (name, _), colour in zip(sizes.most_common(), COLOURS, strict=False)}
    figure = Figure(figsize=(10, 7), dpi=160, layout=ConstrainedLayoutEngine(w_pad=0.2, h_pad=0.2))
    axes = figure.add_subplot(aspect="equal")
    axes.axis("off")
    axes.set_title(title, loc="left", fontsize=19, fontweight="bold", color=INK, pad=10)
    # In random order, so that no group lies on top of another; but the grey ones lie below.
    order = np.random.default_rng(0).permutation(len(points))
    order = order[np.argsort([names[row] in colours for row in order], kind="stable")]
    diameter = np.clip(240 / np.sqrt(len(points)), 2, 9)
    paint = [colours.get(name, GREY if name else PALE) for name in names[order]]
    axes.scatter(points[order, 0], points[order, 1], s=diameter**2, c=paint, alpha=0.85, linewidths=0)
    entries = [(colour, f"{name}  ({sizes[name]:,})") for name, colour in colours.items()]
    if others := [size for name, size in sizes.items() if name not in colours]:
        entries.append((GREY, f"{len(others)} smaller groups  ({sum(others):,})"))
    if unknown:
        entries.append((PALE, f"no group  ({unknown:,})"))
    _write_legend(figure, entries)
    _write_names(axes, {name: _heart(points[names == name]) for name in colours}, colours)
    with replacing(Path(path)) as temporary:
        figure.savefig(temporary, format="png")


def _heart(points: NDArray[Any]) -> NDArray[Any]:
    """The one of ``[n, 2]`` points that has a quarter of them closest around it; never between two clusters."""
    from scipy.spatial import KDTree

    reach, _ = KDTree(points).query(points, k=[1 + len(points) // 4])
    heart: NDArray[Any] = points[reach[:, 0].argmin()]
    return heart


def _write_legend(figure: Any, entries: list[tuple[str, str]]) -> None:
    """A dot and a text an entry, right of the picture."""
    from matplotlib.lines import Line2D

    dots = [
        Line2D([], [], linestyle="", marker="o", markersize=9, color=colour, label=text) for colour, text in entries
    ]
    figure.legend(
        handles=dots, loc="outside right center", frameon=False, fontsize=13.5, labelcolor=INK, handletextpad=0
    )


def _write_names(axes: Any, places: dict[str, NDArray[Any]], colours: dict[str, str]) -> None:
    """Each name at its place, in a darker shade of its colour; moved to stay on the page and off the other names."""
    from matplotlib.colors import to_rgb
    from matplotlib.patheffects import withStroke

    axes.figure.draw_without_rendering()  # only then is it known where on the page a place is
    page = axes.get_window_extent()
    taken: list[Any] = []
    for name, place in sorted(places.items(), key=lambda item: float(item[1][1])):
        shade = tuple(0.6 * part for part in to_rgb(colours[name]))
        text = axes.annotate(name, place, (0, 0), textcoords="offset pixels", ha="center", va="center", in_layout=False)
        text.set(
            fontsize=14, fontweight="bold", color=shade, path_effects=[withStroke(linewidth=4, foreground="white")]
        )
        box = text.get_window_extent()
        text.xyann = (max(page.x0 - box.x0, 0) + min(page.x1 - box.x1, 0), 0)
        while any(text.get_window_extent().overlaps(other) for other in taken):
            text.xyann = (text.xyann[0], text.xyann[1] + 4)
        taken.append(text.get_window_extent())
