"""Run every benchmark, and every recipe that can, at toy size, so that none breaks unseen; no figure means anything.

    python -m benchmarks --smoke [NAME ...] [--device cuda]

Exits with 1 where one fails. What needs a data set that the folder ``INFOMAX_DATA`` does not hold, or a library that is
not installed, is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.script import run

SECONDS = 600
"""The most that one script may take."""
LOADED = ("torch", "scipy.sparse", "sklearn.linear_model", "sklearn.metrics", "infomax.estimator")
"""What most scripts import, which takes half of their time: once, in the process that all of theirs
are forked from."""


PROCESSES = multiprocessing.get_context("forkserver")


class Toy(NamedTuple):
    """A script at toy size."""

    options: str
    """Its words; in them FOLDER is an empty folder of its own."""
    data: str = ""
    """The folder of INFOMAX_DATA that it reads."""
    device: bool = True
    """Whether it takes --device."""
    library: str = "torch"
    """A library that not every machine has, and that it needs."""


LONG = ("deepwalk", "figures", "gcn", "relational", "splits", "table")
TOYS = {
    "benchmarks.protocol": Toy("--dataset cora --runs 1 --peer-runs 1 --peers=", "planetoid"),
    "benchmarks.busy": Toy("--busy 1 --repeats 1 --trainings 1"),
    "benchmarks.many": Toy("--graphs 2 --dim 8 --repeats 1 --epochs 1", "ppi"),
    "benchmarks.felt": Toy("--dataset pages:200 --epochs 2 --repeats 1 --peers="),
    "benchmarks.large": Toy(
        "--nodes 1e4 --folder FOLDER --dim 8 --steps 2", device=False, library="duckdb"
    ),
    # The tests run its other parts.
    "benchmarks.faults": Toy(
        "--part folders --folders 1 --no-disks", device=False, library="duckdb"
    ),
    "benchmarks.papers": Toy("--folder FOLDER --nodes 2e3 --dim 8 --steps 3"),
    "benchmarks.ratings": Toy(
        "--users 500 --items 50 --ratings 2e3 --folder FOLDER --dim 8 --steps 2",
        device=False,
        library="duckdb",
    ),
    "benchmarks.shop": Toy(
        "--customers 500 --products 50 --lines 2e3 --folder FOLDER --dim 8 --steps 2", device=False
    ),
    "benchmarks.questions": Toy(
        "--questions 200 --customers 500 --products 50 --lines 2e4 --folder FOLDER",
        device=False,
        library="duckdb",
    ),
    "benchmarks.compared": Toy(
        "--graph communities:300 --method infomax --json FOLDER/rows.json", device=False
    ),
    "benchmarks.measured": Toy("--machine toy --work batches --toy --json FOLDER/rows.json"),
    "benchmarks.types": Toy("--dim 8 --repeats 1 --peers=pyg", "heco"),
    "benchmarks.epoch": Toy("--dataset generated:60 --dim 8 --repeats 1"),
    "benchmarks.memory": Toy("--dataset generated:60 --dim 8 --peers=plain"),
    "benchmarks.batches": Toy("--scale 0.005 --dim 8 --batch 256 --steps 2 --repeats 1"),
    "benchmarks.patches": Toy("--scale 0.005 --dim 8 --fan-out 3,2 --steps 2 --repeats 1"),
    "benchmarks.embed": Toy("--scale 0.005 --dim 8 --repeats 1"),
    "benchmarks.neighbours": Toy("--nodes 2e3 --width 8"),
    "benchmarks.update": Toy("--nodes 2e3 --folder FOLDER", device=False),
    "benchmarks.together": Toy("--nodes 200 --epochs 2 --repeats 1"),
    "benchmarks.growth": Toy("--nodes 50,100 --fixed 60 --repeats 1"),
    "benchmarks.largest": Toy("--nodes 1e3 --features 5 --degree 4 --dim 4 --steps 2"),
    "benchmarks.parts": Toy("--help", device=False),  # benchmarks.papers runs it
    "benchmarks.ranks": Toy("--scale 0.005 --ranks 1 --dim 8 --batch 256 --steps 1 --repeats 1"),
    "benchmarks.folds": Toy("cora --sizes 5 --draws 1", "planetoid", device=False),
    "benchmarks.columns": Toy(
        "--nodes 1e3 --folder FOLDER --rounds 1", device=False, library="duckdb"
    ),
    "benchmarks.wide": Toy(
        "--folder FOLDER --numbers 5 --rounds 1", device=False, library="duckdb"
    ),
    "benchmarks.serve": Toy(
        "--nodes 1000 --dim 8 --requests 20 --malformed 20", device=False, library="fastapi"
    ),
    "recipes.ppi_baselines": Toy("FOLDER --seeds 1 --tiny --rows FastGCN", "ppi"),
    "recipes.positions": Toy("cora --runs 1 --dim 8", "planetoid"),
    "recipes.recommend": Toy("--users 200 --items 300 --ratings 12 --seeds 1", device=False),
    "recipes.defaults": Toy("cora --encoders 1 --dim 8", "planetoid"),
    "recipes.weak_features": Toy("heco-acm-random --encoders 1 --dim 8 --epochs 2", "heco"),
    "recipes.bgrl": Toy("--dataset cora --dim 8 --epochs 3", "planetoid", device=False),
    "recipes.edge_features": Toy("--dim 8 --epochs 3 --seeds 1", device=False),
    "recipes.batches": Toy("--growth 1e3"),
    "recipes.schedules": Toy(
        "cora --schedules paper 3@0.002 --seeds 2 --dim 8 --vectors encoder", "planetoid"
    ),
    "recipes.align": Toy("cora --runs 1 --dim 8", "planetoid", device=False),
    # At any size they take long: whether all that they import is there.
    **{f"recipes.{name}": Toy("--help", device=False) for name in LONG},
    "recipes.serve": Toy("--help", device=False, library="fastapi"),
}
"""Those that take long first."""


def main(arguments: list[str] | None = None) -> int:
    """Run the scripts, as many at once as there are cores; returns how many fail."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--smoke", action="store_true", required=True, help="run them all at toy size"
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="some of them, as benchmarks.epoch or recipes.gcn"
    )
    settings = parser.parse_args(arguments)
    if unknown := set(settings.names) - set(TOYS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(TOYS)}")
    names = settings.names or list(TOYS)
    PROCESSES.set_forkserver_preload(list(LOADED))
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return sum(pool.map(lambda name: not passes(name, settings.device), names))


