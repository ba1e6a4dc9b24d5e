"""Mixed tables: rows over several files, of text or parquet, with ids and cells of several kinds, through both doors.

Whatever the files are, `prepare` makes the graph of their rows, or refuses them with an `InputError`; of single files
`read_graph` makes the same graph, or refuses them with the same message.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.faults.children import Trials, run
from infomax import Graph, InputError, read_graph
from infomax.io.prepare import prepare

BATCH = 25
_WORDS = np.array(
    ["1", "2", "3", "007", "x", " y", "c\rd", "é", "10000000000000000000"], dtype=object
)
_MARKS = np.array(["1", "0", "", "\ttrue", "False\r", " 1\n", "\x1cTRUE"], dtype=object)


def quoted(cell: object) -> str:
    """A cell in double quotes."""
    return '"' + str(cell).replace('"', '""') + '"'


def _put(path: Path, columns: dict[str, Any]) -> None:
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path)
        return
    lines = [columns, *zip(*columns.values(), strict=True)]
    path.write_text("".join(",".join(map(quoted, line)) + "\n" for line in lines), newline="")


def _typed(words: Any, numbers: bool) -> Any:
    """Ids as text, or as integers where all can be; of no ids not even the type."""
    if not len(words):
        return pa.nulls(0)
    return (
        [int(word) for word in words] if numbers and set(words) <= {"1", "2", "3"} else list(words)
    )


def _table(folder: Path, stem: str, columns: dict[str, Any], draws: np.random.Generator) -> Path:
    """The rows over one to three files, mostly of one kind and with ids of one type."""
    n, files = len(next(iter(columns.values()))), int(draws.integers(1, 4))
    cuts = [0, *sorted(draws.integers(0, n + 1, files - 1).tolist()), n]
    suffix, numbers = str(draws.choice(["csv", "parquet"])), bool(draws.random() < 0.5)
    (folder / stem).mkdir()
    for at in range(files):
        kind = str(draws.choice(["csv", "parquet"])) if draws.random() < 0.1 else suffix
        part = {name: cells[cuts[at] : cuts[at + 1]] for name, cells in columns.items()}
        if kind == "parquet":
            one = numbers if draws.random() < 0.8 else not numbers
            part |= {
                name: _typed(part[name], one) for name in ("id", "source", "target") if name in part
            }
        _put(folder / stem / f"{at}.{kind}", part)
    return folder / stem


def _outcome(read: Any, *given: Any, **options: Any) -> Any:
    """What a graph is made of, as lists; or the message of its refusal."""
    try:
        graph = (read(*given, **options) or Graph.open(options["out"])).loaded()
    except InputError as error:
        return str(error)
    features = (
        graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
    )
    marks = {
        name: column.tolist() for name, column in (*graph.labels.items(), *graph.splits.items())
    }
    return [list(map(str, graph.ids)), graph.adjacency.toarray().tolist(), features.tolist(), marks]


def examine(folder: Path, seed: int, number: int) -> list[str]:
    """The faults of one set of tables."""
    draws = np.random.default_rng([seed, number])
    known = draws.permutation(_WORDS if draws.random() < 0.6 else _WORDS[:3])[
        : draws.integers(1, 9)
    ]
    ends = {
        name: draws.choice(known, int(size))
        for size in [draws.integers(9)]
        for name in ("source", "target")
    }
    weight = (
        {"weight": draws.integers(4, size=len(ends["source"])) / 10} if draws.random() < 0.5 else {}
    )
    cells = {name: draws.choice(_MARKS, len(known)) for name in ("label:kind", "split:train")}
    edges = _table(folder, "edges", ends | weight, draws)
    nodes = _table(folder, "nodes", {"id": known, "x": np.arange(len(known)) / 4, **cells}, draws)
    where, found = f"tables {number} of seed {seed}", []
    try:
        stored = _outcome(prepare, edges, nodes, out=folder / "g.graph")
        whole = folder / "whole"
        whole.mkdir()
        _put(whole / "edges.csv", ends | weight)
        _put(whole / "nodes.csv", {"id": known, "x": np.arange(len(known)) / 4, **cells})
        if not isinstance(stored, str) and stored != _outcome(read_graph, whole):
            found.append(f"{where}: prepare makes another graph than that of the rows")
        files = [list(table.iterdir()) for table in (edges, nodes)]
        if [len(one) for one in files] == [1, 1] and stored != _outcome(
            read_graph, files[0][0], files[1][0]
        ):
            found.append(f"{where}: prepare and read_graph differ")
    except Exception as error:
        found.append(f"{where}: {type(error).__name__}: {str(error)[:200]}")
    if left := [path.name for path in folder.glob(".*")]:
        found.append(f"{where}: left behind {left}")
    return found


def _batch(folder: Path, seed: int, first: int, last: int) -> None:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, last):
            place = folder / str(number)
            place.mkdir()
            found += examine(place, seed, number)
            shutil.rmtree(place)
    (folder / "faults.json").write_text(json.dumps(found))


def campaign(folder: Path, seed: int, tables: int) -> Trials:
    """That many sets of tables, in processes that may crash."""
    for first in range(0, tables, BATCH):
        place, last = folder / f"batch-{first}", min(first + BATCH, tables)
        place.mkdir()
        if code := run(_batch, place, seed, first, last):
            yield (
                last - first,
                [f"tables {first} to {last} of seed {seed}: the process ended with {code}"],
            )
        else:
            yield last - first, json.loads((place / "faults.json").read_text())
        shutil.rmtree(place)
