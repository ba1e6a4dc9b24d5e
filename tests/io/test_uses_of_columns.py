"""One option says what any column is used for: the same as those that say it one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sample_shop

from infomax import InputError, read_database, read_graph
from infomax.cli.options import SAID_BY_COLUMN, TABLE_OPTIONS, table_options
from infomax.io.choices import UserChoices

NODES = "code,x,sort,town,title\n" + "\n".join(
    f"n{n},{n * 0.5},{'ab'[n % 2]},{'pq'[n % 2]},Node {n}" for n in range(12)
)
EDGES = "how,from,to,often\n" + "\n".join(
    f"{'rs'[n % 2]},n{n},n{(n + 2) % 12},{1 + n % 3}" for n in range(12)
)


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    return tmp_path / "edges.csv", tmp_path / "nodes.csv"


OF_ONE_TYPE: dict[str, Any] = {
    "id": "code",
    "name": "title",
    "groups": "town",
    "source": "from",
    "target": "to",
    "weight": "often",
}
OF_TYPES: dict[str, Any] = {
    "id": "code",
    "source": "from",
    "target": "to",
    "node_type": "sort",
    "edge_type": "how",
}


@pytest.mark.parametrize("options", [OF_ONE_TYPE, OF_TYPES], ids=["one type", "several types"])
def test_columns_says_what_single_options_say(
    options: dict[str, Any], tables: tuple[Path, Path]
) -> None:
    words = {"groups": "group", "node_type": "type", "edge_type": "relation"}
    uses = {column: words.get(option, option) for option, column in options.items()}
    assert UserChoices.of(columns=uses) == UserChoices.of(**options)
    graph = read_graph(*tables, columns=uses)
    assert graph.schema == read_graph(*tables, **options).schema
    assert graph.types == (("a", "b") if "node_type" in options else ())
    again = read_graph(*tables, like=graph)
    assert again.num_edges == graph.num_edges
    assert again.types == graph.types


def test_times_may_be_said_so(tmp_path: Path) -> None:
    database = sample_shop.sqlite_file(tmp_path / "shop.db")
    graph = read_database(database, columns={"orders.ordered": "time"})
    assert graph.schema.tables["orders"].time.origin == "said"


def test_two_columns_for_one_use_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'source: expected one column.*"a", "b"'):
        UserChoices.of(columns={"a": "source"}, source="b")
    with pytest.raises(InputError, match="source: expected one edge table"):
        read_database(sample_shop.sqlite_file(tmp_path / "s.db"), columns={"a": "source"})


def test_help_does_not_list_what_column_says() -> None:
    listed = {
        name
        for name, annotation in table_options().items()
        if not annotation.__metadata__[0].hidden
    }
    assert listed == TABLE_OPTIONS.keys() - {*SAID_BY_COLUMN}
    assert not any(annotation.__metadata__[0].hidden for annotation in TABLE_OPTIONS.values())
