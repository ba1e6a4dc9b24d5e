"""A vector is traced back to cells, edges and parts: every number of the explanation is that of the step itself."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sample_graphs import random_graph

from infomax import DGI, Graph
from infomax.arrays.sparsity import dense
from infomax.errors import InputError
from infomax.estimator.explaining import Explanation, explain_node, weights_of_messages
from infomax.kernels import Backend
from infomax.views.propagation import Normalisation, Propagation

NODES = 40


def shop_graph(*, has_text: bool = True) -> Graph:
    rows = np.arange(NODES)
    nodes = pd.DataFrame(
        {
            "id": [f"n{row}" for row in rows],
            "shown_name": [f"Node Nr{row}" for row in rows],
            "age": [None if row == 3 else 20.0 + row % 7 for row in rows],
            "city": [("Bern", "Chur", "Genf")[row % 3] for row in rows],
            "born": [f"19{60 + row % 30}-0{1 + row % 9}-11" for row in rows],
            "about": [
                f"likes {('tea', 'cups')[row % 2]} and a lot of other things" for row in rows
            ],
        }
    )
    if not has_text:
        nodes = nodes.drop(columns="about")
    edges = pd.DataFrame(
        {"source": nodes["id"], "target": np.roll(nodes["id"], 1), "weight": 1.0 + rows % 3}
    )
    return Graph.from_frames(edges, nodes, name="shown_name")


@pytest.fixture(scope="module")
def model() -> DGI:
    return DGI(8, epochs=2, seed=0, device="cpu").fit(shop_graph())


def test_cells_are_those_of_the_table(model: DGI) -> None:
    explained = {column.name: column for column in model.explain("n5").columns}
    assert list(explained) == ["age", "city", "born", "about"]
    assert explained["age"].cell == pytest.approx(25, rel=1e-5)
    assert explained["city"].cell == "Genf"
    assert str(explained["born"].cell.astype("datetime64[h]")).startswith("1965-06-1")
    assert set(explained["about"].cell.split()) <= {
        "likes",
        "cups",
        "and",
        "a",
        "lot",
        "of",
        "other",
        "things",
    }
    (city,) = explained["city"].features
    assert (city.name, city.encoded, city.scaled) == ("city=Genf", 1, 1)
    missing = {column.name: column for column in model.explain("n3").columns}["age"]
    assert missing.cell is None
    assert missing.features[-1].name == "age: missing"


def test_cells_are_what_was_typed_and_not_what_float32_makes_of_it() -> None:
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2018-03-01") + pd.to_timedelta(rng.integers(0, 2500, NODES), unit="D")
    minutes = days + pd.to_timedelta(rng.integers(0, 1440, NODES), unit="min")
    nodes = pd.DataFrame(
        {
            "id": np.arange(NODES),
            "opened": days.astype(str),
            "seen": minutes.strftime("%Y-%m-%d %H:%M"),
            "born": rng.integers(1950, 2005, NODES),
            "price": np.round(rng.uniform(0.01, 90, NODES), 2),
        }
    )
    edges = pd.DataFrame({"source": np.arange(NODES), "target": np.roll(np.arange(NODES), 1)})
    graph = Graph.from_frames(edges, nodes)
    decoded = graph.encoding.inverse_transform(graph.table.values)
    np.testing.assert_array_equal(decoded["opened"].astype("datetime64[us]"), days.to_numpy())
    np.testing.assert_array_equal(decoded["born"].astype(float), nodes["born"])
    np.testing.assert_array_equal(decoded["price"].astype(float), nodes["price"])
    np.testing.assert_array_equal(decoded["seen"].astype("datetime64[us]"), minutes.to_numpy())

    explanation = DGI(8, epochs=1, seed=0, device="cpu").fit(graph).explain(5)
    cells = {column["name"]: column["cell"] for column in explanation.to_json()["columns"]}
    assert cells["opened"] == nodes["opened"][5]
    assert cells["born"] == nodes["born"][5]


def test_parts_make_the_vector(model: DGI) -> None:
    graph = model.graph_
    vectors = model.transform(graph)
    explanation = model.explain("Node Nr5")
    np.testing.assert_allclose(explanation.vector, vectors["n5"], rtol=1e-5, atol=1e-6)
    assert [part.name for part in explanation.parts] == list(vectors.parts)
    assert sum(part.share for part in explanation.parts) == pytest.approx(1, rel=1e-5)
    lengths = [part.length for part in explanation.parts]
    assert np.linalg.norm(lengths) == pytest.approx(explanation.length, rel=1e-5)
    for part in explanation.parts:
        for number in part.numbers:
            assert number.value == pytest.approx((number.raw - number.centre) * number.factor)
            assert number.value == pytest.approx(explanation.vector[number.position], abs=1e-5)


def test_what_columns_add_to_the_own_part_sums_to_it(model: DGI) -> None:
    explanation = model.explain("n5")
    recipe = model.fitted_.recipe
    scaled = dense(model.graph_.scaled(recipe.scaler).table[[5]])[0]
    own = scaled @ recipe.projections[""].numpy()
    (part,) = (part for part in explanation.parts if part.name == "own")
    assert part.raw_length == pytest.approx(np.linalg.norm(own), rel=1e-5)
    slices = model.graph_.encoding.slices()
    for column in explanation.columns:
        features = slices[column.name]
        added = scaled[features] @ recipe.projections[""].numpy()[features]
        assert column.own_length == pytest.approx(np.linalg.norm(added), rel=1e-5)


def test_a_column_is_followed_alone(model: DGI) -> None:
    explanation = model.explain("n5", column="age")
    assert [column.name for column in explanation.columns] == ["age"]
    with pytest.raises(InputError, match='Did you mean "city"'):
        model.explain("n5", column="cty")


def sum_of_terms(explanation: Explanation) -> tuple[float, float]:
    """The raw value of the one number that is explained, and the sum of its terms."""
    ((number,),) = (part.numbers for part in explanation.parts if part.numbers)
    assert len(number.terms) == number.term_count
    return number.raw, sum(term.value * term.weight for term in number.terms)


def test_numbers_of_the_own_and_the_pooled_part_are_the_sums_of_their_terms(model: DGI) -> None:
    columns = model.transform(model.graph_).columns
    for part in ("own", "pooled"):
        for number in range(columns[part].start, columns[part].stop):
            explanation = explain_node(model.fitted_, "n5", "cpu", number=number, most_terms=1000)
            raw, sum_of_raw = sum_of_terms(explanation)
            assert sum_of_raw == pytest.approx(raw, rel=1e-4, abs=1e-6)


def test_a_number_leads_to_the_cells_it_is_made_of() -> None:
    graph = shop_graph(has_text=False)
    model = DGI(8, epochs=1, seed=0, device="cpu").fit(graph)
    embeddings = model.transform(graph)
    names = [name for part in embeddings.parts.values() for name in part]

    def columns_behind(number: int) -> list[str]:
        return [column.name for column in model.explain("n5", number=number).columns]

    assert columns_behind(names.index("city=Genf")) == ["city"]
    assert columns_behind(names.index("city=Bern")) == ["city"]  # the node is not of Bern
    steps = model.explain("n5", number=names.index("city=Genf")).functions
    assert steps["cell of category to features"].endswith("CategoryColumn.encode")
    assert steps["features to scaled features"] == "(none: encoded columns are scaled already)"
    assert steps["projection of own parts, fitted"].endswith("own_features.own_projection")
    assert steps["raw numbers of own"] == "infomax.training.own_features.project"
    assert columns_behind(embeddings.columns["encoder"].start) == ["age", "city", "born"]
    assert columns_behind(embeddings.columns["pooled"].start) == []
    last_position = embeddings.columns["positions"].stop - 1
    explanation = model.explain("n5", number=last_position)
    assert [step for step in explanation.functions if step.startswith("raw")] == [
        "raw numbers of positions"
    ]
    ((number,),) = (part.numbers for part in explanation.parts if part.numbers)
    assert (number.position, number.terms) == (last_position, [])


class NamedFunctionCalledError(BaseException):
    """Raised in place of a function that an explanation names; no reader of tables catches it."""


def raise_in_place_of(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the function of a path, such as ``infomax.module.Class.method``, raise."""

    def stand_in(*_: Any, **__: Any) -> None:
        raise NamedFunctionCalledError(path)

    module_name, _, name = path.rpartition(".")
    if module_name not in sys.modules:
        module_name, _, class_name = module_name.rpartition(".")
        monkeypatch.setattr(getattr(sys.modules[module_name], class_name), name, stand_in)
        return
    # Other modules have imported the function by its name.
    function = getattr(sys.modules[module_name], name)
    for module in list(sys.modules.values()):
        is_library = getattr(module, "__name__", "").startswith("infomax")
        if is_library and vars(module).get(name) is function:
            monkeypatch.setattr(module, name, stand_in)


