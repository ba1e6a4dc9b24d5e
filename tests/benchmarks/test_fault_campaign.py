"""A small part of the campaign of faults, the same every time; the whole of it: python -m benchmarks.faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.faults import crafted, folders, kills, mixed, mutations, parts, values

SLOW = {
    "200 million columns of zeros",
    "a cell of 50 MB",
}  # their files alone take seconds to write


def test_a_training_killed_before_an_operation_on_a_file_ends_in_the_same_bytes(
    tmp_path: Path,
) -> None:
    operations = np.random.default_rng(0).choice(np.arange(1, 90), 6, replace=False).tolist()
    assert list(kills.kill_before_operations(tmp_path, operations)) == [(1, [])] * len(operations)


def test_a_training_killed_at_any_moment_ends_in_the_same_bytes(tmp_path: Path) -> None:
    trials = list(kills.kill_at_random(tmp_path, seed=0, kills=3, epochs=60))
    assert sum(tried for tried, _ in trials) > 0
    assert [fault for _, faults in trials for fault in faults] == []


def test_a_graph_folder_killed_at_any_moment_ends_in_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb", reason="prepare sorts with it")
    monkeypatch.setattr(
        folders, "STAGES", {"prepare": folders.STAGES["prepare"]}
    )  # the others are tested elsewhere
    trials = list(folders.campaign(tmp_path, seed=0, kills=1, disks=False))  # a test mounts no disk
    assert sum(tried for tried, _ in trials) > 0
    assert [fault for _, faults in trials for fault in faults] == []


def test_damaged_values_of_a_graph_folder_lead_to_no_crash(tmp_path: Path) -> None:
    assert list(values.campaign(tmp_path, seed=0, trials=5)) == [(1, [])] * 5


def test_the_campaign_sees_a_damaged_array_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "damage", lambda folder, rng: ("nothing", False))
    assert list(values.campaign(tmp_path, seed=0, trials=1)) == [
        (1, ["trial 0, nothing: exit code 0"])
    ]


def test_the_campaign_sees_half_of_a_graph_folder(tmp_path: Path) -> None:
    for place, content in (("whole", "all of it"), ("cut", "half")):
        (tmp_path / place / "g.graph").mkdir(parents=True)
        (tmp_path / place / "g.graph" / "graph.json").write_text(content)
    (tmp_path / "cut" / "left").touch()
    words = "prepare", tmp_path / "whole", tmp_path / "cut", "killed"
    assert list(folders._half_written(*words)) == ["killed: g.graph is not complete"]
    assert list(folders._ends("prepare", tmp_path, *words[1:])) == [
        "killed: ended with other bytes in ['graph.json']",
        "killed: left ['left']",
    ]


def test_damaged_files_are_refused_or_read_as_they_were(tmp_path: Path) -> None:
    assert mutations.examine(tmp_path, seed=1, first=0, last=300) == []


@pytest.fixture
def part_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set back after the campaign, which has smaller ones."""
    for module, name in (
        (parts.embedding, "NODES_PER_PART"),
        (parts.engine, "NODES_PER_BLOCK_ON_DISK"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))


@pytest.mark.usefixtures("part_sizes")
def test_damaged_parts_are_refused_read_as_they_were_or_written_again(tmp_path: Path) -> None:
    assert parts.examine(tmp_path, seed=1, first=0, last=20) == []


@pytest.mark.usefixtures("part_sizes")
def test_the_campaign_sees_a_part_that_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts.embedding, "describe_damage", lambda *_, **__: "")
    monkeypatch.setattr(
        parts, "mutate", lambda content, rng: content[:200] + b"????" + content[204:]
    )
    found = parts.examine(tmp_path, seed=1, first=0, last=8)
    assert any("found ['part-0000" in fault for fault in found), found


def test_mixed_tables_make_one_graph_or_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="prepare sorts with it")
    for number in range(6):
        (tmp_path / str(number)).mkdir()
        assert mixed.examine(tmp_path / str(number), seed=2, number=number) == []


@pytest.mark.parametrize("name", [name for name in crafted.CASES if name not in SLOW])
def test_a_crafted_file_is_refused_in_little_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        crafted, "MOST_SECONDS", float("inf")
    )  # the campaign measures it, on a machine of its own
    assert list(crafted.examine(name, tmp_path)) == []


@pytest.mark.parametrize("name", ["ids as row numbers", "a call", "deep JSON"])
def test_a_crafted_file_is_crafted(name: str, tmp_path: Path) -> None:
    """What the readers refuse is refused for what it is: the campaign would see it if it were read."""
    from infomax import InputError

    read = crafted.CASES[name](tmp_path)
    with pytest.raises(InputError):
        read()


def test_the_campaign_sees_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> None:
        raise RuntimeError("not told")

    monkeypatch.setattr(mutations.checkpoints, "load", broken)
    monkeypatch.setattr(mutations, "targets", lambda folder: [
        mutations.Target(folder / "a", lambda: (folder / "a").read_bytes(), exact=True)
    ])  # fmt: skip
    (tmp_path / "a").write_bytes(b"content of a file")
    found = mutations.examine(tmp_path, seed=0, first=0, last=5)
    assert len(found) == 5
    assert all("read as another content" in fault for fault in found)
    monkeypatch.setitem(crafted.CASES, "broken", lambda folder: lambda: broken(folder))
    assert list(crafted.examine("broken", tmp_path)) == ["broken: RuntimeError: not told"]
    monkeypatch.setattr(crafted, "MOST_BYTES", 1000)
    assert "took" in next(crafted.examine("UTF-16 without a mark", tmp_path))
