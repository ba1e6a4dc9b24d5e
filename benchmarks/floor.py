"""An epoch in C with all passes fused, to compare times with; built if there is a compiler. See floor.c."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.command import CannotRun
from benchmarks.problem import LEARNING_RATE, Problem
from infomax.kernels import Backend
from infomax.views import SYMMETRIC
from infomax.views.operands import SparseOperand, operand
from infomax.views.propagation import Propagation

LIBERTIES = (
    "no-math-errno",
    "no-trapping-math",
    "no-signed-zeros",
    "finite-math-only",
    "associative-math",
)
"""Sums may be reordered. Not -ffast-math: such a library makes the whole process flush small
numbers to zero."""
FLAGS = (
    "-O3",
    "-march=native",
    *(f"-f{liberty}" for liberty in LIBERTIES),
    "-fopenmp",
    "-shared",
    "-fPIC",
)


class Csr(ctypes.Structure):
    """A sparse matrix."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("starts", "columns", "values"))


class Weight(ctypes.Structure):
    """Weights, with the state of Adam and of early stopping."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("value", "mean", "variance", "kept"))


class Layout(ctypes.Structure):
    """The struct that floor.c calls a problem."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("n", "f", "d", "threads", "height")),
        *((name, Csr) for name in ("x", "xt", "p", "pt")),
        *((name, Weight) for name in ("theta", "bias", "slope", "bilinear", "offset")),
        *(
            (name, ctypes.c_void_p)
            for name in ("y", "z", "z_negative", "y_grad", "theta_grad", "slant")
        ),
    )


class Floor:
    """A training in C."""

    def __init__(self, problem: Problem) -> None:
        from infomax.kernels.cpu import BYTES_PER_BLOCK, FEWEST_ENTRIES_PER_BLOCK

        if problem.device.type != "cpu":
            raise CannotRun("floor.c is for a CPU")
        self.library, self.generator, self.step = built(), problem.generator(), 0
        self.held: list[NDArray] = []
        x = operand(problem.graph.features, Backend(problem.device))
        if not isinstance(x, SparseOperand):
            raise CannotRun("floor.c takes sparse features")
        p = Propagation.of(problem.graph, SYMMETRIC, Backend(problem.device)).operand
        (f, d), n = problem.theta.shape, problem.graph.num_nodes
        height = max(1, BYTES_PER_BLOCK // (4 * d))
        pays = x.matrix.values().numel() >= FEWEST_ENTRIES_PER_BLOCK * f * -(-n // height)
        views = dict.fromkeys(("y", "z", "z_negative", "y_grad"), (n, d))
        firsts = {
            "theta": problem.theta.numpy(),
            "bias": np.zeros(d),
            "slope": np.full(1, 0.25),
            "bilinear": problem.bilinear.numpy(),
            "offset": np.zeros(1),
        }
        self.layout = Layout(
            **{
                "n": n,
                "f": f,
                "d": d,
                "threads": torch.get_num_threads(),
                "height": height if pays else n,
            },
            **{
                name: self.csr(one)
                for name, one in {"x": x, "xt": x.transpose, "p": p, "pt": p.transpose}.items()
            },
            **{
                name: Weight(*(self.place(first * k) for k in (1, 0, 0, 0)))
                for name, first in firsts.items()
            },
            **{name: self.place(np.zeros(shape)) for name, shape in views.items()},
            **{"theta_grad": self.place(np.zeros((f, d))), "slant": self.place(np.zeros(2 * n))},
        )

    def csr(self, matrix: SparseOperand) -> Csr:
        """Convert a matrix to the C struct."""
        parts = matrix.matrix.crow_indices(), matrix.matrix.col_indices(), matrix.matrix.values()
        self.held += [part.numpy() for part in parts]
        return Csr(*(part.ctypes.data for part in self.held[-3:]))

    def place(self, array: NDArray) -> int:
        """Return the address of a float32 copy of an array, which lives as long as this object."""
        self.held.append(array.astype(np.float32))
        return int(self.held[-1].ctypes.data)

    def train(self, count: int) -> float:
        """Train ``count`` epochs; returns the last loss."""
        for _ in range(count):
            rows = torch.randperm(self.layout.n, generator=self.generator)
            self.step += 1
            loss = self.library.epoch(
                ctypes.byref(self.layout),
                ctypes.c_void_p(rows.data_ptr()),
                ctypes.c_double(LEARNING_RATE),
                ctypes.c_int64(self.step),
            )
        return float(loss)


@cache
def built() -> ctypes.CDLL:
    """Compile the library for this machine and load it."""
    with TemporaryDirectory() as folder:
        library = Path(folder) / "floor.so"
        command = ["cc", *FLAGS, "-o", str(library), str(Path(__file__).with_suffix(".c")), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            raise CannotRun("floor.c needs a C compiler (cc) with OpenMP") from None
        loaded = ctypes.CDLL(str(library))
    loaded.epoch.restype = ctypes.c_double
    return loaded
