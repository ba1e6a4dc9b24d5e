"""What researchers write as parts of their own: attention, layers of PyG, state, randomness, and
mistakes."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from torch import nn
from torch.nn.functional import leaky_relu, softplus

from infomax import DGI, Graph, InputError
from infomax.kernels.initialisation import glorot
from infomax.parts.corruptions import flip_edges
from infomax.parts.encoders import GCN, Encoder
from infomax.parts.readouts import SigmoidMean
from infomax.training import embed
from infomax.views import SYMMETRIC, Batches
from infomax.views.propagation import Propagation


class Linear(Encoder):
    rule, depth = SYMMETRIC, 1

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__()
        self.out_dim, self.weight = dim, glorot((in_dim, dim), generator=generator)
        self.bias = nn.Parameter(torch.ones(dim))

    def layer(self, k, view, h):
        return torch.relu(view.own(h, self.weight) + self.bias + view.pooled(h, self.weight))


def of(layer=Linear.layer, **attributes):
    """An encoder with another layer, or other attributes."""
    return type("Odd", (Linear,), {"layer": layer, **attributes})


class Wider(Linear):
    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__(in_dim, dim, generator=generator)
        self.out_dim = dim + 1


class Fixed(Linear):
    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__(in_dim, dim, generator=generator)
        self.requires_grad_(False)


class Plain(nn.Module):
    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__()


class One(nn.Module):
    def __init__(self, dim, *, generator=None):
        super().__init__()

    def forward(self, h, summary):
        return (h @ summary).mean()


class Square(One):
    def forward(self, h, summary):
        return h @ h.T


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, scores, scores_negative):
        return softplus(-scores).mean() + self.weight * softplus(scores_negative).mean()


def in_place(view, generator):
    view.features.add_(1)
    return view


def half_dropped(view, generator, *, directed=False, unsorted=False):
    p = view.propagation
    kept = torch.rand(len(p.keys), generator=generator) > 0.5
    if unsorted:
        kept = torch.arange(len(p.keys)).flip(0)
    fewer = Propagation(p.keys[kept], p.weights[kept], p.n, p.rule, p.backend, directed=directed)
    return view.with_propagation(fewer)


def test_a_corruption_may_make_an_undirected_graph_directed():
    DGI(4, epochs=2, corruption=partial(half_dropped, directed=True)).fit(random_graph(dense=True))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"encoder": Plain},
            "encoder Plain: expected a subclass of infomax.parts.encoders.Encoder",
        ),
        (
            {"encoder": Wider},
            r"encoder: expected .* of shape \[40, 5\], found .* of shape \[40, 4\]",
        ),
        (
            {"encoder": of(lambda *to: Linear.layer(*to)[1:])},
            r"encoder: .* found .* of shape \[39, 4\]",
        ),
        (
            {"encoder": of(lambda *to: Linear.layer(*to) * torch.nan)},
            "epoch 1: .* nan. The weights are the first",
        ),
        (
            {"objective": lambda scores, negative: scores.mean() / 0},
            "epoch 1: expected a finite loss, found -?inf",
        ),
        (
            {"encoder": Fixed, "discriminator": One},
            "encoder, readout, discriminator: expected weights",
        ),
        (
            {"discriminator": One},
            r"discriminator: expected .* of shape \[40\], found .* of shape \[\]",
        ),
        (
            {"discriminator": Square},
            r"discriminator: expected .* of shape \[40\], found .* of shape \[40, 40\]",
        ),
        ({"corruption": in_place}, "corruption: .* changed in place"),
        ({"corruption": half_dropped}, "corruption: .* differ in their two directions. Keep both"),
        (
            {"corruption": partial(half_dropped, unsorted=True)},
            "corruption, keys of the propagation: .* Sort them",
        ),
        (
            {"corruption": lambda view, generator: None},
            "corruption: expected a view, found one of type NoneType",
        ),
        (
            {"objective": lambda scores, negative: 0.5},
            "objective: expected one number, .* of type float",
        ),
        (
            {"objective": lambda scores, negative: softplus(-scores)},
            r"objective: .* found .* of shape \[40\]",
        ),
        (
            {"objective": lambda scores, negative: scores.mean().detach()},
            "objective: .* without a gradient",
        ),
        ({"objective": Weighted()}, "objective: expected one without weights"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_in_a_part_is_told_by_the_name_of_the_part(parts, message):
    with pytest.raises(InputError, match=message):
        DGI(4, epochs=2, **parts).fit(random_graph(dense=True))


def test_summaries_and_scores_are_free_where_one_writes_both_sides():
    class Two(SigmoidMean):
        def forward(self, h, view):
            return torch.sigmoid(torch.stack([h.mean(0), h.max(0).values]))

    class Both(One):
        def forward(self, h, summaries):
            return h @ summaries.T

    parts = {
        "readout": Two,
        "discriminator": Both,
        "objective": lambda one, other: softplus(other - one).mean(),
    }
    assert DGI(4, epochs=2, **parts).fit(random_graph()).health_["epochs"] == 2


def test_what_a_layer_changes_in_place_is_its_own():
    def layer(self, k, view, h):
        return torch.relu(view.own(h, self.weight).add_(self.bias) + view.pooled(h, self.weight))

    graph = random_graph(dense=True)
    there, elsewhere = (
        DGI(4, epochs=5, encoder=part).fit_transform(graph).vectors for part in (of(layer), Linear)
    )
    np.testing.assert_allclose(there, elsewhere, atol=1e-5)


class Running(SigmoidMean):
    """A running mean of summaries, changed in place."""

    def __init__(self, dim, *, generator=None):
        super().__init__(dim)
        self.register_buffer("mean", torch.zeros(dim))

    def forward(self, h, view):
        summary = super().forward(h, view)
        self.mean.copy_(0.9 * self.mean + 0.1 * summary.detach())
        return summary + self.mean


class Replacing(Running):
    """The same, replaced."""

    def forward(self, h, view):
        summary = SigmoidMean.forward(self, h, view)
        self.mean = 0.9 * self.mean + 0.1 * summary.detach()
        return summary + self.mean


def test_state_that_a_part_replaces_is_kept_as_state_that_it_changes():
    settings = {"epochs": 500, "patience": 3, "lr": 0.05}
    models = [DGI(4, readout=part, **settings).fit(random_graph()) for part in (Running, Replacing)]
    assert models[0].health_["kept_epoch"] < models[0].health_["epochs"]
    assert torch.equal(*(model.model_.readout.mean for model in models))


class Forgetful(Linear):
    """Weights of ``nn.Linear``, which takes no generator, and dropout, which takes none either."""

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__(in_dim, dim, generator=generator)
        self.further = nn.Linear(dim, dim)

    def layer(self, k, view, h):
        return nn.functional.dropout(self.further(super().layer(k, view, h)), 0.5, self.training)


def test_a_seed_decides_what_torch_draws_by_itself(tmp_path):
    graph, model = random_graph(), partial(DGI, 4, encoder=Forgetful, epochs=6)
    vectors = model().fit_transform(graph).vectors
    before = torch.get_rng_state()
    np.testing.assert_array_equal(model().fit_transform(graph).vectors, vectors)
    assert torch.equal(torch.get_rng_state(), before)  # those of the caller
    assert not np.array_equal(model(seed=1).fit_transform(graph).vectors, vectors)

    def stop(training):
        if len(training.history) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model().fit(graph, run=tmp_path / "run", progress=stop)
    np.testing.assert_array_equal(
        model().fit(graph, run=tmp_path / "run").transform(graph).vectors, vectors
    )


def test_a_part_that_was_changed_cannot_go_on_from_its_checkpoint(tmp_path):
    def stop(training):
        raise KeyboardInterrupt

    def model(encoder):
        return DGI(4, encoder=encoder, epochs=2)

    with pytest.raises(KeyboardInterrupt):
        model(of()).fit(random_graph(), run=tmp_path / "run", progress=stop)
    wider = {
        "__init__": lambda part, in_dim, dim, **kw: Linear.__init__(part, in_dim, 2 * dim, **kw)
    }
    with pytest.raises(
        InputError, match=r"checkpoint.* the weights of these parts, found others .*Resume with"
    ):
        model(of(**wider)).fit(random_graph(), run=tmp_path / "run")


def contrast(scores, scores_negative):
    """InfoNCE, whose value depends on the number of nodes."""
    return (torch.logsumexp(torch.cat([scores, scores_negative]), 0) - scores).mean()


def test_guessing_is_about_as_many_nodes_as_a_step_has():
    graph = random_graph()
    assert DGI(4, objective=contrast, epochs=2).fit(graph).health_[
        "guessing_loss"
    ] == pytest.approx(np.log(80))
    views = partial(Batches, batch=16)
    found = DGI(4, objective=contrast, epochs=2, views=views).fit(graph).health_["guessing_loss"]
    assert found == pytest.approx(np.log(32))


def test_a_setting_may_be_an_array(tmp_path):
    def noise(view, generator, *, deviations):
        return view.with_features(view.features * torch.from_numpy(deviations))

    part = partial(noise, deviations=np.ones(12, np.float32))
    DGI(4, corruption=part, epochs=2).fit(random_graph(dense=True), run=tmp_path / "run")
    assert DGI.load(tmp_path / "run", corruption=part).preset_.corruption is part


def test_an_encoder_is_made_of_the_features_that_there_are():
    class Halves(Linear):
        def __init__(self, in_dim, dim, *, generator=None):
            assert in_dim == 12
            super().__init__(in_dim, dim, generator=generator)

    assert DGI(4, encoder=Halves, epochs=1).fit(random_graph()).model_.encoder.out_dim == 4


class Attention(Linear):
    """Attention over neighbours (Veličković et al., 2018), one head."""

    needs_whole_graph = True

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__(in_dim, dim, generator=generator)
        self.by = glorot((dim, 2), generator=generator)

    def layer(self, k, view, h):
        y, (senders, receivers) = view.own(h, self.weight), view.edges
        own, others = (y @ self.by).unbind(1)
        weight = leaky_relu(own[receivers] + others[senders], 0.2).exp()
        total = torch.zeros_like(own).index_add(0, receivers, weight)
        share = (weight / total[receivers])[:, None]
        return torch.relu(y + torch.zeros_like(y).index_add(0, receivers, share * y[senders]))


class Deep(Attention):
    """Two layers of it, and the mean over all nodes subtracted."""

    depth = 2

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__(in_dim, dim, generator=generator)
        self.again = Attention(dim, dim, generator=generator)

    def layer(self, k, view, h):
        out = self.again.layer(k, view, h) if k else super().layer(k, view, h)
        return out - out.mean(0)


@pytest.mark.parametrize("encoder", [Attention, Deep], ids=lambda encoder: encoder.__name__)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_an_encoder_may_read_the_edges_of_a_whole_graph(encoder, directed, tmp_path, monkeypatch):
    monkeypatch.setitem(
        embed.NODES_PER_BLOCK, "cpu", 7
    )  # vectors of other encoders are computed in blocks
    graph = random_graph(directed=directed)
    model = DGI(4, encoder=encoder, epochs=3).fit(graph, run=tmp_path / "run")
    vectors = model.transform(graph).vectors
    monkeypatch.undo()
    np.testing.assert_array_equal(model.transform(graph).vectors, vectors)
    loaded = DGI.load(tmp_path / "run", encoder=encoder)
    np.testing.assert_array_equal(loaded.transform(graph).vectors, vectors)
    later = Graph.from_arrays(
        np.stack(graph.adjacency.nonzero())[:, 2:], graph.features, directed=directed
    )
    update = loaded.update(later, loaded.transform(graph))
    if encoder is Attention:
        np.testing.assert_allclose(
            update.embeddings.vectors, loaded.transform(later).vectors, atol=1e-6
        )


def test_edges_that_a_corruption_does_not_list_are_refused():
    """Else such an encoder would read the edges of the graph in the negative, too."""
    flips = partial(flip_edges, rho=0.3)
    with pytest.raises(InputError, match=r"corruption: .*largest_sparse_rate=1"):
        DGI(4, encoder=Attention, corruption=flips, epochs=2).fit(random_graph())
    listed = partial(flips, largest_sparse_rate=1)
    assert DGI(4, encoder=Attention, corruption=listed, epochs=2).fit(random_graph()).health_


def test_an_encoder_of_whole_graphs_needs_them(tmp_path):
    with pytest.raises(
        InputError, match=r"encoder Attention: expected views of the whole graph.* found Batches"
    ):
        DGI(4, encoder=Attention, views=Batches, epochs=2).fit(random_graph())
    random_graph().save(tmp_path / "a.graph")
    folder = Graph.open(tmp_path / "a.graph")
    with pytest.raises(InputError, match=r"graph: expected one in memory.* graph.loaded\(\)"):
        DGI(4, encoder=Attention, preset="whole-graph", epochs=2).fit(folder.loaded()).transform(
            folder
        )


@pytest.mark.parametrize("attribute", ["edges", "edge_features", "has_edge_features", "n"])
@pytest.mark.parametrize("options", [{}, {"views": Batches}], ids=["whole", "batches"])
def test_an_encoder_that_forgets_to_say_that_it_needs_edges_is_refused_before_it_trains(
    attribute, options
):
    def layer(encoder, k, view, h):
        getattr(view, attribute)
        return Linear.layer(encoder, k, view, h)

    finished_epochs = []
    model = DGI(4, encoder=of(layer), epochs=2, **options)
    with pytest.raises(InputError, match=rf"view.{attribute}.*Write needs_whole_graph = True"):
        model.fit(random_graph(), progress=finished_epochs.append)
    assert finished_epochs == []


def test_an_encoder_that_says_it_late_is_refused_by_the_same_message(tmp_path):
    """Vectors of other encoders are computed in blocks of nodes, of folders block by block."""
    graph = random_graph()
    model = DGI(4, encoder=Attention, epochs=1).fit(graph)
    model.model_.encoder.needs_whole_graph = False
    graph.save(tmp_path / "a.graph")
    for source in (graph, Graph.open(tmp_path / "a.graph")):
        with pytest.raises(InputError, match=r"view.edges: .*needs_whole_graph = True"):
            model.transform(source)


def test_a_layer_of_pytorch_geometric_is_an_encoder():
    convolutions = pytest.importorskip("torch_geometric.nn")

    class Borrowed(GCN):
        needs_whole_graph = True

        def __init__(self, in_dim, dim, *, generator=None):
            super().__init__(in_dim, dim, generator=generator)
            self.convolution = convolutions.GCNConv(dim, dim, bias=False)
            self.convolution.lin.weight.data = torch.eye(dim)

        def linear(self, k, view, h):
            return self.convolution(view.own(h, self.weights[k]), view.edges)

    graph = random_graph()
    ours, theirs = (
        DGI(8, encoder=part, epochs=0).fit_transform(graph).vectors for part in (GCN, Borrowed)
    )
    np.testing.assert_allclose(theirs, ours, atol=1e-6)
    assert DGI(8, encoder=Borrowed, epochs=3).fit(graph).health_["epochs"] == 3
