"""What the rows of a comparison say to a user."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sample_graphs import random_graph

from infomax import DGI
from infomax.evaluation.probes import paper_probe
from infomax.evaluation.results import Row
from infomax.reports.comparison import STEPS_PER_ROW, advice, compare


@pytest.fixture(scope="module")
def model() -> DGI:
    return DGI(8, epochs=1, device="cpu").fit(random_graph(40))


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ("Raw features", "Raw features alone score higher"),
        ("Random-Init", "The encoder before training scores higher"),
        ("SVD of the edges", "Singular vectors of the edges score higher"),
        ("Averaged features", "Features averaged over two hops score higher"),
    ],
)
def test_what_scores_higher_is_told(method, sentence):
    command = ""
    if method != "Raw features":
        command = " To write them: infomax evaluate RUN --out FOLDER"
    other = Row(method, "accuracy", 31, 0, 1, None, 0)
    assert advice([Row("DGI", "accuracy", 30, 0, 1, None, 0), other]) == [
        f"{sentence}: 31.0 against 30.0.{command}"
    ]
    assert advice([Row("DGI", "accuracy", 32, 0, 1, None, 0), other]) == []


def test_a_part_alone_is_named_where_it_is_higher_by_more_than_splits_differ():
    run_row, positions_row = (
        Row(method, "accuracy", mean, 0, 1, None, 0, splits=10, split_std=1.5)
        for method, mean in (("DGI", 83), ("Positions alone", 92))
    )
    sentence = (
        "Positions alone: 92.0 against 83.0. To write them: infomax embed RUN --vectors positions"
    )
    assert advice([run_row, positions_row]) == [sentence]
    assert advice([run_row, dataclasses.replace(positions_row, mean=84.4)]) == []


def test_what_is_no_better_than_the_majority_is_told():
    guess = Row("Majority class", "accuracy", 97.04, 0, 1, None, 0)
    run_row = Row("DGI", "accuracy", 97.02, 0, 1, None, 0, other_metrics={"AUC": 0.81})
    assert advice([run_row, guess]) == [
        "DGI is no better than the majority: 97.0 against 97.0. "
        "Its AUC is 0.81, where guessing has 0.50."
    ]
    assert advice([Row("DGI", "accuracy", 97.2, 0, 1, None, 0), guess]) == []


def test_a_difference_that_is_not_shown_is_not_told():
    means = (("DGI", 0.4281), ("Random-Init", 0.4283))
    assert advice([Row(method, "micro-F1", mean, 0, 1, None, 0) for method, mean in means]) == []


@pytest.mark.parametrize("options", [{}, {"raw": False}], ids=str)
def test_the_progress_counts_the_rows_and_raw_features_can_be_left_out(model, options):
    codes = model.graph_.labels["class"]
    part_of_node = np.arange(40) % 4
    split = {
        name: part_of_node == part for part, name in enumerate(("train", "validation", "test"))
    }
    steps = []
    rows = compare(
        model, codes, [split], paper_probe, **options, progress=lambda *step: steps.append(step)
    )
    has_raw = options.get("raw", True)
    methods = [row.method for row in rows][:-1]  # that of the majority takes no time
    parts_alone = ["Encoder alone", "Own alone", "Pooled alone", "Positions alone"]
    baselines = ["Random-Init", "SVD of the edges"]
    if has_raw:
        baselines += ["Averaged features", "Raw features"]
    assert methods == ["DGI", *parts_alone, *baselines]

    total = STEPS_PER_ROW * len(methods)
    first_steps = [(STEPS_PER_ROW * row, name, total) for row, name in enumerate(methods)]
    assert steps[0] == (0, "vectors")
    # One split: nothing is told within a row.
    assert list(dict.fromkeys(steps[1:])) == first_steps
    assert not any("Raw" in line for line in advice(rows)) or has_raw
