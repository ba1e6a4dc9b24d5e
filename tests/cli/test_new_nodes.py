"""infomax embed --attach: vectors for the nodes that arrive tomorrow."""

from __future__ import annotations

import csv
import json
import shutil

import numpy as np
import pytest
from shell import IDS, infomax, refused, write_graph, write_table

from infomax import DGI, Embeddings, read_graph

TOMORROW = IDS[4:9]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A whole graph, what of it is known today and trained on, and what arrives tomorrow."""
    world = tmp_path_factory.mktemp("world")
    whole = write_graph(world / "whole")
    (world / "today").mkdir()
    (world / "new").mkdir()
    for table in ("nodes.csv", "edges.csv"):
        with (whole / table).open(encoding="utf-8", newline="") as file:
            names, *rows = csv.reader(file)
        late = [bool(set(row[: 1 if table == "nodes.csv" else 2]) & set(TOMORROW)) for row in rows]
        for part, wanted in (("today", False), ("new", True)):
            kept = [row for row, is_late in zip(rows, late, strict=True) if is_late is wanted]
            write_table(world / part / table, [names, *kept])
    outcome = infomax(
        "train",
        world / "today",
        "--labels",
        "kind",
        "--out",
        world / "run",
        "--dim",
        8,
        "--epochs",
        5,
    )
    assert outcome.code == 0, outcome.err
    return world


def test_new_nodes_alone_are_written_as_the_whole_graph_has_them(world, tmp_path):
    outcome = infomax(
        "embed", world / "run", world / "new", "--attach", "--out", tmp_path / "v.parquet"
    )
    assert outcome.code == 0, outcome.err
    assert f"{len(TOMORROW)} nodes" in outcome.out
    found = Embeddings.read(tmp_path / "v.parquet")
    assert found.ids.tolist() == TOMORROW
    expected = DGI.load(world / "run").transform(read_graph(world / "whole", labels="kind"))
    np.testing.assert_allclose(
        found.vectors, [expected[node] for node in TOMORROW], rtol=1e-5, atol=1e-6
    )


def rename(
    part, columns=(("edges.csv", {"source": "from", "target": "to"}), ("nodes.csv", {"id": "name"}))
):
    """The same tables with other names of columns, in another order."""
    for table, names in columns:
        with (part / table).open(encoding="utf-8", newline="") as file:
            head, *rows = (row[1:] + row[:1] for row in csv.reader(file))
        write_table(part / table, [[names.get(name, name) for name in head], *rows])
    return part


def test_a_later_graph_is_prepared_like_that_of_a_run(tmp_path):
    pytest.importorskip("duckdb", reason="prepare sorts with it")
    for name, start in (("first", 20), ("later", 60)):
        rows = [
            (f"n{at}", "" if at == 3 else start + at % 7, ("Rome", "Oslo")[at % 2])
            for at in range(30)
        ]
        write_table(tmp_path / f"{name}-nodes.csv", [("key", "age", "city"), *rows])
        edges = [(f"n{at}", f"n{(at + 2) % 30}") for at in range(30)]
        write_table(tmp_path / f"{name}-edges.csv", [("from", "to"), *edges])
    first, later = (
        [tmp_path / f"{name}-{kind}.csv" for kind in ("edges", "nodes")]
        for name in ("first", "later")
    )
    run, folder = tmp_path / "run", tmp_path / "later.graph"
    columns = ("--id", "key", "--source", "from", "--target", "to")
    assert (
        infomax(
            "train", *first, *columns, "--out", run, "--dim", 8, "--epochs", 5, "--directed"
        ).code
        == 0
    )
    assert infomax("prepare", *later, "--like", run, "--out", folder).code == 0
    vectors = []
    for graph in ([folder], later):
        outcome = infomax("embed", run, *graph, "--out", tmp_path / "v.npy")
        assert (outcome.code, "encoded" in outcome.err) == (0, False), outcome.err
        vectors.append(np.load(tmp_path / "v.npy"))
    np.testing.assert_allclose(*vectors, atol=1e-6)
    refused(
        infomax("prepare", *later, "--like", tmp_path / "none", "--out", tmp_path / "g"),
        "expected a run folder",
    )


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_columns_that_a_training_was_told_are_not_asked_again(world, tmp_path, kind, quick_probe):
    parts = {
        name: rename(shutil.copytree(world / name, tmp_path / name))
        for name in ("today", "new", "whole")
    }
    columns = ("--labels", "kind", "--id", "name", "--source", "from", "--target", "to")
    graph, run = parts["today"], tmp_path / "run"
    if kind == "folder":
        pytest.importorskip("duckdb", reason="prepare sorts with it")
        tables, graph = (graph / "edges.csv", graph / "nodes.csv"), tmp_path / "g.graph"
        assert infomax("prepare", *tables, "--out", graph, *columns).code == 0
        columns = ()
    trained = infomax(
        "train", graph, *columns, "--out", run, "--dim", 8, "--epochs", 5, "--preset", "whole-graph"
    )
    assert trained.code == 0, trained.err
    embed = ("embed", run, "--out", tmp_path / "v.csv")
    for words in (
        (parts["new"], "--attach"),
        (parts["whole"],),
        (world / "new", "--attach"),
        (world / "whole",),
    ):
        assert infomax(*embed, *words).code == 0, (
            words
        )  # tables with the usual names are read as well
    scores = []
    for labels in ((), ("--labels", f"{parts['today'] / 'nodes.csv'}:kind")):
        outcome = infomax("evaluate", run, *labels, "--json", tmp_path / "scores.json")
        assert outcome.code == 0, outcome.err
        scores.append(
            [row["mean"] for row in json.loads((tmp_path / "scores.json").read_text())["rows"]]
        )
    assert scores[0] == scores[1]


def test_the_ids_of_labels_for_a_file_of_vectors_are_named(world, tmp_path, quick_probe):
    part = rename(shutil.copytree(world / "today", tmp_path / "today"))
    assert infomax("embed", world / "run", "--out", tmp_path / "v.parquet").code == 0
    evaluate = ("evaluate", tmp_path / "v.parquet", "--labels", f"{part / 'nodes.csv'}:kind")
    refused(infomax(*evaluate), 'column "x"')  # the first, which is taken for the ids
    assert infomax(*evaluate, "--id", "name").code == 0
    refused(infomax(*evaluate, "--id", "nobody"), 'a column for id "nobody"')
    refused(infomax("evaluate", world / "run", "--id", "name"), "--id", "SOURCE:COLUMN")


@pytest.mark.parametrize("attach", [True, False])
def test_columns_of_new_tables_are_chosen(world, tmp_path, attach):
    """Tables whose columns have other names and another order give the same vectors."""
    attached = ["--attach"] if attach else []
    part = shutil.copytree(world / ("new" if attach else "whole"), tmp_path / "tables")
    assert (
        infomax("embed", world / "run", part, *attached, "--out", tmp_path / "plain.csv").code == 0
    )
    rename(part)
    words = ("embed", world / "run", part, *attached, "--out", tmp_path / "chosen.csv")
    assert infomax(*words, "--id", "name", "--source", "from", "--target", "to").code == 0
    assert (tmp_path / "chosen.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    refused(infomax(*words, "--id", "nobody"), "nodes.csv", 'a column for id "nobody"')


def test_features_of_new_nodes_in_a_file(world, tmp_path):
    features = np.random.default_rng(0).random((60, 3), dtype=np.float32)
    part = shutil.copytree(world / "whole", tmp_path / "tables")
    write_table(part / "nodes.csv", [["id"], *([node] for node in IDS)])
    np.save(tmp_path / "x.npy", features)
    train = ("train", part, "--features", tmp_path / "x.npy", "--dim", 8, "--epochs", 2)
    assert infomax(*train, "--out", tmp_path / "run").code == 0
    assert infomax("embed", tmp_path / "run", "--out", tmp_path / "own.csv").code == 0
    embed = ("embed", tmp_path / "run", part, "--out", tmp_path / "again.csv")
    outcome = infomax(*embed, "--features", tmp_path / "x.npy")
    assert outcome.code == 0, outcome.err
    own, again = (Embeddings.read(tmp_path / name).vectors for name in ("own.csv", "again.csv"))
    np.testing.assert_allclose(again, own, atol=1e-6)
    for command in (embed, ("update", *embed[1:-1], tmp_path / "updated")):
        refused(
            infomax(*command, "--features", "x"),
            "--features",
            "a file .npy or .npz",
            "names of the features",
        )
    refused(
        infomax("embed", tmp_path / "run", "--out", tmp_path / "v.csv", "--id", "id"),
        "--id: expected GRAPH",
    )


def test_new_nodes_alone_are_no_graph_and_the_way_is_told(world, tmp_path):
    words = ("embed", world / "run", world / "new", "--out", tmp_path / "v.npz")
    refused(
        infomax(*words),
        "edges.csv",
        "nodes.csv",
        "If it has only new nodes: infomax embed ",
        " --attach.",
    )


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ([], ["--attach: expected GRAPH"]),
        (["cora"], ["cora: expected a file"]),
        (["run/graph.npz"], ["graph.npz: ", "tables", "a whole graph"]),
        (["today"], ["nodes.csv, line 2: ", f'"{IDS[0]}", already row 1 of the known graph']),
    ],
    ids=["nothing", "a data set", "npz", "known nodes"],
)
def test_what_cannot_be_attached_is_refused(world, tmp_path, monkeypatch, words, parts):
    monkeypatch.chdir(world)
    refused(infomax("embed", "run", *words, "--attach", "--out", tmp_path / "v.npz"), *parts)
    assert not (tmp_path / "v.npz").exists()
