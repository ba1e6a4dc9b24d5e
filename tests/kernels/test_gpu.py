"""The GPU's kernels against the plain ones in float64, and the replayed step against the plain
one."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import random_graph, typed_graph
from scipy import sparse

from infomax import DGI, Graph
from infomax.estimator.fitting import FitRequest, fit_model
from infomax.estimator.together import fit_together, vectors_of
from infomax.kernels import Adam, Backend
from infomax.kernels.random import Permutation, uniform
from infomax.parts.corruptions import drop_features, shuffle_features
from infomax.parts.encoders import GCN
from infomax.training.early_stopping import Ledger
from infomax.views import NEIGHBOURS, SYMMETRIC, Batches, ManyGraphs, WholeView, operands
from infomax.views.batch_view import BatchSource
from infomax_paper.patches import PATCHES
from infomax_paper.trees import Tree, gather_tree, permutations, pool_tree

pytestmark = pytest.mark.gpu

CPU, GPU = torch.device("cpu"), torch.device("cuda")
ON_CPU, ON_GPU = Backend(CPU), Backend(GPU)


def pairs(*tensors):
    """Each tensor on the GPU in float32, and on the CPU in float64."""
    return [t.to(GPU, torch.float32) for t in tensors], [
        t.to("cpu", torch.float64) for t in tensors
    ]


@pytest.mark.parametrize(
    ("n", "m", "d"), [(5, 5, 3), (70, 41, 512), (300, 300, 200), (33, 64, 1024)]
)
def test_pair_loss(n, m, d, generator):
    def draw(*shape):
        return torch.randn(shape, generator=generator)

    on_gpu, plain = pairs(
        draw(n, d), draw(m, d), draw(d), torch.tensor([0.3]), draw(d, d) / d, draw(1)[0]
    )
    found, gradients = ON_GPU.pair_loss(*on_gpu)
    expected, expected_gradients = ON_CPU.pair_loss(*plain)
    torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-4, atol=1e-6)
    for a, b in zip(gradients, expected_gradients, strict=True):
        assert a.shape == b.shape
        torch.testing.assert_close(a.cpu().double(), b, rtol=2e-3, atol=2e-6)


@pytest.mark.parametrize("parts", [1, 2])
def test_bias_prelu(parts, generator):
    def draw(*shape):
        return torch.randn(shape, generator=generator)

    tensors = [draw(5), torch.tensor([0.4]), draw(70, 5)]
    if parts == 2:
        tensors = [draw(205), torch.tensor([0.4]), draw(70, 5), draw(200, 70).T]
    outcomes = []
    for backend, batch in zip((ON_GPU, ON_CPU), pairs(*tensors), strict=True):
        leaves = [t.requires_grad_() for t in batch]
        h = backend.bias_prelu(*leaves)
        weights = torch.linspace(-1, 1, h.numel(), device=h.device, dtype=h.dtype).view_as(h)
        outcomes.append([h, *torch.autograd.grad((h * weights).sum(), leaves)])
    for a, b in zip(*outcomes, strict=True):
        torch.testing.assert_close(a.cpu().double(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("d", [200, 512, 1024])
@pytest.mark.parametrize(("m", "n"), [(40, 30), (40, 3000), (2500, 40), (2, 5000)])
def test_product(m, n, d, generator):
    """With long rows, which are cut, and without; in tiles where Y is short and wide; rows without
    an entry."""
    dense = torch.randn(m, n, generator=generator) * (torch.rand(m, n, generator=generator) < 0.3)
    dense[1] = 0
    y = torch.randn(n, d, generator=generator)
    matrix = ON_GPU.prepare(dense.to_sparse_csr().to(GPU))
    assert len(matrix.cut.long_rows) == (0 if n < 100 else m - 1)
    torch.testing.assert_close(
        ON_GPU.product(matrix, y.to(GPU)).cpu(), dense @ y, rtol=1e-4, atol=1e-4
    )
    assert ("tiles" in vars(matrix)) == (n <= 4096 and d >= 512)


def test_shuffle_loss(generator):
    """With long rows, which are cut, and without."""
    dense = torch.randn(90, 90, generator=generator) * (
        torch.rand(90, 90, generator=generator) < 0.1
    )
    dense[7], dense[:, 3] = (
        torch.randn(90, generator=generator),
        torch.randn(90, generator=generator),
    )
    rows = torch.randperm(90, generator=generator)

    def draw(*shape):
        return torch.randn(shape, generator=generator)

    numbers = pairs(draw(90, 200), draw(200), torch.tensor([0.3]), draw(200, 200) / 200, draw(1)[0])
    outcomes = []
    for backend, batch in zip((ON_GPU, ON_CPU), numbers, strict=True):
        matrix = dense.to(batch[0])
        p, transpose = (backend.prepare(m.contiguous().to_sparse_csr()) for m in (matrix, matrix.T))
        outcomes.append(backend.shuffle_loss(p, transpose, rows.to(matrix.device), *batch))
    (found, gradients), (expected, expected_gradients) = outcomes
    torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-4, atol=1e-6)
    for a, b in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(a.cpu().double(), b, rtol=2e-3, atol=2e-6)


@pytest.mark.parametrize("n", [1, 2, 5, 64, 1000, 4097])
def test_permutations(n):
    generator = torch.Generator(GPU).manual_seed(3)
    found = permutations(ON_GPU, 50, n, generator)
    assert (found.sort(dim=1).values == torch.arange(n, device=GPU)).all()
    assert n < 64 or len(set(map(tuple, found.tolist()))) == 50
    assert ON_GPU.permutation(n, generator).shape == (n,)


def test_every_permutation_is_as_likely_as_another():
    """Chi-squared over the 24 permutations of 4; and over where the first of 100 goes."""
    generator = torch.Generator(GPU).manual_seed(4)
    of_four = (
        permutations(ON_GPU, 24_000, 4, generator) * torch.tensor([64, 16, 4, 1], device=GPU)
    ).sum(1)
    counts = torch.unique(of_four, return_counts=True)[1].double()
    assert len(counts) == 24
    assert ((counts - 1000) ** 2 / 1000).sum() < 49.7  # 23 degrees of freedom, one in a thousand
    first = torch.bincount(
        permutations(ON_GPU, 50_000, 100, generator)[:, 0], minlength=100
    ).double()
    assert ((first - 500) ** 2 / 500).sum() < 148.2  # 99 degrees of freedom


def test_the_end_of_a_step(generator):
    """Adam, the weights kept and the books, beside the plain ones, over epochs of two steps."""
    outcomes = []
    for device in (GPU, CPU):
        weights = [
            torch.ones(3000, device=device),
            torch.ones(7, device=device),
            torch.ones((), device=device),
        ]
        adam, ledger = Adam(weights, 0.01), Ledger(weights, steps=2, patience=2, shape=(4, 3))
        draws = torch.Generator().manual_seed(0)
        for step, loss in enumerate([5.0, 4, 3, 3, 6, 6, 2, 2, 7, 7, 7, 7, 1, 1]):
            ledger.add_record(torch.tensor([loss, 0.5, 0.1], device=device), step % 2 == 1)
            gradients = [
                torch.randn(weight.shape, generator=draws).to(device) for weight in weights
            ]
            adam.step(gradients, ledger.kept_weights if step % 2 else None, ledger.epochs_waited)
        counts = ledger.counts.clone()
        outcomes.append(
            [
                *adam.weights,
                *ledger.kept_weights,
                ledger.lowest,
                counts,
                torch.tensor(ledger.read(3)[0]),
            ]
        )
    for a, b in zip(*outcomes, strict=True):
        torch.testing.assert_close(a.cpu(), b)
    assert outcomes[0][-2].tolist() == [
        7,
        3,
        3,
    ]  # the fourth epoch was the best; the seventh came too late


def fitted(graph, *, compiled, **settings):
    """A model that was trained as one of many where kernels should be compiled, however small the
    graph."""
    model = DGI(**settings)
    model.fitted_ = fit_model(FitRequest(graph, model.get_params(), is_one_of_many=compiled))
    return model


def test_without_triton_the_results_are_the_same(monkeypatch):
    """Where nothing is drawn but the first weights and a shuffle that is not one."""
    graph = random_graph(300, 20)
    monkeypatch.setattr(
        Backend, "permutation", lambda self, n, generator: torch.arange(n, device=GPU).flip(0)
    )
    settings = {"dim": 16, "epochs": 12, "lr": 1e-3, "device": "cuda"}
    plain = DGI(**settings).fit(graph).transform(graph).vectors
    fused = fitted(graph, compiled=True, **settings).transform(graph).vectors
    assert not np.array_equal(fused, plain)
    np.testing.assert_allclose(fused, plain, rtol=1e-2, atol=1e-4 * abs(plain).max())


def test_half_a_table_is_gathered_in_full_precision(generator):
    sizes = (6, 30, 60, 600)
    table, share = torch.randn(80, 200, generator=generator), torch.rand(96, generator=generator)
    rows = torch.randint(80, (696,), generator=generator)
    found = gather_tree(
        ON_GPU, table.half().to(GPU), rows.to(GPU), Tree.of(sizes, GPU), share.to(GPU)
    )
    for a, b in zip(
        found,
        gather_tree(ON_CPU, table.half().float(), rows, Tree.of(sizes, CPU), share),
        strict=True,
    ):
        assert a.dtype == torch.float32
        torch.testing.assert_close(a.cpu(), b)


def test_trees(generator):
    sizes = (6, 30, 60, 600)
    table, share = torch.randn(80, 200, generator=generator), torch.rand(96, generator=generator)
    rows = torch.randint(80, (696,), generator=generator)
    found = gather_tree(ON_GPU, table.to(GPU), rows.to(GPU), Tree.of(sizes, GPU), share.to(GPU))
    for a, b in zip(
        found, gather_tree(ON_CPU, table, rows, Tree.of(sizes, CPU), share), strict=True
    ):
        torch.testing.assert_close(a.cpu(), b)
    outcomes = []
    for device in (GPU, CPU):
        h = torch.randn(96, 200, generator=generator.manual_seed(3)).to(device).requires_grad_()
        own, mean = pool_tree(Backend(device), h, Tree.of(sizes[:3], device), share[:36].to(device))
        outcomes.append([own, mean, torch.autograd.grad((own * own + 3 * mean * own).sum(), h)[0]])
    for a, b in zip(*outcomes, strict=True):
        torch.testing.assert_close(a.cpu(), b.cpu())


@pytest.mark.parametrize("preset", ["whole-graph", "batches", "mean-pool", PATCHES, "many-graphs"])
@pytest.mark.parametrize("compiled", [True, False])
def test_replayed_training_is_the_plain_one(preset, compiled, monkeypatch):
    """Bit for bit: the same kernels in the same order, whether Python launches them or the
    graph."""
    graph = random_graph(300, 20, dense=True)
    settings = {"dim": 16, "preset": preset, "epochs": 12, "lr": 1e-3, "device": "cuda"}
    replayed = fitted(graph, compiled=compiled, **settings).transform(graph).vectors
    monkeypatch.setattr("infomax.estimator.assembly.is_replayable", lambda *_: False)
    plain = fitted(graph, compiled=compiled, **settings).transform(graph).vectors
    np.testing.assert_array_equal(replayed, plain)


def test_many_padded_graphs_are_replayed_as_they_are_computed(monkeypatch):
    """Bit for bit; and without padding the same up to rounding, where nothing is dropped."""
    graph = groups_of(random_graph(300, 20, dense=True), [90, 70, 80, 60])
    settings = {
        "dim": 16,
        "preset": "many-graphs",
        "epochs": 12,
        "device": "cuda",
        "vectors": "paper",
    }
    replayed = DGI(**settings).fit(graph).transform(graph).vectors
    with monkeypatch.context() as patch:
        patch.setattr("infomax.training.loop.Replay", lambda step, generator: step)
        np.testing.assert_array_equal(DGI(**settings).fit(graph).transform(graph).vectors, replayed)
    settings["corruption"] = partial(drop_features, rate=0.0)
    padded = DGI(**settings).fit(graph).transform(graph).vectors
    settings["views"] = partial(ManyGraphs, most_padded_nodes=0)
    plain = DGI(**settings).fit(graph).transform(graph).vectors
    np.testing.assert_allclose(padded, plain, rtol=1e-2, atol=1e-3 * abs(plain).max())


def groups_of(graph, sizes):
    """The graph as several, without the edges between them."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    edges = graph.adjacency.tocoo()
    kept = groups[edges.row] == groups[edges.col]
    adjacency = sparse.csr_array(
        (edges.data[kept], (edges.row[kept], edges.col[kept])), shape=edges.shape
    )
    return graph.replace(adjacency=adjacency, groups=groups)


