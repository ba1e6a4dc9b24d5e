"""Where the pairs of views come from: one regime per file, and the views that encoders read."""

from infomax.views.batch_view import BatchView
from infomax.views.batches import Batches
from infomax.views.many import ManyGraphs, PaddedView
from infomax.views.propagation import MEAN, NEIGHBOURS, SYMMETRIC, Normalisation
from infomax.views.view import Corruption, LayerView, Sizes, View, Views
from infomax.views.whole import WholeGraph, WholeView

__all__ = [
    "MEAN",
    "NEIGHBOURS",
    "SYMMETRIC",
    "BatchView",
    "Batches",
    "Corruption",
    "LayerView",
    "ManyGraphs",
    "Normalisation",
    "PaddedView",
    "Sizes",
    "View",
    "Views",
    "WholeGraph",
    "WholeView",
]
