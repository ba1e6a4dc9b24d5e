from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import epoch
from benchmarks.command import CannotRun
from benchmarks.floor import Floor, built
from benchmarks.ours import Ours
from benchmarks.peers import PEERS
from benchmarks.problem import Problem, generated

pytest.importorskip("torch_geometric", reason="PyG is one of the peers")
ROOT = Path(__file__).parents[2]


def has_compiler() -> bool:
    try:
        return bool(built())
    except CannotRun:
        return False


@pytest.fixture(scope="module")
def problem() -> Problem:
    drawn = Problem.of(generated(60), 8, "cpu")
    # As drawn, the scores are so small that any loss is log 2: with larger weights it tells right from wrong.
    return dataclasses.replace(drawn, theta=20 * drawn.theta, bilinear=20 * drawn.bilinear)


@pytest.mark.parametrize("name", [*PEERS, "floor"])
def test_equal_weights_give_equal_losses_and_equal_steps(name: str, problem: Problem) -> None:
    if name == "floor" and not has_compiler():
        pytest.skip("there is no C compiler with OpenMP")
    ours, peer = Ours(problem), (PEERS | {"floor": Floor})[name](problem)
    first = ours.train(1)
    assert first > 0.72
    assert peer.train(1) == pytest.approx(first, rel=1e-6)
    second = ours.train(1)
    assert abs(second - first) > 5e-3
    # PyG's discriminator has no bias, so its step is not quite the same.
    assert peer.train(1) == pytest.approx(second, abs=3e-4 if name.startswith("pyg") else 1e-6)


def test_ours_trains_exactly_the_epochs_it_is_asked_for(problem: Problem) -> None:
    ours, by_one = Ours(problem), Ours(problem)
    assert ours.train(3) == [by_one.train(1) for _ in range(3)][-1]
    assert len(ours.training.history) == 3


def test_epoch_reports_a_row_a_contender(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "epoch.json"
    epoch.main(["--dataset=generated:60", "--dim=8", "--repeats=2", f"--json={file}"])
    document, table = json.loads(file.read_text()), capsys.readouterr().out
    floor = ["floor"] if has_compiler() else []
    assert [row["contender"] for row in document["rows"]] == ["ours", *PEERS, *floor]
    assert ("floor" in document["left_out"]) == (not floor)
    assert all(f" {name} " in table for name in ("ours", *PEERS))
    assert all(
        len(row["ms"]) == 2 and row["p10_ms"] <= row["median_ms"] <= row["p90_ms"]
        for row in document["rows"]
    )
    assert document["rows"][0]["ratio"] == 1
    assert {"threads", "device", "stretch"} <= document["settings"].keys()
    assert {"platform", "torch", "infomax"} <= document["machine"].keys()


def test_memory_reports_a_row_a_contender(tmp_path: Path) -> None:
    file = tmp_path / "memory.json"
    command = [
        sys.executable,
        "-m",
        "benchmarks.memory",
        "--dataset=generated:60",
        "--dim=512",
        "--peers=",
    ]
    done = subprocess.run(
        [*command, f"--json={file}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    (row,) = json.loads(file.read_text())[
        "rows"
    ]  # every contender costs an import of torch: one is enough here
    assert row["contender"] == "ours"
    assert " ours " in done.stdout
    assert row["training_mb"] == row["peak_mb"] - row["baseline_mb"]
    assert (
        row["training_mb"] > 5 * 512 * 512 * 4 / 2**20
    )  # W, its gradient, Adam's two moments, the best weights


def test_an_unknown_peer_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        epoch.main(["--peers=nobody"])
    assert "unknown peer 'nobody'" in capsys.readouterr().err
