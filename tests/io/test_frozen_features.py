"""The same decisions about columns give the same bytes, from one version of the code to the next."""

from __future__ import annotations

import datetime
import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from test_encoding import fitted

ROWS = 240
WORDS = ["oak", "elm", "sun", "owl", "fox", "hen", "rye", "bay", "fig", "ash", "yew", "elk"]
"""Words that all cells of text are made of."""


def numbers_with_gaps() -> list[float | None]:
    return [None if row % 7 == 3 else (row * row % 101) / 8 - 3 for row in range(ROWS)]


def sentence(row: int, length: int) -> str:
    return " ".join(WORDS[(row * row + 5 * place + row * place) % 12] for place in range(length))


def day(row: int) -> datetime.date:
    return datetime.date(1990, 1, 1) + datetime.timedelta(days=37 * row % 9000)


def instant(row: int) -> datetime.datetime:
    return datetime.datetime(2019, 3, 4, 5) + datetime.timedelta(minutes=997 * row)


COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "plain numbers": ("", [row % 13 / 4 for row in range(ROWS)]),
    "numbers with gaps": ("", numbers_with_gaps()),
    "numbers as text": ("", [f"{row % 17}.50" if row % 5 else "NA" for row in range(ROWS)]),
    "mostly zero numbers": ("", [float(row) if row % 20 == 0 else 0.0 for row in range(ROWS)]),
    "booleans": ("", [None if row % 9 == 0 else row % 3 == 0 for row in range(ROWS)]),
    "yes and no": ("", ["yes" if row % 4 else "No" for row in range(ROWS)]),
    "categories": ("", [["Rome", "Oslo", "NA", "Paris"][row * row % 4] for row in range(ROWS)]),
    "categories that a person said": ("category", [str(row % 11) for row in range(ROWS)]),
    "text": ("", [sentence(row, 7) for row in range(ROWS)]),
    "text that a person said": ("text", [sentence(row, 2) for row in range(ROWS)]),
    "text with gaps": ("", [sentence(row, 8) if row % 6 else "" for row in range(ROWS)]),
    "tags": ("", [f"{WORDS[row % 12]}|{WORDS[row % 7]}" for row in range(ROWS)]),
    "lists of words": ("", [[WORDS[row % 12], WORDS[row % 5]] for row in range(ROWS)]),
    "lists of numbers": ("", [[row % 3 / 2, row % 8, -row] for row in range(ROWS)]),
    "days": ("", [day(row).isoformat() for row in range(ROWS)]),
    "instants": ("", [instant(row) if row % 10 else None for row in range(ROWS)]),
    "hours": ("", [f"{row % 24:02d}:30" for row in range(ROWS)]),
    "durations": ("", [datetime.timedelta(seconds=90 * (row % 31)) for row in range(ROWS)]),
}

FROZEN = {
    "plain numbers": "62a7b21a66892a5f",
    "numbers with gaps": "1754b5a38a7f56c5",
    "numbers as text": "57daf29493ae9f2d",
    "mostly zero numbers": "bafd5a8479ce27f6",
    "booleans": "b79b7cbaf76aa957",
    "yes and no": "fd18af964ba3fb76",
    "categories": "d6e86345daa1954c",
    "categories that a person said": "797db8c49ff73275",
    "text": "dec2a5fdbd282b6b",
    "text that a person said": "4c027fed3e36f828",
    "text with gaps": "f0bdaef32d424909",
    "tags": "394f05a48d85129f",
    "lists of words": "2e82aca07e478110",
    "lists of numbers": "a4d65e75d3392ece",
    "days": "c0853c4184ece0ba",
    "instants": "a659d46b4f4071ec",
    "hours": "d0f9dede18486e45",
    "durations": "a8b068692e0a7613",
}
"""Made by commit b652ed99."""


def features_hash(column_type: str, cells: list[Any]) -> str:
    """A hash of the names and values of features; a category beside them has numbers scaled."""
    flags = ["red" if row % 2 else "blue" for row in range(ROWS)]
    table = pa.table({"cells": pa.array(cells), "beside": flags})
    encoding = fitted(table, {"cells": column_type} if column_type else {}, step=97)
    block = encoding.transform(table).toarray()
    assert block.dtype == np.float32

    # Logarithms, sines and cosines differ in their last bit from one machine to another.
    rounded = np.round(block.astype(np.float64) * 2**12).astype("<i8")
    content = "\n".join(encoding.feature_names).encode() + rounded.tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


@pytest.mark.parametrize("name", COLUMNS)
def test_the_features_of_a_column_are_those_of_earlier_versions(name: str) -> None:
    column_type, cells = COLUMNS[name]
    assert features_hash(column_type, cells) == FROZEN[name]
