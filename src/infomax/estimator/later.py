"""After the training: vectors of later graphs, of nodes that come later, and as of the time of a question."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.arrays.table import Patched
from infomax.arrays.times import HALF_LIVES, parse_half_lives
from infomax.embeddings import EmbeddingParts, Embeddings
from infomax.errors import InputError, number_of
from infomax.estimator.assembly import check_graph
from infomax.estimator.attaching import KnownGraph, Neighbours
from infomax.estimator.vectors import Fitted
from infomax.graphs.graph import Graph
from infomax.io.changes import Changes, rows_before
from infomax.io.questions import Answers, read_questions
from infomax.kernels import Backend
from infomax.kernels.device import choose_device
from infomax.training import runs
from infomax.training.decay import Decayed
from infomax.training.history import History
from infomax.training.loop import Training
from infomax.training.places import received
from infomax.training.vectors import embed_near
from infomax.views.steps import walks

if TYPE_CHECKING:
    from infomax.estimator import DGI


class Start(NamedTuple):
    """A model whose training goes on, and vectors onto which the new ones are rotated, if any."""

    model: Fitted
    onto: Embeddings | None


@dataclass(frozen=True, eq=False)
class Update:
    """A model on a later graph, the vectors of its nodes, what had changed, and how many vectors were computed."""

    model: DGI
    kept: Embeddings | EmbeddingParts
    changes: Changes
    computed: int

    def __repr__(self) -> str:
        return f"Update({self.changes}; computed {self.computed} of {number_of(len(self.kept.ids), 'vector')})"

    @cached_property
    def embeddings(self) -> Embeddings:
        """The vectors of the later graph, copied when they are first asked for."""
        return self.kept if isinstance(self.kept, Embeddings) else Embeddings(*self.kept)


class Later(Fitted):
    """The part of `DGI` that is about what comes after the training: new nodes, later graphs, questions with times."""

    _known: KnownGraph | None = None  # to attach new nodes to
    _kept: Embeddings | EmbeddingParts | None = None  # vectors that a run is to hold as they are

    def update(
        self,
        graph: Graph,
        vectors: Embeddings | None = None,
        *,
        train: bool = False,
        align: bool = False,
        run: str | Path | None = None,
        progress: bool | Callable[[Training], None] = False,
    ) -> Update:
        """Take the model to a later graph; nodes are compared by their ids with those of the graph it was fitted to.

        Vectors that no change reaches are those of ``vectors``, byte for byte; the others are computed.

        Args:
            graph: the later graph, with the same features.
            vectors: those of the graph before; None: all are computed. Do not change them afterwards.
            train: go on training from these weights; then all vectors are computed.
            align: turn the vectors after that onto the ones before by the best rotation, so that they are comparable;
                the new model keeps the rotation.
            run: a run folder to write; with ``train`` it holds checkpoints, as in `fit`.
            progress: as in `fit`.

        Returns:
            the new ``model``, its ``embeddings``, the ``changes`` and the number of vectors ``computed``.
        """
        self._check_fitted()
        check_graph(graph)
        if self.graph_.node_type in graph.types and graph.node_type_is_first:
            graph = graph.target(self.graph_.node_type)
        self._check_features(graph)
        if align and not train:
            raise InputError(
                "align", "train as well: then all vectors change", "weights that stay as they are"
            )
        if vectors is not None and vectors.model not in ("", self.hash_):
            remedy = "Leave them out, or embed the run again."
            raise InputError(
                "vectors", "those of this model, with its settings", "those of another", remedy
            )
        changes = Changes.of(self.graph_, graph)
        self._recipe()  # fitted to the graph of the training
        later: Any = copy(self)
        if train:
            onto = (vectors or self.transform(self.graph_)) if align else None
            later = type(later)(preset=self.preset_, seed=self.seed_, device=self.device)
            later._train(graph, run, progress, Start(self, onto))
            return Update(later, later._kept, changes, graph.num_nodes)
        later.graph_ = graph
        later._known = None
        later._alike = None
        later._places = self._places and self._places.moved(self.graph_, graph)
        later._trained_on = self._trained_on or runs.describe(self.graph_)
        later._kept, computed = updated(later, graph, vectors, changes)
        if run is not None:
            later.save(run)
        return Update(later, later._kept, changes, computed)

    def _keep_vectors(self, onto: Embeddings | None) -> None:
        """Keep the vectors after further training, rotated onto earlier ones if there are any."""
        self.health_  # noqa: B018  of vectors as they were trained
        self._kept = self.transform(self.graph_)
        if onto is not None:
            turn = self._kept.rotation(onto)
            self._parts = replace(self._recipe(), turn=torch.from_numpy(turn))
            self._kept = replace(self._kept, vectors=self._kept.vectors @ turn, model=self.hash_)

    def vector(self, features: Any = None, neighbours: Neighbours = ()) -> NDArray[np.float32]:
        """Compute the vector ``[d]`` of a new node, as if it were attached to the graph that the model was fitted to.

        It takes milliseconds after the first call: only what is around the neighbours is read.

        Args:
            features: ``[F]`` numbers in the order of ``feature_names_``, or a mapping of their names to numbers; where
                columns of a table became features, also a mapping of columns to cells, or a row of a pandas frame. None
                where the model was fitted without features.
            neighbours: the ids, or names, of known nodes that edges join it to, with an edge to it in a directed graph;
                where edges have weights, a mapping of ids to weights. In a graph of several types, by type, as in
                ``{"author": ["ann", "bob"]}``, or by the name of a relation where several join the same two types.
        """
        return self.vectors_of(None if features is None else [features], [neighbours])[0]  # type: ignore[no-any-return]

    def vectors_of(self, features: Any, neighbours: Sequence[Neighbours]) -> NDArray[np.float32]:
        """Compute the vectors ``[M, d]`` of M new nodes at once, each as `vector` does.

        New nodes that are joined to each other are attached by `infomax.read_graph`.

        Args:
            features: for each new node what `vector` takes, as a list or as an array ``[M, F]``. None where the model
                was fitted without features.
            neighbours: for each new node what `vector` takes.
        """
        self._check_fitted()
        if self._known is None or self._known.graph is not self.graph_:
            self._known = KnownGraph(self.graph_)
        backend = Backend.of_embedding(
            choose_device(self.device), numbers=0
        )  # kernels would take seconds to load
        recipe, count = self._recipe(), len(neighbours)
        with np.errstate(over="ignore"):  # what overflows is refused
            later = self._known.with_nodes(features, neighbours)
            rows = np.arange(later.num_nodes - count, later.num_nodes)
            given = {"pooled": Decayed(later, recipe)[rows]} if recipe.half_lives else {}
            if self._places is not None:
                given["positions"] = self._places.near(received(later, rows), count)[:, 1:]
            found = embed_near(recipe, later, rows, backend, given)
        assert found is not None  # noqa: S101  however many nodes are around them
        if not np.isfinite(found).all():
            raise InputError(
                "features and weights", "numbers whose vectors float32 can hold", "larger ones"
            )
        return found

    def at(
        self,
        questions: Any,
        graph: Graph | None = None,
        *,
        half_life: str | None = None,
        id: str | None = None,
        time: str | None = None,
    ) -> Answers:
        """Compute one vector per question, each from rows up to its own time only.

        >>> answers = model.at(frame)  # columns id and time; answers.vectors [Q, D], answers.names

        A vector has the row's own columns, and for each half-life the means over its events up to the time; see
        `infomax.training.history`. The encoder and positions belong to the day of the training and are left out.

        Args:
            questions: a frame, or the path of a table, with a column of ids and one of times.
            graph: the graph to look into, read like the one of the training; None: that one.
            half_life: half-lives of the weights of events. None: those of the training, else ``"60d,365d,forever"``.
            id: the column of ids. None: called ``id``, or after the type, else the first.
            time: the column of times. None: called time, date, timestamp, when or day.
        """
        self._check_fitted()
        source = self.graph_ if graph is None else graph
        self._check_features(source)
        return next(self._answers(questions, source, half_life, id, time))

    def _answers(
        self,
        questions: Any,
        graph: Graph,
        half_life: str | None = None,
        id: str | None = None,
        time: str | None = None,
        most: float = math.inf,
    ) -> Iterator[Answers]:
        """What `at` returns, in blocks of at most so many bytes."""
        if all(one.times is None for one in graph.nodes.values()):
            remedy = (
                "Name the column of times when the graph is read: --time COLUMN (in Python: time=)."
            )
            raise InputError("graph", "rows with times", "none", remedy)
        table, rows, times = read_questions(questions, graph, id, time)
        lives = parse_half_lives(half_life or self.preset_.half_life or HALF_LIVES)
        history = History(graph, self.graph_.seen(), self.scaler_, lives)
        step = int(max(1, min(len(rows), most // (4 * len(history.names)))))
        for first in range(0, len(rows), step):
            some = slice(first, first + step)
            found = history.at(rows[some], times[some])
            yield Answers(table.slice(first, step), found, history.names, self.hash_)


def updated(
    model: Fitted, graph: Graph, vectors: Embeddings | None, changes: Changes
) -> tuple[Embeddings | EmbeddingParts, int]:
    """The vectors of a later graph: yesterday's, and those within reach of a change; and the number of these."""
    if vectors is None:
        return model.transform(graph), graph.num_nodes
    encoder, recipe = model.model_.encoder, model._recipe()
    reached = changes.reach(*walks(graph, encoder.rule, encoder.depth + recipe.hops))
    known, n = rows_before(vectors.ids, graph.ids[:]), graph.num_nodes
    rows = np.flatnonzero(reached | (known < 0))
    if len(rows) == n:
        return model.transform(graph), n
    new = model.transform(graph, rows=rows).vectors if len(rows) else vectors.vectors[:0]
    names = None if graph.node_names is None else graph.node_names[:]
    patched = Patched(vectors.vectors, known, rows, new)
    return EmbeddingParts(patched, graph.ids[:], names, model.hash_, recipe.parts), len(rows)
