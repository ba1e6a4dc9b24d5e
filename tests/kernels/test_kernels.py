"""The compiled kernels of a CPU against the plain ones, which `laws/test_step.py` holds against
autograd."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from sample_graphs import random_graph

from infomax import DGI, kernels
from infomax.estimator.together import fit_together
from infomax.io.npz import write_npz
from infomax.kernels import (
    FEWEST_NUMBERS_FOR_NUMBA,
    FEWEST_NUMBERS_OF_EMBEDDING,
    FEWEST_NUMBERS_OF_TRAINING,
    Adam,
    Backend,
    plain,
)
from infomax.training.early_stopping import Ledger
from infomax.training.presets import PRESETS
from infomax_paper.patches import PATCHES

CPU = torch.device("cpu")
COMPILED = Backend(CPU, fewest_numbers=0)
PLAIN = Backend(CPU, fewest_numbers=math.inf)
BOTH = (COMPILED, PLAIN)


def test_kernels_are_chosen_by_the_work_and_the_device_alone():
    fewest = FEWEST_NUMBERS_FOR_NUMBA
    assert Backend(CPU).numba_for(fewest) is not None
    assert Backend(CPU).numba_for(fewest - 1) is None
    assert Backend.of_training(CPU, 0).numba_for(fewest) is not None
    assert Backend(CPU).triton is None

    small_embedding = Backend.of_embedding(CPU, FEWEST_NUMBERS_OF_EMBEDDING - 1)
    assert small_embedding.small
    assert small_embedding.numba_for(fewest) is None
    large_embedding = Backend.of_embedding(CPU, FEWEST_NUMBERS_OF_EMBEDDING)
    assert not large_embedding.small
    assert large_embedding.numba_for(fewest) is not None

    gpu = torch.device("cuda")
    assert Backend.of_training(gpu, FEWEST_NUMBERS_OF_TRAINING - 1).small
    assert not Backend.of_training(gpu, FEWEST_NUMBERS_OF_TRAINING).small


@pytest.mark.parametrize("lengths", [[0, 1, 63, 64, 65, 300, 0], [300], [0, 0], [64, 128]], ids=str)
def test_rows_that_are_cut_into_pieces_have_the_same_products(lengths, generator):
    """On a GPU without compiled kernels; the law holds on a CPU as well."""
    dense = torch.rand(len(lengths), 300, generator=generator, dtype=torch.float64)
    dense *= torch.arange(300) < torch.tensor(lengths)[:, None]
    y = torch.randn(300, 5, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(plain.Pieces.of(dense.to_sparse_csr()).product(y), dense @ y)


def test_a_training_of_short_steps_uses_one_thread(monkeypatch):
    """Whether they are short depends on nodes, features and width alone; all threads are there
    again after it."""
    before, found = torch.get_num_threads(), []
    torch.set_num_threads(3)
    try:
        for limit in (30 * 8 + 1, 30 * 8, 12 * 8):
            monkeypatch.setattr(kernels, "FEWEST_NUMBERS_FOR_NUMBA", limit)
            DGI(8, epochs=2, device="cpu").fit(
                random_graph(30, f=12),
                progress=lambda training: found.append(torch.get_num_threads()),
            )
            assert torch.get_num_threads() == 3
        assert found == [1, 1, 3, 3, 3, 3]
    finally:
        torch.set_num_threads(before)
    # Their steps do not grow with the graph.
    for preset in (PRESETS["batches"], PATCHES):
        assert preset.work_per_step(30, 12) == math.inf
    assert PRESETS["whole-graph"].work_per_step(30, 9000) == 9000 * 512


def test_a_small_graph_counts_as_large_in_one_of_many_models(monkeypatch):
    """As in the paper's protocol, which trains a hundred encoders."""
    graph, numbers = random_graph(30), []
    for name in ("of_training", "of_embedding"):
        monkeypatch.setattr(
            Backend, name, lambda device, work, *step: numbers.append(work) or Backend(device)
        )
    model = DGI(dim=4, epochs=2, device="cpu", vectors="paper")
    for is_one_of_many in (False, True):
        fit_together([model], graph, is_one_of_many=is_one_of_many)
        model.transform(graph)
    assert numbers == [30 * 4 * 2, 30 * 4, math.inf, 30 * 4]


