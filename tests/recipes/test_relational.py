"""RelBench's questions about Formula 1 drivers: their numbers, and that nothing later reaches a vector."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from recipes.relational import (
    TASKS,
    TEST,
    VALIDATION,
    days_seen,
    fitted_score,
    questions,
    read,
    tables,
)

from infomax import DGI

DATA = Path(os.environ.get("INFOMAX_DATA", ""), "relational", "f1")
pytestmark = pytest.mark.skipif(
    "INFOMAX_DATA" not in os.environ or not DATA.is_dir(),
    reason="needs relational/f1: set INFOMAX_DATA",
)


@pytest.fixture(scope="module")
def found() -> dict[str, pd.DataFrame]:
    return tables(DATA)


def test_the_questions_are_as_many_as_relbench_has(found: dict[str, pd.DataFrame]) -> None:
    asked = {task: questions(found, task) for task in TASKS}
    assert [len(parts["train"]) for parts in asked.values()] == [11_411, 1_353, 7_453]
    assert [len(parts["test"]) for parts in asked.values()] == [702, 726, 760]
    for parts in asked.values():
        assert parts["train"]["date"].max() < VALIDATION <= parts["validation"]["date"].min()
    failed = asked["did not finish"]["train"]["answer"]
    assert failed.isin([0, 1]).all()
    assert 0.5 < failed.mean() < 1


def test_no_later_row_and_no_answer_reaches_a_vector(found: dict[str, pd.DataFrame]) -> None:
    races = found["races"].query("2001 <= year <= 2006")
    few = {
        name: table[table["raceId"].isin(races["raceId"])]
        if "raceId" in table and name != "races"
        else table
        for name, table in (found | {"races": races}).items()
    }
    known = read(few, as_of=str(VALIDATION.date())).target("drivers")
    model = DGI(8, epochs=1).fit(known)
    after = set(races.loc[races["date"] > VALIDATION, "raceId"])
    changed = {name: table.copy() for name, table in few.items()}
    for name, column in (
        ("results", "positionOrder"),
        ("results", "statusId"),
        ("qualifying", "position"),
    ):
        late = changed[name]["raceId"].isin(after)
        changed[name].loc[late, column] = changed[name].loc[late, column].to_numpy()[::-1]
    drivers = few["results"].loc[~few["results"]["raceId"].isin(after), "driverId"].unique()
    rows = np.arange(4 * len(drivers))
    days = pd.to_datetime(["2003-03-01", "2003-09-01", "2004-04-01", "2005-01-01"])
    asked = pd.DataFrame(
        {"driverId": np.repeat(drivers, 4), "date": np.tile(days, len(drivers)), "answer": rows % 2}
    )
    answers = [model.at(asked, read(one, like=known).target("drivers")) for one in (few, changed)]
    answers.append(model.at(asked.assign(answer=0), read(few, like=known).target("drivers")))
    assert len({one.vectors.tobytes() for one in answers}) == 1
    names = answers[0].names
    assert "answer" not in " ".join(names)
    split = {"train": answers[0].vectors[rows < 80], "test": answers[0].vectors[rows >= 80]}
    score = fitted_score(
        "did not finish", split, {"train": asked[rows < 80], "test": asked[rows >= 80]}, "test", 1.0
    )
    assert 0 <= score <= 100  # the labels are used here alone


def test_a_folder_without_the_tables_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"found no drivers\.csv"):
        tables(tmp_path)


def test_frozen_questions_see_no_day_after_their_splits_first(
    found: dict[str, pd.DataFrame],
) -> None:
    parts = questions(found, "position")
    stale, fresh = days_seen(parts, 1.0), days_seen(parts, 0.0)
    assert (stale["test"] == TEST).all()
    assert (stale["validation"] == VALIDATION).all()
    pd.testing.assert_series_equal(fresh["train"], parts["train"]["date"], check_names=False)
    looked_back = parts["train"]["date"] - stale["train"]
    assert (looked_back >= pd.Timedelta(0)).all()
    # As far back as in the test, where questions run on for years.
    of_test = parts["test"]["date"] - TEST
    assert set(looked_back) <= set(of_test)
    assert abs(looked_back.mean() - of_test.mean()) < pd.Timedelta(days=30)
    assert days_seen(parts, 1.0)["train"].equals(stale["train"])
