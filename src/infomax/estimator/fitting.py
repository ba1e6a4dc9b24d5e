"""Train a model, with the run folder that it is written to, and return what the training leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from infomax.arrays.scaling import Scaler
from infomax.embeddings import Embeddings
from infomax.errors import InputError, check_whole_number, format_count
from infomax.estimator import run_folder
from infomax.estimator.assembly import assemble
from infomax.estimator.fitted_model import FittedModel
from infomax.estimator.same_features import check_graph
from infomax.estimator.settings import Parameters, preset_for
from infomax.estimator.training_record import TrainingRecord
from infomax.estimator.vector_parts import VectorParts, fit_vector_parts
from infomax.graphs.graph import Graph
from infomax.kernels.device import choose_device
from infomax.kernels.initialisation import seeded
from infomax.kernels.ranks import Ranks
from infomax.parts.methods import Model
from infomax.progress import training_callback
from infomax.training import runs
from infomax.training.loop import Training
from infomax.training.presets import Preset
from infomax.training.recipe import Recipe
from infomax.training.resuming import Pause, fingerprint_of, pausing, resume
from infomax.training.spectral_positions import SpectralPositions


@dataclass(frozen=True, eq=False)
class WarmStart:
    """A model whose training goes on."""

    fitted: FittedModel
    align_to: Embeddings | None
    """Vectors onto which the new ones are rotated, if any."""


@dataclass(frozen=True, eq=False)
class FitRequest:
    """What to train, and on which graph."""

    graph: Graph
    parameters: Parameters
    run_folder: Path | None = None
    warm_start: WarmStart | None = None
    positions_of: FittedModel | None = None
    """A model, of another seed or type of nodes, that may have the positions of this graph."""
    is_one_of_many: bool = False
    """Whether so many models are trained that loading compiled kernels pays."""

    @property
    def seed(self) -> int:
        """The seed of the initial weights and of all other random draws."""
        seed: int = self.parameters["seed"]
        return seed

    @property
    def device(self) -> str:
        """Where to train, by name."""
        device: str = self.parameters["device"]
        return device

    @property
    def shared_positions(self) -> SpectralPositions | None:
        """The positions of this graph's nodes, if the other model has them."""
        return None if self.positions_of is None else self.positions_of.positions_for(self.graph)

    @property
    def position_count(self) -> int | None:
        """How many columns positions must have, where the training of another model goes on."""
        if self.warm_start is None or self.warm_start.fitted.positions is None:
            return None
        return self.warm_start.fitted.positions.width


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """What the loop leaves: a model, before anything is fitted to its vectors."""

    model: Model
    course: Mapping[str, Any]
    preset: Preset
    scaler: Scaler
    seed: int


def fit_model(request: FitRequest, progress: bool | Pause = False) -> FittedModel:
    """Train as `DGI.fit` does, from initial weights or from those of another model."""
    graph = request.graph
    check_graph(graph)
    if len(graph.types) > 1 and graph.node_type_is_first:
        remedy = f"Choose the type to train: graph.target({graph.node_type!r})."
        raise InputError("graph", "nodes of one type", f"types {', '.join(graph.types)}", remedy)
    check_whole_number("seed", request.seed, 0)

    # Only the first rank shows a bar and locks the run folder.
    ranks = Ranks.current()
    if not callable(progress):
        progress = progress and ranks.rank == 0
    device = choose_device(request.device)
    with ExitStack() as contexts:
        callback = contexts.enter_context(training_callback(progress))
        contexts.enter_context(seeded(request.seed, device))
        with ranks.together():
            if request.run_folder is not None and ranks.rank == 0:
                contexts.enter_context(runs.locked(request.run_folder))
        return _fit_in_locked_folder(request, callback, ranks)


