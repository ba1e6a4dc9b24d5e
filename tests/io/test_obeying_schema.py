"""A schema that a person wrote is obeyed: by it tables are read as it says, and nothing is guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sample_shop
from test_frozen_doors import DOORS, LINKS, PEOPLE, fingerprint, two_files, typed

from infomax import Graph, InputError, read_database, read_graph
from infomax.io.prepare import prepare
from infomax.io.schema.schema_file import to_text, write_schema

READ_AGAIN: dict[str, Any] = {
    "two csv files": lambda path, schema: read_graph(
        path / "edges.csv", path / "nodes.csv", schema=schema
    ),
    "frames": lambda path, schema: Graph.from_frames(
        pd.DataFrame(LINKS), pd.DataFrame(PEOPLE), schema=schema
    ),
    "a typed folder": lambda path, schema: read_graph(path, schema=schema),
    "type columns": lambda path, schema: read_graph(path / "e.csv", path / "n.csv", schema=schema),
    "edges as nodes": lambda path, schema: read_graph(path / "edges.csv", schema=schema),
    "a shop in SQLite": lambda path, schema: read_database(path, schema=schema),
}


@pytest.mark.parametrize("door", READ_AGAIN)
def test_its_own_schema_gives_the_same_graph(door: str, tmp_path: Path) -> None:
    graph = DOORS[door](tmp_path / "door")
    write_schema(graph.schema, tmp_path / "s.json")
    again = READ_AGAIN[door](tmp_path / "door", tmp_path / "s.json")
    assert fingerprint(again) == fingerprint(graph)
    assert again.schema == graph.schema
    assert READ_AGAIN[door](tmp_path / "door", graph.schema).schema == graph.schema


def changed(schema: Any, path: Path, table: str, **changes: Any) -> Path:
    """The file of a schema of which some keys of one table were changed; None takes one away."""
    values = json.loads(to_text(schema))
    of_table = values["tables"][table]
    for name, value in changes.items():
        if name in of_table["columns"]:
            of_table["columns"][name] = value
        else:
            of_table[name] = value
    path.write_text(json.dumps(values, indent=1))
    return path


def test_what_a_person_changes_is_so(tmp_path: Path) -> None:
    graph = two_files(tmp_path / "g", "csv")
    path = changed(
        graph.schema,
        tmp_path / "s.json",
        "nodes",
        age={"role": "feature", "column_type": "category", "from": "said"},
        city={"role": "label"},
        about={"role": "ignored"},
        name={},
    )
    tables = (tmp_path / "g" / "edges.csv", tmp_path / "g" / "nodes.csv")
    again = read_graph(*tables, schema=path)
    assert set(again.labels) == {"section", "city"}
    assert again.node_names is None
    assert "age=20" in again.feature_names
    assert not any(name.startswith(("about", "city")) for name in again.feature_names)
    assert again.schema.tables["nodes"].columns["age"].origin == "said"
    prepare(*tables, out=tmp_path / "g.graph", schema=path)
    stored = Graph.open(tmp_path / "g.graph")
    assert stored.schema == again.schema
    assert stored.feature_names == again.feature_names


def test_a_changed_choice_is_said_and_loses_the_reason_of_the_earlier_one(tmp_path: Path) -> None:
    graph = two_files(tmp_path / "g", "csv")
    write_schema(graph.schema, tmp_path / "s.json")
    values = json.loads((tmp_path / "s.json").read_text())
    columns = values["tables"]["nodes"]["columns"]
    columns["age"]["column_type"] = "category"  # a person changes nothing but the choice
    columns["about"]["role"] = "ignored"
    (tmp_path / "s.json").write_text(json.dumps(values))
    tables = (tmp_path / "g" / "edges.csv", tmp_path / "g" / "nodes.csv")
    schema = read_graph(*tables, schema=tmp_path / "s.json").schema
    described = schema.tables["nodes"].columns
    earlier = graph.schema.tables["nodes"].columns
    for name in ("age", "about"):
        assert earlier[name].reason
        assert (described[name].origin, described[name].reason) == ("said", "")
    assert described["city"] == earlier["city"]
    assert described["city"].reason == "3 different values"


@pytest.mark.parametrize(
    ("changes", "where", "expected"),
    [
        ({"id": {"columns": ["no"]}}, "tables.nodes.id", 'a column "no"'),
        ({"age": {"role": "split"}}, "tables.nodes.columns.age", "split:NAME"),
        ({"city": {"column_type": "number"}}, "", "a finite number"),
        ({"city": {"column_type": "date"}}, "", "a date"),
    ],
)
def test_a_refusal_names_what_to_change(
    changes: dict[str, Any], where: str, expected: str, tmp_path: Path
) -> None:
    graph = two_files(tmp_path / "g", "csv")
    path = changed(graph.schema, tmp_path / "s.json", "nodes", **changes)
    with pytest.raises(InputError) as refused:
        read_graph(tmp_path / "g" / "edges.csv", tmp_path / "g" / "nodes.csv", schema=path)
    told = str(refused.value)
    assert expected in told
    assert where or f"{path}, line" in told.partition("found")[2]
    assert not where or f"{where}: " in told
    assert f"{path}, line" in told


def test_a_new_column_is_not_read_and_a_new_type_is_refused(tmp_path: Path) -> None:
    folder = typed(tmp_path / "g")
    graph = read_graph(folder)
    nodes = folder / "nodes" / "item.csv"
    lines = nodes.read_text().splitlines()
    wider = [f"{line},{n}" for n, line in enumerate(lines[1:])]
    nodes.write_text("\n".join([lines[0] + ',"colour"', *wider]) + "\n")
    again = read_graph(folder, schema=graph.schema)
    assert again.target("item").feature_names == graph.target("item").feature_names
    assert again.schema.tables["item"].columns["colour"].role == "ignored"
    (folder / "nodes" / "shop.csv").write_text("id,x\n1,2\n2,3\n")
    with pytest.raises(InputError, match=r"tables: expected the table .*shop\.csv, found none"):
        read_graph(folder, schema=graph.schema)


def test_roles_keys_and_labels_of_a_database_are_those_of_the_schema(tmp_path: Path) -> None:
    database = sample_shop.sqlite_file(tmp_path / "shop.db")
    graph = read_database(database)
    path = changed(graph.schema, tmp_path / "s.json", "cities", role="nodes", node_type="cities")
    assert "cities" in read_database(database, schema=path).types
    path = changed(graph.schema, tmp_path / "s.json", "orders", keys=[])
    ends = [relation.ends for relation in read_database(database, schema=path).relations]
    assert ("orders", "customer_id", "customers") not in ends
    path = changed(graph.schema, tmp_path / "s.json", "orders", customer_id={"role": "label"})
    with pytest.warns(UserWarning, match="would give it away"):
        again = read_database(database, schema=path)
    assert "customer_id" in again.target("orders").labels
    ends = [relation.ends for relation in again.relations]
    assert ("orders", "customer_id", "customers") not in ends


def test_the_schema_of_other_tables_is_refused(tmp_path: Path) -> None:
    database = sample_shop.sqlite_file(tmp_path / "shop.db")
    graph = two_files(tmp_path / "g", "csv")
    with pytest.raises(InputError, match="the schema of tables with keys"):
        read_database(database, schema=graph.schema)
    with pytest.raises(InputError, match="the schema of tables without keys"):
        read_graph(tmp_path / "g" / "edges.csv", schema=read_database(database).schema)
    with pytest.raises(InputError, match="schema: expected none"):
        read_database(database, schema=graph.schema, like=read_database(database))


@pytest.mark.parametrize(
    ("old_text", "new_text", "message"),
    [
        ('"customers": {', '"custmers": {', r"tables\.custmers: expected a table of .*customers"),
        ('"time": {"column": "ordered"', '"time": {"column": "orderd"',
         r'tables\.orders\.time: expected a column of orders .*found "orderd"\. Did you mean'),
        ('"table": "products"', '"table": "product"',
         r'tables\..*\.keys\.\d: expected a table of the schema .*found "product"\. Did you mean'),
        ('"columns": ["tag_id"]', '"columns": ["tagid"]', r'tables.*found "tagid"\. Did you mean "tag_id"'),
    ],
    ids=["table", "time", "key", "column of a key"],
)  # fmt: skip
def test_what_a_database_does_not_have_is_refused_with_its_line(
    tmp_path: Path, old_text: str, new_text: str, message: str
) -> None:
    path = sample_shop.sqlite_file(tmp_path / "shop.db")
    text = to_text(read_database(path).schema)
    assert old_text in text
    line = text[: text.index(old_text)].count("\n") + 1
    schema_path = tmp_path / "s.json"
    schema_path.write_text(text.replace(old_text, new_text, 1))
    with pytest.raises(InputError, match=rf"s\.json, line {line}, {message}"):
        read_database(path, schema=schema_path)
