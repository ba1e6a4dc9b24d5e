"""Graphs without features: what is made in their place is told, can be chosen, and suits old runs and new nodes."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from shell import infomax, write_graph, write_table

from infomax import DGI, Embeddings, Graph, read_graph
from infomax.arrays.sparsity import dense
from infomax.reports import analysis

POSITIONS, DEGREES = "no features: 256 positions in the graph", "no features: 32 bins of degrees"


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    """An edge table."""
    return write_graph(tmp_path / "tables") / "edges.csv"


def test_positions_as_features_are_told_to_be_a_part_of_vectors_anyway(tmp_path):
    (tmp_path / "edges.csv").write_text(
        "source,target\n" + "".join(f"{i},{(i + 1) % 12}\n" for i in range(12))
    )
    (tmp_path / "nodes.csv").write_text(
        "id,size\n" + "".join(f"{i},{i * i % 7}\n" for i in range(12))
    )
    for words, told in (
        (("--features", "positions"), True),
        (("--features", "size"), False),
        ((), False),
    ):
        run = tmp_path / f"run{len(words)}{told}"
        outcome = infomax("train", tmp_path, "--out", run, "--epochs", 1, "--dim", 4, *words)
        assert outcome.code == 0, outcome.err
        assert ("vectors have positions without it" in outcome.err) == told


@pytest.mark.parametrize(
    ("choice", "told", "width"), [((), POSITIONS, 256), (("--features", "degrees"), DEGREES, 32)]
)
def test_what_is_made_is_told_and_serves_again(edges, tmp_path, choice, told, width):
    run, out = tmp_path / "run", tmp_path / "v.npz"
    described = infomax("info", edges, *choice)
    assert told in described.out, described.err
    trained = infomax("train", edges, *choice, "--out", run, "--dim", 8, "--epochs", 3)
    assert (trained.code, told in trained.err) == (0, True), trained.err
    assert "features of neighbours" not in trained.out  # they are made of the edges
    model = DGI.load(run)
    assert model.graph_.num_features == width
    again = infomax("embed", run, edges, "--out", out)
    assert again.code == 0, again.err
    np.testing.assert_allclose(
        Embeddings.read(out).vectors, model.transform(model.graph_).vectors, atol=1e-6
    )
    late = write_table(
        tmp_path / "late.csv",
        [["source", "target"], ["new", model.graph_.ids[0]], ["new", "newer"]],
    )
    attached = infomax("embed", run, late, "--attach", "--out", out)
    assert attached.code == 0, attached.err
    found = Embeddings.read(out)
    assert found.ids.tolist() == ["new", "newer"]
    assert np.linalg.norm(found.vectors, axis=1).min() > 0
    analysis.write_analysis(model, tmp_path, [], title="")
    assert told in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
def test_prepare_makes_the_positions_that_memory_has(edges, tmp_path, half):
    """With a split, too, of which training sees a part."""
    pytest.importorskip("duckdb", reason="prepare sorts with it")
    with (edges.parent / "nodes.csv").open(encoding="utf-8", newline="") as file:
        names = [row[0] for row in csv.reader(file)][1:]
    seen = [["id", "split:seen"], *([name, int(row % 4 > 0)] for row, name in enumerate(names))]
    nodes = write_table(tmp_path / "seen.csv", seen)
    folder = tmp_path / "g.graph"
    outcome = infomax("prepare", edges, nodes, "--out", folder, *(["--half"] if half else []))
    assert outcome.code == 0, outcome.err
    whole, stored = read_graph(edges, nodes), Graph.open(folder)
    assert stored.feature_names == whole.feature_names
    np.testing.assert_allclose(stored.features, whole.features, atol=1e-3 if half else 1e-6)
    assert not np.allclose(
        whole.features, read_graph(edges).features, atol=1e-2
    )  # the split matters
    assert not list(tmp_path.glob(".*"))
    counted = tmp_path / "d.graph"
    assert infomax("prepare", edges, "--features", "degrees", "--out", counted).code == 0
    stored, whole = Graph.open(counted), read_graph(edges, features="degrees")
    np.testing.assert_array_equal(dense(stored.features), dense(whole.features))


def test_other_formats_hold_what_was_made(edges, tmp_path):
    """Positions are made again when tables are read; degrees, which were asked for, are written."""
    for kind in ("positions", "degrees"):
        graph = read_graph(edges, features=kind)
        for name in ("t.csv,n.csv", "t.npz"):
            place = ",".join(str(tmp_path / kind / part) for part in name.split(","))
            (tmp_path / kind).mkdir(exist_ok=True)
            graph.save(place)
            found = read_graph(place)
            assert found.feature_names == graph.feature_names
            np.testing.assert_allclose(dense(found.features), dense(graph.features), atol=1e-5)
    assert (tmp_path / "positions" / "n.csv").read_text(encoding="utf-8").splitlines()[0] == '"id"'
    with (tmp_path / "degrees" / "n.csv").open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file))[1] == "degree 0-0"


def test_an_unknown_kind_is_refused(edges):
    outcome = infomax("info", edges, "--features", "hashes")
    assert (outcome.code, "features" in outcome.err) == (2, True)


def test_groups_without_features_are_told_by_nodes_and_not_by_positions(
    edges: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert infomax("train", edges, "--out", run, "--dim", 8, "--epochs", 3).code == 0
    told = infomax("cluster", run, "-k", 2).out
    assert "set apart by" not in told
    assert told.count("in its middle: ") == 2
