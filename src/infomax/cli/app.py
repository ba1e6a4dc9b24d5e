"""The application that the commands register with, and how its ``--help`` is laid out."""

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
IDLE_THREADS = {"GOMP_SPINCOUNT": "10000", "OPENBLAS_THREAD_TIMEOUT": "16"}
"""How long threads of torch and NumPy that wait for work keep their core busy, in 0.1 ms.

By default it is milliseconds, in which a small training beside other processes costs several times
its own work.
"""
ARENA_KILOBYTES = 64 << 10
"""What torch's allocator reserves at a time where memory is limited; by itself it takes 1 GB."""


def added_commands() -> dict[str, EntryPoint]:
    """The commands of other packages by name, not yet loaded.

    A checkout that is used without installing it has no metadata, so its own project file is read
    as well.
    """
    from importlib.metadata import EntryPoint, entry_points

    commands: dict[str, EntryPoint] = {}
    project_file = Path(__file__).parents[3] / "pyproject.toml"
    if project_file.exists():
        groups = tomllib.loads(project_file.read_text("utf-8"))["project"]["entry-points"]
        for name, value in groups.get(ENTRY_POINTS, {}).items():
            commands[name] = EntryPoint(name, value, ENTRY_POINTS)
    for installed in entry_points(group=ENTRY_POINTS):
        commands[installed.name] = installed
    return commands


class Commands(TyperGroup):
    """The group of all commands, which ``--help`` lists in `ORDER`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        names = [*self.commands, *added_commands()]
        in_order = [name for name in ORDER if name in names]
        return in_order + [name for name in names if name not in ORDER]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is none."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        added = added_commands().get(cmd_name)
        return get_command(added.load()) if added is not None else None


class Grouped(TyperCommand):
    """A command whose ``--help`` lists its options under headings.

    The heading of an option is its `rich_help_panel`. Options that are hidden are named at the end.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options without a heading, then each heading with its options."""
        lines_by_heading: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            help_line = parameter.get_help_record(ctx)
            if help_line is None:
                continue
            heading = getattr(parameter, "rich_help_panel", None) or "Options"
            if parameter.param_type_name == "argument":
                heading = "Arguments"
            lines_by_heading.setdefault(heading, []).append(help_line)

        for heading, help_lines in lines_by_heading.items():
            with formatter.section(heading):
                formatter.write_dl(help_lines)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Name the hidden options, so that nobody takes them for removed."""
        super().format_epilog(ctx, formatter)
        names = [
            parameter.opts[0]
            for parameter in self.get_params(ctx)
            if getattr(parameter, "hidden", False)
        ]
        if not names:
            return
        formatter.write_paragraph()
        formatter.write("Further options; docs/reference/commands.md explains them:\n")
        # Indented further than options are, for those who read this page by a program.
        with formatter.indentation(), formatter.indentation():
            formatter.write_text(", ".join(names))


app = typer.Typer(
    name="infomax",
    cls=Commands,
    # Plain help takes half the time, and does not take "[default: 512]" for markup.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(is_asked_for: bool) -> None:
    if is_asked_for:
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
    # Libraries read these when they are loaded, which no command has done yet.
    for name, value in IDLE_THREADS.items():
        os.environ.setdefault(name, value)
    if memory.has_limit():
        os.environ.setdefault("MIMALLOC_ARENA_RESERVE", str(ARENA_KILOBYTES))
