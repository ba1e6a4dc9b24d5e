"""Memory used again, and torch on one thread."""

from __future__ import annotations

import gc

import pytest
import torch

from infomax import host
from infomax.host import empty, recycling, single_thread

LIKE = torch.zeros(())


def test_memory_comes_back_when_nobody_looks_at_it():
    blocks = []
    with recycling(blocks):
        first = empty(4, 3, LIKE)
        place, seen = first.data_ptr(), first.T[1:]
        del first
        assert not blocks
        assert empty(4, 3, LIKE).data_ptr() != place  # a view is still there
        del seen
        again = {empty(4, 3, LIKE).data_ptr(), empty(2, 1, LIKE).data_ptr()}
    assert place in again
    assert len(blocks) == 2


def test_what_lives_keeps_its_content():
    with recycling([]):
        kept = [empty(5, 2, LIKE).fill_(number) for number in range(10)]
        for number in range(100):
            kept[number % 10] = empty(5 + number % 7, 2, LIKE).fill_(number)
            for tensor in kept:
                assert (tensor == tensor[0, 0]).all()
        assert sorted(tensor[0, 0].item() for tensor in kept) == list(range(90, 100))
    gc.collect()
    assert [tensor[0, 0].item() for tensor in kept] == list(range(90, 100))  # longer than the recycling


def test_a_gradient_that_autograd_holds_is_not_handed_out():
    with recycling([]):
        x = empty(3, 2, LIKE).fill_(1).requires_grad_()
        square = (x * x).sum()  # keeps x for the way back
        place = x.data_ptr()
        assert empty(3, 2, LIKE).data_ptr() != place
        assert (torch.autograd.grad(square, x)[0] == 2).all()


def test_there_are_no_more_blocks_than_were_in_use_at_once():
    blocks = []
    with recycling(blocks):
        for rows in (3, 8, 5, 13, 1, 21, 2):
            assert empty(rows, 4, LIKE).shape == (rows, 4)
    assert [len(block) for block in blocks] == [21 * 4 * 4]


def test_outside_memory_is_the_systems():
    with recycling([]):
        pass
    assert host._free.get() is None
    assert empty(2, 3, torch.zeros((), dtype=torch.float64)).dtype == torch.float64


def test_an_error_gives_torch_its_threads_back():
    def fail():
        with single_thread():
            threads.append(torch.get_num_threads())
            raise ZeroDivisionError

    threads = [torch.get_num_threads()]
    with pytest.raises(ZeroDivisionError):
        fail()
    assert [*threads, torch.get_num_threads()] == [threads[0], 1, threads[0]]
