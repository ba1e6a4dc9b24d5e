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
    _done(
        "train",
        str(tmp_path / "shop"),
        *common,
        "--type",
        "customer",
        "--epochs",
        "1",
        "--out",
        str(run),
    )
    assert read_graph(run / "customer" / "graph.npz").nodes["order"].num_nodes == 18
    options = ["--type", "customer", "--at", str(ask)]
    _done(
        "embed", str(run), str(tmp_path / "shop"), *options, "--out", str(tmp_path / "all.parquet")
    )
    found = parquet.read_table(tmp_path / "all.parquet")
    assert found["label"].to_pylist() == [7, 8, 9]
    cut = [str(tmp_path / "shop"), "--as-of", "2009-01-01"]
    _done("embed", str(run), *cut, *options, "--out", str(tmp_path / "cut.parquet"))
    vectors = np.array(found["vector"].to_pylist())
    earlier = np.array(parquet.read_table(tmp_path / "cut.parquet")["vector"].to_pylist())
    assert np.array_equal(vectors[[0, 2]], earlier[[0, 2]])
    assert not np.array_equal(vectors[1], earlier[1])
    out = ["--out", str(tmp_path / "x.parquet")]
    refused(
        infomax("embed", str(run), *options, "--time", "when", *out), 'a column "when" of times'
    )
    refused(
        infomax("embed", str(run), "--half-life", "60d", *out), "questions, which it is about: --at"
    )
    assert not (tmp_path / "x.parquet").exists()


def test_questions_after_the_rows_of_the_run_are_counted_unless_a_graph_is_given(
    tmp_path: Path,
) -> None:
    _shop(tmp_path / "shop")
    run, ask, out = tmp_path / "run", tmp_path / "questions.csv", tmp_path / "v.parquet"
    ask.write_text("customer,date\n1,2009-01-01\n0,2010-06-01\n1,2009-05-01\n2,2010-06-02\n")
    until = ["--time", "order.date", "--as-of", "2009-06-01", "--type", "customer"]
    _done("train", str(tmp_path / "shop"), *until, "--epochs", "1", "--out", str(run))
    words = ("embed", run, "--type", "customer", "--at", ask, "--out", out)
    outcome = infomax(*words)
    assert outcome.code == 0, outcome.err
    expected = (
        "questions: 2 of 4 are later than the rows of the training graph, which end at 2009-06-01"
    )
    assert expected in " ".join(outcome.err.split())
    assert expected not in " ".join(infomax(*words[:2], tmp_path / "shop", *words[2:]).err.split())
    ask.write_text("customer,date\n1,2009-06-01\n")
    assert "are later" not in infomax(*words).err


def test_vectors_as_of_a_day_before_the_last_row_of_the_run_get_a_warning(tmp_path: Path) -> None:
    _shop(tmp_path / "shop")
    train = ["train", str(tmp_path / "shop"), "--time", "order.date", "--type", "customer"]
    late, early, out = tmp_path / "late", tmp_path / "early", tmp_path / "v.parquet"
    _done(*train, "--epochs", "1", "--out", str(late))
    _done(*train, "--as-of", "2009-06-01", "--epochs", "1", "--out", str(early))
    # Python prints the same warning once per process, so each command asks for another day.
    for day, graph in (("2009-06-01", []), ("2009-07-01", [str(tmp_path / "shop")])):
        as_of = [*graph, "--as-of", day, "--out", str(out)]
        outcome = infomax("embed", str(late), *as_of)
        assert outcome.code == 0, outcome.err
        expected = (
            f"warning: --as-of {day}: the run was trained on rows up to 2010-06-01, and its encoder "
            "knows them. For predictions: embed --at QUESTIONS; for an encoder that knows nothing "
            f'later: train --as-of "{day}".'
        )
        assert " ".join(outcome.err.split()).count(expected) == 1
    cut = ["--as-of", "2009-06-01", "--out", str(out)]
    assert "trained on rows" not in infomax("embed", str(early), *cut).err
    assert "trained on rows" not in infomax("embed", str(late), "--out", str(out)).err
    on_last_day = ["--as-of", "2010-06-01", "--out", str(out)]
    assert "trained on rows" not in infomax("embed", str(late), *on_last_day).err


def test_questions_of_a_run_of_several_types_say_their_type_by_a_column(tmp_path: Path) -> None:
    _shop(tmp_path / "shop")
    run, ask, out = tmp_path / "run", tmp_path / "questions.csv", tmp_path / "v.parquet"
    _done(
        "train", str(tmp_path / "shop"), "--time", "order.date", "--epochs", "1", "--out", str(run)
    )
    ask.write_text("id,date,customerId\n29,2009-01-01,1\n28,2010-06-01,0\n")
    _done("embed", str(run), "--at", str(ask), "--out", str(out))
    whole = parquet.read_table(out)["vector"]
    _done(
        "embed",
        str(run),
        "--type",
        "customer",
        "--at",
        str(ask),
        "--id",
        "customerId",
        "--out",
        str(out),
    )
    assert parquet.read_table(out)["vector"] == whole
    ask.write_text("customer,order,date\n1,3,2010-01-01\n")
    refused(
        infomax("embed", str(run), "--at", str(ask), "--out", str(out)),
        'ids of "customer", "order". --type',
    )
    ask.write_text("who,date\n1,2010-01-01\n")
    refused(
        infomax("embed", str(run), "--at", str(ask), "--out", str(out)),
        'the columns "who", "date". --type',
    )


def test_rows_of_an_edge_table_with_times_are_nodes(tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text(
        "source,target,when\na,b,2020-01-01\nb,c,2020-02-01\na,c,2020-03-01\n"
    )
    told = _done("info", str(tmp_path / "calls.csv"), "--time", "when", "--as-of", "2020-02-10")
    assert "event" in told
    graph = read_graph(tmp_path / "calls.csv", time="when", as_of="2020-02-10")
    assert {kind: one.num_nodes for kind, one in graph.nodes.items()} == {"event": 2, "node": 3}


def test_answers_do_not_use_positions_and_say_nothing_of_them(tmp_path: Path) -> None:
    calls, ask, run = str(tmp_path / "calls.csv"), tmp_path / "questions.csv", str(tmp_path / "run")
    Path(calls).write_text("source,target,when\na,b,2020-01-01\nb,c,2020-02-01\na,c,2020-03-01\n")
    ask.write_text("id,date\na,2020-02-10\n")
    _done(
        "train",
        calls,
        "--time",
        "when",
        "--type",
        "node",
        "--dim",
        "4",
        "--epochs",
        "1",
        "--out",
        run,
    )
    told = {}
    for name, more in (("at", ["--at", str(ask)]), ("all", [])):
        outcome = infomax(
            "embed", run, calls, "--type", "node", *more, "--out", str(tmp_path / f"{name}.parquet")
        )
        assert outcome.code == 0, outcome.err
        told[name] = "Positions in this graph" in outcome.err
    assert told == {"at": False, "all": True}
