"""A schema is written by info, changed by a person, and obeyed by train."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
from sample_shop import sqlite_file
from shell import infomax, refused

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


def test_info_overwrites_no_schema_that_differs(tmp_path: Path) -> None:
    two_files(tmp_path / "g")
    path = tmp_path / "s.json"
    assert infomax("info", tmp_path / "g", "--schema", path).code == 0
    assert infomax("info", tmp_path / "g", "--schema", path).code == 0
    edited = path.read_text().replace('"column_type": "text"', '"column_type": "category"')
    assert edited != path.read_text()
    path.write_text(edited)
    remedy = f"infomax info {tmp_path / 'g'} --obey {path}"
    refused(infomax("info", tmp_path / "g", "--schema", path), str(path), "differs", remedy)
    assert path.read_text() == edited


def test_info_checks_an_edited_schema_without_training(tmp_path: Path) -> None:
    two_files(tmp_path / "g")
    path = tmp_path / "s.json"
    infomax("info", tmp_path / "g", "--schema", path)
    assert "Chosen by you: none" in infomax("info", tmp_path / "g", "--obey", path).out
    values = json.loads(path.read_text())
    values["tables"]["nodes"]["columns"]["about"]["role"] = "ignored"
    path.write_text(json.dumps(values))
    outcome = infomax("info", tmp_path / "g", "--obey", path)
    assert "Chosen by you: nodes.about ignored" in outcome.out
    values["tables"]["nodes"]["columns"]["age"]["column_type"] = "nummer"
    path.write_text(json.dumps(values))
    refused(infomax("info", tmp_path / "g", "--obey", path), "columns.age.column_type", "number")


def test_runs_show_of_their_schemas_what_differs(tmp_path: Path) -> None:
    two_files(tmp_path / "g")
    path = tmp_path / "s.json"
    infomax("info", tmp_path / "g", "--schema", path)
    options = ("--schema", path, "--dim", 4, "--epochs", 1, "--out")
    assert infomax("train", tmp_path / "g", *options, tmp_path / "run1").code == 0
    values = json.loads(path.read_text())
    values["tables"]["nodes"]["columns"]["about"] = {"role": "ignored"}
    path.write_text(json.dumps(values))
    assert infomax("train", tmp_path / "g", *options, tmp_path / "run2").code == 0

    result = tmp_path / "c.json"
    assert infomax("compare", tmp_path / "run1", tmp_path / "run2", "--json", result).code == 0
    settings = json.loads(result.read_text())["settings"]
    assert settings["schema.nodes.about"] == ["feature+text", "ignored"]
    assert not any("age" in name or isinstance(settings[name][0], dict) for name in settings)

    card = (tmp_path / "run2" / "README.md").read_text()
    assert "| tables | nodes (nodes), edges (edges) |" in card
    assert "nodes.about ignored" in card
    assert "{" not in card


def test_ignore_and_ignored_say_the_same_in_options_and_in_a_schema(tmp_path: Path) -> None:
    shop = sqlite_file(tmp_path / "shop.sqlite")
    ignored = [
        infomax("info", shop, "--table", f"staff={role}", "--column", f"customers.age={role}").out
        for role in ("ignore", "ignored")
    ]
    assert ignored[0] == ignored[1]
    assert "nothing: staff" in ignored[0]

    path = tmp_path / "s.json"
    infomax("info", shop, "--schema", path)
    values = json.loads(path.read_text())
    values["tables"]["staff"]["role"] = "ignore"
    values["tables"]["customers"]["columns"]["age"]["role"] = "ignore"
    path.write_text(json.dumps(values))
    outcome = infomax("info", shop, "--obey", path)
    assert outcome.code == 0, outcome.err
    assert "nothing: staff, as you chose" in outcome.out
    assert "customers.age ignored" in outcome.out


def test_roles_times_names_and_keys_that_were_changed_are_said(tmp_path: Path) -> None:
    shop = sqlite_file(tmp_path / "shop.sqlite")
    path = tmp_path / "s.json"
    infomax("info", shop, "--schema", path)
    values = json.loads(path.read_text())
    tables = values["tables"]
    tables["cities"]["role"] = "nodes"
    tables["orders"]["time"] = {**tables["orders"]["time"], "column": ""}
    tables["products"]["name"]["columns"] = ["zip"]
    tables["lines"]["keys"] = tables["lines"]["keys"][1:]
    path.write_text(json.dumps(values))

    outcome = infomax("info", shop, "--obey", path)
    assert outcome.code == 0, outcome.err
    chosen = " ".join(outcome.out.partition("Chosen by you: ")[2].split())
    assert {"cities.role nodes", "orders.time", "products.name zip"} <= set(chosen.split(", "))
    assert "time of orders" not in outcome.out
    again = tmp_path / "again.json"
    assert infomax("info", shop, "--obey", path, "--schema", again).code == 0
    known = json.loads(again.read_text())["tables"]
    assert (known["cities"]["from"], "reason" in known["cities"]) == ("said", False)
    assert known["products"]["name"] == {"columns": ["zip"], "from": "said"}
    assert (known["orders"]["time"]["from"], "reason" in known["orders"]["time"]) == ("said", False)
    assert known["lines"]["keys"][0]["from"] != "said"
