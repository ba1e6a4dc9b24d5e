"""Names of nodes, typed and shown: from the tables through a run to what every command says and writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from shell import Outcome, infomax

from infomax import DGI, Embeddings, Graph, read_graph

TRAIN = ("--dim", 8, "--epochs", 3)
N = 24


def put_airports(folder: Path) -> Path:
    """Two rings of airports; four have no name, and two share one."""
    folder.mkdir()
    edges = [f"{row},{(row + step) % 12 + row // 12 * 12}" for row in range(N) for step in (1, 2)]
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    names = ["" if row in (4, 5, 16, 17) else f"Port {row:02d}" for row in range(N)]
    names[3], names[7], names[9] = "Newark Liberty Intl", "Springfield", "Springfield"
    rows = [f"{row},{row // 12},{np.sin(row):.3f},{names[row]}" for row in range(N)]
    (folder / "nodes.csv").write_text("id,size,height,called\n" + "\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on them."""
    folder = tmp_path_factory.mktemp("named")
    done("train", put_airports(folder / "air"), "--name", "called", "--out", folder / "run", *TRAIN)
    return folder / "run"


def done(*words: object) -> Outcome:
    outcome = infomax(*words)
    assert outcome.code == 0, outcome.err
    return outcome


def refused(*words: object) -> str:
    outcome = infomax(*words)
    assert outcome.code == 2, outcome.out
    return outcome.err


def test_neighbours_are_found_and_shown_by_name(run: Path) -> None:
    named, numbered = (
        done("neighbours", run, "newark liberty intl", "-k", 5),
        done("neighbours", run, 3, "-k", 5),
    )
    assert named.out == numbered.out
    assert named.out.startswith("Nearest to 3 (Newark Liberty Intl)\n")
    vectors = DGI.load(run).transform(DGI.load(run).graph_)
    rows, _ = vectors.nearest(np.array([3]), 5)
    assert all(vectors.node_names[row] in named.out for row in rows[0])
    assert '7 ("Springfield"), 9 ("Springfield")' in refused("neighbours", run, "Springfield")
    assert (
        done("neighbours", run, "Newark", "-k", 5).out == numbered.out
    )  # the only name with this word
    assert '8 ("Port 08")' in refused("neighbours", run, "Port")
    assert 'Did you mean "Newark Liberty Intl"?' in refused(
        "neighbours", run, "Newrak Liberty Intl"
    )


def test_why_a_node_is_near_is_told_by_parts(run: Path, tmp_path: Path) -> None:
    vectors = DGI.load(run).transform(DGI.load(run).graph_)
    rows, cosines = vectors.nearest(np.array([3]), 5)
    shares = vectors.shares(3, rows[0])
    assert list(shares) == list(vectors.parts)
    np.testing.assert_allclose(sum(shares.values()), cosines[0], atol=1e-6)
    shown = done("neighbours", run, 3, "-k", 5, "--why").out
    assert all(f" {name} " in shown for name in vectors.parts)
    assert f"{shares['own'][0]:.3f}" in shown
    agreeing = vectors.agreeing(3, rows[0], 1)[0]
    assert set(agreeing) <= {*vectors.parts["own"], *vectors.parts["pooled"]}
    assert "agree in" in shown
    # Below the table, where no cell breaks the names of columns.
    assert f": agree in {agreeing[0]}" in shown
    done("embed", run, "--vectors", "paper", "--out", tmp_path / "v.npz")
    assert "--why: expected vectors of several parts" in refused(
        "neighbours", tmp_path / "v.npz", 3, "--why"
    )


def test_nodes_without_names_say_how_they_get_some(run: Path, tmp_path: Path) -> None:
    done("train", run.parent / "air", "--ignore", "called", "--out", tmp_path / "run", *TRAIN)
    said = refused("neighbours", tmp_path / "run", "Newark Liberty Intl")
    assert "one of 24 ids" in said
    assert "Nodes have no names: train with --name COLUMN." in said


