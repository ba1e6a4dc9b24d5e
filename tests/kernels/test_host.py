"""Arrays whose memory is used again, and torch on one thread."""

from __future__ import annotations

from functools import partial
from threading import Thread

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sample_graphs import random_graph

from infomax import DGI, kernels
from infomax.kernels import Backend, host
from infomax.kernels.host import Workspace, on_one_thread, row_product, transposed_product
from infomax.parts.encoders import GCN

SHAPE = (64, 32)


def address(array):
    return array.__array_interface__["data"][0]


def held_by_a_tensor(array):
    return torch.from_numpy(array)


def held_by_a_slice(array):
    return array[3:, :2]


def held_by_a_view_of_a_tensor(array):
    return torch.from_numpy(array).T.numpy()[:1]


def held_for_a_gradient(array):
    weight = torch.ones(SHAPE, requires_grad=True)
    return weight * torch.from_numpy(array)


@pytest.mark.parametrize(
    "hold",
    [held_by_a_tensor, held_by_a_slice, held_by_a_view_of_a_tensor, held_for_a_gradient],
    ids=lambda f: f.__name__,
)
def test_memory_is_used_again_when_nobody_can_read_it(hold):
    space = Workspace()
    array = space.empty(SHAPE, np.float32)
    place = address(array)
    holder = hold(array)
    del array
    other = space.empty(SHAPE, np.float32)
    assert address(other) != place
    del holder
    assert address(space.empty(SHAPE, np.float32)) == place


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 5)), max_size=60))
def test_no_array_is_overwritten_and_there_are_no_more_blocks_than_arrays_at_a_time(requests):
    """Arrays of any size come and go in any order; each keeps what was written into it."""
    space, slots, most, largest = Workspace(), [None] * 6, 0, 0
    for number, (size, slot) in enumerate(requests):
        slots[slot] = None
        array = space.empty((size, 3), np.int64)
        array[:] = number
        slots[slot] = array, number
        live = [pair for pair in slots if pair is not None]
        most, largest = max(most, len(live)), max(largest, array.nbytes)
        for kept, value in live:
            assert (kept == value).all()
        del array, kept, live
    slots.clear()
    space.empty((0,), np.int64)  # sorts in what has been returned
    blocks = [*space.free, *space.returned]
    assert len(blocks) <= most + 1
    assert all(len(block) <= largest for block in blocks)


def test_a_backend_uses_memory_again_in_its_own_context_alone():
    backend = Backend(torch.device("cpu"))
    with backend.reusing():
        first = backend.empty(SHAPE, np.float32)
        place = address(first)
        del first
        assert address(backend.empty(SHAPE, np.float32)) == place
    assert backend.empty(SHAPE, np.float32).base is None
    with pytest.raises(ZeroDivisionError), backend.reusing():
        raise ZeroDivisionError
    assert backend.workspace is None


@pytest.mark.parametrize("layers", [1, 2])
def test_a_training_is_the_same_to_the_bit_without_a_workspace(layers, monkeypatch):
    monkeypatch.setattr(
        kernels, "FEWEST_NUMBERS_FOR_NUMBA", 1
    )  # the compiled kernels on a small graph
    graph = random_graph(200)

    def vectors():
        return (
            DGI(dim=16, encoder=partial(GCN, layers=layers), epochs=6).fit_transform(graph).vectors
        )

    with_workspace = vectors()
    kept = with_workspace.copy()
    monkeypatch.setattr(Workspace, "empty", lambda self, shape, dtype: np.empty(shape, dtype))
    np.testing.assert_array_equal(vectors(), kept)
    np.testing.assert_array_equal(with_workspace, kept)


def test_a_longer_training_needs_no_more_blocks(monkeypatch):
    monkeypatch.setattr(kernels, "FEWEST_NUMBERS_FOR_NUMBA", 1)
    block_of, seen = Workspace._block, []

    def spy(self, size):
        seen.append(block_of(self, size))  # a block that is kept here keeps its id
        return seen[-1]

    def fit(epochs):
        seen.clear()
        DGI(dim=16, epochs=epochs).fit(random_graph(200))
        return len(seen), len({id(block) for block in seen})

    monkeypatch.setattr(Workspace, "_block", spy)
    (requests, blocks), (more_requests, as_many) = fit(3), fit(9)
    assert more_requests == 3 * requests
    assert as_many == blocks < requests


def test_torch_has_one_thread_there_and_as_many_as_before_elsewhere():
    threads, found = torch.get_num_threads(), []
    on_one_thread(lambda: found.append(torch.get_num_threads()))
    fresh = Thread(target=lambda: found.append(torch.get_num_threads()))
    fresh.start()
    fresh.join()
    assert [*found, torch.get_num_threads()] == [1, threads, threads]


def test_an_error_comes_back():
    with pytest.raises(ZeroDivisionError):
        on_one_thread(lambda: 1 // 0)


@pytest.mark.parametrize(("n", "f"), [(3, 6), (700, 6), (1024, 6), (5001, 6), (40, 1300)])
def test_products_do_not_depend_on_how_rows_are_divided(n, f, generator, monkeypatch):
    monkeypatch.setattr(host, "FEWEST_PRODUCTS_PER_THREAD", 1)
    x, g = torch.randn(n, f, generator=generator), torch.randn(n, 4, generator=generator)
    y = torch.randn(f, 4, generator=generator)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            for product, right, expected in (
                (row_product, y, x @ y),
                (transposed_product, g, x.T @ g),
            ):
                found = product(x, right)
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
                assert torch.equal(found, product(x, right))  # in every run the same bits
                with (
                    torch.no_grad()
                ):  # as in a backward pass, whose gradient may be in a tensor that requires one
                    assert torch.equal(found, product(x, right.clone().requires_grad_()))
                assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
