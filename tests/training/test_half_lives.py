"""Pooled parts with half-lives: newer rows weigh more in the means along paths."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from infomax import DGI, Embeddings, Graph, InputError
from infomax.arrays.times import DAY_IN_MICROSECONDS, UNKNOWN_TIME, parse_time
from infomax.parts.encoders import PathMean
from infomax.training.runs import vectors_of_run

START = parse_time("1950-01-01")
LIVES = "60d,365d,forever"


def _shop(orders: int = 60, seed: int = 0, **options: object) -> Graph:
    """Orders of customers, of a product each, over 70 years; products have makers, which nothing dated refers to."""
    draws = np.random.default_rng(seed)
    days = np.sort(draws.uniform(0, 25_000, 60))[:orders]
    who, what, price = draws.integers(0, 7, 60), draws.integers(0, 5, 60), draws.standard_normal(60)
    nodes = {
        "customer": pa.table({"id": np.arange(7), "age": draws.standard_normal(7)}),
        "product": pa.table(
            {"id": np.arange(5), "size": np.arange(5) * 1.0, "old": draws.standard_normal(5)}
        ),
        "maker": pa.table({"id": np.arange(2), "staff": [3.0, 8.0]}),
        "order": pa.table(
            {
                "id": np.arange(orders),
                "price": price[:orders],
                "count": price[:orders] ** 2,
                "date": pa.array((START + days * DAY_IN_MICROSECONDS).astype("datetime64[us]")),
            }
        ),
    }
    edges = {
        ("order", "by", "customer"): pa.table(
            {"source": np.arange(orders), "target": who[:orders]}
        ),
        ("order", "of", "product"): pa.table(
            {"source": np.arange(orders), "target": what[:orders]}
        ),
        ("product", "from", "maker"): pa.table(
            {"source": np.arange(5), "target": np.arange(5) % 2}
        ),
    }
    return Graph.from_frames(edges, nodes, time="order.date", **options)


@pytest.fixture(scope="module")
def model() -> DGI:
    return DGI(4, epochs=1, half_life=LIVES).fit(_shop().target("customer"))


@pytest.mark.parametrize("kind", ["customer", "product", "order"])
def test_for_ever_is_plain_means(kind: str) -> None:
    graph = _shop().target(kind)
    plain, aged = (
        DGI(4, epochs=0, half_life=life).fit_transform(graph) for life in (None, "forever")
    )
    assert list(aged.parts) == ["encoder", "own", "pooled forever", "positions"]
    np.testing.assert_allclose(aged.vectors, plain.vectors, atol=1e-5)


def test_a_type_whose_paths_lead_to_no_times_has_plain_means() -> None:
    encoder = partial(PathMean, paths=["maker-product"])
    found = DGI(4, epochs=0, half_life=LIVES, encoder=encoder, preset="types").fit_transform(
        _shop().target("maker")
    )
    assert list(found.parts) == ["encoder", "own", "pooled", "positions"]


def test_means_are_those_of_questions_asked_after_the_last_event(model: DGI) -> None:
    raw = model.fitted_.parts_outside_embedder(model.graph_, model.fitted_.recipe)["pooled"][
        np.arange(7)
    ]
    parts = model.fitted_.recipe.parts
    names = [name for life in LIVES.split(",") for name in parts[f"pooled {life}"]]
    asked = pa.table({"id": np.arange(7), "time": ["2030-01-01"] * 7})
    answers = model.at(asked)
    for life in LIVES.split(","):
        mine = raw[:, names.index(f"mean of price over order, {life}")]
        theirs = answers.vectors[:, list(answers.names).index(f"mean of price over order, {life}")]
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
    old = raw[:, names.index("mean of price over order, 60d")]
    assert np.abs(old - raw[:, names.index("mean of price over order, forever")]).min() > 1e-4
    assert list(model.at(asked, half_life="1y").names) != list(answers.names)


def test_vectors_as_of_a_day_are_those_of_the_rows_up_to_then(model: DGI) -> None:
    full = _shop(like=model.graph_).target("customer")
    day = int(np.sort(full.nodes["order"].times)[39])
    cut, fewer = full.as_of(day), _shop(40, like=model.graph_).target("customer")
    aged = [name for name in model.fitted_.recipe.parts if name.startswith("pooled")]
    found = [model.transform(graph, vectors="pooled") for graph in (cut, fewer, full)]
    assert list(found[0].parts) == aged == [f"pooled {life}" for life in LIVES.split(",")]
    assert found[0].vectors.tobytes() == found[1].vectors.tobytes()
    assert not np.allclose(found[0].vectors, found[2].vectors)


def test_a_run_a_graph_folder_and_some_rows_give_the_same_vectors(
    model: DGI, tmp_path: Path
) -> None:
    vectors = model.transform(model.graph_).vectors
    model.save(tmp_path / "run")
    again = DGI.load(tmp_path / "run")
    assert again.preset_.half_life == LIVES
    assert again.hash_ == model.hash_
    assert again.transform(again.graph_).vectors.tobytes() == vectors.tobytes()
    kept = vectors_of_run(tmp_path / "run")
    again.transform(again.graph_).save(tmp_path / "v.parquet")
    order = ["encoder", "own", *(f"pooled {life}" for life in LIVES.split(",")), "positions"]
    assert list(kept.parts) == list(Embeddings.read(tmp_path / "v.parquet").parts) == order
    model.graph_.save(tmp_path / "shop.graph")
    stored = Graph.open(tmp_path / "shop.graph").target("customer")
    np.testing.assert_allclose(model.transform(stored).vectors, vectors, atol=1e-5)
    rows = np.array([1, 4])
    np.testing.assert_allclose(model.transform(stored, rows=rows).vectors, vectors[rows], atol=1e-5)
    model.write_vectors(stored, tmp_path / "v.npy")
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), vectors, atol=1e-5)


def test_a_new_node_has_the_pooled_parts_of_a_known_one_with_its_edges(model: DGI) -> None:
    place, orders, _ = model.graph_.relations[0].edges.received(np.array([2]))
    assert len(place) > 1
    row = model.graph_.table[np.array([2])][0]
    found = model.vector(row, {"order": [int(one) for one in orders]})
    known = model.transform(model.graph_)
    for name in ("own", *(f"pooled {life}" for life in LIVES.split(","))):
        first = known.columns[name].start
        # Orders have two customers now, so what is pooled along order-customer differs; orders and products do not.
        same = [
            first + at for at, told in enumerate(known.parts[name]) if "over customer" not in told
        ]
        np.testing.assert_allclose(found[same], known.vectors[2, same], atol=1e-5, err_msg=name)


def test_pooled_parts_of_several_half_lives_have_one_length_together(model: DGI) -> None:
    found = model.transform(model.graph_)
    lengths = [
        np.linalg.norm(found.vectors[:, found.columns[f"pooled {life}"]], axis=1).mean()
        for life in LIVES.split(",")
    ]
    np.testing.assert_allclose(lengths, 0.5 / np.sqrt(3), rtol=1e-4)


@pytest.mark.parametrize("half_life", [60, [60], 1.5, {"60d": 60.0}])
def test_a_half_life_that_is_no_text_is_refused(model: DGI, half_life: object) -> None:
    asked = pa.table({"id": np.arange(7), "time": ["2030-01-01"] * 7})
    with pytest.raises(InputError, match="half_life: expected half-lives such as 60d"):
        model.at(asked, half_life=half_life)  # type: ignore[arg-type]


def _pooled_of(graph: Graph, half_lives: str, column: str) -> dict[str, np.ndarray]:
    """A column of the pooled parts of all nodes, by half-life."""
    model = DGI(4, epochs=0, half_life=half_lives).fit(graph)
    recipe = model.fitted_.recipe
    table = model.fitted_.parts_outside_embedder(graph, recipe)["pooled"]
    rows = table[np.arange(graph.num_nodes)]
    names = [name for part in recipe.parts if "pooled" in part for name in recipe.parts[part]]
    return {life: rows[:, names.index(f"{column}, {life}")] for life in half_lives.split(",")}


def _baskets(order_days: list[int], product_days: list[int]) -> Graph:
    """Two products of every order; orders and products have days."""
    count, products = len(order_days), len(product_days)
    order = np.repeat(np.arange(count), 2)
    product = np.arange(2 * count) % products
    nodes = {
        "order": pa.table({"id": np.arange(count), "day": _days(order_days)}),
        "product": pa.table(
            {
                "id": np.arange(products),
                "size": np.arange(products) ** 2.0,
                "since": _days(product_days),
            }
        ),
    }
    edges = {("order", "of", "product"): pa.table({"source": order, "target": product})}
    return Graph.from_frames(edges, nodes, time=["order.day", "product.since"])


def _days(days: list[float]) -> pa.Array:
    return pa.array((START + np.array(days) * DAY_IN_MICROSECONDS).astype("datetime64[us]"))


def test_an_edge_is_as_old_as_the_later_of_its_rows() -> None:
    """What is older than the order joined it with the order: all its edges are of one age, and the mean is plain."""
    column = "mean of size over product"
    old = _pooled_of(_baskets([900, 950, 990, 995], [0, 300, 600]).target("order"), LIVES, column)
    np.testing.assert_allclose(old["60d"], old["forever"], atol=1e-6)
    new = _pooled_of(_baskets([0, 0, 0, 0], [100, 300, 600]).target("order"), LIVES, column)
    assert np.abs(new["60d"] - new["forever"]).min() > 1e-3


def test_latest_is_the_mean_of_the_last_moment_alone() -> None:
    seconds = np.array([0, 1, 1, 5, 4]) / 86_400
    prices = np.array([8.0, 1.0, 3.0, 7.0, 2.0])
    nodes = {
        "customer": pa.table({"id": [0, 1], "age": [1.0, 2.0]}),
        "order": pa.table({"id": np.arange(5), "price": prices, "day": _days(list(seconds))}),
    }
    edges = {("order", "by", "customer"): pa.table({"source": range(5), "target": [0, 0, 0, 1, 1]})}
    graph = Graph.from_frames(edges, nodes, time="order.day").target("customer")
    pooled = _pooled_of(graph, "latest,forever", "mean of price over order")
    # Features are centred and divided, so that differences keep their ratio.
    ratio = (2.0 - 7.0) / (4.0 - 4.5)
    difference = pooled["latest"][0] - pooled["latest"][1]
    assert difference == pytest.approx(ratio * (pooled["forever"][0] - pooled["forever"][1]))


def test_weights_of_edges_count_in_means_of_any_half_life() -> None:
    def graph(weights: list[float]) -> Graph:
        nodes = {
            "customer": pa.table({"id": range(3), "age": [1.0, 2.0, 3.0]}),
            "order": pa.table(
                {
                    "id": range(6),
                    "price": [1.0, 5.0, 2.0, 9.0, 4.0, 4.5],
                    "day": _days([0, 90, 0, 90, 0, 90]),
                }
            ),
        }
        columns = {"source": range(6), "target": [0, 0, 1, 1, 2, 2], "weight": weights}
        edges = {("order", "by", "customer"): pa.table(columns)}
        return Graph.from_frames(edges, nodes, time="order.day", weight="weight").target("customer")

    column = "mean of price over order"
    # Three times the weight of the older order is as if it came later by as much as three halves take.
    weighed = _pooled_of(graph([3.0, 1, 3, 1, 3, 1]), "60d,forever", column)
    plain = _pooled_of(graph([1.0] * 6), "60d,forever", column)
    share = 3 / (3 + 2**1.5)
    older, newer = _ends_of_orders(plain)
    np.testing.assert_allclose(weighed["60d"], share * older + (1 - share) * newer, atol=1e-5)
    np.testing.assert_allclose(weighed["forever"], (3 * older + newer) / 4, atol=1e-5)


def _ends_of_orders(plain: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The values of the older and of the newer order, 90 days later, from both means without weights."""
    share = 1 / (1 + 2**1.5)  # of the older one, for 60 days
    newer = (plain["60d"] - 2 * share * plain["forever"]) / (1 - 2 * share)
    return 2 * plain["forever"] - newer, newer


