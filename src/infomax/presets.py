"""Presets: the paper's settings of parts, width and training, and exact batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from numbers import Real
from typing import Any

import torch

from infomax.errors import InputError, whole
from infomax.graphs.scaling import Scale, check_scale
from infomax.parts.corruptions import (
    drop_features,
    flip_and_shuffle,
    flip_edges,
    shuffle_features,
    shuffle_within_patches,
)
from infomax.parts.discriminators import Bilinear
from infomax.parts.encoders import GCN, DenseSkipMeanPool, MeanPool, SkipMeanPool
from infomax.parts.objectives import binary_cross_entropy, jensen_shannon
from infomax.parts.readouts import DiffPool, Set2Set, SigmoidMean
from infomax.views import Batches, ManyGraphs, Patches, WholeGraph
from infomax.views.patches import BATCH, FAN_OUT
from infomax.views.sampling import check_fan_out

Part = Callable[..., Any]


@dataclass(frozen=True)
class Preset:
    """All settings of a training besides the graph, the seed and the device.

    A part is the class or function itself, or a ``functools.partial`` of it: ``views`` is called with (graph, rule,
    corruption, device), ``encoder`` with (in_dim, dim), ``readout`` and ``discriminator`` with (dim), these three with
    ``generator=``; ``corruption`` with (view, generator), ``objective`` with the logits of positives and negatives.
    """

    views: Part = WholeGraph
    encoder: Part = GCN
    corruption: Part = shuffle_features
    readout: Part = SigmoidMean
    discriminator: Part = Bilinear
    objective: Part = binary_cross_entropy
    scale: Scale = "auto"
    dim: int = 512
    lr: float = 1e-3
    epochs: int = 10_000
    patience: int | None = 20
    """Epochs without a lower training loss before training stops; None: train all epochs and keep the last weights."""
    smooth: int = 0
    """Number of hops to smooth vectors over after training; see `infomax.training.embedding.smooth`."""

    def describe(self) -> dict[str, Any]:
        """Return the settings as JSON values; a part is its name and its bound arguments."""
        return {field.name: _describe(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def checked(self) -> Preset:
        """Return the preset with plain numbers; raise InputError for a bad number or part, or parts that do not fit."""
        for field in dataclasses.fields(self):
            if callable(field.default) and not callable(part := getattr(self, field.name)):
                remedy = f"Pass the part itself, such as {field.default.__name__}."
                raise InputError(field.name, "a class or a function", repr(part), remedy)
            if callable(field.default):
                _check_call(field.name, part)
        for name in ("encoder", "readout", "discriminator"):  # infomax builds these; an objective may be an instance
            if isinstance(part := getattr(self, name), torch.nn.Module):
                kind = type(part).__name__
                remedy = f"Pass {kind} itself; bind its arguments with functools.partial."
                raise InputError(name, "a class or a function", f"an instance of {kind}", remedy)
        lr: Any = self.lr
        if not isinstance(lr, Real) or not float(lr) > 0:
            raise InputError("lr", "a number above 0", repr(lr))
        views, corruption = _function(self.views), _function(self.corruption)
        ours = views in _PARTS.values() and corruption in _PARTS.values()
        if ours and (views is Patches) != (corruption is shuffle_within_patches):
            expected = "shuffle_within_patches" if views is Patches else "shuffle_features or another of whole graphs"
            raise InputError("corruption", f"{expected}, for {views.__name__}", corruption.__name__)
        if ours and views is Batches and corruption is not shuffle_features:
            raise InputError("corruption", "shuffle_features, for Batches", corruption.__name__)
        return dataclasses.replace(
            self,
            scale=check_scale(self.scale),
            dim=whole("dim", self.dim, 1),
            lr=float(lr),
            epochs=whole("epochs", self.epochs, 0),
            patience=None if self.patience is None else whole("patience", self.patience, 1),
            smooth=whole("smooth", self.smooth, 0),
        )


PRESETS = {
    # Cora, Citeseer, Pubmed.
    "whole-graph": Preset(),
    # The same objective on batches of nodes, for graphs of any size. An epoch is one step.
    "batches": Preset(views=Batches, epochs=300, patience=None),
    # The same with mean pooling: an encoder that also suits graphs with other degrees.
    "mean-pool": Preset(encoder=MeanPool),
    # Reddit.
    "patches": Preset(
        views=partial(Patches, fan_out=FAN_OUT, batch=BATCH, weighting="sample"),
        encoder=partial(SkipMeanPool, layers=3),
        corruption=shuffle_within_patches,
        lr=1e-5,
        epochs=150,
        patience=None,
    ),
    # PPI. The paper does not give its dropout rate; at 0.2 the loss stays near 0.69.
    "many-graphs": Preset(
        views=ManyGraphs,
        encoder=DenseSkipMeanPool,
        corruption=partial(drop_features, rate=0.5),
        scale="columns",
        epochs=20,
        patience=None,
    ),
}

_CALLS = {
    "views": ("graph", "rule", "corruption", "device"),
    "encoder": ("in_dim", "dim", "generator="),
    "corruption": ("view", "generator"),
    "readout": ("dim", "generator="),
    "discriminator": ("dim", "generator="),
    "objective": ("scores", "scores_negative"),
}
"""The arguments with which each part is called."""

_PARTS: dict[str, Part] = {
    part.__name__: part
    for part in (
        WholeGraph,
        Batches,
        Patches,
        ManyGraphs,
        GCN,
        MeanPool,
        SkipMeanPool,
        DenseSkipMeanPool,
        shuffle_features,
        flip_edges,
        flip_and_shuffle,
        shuffle_within_patches,
        drop_features,
        SigmoidMean,
        Set2Set,
        DiffPool,
        Bilinear,
        binary_cross_entropy,
        jensen_shannon,
    )
}


def restore(settings: dict[str, Any], own: dict[str, Part]) -> Preset:
    """Rebuild the preset that `Preset.describe` described; your own parts are passed by field name."""
    parts = [field for field, value in settings.items() if isinstance(value, dict)]
    for field, part in own.items():
        if field not in parts or not callable(part):
            raise InputError(
                f"DGI.load(run, {field}=...)", f"a class or a function, for one of {', '.join(parts)}", repr(part)
            )
    values = dict(settings)
    for field, value in settings.items():
        if field in own:
            values[field] = own[field]
        elif isinstance(value, dict):
            bound = dict(value)
            name = bound.pop("part")
            if name not in _PARTS:
                raise InputError(
                    f"{field} {name}", "a part of infomax", "one of your own", f"Pass it: DGI.load(run, {field}=...)."
                )
            values[field] = partial(_PARTS[name], **bound) if bound else _PARTS[name]
    return Preset(**values)


def _check_call(field: str, part: Part) -> None:
    """Raise InputError for a part that cannot be called as `Preset` says."""
    words = _CALLS[field]
    name = getattr(_function(part), "__name__", field)
    remedy = f"Bind its other arguments: functools.partial({name}, ...)."
    try:
        takes = signature(part)
    except (TypeError, ValueError):
        if isinstance(part, partial):  # its bound arguments do not fit
            raise InputError(field, f"arguments that {name} takes", ", ".join(part.keywords)) from None
        return  # a built-in, which has no signature
    try:
        named = {word.rstrip("="): None for word in words if word.endswith("=")}
        takes.bind(*words[: len(words) - len(named)], **named)
    except TypeError as error:
        raise InputError(field, f"a part that takes ({', '.join(words)})", f"{name}, {error}", remedy) from None


def batch_sizes(views: Part) -> dict[str, Any]:
    """Return the batch of `Batches`, or the batch and fan-out of `Patches`, bound or default; else an empty dict."""
    if _function(views) not in (Batches, Patches):
        return {}
    parameters = signature(views).parameters
    sizes: dict[str, Any] = {"batch": whole("batch", parameters["batch"].default, 1)}
    if _function(views) is Patches:
        sizes["fan_out"] = check_fan_out(parameters["fan_out"].default)
    return sizes


USUAL = 500
"""Epochs that a training with patience usually takes at most."""
SHORT = 1 << 33
"""Numbers, nodes times width times epochs, below which a GPU gains less by compiled kernels than loading them takes."""


def is_short(preset: Preset, nodes: int) -> bool:
    """Whether a training on whole graphs is so short that a GPU should use plain torch."""
    epochs = preset.epochs if preset.patience is None else min(preset.epochs, USUAL)
    return not batch_sizes(preset.views) and nodes * preset.dim * epochs < SHORT


def uses_batches(preset: Preset) -> bool:
    """Whether a preset trains on exact batches."""
    return _function(preset.views) is Batches


def require_shareable(preset: Preset, usual: bool, count: int) -> None:
    """Raise InputError for a training that several processes cannot share; ``usual`` is whether its parts can be."""
    views, remedy = _function(preset.views), "Start it without torchrun."
    if not hasattr(views, "divide"):
        found = f"{_name(views)}, which runs in one process"
        remedy = "Start it without torchrun, or use the preset batches."
        raise InputError(f"training in {count} processes", "the preset batches or patches", found, remedy)
    if not usual:
        expected = "the paper's encoder, shuffle, readout, discriminator and objective"
        raise InputError(f"training in {count} processes", expected, "others", remedy)


def _describe(value: Any) -> Any:
    if not callable(value):
        return value
    return {"part": _name(_function(value)), **(value.keywords if isinstance(value, partial) else {})}


def _name(function: Part) -> str:
    """Return a part's name; with its module if it is not infomax's, since names may coincide."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return name if _PARTS.get(name) is function else f"{function.__module__}.{name}"


def _function(part: Part) -> Part:
    return part.func if isinstance(part, partial) else part
