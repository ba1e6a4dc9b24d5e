"""Memory under every limit: of the machine, of a container, of the process."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from infomax import memory
from infomax.memory import format_size, free_bytes, has_limit, peak_bytes

GB = 10**9
VERSION_2 = ("memory.max", "memory.current", "inactive_file")
VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A machine with 100 GB free and no limits; its control groups are in a folder of the test."""
    monkeypatch.setattr(memory, "_CONTROL_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(memory, "_free_in_limits", lambda: iter(()))
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


@pytest.mark.parametrize(("name", "held"), [("RLIMIT_AS", 3), ("RLIMIT_DATA", 2)])
def test_a_limit_of_the_process_counts(name, held, tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(memory, "_OWN_GROUPS", tmp_path / "none")
    process = SimpleNamespace(memory_info=lambda: SimpleNamespace(vms=3 * GB, data=2 * GB))
    monkeypatch.setattr(psutil, "Process", lambda: process)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=100 * GB))
    monkeypatch.setattr(
        resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    assert not has_limit()
    limits = {getattr(resource, name): (10 * GB, resource.RLIM_INFINITY)}
    monkeypatch.setattr(
        resource, "getrlimit", lambda kind: limits.get(kind, (resource.RLIM_INFINITY,))
    )
    assert (has_limit(), free_bytes()) == (True, (10 - held) * GB)


@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_what_a_process_holds_counts_against_its_limit(name):
    pytest.importorskip("resource")
    script = f"""
import resource
from infomax.memory import has_limit
assert not has_limit()
resource.setrlimit(resource.{name}, (10**12, resource.RLIM_INFINITY))
assert has_limit()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_peak_is_the_one_that_the_system_remembers(tmp_path, monkeypatch):
    """On Linux, else on other Unix systems, which count in kB but for macOS, else on Windows."""
    resource = pytest.importorskip("resource")
    (tmp_path / "status").write_text("VmPeak:\t  99 kB\nVmHWM:\t   7 kB\nVmSize:\t  88 kB\n")
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "status")
    assert peak_bytes() == 7 * 1024
    (tmp_path / "status").unlink()
    process = SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=3, peak_wset=5))
    monkeypatch.setattr(psutil, "Process", lambda: process)
    usage = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda _: resource.struct_rusage(range(16)))
    monkeypatch.setitem(sys.modules, "resource", usage)
    monkeypatch.setattr(sys, "platform", "freebsd")
    assert peak_bytes() == 2 * 1024
    monkeypatch.setattr(sys, "platform", "darwin")
    assert peak_bytes() == 2
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_bytes() == 5


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (3_210_000_000, "3.2 GB"), (5e12, "5.0 TB")]
)
def test_sizes_are_readable(count, text):
    assert format_size(count) == text
