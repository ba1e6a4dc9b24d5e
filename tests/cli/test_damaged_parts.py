"""Parts of vectors that are damaged, or of another run: told by every command that reads them, or written again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet
from shell import Outcome, infomax, refused, write_graph

from infomax import Embeddings
from infomax.embeddings import StoredEmbeddings
from infomax.errors import InputError
from infomax.training import embed as engine
from infomax.training import vectors as embedding

pytest.importorskip("duckdb", reason="prepare sorts with it")

DAMAGED = "part-00001.parquet"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three parts of some row groups each."""
    monkeypatch.setattr(embedding, "NODES_PER_PART", 25)
    monkeypatch.setattr(engine, "NODES_PER_BLOCK_ON_DISK", {"cpu": 10})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph folder and two runs on it, of other seeds."""
    place = tmp_path_factory.mktemp("parts")
    tables = write_graph(place / "tables")
    edges, nodes = tables / "edges.csv", tables / "nodes.csv"
    assert (
        infomax("prepare", edges, nodes, "--out", place / "g.graph", "--labels", "kind").code == 0
    )
    for seed, name in enumerate(("run", "other")):
        words = (
            "train",
            place / "g.graph",
            "--out",
            place / name,
            "--dim",
            8,
            "--steps",
            3,
            "--seed",
            seed,
        )
        outcome = infomax(*words, "--device", "cpu")
        assert outcome.code == 0, outcome.err
    return place


@pytest.fixture
def vectors(place: Path, tmp_path: Path) -> Path:
    """The parts of the first run."""
    if not (place / "vectors").exists():
        assert embedded(place, place / "vectors").code == 0
    return Path(shutil.copytree(place / "vectors", tmp_path / "vectors"))


def embedded(place: Path, out: Path, run: str = "run", *options: object) -> Outcome:
    return infomax("embed", place / run, "--out", out, "--device", "cpu", *options)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rest(content: bytes) -> int:
    """Where the footer of a parquet file begins."""
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def in_the_vectors(content: bytes) -> bytes:
    """A bit of the last vector, just before the footer."""
    return flipped(content, rest(content) - 2)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "vectors": in_the_vectors,
}


@pytest.mark.parametrize(
    ("damage", "finished"), [*((damage, True) for damage in DAMAGES), ("vectors", False)]
)
def test_embed_writes_a_damaged_part_again(
    place: Path, vectors: Path, damage: str, finished: bool
) -> None:
    whole = contents(vectors)
    (vectors / DAMAGED).write_bytes(DAMAGES[damage](whole[DAMAGED]))
    if not finished:
        (vectors / "part-00002.parquet").unlink()
    kept = (vectors / "part-00000.parquet").stat().st_mtime_ns
    outcome = embedded(place, vectors)
    assert outcome.code == 0, outcome.err
    assert f"{DAMAGED}: found " in outcome.err
    assert "computed again" in outcome.err
    assert contents(vectors) == whole
    assert (vectors / "part-00000.parquet").stat().st_mtime_ns == kept


@pytest.mark.parametrize("damage", DAMAGES)
def test_readers_refuse_a_damaged_part(place: Path, vectors: Path, damage: str) -> None:
    (vectors / DAMAGED).write_bytes(DAMAGES[damage]((vectors / DAMAGED).read_bytes()))
    for words in (
        ("neighbours", vectors, "Z"),
        ("evaluate", vectors, "--labels", f"{place / 'g.graph'}:kind"),
    ):
        refused(infomax(*words), DAMAGED, "infomax embed")
    if damage != "vectors":
        with pytest.raises(InputError, match=DAMAGED):
            StoredEmbeddings.open(vectors)
    with pytest.raises(InputError, match=DAMAGED):
        Embeddings.read(vectors)


def test_a_row_is_read_without_the_others(vectors: Path) -> None:
    """Only the row group that holds it: damage elsewhere is no obstacle."""
    (vectors / DAMAGED).write_bytes(in_the_vectors((vectors / DAMAGED).read_bytes()))
    found = StoredEmbeddings.open(vectors)
    assert len(found.vectors[[0, 59]]) == 2
    with pytest.raises(InputError, match=DAMAGED):
        found.vectors[[49]]


def test_commands_on_a_run_write_a_damaged_part_again(place: Path, tmp_path: Path) -> None:
    run = shutil.copytree(place / "run", tmp_path / "run")
    for number, words in enumerate((("neighbours", run, "Z"), ("cluster", run, "-k", 2))):
        part, expected = run / "vectors" / f"part-0000{number}.parquet", infomax(*words)
        assert expected.code == 0, expected.err
        part.write_bytes(b"")
        outcome = infomax(*words)
        assert (outcome.code, outcome.out) == (0, expected.out)
        assert f"{part.name}: found" in outcome.err
        part.write_bytes(in_the_vectors(part.read_bytes()))
        refused(infomax(*words), part.name, "infomax embed")
        assert embedded(tmp_path, run / "vectors").code == 0


def test_vectors_of_two_models_are_not_mixed(place: Path, vectors: Path, tmp_path: Path) -> None:
    assert embedded(place, tmp_path / "other", "other").code == 0
    before, foreign = contents(vectors), (tmp_path / "other" / DAMAGED).read_bytes()
    (vectors / DAMAGED).write_bytes(foreign)
    for about in (True, False):  # the footers alone tell
        refused(infomax("neighbours", vectors, "Z"), DAMAGED, "another run", "Move it")
        refused(embedded(place, vectors), DAMAGED, "another run", "Move it")
        assert (vectors / DAMAGED).read_bytes() == foreign
        if about:
            (vectors / "_parts.json").unlink()
    (vectors / DAMAGED).write_bytes(before[DAMAGED])
    assert infomax("neighbours", vectors, "Z").code == 0
    assert embedded(place, vectors).code == 0
    assert contents(vectors) == before
    Embeddings.read(vectors).save(vectors / "part-00003.parquet")
    refused(embedded(place, vectors), "part-00003.parquet", "another file")


@pytest.mark.parametrize("described", [True, False])
def test_a_part_with_columns_of_other_types_is_refused(vectors: Path, described: bool) -> None:
    """Another program may keep the footer's note, and change the types."""
    part = vectors / DAMAGED
    table = parquet.read_table(part)
    ids = table["id"].cast(pyarrow.large_string())
    footer = parquet.read_metadata(part).metadata
    notes = {key: value for key, value in footer.items() if key.startswith(b"infomax")}
    table = table.set_column(0, "id", ids).replace_schema_metadata(notes)
    parquet.write_table(table, part)
    if not described:
        (vectors / "_parts.json").unlink()
    for read in (StoredEmbeddings.open, Embeddings.read):
        with pytest.raises(
            InputError, match=rf"{DAMAGED}: expected columns of the types of .*00000"
        ):
            read(vectors)


