"""Assemble a training from a preset: model, scaled features, views, backend."""

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
    work: float | None = None,
    scaler: Scaler | None = None,
) -> tuple[Training, Scaler]:
    """Make the model, the views and the training; refuse settings that do not fit the graph.

    Args:
        graph: the graph.
        preset: the settings, filled in and fitted to the graph.
        seed: seed of the initial weights and of all other random draws.
        device: where to train.
        ranks: the processes that share the training.
        work: how many numbers the training computes, which decides on a GPU whether Triton is
            loaded; None: by the preset.
        scaler: the scaler of a training that goes on; None: one is fitted.
    """
    # What cannot be trained is refused before any work.
    in_batches = preset.regime.takes_batches
    options = "--dim or --batch" if in_batches else "--dim"
    remedy = f"Lower {options}, or allow more memory."
    room.require(preset.bytes(graph, device), device, ranks.on_this_host, remedy)
    if "seen" in graph.splits and not graph.splits["seen"].any():
        remedy = "Mark the nodes that training may see."
        raise InputError("splits['seen']", "at least one node", "none", remedy)

    # The model.
    weights_generator, _ = generators(seed, device)
    model = build(preset, graph.num_features, weights_generator).to(device)
    if model.encoder.needs_whole_graph and in_batches:
        location = f"encoder {type(model.encoder).__name__}"
        expected = "views of the whole graph, which it needs"
        remedy = 'Pass preset="whole-graph".'
        raise InputError(location, expected, preset.regime.__name__, remedy)

    # Its step: where all parts are the paper's, in closed form. A law holds that it agrees with the
    # parts as they are written.
    method = accelerate(preset.make_method(), model)
    has_same_shapes = is_replayable(preset.corruption, graph.table.sparse)
    replayable = has_same_shapes and method.repeats_the_same_work

    # The nodes that training may see, with scaled features.
    source = graph if preset.regime.reads_folders else graph.loaded()
    seen_graph = source.seen()
    if scaler is None:
        scaler = source.scaler(preset.scale)
    if not graph.table.mapped and ranks.rank == 0:
        # All vectors are computed after the training: what lacks the memory is refused before it.
        vector_bytes = memory.embedding_bytes(seen_graph, model.encoder.out_dim, device)
        room.require(vector_bytes, device)
    scaled_graph = seen_graph.scaled(scaler)
    warn_if_zero(scaled_graph.table, scaler)

    # The views, from which pairs are drawn.
    if work is None:
        work = preset.work(seen_graph.num_nodes)
    work_per_step = preset.work_per_step(seen_graph.num_nodes, seen_graph.num_features)
    backend = Backend.of_training(device, work, work_per_step)
    corruption = with_checks(preset.corruption)
    views = preset.views(scaled_graph, model.encoder.rule, corruption, backend)
    views.prepare(model.encoder.depth)
    if ranks.count > 1:
        views.divide(ranks)
        if not replayable:
            location = f"training in {ranks.count} processes"
            expected = "the paper's encoder, shuffle, readout, discriminator and objective"
            raise InputError(location, expected, "others", "Start it without torchrun.")

    training = _new_training(model, method, views, preset, seed, backend, ranks, replayable)
    return training, scaler


def with_another_seed(training: Training, preset: Preset, model: Model, seed: int) -> Training:
    """A training that differs from another one in its seed only, and shares its views.

    The model has the initial weights of the seed.
    """
    model = model.to(training.device)
    return _new_training(
        model,
        accelerate(preset.make_method(), model),
        training.views,
        preset,
        seed,
        training.backend,
        training.ranks,
        replayable=training.replay is not None,
    )


def build(preset: Preset, in_dim: int, generator: torch.Generator) -> Model:
    """Build the encoder and the other parts of the method, with initial weights."""
    encoder = preset.build_encoder(in_dim, generator)
    return preset.make_method().build(encoder, generator)


def _new_training(
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
