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
    "Table 2 of Deep Graph Infomax (Veličković et al., 2019). All methods are run by the same code "
    "on the same nodes and the same split; all vectors are scored by the same probe."
)
KEY = (
    "Mean ± standard deviation over runs; beside it the paper's figure. ▲ and ▼: ours is above or "
    "below the paper's by more than two standard deviations (the larger of the two) and by more "
    "than 1.5 points. X: features, A: edges, Y: labels."
)


def halves(table: dict[str, Any]) -> Iterator[tuple[str, list[list[str]]]]:
    """The heading and the rows of each half that has cells, the first row being the heading of the
    columns.

    Methods are in the paper's order, then those that are not in the paper.
    """
    for title, (metric, names) in HALVES.items():
        row_of_cell = {}
        for row in table["rows"]:
            if row["dataset"] in names:
                row_of_cell[row["method"], row["dataset"]] = row
        datasets = [name for name in names if any(name == dataset for _, dataset in row_of_cell)]
        if not datasets:
            continue

        papers_methods = [method for name, method in PAPER if name in names]
        our_methods = [method for method, _ in row_of_cell]
        lines = [["data", "method", *(TITLES[name] for name in datasets)]]
        for method in dict.fromkeys([*papers_methods, *our_methods]):
            rows = [row_of_cell.get((method, name)) for name in datasets]
            uses = next((row["uses"] for row in rows if row), "")
            if uses:
                lines.append([uses, method, *(_cell(row) if row else "" for row in rows)])
        yield f"{title}, {metric}", lines


def _cell(row: dict[str, Any]) -> str:
    """Our score, ▲ or ▼ where it differs, the paper's score and the effort."""
    score = score_text(row["mean"], row["std"], row["metric"])
    mark = ""
    if row["differs"]:
        mark = " ▲" if row["mean"] > row["paper"]["mean"] else " ▼"
    paper = ""
    if row["paper"]:
        paper = f" (paper {score_text(**row['paper'], metric=row['metric'])})"
    decimals = 0 if row["seconds"] >= 10 else 1
    effort = f"{format_count(row['runs'], 'run')}, {row['seconds']:.{decimals}f} s"
    return f"{score}{mark}{paper}; {effort}"


def markdown(table: dict[str, Any]) -> str:
    """The table as Markdown."""
    lines = [LEAD, "", f"{KEY} Probe: {table['probe']}."]
    for title, (head, *rows) in halves(table):
        rows_with_bold = [["**DGI**" if cell == "DGI" else cell for cell in row] for row in rows]
        cells = [head, ["---"] * len(head), *rows_with_bold]
        lines += ["", f"## {title}", "", *(f"| {' | '.join(row)} |" for row in cells)]
    notes = _notes(table)
    if notes:
        lines += ["", "## Notes", "", *(f"- **{name}.** {note}" for name, note in notes)]
    return "\n".join(lines) + "\n"


def html(table: dict[str, Any]) -> str:
    """The table as an HTML page that loads nothing."""
    # A section is its anchor, its heading, paragraphs and the rows of a table.
    sections: list[tuple[str, str, list[str], list[list[str]]]] = []
    for title, rows in halves(table):
        anchor = title.split(",")[0].lower()
        sections.append((anchor, title, [], rows))
    notes = _notes(table)
    if notes:
        paragraphs = [f"{name}. {note}" for name, note in notes]
        sections.append(("notes", "Notes", paragraphs, []))

    lead = f"{LEAD} {KEY} Probe: {table['probe']}."
    headings = {anchor: title for anchor, title, *_ in sections}
    body = starmap(section, sections)
    return page("Table 2: our results beside the paper’s", lead, headings, body)


def _notes(table: dict[str, Any]) -> list[tuple[str, str]]:
    """The notes about the rows in the table, and about the data sets that are missing."""
    notes_file = files("infomax_paper.table") / "notes.toml"
    all_notes = tomllib.loads(notes_file.read_text(encoding="utf-8"))
    shown_methods = {row["method"] for row in table["rows"]}
    shown_titles = {TITLES[row["dataset"]] for row in table["rows"]}
    notes = [
        (name, note) for name, note in all_notes.items() if name in shown_methods | shown_titles
    ]
    for name, reason in table["absent"].items():
        notes.append((TITLES[name], f"Left out. {reason}"))
    return notes
