"""docs/explanation/compared.md and its picture, from the results of `benchmarks.compared`."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compared_graphs import NAMES
from benchmarks.compared_methods import METHODS, USES_EDGES_ALONE

DOCS = Path(__file__).parents[1] / "docs" / "explanation"
TITLES = {
    "svd": "TruncatedSVD of the features",
    "sgc": "SGC: features over two hops",
    "random-projection": "scikit-network, RandomProjection (FastRP)",
    "spectral": "scikit-network, Spectral",
    "gsvd": "scikit-network, GSVD",
    "pycleora": "pycleora",
    "pycleora-features": "pycleora, with features",
    "pecanpy": "PecanPy (node2vec)",
    "pecanpy-first-order": "PecanPy, FirstOrderUnweighted",
    "pyg-dgi": "PyG's DGI example",
    "infomax-paper": "**infomax, the paper's vectors**",
    "infomax": "**infomax, default**",
}
GRAPHS = {
    "cora": "Cora",
    "citeseer": "Citeseer",
    "pubmed": "Pubmed",
    "debian": "debian",
    "acm": "ACM, types",
    "acm-flat": "ACM, flattened",
    "dblp": "DBLP, types",
    "dblp-flat": "DBLP, flattened",
    "communities:10000": "communities, 10,000",
    "communities:100000": "communities, 100,000",
    "communities:1000000": "communities, 1,000,000",
}
PANELS = (
    "cora",
    "citeseer",
    "pubmed",
    "debian",
    "acm-flat",
    "dblp-flat",
    "communities:10000",
    "communities:100000",
)

Rows = dict[tuple[str, str], dict[str, Any]]


def write_page(results: Path, docs: Path = DOCS) -> None:
    """Write the page and the picture into a folder."""
    document = json.loads(results.read_text())
    rows: Rows = {(row["graph"], row["method"]): row for row in document["rows"]}
    text = (Path(__file__).with_name("compared.md.in")).read_text()
    parts = {
        "TABLE": table(rows),
        "SOURCE": textwrap.fill(source(document), 120, break_on_hyphens=False),
    }
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    text = re.sub(
        r"\{([\w:-]+)\|([\w-]+)\|(\w+)\}", lambda found: figure(rows, *found.groups()), text
    )
    (docs / "compared.md").write_text(text)
    draw(rows, docs / "compared.png")


def figure(rows: Rows, graph: str, method: str, key: str) -> str:
    """A figure that the text names, as ``{cora|infomax|cpu_s}``."""
    row = rows.get((graph, method), {})
    if key not in row:
        return "(not measured)"
    if key == "cpu_s":
        return timed(row, usual_machine(rows, graph))
    return f"{row[key]:,.0f}" if key in ("width", "peak_mb") else f"{row[key]:.1f}"


def table(rows: Rows) -> str:
    """Accuracy in percent, and in brackets CPU seconds, of each method on each graph."""
    graphs = [graph for graph in NAMES if any(graph == known for known, _ in rows)]
    head = ["", "uses", "lines", *(GRAPHS[graph] for graph in graphs)]
    lines = [head, ["---"] * len(head)]
    best = {
        graph: max((_accuracy(rows, graph, method) for method in METHODS), default=0)
        for graph in graphs
    }
    machines = {graph: usual_machine(rows, graph) for graph in graphs}
    for method in METHODS:
        uses = "edges" if method in USES_EDGES_ALONE else "features" if method == "svd" else "both"
        cells = [_cell(rows.get((graph, method)), best[graph], machines[graph]) for graph in graphs]
        count = next((str(row["lines"]) for (_, one), row in rows.items() if one == method), "")
        lines.append([TITLES[method], uses, count, *cells])
    lines.append(["*seconds without ° are of*", "", "", *machines.values()])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _accuracy(rows: Rows, graph: str, method: str) -> float:
    return float(rows.get((graph, method), {}).get("accuracy", 0))


def usual_machine(rows: Rows, graph: str) -> str:
    """The machine of most rows of a graph that have figures: within it, seconds are compared."""
    known = Counter(
        row["machine"] for (one, _), row in rows.items() if one == graph and "accuracy" in row
    )
    return known.most_common(1)[0][0] if known else ""


def _cell(row: dict[str, Any] | None, best: float, machine: str) -> str:
    if row is None:
        return ""
    if "failed" in row:
        limit = re.search(r"not done after ([\d,]+)|more than (\d+ GB)", row["failed"])
        return f"- (>{limit[1] or limit[2]})" if limit else "-"
    shown = f"{row['accuracy']:.1f}"
    return f"{f'**{shown}**' if row['accuracy'] > best - 0.05 else shown} ({timed(row, machine)})"


def timed(row: dict[str, Any], machine: str) -> str:
    """The CPU seconds of a row, with ° where they are not those of this machine."""
    return seconds(row["cpu_s"]) + ("" if row["machine"] == machine else "°")


def seconds(value: float) -> str:
    """CPU seconds with two digits or so."""
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


def source(document: dict[str, Any]) -> str:
    """Machine, commits and versions."""
    rows = document["rows"]
    machines = ", ".join(sorted({f"{row['machine']} ({row['cores']} cores)" for row in rows}))
    commits = ", ".join(
        sorted({row["commit"] for row in rows if row["method"].startswith("infomax")})
    )
    days = sorted({row["day"] for row in rows})
    peers = ", ".join(
        f"{name} {version}" for name, version in document["versions"].get("peers", {}).items()
    )
    ours = document["versions"].get("infomax", {}).get("infomax", "")
    when = " to ".join(sorted({days[0], days[-1]}))
    return f"{machines}, {when}; infomax {ours} at commit {commits}; peers: {peers}."


def draw(rows: Rows, path: Path) -> None:
    """Draw accuracy against CPU seconds, a panel for each graph, of one machine; all have one scale
    of seconds."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    machines = {graph: usual_machine(rows, graph) for graph in PANELS}
    rows = {key: row for key, row in rows.items() if row["machine"] == machines.get(key[0])}
    panels = [graph for graph in PANELS if sum(graph == known for known, _ in rows) > 1]
    high = -(-len(panels) // 3)
    figure, axes = plt.subplots(
        high, 3, figsize=(13, 4.2 * high), sharex=True, squeeze=False, constrained_layout=True
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, graph in zip(axes.flat, panels, strict=False):
        points = {
            method: rows[graph, method]
            for method in METHODS
            if "accuracy" in rows.get((graph, method), {})
        }
        for method, row in points.items():
            colour = "#c1432e" if method.startswith("infomax") else "#4a6b8a"
            axis.scatter(row["cpu_s"], row["accuracy"], s=60, color=colour, zorder=3)
        name = f"CPU seconds ({machines[graph]})"
        axis.set(
            xscale="log", title=GRAPHS[graph], xlabel=name, ylabel="accuracy, %", xlim=(0.08, 2000)
        )
        axis.xaxis.set_major_formatter("{x:g}")
        axis.tick_params(labelbottom=True)
        axis.margins(y=0.12)
        axis.grid(alpha=0.3)
    figure.canvas.draw()
    for axis, graph in zip(axes.flat, panels, strict=False):
        _name_points(
            axis,
            {
                method: row
                for (one, method), row in rows.items()
                if one == graph and "accuracy" in row
            },
        )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _name_points(axis: Any, points: dict[str, dict[str, Any]]) -> None:
    """Write the names of methods beside their points, where no name covers another, a point or the
    frame."""
    places = {
        method: axis.transData.transform((row["cpu_s"], row["accuracy"]))
        for method, row in points.items()
    }
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in places.values()]
    right = axis.get_window_extent().x1
    heights = (-4, 8, -16, 20, -28, 32, -40)
    for method, (x, y) in sorted(places.items(), key=lambda place: -place[1][1]):
        width, height = 5.6 * len(method), 12
        offsets = [(dx, dy) for dx in (9, -9 - width) for dy in heights]
        boxes = [(x + dx, y + dy, x + dx + width, y + dy + height) for dx, dy in offsets]
        inside = ((at, box) for at, box in enumerate(boxes) if box[2] < right)
        free = (at for at, box in inside if not any(_overlap(box, other) for other in taken))
        chosen = next(free, 0)
        taken.append(boxes[chosen])
        place = tuple(
            0.72 * one for one in offsets[chosen]
        )  # points of 1/72 inch, of 100 pixels to the inch
        axis.annotate(method, (points[method]["cpu_s"], points[method]["accuracy"]), place,
                      textcoords="offset points", fontsize=7.5)  # fmt: skip


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
