"""Graphs of several types of nodes on the command line: a run for each type, and what is made of them."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from collections import Counter

import numpy as np
import pytest
from shell import infomax

from infomax import DGI, Embeddings, InputError, read_graph
from infomax.embeddings import StoredEmbeddings
from infomax.errors import format_count
from infomax.training import model_file, spectral_positions


def printed_text(outcome) -> str:
    """All that a command printed, on one line."""
    return " ".join((outcome.out + outcome.err).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ten papers with features and a label, five authors and two venues without."""
    path = tmp_path_factory.mktemp("typed")
    draw = np.random.default_rng(0)
    (path / "nodes").mkdir()
    (path / "edges").mkdir()
    rows = [f"{i},{draw.normal():.3f},{draw.normal() + i % 2:.3f},{'ab'[i % 2]}" for i in range(60)]
    (path / "nodes" / "paper.csv").write_text("id,x,y,topic\n" + "\n".join(rows))
    by = [f"{i},{j}" for i in range(60) for j in {i % 5, (i * 7) % 20}]
    (path / "edges" / "paper.by.author.csv").write_text("source,target\n" + "\n".join(by))
    (path / "edges" / "paper.at.venue.csv").write_text(
        "source,target\n" + "\n".join(f"{i},{i % 12}" for i in range(60))
    )
    return path


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    result = infomax(
        "train", str(folder), "--out", str(out), "--epochs", "5", "--dim", "8", "--labels", "topic"
    )
    assert "paths: paper-venue-paper, paper-author-paper" in printed_text(result)
    assert "60 of type paper with 2 features" in printed_text(result)
    assert "20 of type author with positions" in printed_text(result)
    assert "labels: topic" in printed_text(result)
    return out


def test_every_type_has_a_run(run):
    assert sorted(path.name for path in run.iterdir() if path.is_dir()) == [
        "author",
        "paper",
        "venue",
    ]
    assert json.loads((run / "runs.json").read_text()) == {"runs": ["author", "paper", "venue"]}
    model = DGI.load(run / "author")
    assert model.graph_.node_type == "author"
    assert list(model.preset_.paths) == [
        "author-paper",
        "author-paper-venue",
    ]  # which has no features


def test_vectors_of_each_type_have_its_ids(run, tmp_path):
    infomax("embed", str(run), "--out", str(tmp_path / "vectors.parquet"))
    for node_type, count in {"author": 20, "paper": 60, "venue": 12}.items():
        vectors = Embeddings.read(tmp_path / f"vectors.{node_type}.parquet")
        assert len(vectors) == count
        assert (len(vectors.parts["encoder"]), list(vectors.parts)[-1]) == (8, "positions")
        assert set(vectors.ids.tolist()) == set(range(count))
        loaded = DGI.load(run / node_type)
        np.testing.assert_array_equal(loaded.transform(loaded.graph_).vectors, vectors.vectors)


def test_positions_are_computed_once_for_all_types_and_seeds(folder, run, tmp_path, monkeypatch):
    made = []

    def fit_spectral_positions(*arguments, **settings):
        made.append(arguments)
        return spectral_positions.fit_spectral_positions(*arguments, **settings)

    monkeypatch.setattr(
        "infomax.estimator.vector_parts.fit_spectral_positions", fit_spectral_positions
    )
    several = {"all": (), "seeds": ("--runs", 2, "--type", "paper"), "alone": ("--type", "author")}
    for name, words in several.items():
        settings = (
            "--out",
            tmp_path / name,
            "--epochs",
            "5",
            "--dim",
            "8",
            "--labels",
            "topic",
            *words,
        )
        assert infomax("train", folder, *settings).code == 0
    assert len(made) == 3
    same = [
        (run / node_type, tmp_path / "all" / node_type)
        for node_type in ("author", "paper", "venue")
    ]
    same += [
        (run / "paper", tmp_path / "seeds/paper/seed-0"),
        (run / "author", tmp_path / "alone/author"),
    ]
    for one, two in same:
        for name in ("positions.npy", "vectors.npy"):
            assert (one / name).read_bytes() == (two / name).read_bytes()


def test_positions_of_other_edges_are_not_taken(folder, tmp_path):
    """Those that each type has without the edges that are held out."""
    graph = read_graph(folder, labels="topic")
    one = DGI(8, epochs=1).fit(graph.target("paper"))
    for later in (graph, graph.hold_out_edges(0.2)):
        model = DGI(8, epochs=1).fit(later.target("author"), positions_of=one)
        shares_positions = model.fitted_.positions is one.fitted_.positions
        assert shares_positions == (later is graph)