def passes(name: str, device: str) -> bool:
    """Run one script, in a process of its own, and print how it ended; whether it did so without an
    error."""
    toy, data = TOYS[name], os.environ.get("INFOMAX_DATA")
    if toy.data and not (data and (Path(data) / toy.data).is_dir()):
        print(f"left out: {name}: no {toy.data} in INFOMAX_DATA", flush=True)
        return True
    if importlib.util.find_spec(toy.library) is None:
        print(f"left out: {name}: no {toy.library}", flush=True)
        return True
    environment = (
        os.environ
        | {"OMP_NUM_THREADS": "1"}
        | ({} if device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""})
    )
    environment.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # else each process would compile all modules anew
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as said:
        words = [word.replace("FOLDER", folder) for word in toy.options.split()]
        words += ["--device", device] if toy.device else []
        process = PROCESSES.Process(target=run, args=(name, words, environment, said.name))
        process.start()
        process.join(SECONDS)
        ended = "ok" if process.exitcode == 0 else "FAILED"
        process.kill()
        print(f"{ended} {name} {time.monotonic() - began:.0f} s", flush=True)
        if ended != "ok":
            print(
                f"python -m {name} {' '.join(words)}",
                said.read().decode()[-3000:],
                sep="\n",
                flush=True,
            )
    return ended == "ok"


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
