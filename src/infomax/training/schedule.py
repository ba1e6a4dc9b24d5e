"""Schedules: the learning rate of every step of a training.

The lengths and peaks below were chosen on validation nodes; the figures are in
docs/explanation/evidence.md, and ``recipes/schedules.py`` measures them anew.
"""

from __future__ import annotations

import math

USUAL_EPOCHS = 200
"""Epochs of a training with a schedule of known length, and steps of one in batches."""
EPOCHS_OF_TYPES = 120
"""Epochs where nodes have types: more of them lower the scores of ACM."""
USUAL_WIDTH = 512
USUAL_PEAK = 0.002
"""The highest rate for an encoder of the usual width."""
NARROW_WIDTH = 64
NARROW_PEAK = 0.004
"""The highest rate for a narrow encoder, which needs more."""
PAPER_RATE = 0.001
"""The paper's rate, in every step."""
WARM_UP_SHARE = 0.1
"""Share of the steps in which the rate rises."""


def peak_rate(width: int) -> float:
    """The highest learning rate for an encoder of this width, to three digits.

    A power of the width through the two widths that were measured: 0.002 at 512 and 0.004 at 64.
    """
    exponent = math.log(NARROW_PEAK / USUAL_PEAK) / math.log(USUAL_WIDTH / NARROW_WIDTH)
    rate = USUAL_PEAK * (USUAL_WIDTH / width) ** exponent
    return float(f"{rate:.3g}")


class Schedule:
    """The learning rate of every step. Your own schedule defines `rates`."""

    allows_early_stopping: bool = False
    """Whether a training may end early: not where the rate falls towards a known end."""

    def __init__(self, peak: float) -> None:
        self.peak = peak

    @classmethod
    def usual_peak(cls, width: int) -> float:
        """The peak for an encoder of this width, where none is given."""
        return peak_rate(width)

    def rates(self, step_count: int) -> float | list[float]:
        """The rate of each of so many steps, or one number for all of them."""
        raise NotImplementedError


class ConstantRate(Schedule):
    """The same rate in every step, as in the paper: a training may then stop early."""

    allows_early_stopping = True

    @classmethod
    def usual_peak(cls, width: int) -> float:
        """The paper's rate, for every width."""
        return PAPER_RATE

    def rates(self, step_count: int) -> float:
        """The peak."""
        return self.peak


class WarmUpCosine(Schedule):
    """The rate rises to its peak in equal steps, then falls along half a cosine towards zero.

    The number of steps is known before the training begins.

    Args:
        peak: the highest rate.
        warm_up_share: the share of the steps in which the rate rises.
    """

    def __init__(self, peak: float, *, warm_up_share: float = WARM_UP_SHARE) -> None:
        super().__init__(peak)
        self.warm_up_share = warm_up_share

    def rates(self, step_count: int) -> list[float]:
        """The rate of each step; that of the last one is still above zero."""
        warm_up_count = max(1, round(self.warm_up_share * step_count))
        rising = [
            self.peak * (step + 1) / warm_up_count for step in range(min(warm_up_count, step_count))
        ]

        falling_count = step_count - len(rising)
        falling = [
            self.peak * (1 + math.cos(math.pi * step / falling_count)) / 2
            for step in range(falling_count)
        ]
        return rising + falling
