"""The kernels of `infomax.kernels` on a GPU, in Triton: each reads and writes its matrices once.

Sums over rows are made in two stages, block by block and then over the blocks, so that a result does not depend on the
order in which blocks end: the same seed gives the same bits.
"""

from infomax.gpu.activations import BiasPReLU
from infomax.gpu.contrast import contrast, shuffle_contrast
from infomax.gpu.permutations import permutations
from infomax.gpu.products import Sparse, product
from infomax.gpu.step import adam, note
from infomax.gpu.trees import PoolTree, gather_tree

__all__ = [
    "BiasPReLU",
    "PoolTree",
    "Sparse",
    "adam",
    "contrast",
    "gather_tree",
    "note",
    "permutations",
    "product",
    "shuffle_contrast",
]
