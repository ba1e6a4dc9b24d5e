"""The index of a large run: near the exact answer, kept, and never believed when damaged."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from shell import infomax, write_graph

from infomax import index
from infomax.arrays import parquet_columns as columns
from infomax.embeddings import Embeddings, StoredEmbeddings
from infomax.errors import InputError
from infomax.training import runs

pytest.importorskip("faiss", reason="the index is made with it")


@pytest.fixture
def clustered():
    draws = np.random.default_rng(0)
    centres = draws.standard_normal((20, 16))[draws.integers(0, 20, 1500)]
    vectors = (centres + 0.5 * draws.standard_normal((1500, 16))).astype(np.float32)
    vectors[7] = 0
    return Embeddings(vectors, np.arange(10, 1510))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / runs.MODEL).write_bytes(b"weights")
    (tmp_path / runs.GRAPH).write_bytes(b"graph")
    return tmp_path


def never():
    raise AssertionError("embedded again")


def test_index_answers_as_exact_search_does_and_says_how_nearly(clustered, folder):
    found = index.open_index(folder, clustered.ids, lambda: clustered)
    assert 0.9 < found.recall <= 1
    told = f"of 77 lists of similar nodes searched, recall@10 {found.recall:.2f} against exact, on 400 sampled nodes"
    assert str(found) == f"index: {found.lists.nprobe} {told}"
    same = [
        found.neighbours(node, 5)[0] == clustered.neighbours(node, 5)[0] for node in range(100, 200)
    ]
    assert np.mean(same) > 0.9
    assert all(len(found.neighbours(node, 5)) == 5 for node in (10, 17))
    with pytest.raises(InputError, match="one of 1,500 ids"):
        found.neighbours(9)


def test_index_puts_pairs_where_exact_search_does(clustered, folder):
    asked = [0.0, 0.5, 0.9, 0.99]
    found = index.open_index(folder, clustered.ids, lambda: clustered)
    assert found.standing(asked).tolist() == pytest.approx(
        clustered.standing(asked).tolist(), abs=1e-4
    )
    parts = folder / "parts"
    stored = StoredEmbeddings.open(write_parts(parts, clustered))
    halved = index.open_stored_index(parts, stored, make=True)
    assert stored.standing(asked).tolist() == clustered.standing(asked).tolist()
    assert halved is not None
    assert halved.standing(asked).tolist() == pytest.approx(
        clustered.standing(asked).tolist(), abs=0.002
    )


def test_index_is_kept_until_the_model_changes(clustered, folder):
    first = index.open_index(folder, clustered.ids, lambda: clustered)
    second = index.open_index(folder, clustered.ids, never)
    assert second.recall == first.recall
    assert second.neighbours(42) == first.neighbours(42)
    (folder / runs.MODEL).write_bytes(b"others")
    with pytest.raises(AssertionError, match="embedded again"):
        index.open_index(folder, clustered.ids, never)


@pytest.mark.parametrize("name", [index.INDEX, index.NOTES])
def test_damaged_index_is_built_anew(clustered, folder, name):
    index.open_index(folder, clustered.ids, lambda: clustered)
    damaged = folder / name
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    found = index.open_index(folder, clustered.ids, lambda: clustered)
    assert found.neighbours(42, 1) == clustered.neighbours(42, 1)
    index.open_index(folder, clustered.ids, never)


@pytest.mark.parametrize("recall", [None, "high", 2.0, float("nan"), [1]], ids=str)
def test_notes_without_a_recall_are_not_trusted(clustered, folder, recall):
    index.open_index(folder, clustered.ids, lambda: clustered)
    notes = json.loads((folder / index.NOTES).read_text()) | {"recall": recall}
    (folder / index.NOTES).write_text(
        json.dumps({name: value for name, value in notes.items() if value is not None})
    )
    assert 0.9 < index.open_index(folder, clustered.ids, lambda: clustered).recall <= 1


def test_a_run_that_cannot_be_written_is_searched_exactly(clustered, folder, monkeypatch):
    def denied(self: Path, **_: object) -> None:  # even to root
        raise PermissionError(13, "Permission denied")

    before = sorted(folder.iterdir())
    monkeypatch.setattr(Path, "touch", denied)
    told: list[bool] = []
    assert index.open_index(folder, clustered.ids, lambda: clustered, tell=told.append) is clustered
    assert told == [False]
    assert sorted(folder.iterdir()) == before


def test_command_indexes_large_runs_only(tmp_path, monkeypatch):
    run = tmp_path / "run"
    graph = write_graph(tmp_path / "small")
    monkeypatch.setattr(runs, "STORED", 50)
    assert (
        infomax("train", graph, "--labels", "kind", "--out", run, "--dim", 8, "--epochs", 2).code
        == 0
    )
    exact = infomax("neighbours", run, "Z")
    assert not (run / index.INDEX).exists()
    monkeypatch.setattr(index, "LIMIT", 50)
    first, second = infomax("neighbours", run, "Z"), infomax("neighbours", run, "Z")
    assert (run / index.INDEX).exists()
    assert first.out == second.out  # the kept index answers as the fresh one did
    assert (
        first.out.splitlines()[:5] == exact.out.splitlines()[:5]
    )  # the title, the header and the nearest of all
    # An index may miss a neighbour, and its threads decide which: it says how many it finds.
    recall = re.search(
        r"index: .* recall@10 (\d\.\d\d) against exact, on 60 sampled nodes\n", first.out
    )
    assert recall is not None
    assert float(recall[1]) > 0.9
    assert "searching 60 vectors; an index is built only once" in first.err
    assert "built" not in second.err


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
    monkeypatch.setattr(columns, "ID_ROWS", 70)
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


def test_index_of_parts_is_built_when_asked_for_and_mapped_from_then_on(
    clustered, tmp_path, monkeypatch
):
    folder = write_parts(tmp_path / "parts", clustered)
    disk = StoredEmbeddings.open(folder)
    assert index.open_stored_index(folder, disk, make=False) is None
    first = index.open_stored_index(folder, disk, make=True)
    assert 0.9 < first.recall <= 1
    same = [
        first.neighbours(node, 5)[0] == clustered.neighbours(node, 5)[0] for node in range(100, 200)
    ]
    assert np.mean(same) > 0.9
    assert sorted(path.name for path in folder.iterdir() if path.name[0] == "_") == [
        f"_{index.INDEX}",
        f"_{index.NOTES}",
    ]
    monkeypatch.setattr(index, "build", never)
    assert index.open_stored_index(folder, disk, make=True).neighbours(42) == first.neighbours(42)
    part = folder / "part-00001.parquet"
    part.write_bytes(part.read_bytes())  # other vectors, as far as one can tell
    assert index.open_stored_index(folder, disk, make=False) is None


def test_a_damaged_or_foreign_index_of_parts_is_none(clustered, tmp_path):
    """Whatever its notes say: one that is loaded all the same ends the process, or answers for other vectors."""
    folder, other = (write_parts(tmp_path / name, clustered) for name in ("parts", "other"))
    turned = Embeddings(np.roll(clustered.vectors, 1, axis=0), clustered.ids)
    third = write_parts(tmp_path / "third", turned.part(np.arange(1500) < 1499))
    for place in (folder, other, third):
        index.open_stored_index(place, StoredEmbeddings.open(place), make=True)
    kept, notes = folder / f"_{index.INDEX}", folder / f"_{index.NOTES}"
    good, said, stat = kept.read_bytes(), notes.read_text(), kept.stat()
    flipped = bytearray(good)
    flipped[1000::97] = bytes(255 - byte for byte in flipped[1000::97])
    forged = json.loads(said) | {"hash": hashlib.sha256(b"").hexdigest()}
    for content, claimed in (
        (b"", said),
        (good[: len(good) // 2], said),
        (bytes(len(good)), said),
        (bytes(flipped), said),
        ((third / f"_{index.INDEX}").read_bytes(), said),
        (good, "{"),
        (good, "[" * 100_000),
        (good, '{"source": 1, "state": {"a": []}}'),
        (b"", json.dumps(forged)),  # the hash of a file that cannot be loaded
        (
            (third / f"_{index.INDEX}").read_bytes(),
            None,
        ),  # all is as it should be, but for the number of vectors
    ):
        kept.write_bytes(content)
        os.utime(kept, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        if claimed is None:
            claimed = json.dumps(
                forged | {"state": index.file_state(kept), "hash": index.checksum(kept)}
            )
        notes.write_text(claimed)
        assert index.open_stored_index(folder, StoredEmbeddings.open(folder), make=False) is None
    assert (
        infomax("neighbours", folder, 42, "-k", 1).out
        == infomax("neighbours", other, 42, "-k", 1, "--exact").out
    )
    again = infomax("neighbours", folder, 42, "-k", 1, "--index")
    assert again.code == 0, again.err
    assert "recall@10" in again.out
    assert infomax("neighbours", folder, 42, "-k", 1).out == again.out


def test_an_index_with_other_times_is_hashed_once(clustered, tmp_path, monkeypatch):
    folder = write_parts(tmp_path / "parts", clustered)
    disk = StoredEmbeddings.open(folder)
    first = index.open_stored_index(folder, disk, make=True)
    os.utime(folder / f"_{index.INDEX}", ns=(1, 1))
    hashed, real = [], index.checksum
    monkeypatch.setattr(index, "checksum", lambda path: hashed.append(path.name) or real(path))
    for _ in range(3):
        assert index.open_stored_index(folder, disk, make=False).neighbours(42) == first.neighbours(
            42
        )
    assert hashed == [f"_{index.INDEX}"]
