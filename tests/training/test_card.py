"""What others read in a run folder: the log of the training, and the page about the run."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sample_graphs import random_graph

from infomax import DGI
from infomax.training.card import add_scores, flat, read_scores


def lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_the_log_has_every_epoch_once_also_after_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr("infomax.training.resuming.CHECKPOINT_SECONDS", 0)
    graph, seen = random_graph(), []

    def stop(training):
        seen.append(len(lines(tmp_path / "run")))
        if len(training.history) == 7:
            raise KeyboardInterrupt

    def die(training):
        if len(training.history) == 9:
            raise RuntimeError("killed")

    settings = {"dim": 8, "epochs": 12}
    with pytest.raises(KeyboardInterrupt):
        DGI(**settings).fit(graph, run=tmp_path / "run", progress=stop)
    assert seen == list(range(1, 8))  # the log is as far as the training
    with pytest.raises(RuntimeError):  # its last checkpoint is of epoch 8, its log of epoch 9
        DGI(**settings).fit(graph, run=tmp_path / "run", progress=die)
    model = DGI(**settings).fit(graph, run=tmp_path / "run")
    found = lines(tmp_path / "run")
    assert [row["epoch"] for row in found] == list(range(1, 13))
    assert [round(row["loss"], 6) for row in found] == model.health_["curve"]["loss"]
    assert set(found[0]) == {"epoch", "loss", "discriminator_accuracy", "summary_spread"}
    DGI(**settings).fit(graph, run=tmp_path / "whole")
    assert (tmp_path / "whole/metrics.jsonl").read_bytes() == (
        tmp_path / "run/metrics.jsonl"
    ).read_bytes()


def test_the_page_says_what_the_run_is_and_how_to_load_it(tmp_path, monkeypatch):
    graph, run = random_graph(), tmp_path / "run"
    DGI(8, epochs=3, seed=5).fit(graph, run=run)
    text = (run / "README.md").read_text()
    for words in (
        "| nodes | 40 |",
        "| labels | class |",
        "| seed | 5 |",
        "| encoder | GCN |",
        "| epochs | 3 |",
        "| dead dimensions | ",
        "Verdict",
        "| encoder | encoder 1 of 8 to encoder 8 of 8 |",
        "mean of x0 over two hops, ",
    ):
        assert words in text, words
    assert str(tmp_path) not in text  # it can be shown to others
    add_scores(run, "class", {"DGI": 0.5, "Raw features": 0.25})
    add_scores(run, "edges", {"DGI": 0.75})
    assert read_scores(run) == {"class": {"DGI": 0.5, "Raw features": 0.25}, "edges": {"DGI": 0.75}}
    text = (run / "README.md").read_text()
    assert "## class" in text
    assert "| DGI | 0.75 |" in text
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    assert len(names["embeddings"]) == 40
    DGI(8, epochs=3).fit(graph).save(run, overwrite=True)
    assert read_scores(run) == {}  # those were of another model
    assert "| seed | 0 |" in (run / "README.md").read_text()
    (run / "scores.json").write_text("[1")
    assert read_scores(run) == {}


def test_the_page_says_which_parts_to_pass(tmp_path):
    own = {"corruption": lambda view, generator: view.shuffled(generator)}
    DGI(8, epochs=2, **own).fit(random_graph(), run=tmp_path / "run")
    assert 'DGI.load("run", corruption=...)' in (tmp_path / "run" / "README.md").read_text()
    assert DGI.load(tmp_path / "run", **own).preset_.dim == 8


def test_settings_are_flattened():
    assert flat({"encoder": {"part": "GCN", "layers": 2}, "dim": 8}) == {
        "encoder": "GCN",
        "encoder.layers": 2,
        "dim": 8,
    }


def test_after_an_update_the_page_tells_both_graphs(tmp_path):
    graph, run = random_graph(), tmp_path / "run"
    model = DGI(8, epochs=3).fit(graph)
    later = graph.part(np.arange(40) > 0)
    model.update(later, run=run)
    for folder, loaded in ((run, DGI.load(run)), (tmp_path / "again", model.update(later).model)):
        loaded.save(folder, overwrite=True)  # what it was trained on is kept
        text = (folder / "README.md").read_text()
        trained, taken = text.index("## Trained on"), text.index("## Taken to, by update")
        assert trained < text.index("| nodes | 40 |") < taken < text.index("| nodes | 39 |")
    twice = DGI.load(run).update(
        later.part(np.arange(39) > 0), train=True, run=tmp_path / "trained"
    )
    assert twice.model.graph_.num_nodes == 38
    assert "Taken to" not in (tmp_path / "trained/README.md").read_text()


def test_a_name_with_a_bar_stays_in_its_cell(tmp_path):
    graph = random_graph()
    graph = graph.replace(labels={"a|b": graph.labels["class"]})
    DGI(4, epochs=1).fit(graph, run=tmp_path / "run")
    (row,) = [
        line
        for line in (tmp_path / "run" / "README.md").read_text().splitlines()
        if "a\\|b" in line
    ]
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
