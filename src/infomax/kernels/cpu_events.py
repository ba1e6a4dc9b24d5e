"""Means over the events of rows, with weights that halve with age, as of many times.

All questions are answered by one walk over the events in the order of their times, compiled by
numba. tests/test_estimator_times.py holds it to sums over all events.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.kernels.compiling import compiled
from infomax.kernels.host import ranges_by_entries, run_in_ranges

_MICROSECONDS_OF_A_DAY = 86_400_000_000.0
_UNKNOWN_TIME = int(np.iinfo(np.int64).min)


@compiled
def _pool_events(
    event_starts,
    event_times,
    table_rows,
    table,
    question_starts,
    question_times,
    question_numbers,
    half_lives,
    means,
    weights,
    latest,
    first_row,
    end_row,
):
    """Answer the questions about rows ``first_row`` to ``end_row``.

    The events and the questions of a row are walked together, both in the order of their times.
    Sums are carried from event to event, in float64, and are of the time ``sums_time``.
    """
    num_half_lives, width = len(half_lives), table.shape[1]
    sums, weight_sums = np.empty((num_half_lives, width)), np.empty(num_half_lives)
    for row in range(first_row, end_row):
        event = event_starts[row]
        sums_time = _UNKNOWN_TIME
        sums[:] = 0
        weight_sums[:] = 0
        for question in range(question_starts[row], question_starts[row + 1]):
            question_time = question_times[question]

            # Add the events up to the time of the question.
            while event < event_starts[row + 1] and event_times[event] <= question_time:
                time, table_row = event_times[event], table_rows[event]
                event += 1
                if table_row < 0:
                    continue
                for h in range(num_half_lives):
                    if time == _UNKNOWN_TIME and half_lives[h] < np.inf:
                        continue  # an unknown time is older than any other
                    decay = 1.0
                    if sums_time != _UNKNOWN_TIME and time > sums_time:
                        if half_lives[h] > 0:
                            days = (time - sums_time) / _MICROSECONDS_OF_A_DAY
                            decay = 2.0 ** (-days / half_lives[h])
                        else:
                            decay = 0.0  # only events of the latest time count
                    weight_sums[h] = weight_sums[h] * decay + 1
                    for column in range(width):
                        sums[h, column] = sums[h, column] * decay + table[table_row, column]
                sums_time = time

            # Write the answer in the order in which questions were asked.
            number = question_numbers[question]
            latest[number] = event - 1 if event > event_starts[row] else -1
            for h in range(num_half_lives):
                if weight_sums[h] > 0:
                    for column in range(width):
                        means[number, h, column] = sums[h, column] / weight_sums[h]
                    decay = 1.0
                    if sums_time != _UNKNOWN_TIME and half_lives[h] > 0:
                        days = (question_time - sums_time) / _MICROSECONDS_OF_A_DAY
                        decay = 2.0 ** (-days / half_lives[h])
                    weights[number, h] = weight_sums[h] * decay


def pool_events(
    starts: NDArray[np.int64],
    times: NDArray[np.int64],
    table_rows: NDArray[np.int64],
    table: NDArray[np.float32],
    questions: tuple[NDArray[np.int64], NDArray[np.int64]],
    half_lives: NDArray[np.float64],
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    """Answer questions: the weighted mean of the events of a row up to a time.

    An event weighs 0.5^(age / half-life). A half-life of infinity gives plain means, and 0 the mean
    of the events of the latest time.

    Args:
        starts: ``[R + 1]``, where the events of each row begin.
        times: ``[M]`` microseconds; ascending within a row.
        table_rows: ``[M]``, the row of the table that has the columns of each event; -1: it counts
            for nothing.
        table: ``[n, C]``.
        questions: rows and times ``[Q]`` each; a row of -1 has no events.
        half_lives: ``[H]`` in days.

    Returns:
        The weighted means ``[Q, H, C]``, the sums of the weights ``[Q, H]``, both 0 where there is
        no event, and which of the M events is the latest ``[Q]``, -1 for none.
    """
    question_rows, question_times = questions
    num_questions = len(question_rows)
    means = np.zeros((num_questions, len(half_lives), table.shape[1]), np.float32)
    weights = np.zeros((num_questions, len(half_lives)), np.float32)
    latest = np.full(num_questions, -1)

    # Questions by row and time; those about no row come first and are left out.
    order = np.lexsort((question_times, question_rows))
    order = order[np.searchsorted(question_rows[order], 0) :]
    question_starts = np.zeros(len(starts), np.int64)
    counts = np.bincount(question_rows[order], minlength=len(starts) - 1)
    np.cumsum(counts, out=question_starts[1:])

    arguments: Any = (
        starts,
        times,
        table_rows,
        table,
        question_starts,
        question_times[order],
        order,
        half_lives,
        means,
        weights,
        latest,
    )
    bounds = ranges_by_entries(starts + question_starts, 4)
    run_in_ranges(_pool_events, (bounds, *arguments))
    return means, weights, latest
