"""Vectors on disk are searched as those in memory are."""

from __future__ import annotations

import numpy as np
import pytest

from infomax.arrays import parquet_columns as columns
from infomax.embeddings import Embeddings, StoredEmbeddings
from infomax.errors import InputError


@pytest.fixture
def clustered():
    draws = np.random.default_rng(0)
    centres = draws.standard_normal((20, 16))[draws.integers(0, 20, 1500)]
    vectors = (centres + 0.5 * draws.standard_normal((1500, 16))).astype(np.float32)
    vectors[7] = 0
    return Embeddings(vectors, np.arange(10, 1510))


def write_parts(folder, embeddings, rows=400):
    """A folder of parquet parts."""
    folder.mkdir()
    for number in range(-(-len(embeddings) // rows)):
        mask = np.arange(len(embeddings)) // rows == number
        embeddings.part(mask).save(folder / f"part-{number:05d}.parquet")
    return folder


@pytest.mark.parametrize("text", [False, True])
def test_parts_on_disk_answer_as_vectors_in_memory_do(clustered, tmp_path, monkeypatch, text):
    monkeypatch.setattr(columns, "BLOCK_BYTES", 4 * 16 * 90)
    monkeypatch.setattr(columns, "IDS_PER_BLOCK", 70)
    vectors = clustered.vectors.copy()
    vectors[100:1400:50] = vectors[42]  # equally near: in input order
    ids = np.array([f"n{row}" for row in range(1500)], dtype=object) if text else clustered.ids
    memory = Embeddings(vectors, ids)
    disk = StoredEmbeddings.open(write_parts(tmp_path / "parts", memory))
    assert len(disk) == 1500
    for row in (0, 7, 42, 100, 450, 1499):
        for k in (0, 1, 30):
            assert disk.neighbours(ids[row], k) == memory.neighbours(ids[row], k)
    with pytest.raises(InputError, match=r"one of 1,500 ids.*Did you mean"):
        disk.neighbours("n1500" if text else 1510)


def test_parts_that_differ_are_refused(clustered, tmp_path):
    folder = write_parts(tmp_path / "parts", clustered)
    StoredEmbeddings.open(folder)
    Embeddings(clustered.vectors[:, :8], clustered.ids).save(folder / "part-00001.parquet")
    with pytest.raises(InputError, match="columns of the types of"):
        StoredEmbeddings.open(folder)
    damaged = folder / "part-00000.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-3000])
    with pytest.raises(InputError, match="a parquet file that can be read"):
        StoredEmbeddings.open(folder)
