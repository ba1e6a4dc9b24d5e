"""The server to copy: it gives what the library gives, and refuses the rest in words."""

from __future__ import annotations

import gc
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import numpy as np
import pytest
from sample_graphs import random_graph, typed_graph

from infomax import DGI, Graph, read_graph

pytest.importorskip("fastapi", reason="the server is made with it")
pytest.importorskip("httpx", reason="requests are made with it")
from fastapi.testclient import TestClient
from recipes.serve import MOST_BYTES, MOST_NEIGHBOURS, MOST_NODES, make_app, serve
from typer import Typer
from typer.testing import CliRunner

command = Typer()
command.command()(serve)
ROOT = Path(__file__).parents[2]
JSON = {"content-type": "application/json"}
IDS = ["a/b", "é:ü", "?k=1", *(f"n{row}" for row in range(37))]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    graph = random_graph(dense=True)
    graph = Graph.from_scipy(graph.adjacency, graph.features, ids=np.array(IDS, dtype=object))
    path = tmp_path_factory.mktemp("served") / "run"
    DGI(8, epochs=5).fit(graph).save(path)
    return path


@pytest.fixture(scope="module")
def client(run):
    return TestClient(make_app(run))


@pytest.fixture(scope="module")
def model(run):
    return DGI.load(run)


def test_vectors_have_the_neighbours_of_the_library(client, model):
    embeddings = model.transform(model.graph_)
    near = client.post("/neighbours?k=3", json=embeddings.vectors[:2].tolist()).json()
    assert [[one["id"] for one in of_one] for of_one in near] == embeddings.ids[
        embeddings.nearest(embeddings.vectors[:2], 3)[0]
    ].tolist()
    assert [of_one[0]["id"] for of_one in near] == IDS[:2], "a vector is nearest to its own node"
    assert client.post("/neighbours", json=[[1.0, 2.0]]).status_code == 422
    assert client.post("/neighbours", json=[[1.0], [1.0, 2.0]]).status_code == 422


def test_nodes_and_their_neighbours_are_those_of_the_library(client, model):
    embeddings = model.transform(model.graph_)
    for node in IDS:
        place = f"/nodes/{quote(node, safe='')}"
        np.testing.assert_allclose(
            client.get(place).json()["vector"], embeddings[node], rtol=1e-5, atol=1e-7
        )
        found, expected = (
            client.get(f"{place}/neighbours?k=3").json(),
            embeddings.neighbours(node, 3),
        )
        assert [one["cosine"] for one in found] == pytest.approx(
            [cosine for _, cosine in expected], abs=1e-5
        )
    assert client.get("/health").json() == {"status": "ok", "nodes": 40, "model": model.hash_}


def test_new_nodes_have_the_vectors_of_the_library(client, model):
    row = np.arange(12.0).tolist()
    named = dict(zip(model.feature_names_, row, strict=True))
    asked = [
        {"features": row, "neighbours": ["n1", "a/b"]},
        {"features": row, "neighbours": {"n2": 2}},
    ]
    expected = model.vectors_of([row, row], [["n1", "a/b"], {"n2": 2}])
    np.testing.assert_allclose(
        client.post("/vectors", json=asked).json(), expected, rtol=1e-4, atol=1e-6
    )
    one = client.post("/vectors", json=[{"features": named, "neighbours": ["n1"]}]).json()
    np.testing.assert_allclose(one, [model.vector(row, ["n1"])], rtol=1e-4, atol=1e-6)


def test_unknown_keys_of_a_new_node_are_refused_with_the_known_ones(client):
    answer = client.post("/vectors", json=[{"features": [0.0] * 12, "neighbors": ["n1"]}])
    assert answer.status_code == 422
    message = "body.0: expected the keys features, neighbours, found neighbors."
    assert answer.json()["detail"] == message


