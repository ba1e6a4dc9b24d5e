from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import embed, growth, largest, patches, protocol
from benchmarks.ours import OurPatches
from benchmarks.patch_peers import PlainPatches, PyGLoader
from benchmarks.problem import PatchProblem, load
from benchmarks.protocol import train

from infomax import Graph
from infomax_paper.experiments import EXPERIMENTS, Experiment

pytest.importorskip("torch_geometric", reason="PyG is one of the peers")
SMALL = ["--dataset=generated-reddit", "--scale=0.005", "--dim=8", "--repeats=2"]


def run(command: Any, tmp_path: Path, *arguments: str) -> dict[str, Any]:
    """What a command writes."""
    file = tmp_path / "found.json"
    command.main([*arguments, f"--json={file}"])
    document = json.loads(file.read_text())
    assert {"platform", "torch", "infomax"} <= document["machine"].keys()
    assert {"device", "threads"} <= document["settings"].keys()
    return document


@pytest.fixture(scope="module")
def problem() -> PatchProblem:
    return PatchProblem.of(load("generated-reddit", scale=0.005), 8, "cpu", (3, 2))


def test_plain_patches_train_as_ours(problem: PatchProblem) -> None:
    ours, plain = OurPatches(problem, 4), PlainPatches(problem)
    for _ in range(2):  # four steps, and the nodes begin anew
        assert plain.train(4) == pytest.approx(ours.train(4), rel=1e-6)
    for mine, theirs in zip(
        ours.training.model.parameters(), plain.model.parameters(), strict=True
    ):
        # Adam's first steps are as long whatever the gradient, so tiny ones differ by whole steps.
        assert (mine - theirs).abs().mean() < 1e-7


def test_patches_reports_speed_and_precision(tmp_path: Path) -> None:
    document = run(patches, tmp_path, *SMALL, "--fan-out=3,2", "--steps=2")
    ours, plain = document["rows"]
    assert (ours["contender"], plain["contender"], ours["ratio"]) == ("ours", "plain", 1)
    assert ours["loss"] == pytest.approx(plain["loss"], rel=1e-6)
    assert ours["nodes_s"] == pytest.approx(256_000 / ours["median_ms"])
    assert ours["peak_gb"] is None  # of a GPU
    error = document["errors"]["float32 against float64"]
    assert 0 < error["gradient"] < 1e-4
    assert error["loss"] < 1e-5


def test_a_peer_that_cannot_run_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch_geometric.typing.WITH_PYG_LIB", False)
    monkeypatch.setattr("torch_geometric.typing.WITH_TORCH_SPARSE", False)
    document = run(patches, tmp_path, *SMALL, "--fan-out=2", "--peers=pyg-loader")
    assert [row["contender"] for row in document["rows"]] == ["ours"]
    assert "pyg-lib" in document["left_out"]["pyg-loader"]
    assert "left out: pyg-loader: PyG's NeighborLoader needs pyg-lib" in capsys.readouterr().out


def test_pyg_trains_on_what_its_loader_gives(
    problem: PatchProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Whole:
        """In the loader's place, which does not run everywhere: the whole graph as one sample."""

        def __init__(self, data: Any, batch_size: int, **_: Any) -> None:
            nodes = torch.arange(data.num_nodes)
            self.sample = SimpleNamespace(
                n_id=nodes, edge_index=data.edge_index, batch_size=batch_size
            )

        def __iter__(self) -> Any:
            return iter([self.sample])

    monkeypatch.setattr("torch_geometric.typing.WITH_PYG_LIB", True)
    monkeypatch.setattr("torch_geometric.loader.NeighborLoader", Whole)
    peer = PyGLoader(problem)
    before = peer.model.weight.clone()
    assert peer.train(2) == pytest.approx(np.log(2), abs=0.05)
    assert not torch.equal(peer.model.weight, before)


def test_embed_finds_the_same_vectors_by_all(tmp_path: Path) -> None:
    rows = run(embed, tmp_path, *SMALL)["rows"]
    assert [row["contender"] for row in rows] == ["ours", "plain", "pyg"]
    assert rows[0]["difference"] == 0
    assert all(0 < row["difference"] < 1e-5 for row in rows[1:])
    assert all(
        row["device_s"] > 0 and row["p10_s"] <= row["median_s"] <= row["p90_s"] for row in rows
    )
    assert all(len(row["s"]) == 2 for row in rows)


def test_growth_fits_an_exponent_a_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "DIMS", (4, 8))
    monkeypatch.setattr(growth, "DEGREES", (2, 4))
    document = run(growth, tmp_path, "--nodes=50,100", "--fixed=60")
    sizes = [(row["growing"], row["nodes"], row["dim"]) for row in document["rows"]]
    assert sizes == [
        ("nodes", 50, 64),
        ("nodes", 100, 64),
        *[("edges", 60, 64)] * 2,
        ("dim", 60, 4),
        ("dim", 60, 8),
    ]
    assert document["exponents"].keys() == {"nodes", "edges", "dim"}


