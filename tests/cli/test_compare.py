"""infomax compare: runs side by side."""

from __future__ import annotations

import json

import pytest
from shell import infomax, refused


@pytest.fixture(scope="module")
def other(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "other"
    words = ("--labels", "kind", "--dim", 8, "--epochs", 3, "--seed", 4, "--layers", 2)
    assert infomax("train", folder, *words, "--out", path).code == 0
    return path


def test_settings_that_differ_health_and_scores_stand_side_by_side(
    run, other, tmp_path, quick_probe
):
    assert "No scores" in infomax("compare", run, other).err
    for run_folder in (run, other):
        assert infomax("evaluate", run_folder).code == 0
    assert infomax("evaluate", other, "--edges").code == 0
    outcome = infomax("compare", run, other, "--json", tmp_path / "compared.json")
    assert outcome.code == 0, outcome.err
    compared = json.loads((tmp_path / "compared.json").read_text())
    assert compared["runs"] == [str(run), str(other)]
    settings = compared["settings"]
    assert (settings["seed"], settings["epochs"], settings["encoder.layers"]) == (
        [0, 4],
        [20, 3],
        [None, 2],
    )
    assert "dim" not in settings
    assert not [name for name in settings if name.startswith("graph.")]
    assert compared["health"]["epochs"] == [20, 3]
    labelled = [
        values
        for name, values in compared["scores"].items()
        if name.startswith("kind: ") and "DGI" in name
    ]
    assert len(labelled) == 1
    assert all(0 < score <= 100 for score in labelled[0])
    edges = [
        values
        for name, values in compared["scores"].items()
        if "edges" in name and "DGI, cosine" in name
    ]
    assert [values[0] for values in edges] == [None]
    for words in ("encoder.layers", "effective_rank", "verdict", "scores"):
        assert words in outcome.out, words
    assert "Raw features" in (run / "README.md").read_text()
    refused(infomax("compare", run, tmp_path), "a run folder")


def test_tables_are_readable_at_80_columns(run, other, monkeypatch, quick_probe):
    """No name or number is broken over two lines, and a cluster takes few."""
    monkeypatch.setenv("COLUMNS", "80")
    for run_folder in (run, other):
        assert infomax("evaluate", run_folder).code == 0
    shown = infomax("compare", run, other).out
    tables = [line for line in shown.splitlines() if line[:1] in "┃│┏┡└"]
    assert max(map(len, tables)) <= 80
    names = [line.split("│")[1].strip() for line in tables if line.startswith("│")]
    for name in ("discriminator_accuracy", "encoder.layers", "Raw features", "Majority class"):
        assert name in names
    assert all(names)  # an empty one goes on from the line above
    heads = [line for line in tables if line.startswith("┃")]
    assert len(heads) == sum(line.startswith("┏") for line in tables)
    clusters = [
        line for line in infomax("cluster", run, "-k", 3).out.splitlines() if line.startswith("│")
    ]
    assert max(map(len, clusters)) <= 80
    assert (
        len(clusters) <= 3 * 4 + 4
    )  # of each: set apart by, mostly by each label; and the agreement


def test_many_runs_are_shown_a_few_at_a_time(run, other, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = infomax("compare", run, other, run, other, run, other, run).out.splitlines()
    heads = [line for line in shown if line.startswith("┃")]
    assert len(heads) == sum(line.startswith("┏") for line in shown)  # no name of a run is broken
    assert max(map(len, heads)) <= 80
    names = [line.split("│")[1].strip() for line in shown if line.startswith("│")]
    assert names.count("discriminator_accuracy") == 3


def test_a_folder_of_runs_has_no_types(run, other, tmp_path):
    for name, run_folder in (("first", run), ("second", other)):
        (tmp_path / name).symlink_to(run_folder)
    outcome = infomax("compare", tmp_path, "--json", tmp_path / "compared.json")
    assert outcome.code == 0, outcome.err
    compared = json.loads((tmp_path / "compared.json").read_text())
    assert compared["settings"]["seed"] == [0, 4]
    refused(
        infomax("cluster", tmp_path),
        "a run folder",
        "several: first, second",
        f"Name one: {tmp_path}/first",
    )
