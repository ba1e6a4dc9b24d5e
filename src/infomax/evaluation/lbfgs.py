"""L-BFGS (Nocedal, 1980), for smooth convex functions; importing SciPy's takes 0.3 s, as long as a whole evaluation.

Several functions are minimised side by side, each with steps of its own, so that a device computes few large products.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

MEMORY, STEPS, HALVINGS = 10, 500, 20
ENOUGH = 1e-4
"""Share of the decrease promised by the slope that a step must give (Armijo)."""


def minimise(loss: Callable[[Tensor], tuple[Tensor, Tensor]], start: Tensor, precision: float) -> Tensor:
    """Points ``[S, n]`` at which no entry of the gradient exceeds the precision, or the loss hardly falls any more.

    Args:
        loss: points -> values ``[S]`` and gradients ``[S, n]``, of S functions.
        start: ``[S, n]``, in double precision.
        precision: of the gradient; the square of it is the relative decrease of the loss at which a search ends.
    """
    point, (value, slope) = start, loss(start)
    past: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=MEMORY)
    unit, going = 1 / slope.norm(dim=1).clamp(min=1), torch.ones_like(value, dtype=torch.bool)
    for _ in range(STEPS):
        going = going & (slope.abs().amax(1) > precision)
        if not going.any():
            break
        direction, step = _direction(slope, past, unit), going.to(value.dtype)
        promised = ENOUGH * _dots(slope, direction)
        for _ in range(HALVINGS):
            new = torch.addcmul(point, direction, step[:, None], value=-1)
            new_value, new_slope = loss(new)
            if (lower := new_value <= value - step * promised).all():
                break
            step = torch.where(lower, step, step / 2)
        else:  # rounding hides what is left to gain
            going = going & lower
            new, new_slope = (torch.where(lower[:, None], *pair) for pair in ((new, point), (new_slope, slope)))
            new_value = torch.where(lower, new_value, value)
        moved, change = new - point, new_slope - slope
        curved = _dots(moved, change)
        told = curved > 0  # else the step tells nothing: it counts as none
        unit = torch.where(told, curved / _dots(change, change), unit)
        past.append((moved, change, torch.where(told, 1 / curved, 0)))
        going = going & (value - new_value > precision**2 * new_value.abs().clamp(min=1))
        point, value, slope = new, new_value, new_slope
    return point


def _direction(slope: Tensor, past: deque[tuple[Tensor, Tensor, Tensor]], unit: Tensor) -> Tensor:
    """The slope times the inverse of the curvature, as past steps tell it; ``unit`` is what they begin from."""
    direction, shares = slope.clone(), []
    for moved, change, inverse in reversed(past):
        shares.append((_dots(moved, direction) * inverse)[:, None])
        direction.addcmul_(change, shares[-1], value=-1)
    direction *= unit[:, None]
    for (moved, change, inverse), share in zip(past, reversed(shares), strict=True):
        direction.addcmul_(moved, share - (_dots(change, direction) * inverse)[:, None])
    return direction


def _dots(left: Tensor, right: Tensor) -> Tensor:
    """The dot products ``[S]`` of the rows of two ``[S, n]``."""
    return (left * right).sum(1)
