"""Every fault a user can hand in: one message, exit code 2, no traceback, nothing left behind."""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import torch
from pyarrow import parquet
from shell import infomax, refused, write_graph, write_table

from infomax import DGI, read_graph
from infomax.kernels import room
from infomax_paper.patches import PATCHES

EDGES = "source,target\na,b\nb,c\n"
NODES = "id,x,kind\na,1,red\nb,2,blue\nc,3,red\n"
# In the words of today's typer, or of an earlier one.
LOW, HIGH = (
    ("greater than or equal to 0", "0<=x"),
    ("less than or equal to 4294967295", "x<=4294967295"),
)


@pytest.mark.parametrize(
    ("edges", "table", "parts"),
    [
        pytest.param(
            None, NODES, ["a file edges with one of", "only nodes.csv"], id="missing edges"
        ),
        pytest.param(
            "source,target\na,zoe\n",
            NODES,
            ['edges.csv, line 2, column "target"', '"zoe"', "nodes.csv"],
            id="unknown id",
        ),
        pytest.param(
            EDGES,
            "id,x\na,1\nb,2\nc,3\n",
            ["nodes.csv", '"kind"', '"x"'],
            id="no such label column",
        ),
    ],
)
def test_a_bad_table(tmp_path, edges, table, parts):
    """What else a table can have is in io/test_faults.py: here it comes through the door of the shell."""
    for name, content in (("edges.csv", edges), ("nodes.csv", table)):
        if content is not None:
            (tmp_path / name).write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
    outcome = infomax("train", tmp_path, "--labels", "kind", "--out", tmp_path / "run")
    refused(outcome, *parts)
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""
    assert not (tmp_path / "run").exists()


def test_ids_of_two_types_in_parquet(tmp_path):
    parquet.write_table(
        pyarrow.table({"source": [1, 2], "target": [2, 3]}), tmp_path / "edges.parquet"
    )
    parquet.write_table(
        pyarrow.table({"id": ["1", "2", "3"], "x": [1.0, 2.0, 3.0]}), tmp_path / "nodes.parquet"
    )
    refused(
        infomax("train", tmp_path, "--out", tmp_path / "run"),
        "edges.parquet",
        "text ids",
        "integer ids",
    )
    assert not (tmp_path / "run").exists()


def test_byte_order_mark_carriage_returns_and_quoted_commas_are_no_faults(tmp_path):
    plain, odd = tmp_path / "plain", tmp_path / "odd"
    for folder, edges, table in (
        (plain, EDGES, NODES),
        (
            odd,
            "\ufeffsource,target\r\n" + '"a","b"\r\n"b","c"\r\n',
            "\ufeff" + NODES.replace("\n", "\r\n"),
        ),
    ):
        folder.mkdir()
        (folder / "edges.csv").write_bytes(edges.encode())
        (folder / "nodes.csv").write_bytes(table.encode())
    described = [infomax("info", folder, "--labels", "kind") for folder in (plain, odd)]
    assert described[0].out.replace(str(plain), "") == described[1].out.replace(str(odd), "")
    (odd / "edges.csv").write_text('source,target\n"a,b",c\n')
    (odd / "nodes.csv").write_text('id,x\n"a,b",1\nc,2\n')
    assert infomax("info", odd).code == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph") / "small")


