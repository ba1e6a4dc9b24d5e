"""From a folder of tables to vectors, scores and neighbours, as a user types it."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from pyarrow import float32, int64, list_, parquet
from shell import FEATURES, IDS, KINDS, infomax, refused, write_graph, write_table

from infomax import DGI, Embeddings, Graph, read_graph
from infomax.io.npz import write_npz

DIM = 8
ROWS = ["DGI", "Random-Init", "Raw features", "Majority class"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph") / "small")


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    outcome = infomax("train", folder, "--labels", "kind", "--out", path, "--dim", DIM, "--epochs", 20)
    assert outcome.code == 0, outcome.err
    assert "discriminator accuracy" in outcome.out
    assert f"wrote {path}/" in outcome.out
    return path


@pytest.fixture(scope="module")
def vectors(folder, run):
    """What the library gives for the same run: every command must give the same."""
    return DGI.load(run).transform(read_graph(folder, labels="kind")).vectors


def read_parquet(path):
    table = parquet.read_table(path)
    assert table.column_names == ["id", "vector"]
    assert table.schema.field("vector").type == list_(float32(), DIM)
    return table["id"].to_pylist(), table["vector"].to_pylist()


def read_npy(path):
    return IDS, np.load(path)


def read_npz(path):
    arrays = np.load(path)
    return arrays["ids"].tolist(), arrays["vectors"]


def read_table(path):
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
    assert names == ["id", *(f"d{column}" for column in range(DIM))]
    return [row[0] for row in rows], [list(map(float, row[1:])) for row in rows]


def read_kv(path):
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    assert head == f"{len(IDS)} {DIM}"
    rows = [line.split(" ") for line in lines]
    return [row[0] for row in rows], [list(map(float, row[1:])) for row in rows]


@pytest.mark.parametrize(
    ("extension", "read"),
    [
        ("parquet", read_parquet),
        ("npy", read_npy),
        ("npz", read_npz),
        ("csv", read_table),
        ("tsv", read_table),
        ("kv", read_kv),
    ],
)
def test_embed_writes_each_format_with_ids_unchanged_and_in_order(run, vectors, tmp_path, extension, read):
    path = tmp_path / f"vectors.{extension}"
    outcome = infomax("embed", run, "--out", path)
    assert outcome.code == 0, outcome.err
    ids, found = read(path)
    assert ids == IDS
    np.testing.assert_array_equal(np.array(found, dtype=np.float32), vectors)
    assert list(tmp_path.iterdir()) == [path]


def test_integer_ids_stay_integers(tmp_path):
    ids = [30, -4, 12, 7, 9, 1000000007, 5, 6, 8]
    folder = write_graph(tmp_path / "graph", ids)
    assert infomax("train", folder, "--labels", "kind", "--out", tmp_path / "run", "--dim", 4, "--epochs", 0).code == 0
    assert infomax("embed", tmp_path / "run", "--out", tmp_path / "v.parquet").code == 0
    table = parquet.read_table(tmp_path / "v.parquet")
    assert table.schema.field("id").type == int64()
    assert table["id"].to_pylist() == ids


def test_a_moved_run_is_all_one_needs(run, vectors, tmp_path):
    moved = run.rename(tmp_path / "moved")
    try:
        assert infomax("embed", moved, "--out", tmp_path / "v.npy").code == 0
    finally:
        moved.rename(run)
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), vectors)


def test_run_folder_tells_its_settings(run):
    config = json.loads((run / "config.json").read_text())
    assert config["seed"] == 0
    assert config["settings"]["dim"] == DIM
    assert config["settings"]["epochs"] == 20
    assert {"infomax", "python", "torch", "numpy"} <= set(config["versions"])
    health = json.loads((run / "health.json").read_text())
    assert len(health["curve"]["loss"]) == 20
    assert not (run / "checkpoint.safetensors").exists()
    assert {path.stat().st_mode for path in run.iterdir()} == {(run / "config.json").stat().st_mode}


def test_a_log_tells_how_many_epochs_of_how_many(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("infomax.cli.show.LOG_SECONDS", -1)
    common = ("train", folder, "--labels", "kind", "--dim", 4, "--epochs", 3)
    assert "epochs: 2 of 3, loss 0." in infomax(*common, "--out", tmp_path / "known").err
    assert "epochs: 2, loss 0." in infomax(*common, "--patience", 3, "--out", tmp_path / "patient").err


def test_epochs_with_patience_stop_early_or_at_the_limit(folder, tmp_path):
    common = ("train", folder, "--labels", "kind", "--dim", 4, "--lr", 0.2, "--patience", 3)
    assert infomax(*common, "--epochs", 500, "--out", tmp_path / "early").code == 0
    assert infomax(*common, "--epochs", 2, "--out", tmp_path / "limit").code == 0
    early, limit = (json.loads((tmp_path / name / "health.json").read_text()) for name in ("early", "limit"))
    assert early["stopped_early"]
    assert early["epochs"] == early["kept_epoch"] + 3 < 500
    assert limit["epochs"] == 2


def test_patches_are_as_deep_as_the_encoder(folder, tmp_path):
    common = ("train", folder, "--labels", "kind", "--dim", 4, "--epochs", 2, "--preset", "patches", "--layers", 2)
    assert infomax(*common, "--fan-out", "3,2", "--out", tmp_path / "run").code == 0
    settings = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]
    assert (settings["views"]["fan_out"], settings["encoder"]["layers"]) == ([3, 2], 2)
    assert np.isfinite(DGI.load(tmp_path / "run").transform(read_graph(folder, labels="kind")).vectors).all()
    for words in ((), ("--batch", 9), ("--fan-out", "3")):
        refused(infomax(*common, *words, "--out", tmp_path / "other"), "found 2", "fan-out of 2 numbers: --fan-out")
    assert not (tmp_path / "other").exists()


def test_new_nodes_are_embedded_and_columns_that_are_no_features_left_alone(run, tmp_path):
    folder = write_graph(tmp_path / "new", [f"new{row}" for row in range(12)], seed=5)
    assert infomax("embed", run, folder, "--out", tmp_path / "v.npz").code == 0
    expected = DGI.load(run).transform(read_graph(folder, labels="kind"))
    found = np.load(tmp_path / "v.npz")
    assert found["ids"].tolist() == expected.ids.tolist()
    np.testing.assert_array_equal(found["vectors"], expected.vectors)


@pytest.mark.parametrize(
    ("features", "parts"),
    [
        (("x", "z"), ["nodes.csv", 'feature columns "y"']),
        (("x", "z", "y"), ["'z' where 'y' should be"]),
        (("a", "b", "c"), ['feature columns "x", "y", "z"']),
    ],
    ids=["one missing", "reordered", "none of them"],
)
def test_other_features_are_refused_by_name(run, tmp_path, features, parts):
    folder = write_graph(tmp_path / "new", features=features)
    refused(infomax("embed", run, folder, "--out", tmp_path / "v.npz"), *parts)
    assert not (tmp_path / "v.npz").exists()


@pytest.fixture
def quick_probe(monkeypatch):
    monkeypatch.setattr("infomax.evaluation.probes.COSTS", (1.0,))


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
    first, second, third = (json.loads((tmp_path / f"{number}.json").read_text()) for number in range(3))
    assert first["source"] == str(run)
    assert first["probe"] == "validated"
    assert [row["method"] for row in first["rows"]] == ROWS
    for row in first["rows"]:
        assert (row["metric"], row["runs"], row["splits"]) == ("accuracy", 1, 10)
        guessed = row["method"] == "Majority class"
        assert (20 if guessed else 34) < row["mean"] <= 100  # in percent, and better than one guess in three
        assert (row["split_std"] > 0, row["costs"]) == (not guessed, [] if guessed else [1.0])
    assert [row["mean"] for row in first["rows"]] == [row["mean"] for row in second["rows"]]
    assert [row["mean"] for row in third["rows"]] == [first["rows"][at]["mean"] for at in (0, 3)]


@pytest.mark.usefixtures("quick_probe")
def test_labels_come_from_whatever_a_graph_can_be_read_from(run, folder, tmp_path, monkeypatch):
    import networkx
    from pyarrow import csv as arrow

    monkeypatch.chdir(tmp_path)
    assert infomax("embed", run, "--out", "v.parquet").code == 0
    graph = read_graph(folder, labels="kind")
    write_npz(graph, tmp_path / "graph.npz")
    nodes = networkx.Graph()
    nodes.add_nodes_from((name, {"kind": kind}) for name, kind in zip(graph.ids, graph.labels["kind"], strict=True))
    networkx.write_graphml(nodes, tmp_path / "graph.graphml")
    parquet.write_table(arrow.read_csv(folder / "nodes.csv"), tmp_path / "nodes.parquet")
    sources = [f"{folder}/nodes.csv", folder, f"{folder}/edges.csv,{folder}/nodes.csv"]
    (tmp_path / "nodes.csv.gz").write_bytes(gzip.compress((folder / "nodes.csv").read_bytes()))
    sources += ["graph.npz", "graph.graphml", "nodes.parquet", "nodes.csv.gz"]
    found = []
    for source in sources:
        outcome = infomax("evaluate", "v.parquet", "--labels", f"{source}:kind", "--json", "scores.json")
        assert outcome.code == 0, outcome.err
        found.append([row["mean"] for row in json.loads((tmp_path / "scores.json").read_text())["rows"]])
    assert all(means == found[0] for means in found)
    refused(infomax("evaluate", "v.parquet", "--labels", "graph.npz:sort"), 'labels named "sort"', "the labels kind")
    refused(infomax("evaluate", "v.parquet", "--labels", "debian:section"), "none of them among")
    refused(infomax("evaluate", "v.parquet", "--labels", "corra:y"), "corra", "a data set", "nothing of that name")


@pytest.mark.usefixtures("quick_probe")
def test_labels_of_a_graph_with_a_split_are_scored_on_it(run, folder, tmp_path):

    graph = read_graph(folder, labels="kind")
    codes = np.unique(graph.labels["kind"], return_inverse=True)[1]
    parts = {part: np.arange(60) // 3 % 3 == number for number, part in enumerate(("train", "validation", "test"))}
    write_npz(replace(graph, labels={"number": codes}, splits=parts), tmp_path / "graph.npz")
    outcome = infomax("evaluate", run, "--labels", f"{tmp_path}/graph.npz:number", "--json", tmp_path / "s.json")
    assert outcome.code == 0, outcome.err
    assert json.loads((tmp_path / "s.json").read_text())["split"] == "the data set's split"


FLAGS = ("warm", "light")


@pytest.fixture(scope="module")
def flags():
    """Two labels that a node has, has not, or of which the second is not known."""
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 3
    values = np.stack([(kind != 2) ^ (rng.random(60) < 0.1), kind != 0], axis=1).astype(np.int8)
    values[7, 1] = -1
    return values


@pytest.fixture(scope="module")
def flagged(flags, tmp_path_factory):
    """A folder whose node table has them as two columns of 0, 1 and nothing."""
    folder = write_graph(tmp_path_factory.mktemp("graph") / "flagged")
    with (folder / "nodes.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    cells = [["" if flag < 0 else flag for flag in row] for row in flags.tolist()]
    write_table(folder / "nodes.csv", [[*head, *FLAGS], *(row + more for row, more in zip(rows, cells, strict=True))])
    return folder


def test_several_labels_a_node_are_scored_by_micro_f1(flagged, flags, tmp_path, monkeypatch):
    """Whether they are columns of the run, columns of a table, or one matrix of the graph."""
    from infomax.evaluation.probes import PROBES, paper_probe
    from infomax.evaluation.splits import random_splits

    quick = partial(paper_probe, steps=10)
    monkeypatch.setitem(PROBES, "paper", quick)
    run, whole, vectors = tmp_path / "run", tmp_path / "whole", tmp_path / "v.csv"
    own, table = (
        [word for flag in FLAGS for word in ("--labels", f"{where}{flag}")] for where in ("", f"{flagged}/nodes.csv:")
    )
    settings = ("--dim", DIM, "--epochs", 5)
    assert infomax("train", flagged, "--labels", "kind", *own, "--out", run, *settings).code == 0
    graph = read_graph(flagged, labels=("kind", *FLAGS))
    write_npz(replace(graph, labels={"flags": flags}), tmp_path / "whole.npz")
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
    assert means[3] == [means[0][0], means[0][3]]
    assert [row["method"] for row in found[0]["rows"]] == ROWS
    assert {(result["probe"], row["metric"]) for result in found for row in result["rows"]} == {("paper", "micro-F1")}
    splits, _ = random_splits(np.where((flags < 0).any(axis=1), -1, 0), seed=0, count=10)
    embedded = DGI.load(run).transform(graph).vectors
    assert means[0][0] == pytest.approx(np.mean([quick(embedded, flags, split).value for split in splits]))
    refused(infomax("evaluate", run, *own, "--probe", "validated"), "one label per node", "Use the paper's probe")
    refused(infomax("evaluate", run, *own, "--labels", "kind"), "labels kind", "0 or 1", '"red"', "Name one column")


def test_neighbours_are_those_of_the_library(run, vectors):
    outcome = infomax("neighbours", run, "[bold]", "-k", 3)
    assert outcome.code == 0
    assert "Nearest to [bold]" in outcome.out
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit[IDS.index("[bold]")]
    cosine[IDS.index("[bold]")] = -2
    nearest = [IDS[row] for row in np.argsort(-cosine)[:3]]
    rows = [line.split("│")[1].strip() for line in outcome.out.splitlines() if line.startswith("│")]
    assert rows == nearest
    assert f"{cosine.max():.3f}" in outcome.out


def test_an_id_that_looks_like_an_option_follows_two_dashes(run):
    assert "Nearest to -1" in infomax("neighbours", run, "--", "-1").out


def test_an_unknown_node_is_answered_with_similar_ones(run):
    refused(infomax("neighbours", run, "n5"), '"n5"', "Did you mean", '"n51"')


def test_graph_in_every_form_is_the_same_graph(folder, tmp_path):
    import networkx

    graph = read_graph(folder, labels="kind")
    write_npz(graph, tmp_path / "g.npz")
    copy = networkx.Graph()
    for row, name in enumerate(IDS):
        copy.add_node(name, **dict(zip(FEATURES, map(float, graph.features[row]), strict=True)), kind=KINDS[row % 3])
    copy.add_edges_from((IDS[a], IDS[b]) for a, b in zip(*graph.adjacency.nonzero(), strict=True))
    networkx.write_graphml(copy, tmp_path / "g.graphml")
    for name in (folder, f"{folder}/edges.csv,{folder}/nodes.csv", tmp_path / "g.npz", tmp_path / "g.graphml"):
        outcome = infomax("info", name, "--labels", "kind")
        assert outcome.code == 0, outcome.err
        cells = [[cell.strip() for cell in line.split("│")[1:3]] for line in outcome.out.splitlines() if "│" in line]
        facts = dict(cells)
        assert facts["nodes"] == "60"
        assert facts["edges"] == str(graph.num_edges)
        assert facts["labels"] == "kind (3 classes)"
        memory = next(said for fact, said in facts.items() if fact.startswith("memory to train"))
        assert memory.endswith("plus that of Python and torch")


def test_labels_of_any_kind_are_counted(tmp_path, flags):

    labels = {"one": np.full(60, 4), "two": np.arange(60) % 3 - 1, "flags": flags}
    write_npz(Graph.from_arrays([[0], [1]], np.eye(60), labels=labels), tmp_path / "g.npz")
    outcome = infomax("info", tmp_path / "g.npz")
    assert outcome.code == 0, outcome.err
    told = " ".join(outcome.out.replace("│", " ").split())  # where lines break is the terminal's
    assert "one (1 class), two (2 classes), flags (2 labels, several per node)" in told


def test_an_edge_table_alone_is_a_graph(tmp_path):
    path = write_table(tmp_path / "edges.csv", [["source", "target"], ["b", "a"], ["a", "c"], ["a", "c"], ["c", "c"]])
    outcome = infomax("info", path)
    facts = dict([cell.strip() for cell in row.split("│")[1:3]] for row in outcome.out.splitlines() if "│" in row)
    assert (facts["nodes"], facts["edges"]) == ("3", "2")
    assert (facts["duplicate edges dropped"], facts["self-loops dropped"]) == ("1", "1")


def test_columns_that_are_not_called_source_and_target_are_named(tmp_path):
    odd = write_table(tmp_path / "odd.csv", [["edge_id", "from", "to"], ["e1", "a", "b"], ["e2", "b", "c"]])
    plain = write_table(tmp_path / "plain.csv", [["edge_id", "Source", "Target"], ["e1", "a", "b"], ["e2", "b", "c"]])
    shown = infomax("info", odd).out
    facts = dict([cell.strip() for cell in row.split("│")[1:3]] for row in shown.splitlines() if "│" in row)
    assert facts["edges run from, to"] == "edge_id, from"
    assert "edges run" not in infomax("info", plain).out
    for path, told in ((odd, True), (plain, False)):
        outcome = infomax("train", path, "--out", tmp_path / path.stem, "--dim", 4, "--epochs", 0)
        assert outcome.code == 0, outcome.err
        assert ("no columns source and target: edges run from, to: edge_id, from\n" in outcome.err) == told


def test_datasets_are_listed_found_and_fetched(monkeypatch, tmp_path):
    monkeypatch.setenv("INFOMAX_DATA", str(tmp_path))
    assert infomax("datasets") == infomax("datasets", "list")
    assert {"debian", "cora", "citeseer", "pubmed"} <= set(infomax("datasets").out.split())
    assert infomax("datasets", "path").out.splitlines()[0] == str(tmp_path)
    assert "inside the package" in infomax("datasets", "fetch", "debian").out
    refused(infomax("datasets", "fetch", "coar"), '"coar"', 'Did you mean "cora"?')


def split_graph(label, ids=None):
    """A small graph with labels and a split of its own."""
    rng = np.random.default_rng(0)
    kind, part = np.arange(60) % 3, rng.integers(3, size=60)
    return Graph.from_arrays(
        rng.integers(20, size=(2, 150)) * 3 + rng.integers(3, size=150),
        rng.random((60, 5)) + np.eye(3, 5)[kind],
        ids=ids,
        labels={label: np.array(KINDS, dtype=object)[kind]},
        splits={name: part == number for number, name in enumerate(("train", "validation", "test"))},
    )


def test_reproduce_writes_the_json_that_was_agreed(monkeypatch, tmp_path):
    from infomax.paper import comparison
    from infomax.paper.experiments import EXPERIMENTS

    quick = replace(EXPERIMENTS["cora"], settings={"dim": 8, "epochs": 2})
    monkeypatch.setitem(EXPERIMENTS, "cora", quick)
    monkeypatch.setattr(comparison, "load_dataset", lambda name: split_graph("class"))
    outcome = infomax("reproduce", "cora", "--runs", 2, "--json", tmp_path / "r.json", "--device", "cpu")
    assert outcome.code == 0, outcome.err
    assert "82.3 ± 0.6" in outcome.out
    found = json.loads((tmp_path / "r.json").read_text())
    assert (found["dataset"], found["probe"]) == ("cora", "paper")
    rows = {row["method"]: row for row in found["rows"]}
    assert list(rows) == ["DGI", "Random-Init", "Raw features"]
    for row in rows.values():
        agreed = {"method", "metric", "mean", "std", "runs", "paper", "seconds"}
        assert set(row) == agreed | {"splits", "split_std", "costs"}
        assert row["metric"] == "accuracy"
        assert 0 <= row["mean"] <= 100
    assert rows["DGI"]["runs"] == 2
    assert rows["DGI"]["paper"] == {"mean": 82.3, "std": 0.6}


def test_the_table_is_written_as_json_where_asked_too(monkeypatch, tmp_path):
    monkeypatch.setattr("infomax.paper.table.load_dataset", lambda name: split_graph("class"))
    words = ("--datasets", "cora", "--methods", "Raw features", "--runs", 1, "--device", "cpu")
    outcome = infomax("reproduce", "table", *words, "--out", tmp_path / "table", "--json", tmp_path / "t.json")
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "t.json").read_text() == (tmp_path / "table" / "table.json").read_text()


@pytest.fixture
def small_demo(monkeypatch):
    """A demo of a moment, and its graph."""
    from infomax import datasets
    from infomax.cli.demo import PACKAGES

    monkeypatch.setattr("infomax.cli.demo.DIM", 8)
    graph = split_graph("section", [*PACKAGES, *(f"package{row}" for row in range(60 - len(PACKAGES)))])
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
    assert set(json.loads((tmp_path / "demo" / "report.json").read_text())["neighbours"]) == set(PACKAGES)
    assert infomax("neighbours", tmp_path / "demo" / "run", "numpy").code == 0


@pytest.mark.usefixtures("quick_probe", "small_demo")
def test_demo_writes_over_its_own_run_and_no_other(folder, tmp_path):
    run = tmp_path / "run"
    for epochs in (2, 3):
        assert infomax("demo", "--out", tmp_path, "--epochs", epochs).code == 0
    assert len(json.loads((run / "health.json").read_text())["curve"]["loss"]) == 3
    shutil.rmtree(run)
    assert infomax("train", folder, "--labels", "kind", "--dim", 4, "--epochs", 1, "--out", run).code == 0
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
    assert infomax("train", tmp_path / "g.npz", "--labels", "kind", "--dim", 4, "--epochs", 2, "--out", run).code == 0
    outcome = infomax("evaluate", run, "--json", tmp_path / "scores.json")
    assert "kind: validated probe" in outcome.out
    assert json.loads((tmp_path / "scores.json").read_text())["labels"] == ["kind"]


def test_a_run_on_weights_says_that_a_graph_has_none(tmp_path):
    write_table(tmp_path / "weighted.csv", [["source", "target", "weight"], ["a", "b", 2], ["b", "c", 1]])
    write_table(tmp_path / "plain.csv", [["source", "target"], ["a", "b"], ["b", "c"]])
    run = tmp_path / "run"
    assert infomax("train", tmp_path / "weighted.csv", "--dim", 4, "--epochs", 1, "--out", run).code == 0
    for name, said in (("plain", True), ("weighted", False)):
        outcome = infomax("embed", run, tmp_path / f"{name}.csv", "--out", tmp_path / "v.csv")
        assert outcome.code == 0
        assert ("each counts as 1" in outcome.err) == said


def test_what_a_run_holds_is_shown_without_torch_or_scikit_learn(folder, run, tmp_path):
    script = """
