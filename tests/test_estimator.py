"""The estimator: the rules of scikit-learn, the results of odd graphs, and swapped parts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from infomax import DGI, Graph, InputError
from infomax.arrays.resemblance import resemblance
from infomax.kernels.initialisation import glorot
from infomax.parts.corruptions import flip_and_shuffle, flip_edges
from infomax.parts.encoders import GCN, Encoder
from infomax.parts.fused import accelerate
from infomax.parts.readouts import DiffPool, Set2Set, SigmoidMean
from infomax.training.schedule import ConstantRate
from infomax.views import SYMMETRIC, WholeGraph


def test_scikit_learns_law(graph):
    model = DGI(dim=8, epochs=3, seed=5)
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "DGI(dim=8, epochs=3, seed=5)"
    with pytest.raises(InputError, match="found depth"):
        model.set_params(depth=2)
    assert model.fit(graph) is model
    with pytest.raises(NotFittedError):
        DGI().transform(graph)


def test_a_pipeline_and_a_search_take_it_as_one_of_their_own(graph):
    only = FunctionTransformer(lambda graphs: graphs[0])  # a search cuts a list, not a graph
    pipeline = Pipeline(
        [("only", only), ("dgi", DGI(epochs=2, vectors="paper")), ("scale", StandardScaler())]
    )

    def width(fitted, graphs):
        return fitted.transform(graphs).shape[1]

    search = GridSearchCV(pipeline, {"dgi__dim": [4, 8]}, scoring=width, cv=[([0], [0])]).fit(
        [graph]
    )
    assert search.best_params_ == {"dgi__dim": 8}
    assert width(search.best_estimator_, [graph]) == 8


def test_same_seed_same_bytes_other_seed_other_vectors(graph):
    one, same, other = (
        DGI(dim=8, epochs=5, seed=seed).fit_transform(graph).vectors for seed in (0, 0, 1)
    )
    assert (one == same).all()
    assert (one != other).any()


def test_global_seed_is_neither_used_nor_touched(graph):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = DGI(dim=8, epochs=2).fit_transform(graph).vectors
    assert (torch.get_rng_state() == before).all()
    torch.manual_seed(2)
    assert (DGI(dim=8, epochs=2).fit_transform(graph).vectors == one).all()


def test_training_lowers_the_loss_and_reports_its_health(graph):
    # The mean rate of the schedule is about half of its peak.
    health = DGI(dim=16, epochs=60, lr=0.02).fit(graph).health_
    assert health["epochs"] == 60
    assert health["curve"]["loss"][-1] < 0.9 * health["curve"]["loss"][0]
    assert abs(health["curve"]["loss"][0] - np.log(2)) < 0.02
    assert 0 <= health["dead_dimensions"] <= 16
    assert 1 <= health["effective_rank"] <= 16
    assert health["peak_memory_bytes"] > 0
    assert health["resemblance"] == resemblance(graph.table, graph.edges, graph.scaler())


def test_early_stopping_keeps_the_weights_that_produced_the_lowest_loss(graph):
    model = DGI(dim=8, lr=0.05, patience=4, epochs=500).fit(graph)
    curve = model.health_["curve"]["loss"]
    best = int(np.argmin(curve))
    assert model.health_["kept_epoch"] == best + 1
    assert model.health_["epochs"] == best + 1 + 4 < 500
    # The weights before step k are those that k epochs end in.
    again = DGI(dim=8, schedule=ConstantRate, lr=0.05, epochs=best).fit(graph)
    np.testing.assert_array_equal(again.transform(graph).vectors, model.transform(graph).vectors)


def test_result_does_not_depend_on_how_often_the_history_is_read(graph, monkeypatch):
    from infomax.training.loop import Training

    one = DGI(dim=8, lr=0.05, patience=4).fit(graph)
    begin = Training.__init__

    def slow(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        self.stride = 13

    monkeypatch.setattr(Training, "__init__", slow)
    other = DGI(dim=8, lr=0.05, patience=4).fit(graph)
    np.testing.assert_array_equal(one.transform(graph).vectors, other.transform(graph).vectors)
    assert one.health_["curve"] == other.health_["curve"]


def test_random_init_is_the_encoder_as_drawn(graph):
    model = DGI(dim=8, epochs=0, seed=2).fit(graph)
    assert model.health_["epochs"] == 0
    assert (model.model_.encoder.biases[0] == 0).all()
    assert model.model_.encoder.slopes[0].item() == 0.25


@pytest.mark.parametrize(
    "parts",
    [
        {"corruption": partial(flip_edges, rho=0.01)},
        {"corruption": partial(flip_and_shuffle, rho=0.5)},
        {"readout": Set2Set},
        {"readout": partial(DiffPool, clusters=4)},
        {"encoder": partial(GCN, layers=2)},
    ],
    ids=["flip", "flip and shuffle", "set2set", "diffpool", "two layers"],
)
def test_parts_swap_and_survive_a_run_folder(parts, graph, tmp_path):
    model = DGI(dim=8, epochs=20, lr=0.01, **parts).fit(graph, run=tmp_path)
    assert model.health_["curve"]["loss"][-1] < model.health_["curve"]["loss"][0]
    loaded = DGI.load(tmp_path)
    assert loaded.preset_.describe() == model.preset_.describe()
    np.testing.assert_array_equal(loaded.transform(graph).vectors, model.transform(graph).vectors)


class OwnReadout(SigmoidMean):
    """A researcher's own readout."""


