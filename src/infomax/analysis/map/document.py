"""The HTML page of the map; it contains everything it needs.

The points are drawn by WebGL in ``scene.js``, about a hundred lines, not by a plotting library,
whose script alone would be larger than most maps, and slower on a machine without a GPU.
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

from infomax.analysis.map.columns import ColumnsByName
from infomax.analysis.style import COLOURS
from infomax.errors import format_count

SCRIPTS = ("data.js", "colours.js", "scene.js", "names.js", "gestures.js", "panel.js", "main.js")
# For a dark background, in the order of COLOURS and with similar hues; in OKLab the closest two are
# 0.15 apart with full colour vision, and 0.075 without red or without green cones.
DARK_COLOURS = (
    "#4c80e1", "#ca8f38", "#d8fe8f", "#f3c5fe", "#77b4d2", "#b58cfc",
    "#ad50b0", "#fcc387", "#328e6b", "#fe7caa", "#db4a48", "#afca14",
)  # fmt: skip
# Darker for higher values, on a dark background lighter: readable without colour vision and in grey
# print.
RAMP = ("#c5d3e6", "#7fb0dc", "#3f82c4", "#2a4fa0", "#2c1160")
DARK_RAMP = ("#3b4a6b", "#3f78c4", "#55b3df", "#a9e2df", "#fdf6c8")


def page(
    ids: NDArray[Any],
    points: NDArray[np.float32],
    neighbours: NDArray[np.int64],
    cosines: NDArray[np.float32],
    columns: ColumnsByName,
    *,
    title: str,
    drawn: str = "",
    first: str,
    names: NDArray[Any] | None = None,
    pairs: Sequence[float] | NDArray[Any] = (),
) -> str:
    """The page as text.

    Nodes with a high degree, if that is a column, are named first.

    Args:
        ids: ``[N]``.
        points: ``[N, 2]``, the nodes in the plane.
        neighbours: ``[N, k]``, the nearest first; k may be 0.
        cosines: ``[N, k]``, of the neighbours.
        columns: ``[N]`` by name, by which nodes can be coloured.
        title: the heading.
        drawn: how many nodes there are, below the heading. "": their number.
        first: the column by which the page is coloured at first.
        names: ``[N]``, shown in place of ids where they are not "".
        pairs: ``[q]``, cosines of random pairs, among which the page shows where a neighbour
            stands; none: it does not.
    """
    column_names = list(columns)
    column_descriptions = []
    blocks = {
        "places": _pixels(points).tobytes(),
        "ids": _json_bytes([str(node_id) for node_id in ids.tolist()]),
        "names": _json_bytes([] if names is None else names.tolist()),
        "neighbours": neighbours.astype("<u4").tobytes(),
        "cosines": np.round(32767 * cosines).astype("<i2").tobytes(),
    }
    for number, (name, values) in enumerate(columns.items()):
        description, column_bytes = _describe_column(name, values)
        column_descriptions.append(description)
        blocks[f"column{number}"] = column_bytes

    meta = {
        "nodes": len(ids),
        "drawn": drawn or format_count(len(ids), "node"),
        "neighbours": neighbours.shape[1],
        "pairs": [round(float(cosine), 4) for cosine in pairs],
        "extent": _from_corner(points).max(axis=0).clip(1e-3).tolist(),
        "columns": column_descriptions,
        "first": column_names.index(first),
        "importance": column_names.index("degree") if "degree" in column_names else None,
        "themes": {
            "light": {"groups": COLOURS, "ramp": RAMP},
            "dark": {"groups": DARK_COLOURS, "ramp": DARK_RAMP},
        },
    }
    fields = {
        "title": html.escape(title),
        "style": _read_resource("page.css"),
        "meta": json.dumps(meta).replace("<", "\\u003c"),
        "blocks": "\n".join(_block_script(name, block) for name, block in blocks.items()),
        "script": "\n".join(map(_read_resource, SCRIPTS)),
    }
    # In one pass, so that what was filled in is not filled in again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match[1]], _read_resource("page.html"))


def _from_corner(points: NDArray[np.float32]) -> NDArray[Any]:
    """The points from the top left corner of a picture whose longer side is 1."""
    span = max(float(np.ptp(points, axis=0).max()), 1e-9)
    from_left = points[:, 0] - points[:, 0].min()
    from_top = points[:, 1].max() - points[:, 1]
    return np.column_stack([from_left, from_top]) / span


def _pixels(points: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The points on a grid of 65,536 rows and columns."""
    return np.round(65535 * _from_corner(points)).astype("<u2")


def _json_bytes(texts: list[str]) -> bytes:
    return json.dumps(texts, ensure_ascii=False).encode()


def _block_script(name: str, block: bytes) -> str:
    """A block of data in the page, compressed, as text."""
    # Without a time stamp, so that the same map gives the same file.
    packed = gzip.compress(block, compresslevel=6, mtime=0)
    text = b64encode(packed).decode("ascii")
    return f'<script type="text/plain" id="block-{name}">{text}</script>'


def _describe_column(name: str, values: NDArray[Any]) -> tuple[dict[str, Any], bytes]:
    """Describe a column ``[N]`` for the page, and give its values.

    The values are numbers, or codes of groups by size, 0 for unknown.
    """
    if values.dtype == object:
        sizes = Counter(values.tolist())
        unknown_size = sizes.pop("", 0)
        by_size = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
        groups = [("", unknown_size), *by_size]
        code_of_group = {group: code for code, (group, _) in enumerate(groups)}
        code_type = np.min_scalar_type(len(groups))
        codes = np.array([code_of_group[value] for value in values.tolist()], code_type)
        described_groups = [{"name": group, "size": size} for group, size in groups]
        description = {"name": name, "groups": described_groups, "type": code_type.name}
        return description, codes.tobytes()

    numbers = np.where(np.isfinite(values), values, np.nan).astype("<f4")
    finite = numbers[np.isfinite(numbers)]
    low = float(finite.min()) if len(finite) else 0.0
    high = float(finite.max()) if len(finite) else 0.0
    # If the median lies in the lowest twentieth, a linear scale would show nearly one colour.
    is_skewed = False
    if low >= 0 and len(finite):
        is_skewed = float(np.median(finite)) - low < (high - low) / 20
    are_whole = bool((finite == np.round(finite)).all())
    scale = {"type": "float32", "low": low, "high": high, "log": is_skewed, "whole": are_whole}
    return {"name": name, **scale}, numbers.tobytes()


def _read_resource(name: str) -> str:
    return (files("infomax.analysis.map") / name).read_text(encoding="utf-8")
