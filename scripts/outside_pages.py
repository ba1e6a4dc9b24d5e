"""Pages that lie outside docs/ and are linked from there, taken into the site (a hook, see mkdocs.yml)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUTSIDE = (
    "recipes/batches.md",
    "recipes/corruption.md",
    "recipes/defaults.md",
    "recipes/depth.md",
    "recipes/heterogeneous.md",
    "recipes/schedules.md",
    "recipes/table.md",
    "benchmarks/README.md",
)


def on_files(files: Any, config: Any) -> None:
    """Add the pages to the site's files."""
    from mkdocs.structure.files import File

    for path in OUTSIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))


def on_page_markdown(markdown: str, **about: Any) -> str:
    """Let links between these pages and docs/, whose files are at the top of the site, lead there."""
    markdown = markdown.replace("](../docs/", "](../")
    outside = "|".join(map(re.escape, OUTSIDE))

    # The site has no folder docs/, so a link from a page in it climbs one folder less.
    return re.sub(rf"\]\(\.\./((?:\.\./)*)(?={outside})", r"](\1", markdown)
