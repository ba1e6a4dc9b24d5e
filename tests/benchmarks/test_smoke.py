"""Every benchmark and recipe runs at toy size, or at least starts: one that nothing runs breaks unseen."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import __main__ as smoke

ROOT = Path(__file__).parents[2]


def test_every_script_has_a_toy_size() -> None:
    files = [path for folder in ("benchmarks", "recipes") for path in (ROOT / folder).glob("*.py")]
    scripts = {
        f"{path.parent.name}.{path.stem}"
        for path in files
        if 'if __name__ == "__main__"' in path.read_text()
    }
    helpers = {
        "benchmarks.__main__",
        "benchmarks.pyg_script",
        "benchmarks.compared_methods",
    }  # parts of others
    assert scripts - helpers | {"benchmarks.faults"} == smoke.TOYS.keys()


def test_a_script_that_fails_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(smoke.TOYS, "benchmarks.nothing", smoke.Toy("--dim 8"))
    assert smoke.main(["--smoke", "benchmarks.nothing"]) == 1
    told = capsys.readouterr().out
    assert "FAILED benchmarks.nothing" in told
    assert "No module named benchmarks.nothing" in told


def test_a_script_whose_data_is_not_there_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INFOMAX_DATA", str(tmp_path))
    assert smoke.main(["--smoke", "recipes.align"]) == 0
    assert "left out: recipes.align: no planetoid in INFOMAX_DATA" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_all_scripts_run_at_toy_size() -> None:
    assert smoke.main(["--smoke"]) == 0


@pytest.mark.gpu
@pytest.mark.timeout(1200)
def test_all_scripts_run_at_toy_size_on_a_gpu() -> None:
    assert smoke.main(["--smoke", "--device", "cuda"]) == 0
