"""What the commands share: their options, the table, the JSON. Imports nothing heavy: `memory` counts on that."""

from __future__ import annotations

import argparse
import json
import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import infomax

CONTENDERS = {
    "ours": "infomax",
    "pyg": "PyG, edge_index",
    "pyg-csr": "PyG, CSR adjacency",
    "plain": "plain, nn.Bilinear",
    "plain-product": "plain, H (W s)",
}
"""Name on the command line -> name in the table."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options of every benchmark."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--dataset", default="cora", help="cora, citeseer, pubmed or generated:N")
    options.add_argument("--dim", type=int, help="width; default: the paper's, 512, for Pubmed 256")
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument("--threads", type=int, default=2, help="CPU threads")
    options.add_argument("--peers", type=_names, default=list(CONTENDERS)[1:], help=", ".join(list(CONTENDERS)[1:]))
    options.add_argument("--json", type=Path, metavar="FILE")
    return options


def parse(options: argparse.ArgumentParser, arguments: list[str] | None) -> argparse.Namespace:
    """The arguments, with the paper's width where none is given."""
    settings = options.parse_args(arguments)
    settings.dim = settings.dim or (256 if settings.dataset == "pubmed" else 512)
    return settings


def report(settings: argparse.Namespace, rows: list[dict[str, Any]], columns: dict[str, str]) -> None:
    """Print the rows as a table, a column a heading and a format; write all of it as JSON where that is asked for."""
    title = f"{settings.dataset}, d = {settings.dim}, {settings.device}, {settings.threads} threads"
    table = Table("contender", title=title)
    for heading in columns:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(CONTENDERS[row["contender"]], *(form.format(**row) for form in columns.values()))
    Console().print(table)
    if settings.json:
        what = {name: value for name, value in vars(settings).items() if name not in ("json", "peers", "contender")}
        document = {"settings": what, "machine": machine(settings.device), "rows": rows}
        settings.json.write_text(json.dumps(document, indent=2) + "\n")


def machine(device: str) -> dict[str, Any]:
    """Where it was measured, and with which versions."""
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


def _names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in CONTENDERS or name == "ours":
            raise argparse.ArgumentTypeError(f"unknown peer {name!r}; choose from {', '.join(list(CONTENDERS)[1:])}")
    return names