def test_what_one_backend_does_changes_no_other(monkeypatch):
    """Torch's Adam leaves its threads only where its own backend has used numba's."""
    moved = []
    monkeypatch.setattr(
        kernels, "on_one_thread", lambda function, *arguments: moved.append(function)
    )
    one, other = Backend(CPU), Backend(CPU)
    with one.reusing():
        assert one.numba_for(FEWEST_NUMBERS_FOR_NUMBA) is not None
        assert one.workspace is not None
        assert other.workspace is None
    for backend, expected in ((other, []), (one, [plain.adam])):
        weight = torch.ones(3)
        Adam([weight], 0.1, backend).step([torch.ones(3)])
        assert moved == expected
        assert (weight == 1).all() == bool(expected)


def sparse(rows, columns, generator):
    dense = torch.randn(rows, columns, generator=generator) * (
        torch.rand(rows, columns, generator=generator) < 0.3
    )
    dense[1] = 0
    return dense, Backend(CPU).prepare(dense.to_sparse_csr())


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_product(threads, generator):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        dense, matrix = sparse(23, 31, generator)
        y = torch.randn(31, 17, generator=generator)
        for backend in BOTH:
            torch.testing.assert_close(backend.product(matrix, y), dense @ y)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("bytes_per_block", [1, 4 * 17 * 4, 4 * 17 * 10])
def test_product_by_blocks(bytes_per_block, generator):
    from infomax.kernels import cpu

    dense, matrix = sparse(23, 31, generator)
    y = torch.randn(31, 17, generator=generator)
    found = cpu.product(matrix, y, bytes_per_block=bytes_per_block, fewest_entries=0)
    torch.testing.assert_close(found, dense @ y)


@pytest.mark.parametrize("per_row", range(10))
def test_rows_of_any_number_of_entries(per_row, generator):
    """What was in memory before does not matter."""
    from infomax.kernels.cpu import product

    dense, y = torch.zeros(6, 12), torch.randn(12, 5, generator=generator)
    dense[:, :per_row] = torch.randn(6, per_row, generator=generator)
    found = product(dense.to_sparse_csr(), y, lambda shape, dtype: np.full(shape, np.nan, dtype))
    torch.testing.assert_close(found, dense @ y)


def test_products_of_several_and_of_a_shuffle(generator):
    dense, matrix = sparse(23, 31, generator)
    transpose = dense.T.contiguous().to_sparse_csr()
    y, rows = torch.randn(2, 31, 17, generator=generator), torch.randperm(31, generator=generator)
    leaf = y[0].clone().requires_grad_()
    expected = dense @ torch.stack([leaf, leaf[rows]])
    grad = torch.randn(2, 23, 17, generator=generator)
    (expected_gradient,) = torch.autograd.grad(expected, leaf, grad)
    for backend in BOTH:
        torch.testing.assert_close(backend.product(matrix, y), dense @ y)
        torch.testing.assert_close(backend.pair_product(matrix, rows, y[0]), expected)
        gradient = backend.pair_gradient(transpose, rows, grad)
        torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (3, 5)])
def test_product_with_nothing_in_it(rows, columns):
    matrix, y = torch.zeros(rows, columns).to_sparse_csr(), torch.ones(columns, 2)
    for backend in BOTH:
        found = backend.product(backend.prepare(matrix), y)
        torch.testing.assert_close(found, torch.zeros(rows, 2))


@pytest.mark.parametrize("slope", [0.25, -0.3, 0.0])
def test_pair_loss(slope, generator):
    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    arguments = (
        draw(40, 6),
        draw(31, 6),
        draw(6),
        torch.tensor([slope]).double(),
        draw(6, 6),
        draw(1)[0],
    )
    # Copies, since the first two are overwritten.
    compiled, plain = (
        backend.pair_loss(*(argument.clone() for argument in arguments)) for backend in BOTH
    )
    torch.testing.assert_close(compiled, plain)


def test_shuffle_loss(generator):
    dense, matrix = sparse(30, 30, generator)
    transpose = Backend(CPU).prepare(dense.T.contiguous().to_sparse_csr())
    rows, y = torch.randperm(30, generator=generator), torch.randn(30, 7, generator=generator)
    bias, weight = torch.randn(7, generator=generator), torch.randn(7, 7, generator=generator)
    last_weights = bias, torch.tensor([0.3]), weight, torch.tensor(0.1)
    compiled, plain = (
        backend.shuffle_loss(matrix, transpose, rows, y.clone(), *last_weights) for backend in BOTH
    )
    torch.testing.assert_close(compiled, plain)


def test_training_is_the_same_compiled_and_plain(monkeypatch):
    graph, vectors = random_graph(200, 20), []
    for fewest_numbers in (0, 1 << 62):
        monkeypatch.setattr(kernels, "FEWEST_NUMBERS_FOR_NUMBA", fewest_numbers)
        vectors.append(DGI(dim=16, epochs=20).fit_transform(graph).vectors)
    compiled, plain = vectors
    assert abs(compiled - plain).max() < 1e-4 * abs(plain).max()


