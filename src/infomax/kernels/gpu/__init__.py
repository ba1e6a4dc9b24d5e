"""The kernels of `infomax.kernels.Backend` on a GPU, in Triton, with few passes over memory.

Sums over rows have two stages, first per block and then over the blocks, so that a result does not
depend on the order in which blocks finish: the same seed gives the same bits.

In the kernels a name in capitals is known at compile time, and so is whether an argument is None; a
name that is passed an array is a pointer to its first entry, so ``z + row * d + column`` is the
address of an entry of ``[N, d]``. tests/kernels/test_gpu.py compares each with plain torch; it
needs a GPU: ``pytest -m gpu``.
"""

from infomax.kernels.gpu.activations import BiasPReLU as BiasPReLU
from infomax.kernels.gpu.loss import pair_loss as pair_loss
from infomax.kernels.gpu.loss import shuffle_loss as shuffle_loss
from infomax.kernels.gpu.neighbourhoods import pool_rows as pool_rows
from infomax.kernels.gpu.permutations import first_images as first_images
from infomax.kernels.gpu.permutations import permutations as permutations
from infomax.kernels.gpu.products import Sparse as Sparse
from infomax.kernels.gpu.products import product as product
from infomax.kernels.gpu.step import adam as adam
from infomax.kernels.gpu.step import add_record as add_record