class Linear(Encoder):
    """A researcher's own encoder."""

    rule = SYMMETRIC
    depth = 1

    def __init__(self, in_dim, dim, generator=None):
        super().__init__()
        self.out_dim = dim
        self.map = torch.nn.Parameter(torch.empty(in_dim, dim).normal_(generator=generator))

    def layer(self, k, view, h):
        return view.pooled(h, self.map)


def test_own_part_is_handed_in_again_on_load(graph, tmp_path):
    model = DGI(dim=8, epochs=2, encoder=Linear).fit(graph, run=tmp_path)
    with pytest.raises(InputError, match=r"DGI.load\(run, encoder=...\)"):
        DGI.load(tmp_path)
    clone(model).set_params(readout=OwnReadout).fit(graph, run=tmp_path / "two")
    with pytest.raises(InputError, match=r"DGI.load\(run, encoder=..., readout=...\)"):
        DGI.load(tmp_path / "two")
    loaded = DGI.load(tmp_path, encoder=Linear)
    np.testing.assert_array_equal(loaded.transform(graph).vectors, model.transform(graph).vectors)
    for own in ({"encodr": Linear}, {"encoder": "Linear"}, {"encoder": GCN}):
        with pytest.raises(InputError, match=rf"^DGI.load\(run, {next(iter(own))}=...\): expected"):
            DGI.load(tmp_path, **{"encoder": Linear} | own)


def test_loading_takes_a_device_and_moves_no_global_generator(graph, tmp_path):
    before = torch.get_rng_state()
    DGI(dim=8, epochs=1, readout=Set2Set).fit(graph, run=tmp_path)
    assert DGI.load(tmp_path, device="cpu").device == "cpu"
    assert (torch.get_rng_state() == before).all()


class TestOddGraphs:
    """Each has a stated result."""

    def embed(self, graph):
        vectors = DGI(dim=4, epochs=3).fit_transform(graph).vectors
        assert np.isfinite(vectors).all()
        return vectors

    def test_one_node(self):
        assert self.embed(Graph.from_arrays([[], []], np.ones((1, 2)))).shape == (1, 4 + 2 + 2)

    def test_no_edges_depends_on_features_alone(self):
        vectors = self.embed(Graph.from_arrays([[], []], [[1, 0], [0, 1], [1, 0]]))
        np.testing.assert_array_equal(vectors[0], vectors[2])
        assert (vectors[0] != vectors[1]).any()

    def test_self_loops_change_nothing(self):
        features = np.eye(3)
        plain = Graph.from_arrays([[0], [1]], features)
        looped = Graph.from_arrays([[0, 2], [1, 2]], features)
        assert looped.dropped == {"self_loops": 1, "duplicates": 0, "zero_weights": 0}
        np.testing.assert_array_equal(self.embed(plain), self.embed(looped))

    def test_all_zero_rows_without_neighbours_are_equal(self):
        features = np.array([[1.0, 2], [0, 0], [0, 0]])
        vectors = self.embed(Graph.from_arrays([[], []], features))
        np.testing.assert_array_equal(vectors[1], vectors[2])

    def test_degrees_stand_in_for_features(self):
        graph = Graph.from_arrays([[0, 0, 0, 4], [1, 2, 3, 5]], "degrees")
        assert graph.feature_names[1] == "degree 1-2"
        vectors = self.embed(graph)
        np.testing.assert_allclose(vectors[1], vectors[3], atol=1e-6)
        assert not np.allclose(vectors[0], vectors[1])

    def test_without_features_positions_stand_in(self):
        graph = Graph.from_arrays([[0, 0, 0, 4], [1, 2, 3, 5]])
        assert graph.feature_names[1] == "position 2 of 256"
        assert DGI(dim=8, epochs=0).fit(graph).scaler_.scale == "none"
        vectors = self.embed(graph)
        np.testing.assert_allclose(vectors[1], vectors[3], atol=1e-6)
        assert not np.allclose(vectors[1], vectors[4])

    def test_nothing_is_refused(self):
        with pytest.raises(InputError, match="at least one node"):
            Graph.from_arrays([[], []])


