"""Means over the events of rows, with weights that halve with age, as of many times: one walk over sorted events."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.kernels.compiling import compiled
from infomax.kernels.host import even, share

_DAY, _UNKNOWN = 86_400_000_000.0, int(np.iinfo(np.int64).min)
"""Microseconds of a day, and the time of an event that has none."""


@compiled
def _pool(
    starts,
    times,
    places,
    table,
    asked,
    moments,
    order,
    half_lives,
    means,
    weights,
    latest,
    begin,
    end,
):
    """Answer the questions about rows begin to end; sums are carried from event to event, in float64."""
    count, width = len(half_lives), table.shape[1]
    total, weight = np.empty((count, width)), np.empty(count)
    for row in range(begin, end):
        event, last = starts[row], _UNKNOWN
        total[:] = 0
        weight[:] = 0
        for question in range(asked[row], asked[row + 1]):
            now = moments[question]
            while event < starts[row + 1] and times[event] <= now:
                time, place = times[event], places[event]
                event += 1
                if place < 0:
                    continue
                for h in range(count):
                    if time == _UNKNOWN and half_lives[h] < np.inf:
                        continue  # it is older than anything
                    kept = 1.0
                    if last != _UNKNOWN and time > last:
                        kept = (
                            2.0 ** (-((time - last) / _DAY) / half_lives[h])
                            if half_lives[h] > 0
                            else 0.0
                        )
                    weight[h] = weight[h] * kept + 1
                    for column in range(width):
                        total[h, column] = total[h, column] * kept + table[place, column]
                last = time
            at = order[question]
            latest[at] = event - 1 if event > starts[row] else -1
            for h in range(count):
                if weight[h] > 0:
                    for column in range(width):
                        means[at, h, column] = total[h, column] / weight[h]
                    kept = 1.0
                    if last != _UNKNOWN and half_lives[h] > 0:
                        kept = 2.0 ** (-((now - last) / _DAY) / half_lives[h])
                    weights[at, h] = weight[h] * kept


def pool_events(
    starts: NDArray[np.int64],
    times: NDArray[np.int64],
    places: NDArray[np.int64],
    table: NDArray[np.float32],
    questions: tuple[NDArray[np.int64], NDArray[np.int64]],
    half_lives: NDArray[np.float64],
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    """The weighted means ``[Q, H, C]`` of the events of rows up to a time, and the sums of the weights ``[Q, H]``.

    And which of the M events is the latest ``[Q]``, -1 for none.

    An event weighs 0.5^(age / half-life): infinity gives plain means, 0 the mean of the events of the latest time.
    Where there is none, both are 0.

    Args:
        starts: ``[R + 1]``, where the events of each row begin.
        times: ``[M]`` microseconds; ascending within a row.
        places: ``[M]``, the row of the table that has the columns of each event; -1: it counts for nothing.
        table: ``[n, C]``.
        questions: rows and times ``[Q]`` each; a row of -1 has no events.
        half_lives: ``[H]`` in days.
    """
    rows, moments = questions
    means = np.zeros((len(rows), len(half_lives), table.shape[1]), np.float32)
    weights = np.zeros((len(rows), len(half_lives)), np.float32)
    latest = np.full(len(rows), -1)
    order = np.lexsort((moments, rows))
    order = order[np.searchsorted(rows[order], 0) :]
    asked = np.zeros(len(starts), np.int64)
    np.cumsum(np.bincount(rows[order], minlength=len(starts) - 1), out=asked[1:])
    work: Any = (
        starts,
        times,
        places,
        table,
        asked,
        moments[order],
        order,
        half_lives,
        means,
        weights,
        latest,
    )
    share(_pool, (even(starts + asked, 4), *work))
    return means, weights, latest
