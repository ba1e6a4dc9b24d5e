"""Graphs of several types: whole graph, blocks, batches and rows from disk give the same means of means."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import SIZES, embed, typed_graph
from scipy import sparse

from infomax import DGI, Graph, InputError, kernels
from infomax.arrays.relations import find_paths, named_path
from infomax.arrays.structural_features import DEGREE_NAMES
from infomax.arrays.table import FeatureTable
from infomax.io.nodes import Nodes
from infomax.kernels import Backend
from infomax.kernels.ranks import Portion
from infomax.parts.corruptions import shuffle_features
from infomax.parts.deep_graph_infomax import DeepGraphInfomax
from infomax.parts.encoders import GCN, PathMean
from infomax.parts.fused import accelerate
from infomax.parts.objectives import binary_cross_entropy
from infomax.training.embed import Embedder
from infomax.training.recipe import Recipe
from infomax.views import Batches, WholeGraph, WholeView, whole
from infomax.views.neighbourhoods import distinct
from infomax.views.operands import SparseOperand

CPU = torch.device("cpu")


def mean_matrix(graph: Graph, path: str) -> torch.Tensor:
    """The product of the means along a path, dense."""
    total = None
    for step in named_path(graph.relations, path):
        matrix = step.relation.edges.matrix().toarray()
        matrix = matrix if step.node_type == step.relation.source else matrix.T
        mean = matrix / np.maximum(matrix.sum(1, keepdims=True), 1e-9)
        total = mean if total is None else total @ mean
    return torch.from_numpy(np.asarray(total, np.float32))


def by_hand(encoder: PathMean, graph: Graph, rows=None) -> torch.Tensor:
    """H, from dense matrices; ``rows``: by type, whose features each node has."""
    found = []
    for path, weight, bias, slope in zip(
        encoder.paths, encoder.weights, encoder.biases, encoder.slopes, strict=True
    ):
        end = named_path(graph.relations, path)[-1].sender
        x = graph.target(end).features
        x = torch.from_numpy(np.asarray(x.toarray() if sparse.issparse(x) else x))
        x = x if rows is None else x[rows[end]]
        found.append(torch.prelu(mean_matrix(graph, path) @ x @ weight + bias, slope))
    return torch.stack(found).mean(0)


@pytest.fixture(params=["dense", "sparse", "weighted"])
def graph(request) -> Graph:
    return typed_graph(dense=request.param != "sparse", weighted=request.param == "weighted")


@pytest.fixture
def encoder(graph, generator) -> PathMean:
    made = PathMean(0, 6, paths=graph.paths(), generator=generator)
    for bias in made.biases:
        torch.nn.init.normal_(bias, generator=generator)
    return made


def test_paths_are_found_up_to_a_number_of_steps():
    graph = typed_graph()
    assert list(graph.paths(hops=1)) == ["paper-author", "paper-subject", "paper-paper"]
    two = [
        "paper-author-paper",
        "paper-subject-paper",
        "paper-paper-author",
        "paper-paper-subject",
        "paper-paper-paper",
    ]
    assert list(graph.paths(hops=2)) == ["paper-author", "paper-subject", "paper-paper", *two]
    assert graph.target("subject").paths(["subject-paper-author"]) == {"subject-paper-author": 5}


def test_types_without_features_end_paths_where_no_other_path_passes_them():
    """As conferences do, which tell more of DBLP's authors than their own words; papers are on the way to authors."""
    graph = typed_graph().target("author")
    made = {
        kind: Nodes.of(SIZES[kind], np.ones((SIZES[kind], 32)), feature_names=DEGREE_NAMES)
        for kind in ("paper", "subject")
    }
    bare = dataclasses.replace(graph, nodes={**graph.nodes, **made}, relations=graph.relations[:2])
    assert list(bare.paths()) == ["author-paper-author", "author-paper-subject"]


