"""What the estimator refuses: each by its name, before the work is done."""

from __future__ import annotations

from functools import partial

import networkx
import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from infomax import DGI, Graph, InputError, memory
from infomax.estimator import settings
from infomax.kernels import room
from infomax.parts.corruptions import flip_edges, shuffle_features
from infomax.parts.encoders import GCN
from infomax.parts.readouts import Set2Set
from infomax.training.presets import PRESETS
from infomax.training.schedule import USUAL_EPOCHS, ConstantRate, WarmUpCosine
from infomax.views import Batches, WholeGraph
from infomax_paper.patches import PATCHES, Patches, shuffle_within_patches


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda names: names[1:], "no column 'x0'"),
        (lambda names: (names[1], names[0], *names[2:]), "another order"),
        (lambda names: ("y", *names[1:]), "no column 'x0'"),
    ],
    ids=["missing", "reordered", "renamed"],
)
def test_other_features_are_refused_by_name(graph, change, message):
    names = change(graph.feature_names)
    other = Graph.from_scipy(graph.adjacency, graph.features[:, : len(names)], feature_names=names)
    with pytest.raises(InputError, match=message):
        DGI(dim=4, epochs=0).fit(graph).transform(other)


@pytest.mark.parametrize(
    "views",
    [Patches, partial(Patches, fan_out=(10, 10, 25)), partial(Patches, batch=256)],
    ids=["plain", "one", "other"],
)
def test_patches_that_name_no_sizes_take_the_memory_of_those_that_do(views, graph, monkeypatch):
    asked = []
    monkeypatch.setattr(room, "require", lambda needed, device, *further: asked.append(needed))
    for made in (partial(Patches, fan_out=(10, 10, 25), batch=256), views):
        DGI(dim=4, preset=PATCHES, views=made, epochs=0, vectors="paper").fit(graph)
    assert asked[: len(asked) // 2] == asked[len(asked) // 2 :]


def test_more_memory_than_there_is_is_refused_with_the_number(graph, monkeypatch):
    fitted = DGI(dim=8, epochs=1).fit(graph)
    monkeypatch.setattr(room, "available_bytes", lambda device: 1000)
    with pytest.raises(InputError, match=r"expected .* (kB|MB) free .* found 1.0 kB"):
        DGI(dim=512).fit(graph)
    with pytest.raises(InputError, match="kB free"):
        fitted.transform(graph)


@pytest.mark.parametrize(("batches", "preset"), [(900, "batches"), (5000, "whole-graph")])
def test_auto_takes_batches_where_they_need_less_memory_than_the_whole_graph(
    graph, monkeypatch, batches, preset
):
    """Else the refusal would ask for more memory than the whole graph needs."""
    monkeypatch.setattr(room, "available_bytes", lambda device: 1000)
    monkeypatch.setattr(WholeGraph, "bytes", lambda *_, **__: 2000)
    monkeypatch.setattr(Batches, "bytes", lambda *_, **__: batches)
    chosen, reason = DGI(dim=4).choose_preset(graph, torch.device("cpu"))
    assert (chosen, reason) == (preset, "the whole graph needs about 2.0 kB, and 1.0 kB are free")


class Attention(GCN):
    """An encoder that needs the whole graph at once."""

    needs_whole_graph = True


@pytest.mark.parametrize(
    ("slow", "options", "preset"),
    [
        (0.9, {}, "batches"),
        (1.1, {}, "whole-graph"),
        (0.9, {"epochs": 1}, "whole-graph"),
        (0.9, {"corruption": partial(flip_edges, rho=0.1)}, "whole-graph"),
        (0.9, {"encoder": Attention}, "whole-graph"),
    ],
    ids=["long", "short", "few epochs", "own corruption", "needs the whole graph"],
)
def test_auto_takes_batches_where_a_cpu_would_train_long(graph, monkeypatch, slow, options, preset):
    monkeypatch.setattr(room, "available_bytes", lambda device: 1 << 30)
    parameters = DGI(dim=4, **options).get_params()
    most_cpu_work = slow * graph.num_nodes * 4 * USUAL_EPOCHS

    def chosen_on(device: str) -> str:
        return settings.choose_preset(
            parameters, graph, torch.device(device), most_cpu_work=most_cpu_work
        )[0]

    assert chosen_on("cpu") == preset
    assert chosen_on("cuda") == "whole-graph"


def test_a_run_whose_vectors_would_not_fit_is_refused_before_it_is_trained(
    tmp_path, graph, monkeypatch
):
    monkeypatch.setattr(memory, "embedding_bytes", lambda *_: 1 << 60)
    trained = []
    with pytest.raises(InputError, match="memory"):
        DGI(dim=8, epochs=2).fit(graph, run=tmp_path / "run", progress=trained.append)
    assert trained == []


@pytest.mark.parametrize("preset", [name for name in PRESETS if not name.startswith("type")])
def test_no_seen_node_is_refused(graph, preset):
    blind = graph.replace(splits={"seen": np.zeros(graph.num_nodes, dtype=bool)})
    with pytest.raises(InputError, match=r"splits\['seen'\]: expected at least one node"):
        DGI(dim=8, preset=preset, epochs=2).fit(blind)


@pytest.mark.parametrize(
    "setting",
    [
        *({"dim": value} for value in (0, "8", 8.0)),
        *({"epochs": value} for value in (-1, "2", float("nan"))),
        *({"lr": value} for value in (0.0, "a", float("nan"))),
        *({"patience": value} for value in (0, 1.5)),
        {"schedule": WarmUpCosine(0.002)},
        {"schedule": "constant"},
        *({"seed": value} for value in (-1, None)),
        *({"preset": value} for value in ("none", None)),
        *({"device": value} for value in ("toaster", "meta", "mps", None)),
        {"encoder": "GCN"},
        {"encoder": GCN(2, 16)},
        {"readout": Set2Set(16)},
        {"scale": "x"},
    ],
    ids=lambda setting: str(setting).split(" at 0x")[0],  # no address of an object
)
def test_bad_settings_are_refused_by_name(graph, setting):
    (name,) = setting
    with pytest.raises(InputError, match=f"^{name}"):
        DGI(**setting).fit(graph)


def test_a_rate_that_falls_to_a_known_end_is_not_stopped_early(graph):
    expected = "patience: expected none with the schedule WarmUpCosine, .* ConstantRate"
    with pytest.raises(InputError, match=expected):
        DGI(dim=4, schedule=WarmUpCosine, patience=5).fit(graph)


@pytest.mark.parametrize(
    "other",
    [np.eye(3), "cora", networkx.path_graph(3), None],
    ids=lambda other: type(other).__name__,
)
def test_what_is_no_graph_is_refused_with_the_way_to_one(graph, other):
    for method in (DGI().fit, DGI(dim=4, epochs=0).fit(graph).transform):
        with pytest.raises(
            InputError, match=r"expected a Graph, found .* Graph.from_frames, from_arrays"
        ):
            method(other)


@pytest.mark.parametrize(
    "bound", [{"fan_out": (2, 0, 2)}, {"fan_out": (2, 2, 0)}, {"batch": 0}, {"batch": -1}], ids=str
)
def test_patches_have_nodes(graph, bound):
    (name,) = bound
    with pytest.raises(InputError, match=f"^{name}: expected a whole number from 1"):
        DGI(dim=4, preset=PATCHES, views=partial(Patches, **bound)).fit(graph)


def test_a_corruption_of_another_regime_is_refused(graph):
    with pytest.raises(InputError, match="expected shuffle_within_patches, for Patches"):
        DGI(preset=PATCHES, corruption=shuffle_features).fit(graph)
    with pytest.raises(InputError, match="for WholeGraph, found shuffle_within_patches"):
        DGI(corruption=shuffle_within_patches).fit(graph)


class Exploding(ConstantRate):
    """A schedule of your own, with rates that no option allows."""

    def rates(self, step_count):
        return 1e38


def test_divergence_is_told(graph):
    with pytest.raises(InputError, match="Lower the learning rate"):
        DGI(dim=4, epochs=50, schedule=Exploding).fit(random_graph(dense=True))


def test_a_search_that_would_cut_a_graph_into_rows_says_so(graph):
    pipeline = make_pipeline(DGI(epochs=1), LogisticRegression())
    with pytest.raises(
        InputError, match=r"found a Graph, which cannot be cut into rows.*fit_transform\(graph\)"
    ):
        GridSearchCV(pipeline, {"dgi__dim": [4, 8]}).fit(graph, np.arange(40) % 2)
