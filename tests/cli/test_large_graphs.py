"""Every command on a graph folder, and an embedding that is killed on its way."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from shell import infomax, refused, write_graph

from infomax import DGI, Embeddings, Graph, memory
from infomax.arrays import parquet_columns as columns
from infomax.reports import analysis, comparison
from infomax.training import embed as engine
from infomax.training import vectors as embedding

pytest.importorskip("duckdb", reason="prepare sorts with it")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph in tables, the same in a graph folder, and a run trained on the folder."""
    place = tmp_path_factory.mktemp("large")
    tables = write_graph(place / "tables")
    edges, nodes = tables / "edges.csv", tables / "nodes.csv"
    assert (
        infomax("prepare", edges, nodes, "--out", place / "g.graph", "--labels", "kind").code == 0
    )
    outcome = infomax(
        "train", place / "g.graph", "--out", place / "run", "--dim", 8, "--device", "cpu"
    )
    assert outcome.code == 0, outcome.err
    assert "preset batches: the graph is read from disk" in outcome.err
    return place


def test_a_graph_folder_is_described(place: Path) -> None:
    folder, tables = (
        infomax("info", place / "g.graph"),
        infomax("info", place / "tables", "--labels", "kind"),
    )
    assert folder.code == 0
    assert folder.out.splitlines()[1:] == tables.out.splitlines()[1:]
    assert "features of neighbours" in folder.out
    assert "resemble each other" in folder.out


def test_a_moved_graph_folder_is_known_by_its_hash(place: Path, tmp_path: Path) -> None:
    out = [tmp_path / "before.npy", tmp_path / "after.npy"]
    assert infomax("embed", place / "run", "--out", out[0]).code == 0
    moved = (place / "g.graph").rename(tmp_path / "moved.graph")
    resumed = ("train", moved, "--out", place / "run", "--dim", 8, "--device", "cpu", "--resume")
    try:
        assert infomax("embed", place / "run", moved, "--out", out[1]).code == 0
        assert "nothing to resume" in infomax(*resumed).out
        refused(infomax("embed", place / "run", "--out", out[1]), "g.graph", "none there")
        about = (moved / "graph.json").read_text()
        (moved / "graph.json").write_text(about.replace('"infomax": "', '"infomax": "1'))
        refused(infomax("embed", place / "run", moved, "--out", out[1]), "g.graph", "none there")
        (moved / "graph.json").write_text(about)
    finally:
        moved.rename(place / "g.graph")
    np.testing.assert_array_equal(*map(np.load, out))


@pytest.mark.parametrize("option", ["--steps", "--batch"])
def test_a_preset_that_follows_from_an_option_is_told(
    place: Path, tmp_path: Path, option: str
) -> None:
    words = (
        "train",
        place / "tables",
        "--labels",
        "kind",
        "--dim",
        4,
        "--out",
        tmp_path / "run",
        option,
        5,
    )
    assert f"preset batches: {option} was given" in infomax(*words).err


def test_all_of_a_graph_folder_is_compared_with_its_hashes(place: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(place / "g.graph", tmp_path / "g.graph"))
    outcome = infomax("info", folder, "--check")
    assert outcome.code == 0, outcome.err
    assert "all as they were written" in outcome.out
    about = json.loads((folder / "graph.json").read_text())
    about["files"]["features.npy"]["sha256"] = "0" * 64
    (folder / "graph.json").write_text(json.dumps(about))
    assert infomax("info", folder).code == 0
    refused(
        infomax("info", folder, "--check"), "features.npy", "the file that graph.json describes"
    )
    refused(infomax("info", place / "tables", "--check"), "a graph folder, for --check")


def test_a_process_ends_without_a_word_of_its_libraries(place: Path, tmp_path: Path) -> None:
    out, tables = (
        tmp_path / "again.graph",
        (place / "tables" / "edges.csv", place / "tables" / "nodes.csv"),
    )
    command = [
        sys.executable,
        "-m",
        "infomax",
        "prepare",
        *tables,
        "--labels",
        "kind",
        "--out",
        out,
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"wrote {out}")
    assert [
        line for line in done.stderr.splitlines() if not line.startswith("prepare: ")
    ] == []  # it may take long


