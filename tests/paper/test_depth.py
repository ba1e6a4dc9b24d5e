"""The depth study: every encoder once, continued after a stop, and drawn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sample_graphs import random_graph

from infomax import DGI, InputError
from infomax.evaluation.probes import paper_probe
from infomax.evaluation.splits import encode_labels, random_splits
from infomax.reports.comparison import labelled
from infomax_paper import depth
from infomax_paper.depth import depth as chapter
from infomax_paper.experiments import Experiment
from infomax_paper.study import accuracies

SIZES = {"layers": (1, 2), "widths": (4, 8), "runs": 2, "device": "cpu"}


@pytest.fixture
def small(monkeypatch):
    graph = random_graph(60)
    splits = random_splits(encode_labels(graph.labels["class"])[0], seed=0)[0]
    graph = graph.replace(splits=splits)
    monkeypatch.setattr(depth, "load_dataset", lambda name: graph)
    monkeypatch.setattr(depth, "EXPERIMENTS", {"cora": Experiment("Cora", {"epochs": 5})})
    return graph


def test_every_depth_and_width_is_trained_once_beside_the_untrained(small, tmp_path):
    def stop(done, note, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        depth.depth_study("cora", tmp_path, progress=stop, **SIZES)
    assert len(json.loads((tmp_path / "depth-cora.json").read_text())["rows"]) == 5
    told = []
    rows = depth.depth_study(
        "cora", tmp_path, progress=lambda done, note, total: told.append((done, total)), **SIZES
    )["rows"]
    assert told[-1] == (len(rows), 16) == (16, 16)
    assert len({(row["method"], row["layers"], row["width"], row["seed"]) for row in rows}) == 16
    assert {(row["method"], row["epochs"]) for row in rows} == {("Random-Init", 0), ("DGI", 5)}
    codes, splits = labelled(small)
    encoder = depth.partial(depth.GCN, layers=2)
    for method, epochs in (("DGI", 5), ("Random-Init", 0)):
        vectors = (
            DGI(8, encoder=encoder, epochs=epochs, vectors="paper", seed=1, device="cpu")
            .fit_transform(small)
            .vectors
        )
        expected = paper_probe(vectors, codes, splits, seed=1).value
        assert accuracies(rows, "width", method=method, layers=2)[8][1] == pytest.approx(expected)


def test_the_chapter_names_the_best_width_of_every_depth():
    def row(layers, width, accuracy, method="DGI"):
        return {
            "method": method,
            "layers": layers,
            "width": width,
            "seed": 0,
            "accuracy": accuracy,
            "epochs": 1,
        }

    rows = [row(1, 64, 0.7), row(1, 512, 0.8), row(2, 64, 0.75), row(2, 512, 0.72)]
    rows += [{**each, "method": "Random-Init", "accuracy": 0.5} for each in rows]
    found = chapter({"Cora": {"rows": rows}})
    assert found.story[-1].endswith("Cora: 1 layer 80.0 % (width 512), 2 layers 75.0 % (width 64).")
    assert ["Cora", "DGI", "2", "512", "72.0 %"] in found.facts
    axes = found.draw(False).axes
    lines = [line.get_ydata().tolist() for line in axes[0].get_lines()]
    assert lines == [[70.0, 80.0], [75.0, 72.0], [50.0, 50.0], [50.0, 50.0]]
    legend = [line.get_label() for line in axes[0].get_lines()]
    assert legend == ["DGI, 1 layer", "DGI, 2 layers", "Random-Init, 1", "Random-Init, 2"]


def test_another_graph_is_not_continued(small, tmp_path, monkeypatch):
    depth.depth_study("cora", tmp_path, **SIZES | {"widths": (4,), "runs": 1, "layers": (1,)})
    other = small.replace(features=small.features[np.roll(np.arange(60), 1)])
    monkeypatch.setattr(depth, "load_dataset", lambda name: other)
    with pytest.raises(
        InputError, match=r"depth-cora\.json: expected a study of this graph, .* found another"
    ):
        depth.depth_study("cora", tmp_path, **SIZES)