def test_every_type_is_taken_to_a_later_graph(folder, run, tmp_path):
    later = tmp_path / "later"
    shutil.copytree(folder, later)
    with (
        (later / "nodes/paper.csv").open("a") as nodes,
        (later / "edges/paper.by.author.csv").open("a") as edges,
    ):
        nodes.write("\n60,1,2,a")
        edges.write("\n60,3\n60,77")
    result = infomax("update", run, later, "--out", tmp_path / "run2", "--labels", "topic")
    told = printed_text(result)
    assert result.code == 0, told
    for node_type, count, new in (("author", 21, 1), ("paper", 61, 1), ("venue", 12, 0)):
        assert f"{format_count(new, 'new node')}, 0 gone; " in told
        assert f" of {count} vectors." in told
        assert (
            infomax("embed", run / node_type, later, "--out", tmp_path / f"{node_type}.npz").code
            == 0
        )
        expected, model = (
            Embeddings.read(tmp_path / f"{node_type}.npz"),
            DGI.load(tmp_path / "run2" / node_type),
        )
        assert model.graph_.node_type == node_type
        np.testing.assert_allclose(
            model.transform(model.graph_).vectors, expected.vectors, rtol=1e-4, atol=1e-6
        )
        assert model.hash_ == DGI.load(run / node_type).hash_


def test_types_with_labels_are_scored(run):
    output = printed_text(infomax("evaluate", str(run)))
    assert "paper:" in output
    assert "Random-Init" in output
    assert "author:" not in output


def test_labels_of_a_table_are_those_of_the_type_that_is_said(run, folder, quick_probe):
    """Papers and authors have ids in common: labels of the one must not score the other."""
    table = f"{folder / 'nodes' / 'paper.csv'}:topic"
    outcome = infomax("evaluate", run, "--labels", table)
    assert outcome.code == 2
    assert (
        f"--labels: expected labels of one type of nodes, found {table}. Say of which type: --type"
        in printed_text(outcome)
    )
    assert "60 labelled nodes" in printed_text(
        infomax("evaluate", run, "--type", "paper", "--labels", table)
    )
    assert "60 labelled nodes" in printed_text(infomax("evaluate", run, "--labels", "topic"))
    outcome = infomax("evaluate", run, "--labels", "subject")
    assert "expected the labels subject of one type of nodes or more, found none" in printed_text(
        outcome
    )


def test_edges_of_several_types_are_held_out_and_scored_by_positions(run, folder, tmp_path):
    out = tmp_path / "run"
    told = infomax(
        "train", folder, "--hold-out-edges", "0.2", "--dim", 4, "--epochs", 1, "--out", out
    )
    counts = re.search(r"held out (\d+) of (\d+) edges", printed_text(told))
    assert "held out from training" in printed_text(
        infomax("evaluate", out, "--edges", "--json", tmp_path / "scores.json")
    )
    found = json.loads((tmp_path / "scores.author.json").read_text())
    assert [(row["method"], row["score"]) for row in found["rows"]] == [
        ("Positions", "cosine"),
        ("Positions", "regression"),
        ("SVD of the edges", "cosine"),
        ("SVD of the edges", "regression"),
        ("Degrees", "product"),
    ]
    graph = DGI.load(out / "paper").graph_
    whole = DGI.load(run / "paper").graph_
    assert (graph.held_out.shape[1], whole.num_edges) == (int(counts[1]), int(counts[2]))
    assert graph.num_edges + graph.held_out.shape[1] == whole.num_edges
    types = np.repeat(graph.types, [graph.nodes[node_type].num_nodes for node_type in graph.types])
    assert {tuple(sorted(pair)) for pair in types[graph.held_out].T.tolist()} <= {
        ("author", "paper"),
        ("paper", "venue"),
    }
    assert "seen in training" in printed_text(
        infomax("evaluate", run / "author")
    )  # which has no labels
    assert infomax("train", folder, "--dim", 4, "--epochs", 1, "--out", tmp_path / "bare").code == 0
    assert "bare: expected labels of one type of nodes or more, found none" in printed_text(
        infomax("evaluate", tmp_path / "bare")
    )


def test_runs_are_compared_type_by_type(run, tmp_path):
    outcome = infomax("compare", run, run, "--json", tmp_path / "found.json")
    assert all(
        f"{node_type}: health" in printed_text(outcome)
        for node_type in ("author", "paper", "venue")
    )
    found = json.loads((tmp_path / "found.json").read_text())
    epochs = {node_type: one["health"]["epochs"] for node_type, one in found["types"].items()}
    assert epochs == {"author": [5, 5], "paper": [5, 5], "venue": [5, 5]}
    assert "runs of several types of nodes, or of one, found both" in printed_text(
        infomax("compare", run, run / "paper")
    )


