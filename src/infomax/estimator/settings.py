"""From the arguments of `DGI` to the preset that a graph is trained with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from infomax.errors import InputError, check_whole_number
from infomax.graphs.graph import Graph
from infomax.kernels import room
from infomax.kernels.device import choose_device
from infomax.kernels.ranks import Ranks
from infomax.memory import format_size
from infomax.parts.corruptions import shuffle_features
from infomax.parts.vectors import PAPER
from infomax.training.half_lives import check_half_life
from infomax.training.presets import PAPER_PRESETS, PRESETS, Preset
from infomax.training.recipe import parts_for
from infomax.training.resuming import preset_begun
from infomax.training.schedule import ConstantRate

MOST_CPU_WORK = 1e10
"""Nodes times width times epochs up to which a CPU trains on the whole graph.

That is 98,000 nodes at a width of 512; of more, the whole graph takes about twice as long as
batches, whose vectors score alike (docs/explanation/evidence.md).
"""

Parameters = Mapping[str, Any]
"""The arguments of `DGI` by name. What is None, or left out, is taken from the preset."""


def preset_for(
    parameters: Parameters, graph: Graph, run_folder: Path | None = None
) -> tuple[Preset, list[str]]:
    """The preset to train a graph with, filled in and fitted to the graph, and notes for the user.

    The notes say what "auto" has chosen, and which parts of vectors are left out or smaller.
    """
    device = choose_device(parameters["device"])
    name, reason = choose_preset(parameters, graph, device, run_folder)
    preset = fill_preset(parameters, name)
    if preset.half_life:
        check_half_life(graph, preset.vectors)

    notes = []
    if parameters["preset"] == "auto":
        notes.append(f"preset {name}: {reason}")
    _, notes_on_parts = parts_for(graph, preset.vectors, preset.half_life)
    return preset.fitted_to(graph), notes + notes_on_parts


def fill_preset(parameters: Parameters, preset: str | Preset | None = None) -> Preset:
    """Fill the arguments into a preset.

    Without a preset it is the one that the arguments name; for "auto", whole-graph.
    """
    if preset is None:
        preset = parameters["preset"]
        if preset == "auto":
            preset = "whole-graph"
    base = preset
    if isinstance(preset, str):
        presets = PAPER_PRESETS if _follows_paper(parameters) else PRESETS
        base = presets.get(preset)
    if not isinstance(base, Preset):
        expected = f"one of auto, {', '.join(PRESETS)}, or a Preset"
        raise InputError("preset", expected, str(parameters["preset"]))
    check_whole_number("seed", parameters["seed"], 0)

    changes = {
        field.name: parameters[field.name]
        for field in dataclasses.fields(Preset)
        if parameters.get(field.name) is not None
    }
    if parameters.get("epochs") is not None:
        # Epochs without patience mean: train all of them.
        changes["patience"] = parameters.get("patience")
    if parameters.get("patience") is not None and parameters.get("schedule") is None:
        # To stop early, a training needs a rate that does not fall towards a known end.
        changes["schedule"] = ConstantRate
        if base.schedule_class is not ConstantRate:
            changes.setdefault("lr", None)
    return dataclasses.replace(base, **changes).checked()


def _follows_paper(parameters: Parameters) -> bool:
    """Whether to train as in the paper: at a constant rate, and with early stopping."""
    if parameters.get("schedule") is not None:
        return False
    return parameters.get("vectors") == PAPER or parameters.get("patience") is not None


def choose_preset(
    parameters: Parameters,
    graph: Graph,
    device: torch.device,
    run_folder: Path | None = None,
    *,
    most_cpu_work: float = MOST_CPU_WORK,
) -> tuple[str | Preset, str]:
    """The preset that the user names, or that "auto" chooses for a graph; and why.

    A training that is resumed keeps its preset.
    """
    if parameters["preset"] != "auto":
        return parameters["preset"], "as asked for"
    if run_folder is not None:
        preset_name = preset_begun(run_folder)
        if preset_name:
            return preset_name, "as the training was begun"

    process_count = Ranks.current().count
    if graph.has_named_types:
        return _choose_for_types(parameters, graph, device, process_count)

    # Batches need a corruption and an encoder that can work on parts of a graph.
    whole_graph = fill_preset(parameters, "whole-graph")
    encoder_class = partial(whole_graph.encoder).func
    can_use_batches = (
        parameters.get("views") is None
        and parameters.get("corruption") in (None, shuffle_features)
        and not getattr(encoder_class, "needs_whole_graph", False)
    )
    if process_count > 1 and can_use_batches:
        return "batches", f"{process_count} processes share every step"

    graph_count = 1 if graph.groups is None else len(np.unique(graph.groups))
    if graph_count > 1 and parameters.get("views") is None and parameters.get("corruption") is None:
        return "many-graphs", f"there are {graph_count:,} graphs"

    if graph.table.mapped and can_use_batches:
        return "batches", "the graph is read from disk"

    takes_long = device.type == "cpu" and whole_graph.work(graph.num_nodes) > most_cpu_work
    if takes_long and can_use_batches:
        reason = f"all of {graph.num_nodes:,} nodes in every step would take a CPU long"
        return "batches", reason

    # Where neither the whole graph nor batches fit, what needs less is chosen, and refused later.
    needed_bytes = whole_graph.bytes(graph, device)
    free_bytes = room.available_bytes(device)
    needed = format_size(needed_bytes)
    reason = f"the whole graph needs about {needed}, and {format_size(free_bytes)} are free"
    if needed_bytes <= free_bytes or not can_use_batches:
        return "whole-graph", reason
    batch_bytes = fill_preset(parameters, "batches").bytes(graph, device)
    if batch_bytes < needed_bytes:
        return "batches", reason
    return "whole-graph", reason


def _choose_for_types(
    parameters: Parameters, graph: Graph, device: torch.device, process_count: int
) -> tuple[str, str]:
    """The preset for a graph of several types of nodes."""
    reason = f"there are {len(graph.types)} types of nodes"
    if process_count > 1 or graph.table.mapped:
        return "type-batches", reason
    needed_bytes = fill_preset(parameters, "types").fitted_to(graph).bytes(graph, device)
    if needed_bytes > room.available_bytes(device):
        return "type-batches", reason
    return "types", reason