@pytest.mark.parametrize("vectors", ["paper", "recipe"])
@pytest.mark.parametrize("name", ["vectors.parquet", "vectors.npy", "vectors.csv", "parts"])
def test_vectors_are_written_a_block_at_a_time(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, vectors: str
) -> None:
    monkeypatch.setattr(embedding, "NODES_PER_PART", 25)
    monkeypatch.setattr(engine, "NODES_PER_BLOCK_ON_DISK", {"cpu": 10})
    outcome = infomax("embed", place / "run", "--out", tmp_path / name, "--vectors", vectors)
    assert outcome.code == 0, outcome.err
    model = DGI.load(place / "run")
    expected = model.transform(model.graph_, vectors=vectors)
    found = Embeddings.read(tmp_path / name)
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-6)
    if name != "vectors.npy":
        assert found.ids.tolist() == expected.ids.tolist()
    assert {path.name for path in tmp_path.iterdir()} == {name}
    if name == "parts":
        assert len(list((tmp_path / name).glob("part-*.parquet"))) == 3
        assert not (tmp_path / name / embedding.PASSES_FOLDER).exists()


def test_half_precision(place: Path, tmp_path: Path) -> None:
    assert infomax("embed", place / "run", "--out", f"{tmp_path}/half/", "--half").code == 0
    model = DGI.load(place / "run")
    found = Embeddings.read(tmp_path / "half").vectors
    np.testing.assert_allclose(found, model.transform(model.graph_).vectors, rtol=2e-3, atol=1e-4)
    refused(
        infomax("embed", place / "run", "--out", tmp_path / "v.csv", "--half"),
        "--half",
        "a graph folder",
    )


def test_parts_of_other_vectors_are_refused(place: Path, tmp_path: Path) -> None:
    assert infomax("embed", place / "run", "--out", tmp_path / "v").code == 0
    assert (
        infomax("embed", place / "run", "--out", tmp_path / "v").code == 0
    )  # there is nothing left to do
    outcome = infomax("embed", place / "run", "--out", tmp_path / "v", "--vectors", "own")
    refused(outcome, "parts of the same vectors", "Remove the folder")


def test_the_other_commands(place: Path, tmp_path: Path) -> None:
    outcome = infomax("evaluate", place / "run")
    assert outcome.code == 0, outcome.err
    assert "60 labelled nodes" in outcome.out
    new = tmp_path / "new"
    new.mkdir()
    (new / "edges.csv").write_text("source,target\nnew,007\n")
    (new / "nodes.csv").write_text("id,x,y,z\nnew,0.1,0.2,0.3\n")
    outcome = infomax("embed", place / "run", new, "--attach", "--out", tmp_path / "new.csv")
    assert outcome.code == 0, outcome.err
    assert Embeddings.read(tmp_path / "new.csv").ids.tolist() == ["new"]


@pytest.mark.parametrize("name", ["clusters.csv", "clusters.parquet"])
def test_clusters_of_a_graph_folder_are_written_for_all_nodes(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """All nodes get the cluster whose centre is nearest."""
    monkeypatch.setattr(embedding, "NODES_PER_PART", 25)
    monkeypatch.setattr(columns, "IDS_PER_BLOCK", 25)
    outcome = infomax("cluster", place / "run", "-k", 3, "--out", tmp_path / name)
    assert outcome.code == 0, outcome.err
    assert "60 nodes, 3 clusters" in outcome.out
    assert any(feature in outcome.out for feature in ("less of x", "x, "))
    table = (
        arrow_csv.read_csv(tmp_path / name)
        if name.endswith("csv")
        else parquet.read_table(tmp_path / name)
    )
    graph = Graph.open(place / "g.graph")
    assert table["id"].to_pylist() == graph.ids.tolist()
    vectors = DGI.load(place / "run").transform(graph).vectors
    units, found = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
        table["cluster"].to_numpy(),
    )
    centres = np.stack([units[found == number].mean(axis=0) for number in range(3)])
    nearest = np.argmin(((units[:, None] - centres) ** 2).sum(axis=-1), axis=1)
    assert (nearest == found).mean() > 0.9
    assert np.bincount(found)[0] == np.bincount(found).max()


