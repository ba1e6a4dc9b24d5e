"""The words that other tools type: commands and options that may not go, and what `--help` costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shell import infomax, refused
from typer.main import get_command

import infomax as infomax_package
from infomax.cli import app
from infomax.cli.app import ORDER, added_commands
from infomax.training.presets import PRESETS
from infomax.version import __version__

ROWS = (
    "cora",
    "citeseer",
    "pubmed",
    "ppi",
    "reddit",
    "generated-reddit",
    "debian",
    "debian-inductive",
)
COLUMNS = ("--id", "--source", "--target", "--weight", "--features", "--ignore")
SURFACE = {
    "prepare": {"--out", "--memory", "--labels", "--half", "--directed", "--like", *COLUMNS},
    "train": {
        "--out",
        "--labels",
        "--preset",
        "--dim",
        "--epochs",
        "--patience",
        "--seed",
        "--device",
        "--resume",
        "--steps",
        "--batch",
        "--hold-out-edges",
        "--vectors",
        "--lr",
        "--encoder",
        "--layers",
        "--corruption",
        "--rho",
        "--readout",
        "--scale",
        "--groups",
        *COLUMNS,
    },
    "embed": {
        "--out",
        "--attach",
        "--vectors",
        "--id",
        "--source",
        "--target",
        "--weight",
        "--features",
    },
    "compare": {"--json"},
    "update": {"--out", "--vectors", "--train", "--align", "--labels", "--device"},
    "evaluate": {"--labels", "--id", "--dataset", "--probe", "--edges", "--json", "--raw"},
    "neighbours": {"-k"},
    "explain": {"--column", "--json", "--type"},
    "info": {"--labels", "--directed", "--groups", "--schema", "--obey", *COLUMNS},
    "convert": {"--out", "--labels", "--directed", "--groups", *COLUMNS},
    "datasets": set(),
    "datasets list": set(),
    "datasets fetch": set(),
    "datasets path": set(),
    "map": {"--out", "--color", "-k"},
    "cluster": {"-k", "--out"},
    "analyse": {"--out", "--labels", "--projection"},
    "demo": {"--out"},
    "reproduce": set(),
    "reproduce table": {"--datasets", "--methods", "--runs", "--probe", "--out", "--json"},
    **{f"reproduce {name}": {"--runs", "--probe", "--json"} for name in ROWS},
    "reproduce corruption": {
        "--dataset",
        "--run",
        "--labels",
        "--runs",
        "--points",
        "--out",
        "--json",
    },
    "reproduce depth": {"--datasets", "--runs", "--layers", "--widths", "--out", "--json"},
    "reproduce heterogeneous": {"--runs", "--json"},
    "reproduce theory": {"--out", "--json"},
    "reproduce figures": {"--runs", "--points", "--out", "--json"},
}
HEAVY = {
    "torch",
    "numpy",
    "scipy",
    "sklearn",
    "rich",
    "pyarrow",
    "matplotlib",
    "networkx",
    "pandas",
    "duckdb",
}


def test_commands_keep_their_options():
    root = get_command(app)
    for name, options in SURFACE.items():
        command = root
        for word in name.split():
            command = command.get_command(None, word)
        assert options <= {option for parameter in command.params for option in parameter.opts}, (
            name
        )
        text = command.get_help(command.make_context(f"infomax {name}", [], resilient_parsing=True))
        assert text.startswith(f"Usage: infomax {name} ")
        assert "[[" not in text, name
        told = [
            (getattr(parameter, "help", None) or "").replace("  [default: ", " ")
            for parameter in command.params
        ]
        assert [text for text in told if "  " in text] == [], name


def test_help_gives_the_default_of_a_setting_unless_presets_differ_in_it():
    told = {
        parameter.name: parameter.help for parameter in get_command(app).commands["train"].params
    }
    for name in ("dim", "epochs"):
        values = {getattr(preset, name) for preset in PRESETS.values()}
        default = values.pop() if len(values) == 1 else "the preset's"
        assert told[name].endswith(f"[default: {default}]"), name


def listed(outcome):
    """Command -> what --help says about it."""
    lines = outcome.out.partition("Commands:\n")[2].splitlines()
    return dict(line.strip().split(maxsplit=1) for line in lines)


def test_no_words_are_a_call_for_help():
    assert infomax() == infomax("--help")


def test_commands_are_listed_in_the_order_of_use():
    assert tuple(listed(infomax("--help"))) == ORDER
    commands = ["table", *ROWS, "corruption", "depth", "heterogeneous", "theory", "figures"]
    assert list(listed(infomax("reproduce", "--help"))) == commands


@pytest.mark.parametrize("words", ["", "reproduce", "datasets"])
def test_the_line_of_every_command_is_whole(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = listed(infomax(*words.split(), "--help"))
    assert lines
    assert [
        name for name, line in lines.items() if not line.endswith(".") or line.endswith("...")
    ] == []


TRAIN_HELP = {
    "Options": ["--out", "--labels", "--resume", "--schema", "--help"],
    "What the tables hold": [
        "--features",
        "--column",
        "--types",
        "--edges-as",
        "--time",
        "--as-of",
        "--directed",
    ],
    "What a vector is made of": ["--vectors", "--dim", "--half-life", "--type", "--paths"],
    "How training goes": [
        "--encoder",
        "--epochs",
        "--patience",
        "--hold-out-edges",
        "--preset",
        "--seed",
        "--runs",
    ],
    "Where it runs": ["--device", "--threads"],
}
"""What a new user sees of train; all else a schema or a preset says, or experiments need."""
FURTHER_OPTIONS = {
    *("--id", "--name", "--source", "--target", "--weight", "--ignore", "--key", "--pk", "--table"),
    *("--edge-type", "--node-type", "--groups", "--delimiter", "--header", "--encoding"),
    *("--lr", "--steps", "--batch", "--hops", "--layers", "--corruption", "--rho", "--readout"),
    "--scale",
}


def test_train_help_has_a_heading_per_question():
    headings = {}
    for line in infomax("train", "--help").out.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            options = headings.setdefault(line.rstrip(":"), [])
        elif line.startswith("  --"):
            options.append(line.split()[0])
    assert headings.pop("Arguments") == []
    assert headings.popitem() == ("Further options; docs/reference/commands.md explains them", [])
    assert headings == TRAIN_HELP

    parameters = [
        parameter
        for parameter in get_command(app).commands["train"].params
        if parameter.opts and parameter.opts[0].startswith("--")
    ]
    listed_options = {option for options in headings.values() for option in options}
    assert listed_options == {
        parameter.opts[0] for parameter in parameters if not parameter.hidden
    } | {"--help"}
    hidden_options = {parameter.opts[0] for parameter in parameters if parameter.hidden}
    assert hidden_options == FURTHER_OPTIONS


def test_options_that_help_only_names_are_explained_in_the_reference():
    text = infomax("train", "--help").out.partition("Further options")[2]
    reference = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
    explained = reference.read_text("utf-8")
    for option in FURTHER_OPTIONS:
        assert option in text, option
        assert f"`{option}" in explained, option


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("infomax ev", "evaluate"), ("infomax train g --hold", "--hold-out-edges")],
)
def test_a_shell_completes_commands_and_options(typed, offered, monkeypatch):
    monkeypatch.setenv("_INFOMAX_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    outcome = infomax()
    assert (outcome.code, outcome.out.split()) == (0, [offered])


@pytest.mark.parametrize(
    "command", ["train", "embed", "evaluate", "map", "cluster", "analyse", "demo"]
)
def test_every_command_that_computes_takes_a_number_of_threads(command, monkeypatch):
    """It holds for libraries that are loaded already and for those that will be, before anything else is read."""
    import torch

    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    before = torch.get_num_threads()
    try:
        infomax(command, "nowhere", "--threads", 3)
        assert (torch.get_num_threads(), os.environ["OMP_NUM_THREADS"]) == (3, "3")
    finally:
        torch.set_num_threads(before)
    refused(infomax(command, "nowhere", "--threads", 0), "--threads")


def test_the_version_is_printed():
    assert infomax("--version") == (0, f"infomax {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("trian", ["No such command 'trian'", "infomax --help"]),
        ("datasets fatch", ["No such command 'fatch'", "infomax datasets --help"]),
        ("train", ["Missing argument 'GRAPH'", "infomax train --help"]),
        ("train graph", ["Missing option '--out'"]),
        ("train graph --out run --dimension 8", ["No such option: --dimension"]),
        (
            "train graph --out run --own 64",
            ["No such option: --own.", "--vectors encoder,own", "infomax train --help"],
        ),
        ("train graph --out run --smooth 5", ["No such option: --smooth.", "--vectors paper"]),
        ("evaluate run --variants", ["No such option: --variants.", "--vectors encoder,own"]),
        ("train graph --out run --dim wide", ["--dim", "valid int"]),
        ("train graph --out", ["'--out' requires an argument"]),
        ("neighbours run node -k 0", ["-k", "1"]),
    ],
    ids=str,
)
def test_a_mistyped_command_is_one_message(words, parts):
    refused(infomax(*words.split()), *parts)


def test_a_run_that_is_not_there_is_refused_before_torch_is_loaded():
    commands = [
        "embed none --out v.npy",
        "cluster none",
        "map none --out m.html",
        "evaluate none",
        "neighbours none 1",
    ]
    script = f"""
