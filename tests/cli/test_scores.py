"""Commands that score: evaluate, reproduce and demo."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from pyarrow import parquet
from shell import DIM, FLAGS, KINDS, infomax, refused

from infomax import DGI, Graph, read_graph
from infomax.cli import show
from infomax.io.npz import write_npz

ROWS = [
    "DGI",
    *(f"{part} alone" for part in ("Encoder", "Own", "Pooled", "Positions")),
    "Random-Init",
    "SVD of the edges",
    "Averaged features",
    "Raw features",
    "Majority class",
]


@pytest.mark.usefixtures("quick_probe")
def test_evaluate_gives_a_run_and_its_file_the_same_score(run, folder, tmp_path):
    """Whether the labels are those the run remembers or those of a table."""
    vectors, table = tmp_path / "v.csv", f"{folder}/nodes.csv:kind"
    assert infomax("embed", run, "--out", vectors).code == 0
    outcome = infomax("evaluate", run, "--json", tmp_path / "0.json")
    assert outcome.code == 0, outcome.err
    assert "60 labelled nodes" in outcome.out
    assert "Random-Init" in outcome.out
    assert infomax("evaluate", run, "--labels", table, "--json", tmp_path / "1.json").code == 0
    assert infomax("evaluate", vectors, "--labels", table, "--json", tmp_path / "2.json").code == 0
    first, second, third = (
        json.loads((tmp_path / f"{number}.json").read_text()) for number in range(3)
    )
    assert first["source"] == str(run)
    assert first["probe"] == "validated"
    assert [row["method"] for row in first["rows"]] == ROWS
    for row in first["rows"]:
        assert (row["metric"], row["runs"], row["splits"]) == ("accuracy", 1, 5)
        guessed = row["method"] == "Majority class"
        assert (
            (20 if guessed else 34) < row["mean"] <= 100
        )  # in percent, and better than one guess in three
        assert row["costs"] == ([] if guessed else [1.0])
    assert [row["mean"] for row in first["rows"]] == [row["mean"] for row in second["rows"]]
    assert [row["mean"] for row in third["rows"]] == [first["rows"][at]["mean"] for at in (0, -1)]


@pytest.mark.usefixtures("quick_probe")
def test_a_label_that_training_has_had_as_a_feature_is_named(run, folder, tmp_path):
    known, table = tmp_path / "known", f"{folder}/nodes.csv:kind"
    assert infomax("train", folder, "--out", known, "--dim", DIM, "--epochs", 1).code == 0
    for scored, leaks in ((known, True), (run, False)):
        outcome = infomax("evaluate", scored, "--labels", table, "--no-raw")
        assert ('training has had "kind" as features' in outcome.err) == leaks
        assert outcome.code == 0


@pytest.mark.usefixtures("quick_probe")
def test_a_feature_that_no_part_of_a_vector_holds_is_not_named(tmp_path):
    """Authors are made of their papers' features: they know their own country only by their own part."""
    (tmp_path / "g/nodes").mkdir(parents=True)
    (tmp_path / "g/edges").mkdir()
    authors = [f"a{i},{i % 2},{i % 3}" for i in range(30)]
    (tmp_path / "g/nodes/author.csv").write_text("\n".join(["id,country,age", *authors]))
    (tmp_path / "g/nodes/paper.csv").write_text(
        "\n".join(["id,x", *(f"p{i},{i % 7}" for i in range(40))])
    )
    edges = [f"p{i},a{i * 7 % 30}" for i in range(40)]
    (tmp_path / "g/edges/paper.by.author.csv").write_text("\n".join(["source,target", *edges]))
    cases = [
        ("country", "author-paper", "encoder,pooled,positions", False),
        ("country", "author-paper", "recipe", True),
        (
            "age",
            "author-paper-author",
            "paper",
            True,
        ),  # another label, since Python gives the same warning once
    ]
    for at, (label, paths, vectors, leaks) in enumerate(cases):
        run, table = tmp_path / f"run{at}", f"{tmp_path}/g/nodes/author.csv:{label}"
        options = (
            "--type",
            "author",
            "--paths",
            paths,
            "--vectors",
            vectors,
            "--dim",
            DIM,
            "--epochs",
            1,
        )
        outcome = infomax("train", tmp_path / "g", *options, "--out", run)
        assert outcome.code == 0, outcome.err
        outcome = infomax("evaluate", run / "author", "--labels", table, "--no-raw")
        assert outcome.code == 0, outcome.err
        assert (f'training has had "{label}" as features' in outcome.err) == leaks, (paths, vectors)


