"""A schema is written as JSON and read back; what is wrong in it is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from infomax import Graph, InputError
from infomax.io.schema.schema import (
    ColumnSchema,
    KeySchema,
    Schema,
    TableSchema,
    TimeUse,
    TypeColumns,
    Use,
)
from infomax.io.schema.schema_file import from_json, read_schema, to_json, write_schema

ORDERS = TableSchema(
    "facts",
    "orders",
    id=Use(("order.id", "line\nnumber"), "declared"),
    name=Use(("first, name", "last=name"), reason="called so"),
    time=TimeUse("ordered", candidates=("shipped",), reason="the event's own date"),
    keys=(KeySchema(("buyer=a.b",), "customers,", ("id",), origin="said"),),
    columns={
        "price": ColumnSchema("feature", "number", reason="numbers"),
        "note.text": ColumnSchema("ignored", origin="said"),
    },
    reason="no table refers to it",
)
SCHEMA = Schema(
    {
        "orders": ORDERS,
        "customers,": TableSchema(node_type="customers_", time=TimeUse(keys=(("a", "b"), ("c",)))),
        "links": TableSchema("edges", ends=("a", "b", "c"), weight=Use(("count",))),
        "log": TableSchema("ignored", origin="said"),
    },
    TypeColumns(("user", "item"), "how"),
    is_database=True,
)


def test_a_schema_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_schema(SCHEMA, tmp_path / "s.json")
    assert read_schema(tmp_path / "s.json") == SCHEMA
    assert from_json(to_json(SCHEMA)) == SCHEMA


def test_each_column_key_and_use_has_a_line(tmp_path: Path) -> None:
    write_schema(SCHEMA, tmp_path / "s.json")
    lines = (tmp_path / "s.json").read_text().splitlines()
    price = '{"role": "feature", "column_type": "number", "from": "found", "reason": "numbers"}'
    assert f'        "price": {price},' in lines
    assert any(line.strip().startswith('"id": {"columns": ["order.id"') for line in lines)


@pytest.mark.parametrize(
    ("old", "new", "where", "expected"),
    [
        ('"role": "feature"', '"role": "featur"', "tables.orders.columns.price.role", "feature"),
        ('"column_type": "number"', '"column_type": "num"', "columns.price.column_type", "number"),
        ('"role": "facts"', '"roles": "facts"', "tables.orders.roles", "role"),
        ('"from": "declared"', '"from": "told"', "tables.orders.id.from", "declared"),
        ('"is_database": true', '"is_database": 1', "is_database", "true or false"),
        ('"format": 1', '"format": 2', "format", "format 1"),
        ('"table": "customers,", ', "", "tables.orders.keys.0", "a value for table"),
        ('["a", "b", "c"]', '["a", "c"]', "tables.links.ends", "a type"),
    ],
)
def test_a_refusal_names_the_line(
    old: str, new: str, where: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.json"
    write_schema(SCHEMA, path)
    text = path.read_text()
    line = 1 + text[: text.index(old)].count("\n")
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as refused:
        read_schema(path)
    assert where in refused.value.where
    assert refused.value.where.startswith(f"{path}, line {line}")
    assert expected in refused.value.expected


@pytest.mark.parametrize("text", ["", "[", "[]", "{}", '{"format": 1, "format": 1}', "\ufeff{"])
def test_what_is_no_schema_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        read_schema(tmp_path / "s.json")


@pytest.mark.parametrize("is_stored", [False, True], ids=["in memory", "in a folder"])
def test_the_schema_of_a_graph_holds_what_was_learnt_of_its_columns(
    tmp_path: Path, is_stored: bool
) -> None:
    nodes = pd.DataFrame({"id": list("abcd"), "city": ["Rome", "Oslo"] * 2, "size": range(4)})
    edges = pd.DataFrame({"source": list("abc"), "target": list("bcd")})
    graph = Graph.from_frames(edges, nodes)
    if is_stored:
        graph.save(tmp_path / "a.graph")
        graph = Graph.open(tmp_path / "a.graph")

    assert graph.schema is not None
    assert graph.encoding is not None
    columns = graph.schema.tables["nodes"].columns
    city, size = graph.encoding.columns
    assert columns["city"].encoding is city
    assert columns["size"].encoding is size
    assert columns["city"].encoding.feature_names == ["city=Oslo", "city=Rome"]

    # It is stored once, with the nodes.
    assert "encoding" not in json.dumps(to_json(graph.schema))
    assert from_json(to_json(graph.schema)) == graph.schema
