"""Vectors as of the time of a question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.times import HALF_LIVES, format_time, parse_half_lives
from infomax.errors import InputError, warn
from infomax.estimator.fitted_model import FittedModel
from infomax.estimator.same_features import check_same_features
from infomax.graphs.graph import Graph
from infomax.io.past import last_time
from infomax.io.questions import Answers, read_questions
from infomax.training.history import History


def answer_at_once(
    fitted: FittedModel,
    questions: Any,
    graph: Graph | None = None,
    *,
    half_life: str | None = None,
    id_column: str | None = None,
    time_column: str | None = None,
) -> Answers:
    """One vector per question, all of them in memory; see `DGI.at`."""
    source = fitted.graph if graph is None else graph
    check_same_features(source, fitted.graph)
    blocks = answer_in_blocks(
        fitted,
        questions,
        source,
        half_life=half_life,
        id_column=id_column,
        time_column=time_column,
    )
    return next(blocks)


def answer_in_blocks(
    fitted: FittedModel,
    questions: Any,
    graph: Graph,
    *,
    half_life: str | None = None,
    id_column: str | None = None,
    time_column: str | None = None,
    bytes_per_block: int | None = None,
) -> Iterator[Answers]:
    """One vector per question, in blocks whose vectors take at most so many bytes.

    A block has at least one question; without a limit all questions are one block. The caller has
    checked that the graph has the features of the model.
    """
    if all(nodes.times is None for nodes in graph.nodes.values()):
        remedy = (
            "Name the column of times when the graph is read: --time COLUMN (in Python: time=)."
        )
        raise InputError("graph", "rows with times", "none", remedy)
    table, rows, times = read_questions(questions, graph, id_column, time_column)
    if graph is fitted.graph:
        _warn_of_later_questions(times, graph)
    half_lives = parse_half_lives(half_life or fitted.preset.half_life or HALF_LIVES)
    history = History(graph, fitted.graph.seen(), fitted.scaler, half_lives)

    if not history.names:
        found = f"{graph.node_type or 'nodes'} without either"
        expected = "a type with features, or with neighbours that have times"
        raise InputError("questions", expected, found, "Ask about another type: --type TYPE.")

    block_size = max(1, len(rows))
    if bytes_per_block is not None:
        bytes_per_question = 4 * len(history.names)
        block_size = max(1, min(block_size, bytes_per_block // bytes_per_question))
    for first in range(0, len(rows), block_size):
        block = slice(first, first + block_size)
        vectors = history.vectors_at(rows[block], times[block])
        yield Answers(table.slice(first, block_size), vectors, history.names, fitted.recipe.hash)


def _warn_of_later_questions(times: NDArray[np.int64], graph: Graph) -> None:
    """Warn how many questions are later than the last row of the training graph.

    They do not see what came since.
    """
    end_of_rows = last_time(graph)
    if end_of_rows is None:
        return
    later = int((times > end_of_rows).sum())
    if later:
        verb = "is" if later == 1 else "are"
        counted = f"{later:,} of {len(times):,} {verb} later than the rows of the training graph"
        remedy = "Give the tables of today: GRAPH (in Python: graph)."
        end = format_time(end_of_rows)
        warn(f"questions: {counted}, which end at {end}, and may see less than there is. {remedy}")
