"""The other rows of the paper's table: each a function of a graph, a seed and a device.

A baseline never holds a test label: the graph it gets carries none, and the codes it gets are -1 on the test nodes.
So whatever it chooses, it chooses on training and validation nodes. `infomax.paper.table` hides and scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from numpy.typing import NDArray

from infomax.baselines import average_pooling, deepwalk, fastgcn, gcn, graphsage, label_propagation, planetoid

if TYPE_CHECKING:
    import torch

    from infomax.graphs.graph import Graph


class Run(Protocol):
    """What every baseline is."""

    def __call__(self, graph: Graph, codes: NDArray[Any], seed: int, device: torch.device) -> Any:
        """Vectors ``[N, d]`` (an array, a tensor or CSR), or predictions for every node: ``[N]`` or ``[N, C]``.

        A graph with a split "seen" is trained on ``graph.seen()`` and nothing else.

        Shapes:
            graph: N nodes, with features as the data set has them, unscaled; splits; no labels.
            codes: ``[N]`` int64 class codes, or ``[N, C]`` int8 of 0/1 where a node has any number of labels; -1
                where the label is unknown or belongs to a test node.
        """


@dataclass(frozen=True)
class Baseline:
    """A row of the table.

    ``vectors`` are scored by the same probe as DGI's; ``predictions``, codes ``[N]`` or 0/1 ``[N, C]``, as they are.
    """

    kind: Literal["vectors", "predictions"]
    runs: Mapping[str, Run]
    """Data set -> the function, with its settings; wherever it can run, whether the paper has the cell or not."""
    seeded: bool = True
    """Whether the seed matters. Where it does not, one run says all."""


CITATION = ("cora", "citeseer", "pubmed")
INDUCTIVE = ("reddit", "ppi", "generated-reddit")
ONE_GRAPH = (*CITATION, "reddit", "generated-reddit")

_PLANETOID = {
    "cora": planetoid.Settings(label_context=1e-3, trust=0.5),
    "citeseer": planetoid.Settings(label_context=1e-4, trust=0.3),
    "pubmed": planetoid.Settings(label_context=1e-5, trust=0.2),
}

BASELINES: dict[str, Baseline] = {
    "LP": Baseline("predictions", dict.fromkeys(ONE_GRAPH, label_propagation.label_propagation), seeded=False),
    "DeepWalk": Baseline("vectors", dict.fromkeys(ONE_GRAPH, deepwalk.deepwalk)),
    "DeepWalk + features": Baseline(
        "vectors",
        dict.fromkeys(CITATION, partial(deepwalk.with_features, scale="rows"))
        | dict.fromkeys(("reddit", "generated-reddit"), partial(deepwalk.with_features, scale="columns")),
    ),
    **{name: Baseline("vectors", dict.fromkeys(INDUCTIVE, run)) for name, run in graphsage.ROWS.items()},
    "GCN": Baseline(
        "predictions", dict.fromkeys(CITATION, gcn.gcn) | dict.fromkeys(INDUCTIVE, partial(gcn.gcn, settings=gcn.WIDE))
    ),
    "Planetoid": Baseline(
        "predictions",
        {name: partial(planetoid.planetoid, settings=settings) for name, settings in _PLANETOID.items()},
    ),
    "FastGCN": Baseline(
        "predictions",
        dict.fromkeys(INDUCTIVE, fastgcn.fastgcn) | {"ppi": partial(fastgcn.fastgcn, settings=fastgcn.PPI)},
    ),
    "Avg. pooling": Baseline("predictions", dict.fromkeys(INDUCTIVE, average_pooling.average_pooling)),
}
"""Name, as `paper.results.PAPER` spells it -> the baseline; in the order of the paper's table.

Walks and label propagation need one graph: nothing passes from one of PPI's graphs to another.
"""
