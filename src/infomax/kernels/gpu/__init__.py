"""The kernels of `infomax.kernels.Backend` on a GPU, in Triton, with few passes over memory.

Sums over rows have two stages, first per block and then over the blocks, so that a result does not depend on the order
in which blocks finish: the same seed gives the same bits.
"""

from infomax.kernels.gpu.activations import BiasPReLU
from infomax.kernels.gpu.loss import pair_loss, shuffle_loss
from infomax.kernels.gpu.neighbourhoods import pool_rows
from infomax.kernels.gpu.permutations import first_images, permutations
from infomax.kernels.gpu.products import Sparse, product
from infomax.kernels.gpu.step import adam, add_record
from infomax.kernels.gpu.trees import PoolTree, gather_tree

__all__ = [
    "BiasPReLU",
    "PoolTree",
    "Sparse",
    "adam",
    "add_record",
    "first_images",
    "gather_tree",
    "pair_loss",
    "permutations",
    "pool_rows",
    "product",
    "shuffle_loss",
]
