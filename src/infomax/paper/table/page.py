"""The table as Markdown and as a self-contained HTML page, with a layout for phones and a dark mode."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from infomax.evaluation.results import score_text
from infomax.paper.experiments import EXPERIMENTS
from infomax.paper.results import PAPER

_HERE = files("infomax.paper.table")
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


class Half(NamedTuple):
    """The upper or lower half of the table: cells by method, then by data set."""

    title: str
    metric: str
    datasets: list[str]
    cells: dict[str, dict[str, dict[str, Any]]]


def halves(table: dict[str, Any]) -> Iterator[Half]:
    """Yield the halves that have cells; rows in the paper's order, then rows that are not in the paper."""
    for title, (metric, names) in HALVES.items():
        found = {(row["method"], row["dataset"]): row for row in table["rows"] if row["dataset"] in names}
        datasets = [name for name in names if any(name == dataset for _, dataset in found)]
        methods = dict.fromkeys([method for name, method in PAPER if name in names] + [method for method, _ in found])
        cells = {
            method: {name: found[method, name] for name in datasets if (method, name) in found} for method in methods
        }
        if datasets:
            yield Half(title, metric, datasets, {method: row for method, row in cells.items() if row})


def markdown(table: dict[str, Any]) -> str:
    """The table as Markdown."""
    lines = [LEAD, "", f"{KEY} Probe: {table['probe']}."]
    for half in halves(table):
        lines += ["", f"## {half.title}, {half.metric}", ""]
        lines += [
            _line("data", "method", *(TITLES[name] for name in half.datasets)),
            "|---" * (2 + len(half.datasets)) + "|",
        ]
        for method, row in half.cells.items():
            cells = [_markdown_cell(row[name]) if name in row else "" for name in half.datasets]
            lines.append(_line(_uses(row), f"**{method}**" if method == "DGI" else method, *cells))
    notes = _notes(table)
    if notes:
        lines += ["", "## Notes", "", *(f"- **{name}.** {note}" for name, note in notes)]
    return "\n".join(lines) + "\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _uses(cells: dict[str, dict[str, Any]]) -> str:
    return str(next(iter(cells.values()))["uses"])


def _texts(row: dict[str, Any]) -> tuple[str, str, str, str]:
    """Our score, ▲ or ▼ where it differs, the paper's score and the effort; "" where there is none."""
    paper = score_text(**row["paper"], metric=row["metric"]) if row["paper"] else ""
    mark = "" if not row["differs"] else "▲" if row["mean"] > row["paper"]["mean"] else "▼"
    runs, seconds = "1 run" if row["runs"] == 1 else f"{row['runs']} runs", row["seconds"]
    effort = f"{runs}, {seconds:.{0 if seconds >= 10 else 1}f} s"
    return score_text(row["mean"], row["std"], row["metric"]), mark, paper, effort


def _markdown_cell(row: dict[str, Any]) -> str:
    score, mark, paper, effort = _texts(row)
    return f"{score}{mark and f' {mark}'}{paper and f' (paper {paper})'}; {effort}"


def _notes(table: dict[str, Any]) -> list[tuple[str, str]]:
    """The notes about the rows in the table, and about the data sets that are missing."""
    known = tomllib.loads((_HERE / "notes.toml").read_text(encoding="utf-8"))
    shown = {row["method"] for row in table["rows"]} | {TITLES[row["dataset"]] for row in table["rows"]}
    said = [(name, note) for name, note in known.items() if name in shown]
    return said + [(TITLES[name], f"Left out. {reason}") for name, reason in table["absent"].items()]


def html(table: dict[str, Any]) -> str:
    """The table as an HTML page that loads nothing."""
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    body = "".join(_html_half(half) for half in halves(table))
    notes = "".join(f"<dt>{escape(name)}</dt><dd>{escape(note)}</dd>" for name, note in _notes(table))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Table 2</title>'
        f"<style>{style}</style></head><body><h1>Table 2: our results beside the paper’s</h1>"
        f'<p>{LEAD}</p><p class="soft">{KEY} Probe: {escape(table["probe"])}.</p>'
        f"{body}{f'<h2>Notes</h2><dl>{notes}</dl>' if notes else ''}</body></html>\n"
    )


def _html_half(half: Half) -> str:
    head = "".join(f'<th scope="col">{TITLES[name]}</th>' for name in half.datasets)
    rows = "".join(
        f'<tr class="{"ours" if method in ("DGI", "Random-Init") else ""}"><th scope="row">{escape(method)}'
        f"<small>{_uses(row)}</small></th>"
        + "".join(_html_cell(TITLES[name], row.get(name)) for name in half.datasets)
        + "</tr>"
        for method, row in half.cells.items()
    )
    return (
        f'<h2>{half.title} <small>{half.metric}</small></h2><table><thead><tr><th scope="col">method</th>{head}</tr>'
        f"</thead><tbody>{rows}</tbody></table>"
    )


def _html_cell(dataset: str, row: dict[str, Any] | None) -> str:
    if row is None:
        return '<td class="none"></td>'
    score, mark, paper, effort = _texts(row)
    why = "more than two standard deviations and 1.5 points from the paper’s"
    chip = f'<b class="mark" title="{why}">{mark}</b>' if mark else ""
    beside = f"paper {paper}" if paper else "not in the paper"
    return f'<td data-set="{dataset}"><strong>{score}</strong>{chip}<small>{beside}</small><small>{effort}</small></td>'