def train(folder, run, *words, epochs=3):
    return infomax(
        "train", folder, "--labels", "kind", "--out", run, "--dim", 4, "--epochs", epochs, *words
    )


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("nowhere.csv", ["nowhere.csv", "nothing of that name"]),
        ("coar", ["coar", "a data set", "cora", "nothing of that name"]),
        ("edges.csv,nowhere.csv", ["nowhere.csv", "nothing of that name"]),
        ("nodes.txt.gz", ["nodes.txt.gz"]),
        (". --labels sort", ["nodes.csv", 'a label column "sort"', '"kind"']),
        (
            ". --dim 99999999999999999999",
            ["dim: expected a whole number from 1 to 16777216, found 999"],
        ),
        (
            ". --dim 1000000000",
            ["dim: expected a whole number from 1 to 16777216, found 1000000000"],
        ),
        (". --seed 99999999999999999999", ["seed: expected a whole number from 0 to 922"]),
        (". --threads 100000", ["100000 is not in the range 1<=x<=1024"]),
        (". --labels kind --dim 0", ["dim: expected a whole number from 1, found 0"]),
        (". --labels kind --epochs -1", ["epochs: expected a whole number from 0, found -1"]),
        (". --labels kind --patience -1", ["patience: expected a whole number from 1, found -1"]),
        (". --labels kind --seed -1", ["seed: expected a whole number from 0, found -1"]),
        (". --labels kind --lr nan", ["lr: expected a number above 0 and up to 1,000, found nan"]),
        (f". --labels kind --lr 1{'0' * 24}", ["lr: expected a number above 0 and up to 1,000"]),
        (f". --labels kind --runs 1{'0' * 24}", ["--runs", "10000"]),
        (". --labels kind --layers 0", ["--layers", "1"]),
        (
            ". --labels kind --corruption x",
            ["--corruption", "'x' is not one of 'shuffle', 'flip', 'both'"],
        ),
        (". --labels kind --readout x", ["--readout", "'x' is not one of 'mean', 'set2set'"]),
        (". --labels kind --corruption flip --rho 2", ["--rho"]),
        (". --labels kind --rho 0.3", ["--rho: expected --corruption flip or both, found none"]),
        (". --labels kind --corruption shuffle --rho 0.3", ["flip or both, found shuffle"]),
        (". --labels kind --scale x", ["scale", "rows"]),
        (". --labels kind --lr fast", ["--lr", "fast"]),
        (". --labels kind --set lr=0.1", ["No such option: --set.", "--lr"]),
        (". --labels kind --preset huge", ["preset", "whole-graph", "huge"]),
        (". --labels kind --device abacus", ["device abacus", "Use auto or cpu"]),
        (
            ". --labels kind --device mps",
            ["device mps: expected auto, cpu, cuda, cuda:1, ..., found none of them."],
        ),
        ("debian --directed", ["debian", "--directed", "Only tables", "edges that run both ways"]),
        ("debian --labels kind", ["--labels kind", "section"]),
    ],
    ids=str,
)
def test_a_bad_word_to_train(folder, tmp_path, monkeypatch, words, parts):
    monkeypatch.chdir(folder)
    refused(infomax("train", *words.split(), "--out", tmp_path / "run"), *parts)
    assert list(tmp_path.iterdir()) == []