@pytest.mark.usefixtures("quick_probe")
def test_evaluate_names_the_labels_that_it_does_not_score(graph, tmp_path):
    labels = {"section": np.arange(graph.num_nodes) % 2, "team": np.arange(graph.num_nodes) % 3}
    DGI(DIM, epochs=0).fit(graph.replace(labels=labels)).save(tmp_path / "run")
    outcome = infomax("evaluate", tmp_path / "run", "--no-raw")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (
        0,
        "Other labels: team. To score one: --labels team",
    )
    assert (
        "Other labels"
        not in infomax("evaluate", tmp_path / "run", "--no-raw", "--labels", "team").out
    )


@pytest.mark.usefixtures("quick_probe")
def test_labels_come_from_whatever_a_graph_can_be_read_from(run, folder, tmp_path, monkeypatch):
    import networkx
    from pyarrow import csv as arrow

    monkeypatch.chdir(tmp_path)
    assert infomax("embed", run, "--out", "v.parquet").code == 0
    graph = read_graph(folder, labels="kind")
    write_npz(graph, tmp_path / "graph.npz")
    nodes = networkx.Graph()
    nodes.add_nodes_from(
        (name, {"kind": kind}) for name, kind in zip(graph.ids, graph.labels["kind"], strict=True)
    )
    networkx.write_graphml(nodes, tmp_path / "graph.graphml")
    parquet.write_table(arrow.read_csv(folder / "nodes.csv"), tmp_path / "nodes.parquet")
    sources = [f"{folder}/nodes.csv", folder, f"{folder}/edges.csv,{folder}/nodes.csv"]
    (tmp_path / "nodes.csv.gz").write_bytes(gzip.compress((folder / "nodes.csv").read_bytes()))
    sources += ["graph.npz", "graph.graphml", "nodes.parquet", "nodes.csv.gz"]
    found = []
    for source in sources:
        outcome = infomax(
            "evaluate", "v.parquet", "--labels", f"{source}:kind", "--json", "scores.json"
        )
        assert outcome.code == 0, outcome.err
        found.append(
            [row["mean"] for row in json.loads((tmp_path / "scores.json").read_text())["rows"]]
        )
    assert all(means == found[0] for means in found)
    refused(
        infomax("evaluate", "v.parquet", "--labels", "graph.npz:sort"),
        'labels named "sort"',
        "the labels kind",
    )
    refused(infomax("evaluate", "v.parquet", "--labels", "debian:section"), "none of them among")
    refused(
        infomax("evaluate", "v.parquet", "--labels", "corra:y"),
        "corra",
        "a data set",
        "nothing of that name",
    )


@pytest.mark.usefixtures("quick_probe")
def test_the_row_of_raw_features_can_be_left_out(run, tmp_path):
    assert infomax("evaluate", run, "--no-raw", "--json", tmp_path / "s.json").code == 0
    methods = [row["method"] for row in json.loads((tmp_path / "s.json").read_text())["rows"]]
    assert methods == [
        name for name in ROWS if name not in ("Averaged features", "Raw features")
    ]  # averages of them are as slow


@pytest.mark.usefixtures("quick_probe")
def test_labels_of_a_graph_with_a_split_are_scored_on_it(run, folder, tmp_path):

    graph = read_graph(folder, labels="kind")
    codes = np.unique(graph.labels["kind"], return_inverse=True)[1]
    parts = {
        part: np.arange(60) // 3 % 3 == number
        for number, part in enumerate(("train", "validation", "test"))
    }
    write_npz(graph.replace(labels={"number": codes}, splits=parts), tmp_path / "graph.npz")
    outcome = infomax(
        "evaluate", run, "--labels", f"{tmp_path}/graph.npz:number", "--json", tmp_path / "s.json"
    )
    assert outcome.code == 0, outcome.err
    assert json.loads((tmp_path / "s.json").read_text())["split"] == "the data set's split"


