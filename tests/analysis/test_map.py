import base64
import gzip
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from infomax import DGI, Graph
from infomax.analysis.map import check_color, layout, node_columns, page, write_map
from infomax.analysis.map.document import DARK_COLOURS
from infomax.cli.app import app
from infomax.embeddings import Embeddings
from infomax.errors import InputError
from infomax.neighbours.of_all import nearest


def clusters(n=90, d=32, groups=3, seed=0):
    generator = np.random.default_rng(seed)
    group = np.arange(n) % groups
    return (6 * generator.normal(size=(groups, d))[group] + generator.normal(size=(n, d))).astype(
        np.float32
    ), group


def block(text, name, dtype=None):
    packed = re.search(rf'id="block-{name}">([^<]*)<', text)[1]
    raw = gzip.decompress(base64.b64decode(packed))
    return json.loads(raw) if dtype is None else np.frombuffer(raw, dtype)


def meta(text):
    return json.loads(re.search(r'id="meta">(.*?)</script>', text)[1])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("block", [300, 100, 7])
def test_neighbours_are_those_of_a_search_node_by_node(block, compiled):
    """Whatever blocks they are compared in, also smaller ones than the neighbours asked for."""
    vectors, _ = clusters(300)
    vectors[7] = 0
    vectors[11:14] = vectors[10]  # equal vectors: ties are told in input order
    rows, cosines = nearest(
        vectors, 10, nodes_per_block=block, least_compiled_nodes=0 if compiled else 301
    )
    embeddings = Embeddings(vectors, np.arange(300))
    for node in set(range(300)) - {7}:
        expected = embeddings.neighbours(node, 10)
        assert rows[node].tolist() == [other for other, _ in expected]
        np.testing.assert_allclose(cosines[node], [cosine for _, cosine in expected], atol=1e-6)
    assert (cosines[7] == 0).all()
    assert 7 not in rows[7]


def test_neighbours_of_very_few_nodes():
    rows, cosines = nearest(np.eye(3, dtype=np.float32), 10)
    assert rows.tolist() == [[1, 2], [0, 2], [0, 1]]
    assert not cosines.any()


