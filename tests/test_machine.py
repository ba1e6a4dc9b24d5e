"""Memory under every limit: of the machine, of a container, of the process."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from infomax import machine
from infomax.machine import free_bytes, size

GB = 10**9
VERSION_2 = ("memory.max", "memory.current", "inactive_file")
VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A machine with 100 GB free and no limits; its control groups are in a folder of the test."""
    monkeypatch.setattr(machine, "_CONTROL_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(machine, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(machine, "_free_in_limits", lambda: iter(()))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=100 * GB))
    return tmp_path / "groups"


def limit(folder, names, most, used, cached):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (most, used), strict=False):
        (folder / name).write_text(f"{value}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {cached}\nfile 7\n")


def test_without_limits_it_is_what_the_machine_has(groups):
    assert free_bytes() == 100 * GB


@pytest.mark.parametrize(
    ("own", "root", "names"),
    [("0::/a/b\n", "", VERSION_2), ("3:cpu:/x\n7:memory,hugetlb:/a/b\n", "memory", VERSION_1)],
    ids=["version 2", "version 1"],
)
def test_the_narrowest_control_group_counts_and_cached_files_do_not(groups, own, root, names):
    groups.with_name("own").write_text(own)
    limit(groups / root / "a", names, 9 * GB, 4 * GB, 1 * GB)
    assert free_bytes() == 6 * GB
    limit(groups / root / "a" / "b", names, 8 * GB, 3 * GB, 0)
    assert free_bytes() == 5 * GB
    limit(groups / root, names, 50 * GB, 49 * GB, 0)
    assert free_bytes() == 1 * GB
    limit(groups / root, names, 50 * GB, 51 * GB, 0)
    assert free_bytes() == 0
    limit(groups / "elsewhere", names, 1, 0, 0)
    assert free_bytes() == 0


def test_in_a_container_the_path_may_be_the_hosts(groups):
    groups.with_name("own").write_text("7:memory:/docker/0123\n")
    limit(groups / "memory", VERSION_1, 3 * GB, 1 * GB, 0)
    assert free_bytes() == 2 * GB


def test_a_group_without_a_limit_limits_nothing(groups):
    groups.with_name("own").write_text("0::/a\n")
    limit(groups / "a", VERSION_2, "max", 4 * GB, 0)
    assert free_bytes() == 100 * GB


@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_limit_of_the_process_counts(name):
    pytest.importorskip("resource")
    script = f"""
import resource
from infomax.machine import free_address_space, free_bytes
assert free_address_space() is None
before = free_bytes()
resource.setrlimit(resource.{name}, (500_000_000, resource.RLIM_INFINITY))
assert free_bytes() == free_address_space() < 500_000_000
assert free_bytes() > 100_000_000
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_peak_is_remembered():
    script = """
from infomax.machine import peak_bytes
before = peak_bytes()
assert before > 5_000_000
held = bytearray(b"1") * 100_000_000
del held
assert before + 80_000_000 < peak_bytes() < before + 200_000_000
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (3_210_000_000, "3.2 GB"), (5e12, "5.0 TB")])
def test_sizes_are_readable(count, text):
    assert size(count) == text
