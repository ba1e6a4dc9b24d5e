"""The pages of the commands on the site: every command has one, and it names every option of its ``--help``."""

from __future__ import annotations

import re
from html import unescape

import pytest
from scripts.command_pages import pages
from shell import infomax


@pytest.fixture(scope="module")
def made():
    return {path: unescape(text) for path, text in pages().items()}


def listed(*words: str) -> list[str]:
    """The commands that ``--help`` lists."""
    lines = infomax(*words, "--help").out.partition("Commands:\n")[2]
    return re.findall(r"^  (\S+)", lines, re.MULTILINE)


def options(*words: str) -> set[str]:
    """The options that ``--help`` describes, but for itself."""
    return set(re.findall(r"^  (--?[\w-]+)", infomax(*words, "--help").out, re.MULTILINE)) - {
        "--help"
    }


def test_every_command_has_a_page_with_all_its_options(made):
    names = listed()
    assert {"train", "embed", "reproduce"} <= set(names)
    assert {f"commands/{name}.md" for name in ("index", *names)} == set(made)
    for name in names:
        assert f"]({name}.md)" in made["commands/index.md"]
        assert made[f"commands/{name}.md"].startswith(f"# infomax {name}\n")
        for option in options(name):
            assert f"<code>{option}" in made[f"commands/{name}.md"], (name, option)
    assert {"--encoder", "--column", "--out"} <= options("train")


def test_options_that_help_only_names_are_on_the_page(made):
    further_options = made["commands/train.md"].partition("**Further options**")[2]
    for option in ("--corruption", "--id", "--key", "--header"):
        assert option not in options("train")
        assert f"<code>{option}" in further_options


def test_commands_within_a_command_are_sections(made):
    sections = dict(
        re.findall(
            r"^## infomax reproduce (\S+)\n(.*?)(?=^## |\Z)",
            made["commands/reproduce.md"],
            re.M | re.S,
        )
    )
    assert set(sections) == set(listed("reproduce")) >= {"table", "cora"}
    for name, text in sections.items():
        for option in options("reproduce", name):
            assert f"<code>{option}" in text, (name, option)