def test_neighbours_are_of_one_type(run):
    assert printed_text(infomax("neighbours", str(run), "paper:3", "-k", "2")).startswith(
        "Nearest to 3"
    )
    for nodes, words in (
        (
            ["3"],
            "neighbours: expected nodes of one type, found author:3, paper:3, venue:3. Only nodes of one type",
        ),
        (
            ["author:3", "paper:59"],
            "neighbours: expected nodes of one type, found author:3, paper:59. Only nodes of",
        ),
        (
            ["paper:3", "nobody"],
            'the id or the name of a node of type author, paper, venue, found "nobody"',
        ),
        (["paper:999"], 'node: expected one of 60 ids, found "999"'),
        (["--all", "--out", "near.csv"], "expected --type TYPE, one of author, paper, venue"),
    ):
        outcome = infomax("neighbours", str(run), *nodes)
        assert (outcome.code, words in printed_text(outcome)) == (2, True), printed_text(outcome)


def test_nodes_of_another_type_are_near_by_positions(run, tmp_path):
    out = tmp_path / "near.csv"
    assert printed_text(
        infomax("neighbours", str(run), "author:5", "--type", "paper", "-k", "2")
    ).startswith("Nearest to 5")
    why = infomax("neighbours", run, "author:5", "--type", "paper", "-k", "2", "--why")
    assert "by their positions alone" in why.out
    assert (
        infomax(
            *("neighbours", run, "author:5", "--type", "paper", "-k", "60"), "--known", "--out", out
        ).code
        == 0
    )
    found = [line.split(",") for line in out.read_text().splitlines()[1:]]
    models = {node_type: DGI.load(run / node_type) for node_type in ("author", "paper")}
    author, papers = (one.transform(one.graph_, vectors="positions") for one in models.values())
    cosines = (
        papers.vectors
        @ author[5]
        / np.linalg.norm(papers.vectors, axis=1)
        / np.linalg.norm(author[5])
    )
    assert int(found[0][2]) == np.argmax(cosines)
    np.testing.assert_allclose([float(line[3]) for line in found], -np.sort(-cosines), atol=1e-5)
    (wrote,) = [
        one
        for one in models["author"].graph_.relations
        if {one.source, one.target} == {"author", "paper"}
    ]
    own = wrote.edges.matrix()[:, [author.row(5)]].nonzero()[0]
    assert (
        np.mean(cosines[own]) > np.mean(cosines) + 0.2
    )  # what it wrote is nearer than other papers


def test_a_node_of_a_run_of_one_type_may_name_it(run):
    expected = infomax("neighbours", str(run), "paper:3", "-k", "2").out
    for words in (
        [str(run), "paper:3", "--type", "paper"],
        [str(run), "3", "--type", "paper"],
        [str(run / "paper"), "paper:3"],
    ):
        assert infomax("neighbours", *words, "-k", "2").out == expected


def test_a_node_is_found_in_the_type_that_has_it(run):
    """Only papers have the number 59, and so 3 stands for a paper beside it."""
    expected = infomax("neighbours", str(run), "paper:59", "paper:3", "-k", "2").out
    assert infomax("neighbours", str(run), "59", "3", "-k", "2").out == expected
    assert infomax("neighbours", str(run), "59", "paper:3", "-k", "2").out == expected


def test_a_node_is_found_by_its_name_in_any_type(tmp_path):
    nodes = {
        "airport": ["EWR,Newark Liberty Intl,1", "JFK,Kennedy,2", "CDG,Paris,1", "ORY,Paris,2"],
        "airline": ["UA,United,3", "B6,Kennedy,1"],
    }
    for node_type, rows in nodes.items():
        (tmp_path / "g" / "nodes").mkdir(parents=True, exist_ok=True)
        (tmp_path / "g" / "nodes" / f"{node_type}.csv").write_text("\n".join(["id,name,x", *rows]))
    (tmp_path / "g" / "edges").mkdir()
    (tmp_path / "g" / "edges" / "airline.flies.airport.csv").write_text(
        "airline,airport\nUA,EWR\nB6,EWR\nB6,JFK"
    )
    run = tmp_path / "run"
    assert (
        infomax(
            "train",
            str(tmp_path / "g"),
            "--name",
            "name",
            "--dim",
            "4",
            "--epochs",
            "1",
            "--out",
            str(run),
        ).code
        == 0
    )
    expected = infomax("neighbours", str(run), "airport:EWR").out
    assert expected.startswith("Nearest to EWR (Newark Liberty Intl)")
    for node in ("EWR", "Newark Liberty Intl", "newark liberty intl", "Liberty"):
        assert infomax("neighbours", str(run), node).out == expected
    assert "nodes of one type, found airline:B6, airport:JFK. " in printed_text(
        infomax("neighbours", str(run), "Kennedy")
    )
    told = printed_text(infomax("neighbours", str(run), "Paris"))
    assert 'the name of 2. Give an id: CDG ("Paris"), ORY ("Paris")' in told


def test_a_command_for_one_type_says_which_there_are(run):
    result = infomax("analyse", str(run), "--out", str(run.parent / "report.html"))
    assert "one for each type of nodes" in printed_text(result)
    assert "--type author" in printed_text(result)


