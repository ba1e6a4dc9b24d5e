"""Data sets by name."""

import pytest

from infomax import load_dataset
from infomax.datasets import DATASETS, fetch_dataset
from infomax.errors import InputError


def test_the_names() -> None:
    assert {"debian", "cora", "citeseer", "pubmed"} <= set(DATASETS)
    assert all(DATASETS.values())


def test_case_does_not_matter() -> None:
    assert load_dataset("Debian").num_nodes == load_dataset("debian").num_nodes


def test_what_comes_with_the_package_needs_no_files() -> None:
    assert fetch_dataset("debian") == []


@pytest.mark.parametrize("call", [load_dataset, fetch_dataset])
def test_an_unknown_name_lists_the_known_ones(call: object) -> None:
    with pytest.raises(InputError, match=r'debian, cora.*found "Coar"\. Did you mean "cora"\?'):
        call("Coar")