def graph_of_all_column_types() -> Graph:
    rows = np.arange(NODES)
    nodes = pd.DataFrame(
        {
            "id": [f"n{row}" for row in rows],
            "age": [None if row == 3 else 20.0 + row % 7 for row in rows],
            "city": [("Bern", "Chur", "Genf")[row % 3] for row in rows],
            "born": [f"19{60 + row % 30}-0{1 + row % 9}-11" for row in rows],
            "about": [f"likes {('tea', 'cups')[row % 2]} and other warm drinks" for row in rows],
            "member": [("yes", "no")[row % 2] for row in rows],
            "sizes": [[float(row % 5), float(row % 3)] for row in rows],
        }
    )
    return Graph.from_frames(
        pd.DataFrame({"source": rows, "target": np.roll(rows, 1)}).map("n{}".format), nodes
    )


def typed_graph() -> Graph:
    authors = pd.DataFrame({"id": list("abcd"), "age": [1.0, 2.0, 4.0, 4.5]})
    papers = pd.DataFrame({"id": [10, 11], "size": [3.0, 5.0]})
    writes = pd.DataFrame({"author": list("aabcd"), "paper": [10, 11, 10, 11, 10]})
    graph = Graph.from_frames(
        {("author", "writes", "paper"): writes}, {"author": authors, "paper": papers}
    )
    return graph.target("author")


