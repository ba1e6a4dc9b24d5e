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
from infomax.training.decay import check_half_life
from infomax.training.presets import PAPER_PRESETS, PRESETS, Preset
from infomax.training.recipe import parts_for
from infomax.training.resuming import preset_begun
from infomax.training.schedule import ConstantRate

SLOW = 1e10
"""Nodes times width times epochs above which a CPU trains in batches: 98,000 nodes at a width of 512.

The whole graph then takes about twice as long as batches. On debian, 34,003 nodes, 423 epochs of the whole graph took
as long as 300 steps in batches, and the vectors of both score alike: 73.6 and 73.5 %.
"""

Parameters = Mapping[str, Any]
"""The arguments of `DGI` by name; those that are None, or are left out, are taken from the preset."""


def preset_for(
    parameters: Parameters, graph: Graph, run_folder: Path | None = None
) -> tuple[Preset, list[str]]:
    """The preset to train a graph with, filled in and fitted to the graph; and what "auto" has chosen, in words."""
    device = choose_device(parameters["device"])
    name, reason = choose_preset(parameters, graph, device, run_folder)
    preset = fill_preset(parameters, name)
    if preset.half_life:
        check_half_life(graph, preset.vectors)

    notes = []
    if parameters["preset"] == "auto":
        notes.append(f"preset {name}: {reason}")
    notes += parts_for(graph, preset.vectors, preset.half_life)[1]
    return preset.fitted_to(graph), notes


def fill_preset(parameters: Parameters, preset: str | Preset | None = None) -> Preset:
    """Fill the arguments into a preset; by default into the one that they name, whole-graph for "auto"."""
    if preset is None:
        preset = "whole-graph" if parameters["preset"] == "auto" else parameters["preset"]
    by_protocol = _asks_for_papers_protocol(parameters)
    presets = PAPER_PRESETS if by_protocol else PRESETS
    known = presets.get(preset) if isinstance(preset, str) else preset
    if not isinstance(known, Preset):
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
        if known.schedule_class is not ConstantRate:
            changes.setdefault("lr", None)
    return dataclasses.replace(known, **changes).checked()


def _asks_for_papers_protocol(parameters: Parameters) -> bool:
    """Whether to train as in the paper: at a constant rate, and with early stopping on whole graphs."""
    if parameters.get("schedule") is not None:
        return False
    return parameters.get("vectors") == PAPER or parameters.get("patience") is not None


def choose_preset(
    parameters: Parameters, graph: Graph, device: torch.device, run_folder: Path | None = None
) -> tuple[str | Preset, str]:
    """The preset that was asked for, or that "auto" chooses for a graph; and why. A resumed training keeps its own."""
    if parameters["preset"] != "auto":
        return parameters["preset"], "as asked for"
    if run_folder is not None:
        preset_name = preset_begun(run_folder)
        if preset_name:
            return preset_name, "as the training was begun"

    whole_graph = fill_preset(parameters, "whole-graph")
    process_count = Ranks.current().count
    if graph.has_named_types:
        return _choose_for_types(parameters, graph, device, process_count)

    can_use_batches = (
        parameters.get("views") is None
        and parameters.get("corruption") in (None, shuffle_features)
        and not getattr(partial(whole_graph.encoder).func, "needs_whole_graph", False)
    )
    if process_count > 1 and can_use_batches:
        return "batches", f"{process_count} processes share every step"

    graph_count = 1 if graph.groups is None else len(np.unique(graph.groups))
    if graph_count > 1 and parameters.get("views") is None and parameters.get("corruption") is None:
        return "many-graphs", f"there are {graph_count:,} graphs"

    if graph.table.mapped and can_use_batches:
        return "batches", "the graph is read from disk"

    takes_long = device.type == "cpu" and whole_graph.work(graph.num_nodes) > SLOW
    if takes_long and can_use_batches:
        reason = f"all of {graph.num_nodes:,} nodes in every step would take a CPU long"
        return "batches", reason

    needed_bytes = whole_graph.bytes(graph, device)
    free_bytes = room.available_bytes(device)
    reason = f"the whole graph needs about {format_size(needed_bytes)}, and {format_size(free_bytes)} are free"
    if needed_bytes <= free_bytes or not can_use_batches:
        return "whole-graph", reason
    batch_bytes = fill_preset(parameters, "batches").bytes(graph, device)
    return ("batches" if batch_bytes < needed_bytes else "whole-graph"), reason


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