def block(page: str, name: str) -> bytes:
    """A block of data of the page of a map."""
    found = re.search(f'id="block-{name}">([^<]*)<', page)
    assert found is not None
    return gzip.decompress(base64.b64decode(found[1]))


def test_what_a_node_is_linked_to_is_left_out_of_its_neighbours(folder, run, tmp_path):
    words = ("neighbours", run, "author:5", "author:7", "--type", "paper", "-k", "60")
    assert infomax(*words, "--out", tmp_path / "new.json").code == 0
    assert infomax(*words, "--known", "--out", tmp_path / "all.json").code == 0
    new, everything = (
        [(row["id"], row["neighbour"]) for row in json.loads((tmp_path / name).read_text())]
        for name in ("new.json", "all.json")
    )
    edges = (folder / "edges" / "paper.by.author.csv").read_text().splitlines()[1:]
    linked = {tuple(map(int, reversed(line.split(",")))) for line in edges}
    assert {pair for pair in everything if pair in linked}
    assert new == [pair for pair in everything if pair not in linked]

    shown = printed_text(infomax("neighbours", run, "author:5", "--type", "paper", "-k", "2"))
    count = sum(author == 5 for author, _ in linked)
    assert f"Left out: {count} nodes with a link already; --known shows them." in shown
    assert infomax(*words, "--popular", "--known", "--out", tmp_path / "popular.json").code == 0
    rows = [row for row in json.loads((tmp_path / "popular.json").read_text()) if row["id"] == 5]
    degrees = Counter(paper for _, paper in linked)
    scores = [(1 + row["cosine"]) * degrees[row["neighbour"]] ** 0.5 for row in rows]
    assert len(rows) == 60
    assert scores == sorted(scores, reverse=True)

    one_type = infomax("neighbours", run, "paper:5", "--known")
    assert "--known: expected nodes of one type near a node of another" in printed_text(one_type)


def test_a_map_of_all_types_has_a_picture_of_each_and_neighbours_within(run, tmp_path):
    assert infomax("map", str(run), "--out", str(tmp_path / "map.html"), "-k", "15").code == 0
    page = (tmp_path / "map.html").read_text()
    ids = json.loads(block(page, "ids"))
    node_types = np.array([identifier.split(":")[0] for identifier in ids])
    assert dict(zip(*np.unique(node_types, return_counts=True), strict=True)) == {
        "author": 20,
        "paper": 60,
        "venue": 12,
    }
    near = np.frombuffer(block(page, "neighbours"), "<u4").reshape(92, 15)
    assert (node_types[near] == node_types[:, None]).all()
    is_itself = near == np.arange(92)[:, None]  # a venue has eleven others
    assert is_itself.sum(axis=1).tolist() == [
        4 if node_type == "venue" else 0 for node_type in node_types
    ]
    places = np.frombuffer(block(page, "places"), "<u2").reshape(-1, 2).astype(int)
    across = [places[node_types == node_type, 0] for node_type in ("author", "paper", "venue")]
    assert across[0].max() < across[1].min() <= across[1].max() < across[2].min()
    meta = json.loads(page.partition('id="meta">')[2].partition("</script>")[0])
    assert [column["name"] for column in meta["columns"]][:2] == ["type", "community"]
    assert "topic" in [column["name"] for column in meta["columns"]]
    assert (
        "author: 20 nodes; paper: 60 nodes; venue: 12 nodes. Each type has a picture of its own"
        in meta["drawn"]
    )
    refused = infomax("map", str(run), "--out", str(tmp_path / "no.html"), "--color", "topik")
    assert refused.code == 2
    assert "topic" in printed_text(refused)


def test_clusters_of_all_types_are_one_table_with_the_type(run, tmp_path):
    assert infomax("cluster", str(run), "-k", "2", "--out", str(tmp_path / "all.csv")).code == 0
    infomax("cluster", str(run), "--type", "paper", "-k", "2", "--out", str(tmp_path / "paper.csv"))
    head, *rows = (tmp_path / "all.csv").read_text().splitlines()
    assert head == '"type","id","cluster"'
    assert [row.split(",")[0].strip('"') for row in rows] == ["author"] * 20 + ["paper"] * 60 + [
        "venue"
    ] * 12
    alone = [row.split(",") for row in (tmp_path / "paper.csv").read_text().splitlines()[1:]]
    assert rows[20:80] == [f'"paper","{node}",{cluster}' for node, cluster in alone]
    assert infomax("cluster", str(run), "-k", "2", "--out", str(tmp_path / "all.parquet")).code == 0


