"""The few operations worth writing better than autograd would; each equals its plain form."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def bias_prelu(z: Tensor, bias: Tensor, slope: Tensor) -> Tensor:
    """PReLU with one slope over z + bias, ``[N, d] -> [N, d]``. Without gradients z is overwritten."""
    if not torch.is_grad_enabled():
        return torch.prelu(z.add_(bias), slope)
    if z.is_cuda:
        return functional.prelu(z + bias, slope)
    return _BiasPReLU.apply(z, bias, slope)  # type: ignore[no-any-return, no-untyped-call]


def permute(y: Tensor, rows: Tensor) -> Tensor:
    """``y[rows]`` for a permutation; its gradient is a gather too, not a scatter."""
    return _Permute.apply(y, rows)  # type: ignore[no-any-return, no-untyped-call]


def column_sum(x: Tensor) -> Tensor:
    """Sum over rows, ``[N, d] -> [d]``, as a product with ones: three times as fast as ``sum(0)`` on a CPU."""
    return x.new_ones(len(x)) @ x


class _BiasPReLU(torch.autograd.Function):
    """On a CPU the scalar kernels take a fifth of the time of ``prelu``'s own backward."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, bias: Tensor, slope: Tensor) -> Tensor:
        u = z + bias
        ctx.save_for_backward(u, slope)
        return functional.leaky_relu(u, slope.item())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, slope = ctx.saved_tensors
        grad_slope = torch.dot(grads[0].reshape(-1), u.clamp(max=0).view(-1)).view(1)
        grad = torch.ops.aten.leaky_relu_backward(grads[0], u, slope.item(), False)
        return grad, column_sum(grad), grad_slope


class _Permute(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        return y.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        inverse = torch.empty_like(rows).scatter_(0, rows, torch.arange(len(rows), device=rows.device))
        return grads[0].index_select(0, inverse), None
