"""DGI: the Python interface, an estimator in the style of scikit-learn."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from infomax.arrays.scaling import Scale, Scaler
from infomax.embeddings import EmbeddingParts, Embeddings
from infomax.errors import InputError, in_words, number_of, whole
from infomax.estimator.assembly import assemble, check_graph
from infomax.estimator.assembly import build as build
from infomax.estimator.later import Later, Start
from infomax.estimator.vectors import Parameters
from infomax.graphs.graph import Graph
from infomax.io.json import RESTORE
from infomax.kernels import room
from infomax.kernels.device import choose_device
from infomax.kernels.initialisation import seeded
from infomax.kernels.ranks import Ranks
from infomax.memory import size
from infomax.parts.corruptions import shuffle_features
from infomax.parts.methods import Part
from infomax.progress import following
from infomax.training import model_file, runs
from infomax.training.decay import check_half_life
from infomax.training.loop import Training
from infomax.training.presets import PRESETS, Preset, restore
from infomax.training.recipe import parts_for
from infomax.training.resuming import Pause, fingerprint_of, pausing, preset_begun, resume

SLOW = 1.5e10
"""Nodes times width times epochs above which a CPU trains in batches: 59,000 nodes at a width of 512.

On debian, 34,003 nodes, both take about as long, and their vectors score alike: 73.6 and 73.5 %. On 100,000
nodes batches take 5 CPU minutes.
"""


@dataclass(eq=False, repr=False)
class DGI(Later, Parameters):
    """Deep Graph Infomax: learns one vector per node, without labels.

    >>> model = DGI(dim=64).fit(graph)
    >>> embeddings = model.transform(graph)
    >>> embeddings.vectors  # [N, 64]
    >>> model.save("run")

    Args:
        dim: width of the vectors; the ``"patches"`` preset makes them twice as wide. None takes the preset's.
        preset: ``"auto"`` (many graphs if there are several; the whole graph if it fits into memory and is not too much
            for a CPU; else batches), ``"whole-graph"``, ``"batches"``, ``"mean-pool"``, ``"patches"``,
            ``"many-graphs"``, for several types of nodes ``"types"`` and ``"type-batches"``, or your own `Preset`.
            Every argument below that is None is taken from it.
        views: the regime, such as `WholeGraph`; this and the next five are parts, see `Preset`.
        encoder: makes one vector per node.
        corruption: makes the negative of a view.
        readout: sums the vectors of a view up.
        discriminator: scores vectors against the summary.
        objective: makes the loss of the scores.
        method: another method than Deep Graph Infomax, a subclass of `infomax.parts.methods.Method`; see `Preset`.
        scale: how features are scaled: ``"rows"`` (each sums to 1), ``"columns"`` (mean 0, deviation 1; sparse ones are
            only divided), ``"none"``, or ``"auto"``: rows if nothing is negative and at most half of the entries are
            not zero, else columns; positions and encoded columns are left as they are.
        lr: Adam's learning rate.
        epochs: number of epochs; the last weights are kept. With ``patience`` as well, the most epochs. In batches an
            epoch is one step. 0 is Random-Init: an encoder with its initial weights.
        patience: stop after this many epochs without a lower training loss; keep the weights with the lowest loss.
        vectors: what vectors are made of. ``"recipe"``: the smoothed encoder, the node's own features, the same pooled
            over two hops, and positions from the edges, side by side; ``"paper"``: the encoder alone. Or some of the
            parts, as ``"encoder,own,pooled,positions"``.
        half_life: where rows have times, one pooled part for each of these half-lives, as ``"60d,365d,forever"``, in
            which newer rows weigh more. None: one, of plain means.
        seed: seed of the initial weights and of all other random draws.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``...; ``"auto"`` takes a GPU where there is one.

    Attributes:
        model_: the trained `Model` (encoder, readout, discriminator).
        preset_: the settings of the fit.
        seed_: its seed.
        scaler_: the fitted `Scaler`.
        feature_names_: the names of the features, in order.
        graph_: the graph that it was fitted to.
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
    lr: float | None = None
    epochs: int | None = None
    patience: int | None = None
    vectors: str | None = None
    half_life: str | None = None
    seed: int = 0
    device: str = "auto"

    def fit(
        self,
        graph: Graph,
        y: None = None,
        *,
        run: str | Path | None = None,
        progress: bool | Callable[[Training], None] = False,
    ) -> Self:
        """Train on a graph: on its split "seen" where it has one, else on all of it.

        Args:
            graph: the graph.
            y: not used; part of scikit-learn's signature.
            run: a run folder to write: checkpoints during training, then the finished model, as `save` writes it. If
                it holds a checkpoint, training resumes from there with the same result; a finished model is never
                overwritten.
            progress: True shows a bar on a terminal or in a notebook. Your own function is called with the `Training`
                whenever its history has been read back, and within long epochs. If it raises KeyboardInterrupt, a
                checkpoint is written to ``run``.

        In a process of a torch process group, all its processes call ``fit`` with the same arguments and share every
        step of a training in batches or patches; the first of them writes the run folder.
        """
        return self._train(graph, run, progress)

    def _train(
        self,
        graph: Graph,
        run: str | Path | None,
        progress: bool | Pause,
        start: Start | None = None,
    ) -> Self:
        """As `fit`, from initial weights or from those of another model."""
        check_graph(graph)
        if len(graph.types) > 1 and graph.node_type_is_first:
            remedy = f"Choose the type to train: graph.target({graph.node_type!r})."
            raise InputError(
                "graph", "nodes of one type", f"types {', '.join(graph.types)}", remedy
            )
        ranks = Ranks.current()
        folder = None if run is None else Path(run)
        shown = progress if callable(progress) else progress and ranks.rank == 0
        whole("seed", self.seed, 0)
        with (
            following(shown) as follow,
            seeded(self.seed, choose_device(self.device)),
            ExitStack() as held,
        ):
            with ranks.together():
                if folder is not None and ranks.rank == 0:
                    held.enter_context(runs.locked(folder))
            return self._fit(graph, folder, follow, ranks, start)

    def _fit(
        self, graph: Graph, folder: Path | None, progress: Pause, ranks: Ranks, start: Start | None
    ) -> Self:
        fingerprint: dict[str, str] = {}
        with ranks.together() as same:
            training, preset, scaler = self.prepare(graph, folder, ranks, start)
            settings = preset.describe()
            resumed = False
            if folder is not None or ranks.count > 1:
                fingerprint = fingerprint_of(graph, settings, self.seed, training.device.type)
                fingerprint |= {"weights to start from": start.model.hash_[:12]} if start else {}
            if folder is not None:
                resumed = resume(training, folder, fingerprint)
            done = f"of {number_of(len(training.history), 'epoch')} and {number_of(training.position, 'step')}"
            same |= fingerprint | {
                "run folder": "none" if folder is None else "given",
                "checkpoint": done,
            }
        folder = folder if ranks.rank == 0 else None  # the first rank writes
        config: dict[str, Any] = {}
        with ranks.together():
            if folder is not None:
                if not resumed:
                    runs.clear(folder, settings)
                config = runs.begin(folder, graph, settings, self.seed, self.device)
        training.run(pausing(progress, folder, fingerprint, preset.name))
        # What an earlier fit has left remains valid until this one has succeeded.
        self.take(training, graph, preset, scaler)
        del training  # its views hold the features; what follows computes vectors
        with ranks.together():
            self._positions = start.model._places.width if start and start.model._places else None
            self._recipe()
            self._beside = None
            if start is not None:
                self._keep_vectors(start.onto)
            if folder is not None:
                self._finish(folder, config, model_file.keep_vectors(folder, self._to_keep()))
        return self

    def take(self, training: Training, graph: Graph, preset: Preset, scaler: Scaler) -> None:
        """Take over what a finished training has made of a graph."""
        self.model_ = training.model.eval()
        self.preset_ = preset
        self.scaler_ = scaler
        self._course = training.course()
        self._health = None
        self.seed_ = self.seed
        self.graph_ = graph
        self.feature_names_ = graph.feature_names
        self._parts = None
        self._places = None
        self._alike = None
        self._kept = None
        self._trained_on = None

    def prepare(
        self, graph: Graph, folder: Path | None, ranks: Ranks, start: Start | None = None
    ) -> tuple[Training, Preset, Scaler]:
        """Choose the preset and assemble the training; raise InputError for settings that do not fit the graph."""
        if folder is not None and not (folder / runs.CHECKPOINT).exists():
            runs.refuse_model(folder)
        device = choose_device(self.device)
        preset = self.choose(graph, folder)[0]
        many = math.inf if self.one_of_many else None
        scaler = None if start is None else start.model.scaler_
        training, scaler = assemble(
            graph, preset, self.seed, device, ranks, numbers=many, scaler=scaler
        )
        if start is not None:
            training.model.load_state_dict(start.model.model_.state_dict())
        return training, preset, scaler

    def fit_transform(self, graph: Graph, y: None = None) -> Embeddings:
        """Fit to a graph and return its vectors ``[N, d]``.

        Args:
            graph: the graph.
            y: not used; part of scikit-learn's signature.
        """
        return self.fit(graph).transform(graph)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a run folder, which has all that embedding and evaluation need.

        Args:
            folder: the run folder.
            overwrite: replace the model that is in the folder; else a folder with a model is refused.
        """
        self._check_fitted()
        path = Path(folder)
        with runs.locked(path):
            if not overwrite:
                runs.refuse_model(path)
            self.health_  # noqa: B018  computed before the old model is removed, since it may fail
            settings = self.preset_.describe()
            vectors = self._to_keep()
            runs.clear(path, settings)
            with ThreadPoolExecutor(1) as pool:  # both files may be large
                kept = pool.submit(model_file.keep_vectors, path, vectors)
                config = runs.begin(
                    path, self.graph_, settings, self.seed_, self.device, self._trained_on
                )
            self._finish(path, config, kept.result())

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str = "auto",
        moved_to: str | Path | None = None,
        **own: Part,
    ) -> Self:
        """Read a run folder.

        Args:
            folder: the run folder; of several types of nodes, that of one type.
            device: where it computes vectors, as in `DGI`.
            moved_to: where the graph folder that it was trained on is now, if that has moved.
            own: your own parts by name, as ``encoder=...``: a run folder has only their names.
        """
        path = Path(folder)
        try:
            run = model_file.read(path)
            preset = restore(run.config["settings"], own)
            features = len(run.feature_names)
            model = cls(preset=preset, seed=run.config["seed"], device=device)
            model.model_ = build(preset, features, torch.Generator()).eval()
            model.seed_ = model.seed
            moved = None if moved_to is None else Path(moved_to)
            model.graph_ = runs.read_training_graph(path, moved)
            model._parts, model._places = model_file.take_recipe(
                run, model.model_.encoder, model.graph_
            )
            model.model_.load_state_dict(
                {name.removeprefix("model."): one for name, one in run.tensors.items()}
            )
        except (AttributeError, KeyError, TypeError, RuntimeError) as error:
            where, remedy = str(path / runs.CONFIG), RESTORE
            if own:
                where, remedy = (
                    f"DGI.load(run, {'=..., '.join(own)}=...)",
                    "Pass what it was trained with.",
                )
            raise InputError(
                where, "the settings of the model in the run", in_words(error), remedy
            ) from error
        model.preset_ = preset
        model.scaler_ = run.scaler
        model.feature_names_ = run.feature_names
        model._health = run.health
        model._trained_on = run.config.get("trained_on")
        return model

    def choose_preset(
        self, graph: Graph, device: torch.device, run: Path | None = None
    ) -> tuple[str | Preset, str]:
        """Choose the preset to train with, and say why; a resumed training keeps its preset."""
        if self.preset != "auto":
            return self.preset, "as asked for"
        if run is not None and (begun := preset_begun(run)):
            return begun, "as the training was begun"
        settings = self.settings("whole-graph")
        swappable = self.views is None and self.corruption in (None, shuffle_features)
        swappable &= not getattr(partial(settings.encoder).func, "whole", False)
        count = Ranks.current().count
        if graph.node_type:
            whole_graph = self.settings("types").fitted_to(graph)
            large = graph.table.mapped or whole_graph.bytes(graph, device) > room.available_bytes(
                device
            )
            return (
                "type-batches" if large or count > 1 else "types"
            ), f"there are {len(graph.types)} types of nodes"
        if count > 1 and swappable:
            return "batches", f"{count} processes share every step"
        groups = () if graph.groups is None else np.unique(graph.groups)
        if len(groups) > 1 and self.views is None and self.corruption is None:
            return "many-graphs", f"there are {len(groups):,} graphs"
        if graph.table.mapped and swappable:
            return "batches", "the graph is read from disk"
        if device.type == "cpu" and swappable and settings.work(graph.num_nodes) > SLOW:
            return (
                "batches",
                f"all of {graph.num_nodes:,} nodes in every step would take a CPU long",
            )
        needed = settings.bytes(graph, device)
        free = room.available_bytes(device)
        reason = f"the whole graph needs about {size(needed)}, and {size(free)} are free"
        smaller = (
            needed > free and swappable and self.settings("batches").bytes(graph, device) < needed
        )
        return ("batches" if smaller else "whole-graph"), reason

    def choose(self, graph: Graph, run: Path | None = None) -> tuple[Preset, list[str]]:
        """The settings to train a graph with, and what "auto" has chosen, in words."""
        name, reason = self.choose_preset(graph, choose_device(self.device), run)
        settings = self.settings(name)
        if settings.half_life:
            check_half_life(graph, settings.vectors)
        notes = [f"preset {name}: {reason}"] if self.preset == "auto" else []
        notes += parts_for(graph, settings.vectors, settings.half_life)[1]
        return settings.fitted_to(graph), notes

    def settings(self, preset: str | Preset | None = None) -> Preset:
        """Fill the estimator's arguments into a preset; by default its own preset, whole-graph for "auto"."""
        name = preset or ("whole-graph" if self.preset == "auto" else self.preset)
        preset = PRESETS.get(name) if isinstance(name, str) else name
        if not isinstance(preset, Preset):
            raise InputError(
                "preset", f"one of auto, {', '.join(PRESETS)}, or a Preset", str(self.preset)
            )
        whole("seed", self.seed, 0)
        given = {
            field.name: getattr(self, field.name, None) for field in dataclasses.fields(Preset)
        }
        changes = {name: value for name, value in given.items() if value is not None}
        if self.epochs is not None:
            changes["patience"] = self.patience  # epochs without patience: train all of them
        return dataclasses.replace(preset, **changes).checked()

    def _to_keep(self) -> Embeddings | EmbeddingParts | None:
        """The vectors that a run folder will hold, if any."""
        graph, vectors = self.graph_, self._kept
        if (
            vectors is None
            and not graph.table.mapped
            and "seen" not in graph.splits
            and graph.num_nodes <= runs.STORED
        ):
            vectors = self.transform(graph)
        return vectors

    def _finish(self, folder: Path, config: dict[str, Any], kept: dict[str, Any]) -> None:
        tensors = {f"model.{name}": tensor for name, tensor in self.model_.state_dict().items()}
        recipe, places = self._recipe(), self._places
        run = model_file.Run(
            folder, config, tensors, self.scaler_, self.feature_names_, self.health_
        )
        model_file.finish(run, kept, recipe, places)
