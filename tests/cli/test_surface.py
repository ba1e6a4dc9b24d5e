"""The words that other tools type: commands and options that may not go, and what `--help` costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from shell import infomax, refused
from typer.main import get_command

from infomax.cli import app
from infomax.presets import PRESETS

SURFACE = {
    "train": {"--out", "--labels", "--preset", "--dim", "--epochs", "--patience", "--seed", "--device", "--resume"},
    "embed": {"--out"},
    "evaluate": {"--labels", "--dataset", "--probe", "--json"},
    "neighbours": {"-k"},
    "info": set(),
    "datasets": set(),
    "reproduce": {"--runs", "--probe", "--json"},
    "demo": set(),
}
HEAVY = {"torch", "numpy", "scipy", "sklearn", "rich", "pyarrow", "matplotlib", "networkx", "pandas"}


@pytest.mark.parametrize("name", SURFACE)
def test_command_keeps_its_options(name):
    command = get_command(app).commands[name]
    assert SURFACE[name] <= {option for parameter in command.params for option in parameter.opts}
    outcome = infomax(name, "--help")
    assert outcome.code == 0
    assert outcome.out.startswith(f"Usage: infomax {name} ")


def test_help_gives_the_default_of_a_setting_unless_presets_differ_in_it():
    told = {parameter.name: parameter.help for parameter in get_command(app).commands["train"].params}
    for name in ("dim", "epochs", "patience", "scale", "lr"):
        values = {getattr(preset, name) for preset in PRESETS.values()}
        default = values.pop() if len(values) == 1 else "the preset's"
        assert told[name].endswith(f"[default: {default}]"), name


def test_datasets_keeps_its_verbs():
    assert {"list", "fetch", "path"} <= set(get_command(app).commands["datasets"].commands)


def test_no_words_are_a_call_for_help():
    assert infomax() == infomax("--help")
    assert set(SURFACE) <= set(infomax().out.split())


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("trian", ["No such command 'trian'", "infomax --help"]),
        ("datasets fatch", ["No such command 'fatch'", "infomax datasets --help"]),
        ("train", ["Missing argument 'GRAPH'", "infomax train --help"]),
        ("train graph", ["Missing option '--out'"]),
        ("train graph --out run --dimension 8", ["No such option: --dimension"]),
        ("train graph --out run --dim wide", ["--dim", "integer"]),
        ("train graph --out", ["'--out' requires an argument"]),
        ("neighbours run node -k 0", ["-k", "1"]),
    ],
    ids=str,
)
def test_a_mistyped_command_is_one_message(words, parts):
    refused(infomax(*words.split()), *parts)


def test_help_imports_nothing_heavy():
    script = """
import sys
from infomax.cli import main
sys.argv = ["infomax", "--help"]
try:
    main()
except SystemExit:
    print(*{name.split(".")[0] for name in sys.modules}, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    assert "typer" in imported
    assert not HEAVY & imported
    assert done.stdout.startswith("Usage: infomax ")
