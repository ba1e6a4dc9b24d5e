"""Two trainings at once on the same cores, beside one after the other: seconds by the clock and of CPU time."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import numbers, parser, report, timed
from benchmarks.problem import generated

COLUMNS = {
    "nodes": "{nodes:,}",
    "epochs": "{epochs}",
    "one after the other s": "{turns_s:.2f}",
    "at once s": "{together_s:.2f}",
    "ratio": "{ratio:.2f}",
    "CPU s in turns": "{turns_cpu_s:.2f}",
    "CPU s at once": "{together_cpu_s:.2f}",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train two encoders on generated graphs of several sizes, in turns and at once, and print the
    best of each."""
    options = parser(__doc__)
    options.add_argument(
        "--nodes", type=numbers, default=[200, 7126], help="sizes of the graphs  [200,7126]"
    )
    options.add_argument("--epochs", type=int, default=50)
    options.add_argument("--repeats", type=int, default=3)
    settings = options.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for nodes in settings.nodes:
            graph = Path(folder) / f"{nodes}.npz"
            generated(nodes).save(graph)
            train = [
                sys.executable,
                "-m",
                "infomax",
                "train",
                str(graph),
                "--device",
                settings.device,
            ]
            train += ["--epochs", str(settings.epochs), "--out"]
            row: dict[str, Any] = {"nodes": nodes, "epochs": settings.epochs}
            for way in ("turns", "together"):
                outs = [
                    [f"{folder}/{way}-{nodes}-{turn}-{one}" for one in (0, 1)]
                    for turn in range(settings.repeats)
                ]
                found = [
                    timed(
                        [[*train, out] for out in pair], settings.threads, at_once=way == "together"
                    )
                    for pair in outs
                ]
                row[f"{way}_s"], row[f"{way}_cpu_s"] = map(min, zip(*found, strict=True))
            rows.append(row | {"ratio": row["together_s"] / row["turns_s"]})
    report(settings, f"Two trainings, best of {settings.repeats}", rows, COLUMNS)


if __name__ == "__main__":
    main()
