"""Reading tells how far it is, in percent of all tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_graphs import random_graph, typed_graph

from infomax import memory
from infomax.errors import InputWarning
from infomax.io import reading, sources, text
from infomax.io.choices import UserChoices
from infomax.io.reading import read_record
from infomax.io.writing import write_graph


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("graph.csv", ["edges.csv", "nodes.csv"]),
        ("graph.csv.gz", ["edges.csv.gz", "nodes.csv.gz"]),
        ("graph.parquet", ["edges.parquet", "nodes.parquet"]),
    ],
)
def test_it_rises_and_has_a_total(
    name: str, parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "PIECE", 1 << 10)
    monkeypatch.setattr(sources, "ROWS_PER_BLOCK", 50)
    suffix = name.removeprefix("graph")
    place = f"{tmp_path / f'edges{suffix}'},{tmp_path / f'nodes{suffix}'}"
    write_graph(random_graph(300), place)
    told: list[tuple[int, str, int | None]] = []
    read_record(place, None, UserChoices.of(), progress=lambda *words: told.append(words))
    done, names, totals = zip(*told, strict=True)
    assert sorted({*names}) == parts
    assert {*totals} == {100}
    assert list(done) == sorted(done)
    assert len({*done}) > (
        5 if name.endswith(".parquet") else 1
    )  # of text, some pieces are read ahead
    assert 30 < done[-1] <= 100


def test_of_several_types(tmp_path: Path) -> None:
    write_graph(typed_graph(), tmp_path / "graph")
    told: list[tuple[int, str, int | None]] = []
    read_record(
        tmp_path / "graph", None, UserChoices.of(), progress=lambda *words: told.append(words)
    )
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert {"paper.csv", "paper.cites.paper.csv"} < {name for _, name, _ in told}


@pytest.mark.parametrize("small", [0, reading.SMALL])
def test_tables_that_may_not_fit_are_told_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder, small: int
) -> None:
    """A container may end the process, which could say nothing then. Small tables are read without a question."""
    write_graph(random_graph(50), f"{tmp_path / 'edges.csv'},{tmp_path / 'nodes.csv'}")
    monkeypatch.setattr(reading, "SMALL", small)
    monkeypatch.setattr(memory, "free_bytes", lambda: 1000)
    read_record(tmp_path, None, UserChoices.of())
    told = [str(one.message) for one in recwarn if one.category is InputWarning]
    assert len(told) == (small == 0)
    for message in told:
        assert message.startswith(f"{tmp_path}: tables of ")
        assert (
            "and 1.0 kB are free. If they do not fit, make a graph folder of them: infomax prepare."
            in message
        )
