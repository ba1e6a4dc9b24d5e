"""DGI among the tools that people have: scikit-learn's own checks, pipelines over ids, frames, and SQL over vectors.

Checks of scikit-learn that fit an estimator to a matrix cannot hold: a graph is no matrix whose rows can be divided, so
DGI takes a Graph and refuses anything else. What these checks are about is tested here with a graph.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sample_graphs import random_graph
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import estimator_checks

from infomax import DGI, Embeddings, Graph, InputError

WITHOUT_DATA = (
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
)
WITH_A_MATRIX = (
    "check_dict_unchanged",
    "check_estimators_dtypes",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_fit_idempotent",
    "check_n_features_in",
    "check_readonly_memmap_input",
    "check_transformer_general",
)


@pytest.fixture(scope="module")
def graph():
    draws = np.random.default_rng(0)
    labels = np.arange(90) % 3
    ends = draws.integers(0, 90, (2, 900))
    ends = ends[:, labels[ends[0]] == labels[ends[1]]]
    features = np.eye(3, 6)[labels] + draws.normal(size=(90, 6))
    ids = np.array([f"n{row:02d}" for row in range(90)], dtype=object)
    return Graph.from_arrays(ends, features, ids=ids, labels={"team": labels})


@pytest.fixture(scope="module")
def embeddings(graph):
    return DGI(8, epochs=20, device="cpu").fit_transform(graph)


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_checks_that_need_no_data_hold(name):
    check = getattr(estimator_checks, name, None)
    if check is None:
        pytest.skip("this version of scikit-learn has no such check")
    check("DGI", DGI(4, epochs=1))


@pytest.mark.parametrize("name", WITH_A_MATRIX)
def test_checks_that_fit_a_matrix_are_told_that_a_graph_is_expected(name):
    check = getattr(estimator_checks, name, None)
    if check is None:
        pytest.skip("this version of scikit-learn has no such check")
    with pytest.raises(InputError, match="graph: expected a Graph"):
        check("DGI", DGI(4, epochs=1))


def test_fitting_twice_is_the_same_and_changes_no_setting_and_a_model_can_be_pickled():
    graph = random_graph(dense=True)
    model = DGI(4, epochs=2, device="cpu")
    settings = model.get_params()
    vectors = model.fit(graph).transform(graph).vectors
    np.testing.assert_array_equal(model.fit(graph).transform(graph).vectors, vectors)
    assert model.get_params() == settings
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.transform(graph).vectors, vectors)


def test_a_pipeline_and_cross_validation_over_ids(graph, embeddings):
    """X is the ids of nodes: each fold looks up its vectors, which were trained without labels."""
    look_up = FunctionTransformer(lambda ids: np.stack([embeddings[node] for node in ids]))
    pipeline = make_pipeline(look_up, StandardScaler(), LogisticRegression(max_iter=1000))
    scores = cross_val_score(pipeline, graph.ids, graph.labels["team"], cv=3)
    assert scores.mean() > 0.8  # guessing has a third

    by_hand = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    expected = cross_val_score(by_hand, embeddings.vectors, graph.labels["team"], cv=3)
    np.testing.assert_allclose(scores, expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_go_in_and_vectors_come_out_as_frames(library):
    frames = pytest.importorskip(library)
    draws = np.random.default_rng(1)
    nodes = {"id": [f"n{row}" for row in range(30)], "x": draws.normal(size=30).tolist()}
    edges = {
        "source": [f"n{row}" for row in draws.integers(0, 30, 90)],
        "target": [f"n{row}" for row in draws.integers(0, 30, 90)],
    }
    graph = Graph.from_frames(frames.DataFrame(edges), frames.DataFrame(nodes))
    embeddings = DGI(4, epochs=2, device="cpu").fit_transform(graph)
    frame = embeddings.to_frame(library)
    assert isinstance(frame, frames.DataFrame)
    assert list(frame["id"]) == nodes["id"]
    back = Embeddings.from_frame(frame)
    np.testing.assert_array_equal(back.vectors, embeddings.vectors)


def test_duckdb_finds_the_neighbours_that_the_library_finds(embeddings, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "vectors.parquet"
    embeddings.save(path)
    width = embeddings.shape[1]
    query = f"""
        SELECT other.id,
               array_cosine_similarity(this.vector::FLOAT[{width}], other.vector::FLOAT[{width}])
        FROM '{path}' AS this, '{path}' AS other
        WHERE this.id = 'n07' AND other.id <> 'n07'
        ORDER BY 2 DESC, 1 LIMIT 5
    """
    rows = duckdb.sql(query).fetchall()
    expected = embeddings.neighbours("n07", 5)
    assert [node for node, _ in rows] == [node for node, _ in expected]
    np.testing.assert_allclose(
        [cosine for _, cosine in rows], [cosine for _, cosine in expected], atol=1e-5
    )