def test_a_seed_gives_the_same_encoder_whatever_ran_before():
    graph = random_graph(200, 20)
    model = partial(DGI, dim=16, epochs=5, device="cuda")
    first = model().fit_transform(graph).vectors
    fitted(graph, compiled=True, **model.keywords)
    DGI(preset="batches", dim=16, epochs=2, device="cuda").fit(graph)  # batches are always compiled
    np.testing.assert_array_equal(model().fit_transform(graph).vectors, first)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cap", [1000, 3])
@pytest.mark.parametrize("rule", [SYMMETRIC, NEIGHBOURS], ids=["loops", "no loops"])
def test_neighbourhoods(weighted, cap, rule, generator):
    """A batch on the GPU is the batch on the CPU: the same nodes, permutation and pooled
    features."""
    graph = random_graph(300, 20, dense=True, weighted=weighted)
    pooled = []
    for device in (CPU, GPU):
        views = Batches(graph, rule, shuffle_features, Backend(device), batch=70, cap=cap)
        drawn = torch.Generator().manual_seed(1)
        keys = [
            torch.randint(-(2**31), 2**31, (8,), generator=drawn, dtype=torch.int32)
            for _ in range(2)
        ]
        nodes, permutation = (
            Permutation(300, key.to(device), views.source.backend) for key in keys
        )
        chosen = nodes.first(70)
        offsets = uniform(chosen, torch.tensor(7, device=device))
        (hoods,), table = views.source.chains[""], views.source.features[""]
        found = [hoods.pool(chosen, offsets, table, p) for p in (None, permutation)]
        pooled.append([chosen, *(f[:, :20] for f in found)])
    assert (pooled[0][0] == pooled[1][0].cpu()).all()
    for a, b in zip(*(p[1:] for p in pooled), strict=True):
        torch.testing.assert_close(b.cpu(), a, rtol=2e-3, atol=2e-3)


