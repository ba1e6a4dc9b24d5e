"""Vectors as of the time of each question."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from infomax import DGI, Graph
from infomax.arrays.times import DAY_IN_MICROSECONDS, UNKNOWN_TIME, parse_half_lives, parse_time
from infomax.errors import InputError
from infomax.estimator.questions import answer_in_blocks
from infomax.io.questions import read_questions, save_answers
from infomax.kernels.cpu_events import pool_events
from infomax.training.history import History, _latest_references

START = parse_time("2010-01-01")


def _shop(
    days: np.ndarray, seed: int = 0, mixed: int = 0, *, text: bool = False, **options: object
) -> Graph:
    """Orders of customers, of a product each; each order at a day. ``mixed`` is the seed of another order of rows."""
    customers, products = 5, 4
    draws, n = np.random.default_rng(seed), len(days)
    who, what = draws.integers(0, customers, n), draws.integers(0, products, n)
    price = draws.standard_normal(n)
    times = (START + days * DAY_IN_MICROSECONDS).astype("datetime64[us]")
    born = (np.arange(customers) * 400).astype("datetime64[D]")
    nodes = {
        "customer": pa.table({"id": np.arange(customers), "born": pa.array(born)}),
        "product": pa.table(
            {"id": np.arange(products), "size": np.arange(products) * 1.0, "old": np.ones(products)}
        ),
        "order": pa.table(
            {"id": np.arange(n), "price": price, "count": price**2, "date": pa.array(times)}
        ),
    }
    edges = {
        ("order", "by", "customer"): pa.table({"source": np.arange(n), "target": who}),
        ("order", "of", "product"): pa.table({"source": np.arange(n), "target": what}),
    }

    def told(table: pa.Table) -> pa.Table:
        order = (
            np.random.default_rng(mixed).permutation(len(table)) if mixed else np.arange(len(table))
        )
        ids = {
            name: table[name].cast(pa.string())
            for name in ("id", "source", "target")
            if name in table.column_names
        }
        table = pa.table({name: table[name] for name in table.column_names} | (ids if text else {}))
        return table.take(order)

    edges, nodes = ({name: told(one) for name, one in tables.items()} for tables in (edges, nodes))
    return Graph.from_frames(edges, nodes, time="order.date", **options)


@pytest.fixture(scope="module")
def model() -> DGI:
    graph = _shop(np.sort(np.random.default_rng(1).uniform(0, 500, 40)), as_of="2011-01-01")
    return DGI(8, epochs=2).fit(graph.target("customer"))


def _later(model: DGI, days: np.ndarray, **options: object) -> Graph:
    return _shop(days, like=model.graph_, **options).target("customer")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 900), min_size=30, max_size=60), st.integers(0, 900))
def test_a_vector_at_a_time_is_that_of_the_graph_cut_there_to_the_byte(
    model: DGI, days: list[float], day: int
) -> None:
    full = _later(model, np.array([0.0, *days]))
    at = {
        "id": np.arange(5),
        "time": np.full(5, START + day * DAY_IN_MICROSECONDS).astype("datetime64[us]"),
    }
    cut = full.as_of(START + day * DAY_IN_MICROSECONDS)
    assert (
        model.at(pa.table(at), full).vectors.tobytes()
        == model.at(pa.table(at), cut).vectors.tobytes()
    )


@pytest.mark.parametrize("text", [False, True])
def test_the_order_of_rows_changes_no_byte_though_many_have_one_time(text: bool) -> None:
    days = np.random.default_rng(5).integers(0, 20, 300).astype(float)
    model = DGI(8, epochs=1).fit(_shop(days, text=text).target("customer"))
    ids = np.arange(5).astype(str if text else int)
    at = pa.table(
        {
            "id": ids.repeat(20),
            "time": (START + np.tile(np.arange(20), 5) * DAY_IN_MICROSECONDS).astype(
                "datetime64[us]"
            ),
        }
    )
    one, other = (
        model.at(at, _later(model, days, mixed=seed, text=text)).vectors for seed in (0, 7)
    )
    assert one.tobytes() == other.tobytes()


def test_the_means_are_those_that_a_plain_loop_finds(model: DGI) -> None:
    days = np.random.default_rng(3).uniform(0, 700, 50)
    graph, draws = _later(model, days), np.random.default_rng(4)
    who, moments = (
        draws.integers(0, 5, 30),
        START + draws.integers(-10, 800, 30) * DAY_IN_MICROSECONDS,
    )
    found = model.at(pa.table({"customerId": who, "when": moments.astype("datetime64[us]")}), graph)
    names, orders = list(found.names), graph.nodes["order"]
    column = orders.table.scaled(model.scaler_.other_types["order"])[:, [0]][:, 0].astype(float)
    column = (
        column
        / model.graph_.nodes["order"].table.scaled(model.scaler_.other_types["order"])[:, [0]].std()
    )
    owner = graph.relations[0].edges.matrix().argmax(axis=1)
    product = graph.relations[1].edges.matrix().argmax(axis=1)
    for name, life in parse_half_lives("60d,365d,forever").items():
        for row, (customer, moment) in enumerate(zip(who, moments, strict=True)):
            is_of_customer = (owner == customer) & (orders.times <= moment)
            weight = 0.5 ** ((moment - orders.times[is_of_customer]) / DAY_IN_MICROSECONDS / life)
            mean = (
                (weight * column[is_of_customer]).sum() / weight.sum()
                if is_of_customer.any()
                else 0
            )
            assert found.vectors[
                row, names.index(f"mean of price over order, {name}")
            ] == pytest.approx(mean, abs=1e-5)
            count = found.vectors[row, names.index(f"number of order, {name}")]
            assert count == pytest.approx(np.log1p(weight.sum()), abs=1e-5)
            if is_of_customer.any():
                last = product[
                    np.flatnonzero(is_of_customer)[np.argmax(orders.times[is_of_customer])]
                ]
                same = (product == last) & (orders.times <= moment)
                weight = 0.5 ** ((moment - orders.times[same]) / DAY_IN_MICROSECONDS / life)
                told = found.vectors[
                    row, names.index(f"latest product: mean of price over order, {name}")
                ]
                assert told == pytest.approx((weight * column[same]).sum() / weight.sum(), abs=1e-5)
    years = (moments - (who * 400) * DAY_IN_MICROSECONDS) / DAY_IN_MICROSECONDS / 365.25
    assert np.allclose(found.vectors[:, names.index("age: born")], years, atol=1e-3)


def test_a_question_before_the_first_event_has_own_columns_alone(model: DGI) -> None:
    graph = _later(model, np.linspace(0, 700, 50))
    found = model.at(pa.table({"id": [3], "time": ["2009-12-31"]}), graph)
    pooled = np.array([" over " in name or name.startswith("number of") for name in found.names])
    assert not found.vectors[0, pooled].any()
    assert found.vectors[0, ~pooled].any()


def test_events_of_one_time_count_together_and_of_unknown_time_only_for_ever() -> None:
    times = np.array([UNKNOWN_TIME, START, START, START + DAY_IN_MICROSECONDS])
    table, lives = np.array([[1.0], [2.0], [4.0], [6.0]], np.float32), np.array([0.0, 1.0, np.inf])
    rows = np.zeros(4, np.int64)
    moments = np.array(
        [START + 2 * DAY_IN_MICROSECONDS, START, START - 1, START + DAY_IN_MICROSECONDS]
    )
    ask = (np.array([0, 4]), times, np.arange(4), table, (rows, moments), lives)
    means, weights, latest = pool_events(*ask)
    assert np.allclose(means[:, :, 0], [[6, 4.5, 3.25], [3, 3, 7 / 3], [0, 0, 1], [6, 4.5, 3.25]])
    assert np.allclose(weights, [[1, 1, 4], [2, 2, 3], [0, 0, 1], [1, 2, 4]])
    assert latest.tolist() == [3, 2, 0, 3]


def test_of_what_an_event_refers_to_counts_what_was_there_when_it_came() -> None:
    """Also what came at the very time of the event, as a parcel that is packed with its order; nothing later."""
    count = 6
    days = np.arange(count)
    parcel_days = days + np.array([0, 0, 0, 1, 1, -1])
    nodes = {
        "customer": pa.table({"id": range(count), "age": np.arange(count) * 1.0}),
        "order": pa.table({"id": range(count), "day": _dates(days)}),
        "parcel": pa.table({"id": range(count), "kilos": days**2.0, "day": _dates(parcel_days)}),
    }
    edges = {
        ("order", "by", "customer"): pa.table({"source": range(count), "target": range(count)}),
        ("order", "in", "parcel"): pa.table({"source": range(count), "target": range(count)}),
    }
    graph = Graph.from_frames(edges, nodes, time=["order.day", "parcel.day"]).target("customer")
    model = DGI(4, epochs=1).fit(graph)
    answers = model.at(pa.table({"id": range(count), "time": ["2030-01-01"] * count}))
    kilos = answers.vectors[
        :, list(answers.names).index("mean of parcel.kilos over order, forever")
    ]
    own = History(graph, graph, model.fitted_.scaler, parse_half_lives("forever")).tables["parcel"]
    expected = np.where(parcel_days <= days, own[:, 0], 0)
    np.testing.assert_allclose(kilos, expected, atol=1e-6)


def _dates(days: np.ndarray) -> pa.Array:
    return pa.array((START + days * DAY_IN_MICROSECONDS).astype("datetime64[us]"))


def test_of_several_kinds_of_events_the_latest_references_says_what_was_last() -> None:
    """Of two at one time the first kind does; an event that refers to nothing does not count."""

    def events(times: list[int]) -> SimpleNamespace:
        return SimpleNamespace(rows=np.arange(len(times)), times=np.array(times))

    first = (0, events([5, 5, 7, UNKNOWN_TIME]), np.array([10, 11, -1, 13]))
    second = (1, events([5, 6, 3, UNKNOWN_TIME]), np.array([20, 21, 22, 23]))
    latest = [np.array([0, 1, 2, 3, -1]), np.array([0, 1, 2, 3, 1])]
    assert _latest_references([first, second], latest, 5).tolist() == [10, 21, 22, 13, 21]
    assert _latest_references([second, first], latest, 5)[0] == 20


def _table(path: Path) -> pa.Table:
    return parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)


def test_answers_keep_the_order_and_the_other_columns(model: DGI, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text(
        "label,customer_id,date\n0.5,3,2011-01-01\n0.25,0,2010-06-01\n1,3,2010-06-01\n"
    )
    found = model.at(tmp_path / "q.csv")
    told = f"3 questions, {len(found.names)} columns"
    for name in ("a.parquet", "a.csv"):
        found.save(tmp_path / name)
    for name in ("a.parquet", "a.csv"):  # some at a time
        assert (
            save_answers(
                tmp_path / f"few-{name}",
                answer_in_blocks(
                    model.fitted_, tmp_path / "q.csv", model.graph_, bytes_per_block=1
                ),
            )
            == told
        )
        assert _table(tmp_path / f"few-{name}").equals(_table(tmp_path / name))
    frame = found.to_frame()
    assert frame["label"].tolist() == [0.5, 0.25, 1]
    assert frame[list(found.names)].to_numpy().tobytes() == found.vectors.tobytes()
    kept = parquet.read_table(tmp_path / "a.parquet")
    assert kept.column_names == ["label", "customer_id", "date", "vector"]
    assert np.array(kept["vector"].to_pylist(), np.float32).tobytes() == found.vectors.tobytes()
    assert csv.read_csv(tmp_path / "a.csv").column_names[3:] == list(found.names)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            "id,time\n0,2010-01-01\n77,2010-01-01\n",
            'line 3, column "id": expected the id of a node of type customer',
        ),
        (
            "id,time\n0,2010-01-01\n1,soon\n",
            'line 3, column "time": expected a day or a time such as',
        ),
        ("id,time\n0,\n", 'line 2, column "time": expected a time, found none'),
        ("id,time\n", "expected at least one question, found none"),
        ("id,moment\n0,2010-01-01\n", "expected a column of times, called time or date"),
    ],
)
def test_bad_questions_are_named_by_line_and_column(
    model: DGI, tmp_path: Path, cells: str, message: str
) -> None:
    (tmp_path / "q.csv").write_text(cells)
    with pytest.raises(InputError, match=message):
        model.at(tmp_path / "q.csv")


def test_a_row_cannot_be_asked_for_before_it_was_there(model: DGI) -> None:
    orders = model.graph_.target("order")
    with pytest.raises(
        InputError,
        match='a time when order "0" was there, found 1990-01-01; it is there since',
    ):
        read_questions(pa.table({"id": [0], "time": ["1990-01-01"]}), orders)
    plain = DGI(4, epochs=1).fit(Graph.from_arrays(np.array([[0, 1], [1, 2]]), np.eye(3)))
    with pytest.raises(InputError, match="expected rows with times, found none"):
        plain.at(pa.table({"id": [0], "time": ["1990-01-01"]}))
