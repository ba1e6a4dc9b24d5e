"""Infomax runs where the operating system lacks what Linux has: the names are hidden, then the commands are run."""

from __future__ import annotations

import json
import subprocess
import sys

from sample_graphs import random_graph

from infomax.io.npz import write_npz

HIDE = '''
import os, sys
from types import SimpleNamespace

# Other libraries look after themselves on each system: they are loaded while everything is still there.
import filelock, numba, psutil, safetensors.torch, scipy.sparse, scipy.special, sklearn.linear_model, torch
import rich.console, rich.progress, rich.table, sklearn.model_selection, typer.main

assert not any(name.startswith("infomax") for name in sys.modules)
held = SimpleNamespace(rss=1 << 28, vms=1 << 30, peak_wset=123_456_789)
psutil.virtual_memory = lambda: SimpleNamespace(total=8 << 30, available=4 << 30)
psutil.Process = lambda: SimpleNamespace(memory_info=lambda: held)
for name in ("resource", "fcntl", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("register_at_fork", "sysconf", "fork", "geteuid"):
    delattr(os, name)

def caller():
    """The package that opens a file."""
    frame = sys._getframe(2)
    while (name := frame.f_globals.get("__name__", "").partition(".")[0]) in ("pathlib", "io", "codecs"):
        frame = frame.f_back
    return name

def refuse(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/proc", "/sys")) and caller() == "infomax":
        raise FileNotFoundError(2, "No such file or directory", arguments[0])

sys.addaudithook(refuse)
import infomax.kernels
infomax.kernels.FEWEST_NUMBERS_FOR_NUMBA = 1  # the compiled kernels on a small graph
from infomax.cli import main

for words in COMMANDS:
    sys.argv = ["infomax", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
'''


def test_train_embed_and_evaluate_run_without_what_linux_has(tmp_path):
    source, run, vectors = (str(tmp_path / name) for name in ("graph.npz", "run", "vectors.csv"))
    scores = tmp_path / "scores.json"
    write_npz(random_graph(60), source)
    commands = [
        ["train", source, "--dim", "8", "--epochs", "3", "--out", run],
        ["embed", run, "--out", vectors],
        ["evaluate", vectors, "--labels", f"{source}:class", "--json", str(scores)],
    ]
    script = f"COMMANDS = {commands!r}\n{HIDE}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "123.5 MB" in done.stdout  # the peak as Windows reports it
    assert all(0 < row["mean"] <= 100 for row in json.loads(scores.read_text())["rows"])
