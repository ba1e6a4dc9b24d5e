"""Vectors of the rows of a database as of a day: RelBench's three questions about Formula 1 drivers, without labels.

    python recipes/relational.py FOLDER             # with drivers.csv, results.csv, races.csv and so on
    python recipes/relational.py FOLDER --frozen    # all test questions see the database as of 2010-01-01

For a driver and a day: will he not finish a race within 30 days, qualify among the first three within
30 days, and where will he finish on average within 60 days? Questions are made as RelBench 1.1 makes
them, with a time stamp each 30 or 60 days: validation from 2005-01-01, test from 2010-01-01, and the
time of a race is its hour, of qualifying a day before.

**Two protocols**, whose scores must not be compared. *Rolling*: each question sees the days before it.
*Frozen*: all questions of a split see the database as of the split's first day, as the baselines of
RelBench do. A training question then sees the database as of a day that lies some time before the
question: that time is drawn from those of the test, times the *staleness* of the settings. One column
more says how long it is.

Vectors are those of ``infomax embed RUN FOLDER --at questions``, of a graph read as of 2005-01-01: no
label is used before the last step, scikit-learn's gradient boosting on the training questions. They
are plain columns, so nothing is trained for them; the two rows of an encoder are the rolling ones'.

Settings of each protocol were chosen by the scores of its own validation questions, which ``--choose``
prints. Positions are fitted by the absolute error, which is what is scored. Steps, rate and leaves of
the boosting were not tuned. Figures: docs/explanation/relational.md. ``OMP_WAIT_POLICY=PASSIVE`` helps
where the machine is busy: threads of scikit-learn that wait for each other take several times as long.
Before the absolute error was tried, test scores had been seen (rolling).
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import mean_absolute_error, roc_auc_score

from infomax import DGI, Graph, read_database

Tables = dict[str, pd.DataFrame]
"""The tables of the database by name, or the questions of a task by split."""

VALIDATION, TEST, STAMPS = pd.Timestamp("2005-01-01"), pd.Timestamp("2010-01-01"), 40
FROZEN_DAYS = {"validation": VALIDATION, "test": TEST}
"""The day as of which all questions of a split see the database, where it is frozen."""
TASKS = {
    "did not finish": ("results", 30),
    "top 3": ("qualifying", 30),
    "position": ("results", 60),
}
COUNTED = {"did not finish": (11_411, 702), "top 3": (1_353, 726), "position": (7_453, 760)}
SESSIONS = ("fp1", "fp2", "fp3", "quali", "sprint")
DROPPED = {  # as RelBench does: names, addresses, texts, and what is mostly missing
    "circuits": ["url"],
    "constructors": ["url", "constructorRef"],
    "drivers": ["number", "driverRef", "url", "code", "forename", "surname"],
    "qualifying": ["q1", "q2", "q3"],
    "races": [
        "url",
        "time",
        *(f"{name}_date" for name in SESSIONS),
        *(f"{name}_time" for name in SESSIONS),
    ],
    "results": ["positionText", "time", "fastestLapTime", "fastestLapSpeed"],
    "driver_standings": ["positionText"],
    "constructor_standings": ["positionText"],
}
LEFT_OUT = {
    "events": r"latest \w+:|mean of \w+\.",
    "constructor": r"(latest \w+: )?mean of \w+\.",
    "all": "$^",
}
"""The columns that are left out, by their names. Events: the means over the driver's own events
stay; constructor: those of his latest constructor, too; all: those of other rows that events refer
to, too."""


class Settings(NamedTuple):
    """What was chosen by validation questions."""

    columns: str
    """A name of `LEFT_OUT`."""
    share: float
    """The share of the columns that a split of a tree looks at."""
    staleness: float = 0.0
    """How far back training questions look, of the time that test questions do; 0: not at all."""


CHOSEN = {
    "did not finish": Settings("events", 1.0),
    "top 3": Settings("events", 0.2),
    "position": Settings("constructor", 0.2),
}
CHOSEN_FROZEN = {
    "did not finish": Settings("all", 1.0, 1.0),
    "top 3": Settings("all", 1.0, 1.0),
    "position": Settings("events", 0.2, 1.0),
}
PUBLISHED_FROZEN = {
    "LightGBM on the drivers' table": (68.9, 73.9, 4.17),
    "RDL, supervised": (72.6, 75.5, 4.02),
    "RelGNN, supervised": (75.3, 85.7, 3.80),
}
PUBLISHED_ROLLING = {"KumoRFM (probably rolling)": (82.4, 91.1, 2.75)}


def main() -> None:
    """Print the table of a protocol, or with ``--choose`` its validation scores of all settings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--frozen", action="store_true", help="questions see nothing after their split's first day"
    )
    parser.add_argument(
        "--choose", action="store_true", help="print validation scores of each setting, and stop"
    )
    parser.add_argument("--epochs", type=int, default=None, help="of the training; not of --frozen")
    options = parser.parse_args()

    database = tables(options.folder)
    known = read(database, as_of="2005-01-01").target("drivers")
    later = read(database, like=known).target("drivers")
    asked = {task: questions(database, task) for task in TASKS}
    if options.frozen:
        run_frozen(known, later, asked, choose=options.choose)
    else:
        run_rolling(known, later, asked, choose=options.choose, epochs=options.epochs)


