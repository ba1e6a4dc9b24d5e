"""The error travels whole."""

from __future__ import annotations

import copy
import pickle

import pandas as pd
import pytest

from infomax import Graph, InputError
from infomax.errors import InputWarning, format_count, shorten, visible


@pytest.mark.parametrize(
    "send", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize("remedy", ["", "Do that."])
def test_arrives_in_another_process_as_it_left(send, remedy):
    error = InputError("edges.csv", "this", "that", remedy)
    arrived = send(error)
    assert (type(arrived), str(arrived), vars(arrived)) == (InputError, str(error), vars(error))
    assert str(arrived) == "edges.csv: expected this, found that." + (" Do that." if remedy else "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;pwned\x07", r"\x1b]0;pwned\x07"),
        ("a\x00b\x9b31m", r"a\x00b\x9b31m"),
        ("line\nfeed\r", r"line\nfeed\r"),
        ("right \u202eto left", r"right \u202eto left"),
        ("\ud800", r"\ud800"),
        ("é 日本 👩\u200d🔬 \xa0", "é 日本 👩\u200d🔬 \xa0"),
    ],
)
def test_what_acts_on_a_terminal_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert shown in str(InputError("x", "y", shorten(text)))


@pytest.mark.parametrize(
    ("count", "what", "text"),
    [
        (0, "node", "0 nodes"),
        (1, "class", "1 class"),
        (2, "class", "2 classes"),
        (2048, "epoch", "2,048 epochs"),
    ],
)
def test_one_of_a_thing_is_told_as_one(count: int, what: str, text: str) -> None:
    assert format_count(count, what) == text


def test_a_warning_names_the_line_that_called_the_library():
    edges, nodes = (
        pd.DataFrame({"a": [0], "b": [1], "day": [2]}),
        pd.DataFrame({"id": [0, 1], "x": [0.5, 1]}),
    )
    with pytest.warns(InputWarning, match="not used") as caught:
        Graph.from_frames(edges, nodes)
    assert [warning.filename for warning in caught] == [__file__]