def test_kernels_are_compiled_where_nothing_can_be_kept():
    from infomax.kernels.compiling import compiled

    from_nowhere = eval(
        "lambda x: x + 1"
    )  # a function without a file, beside which numba could keep its code
    assert compiled(from_nowhere)(1) == 2


@pytest.mark.parametrize("renamed", ["_load_overload", "_guard_against_spurious_io_errors"])
def test_kernels_are_loaded_as_numba_does_where_it_has_renamed_what_we_call(renamed, monkeypatch):
    from numba.core.caching import Cache

    from infomax.kernels.compiling import compiled

    calls = []
    monkeypatch.delattr(Cache, renamed)
    for name in ("load_overload", "save_overload"):
        monkeypatch.setattr(Cache, name, lambda *_, name=name: calls.append(name))

    def one_more(x):
        return x + 1

    assert compiled(one_more)(1) == 2
    assert calls == ["load_overload", "save_overload"]


def test_kernels_of_an_earlier_process_are_loaded_without_a_compiler(tmp_path):
    """All kernels of a training: the second process finds them on disk, and fills no tables of
    numba's compiler."""
    source, found = str(tmp_path / "graph.npz"), []
    write_npz(random_graph(200, 20), source)
    script = f"""
import sys
from infomax import DGI, kernels, read_graph
kernels.FEWEST_NUMBERS_FOR_NUMBA = 0
print(DGI(dim=16, epochs=3).fit_transform(read_graph({source!r})).vectors.sum(dtype=float))
print("numba" in sys.modules, "numba.np.arraymath" in sys.modules)
"""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        found.append(done.stdout.split())
    assert found[1] == [found[0][0], "True", "False"]


def test_long_sums_lose_nothing():
    """The summary of 300,000 equal nodes; a running sum in single precision would be half a percent
    off."""
    from infomax.kernels import cpu

    n, d = 300_000, 2
    z, slope = torch.full((n, d), 0.1), torch.tensor([0.25])
    no_bias = torch.zeros(d).numpy()
    sums = sum(cpu._run_on_rows(cpu._activation_sums, (z, no_bias, slope.numpy()[0])))
    assert sums / n == pytest.approx([0.1, 0.1], rel=1e-5)


@pytest.mark.parametrize("backend", BOTH, ids=["compiled", "plain"])
def test_adam_is_torchs_however_gradients_lie_in_memory(backend, generator):
    start = torch.randn(4, 3, generator=generator)
    ours, theirs = start.clone(), start.clone().requires_grad_()
    adam, torchs = Adam([ours], 0.1, backend), torch.optim.Adam([theirs], lr=0.1)
    for gradient in (torch.randn(3, 4, generator=generator).T, torch.ones(()).expand(4, 3), -start):
        adam.step([gradient])
        theirs.grad = gradient.clone()
        torchs.step()
    torch.testing.assert_close(ours, theirs.detach())


def test_the_end_of_a_step(generator):
    """Adam and the weights kept, over epochs of two steps; one weight lies in memory column by
    column."""
    draws = [torch.randn(3000, generator=generator) for _ in range(6)]

    def steps(weights, backend):
        adam = Adam(weights, 0.01, backend)
        ledger = Ledger(weights, steps=2, patience=2, shape=(4, 3), backend=backend)
        for step, (loss, draw) in enumerate(zip([5.0, 4, 3, 3, 6, 6], draws, strict=True)):
            ledger.add_record(torch.tensor([loss, 0.5, 0.1]), step % 2 == 1)
            gradients = [draw[: weight.numel()].view(weight.shape) for weight in weights]
            adam.step(gradients, ledger.kept_weights if step % 2 else None, ledger.epochs_waited)
        return [*adam.weights, *adam.means, *adam.variances, adam.count, *ledger.kept_weights]

    for shape in ([3000], [30, 100]):
        compiled, plain = (
            steps([torch.ones(shape), torch.ones(7), torch.ones(())], backend) for backend in BOTH
        )
        torch.testing.assert_close(compiled, plain)
    compiled, plain = (steps([torch.ones(30, 100).T, torch.ones(7)], backend) for backend in BOTH)
    torch.testing.assert_close(compiled, plain, rtol=0, atol=0)


def test_inverse(generator):
    rows = torch.randperm(50, generator=generator)
    assert (rows[plain.inverse(rows)] == torch.arange(50)).all()
