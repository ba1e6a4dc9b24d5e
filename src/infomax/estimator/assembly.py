"""Assemble a training from a preset: model, scaled features, views."""

from __future__ import annotations

import torch

from infomax import memory
from infomax.arrays.scaling import Scaler
from infomax.arrays.table import warn_if_zero
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.kernels import Backend, room
from infomax.kernels.initialisation import generators
from infomax.kernels.ranks import Ranks
from infomax.parts.corruptions import is_replayable, with_checks
from infomax.parts.fused import accelerate
from infomax.parts.methods import Method, Model
from infomax.training.loop import Training
from infomax.training.presets import Preset
from infomax.views import Views


def assemble(
    graph: Graph,
    preset: Preset,
    seed: int,
    device: torch.device,
    ranks: Ranks,
    *,
    numbers: float | None = None,
    scaler: Scaler | None = None,
) -> tuple[Training, Scaler]:
    """Make the model, the views and the training; raise InputError for settings that do not fit the graph.

    Args:
        graph: the graph.
        preset: the settings, filled in and fitted to the graph.
        seed: seed of the initial weights and of all other random draws.
        device: where to train.
        ranks: the processes that share the training.
        numbers: how many numbers the training computes, which decides about kernels; None: by the preset.
        scaler: the scaler of a training that goes on; None: one is fitted.
    """
    in_batches = preset.regime.takes_batches
    smaller = "--dim or --batch" if in_batches else "--dim"
    remedy = f"Lower {smaller}, or allow more memory."
    room.require(preset.bytes(graph, device), device, ranks.on_this_host, remedy)
    if "seen" in graph.splits and not graph.splits["seen"].any():
        remedy = "Mark the nodes that training may see."
        raise InputError("splits['seen']", "at least one node", "none", remedy)

    weights_generator, _ = generators(seed, device)
    model = build(preset, graph.num_features, weights_generator).to(device)
    if model.encoder.needs_whole_graph and in_batches:
        location = f"encoder {type(model.encoder).__name__}"
        expected, found = "views of the whole graph, which it needs", preset.regime.__name__
        raise InputError(location, expected, found, 'Pass preset="whole-graph".')
    # With the paper's parts, the step is computed by kernels; a law says that they agree.
    method = accelerate(preset.make_method(), model)
    same_shapes = is_replayable(preset.corruption, graph.table.sparse)
    replayable = same_shapes and method.repeats_the_same_work

    source = graph if preset.regime.reads_folders else graph.loaded()
    seen = source.seen()
    if scaler is None:
        scaler = source.scaler(preset.scale)
    if not graph.table.mapped and ranks.rank == 0:
        # All vectors are computed after the training: what lacks the memory is refused before it.
        room.require(memory.embedding_bytes(seen, model.encoder.out_dim, device), device)
    scaled = seen.scaled(scaler)
    warn_if_zero(scaled.table, scaler)

    work = preset.work(seen.num_nodes) if numbers is None else numbers
    work_per_step = preset.work_per_step(seen.num_nodes, seen.num_features)
    backend = Backend.of_training(device, work, work_per_step)
    views = preset.views(scaled, model.encoder.rule, with_checks(preset.corruption), backend)
    views.prepare(model.encoder.depth)
    if ranks.count > 1:
        views.divide(ranks)
        if not replayable:
            location = f"training in {ranks.count} processes"
            expected = "the paper's encoder, shuffle, readout, discriminator and objective"
            raise InputError(location, expected, "others", "Start it without torchrun.")
    return _training(model, method, views, preset, seed, backend, ranks, replayable), scaler


def another(training: Training, preset: Preset, model: Model, seed: int) -> Training:
    """A training that differs from another in its seed only, and shares its views; the model is that of the seed."""
    model = model.to(training.device)
    replayable = training.replay is not None
    return _training(
        model,
        accelerate(preset.make_method(), model),
        training.views,
        preset,
        seed,
        training.backend,
        training.ranks,
        replayable,
    )


def _training(
    model: Model,
    method: Method,
    views: Views,
    preset: Preset,
    seed: int,
    backend: Backend,
    ranks: Ranks,
    replayable: bool,
) -> Training:
    _, draws_generator = generators(seed, backend.device)
    return Training(
        model,
        views,
        method,
        schedule=preset.make_schedule(),
        epochs=preset.epochs,
        patience=preset.patience,
        generator=draws_generator,
        replayable=replayable,
        backend=backend,
        ranks=ranks,
    )


def build(preset: Preset, in_dim: int, generator: torch.Generator) -> Model:
    """Build the encoder and the other parts of the method, with initial weights from a generator."""
    encoder = preset.build_encoder(in_dim, generator)
    return preset.make_method().build(encoder, generator)
