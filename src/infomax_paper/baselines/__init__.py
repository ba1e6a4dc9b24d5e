"""The baselines in the paper's table: each is a function of a graph, its labels, a seed and a
device.

No baseline is given a test label: its graph has no labels, and its class codes are -1 on the test
nodes. So every choice is made on training and validation nodes. `infomax_paper.table` hides the
labels and scores the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from numpy.typing import NDArray

from infomax_paper.baselines import (
    average_pooling,
    deepwalk,
    fastgcn,
    gcn,
    graphsage,
    label_propagation,
    planetoid,
)

if TYPE_CHECKING:
    import torch

    from infomax.graphs.graph import Graph


Run: TypeAlias = "Callable[[Graph, NDArray[Any], int, torch.device], Any]"
"""A function of (graph, codes, seed, device): vectors ``[N, d]``, or predictions for all nodes,
``[N]`` or ``[N, C]``.

The graph has splits and the features of the data set, not scaled; if it has a split "seen", train
on ``graph.seen()`` only. Codes are ``[N]`` classes, or ``[N, C]`` of 0 and 1 where a node may have
several labels; -1 where unknown.
"""


@dataclass(frozen=True)
class Baseline:
    """A row of the table."""

    output: Literal["vectors", "predictions"]
    """What its function returns. Vectors are scored by the same probe as DGI's; predictions, codes
    ``[N]`` or 0/1 ``[N, C]``, are compared with the labels."""
    uses: str
    """The data it uses: X features, A edges, Y labels."""
    runs: Mapping[str, Run]
    """By data set, the function with its settings, for every data set that it can run on, in the
    paper or not."""
    seeded: bool = True
    """Whether the result depends on the seed. If not, one run is enough."""


CITATION = ("cora", "citeseer", "pubmed")
INDUCTIVE = ("reddit", "ppi", "generated-reddit")
ONE_GRAPH = (*CITATION, "reddit", "generated-reddit")

_PLANETOID = {
    "cora": planetoid.Settings(label_context=1e-3, trust=0.5),
    "citeseer": planetoid.Settings(label_context=1e-4, trust=0.3),
    "pubmed": planetoid.Settings(label_context=1e-5, trust=0.2),
}

# As wide as DGI's own encoder, and with its learning rate; ten times as fast, it ends 5 points
# lower on Cora's validation nodes.
_ENCODERS = {
    name: gcn.Settings(gcn.TwoLayerEncoder, hidden=width, lr=1e-3)
    for name, width in zip(CITATION, (512, 512, 256), strict=True)
}

BASELINES: dict[str, Baseline] = {
    "LP": Baseline(
        "predictions",
        "A, Y",
        dict.fromkeys(ONE_GRAPH, label_propagation.label_propagation),
        seeded=False,
    ),
    "DeepWalk": Baseline("vectors", "A", dict.fromkeys(ONE_GRAPH, deepwalk.deepwalk)),
    "DeepWalk + features": Baseline(
        "vectors",
        "X, A",
        dict.fromkeys(CITATION, partial(deepwalk.with_features, scale="rows"))
        | dict.fromkeys(
            ("reddit", "generated-reddit"), partial(deepwalk.with_features, scale="columns")
        ),
    ),
    **{
        name: Baseline("vectors", "X, A", dict.fromkeys(INDUCTIVE, run))
        for name, run in graphsage.ROWS.items()
    },
    "GCN": Baseline(
        "predictions",
        "X, A, Y",
        {name: partial(gcn.gcn, settings=settings) for name, settings in _ENCODERS.items()}
        | dict.fromkeys(INDUCTIVE, partial(gcn.gcn, settings=gcn.WIDE)),
    ),
    "Planetoid": Baseline(
        "predictions",
        "X, A, Y",
        {
            name: partial(planetoid.planetoid, settings=settings)
            for name, settings in _PLANETOID.items()
        },
    ),
    "FastGCN": Baseline(
        "predictions",
        "X, A, Y",
        dict.fromkeys(INDUCTIVE, fastgcn.fastgcn)
        | {"ppi": partial(fastgcn.fastgcn, settings=fastgcn.PPI)},
    ),
    "Avg. pooling": Baseline(
        "predictions", "X, A, Y", dict.fromkeys(INDUCTIVE, average_pooling.average_pooling)
    ),
}
"""By name, as in `infomax_paper.printed.PAPER`, the baseline; in the order of the paper's table.

Random walks and label propagation need a single graph: they cannot pass from one of PPI's graphs to
another.
"""
