"""What a fitted model computes: the vectors of the nodes of a graph, and the report on its training."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from infomax.arrays.checks import check_feature_names
from infomax.arrays.made import made
from infomax.arrays.resemblance import resemblance, unlike
from infomax.arrays.scaling import Scale, Scaler
from infomax.embeddings import Embeddings
from infomax.errors import InputError, warn, whole
from infomax.estimator.assembly import check_graph
from infomax.graphs.graph import Graph
from infomax.io.columns import listed
from infomax.parts.methods import Model
from infomax.presets import Preset
from infomax.training.embed import embedder
from infomax.training.health import health, spread
from infomax.training.own import FITTED, LENGTH, LONG, Own, Recipe
from infomax.training.parameters import not_fitted
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
    _own: dict[tuple[int, int], Own]  # by the number of singular vectors and the hops of smoothing
    _alike: tuple[Graph, Scale, float | None] | None = None  # the resemblance of neighbours in a graph, by its scale
    _turn: Tensor | None = None  # a rotation of the vectors, onto those of an earlier model
    _trained_on: dict[str, Any] | None = None  # the graph of the training, where that is another than graph_

    @property
    def hash_(self) -> str:
        """The hash of all that the vectors depend on besides the graph; files of vectors in parquet hold it."""
        return self._recipe().hash

    def transform(
        self,
        graph: Graph,
        *,
        smooth: int | None = None,
        own: int | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> Embeddings:
        """Compute the vectors ``[N, d]`` of a graph's nodes, in the graph's order, with its ids.

        Args:
            graph: any graph with the features that the model was fitted to.
            smooth: number of hops to smooth the vectors over; None takes the model's setting, 0 switches it off.
            own: number of singular vectors of the node's own features to set beside them, as the nodes that training
                saw have them; None takes the model's setting, 0 leaves them out.
            rows: compute only these nodes, in ascending order. Of a graph folder, only the rows needed are read,
                unless vectors are smoothed.
        """
        self._check_fitted()
        check_graph(graph)
        self._check_features(graph)
        recipe, numbers = self._recipe(smooth, own), math.inf if self.one_of_many else None
        engine = embedder(recipe, graph, self.device, rows=rows, numbers=numbers)
        some = slice(None) if rows is None else rows
        vectors = engine.all() if rows is None else engine.of(rows)
        names = None if graph.node_names is None else graph.node_names[some]
        return Embeddings(vectors, graph.ids[some], names, recipe.hash)

    def _recipe(self, smooth: int | None = None, own: int | None = None) -> Recipe:
        """What makes vectors, smoothed and with an own part as asked for; None: as the model's settings say."""
        hops = self.preset_.smooth if smooth is None else whole("smooth", smooth, 0)
        turn = self._turn
        if turn is not None and own is not None and own != self.preset_.own:
            told = f"own {own}: the rotation of this run is for vectors with own {self.preset_.own}"
            warn(f"{told}: these are not rotated, and not comparable with those of the run before.")
            turn = None
        return Recipe(self.model_.encoder, self.scaler_, hops, self._own_part(own, hops), turn)

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

    def _own_part(self, own: int | None, hops: int) -> Own | None:
        """The node's own part, beside vectors smoothed over so many hops; a run holds that of its settings."""
        count = self.preset_.own if own is None else whole("own", own, 0)
        if count and (count, hops) not in self._own:
            seen = self.graph_.seen()
            nodes = spread(seen.num_nodes, FITTED)
            numbers = math.inf if self.one_of_many else None
            encoder_only = Recipe(self.model_.encoder, self.scaler_, hops)
            vectors = embedder(encoder_only, seen, self.device, rows=nodes, numbers=numbers).of(nodes)
            alike, table = self._resemblance(self.graph_, self.scaler_), seen.table.scaled(self.scaler_)
            length = LONG if not seen.kind and unlike(alike, seen.edges) else LENGTH
            self._own[count, hops] = Own.fit(count, length, vectors, table, nodes, self.seed_)
        return self._own[count, hops] if count else None

    @property
    def health_(self) -> dict[str, Any]:
        """The report on the training, computed at first use, since it needs the vectors and their spectrum."""
        if self._health is None:
            if self._course is None:
                raise not_fitted("No training has finished yet: call fit(graph).")
            seen = self.graph_.seen()
            self._health = self._report(seen, self.transform(seen, rows=spread(seen.num_nodes)).vectors)
        return self._health

    def _report(self, seen: Graph, vectors: NDArray[np.float32]) -> dict[str, Any]:
        """The report on the training, from the graph that it saw and vectors ``[n, d]`` of that."""
        learnt = vectors[:, : self.model_.encoder.out_dim]  # without the node's own part
        alike: dict[str, Any] = {"own": self.preset_.own} if self.preset_.own else {}
        if not seen.kind and not made(seen.feature_names):  # positions are made of the edges, so they are always alike
            alike["resemblance"] = self._resemblance(self.graph_, self.scaler_)
        return health({**(self._course or {}), **alike}, learnt, seen)

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
        smooth: int | None = None,
        own: int | None = None,
        half: bool = False,
        **options: Any,
    ) -> None:
        """Write the vectors of a graph folder without holding all of them in memory.

        Args:
            graph: a graph that `Graph.open` opened.
            out: a .parquet or .npy, or a folder of parts. Parts that are there already are not made again.
            smooth: as in `transform`.
            own: as in `transform`.
            half: write half precision.
            options: ``progress``, which is told the nodes done; ``check=False`` to check only the footers of parts that
                are there, not all bytes.
        """
        self._check_fitted()
        self._check_features(graph)
        if not graph.table.mapped:
            raise InputError("graph", "a graph opened from a graph folder", "one in memory", "Use transform.")
        write_embedding(self._recipe(smooth, own), graph, Path(out), device=self.device, half=half, **options)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise not_fitted("This DGI is not fitted yet: call fit(graph), or DGI.load(folder).")
