"""A schema is written by info, changed by a person, and obeyed by train."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
from shell import infomax

NODES = {
    "id": list(range(30)),
    "age": [20 + number % 7 for number in range(30)],
    "about": [f"likes {('tea', 'cups')[number % 2]} and item{number}" for number in range(30)],
}
EDGES = {"source": list(range(30)), "target": [(7 * number + 3) % 30 for number in range(30)]}


def two_files(folder: Path) -> None:
    folder.mkdir()
    pd.DataFrame(NODES).to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame(EDGES).to_csv(folder / "edges.csv", index=False)


def test_info_writes_a_schema_that_train_obeys(tmp_path: Path) -> None:
    two_files(tmp_path / "g")
    path = tmp_path / "s.json"
    told = infomax("info", tmp_path / "g", "--schema", path)
    assert told.code == 0
    assert f"--schema {path}" in told.out + told.err
    values = json.loads(path.read_text())
    values["tables"]["nodes"]["columns"]["about"] = {"role": "ignored"}
    path.write_text(json.dumps(values))
    run = tmp_path / "run"
    options = ("--dim", 4, "--epochs", 1, "--out", run)
    assert infomax("train", tmp_path / "g", "--schema", path, *options).code == 0
    config = json.loads((run / "config.json").read_text())
    columns = config["graph"]["schema"]["tables"]["nodes"]["columns"]
    assert columns["about"]["role"] == "ignored"
    values["tables"]["nodes"]["columns"]["age"]["role"] = "featur"
    path.write_text(json.dumps(values, indent=1))
    told = infomax("train", tmp_path / "g", "--schema", path, *options[:-1], tmp_path / "run2")
    assert told.code == 2
    assert "tables.nodes.columns.age.role" in told.err
