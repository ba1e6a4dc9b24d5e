"""Several encoders of one graph are those that are trained alone."""

from __future__ import annotations

import numpy as np
import torch
from sample_graphs import random_graph

from infomax import DGI
from infomax.estimator.together import fit_together, vectors_of


def test_encoders_fitted_together_are_those_fitted_alone():
    graph, settings = random_graph(40, 12), {"dim": 8, "epochs": 12, "patience": 3}
    together = [DGI(seed=seed, **settings) for seed in (4, 1, 9)]
    fit_together(together, graph)
    for model, vectors in zip(together, vectors_of(together, graph), strict=True):
        alone = DGI(seed=model.seed, **settings).fit(graph)
        for one, other in zip(model.model_.parameters(), alone.model_.parameters(), strict=True):
            assert torch.equal(one, other)
        np.testing.assert_array_equal(vectors, alone.transform(graph).vectors)
        assert model.health_["curve"] == alone.health_["curve"]