def test_parts_are_scored_by_the_labelled_nodes(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "NODES_PER_PART", 25)
    whole, some = tmp_path / "vectors.parquet", tmp_path / "vectors"
    for out in (whole, some):
        assert infomax("embed", place / "run", "--out", out).code == 0
    few = [f"n{row:02d},{'' if row % 3 == 0 else row % 3}" for row in range(45)]
    (tmp_path / "few.csv").write_text("\n".join(["id,kind", *few, "unknown,1", ""]))
    labels = ["--labels", f"{place / 'g.graph'}:kind"], ["--labels", f"{tmp_path / 'few.csv'}:kind"]
    read: list[int] = []
    real = comparison.score_vectors

    def scored(name: str, vectors: Any, *rest: Any, **progress: Any) -> Any:
        read.append(len(vectors))
        return real(name, vectors, *rest, **progress)

    monkeypatch.setattr(comparison, "score_vectors", scored)
    for labelled in labels:
        scores = []
        for source in (whole, some):
            outcome = infomax("evaluate", source, *labelled, "--json", tmp_path / "score.json")
            assert outcome.code == 0, outcome.err
            row = json.loads((tmp_path / "score.json").read_text())["rows"][0]
            scores.append(
                {key: value for key, value in row.items() if key not in ("method", "seconds")}
            )
        assert scores[0] == scores[1]
    assert read == [60, 60, 60, 30]  # all of a file, the labelled nodes of parts
    refused(infomax("evaluate", some), "evaluate", "labels", "--labels nodes.csv:COLUMN")
    refused(infomax("evaluate", some, "--edges"), "--edges", "a run folder")
    (tmp_path / "few.csv").write_text("id,kind\nx,0\ny,1\n")
    refused(
        infomax("evaluate", some, *labels[1]), "some of these nodes", "none of them among 2 ids"
    )


def test_neighbours_are_searched_on_disk(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "NODES_PER_PART", 25)
    assert infomax("embed", place / "run", "--out", tmp_path / "memory.csv").code == 0
    expected = infomax("neighbours", tmp_path / "memory.csv", "007", "-k", 3)
    assert expected.code == 0, expected.err
    for source in (place / "run", place / "run" / "vectors"):
        assert infomax("neighbours", source, "007", "-k", 3).out == expected.out
    refused(infomax("neighbours", place / "run", "008"), "one of 60 ids", "Did you mean")