def test_layout_keeps_clusters_apart_and_its_seed():
    vectors, group = clusters(240)
    rows, _ = nearest(vectors, 15)
    points = layout(vectors, rows, seed=0)
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert (group[gaps.argmin(axis=1)] == group).all()
    middles = np.array([points[group == each].mean(axis=0) for each in range(3)])
    spread = max(points[group == each].std(axis=0).max() for each in range(3))
    assert (
        min(np.linalg.norm(middles[a] - middles[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
        > 3 * spread
    )
    np.testing.assert_array_equal(points, layout(vectors, rows, seed=0))


@pytest.mark.parametrize(
    "vectors", [np.ones((1, 4)), np.eye(2), np.ones((5, 3)), np.zeros((4, 2)), np.ones((6, 1))]
)
def test_layout_of_very_little(vectors):
    vectors = vectors.astype(np.float32)
    points = layout(vectors, nearest(vectors, 15)[0], seed=0)
    assert points.shape == (len(vectors), 2)
    assert np.isfinite(points).all()
    assert len(vectors) == 1 or len(np.unique(points, axis=0)) == len(vectors)  # equal vectors part


def test_columns_say_what_is_known_of_the_nodes():
    graph = Graph.from_arrays(
        np.array([[0, 1, 2], [1, 2, 0]]),
        np.arange(8.0).reshape(4, 2),
        directed=True,
        ids=["a", "b", "c", "d"],
        feature_names=["height", "weight"],
        labels={
            "kind": np.array(["x", "", "y", "x"], object),
            "code": [3, -1, 0, 3],
            "tags": np.eye(4, 2, dtype=np.uint8),
        },
        splits={"train": [True, False, False, False], "seen": [True, True, False, False]},
        groups=[0, 0, 0, 1],
    )
    columns = node_columns(graph, np.array([1, 1, 0, 0]), "weight")
    assert {name: column.tolist() for name, column in columns.items()} == {
        "kind": ["x", "", "y", "x"],
        "code": ["3", "", "0", "3"],
        "tags": [1, 1, 0, 0],
        "community": ["around a", "around a", "around c", "around c"],
        "split": ["train, seen", "seen", "", ""],
        "graph": ["0", "0", "0", "1"],
        "degree": [2, 2, 2, 0],
        "weight": [1, 3, 5, 7],
    }


@pytest.mark.parametrize("color", ["kinds", "split", "graph", "communty", "v[1]"])
def test_a_colour_that_no_node_has_is_refused(color):
    graph = Graph.from_arrays(
        [[0], [1]], np.eye(2), feature_names=["v[0]", "v"], labels={"kind": ["a", "b"]}
    )
    message = (
        f'color: expected one of kind, community, degree, or a feature, found "{re.escape(color)}"'
    )
    with pytest.raises(InputError, match=message):
        check_color([graph], color)
    for good in (None, "kind", "community", "degree", "v"):
        check_color([graph], good)
        assert good is None or good in node_columns(graph, np.zeros(2, int), good)


def test_the_command_refuses_a_colour_before_the_work(tmp_path, graph, monkeypatch):
    DGI(8, epochs=2).fit(graph).save(tmp_path / "run")
    monkeypatch.setattr(DGI, "transform", None)
    command = ["map", str(tmp_path / "run"), "--out", str(tmp_path / "m.html"), "--color", "clas"]
    outcome = CliRunner().invoke(app, command)
    assert isinstance(outcome.exception, InputError)
    assert 'Did you mean "class"?' in str(outcome.exception)
    assert not (tmp_path / "m.html").exists()


def test_columns_of_the_table_are_colours_as_they_stood_there():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    n = 12
    table = {
        "id": range(n),
        "city": [["Rome", "Oslo", None, "Bonn"][k % 4] if k else "once" for k in range(n)],
        "paid": [[True, False, None][k % 3] for k in range(n)],
        "age": [None if k == 3 else 20.0 + k for k in range(n)],
        "born": [f"20{k:02d}-07-01" for k in range(n)],
    }
    nodes = pandas.DataFrame(table)
    graph = Graph.from_frames(
        pandas.DataFrame({"source": range(n - 1), "target": range(1, n)}), nodes
    )
    check_color([graph], "city")
    columns = node_columns(graph, np.zeros(n, int))
    cities = ["the rest"] + [city or "" for city in table["city"][1:]]
    assert columns["city"].tolist() == cities
    assert columns["paid"].tolist() == [
        {True: "yes", False: "no", None: ""}[paid] for paid in table["paid"]
    ]
    np.testing.assert_allclose(columns["age"], nodes["age"].astype(float), rtol=1e-6)
    np.testing.assert_allclose(columns["born"], [2000.5 + k for k in range(n)], atol=0.01)


def test_communities_are_called_by_names():
    graph = Graph.from_arrays([[0, 0], [1, 2]], np.eye(3), node_names=["Oslo", "", "Bergen"])
    assert node_columns(graph, np.array([0, 1, 0]))["community"].tolist() == [
        "around Oslo",
        "around 1",
        "around Oslo",
    ]


def test_a_page_holds_what_it_was_given_and_loads_nothing():
    generator = np.random.default_rng(0)
    n, k = 50, 4
    ids = np.array([f"</script><b>{row}\n{{{{title}}}}" for row in range(n)], dtype=object)
    points = generator.normal(size=(n, 2)).astype(np.float32)
    rows, cosines = (
        generator.integers(0, n, (n, k)),
        generator.uniform(-1, 1, (n, k)).astype(np.float32),
    )
    names = np.array(["", "<i>", *["most"] * (n - 2)], dtype=object)
    numbers = np.array([np.nan, np.inf, *range(n - 2)])
    arguments = ids, points, rows, cosines, {"name": names, "number": numbers}
    options = {"title": "<b> & {{script}}", "first": "number"}
    text = page(*arguments, **options)
    assert text == page(*arguments, **options)
    assert block(text, "ids") == ids.tolist()
    assert block(text, "names") == []
    assert block(page(*arguments, **options, names=ids[::-1]), "names") == ids[::-1].tolist()
    np.testing.assert_array_equal(block(text, "neighbours", np.uint32).reshape(n, k), rows)
    np.testing.assert_allclose(
        block(text, "cosines", np.int16).reshape(n, k) / 32767, cosines, atol=2e-5
    )
    shown = (
        block(text, "places", np.uint16).reshape(n, 2)
        / 65535
        * [1, -1]
        * np.ptp(points, axis=0).max()
    )
    np.testing.assert_allclose(shown - shown[0], points - points[0], atol=1e-4)
    about = meta(text)
    assert about["first"] == 1
    assert [group["size"] for group in about["columns"][0]["groups"]] == [1, n - 2, 1]
    assert block(text, "column0", np.uint8)[:3].tolist() == [0, 2, 1]
    assert (about["columns"][1]["low"], about["columns"][1]["high"]) == (0, n - 3)
    assert np.isnan(block(text, "column1", np.float32)[:2]).all()
    assert "<b>" not in text
    assert (
        text.count("&lt;b&gt; &amp; {{script}}") == 2
    )  # a title is text, and is not filled in again
    assert not re.search("https?://", text)
    assert "default-src 'none'" in text


def test_a_column_that_is_not_there_is_refused_before_the_work(tmp_path):
    nodes = Embeddings(np.eye(3), np.arange(3))
    with pytest.raises(InputError, match=r"color.*degree.*colour"):
        write_map(tmp_path / "x.html", nodes, {"degree": np.arange(3)}, title="", color="colour")
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_writes_a_map(tmp_path, graph):
    DGI(8, epochs=2).fit(graph).save(tmp_path / "run")
    command = [
        "map",
        str(tmp_path / "run"),
        "--out",
        str(tmp_path / "map.html"),
        "--color",
        "x3",
        "-k",
        "3",
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "map.html").read_text(encoding="utf-8")
    about = meta(text)
    assert [column["name"] for column in about["columns"]] == ["class", "community", "degree", "x3"]
    assert (about["nodes"], about["neighbours"], about["first"]) == (40, 3, 3)
    assert "<title>run</title>" in text


def test_dark_colours_stay_apart_for_every_eye():
    """Distances in OKLab, as seen with three kinds of cones, without the red and without the green ones."""
    protan = [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]
    deutan = [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
    cones = [
        [0.4122215, 0.5363325, 0.0514460],
        [0.2119035, 0.6806995, 0.1073970],
        [0.0883025, 0.2817188, 0.6299787],
    ]
    lab = [
        [0.2104543, 0.7936178, -0.0040720],
        [1.9779985, -2.4285922, 0.4505937],
        [0.0259040, 0.7827718, -0.8086758],
    ]
    codes = np.array(
        [[int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)] for colour in DARK_COLOURS]
    )
    linear = np.where(codes <= 0.04045, codes / 12.92, ((codes + 0.055) / 1.055) ** 2.4)
    for eye, least in ((np.eye(3), 0.15), (protan, 0.075), (deutan, 0.075)):
        seen = (
            np.cbrt(np.clip(linear @ np.array(eye).T, 0, 1) @ np.array(cones).T) @ np.array(lab).T
        )
        gaps = np.linalg.norm(seen[:, None] - seen[None], axis=2) + np.eye(len(seen))
        assert gaps.min() > least