def test_parts_in_each_others_place_are_told(place: Path, vectors: Path) -> None:
    whole = contents(vectors)
    (vectors / DAMAGED).write_bytes(whole["part-00000.parquet"])
    refused(infomax("neighbours", vectors, "Z"), DAMAGED, "nodes from 0 to 25")
    assert "nodes from 0 to 25" in embedded(place, vectors).err
    assert contents(vectors) == whole


@pytest.mark.parametrize("described", [True, False])
def test_parts_that_lack_are_refused(vectors: Path, described: bool) -> None:
    (vectors / DAMAGED).unlink()
    if not described:
        (vectors / "_parts.json").unlink()
    for read in (StoredEmbeddings.open, Embeddings.read):
        with pytest.raises(
            InputError, match=r"expected 3 parts, found 2\. Repeat the infomax embed"
        ):
            read(vectors)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "[" * 100_000, '{"nodes": "60", "nodes_per_part": 25}', '{"nodes": 60, "nodes_per_part": 0}',
     '{"nodes": 60}', '{"nodes": 1e999, "nodes_per_part": 1}'],
    ids=range(8),
)  # fmt: skip
def test_a_damaged_description_is_refused(place: Path, vectors: Path, text: str) -> None:
    (vectors / "_parts.json").write_text(text)
    refused(infomax("neighbours", vectors, "Z"), str(vectors))
    refused(embedded(place, vectors), str(vectors))
    assert (vectors / "_parts.json").read_text() == text


def test_a_part_says_what_it_holds(place: Path, vectors: Path) -> None:
    said = [
        json.loads(parquet.read_metadata(path).metadata[b"infomax"])
        for path in sorted(vectors.glob("part-*"))
    ]
    assert [(note["first"], note["stop"], note["nodes"]) for note in said] == [
        (0, 25, 60),
        (25, 50, 60),
        (50, 60, 60),
    ]
    assert len({note["run"] for note in said}) == 1


def test_passes_of_another_run_are_not_used(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of a pass that a killed embedding left beside a single file."""
    out, expected = tmp_path / "v.parquet", tmp_path / "expected.parquet"
    assert embedded(place, expected, "other").code == 0

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(embedding.Writer, "write", killed)
        assert embedded(place, out, "run").code == 130
    assert any(path.name.startswith(".v.parquet") for path in tmp_path.iterdir())
    assert embedded(place, out, "other").code == 0
    assert out.read_bytes() == expected.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["expected.parquet", "v.parquet"]