def test_vectors_that_a_run_holds_are_read_where_nothing_can_be_written(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may mount the run so."""
    run = shutil.copytree(place / "run", tmp_path / "run", ignore=shutil.ignore_patterns("vectors"))
    searched = "neighbours", run, "007", "-k", 3
    expected = infomax(*searched)
    assert expected.code == 0, expected.err

    def refuse(path: Path, *_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    for writing_function in ("touch", "mkdir", "unlink"):  # root may write everywhere
        monkeypatch.setattr(Path, writing_function, refuse)
    assert infomax(*searched) == expected
    monkeypatch.undo()
    (run / "vectors" / "part-00000.parquet").unlink()
    monkeypatch.setattr(Path, "touch", refuse)
    refused(infomax(*searched), "a folder that can be written", "Permission denied")


def test_what_does_not_fit_into_memory_says_what_would(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tmp_path / "parts"
    assert infomax("embed", place / "run", "--out", parts).code == 0
    monkeypatch.setattr(memory, "free_bytes", lambda: 1000)
    csv, near = tmp_path / "v.csv", tmp_path / "near.csv"
    remedy = "Embed to a .parquet, an .npy or a folder, which takes less; or allow more memory."
    refused(
        infomax("embed", place / "run", "--device", "cpu", "--out", csv), "memory (cpu)", remedy
    )
    remedy = "Ask for some nodes: --nodes FILE; or allow more memory."
    refused(
        infomax("neighbours", parts, "--all", "--out", near), "neighbours --all: expected", remedy
    )
    assert [*tmp_path.iterdir()] == [parts]


def test_map_and_report_of_a_sample_say_so(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["infomax.cli.map"], "MOST_SAMPLED_NODES", 40)
    outcome = infomax("map", place / "run", "--out", tmp_path / "map.html", "--seed", 3)
    drawn = "40 nodes of 60, drawn at random with seed 3; neighbours are among these"
    assert f"map.html ({drawn}, " in outcome.out, outcome.err
    assert f'"drawn": "{drawn}"' in (tmp_path / "map.html").read_text()
    monkeypatch.setattr(sys.modules["infomax.cli.analyse"], "MOST_SAMPLED_NODES", 50)
    monkeypatch.setattr(
        analysis, "analyse", lambda *_, **options: iter([asked.append(options["rows"])][:0])
    )
    asked: list[np.ndarray] = []
    outcome = infomax("analyse", place / "run", "--out", tmp_path / "report")
    drawn = "A sample of 50 nodes, labelled ones first, drawn at random with seed 0, of a graph folder with 60 nodes"
    assert outcome.code == 0, outcome.err
    assert drawn in outcome.err
    assert [len(rows) for rows in asked] == [50]
    assert drawn in (tmp_path / "report" / "report.html").read_text()
    refused(
        infomax("reproduce", "corruption", "--run", place / "run", "--out", tmp_path / "r"),
        "on the whole graph",
    )


def test_vectors_of_a_sample_are_those_of_the_nodes(place: Path) -> None:
    model, rows = DGI.load(place / "run"), np.arange(0, 60, 2)
    pairs = analysis.draw_pairs(model, rows=rows)
    vectors = model.transform(model.graph_, vectors="paper").vectors
    np.testing.assert_allclose(pairs.positives, vectors[rows[pairs.nodes]], atol=1e-5)


def test_embedding_that_is_killed_ends_in_the_same_bytes(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "NODES_PER_PART", 8)
    monkeypatch.setattr(engine, "NODES_PER_BLOCK_ON_DISK", {"cpu": 4})
    code = (
        "import sys, time; from infomax import DGI\n"
        "from infomax.training import vectors as embedding, embed as engine\n"
        "embedding.NODES_PER_PART, engine.NODES_PER_BLOCK_ON_DISK = 8, {'cpu': 4}\n"
        "model = DGI.load(sys.argv[1]); print(flush=True)\n"
        "hold = lambda done, note='', total=None: time.sleep(600 if done > 24 else 0)\n"
        "model.write_vectors(model.graph_, sys.argv[2], progress=hold)\n"
    )
    embed = ("embed", place / "run", "--out")
    assert infomax(*embed, tmp_path / "whole").code == 0
    command = [sys.executable, "-c", code, str(place / "run"), str(tmp_path / "killed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while not (tmp_path / "killed" / "part-00002.parquet").exists():
            time.sleep(0.005)
        process.kill()
    before = {path.name for path in (tmp_path / "killed").glob("part-*")}
    assert "part-00007.parquet" not in before
    kept = (tmp_path / "killed" / "part-00001.parquet").stat().st_mtime_ns
    assert infomax(*embed, tmp_path / "killed").code == 0
    assert (tmp_path / "killed" / "part-00001.parquet").stat().st_mtime_ns == kept
    contents = [
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("whole", "killed")
    ]
    assert contents[0] == contents[1]
    assert len(contents[0]) == -(-Graph.open(place / "g.graph").num_nodes // 8) + 1
