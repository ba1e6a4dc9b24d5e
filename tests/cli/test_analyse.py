"""Analyses and studies, as a user types them."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pytest
from sample_graphs import random_graph
from shell import IDS, KINDS, infomax, refused, write_graph, write_table

from infomax import DGI, Graph, datasets
from infomax.analysis import pictures
from infomax.cli.analyse import classes
from infomax.evaluation.splits import encode_labels, random_splits
from infomax.reports import analysis
from infomax_paper import corruption, table
from infomax_paper.experiments import EXPERIMENTS, Experiment
from infomax_paper.theory import theory


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    graph = write_graph(folder / "small")
    outcome = infomax(
        "train", graph, "--labels", "kind", "--out", folder / "run", "--dim", 8, "--epochs", 5
    )
    assert outcome.code == 0, outcome.err
    return folder / "run"


@pytest.fixture
def cora(monkeypatch):
    """A small graph of seven classes in the place of Cora, and short trainings."""
    graph = random_graph(90, 20)
    labels = {"class": np.arange(90) % 7}
    splits = random_splits(encode_labels(labels["class"])[0], seed=0)[0]
    small = Graph.from_scipy(graph.adjacency, graph.features, labels=labels, splits=splits)
    monkeypatch.setattr(datasets, "load_dataset", lambda name: small)
    monkeypatch.setitem(EXPERIMENTS, "cora", Experiment("Cora", {"dim": 16, "epochs": 2}))
    monkeypatch.setattr(pictures, "LATE_STEPS", 0)
    return small


def test_a_run_is_analysed_into_a_folder(run, tmp_path, monkeypatch):
    whole, out = analysis.analyse, tmp_path / "new" / "report"
    monkeypatch.setattr(pictures, "LATE_STEPS", 0)
    monkeypatch.setattr(
        analysis, "analyse", lambda *args, **words: islice(whole(*args, **words), 2)
    )  # drawing is slow
    outcome = infomax("analyse", run, "--out", out)
    assert outcome.code == 0, outcome.err
    assert f"wrote {out}/report.html" in outcome.out
    drawn = {
        f"{name}.{kind}" for name in ("projections", "scores") for kind in ("png", "svg", "json")
    }
    assert {path.name for path in out.iterdir()} == {"report.html"} | drawn
    assert json.loads((out / "scores.json").read_text())["highest"][0]["id"] in IDS
    page = (out / "report.html").read_text()
    assert "What was learnt: run" in page
    assert any(f"<td>{kind}</td>" in page for kind in KINDS)
    assert "http" not in page


@pytest.mark.parametrize("split", ["own split", "random splits"])
def test_analyse_gives_the_number_that_evaluate_gives(split, tmp_path, monkeypatch):
    """Also for classes that are numbers, whose order as text is another: ten random splits would be others."""
    graph, labels, told = random_graph(150, 20), np.arange(150) % 12, {}
    splits = random_splits(labels, seed=3)[0] if split == "own split" else {}
    graph = Graph.from_scipy(
        graph.adjacency, graph.features, labels={"class": labels}, splits=splits
    )
    DGI(4, epochs=3, vectors="paper").fit(graph).save(tmp_path / "run")
    monkeypatch.setattr("infomax.evaluation.probes.PROBE_COSTS", (1.0, 10.0))
    monkeypatch.setattr(
        analysis, "tsne", lambda vectors, seed, progress: np.zeros((vectors.shape[0], 2))
    )
    monkeypatch.setattr(
        analysis, "write_report", lambda *page: told.update({one.name: one for one in page[-1]})
    )
    assert infomax("analyse", tmp_path / "run", "--out", tmp_path / "report").code == 0
    assert infomax("evaluate", tmp_path / "run", "--json", tmp_path / "scores.json").code == 0
    rows = {
        row["method"]: row["mean"]
        for row in json.loads((tmp_path / "scores.json").read_text())["rows"]
    }
    numbers = told["dimensions"].numbers
    assert 100 * numbers["curves"]["least"]["accuracy"][0] == pytest.approx(rows["DGI"], abs=1e-9)
    assert 100 * numbers["floors"]["Random-Init"] == pytest.approx(rows["Random-Init"], abs=1e-9)
    assert (
        f"the validated probe classifies {rows['DGI']:.1f} % of the" in told["dimensions"].story[1]
    )


def test_the_corruption_study_of_a_run(run, tmp_path, monkeypatch):
    monkeypatch.setattr("infomax.analysis.report.write_chapter", lambda *_: None)  # drawing is slow
    words = ("reproduce", "corruption", "--run", run, "--points", 2, "--device", "cpu")
    refused(
        infomax(*words, "--labels", "colour", "--out", tmp_path / "study"),
        "--labels",
        "kind",
        "colour",
    )
    outcome = infomax(*words, "--out", tmp_path / "study")
    assert outcome.code == 0, outcome.err
    study = json.loads((tmp_path / "study" / "corruption.json").read_text())
    assert (len(study["rows"]), study["nodes"], study["settings"]["dim"]) == (6, len(IDS), 8)


def test_a_folder_is_refused_before_the_work(run, monkeypatch):
    monkeypatch.setattr(analysis, "write_analysis", lambda *args, **words: pytest.fail("it worked"))
    refused(
        infomax("analyse", run, "--out", "/proc"), "/proc: expected a folder that can be written"
    )


def test_labels_are_refused_before_the_work(run, tmp_path):
    refused(
        infomax("analyse", run, "--labels", "colour", "--out", tmp_path / "out"),
        "--labels",
        "kind",
        "colour",
    )
    refused(infomax("analyse", tmp_path, "--out", tmp_path / "out"), "a run folder")
    assert not (tmp_path / "out").exists()


def test_classes_come_from_a_table_a_column_or_nowhere(run, tmp_path):
    graph = DGI.load(run).graph_
    assert (
        classes(graph, None).tolist()
        == classes(graph, "kind").tolist()
        == graph.labels["kind"].tolist()
    )
    table = write_table(
        tmp_path / "labels.csv", [["id", "size"], [IDS[3], "big"], [IDS[0], "small"]]
    )
    found = classes(graph, f"{table}:size")
    assert dict(zip(graph.ids.tolist(), found.tolist(), strict=True))[IDS[3]] == "big"
    assert sorted(found[found != ""].tolist()) == ["big", "small"]
    labels = {
        "many": np.eye(5),
        "kind": np.full(5, 7),
        "name": np.arange(5),
        "size": np.array([4, -1, 0, 4, 4]),
    }
    numbered = Graph.from_arrays([[0], [1]], np.eye(5), labels=labels)
    assert classes(numbered, None).tolist() == [4, -1, 0, 4, 4]
    assert classes(numbered, "kind").tolist() == [7] * 5
    del labels["size"]
    assert classes(Graph.from_arrays([[0], [1]], np.eye(5), labels=labels), None) is None
    assert classes(Graph.from_arrays([[0], [1]], np.eye(3)), None) is None


def test_a_column_may_have_a_colon_in_its_name(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("infomax.evaluation.probes.PROBE_COSTS", (1.0,))
    graph = DGI.load(run).graph_
    own = Graph.from_scipy(
        graph.adjacency, ids=graph.ids, labels={"rdf:type": graph.labels["kind"]}
    )
    DGI(4, epochs=0).fit(own).save("own")
    assert infomax("evaluate", "own", "--labels", "rdf:type").code == 0
    assert classes(own, "rdf:type").tolist() == graph.labels["kind"].tolist()
    write_table(
        tmp_path / "a:b.csv", [["id", "rdf:type"], *zip(IDS, graph.labels["kind"], strict=True)]
    )
    assert infomax("evaluate", run, "--labels", "a:b.csv:rdf:type").code == 0
    assert classes(graph, "a:b.csv:rdf:type").tolist() == graph.labels["kind"].tolist()


def test_a_table_of_other_nodes_is_refused_as_such(run, tmp_path):
    table = write_table(
        tmp_path / "others.csv", [["id", "size"], ["new-1", "big"], ["new-2", "small"]]
    )
    for words in (("evaluate", run), ("analyse", run, "--out", tmp_path / "out")):
        outcome = infomax(*words, "--labels", f"{table}:size")
        refused(
            outcome,
            f'some of these nodes (as "{IDS[0]}"), found none of them among 2 ids (as "new-1")',
        )


def test_theory_is_printed_and_told_as_json(tmp_path):
    outcome = infomax("reproduce", "theory", "--json", tmp_path / "theory.json")
    assert outcome.code == 0, outcome.err
    assert "1/22 = 0.045" in outcome.out
    assert json.loads((tmp_path / "theory.json").read_text()) == json.loads(
        json.dumps(theory().numbers)
    )


def test_the_corruption_study_is_trained_printed_and_drawn(cora, tmp_path):
    words = (
        "reproduce",
        "corruption",
        "--points",
        2,
        "--out",
        tmp_path / "study",
        "--device",
        "cpu",
    )
    outcome = infomax(*words, "--json", tmp_path / "too.json")
    assert outcome.code == 0, outcome.err
    assert "10⁻⁶" in outcome.out
    assert "Random-Init gives" in outcome.out
    study = json.loads((tmp_path / "study" / "corruption.json").read_text())
    assert study == json.loads((tmp_path / "too.json").read_text())
    assert len(study["rows"]) == 6
    assert study["settings"]["dim"] == 16
    assert {path.suffix for path in (tmp_path / "study").iterdir()} == {".png", ".svg", ".json"}
    refused(infomax(*words, "--dataset", "ppi"), "--dataset", "ppi")
    refused(infomax("reproduce", "corruption", "--points", 1), "--points")


@pytest.mark.parametrize("what", ["corruption", "table"])
def test_a_study_that_is_stopped_says_how_to_go_on(cora, tmp_path, monkeypatch, what):
    def stop(*args, **words):
        raise KeyboardInterrupt

    monkeypatch.setattr(corruption, "corruption_study", stop)
    monkeypatch.setattr(table, "make_table", stop)
    outcome = infomax("reproduce", what, "--out", tmp_path)
    assert outcome == (130, "", "infomax: stopped. Continue with the same command.\n")


def test_all_figures_are_set_beside_the_paper(cora, tmp_path, monkeypatch):
    monkeypatch.setattr(analysis, "write_report", lambda *page: list(page[-1]))
    numbers = tmp_path / "numbers.json"
    words = (
        "reproduce",
        "figures",
        "--points",
        0,
        "--out",
        tmp_path,
        "--device",
        "cpu",
        "--json",
        numbers,
    )
    outcome = infomax(*words)
    assert outcome.code == 0, outcome.err
    assert "0.234" in outcome.out
    assert "over half" in outcome.out
    assert "silhouette" in json.loads(numbers.read_text())["projections"]
    model = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    assert (
        infomax(*words).out.splitlines()[:-2] == outcome.out.splitlines()[:-2]
    )  # but for the seconds
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == model  # not trained again


def test_the_figures_of_a_run_are_those_that_analyse_does_not_draw(run, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "LATE_STEPS", 0)
    outcome = infomax(
        "reproduce", "figures", run, "--labels", "kind", "--out", tmp_path, "--device", "cpu"
    )
    assert outcome.code == 0, outcome.err
    drawn = {
        f"{name}.{kind}"
        for name in ("projections", "activations")
        for kind in ("png", "svg", "json")
    }
    assert {path.name for path in tmp_path.iterdir()} == {"report.html"} | drawn
    assert "The paper's figures: run" in (tmp_path / "report.html").read_text().replace(
        "&#x27;", "'"
    )
