"""infomax reproduce table."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from typing import Any


def reproduce(
    out: Path, *, datasets: str | None, methods: str | None, runs: int, probe: str, device: str
) -> dict[str, Any]:
    """Run some of the paper's Table 2, or go on with it, and print and return all that the folder holds."""
    from infomax.cli import show
    from infomax.paper.table import DATASETS, METHODS, make_table
    from infomax.paper.table.page import TITLES

    began = time.monotonic()
    names = _words(datasets) or DATASETS
    with show.Steps("table", None, "Go on with the same command.") as steps:
        table = make_table(
            out,
            datasets=names,
            methods=_words(methods) or tuple(METHODS),
            runs=runs,
            probe=probe,
            device=device,
            progress=lambda done, total, note: steps.at(done, note, total),
        )
    for name in dict.fromkeys(row["dataset"] for row in table["rows"]):
        rows = [row | {"method": row["method"] + (" *" if row["differs"] else "")} for row in table["rows"]]
        show.scores(f"{TITLES[name]}: {probe} probe", [row for row in rows if row["dataset"] == name])
    if any(row["differs"] for row in table["rows"]):
        show.out.print(
            "* differs from the paper's by more than two standard deviations, the larger of the two, and 1.5 points"
        )
    for name, reason in table["absent"].items():
        show.out.print(f"{name} is left out. {reason}")
    made = {(row["dataset"], row["method"].lower()) for row in table["rows"]}
    for name, method in product(names, _words(methods)):
        if name.lower() not in table["absent"] and (name.lower(), method.lower()) not in made:
            show.out.print(f"{method} does not run on {name}.")
    show.wrote(f"{out}/table.json, .md and .html", began)
    return table


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]
