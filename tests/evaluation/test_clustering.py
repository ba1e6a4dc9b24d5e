import csv

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from infomax import DGI
from infomax.cli.app import app
from infomax.errors import InputError
from infomax.evaluation import clustering
from infomax.evaluation.clustering import (
    GroupCount,
    agreement,
    best_group_count,
    cluster,
    compare_group_counts,
    distinctive,
)


def blobs(sizes, d=16, seed=0):
    generator = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    vectors = 4 * generator.normal(size=(len(sizes), d))[group] + generator.normal(
        size=(len(group), d)
    )
    lengths = generator.uniform(
        0.1, 10, (len(group), 1)
    )  # directions tell the groups, lengths do not
    return (lengths * vectors).astype(np.float32), group


@pytest.mark.parametrize(("fitted", "small"), [(100, 1000), (1000, 1000), (1000, 0)])
def test_clusters_are_the_groups_largest_first(fitted, small):
    """Fitted to some or to all, at once or in small batches."""
    vectors, group = blobs([20, 60, 40, 80])
    found = cluster(vectors, 4, seed=0, most_fitted=fitted, most_in_full_batch=small)
    assert found.tolist() == np.array([3, 1, 2, 0])[group].tolist()
    np.testing.assert_array_equal(
        found, cluster(vectors, 4, seed=0, most_fitted=fitted, most_in_full_batch=small)
    )


def test_the_best_number_of_clusters_is_how_many_there_are():
    vectors, _ = blobs([30] * 5)
    assert best_group_count(compare_group_counts(vectors, seed=0)) == 5


def test_the_silhouette_is_that_of_its_definition():
    """(b - a) / max(a, b), with the mean distances to the own cluster and to the nearest other one."""
    vectors, _ = blobs([10, 12, 14], d=3)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    distances = np.linalg.norm(units[:, None] - units[None], axis=2)
    codes, expected = cluster(vectors, 3, seed=0), []
    for node, own in enumerate(codes):
        mean = [
            distances[node, codes == other].sum() / ((codes == other).sum() - (other == own))
            for other in range(3)
        ]
        nearest = min(mean[other] for other in range(3) if other != own)
        expected.append((nearest - mean[own]) / max(nearest, mean[own]))
    compared = {one.count: one for one in compare_group_counts(vectors, seed=0)}
    assert compared[3].silhouette == pytest.approx(np.mean(expected), abs=1e-4)


@pytest.mark.parametrize(
    ("growth", "tried"), [((1, 2, 3, 4, 2, 5), [2, 3, 4, 5, 6]), ((5, 4, 3, 2, 1, 9), [2, 3, 4])]
)
def test_the_search_goes_on_while_the_last_number_is_the_clearest(monkeypatch, growth, tried):
    silhouettes = []

    def silhouette(_, labels, **__):
        silhouettes.append(growth[len(np.unique(labels)) - 2] / 10)
        return silhouettes[-1] if len(silhouettes) % 2 else 0.0  # every second one is by chance

    monkeypatch.setattr("sklearn.metrics.silhouette_score", silhouette)
    compared = compare_group_counts(
        blobs([30] * 5)[0], seed=0, counts=range(2, 8), always_compared=4
    )
    assert [one.count for one in compared] == tried


def test_vectors_without_groups_and_outliers_give_neither_singletons_nor_one_group_of_all():
    """93 customers had 40 groups, 9 of one; 17,632 artists had 2."""
    draws = np.random.default_rng(0)
    noise = draws.normal(size=(93, 200)).astype(np.float32)
    compared = compare_group_counts(noise, seed=0)
    assert [one.count for one in compared] == [2, 3, 4, 5, 6, 7, 8, 9, 10]
    count = best_group_count(compared)
    assert np.bincount(cluster(noise, count, seed=0)).min() > 2

    # A tenth of the nodes is far from all others, which are of twelve groups.
    vectors, _ = blobs([100] * 12, seed=1)
    far = -5 * vectors.mean(axis=0) + draws.normal(size=(130, 16)).astype(np.float32)
    both = np.concatenate([vectors, far]).astype(np.float32)
    assert 10 <= best_group_count(compare_group_counts(both, seed=0)) <= 15


@pytest.mark.parametrize(
    ("clarities", "even", "expected"),
    [
        ((0.1, 0.3, 0.2), (True, True, True), 3),
        ((0.3, 0.295, 0.31), (True, True, True), 2),
        ((0.5, 0.2, 0.19), (False, True, True), 3),
        ((0.5, 0.2, 0.19), (False, False, False), 2),
        ((-0.3, -0.1, -0.2), (True, True, True), 3),
    ],
)
def test_the_fewest_even_groups_that_are_nearly_the_clearest_are_chosen(clarities, even, expected):
    compared = [
        GroupCount(count, clarity, 0.0, is_even)
        for count, clarity, is_even in zip((2, 3, 4), clarities, even, strict=True)
    ]
    assert best_group_count(compared) == expected