def test_several_labels_a_node_are_scored_by_micro_f1(flagged, flags, tmp_path, monkeypatch):
    """Whether they are columns of the run, columns of a table, or one matrix of the graph."""
    from infomax.evaluation.probes import PROBES, paper_probe
    from infomax.evaluation.splits import stratified_folds

    quick = partial(paper_probe, steps=10)
    monkeypatch.setitem(PROBES, "paper", quick)
    run, whole, vectors = tmp_path / "run", tmp_path / "whole", tmp_path / "v.csv"
    own, table = (
        [word for flag in FLAGS for word in ("--labels", f"{where}{flag}")]
        for where in ("", f"{flagged}/nodes.csv:")
    )
    settings = ("--dim", DIM, "--epochs", 5)
    assert infomax("train", flagged, "--labels", "kind", *own, "--out", run, *settings).code == 0
    graph = read_graph(flagged, labels=("kind", *FLAGS))
    write_npz(graph.replace(labels={"flags": flags}), tmp_path / "whole.npz")
    assert infomax("train", tmp_path / "whole.npz", "--out", whole, *settings).code == 0
    assert infomax("embed", run, "--out", vectors).code == 0
    found = []
    for number, words in enumerate([(run, *own), (run, *table), (whole,), (vectors, *table)]):
        outcome = infomax("evaluate", *words, "--json", tmp_path / f"{number}.json")
        assert outcome.code == 0, outcome.err
        assert "59 labelled nodes" in outcome.out
        found.append(json.loads((tmp_path / f"{number}.json").read_text()))
    means = [[row["mean"] for row in result["rows"]] for result in found]
    assert means[0] == means[1] == means[2]
    assert means[3] == [means[0][0], means[0][-1]]
    assert [row["method"] for row in found[0]["rows"]] == ROWS
    assert {(result["probe"], row["metric"]) for result in found for row in result["rows"]} == {
        ("paper", "micro-F1")
    }
    splits = stratified_folds(np.where((flags < 0).any(axis=1), -1, 0), 5)
    embedded = DGI.load(run).transform(graph).vectors
    assert means[0][0] == pytest.approx(
        np.mean([quick(embedded, flags, split).value for split in splits])
    )
    refused(
        infomax("evaluate", run, *own, "--probe", "validated"),
        "one label per node",
        "Use the paper's probe",
    )
    refused(
        infomax("evaluate", run, *own, "--labels", "kind"),
        "labels kind",
        "0 or 1",
        '"red"',
        "Name one column",
    )


def split_graph(label, ids=None):
    """A small graph with labels and a split of its own."""
    rng = np.random.default_rng(0)
    kind, part = np.arange(60) % 3, rng.integers(3, size=60)
    return Graph.from_arrays(
        rng.integers(20, size=(2, 150)) * 3 + rng.integers(3, size=150),
        rng.random((60, 5)) + np.eye(3, 5)[kind],
        ids=ids,
        labels={label: np.array(KINDS, dtype=object)[kind]},
        splits={
            name: part == number for number, name in enumerate(("train", "validation", "test"))
        },
    )


def test_reproduce_writes_the_json_that_was_agreed(monkeypatch, tmp_path):
    from infomax_paper import protocol
    from infomax_paper.experiments import EXPERIMENTS

    quick = replace(EXPERIMENTS["cora"], arguments={"dim": 8, "epochs": 2})
    monkeypatch.setitem(EXPERIMENTS, "cora", quick)
    monkeypatch.setattr(protocol, "load_dataset", lambda name: split_graph("class"))
    outcome = infomax(
        "reproduce", "cora", "--runs", 2, "--json", tmp_path / "r.json", "--device", "cpu"
    )
    assert outcome.code == 0, outcome.err
    assert "82.3 ± 0.6" in outcome.out
    found = json.loads((tmp_path / "r.json").read_text())
    assert (found["dataset"], found["probe"]) == ("cora", "paper")
    rows = {row["method"]: row for row in found["rows"]}
    assert list(rows) == ["DGI", "Random-Init", "Raw features"]
    for row in rows.values():
        agreed = {"method", "metric", "mean", "std", "runs", "paper", "seconds"}
        assert set(row) - {"beside"} == agreed | {"splits", "split_std", "costs"}
        assert row["metric"] == "accuracy"
        assert 0 <= row["mean"] <= 100
    assert rows["DGI"]["runs"] == 2
    assert rows["DGI"]["paper"] == {"mean": 82.3, "std": 0.6}


