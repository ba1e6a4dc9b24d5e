"""A preparation that is killed, or that finds no room, leaves nothing half-written under its final name."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from test_prepare import same

from infomax import Graph, read_graph
from infomax.arrays.integrity import CHECKED
from infomax.io.prepare import database, on_disk, prepare
from infomax.io.prepare.database import Database

pytest.importorskip("duckdb", reason="prepare sorts with it")


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the one in which opening a folder notes the times of the others."""
    return {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != CHECKED
    }


def test_killed_at_any_moment_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n, e = 3000, 20_000
    ids = [f"node {number}" for number in rng.permutation(n)]
    ends = rng.integers(0, n, (2, e))
    columns = {
        "source": [ids[i] for i in ends[0]],
        "target": [ids[i] for i in ends[1]],
        "weight": rng.random(e),
    }
    parquet.write_table(pa.table(columns), tmp_path / "edges.parquet")
    parquet.write_table(
        pa.table({"id": ids, "v": list(rng.random((n, 8)))}), tmp_path / "nodes.parquet"
    )
    tables_ = tmp_path / "edges.parquet", tmp_path / "nodes.parquet"
    prepare(*tables_, out=tmp_path / "whole.graph")
    same(Graph.open(tmp_path / "whole.graph"), read_graph(*tables_))
    code = "import sys\nfrom infomax.io.prepare import prepare\nprint(flush=True)\n"
    code += "prepare(*sys.argv[1:3], out=sys.argv[3])"
    command = [sys.executable, "-c", code, *map(str, tables_), str(tmp_path / "killed.graph")]
    draws, kills = random.Random(0), 0
    while not (tmp_path / "killed.graph").exists():
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()  # it begins
            if kills < 3:
                time.sleep(draws.uniform(0.02, 0.4))
                process.kill()
            kills += 1
    assert contents(tmp_path / "killed.graph") == contents(tmp_path / "whole.graph")
    # The last process was not killed; one that was may have moved its graph and not cleaned up.
    if kills > 3:
        assert not list(tmp_path.glob(".killed*"))


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("of", ["a table", "a statement", "a stream"])
def test_a_signal_stops_the_database_as_its_handler_says(tmp_path: Path, of: str) -> None:
    """Without it, DuckDB would be busy for hours.

    The handler is the test's own: nohup, or an & in a shell, may have started the tests with SIGINT ignored.
    """
    long = "SELECT max(one.range * two.range) FROM range(10000000) AS one, range(10000000) AS two"
    work = Database(tmp_path, 1 << 28)

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def endless() -> Iterator[dict[str, np.ndarray]]:
        yield {"number": np.arange(5)}
        interrupt()
        while True:
            yield {"number": np.arange(5)}

    if of != "a table":
        threading.Timer(0.5, interrupt).start()
    begin = {
        "a table": lambda: work.create("numbers", endless()),
        "a statement": lambda: work.execute(long),
        "a stream": lambda: list(work.stream(long)),
    }
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            begin[of]()
    finally:
        signal.signal(signal.SIGINT, before)
        work.close()


@pytest.mark.parametrize(
    ("free", "asked", "limit"), [(5e8, None, 4e8), (1e11, None, 4e9), (5e8, 10**9, 1e9)]
)
def test_it_works_in_the_memory_that_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, asked: int | None, limit: float
) -> None:
    """A container with less than the usual 4 GB would end the process, which could say nothing."""
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    limits = []

    class Noted(Database):
        def __init__(self, folder: Path, memory: int) -> None:
            limits.append(memory)
            super().__init__(folder, memory)

    monkeypatch.setattr("infomax.io.prepare.free_bytes", lambda: int(free))
    monkeypatch.setattr(on_disk, "Database", Noted)
    prepare(tmp_path / "edges.csv", out=tmp_path / "g.graph", memory=asked)
    assert limits == [limit]


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs a limit on the size of files")
def test_a_full_disk_is_told_and_nothing_is_left_under_the_final_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 500, (2, 60_000))
    parquet.write_table(
        pa.table({"source": ends[0], "target": ends[1]}), tmp_path / "edges.parquet"
    )
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "sys.argv[0] = 'infomax'; from infomax.cli import main; main()"
    )
    words = ["prepare", str(tmp_path / "edges.parquet"), "--out", str(tmp_path / "g.graph")]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "infomax: " in done.stderr
    assert not (tmp_path / "g.graph").exists()
    assert not list(tmp_path.glob(".g*"))


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")

    def stop(done: int, title: str = "", total: int | None = None) -> None:
        if title == "hashing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(tmp_path / "edges.csv", out=tmp_path / "g.graph", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_what_a_killed_process_has_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    (tmp_path / ".g.graph-prepare" / "graph").mkdir(parents=True)
    (tmp_path / ".g.graph-prepare" / "graph" / "weights.npy").write_bytes(b"half of it")
    (tmp_path / ".g.graph-prepare" / "work.duckdb").write_bytes(b"half of it")
    prepare(tmp_path / "edges.csv", out=tmp_path / "g.graph")
    same(Graph.open(tmp_path / "g.graph"), read_graph(tmp_path / "edges.csv"))
    assert not list(tmp_path.glob(".g*"))


def test_rows_do_not_depend_on_the_batches_they_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that go on in the next batch, rows that end with one, and nodes without edges between and after them."""
    monkeypatch.setattr(database, "ROWS_PER_BATCH", 2048)  # as few as DuckDB gives at a time
    rng = np.random.default_rng(0)
    n, targets = (
        9000,
        np.concatenate(
            [np.full(5000, 3), np.full(2048, 4), rng.integers(5, 200, 3000), np.full(500, 8000)]
        ),
    )
    sources = np.concatenate(
        [np.arange(100, 5100), np.arange(100, 2148), rng.integers(200, 400, 3000), np.arange(500)]
    )
    table = {"source": sources, "target": targets, "weight": rng.random(len(sources)) + 0.5}
    parquet.write_table(pa.table(table), tmp_path / "edges.parquet")
    parquet.write_table(
        pa.table({"id": np.arange(n), "x": rng.random(n)}), tmp_path / "nodes.parquet"
    )
    tables_ = tmp_path / "edges.parquet", tmp_path / "nodes.parquet"
    for directed in (False, True):
        prepare(*tables_, out=tmp_path / f"{directed}.graph", directed=directed)
        same(Graph.open(tmp_path / f"{directed}.graph"), read_graph(*tables_, directed=directed))