@pytest.mark.parametrize("last", [False, True])
def test_the_longest_bar_is_the_chosen_one_and_the_limit_is_told(
    tmp_path, graph, monkeypatch, last
):
    silhouettes = {2: 0.2, 3: 0.3, 4: 0.0, 5: 0.6, **({} if last else {6: 0.5})}
    compared = [GroupCount(count, value, 0.1, True) for count, value in silhouettes.items()]
    monkeypatch.setattr(clustering, "compare_group_counts", lambda *_, **__: compared)
    DGI(8, epochs=0).fit(graph).save(tmp_path / "run")
    out = CliRunner().invoke(app, ["cluster", str(tmp_path / "run")]).output
    table = [line for line in out.splitlines() if line.startswith("│")][: len(compared)]
    assert [line.count("█") for line in table] == [4, 8, 0, 20] + [16] * (not last)
    assert [" chosen " in line for line in table] == [False, False, False, True] + [False] * (
        not last
    )
    assert ("No more than 5 were compared" in out) == last


def test_fewer_vectors_than_clusters():
    vectors = np.repeat(np.eye(3, dtype=np.float32), 5, axis=0)
    assert [one.count for one in compare_group_counts(vectors, seed=0)] == [2]
    assert cluster(vectors, 6, seed=0).max() == 2
    assert best_group_count(compare_group_counts(np.zeros((4, 2), np.float32), seed=0)) == 1


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_features_that_set_a_cluster_apart_come_first(stored):
    features = np.zeros((30, 4), np.float32)
    features[:10, 2] = 1  # only in the first cluster
    features[:20, 3] = 5  # everywhere but in the last
    features[:, 0] = 7  # the same everywhere
    columns_of_groups = distinctive(stored(features), np.repeat([0, 1, 2], 10), top=3)
    assert columns_of_groups[0][0] == (2, pytest.approx(2**0.5))
    assert columns_of_groups[2][0] == (3, pytest.approx(-(2**0.5)))
    assert all(column != 0 for columns in columns_of_groups for column, _ in columns)


def test_agreement_knows_the_same_partition_and_leaves_the_unknown_out():
    codes = np.array([0, 0, 1, 1, 2, 2, -1, -1])
    assert agreement(np.array([5, 5, 3, 3, 4, 4, 5, 3]), codes) == {
        "nmi": pytest.approx(1),
        "ari": pytest.approx(1),
    }
    assert agreement(np.zeros(8), codes) == {"nmi": pytest.approx(0), "ari": pytest.approx(0)}


@pytest.mark.parametrize("extension", ["csv", "tsv", "parquet"])
def test_the_command_line_writes_every_node_once(tmp_path, graph, extension):
    DGI(8, epochs=2).fit(graph).save(tmp_path / "run")
    out = tmp_path / f"clusters.{extension}"
    result = CliRunner().invoke(
        app, ["cluster", str(tmp_path / "run"), "-k", "3", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert "NMI" in result.output
    assert "set apart by" in result.output
    if extension == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        rows = [
            (str(row["id"]), str(row["cluster"])) for row in parquet.read_table(out).to_pylist()
        ]
    else:
        with out.open(newline="") as file:
            header, *rows = csv.reader(file, delimiter="\t" if extension == "tsv" else ",")
        assert header == ["id", "cluster"]
    assert [name for name, _ in rows] == [str(row) for row in range(40)]
    assert {number for _, number in rows} == {"0", "1", "2"}


def test_labels_that_cannot_be_compared_are_left_out(tmp_path, graph):
    labels = {
        "alone": np.zeros(40, int),
        "flags": np.ones((40, 2), np.uint8),
        "pair": np.arange(40) % 2,
    }
    DGI(8, epochs=0).fit(graph.replace(labels=labels)).save(tmp_path / "run")
    result = CliRunner().invoke(
        app, ["cluster", str(tmp_path / "run"), "-k", "2", "--out", str(tmp_path / "c.csv")]
    )
    assert result.exit_code == 0, result.output
    assert "mostly, by pair" in result.output
    assert "alone" not in result.output
    assert len((tmp_path / "c.csv").read_text().splitlines()) == 41


@pytest.mark.parametrize(
    ("options", "message"),
    [(["-k", "0"], "-k"), (["--groups", "41"], "--groups"), (["--out", "x.doc"], "x.doc")],
)
def test_what_cannot_be_done_is_refused(tmp_path, graph, options, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    DGI(8, epochs=0).fit(graph).save("run")
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(app, ["cluster", "run", *options], catch_exceptions=False)
