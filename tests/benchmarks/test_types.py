"""Several types of nodes: PyG's model has our losses, and the table names every contender."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks import types

from infomax import Graph
from infomax.io.building import from_edges

pytest.importorskip("torch_geometric", reason="PyG is the peer")
PATHS = ("paper-author-paper", "paper-subject-paper")


@pytest.fixture(scope="module")
def graph() -> Graph:
    draw = np.random.default_rng(0)
    nodes = {
        "paper": {"ids": np.arange(40), "features": draw.normal(size=(40, 6)).astype(np.float32)},
        "author": {"ids": np.arange(9)},
        "subject": {"ids": np.arange(4)},
    }
    links = {
        ("paper", "by", "author"): (draw.integers((40, 9), size=(60, 2)).T, None),
        ("paper", "about", "subject"): (draw.integers((40, 4), size=(50, 2)).T, None),
    }
    return Graph.of(from_edges(nodes, links)).target("paper")


@pytest.mark.parametrize("name", ["pyg", "pyg-csr"])
def test_equal_weights_give_equal_losses_and_equal_steps(name: str, graph: Graph) -> None:
    ours = types.Ours(graph, 8, "cpu", PATHS)
    with torch.no_grad():  # as drawn, the scores are so small that any loss is log 2
        for weight in (
            *ours.training.model.encoder.weights,
            ours.training.model.discriminator.weight,
        ):
            weight *= 3
    peer = types.PEERS[name](graph, ours)
    first = ours.train(1)
    assert abs(first - np.log(2)) > 0.01
    assert peer.train(1) == pytest.approx(first, rel=1e-5)
    ours.training.model.discriminator.bias.data.zero_()  # PyG's discriminator has none
    second = ours.train(1)
    assert abs(second - first) > 3e-3
    assert peer.train(1) == pytest.approx(second, rel=1e-5)


def test_a_row_a_contender(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    types.main(["--dim=8", "--repeats=1"], graph, PATHS)
    table = capsys.readouterr().out
    assert all(f" {name} " in table and f"{name}: " in table for name in ("ours", *types.PEERS))
