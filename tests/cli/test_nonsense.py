"""Nonsense for every option and argument of every command: exit code 2 or 0, one message, nothing written.

The cases are drawn anew in each run. The seed is printed; ``INFOMAX_TEST_SEED`` repeats it, and
``INFOMAX_TEST_SECONDS`` allows more processor time.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
import sample_shop
import torch
from shell import IDS, KINDS, Outcome, infomax, write_graph
from typer.main import get_command

from infomax.cli import app

SECONDS_PER_COMMAND = 15
"""A command that takes longer, such as a training of 10^9 epochs, is interrupted, as by Ctrl-C."""

VALUES = [
    "",
    " ",
    "nonsense",
    "dogs",
    "0",
    "-1",
    "1",
    "3.5",
    "1e-320",
    "1e308",
    "nan",
    "-inf",
    "9" * 25,
    "1" + "0" * 25,
    "²",
    "1_0",
    "0x10",
    "true",
    "a,b,c",
    ",,,",
    "a.b=c",
    "=",
    ".=.",
    "a.b.c.d",
    "kind",
    "id",
    "x",
    "x,x",
    "Kind",
    "2024-13-45",
    "2024-01-01",
    "1d,2d",
    "-5d",
    "9" * 20 + "d",
    "forever",
    "é\n",
    "[red]",
    "%s{}\\",
    "'; DROP TABLE x; --",
    "*",
    "x" * 3000,
    "cuda:99",
    "meta",
    "auto",
    "none",
    "paper",
    ".",
    "..",
    "/",
    "/dev/null",
    "/dev/full",
    "/proc/nothing",
    "no/such/folder/file.csv",
    "file.nonsense",
    "sqlite:///",
    "duckdb:///x",
    "postgresql://nobody@localhost:1/x",
    "nodes.csv",
    "edges.csv:x",
]
SLOW_COMMANDS = ("demo",)
"""They train on a data set of their own, whatever is asked for."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, a database, a graph folder, and a run and vectors of each."""
    folder = tmp_path_factory.mktemp("inputs")
    write_graph(folder / "tables")
    sample_shop.sqlite_file(folder / "shop.sqlite")
    prepared = ("prepare", folder / "tables/edges.csv", folder / "tables/nodes.csv")
    commands = [
        (*prepared, "--labels", "kind", "--out", folder / "g.graph"),
        ("train", folder / "tables", "--labels", "kind", "--out", folder / "run"),
        ("train", folder / "g.graph", "--out", folder / "folder_run"),
        ("train", folder / "shop.sqlite", "--out", folder / "shop_run", "--type", "customers"),
        ("embed", folder / "run", "--out", folder / "v.parquet"),
    ]
    for words in commands:
        more = ("--dim", 4, "--epochs", 1) if words[0] == "train" else ()
        outcome = infomax(*words, *more)
        assert outcome.code == 0, outcome.err
    return folder


def base_commands(inputs: Path) -> dict[str, list[list[str]]]:
    """Commands that work, by name: their arguments in order, then options that they need."""
    tables, shop = str(inputs / "tables"), str(inputs / "shop.sqlite")
    run, shop_run = str(inputs / "run"), str(inputs / "shop_run/customers")
    edges, nodes = f"{tables}/edges.csv", f"{tables}/nodes.csv"
    short = ["--dim", "4", "--epochs", "1"]
    return {
        "train": [
            ["train", tables, "--out", "new", *short],
            ["train", shop, "--out", "new", "--type", "customers", *short],
        ],
        "prepare": [["prepare", edges, nodes, "--out", "new.graph"]],
        "info": [["info", tables], ["info", shop], ["info", run], ["info", f"{inputs}/g.graph"]],
        "convert": [["convert", tables, "--out", "new"], ["convert", shop, "--out", "new"]],
        "embed": [
            ["embed", run, "--out", "new.parquet"],
            ["embed", run, tables, "--out", "new.csv"],
            ["embed", shop_run, shop, "--out", "new.parquet"],
            ["embed", f"{inputs}/folder_run", "--out", "new/"],
        ],
        "evaluate": [["evaluate", run, "--labels", "kind"]],
        "neighbours": [
            ["neighbours", run, IDS[0]],
            ["neighbours", f"{inputs}/v.parquet", IDS[0]],
            ["neighbours", shop_run, "1"],
        ],
        "cluster": [["cluster", run, "-k", "3", "--out", "new.csv"]],
        "map": [["map", run, "--out", "new.html"]],
        "compare": [["compare", run, f"{inputs}/folder_run"]],
        "analyse": [["analyse", run, "--out", "new"]],
        "update": [["update", run, tables, "--out", "new"]],
        "datasets fetch": [["datasets", "fetch", "debian"]],
    }