import sys
from infomax.cli import main
for words in {commands}:
    sys.argv = ["infomax", *words.split()]
    try:
        main()
    except SystemExit as end:
        print(end.code, "torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["2 False"] * len(commands)
    assert all(
        line.startswith("infomax: none: expected a run folder") for line in done.stderr.splitlines()
    )


@pytest.mark.parametrize(("word", "code"), [("--version", 0), ("--versoin", 2)])
def test_the_program_ends_at_once_but_for_what_was_to_be_done_at_its_end(word, code):
    script = f"""
import atexit, sys
from infomax.cli import run
atexit.register(print, "last words", end="")
class Slow:
    def __del__(self):
        print("freed")
slow = Slow()
sys.argv = ["infomax", {word!r}]
run()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert done.stdout.endswith("last words")
    assert "Traceback" not in done.stderr


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
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    imported = set(done.stderr.split())
    assert "typer" in imported
    assert not HEAVY & imported
    assert done.stdout.startswith("Usage: infomax ")


def test_the_paper_is_found_by_its_entry_point_alone():
    """Import-linter proves that nothing imports the paper; what is found by its name, it cannot see."""
    root = Path(infomax_package.__file__).parent
    assert not [path for path in root.rglob("*.py") if "infomax_paper" in path.read_text("utf-8")]
    script = "import sys, infomax.cli; assert not [name for name in sys.modules if name.startswith('infomax_paper')]"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_reproduce_is_found_in_a_checkout_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: ())
    assert "reproduce" in added_commands()
    assert added_commands()["reproduce"].load().info.name == "reproduce"
