"""Vectors: the same at every call, and found by their ids."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sample_graphs import embed
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from torch import nn

from infomax import DGI, Embeddings, Graph, InputError
from infomax.kernels import Backend
from infomax.parts.encoders import GCN, SkipMeanPool
from infomax.views import WholeView


class Restless(GCN):
    """With one part that draws, one that remembers, and one that its maker put to rest."""

    def __init__(self, in_dim, dim):
        super().__init__(in_dim, dim)
        self.dropout, self.norm, self.frozen = (
            nn.Dropout(0.5),
            nn.BatchNorm1d(dim),
            nn.BatchNorm1d(dim).eval(),
        )

    def layer(self, k, view, h):
        return self.frozen(self.norm(self.dropout(super().layer(k, view, h))))


def test_an_encoder_rests_while_it_embeds_and_keeps_its_modes(graph):
    encoder = Restless(graph.num_features, 4)
    state = {name: value.clone() for name, value in encoder.state_dict().items()}
    view = WholeView.of(graph, encoder.rule, Backend(torch.device("cpu")))
    torch.testing.assert_close(embed(encoder, view), embed(encoder, view, block=7))
    torch.testing.assert_close(dict(encoder.state_dict()), state)
    assert [encoder.training, encoder.dropout.training, encoder.frozen.training] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(("ids", "other"), [(["vim", "emacs"], "nano"), ([7, 3], 5)])
def test_embeddings_hold_ids_as_a_mapping_does(ids, other):
    embeddings = Embeddings(np.eye(2), ids)
    assert list(embeddings) == ids
    assert all(node_id in embeddings and str(node_id) in embeddings for node_id in ids)
    assert other not in embeddings
    assert {node_id: embeddings[node_id].tolist() for node_id in embeddings} == {
        ids[0]: [1, 0],
        ids[1]: [0, 1],
    }
    assert embeddings.vectors.dtype == np.float32


@pytest.mark.parametrize(
    ("vectors", "ids", "message"),
    [
        (np.eye(2), [1, 1], 'ids: expected each id once, found "1" 2 times'),
        (np.eye(2), [1, 2, 3], "ids: expected 2 ids"),
        (np.ones(2), [1, 2], "vectors: expected an array of shape"),
        ([["a"], ["b"]], [1, 2], "vectors: expected numbers .* found dtype <U1"),
    ],
)
def test_embeddings_are_checked(vectors, ids, message):
    with pytest.raises(InputError, match=message):
        Embeddings(vectors, ids)


@pytest.mark.parametrize("encoder", [GCN, SkipMeanPool])
def test_an_encoder_has_a_layer(encoder):
    with pytest.raises(InputError, match="layers: expected a whole number from 1, found 0"):
        encoder(3, 2, layers=0)


def test_numpy_takes_embeddings_for_their_vectors():
    embeddings = Embeddings(np.eye(3, dtype=np.float32), np.array([7, 8, 9]))
    np.testing.assert_array_equal(np.asarray(embeddings), embeddings.vectors)
    assert np.asarray(embeddings, dtype=np.float64).dtype == np.float64
    assert PCA(2).fit_transform(embeddings).shape == (3, 2)


@pytest.mark.parametrize(
    "rows", [np.arange(2), [0, 1], slice(2), (np.arange(2), slice(None))], ids=str
)
def test_rows_are_those_of_the_vectors(rows):
    with pytest.raises(InputError, match="one of 3 ids"):
        Embeddings(np.eye(3), np.array([7, 8, 9]))[rows]


def test_a_classifier_of_yesterday_is_of_use_after_alignment_only():
    rng = np.random.default_rng(0)
    group = np.arange(600) % 4
    ends = rng.integers(150, size=(2, 2400)) * 4 + rng.integers(4, size=2400)
    today = Graph.from_arrays(
        ends, rng.random((600, 40)) + 0.5 * (np.arange(40) % 4 == group[:, None])
    )
    before = DGI(32, epochs=40, seed=0, vectors="paper").fit(today).transform(today)
    anew = DGI(32, epochs=40, seed=1, vectors="paper").fit(today).transform(today)
    fitted = LogisticRegression(max_iter=1000).fit(before.vectors[:300], group[:300])
    score = [
        fitted.score(embeddings.vectors[300:], group[300:])
        for embeddings in (before, anew, anew.align(before))
    ]
    assert score[0] > 0.9
    assert score[1] < 0.6
    assert score[2] >= score[0] - 0.01


def test_the_rotation_is_found_again():
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    embeddings = Embeddings(rng.standard_normal((30, 6)), np.arange(30))
    rotated = Embeddings(
        embeddings.vectors[::-1][:20] @ turn, embeddings.ids[::-1][:20]
    )  # 20 of the nodes, in another order
    np.testing.assert_allclose(embeddings.rotation(rotated), turn, atol=1e-5)
    np.testing.assert_allclose(
        embeddings.align(rotated).vectors, embeddings.vectors @ turn, atol=1e-5
    )
    with pytest.raises(InputError, match="common nodes"):
        embeddings.align(Embeddings(embeddings.vectors, embeddings.ids + 100))


def test_columns_that_only_have_numbers_say_nothing_also_with_a_half_life():
    names = ("pooled 3 of 128, 30 days", "encoder 1 of 2", "price")
    vectors = np.ones((2, 3), np.float32)
    embeddings = Embeddings(vectors, np.array([0, 1]), parts={"own": names})
    assert embeddings.agreeing(0, np.array([1]), 3) == [["price"]]