def tables(folder: Path) -> Tables:
    """The tables with the time of each row, as RelBench has them."""
    database = {
        path.stem: pd.read_csv(path, na_values="\\N") for path in sorted(folder.glob("*.csv"))
    }
    missing = {"drivers", "races", "results", "qualifying"} - database.keys()
    if missing:
        name = sorted(missing)[0]
        message = f"{folder}: expected drivers.csv, races.csv and so on, found no {name}.csv."
        raise SystemExit(message)
    races = database["races"]
    races["date"] = pd.to_datetime(races["date"] + " " + races["time"].fillna("00:00:00"))
    race_times = races.set_index("raceId")["date"]
    database["results"]["when"] = database["results"]["raceId"].map(race_times)
    qualifying = database["qualifying"]
    qualifying["date"] = qualifying["raceId"].map(race_times) - pd.Timedelta(days=1)
    return database


def questions(database: Tables, task: str) -> Tables:
    """The drivers that a question is about, its day and its answer, by split."""
    table_name, days = TASKS[task]
    rows = database[table_name].rename(columns={"when": "date"})
    window_length = pd.Timedelta(days=days)
    race_times = database["races"]["date"]
    last_validation = min(VALIDATION + window_length * (STAMPS - 1), TEST - window_length)
    last_test = min(TEST + window_length * (STAMPS - 1), race_times.max() - window_length)
    stamps = {
        "train": pd.date_range(VALIDATION - window_length, race_times.min(), freq=-window_length),
        "validation": pd.date_range(VALIDATION, last_validation, freq=window_length),
        "test": pd.date_range(TEST, last_test, freq=window_length),
    }

    by_split = {}
    for split, split_stamps in stamps.items():
        parts = []
        for stamp in split_stamps:
            window = rows[(rows["date"] > stamp) & (rows["date"] <= stamp + window_length)]
            if split != "test":
                window = window[window["date"] <= TEST]
            answer = answers_of(window, task)
            parts.append(
                pd.DataFrame({"driverId": answer.index, "date": stamp, "answer": answer.to_numpy()})
            )
        by_split[split] = pd.concat(parts, ignore_index=True)
    assert (len(by_split["train"]), len(by_split["test"])) == COUNTED[task]
    return by_split


def answers_of(window: pd.DataFrame, task: str) -> pd.Series:
    """The answer of each driver who has a row in a window of time."""
    by_driver = window.groupby("driverId")
    if task == "position":
        return by_driver["positionOrder"].mean()
    if task == "top 3":
        return (by_driver["position"].min() <= 3).astype(int)
    return (window["statusId"] != 1).groupby(window["driverId"]).any().astype(int)


