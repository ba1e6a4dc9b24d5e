"""`DGI`, the estimator: a thin door over a `FittedModel`, which other files make and use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.arrays.scaling import Scale, Scaler
from infomax.embeddings import Embeddings
from infomax.errors import InputError
from infomax.estimator import run_folder, settings
from infomax.estimator.explaining import Explanation, explain_node
from infomax.estimator.fitted_model import FittedModel
from infomax.estimator.fitting import FitRequest, fit_model
from infomax.estimator.later_graphs import Update, later_model
from infomax.estimator.new_nodes import Neighbours, vectors_of_new_nodes
from infomax.estimator.questions import answer_at_once
from infomax.estimator.settings import fill_preset
from infomax.graphs.graph import Graph
from infomax.io.questions import Answers
from infomax.parts.methods import Model, Part
from infomax.training.loop import Training
from infomax.training.presets import Preset


@dataclass(eq=False, repr=False)
class DGI:
    """Deep Graph Infomax: learns one vector per node, without labels.

    >>> model = DGI(dim=64).fit(graph)
    >>> embeddings = model.transform(graph)
    >>> embeddings.vectors  # [N, 64]
    >>> model.save("run")

    Args:
        dim: width of the encoder's vectors. None takes the preset's.
        preset: ``"auto"`` (many graphs if there are several; the whole graph if it fits into memory
            and is not too much for a CPU; else batches), ``"whole-graph"``, ``"batches"``,
            ``"mean-pool"``, ``"many-graphs"``, for several types of nodes ``"types"`` and
            ``"type-batches"``, or your own `Preset`. Every argument below that is None is taken
            from it.
        views: the regime, such as `WholeGraph`; this and the next five are parts, see `Preset`.
        encoder: makes one vector per node.
        corruption: makes the negative of a view.
        readout: sums the vectors of a view up.
        discriminator: scores vectors against the summary.
        objective: makes the loss of the scores.
        method: another method than Deep Graph Infomax, a subclass of
            `infomax.parts.methods.Method`; see `Preset`.
        scale: how features are scaled: ``"rows"`` (each sums to 1), ``"columns"`` (mean 0,
            deviation 1; sparse ones are only divided), ``"none"``, or ``"auto"``: rows if nothing
            is negative and at most half of the entries are not zero, else columns; positions and
            encoded columns are left as they are.
        schedule: how the learning rate changes from step to step, a
            `infomax.training.schedule.Schedule`: `WarmUpCosine`, or `ConstantRate`, which
            ``patience`` and ``vectors="paper"`` mean.
        lr: Adam's highest learning rate. None: by the width, 0.002 at 512 and 0.004 at 64; 0.001 at
            a constant rate.
        epochs: number of epochs; the last weights are kept. With ``patience`` as well, the most
            epochs. In batches an epoch is one step. 0 is Random-Init: an encoder with its initial
            weights.
        patience: train as in the paper: at a constant rate, until this many epochs have had no
            lower training loss; keep the weights with the lowest loss.
        vectors: what vectors are made of. ``"recipe"``: the smoothed encoder, the node's own
            features, the same pooled over two hops, and positions from the edges, side by side;
            ``"paper"``: the encoder alone. Or some of the parts, as
            ``"encoder,own,pooled,positions"``.
        half_life: where rows have times, one pooled part for each of these half-lives, as
            ``"60d,365d,forever"``, in which newer rows weigh more. None: one, of plain means.
        seed: seed of the initial weights and of all other random draws.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``...; ``"auto"`` takes a GPU where there is one.

    Attributes:
        fitted_: what the fit has left, a `FittedModel`; the properties below read it.
    """

    dim: int | None = None
    _: KW_ONLY
    preset: str | Preset = "auto"
    views: Part | None = None
    encoder: Part | None = None
    corruption: Part | None = None
    readout: Part | None = None
    discriminator: Part | None = None
    objective: Part | None = None
    method: Part | None = None
    scale: Scale | None = None
    schedule: Part | None = None
    lr: float | None = None
    epochs: int | None = None
    patience: int | None = None
    vectors: str | None = None
    half_life: str | None = None
    seed: int = 0
    device: str = "auto"
    fitted_: FittedModel = field(init=False)

    def fit(
        self,
        graph: Graph,
        y: None = None,
        *,
        run: str | Path | None = None,
        progress: bool | Callable[[Training], None] = False,
        positions_of: DGI | None = None,
    ) -> Self:
        """Train on a graph: on its split "seen" where it has one, else on all of it.

        Args:
            graph: the graph.
            y: not used; part of scikit-learn's signature.
            run: a run folder to write: checkpoints during training, then the finished model, as
                `save` writes it. If it holds a checkpoint, training resumes from there with the
                same result; a finished model is never overwritten.
            progress: True shows a bar on a terminal or in a notebook. Your own function is called
                with the `Training` whenever its history has been read back, and within long epochs.
                If it raises KeyboardInterrupt, a checkpoint is written to ``run``.
            positions_of: a model fitted to the same graph with another seed, or seen from another
                type of nodes: its positions are taken instead of being computed again, with the
                same result. If it was fitted to other nodes or edges, they are computed.

        In a process of a torch process group, all its processes call ``fit`` with the same
        arguments and share every step of a training in batches; the first of them writes the run
        folder.
        """
        request = FitRequest(
            graph,
            self.get_params(),
            run_folder=None if run is None else Path(run),
            positions_of=None if positions_of is None else positions_of._fitted_model(),
        )
        self.fitted_ = fit_model(request, progress)  # an earlier fit remains until this succeeds
        return self

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
            vectors: some of the parts that the model's vectors have, as ``"own,positions"``;
                ``"paper"`` for the encoder's vectors as they are. None: all parts.
            rows: compute only these nodes, in ascending order.
        """
        return self._fitted_model().transform(graph, self.device, vectors=vectors, rows=rows)

    def fit_transform(self, graph: Graph, y: None = None) -> Embeddings:
        """Fit to a graph and return its vectors ``[N, d]``.

        Args:
            graph: the graph.
            y: not used; part of scikit-learn's signature.
        """
        return self.fit(graph).transform(graph)

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
            out: a .parquet or .npy, or a folder of parts. Parts that are there already are not made
                again.
            vectors: as in `transform`.
            half: write half precision.
            options: ``progress``, which is told the nodes done; ``check=False`` to check only the
                footers of parts that are there, not all bytes.
        """
        self._fitted_model().write_vectors(
            graph, Path(out), self.device, vectors=vectors, half=half, **options
        )

    def positions(self, node_type: str = "") -> Embeddings:
        """The positions ``[n, K]`` of nodes, centred, in the space that all types share.

        Args:
            node_type: the type of the nodes, where the graph has several.
        """
        return self._fitted_model().positions_of_type(node_type)

    def singular_vectors(self, node_type: str = "") -> Embeddings:
        """The singular vectors ``[n, K]`` that positions are made of, the leading first.

        A user likes items with a large inner product, see recipes/recommend.py.

        Args:
            node_type: the type of the nodes, where the graph has several.
        """
        return self._fitted_model().singular_vectors_of_type(node_type)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a run folder, which has all that embedding and evaluation need.

        Args:
            folder: the run folder.
            overwrite: replace the model that is in the folder; else a folder with a model is
                refused.
        """
        run_folder.save(self._fitted_model(), Path(folder), self.device, overwrite=overwrite)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str = "auto",
        moved_to: str | Path | None = None,
        **custom_parts: Part,
    ) -> Self:
        """Read a run folder.

        Args:
            folder: the run folder; of several types of nodes, that of one type.
            device: the device on which the model computes vectors, as in `DGI`.
            moved_to: the present path of the graph folder of the training, if that was moved.
            custom_parts: your own parts by their roles, as ``encoder=...``: a run folder stores
                only their names.
        """
        graph_folder = None if moved_to is None else Path(moved_to)
        fitted = run_folder.load(Path(folder), graph_folder, custom_parts)
        model = cls(preset=fitted.preset, seed=fitted.seed, device=device)
        model.fitted_ = fitted
        return model

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
        """Take the model to a later graph, whose nodes are compared by their ids with earlier ones.

        Vectors that no change reaches are those of ``vectors``, byte for byte; the others are
        computed.

        Args:
            graph: the later graph, with the same features.
            vectors: those of the graph before; None: all are computed. Do not change them
                afterwards.
            train: go on training from these weights; then all vectors are computed.
            align: turn the vectors after that onto the ones before by the best rotation, so that
                they are comparable; the new model keeps the rotation.
            run: a run folder to write; with ``train`` it holds checkpoints, as in `fit`.
            progress: as in `fit`.

        Returns:
            the new ``model``, its ``embeddings``, the ``changes`` and the number of vectors
            ``computed``.
        """
        run_path = None if run is None else Path(run)
        later = later_model(
            self._fitted_model(),
            graph,
            vectors,
            self.device,
            train=train,
            align=align,
            run=run_path,
            progress=progress,
        )
        if train:
            model = type(self)(preset=later.model.preset, seed=later.model.seed, device=self.device)
        else:
            model = type(self)(**self.get_params())
        model.fitted_ = later.model
        return Update(model, later.vectors, later.changes, later.computed)

    def vector(self, features: Any = None, neighbours: Neighbours = ()) -> NDArray[np.float32]:
        """Compute the vector ``[d]`` of a new node, as if it were attached to the fitted graph.

        It takes milliseconds after the first call: only what is around the neighbours is read.

        Args:
            features: ``[F]`` numbers in the order of ``feature_names_``, or a mapping of their
                names to numbers; where columns of a table became features, also a mapping of
                columns to cells, or a row of a pandas frame. None where the model was fitted
                without features.
            neighbours: the ids, or names, of known nodes that edges join it to, with an edge to it
                in a directed graph; where edges have weights, a mapping of ids to weights. In a
                graph of several types, by type, as in ``{"author": ["ann", "bob"]}``, or by the
                name of a relation where several join the same two types.
        """
        rows_of_features = None if features is None else [features]
        vectors: NDArray[np.float32] = self.vectors_of(rows_of_features, [neighbours])
        first: NDArray[np.float32] = vectors[0]
        return first

    def vectors_of(self, features: Any, neighbours: Sequence[Neighbours]) -> NDArray[np.float32]:
        """Compute the vectors ``[M, d]`` of M new nodes at once, each as `vector` does.

        New nodes that are joined to each other are attached by `infomax.read_graph`.

        Args:
            features: for each new node what `vector` takes, as a list or as an array ``[M, F]``.
                None where the model was fitted without features.
            neighbours: for each new node what `vector` takes.
        """
        return vectors_of_new_nodes(self._fitted_model(), features, neighbours, self.device)

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

        A vector has the row's own columns, and for each half-life the means over its events up to
        the time; see `infomax.training.history`. The encoder and positions belong to the day of the
        training and are left out.

        Args:
            questions: a frame, or the path of a table, with a column of ids and one of times.
            graph: the graph to look into, read like the one of the training; None: that one.
            half_life: half-lives of the weights of events. None: those of the training, else
                ``"60d,365d,forever"``.
            id: the column of ids. None: called ``id``, or after the type, else the first.
            time: the column of times. None: called time, date, timestamp, when or day.
        """
        return answer_at_once(
            self._fitted_model(),
            questions,
            graph,
            half_life=half_life,
            id_column=id,
            time_column=time,
        )

    def explain(
        self,
        node: Hashable,
        *,
        column: str | None = None,
        number: int | None = None,
        device: str | None = None,
    ) -> Explanation:
        """Show from which cells, edges and parts the vector of a node is made.

        >>> model.explain("film 7").to_json()["parts"]

        Args:
            node: the id or the name of a node of the graph.
            column: the one column of its table to follow, with all of its numbers in the vector.
            number: the one number of the vector to follow, by its position from 0 on.
            device: see `DGI`. None: that of the model.
        """
        device_name = self.device if device is None else device
        return explain_node(self._fitted_model(), node, device_name, column=column, number=number)

    # What a fit has left

    def _fitted_model(self) -> FittedModel:
        """The fitted model; raise scikit-learn's NotFittedError if there is none."""
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            message = "This DGI is not fitted yet: call fit(graph), or DGI.load(folder)."
            raise NotFittedError(message)
        return self.fitted_

    @property
    def model_(self) -> Model:
        """The trained `Model`: encoder, readout, discriminator."""
        return self._fitted_model().model

    @property
    def preset_(self) -> Preset:
        """The settings of the fit."""
        return self._fitted_model().preset

    @property
    def seed_(self) -> int:
        """The seed of the fit."""
        return self._fitted_model().seed

    @property
    def scaler_(self) -> Scaler:
        """The fitted `Scaler`."""
        return self._fitted_model().scaler

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """The names of the features, in order."""
        return self._fitted_model().feature_names

    @property
    def graph_(self) -> Graph:
        """The graph that the model was fitted to, or that an update has taken it to."""
        return self._fitted_model().graph

    @property
    def hash_(self) -> str:
        """The hash of all that vectors depend on besides the graph, as in parquet files."""
        return self._fitted_model().recipe.hash

    @property
    def health_(self) -> dict[str, Any]:
        """The report on the training, computed at first use, since it needs the vectors."""
        return self._fitted_model().record.report

    # Which preset a graph is trained with: the command line says so before it trains

    def settings(self, preset: str | Preset | None = None) -> Preset:
        """A preset with the arguments of this estimator; by default the preset that they name."""
        return fill_preset(self.get_params(), preset)

    def choose_preset(
        self, graph: Graph, device: torch.device, run: Path | None = None
    ) -> tuple[str | Preset, str]:
        """The preset that a graph is trained with, and why."""
        return settings.choose_preset(self.get_params(), graph, device, run)

    def choose(self, graph: Graph, run: Path | None = None) -> tuple[Preset, list[str]]:
        """The settings that a graph is trained with, and what "auto" has chosen, in words."""
        return settings.preset_for(self.get_params(), graph, run)

    # What scikit-learn asks for

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; ``deep`` changes nothing, as there are no nested ones."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **parameters: Any) -> Self:
        """Set some of the parameters."""
        parameter_names = signature(type(self)).parameters
        for name, value in parameters.items():
            if name not in parameter_names:
                location = f"parameters of {type(self).__name__}"
                raise InputError(location, f"one of {', '.join(parameter_names)}", name)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {
            name: parameter.default for name, parameter in signature(type(self)).parameters.items()
        }
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()