def test_a_square_has_slope_two() -> None:
    assert growth.slopes([1, 10, 100], [3.0, 300.0, 30_000.0]) == pytest.approx([2, 2])


def test_largest_reports_every_stage(tmp_path: Path) -> None:
    document = run(
        largest, tmp_path, "--nodes=1000", "--features=5", "--degree=4", "--dim=4", "--steps=2"
    )
    assert [row["stage"] for row in document["rows"]] == [
        "generate",
        "build views",
        "first steps",
        "train",
        "fit parts",
        "embed",
    ]
    assert document["rows"][3]["nodes"] == 512
    assert document["vectors"] == [1000, 8 + 5 + 5 + 128]
    assert [row["stage"] for row in document["parts"]] == [
        "search for positions",
        "encoder",
        "own",
        "pooled",
        "positions",
        "all parts",
    ]
    assert document["trained"]
    assert document["loss"] == pytest.approx(np.log(2), abs=0.1)


def test_largest_embeds_narrower_where_memory_ends(
    monkeypatch: pytest.MonkeyPatch, problem: PatchProblem
) -> None:
    graph = problem.graph
    room = (
        4 * graph.features.size
        + 8 * 128 * graph.num_nodes  # the own part, pooled twice
        + 24 * (graph.adjacency.nnz + graph.num_nodes)
        + 20 * graph.num_nodes * 100
    )
    monkeypatch.setattr(largest, "available_bytes", lambda device: room / 0.9)
    assert largest.fitting(graph, 512, "cpu") == 64
    assert largest.fitting(graph, 100, "cpu") == 100


def labelled_graph() -> Graph:
    """Two classes that their features tell, each joined to its own."""
    rng = np.random.default_rng(0)
    classes = rng.integers(2, size=90)
    features = rng.random((90, 12)) < 0.1 + 0.5 * (classes[:, None] == np.arange(12) % 2)
    part, edges = np.arange(90) % 3, rng.integers(90, size=(2, 400))
    splits = {name: part == number for number, name in enumerate(("train", "validation", "test"))}
    edges = edges[:, classes[edges[0]] == classes[edges[1]]]
    return Graph.from_arrays(
        edges, features.astype(np.float32), labels={"class": classes}, splits=splits
    )


def test_protocol_scores_ours_and_a_peer_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("infomax_paper.protocol", "infomax.datasets"):
        monkeypatch.setattr(f"{module}.load_dataset", lambda name: labelled_graph())
    monkeypatch.setattr(protocol, "paper_dim", lambda dataset: 16)
    monkeypatch.setattr(protocol, "PATIENCE", 2)
    monkeypatch.setitem(EXPERIMENTS, "cora", Experiment("Cora", {"dim": 16, "epochs": 30}))
    document = run(protocol, tmp_path, "--runs=2", "--peer-runs=3")
    ours, peer = document["rows"]
    assert (ours["contender"], peer["contender"], ours["ratio"]) == ("ours", "pyg", 1)
    assert (ours["measured_runs"], peer["measured_runs"]) == (2, 3)
    assert peer["encoder_s"] == pytest.approx(peer["seconds"] / 2)
    assert peer["seconds"] >= 2 * np.mean(peer["measured_s"])
    assert all(row[name][0] > 75 for row in (ours, peer) for name in ("dgi", "random", "raw"))
    assert document["settings"]["warm_up_s"] > 0


def test_a_peer_keeps_the_weights_of_its_lowest_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.nn.Parameter(torch.tensor(3.0))
    model = torch.nn.Module()
    model.weight = weight
    peer = SimpleNamespace(
        model=model, optimiser=torch.optim.SGD([weight], lr=0.5), loss=lambda: (weight - 1).abs()
    )
    train(peer)  # 3, 2.5, ... 1, and then from side to side
    assert weight.item() == 1
