"""The application that the commands register with."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from infomax import memory
from infomax.version import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ORDER = (
    "info", "train", "embed", "update", "evaluate", "compare", "neighbours", "explain", "map",
    "cluster", "analyse", "convert", "prepare", "demo", "reproduce", "datasets",
)  # fmt: skip
"""The commands in the order in which one uses them; others are listed last."""
ENTRY_POINTS = "infomax.commands"
"""The group of entry points by which other packages add commands, each a `typer.Typer`."""


def added_commands() -> dict[str, EntryPoint]:
    """Name -> command of another package, not yet loaded; also of a checkout that is used without installing it."""
    from importlib.metadata import EntryPoint, entry_points

    project = Path(__file__).parents[3] / "pyproject.toml"
    listed = (
        tomllib.loads(project.read_text("utf-8"))["project"]["entry-points"]
        if project.exists()
        else {}
    )
    here = {
        name: EntryPoint(name, value, ENTRY_POINTS)
        for name, value in listed.get(ENTRY_POINTS, {}).items()
    }
    return here | {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


class Commands(TyperGroup):
    """The commands, listed by ``--help`` in `ORDER`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return sorted(
            [*self.commands, *added_commands()], key=lambda name: (*ORDER, name).index(name)
        )

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is none."""
        if command := super().get_command(ctx, cmd_name):
            return command
        added = added_commands().get(cmd_name)
        return get_command(added.load()) if added else None


class Grouped(TyperCommand):
    """A command whose ``--help`` lists the options under the headings that `rich_help_panel` gives them."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options without a heading, then each heading with its options."""
        headings: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                argument = parameter.param_type_name == "argument"
                heading = (
                    "Arguments"
                    if argument
                    else getattr(parameter, "rich_help_panel", None) or "Options"
                )
                headings.setdefault(heading, []).append(record)
        for heading, records in headings.items():
            with formatter.section(heading):
                formatter.write_dl(records)


IDLE = {"GOMP_SPINCOUNT": "10000", "OPENBLAS_THREAD_TIMEOUT": "16"}
"""For how long threads of torch and NumPy that wait for work keep their core busy: tenths of a millisecond.

By default it is milliseconds, in which a small training beside other processes costs several times its own work.
"""
app = typer.Typer(
    name="infomax",
    cls=Commands,
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
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Deep Graph Infomax: learn one vector per node of a graph, without labels."""
    for name, value in IDLE.items():
        os.environ.setdefault(name, value)
    if (
        memory.has_limit()
    ):  # torch's allocator would reserve 1 GB at a time (mimalloc, on aarch64); in kB
        os.environ.setdefault("MIMALLOC_ARENA_RESERVE", str(64 << 10))
