"""L-BFGS (Nocedal, 1980), for smooth convex functions; importing SciPy's takes 0.3 s, as long as a whole evaluation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from torch import Tensor

MEMORY, STEPS, HALVINGS = 10, 500, 20
ENOUGH = 1e-4
"""Share of the decrease promised by the slope that a step must give (Armijo)."""


def minimise(loss: Callable[[Tensor], tuple[float, Tensor]], start: Tensor, precision: float) -> Tensor:
    """A point ``[n]`` at which no entry of the gradient exceeds the precision, or the loss hardly falls any more.

    Args:
        loss: point -> value and gradient ``[n]``.
        start: ``[n]``, in double precision.
        precision: of the gradient; the square of it is the relative decrease of the loss at which a search ends.
    """
    point, (value, slope) = start, loss(start)
    past: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=MEMORY)
    for _ in range(STEPS):
        if float(slope.abs().max()) <= precision:
            break
        direction, step = _direction(slope, past), 1.0
        promised = float(slope @ direction)
        for _ in range(HALVINGS):
            new = point.sub(direction, alpha=step)
            new_value, new_slope = loss(new)
            if new_value <= value - ENOUGH * step * promised:
                break
            step /= 2
        else:
            break  # rounding hides what is left to gain
        gained, moved, change = value - new_value, new - point, new_slope - slope
        if (curved := float(moved @ change)) > 0:
            past.append((moved, change, curved))
        point, value, slope = new, new_value, new_slope
        if gained <= precision**2 * max(abs(value), 1):
            break
    return point


def _direction(slope: Tensor, past: deque[tuple[Tensor, Tensor, float]]) -> Tensor:
    """The inverse of the curvature, as past steps and changes of the slope tell it, times the slope."""
    if not past:
        return slope / max(1.0, float(slope.norm()))
    direction, shares = slope.clone(), []
    for moved, change, curved in reversed(past):
        shares.append(float(moved @ direction) / curved)
        direction.sub_(change, alpha=shares[-1])
    _, change, curved = past[-1]
    direction *= curved / float(change @ change)
    for (moved, change, curved), share in zip(past, reversed(shares), strict=True):
        direction.add_(moved, alpha=share - float(change @ direction) / curved)
    return direction
