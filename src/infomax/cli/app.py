"""The application that the commands register with."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from infomax.machine import prepare_for_limit
from infomax.version import __version__

ORDER = (
    "prepare", "info", "train", "embed", "evaluate", "neighbours", "map", "cluster", "analyse", "demo", "reproduce",
    "datasets",
)  # fmt: skip
"""The commands in the order in which one uses them; others are listed last."""


class Commands(TyperGroup):
    """The commands, listed by ``--help`` in `ORDER`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return sorted(self.commands, key=lambda name: (*ORDER, name).index(name))


app = typer.Typer(
    name="infomax",
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,  # plain help: half the time, and "[default: 512]" is not taken for markup
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"infomax {__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Deep Graph Infomax: learn one vector per node of a graph, without labels."""
    prepare_for_limit()
