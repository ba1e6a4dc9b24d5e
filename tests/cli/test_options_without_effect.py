"""Options that would have no effect on what is named are refused, in place of being passed over."""

from __future__ import annotations

import pytest
from shell import DIM, infomax, refused

from infomax.embeddings import Embeddings


@pytest.fixture(scope="module")
def vectors_file(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "vectors.parquet"
    assert infomax("embed", run, "--out", path).code == 0
    return path


def test_vectors_of_the_same_model_are_searched_and_those_of_another_are_refused(
    folder, run, vectors_file, tmp_path
):
    own = infomax("neighbours", run, "--vector", vectors_file, "-k", 1)
    assert own.code == 0, own.err

    other_run = tmp_path / "other"
    words = ("--labels", "kind", "--dim", DIM, "--epochs", 1, "--seed", 5)
    assert infomax("train", folder, *words, "--out", other_run).code == 0
    other_file = tmp_path / "other.parquet"
    assert infomax("embed", other_run, "--out", other_file).code == 0
    assert Embeddings.read(other_file).shape == Embeddings.read(vectors_file).shape

    for source in (run, vectors_file):
        outcome = infomax("neighbours", source, "--vector", other_file)
        refused(outcome, "other.parquet: expected vectors of the model of", "those of another")

    # A file without a hash is taken: nothing says that it is of another model.
    plain_file = tmp_path / "other.npy"
    assert infomax("embed", other_run, "--out", plain_file).code == 0
    assert infomax("neighbours", run, "--vector", plain_file, "-k", 1).code == 0


def test_a_type_of_vectors_in_a_file_is_refused(vectors_file):
    expected = "--type: expected a run of several types of nodes, found the vectors"
    refused(infomax("neighbours", vectors_file, "Z", "--type", "dogs"), expected)
    refused(infomax("evaluate", vectors_file, "--type", "dogs"), expected)


@pytest.mark.parametrize("name", ["nonsense", "cpu:1", "cuda:x", "cuda:", "auto:1", ""])
def test_what_is_no_device_is_refused_by_commands_that_need_none(folder, run, tmp_path, name):
    update = ("update", run, folder, "--labels", "kind", "--out", tmp_path / "later")
    for words in (("neighbours", run, "Z"), update, ("cluster", run)):
        outcome = infomax(*words, "--device", name)
        refused(outcome, f"device {name}", "auto, cpu, cuda, cuda:1, ...")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--ignore", "x"), "--ignore"),
        (("--id", "x"), "--id"),
        (("--edge-type", "x"), "--edge-type"),
        (("--labels", "kind"), "--labels"),
        (("--undirected",), "--undirected"),
        (("nodes.csv",), "NODES"),
    ],
)
def test_choices_about_tables_are_refused_beside_a_run(run, words, option):
    refused(infomax("info", run, *words), "no choices about tables beside a run", option)
    assert infomax("info", run).code == 0