def test_update_computes_what_a_later_or_redated_order_reaches(model: DGI) -> None:
    before = model.transform(model.graph_)
    later = _shop(like=model.graph_).target("customer")
    later.nodes["order"].times[3] += 400 * DAY_IN_MICROSECONDS
    found = model.update(later, before)
    assert found.computed > 0
    np.testing.assert_allclose(found.embeddings.vectors, model.transform(later).vectors, atol=1e-5)


def test_rows_without_times_count_for_ever_alone() -> None:
    graph = _shop().target("customer")
    graph.nodes["order"].times[::2] = UNKNOWN_TIME
    model = DGI(4, epochs=0, half_life="latest,365d,forever").fit(graph)
    assert np.isfinite(model.transform(graph).vectors).all()
    some = graph.target("order").part(np.arange(60) % 2 == 1).target("customer")
    aged, known = (
        model.fitted_.parts_outside_embedder(one, model.fitted_.recipe)["pooled"][np.arange(7)]
        for one in (graph, some)
    )
    names = ["mean of price over order, latest", "mean of price over order, 365d"]
    parts = model.fitted_.recipe.parts
    columns = [[*parts["pooled latest"], *parts["pooled 365d"]].index(name) for name in names]
    dated = some.relations[0].edges.strength(np.arange(7)) > 0
    np.testing.assert_allclose(aged[dated][:, columns], known[dated][:, columns], atol=1e-5)


@pytest.mark.parametrize(
    ("options", "graph", "message"),
    [
        (
            {},
            lambda: _plain(),
            "half_life: expected a graph whose rows have times, found one without",
        ),
        (
            {},
            lambda: _plain(times=np.arange(3)),
            "rows with times that refer to others, in several types, found one",
        ),
        (
            {"vectors": "own"},
            lambda: _shop().target("customer"),
            "expected vectors with a pooled part, found own",
        ),
        (
            {"half_life": "soon"},
            lambda: _shop().target("customer"),
            "expected half-lives such as 60d",
        ),
    ],
)
def test_half_lives_are_refused_where_they_mean_nothing(options, graph, message) -> None:
    with pytest.raises(InputError, match=message):
        DGI(4, epochs=0, **({"half_life": LIVES} | options)).fit(graph())


def _plain(**options: object) -> Graph:
    return Graph.from_arrays(np.array([[0, 1], [1, 2]]), np.eye(3), **options)
