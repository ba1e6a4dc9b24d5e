"""What the rows of a comparison say to a user."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sample_graphs import random_graph

from infomax import DGI
from infomax.evaluation.probes import paper_probe, validated_probe
from infomax.evaluation.results import Row
from infomax.reports.comparison import ROW, advice, compare, variants


@pytest.fixture(scope="module")
def model() -> DGI:
    return DGI(8, epochs=1, smooth=3, own=4, device="cpu").fit(random_graph(40))


def rows(model: DGI, validation: list[float], raw: float) -> list[Row]:
    """Rows whose test scores run against their validation scores, so that a choice on test nodes shows."""
    scored = zip(variants(model), validation, strict=True)
    ours = [Row(name, "accuracy", 90 - value, 0, 1, None, 0, validation=value) for name, value in scored]
    return [*ours, Row("Raw features", "accuracy", raw, 0, 1, None, 0)]


def test_variants_are_those_of_the_run_where_it_has_some(model):
    assert [*variants(model).values()][-1] == {"smooth": 3, "own": 4}
    assert [*variants(model, 2).values()][-1] == {"smooth": 2, "own": 4}
    plain = DGI(8, epochs=0).fit(random_graph(40, f=9))
    assert [*variants(plain).values()][-1] == {"smooth": 5, "own": 9}  # 128, but of nine features


@pytest.mark.parametrize(
    ("validation", "options"),
    [
        ([4, 3, 2, 1], "infomax embed run --smooth 0 --own 0 --out"),
        ([1, 4, 2, 3], "infomax embed run --own 0 --out"),
        ([1, 2, 4, 3], "infomax embed run --smooth 0 --out"),
        ([1, 2, 3, 4], "as this run gives them"),
        ([4, 4, 4, 4], "DGI, plain; "),
    ],
)
def test_validation_nodes_choose_and_the_option_is_told(model, validation, options):
    (line,) = advice(model, rows(model, validation, 50), Path("run"))
    assert line.startswith("Best on validation nodes: DGI")
    assert options in line


def test_raw_features_that_score_higher_are_told(model):
    assert (
        "Raw features alone score higher: 87.0 against 86.0" in advice(model, rows(model, [4, 1, 2, 3], 87), Path())[1]
    )
    plain = [Row("DGI", "accuracy", 30, 0, 1, None, 0), Row("Raw features", "accuracy", 31, 0, 1, None, 0)]
    assert [line.split()[0] for line in advice(model, plain, Path())] == ["Raw", "--variants"]


def test_an_untrained_encoder_that_scores_higher_is_told(model):
    untrained = Row("Random-Init", "accuracy", 31, 0, 1, None, 0)
    for ours, told in ((30, "The encoder before training scores higher: 31.0 against 30.0."), (32, "--variants")):
        assert advice(model, [Row("DGI", "accuracy", ours, 0, 1, None, 0), untrained], Path())[0].startswith(told)


def test_a_difference_that_is_not_shown_is_not_told(model):
    found = [
        Row(method, "micro-F1", mean, 0, 1, None, 0) for method, mean in (("DGI", 0.4281), ("Random-Init", 0.4283))
    ]
    assert [line.split()[0] for line in advice(model, found, Path())] == ["--variants"]


@pytest.mark.parametrize("probe", [validated_probe, paper_probe])
def test_the_validation_score_is_that_of_the_validation_nodes(model, probe):
    codes, part = model.graph_.labels["class"], np.arange(40) % 4
    split = {name: part == at for at, name in enumerate(("train", "validation", "test"))}
    turned = {**split, "test": split["validation"]}
    ours, other = (compare(model, codes, [one], probe, choose=True)[:4] for one in (split, turned))
    assert [100 * row.validation for row in ours] == pytest.approx([row.mean for row in other])
    assert [row.validation for row in ours] == [row.validation for row in other]
    assert all(row.validation is None for row in compare(model, codes, [split], probe))


@pytest.mark.parametrize("options", [{}, {"smooth": 2}, {"choose": True}, {"raw": False}], ids=str)
def test_the_progress_counts_the_rows_and_raw_features_can_be_left_out(model, options):
    codes, part, told = model.graph_.labels["class"], np.arange(40) % 4, []
    split = {name: part == at for at, name in enumerate(("train", "validation", "test"))}
    found = compare(model, codes, [split], paper_probe, **options, progress=lambda *step: told.append(step))
    methods = [row.method for row in found][:-1]  # that of the majority takes no time
    total = ROW * len(methods)
    assert told[0] == (0, "vectors", total)
    begun = [(ROW * at, name, total) for at, name in enumerate(methods)]
    assert list(dict.fromkeys(told[1:])) == begun  # one split: nothing is told within a row
    assert ("Raw features" in methods) == options.get("raw", True)
    assert not any("Raw" in line for line in advice(model, found, Path("run"))) or options.get("raw", True)
