"""The style of all figures: colours that everyone can tell apart, large type, two layouts."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from infomax.errors import library, visible
from infomax.io.atomic import replacing

# Twelve colours that everyone can tell apart: in OKLab the closest two are 0.18 apart with full
# colour vision, and 0.09 without red or without green cones (Okabe and Ito's seven: 0.08). The
# first few are the furthest apart.
COLOURS = (
    "#3b7ced", "#bf3c37", "#b6d00c", "#780e6c", "#01b4a9", "#1738a7",
    "#d68af7", "#693a0b", "#10796a", "#ac49b3", "#fa7777", "#a7861f",
)  # fmt: skip
GREY = "#c7c7c7"
PALE = "#e4e4e4"
INK = "#2b2b2b"
PAPER = "#ffffff"
BASELINE = "#8a8a8a"
SEQUENTIAL = "viridis"
DIVERGING = "PuOr_r"
BELOW: dict[str, Any] = {
    "loc": "upper center",
    "bbox_to_anchor": (0.45, -0.17),
    "ncols": 2,
    "fontsize": 12,
}
"""Places a legend below the axes, where it covers nothing."""
DPI = 180
DASHED = (0, (4, 2.5))
DOTTED = (0, (1, 1.5))


def matplotlib() -> Any:
    """Import matplotlib; if it is missing, say how to install it."""
    return library("matplotlib", "viz", "picture")


@contextmanager
def in_style() -> Iterator[None]:
    """A context in which to draw and save figures."""
    style = Path(__file__).with_name("figures.mplstyle")
    with matplotlib().rc_context(fname=style), warnings.catch_warnings():
        # A name may be in another script, or have an emoji.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def panels(
    count: int, stacked: bool, *, height: float = 4.4, ratios: tuple[float, ...] | None = None
) -> Any:
    """A figure and its axes.

    Args:
        count: the number of panels.
        stacked: one above another, for a phone; else side by side, 11 inches wide.
        height: of one panel, in inches.
        ratios: the relative widths of panels that are side by side.
    """
    matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    pad = 0.12
    layout = ConstrainedLayoutEngine(w_pad=pad, h_pad=pad, wspace=0.03, hspace=0.04)
    if stacked:
        figure = Figure(figsize=(5.4, height * count), layout=layout)
        return figure, list(figure.subplots(count, 1, squeeze=False)[:, 0])
    figure = Figure(figsize=(11, height), layout=layout)
    return figure, list(figure.subplots(1, count, squeeze=False, width_ratios=ratios)[0])


def settle(figure: Any) -> None:
    """Lay a figure out and fix the layout, so that all formats have the same."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def svg(figure: Any, salt: str) -> str:
    """A figure as SVG.

    The same salt gives the same text; different salts have no element ids in common.
    """
    buffer = io.StringIO()
    with matplotlib().rc_context({"svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", dpi=DPI, facecolor="white", metadata={"Date": None})
    # Control characters of a label or a title would make the XML malformed.
    return "\n".join(map(visible, buffer.getvalue().split("\n")))


def write_png(figure: Any, path: Path) -> None:
    """Write a figure as PNG, 1980 pixels wide."""
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=DPI, facecolor="white")
