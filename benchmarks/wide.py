"""What one column of text costs beside thousands of numbers: CPU seconds of `read_graph`.

    python -m benchmarks.wide --folder FOLDER

Two node tables are generated, 1,000 rows of 3,000 numbers, and the same with a column of text. Each is
read in a process of its own, in turn, and the best of some rounds counts. Imports do not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

ROWS = 1000
VOCABULARY = 500
WORDS_PER_TEXT = 8
READ = """
import sys, time
import duckdb, pyarrow.compute, pyarrow.csv, scipy.sparse
from infomax import read_graph
started = time.process_time()  # of all threads
read_graph(*sys.argv[1:])
print(time.process_time() - started)
"""


def main(arguments: list[str] | None = None) -> None:
    """Generate the tables if the folder has none, then read them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="Folder for all files.")
    parser.add_argument("--numbers", type=int, default=3000, help="Columns of numbers.")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    folder = options.folder
    if not (folder / "edges.csv").exists():
        generate(folder, options.numbers)

    seconds: dict[str, list[float]] = {"numbers": [], "text": []}
    for _ in range(options.rounds):
        for name, measured in seconds.items():
            measured.append(read(folder / "edges.csv", folder / f"{name}.csv"))
    numbers = min(seconds["numbers"])
    text = min(seconds["text"])
    print(
        f"CPU seconds, best of {options.rounds}: {options.numbers:,} numbers {numbers:.2f}, with a column "
        f"of text {text:.2f}, {text / numbers:.2f} times as many"
    )


def read(edges: Path, nodes: Path) -> float:
    """The CPU seconds that a new process takes to read two tables."""
    command = [sys.executable, "-c", READ, str(edges), str(nodes)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def generate(folder: Path, number_count: int) -> None:
    """Write edges.csv, numbers.csv, and text.csv, which has one more column."""
    folder.mkdir(parents=True, exist_ok=True)
    draws = np.random.default_rng(0)
    numbers = draws.normal(size=(ROWS, number_count))
    names = [f"x{number}" for number in range(number_count)]
    number_lines = [["id", *names]]
    text_lines = [["id", *names, "about"]]
    for row, row_numbers in enumerate(numbers):
        cells = [f"n{row}", *(f"{number:.6g}" for number in row_numbers)]
        words = draws.integers(VOCABULARY, size=WORDS_PER_TEXT)
        number_lines.append(cells)
        text_lines.append([*cells, " ".join(f"word{word}" for word in words)])
    edge_lines = [["source", "target"]]
    edge_lines += [
        [f"n{source}", f"n{target}"] for source, target in draws.integers(ROWS, size=(3 * ROWS, 2))
    ]
    for name, lines in {"numbers": number_lines, "text": text_lines, "edges": edge_lines}.items():
        content = "\n".join(",".join(line) for line in lines)
        (folder / f"{name}.csv").write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
