"""The table as Markdown and as a self-contained HTML page, with a layout for phones and a dark mode."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from infomax.evaluation.results import score_text
from infomax.paper.experiments import EXPERIMENTS
from infomax.paper.results import PAPER
from infomax.paper.table.notes import NOTES

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


def _markdown_cell(row: dict[str, Any]) -> str:
    paper = f" (paper {_paper(row)})" if row["paper"] else ""
    return f"{_score(row)}{_mark(row)}{paper}; {_effort(row)}"


def _score(row: dict[str, Any]) -> str:
    return score_text(row["mean"], row["std"], row["metric"])


def _paper(row: dict[str, Any]) -> str:
    return score_text(**row["paper"], metric=row["metric"])


def _mark(row: dict[str, Any]) -> str:
    return "" if not row["differs"] else " ▲" if row["mean"] > row["paper"]["mean"] else " ▼"


def _effort(row: dict[str, Any]) -> str:
    plural = "" if row["runs"] == 1 else "s"
    return f"{row['runs']} run{plural}, {row['seconds']:.{0 if row['seconds'] >= 10 else 1}f} s"


def _notes(table: dict[str, Any]) -> list[tuple[str, str]]:
    """The notes about the rows in the table, and about the data sets that are missing."""
    shown = {row["method"] for row in table["rows"]} | {TITLES[row["dataset"]] for row in table["rows"]}
    said = [(name, note) for name, note in NOTES.items() if name in shown]
    return said + [(TITLES[name], f"Left out. {reason}") for name, reason in table["absent"].items()]


def html(table: dict[str, Any]) -> str:
    """The table as an HTML page that loads nothing."""
    body = "".join(_html_half(half) for half in halves(table))
    notes = "".join(f"<dt>{escape(name)}</dt><dd>{escape(note)}</dd>" for name, note in _notes(table))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Table 2</title>'
        f"<style>{_STYLE}</style></head><body><h1>Table 2: our results beside the paper’s</h1>"
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
    paper = f"paper {_paper(row)}" if row["paper"] else "not in the paper"
    mark = _mark(row).strip()
    chip = (
        f'<b class="mark" title="more than two standard deviations and 1.5 points from the paper’s">{mark}</b>'
        if mark
        else ""
    )
    return (
        f'<td data-set="{dataset}"><strong>{_score(row)}</strong>{chip}<small>{paper}</small>'
        f"<small>{_effort(row)}</small></td>"
    )


_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #23262b; --soft: #666d78; --line: #e3e6ea; --ours: #f2f6fd;
  --mark: #b4500b }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 3rem 1.25rem 5rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
h1 { font-size: clamp(1.7rem, 5vw, 2.4rem); line-height: 1.15; letter-spacing: -.02em; margin: 0 0 1rem;
  text-wrap: balance }
h2 { font-size: 1.3rem; margin: 2.75rem 0 .5rem }
p { max-width: 46rem; margin: 0 0 .8rem; text-wrap: pretty }
small, .soft, h2 small { color: var(--soft); font-size: .85rem; font-weight: 400 }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .55rem .75rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
th { font-weight: 500 } thead th { color: var(--soft); font-size: .9rem }
tbody th small, td small { display: block }
td strong { font-weight: 600; white-space: nowrap } .ours { background: var(--ours) }
.mark { color: var(--mark); margin-left: .4rem; font-size: .8em }
dl { max-width: 46rem } dt { font-weight: 600; margin-top: .9rem } dd { margin: .1rem 0 0; overflow-wrap: anywhere }
@media (max-width: 40rem) {
  body { padding-top: 1.75rem } thead { display: none }
  tr { display: block; padding: .6rem .75rem; border-bottom: 1px solid var(--line) }
  th, td { display: block; padding: .15rem 0; border: 0 } td.none { display: none }
  td { position: relative; padding-left: 6rem }
  td::before { content: attr(data-set); position: absolute; left: 0; color: var(--soft) }
  td small { display: inline-block; margin-right: .6rem; white-space: nowrap } td strong { margin-right: .6rem }
  .mark { margin: 0 .6rem 0 0 } tbody th { font-weight: 600 }
  tbody th small { display: inline; margin-left: .5rem }
}
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181c; --ink: #e6e8eb; --soft: #9aa2ad; --line: #2c3037; --ours: #1d232e; --mark: #ffb27a }
}
@media print { tr { break-inside: avoid } }
"""
