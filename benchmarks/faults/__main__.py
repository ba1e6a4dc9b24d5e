"""Run the campaign and print what it found."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import benchmarks.faults
from benchmarks.faults import crafted, folders, kills, mixed, mutations, parts, values
from benchmarks.faults.children import Trials

PARTS = ("trainings", "operations", "folders", "values", "files", "vectors", "tables", "crafted")


def main(arguments: list[str] | None = None) -> None:
    """Run each part, print its faults, and exit with 1 where there are any."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.faults",
        description=benchmarks.faults.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--trainings", type=int, default=171, help="kills of a training at random moments"
    )
    parser.add_argument(
        "--operations",
        type=int,
        default=0,
        help="kills before the first K operations; 0: before all",
    )
    parser.add_argument("--files", type=int, default=72_000, help="mutated files")
    parser.add_argument("--tables", type=int, default=500, help="sets of mixed tables")
    parser.add_argument("--vectors", type=int, default=3_000, help="damaged parts of vectors")
    parser.add_argument(
        "--folders", type=int, default=30, help="kills, and full disks, per stage of a graph folder"
    )
    parser.add_argument(
        "--no-disks", action="store_true", help="mount no full disks, which root can"
    )
    parser.add_argument("--values", type=int, default=300, help="graph folders with damaged arrays")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=PARTS, help="only this part")
    settings = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in PARTS:
            (folder / part).mkdir()
        operations = list(range(1, settings.operations + 1)) or None
        campaigns: dict[str, Trials] = {
            "trainings": kills.kill_at_random(
                folder / "trainings", settings.seed, settings.trainings
            ),
            "operations": kills.kill_before_operations(folder / "operations", operations),
            "folders": folders.campaign(
                folder / "folders", settings.seed, settings.folders, disks=not settings.no_disks
            ),
            "values": values.campaign(folder / "values", settings.seed, settings.values),
            "files": mutations.campaign(folder / "files", settings.seed, settings.files),
            "vectors": parts.campaign(folder / "vectors", settings.seed, settings.vectors),
            "tables": mixed.campaign(folder / "tables", settings.seed, settings.tables),
            "crafted": crafted.campaign(folder / "crafted"),
        }
        found = 0
        for part, trials in campaigns.items():
            if settings.part in (None, part):
                found += _report(part, trials)
    sys.exit(1 if found else 0)


def _report(part: str, trials: Trials) -> int:
    """Print the faults of a part as they are found, and how many there were."""
    began, tried, found = time.monotonic(), 0, 0
    for count, faults in trials:
        tried, found = tried + count, found + len(faults)
        for fault in faults:
            print(f"{part}: {fault}", flush=True)
    print(f"{part}: {tried:,} tried, {found} faults, {time.monotonic() - began:.0f} s", flush=True)
    return found


if __name__ == "__main__":
    main()
