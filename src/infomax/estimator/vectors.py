"""What a fitted model computes: the vectors of the nodes of a graph, and the report on its training."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from infomax.arrays.checks import check_feature_names
from infomax.arrays.resemblance import resemblance
from infomax.arrays.scaling import Scaler
from infomax.arrays.structural_features import structural_features_named
from infomax.embeddings import Embeddings, columns_in_words
from infomax.errors import InputError, warn
from infomax.estimator.assembly import check_graph
from infomax.graphs.graph import Graph
from infomax.io.column_names import listed
from infomax.kernels import Backend
from infomax.kernels.device import choose_device
from infomax.parts.methods import Model
from infomax.parts.vectors import PAPER, POOLED, check_vectors
from infomax.training.decay import Decayed, has_ages
from infomax.training.health import SAMPLE, health, spread
from infomax.training.own import COUNT, own_projection, with_features
from infomax.training.places import Places, fit_places
from infomax.training.presets import Preset
from infomax.training.recipe import (
    FITTED,
    LARGE,
    Recipe,
    balance,
    family,
    lengths,
    name_columns,
    parts_for,
)
from infomax.training.vectors import embed, embed_some, write_embedding


class Parameters:
    """A base class whose parameters are the arguments of ``__init__``, which stores them under their names.

    With it `sklearn.base.clone`, pipelines and searches take an estimator as one of scikit-learn's own.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name. ``deep`` is part of scikit-learn's signature: there are no nested ones."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **parameters: Any) -> Self:
        """Set some of the parameters."""
        known = signature(type(self)).parameters
        for name in parameters.keys() - known.keys():
            raise InputError(
                f"parameters of {type(self).__name__}", f"one of {', '.join(known)}", name
            )
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = {
            name: parameter.default for name, parameter in signature(type(self)).parameters.items()
        }
        given = (
            f"{name}={value!r}" for name, value in self.get_params().items() if value != usual[name]
        )
        return f"{type(self).__name__}({', '.join(given)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()


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
    _beside: Fitted | None = (
        None  # a model that may have these, trained just before on another type or seed
    )
    _positions: int | None = (
        None  # how many columns these must have, where the training of another model goes on
    )
    _alike: float | None = None  # the resemblance of neighbours in graph_
    _trained_on: dict[str, Any] | None = (
        None  # the graph of the training, where that is another than graph_
    )

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
        recipe = self._recipe(vectors)
        found = embed(recipe, graph, self.device, rows=rows, given=self._given(graph, recipe))
        some = slice(None) if rows is None else rows
        names = None if graph.node_names is None else graph.node_names[some]
        return Embeddings(found, graph.ids[some], names, recipe.hash, recipe.parts)

    def positions(self, node_type: str = "") -> Embeddings:
        """The positions ``[n, K]`` of the nodes of any type, centred, in the space that all types share.

        Args:
            kind: the type of the nodes, where the graph has several.
        """
        found = normalize(
            torch.from_numpy(np.array(self._placed(node_type).of_type(node_type)))
        ).numpy()
        return self._at_nodes(node_type, found - found.mean(axis=0))

    def singular_vectors(self, node_type: str = "") -> Embeddings:
        """The singular vectors ``[n, K]`` that positions are made of, the leading first, at the nodes of any type.

        A user likes items with a large inner product, see recipes/recommend.py.

        Args:
            kind: the type of the nodes, where the graph has several.
        """
        return self._at_nodes(node_type, self._placed(node_type).singular(node_type))

    def _placed(self, node_type: str) -> Places:
        """Where nodes stand; refused where vectors have no positions, or there is no such type."""
        self._check_fitted()
        self.graph_.target(node_type)
        if "positions" not in self._recipe().parts or self._places is None:
            raise InputError(
                "positions", "a model whose vectors have them", "one without", "Leave out vectors=."
            )
        return self._places

    def _at_nodes(self, node_type: str, vectors: NDArray[np.float32]) -> Embeddings:
        graph = self.graph_.target(node_type)
        return Embeddings(vectors, graph.ids[:], graph.node_names, self.hash_)

    def _recipe(self, vectors: str | None = None) -> Recipe:
        """What makes vectors: all parts of the model's, or some; they are fitted when they are first needed."""
        paper = Recipe(self.model_.encoder, self.scaler_)
        if vectors == PAPER:
            return paper
        if self._parts is None and self.preset_.vectors != PAPER:
            self._parts = self._fit_parts()
        found = self._parts or paper
        return found if vectors is None else found.only(check_vectors(vectors))

    def _fit_parts(self) -> Recipe:
        """Fit all parts to the nodes that training saw."""
        graph, encoder = self.graph_, self.model_.encoder
        wanted, seen = (
            parts_for(graph, self.preset_.vectors, self.preset_.half_life)[0],
            graph.seen(),
        )
        smooth = not graph.node_type and graph.num_nodes <= LARGE
        recipe = Recipe(encoder, self.scaler_, smooth=smooth, node_type=graph.node_type)
        if self.preset_.half_life and has_ages(graph, recipe):
            lives = [f"{POOLED}{life}" for life in self.preset_.half_life.split(",")]
            wanted = tuple(
                part for name in wanted for part in (lives if name == "pooled" else [name])
            )
        # A graph that large may be on disk, where each row, and each row of its neighbours, is a page to read.
        most = FITTED if graph.num_nodes <= LARGE else SAMPLE
        needed = {graph.node_type} if "own" in wanted else set[str]()
        needed |= set(recipe.ends) if "pooled" in map(family, wanted) else set()
        scaled, features = seen.scaled(self.scaler_), dict[str, tuple[str, ...]]()
        projections, device = {}, choose_device(self.device)
        for node_type in sorted(needed):
            one = scaled.target(node_type)
            features[node_type], rows = one.feature_names, spread(one.num_nodes, most)
            backend = Backend.of_embedding(device, len(rows) * COUNT)
            projections[node_type] = own_projection(one.table, rows, backend)
        if "positions" in wanted and self._places is None:
            self._places = self._places_beside() or fit_places(
                graph, Backend(device), self._positions
            )
        width = self._places.width if self._places else 0
        recipe = name_columns(replace(recipe, projections=projections), wanted, width, features)
        nodes = spread(seen.num_nodes, most)
        raw = embed_some(recipe, seen, self.device, nodes, self._given(seen, recipe))
        alike = self._resemblance(seen) if "own" in wanted else None
        known = with_features(scaled.table, nodes)
        centre, factor = balance(raw, recipe.parts, lengths(seen, alike), known)
        return replace(recipe, centre=centre, factor=factor)

    def _places_beside(self) -> Places | None:
        """The positions that the model beside it has, if that is of the same graph, seen from any of its types."""
        if (other := self._beside) is None or other._places is None:
            return None
        one, two = other.graph_, self.graph_
        return other._places if one.nodes is two.nodes and one.relations is two.relations else None

    def _given(self, graph: Graph, recipe: Recipe) -> dict[str, Any]:
        """Parts ``[N, K]`` of a graph's nodes that the embedder does not compute.

        Known nodes keep their positions, others stand near their neighbours.
        """
        given: dict[str, Any] = {"pooled": Decayed(graph, recipe)} if recipe.half_lives else {}
        if self._places is not None and "positions" in recipe.parts:
            given["positions"] = self._places.moved(self.graph_, graph).of_type(graph.node_type)
        return given

    def _check_features(self, graph: Graph) -> None:
        """Raise InputError for a graph whose nodes are of another type, or have other features than in training."""
        if graph.node_type != (node_type := self.graph_.node_type):
            expected, found = (
                f"nodes of type {one}" if one else "nodes of one type"
                for one in (node_type, graph.node_type)
            )
            remedy = (
                f"Turn it to that type: graph.target({node_type!r})."
                if node_type in graph.types
                else ""
            )
            raise InputError("graph", expected, found, remedy)
        remedy = (
            "Read its tables like that graph's: like=model.graph_ (read_graph, from_frames), "
            "or prepare --like RUN."
        )
        self._check_directions(graph, remedy)
        anew = list[str]()
        for node_type, trained in self.graph_.nodes.items():
            own = graph.target(node_type).own
            where = (
                "features"
                if node_type == graph.node_type
                else f"features of nodes of type {node_type}"
            )
            check_feature_names(where, own.feature_names, trained.feature_names, remedy)
            if own.encoding and trained.encoding:
                anew += own.encoding.differing(trained.encoding)
        if anew:
            told = f"features: the columns {listed(anew)} were encoded by this graph's values, not the training graph's"
            warn(f"{told}: its vectors are not comparable. {remedy}")

    def _check_directions(self, graph: Graph, remedy: str) -> None:
        """Raise InputError for a graph whose edges within a type run otherwise than in training."""
        trained = {one.ends: one.directed for one in self.graph_.relations if one.edges.nnz}
        told = {True: "edges that have directions", False: "edges that run both ways"}
        for one in graph.relations:
            if one.within and one.edges.nnz and trained.get(one.ends, one.directed) != one.directed:
                where = f"graph, relation {'.'.join(one.ends)}" if graph.node_type else "graph"
                raise InputError(
                    where, f"{told[not one.directed]}, as in training", told[one.directed], remedy
                )

    @property
    def health_(self) -> dict[str, Any]:
        """The report on the training, computed at first use, since it needs the vectors and their spectrum."""
        if self._health is None:
            self._check_fitted()
            self._health = self._report(self.graph_.seen())
        return self._health

    def _report(self, seen: Graph) -> dict[str, Any]:
        """The report on the training, from the graph that it saw; it is about what the encoder gives."""
        learnt = embed(self._recipe(PAPER), seen, self.device, rows=spread(seen.num_nodes))
        told: dict[str, Any] = {}
        recipe = self._recipe()
        if parts := recipe.parts:
            told["parts"] = {name: len(columns) for name, columns in parts.items()}
            told["columns"] = {name: columns_in_words(columns) for name, columns in parts.items()}
        if (
            "own" not in parts
            and seen.node_type not in recipe.ends
            and not structural_features_named(seen.feature_names)
        ):
            told["columns_lost"] = seen.num_features
        if not seen.node_type and not structural_features_named(
            seen.feature_names
        ):  # positions of neighbours are always alike
            told["resemblance"] = self._resemblance(seen)
        return health({**(self._course or {}), **told}, learnt, seen)

    def _resemblance(self, seen: Graph) -> float | None:
        """How alike neighbours are, computed once: the own part and the report ask for it; None of several types."""
        if self._alike is None and not self.graph_.node_type:
            self._alike = resemblance(seen.table, seen.edges, self.scaler_)
        return self._alike

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
            raise InputError(
                "graph", "a graph opened from a graph folder", "one in memory", "Use transform."
            )
        recipe = self._recipe(vectors)
        given = self._given(graph, recipe)
        write_embedding(
            recipe, graph, Path(out), device=self.device, given=given, half=half, **options
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                "This DGI is not fitted yet: call fit(graph), or DGI.load(folder)."
            )
