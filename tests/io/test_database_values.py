"""Tables of a key and a name: lookups, and those that a table of two keys joins to many rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from infomax import Graph, read_database
from infomax.io.schema.schema_file import write_schema

FILMS = 60
GENRES = ["Action", "Comedy", "Drama", "Horror"]


def films(folder: Path, genre_count: int = len(GENRES), **more: dict[str, Any]) -> Path:
    """Films, genres, and which film is of which genre; other tables by their names."""
    tables: dict[str, dict[str, Any]] = {
        "film": {"id": list(range(FILMS)), "length": [80.5 + row % 7 for row in range(FILMS)]},
        "genre": {
            "id": list(range(genre_count)),
            "name": [f"{GENRES[row % 4]} {row // 4}" for row in range(genre_count)],
        },
        "film_genre": {
            "film_id": list(range(FILMS)),
            "genre_id": [row % genre_count for row in range(FILMS)],
        },
        **more,
    }
    folder.mkdir()
    for name, columns in tables.items():
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def features_of_genres(graph: Graph) -> list[str]:
    return [name for name in graph.nodes["genre"].feature_names if name.startswith("name=")]


def test_a_name_is_a_category_where_many_rows_have_it_by_a_table_of_two_keys(
    tmp_path: Path,
) -> None:
    graph = read_database(films(tmp_path / "films"))
    assert features_of_genres(graph) == [f"name={genre} 0" for genre in GENRES]
    assert graph.nodes["genre"].node_names is not None
    assert "film-genre" in graph.target("film").paths()
    assert graph.schema is not None
    column = graph.schema.tables["genre"].columns["name"]
    assert (column.role, column.column_type, column.origin) == ("feature", "category", "found")
    assert column.reason == "each row is a value that many rows have"


def test_a_name_that_few_rows_have_is_a_name_alone(tmp_path: Path) -> None:
    graph = read_database(films(tmp_path / "films", genre_count=20))
    assert features_of_genres(graph) == []
    assert "film-genre" not in graph.target("film").paths()


def test_a_table_that_has_more_than_a_name_keeps_its_name_alone(tmp_path: Path) -> None:
    genres = {"id": list(range(4)), "name": GENRES, "age": [1.5, 2.5, 3.5, 4.5]}
    graph = read_database(films(tmp_path / "films", genre=genres))
    assert features_of_genres(graph) == []
    assert "age" in graph.nodes["genre"].feature_names


def test_the_name_stays_a_category_by_the_schema_and_in_later_tables(tmp_path: Path) -> None:
    path = films(tmp_path / "films")
    graph = read_database(path)
    assert graph.schema is not None
    write_schema(graph.schema, tmp_path / "schema.json")
    # Later there are so many genres that none of them would be found a category.
    later = films(tmp_path / "later", genre_count=20)
    for again in (
        read_database(path, schema=tmp_path / "schema.json"),
        read_database(later, like=graph),
    ):
        assert features_of_genres(again)[:4] == features_of_genres(graph)


def test_the_only_column_of_a_table_can_be_said_to_be_a_category(tmp_path: Path) -> None:
    path = films(tmp_path / "films", genre_count=20)
    graph = read_database(path, columns={"genre.name": "category"})
    assert len(features_of_genres(graph)) == 20
