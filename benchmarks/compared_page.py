"""docs/compared.md and its picture, from the results of `benchmarks.compared`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compared_graphs import NAMES
from benchmarks.compared_methods import METHODS, USES_EDGES_ALONE

DOCS = Path(__file__).parents[1] / "docs"
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
PANELS = ("cora", "citeseer", "pubmed", "debian", "dblp-flat", "communities:100000")

Rows = dict[tuple[str, str], dict[str, Any]]


def write_page(results: Path, docs: Path = DOCS) -> None:
    """Write the page and the picture into a folder."""
    document = json.loads(results.read_text())
    rows: Rows = {(row["graph"], row["method"]): row for row in document["rows"]}
    text = (Path(__file__).with_name("compared.md.in")).read_text()
    parts = {
        "TABLE": table(rows),
        "EVERY ROW": every_row(document["rows"]),
        "SOURCE": source(document),
        "FAILED": failures(document["rows"]),
    }
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    (docs / "compared.md").write_text(text)
    draw(rows, docs / "compared.png")


def table(rows: Rows) -> str:
    """Accuracy in percent, and in brackets CPU seconds, of each method on each graph."""
    graphs = [graph for graph in NAMES if any(graph == known for known, _ in rows)]
    head = ["", "uses", "lines", *(GRAPHS[graph] for graph in graphs)]
    lines = [head, ["---"] * len(head)]
    best = {graph: max((_accuracy(rows, graph, method) for method in METHODS), default=0) for graph in graphs}
    for method in METHODS:
        uses = "edges" if method in USES_EDGES_ALONE else "features" if method == "svd" else "both"
        cells = [_cell(rows.get((graph, method)), best[graph]) for graph in graphs]
        count = next((str(row["lines"]) for (_, one), row in rows.items() if one == method), "")
        lines.append([TITLES[method], uses, count, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _accuracy(rows: Rows, graph: str, method: str) -> float:
    return float(rows.get((graph, method), {}).get("accuracy", 0))


def _cell(row: dict[str, Any] | None, best: float) -> str:
    if row is None:
        return ""
    if "failed" in row:
        return "-"
    shown = f"{row['accuracy']:.1f}"
    return f"{f'**{shown}**' if row['accuracy'] > best - 0.05 else shown} ({seconds(row['cpu_s'])})"


def seconds(value: float) -> str:
    """CPU seconds with two digits or so."""
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


def every_row(rows: Sequence[dict[str, Any]]) -> str:
    """All that was measured of each row."""
    head = ["graph", "method", "accuracy", "edges", "neighbours", "CPU s", "wall s", "load", "MB", "width", "commit"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        if "failed" in row:
            continue
        edges = f"{row['edges_auc']:.1f}" if "edges_auc" in row else ""
        lines.append(
            [
                GRAPHS[row["graph"]],
                TITLES[row["method"]].strip("*"),
                f"{row['accuracy']:.1f} ± {row['accuracy_std']:.1f}",
                edges,
                f"{row['neighbours']:.1f}",
                seconds(row["cpu_s"]),
                seconds(row["wall_s"]),
                f"{row['load']:.0f}",
                f"{row['peak_mb']:,.0f}",
                str(row["width"]),
                row["commit"],
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def failures(rows: Sequence[dict[str, Any]]) -> str:
    """Which rows have no figures, and why."""
    told = [f"- {TITLES[row['method']]}, {GRAPHS[row['graph']]}: {row['failed']}" for row in rows if "failed" in row]
    return "\n".join(told) or "- none"


def source(document: dict[str, Any]) -> str:
    """Machine, commits and versions."""
    rows = document["rows"]
    machines = ", ".join(sorted({f"{row['machine']} ({row['cores']} cores)" for row in rows}))
    commits = ", ".join(sorted({row["commit"] for row in rows if row["method"].startswith("infomax")}))
    days = sorted({row["day"] for row in rows})
    peers = ", ".join(f"{name} {version}" for name, version in document["versions"].get("peers", {}).items())
    ours = document["versions"].get("infomax", {}).get("infomax", "")
    return f"{machines}, {days[0]}; infomax {ours} at commit {commits}; peers: {peers}"


def draw(rows: Rows, path: Path) -> None:
    """Draw accuracy against CPU seconds, a panel for each graph."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    panels = [graph for graph in PANELS if any(graph == known for known, _ in rows)] or ["cora"]
    figure, axes = plt.subplots(2, 3, figsize=(13, 7.5), constrained_layout=True)
    for axis, graph in zip(axes.flat, panels, strict=False):
        for number, method in enumerate(METHODS):
            row = rows.get((graph, method), {})
            if "accuracy" not in row:
                continue
            ours = method.startswith("infomax")
            axis.scatter(row["cpu_s"], row["accuracy"], s=70, color="#c1432e" if ours else "#4a6b8a", zorder=3)
            place = (5, 6 if number % 2 else -11)
            axis.annotate(method, (row["cpu_s"], row["accuracy"]), place, textcoords="offset points", fontsize=8)
        axis.set(xscale="log", title=GRAPHS[graph], xlabel="CPU seconds", ylabel="accuracy, %")
        axis.margins(x=0.25, y=0.12)
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