def test_relations_are_named_where_two_join_the_same_types():
    graph = typed_graph()
    twice = (*graph.relations, dataclasses.replace(graph.relations[0], name="edited"))
    found = find_paths(twice, "author", 1, ["paper"])
    assert list(found) == ["author-[by]-paper", "author-[edited]-paper"]
    for name, path in found.items():
        assert [step.relation.name for step in named_path(twice, name)] == [
            step.relation.name for step in path
        ]
    with pytest.raises(InputError, match=r"such as author-\[by\]-paper, author-\[edited\]-paper"):
        named_path(twice, "author-paper")
    with pytest.raises(
        InputError, match=r'path "paper-venue": expected a step such as paper-author'
    ):
        named_path(twice, "paper-venue")


def test_paths_of_another_type_are_refused():
    with pytest.raises(InputError, match="paths: expected paths from subject, found paper-author"):
        typed_graph().target("subject").paths(["paper-author"])


def test_turning_to_another_type_and_back_is_the_same_graph():
    graph = typed_graph()
    turned = graph.target("author")
    assert (turned.num_nodes, turned.num_features, turned.types) == (
        17,
        5,
        ("author", "paper", "subject"),
    )
    assert repr(turned).startswith(
        "Graph(nodes: 17 of type author with 5 features, 4 of type subject with 3"
    )
    back = turned.target("paper")
    assert np.array_equal(back.features, graph.features)
    assert back.relations is graph.relations
    assert np.array_equal(back.nodes["author"].table.values, turned.features)


def test_the_whole_graph_and_blocks(graph, encoder, generator):
    view = WholeView.of(graph, encoder.rule, Backend(CPU))
    torch.testing.assert_close(encoder(view)[0], by_hand(encoder, graph))
    torch.testing.assert_close(embed(encoder, view, block=7), by_hand(encoder, graph).detach())
    negative = shuffle_features(view, generator)
    torch.testing.assert_close(
        encoder(negative)[0], by_hand(encoder, graph, negative.shuffled_rows)
    )
    assert all(
        sorted(rows.tolist()) == list(range(SIZES[kind]))
        for kind, rows in negative.shuffled_rows.items()
    )


@pytest.mark.parametrize("n", [30, 3000], ids=["marked", "sorted"])
def test_distinct_senders_and_their_places(n, generator):
    senders = torch.randint(30, (50,), generator=generator)
    nodes, places = distinct(senders, n)
    assert nodes.tolist() == sorted(set(senders.tolist()))
    assert torch.equal(nodes[places], senders)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_batches(graph, encoder, generator, monkeypatch, compiled):
    monkeypatch.setattr(kernels, "FEWEST_NUMBERS_FOR_NUMBA", 0 if compiled else 1 << 62)
    views = Batches(graph, encoder.rule, shuffle_features, Backend(CPU), batch=9)
    positive, negative = views.pair(torch.zeros(1), generator)
    nodes = views.nodes(torch.zeros(1), positive)[0]
    assert len(set(nodes.tolist())) == 9
    torch.testing.assert_close(encoder(positive)[0], by_hand(encoder, graph)[nodes])
    rows = {kind: drawn(torch.arange(SIZES[kind])) for kind, drawn in negative.permutations.items()}
    torch.testing.assert_close(encoder(negative)[0], by_hand(encoder, graph, rows)[nodes])


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_batches_of_half_precision_from_disk(generator, monkeypatch, compiled):
    monkeypatch.setattr(kernels, "FEWEST_NUMBERS_FOR_NUMBA", 0 if compiled else 1 << 62)
    graph = typed_graph()
    halves = {kind: one.features.astype(np.float16) for kind, one in graph.by_type().items()}
    sides = []
    for precision in (np.float16, np.float32):
        tables = {
            kind: FeatureTable(x.astype(precision), mapped=True) for kind, x in halves.items()
        }
        sides.append(
            graph.with_nodes(
                lambda kind, one, tables=tables: dataclasses.replace(one, table=tables[kind])
            )
        )
    encoder = PathMean(0, 6, paths=graph.paths(), generator=generator)
    half, single = (
        Batches(side, encoder.rule, shuffle_features, Backend(CPU), batch=9).source
        for side in sides
    )
    nodes, seed = torch.arange(40), torch.tensor(5)
    torch.testing.assert_close(
        encoder(half.view(nodes, 1, seed))[0], encoder(single.view(nodes, 1, seed))[0]
    )