class Tanh(GCN):
    """An heir of GCN with another end."""

    def layer(self, k, view, h):
        return torch.tanh(self.linear(k, view, h))


class Twice(Encoder):
    """Two weights that are made on the way, and one that does not learn."""

    rule, depth = SYMMETRIC, 1

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__()
        self.out_dim = dim
        self.first, self.second = (glorot((dim, in_dim), generator=generator) for _ in range(2))
        self.frozen = torch.nn.Parameter(torch.ones(dim), requires_grad=False)

    def layer(self, k, view, h):
        return self.frozen * (view.pooled(h, self.first.T) - view.pooled(h, self.second.T))


def test_heirs_of_the_papers_encoder_are_trained_as_they_are_written(graph):
    model = DGI(dim=8, encoder=Tanh, epochs=1, vectors="paper").fit(graph)
    method = model.preset_.make_method()
    assert accelerate(method, model.model_) is method
    assert abs(model.transform(graph).vectors).max() < 1


def test_weights_made_on_the_way_are_not_mistaken_for_each_other(graph):
    vectors = DGI(dim=8, encoder=Twice, epochs=0).fit_transform(graph).vectors
    assert abs(vectors).max() > 1e-3
    trained = DGI(dim=8, encoder=Twice, epochs=3, lr=0.01).fit(graph)
    assert (trained.model_.encoder.frozen == 1).all()
    assert (trained.transform(graph).vectors != vectors).any()


class Exploding(ConstantRate):
    """A schedule of your own, with rates that no option allows."""

    def rates(self, step_count):
        return 1e30


def test_a_lost_training_tells_the_epoch(graph):
    with pytest.raises(InputError, match="epoch 2"):
        DGI(dim=8, epochs=40, schedule=Exploding).fit(graph)


def test_a_lost_training_leaves_the_model_as_it_was(graph):
    model = DGI(dim=8, epochs=40, schedule=Exploding)
    with pytest.raises(InputError, match="a finite loss"):
        model.fit(graph)
    with pytest.raises(NotFittedError):
        model.transform(graph)
    before = model.set_params(schedule=None).fit_transform(graph).vectors
    with pytest.raises(InputError, match="a finite loss"):
        model.set_params(schedule=Exploding).fit(graph)
    np.testing.assert_array_equal(model.transform(graph).vectors, before)
    assert model.health_["epochs"] == 40


def test_a_regime_has_as_many_batches_as_it_says(graph):
    class Wrong(WholeGraph):
        steps = 2

    with pytest.raises(InputError, match="2 batches per epoch"):
        DGI(dim=8, views=Wrong, epochs=2).fit(graph)


def test_an_epoch_has_a_step(graph):
    class Idle(WholeGraph):
        steps = 0

    with pytest.raises(InputError, match=r"views.steps: expected a whole number from 1"):
        DGI(dim=8, views=Idle, epochs=2).fit(graph)


def test_a_regime_of_ones_own_may_have_arguments(graph):
    class Own(WholeGraph):
        def __init__(self, *args, temperature):
            super().__init__(*args)

    DGI(dim=8, views=partial(Own, temperature=2.0), epochs=2).fit(graph)


def test_a_bar_shows_the_epochs_on_a_terminal_and_nothing_in_a_log(graph, monkeypatch, capfd):
    silent = DGI(4, epochs=3).fit(graph, progress=True).transform(graph)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = DGI(4, epochs=3).fit(graph, progress=True).transform(graph)
    assert "3/3" in capfd.readouterr().err
    np.testing.assert_array_equal(shown.vectors, silent.vectors)


def test_a_loaded_model_is_shown_by_what_differs_from_its_preset(graph, tmp_path):
    readout = partial(DiffPool, clusters=3)
    DGI(16, epochs=3, readout=readout, device="cpu").fit(graph).save(tmp_path / "run")
    shown = repr(DGI.load(tmp_path / "run", device="cpu").preset)
    assert shown == "Preset('whole-graph', readout=DiffPool(clusters=3), dim=16, epochs=3)"
