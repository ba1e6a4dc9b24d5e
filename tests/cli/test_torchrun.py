"""Several processes under torchrun: one message, shared parts, and the same bytes after a kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import shell
from processes import in_processes
from shell import write_graph
from torch import distributed

from infomax import InputError
from infomax.cli.torchrun import MEETING_KEY, _choose_gpu, _meet
from infomax.training import vectors as embedding

pytest.importorskip("duckdb", reason="prepare sorts with it")

RANKS = 2
MODEL, CHECKPOINT = "model.safetensors", "checkpoint.safetensors"

DRIVER = """
import os, signal, sys, time
from pathlib import Path

import infomax.cli.torchrun
from infomax.cli import run
from infomax.training import resuming
from infomax.training.loop import Training

resuming.CHECKPOINT_SECONDS = 0.0
infomax.cli.torchrun._share_cores = lambda torch: torch.set_num_threads(1)
place, hold, step = Path(sys.argv.pop(1)), sys.argv.pop(1), Training.step

def disturbed(self, batch, last):
    step(self, batch, last)
    if len(self.history) == 20 and os.environ["RANK"] == "1" and not (place / "killed").exists():
        (place / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if len(self.history) == 30 and hold == "hold":
        (place / "waiting").touch()
        while signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:  # until the signal has come
            time.sleep(0.02)

Training.step = disturbed
run()
"""
"""A command that is killed on rank 1 after 20 steps, once, and can wait for a Ctrl-C after 30."""


def words(folder: Path, run: Path, *more: object) -> list[object]:
    settings = ["--labels", "kind", "--dim", 8, "--batch", 20, "--steps", 40]
    return ["train", folder, *settings, "--out", run, *more]


def typed(*commands: list[object], nodes_per_part: int = 16) -> shell.Outcome:
    """Type a command on each rank, or the same on all; the work of a process."""
    from torch import distributed

    from infomax import cli
    from infomax.cli import torchrun

    cli.SECONDS_BEFORE_QUIET_FAILURE = 0.0
    torchrun._share_cores = lambda torch: None
    embedding.NODES_PER_PART = nodes_per_part
    outcome = shell.infomax(*commands[int(os.environ["RANK"]) % len(commands)])
    if distributed.is_initialized():  # a mistake ends the process, and with it the group
        distributed.destroy_process_group()
    return outcome


def threads() -> int:
    """How many threads a process gets."""
    import torch

    from infomax.cli.torchrun import _share_cores

    _share_cores(torch)
    found = torch.get_num_threads()
    torch.set_num_threads(1)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph") / "small")


@pytest.fixture(scope="module")
def outcomes(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    graph, other = place / "small.graph", place / "other.graph"
    for source, target in ((folder, graph), (write_graph(place / "other", seed=1), other)):
        tables = [source / "edges.csv", source / "nodes.csv"]
        assert shell.infomax("prepare", *tables, "--labels", "kind", "--out", target).code == 0

    def train(source: Path) -> list[object]:
        return ["train", source, "--dim", 8, "--batch", 20, "--steps", 5, "--out", place / "stored"]

    tasks = {
        "straight": [words(folder, place / "straight")],
        "other graph": [train(graph), train(other)],
        "stored": [train(graph)],
        "parts": [["embed", place / "stored", "--out", place / "vectors"]],
        "paper": [["embed", place / "stored", "--vectors", "paper", "--out", place / "paper"]],
        "one file": [["embed", place / "stored", "--out", place / "v.npy"]],
        "whole graph": [
            [
                "train",
                folder,
                "--labels",
                "kind",
                "--preset",
                "whole-graph",
                "--out",
                place / "whole",
            ]
        ],
        "small batch": [[*words(folder, place / "small"), "--batch", 1]],
        "option": [[*words(folder, place / "option"), "--batch", "many"]],
        "device": [[*words(folder, place / "device"), "--device", "cuda:0"]],
    }
    work = [(threads, ()), *((typed, tuple(commands)) for commands in tasks.values())]
    return place, dict(
        zip(["threads", *tasks], in_processes(RANKS, work, group=False), strict=True)
    )


MISTAKES = {
    "other graph": "rank 1: expected graph",
    "one file": "embed: expected a graph folder and a folder of parts",
    "whole graph": "the preset batches, found WholeGraph, which runs in one process",
    "small batch": "batch: expected 2 nodes or more, one for each process, found 1",
    "option": "Invalid value for '--batch'",
    "device": "--device: expected auto, cpu or cuda with several processes, found cuda:0",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_message_of_rank_0(name, outcomes):
    first, second = outcomes[1][name]
    shell.refused(first, MISTAKES[name])
    assert (second.code, second.out, second.err) == (2, "", "")


def test_processes_meet_in_a_store_with_the_keys_of_an_earlier_attempt():
    """After a restart torchrun still has them; a rank may read the old name before rank 0 announces its own."""
    wait = timedelta(seconds=30)
    store = distributed.TCPStore("localhost", 0, is_master=True, timeout=wait)
    for key, value in {
        MEETING_KEY: "old",
        "old/1": "rank 1 of then",
        "old/rank 1 of then": "welcome",
    }.items():
        store.set(key, value)
    with ThreadPoolExecutor() as pool:
        clients = [
            distributed.TCPStore("localhost", store.port, is_master=False, timeout=wait)
            for _ in range(3)
        ]
        late = [pool.submit(_meet, clients[rank], rank, 3, wait) for rank in (1, 2)]
        while (
            not all(store.check([f"old/{rank}"]) for rank in (1, 2))
            or store.get("old/1") == b"rank 1 of then"
        ):
            time.sleep(0.01)
        name = _meet(clients[0], 0, 3, wait)
        assert name != "old"
        assert [meeting.result() for meeting in late] == [name, name]


def test_more_processes_than_gpus_are_refused(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(InputError, match="2 GPUs, one for each process on this host, found 1"):
        _choose_gpu(None, "auto", 1)
    chosen = []
    _choose_gpu(SimpleNamespace(cuda=SimpleNamespace(set_device=chosen.append)), "auto", 2)
    assert chosen == [1]


def test_the_cores_of_a_host_are_shared(outcomes):
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert outcomes[1]["threads"] == (max(1, here // RANKS),) * RANKS


def test_only_rank_0_prints(outcomes):
    for name in ("straight", "stored", "parts"):
        first, second = outcomes[1][name]
        assert first.code == 0, first.err
        assert "wrote" in first.out
        assert (second.code, second.out, second.err) == (0, "", "")


@pytest.mark.parametrize(("name", "options"), [("vectors", []), ("paper", ["--vectors", "paper"])])
def test_ranks_share_the_parts(name, options, outcomes):
    place, _ = outcomes
    shell.infomax("embed", place / "stored", *options, "--out", place / f"{name}.parquet")
    parts = sorted((place / name).glob("*.parquet"))
    assert [path.name for path in parts] == [f"part-{number:05d}.parquet" for number in range(4)]
    assert sorted(path.name for path in (place / name).iterdir() if path not in parts) == [
        "_parts.json"
    ]
    alone, found = read_parquet(place / f"{name}.parquet"), [read_parquet(path) for path in parts]
    assert [node for part in found for node in part["id"]] == alone["id"]
    np.testing.assert_allclose(
        np.concatenate([p["vector"] for p in found]), alone["vector"], rtol=1e-4, atol=1e-6
    )


def read_parquet(path: Path) -> dict[str, list]:
    from pyarrow import parquet

    return parquet.read_table(path).to_pydict()


def start(place: Path, options: list[object], hold: str, command: list[object]) -> subprocess.Popen:
    """Start torchrun on a script that is killed once on rank 1."""
    (place / "driver.py").write_text(DRIVER)
    script = [place / "driver.py", place, hold, *command]
    run = [sys.executable, "-m", "torch.distributed.run", "--max-restarts=1", *options, *script]
    return subprocess.Popen(
        list(map(str, run)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.slow
def test_killed_then_interrupted_then_resumed_ends_in_the_same_bytes(folder, outcomes, tmp_path):
    run, command = tmp_path / "run", words(folder, tmp_path / "run", "--resume")
    agent = start(tmp_path, ["--standalone", f"--nproc-per-node={RANKS}"], "hold", command)
    while not (tmp_path / "waiting").exists():
        assert agent.poll() is None, agent.stdout.read()
        time.sleep(0.01)
    workers = psutil.Process(agent.pid).children(recursive=True)
    agent.send_signal(signal.SIGINT)
    printed, _ = agent.communicate(timeout=240)
    assert (tmp_path / "killed").exists()
    assert "rank 0 of 2 has lost another rank" in printed
    assert "[rank0]: Traceback" not in printed
    assert "infomax: stopped after epoch 31." in printed
    assert not psutil.wait_procs(workers, timeout=10)[1]
    assert (run / CHECKPOINT).exists()
    ((first, second),) = in_processes(RANKS, [(typed, (command,))], group=False)
    assert (first.code, second.code) == (0, 0), first
    assert (run / MODEL).read_bytes() == (outcomes[0] / "straight" / MODEL).read_bytes()


@pytest.mark.slow
def test_a_rank_killed_on_the_second_of_two_hosts_ends_in_the_same_bytes(
    folder, outcomes, tmp_path
):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        endpoint = f"localhost:{free.getsockname()[1]}"
    options = [
        "--nnodes=2",
        "--nproc-per-node=1",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={endpoint}",
    ]
    run = tmp_path / "run"
    agents = [start(tmp_path, options, "go on", words(folder, run, "--resume")) for _ in range(2)]
    printed = "".join(agent.communicate(timeout=240)[0] for agent in agents)
    assert [agent.returncode for agent in agents] == [0, 0], printed
    assert (tmp_path / "killed").exists()
    assert printed.count("wrote") == 1
    assert (run / MODEL).read_bytes() == (outcomes[0] / "straight" / MODEL).read_bytes()
