"""The GPU's kernels against the plain ones in float64, and the replayed step against the plain one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from graphs import random_graph

from infomax import DGI, kernels
from infomax.trees import Tree

if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def pairs(*tensors):
    """Each tensor on the GPU in float32, and on the CPU in float64."""
    return [t.to(GPU, torch.float32) for t in tensors], [t.to("cpu", torch.float64) for t in tensors]


@pytest.mark.parametrize(("n", "m", "d"), [(5, 5, 3), (70, 41, 512), (300, 300, 200), (33, 64, 1024)])
def test_contrast(n, m, d, generator):
    def draw(*shape):
        return torch.randn(shape, generator=generator)

    on_gpu, plain = pairs(draw(n, d), draw(m, d), draw(d), torch.tensor([0.3]), draw(d, d) / d, draw(1)[0])
    found, gradients = kernels.contrast(*on_gpu)
    expected, expected_gradients = kernels.contrast(*plain)
    torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-4, atol=1e-6)
    for a, b in zip(gradients, expected_gradients, strict=True):
        assert a.shape == b.shape
        torch.testing.assert_close(a.cpu().double(), b, rtol=2e-3, atol=2e-6)


@pytest.mark.parametrize("parts", [1, 2])
def test_bias_prelu(parts, generator):
    tensors = [torch.randn(5), torch.tensor([0.4]), torch.randn(70, 5)]
    if parts == 2:
        tensors = [torch.randn(205), torch.tensor([0.4]), torch.randn(70, 5), torch.randn(70, 200)]
    outcomes = []
    for batch in pairs(*tensors):
        leaves = [t.requires_grad_() for t in batch]
        h = kernels.bias_prelu(*leaves)
        weights = torch.linspace(-1, 1, h.numel(), device=h.device, dtype=h.dtype).view_as(h)
        outcomes.append([h, *torch.autograd.grad((h * weights).sum(), leaves)])
    for a, b in zip(*outcomes, strict=True):
        torch.testing.assert_close(a.cpu().double(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [30, 3000])
def test_product(n, generator):
    """With long rows, which are cut, and without."""
    dense = torch.randn(40, n, generator=generator) * (torch.rand(40, n, generator=generator) < 0.3)
    dense[7] = 0
    y = torch.randn(n, 200, generator=generator)
    matrix = kernels.prepare(dense.to_sparse_csr().to(GPU))
    assert len(matrix.long) == (39 if n == 3000 else 0)
    torch.testing.assert_close(kernels.product(matrix, y.to(GPU)).cpu(), dense @ y, rtol=1e-4, atol=1e-4)


def test_trees(generator):
    sizes = (6, 30, 60, 600)
    table, share = torch.randn(80, 200, generator=generator), torch.rand(96, generator=generator)
    rows = torch.randint(80, (696,), generator=generator)
    found = kernels.gather_tree(table.to(GPU), rows.to(GPU), Tree.of(sizes, GPU), share.to(GPU))
    for a, b in zip(found, kernels.gather_tree(table, rows, Tree.of(sizes, CPU), share), strict=True):
        torch.testing.assert_close(a.cpu(), b)
    outcomes = []
    for device in (GPU, CPU):
        h = torch.randn(96, 200, generator=generator.manual_seed(3)).to(device).requires_grad_()
        own, mean = kernels.pool_tree(h, Tree.of(sizes[:3], device), share[:36].to(device))
        outcomes.append([own, mean, torch.autograd.grad((own * own + 3 * mean * own).sum(), h)[0]])
    for a, b in zip(*outcomes, strict=True):
        torch.testing.assert_close(a.cpu(), b.cpu())


@pytest.mark.parametrize("preset", ["whole-graph", "mean-pool", "patches", "many-graphs"])
def test_replayed_training_is_the_plain_one(preset, monkeypatch):
    """Bit for bit: the same kernels in the same order, whether Python launches them or the graph."""
    graph = random_graph(300, 20, dense=True)
    settings = {"dim": 16, "preset": preset, "epochs": 12, "lr": 1e-3, "device": "cuda"}
    replayed = DGI(**settings).fit(graph).transform(graph).vectors
    monkeypatch.setattr("infomax.estimator.REPLAYABLE", ())
    plain = DGI(**settings).fit(graph).transform(graph).vectors
    np.testing.assert_array_equal(replayed, plain)


def test_gpu_and_cpu_agree_on_what_does_not_depend_on_the_draw():
    graph = random_graph(200, 20)
    for settings in ({"epochs": 0}, {"epochs": 0, "preset": "patches"}, {"epochs": 0, "preset": "mean-pool"}):
        one, other = (DGI(dim=16, device=device, **settings).fit_transform(graph).vectors for device in ("cpu", "cuda"))
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_resumed_equals_uninterrupted_on_the_gpu(tmp_path):
    graph = random_graph(200, 20)

    def stop(training):
        raise KeyboardInterrupt

    train = partial(DGI(dim=16, epochs=100, device="cuda").fit, graph)
    train(run=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(run=tmp_path / "cut", progress=stop)
    train(run=tmp_path / "cut")
    whole, cut = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut"))
    assert whole == cut


def test_early_stopping_needs_no_look_by_the_host():
    graph = random_graph(200, 20)
    model = DGI(dim=16, lr=0.05, patience=5, device="cuda").fit(graph)
    curve = model.health_["curve"]["loss"]
    assert model.health_["epochs"] == int(np.argmin(curve)) + 1 + 5
