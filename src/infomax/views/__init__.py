"""Where the pairs of views come from: one regime per file.

| regime | a positive view | its negative | one summary per |
|---|---|---|---|
| `WholeGraph` | the graph | its features shuffled, its edges flipped, or both | graph |
| `Batches` | a batch of nodes with their complete neighbourhoods | the same, features shuffled over all nodes | batch |
| `Patches` | sampled trees of neighbours around a batch of nodes | features shuffled inside each tree | batch |
| `ManyGraphs` | one of several graphs | another of them, with dropout on its features | graph |
"""

from infomax.views.batches import Batches, BatchView
from infomax.views.many import ManyGraphs, PaddedView
from infomax.views.patches import Patches, PatchView
from infomax.views.propagation import MEAN, NEIGHBOURS, SYMMETRIC, Normalisation
from infomax.views.view import Corruption, LayerView, Sizes, View, Views
from infomax.views.whole import BlockView, WholeGraph, WholeView

__all__ = [
    "MEAN",
    "NEIGHBOURS",
    "SYMMETRIC",
    "BatchView",
    "Batches",
    "BlockView",
    "Corruption",
    "LayerView",
    "ManyGraphs",
    "Normalisation",
    "PaddedView",
    "PatchView",
    "Patches",
    "Sizes",
    "View",
    "Views",
    "WholeGraph",
    "WholeView",
]