def test_shuffled_batches_along_paths():
    """Types differ in their number of nodes: a shuffle is of those that send."""
    graph, keys = typed_graph(), torch.arange(8, dtype=torch.int32)
    found = []
    for device in (CPU, GPU):
        source = BatchSource.of(graph, ("paper-author-paper", "paper-subject"), Backend(device))
        rows = {
            kind: Permutation(len(x), keys.to(device), source.backend)
            for kind, x in source.features.items()
        }
        view = source.view(
            torch.arange(graph.num_nodes, device=device), 1, torch.tensor(7, device=device)
        )
        view = dataclasses.replace(view, permutations=rows)
        view.read()
        found.append(view.inputs)
    for path, expected in found[0].items():
        torch.testing.assert_close(
            found[1][path][:, : expected.shape[1]].cpu(), expected, rtol=2e-3, atol=2e-3
        )


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_batch_of_all_nodes_is_the_whole_graph_on_the_gpu(dense, layers, generator):
    graph = random_graph(300, 20, dense=dense)
    encoder = GCN(20, 16, layers=layers, generator=generator).to(GPU)
    views = Batches(graph, SYMMETRIC, shuffle_features, Backend(GPU), batch=300)
    views.prepare(layers)
    (found,) = encoder(views.pair(torch.zeros(1), torch.Generator(GPU))[0])
    (expected,) = encoder(WholeView.of(graph, SYMMETRIC, Backend(GPU)))
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("preset", [PATCHES, "batches"])
@pytest.mark.parametrize("scale", [1, 1e5])
def test_features_that_do_not_fit_stay_on_the_host(scale, preset, monkeypatch):
    """And are read from there, to the same bits; in half precision, and where that is too short."""
    graph = random_graph(300, 20, dense=True)
    graph = graph.replace(features=graph.features * np.float32(scale))
    settings = {
        "dim": 16,
        "preset": preset,
        "scale": "none",
        "epochs": 3,
        "lr": 1e-3,
        "device": "cuda",
    }
    there = DGI(**settings).fit(graph).transform(graph).vectors
    monkeypatch.setattr("infomax.views.operands.available_bytes", lambda gpu: 0)
    table = operands.to_gather(graph.table, ON_GPU)
    assert (table.is_pinned(), table.dtype) == (True, torch.half if scale == 1 else torch.float32)
    np.testing.assert_array_equal(DGI(**settings).fit(graph).transform(graph).vectors, there)