@pytest.mark.parametrize(
    ("command", "words"),
    [("cluster", ["-k", "2"]), ("neighbours", ["3", "-k", "2"]), ("embed", [])],
)
def test_a_type_of_a_run_is_named_by_an_option(run, tmp_path, command, words):
    written = []
    for given in ([str(run / "paper")], [str(run), "--type", "paper"]):
        out = tmp_path / f"{len(written)}.csv"
        assert infomax(command, *given, *words, "--out", str(out)).code == 0
        written.append(out.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("command", ["map", "cluster", "neighbours", "analyse", "embed"])
def test_a_type_that_is_not_there_is_refused(run, command):
    out = run.parent / ("out.html" if command == "map" else "out.csv")
    outcome = infomax(command, str(run), "--type", "subject", "--out", str(out))
    assert outcome.code == 2
    assert "--type: expected one of author, paper, venue, found subject" in printed_text(outcome)


def test_a_colour_that_no_type_has_is_refused_before_the_work(run, tmp_path, monkeypatch):
    monkeypatch.setattr(DGI, "transform", None)
    outcome = infomax("map", run, "--out", tmp_path / "map.html", "--color", "topik")
    assert "color: expected one of type, " in printed_text(outcome)
    assert 'found "topik". Did you mean "topic"?' in printed_text(outcome)


def test_a_map_is_a_page(run, tmp_path):
    outcome = infomax("map", run, "--out", tmp_path / "map.png")
    assert (outcome.code, "--out: expected a name that ends in .html" in printed_text(outcome)) == (
        2,
        True,
    )


def test_a_run_of_one_type_has_no_others(run):
    outcome = infomax("cluster", str(run / "paper"), "--type", "paper")
    assert "--type: expected a run of several types of nodes, found paper" in printed_text(outcome)


def test_one_type_alone(folder, tmp_path):
    paths = "paper-author-paper"
    infomax("train", str(folder), "--out", str(tmp_path), "--epochs", "2", "--type", "paper", "--paths", paths,
            "--labels", "topic")  # fmt: skip
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["paper"]
    assert list(DGI.load(tmp_path / "paper").preset_.paths) == [paths]


def test_an_interrupted_run_goes_on_with_the_types_that_lack(folder, tmp_path, run):
    given = [
        "train",
        str(folder),
        "--out",
        str(tmp_path),
        "--epochs",
        "5",
        "--dim",
        "8",
        "--labels",
        "topic",
    ]
    infomax(*given, "--type", "author")
    before = (tmp_path / "author" / "model.safetensors").read_bytes()
    output = printed_text(infomax(*given, "--resume"))
    assert "author holds a finished run already" in output
    assert (tmp_path / "author" / "model.safetensors").read_bytes() == before
    for node_type in ("author", "paper", "venue"):
        there, anew = (DGI.load(place / node_type).model_.state_dict() for place in (run, tmp_path))
        assert all(bool((there[name] == anew[name]).all()) for name in there)


@pytest.fixture
def killed(folder, run, tmp_path, monkeypatch):
    """A function that begins a command which writes runs, and ends it when the first of them is written."""
    finish = model_file.finish

    def end(run, *rest):
        finish(run, *rest)
        raise SystemExit(143)

    def begin(*words):
        with monkeypatch.context() as patched:
            patched.setattr(model_file, "finish", end)
            assert infomax(*words).code == 143

    return begin


def test_runs_that_are_missing_after_a_kill_are_told_by_every_command(
    folder, run, tmp_path, killed
):
    out = tmp_path / "run"
    words = ["train", folder, "--out", out, "--epochs", "5", "--dim", "8", "--labels", "topic"]
    killed(*words)
    assert (out / "author" / "model.safetensors").exists()
    for command in (
        ["embed", out],
        ["update", out, folder],
        ["evaluate", out],
        ["map", out],
        ["cluster", out],
    ):
        name = tmp_path / ("x.html" if command[0] == "map" else "x.csv")
        outcome = infomax(*command, *(["--out", name] if command[0] != "evaluate" else []))
        assert outcome.code == 2, command
        assert "paper" in outcome.err
        assert "--resume" in outcome.err
    missing = infomax("embed", out, "--out", tmp_path / "v.csv").err
    assert (
        "expected finished runs of author, paper, venue, found no model of paper, venue." in missing
    )
    assert "--resume" in infomax("embed", out, "--type", "paper", "--out", tmp_path / "v.csv").err
    assert infomax("embed", out / "author", "--out", tmp_path / "v.csv").code == 0
    assert infomax(*words, "--resume").code == 0
    assert infomax("embed", out, "--out", tmp_path / "v.csv").code == 0


def test_seeds_that_are_missing_after_a_kill_are_told(folder, tmp_path, killed):
    out = tmp_path / "run"
    killed(
        "train", folder, "--out", out, "--epochs", "2", "--dim", "4", "--type", "paper", "--runs", 2
    )
    for path in (out, out / "paper"):
        outcome = infomax("embed", path, "--out", tmp_path / "v.csv")
        assert outcome.code == 2
        assert "seed-1" in outcome.err
        assert "--resume" in outcome.err


def test_an_update_goes_on_with_the_types_that_lack(folder, run, tmp_path, killed):
    for train in ([], ["--train"]):
        out = tmp_path / f"run2{len(train)}"
        words = ["update", run, folder, "--labels", "topic", "--out", out, *train]
        killed(*words)
        outcome = infomax("embed", out, "--out", tmp_path / "v.csv")
        assert "found no model of paper, venue" in outcome.err
        resumed = infomax(*words, "--resume")
        assert resumed.code == 0, resumed.err
        assert "author holds a finished run already" in resumed.out
        assert infomax("embed", out, "--out", tmp_path / "v.csv").code == 0
    outcome = infomax(*words[:-1], "--resume")  # that without a training is another
    assert "a trained model" in outcome.err


def test_a_run_does_not_hide_others_nor_is_hidden(folder, run, tmp_path):
    outcome = infomax("train", "debian", "--dim", 4, "--epochs", 1, "--out", run)
    assert outcome.code == 2
    assert "expected a folder without a run, found runs of author, paper, venue" in outcome.err
    for words in (["--runs", 2], ["--resume", "--runs", 2]):
        outcome = infomax("train", folder, "--out", run, "--dim", 8, "--epochs", 5, *words)
        assert outcome.code == 2, outcome.err
    with pytest.raises(InputError, match="runs of author, paper, venue"):
        DGI.load(run / "paper").save(run)
    one = tmp_path / "one"
    assert (
        infomax(
            "train", folder, "--type", "paper", "--out", tmp_path, "--dim", 4, "--epochs", 1
        ).code
        == 0
    )
    (tmp_path / "paper").rename(one)
    outcome = infomax("train", folder, "--out", one, "--dim", 4, "--epochs", 1, "--resume")
    assert "expected a folder of runs, found a run" in outcome.err


def test_nothing_is_left_of_a_training_that_is_refused(folder, tmp_path):
    outcome = infomax(
        "train", folder, "--out", tmp_path / "a" / "b", "--dim", 16_000_000, "--epochs", 1
    )
    assert outcome.code == 2
    assert "free for this graph at this width" in outcome.err
    assert [*tmp_path.iterdir()] == []


def test_only_types_with_new_nodes_are_written_and_update_names_the_way(folder, run, tmp_path):
    new = tmp_path / "new"
    (new / "nodes").mkdir(parents=True)
    (new / "edges").mkdir()
    (new / "nodes/author.csv").write_text("id\nada\n")
    (new / "edges/paper.by.author.csv").write_text("source,target\n3,ada\n5,ada\n")
    assert infomax("embed", run, new, "--attach", "--out", tmp_path / "new.csv").code == 0
    assert sorted(path.name for path in tmp_path.glob("new.*")) == ["new.author.csv"]
    outcome = infomax("update", run / "paper", new, "--out", tmp_path / "run2")
    assert outcome.code == 2
    assert "It must be the whole graph. If it has only new nodes: infomax embed" in outcome.err
    assert "--attach" in outcome.err


def test_a_type_named_as_a_target_is_told_the_option(folder, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    edges = other / "edges" / "paper.by.author.csv"
    edges.write_text(edges.read_text().replace("source,target", "paper,author"))
    outcome = infomax("train", other, "--out", tmp_path / "run", "--target", "paper")
    assert "--target: expected a column of the edge tables, found the type paper." in printed_text(
        outcome
    )
    assert "To train this type alone: --type paper." in printed_text(outcome)


def test_options_for_several_types_need_them(tmp_path):
    result = infomax("train", "debian", "--out", str(tmp_path / "run"), "--type", "paper")
    assert "a graph of several types of nodes" in printed_text(result)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--paths", "paper-author-paper,author-papr"],
            'path "author-papr": expected a step such as author-paper',
        ),
        (
            ["--type", "paper", "--paths", "author-paper"],
            '--paths: expected paths that begin at paper, found "author-pap',
        ),
        (["--layers", "2"], "encoder: expected that along paths"),
        (["--encoder", "two-hops"], "encoder: expected that along paths"),
        (
            ["--corruption", "flip"],
            "corruption: expected shuffle_features, in a graph of several types",
        ),
        (
            ["--preset", "many-graphs"],
            "views: expected WholeGraph or Batches, in a graph of several types",
        ),
    ],
)
def test_what_does_not_fit_a_type_is_refused_before_any_is_trained(
    folder, tmp_path, words, message
):
    outcome = infomax("train", folder, "--dim", 4, "--epochs", 1, *words, "--out", tmp_path / "run")
    assert (outcome.code, message in printed_text(outcome)) == (2, True), printed_text(outcome)
    assert not (tmp_path / "run").exists()


