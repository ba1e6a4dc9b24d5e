"""The other rows of the paper's table: each a function of a graph, a seed and a device.

A baseline never holds a test label: the graph it gets carries none, and the codes it gets are -1 on the test nodes.
So whatever it chooses, it chooses on training and validation nodes. `infomax.table` does the hiding and the scoring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from numpy.typing import NDArray

from infomax.baselines import average_pooling, fastgcn, graphsage

if TYPE_CHECKING:
    import torch

    from infomax.graph import Graph


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
    run: Run
    datasets: tuple[str, ...]
    """Where it can run, whether the paper has the cell or not."""


CITATION = ("cora", "citeseer", "pubmed")
INDUCTIVE = ("reddit", "ppi", "generated-reddit")

BASELINES: dict[str, Baseline] = {
    **{name: Baseline("vectors", run, INDUCTIVE) for name, run in graphsage.ROWS.items()},
    "FastGCN": Baseline("predictions", fastgcn.fastgcn, INDUCTIVE),
    "Avg. pooling": Baseline("predictions", average_pooling.average_pooling, INDUCTIVE),
}
"""Name, as `evaluation.protocol.PAPER` spells it -> the baseline; in the order of the paper's table."""
