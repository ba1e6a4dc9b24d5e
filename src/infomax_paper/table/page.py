"""The table as Markdown and as an HTML page."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from itertools import starmap
from typing import Any

from infomax.analysis.report import page, section
from infomax.errors import format_count
from infomax.evaluation.results import score_text
from infomax_paper.experiments import EXPERIMENTS
from infomax_paper.printed import PAPER

TITLES = {name: experiment.title for name, experiment in EXPERIMENTS.items()}
HALVES = {
    "Transductive": ("accuracy in %", ("cora", "citeseer", "pubmed")),
    "Inductive": ("micro-F1", ("reddit", "generated-reddit", "ppi")),
}
LEAD = (
    "Table 2 of Deep Graph Infomax (Veličković et al., 2019). All methods are run by the same code on the same nodes "
    "and the same split; all vectors are scored by the same probe."
)
KEY = (
    "Mean ± standard deviation over runs; beside it the paper's figure. ▲ and ▼: ours is above or below the paper's by "
    "more than two standard deviations (the larger of the two) and by more than 1.5 points. X: features, A: edges, "
    "Y: labels."
)


def halves(table: dict[str, Any]) -> Iterator[tuple[str, list[list[str]]]]:
    """The heading and the rows of each half that has cells, the first row being the heading of the columns.

    Methods are in the paper's order, then those that are not in the paper.
    """
    for title, (metric, names) in HALVES.items():
        found = {
            (row["method"], row["dataset"]): row for row in table["rows"] if row["dataset"] in names
        }
        datasets = [name for name in names if any(name == dataset for _, dataset in found)]
        rows = [["data", "method", *(TITLES[name] for name in datasets)]]
        for method in dict.fromkeys(
            [*(method for name, method in PAPER if name in names), *(one for one, _ in found)]
        ):
            cells = [found.get((method, name)) for name in datasets]
            if uses := next((cell["uses"] for cell in cells if cell), ""):
                rows.append([uses, method, *(_cell(cell) if cell else "" for cell in cells)])
        if datasets:
            yield f"{title}, {metric}", rows


def _cell(row: dict[str, Any]) -> str:
    """Our score, ▲ or ▼ where it differs, the paper's score and the effort."""
    paper = f" (paper {score_text(**row['paper'], metric=row['metric'])})" if row["paper"] else ""
    mark = "" if not row["differs"] else " ▲" if row["mean"] > row["paper"]["mean"] else " ▼"
    runs, seconds = format_count(row["runs"], "run"), row["seconds"]
    effort = f"{runs}, {seconds:.{0 if seconds >= 10 else 1}f} s"
    return f"{score_text(row['mean'], row['std'], row['metric'])}{mark}{paper}; {effort}"


def markdown(table: dict[str, Any]) -> str:
    """The table as Markdown."""
    lines = [LEAD, "", f"{KEY} Probe: {table['probe']}."]
    for title, (head, *rows) in halves(table):
        rows = [["**DGI**" if cell == "DGI" else cell for cell in row] for row in rows]
        cells = [head, ["---"] * len(head), *rows]
        lines += ["", f"## {title}", "", *(f"| {' | '.join(row)} |" for row in cells)]
    if notes := _notes(table):
        lines += ["", "## Notes", "", *(f"- **{name}.** {note}" for name, note in notes)]
    return "\n".join(lines) + "\n"


def html(table: dict[str, Any]) -> str:
    """The table as an HTML page that loads nothing."""
    parts = [
        (title.split(",")[0].lower(), title, list[str](), rows) for title, rows in halves(table)
    ]
    if notes := _notes(table):
        parts.append(("notes", "Notes", [f"{name}. {note}" for name, note in notes], []))
    lead, headings = (
        f"{LEAD} {KEY} Probe: {table['probe']}.",
        {name: title for name, title, *_ in parts},
    )
    return page("Table 2: our results beside the paper’s", lead, headings, starmap(section, parts))


def _notes(table: dict[str, Any]) -> list[tuple[str, str]]:
    """The notes about the rows in the table, and about the data sets that are missing."""
    known = tomllib.loads((files("infomax_paper.table") / "notes.toml").read_text(encoding="utf-8"))
    shown = {row["method"] for row in table["rows"]} | {
        TITLES[row["dataset"]] for row in table["rows"]
    }
    said = [(name, note) for name, note in known.items() if name in shown]
    return said + [
        (TITLES[name], f"Left out. {reason}") for name, reason in table["absent"].items()
    ]