def test_spaces_between_paths_are_not_of_their_names(folder, tmp_path):
    words = ("--type", "author", "--dim", 4, "--epochs", 1, "--out", tmp_path / "run")
    output = printed_text(
        infomax("train", folder, "--paths", "author-paper, author-paper-venue-paper", *words)
    )
    assert output.endswith("paths: author-paper, author-paper-venue-paper")


def test_info_draws_types_relations_and_paths(folder, tmp_path):
    output = printed_text(infomax("info", str(folder), "--labels", "topic"))
    for row in (
        "author │ 20 │ positions │",
        "paper │ 60 │ 2 │ topic (2 classes) │",
        "paper ─ at ── venue │ 60 │",
    ):
        assert row in output
    assert "paths from paper, up to 2 steps: paper-venue-paper, paper-author-paper" in output
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("user,item,stars\n1,1,5\n1,1,3\n2,1,4\n")
    output = printed_text(
        infomax("info", str(ratings), "--types", "user,item", "--edges-as", "rating")
    )
    for row in ("rating │ 3 │ 1 │", "user │ 2 │ positions │", "user ─ source ── rating │ 3 │"):
        assert row in output
    output = printed_text(
        infomax("convert", str(ratings), "--types", "user,item", "--out", str(tmp_path / "out"))
    )
    assert 'edge columns that are not used: "stars"' in output
    assert (
        tmp_path / "out" / "edges" / "user.to.item.csv"
    ).read_text() == '"source","target"\n1,1\n2,1\n'


