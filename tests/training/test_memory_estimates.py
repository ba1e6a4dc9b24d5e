"""Estimates of memory are within a factor of two of what a training and an embedding really take."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SHAPES = {
    "wide vectors": {"n": 15_000, "degree": 6, "features": 50, "dim": 256, "layers": 2},
    "many edges": {"n": 12_000, "degree": 150, "features": 16, "dim": 16, "layers": 1},
    "many features": {"n": 24_000, "degree": 6, "features": 900, "dim": 16, "layers": 1},
}

SCRIPT = """
import json, os, sys, threading
from functools import partial
import numpy as np, psutil, torch
from infomax import DGI, Graph
from infomax.estimator import training_bytes
from infomax.kernels import LARGE
from infomax.parts.encoders import GCN
from infomax.training.memory import embedding_bytes

def graph_of(n, degree, features):
    rng = np.random.default_rng(0)
    edges = rng.integers(n, size=(2, n * degree // 2))
    return Graph.from_arrays(edges, rng.random((n, features), dtype=np.float32))

def taken(work):
    '''The most bytes that this process holds during the work, beyond those that it held before.'''
    process, over, peaks = psutil.Process(), threading.Event(), []
    before = process.memory_info().rss
    def watch():
        while not over.wait(0.001):
            peaks.append(process.memory_info().rss)
    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    over.set()
    watcher.join()
    return max(peaks) - before

def measure(n, degree, features, dim, layers):
    encoder = partial(GCN, layers=layers)
    warm, model = graph_of(LARGE // dim + 1, 6, 4), DGI(dim, encoder=encoder, epochs=2, device="cpu")
    model.fit(warm).transform(warm)
    graph = graph_of(n, degree, features)
    row = {"training": training_bytes(model.settings(), graph, torch.device("cpu"))}
    row["embedding"] = embedding_bytes(graph, dim)
    row["really training"] = taken(lambda: model.fit(graph))
    row["really embedding"] = taken(lambda: model.transform(graph))
    return row

for name, shape in json.loads(sys.argv[1]).items():
    child = os.fork()  # in a process of its own, as the libraries keep what they once took
    if child == 0:
        print(json.dumps({"shape": name} | measure(**shape)), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_estimates_are_within_a_factor_of_two():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(SHAPES)], capture_output=True, text=True, check=False
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["shape"] for row in rows] == list(SHAPES), done.stderr
    for row in rows:
        for what in ("training", "embedding"):
            assert 0.5 < row[what] / row[f"really {what}"] < 2, row
