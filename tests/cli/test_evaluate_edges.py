"""evaluate without labels: edges against random pairs, held out from training or not."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from shell import infomax, refused, write_graph

from infomax import DGI, Embeddings
from infomax.evaluation.links import cosines, draw_pairs, score
from infomax.reports.edges import CLEARLY_HIGHER, EdgeScore, edge_advice

SEEN = "These edges were seen in training"
SCORED = ("DGI", "Encoder alone", "Own alone", "Pooled alone", "Positions alone", "Random-Init")
BASELINES = ("SVD of the edges", "Averaged features", "Raw features")
METHODS = [
    *(name for name in (*SCORED, *BASELINES) for _ in ("cosine", "regression")),
    "Common neighbours",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph") / "small")


def train(folder, run, *words):
    outcome = infomax(
        "train", folder, "--labels", "kind", "--out", run, "--dim", 8, "--epochs", 10, *words
    )
    assert outcome.code == 0, outcome.err
    return outcome


@pytest.fixture(scope="module")
def labelled(folder, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "labelled"
    outcome = train(folder, run, "--hold-out-edges", "0.3")
    assert "held out" in outcome.err
    assert f"infomax evaluate {run} --edges" in outcome.err
    return run


@pytest.fixture(scope="module")
def unlabelled(folder, tmp_path_factory):
    """A run on the edges alone, so that there is no label."""
    run = tmp_path_factory.mktemp("runs") / "unlabelled"
    assert (
        infomax("train", folder / "edges.csv", "--out", run, "--dim", 8, "--epochs", 10).code == 0
    )
    return run


def test_without_labels_the_edges_are_scored_and_were_seen(unlabelled, tmp_path):
    outcome = infomax("evaluate", unlabelled, "--json", tmp_path / "scores.json")
    assert outcome.code == 0, outcome.err
    assert "seen in training, against as many random pairs" in outcome.out
    assert SEEN in outcome.out
    found = json.loads((tmp_path / "scores.json").read_text())
    assert found["held_out"] is False
    without_features = ("Own alone", "Pooled alone", "Averaged features")
    expected = [method for method in METHODS if method not in without_features]
    assert [row["method"] for row in found["rows"]] == expected
    for row in found["rows"]:
        assert 0 <= row["auc"] <= 1
        assert 0 <= row["average_precision"] <= 1


def test_a_run_with_labels_is_scored_on_held_out_edges_where_asked(labelled, tmp_path):
    outcome = infomax("evaluate", labelled, "--edges", "--json", tmp_path / "scores.json")
    assert outcome.code == 0, outcome.err
    assert "held out from training" in outcome.out
    assert SEEN not in outcome.out
    found = json.loads((tmp_path / "scores.json").read_text())
    model = DGI.load(labelled)
    pairs = draw_pairs(model.graph_.adjacency, model.graph_.held_out)
    assert found["held_out"] is True
    assert found["edges"] == (pairs.joined & ~pairs.fitted).sum()
    assert [row["method"] for row in found["rows"]] == METHODS
    expected = score(pairs, cosines(model.transform(model.graph_).vectors, pairs))
    assert found["rows"][0]["auc"] == pytest.approx(expected["auc"])
    assert (
        "labelled nodes" in infomax("evaluate", labelled).out
    )  # labels come first where nothing is asked for


def test_the_seed_decides_which_edges_are_held_out_and_info_counts_them(folder, labelled, tmp_path):
    train(folder, tmp_path / "same", "--hold-out-edges", "0.3")
    train(folder, tmp_path / "other", "--hold-out-edges", "0.3", "--seed", 1)
    first, same, other = (
        DGI.load(run).graph_.held_out for run in (labelled, tmp_path / "same", tmp_path / "other")
    )
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)
    described = infomax("info", labelled / "graph.npz").out
    assert "edges held out" in described
    assert str(first.shape[1]) in described


@pytest.mark.parametrize("share", ["0", "1", "-0.1", "1.5", "nan", "0.0001"])
def test_a_silly_share_is_refused(folder, tmp_path, share):
    words = ("--labels", "kind", "--out", tmp_path / "run", "--hold-out-edges", share)
    refused(
        infomax("train", folder, *words), "share of edges to hold out", "between 0 and 1", "Use 0.1"
    )
    assert not (tmp_path / "run").exists()


def test_a_graph_without_edges_has_none_to_hold_out(folder, tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n")
    words = (
        tmp_path / "edges.csv",
        folder / "nodes.csv",
        "--labels",
        "kind",
        "--out",
        tmp_path / "run",
    )
    parts = (
        "edges to hold out: expected a graph of two edges or more, found 0 edges",
        "without holding edges out",
    )
    refused(infomax("train", *words, "--hold-out-edges", 0.1), *parts)


def test_edges_are_scored_alone_and_of_a_run(labelled, tmp_path):
    assert infomax("embed", labelled, "--out", tmp_path / "v.csv").code == 0
    refused(infomax("evaluate", tmp_path / "v.csv", "--edges"), "--edges", "a run folder")
    for words in (("--labels", "kind"), ("--dataset", "cora"), ("--probe", "paper")):
        refused(infomax("evaluate", labelled, "--edges", *words), "--edges alone")


def test_a_type_with_too_few_edges_does_not_keep_the_others_from_their_scores(tmp_path):
    edges = tmp_path / "graph" / "edges"
    edges.mkdir(parents=True)
    pairs = {(user, item) for user in range(40) for item in range(30) if (user * item) % 7 < 2}
    (edges / "user.rated.item.csv").write_text(
        "user,item\n" + "".join(f"{u},{i}\n" for u, i in sorted(pairs))
    )
    (edges / "item.at.shop.csv").write_text(
        "item,shop\n" + "".join(f"{i},s{i % 2}\n" for i in range(9))
    )
    run = tmp_path / "run"
    assert infomax("train", edges.parent, "--out", run, "--dim", 4, "--epochs", 2).code == 0
    outcome = infomax("evaluate", run, "--edges")
    assert outcome.code == 0, outcome.err
    assert (
        len(re.findall(r"Positions +│ cosine", outcome.out)) == 2
    )  # of item and user, which come before and after shop
    assert "shop is left out: edges to score vectors on: expected at least 10" in outcome.err
    refused(infomax("evaluate", run, "--type", "shop"), "at least 10 edges")


@pytest.fixture(scope="module")
def rentals(tmp_path_factory):
    """A run about customers, who rent films of two clerks: a tenth of the rentals is held out."""
    folder = tmp_path_factory.mktemp("rentals")
    draws = np.random.default_rng(0)
    lines = {
        "customer": ["customer_id,age", *(f"{row},{20 + row % 50}" for row in range(80))],
        "film": ["film_id,length", *(f"{row},{60 + row}" for row in range(60))],
        "clerk": ["clerk_id,wage", "0,3", "1,5"],
        "rental": [
            "rental_id,customer_id,film_id,clerk_id,price",
            *(
                f"{row},{row % 80},{(row % 4) * 15 + draws.integers(15)},{row % 2},{row % 7}"
                for row in range(900)
            ),
        ],
    }
    tables = folder / "shop"
    tables.mkdir()
    for name, rows in lines.items():
        (tables / f"{name}.csv").write_text("\n".join(rows) + "\n")
    words = ("--type", "customer", "--dim", 8, "--epochs", 2, "--hold-out-edges", 0.1)
    outcome = infomax("train", tables, "--out", folder / "run", *words)
    assert outcome.code == 0, outcome.err
    return folder / "run" / "customer"


def test_both_references_of_a_hidden_fact_are_hidden_and_the_pair_is_said(rentals):
    """Half of a hidden rental would tell of the other half: degrees had an AUC of 0.05."""
    outcome = infomax("evaluate", rentals, "--edges")
    assert outcome.code == 0, outcome.err
    assert "links customer - film by rental, held out from training" in outcome.out
    assert "Of the ends of these edges training knew 100% and 100%" in outcome.out
    assert "Not scored: " in outcome.out
    assert "customer - clerk by rental; another: --pair TYPE:BY" in outcome.out
    degrees = next(line for line in outcome.out.splitlines() if "Degrees" in line)
    assert 0.3 < float(degrees.split("│")[3]) < 0.8
    clerks = infomax("evaluate", rentals, "--edges", "--pair", "film:rental")
    assert "customer - film by rental" in clerks.out
    refused(infomax("evaluate", rentals, "--edges", "--pair", "shop"), "--pair", "clerk:rental")
    refused(infomax("evaluate", rentals, "--pair", "film", "--probe", "paper"), "--pair", "--edges")


def test_the_vectors_of_rows_are_written_and_a_row_that_is_higher_names_the_command(
    labelled, rentals, tmp_path
):
    assert infomax("evaluate", labelled, "--edges", "--out", tmp_path / "one").code == 0
    model = DGI.load(labelled)
    svd = Embeddings.read(tmp_path / "one" / "svd-of-the-edges.parquet")
    assert svd.ids.tolist() == model.graph_.ids.tolist()
    pairs = draw_pairs(model.graph_.adjacency, model.graph_.held_out)
    outcome = infomax("evaluate", labelled, "--edges", "--json", tmp_path / "scores.json")
    rows = json.loads((tmp_path / "scores.json").read_text())["rows"]
    scored = next(row for row in rows if row["method"] == "SVD of the edges")
    assert score(pairs, cosines(svd.vectors, pairs))["auc"] == pytest.approx(
        scored["auc"], abs=1e-6
    )

    best = {row["method"]: row["auc"] for row in sorted(rows, key=lambda row: row["auc"])}
    for method in ("Random-Init", "SVD of the edges", "Positions alone"):
        is_named = f"{method} (" in outcome.out
        assert is_named == (best[method] > best["DGI"] + CLEARLY_HIGHER)
        line = next((one for one in outcome.out.splitlines() if one.startswith(f"{method} (")), "")
        command = f"infomax evaluate {labelled} --edges --out FOLDER"
        if method == "Positions alone":
            command = f"infomax embed {labelled} --vectors positions"
        assert not is_named or line.endswith(f"To write them: {command}")

    assert infomax("evaluate", rentals, "--edges", "--out", tmp_path / "two").code == 0
    names = {path.name for path in (tmp_path / "two").iterdir()}
    assert names == {
        f"{row}{of_type}.parquet"
        for row in ("positions", "svd-of-the-edges")
        for of_type in ("", ".film")
    }
    films = Embeddings.read(tmp_path / "two" / "svd-of-the-edges.film.parquet")
    assert films.ids.tolist() == DGI.load(rentals).graph_.nodes["film"].ids.tolist()


def test_advice_about_edges_of_two_types_names_a_command():
    command = "infomax evaluate RUN --edges --out FOLDER --pair film:rental"
    rows = [
        EdgeScore("Positions", "cosine", auc=0.7, average_precision=0.7),
        EdgeScore("SVD of the edges", "cosine", auc=0.8, average_precision=0.8, command=command),
    ]
    assert edge_advice(rows, "run/customer") == [
        "SVD of the edges (cosine) has a higher AUC: 0.800 against 0.700. "
        "To write them: infomax evaluate run/customer --edges --out FOLDER --pair film:rental"
    ]