def test_info_of_a_run_is_that_of_its_graph(folder, run):
    of_tables = infomax("info", str(folder), "--labels", "topic").out.partition("\n")[2]
    of_tables = of_tables.replace("edges dropped: none\n", "")  # a run does not know
    for path in (run, run / "venue"):
        assert infomax("info", str(path)).out.partition("\n")[2] == of_tables


@pytest.mark.parametrize("suffix", ["parquet", "tsv.gz"])
def test_a_folder_of_tables_has_the_format_of_its_name(folder, tmp_path, suffix):
    out = tmp_path / f"papers.{suffix}"
    assert infomax("convert", str(folder), "--labels", "topic", "--out", str(out)).code == 0
    assert sorted(path.name for path in (out / "nodes").iterdir()) == [
        f"{node_type}.{suffix}" for node_type in ("author", "paper", "venue")
    ]
    described = [infomax("info", str(path), *words).out.partition("\n")[2] for path, words in (
        (folder, ["--labels", "topic"]), (out, []))]  # fmt: skip
    assert described[0] == described[1]


def test_several_encoders_are_scored_by_mean_and_spread(folder, tmp_path):
    out = tmp_path / "run"
    given = [
        "train",
        folder,
        "--out",
        out,
        "--epochs",
        "3",
        "--dim",
        "8",
        "--labels",
        "topic",
        "--type",
        "paper",
    ]
    assert infomax(*given, "--runs", "2", "--seed", "5").code == 0
    assert sorted(path.name for path in (out / "paper").iterdir()) == ["seed-5", "seed-6"]
    alone = infomax(*given[:3], tmp_path / "alone", *given[4:], "--seed", "6")
    assert alone.code == 0
    one, other = (
        DGI.load(path).model_.state_dict()
        for path in (out / "paper" / "seed-6", tmp_path / "alone" / "paper")
    )
    assert all(bool((one[name] == other[name]).all()) for name in one)
    for source, name in ((out / "paper", "e.json"), (out, "e.paper.json")):
        outcome = printed_text(
            infomax("evaluate", source, "--no-raw", "--json", tmp_path / "e.json")
        )
        assert "mean ± over 2 encoders" in outcome
        assert f"{name} in" in outcome
        assert {row["runs"] for row in json.loads((tmp_path / name).read_text())["rows"]} == {2}
    for command in (
        ["neighbours", out, "59"],
        ["cluster", out, "-k", 2],
        ["map", out, "--out", tmp_path / "map.html"],
    ):
        assert f"several: seed-5, seed-6. Name one: {out}/paper/seed-5." in printed_text(
            infomax(*command)
        ), command


@pytest.mark.parametrize("name", ["g.graph", "g.npz"])
def test_labels_of_a_prepared_graph_are_those_of_any_type(folder, tmp_path, name):
    stored, run = tmp_path / name, tmp_path / "run"
    assert infomax("convert", folder, "--out", stored, "--labels", "topic").code == 0
    given = [
        "train",
        stored,
        "--out",
        run,
        "--dim",
        "4",
        "--epochs",
        "1",
        "--type",
        "paper",
        "--labels",
    ]
    refused = printed_text(infomax(*given, "subject"))
    assert 'expected labels named "subject", found the labels topic' in refused
    assert infomax(*given, "topic").code == 0
    assert list(DGI.load(run / "paper").graph_.labels) == ["topic"]


