"""What the tests of the command line share: a shell in this process, and a small graph in a folder."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np

from infomax.cli import main

IDS = [
    "b-2",
    "007",
    "é:ü",
    "[bold]",
    "a,b",
    'q"q',
    "-1",
    "Z",
    *(f"n{row:02d}" for row in range(51, -1, -1)),
]
"""Text in no order, with what csv, rich and argument parsers are fond of."""
KINDS = ("red", "green", "blue")
FEATURES = ("x", "y", "z")
FLAGS = ("warm", "light")
DIM = 8


class Outcome(NamedTuple):
    """What a command left behind: its exit code and the two streams."""

    code: int
    out: str
    err: str


def infomax(*words: object) -> Outcome:
    """Type a command, as ``infomax train ...`` in a shell."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["infomax", *map(str, words)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        return Outcome(int(end.code or 0), out.getvalue(), err.getvalue())
    finally:
        sys.argv = before
    raise AssertionError("main returned without an exit code")


def refused(outcome: Outcome, *parts: str | tuple[str, ...]) -> None:
    """Assert exit code 2 and one message that has all of these parts, of a tuple one of them, and no traceback."""
    code, _, err = outcome
    assert code == 2, err
    messages = [line for line in err.splitlines() if line.startswith("infomax: ")]
    assert len(messages) == 1, err
    assert err.endswith(messages[0] + "\n"), err
    assert "Traceback" not in err
    for part in parts:
        assert any(
            words in messages[0] for words in ((part,) if isinstance(part, str) else part)
        ), (part, messages[0])


def write_table(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    """A csv file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    return path


def write_graph(
    folder: Path, ids: Sequence[object] = IDS, features: Sequence[str] = FEATURES, seed: int = 0
) -> Path:
    """A folder with edges.csv and nodes.csv: three kinds of node, told by features and by who is joined to whom."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    kind = np.arange(len(ids)) % 3
    values = np.round(
        rng.random((len(ids), len(features))) + (np.arange(len(features)) == kind[:, None]), 3
    )
    nodes = [[ids[row], *values[row], KINDS[kind[row]]] for row in range(len(ids))]
    write_table(folder / "nodes.csv", [["id", *features, "kind"], *nodes])
    ends = rng.integers(len(ids) // 3, size=(150, 2)) * 3 + rng.integers(3, size=(150, 1))
    write_table(folder / "edges.csv", [["source", "target"], *([ids[a], ids[b]] for a, b in ends)])
    return folder
