"""Memory used again, and torch on one thread."""

from __future__ import annotations

import resource
from pathlib import Path
from threading import Thread

import pytest
import torch

from infomax.kernels import host
from infomax.kernels.host import alone, hoarding

SMALL, LARGE = 8 * 2**20, 40 * 2**20
glibc = pytest.mark.skipif(host._glibc() is None, reason="not on glibc")


def kept(size):
    """The share of a block that stays in memory when it is freed."""
    before = resident()
    torch.empty(size, dtype=torch.uint8).fill_(1)
    return (resident() - before) / size


def resident():
    """Bytes of this process in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@glibc
@pytest.mark.parametrize("large", [False, True])
def test_memory_is_kept_then_given_back(large):
    with hoarding(large=large):
        pass  # what earlier tests have left is given back
    before = resident()
    with hoarding(large=large):
        first = [round(kept(size)) for size in (SMALL, LARGE)]
        more = sum(kept(SMALL) for _ in range(100))
    assert first == [1, int(large)]
    assert more < 20  # the same again, or one beside it; not a hundred
    assert resident() - before < SMALL / 2
    assert round(kept(LARGE)) == 0


@glibc
def test_an_error_ends_the_hoarding():
    def fail():
        with hoarding(large=True):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert round(kept(LARGE)) == 0


def test_who_has_settings_keeps_them(monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert host._glibc() is None
    with hoarding(large=True):
        assert round(kept(LARGE)) == 0


def test_torch_is_alone_and_elsewhere_as_before():
    threads, found = torch.get_num_threads(), []
    alone(lambda: found.append(torch.get_num_threads()))
    fresh = Thread(target=lambda: found.append(torch.get_num_threads()))
    fresh.start()
    fresh.join()
    assert [*found, torch.get_num_threads()] == [1, threads, threads]


def test_an_error_comes_back():
    with pytest.raises(ZeroDivisionError):
        alone(lambda: 1 // 0)
