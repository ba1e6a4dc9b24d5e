"""The report: each chapter's figure and numbers as files, and one HTML page with all chapters.

The page is self-contained: it holds its pictures and loads nothing. It has a layout for phones and a dark mode.
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


def write_chapter(folder: Path, chapter: Chapter) -> str:
    """Write a chapter's ``name.png``, ``name.svg`` and ``name.json``; return its section of the page."""
    drawings = {}
    with in_style():
        for layout, stacked in (("wide", False), ("stacked", True)):
            figure = chapter.draw(stacked)
            settle(figure)
            drawings[layout] = svg(figure, f"{chapter.name}-{layout}")
            if not stacked:
                write_png(figure, folder / f"{chapter.name}.png")
    write_text(folder / f"{chapter.name}.svg", drawings["wide"])
    write_text(folder / f"{chapter.name}.json", json.dumps(chapter.numbers) + "\n")
    pictures = [
        f'<div class="{name}">{_inline(drawing, chapter.title)}</div>'
        for name, drawing in drawings.items()
    ]
    return section(
        chapter.name,
        chapter.title,
        chapter.story,
        chapter.facts,
        f"<figure>{''.join(pictures)}</figure>",
    )


def section(
    name: str, title: str, story: Iterable[str], facts: Sequence[Sequence[str]], figure: str = ""
) -> str:
    """A section of a page: its heading, paragraphs, a figure in HTML and a table, whose first row is its heading."""
    paragraphs = "".join(f"<p>{_text(paragraph)}</p>" for paragraph in story)
    return f'<section id="{name}"><h2>{escape(title)}</h2>{paragraphs}{figure}{_table(facts, title)}</section>'


def page(title: str, lead: str, headings: Mapping[str, str], sections: Iterable[str]) -> str:
    """An HTML page that loads nothing, with a list of its sections: their names, and the headings."""
    style = (files("infomax.analysis") / "report.css").read_text(encoding="utf-8")
    listed = "".join(
        f'<li><a href="#{name}">{escape(heading)}</a></li>' for name, heading in headings.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><header><h1>{escape(title)}</h1>"
        f'<p class="lead">{_text(lead)}</p><nav><ol>{listed}</ol></nav></header>'
        f"<main>{''.join(sections)}</main></body></html>\n"
    )


def write_report(folder: Path, title: str, lead: str, chapters: Iterable[Chapter]) -> Path:
    """Write the files of all chapters, then the page with a title and a lead; return the path of the page."""
    sections = {chapter: write_chapter(folder, chapter) for chapter in chapters}
    headings = {chapter.name: chapter.title for chapter in sections}
    write_text(folder / REPORT, page(title, lead, headings, sections.values()))
    return folder / REPORT


def _inline(drawing: str, title: str) -> str:
    """An SVG for use inside the page: as wide as the page, in the page's font, without metadata."""
    drawing = re.sub(
        r"<metadata>.*?</metadata>", "", drawing[drawing.index("<svg") :], flags=re.DOTALL
    )
    head, body = drawing.split(">", 1)
    box = re.findall(r'viewBox="[^"]*"', head)[0]
    body = body.replace("'DejaVu Sans'", "system-ui")
    return f'<svg {box} role="img" aria-label="{escape(title)}">{body}'


def _text(text: str) -> str:
    """Escape text for the page; a number stays on one line with its unit, and minus signs are typographic."""
    text = re.sub(r"(?<=\d) (?=[%±])|(?<=±) ", "\N{NO-BREAK SPACE}", escape(text))
    return re.sub(r"(?<![\w.-])-(?=\d)", "\N{MINUS SIGN}", text)


def _table(facts: Sequence[Sequence[str]], title: str) -> str:
    """A table that scrolls sideways where it is wider than the page, by keyboard as well."""
    if not facts:
        return ""
    head, *rows = [[_text(cell) for cell in row] for row in facts]
    cells = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="table" tabindex="0" role="region" aria-label="Numbers: {escape(title)}"><table>'
        f"<thead><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr></thead>"
        f"<tbody>{cells}</tbody></table></div>"
    )