def test_new_nodes_of_a_run_of_several_types(tmp_path):
    model = DGI(8, epochs=2).fit(typed_graph())
    model.save(tmp_path / "paper")
    client, joined = TestClient(make_app(tmp_path / "paper")), {"author": [1, 2], "cites": ["5"]}
    asked = [{"features": [0.5] * 7, "neighbours": joined}, {"features": [1.0] * 7}]
    expected = model.vectors_of([[0.5] * 7, [1.0] * 7], [joined, {}])
    np.testing.assert_allclose(
        client.post("/vectors", json=asked).json(), expected, rtol=1e-4, atol=1e-6
    )
    for wrong in ([1], {"authors": [1]}, {"author": 1}, {"author": [99]}, {"1": {"2": [3]}}):
        answer = client.post("/vectors", json=[{"features": [0.5] * 7, "neighbours": wrong}])
        assert answer.status_code == 422, answer.text


def malformed(rng: np.random.Generator) -> dict[str, object]:
    """A request that the server must refuse."""
    wrong = [
        None,
        "x",
        1e999,
        -1,
        10**400,
        [],
        {},
        [[]],
        "\ud800",
        True,
        [1] * 12,
        {"x0": 1},
        {"n1": [2], "n2": 1},
    ]
    body = [{"features": wrong[rng.integers(13)], "neighbours": wrong[rng.integers(13)]}] * int(
        rng.integers(0, 3)
    )
    text = json.dumps(body).encode()
    bodies = [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 5000,
        b"null",
        text,
        text[: rng.integers(len(text) + 1)] + b"}",
    ]
    if rng.random() < 0.5:
        return {"method": "POST", "url": "/vectors", "content": bodies[rng.integers(len(bodies))]}
    paths = [
        "/nodes/nobody",
        "/nodes/%ff",
        "/nodes/n1/neighbours?k=0",
        "/nodes/n1/neighbours?k=1e9",
        "/nodes/",
        "/%00",
    ]
    url = paths[rng.integers(len(paths))] + "x" * int(rng.integers(3))
    return {"method": str(rng.choice(["GET", "PUT", "DELETE"])), "url": url}


def test_malformed_requests_are_refused_and_leave_nothing_behind(client):
    rng, counts = np.random.default_rng(0), []
    for _ in range(3):
        for _ in range(60):
            answer = client.request(**malformed(rng))
            assert 400 <= answer.status_code < 500, answer.text
            assert isinstance(answer.json()["detail"], str)
            assert "Traceback" not in answer.text
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert counts[2] - counts[1] < 200


def test_mistakes_are_named_and_sizes_are_limited(client, model):
    row = [0.0] * 12
    assert 'found "nobody"' in client.get("/nodes/nobody").json()["detail"]
    unknown = client.post("/vectors", json=[{"features": row, "neighbours": ["nobody"]}])
    assert (unknown.status_code, "ids of the 40 known nodes" in unknown.json()["detail"]) == (
        422,
        True,
    )
    for cell in ("x", None, [1], {"y": 1}):
        wrong = client.post(
            "/vectors",
            json=[{"features": {**dict.fromkeys(model.feature_names_, 0.0), "x0": cell}}],
        )
        assert wrong.status_code == 422, wrong.text
    assert (
        "12 numbers per node"
        in client.post("/vectors", json=[{"features": [1.0]}]).json()["detail"]
    )
    assert client.get(f"/nodes/n1/neighbours?k={MOST_NEIGHBOURS + 1}").status_code == 422
    assert client.post("/vectors", json=[{"features": row}] * (MOST_NODES + 1)).status_code == 422
    assert client.post("/vectors", content=b" " * (MOST_BYTES + 1)).status_code == 413
    assert (
        client.post("/vectors", content=iter([b"[", b"]"])).status_code == 413
    )  # of unknown length


def test_a_body_whose_length_is_said_twice_is_not_read(client):
    """A chunked body may be longer than the length that is said beside it."""
    both = {"transfer-encoding": "chunked", "content-length": "4"}
    assert client.post("/vectors", content=b"[{}]", headers=both).status_code == 413
    assert client.head("/health").status_code == 200
    assert client.put("/health").status_code == 405