def test_gpu_and_cpu_agree_on_what_does_not_depend_on_the_draw():
    graph = random_graph(200, 20)
    for settings in (
        {"epochs": 0},
        {"epochs": 0, "preset": PATCHES},
        {"epochs": 0, "preset": "mean-pool"},
    ):
        one, other = (
            DGI(dim=16, device=device, **settings).fit_transform(graph).vectors
            for device in ("cpu", "cuda")
        )
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


@pytest.mark.parametrize("patience", [None, 5])
def test_encoders_side_by_side_are_those_trained_alone(patience):
    graph, settings = (
        random_graph(300, 40),
        {"dim": 16, "epochs": 150, "patience": patience, "device": "cuda"},
    )
    together = [DGI(seed=seed, **settings) for seed in range(5)]
    fit_together(together, graph)
    for model, vectors in zip(together, vectors_of(together, graph), strict=True):
        alone = DGI(seed=model.seed, **settings).fit(graph)
        assert len(alone.health_["curve"]["loss"]) == len(model.health_["curve"]["loss"])
        np.testing.assert_allclose(vectors, alone.transform(graph).vectors, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("preset", ["whole-graph", "mean-pool", "batches"])
def test_a_seed_gives_the_same_bytes_twice_where_rows_and_columns_are_long(preset):
    """The sums of cuSPARSE would differ from one call to the next."""
    draw = np.random.default_rng(0)
    features = sparse.csr_array(draw.random((1500, 800)) * (draw.random((1500, 800)) < 0.05))
    graph = Graph.from_arrays(
        draw.integers(0, 1500, (2, 9000)) // draw.integers(1, 40, 9000), features
    )
    models = [DGI(dim=64, epochs=10, preset=preset, device="cuda").fit(graph) for _ in range(3)]
    vectors = [model.transform(graph).vectors for model in (*models, models[0], models[0])]
    for others in vectors[1:]:
        np.testing.assert_array_equal(others, vectors[0])