def graph_with_times() -> Graph:
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta([0, 90, 0, 90, 0, 90], unit="D")
    nodes = {
        "customer": pd.DataFrame({"id": range(3), "age": [1.0, 2.0, 3.0]}),
        "order": pd.DataFrame(
            {"id": range(6), "price": [1.0, 5.0, 2.0, 9.0, 4.0, 4.5], "day": days}
        ),
    }
    orders = pd.DataFrame({"source": range(6), "target": [0, 0, 1, 1, 2, 2]})
    edges = {("order", "by", "customer"): orders}
    return Graph.from_frames(edges, nodes, time="order.day").target("customer")


@pytest.mark.parametrize(
    ("make_graph", "half_life"),
    [(graph_of_all_column_types, None), (typed_graph, None), (graph_with_times, "latest,1y")],
)
def test_functions_that_are_named_make_the_vectors(
    make_graph: Callable[[], Graph], half_life: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_vectors() -> DGI:
        model = DGI(4, epochs=1, half_life=half_life, device="cpu").fit(make_graph())
        model.transform(model.graph_)
        return model

    model = make_vectors()
    functions: dict[str, str] = {}
    for part, columns in model.transform(model.graph_).columns.items():
        explanation = model.explain(model.graph_.ids[0], number=columns.start)
        steps = explanation.functions
        assert f"raw numbers of {part}" in steps
        functions |= steps
    column_types = {column.column_type for column in model.explain(model.graph_.ids[0]).columns}
    for column_type in column_types - {""}:
        assert f"cell of {column_type} to features" in functions

    for path in set(functions.values()):
        if path.startswith("(none"):
            continue
        with monkeypatch.context() as context:
            raise_in_place_of(path, context)
            with pytest.raises(NamedFunctionCalledError, match=re.escape(path)):
                make_vectors()


def test_the_resemblance_that_decides_the_length_of_the_own_part_is_shown(
    model: DGI, tmp_path: Path
) -> None:
    resemblance = model.explain("n5").resemblance
    assert resemblance is not None
    assert resemblance == model.health_["resemblance"]
    model.save(tmp_path / "run")
    assert DGI.load(tmp_path / "run").explain("n5").resemblance == resemblance
    assert "resemblance" in model.explain("n5").to_json()


def test_a_number_outside_the_vector_is_refused(model: DGI) -> None:
    width = len(model.explain("n5").vector)
    for number in (-1, width):
        with pytest.raises(InputError, match=f"--number: .* found {number}"):
            model.explain("n5", number=number)
    with pytest.raises(InputError, match="a column or a number"):
        model.explain("n5", number=0, column="age")


@pytest.mark.parametrize("rule", [Normalisation(True, 0.5, 0.5), Normalisation(True, 1, 0)])
def test_shares_of_messages_are_those_of_the_propagation(rule: Normalisation) -> None:
    graph = random_graph(seed=1)
    matrix = Propagation.of(graph, rule, Backend(torch.device("cpu")), torch.float64)
    expected = (matrix @ torch.eye(graph.num_nodes, dtype=torch.float64)).numpy()
    for row in range(graph.num_nodes):
        senders, weights = weights_of_messages(graph, rule, row)
        found = np.zeros(graph.num_nodes)
        found[senders] = weights
        np.testing.assert_allclose(found, expected[row], rtol=1e-6)


def test_paths_of_several_types_are_means_of_means() -> None:
    authors = pd.DataFrame({"id": list("abc"), "age": [1.0, 2.0, 4.0]})
    papers = pd.DataFrame({"id": [10, 11], "size": [3.0, 5.0]})
    writes = pd.DataFrame({"author": list("aabc"), "paper": [10, 11, 10, 11]})
    graph = Graph.from_frames(
        {("author", "writes", "paper"): writes}, {"author": authors, "paper": papers}
    ).target("author")
    model = DGI(4, epochs=1, device="cpu").fit(graph)
    paths = {path.name: path for path in model.explain("a").paths}
    shares = {sender.id: sender.share for sender in paths["author-paper-author"].senders}
    assert shares == {"a": 0.5, "b": 0.25, "c": 0.25}
    assert {sender.id for sender in paths["author-paper"].senders} == {10, 11}

    pooled_columns = model.transform(graph).columns["pooled"]
    for number in range(pooled_columns.start, pooled_columns.stop):
        raw, sum_of_raw = sum_of_terms(model.explain("a", number=number))
        assert sum_of_raw == pytest.approx(raw, rel=1e-5, abs=1e-6)
    json.dumps(model.explain("a").to_json())


def test_the_command_prints_one_screen_or_json(model: DGI, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from infomax.cli import app

    model.save(tmp_path / "run")
    shown = CliRunner().invoke(app, ["explain", str(tmp_path / "run"), "n5"])
    assert shown.exit_code == 0, shown.output
    assert len(shown.output.splitlines()) <= 40
    assert "city=Genf" in shown.output
    assert "the mean length of own is 0.5, or up to 2 where" in shown.output
    command = ["explain", str(tmp_path / "run"), "n5"]
    one_number = CliRunner().invoke(app, [*command, "--number", "8"]).output
    assert "[8] own 1 of" in one_number
    assert any(line.endswith("more") for line in one_number.splitlines())
    values = json.loads(CliRunner().invoke(app, [*command, "--column", "city", "--json"]).output)
    assert [column["cell"] for column in values["columns"]] == ["Genf"]
    assert len(values["vector"]) == len(model.explain("n5").vector)


def test_long_paths_are_not_cut_so_that_they_differ(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from infomax.cli import app

    rows = np.arange(NODES)
    nodes = {
        "measuring_station": pd.DataFrame({"id": rows, "height": rows % 7}),
        "maintenance_visit": pd.DataFrame({"id": rows, "cost": rows % 5}),
    }
    edges = {
        ("maintenance_visit", relation, "measuring_station"): pd.DataFrame(
            {"source": rows, "target": np.roll(rows, shift) % 9}
        )
        for shift, relation in enumerate(["begins", "ends"])
    }
    graph = Graph.from_frames(edges, nodes).target("measuring_station")
    DGI(8, epochs=1, seed=0, device="cpu").fit(graph, run=tmp_path / "run")
    shown = CliRunner().invoke(app, ["explain", str(tmp_path / "run"), "5"]).output
    for relation in ("begins", "ends"):
        assert f"  measuring_station-[{relation}]-maintenance_visit\n    " in shown
    assert "[N] as for --number, from 0 on" in shown
