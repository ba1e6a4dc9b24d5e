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
    ("method", "told"),
    [
        ("Raw features", "Raw features alone score higher"),
        ("Random-Init", "The encoder before training scores higher"),
        ("SVD of the edges", "Singular vectors of the edges score higher"),
        ("Averaged features", "Features averaged over two hops score higher"),
    ],
)
def test_what_scores_higher_is_told(method, told):
    written = ""
    if method != "Raw features":
        written = " To write them: infomax evaluate RUN --out FOLDER"
    other = Row(method, "accuracy", 31, 0, 1, None, 0)
    assert advice([Row("DGI", "accuracy", 30, 0, 1, None, 0), other]) == [
        f"{told}: 31.0 against 30.0.{written}"
    ]
    assert advice([Row("DGI", "accuracy", 32, 0, 1, None, 0), other]) == []


def test_a_part_alone_is_named_where_it_is_higher_by_more_than_splits_differ():
    ours, alone = (
        Row(method, "accuracy", mean, 0, 1, None, 0, 10, 1.5)
        for method, mean in (("DGI", 83), ("Positions alone", 92))
    )
    told = (
        "Positions alone: 92.0 against 83.0. To write them: infomax embed RUN --vectors positions"
    )
    assert advice([ours, alone]) == [told]
    assert advice([ours, dataclasses.replace(alone, mean=84.4)]) == []


def test_what_is_no_better_than_the_majority_is_told():
    guess = Row("Majority class", "accuracy", 97.04, 0, 1, None, 0)
    (told,) = advice(
        [Row("DGI", "accuracy", 97.02, 0, 1, None, 0, other_metrics={"AUC": 0.81}), guess]
    )
    assert (
        told
        == "DGI is no better than the majority: 97.0 against 97.0. Its AUC is 0.81, where guessing has 0.50."
    )
    assert advice([Row("DGI", "accuracy", 97.2, 0, 1, None, 0), guess]) == []


def test_a_difference_that_is_not_shown_is_not_told():
    means = (("DGI", 0.4281), ("Random-Init", 0.4283))
    assert advice([Row(method, "micro-F1", mean, 0, 1, None, 0) for method, mean in means]) == []


@pytest.mark.parametrize("options", [{}, {"raw": False}], ids=str)
def test_the_progress_counts_the_rows_and_raw_features_can_be_left_out(model, options):
    codes, part, told = model.graph_.labels["class"], np.arange(40) % 4, []
    split = {name: part == at for at, name in enumerate(("train", "validation", "test"))}
    found = compare(
        model, codes, [split], paper_probe, **options, progress=lambda *step: told.append(step)
    )
    methods = [row.method for row in found][:-1]  # that of the majority takes no time
    total = STEPS_PER_ROW * len(methods)
    assert told[0] == (0, "vectors")
    alone = ["Encoder alone", "Own alone", "Pooled alone", "Positions alone"]
    beside = ["Random-Init", "SVD of the edges", "Averaged features", "Raw features"]
    if not options.get("raw", True):
        beside = beside[:2]
    assert methods == ["DGI", *alone, *beside]
    begun = [(STEPS_PER_ROW * at, name, total) for at, name in enumerate(methods)]
    assert list(dict.fromkeys(told[1:])) == begun  # one split: nothing is told within a row
    assert ("Raw features" in methods) == options.get("raw", True)
    assert not any("Raw" in line for line in advice(found)) or options.get("raw", True)