import sys
from infomax.cli import main
for words in sys.argv[1:]:
    sys.argv = ["infomax", *words.split("|")]
    try:
        main()
    except SystemExit as end:
        assert not end.code
print(*{"torch", "sklearn"} & set(sys.modules), file=sys.stderr)
"""
    out = tmp_path / "vectors.csv"
    commands = (
        f"info|{folder}|--labels|kind",
        "datasets",
        f"neighbours|{run}|007",
        f"embed|{run}|--out|{out}",
        f"neighbours|{out}|007",
    )
    done = subprocess.run([sys.executable, "-c", script, *commands], capture_output=True, text=True, check=True)
    assert done.stderr == "\n"
    assert (Embeddings.read(out).vectors == DGI.load(run).transform(DGI.load(run).graph_).vectors).all()


@pytest.mark.parametrize("damaged", ["vectors.npy", "graph.npz", "config.json"])
def test_vectors_of_a_damaged_run_are_never_shown(run, tmp_path, damaged):
    path = Path(shutil.copytree(run, tmp_path / "run")) / damaged
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    outcome = infomax("neighbours", tmp_path / "run", "007")
    if damaged == "vectors.npy":  # they can be computed
        assert outcome.out == infomax("neighbours", run, "007").out
    else:
        refused(outcome, damaged)
