"""L-BFGS (Nocedal, 1980), for smooth convex functions; importing SciPy's takes 0.3 s, as long as a whole evaluation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

MEMORY, STEPS, HALVINGS = 10, 500, 20
ENOUGH = 1e-4
"""Share of the decrease promised by the slope that a step must give (Armijo)."""


def minimise(loss: Callable[[Vector], tuple[float, Vector]], start: Vector, precision: float) -> Vector:
    """A point ``[n]`` at which no entry of the gradient exceeds the precision, or the loss hardly falls any more.

    Args:
        loss: point -> value and gradient ``[n]``.
        start: ``[n]``.
        precision: of the gradient; the square of it is the relative decrease of the loss at which a search ends.
    """
    point, (value, slope) = start, loss(start)
    past: deque[tuple[Vector, Vector]] = deque(maxlen=MEMORY)
    for _ in range(STEPS):
        if np.abs(slope).max() <= precision:
            break
        direction, step = _direction(slope, past), 1.0
        promised = float(slope @ direction)
        for _ in range(HALVINGS):
            new = point - step * direction
            new_value, new_slope = loss(new)
            if new_value <= value - ENOUGH * step * promised:
                break
            step /= 2
        else:
            break  # rounding hides what is left to gain
        gained = value - new_value
        if (new - point) @ (new_slope - slope) > 0:
            past.append((new - point, new_slope - slope))
        point, value, slope = new, new_value, new_slope
        if gained <= precision**2 * max(abs(value), 1):
            break
    return point


def _direction(slope: Vector, past: deque[tuple[Vector, Vector]]) -> Vector:
    """The inverse of the curvature, as past steps and changes of the slope tell it, times the slope."""
    if not past:
        return slope / max(1.0, float(np.linalg.norm(slope)))
    direction, shares = slope.copy(), []
    for step, change in reversed(past):
        shares.append((step @ direction) / (step @ change))
        direction -= shares[-1] * change
    step, change = past[-1]
    direction *= (step @ change) / (change @ change)
    for (step, change), share in zip(past, reversed(shares), strict=True):
        direction += (share - (change @ direction) / (step @ change)) * step
    return direction
