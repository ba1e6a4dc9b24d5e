"""The figures of docs/explanation/performance.md, each with its command, machine and commit, by one command.

    python -m benchmarks.measured --machine H200 --device cuda    # all work of a GPU; the machine should be idle
    python -m benchmarks.measured --machine Xeon --work epoch-cora  # one row again
    python -m benchmarks.measured --page                          # docs/explanation/performance.md from measured.json

A row is replaced when its work is measured again on the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "measured.json"
PAGE = ROOT / "docs" / "explanation" / "performance.md"
TEMPLATE = ROOT / "benchmarks" / "performance.md.in"
TOY = ("--scale", "0.005", "--dim", "8", "--steps", "2", "--repeats", "1")


class Work(NamedTuple):
    """One benchmark at one size."""

    title: str
    command: str
    """Its module and options; a GPU adds --device cuda."""
    key: str = "median_ms"
    """The number of each of its rows."""
    unit: str = "ms"
    device: str = "both"
    """cpu, cuda or both."""


WORK = {
    "felt-cora": Work("whole commands, Cora", "benchmarks.felt --dataset cora", "best_s", "s"),
    "felt-pages": Work(
        "whole commands, 20,000 nodes, 4,714 features, 30 epochs",
        "benchmarks.felt --dataset pages:20000 --epochs 30 --after --repeats 1 --peers=",
        "best_s",
        "s",
        "cpu",
    ),
    **{
        f"epoch-{name}": Work(f"an epoch on a whole graph, {name.capitalize()}", f"benchmarks.epoch --dataset {name}"
                              " --peers pyg,pyg-csr,floor")
        for name in ("cora", "citeseer", "pubmed")
    },
    "memory-cora": Work(
        "peak memory of a training, Cora", "benchmarks.memory --dataset cora --peers pyg,pyg-csr", "peak_mb", "MB"
    ),
    "protocol": Work("the paper's protocol: 50 encoders of Cora (of pyg 5, times 10)",
                     "benchmarks.protocol --dataset cora --peers pyg", "seconds", "s", "cuda"),
    "types-acm": Work("an epoch on several types, ACM", "benchmarks.types --dataset heco-acm --peers pyg,pyg-csr"),
    "types-dblp": Work("an epoch on several types, DBLP", "benchmarks.types --dataset heco-dblp --peers pyg,pyg-csr"),
    "batches": Work("a step in batches of 4,096 nodes", "benchmarks.batches --batch 4096"),
    "patches": Work("a step in patches, 10/10/25", "benchmarks.patches", device="cuda"),
    "many": Work("a step on many graphs, PPI", "benchmarks.many", device="cuda"),
    "embed": Work("embedding 232,965 nodes", "benchmarks.embed --threads 16", "median_s", "s", "cuda"),
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or write the page; returns how many fail."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--machine", help="its name on the page")
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument(
        "--work", action="append", choices=[*WORK], help="some of it  [default: all]"
    )
    options.add_argument("--json", type=Path, default=RESULTS, metavar="FILE")
    options.add_argument(
        "--page", action="store_true", help="write docs/explanation/performance.md"
    )
    options.add_argument(
        "--toy", action="store_true", help="for --work batches: at toy size, to see that it runs"
    )
    settings = options.parse_args(arguments)
    if settings.page:
        PAGE.write_text(page(json.loads(settings.json.read_text())))
        return 0
    if not settings.machine:
        options.error("--machine: a name such as Xeon")
    failed = 0
    for name in settings.work or [
        name for name, work in WORK.items() if work.device in ("both", settings.device)
    ]:
        row = measure(name, settings)
        failed += "failed" in row
        known = json.loads(settings.json.read_text()) if settings.json.exists() else []
        kept = [
            each for each in known if (each["work"], each["machine"]) != (name, settings.machine)
        ]
        settings.json.write_text(json.dumps([*kept, row], indent=1) + "\n")
        print(name, row.get("failed") or row["figures"], flush=True)
    return failed


def measure(name: str, settings: argparse.Namespace) -> dict[str, Any]:
    """Run one benchmark in a process of its own; the row of it."""
    work = WORK[name]
    words = [*work.command.split(), *(["--device", "cuda"] if settings.device == "cuda" else [])]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT
    ).stdout
    row = {
        "work": name,
        "machine": settings.machine,
        "command": f"python -m {' '.join(words)}",
        "commit": commit.strip(),
        "day": datetime.now(UTC).date().isoformat(),
        "load": round(os.getloadavg()[0], 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.json")
        command = [
            sys.executable,
            "-m",
            *words,
            *(TOY if settings.toy else ()),
            "--json",
            str(file),
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            return row | {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1][:200]}
        rows = json.loads(file.read_text())["rows"]
    labels = [one.get("contender") or one["command"] for one in rows]
    return row | {
        "figures": {label: one[work.key] for label, one in zip(labels, rows, strict=True)}
    }


def page(rows: list[dict[str, Any]]) -> str:
    """The page: its text, and a table with a line for each work on each machine."""
    lines = ["| work | machine | figures | commit |", "|---|---|---|---|"]
    order = {name: position for position, name in enumerate(WORK)}
    for row in sorted(rows, key=lambda row: (order[row["work"]], row["machine"])):
        work = WORK[row["work"]]
        figures = ", ".join(
            f"{label} **{_short(value)}**" for label, value in row.get("figures", {}).items()
        )
        cells = [
            f"{work.title}, {work.unit}",
            row["machine"],
            figures or row["failed"],
            row["commit"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return TEMPLATE.read_text(encoding="utf-8").replace("{TABLE}", "\n".join(lines))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
