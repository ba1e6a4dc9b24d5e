"""A script of benchmarks or recipes, run in a process that has torch already."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import torch


def run(name: str, words: list[str], environment: dict[str, str], said: str) -> None:
    """Run a script as ``python -m`` does, in this process, which should be its own; what it says
    goes to a file."""
    with Path(said).open("wb") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(Path(__file__).parents[1])
    torch.set_num_threads(1)
    sys.argv = [name, *words]
    runpy.run_module(name, run_name="__main__", alter_sys=True)
