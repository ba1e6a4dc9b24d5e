"""BGRL (Thakoor et al., 2021), another method than Deep Graph Infomax, in the same loop.

    python recipes/bgrl.py [--dataset cora] [--dim 512] [--epochs 300] [--run FOLDER]

An encoder predicts, node by node, what a slowly following copy of it, the target, makes of an augmented graph. There
are no negatives and no summary: the pair is the graph and the augmented graph. The run has history, checkpoints and
health.
"""

from __future__ import annotations

import argparse
import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, normalize

from infomax import DGI, load_dataset
from infomax.evaluation.probes import paper_probe
from infomax.kernels.initialisation import glorot
from infomax.parts.corruptions import drop_features
from infomax.parts.methods import Method, Model
from infomax.reports.comparison import compare, labelled
from infomax.views import View, WholeView
from infomax.views.propagation import Propagation


class Predictor(nn.Module):
    """Two layers ``[N, d] -> [N, d]``, from what the encoder makes of a node to what the target
    makes of it."""

    def __init__(self, dim: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.first, self.second = (glorot((dim, dim), generator=generator) for _ in range(2))
        self.slope = nn.Parameter(torch.full((1,), 0.25))

    def forward(self, h: Tensor) -> Tensor:
        """Predict the target's vectors ``[N, d]``."""
        return nn.functional.prelu(h @ self.first, self.slope) @ self.second


class BGRL(Method):
    """Bootstrapping: the encoder and a predictor learn, the target follows the encoder.

    Args:
        decay: how much of its weights the target keeps at a step.
    """

    metrics = ("loss", "vector_spread")

    def __init__(self, *, decay: float = 0.99) -> None:
        self.decay = decay

    def build(self, encoder: Any, generator: torch.Generator | None) -> Model:
        """Return encoder, predictor and target."""
        target = copy.deepcopy(encoder).requires_grad_(False)
        return Model(encoder, predictor=Predictor(encoder.out_dim, generator), target=target)

    def loss(self, model: Any, pair: tuple[View, View]) -> Tensor:
        """Return ``[2]``: one minus the mean cosine of predictions and targets; the deviation of
        vectors of length 1.

        The second is near 0 where all nodes have the same vector.
        """
        seen, augmented = model.encoder(*pair)
        with torch.no_grad():
            target, target_augmented = model.target(*pair)
        cosines = [
            cosine_similarity(model.predictor(seen), target_augmented),
            cosine_similarity(model.predictor(augmented), target),
        ]
        spread = normalize(seen.detach()).std(0, correction=0).norm()
        return torch.stack([1 - torch.cat(cosines).mean(), spread])

    @torch.no_grad()
    def after_step(self, model: Any) -> None:
        """Let the target follow the encoder."""
        for slow, fast in zip(model.target.parameters(), model.encoder.parameters(), strict=True):
            slow.lerp_(fast, 1 - self.decay)


def augment(
    view: WholeView, generator: torch.Generator, *, edges: float = 0.4, features: float = 0.4
) -> WholeView:
    """The graph without some of its edges, in both directions, and without some entries of its
    features."""
    p = view.propagation
    low, high = view.edges.sort(dim=0).values
    pairs, which = torch.unique(low * p.n + high, return_inverse=True)
    kept = (torch.rand(len(pairs), generator=generator, device=generator.device) >= edges)[which]
    fewer = Propagation(p.keys[kept], p.weights[kept], p.n, p.rule, p.backend, directed=p.directed)
    return drop_features(view.with_propagation(fewer), generator, rate=features)


def main() -> None:
    """Train on a citation graph, and print accuracies beside Random-Init and raw features."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument(
        "--run", help="a run folder to write; if it was interrupted, training goes on there"
    )
    options = parser.parse_args()
    graph = load_dataset(options.dataset)
    model = DGI(options.dim, method=BGRL, corruption=augment, epochs=options.epochs)
    model.fit(graph, run=options.run, progress=True)
    print(model.health_["verdict"]["reason"])
    codes, splits = labelled(graph)
    for row in compare(model, codes, [splits], paper_probe):
        print(f"{row.method.replace('DGI', 'BGRL'):12} {row.mean:.1f}")


if __name__ == "__main__":
    main()
