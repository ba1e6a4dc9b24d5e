"""Times on the command line: a graph as of a day, and one vector per question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pyarrow import parquet
from shell import infomax, refused

from infomax import read_graph


def _shop(folder: Path) -> None:
    """Thirty orders of four customers, one a month, and three questions."""
    (folder / "nodes").mkdir(parents=True)
    (folder / "edges").mkdir()
    months = [f"{2008 + month // 12}-{month % 12 + 1:02d}-01" for month in range(30)]
    orders = "".join(f"{at},{at % 7}.5,{day}\n" for at, day in enumerate(months))
    (folder / "nodes" / "order.csv").write_text(f"id,price,date\n{orders}")
    (folder / "nodes" / "customer.csv").write_text("id,age\n0,30\n1,40\n2,50\n3,60\n")
    edges = "".join(f"{at},{at * at % 4}\n" for at in range(30))
    (folder / "edges" / "order.by.customer.csv").write_text(f"source,target\n{edges}")


def _done(*words: str) -> str:
    outcome = infomax(*words)
    assert outcome.code == 0, outcome.err
    return outcome.out


def test_questions_are_answered_from_rows_up_to_their_time(tmp_path: Path) -> None:
    _shop(tmp_path / "shop")
    run, ask = tmp_path / "run", tmp_path / "questions.csv"
    ask.write_text("customer,date,label\n1,2009-01-01,7\n0,2010-06-01,8\n1,2008-06-15,9\n")
    common = ["--time", "order.date", "--as-of", "2009-06-01"]
    _done("train", str(tmp_path / "shop"), *common, "--type", "customer", "--epochs", "1", "--out", str(run))
    assert read_graph(run / "customer" / "graph.npz").nodes["order"].num_nodes == 18
    options = ["--type", "customer", "--at", str(ask)]
    _done("embed", str(run), str(tmp_path / "shop"), *options, "--out", str(tmp_path / "all.parquet"))
    found = parquet.read_table(tmp_path / "all.parquet")
    assert found["label"].to_pylist() == [7, 8, 9]
    cut = [str(tmp_path / "shop"), "--as-of", "2009-01-01"]
    _done("embed", str(run), *cut, *options, "--out", str(tmp_path / "cut.parquet"))
    vectors = np.array(found["vector"].to_pylist())
    earlier = np.array(parquet.read_table(tmp_path / "cut.parquet")["vector"].to_pylist())
    assert np.array_equal(vectors[[0, 2]], earlier[[0, 2]])
    assert not np.array_equal(vectors[1], earlier[1])
    out = ["--out", str(tmp_path / "x.parquet")]
    refused(infomax("embed", str(run), *options, "--time", "when", *out), 'a column "when" of times')
    refused(infomax("embed", str(run), "--half-life", "60d", *out), "questions, which it is about: --at")
    assert not (tmp_path / "x.parquet").exists()


def test_rows_of_an_edge_table_with_times_are_nodes(tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text("source,target,when\na,b,2020-01-01\nb,c,2020-02-01\na,c,2020-03-01\n")
    told = _done("info", str(tmp_path / "calls.csv"), "--time", "when", "--as-of", "2020-02-10")
    assert "event" in told
    graph = read_graph(tmp_path / "calls.csv", time="when", as_of="2020-02-10")
    assert {kind: one.num_nodes for kind, one in graph.nodes.items()} == {"event": 2, "node": 3}
