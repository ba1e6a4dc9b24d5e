"""Threads that divide the rows of a kernel's arrays."""

from __future__ import annotations

import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise

import numpy as np
import pytest
import torch

from infomax.kernels.host import equal_ranges, ranges_by_entries, run_in_ranges


@pytest.fixture(params=[1, 2, 5])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("counts", [[], [0, 0], [1] * 100, [1000, 1, 1, 1], [1, 1, 1, 1000]])
def test_every_row_has_one_thread(threads, counts):
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    for per_thread, bounds in (
        (1, ranges_by_entries(starts)),
        (1, equal_ranges(len(counts))),
        (3, ranges_by_entries(starts, 3)),
    ):
        assert len(bounds) == per_thread * threads + 1
        assert bounds == sorted(bounds)
        assert (bounds[0], bounds[-1]) == (0, len(counts))
    assert len(counts) != 100 or ranges_by_entries(starts) == equal_ranges(100)


def test_every_thread_works_on_its_rows_of_each_call(threads):
    found = run_in_ranges(
        lambda name, begin, end: [(name, row) for row in range(begin, end)],
        (equal_ranges(9), "a"),
        (equal_ranges(4), "b"),
    )
    assert len(found) == 2 * threads
    assert sorted(chain.from_iterable(found)) == [("a", row) for row in range(9)] + [
        ("b", row) for row in range(4)
    ]


def test_results_come_in_the_order_of_the_ranges_whoever_computes_them(threads):
    def slow_at_first(begin, end):
        time.sleep(0.02 if begin < 5 else 0.001)
        return begin, end

    assert run_in_ranges(slow_at_first, (equal_ranges(60, 4),)) == list(
        pairwise(equal_ranges(60, 4))
    )


def test_an_error_of_any_thread_comes_back(threads):
    def fails(where, begin, end):
        return [[1][int(begin == where)], time.sleep(0.01)][0]

    for where in (0, 1, 2):
        with pytest.raises(IndexError):
            run_in_ranges(fails, ([0, 1, 2, 3], where))
    assert run_in_ranges(fails, ([0, 1, 2, 3], -1)) == [1, 1, 1]


@pytest.mark.parametrize("where", [0, 1])
def test_nothing_runs_any_more_when_an_error_comes_back(where):
    done = []

    def works(begin, end):
        if begin == where:
            raise KeyboardInterrupt
        time.sleep(0.05)
        done.append(begin)

    with pytest.raises(KeyboardInterrupt):
        run_in_ranges(works, ([0, 1, 2, 3, 4],))
    then = list(done)
    time.sleep(0.1)
    assert done == then


def test_callers_do_not_get_the_results_of_others():
    with ThreadPoolExecutor(8) as callers:
        found = callers.map(
            lambda caller: run_in_ranges(lambda c, begin, end: (c, begin), ([0, 1, 2, 3], caller)),
            range(500),
        )
        assert list(found) == [[(caller, thread) for thread in range(3)] for caller in range(500)]


def test_a_thread_that_waits_refers_to_no_array():
    array = np.zeros(3)
    reference = weakref.ref(array)
    run_in_ranges(lambda array, begin, end: None, ([0, 1, 2], array))
    del array
    deadline = time.monotonic() + 10
    while reference() is not None and time.monotonic() < deadline:
        time.sleep(0.001)  # the thread has answered, but may not have left its function yet
    assert reference() is None