def options_of(command_name: str) -> dict[str, bool]:
    """The options of a command by their longest names, and whether they take no value."""
    command = get_command(app)
    for word in command_name.split():
        command = command.commands[word]  # type: ignore[attr-defined]
    options = [one for one in command.params if one.param_type_name == "option"]
    named = {max(one.opts, key=len): one for one in options}
    flags = {max(one.secondary_opts, key=len) for one in options if one.secondary_opts}
    return {name: bool(one.is_flag) for name, one in named.items() if name != "--help"} | (
        dict.fromkeys(flags, True)
    )


def nonsense(inputs: Path, draw: random.Random) -> Iterator[list[str]]:
    """Commands without end: one that works, with one nonsense option, or one nonsense argument."""
    commands = base_commands(inputs)
    cases = [
        (base, name, is_flag)
        for command_name, bases in commands.items()
        for base in bases
        for name, is_flag in {**options_of(command_name), "": False}.items()
    ]
    while True:
        draw.shuffle(cases)
        for base, name, is_flag in cases:
            if is_flag:
                yield [*base, name]
                continue
            value = draw.choice([*VALUES, *KINDS, str(inputs), str(inputs / "run")])
            if name:
                yield [*base, name, value]
            else:
                arguments = 1 + (base[0] == "datasets")
                yield [*base[:arguments], value, *base[arguments + 1 :]]


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """The size and the time of every file below a folder; of folders only that they are there."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        if path.is_file()
        else (0, 0)
        for path in folder.rglob("*")
    }


def faults(outcome: Outcome, written: set[str]) -> list[str]:
    """What is wrong with what a command left behind; ``written`` are the files that it changed."""
    if outcome.code == 0:
        return []
    if outcome.code != 2:
        return [f"exit code {outcome.code}"]
    messages = re.findall("^infomax: ", outcome.err, re.MULTILINE)
    wrong = []
    if len(messages) != 1 or "Traceback" in outcome.err:
        wrong.append(f"{len(messages)} messages")
    if written:
        wrong.append(f"written: {', '.join(sorted(written))}")
    return wrong


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def nonsense_faults(inputs: Path, workplace: Path, words: list[str]) -> list[str]:
    """Give one command in a folder of its own; returns what is wrong with its outcome."""
    workplace.mkdir(parents=True)
    os.chdir(workplace)
    before = state(inputs) | state(workplace.parent)
    environment, threads = dict(os.environ), torch.get_num_threads()
    signal.alarm(SECONDS_PER_COMMAND)
    try:
        outcome = infomax(*words)
    except KeyboardInterrupt:
        return []
    except BaseException as error:
        return [f"{type(error).__name__}: {error}"]
    finally:
        signal.alarm(0)
        os.environ.clear()
        os.environ.update(environment)
        torch.set_num_threads(threads)
    if outcome.code == 130:
        return []
    after = state(inputs) | state(workplace.parent)
    return faults(outcome, {path for path, _ in before.items() ^ after.items()})


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_nonsense_is_refused_by_one_message(
    inputs: Path,
    tmp_path: Path,
    campaign_seed: int,
    campaign_seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGALRM, interrupt)
    failures = []
    started = time.process_time()
    try:
        for words in nonsense(inputs, random.Random(campaign_seed)):
            if time.process_time() - started > campaign_seconds:
                break
            wrong = nonsense_faults(inputs, tmp_path / "a" / "b", words)
            if wrong:
                failures.append(f"infomax {' '.join(map(repr, words))}: {'; '.join(wrong)}")
            os.chdir(tmp_path)
            shutil.rmtree(tmp_path / "a", ignore_errors=True)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not failures, "\n".join(failures)