def test_more_memory_needed_than_there_is(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "available_bytes", lambda device: 200_000)
    refused(
        train(folder, tmp_path / "run", "--dim", 4096),
        "memory (cpu)",
        " free for this graph",
        "200.0 kB",
        "--dim",
    )
    batches = infomax(
        "train", folder, "--labels", "kind", "--out", tmp_path / "run", "--preset", "batches"
    )
    refused(batches, "memory (cpu)", "Lower --dim or --batch, or allow more memory.")
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def finished(folder, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "run"
    assert train(folder, run).code == 0
    return run


@pytest.fixture
def run(finished, tmp_path):
    """A copy that may be harmed."""
    return shutil.copytree(finished, tmp_path / "run")


def test_more_memory_needed_than_there_is_to_embed(run, tmp_path, monkeypatch):
    """The width is that of the run: the message names no option that embed does not have."""
    monkeypatch.setattr(room, "available_bytes", lambda device: 200)
    outcome = infomax("embed", run, "--vectors", "own", "--out", tmp_path / "v.csv")
    refused(outcome, "memory (cpu)", "found 200 B. Allow more memory.")
    assert "--dim" not in outcome.err
    assert not (tmp_path / "v.csv").exists()


@pytest.fixture
def blocked(tmp_path):
    """A place that even root cannot write: below a file."""
    (tmp_path / "file").touch()
    return tmp_path / "file"


def test_a_place_that_cannot_be_written(folder, run, blocked):
    refused(train(folder, blocked / "run"), str(blocked / "run"), "Not a directory")
    refused(train(folder, blocked), str(blocked), "File exists")
    refused(infomax("demo", "--out", blocked / "demo"), "Not a directory")
    refused(infomax("embed", run, "--out", blocked / "v.csv"), "Not a directory")
    refused(infomax("evaluate", run, "--json", blocked / "s.json"), "Not a directory")
    refused(infomax("reproduce", "cora", "--json", blocked / "r.json"), "Not a directory")
    refused(
        infomax("embed", run, "--out", blocked.parent / "nowhere" / "v.csv"),
        "No such file or directory",
    )
    assert blocked.read_bytes() == b""
    assert not (blocked.parent / "nowhere").exists()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("embed nowhere --out v.csv", ["nowhere", "a run folder"]),
        ("embed RUN --out v.docx", ["v.docx", ".parquet", '".docx"']),
        ("embed RUN nowhere.csv --out v.csv", ["nowhere.csv", "nothing of that name"]),
        ("embed RUN --device abacus --out v.csv", ["device abacus"]),
        ("evaluate nowhere", ["nowhere", "a run folder, or what embed wrote"]),
        ("evaluate RUN --labels sort", ["--labels", "kind or nodes.csv:COLUMN", "sort"]),
        ("evaluate RUN --labels nodes.csv:sort", ["nodes.csv", '"sort"', '"kind"']),
        ("evaluate RUN --labels nowhere.csv:kind", ["nowhere.csv", "nothing of that name"]),
        ("evaluate RUN --labels nodes.csv:kind --dataset cora", ["--labels or --dataset", "both"]),
        ("evaluate RUN --dataset coar", ['"coar"', '"cora"']),
        ("evaluate RUN --probe guess", ["probe", "paper", "validated", "guess"]),
        ("evaluate RUN --dataset debian", ["none of them among"]),
        ("neighbours RUN zebra", ["node", '"zebra"']),
        ("neighbours nowhere zebra", ["nowhere", "a run folder"]),
        ("cluster RUN --seed -1", ["--seed", LOW]),
        ("cluster RUN --seed 4294967296", ["--seed", HIGH]),
        ("map RUN --out m.html --seed -1", ["--seed", LOW]),
        ("map RUN --out m.html --seed 4294967296", ["--seed", HIGH]),
        ("reproduce", ["Missing command. See: infomax reproduce --help"]),
        ("reproduce coar", ["No such command 'coar'. Did you mean 'cora'?"]),
        (
            "reproduce Cora --methods DGI",
            ["No such option: --methods", "infomax reproduce cora --help"],
        ),
        ("reproduce cora --out X", ["No such option: --out"]),
        ("reproduce theory --runs 2", ["No such option: --runs"]),
        ("reproduce table --points 2", ["No such option: --points"]),
        (
            "reproduce depth --datasets ppi",
            ["--datasets: expected some of cora, citeseer, pubmed, found ppi"],
        ),
        ("reproduce depth --widths 64,0", ["--widths: expected numbers from 1", "64,0"]),
        ("reproduce figures --dataset cora", ["No such option: --dataset"]),
        (
            "reproduce ppi --probe validated",
            ["paper or converged for ppi", "several labels per node"],
        ),
    ],
    ids=str,
)
def test_a_bad_word_about_a_run(folder, finished, tmp_path, monkeypatch, words, parts):
    for name in ("edges.csv", "nodes.csv"):
        shutil.copy(folder / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    refused(infomax(*(finished if word == "RUN" else word for word in words.split())), *parts)
    assert sorted(tmp_path.iterdir()) == before


def test_vectors_without_labels_or_ids(folder, finished, tmp_path):
    for name in ("v.csv", "v.npy"):
        assert infomax("embed", finished, "--out", tmp_path / name).code == 0
    refused(infomax("evaluate", tmp_path / "v.csv"), "labels", "--labels nodes.csv:COLUMN")
    labels = f"{folder}/nodes.csv:kind"
    refused(infomax("evaluate", tmp_path / "v.npy", "--labels", labels), "An .npy holds no ids")
    table = list(csv.reader((folder / "nodes.csv").open()))
    outcomes = []
    for shift in (0, 1):  # rows counted from 1 would have each the label of the next
        numbered = [[row + shift, *cells[1:]] for row, cells in enumerate(table[1:])]
        write_table(tmp_path / "numbered.csv", [table[0], *numbered])
        outcomes.append(
            infomax("evaluate", tmp_path / "v.npy", "--labels", f"{tmp_path}/numbered.csv:kind")
        )
    assert outcomes[0].code == 0
    refused(outcomes[1], "the nodes 0 to 59 in their order, found 60 ids", "An .npy holds no ids")
    write_table(tmp_path / "new.csv", [["id", "d0", "d1"], ["new-1", 1, 2], ["new-2", 3, 4]])
    outcome = infomax("evaluate", tmp_path / "new.csv", "--labels", labels)
    refused(
        outcome, 'some of these nodes (as "new-1"), found none of them among 60 ids (as "b-2").'
    )
    assert ".npy" not in outcome.err


def test_control_characters_in_ids_and_labels_do_not_reach_the_terminal(tmp_path):
    write_table(
        tmp_path / "edges.csv",
        [["source", "target"], ["\x1b[2Ja", "b\x07"], ["b\x07", "c"], ["c", "\x1b[2Ja"]],
    )
    run = tmp_path / "run"
    assert (
        infomax("train", tmp_path / "edges.csv", "--out", run, "--dim", 4, "--epochs", 1).code == 0
    )
    found = infomax("neighbours", run, "c")
    assert "\\x1b[2Ja" in found.out
    assert "b\\x07" in found.out
    refused(infomax("neighbours", run, "\x1b[2Jb"), "\\x1b[2Jb", "Did you mean")
    for outcome in (
        found,
        infomax("cluster", run),
        infomax("neighbours", run, "\x1b[2Jb"),
        infomax("\x1b[2J"),
    ):
        assert not set(outcome.out + outcome.err) & {"\x1b", "\x07"}


def test_features_that_are_constant_are_told(tmp_path):
    write_table(tmp_path / "edges.csv", [["source", "target"], ["a", "b"], ["b", "c"]])
    write_table(tmp_path / "nodes.csv", [["id", "x"], *(["abc"[row], 7] for row in range(3))])
    outcome = infomax("train", tmp_path, "--out", tmp_path / "run", "--dim", 4, "--epochs", 1)
    assert outcome.code == 0
    assert "\nwarning: every column of the features is constant" in outcome.err


def test_vectors_that_are_all_alike_are_one_cluster(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\nc,a\n")
    assert (
        infomax(
            "train", tmp_path / "edges.csv", "--out", tmp_path / "run", "--dim", 4, "--epochs", 1
        ).code
        == 0
    )
    outcome = infomax("cluster", tmp_path / "run")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("Clusters\n")
    assert outcome.out.count("│ 0") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_an_output_that_takes_nothing(finished):
    command = [sys.executable, "-m", "infomax", "neighbours", finished, "Z"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (
        2,
        "infomax: standard output: No space left on device\n",
    )


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_streams_that_are_closed(folder, tmp_path):
    words = [
        sys.executable,
        "-m",
        "infomax",
        "convert",
        str(folder),
        "--out",
        str(tmp_path / "g.npz"),
    ]
    done = subprocess.run(
        f"{shlex.join(words)} <&- >&- 2>&-", shell=True, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "g.npz").exists()


def test_an_output_that_cannot_show_all_signs(finished):
    words = [sys.executable, "-m", "infomax", "neighbours", str(finished), "é:ü", "-k", "60"]
    done = subprocess.run(
        words, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert r"Nearest to \xe9:\xfc" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_name_that_is_not_utf8(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(
        infomax("train", folder, "--out", os.fsdecode(b"r\xfcn"), "--epochs", "2"),
        "names in UTF-8",
        r"r\udcfcn",
    )
    assert not list(tmp_path.iterdir())


def test_a_run_of_another_version(run, tmp_path):
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"format": 99}))
    refused(
        infomax("embed", run, "--out", tmp_path / "v.csv"), "config.json", "format 5", "format 99"
    )
    assert not (tmp_path / "v.csv").exists()


def test_an_unfinished_run(run, tmp_path):
    (run / "model.safetensors").unlink()
    refused(infomax("embed", run, "--out", tmp_path / "v.csv"), "a finished run", "--resume")


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["model.safetensors", "graph.npz", "config.json", "health.json"])
def test_a_truncated_file_of_a_run(run, tmp_path, name):
    path = run / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refused(infomax("embed", run, "--out", tmp_path / "v.csv"), name)
    assert not (tmp_path / "v.csv").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "graph.npz", "config.json"])
def test_a_flipped_byte_in_a_run_is_refused_or_harmless(run, tmp_path, name):
    """Of the model every byte is hashed. A zip has a few that nobody reads, settings a few that only training does."""
    assert infomax("embed", run, "--out", tmp_path / "v.npy").code == 0
    expected, original = np.load(tmp_path / "v.npy"), (run / name).read_bytes()
    refusals = 0
    places = np.random.default_rng(0).choice(len(original), 12, replace=False)
    for at in places:
        flip(run / name, at)
        outcome = infomax("embed", run, "--out", tmp_path / "v.npy")
        if outcome.code:
            refused(outcome)
            refusals += 1
        else:
            np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), expected)
        (run / name).write_bytes(original)
    assert refusals == len(places) if name == "model.safetensors" else refusals > len(places) // 4


def test_a_wide_encoder_is_estimated_without_memory_for_it(folder, tmp_path):
    """Only the estimate is made: weights of this width would take 1 TB."""
    graph = read_graph(folder, labels="kind")
    for preset in ("whole-graph", PATCHES, "many-graphs"):
        assert DGI(500_000, preset=preset).settings().bytes(graph, torch.device("cpu")) > 10**12