def test_the_table_is_written_as_json_where_asked_too(monkeypatch, tmp_path):
    monkeypatch.setattr("infomax_paper.table.load_dataset", lambda name: split_graph("class"))
    words = ("--datasets", "cora", "--methods", "Raw features", "--runs", 1, "--device", "cpu")
    outcome = infomax(
        "reproduce", "table", *words, "--out", tmp_path / "table", "--json", tmp_path / "t.json"
    )
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "t.json").read_text() == (tmp_path / "table" / "table.json").read_text()


@pytest.fixture
def small_demo(monkeypatch):
    """A demo of a moment, and its graph."""
    from infomax import datasets
    from infomax.cli.demo import PACKAGES

    monkeypatch.setattr("infomax.cli.demo.DIM", 8)
    graph = split_graph(
        "section", [*PACKAGES, *(f"package{row}" for row in range(60 - len(PACKAGES)))]
    )
    monkeypatch.setattr(datasets, "load_dataset", lambda name: graph)
    return graph


@pytest.mark.usefixtures("quick_probe")
def test_demo_leaves_vectors_report_and_picture(small_demo, tmp_path):
    from infomax.cli.demo import PACKAGES

    outcome = infomax("demo", "--out", tmp_path / "demo", "--epochs", 2)
    assert outcome.code == 0, outcome.err
    for words in ("Random-Init", "Raw features", "numpy", "Nearest packages"):
        assert words in outcome.out
    assert (tmp_path / "demo" / "debian.png").read_bytes().startswith(b"\x89PNG")
    assert np.load(tmp_path / "demo" / "embeddings.npz")["ids"].tolist() == small_demo.ids.tolist()
    assert set(json.loads((tmp_path / "demo" / "report.json").read_text())["neighbours"]) == set(
        PACKAGES
    )
    assert infomax("neighbours", tmp_path / "demo" / "run", "numpy").code == 0


@pytest.mark.usefixtures("quick_probe", "small_demo")
def test_demo_writes_over_its_own_run_and_no_other(folder, tmp_path):
    run = tmp_path / "run"
    for epochs in (2, 3):
        assert infomax("demo", "--out", tmp_path, "--epochs", epochs).code == 0
    assert len(json.loads((run / "health.json").read_text())["curve"]["loss"]) == 3
    shutil.rmtree(run)
    assert (
        infomax("train", folder, "--labels", "kind", "--dim", 4, "--epochs", 1, "--out", run).code
        == 0
    )
    before = (run / "model.safetensors").read_bytes()
    refused(infomax("demo", "--out", tmp_path, "--epochs", 2), str(run), "a trained model")
    assert (run / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize("name", ["", "run"])
def test_demo_is_refused_before_it_trains_where_it_cannot_write(monkeypatch, tmp_path, name):
    def touch(path, **_):
        if path.parent == tmp_path / name:
            raise PermissionError(13, "Permission denied")  # to root, too
        path.write_bytes(b"")

    monkeypatch.setattr("pathlib.Path.touch", touch)
    monkeypatch.setattr("infomax.datasets.load_dataset", lambda name: pytest.fail("work was begun"))
    refused(infomax("demo", "--out", tmp_path), str(tmp_path / name), "found Permission denied")


def test_the_labels_named_are_those_that_are_scored(tmp_path):
    """And the heading and the file tell which."""
    graph = Graph.from_arrays(
        np.random.default_rng(0).integers(0, 60, (2, 200)),
        np.eye(60),
        labels={"noise": np.arange(60) % 2, "kind": np.arange(60) // 20},
    )
    write_npz(graph, tmp_path / "g.npz")
    run = tmp_path / "run"
    assert (
        infomax(
            "train", tmp_path / "g.npz", "--labels", "kind", "--dim", 4, "--epochs", 2, "--out", run
        ).code
        == 0
    )
    outcome = infomax("evaluate", run, "--json", tmp_path / "scores.json")
    assert "kind: validated probe" in outcome.out
    assert json.loads((tmp_path / "scores.json").read_text())["labels"] == ["kind"]


def test_a_column_that_only_some_rows_have_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"metric": "accuracy", "mean": 0.5, "std": 0.1, "paper": None, "runs": 2, "seconds": 1.0}
    alone = row | {"method": "Raw features", "beside": {"macro-F1": 0.4}}
    show.scores("Some", [row | {"method": "DGI"}, alone])
    assert "macro-F1" not in capsys.readouterr().out
    show.scores("Some", [alone])
    assert "macro-F1" in capsys.readouterr().out
