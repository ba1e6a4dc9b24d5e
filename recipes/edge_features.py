"""An encoder that uses features of edges: how far, how long, how sure.

    python recipes/edge_features.py [--epochs 300] [--seeds 3] [--dim 64]

The edges of the example are of two sorts that only their features tell apart: a third join nodes of one class, the
others join any two nodes. `EdgeWeightedMean` learns from the features of an edge how much its message counts, without
a label.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import prelu

from infomax import DGI, Graph
from infomax.evaluation.probes import paper_probe
from infomax.kernels.initialisation import glorot
from infomax.parts.encoders import Encoder, SkipMeanPool
from infomax.reports.comparison import compare
from infomax.views import NEIGHBOURS, WholeView


class EdgeWeightedMean(Encoder):
    """A node beside the weighted mean of its neighbours; the features of edges give the weights.

    ``h_i = PReLU(x_i Θ_self || sum_j a_ij x_j Θ_neighbour + b)``, where the weights ``a_ij`` are
    the softmax of ``e_ij · g`` over the nodes j that send to node i, and ``e_ij`` are the features
    of the edge from j to i. Training begins with g = 0, the plain mean.

    Args:
        in_dim: F, the number of features of a node.
        dim: the width of each of the two halves of a vector.
        num_edge_features: the number of features of an edge.
        generator: for the initial weights.
    """

    rule = NEIGHBOURS
    depth = 1
    needs_whole_graph = True  # since it reads the edges

    def __init__(
        self,
        in_dim: int,
        dim: int,
        *,
        num_edge_features: int,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.out_dim = 2 * dim
        self.self_weight = glorot((in_dim, dim), generator=generator)
        self.neighbour_weight = glorot((in_dim, dim), generator=generator)
        self.edge_weight = torch.nn.Parameter(torch.zeros(num_edge_features))
        self.bias = torch.nn.Parameter(torch.zeros(2 * dim))
        self.slope = torch.nn.Parameter(torch.full((1,), 0.25))

    def layer(self, k: int, view: WholeView, h: Tensor | None) -> Tensor:
        """The only layer."""
        senders, receivers = view.edges

        # Softmax over the messages to each node; the largest score is subtracted so that none
        # overflows.
        scores = view.edge_features @ self.edge_weight
        strengths = torch.exp(scores - scores.max())
        strength_sums = scores.new_zeros(view.n).index_add(0, receivers, strengths)
        message_weights = strengths / strength_sums[receivers].clamp(min=1e-12)

        messages = message_weights[:, None] * view.own(h, self.neighbour_weight)[senders]
        own_half = view.own(h, self.self_weight)
        neighbour_half = torch.zeros_like(own_half).index_add(0, receivers, messages)
        return prelu(torch.cat([own_half, neighbour_half], dim=1) + self.bias, self.slope)


def example_graph(
    seed: int, num_nodes: int = 1_500, num_classes: int = 5
) -> tuple[Graph, NDArray[np.int64]]:
    """A graph whose edges tell by their features whether they join nodes of one class; and the
    classes."""
    random = np.random.default_rng(seed)
    classes = random.integers(num_classes, size=num_nodes)
    class_means = random.normal(size=(num_classes, 40))
    features = 0.25 * class_means[classes] + random.normal(size=(num_nodes, 40))

    senders = random.integers(num_nodes, size=5 * num_nodes)
    rows_by_class = [np.flatnonzero(classes == one_class) for one_class in range(num_classes)]
    related = np.array([random.choice(rows_by_class[classes[sender]]) for sender in senders])
    random_senders = random.integers(num_nodes, size=10 * num_nodes)
    unrelated = random.integers(num_nodes, size=10 * num_nodes)

    edges = np.stack(
        [np.concatenate([senders, random_senders]), np.concatenate([related, unrelated])]
    )
    is_related = np.repeat([1.0, 0.0], [len(senders), len(random_senders)])
    edge_features = np.stack(
        [
            is_related + 0.3 * random.normal(size=len(is_related)),
            random.normal(size=len(is_related)),
        ],
        axis=1,
    )
    return Graph.from_arrays(edges, features, edge_features=edge_features), classes


def main() -> None:
    """Compare it with an encoder that does not see the features of edges."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dim", type=int, default=64)
    options = parser.parse_args()

    encoders = {
        "EdgeWeightedMean": partial(EdgeWeightedMean, num_edge_features=2),
        "SkipMeanPool": partial(SkipMeanPool, layers=1),
    }
    for seed in range(options.seeds):
        graph, classes = example_graph(seed)
        is_training = np.random.default_rng(seed).random(graph.num_nodes) < 0.1
        split = {"train": is_training, "test": ~is_training}
        for name, encoder in encoders.items():
            model = DGI(dim=options.dim, encoder=encoder, epochs=options.epochs, seed=seed)
            model.fit(graph)
            for row in compare(model, classes, [split], paper_probe):
                print(f"seed {seed}  {name:16} {row.method:20} {row.mean:.1f}", flush=True)


if __name__ == "__main__":
    main()