def test_neighbours_of_several_nodes_are_written(run: Path, tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("Port 20\n\n11\n")
    (tmp_path / "some.csv").write_text("id,note\n20,x\n11,y\n")
    shown = done(
        "neighbours", run, "Newark Liberty Intl", "--nodes", tmp_path / "some.txt", "-k", 2
    )
    assert [line for line in shown.out.splitlines() if line.startswith("Nearest")] == [
        "Nearest to 3 (Newark Liberty Intl)", "Nearest to 20 (Port 20)", "Nearest to 11 (Port 11)",
    ]  # fmt: skip
    vectors = DGI.load(run).transform(DGI.load(run).graph_)
    expected = [
        (node, rank, other, pytest.approx(cosine, abs=1e-6))
        for node in (3, 20, 11)
        for rank, (other, cosine) in enumerate(vectors.neighbours(node, 2), 1)
    ]
    for name in ("n.csv", "n.tsv", "n.json", "n.parquet"):
        done(
            "neighbours",
            run,
            3,
            "--nodes",
            tmp_path / "some.csv",
            "-k",
            2,
            "--out",
            tmp_path / name,
        )
        if name == "n.parquet":
            rows = pyarrow.parquet.read_table(tmp_path / name).to_pylist()
        elif name == "n.json":
            rows = json.loads((tmp_path / name).read_text())
        else:
            text = (tmp_path / name).read_text().splitlines()
            rows = list(csv.DictReader(text, delimiter="\t" if name == "n.tsv" else ","))
        assert list(rows[0]) == ["id", "name", "rank", "neighbour", "neighbour_name", "cosine"]
        found = [
            (int(row["id"]), int(row["rank"]), int(row["neighbour"]), float(row["cosine"]))
            for row in rows
        ]
        assert found == expected
        assert rows[0]["name"] == "Newark Liberty Intl"
    names = vectors.node_names
    assert [row["neighbour_name"] for row in rows] == [names[other] for _, _, other, _ in expected]


def test_what_neighbours_cannot_do_is_refused_at_once(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from infomax.training import runs

    monkeypatch.setattr(runs, "vectors_of_run", lambda *_: None)
    monkeypatch.setattr(DGI, "transform", None)  # the work, which none of these may begin
    assert "nodes, --nodes FILE, --vector FILE, or --all" in refused("neighbours", run)
    assert "n.xls" in refused("neighbours", run, 3, "--out", tmp_path / "n.xls")
    assert "--why: expected nodes of the run" in refused(
        "neighbours", run, 3, "--out", tmp_path / "n.csv", "--why"
    )
    assert "--why: expected nodes of the run" in refused(
        "neighbours", run, "--vector", tmp_path / "n.npy", "--why"
    )
    assert "none.txt" in refused("neighbours", run, "--nodes", tmp_path / "none.txt")
    (tmp_path / "empty.txt").write_text("\n")
    assert "a node in every line" in refused("neighbours", run, "--nodes", tmp_path / "empty.txt")
    assert "Springfield" in refused("neighbours", run, 3, "Springfield")
    assert "Did you mean" in refused("neighbours", run, "Newrak Liberty Intl")
    for k in ("0", "25", "-1", "many"):
        assert f"auto, or a number from 1 to 24, found {k}" in refused(
            "cluster", run, "-k", k, "--device", "cpu"
        )
    assert "c.xls" in refused("cluster", run, "--out", tmp_path / "c.xls")
    assert list(tmp_path.iterdir()) == [tmp_path / "empty.txt"]


def test_clusters_are_shown_and_written_with_names(run: Path, tmp_path: Path) -> None:
    shown = done("cluster", run, "-k", 2, "--out", tmp_path / "c.csv").out
    assert "in its middle" in shown
    rows = list(csv.DictReader((tmp_path / "c.csv").read_text().splitlines()))
    assert list(rows[0]) == ["id", "name", "cluster"]
    assert [row["name"] for row in rows[3:5]] == ["Newark Liberty Intl", ""]


@pytest.mark.parametrize("name", ["v.parquet", "v.csv", "v.npz"])
def test_vectors_are_embedded_with_names_and_searched_by_them(
    run: Path, tmp_path: Path, name: str
) -> None:
    done("embed", run, "--out", tmp_path / name)
    assert Embeddings.read(tmp_path / name).node_names.tolist()[3:6] == [
        "Newark Liberty Intl",
        "",
        "",
    ]
    shown = done("neighbours", tmp_path / name, "Newark Liberty Intl", "-k", 3).out
    assert shown == done("neighbours", run, 3, "-k", 3).out


def test_a_graph_folder_keeps_names_from_its_tables_to_its_vectors(
    run: Path, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb", reason="prepare sorts with it")
    tables = run.parent / "air"
    done(
        "prepare",
        tables / "edges.csv",
        tables / "nodes.csv",
        "--name",
        "called",
        "--out",
        tmp_path / "g.graph",
    )
    graph = Graph.open(tmp_path / "g.graph")
    assert graph.feature_names == ("size", "height")
    assert graph.node_names[[3, 4]].tolist() == ["Newark Liberty Intl", ""]
    done(
        "train",
        tmp_path / "g.graph",
        "--out",
        tmp_path / "run",
        "--preset",
        "batches",
        "--steps",
        3,
        "--dim",
        8,
    )
    shown = done("neighbours", tmp_path / "run", "Newark Liberty Intl", "-k", 2)
    assert shown.out.startswith("Nearest to 3 (Newark Liberty Intl)\n")
    parts = tmp_path / "run" / "vectors"
    assert pyarrow.parquet.read_table(parts / "part-00000.parquet").column_names == [
        "id",
        "name",
        "vector",
    ]
    assert '7 ("Springfield"), 9 ("Springfield")' in refused("neighbours", parts, "springfield")
    done("convert", tmp_path / "g.graph", "--out", tmp_path / "back.npz")
    assert read_graph(tmp_path / "back.npz").node_names.tolist() == graph.node_names[:].tolist()


def test_the_exact_search_of_some_nodes_needs_no_option(run: Path) -> None:
    told = refused("neighbours", run, 3, "--exact")
    assert "--exact: expected --all" in told


def test_a_node_table_may_stand_beside_the_edge_table(run: Path, tmp_path: Path) -> None:
    edges, nodes = (run.parent / "air" / name for name in ("edges.csv", "nodes.csv"))
    one, two = (
        done("info", *words, "--name", "called").out
        for words in ((f"{edges},{nodes}",), (edges, nodes))
    )
    assert one.splitlines()[1:] == two.splitlines()[1:]
    done("convert", edges, nodes, "--name", "called", "--out", tmp_path / "g.npz")
    done("train", edges, nodes, "--name", "called", "--out", tmp_path / "run", *TRAIN)
    assert (tmp_path / "run" / "vectors.npy").read_bytes() == (run / "vectors.npy").read_bytes()
    done("embed", tmp_path / "run", edges, nodes, "--out", tmp_path / "v.parquet")
    assert Embeddings.read(tmp_path / "v.parquet").node_names[3] == "Newark Liberty Intl"
    assert "nodes.csy" in refused("info", edges, run.parent / "air" / "nodes.csy")
    assert "no node table" in refused("info", tmp_path / "g.npz", nodes)


def test_the_neighbours_of_all_nodes_are_written(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from infomax.cli import searching as command

    vectors = DGI.load(run).transform(DGI.load(run).graph_)
    exact = done("neighbours", run, "--all", "-k", 3, "--out", tmp_path / "exact.parquet").out
    assert exact.startswith("all pairs compared: exact\n")
    assert "(3 neighbours of 24 nodes)" in exact
    rows = pyarrow.parquet.read_table(tmp_path / "exact.parquet").to_pylist()
    assert [row["id"] for row in rows] == np.repeat(np.arange(N), 3).tolist()
    for node in range(N):
        found = [
            (row["neighbour"], pytest.approx(row["cosine"], abs=1e-5))
            for row in rows
            if row["id"] == node
        ]
        assert [(other, cosine) for other, cosine in vectors.neighbours(node, 3)] == found
    assert (rows[9]["name"], rows[9]["rank"]) == ("Newark Liberty Intl", 1)
    pytest.importorskip("faiss", reason="large graphs are searched in its index")
    monkeypatch.setattr(command, "MOST_EXACT_NODES", 10)
    done("embed", run, "--out", tmp_path / "v.npz")
    for source in (run, tmp_path / "v.npz"):
        searched = done(
            "neighbours", source, "--all", "-k", 3, "--out", tmp_path / "groups.csv"
        ).out
        assert "of 10 lists of similar nodes searched, recall@10" in searched
        assert len((tmp_path / "groups.csv").read_text().splitlines()) == 1 + 3 * N
    assert "both" in refused("neighbours", run, 3, "--all", "--out", tmp_path / "x.csv")
    assert "no --out" in refused("neighbours", run, "--all")
