"""The report: each chapter's figure and numbers as files, and one HTML page with all chapters.

The page is self-contained: it holds its pictures and loads nothing. It has a layout for phones and
a dark mode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from infomax.analysis.style import in_style, settle, svg, write_png
from infomax.io.atomic import write_text

REPORT = "report.html"


@dataclass(frozen=True, eq=False)
class Chapter:
    """A figure of the report, with its numbers and text.

    Args:
        name: of its files, without the extension.
        title: its heading.
        story: the paragraphs that explain the figure.
        numbers: the data of the figure, as JSON values.
        draw: makes the figure; called with True, in one column, for a phone.
        facts: the rows of a small table, the first is its heading.
    """

    name: str
    title: str
    story: Sequence[str]
    numbers: dict[str, Any]
    draw: Callable[[bool], Any]
    facts: Sequence[Sequence[str]] = ()


def write_report(folder: Path, title: str, lead: str, chapters: Iterable[Chapter]) -> Path:
    """Write the files of all chapters, then the page, and return the path of the page."""
    sections = {chapter: write_chapter(folder, chapter) for chapter in chapters}
    headings = {chapter.name: chapter.title for chapter in sections}
    write_text(folder / REPORT, page(title, lead, headings, sections.values()))
    return folder / REPORT


def write_chapter(folder: Path, chapter: Chapter) -> str:
    """Write a chapter's ``name.png``, ``.svg`` and ``.json``; return its section of the page."""
    with in_style():
        figure = chapter.draw(False)
        settle(figure)
        wide_svg = svg(figure, f"{chapter.name}-wide")
        write_png(figure, folder / f"{chapter.name}.png")

        figure = chapter.draw(True)
        settle(figure)
        stacked_svg = svg(figure, f"{chapter.name}-stacked")
    write_text(folder / f"{chapter.name}.svg", wide_svg)
    write_text(folder / f"{chapter.name}.json", json.dumps(chapter.numbers) + "\n")

    # The page holds both layouts, and its style shows the one that fits.
    wide = f'<div class="wide">{_inline_svg(wide_svg, chapter.title)}</div>'
    stacked = f'<div class="stacked">{_inline_svg(stacked_svg, chapter.title)}</div>'
    figure_html = f"<figure>{wide}{stacked}</figure>"
    return section(chapter.name, chapter.title, chapter.story, chapter.facts, figure_html)


def section(
    name: str, title: str, story: Iterable[str], facts: Sequence[Sequence[str]], figure: str = ""
) -> str:
    """A section of a page: heading, paragraphs, a figure in HTML, and a table of facts."""
    heading = f"<h2>{escape(title)}</h2>"
    paragraphs = "".join(f"<p>{_page_text(paragraph)}</p>" for paragraph in story)
    table = _table(facts, title)
    return f'<section id="{name}">{heading}{paragraphs}{figure}{table}</section>'


def page(title: str, lead: str, headings: Mapping[str, str], sections: Iterable[str]) -> str:
    """An HTML page that loads nothing.

    Args:
        title: its heading.
        lead: the paragraph below the heading.
        headings: by the name of each section its heading, for the list of sections.
        sections: the HTML of each section.
    """
    style = (files("infomax.analysis") / "report.css").read_text(encoding="utf-8")
    links = [
        f'<li><a href="#{name}">{escape(heading)}</a></li>' for name, heading in headings.items()
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>"
        f"<body><header><h1>{escape(title)}</h1>"
        f'<p class="lead">{_page_text(lead)}</p><nav><ol>{"".join(links)}</ol></nav></header>'
        f"<main>{''.join(sections)}</main></body></html>\n"
    )


def _inline_svg(drawing: str, title: str) -> str:
    """An SVG for use inside the page: as wide as the page, in its font, without metadata."""
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    head, body = drawing.split(">", 1)
    view_box = re.findall(r'viewBox="[^"]*"', head)[0]
    body = body.replace("'DejaVu Sans'", "system-ui")
    return f'<svg {view_box} role="img" aria-label="{escape(title)}">{body}'


def _page_text(text: str) -> str:
    """Escape text for the page.

    A number stays on one line with its unit, and minus signs are typographic.
    """
    text = re.sub(r"(?<=\d) (?=[%±])|(?<=±) ", "\N{NO-BREAK SPACE}", escape(text))
    return re.sub(r"(?<![\w.-])-(?=\d)", "\N{MINUS SIGN}", text)


def _table(facts: Sequence[Sequence[str]], title: str) -> str:
    """A table that scrolls sideways where it is wider than the page, by keyboard as well.

    Args:
        facts: the cells by row; the first row is the head.
        title: the title of the chapter, by which a screen reader calls the table.
    """
    if not facts:
        return ""
    head, *rows = [[_page_text(cell) for cell in row] for row in facts]
    head_cells = "".join(f"<th>{cell}</th>" for cell in head)
    body_rows = []
    for row in rows:
        cells = "".join(f"<td>{cell}</td>" for cell in row)
        body_rows.append(f"<tr>{cells}</tr>")
    label = f"Numbers: {escape(title)}"
    return (
        f'<div class="table" tabindex="0" role="region" aria-label="{label}"><table>'
        f"<thead><tr>{head_cells}</tr></thead>"
        f"<tbody>{''.join(body_rows)}</tbody></table></div>"
    )