@pytest.mark.parametrize("keeps_passes_in_files", [True, False], ids=["files", "memory"])
def test_rows_from_disk(encoder, graph, keeps_passes_in_files):
    """The means of a path's later steps are as many as its other type has nodes, wherever they are kept."""
    if graph.table.sparse:
        pytest.skip("graph folders hold dense features")
    stored = graph.with_nodes(
        lambda _, one: dataclasses.replace(one, table=FeatureTable(one.table.values, mapped=True))
    )
    recipe = Recipe(encoder, graph.scaler("none"))
    engine = Embedder.of(recipe, stored, Backend(CPU), nodes_per_block=7)
    engine.on_disk = keeps_passes_in_files  # a GPU with room keeps them in its memory
    nodes = np.array([0, 3, 11, 39])
    expected = by_hand(encoder, graph).detach().numpy()
    np.testing.assert_allclose(engine.all(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        engine.some(nodes, torch.device("cpu")), expected[nodes], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize(
    "first", [0, 1, 2], ids=["product first", "pooled first", "pooled by two factors"]
)
def test_a_step_has_the_loss_and_the_gradients_of_dense_matrices(
    graph, encoder, generator, monkeypatch, compiled, first
):
    monkeypatch.setattr(kernels, "FEWEST_NUMBERS_FOR_NUMBA", 0 if compiled else 1 << 62)
    monkeypatch.setattr(
        whole, "count_factors_before_weight", lambda factors, *_: min(first, len(factors))
    )
    model = DeepGraphInfomax().build(encoder, generator)
    views = WholeGraph(graph, encoder.rule, shuffle_features, Backend(CPU))
    for _ in range(2):  # the second step finds what the first one keeps
        positive, negative = views.pair(torch.zeros(1), generator)
        record = accelerate(DeepGraphInfomax(), model).loss(model, (positive, negative))
        h, h_negative = by_hand(encoder, graph), by_hand(encoder, graph, negative.shuffled_rows)
        summary = torch.sigmoid(h.mean(0))
        loss = binary_cross_entropy(
            model.discriminator(h, summary), model.discriminator(h_negative, summary)
        )
        torch.testing.assert_close(record[0], loss)
        weights = list(model.parameters())
        gradients = torch.autograd.grad(record[0], weights), torch.autograd.grad(loss, weights)
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("sparse_entry_cost", [4, 10])
def test_features_are_pooled_first_where_that_is_less_work(sparse_entry_cost):
    count = partial(whole.count_factors_before_weight, sparse_entry_cost=sparse_entry_cost)
    few, many = (
        SparseOperand.of_rows(torch.arange(m + 1), torch.arange(m), torch.ones(m), 400)
        for m in (3, 300)
    )
    weight = torch.ones(50, 32)
    for x in (torch.ones(400, 50), SparseOperand(torch.ones(400, 50).to_sparse_csr())):
        assert count([few], x, weight) == 1
        assert count([many, few], x, weight) == 1
    assert count([many], torch.ones(400, 50), weight) == 0
    full = SparseOperand(torch.ones(30, 400).to_sparse_csr())
    assert count([full, many], torch.ones(400, 50), weight) == 2


def test_factors_are_merged_only_where_that_leaves_no_more_entries():
    to_few, to_many = (
        sparse.random_array((90, 3), density=0.3, rng=0),
        sparse.random_array((3, 90), density=0.9, rng=1),
    )
    single = sparse.eye_array(90, format="csr")
    chain = [single, to_few.tocsr(), to_many.tocsr(), single]
    merged = whole.merge_factors(chain)
    assert [one.shape for one in merged] == [(90, 3), (3, 90)]
    assert sum(one.nnz for one in merged) <= sum(one.nnz for one in chain)
    product, parts = chain[0] @ chain[1] @ chain[2] @ chain[3], merged[0] @ merged[1]
    np.testing.assert_allclose(product.toarray(), parts.toarray())


def test_training_on_unseen_nodes_reads_none_of_them(generator):
    graph = typed_graph()
    seen = np.arange(40) < 30
    graph = graph.replace(splits={"seen": seen})
    changed = graph.features.copy()
    changed[30:] = 1e6
    trained = [
        DGI(8, epochs=3, seed=1, scale="columns").fit(one)
        for one in (graph, graph.replace(features=changed))
    ]
    for one, other in zip(*(model.model_.parameters() for model in trained), strict=True):
        assert torch.equal(one, other)


def test_each_type_trains_and_saves_what_it_needs(tmp_path):
    graph = typed_graph()
    for kind in graph.types:
        model = DGI(8, epochs=5, seed=3).fit(graph.target(kind))
        assert model.preset_.name == "types"
        vectors = model.transform(graph.target(kind)).vectors
        assert len(vectors) == SIZES[kind]
        assert np.isfinite(vectors).all()


class Weighted(PathMean):
    """Learns how much each path counts; at first all count the same."""

    def __init__(self, in_dim, dim, *, heat=1.0, **settings):
        super().__init__(in_dim, dim, **settings)
        self.shares, self.heat = torch.nn.Parameter(torch.zeros(len(self.paths))), heat

    def layer(self, k, view, h):
        parts = (
            view.pooled(None, weight, path)
            for path, weight in zip(self.paths, self.weights, strict=True)
        )
        active = (
            torch.prelu(y + b, a) for y, b, a in zip(parts, self.biases, self.slopes, strict=True)
        )
        return sum(
            share * one
            for share, one in zip((self.shares / self.heat).softmax(0), active, strict=True)
        )


@pytest.mark.parametrize("preset", ["types", "type-batches"])
def test_an_encoder_of_ones_own_takes_the_paths_of_the_graph(preset, tmp_path):
    graph, own = typed_graph(), partial(Weighted, heat=0.5)
    untrained = [
        DGI(8, preset=preset, epochs=0, encoder=encoder).fit(graph) for encoder in (own, PathMean)
    ]
    np.testing.assert_allclose(
        *(model.transform(graph).vectors for model in untrained), rtol=1e-4, atol=1e-6
    )
    model = DGI(8, preset=preset, epochs=20, encoder=partial(own, hops=1)).fit(
        graph, run=tmp_path / "run"
    )
    assert list(model.preset_.paths) == list(graph.paths(hops=1))
    assert model.model_.encoder.shares.std() > 0  # trained, too
    loaded = DGI.load(tmp_path / "run", encoder=own)
    np.testing.assert_array_equal(loaded.transform(graph).vectors, model.transform(graph).vectors)


def test_a_graph_seen_from_another_type_is_refused():
    graph = typed_graph()
    model = DGI(4, epochs=1).fit(graph)
    with pytest.raises(
        InputError,
        match=r"nodes of type paper, found nodes of type author\. .*graph\.target\('paper'\)",
    ):
        model.transform(graph.target("author"))
    with pytest.raises(InputError, match="expected nodes of type paper, found nodes of one type"):
        model.transform(Graph.from_arrays([[0], [1]], np.ones((2, 7), np.float32)))


def test_encoders_that_do_not_fit_the_types_are_refused():
    with pytest.raises(InputError, match="PathMean: expected a graph of several types of nodes"):
        DGI(8, preset="types").fit(Graph.from_arrays([[0], [1]], np.eye(2)))
    with pytest.raises(
        InputError, match="encoder: expected PathMean, for a graph of several types"
    ):
        DGI(8, encoder=GCN, preset="whole-graph", epochs=1).fit(typed_graph())


def test_a_batch_is_divided_among_ranks(encoder, graph, generator):
    source = Batches(graph, encoder.rule, shuffle_features, Backend(CPU), batch=8).source
    nodes, seed = torch.arange(8), torch.tensor(5)
    halves = [
        encoder(source.view(nodes[part], 1, seed, Portion(8, 16)))[0]
        for part in (slice(4), slice(4, 8))
    ]
    torch.testing.assert_close(torch.cat(halves), encoder(source.view(nodes, 1, seed))[0])