def read(database: Tables, **options: object) -> Graph:
    """The graph of the tables, by their keys; a result and a standing have the time of their
    race."""
    with tempfile.TemporaryDirectory() as folder:
        for name, table in database.items():
            kept = table.drop(columns=[*DROPPED.get(name, ()), "when"], errors="ignore")
            kept.to_csv(Path(folder) / f"{name}.csv", index=False)
        return read_database(folder, **options)


def days_seen(asked: Tables, staleness: float, seed: int = 0) -> dict[str, pd.Series]:
    """As of which day each question sees the database, where it is frozen, by split.

    How far a training question looks back is drawn from the days of test questions, never from
    their answers.

    Args:
        asked: the questions by split.
        staleness: a factor of how far training questions look back.
        seed: decides what is drawn.
    """
    rng = np.random.default_rng(seed)
    looked_back = (asked["test"]["date"] - TEST).to_numpy()
    training_days = asked["train"]["date"]
    drawn = pd.to_timedelta(rng.choice(looked_back, len(training_days)))
    days = {"train": training_days - drawn * staleness}
    for split, day in FROZEN_DAYS.items():
        days[split] = pd.Series(day, index=asked[split].index)
    return days


def frozen_vectors(
    model: DGI, later: Graph, asked: Tables, staleness: float
) -> tuple[dict[str, NDArray[np.float32]], list[str]]:
    """Vectors of questions as of the days that they see, and the names of their columns.

    The last column is the number of days between the day that a question sees and its own.
    """
    vectors = {}
    names: list[str] = []
    for split, days in days_seen(asked, staleness).items():
        answers = model.at(asked[split].assign(date=days), later)
        looked_back = (asked[split]["date"] - days).dt.total_seconds().to_numpy() / 86_400
        vectors[split] = np.column_stack([answers.vectors, looked_back]).astype(np.float32)
        names = [*answers.names, "days since"]
    return vectors, names


def fitted_score(
    task: str, vectors: dict[str, np.ndarray], asked: Tables, on: str, share: float
) -> float:
    """The score of gradient boosting on the training questions: AUC in %, or the mean absolute
    error."""
    settings = {
        "max_iter": 150,
        "learning_rate": 0.03,
        "max_leaf_nodes": 15,
        "max_features": share,
        "random_state": 0,
    }
    training_answers, truth = asked["train"]["answer"], asked[on]["answer"]
    if task == "position":
        boosting = HistGradientBoostingRegressor(loss="absolute_error", **settings)
        boosting.fit(vectors["train"], training_answers)
        return mean_absolute_error(truth, boosting.predict(vectors[on]))
    boosting = HistGradientBoostingClassifier(**settings)
    boosting.fit(vectors["train"], training_answers)
    return 100 * roc_auc_score(truth, boosting.predict_proba(vectors[on])[:, 1])


def columns_without(names: list[str], pattern: str) -> list[int]:
    """The positions of columns whose names do not match."""
    return [column for column, name in enumerate(names) if not re.match(pattern, name)]


def of_columns(vectors: dict[str, np.ndarray], columns: list[int]) -> dict[str, np.ndarray]:
    """Some columns of the vectors of each split."""
    return {split: values[:, columns] for split, values in vectors.items()}


