"""From a folder of tables to vectors, scores and neighbours, as a user types it."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyarrow import float32, int64, list_, parquet
from shell import DIM, FEATURES, IDS, KINDS, infomax, refused, write_graph, write_table

from infomax import DGI, Embeddings, Graph, read_graph
from infomax.io.npz import write_npz


def read_parquet(path, width):
    table = parquet.read_table(path)
    assert table.column_names == ["id", "vector"]
    assert table.schema.field("vector").type == list_(float32(), width)
    return table["id"].to_pylist(), table["vector"].to_pylist()


def read_npy(path, width):
    return IDS, np.load(path)


def read_npz(path, width):
    arrays = np.load(path)
    return arrays["ids"].tolist(), arrays["vectors"]


def read_table(path, width):
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
    assert names == ["id", *(f"d{column}" for column in range(width))]
    return [row[0] for row in rows], [list(map(float, row[1:])) for row in rows]


def read_kv(path, width):
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    assert head == f"{len(IDS)} {width}"
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
def test_embed_writes_each_format_with_ids_unchanged_and_in_order(
    run, vectors, tmp_path, extension, read
):
    path = tmp_path / f"vectors.{extension}"
    outcome = infomax("embed", run, "--out", path)
    assert outcome.code == 0, outcome.err
    ids, found = read(path, vectors.shape[1])
    assert ids == IDS
    np.testing.assert_array_equal(np.array(found, dtype=np.float32), vectors)
    assert list(tmp_path.iterdir()) == [path]


def test_integer_ids_stay_integers(tmp_path):
    ids = [30, -4, 12, 7, 9, 1000000007, 5, 6, 8]
    folder = write_graph(tmp_path / "graph", ids)
    assert (
        infomax(
            "train",
            folder,
            "--labels",
            "kind",
            "--out",
            tmp_path / "run",
            "--dim",
            4,
            "--epochs",
            0,
        ).code
        == 0
    )
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


def test_training_ends_with_its_verdict(folder, tmp_path):
    trained = infomax(
        "train", folder, "--labels", "kind", "--dim", 4, "--lr", "1e-12", "--out", tmp_path / "run"
    )
    wrote, verdict, cause = trained.out.splitlines()[-3:]
    assert wrote.startswith("wrote ")
    assert verdict.startswith(("Verdict: learnt nothing. ", "Verdict: weak. "))
    assert cause.startswith("The weights have hardly changed, in ")
    told = json.loads((tmp_path / "run" / "health.json").read_text())["verdict"]
    assert verdict == f"Verdict: {told['verdict']}. {told['reason']}"


def test_a_log_tells_how_many_epochs_of_how_many(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("infomax.cli.show.LOG_SECONDS", -1)
    common = ("train", folder, "--labels", "kind", "--dim", 4)
    assert (
        "epochs: 2 of 3, loss 0."
        in infomax(*common, "--epochs", 3, "--out", tmp_path / "known").err
    )
    patient = infomax(*common, "--epochs", 300, "--patience", 3, "--out", tmp_path / "patient").err
    assert "epochs: 1 of 4, loss 0." in patient  # where it ends if the loss falls no more


def test_epochs_with_patience_stop_early_or_at_the_limit(folder, tmp_path):
    common = ("train", folder, "--labels", "kind", "--dim", 4, "--lr", 0.2, "--patience", 3)
    assert infomax(*common, "--epochs", 500, "--out", tmp_path / "early").code == 0
    assert infomax(*common, "--epochs", 2, "--out", tmp_path / "limit").code == 0
    early, limit = (
        json.loads((tmp_path / name / "health.json").read_text()) for name in ("early", "limit")
    )
    assert early["stopped_early"]
    assert early["epochs"] == early["kept_epoch"] + 3 < 500
    assert limit["epochs"] == 2


def test_what_is_seldom_set_is_what_is_trained(folder, tmp_path):
    common = (
        "train",
        folder,
        "--labels",
        "kind",
        "--dim",
        4,
        "--epochs",
        1,
        "--out",
        tmp_path / "run",
    )
    words = [
        "--corruption",
        "both",
        "--rho",
        "0.25",
        "--lr",
        "0.5",
        "--scale",
        "rows",
        "--layers",
        "2",
        "--readout",
        "set2set",
    ]
    assert infomax(*common, "--preset", "mean-pool", *words).code == 0
    settings = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]
    assert settings["corruption"] == {"part": "flip_and_shuffle", "rho": 0.25}
    assert settings["encoder"] == {"part": "MeanPool", "layers": 2}
    assert settings["readout"]["part"] == "Set2Set"
    assert (settings["lr"], settings["scale"]) == (0.5, "rows")


def test_an_encoder_is_named(folder, tmp_path):
    common = (
        "train",
        folder,
        "--labels",
        "kind",
        "--dim",
        4,
        "--epochs",
        1,
        "--encoder",
        "two-hops",
        "--out",
    )
    assert infomax(*common, tmp_path / "run").code == 0
    assert DGI.load(tmp_path / "run").model_.encoder.out_dim == 3 * 4
    wrong = infomax(*common, tmp_path / "other", "--layers", 2)
    refused(wrong, "--layers: expected none with --encoder two-hops, found 2")


def test_the_papers_patches_are_no_preset_of_the_command_line(folder, tmp_path):
    common = ("train", folder, "--labels", "kind", "--out", tmp_path / "run")
    refused(infomax(*common, "--preset", "patches"), "preset", "whole-graph", "found patches")
    for option in ("--fan-out", "--weighting"):
        refused(infomax(*common, option, 3), f"No such option: {option}.", "infomax reproduce")
    assert not (tmp_path / "run").exists()


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
        (("x", "z"), ["nodes.csv", 'feature column "y"']),
        (("a", "b", "c"), ['feature column "x", "y", "z"']),
    ],
    ids=["one missing", "none of them"],
)
def test_other_features_are_refused_by_name(run, tmp_path, features, parts):
    folder = write_graph(tmp_path / "new", features=features)
    refused(infomax("embed", run, folder, "--out", tmp_path / "v.npz"), *parts)
    assert not (tmp_path / "v.npz").exists()


def test_neighbours_in_a_file_of_vectors_beside_the_run(run):
    beside = run.parent / "vectors.npz"
    assert infomax("embed", run, "--out", beside).code == 0
    outcome = infomax("neighbours", beside, "n51", "-k", 3)
    assert outcome.code == 0, outcome.err
    assert outcome.out == infomax("neighbours", run, "n51", "-k", 3).out


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
    pairs = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    told = [line.split("│")[3].strip() for line in outcome.out.splitlines() if line.startswith("│")]
    shares = [100 * (pairs < value - 1e-6).mean() for value in np.sort(cosine)[::-1][:3]]
    assert [
        float(share.removeprefix("over ").removesuffix(" %")) for share in told
    ] == pytest.approx(shares, abs=0.2)


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
        copy.add_node(
            name,
            **dict(zip(FEATURES, map(float, graph.features[row]), strict=True)),
            kind=KINDS[row % 3],
        )
    copy.add_edges_from((IDS[a], IDS[b]) for a, b in zip(*graph.adjacency.nonzero(), strict=True))
    networkx.write_graphml(copy, tmp_path / "g.graphml")
    for name in (
        folder,
        f"{folder}/edges.csv,{folder}/nodes.csv",
        tmp_path / "g.npz",
        tmp_path / "g.graphml",
    ):
        outcome = infomax("info", name, "--labels", "kind")
        assert outcome.code == 0, outcome.err
        cells = [
            [cell.strip() for cell in line.split("│")[1:3]]
            for line in outcome.out.splitlines()
            if "│" in line
        ]
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
    path = write_table(
        tmp_path / "edges.csv",
        [["source", "target"], ["b", "a"], ["a", "c"], ["a", "c"], ["c", "c"]],
    )
    outcome = infomax("info", path)
    facts = dict(
        [cell.strip() for cell in row.split("│")[1:3]]
        for row in outcome.out.splitlines()
        if "│" in row
    )
    assert (facts["nodes"], facts["edges"]) == ("3", "2")
    told = " ".join(outcome.out.replace("│", " ").split())  # where lines break is the terminal's
    assert "edges dropped 1 self-loops, 1 duplicates (--weight count would count them)" in told


def test_columns_that_are_not_called_source_and_target_are_named(tmp_path):
    odd = write_table(
        tmp_path / "odd.csv", [["edge_id", "from", "to"], ["e1", "a", "b"], ["e2", "b", "c"]]
    )
    plain = write_table(
        tmp_path / "plain.csv",
        [["edge_id", "Source", "Target"], ["e1", "a", "b"], ["e2", "b", "c"]],
    )
    shown = infomax("info", odd).out
    facts = dict(
        [cell.strip() for cell in row.split("│")[1:3]] for row in shown.splitlines() if "│" in row
    )
    assert facts["edges run from, to"] == "edge_id, from"
    assert "edges run" not in infomax("info", plain).out
    for path, told in ((odd, True), (plain, False)):
        outcome = infomax("train", path, "--out", tmp_path / path.stem, "--dim", 4, "--epochs", 0)
        assert outcome.code == 0, outcome.err
        assert (
            "no columns source and target: edges run from, to: edge_id, from\n" in outcome.err
        ) == told


def test_datasets_are_listed_found_and_fetched(monkeypatch, tmp_path):
    monkeypatch.setenv("INFOMAX_DATA", str(tmp_path))
    assert infomax("datasets") == infomax("datasets", "list")
    assert {"debian", "cora", "citeseer", "pubmed"} <= set(infomax("datasets").out.split())
    assert infomax("datasets", "path").out.splitlines()[0] == str(tmp_path)
    assert "inside the package" in infomax("datasets", "fetch", "debian").out
    refused(infomax("datasets", "fetch", "coar"), '"coar"', 'Did you mean "cora"?')


def test_a_run_on_weights_says_that_a_graph_has_none(tmp_path):
    write_table(
        tmp_path / "weighted.csv", [["source", "target", "weight"], ["a", "b", 2], ["b", "c", 1]]
    )
    write_table(tmp_path / "plain.csv", [["source", "target"], ["a", "b"], ["b", "c"]])
    run = tmp_path / "run"
    assert (
        infomax("train", tmp_path / "weighted.csv", "--dim", 4, "--epochs", 1, "--out", run).code
        == 0
    )
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
    done = subprocess.run(
        [sys.executable, "-c", script, *commands], capture_output=True, text=True, check=True
    )
    assert done.stderr == "\n"
    assert (
        Embeddings.read(out).vectors == DGI.load(run).transform(DGI.load(run).graph_).vectors
    ).all()


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
