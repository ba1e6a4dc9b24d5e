"""A graph in a folder, a run trained on it, and its vectors, for the tests of the command line."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from shell import DIM, FLAGS, infomax, write_graph, write_table

from infomax import DGI, read_graph


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph") / "small")


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    outcome = infomax(
        "train", folder, "--labels", "kind", "--out", path, "--dim", DIM, "--epochs", 20
    )
    assert outcome.code == 0, outcome.err
    assert "discriminator accuracy" in outcome.out
    assert f"wrote {path}/" in outcome.out
    return path


@pytest.fixture(scope="module")
def vectors(folder, run):
    """What the library gives for the same run: every command must give the same."""
    return DGI.load(run).transform(read_graph(folder, labels="kind")).vectors


@pytest.fixture
def quick_probe(monkeypatch):
    monkeypatch.setattr("infomax.evaluation.probes.PROBE_COSTS", (1.0,))


@pytest.fixture(scope="module")
def flags():
    """Two labels that a node has, has not, or of which the second is not known."""
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 3
    values = np.stack([(kind != 2) ^ (rng.random(60) < 0.1), kind != 0], axis=1).astype(np.int8)
    values[7, 1] = -1
    return values


@pytest.fixture(scope="module")
def flagged(flags, tmp_path_factory):
    """A folder whose node table has them as two columns of 0, 1 and nothing."""
    folder = write_graph(tmp_path_factory.mktemp("graph") / "flagged")
    with (folder / "nodes.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    cells = [["" if flag < 0 else flag for flag in row] for row in flags.tolist()]
    write_table(
        folder / "nodes.csv",
        [[*head, *FLAGS], *(row + more for row, more in zip(rows, cells, strict=True))],
    )
    return folder