@pytest.fixture(scope="module")
def cities(tmp_path_factory):
    """A client of a run on a table with numbers, text and names."""
    path, draw = tmp_path_factory.mktemp("cities"), np.random.default_rng(0)
    rows = [
        f"c{row},{draw.random()},{'north' if row % 2 else 'south'},City {row:02d}"
        for row in range(40)
    ]
    (path / "nodes.csv").write_text("\n".join(["id,size,text,name", *rows]))
    edges = [f"c{row},c{(3 * row + 1) % 40}" for row in range(40)]
    (path / "edges.csv").write_text("\n".join(["source,target", *edges]))
    model = DGI(8, epochs=2).fit(read_graph(path, columns={"text": "text"}))
    model.save(path / "run")
    return TestClient(make_app(path / "run"), raise_server_exceptions=False)


def test_cells_that_no_vector_can_hold_are_refused(cities, client, model):
    named = dict.fromkeys(model.feature_names_, 0.0)
    texts = [{"size": 1, "text": cell} for cell in ("\ud800", ["\ud800"], [10**400])]
    numbers = [{"size": cell, "text": "north"} for cell in (3e38, 1e300, 10**400, "\ud800")]
    plain = [
        [3e38] * 12,
        [10**400] * 12,
        *({**named, "x0": cell} for cell in (3e38, 10**400, "\ud800")),
    ]
    for one, features in [
        *((cities, each) for each in texts + numbers),
        *((client, each) for each in plain),
    ]:
        answer = one.post("/vectors", content=json.dumps([{"features": features}]), headers=JSON)
        assert answer.status_code == 422, (features, answer.text)


def test_nodes_are_found_by_name_and_shown_with_it(cities):
    assert cities.get("/nodes/c7").json()["name"] == "City 07"
    assert cities.get("/nodes/City 07").json() == cities.get("/nodes/c7").json()
    near = cities.get("/nodes/City 07/neighbours?k=3").json()
    assert [list(one) for one in near] == [["id", "name", "cosine"]] * 3
    new = [
        {"features": {"size": 1, "text": "north"}, "neighbours": joined}
        for joined in (["c7"], ["City 07"])
    ]
    one, other = cities.post("/vectors", json=new).json()
    assert one == other
    assert cities.post("/vectors", json=[new[0] | {"neighbours": ["City"]}]).status_code == 422


def test_a_body_without_features_is_told_which_are_expected(cities, client):
    for one, names in ((cities, '"size", "text"'), (client, '"x0", "x1"')):
        answer = one.post("/vectors", json=[{"neighbours": []}])
        assert (answer.status_code, names in answer.json()["detail"]) == (422, True), answer.text


def test_a_run_of_several_types_asks_for_one(tmp_path):
    for kind in ("paper", "author"):
        DGI(8, epochs=1).fit(typed_graph().target(kind)).save(tmp_path / "run" / kind)
    done = CliRunner().invoke(command, [str(tmp_path / "run")])
    assert (done.exit_code, "--type author" in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr
    done = CliRunner().invoke(command, [str(tmp_path / "run"), "--type", "nobody"])
    assert done.exit_code == 2, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM")
def test_it_listens_here_only_and_ends_when_it_is_told_to(run):
    """Though a request is only half sent, which will never be answered."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, ROOT / "recipes/serve.py", run, "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):
            try:
                with urlopen(f"http://127.0.0.1:{port}/health") as answer:
                    assert json.load(answer)["status"] == "ok"
                    break
            except URLError:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.1)
        with socket.create_connection(("127.0.0.1", port)) as half:
            half.sendall(b"POST /vectors HTTP/1.1\r\nHost: here\r\nContent-Length: 99\r\n\r\n[")
            time.sleep(0.5)  # until the server reads it
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert f"http://127.0.0.1:{port}" in told
    assert "Finished server process" in told
    assert "Traceback" not in told