def test_a_graph_folder_gives_the_vectors_of_memory(folder, tmp_path):
    stored, run, parts = tmp_path / "g.graph", tmp_path / "run", tmp_path / "vectors"
    assert infomax("convert", folder, "--out", stored, "--labels", "topic").code == 0
    given = [
        "train",
        stored,
        "--out",
        run,
        "--dim",
        "8",
        "--steps",
        "3",
        "--batch",
        "20",
        "--type",
        "paper",
    ]
    assert infomax(*given).code == 0
    assert infomax("embed", run, "--out", f"{parts}/").code == 0
    model = DGI.load(run / "paper")
    assert model.preset_.name == "type-batches"
    expected = model.transform(model.graph_.loaded())
    found = StoredEmbeddings.open(parts / "paper")
    assert found.ids[:].tolist() == expected.ids.tolist()
    np.testing.assert_allclose(found.vectors[np.arange(60)], expected.vectors, rtol=1e-5, atol=1e-6)
    near = infomax("neighbours", parts / "paper", "3").out
    assert near.startswith("Nearest to 3")
    assert infomax("neighbours", run, "3").out == near
    assert (
        infomax("neighbours", run / "paper", "3").out == near
    )  # which by now holds its vectors in parts
    assert infomax("neighbours", parts, "3", "--type", "paper").out == near
    for given, found in ([], "none"), (["--type", "venue"], "venue"):
        refusal = f"{parts}: expected --type TYPE, one of paper, found {found}."
        assert refusal in printed_text(infomax("neighbours", parts, "3", *given))


def test_another_graph_is_read_as_the_one_trained_on(folder, run, tmp_path):
    infomax("embed", str(run), "--out", str(tmp_path / "own.npy"))
    infomax("embed", str(run), str(folder), "--out", str(tmp_path / "other.npy"))
    for node_type in ("author", "paper", "venue"):
        own, other = (np.load(tmp_path / f"{name}.{node_type}.npy") for name in ("own", "other"))
        np.testing.assert_allclose(own, other, atol=1e-6)
    (tmp_path / "bare" / "edges").mkdir(parents=True)
    for path in (folder / "edges").iterdir():
        (tmp_path / "bare" / "edges" / path.name).write_text(path.read_text())
    refused = infomax(
        "embed", str(run / "author"), str(tmp_path / "bare"), "--out", str(tmp_path / "x.npy")
    )
    assert refused.code == 2
    assert "features of nodes of type paper" in printed_text(refused)


def test_choices_about_types_are_those_of_the_run(tmp_path):
    draw = np.random.default_rng(0)
    pairs = sorted(
        {(int(user), int(item)) for user, item in zip(*draw.integers(0, 20, (2, 90)), strict=True)}
    )
    lines = [f"{user},{item},{('buys', 'likes')[user % 2]}" for user, item in pairs]
    (tmp_path / "sales.csv").write_text("\n".join(["user,item,how", *lines]))
    given = ["--types", "user,item", "--edge-type", "how"]
    run = tmp_path / "run"
    trained = infomax(
        "train", tmp_path / "sales.csv", *given, "--out", run, "--epochs", "2", "--dim", "8"
    )
    assert trained.code == 0, trained.err
    infomax("embed", run, "--out", tmp_path / "own.npy")
    assert infomax("embed", run, tmp_path / "sales.csv", "--out", tmp_path / "again.npy").code == 0
    for node_type in ("user", "item"):
        own, again = (np.load(tmp_path / f"{name}.{node_type}.npy") for name in ("own", "again"))
        np.testing.assert_allclose(own, again, atol=1e-6)
    (tmp_path / "new.csv").write_text("user,item,how\n77,3,buys\n77,5,likes\n6,88,buys\n")
    attached = infomax(
        "embed", run, tmp_path / "new.csv", "--attach", "--out", tmp_path / "new.csv.npz"
    )
    assert attached.code == 0, attached.err
    for node_type, node in (("user", 77), ("item", 88)):
        assert Embeddings.read(tmp_path / f"new.csv.{node_type}.npz").ids.tolist() == [node]


def test_info_of_ten_types_fits_on_a_screen(tmp_path):
    for at in range(10):
        folders = (tmp_path / "t" / "nodes", tmp_path / "t" / "edges")
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        (folders[0] / f"kind{at}.csv").write_text(
            "id,x,y,z,city\n1,1,2,3,Rome\n2,3,4,5,Oslo\n3,1,7,5,Rome\n"
        )
        for other in ((at + 1) % 10, (at + 3) % 10):
            (folders[1] / f"kind{at}.to.kind{other}.csv").write_text(
                "source,target\n1,2\n1,2\n2,3\n"
            )
    found = infomax("info", str(tmp_path / "t"))
    assert found.code == 0
    assert len(found.out.splitlines()) <= 40
    assert "20 duplicates (--weight count would count them)" in printed_text(found)
    told = printed_text(infomax("info", str(tmp_path / "t"), "--type", "kind3"))
    assert "Columns of kind3" in told
    assert "paths from kind3" in told
    assert "Columns of kind4" not in told
