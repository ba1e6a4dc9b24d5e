"""The report: each chapter's figure and numbers as files, and one HTML page with all chapters.

The page is self-contained: it holds its pictures and loads nothing. It has a layout for phones and a dark mode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from infomax.analysis.chapter import Chapter
from infomax.analysis.style import in_style, settle, svg, write_png
from infomax.io.atomic import write_text

REPORT = "report.html"


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
    story = "".join(f"<p>{_text(paragraph)}</p>" for paragraph in chapter.story)
    pictures = [f'<div class="{name}">{_inline(drawing, chapter.title)}</div>' for name, drawing in drawings.items()]
    table = _table(chapter.facts, chapter.title)
    body = f"<h2>{escape(chapter.title)}</h2>{story}<figure>{''.join(pictures)}</figure>{table}"
    return f'<section id="{chapter.name}">{body}</section>'


def write_report(folder: Path, title: str, lead: str, chapters: Iterable[Chapter]) -> Path:
    """Write the files of all chapters, then the page with a title and a lead; return the path of the page."""
    headings, sections = [], []
    for chapter in chapters:
        sections.append(write_chapter(folder, chapter))
        headings.append(f'<li><a href="#{chapter.name}">{escape(chapter.title)}</a></li>')
    opening = f'<p class="lead">{_text(lead)}</p>'
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><header><h1>{escape(title)}</h1>{opening}"
        f"<nav><ol>{''.join(headings)}</ol></nav></header><main>{''.join(sections)}</main></body></html>\n"
    )
    write_text(folder / REPORT, page)
    return folder / REPORT


def _inline(drawing: str, title: str) -> str:
    """An SVG for use inside the page: as wide as the page, in the page's font, without metadata."""
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing[drawing.index("<svg") :], flags=re.DOTALL)
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


_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #23262b; --soft: #666d78; --line: #e3e6ea; --accent: #2b62c9 }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 3rem 1.25rem 5rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; counter-reset: chapter }
h1 { font-size: clamp(1.8rem, 5vw, 2.6rem); line-height: 1.15; letter-spacing: -.02em; margin: 0 0 1rem;
  text-wrap: balance }
h2 { font-size: clamp(1.35rem, 3.5vw, 1.7rem); line-height: 1.25; letter-spacing: -.01em; margin: 0 0 .75rem }
h2::before { counter-increment: chapter; content: counter(chapter) ". "; color: var(--soft); font-weight: 500 }
p { max-width: 42rem; margin: 0 0 .9rem; text-wrap: pretty }
.lead { color: var(--soft) }
nav ol { columns: 16rem; margin: 1.5rem 0 0; padding-left: 1.4rem; color: var(--soft) }
a { color: var(--accent); text-decoration: none } a:hover { text-decoration: underline }
section { margin-top: 3.5rem; padding-top: 2.25rem; border-top: 1px solid var(--line) }
figure { margin: 1.5rem 0; color: #23262b; background: #fff }
svg { display: block; width: 100%; height: auto; overflow: visible }
.stacked { display: none; max-width: 30rem; margin: 0 auto }
@media (max-width: 46rem) { .wide { display: none } .stacked { display: block } body { padding-top: 1.75rem } }
@media (min-width: 100rem) { html { font-size: 125% } }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: .2rem }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181c; --ink: #e6e8eb; --soft: #9aa2ad; --line: #2c3037; --accent: #8ab4ff }
  /* The colours of the figures can be distinguished only on white: the background stays white, dimmed. */
  figure { padding: 1rem; border-radius: .75rem; filter: brightness(.88) }
}
@media print { section { break-inside: avoid } }
.table { overflow-x: auto }
table { border-collapse: collapse; font-size: .95rem; font-variant-numeric: tabular-nums }
th, td { white-space: nowrap; padding: .35rem 1.5rem .35rem 0; text-align: left; border-bottom: 1px solid var(--line) }
th { color: var(--soft); font-weight: 500 }
@media (max-width: 46rem) { table { font-size: .85rem } th, td { padding-right: .8rem; white-space: normal } }
"""