def _fit_in_locked_folder(request: FitRequest, progress: Pause, ranks: Ranks) -> FittedModel:
    """Train, or resume the training that the run folder holds, and write the finished model."""
    graph = request.graph
    folder = request.run_folder

    # Each rank prepares its own training, and all must have prepared the same.
    fingerprint: dict[str, str] = {}
    with ranks.together() as same_on_all_ranks:
        training, preset, scaler = prepare(request, ranks)
        settings = preset.describe()
        if folder is not None or ranks.count > 1:
            fingerprint = _fingerprint(request, settings, training.device)
        is_resumed = folder is not None and resume(training, folder, fingerprint)
        epochs_done = format_count(len(training.history), "epoch")
        steps_done = format_count(training.position, "step")
        same_on_all_ranks |= fingerprint | {
            "run folder": "none" if folder is None else "given",
            "checkpoint": f"of {epochs_done} and {steps_done}",
        }

    # Only the first rank writes.
    if ranks.rank > 0:
        folder = None
    config: dict[str, Any] = {}
    with ranks.together():
        if folder is not None:
            if not is_resumed:
                runs.clear(folder, settings)
            config = runs.begin(folder, graph, settings, request.seed, request.device)

    # Train, then fit what vectors are made of.
    training.run(pausing(progress, folder, fingerprint, preset.name))
    trained = trained_model(training, preset, scaler, request.seed)
    del training  # its views hold the features; what follows computes vectors

    # The model file is written last: it marks the run as finished.
    with ranks.together():
        fitted = fit_vectors(request, trained)
        if folder is not None:
            stored = run_folder.write_stored_vectors(fitted, folder, request.device)
            run_folder.write_model(fitted, folder, config, stored)
    return fitted


def prepare(request: FitRequest, ranks: Ranks) -> tuple[Training, Preset, Scaler]:
    """Choose the preset and assemble the training; refuse settings that do not fit the graph."""
    graph = request.graph
    folder = request.run_folder
    if folder is not None and not (folder / runs.CHECKPOINT).exists():
        runs.refuse_model(folder)
    preset, _ = preset_for(request.parameters, graph, folder)
    earlier = None if request.warm_start is None else request.warm_start.fitted
    training, scaler = assemble(
        graph,
        preset,
        request.seed,
        choose_device(request.device),
        ranks,
        # Of many models, loading compiled kernels pays however small the graph.
        work=math.inf if request.is_one_of_many else None,
        scaler=None if earlier is None else earlier.scaler,
    )
    if earlier is not None:
        training.model.load_state_dict(earlier.model.state_dict())
    return training, preset, scaler


def _fingerprint(
    request: FitRequest, settings: dict[str, Any], device: torch.device
) -> dict[str, str]:
    """What a checkpoint, and all ranks, must have in common with this training."""
    fingerprint = fingerprint_of(request.graph, settings, request.seed, device.type)
    if request.warm_start is not None:
        fingerprint["weights to start from"] = request.warm_start.fitted.recipe.hash[:12]
    return fingerprint


def trained_model(training: Training, preset: Preset, scaler: Scaler, seed: int) -> TrainedModel:
    """What a finished training leaves, without its views, which hold the features."""
    return TrainedModel(training.model.eval(), training.training_report(), preset, scaler, seed)


def fit_vectors(request: FitRequest, trained: TrainedModel) -> FittedModel:
    """Fit what vectors are made of to the nodes that training saw."""
    encoder_alone = Recipe(trained.model.encoder, trained.scaler)
    parts = fit_vector_parts(
        encoder_alone,
        trained.preset,
        request.graph,
        request.device,
        shared_positions=request.shared_positions,
        position_count=request.position_count,
    )
    fitted = FittedModel(
        trained.model,
        trained.preset,
        trained.seed,
        trained.scaler,
        request.graph.feature_names,
        request.graph,
        parts.recipe,
        parts.positions,
        _record(request, trained, parts),
    )
    if request.warm_start is None:
        return fitted
    return _with_vectors(fitted, request.warm_start.align_to, request.device)


def _record(request: FitRequest, trained: TrainedModel, parts: VectorParts) -> TrainingRecord:
    return TrainingRecord(
        trained.course,
        request.graph,
        parts.recipe,
        request.device,
        trained.preset,
        trained.seed,
        parts.resemblance,
        None if parts.positions is None else parts.positions.search,
    )


def _with_vectors(fitted: FittedModel, align_to: Embeddings | None, device: str) -> FittedModel:
    """The same model with its vectors, as further training leaves it.

    They are rotated onto earlier vectors, if there are any.
    """
    vectors = fitted.transform(fitted.graph, device)
    if align_to is None:
        return replace(fitted, vectors=vectors)
    rotation = vectors.rotation(align_to)
    recipe = replace(fitted.recipe, rotation=torch.from_numpy(rotation))
    rotated = replace(vectors, vectors=vectors.vectors @ rotation, model=recipe.hash)
    return replace(fitted, recipe=recipe, vectors=rotated)
