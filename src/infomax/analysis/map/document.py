"""The HTML page of the map; it contains everything it needs.

The points are drawn by WebGL in ``scene.js``, about a hundred lines, not by a plotting library: plotly's script alone
has 4.8 MB, and with software rendering on two busy cores its first picture came after 5.3 s for 100,000 nodes and after
23 s for a million; ours after 0.6 s and 2.4 s.
"""

from __future__ import annotations

import gzip
import html
import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.map.columns import Columns
from infomax.analysis.style import COLOURS
from infomax.errors import format_count

SCRIPTS = ("data.js", "colours.js", "scene.js", "names.js", "gestures.js", "panel.js", "main.js")
# For a dark background, in the order of COLOURS and with similar hues; in OKLab the closest two are 0.15 apart with
# full colour vision, and 0.075 without red or without green cones.
DARK_COLOURS = (
    "#4c80e1", "#ca8f38", "#d8fe8f", "#f3c5fe", "#77b4d2", "#b58cfc",
    "#ad50b0", "#fcc387", "#328e6b", "#fe7caa", "#db4a48", "#afca14",
)  # fmt: skip
# Darker for higher values, on a dark background lighter: readable without colour vision and in grey print.
RAMP = ("#c5d3e6", "#7fb0dc", "#3f82c4", "#2a4fa0", "#2c1160")
DARK_RAMP = ("#3b4a6b", "#3f78c4", "#55b3df", "#a9e2df", "#fdf6c8")


def page(
    ids: NDArray[Any],
    places: NDArray[np.float32],
    neighbours: NDArray[np.int64],
    cosines: NDArray[np.float32],
    columns: Columns,
    *,
    title: str,
    drawn: str = "",
    first: str,
    names: NDArray[Any] | None = None,
    pairs: Sequence[float] | NDArray[Any] = (),
) -> str:
    """The page as text, coloured by the column ``first``; nodes with a high degree, if it is a column, are named first.

    Shapes:
        ids, columns, names: ``[N]``; names are shown in place of ids where they are not "".
        places: ``[N, 2]``.
        neighbours, cosines: ``[N, k]``, the nearest first; k may be 0.
        pairs: ``[q]``, cosines of random pairs, among which the page shows where a neighbour stands; none: it does not.
    """
    column_names = list(columns)
    described = [_column(name, values) for name, values in columns.items()]

    # The first row of a picture is at its top, and the longer side is 1.
    span = max(float(np.ptp(places, axis=0).max()), 1e-9)
    from_left = places[:, 0] - places[:, 0].min()
    from_top = places[:, 1].max() - places[:, 1]
    from_corner = np.column_stack([from_left, from_top]) / span
    blocks = {
        "places": np.round(65535 * from_corner).astype("<u2").tobytes(),
        "ids": json.dumps(
            [str(identifier) for identifier in ids.tolist()], ensure_ascii=False
        ).encode(),
        "names": json.dumps([] if names is None else names.tolist(), ensure_ascii=False).encode(),
        "neighbours": neighbours.astype("<u4").tobytes(),
        "cosines": np.round(32767 * cosines).astype("<i2").tobytes(),
        **{f"column{at}": values for at, (_, values) in enumerate(described)},
    }
    # Without a time stamp, so that the same map gives the same file.
    packed = {
        name: gzip.compress(block, compresslevel=6, mtime=0) for name, block in blocks.items()
    }
    meta = {
        "nodes": len(ids),
        "drawn": drawn or format_count(len(ids), "node"),
        "neighbours": neighbours.shape[1],
        "pairs": [round(float(cosine), 4) for cosine in pairs],
        "extent": from_corner.max(axis=0).clip(1e-3).tolist(),
        "columns": [description for description, _ in described],
        "first": column_names.index(first),
        "importance": column_names.index("degree") if "degree" in column_names else None,
        "themes": {
            "light": {"groups": COLOURS, "ramp": RAMP},
            "dark": {"groups": DARK_COLOURS, "ramp": DARK_RAMP},
        },
    }
    parts = {
        "title": html.escape(title),
        "style": _text("page.css"),
        "meta": json.dumps(meta).replace("<", "\\u003c"),
        "blocks": "\n".join(
            f'<script type="text/plain" id="block-{name}">{b64encode(block).decode("ascii")}</script>'
            for name, block in packed.items()
        ),
        "script": "\n".join(map(_text, SCRIPTS)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _text("page.html"))


def _column(name: str, values: NDArray[Any]) -> tuple[dict[str, Any], bytes]:
    """Describe a column ``[N]`` for the page; with its values: numbers, or codes of groups by size, 0 for unknown."""
    if values.dtype == object:
        sizes = Counter(values.tolist())
        unknown = sizes.pop("", 0)
        by_size = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
        groups = [("", unknown), *by_size]
        code_of_group = {group: code for code, (group, _) in enumerate(groups)}
        code_type = np.min_scalar_type(len(groups))
        codes = np.array([code_of_group[value] for value in values.tolist()], code_type)
        described = [{"name": group, "size": size} for group, size in groups]
        return {"name": name, "groups": described, "type": code_type.name}, codes.tobytes()

    numbers = np.where(np.isfinite(values), values, np.nan).astype("<f4")
    known = numbers[np.isfinite(numbers)]
    low = float(known.min()) if len(known) else 0.0
    high = float(known.max()) if len(known) else 0.0
    # If the median lies in the lowest twentieth, a linear scale would show nearly one colour.
    is_skewed = low >= 0 and len(known) > 0 and float(np.median(known)) - low < (high - low) / 20
    are_whole = bool((known == np.round(known)).all())
    scale = {"type": "float32", "low": low, "high": high, "log": is_skewed, "whole": are_whole}
    return {"name": name, **scale}, numbers.tobytes()


def _text(name: str) -> str:
    return (files("infomax.analysis.map") / name).read_text(encoding="utf-8")
