"""Shared by all benchmarks: options, table, JSON. Imports nothing heavy, which `benchmarks.memory` relies on."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

import infomax

WHOLE_GRAPH = ("pyg", "pyg-csr", "plain", "plain-product")
"""The peers that train on a whole graph."""

Made = TypeVar("Made")


class CannotRun(Exception):  # noqa: N818 - not an error of the program
    """Says why a peer cannot run on this machine."""


def parser(
    description: str | None, *, dataset: str = "", peers: Sequence[str] = ()
) -> argparse.ArgumentParser:
    """Make a parser with the options of every benchmark; with ``--dataset`` and ``--peers`` if
    given."""
    options = argparse.ArgumentParser(description=description)
    if dataset:
        options.add_argument("--dataset", default=dataset, help=f"default: {dataset}")
    if peers:
        names = partial(_names, known=tuple(peers))
        options.add_argument("--peers", type=names, default=list(peers), help=", ".join(peers))
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument("--threads", type=int, default=2, help="CPU threads")
    options.add_argument("--json", type=Path, metavar="FILE")
    return options


def numbers(text: str) -> list[int]:
    """Parse whole numbers such as ``10,10,25`` or ``1e3,1e4``."""
    return [int(float(number)) for number in text.split(",")]


def paper_dim(dataset: str) -> int:
    """Return the paper's width for a data set."""
    return 256 if dataset == "pubmed" else 512


def assemble(makers: dict[str, Callable[[], Made]], left_out: dict[str, str]) -> dict[str, Made]:
    """Make every contender; leave out those that cannot run, and print and note the reason."""
    made = {}
    for name, make in makers.items():
        try:
            made[name] = make()
        except (CannotRun, ImportError) as reason:
            left_out[name] = str(reason)
            print(f"left out: {name}: {reason}")
    return made


def report(
    settings: argparse.Namespace,
    title: str,
    rows: list[dict[str, Any]],
    columns: dict[str, str],
    **more: Any,
) -> None:
    """Print the rows as a table with one heading and format per column; with --json, also write all
    of it as JSON."""
    where = machine(settings.device)
    print(
        f"{title}\n{where.get('gpu', 'CPU')}, CPU threads: {settings.threads}, torch {where['torch']}"
    )
    table = Table()
    for heading in columns:
        table.add_column(heading, justify="right" if table.columns else "left")
    for row in rows:
        table.add_row(*(form.format(**row) for form in columns.values()))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    if settings.json:
        what = {
            name: value
            for name, value in vars(settings).items()
            if name not in ("json", "peers", "contender")
        }
        document = {"settings": what, "machine": where, "rows": rows, **more}
        settings.json.write_text(json.dumps(document, indent=2) + "\n")


def timed(
    commands: Sequence[Sequence[str]], threads: int, *, at_once: bool = False
) -> tuple[float, float]:
    """Seconds that commands take, one after the other or at once: by the clock, and of CPU time."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    environment.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # as a user runs it, whose Python compiles a module once
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    running = []
    for command in commands:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        running.append((command, subprocess.Popen(command, env=environment, **quiet)))
        if not at_once:
            running[-1][1].wait()
    for command, process in running:
        said = process.communicate()[1]
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} failed: {said[-1000:]}")
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def machine(device: str) -> dict[str, Any]:
    """Describe the machine and the versions of the packages."""
    about: dict[str, Any] = {
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "infomax": infomax.__version__,
    }
    for package in ("torch", "torch-geometric", "numpy"):
        with suppress(PackageNotFoundError):
            about[package] = version(package)
    if device == "cuda":
        import torch

        about["gpu"] = torch.cuda.get_device_name()
    return about


def _names(text: str, known: tuple[str, ...]) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(
                f"unknown peer {name!r}; choose from {', '.join(known)}"
            )
    return names
