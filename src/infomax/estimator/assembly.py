"""Assemble a training from a preset: model, scaled features, views."""

from __future__ import annotations

import numpy as np
import torch

from infomax import memory
from infomax.arrays.scaling import Scaler
from infomax.arrays.table import warn_if_zero
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.kernels import Backend, room
from infomax.kernels.initialisation import generators
from infomax.kernels.ranks import Ranks
from infomax.parts.corruptions import is_replayable, watched
from infomax.parts.methods import Model
from infomax.training.loop import Training
from infomax.training.presets import Preset
from infomax.views import Batches, Patches, Views


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

    ``numbers`` is how many numbers it computes, which decides about kernels; None: by the preset. ``scaler`` is that of
    a training that goes on.
    """
    smaller = "--dim or --batch" if preset.regime in (Batches, Patches) else "--dim"
    remedy = f"Lower {smaller}, or allow more memory."
    room.require(preset.bytes(graph, device), device, ranks.on_this_host, remedy)
    if not graph.splits.get("seen", np.True_).any():
        raise InputError(
            "splits['seen']", "at least one node", "none", "Mark the nodes that training may see."
        )
    model = build(preset, graph.num_features, generators(seed, device)[0]).to(device)
    if model.encoder.whole and preset.regime in (Batches, Patches):
        where, remedy = f"encoder {type(model.encoder).__name__}", 'Pass preset="whole-graph".'
        raise InputError(
            where, "views of the whole graph, which it needs", preset.regime.__name__, remedy
        )
    replayable = is_replayable(
        preset.corruption, graph.table.sparse
    ) and preset.make_method().is_fused(model)
    source = graph if preset.regime.reads_folders else graph.loaded()
    seen, scaler = source.seen(), scaler or source.scaler(preset.scale)
    if not graph.table.mapped and ranks.rank == 0:  # all vectors come after it
        room.require(memory.embedding_bytes(seen, model.encoder.out_dim, device), device)
    scaled = seen.scaled(scaler)
    warn_if_zero(scaled.table, scaler)
    work = preset.work(seen.num_nodes) if numbers is None else numbers
    backend = Backend.of_training(device, work, preset.per_step(seen.num_nodes, seen.num_features))
    views = preset.views(scaled, model.encoder.rule, watched(preset.corruption), backend)
    views.prepare(model.encoder.depth)
    if ranks.count > 1:
        views.divide(ranks)
        if not replayable:
            expected = "the paper's encoder, shuffle, readout, discriminator and objective"
            raise InputError(
                f"training in {ranks.count} processes",
                expected,
                "others",
                "Start it without torchrun.",
            )
    return _training(model, views, preset, seed, backend, ranks, replayable), scaler


def another(training: Training, preset: Preset, model: Model, seed: int) -> Training:
    """A training that differs from another in its seed only, and shares its views; the model is that of the seed."""
    model, replayable = model.to(training.device), training.replay is not None
    return _training(
        model, training.views, preset, seed, training.backend, training.ranks, replayable
    )


def _training(
    model: Model,
    views: Views,
    preset: Preset,
    seed: int,
    backend: Backend,
    ranks: Ranks,
    replayable: bool,
) -> Training:
    return Training(
        model,
        views,
        preset.make_method(),
        lr=preset.lr,
        epochs=preset.epochs,
        patience=preset.patience,
        generator=generators(seed, backend.device)[1],
        replayable=replayable,
        backend=backend,
        ranks=ranks,
    )


def build(preset: Preset, in_dim: int, generator: torch.Generator) -> Model:
    """Build the encoder and the other parts of the method, with initial weights from a generator."""
    return preset.make_method().build(preset.build_encoder(in_dim, generator), generator)


def check_graph(graph: object) -> None:
    """Raise InputError if the argument is not a Graph."""
    if not isinstance(graph, Graph):
        remedy = "Make one: Graph.from_frames, from_arrays, from_scipy, from_networkx or from_pyg, or read_graph(path)."
        raise InputError("graph", "a Graph", type(graph).__name__, remedy)
