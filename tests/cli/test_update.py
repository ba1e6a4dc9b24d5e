"""infomax update: a run on tomorrow's graph."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from shell import DIM, infomax, refused, write_table

from infomax import DGI, Embeddings
from infomax.training import model_file, resuming


@pytest.fixture(scope="module")
def tomorrow(folder, tmp_path_factory):
    """The graph with a node less, a node more and other edges, in another order."""
    path = tmp_path_factory.mktemp("tomorrow") / "small"
    path.mkdir()
    for name in ("nodes.csv", "edges.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        rows = [row for row in rows if "n30" not in row]
        added = (
            [["new", "1", "0", "2", "red"]]
            if name == "nodes.csv"
            else [["new", "n05"], ["n06", "n07"]]
        )
        write_table(path / name, [head, *rows[::-1], *added])
    return path


def update(*words):
    outcome = infomax("update", *words)
    assert outcome.code == 0, outcome.err
    return outcome


def test_a_run_on_a_later_graph_holds_its_vectors(run, tomorrow, tmp_path):
    told = update(run, tomorrow, "--out", tmp_path / "run2", "--labels", "kind")
    assert "1 new node, 1 gone; " in told.out
    computed = int(told.out.split(" of 60 vectors.")[0].split()[-1])
    assert 2 < computed <= 60  # two hops of pooling reach far in so small a graph
    for where, graph in (("all.npz", (run, tomorrow)), ("kept.npz", (tmp_path / "run2",))):
        assert infomax("embed", *graph, "--out", tmp_path / where).code == 0
    expected, found = (Embeddings.read(tmp_path / name) for name in ("all.npz", "kept.npz"))
    assert found.ids.tolist() == expected.ids.tolist()
    np.testing.assert_allclose(found.vectors, expected.vectors, rtol=1e-4, atol=1e-6)
    before = DGI.load(run).transform(DGI.load(run).graph_)
    same = sum(np.array_equal(found[node], before[node]) for node in found if node in before)
    assert same >= 60 - computed
    assert infomax("evaluate", tmp_path / "run2", "--probe", "paper").code == 0  # it has the labels
    tables = [tomorrow / "edges.csv", tomorrow / "nodes.csv"]
    again = update(tmp_path / "run2", *tables, "--out", tmp_path / "run3")
    assert "Computed: 0 of 60 vectors." in again.out


def test_columns_that_were_named_stay_named_from_update_to_update(folder, tmp_path):
    names = {"source": "whom", "target": "who", "id": "node"}
    for name in ("nodes.csv", "edges.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        write_table(
            tmp_path / name,
            [[names.get(word, word) for word in row][::-1] for row in (head, *rows)],
        )
    tables = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    words = "--source", "whom", "--target", "who", "--id", "node", "--labels", "kind"
    assert (
        infomax(
            "train", *tables, *words, "--dim", 4, "--epochs", 1, "--out", tmp_path / "run1"
        ).code
        == 0
    )
    for run in (1, 2):
        told = update(tmp_path / f"run{run}", *tables, "--out", tmp_path / f"run{run + 1}")
        assert "Computed: 0 of 60 vectors." in told.out
        assert ("Its labels are not taken along: --labels kind" in told.err) == (run == 1)
    assert DGI.load(tmp_path / "run3").graph_.schema == DGI.load(tmp_path / "run1").graph_.schema


def test_vectors_of_a_file_are_those_of_the_run_or_refused(run, folder, tomorrow, tmp_path):
    mine, others = tmp_path / "mine.parquet", tmp_path / "others.parquet"
    assert infomax("embed", run, "--out", mine).code == 0
    assert infomax("embed", run, "--vectors", "own", "--out", others).code == 0
    (run / "vectors.npy").rename(tmp_path / "aside.npy")
    try:
        told = update(run, tomorrow, "--out", tmp_path / "a", "--vectors", mine)
        none = update(run, tomorrow, "--out", tmp_path / "b")
        refused(
            infomax("update", run, tomorrow, "--out", tmp_path / "c", "--vectors", others),
            "those of another",
        )
    finally:
        (tmp_path / "aside.npy").rename(run / "vectors.npy")
    assert "holds no vectors" not in told.err
    assert "holds no vectors" in none.err
    assert "60 of 60 vectors." in none.out
    assert not (tmp_path / "c").exists()


def test_parts_of_two_models_are_refused(run, tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, vectors in enumerate(("own", "pooled")):
        assert (
            infomax(
                "embed", run, "--vectors", vectors, "--out", parts / f"part-{number}.parquet"
            ).code
            == 0
        )
    refused(infomax("neighbours", parts, "n05"), "part-1.parquet", "another run")
    refused(infomax("evaluate", parts, "--labels", f"{run / 'graph.npz'}:kind"), "another run")


def test_training_goes_on_and_vectors_are_aligned(run, tomorrow, tmp_path):
    told = update(run, tomorrow, "--out", tmp_path / "run2", "--train", "--align")
    assert "60 of 60 vectors." in told.out
    model = DGI.load(tmp_path / "run2")
    kept = np.load(tmp_path / "run2/vectors.npy")
    np.testing.assert_allclose(model.transform(model.graph_).vectors, kept, rtol=1e-4, atol=1e-5)
    refused(infomax("update", run, tomorrow, "--out", tmp_path / "c", "--align"), "train as well")
    words = ("--out", tmp_path / "c", "--vectors", run / "vectors.npy")
    refused(infomax("update", run, tomorrow, *words), "vectors with their ids")
    refused(infomax("update", run, tomorrow, "--out", tmp_path / "run2"), "a trained model")
    refused(infomax("update", run, tomorrow / "edges.csv", "--out", tmp_path / "c"), "a node table")


def test_an_interrupted_training_that_goes_on_is_resumed_by_update_alone(
    run, tomorrow, tmp_path, monkeypatch
):
    def killed(*_):
        raise KeyboardInterrupt

    words = ("update", run, tomorrow, "--labels", "kind", "--train", "--out")
    assert infomax(*words, tmp_path / "whole").code == 0
    monkeypatch.setattr(resuming, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(model_file, "finish", killed)
    infomax(*words, tmp_path / "run2")
    monkeypatch.undo()
    refused(infomax(*words[:-2], "--out", tmp_path / "run2", "--resume"), "an unfinished training")
    training = (
        "train",
        tomorrow,
        "--labels",
        "kind",
        "--dim",
        DIM,
        "--epochs",
        20,
        "--resume",
        "--out",
    )
    refused(infomax(*training, tmp_path / "run2"), "weights to start from none")
    assert infomax(*words, tmp_path / "run2", "--resume").code == 0
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "run2")]
    assert models[0] == models[1]