def run_frozen(known: Graph, later: Graph, asked: dict[str, Tables], *, choose: bool) -> None:
    """Print the table of the frozen protocol, or the validation scores of its settings."""
    model = DGI(64, epochs=0).fit(known)  # columns as of a day need no trained encoder
    if choose:
        for staleness in (0.0, 0.5, 1.0):
            made = {
                task: frozen_vectors(model, later, parts, staleness)
                for task, parts in asked.items()
            }
            for columns, pattern in LEFT_OUT.items():
                for share in (1.0, 0.2):
                    scores = [
                        fitted_score(
                            task,
                            of_columns(vectors, columns_without(names, pattern)),
                            asked[task],
                            "validation",
                            share,
                        )
                        for task, (vectors, names) in made.items()
                    ]
                    show(f"validation, {columns}, share {share}, staleness {staleness}", scores)
        return

    show_head("frozen: nothing after 2010-01-01")
    for name, published in PUBLISHED_FROZEN.items():
        show(f"{name} (published)", list(published))
    table_scores = []
    chosen_scores = []
    for task, settings in CHOSEN_FROZEN.items():
        vectors, names = frozen_vectors(model, later, asked[task], settings.staleness)
        own_columns = columns_without(names, r"(latest \w+: )?(mean|number) of")
        own = of_columns(vectors, own_columns)
        table_scores.append(fitted_score(task, own, asked[task], "test", 1.0))
        kept = of_columns(vectors, columns_without(names, LEFT_OUT[settings.columns]))
        chosen_scores.append(fitted_score(task, kept, asked[task], "test", settings.share))
    show("the drivers' table and age", table_scores)
    show("ours, one vector per question", chosen_scores)


def run_rolling(
    known: Graph, later: Graph, asked: dict[str, Tables], *, choose: bool, epochs: int | None
) -> None:
    """Print the table of the rolling protocol, or the validation scores of its settings."""
    model = DGI(64, epochs=epochs).fit(known)
    answers = {
        task: {split: model.at(part, later) for split, part in parts.items()}
        for task, parts in asked.items()
    }
    names = list(answers["position"]["test"].names)
    vectors = {
        task: {split: answer.vectors for split, answer in by_split.items()}
        for task, by_split in answers.items()
    }
    if choose:
        for columns, pattern in LEFT_OUT.items():
            kept = columns_without(names, pattern)
            for share in (1.0, 0.2):
                scores = [
                    fitted_score(
                        task, of_columns(vectors[task], kept), asked[task], "validation", share
                    )
                    for task in TASKS
                ]
                show(f"validation, {columns} ({len(kept)}), share {share}", scores)
        return

    show_head("rolling: each question sees the days before it")
    for name, published in PUBLISHED_ROLLING.items():
        show(f"{name} (published)", list(published))
    own = columns_without(names, r"(latest \w+: )?(mean|number) of")
    own_scores = [
        fitted_score(task, of_columns(vectors[task], own), asked[task], "test", 1.0)
        for task in TASKS
    ]
    show("the drivers' table and age", own_scores)
    untrained = DGI(64, epochs=0).fit(known)
    show(
        "Random-Init, one vector per driver as of 2005",
        driver_scores(untrained, known, asked, "paper"),
    )
    show("trained, one vector per driver as of 2005", driver_scores(model, known, asked, None))
    chosen_scores = []
    for task, settings in CHOSEN.items():
        kept = columns_without(names, LEFT_OUT[settings.columns])
        of_task = of_columns(vectors[task], kept)
        chosen_scores.append(fitted_score(task, of_task, asked[task], "test", settings.share))
    show("ours, one vector per question", chosen_scores)


def driver_scores(
    model: DGI, known: Graph, asked: dict[str, Tables], parts: str | None
) -> list[float]:
    """Scores of the vectors of the drivers as of 2005, the same for all questions about a
    driver."""
    embeddings = model.transform(known, vectors=parts)
    row_of_driver = {driver: row for row, driver in enumerate(embeddings.ids.tolist())}
    scores = []
    for task, by_split in asked.items():
        vectors = {
            split: embeddings.vectors[part["driverId"].map(row_of_driver)]
            for split, part in by_split.items()
        }
        scores.append(fitted_score(task, vectors, by_split, "test", 1.0))
    return scores


def show_head(protocol: str) -> None:
    """The head of a table."""
    print(f"{protocol:52} {'dnf':>6} {'top 3':>6} {'pos.':>6}   AUC, AUC, mean absolute error")


def show(name: str, scores: list[float]) -> None:
    """A row: AUC, AUC, mean absolute error."""
    print(f"{name:52} {scores[0]:6.1f} {scores[1]:6.1f} {scores[2]:6.2f}", flush=True)


if __name__ == "__main__":
    main()
