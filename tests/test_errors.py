"""The error travels whole."""

from __future__ import annotations

import copy
import pickle

import pytest

from infomax import InputError


@pytest.mark.parametrize("send", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"])
@pytest.mark.parametrize("remedy", ["", "Do that."])
def test_arrives_in_another_process_as_it_left(send, remedy):
    error = InputError("edges.csv", "this", "that", remedy)
    arrived = send(error)
    assert (type(arrived), str(arrived), vars(arrived)) == (InputError, str(error), vars(error))
    assert str(arrived) == "edges.csv: expected this, found that." + (" Do that." if remedy else "")
