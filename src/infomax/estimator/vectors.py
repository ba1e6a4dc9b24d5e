"""What a fitted model computes: the vectors of the nodes of a graph, and the report on its training."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from infomax.arrays.checks import check_feature_names
from infomax.arrays.made import made
from infomax.arrays.resemblance import resemblance
from infomax.arrays.scaling import Scale, Scaler
from infomax.embeddings import Embeddings
from infomax.errors import InputError, warn
from infomax.estimator.assembly import check_graph
from infomax.graphs.graph import Graph
from infomax.io.column_names import listed
from infomax.io.questions import Answers
from infomax.kernels import Backend
from infomax.kernels.device import choose_device
from infomax.parts.methods import Model
from infomax.parts.vectors import PAPER, check_vectors
from infomax.presets import Preset
from infomax.training.health import SAMPLE, health, spread
from infomax.training.parameters import not_fitted
from infomax.training.places import Places, fit_places
from infomax.training.recipe import FITTED, LARGE, Recipe, balance, lengths, name_columns, own_projection, parts_for
from infomax.training.vectors import embed
from infomax.training.writing import write_embedding


class Fitted:
    """The part of `DGI` that computes vectors, and reports on them."""

    one_of_many = False
    """Whether so many models are trained that loading compiled kernels pays, however small the graph."""

    model_: Model
    preset_: Preset
    seed_: int
    scaler_: Scaler
    feature_names_: tuple[str, ...]
    graph_: Graph
    device: str
    _course: dict[str, Any] | None = None  # of the training, without what needs the vectors
    _health: dict[str, Any] | None = None
    _parts: Recipe | None = None  # the fitted recipe
    _places: Places | None = None  # the positions of the nodes of graph_
    _positions: int | None = None  # how many columns these must have, where the training of another model goes on
    _alike: tuple[Graph, Scale, float | None] | None = None  # the resemblance of neighbours in a graph, by its scale
    _trained_on: dict[str, Any] | None = None  # the graph of the training, where that is another than graph_

    @property
    def hash_(self) -> str:
        """The hash of all that the vectors depend on besides the graph; files of vectors in parquet hold it."""
        return self._recipe().hash

    def transform(
        self,
        graph: Graph,
        *,
        vectors: str | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> Embeddings:
        """Compute the vectors ``[N, d]`` of a graph's nodes, in the graph's order, with its ids.

        Args:
            graph: any graph with the features that the model was fitted to.
            vectors: some of the parts that the model's vectors have, as ``"own,positions"``; ``"paper"`` for the
                encoder's vectors as they are. None: all parts.
            rows: compute only these nodes, in ascending order.
        """
        self._check_fitted()
        check_graph(graph)
        self._check_features(graph)
        recipe, numbers = self._recipe(vectors), math.inf if self.one_of_many else None
        places = self._places_of(graph, recipe)
        found = embed(recipe, graph, self.device, rows=rows, numbers=numbers, places=places)
        some = slice(None) if rows is None else rows
        names = None if graph.node_names is None else graph.node_names[some]
        return Embeddings(found, graph.ids[some], names, recipe.hash, recipe.parts)

    def positions(self, kind: str = "") -> Embeddings:
        """The positions ``[n, K]`` of the nodes of any type, centred, in the space that all types share.

        Args:
            kind: the type of the nodes, where the graph has several.
        """
        found = normalize(torch.from_numpy(np.array(self._placed(kind).of_type(kind)))).numpy()
        return self._at_nodes(kind, found - found.mean(axis=0))

    def singular_vectors(self, kind: str = "") -> Embeddings:
        """The singular vectors ``[n, K]`` that positions are made of, the leading first, at the nodes of any type.

        A user likes items with a large inner product, see recipes/recommend.py.

        Args:
            kind: the type of the nodes, where the graph has several.
        """
        return self._at_nodes(kind, self._placed(kind).singular(kind))

    def _placed(self, kind: str) -> Places:
        """Where nodes stand; refused where vectors have no positions, or there is no such type."""
        self._check_fitted()
        self.graph_.target(kind)
        if "positions" not in self._recipe().parts or self._places is None:
            raise InputError("positions", "a model whose vectors have them", "one without", "Leave out vectors=.")
        return self._places

    def _at_nodes(self, kind: str, vectors: NDArray[np.float32]) -> Embeddings:
        graph = self.graph_.target(kind)
        return Embeddings(vectors, graph.ids[:], graph.node_names, self.hash_)

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
            half_life: half-lives of the weights of events, as ``"60d,365d,forever"``, which is the default.
            id: the column of ids. None: called ``id``, or after the type, else the first.
            time: the column of times. None: called time, date, timestamp, when or day.
        """
        from infomax.estimator.times import answer

        self._check_fitted()
        source = self.graph_ if graph is None else graph
        self._check_features(source)
        return answer(self, questions, source, half_life, id, time)

    def _recipe(self, vectors: str | None = None) -> Recipe:
        """What makes vectors: all parts of the model's, or some; they are fitted when they are first needed."""
        if vectors == PAPER or (self._parts is None and self.preset_.vectors == PAPER):
            return Recipe(self.model_.encoder, self.scaler_)
        if self._parts is None:
            self._parts = self._fit_parts()
        return self._parts if vectors is None else self._parts.only(check_vectors(vectors))

    def _fit_parts(self) -> Recipe:
        """Fit all parts to the nodes that training saw."""
        graph, encoder = self.graph_, self.model_.encoder
        wanted, seen = parts_for(graph, self.preset_.vectors)[0], graph.seen()
        smooth = not graph.kind and graph.num_nodes <= LARGE
        recipe = Recipe(encoder, self.scaler_, smooth=smooth, kind=graph.kind)
        # A graph that large may be on disk, where each row, and each row of its neighbours, is a page to read.
        most = FITTED if graph.num_nodes <= LARGE else SAMPLE
        needed = {graph.kind} if "own" in wanted else set[str]()
        needed |= set(recipe.ends) if "pooled" in wanted else set()
        scaled, features = seen.scaled(self.scaler_), dict[str, tuple[str, ...]]()
        projections = {}
        for kind in sorted(needed):
            one = scaled.target(kind)
            features[kind] = one.feature_names
            projections[kind] = own_projection(one.table, spread(one.num_nodes, most))
        if "positions" in wanted and self._places is None:
            self._places = fit_places(graph, Backend.of(choose_device(self.device)), self._positions)
        width = self._places.width if self._places else 0
        recipe = name_columns(replace(recipe, projections=projections), wanted, width, features)
        nodes = spread(seen.num_nodes, most)
        raw = embed(recipe, seen, self.device, rows=nodes, places=self._places_of(seen, recipe))
        alike = self._resemblance(graph, self.scaler_) if "own" in wanted and not graph.kind else None
        centre, factor = balance(raw, recipe.parts, lengths(seen, alike))
        return replace(recipe, centre=centre, factor=factor)

    def _places_of(self, graph: Graph, recipe: Recipe) -> NDArray[np.float32] | None:
        """The positions ``[N, K]`` of a graph's nodes: known ones keep theirs, others stand near their neighbours."""
        if self._places is None or "positions" not in recipe.parts:
            return None
        return self._places.moved(self.graph_, graph).of_type(graph.kind)

    def _check_features(self, graph: Graph) -> None:
        """Raise InputError for a graph whose nodes are of another type, or have other features than in training."""
        if graph.kind != (kind := self.graph_.kind):
            expected, found = (f"nodes of type {one}" if one else "nodes of one type" for one in (kind, graph.kind))
            remedy = f"Turn it to that type: graph.target({kind!r})." if kind in graph.types else ""
            raise InputError("graph", expected, found, remedy)
        remedy = (
            "Read its tables like that graph's: like=model.graph_ (read_graph, from_frames), or prepare --like RUN."
        )
        self._check_directions(graph, remedy)
        check_feature_names("features", graph.feature_names, self.feature_names_, remedy)
        encodings = [(graph.encoding, self.graph_.encoding)]
        for kind in self.graph_.nodes.keys() - {self.graph_.kind}:
            here, there = graph.target(kind).own, self.graph_.nodes[kind]
            check_feature_names(f"features of nodes of type {kind}", here.feature_names, there.feature_names)
            encodings.append((here.encoding, there.encoding))
        if anew := [name for new, old in encodings if new and old for name in new.differing(old)]:
            told = f"features: the columns {listed(anew)} were encoded by this graph's values, not the training graph's"
            warn(f"{told}: its vectors are not comparable. {remedy}")

    def _check_directions(self, graph: Graph, remedy: str) -> None:
        """Raise InputError for a graph whose edges within a type run otherwise than in training."""
        trained = {one.ends: one.directed for one in self.graph_.relations if one.edges.nnz}
        told = {True: "edges that have directions", False: "edges that run both ways"}
        for one in graph.relations:
            if one.within and one.edges.nnz and trained.get(one.ends, one.directed) != one.directed:
                where = f"graph, relation {'.'.join(one.ends)}" if graph.kind else "graph"
                raise InputError(where, f"{told[not one.directed]}, as in training", told[one.directed], remedy)

    @property
    def health_(self) -> dict[str, Any]:
        """The report on the training, computed at first use, since it needs the vectors and their spectrum."""
        if self._health is None:
            if self._course is None:
                raise not_fitted("No training has finished yet: call fit(graph).")
            self._health = self._report(self.graph_.seen())
        return self._health

    def _report(self, seen: Graph) -> dict[str, Any]:
        """The report on the training, from the graph that it saw; it is about what the encoder gives."""
        numbers = math.inf if self.one_of_many else None
        rows = spread(seen.num_nodes)
        learnt = embed(self._recipe(PAPER), seen, self.device, rows=rows, numbers=numbers)
        told: dict[str, Any] = {}
        recipe = self._recipe()
        if parts := recipe.parts:
            told["parts"] = {name: len(columns) for name, columns in parts.items()}
        if "own" not in parts and seen.kind not in recipe.ends and not made(seen.feature_names):
            told["columns_lost"] = seen.num_features
        if not seen.kind and not made(seen.feature_names):  # positions are made of the edges, so they are always alike
            told["resemblance"] = self._resemblance(self.graph_, self.scaler_)
        return health({**(self._course or {}), **told}, learnt, seen)

    def _resemblance(self, graph: Graph, scaler: Scaler) -> float | None:
        """How alike neighbours are, computed once: the choice of settings, the own part and the report ask for it."""
        if self._alike is None or self._alike[0] is not graph or self._alike[1] != scaler.kind:
            seen = graph.seen()
            alike = None if seen.kind else resemblance(seen.table, seen.edges, scaler)
            self._alike = graph, scaler.kind, alike
        return self._alike[2]

    def write_vectors(
        self,
        graph: Graph,
        out: str | Path,
        *,
        vectors: str | None = None,
        half: bool = False,
        **options: Any,
    ) -> None:
        """Write the vectors of a graph folder without holding all of them in memory.

        Args:
            graph: a graph that `Graph.open` opened.
            out: a .parquet or .npy, or a folder of parts. Parts that are there already are not made again.
            vectors: as in `transform`.
            half: write half precision.
            options: ``progress``, which is told the nodes done; ``check=False`` to check only the footers of parts that
                are there, not all bytes.
        """
        self._check_fitted()
        self._check_features(graph)
        if not graph.table.mapped:
            raise InputError("graph", "a graph opened from a graph folder", "one in memory", "Use transform.")
        recipe = self._recipe(vectors)
        places = self._places_of(graph, recipe)
        write_embedding(recipe, graph, Path(out), device=self.device, places=places, half=half, **options)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise not_fitted("This DGI is not fitted yet: call fit(graph), or DGI.load(folder).")
