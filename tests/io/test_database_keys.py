"""Keys between tables: how they are found, counted, joined, and said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from infomax import read_database
from infomax.errors import InputError
from infomax.io.choices import UserChoices
from infomax.io.database import read_tables
from infomax.io.database.snapshot import Key, Table


def folder(path: Path, suffix: str = "parquet", **tables: dict[str, list[Any]]) -> Path:
    path.mkdir()
    write = csv.write_csv if suffix == "csv" else parquet.write_table
    for name, columns in tables.items():
        write(pa.table(columns), path / f"{name}.{suffix}")
    return path


def tables_of(path: Path, **choices: Any) -> dict[str, Table]:
    return read_tables(path, UserChoices.of(**choices)).tables


def keys_of(table: Table) -> dict[str, Key]:
    return {key.name: key for key in table.keys}


def table(count: int, first: int = 1) -> dict[str, list[Any]]:
    """Rows with an id and a number."""
    return {"id": list(range(first, first + count)), "size": [n + 0.5 for n in range(count)]}


def test_of_two_tables_that_fit_that_with_fewer_missing_values_is_taken(tmp_path: Path) -> None:
    """Both ``tag`` and ``tags`` are called as tag_id; 2 of 100 values are not in the first, 1 not in the second."""
    path = folder(
        tmp_path / "shop",
        tag=table(98),
        tags=table(99),
        uses={"tag_id": list(range(1, 101)), "cost": [n / 4 for n in range(100)]},
    )
    key = keys_of(tables_of(path)["uses"])["tag_id"]
    assert (key.table, key.filled, key.lost) == ("tags", 100, 1)
    assert key.reason == "tag_id is called after tags, and 99.0 % of its values are there"


@pytest.mark.parametrize(("missing", "is_key"), [(5, True), (6, False), (40, False)])
def test_a_key_is_found_where_19_of_20_values_are_there(
    tmp_path: Path, missing: int, is_key: bool
) -> None:
    values = [*range(1, 101 - missing), *range(1001, 1001 + missing)]
    path = folder(
        tmp_path / "shop",
        users=table(100),
        items=table(100),
        uses={
            "item_id": list(range(1, 101)),
            "user_id": values,
            "cost": [n / 4 for n in range(100)],
        },
    )
    assert ("user_id" in keys_of(tables_of(path)["uses"])) == is_key


def test_a_key_of_two_columns_has_a_value_where_both_have_one(tmp_path: Path) -> None:
    teams = {"year": [1, 1, 2], "team": [1, 2, 1], "wins": [5.5, 6.5, 7.5]}
    players = {
        "id": [1, 2, 3, 4, 5],
        "year": [1, 2, None, 1, None],
        "team": [2, 1, 1, None, None],
        "age": [20.5, 21.5, 22.5, 23.5, 24.5],
    }
    path = folder(tmp_path / "shop", teams=teams, players=players)
    tables = tables_of(path, key=["players.year+team=teams.year+team"])
    key = keys_of(tables["players"])["year+team"]
    assert (key.filled, key.lost) == (2, 0)
    graph = read_database(path, keys=["players.year+team=teams.year+team"])
    (relation,) = graph.relations
    assert relation.edges.num_edges == 2
    assert graph.nodes["teams"].ids.tolist() == ["1|1", "1|2", "2|1"], "the key that is referred to"


def test_a_key_refers_to_one_row(tmp_path: Path) -> None:
    wares = {"id": [1, 2, 3], "code": [7, 7, 8], "price": [1.5, 2.5, 3.5]}
    path = folder(tmp_path / "shop", wares=wares, lines={"what": [7, 8], "amount": [1.5, 2.5]})
    with pytest.raises(
        InputError, match=r"refers to one row, found the same value twice in wares.code"
    ):
        read_database(path, keys=["lines.what=wares.code"])


def test_integers_written_as_floats_are_keys_and_other_numbers_are_not_cut(tmp_path: Path) -> None:
    """12.0 is 12, as pandas writes it beside a gap; 1.05 and 10.0 stay what they are."""
    path = folder(
        tmp_path / "shop",
        "csv",
        wares=table(12),
        lines={"ware_id": ["1.0", "10.0", "12.0", None], "amount": [1.5, 2.5, 3.5, 4.5]},
    )
    graph = read_database(path)
    (relation,) = graph.relations
    ids = graph.nodes["wares"].ids[relation.edges.receivers.indices]
    assert ids.tolist() == [1, 10, 12]
    odd = folder(
        tmp_path / "odd",
        "csv",
        wares=table(12),
        lines={"ware_id": ["1.05", "10.00", "1200"], "amount": [1.5, 2.5, 3.5]},
    )
    with pytest.raises(InputError, match="keys that refer to each other"):
        read_database(odd)


def test_text_and_numbers_are_compared_as_text(tmp_path: Path) -> None:
    """007 is not 7, whichever side is the text."""
    for name, ids, values in (
        ("a", [7, 8, 9], ["7", "8", "007"]),
        ("b", ["7", "8", "009"], [7, 8, 9]),
    ):
        path = folder(
            tmp_path / name,
            wares={"id": ids, "size": [1.5, 2.5, 3.5]},
            lines={"what": values, "amount": [1.5, 2.5, 3.5]},
        )
        graph = read_database(path, keys=["lines.what=wares"])
        (relation,) = graph.relations
        assert relation.edges.num_edges == 2, name


def test_a_key_of_several_columns_is_found_by_names_and_values(tmp_path: Path) -> None:
    """As the archive of baseball has them: a team is told by year, league and name."""
    years, teams = [1985, 1986], ["BOS", "NYA", "DET"]
    rows = [(year, "AL", team) for year in years for team in teams]
    tables: dict[str, dict[str, list[Any]]] = {
        "Teams": {
            "yearID": [row[0] for row in rows],
            "lgID": [row[1] for row in rows],
            "teamID": [row[2] for row in rows],
            "wins": [n + 0.5 for n in range(6)],
        },
        "People": {"playerID": ["a", "b", "c"], "nameFirst": ["Al", "Bo", "Cy"],
                   "nameLast": ["Ash", "Bay", "Cox"], "weight": [80.5, 90.5, 95.5]},
        "Salaries": {
            "yearID": [1985, 1985, 1986, 1986],
            "teamID": ["BOS", "DET", "NYA", "BOS"],
            "lgID": ["AL"] * 4,
            "playerID": ["a", "b", "c", "a"],
            "salary": [10.5, 20.5, 30.5, 40.5],
        },
    }  # fmt: skip
    path = folder(tmp_path / "archive", "csv", **tables)
    keys = keys_of(tables_of(path)["Salaries"])
    assert keys["yearID+lgID+teamID"].target == ("yearID", "lgID", "teamID")
    assert keys["yearID+lgID+teamID"].reason == (
        "its columns are called as those of Teams, and all of its values are there"
    )
    assert keys["playerID"].table == "People"
    graph = read_database(path)
    assert graph.nodes["Teams"].ids[:2].tolist() == ["1985|AL|BOS", "1985|AL|NYA"]
    assert graph.nodes["People"].node_names.tolist() == ["Al Ash", "Bo Bay", "Cy Cox"]
    told = read_database(path, name="People.nameLast+nameFirst")
    assert told.nodes["People"].node_names.tolist() == ["Ash Al", "Bay Bo", "Cox Cy"]
    with pytest.raises(InputError, match=r"--name: expected TABLE.COLUMN.*found \"People.first\""):
        read_database(path, name="People.first")
    named_only = tables_of(path, key=["Salaries.yearID+lgID+teamID=Teams"])
    assert named_only["Teams"].primary == ("yearID", "lgID", "teamID")
    assert "yearID+lgID+teamID" not in keys_of(
        tables_of(path, key=["Salaries.yearID+lgID+teamID=none"])["Salaries"]
    )


def test_ratings_and_tags_of_users_and_movies_do_not_refer_to_each_other(tmp_path: Path) -> None:
    pairs = [(user, film) for user in range(1, 9) for film in range(1, 5)]
    users, films = [user for user, _ in pairs], [film for _, film in pairs]
    path = folder(
        tmp_path / "shop",
        "csv",
        movies={"movieId": [1, 2, 3, 4], "length": [90.5, 91.5, 99.5, 80.5]},
        ratings={"userId": users, "movieId": films, "rating": [n / 4 for n in range(32)]},
        tags={"userId": users, "movieId": films, "votes": [n / 8 for n in range(32)]},
    )
    tables = tables_of(path)
    assert list(keys_of(tables["tags"])) == ["movieId"]
    assert tables["ratings"].role == "facts"
