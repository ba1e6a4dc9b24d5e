"""A page for every command, made from its options when mkdocs builds the site (a hook, see mkdocs.yml)."""

from __future__ import annotations

import re
from copy import copy
from html import escape
from typing import Any

from typer.main import get_command

from infomax.cli import app

FIRST = "commands/index.md"


def pages() -> dict[str, str]:
    """The Markdown of each page by its path in docs/, in the order of ``infomax --help``."""
    group = get_command(app)
    context = group.make_context("infomax", [], resilient_parsing=True)
    names = group.list_commands(context)
    commands = {name: group.get_command(context, name) for name in names}
    listed = [
        f"| [`infomax {name}`]({name}.md) | {_cell(commands[name].get_short_help_str(200))} |"
        for name in names
    ]
    first = [
        "# Commands",
        "",
        "| command | what it does |",
        "|---|---|",
        *listed,
        "",
        *_options(group, context),
    ]
    made = {FIRST: "\n".join(first)}
    for name, command in commands.items():
        made[f"commands/{name}.md"] = "\n".join(_page(command, context, name, 1))
    return made


def _page(command: Any, parent: Any, name: str, level: int) -> list[str]:
    """The lines of a command under a heading; its own commands follow as sections."""
    context = type(parent)(command, info_name=name, parent=parent)
    usage = context.get_usage().removeprefix("Usage: ")
    lines = [
        f"{'#' * level} {context.command_path}",
        "",
        *_prose(command.help or ""),
        "",
        "```",
        usage,
        "```",
        "",
    ]
    lines += _options(command, context)
    for inner in command.list_commands(context) if hasattr(command, "list_commands") else ():
        lines += ["", *_page(command.get_command(context, inner), context, inner, level + 1)]
    return lines


def _options(command: Any, context: Any) -> list[str]:
    """The tables of its arguments and options, one per heading of its ``--help``.

    Options that ``--help`` only names are in a table of their own, the last.
    """
    tables: dict[str, list[str]] = {"Arguments": [], "Options": []}
    further: list[str] = []
    for parameter in command.get_params(context):
        if parameter.name == "help":
            continue
        row = _option_row(parameter, context)
        if row is None:
            continue
        if getattr(parameter, "hidden", False):
            further.append(row)
            continue
        heading = getattr(parameter, "rich_help_panel", None) or "Options"
        if parameter.param_type_name == "argument":
            heading = "Arguments"
        tables.setdefault(heading, []).append(row)
    tables["Further options"] = further

    lines = []
    for heading, rows in tables.items():
        if rows:
            lines += [f"**{heading}**", "", "| name | meaning |", "|---|---|", *rows, ""]
    return lines


def _option_row(parameter: Any, context: Any) -> str | None:
    """The row of an option in a table, also of one that ``--help`` only names; None without help."""
    shown = copy(parameter)
    if getattr(parameter, "hidden", False):
        shown.hidden = False
    help_record = shown.get_help_record(context)
    if help_record is None:
        return None
    name = escape(re.sub(r" <\w+>$", "", help_record[0])).replace("|", "&#124;")
    return f"| <code>{name}</code> | {_cell(help_record[1])} |"


def _prose(text: str) -> list[str]:
    return [_plain(line) for line in text.replace("\b", "").splitlines()]


def _cell(text: str) -> str:
    return _plain(re.sub(r"\s+", " ", text)).replace("|", "\\|")


def _plain(text: str) -> str:
    """The text with the characters escaped that Markdown would take for its own."""
    return re.sub(r"([*_<>\[\]])", r"\\\1", text)


def on_config(config: Any) -> None:
    """Put the pages into the menu, where mkdocs.yml says ``Commands``."""
    for entry in config.nav:
        if "Commands" in entry:
            entry["Commands"] = [
                {path[9:-3] if path != FIRST else "All commands": path} for path in pages()
            ]


def on_files(files: Any, config: Any) -> None:
    """Add the pages to the site's files."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
