"""Presets: the paper's settings of parts, width and training, and exact batches."""

from __future__ import annotations

import dataclasses
import math
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import torch

from infomax.arrays.scaling import Scale, check_scale
from infomax.arrays.times import parse_half_lives
from infomax.errors import InputError, shorten, whole
from infomax.graphs.graph import Graph
from infomax.parts.corruptions import (
    drop_features,
    flip_and_shuffle,
    flip_edges,
    shuffle_features,
)
from infomax.parts.deep_graph_infomax import DeepGraphInfomax
from infomax.parts.discriminators import Bilinear
from infomax.parts.encoders import (
    GCN,
    DenseSkipMeanPool,
    Encoder,
    MeanPool,
    PathMean,
    SkipMeanPool,
    TwoHops,
)
from infomax.parts.methods import Method, Part
from infomax.parts.objectives import binary_cross_entropy, jensen_shannon
from infomax.parts.readouts import DiffPool, Set2Set, SigmoidMean
from infomax.parts.vectors import check_vectors
from infomax.training.schedule import USUAL_EPOCHS, ConstantRate, Schedule, WarmUpCosine
from infomax.views import Batches, ManyGraphs, Sizes, Views, WholeGraph

MOST_DIMENSIONS = 2**24
"""The largest width that is taken seriously: one vector of it has 67 MB."""
MOST_LEARNING_RATE = 1000
"""Adam changes a weight by about the rate in each step: at 1e25 vectors have no finite length."""
USUAL = 500
"""Epochs that a training with patience usually takes at most: 160 to 700 on thirteen graphs."""


@dataclass(frozen=True, repr=False)
class Preset:
    """All settings of a training besides the graph, the seed and the device.

    A part is the class or function itself, or a ``functools.partial`` of it: ``views`` is called with (graph, rule,
    corruption, backend), ``encoder`` with (in_dim, dim), ``readout`` and ``discriminator`` with (dim), these three with
    ``generator=``; ``corruption`` with (view, generator), ``objective`` with the logits of positives and negatives.
    """

    views: Part = WholeGraph
    encoder: Part = GCN
    corruption: Part = shuffle_features
    readout: Part = SigmoidMean
    discriminator: Part = Bilinear
    objective: Part = binary_cross_entropy
    method: Part | None = None
    """A `Method` of your own; None: `DeepGraphInfomax`, with readout, discriminator and objective as above."""
    scale: Scale = "auto"
    dim: int = 512
    schedule: Part = WarmUpCosine
    """The learning rate of each step, a `Schedule`: called with the peak rate."""
    lr: float | None = None
    """The highest learning rate; None: the usual one of the schedule for an encoder of this width."""
    epochs: int = USUAL_EPOCHS
    """Epochs to train; with patience the most."""
    patience: int | None = None
    """Epochs without a lower training loss before training stops; None: train all epochs and keep the last weights."""
    vectors: str = "recipe"
    """What vectors are made of, see `infomax.training.recipe`: "recipe", "paper", or names of parts with commas."""
    half_life: str | None = None
    """Half-lives of the pooled parts, with commas, see `infomax.training.decay`; None: one part, of plain means."""

    name: str = ""
    """The name under which infomax knows it."""

    def __repr__(self) -> str:
        """Its name, and the settings in which it differs from the preset of that name."""
        usual = PRESETS.get(self.name, Preset())
        usual_settings = usual.describe()
        # The usual rate depends on the width: it is shown only where somebody chose it.
        usual_settings["lr"] = dataclasses.replace(usual, dim=self.dim).make_schedule().peak
        changed = {
            key: value
            for key, value in self.describe().items()
            if value != usual_settings.get(key) and key != "preset"
        }
        settings = [f"{key}={_shown(value)}" for key, value in changed.items()]
        return f"Preset({', '.join([repr(self.name)] * bool(self.name) + settings)})"

    @property
    def regime(self) -> type[Views]:
        """The class of the views; raise InputError if there is none."""
        regime: Any = partial(self.views).func  # that of a partial is its function, too
        if not isinstance(regime, type) or not issubclass(regime, Views):
            raise InputError("views", "a subclass of infomax.views.Views", _name(regime))
        return regime

    def bytes(self, graph: Graph, device: torch.device) -> int:
        """Estimate the peak bytes of a training on a device."""
        ours = partial(self.encoder).func in PARTS.values()
        with (
            torch.device("meta") if ours else nullcontext()
        ):  # without memory, to ask for its sizes
            encoder = self.build_encoder(1 if ours else graph.num_features, torch.Generator("cpu"))
        sizes = Sizes(
            self.dim, len(getattr(encoder, "paths", ())) or encoder.depth, encoder.out_dim
        )
        return self.regime.bytes(graph, sizes, device, **partial(self.views).keywords)

    def build_encoder(self, in_dim: int, generator: torch.Generator) -> Any:
        """Build the encoder; raise InputError for one of your own that is none."""
        encoder = self.encoder(in_dim, self.dim, generator=generator)
        if not isinstance(encoder, Encoder):
            where = f"encoder {type(encoder).__name__}"
            raise InputError(where, "a subclass of infomax.parts.encoders.Encoder", "another class")
        return encoder

    def make_method(self) -> Method:
        """Make the method; raise InputError for one of your own that is none."""
        if self.method is None:
            return DeepGraphInfomax(self.readout, self.discriminator, self.objective)
        if not isinstance(method := self.method(), Method):
            raise InputError(
                "method", "a subclass of infomax.parts.methods.Method", repr(self.method)
            )
        return method

    @property
    def schedule_class(self) -> type[Schedule]:
        """The class of the schedule; raise InputError if there is none."""
        schedule: Any = partial(self.schedule).func
        if not isinstance(schedule, type) or not issubclass(schedule, Schedule):
            expected = "a subclass of infomax.training.schedule.Schedule"
            raise InputError("schedule", expected, _name(schedule))
        return schedule

    def make_schedule(self) -> Schedule:
        """Make the schedule, with the peak that was given or the usual one."""
        peak = self.schedule_class.usual_peak(self.dim) if self.lr is None else self.lr
        schedule: Schedule = self.schedule(peak)
        return schedule

    @property
    def paths(self) -> dict[str, int]:
        """The paths of its encoder in a graph of several types, each with the number of features at its end."""
        encoder = partial(self.encoder)
        return encoder.keywords.get("paths", {}) if _along_paths(encoder.func) else {}

    def fitted_to(self, graph: Graph) -> Preset:
        """Return the preset with the paths of a graph of several types, where the encoder takes paths.

        Parts of ours that need edges of one type are refused.
        """
        encoder = partial(self.encoder)
        if not _along_paths(encoder.func):
            return self
        several = "a graph of several types of nodes"
        if not graph.node_type:
            raise InputError(f"encoder {encoder.func.__name__}", several, "one type of nodes")
        where = f", in {several}"
        corruption = partial(self.corruption).func
        if not self.regime.pools_along_paths:
            raise InputError("views", f"WholeGraph or Batches{where}", self.regime.__name__)
        if corruption in PARTS.values() and corruption is not shuffle_features:
            raise InputError("corruption", f"shuffle_features{where}", corruption.__name__)
        chosen = dict(encoder.keywords)
        paths = graph.paths(
            **{name: chosen.pop(name) for name in ("paths", "hops") if name in chosen}
        )
        return dataclasses.replace(self, encoder=partial(encoder.func, **chosen, paths=paths))

    def work(self, nodes: int) -> float:
        """Return about how many numbers a training on so many nodes computes; infinite if it always needs kernels."""
        epochs = self.epochs if self.patience is None else min(self.epochs, USUAL)
        return math.inf if self.regime.needs_kernels else nodes * self.dim * epochs

    def per_step(self, nodes: int, features: int) -> float:
        """Return how many numbers an operation of a step computes at most; infinite if it always needs kernels."""
        return math.inf if self.regime.needs_kernels else max(nodes, features, self.dim) * self.dim

    def describe(self) -> dict[str, Any]:
        """Return the settings as JSON values; a part is its name and its bound arguments."""
        values = {
            field.name: _describe(getattr(self, field.name)) for field in dataclasses.fields(self)
        }
        # A run without these is named by its other settings: so were runs that knew no schedules.
        for name in ("method", "half_life"):
            if values[name] is None:
                del values[name]
        if self.schedule is ConstantRate:
            del values["schedule"]
        return {"preset": values.pop("name"), **values}

    def checked(self) -> Preset:
        """Return the preset with plain numbers; raise InputError for a bad number or part, or parts that do not fit."""
        for name in (
            "encoder",
            "readout",
            "discriminator",
            "method",
            "schedule",
        ):  # infomax builds these
            part = getattr(self, name)
            if isinstance(part, torch.nn.Module) or (part is not None and not callable(part)):
                remedy = "Pass the class itself; bind its arguments with functools.partial."
                raise InputError(
                    name, "a class or a function", f"one of type {type(part).__name__}", remedy
                )
        if any(one.requires_grad for one in getattr(self.objective, "parameters", tuple)()):
            raise InputError(
                "objective",
                "one without weights",
                "one with some",
                "Put them into the discriminator.",
            )
        self.make_method()
        dim = whole("dim", self.dim, 1, MOST_DIMENSIONS)
        lr: Any = self.schedule_class.usual_peak(dim) if self.lr is None else self.lr
        is_number = isinstance(lr, Real)
        if not is_number or not 0 < lr <= MOST_LEARNING_RATE:
            expected = f"a number above 0 and up to {MOST_LEARNING_RATE:,}"
            raise InputError("lr", expected, shorten(repr(lr)).strip('"'))
        if self.patience is not None and not self.schedule_class.allows_early_stopping:
            name = self.schedule_class.__name__
            expected = f"none with the schedule {name}, whose rate falls until the last epoch"
            remedy = "Leave it out, or take the schedule ConstantRate."
            raise InputError("patience", expected, repr(self.patience), remedy)
        fitting = self.regime.corruptions
        corruption = partial(self.corruption).func
        if fitting and corruption in PARTS.values() and corruption.__name__ not in fitting:
            expected = f"{' or '.join(fitting)}, for {self.regime.__name__}"
            raise InputError("corruption", expected, corruption.__name__)
        return dataclasses.replace(
            self,
            scale=check_scale(self.scale),
            dim=dim,
            lr=float(lr),
            epochs=whole("epochs", self.epochs, 0),
            patience=None if self.patience is None else whole("patience", self.patience, 1),
            vectors=check_vectors(self.vectors),
            half_life=None
            if self.half_life is None
            else ",".join(parse_half_lives(self.half_life)),
        )


_KNOWN = (
    # Cora, Citeseer, Pubmed.
    Preset(name="whole-graph"),
    # The same objective on batches of nodes, for graphs of any size. An epoch is one step.
    Preset(name="batches", views=Batches),
    # The same with mean pooling: an encoder that also suits graphs with other degrees.
    Preset(name="mean-pool", encoder=MeanPool),
    # A graph of several types of nodes, one of them after the other.
    Preset(name="types", encoder=PathMean),
    Preset(
        name="type-batches",
        views=partial(Batches, batch=2048),
        encoder=PathMean,
    ),
    # PPI. The paper does not give its dropout rate; at 0.2 the loss stays near 0.69.
    Preset(
        name="many-graphs",
        views=ManyGraphs,
        encoder=DenseSkipMeanPool,
        corruption=partial(drop_features, rate=0.5),
        scale="columns",
        lr=1e-3,
        epochs=20,
    ),
)
PRESETS = {preset.name: preset for preset in _KNOWN}

_PAPER_EPOCHS: dict[str, dict[str, Any]] = {
    "whole-graph": {"epochs": 10_000, "patience": 20},
    "mean-pool": {"epochs": 10_000, "patience": 20},
    "types": {"epochs": 10_000, "patience": 20},
    "batches": {"epochs": 300},
    "type-batches": {"epochs": 300},
}
PAPER_PRESETS = {
    name: dataclasses.replace(preset, schedule=ConstantRate, **_PAPER_EPOCHS.get(name, {}))
    for name, preset in PRESETS.items()
}
"""The same set-ups trained by the paper's protocol: a constant rate, and early stopping on whole graphs."""

_OURS: tuple[Part, ...] = (
    WholeGraph, Batches, ManyGraphs,
    GCN, MeanPool, SkipMeanPool, DenseSkipMeanPool, TwoHops, PathMean,
    shuffle_features, flip_edges, flip_and_shuffle, drop_features,
    SigmoidMean, Set2Set, DiffPool,
    Bilinear,
    binary_cross_entropy, jensen_shannon,
    WarmUpCosine, ConstantRate,
)  # fmt: skip
PARTS = {part.__name__: part for part in _OURS}
"""Parts by the names that run folders have for them."""


def register_parts(*parts: Part) -> None:
    """Make parts of another package known, so that a run folder that names them can be read."""
    PARTS.update({part.__name__: part for part in parts})


def _along_paths(encoder: Part) -> bool:
    return isinstance(encoder, type) and issubclass(encoder, PathMean)


def restore(settings: dict[str, Any], own: dict[str, Part]) -> Preset:
    """Rebuild the preset that `Preset.describe` described; your own parts are passed by field name."""
    parts = [field for field, value in settings.items() if isinstance(value, dict)]
    for field, part in own.items():
        if field not in parts or not callable(part):
            expected = f"a class or a function, for one of {', '.join(parts)}"
            raise InputError(f"DGI.load(run, {field}=...)", expected, repr(part))
    values: dict[str, Any] = {"schedule": ConstantRate, **settings}
    values["name"] = values.pop("preset")
    lacking = [
        field for field in parts if field not in own and settings[field]["part"] not in PARTS
    ]
    if lacking:
        names = ", ".join(f"{field} {settings[field]['part']}" for field in lacking)
        remedy = (
            f"Pass it, in Python: DGI.load(run, {', '.join(f'{field}=...' for field in lacking)})."
        )
        raise InputError(names, "a part of infomax", "one of your own", remedy)
    for field, value in settings.items():
        if field in own:
            along = _along_paths(partial(own[field]).func)  # the paths were those of the graph
            values[field] = partial(own[field], paths=value["paths"]) if along else own[field]
        elif isinstance(value, dict):
            bound = dict(value)
            name = bound.pop("part")
            values[field] = partial(PARTS[name], **bound) if bound else PARTS[name]
    return Preset(**values)


def _describe(value: Any) -> Any:
    if not callable(value):
        return value
    return {"part": _name(partial(value).func), **partial(value).keywords}


def _shown(value: Any) -> str:
    """A described setting as it stands in a representation: of a part its name, with the arguments that are bound."""
    if not isinstance(value, dict):
        return repr(value)
    bound = ", ".join(f"{key}={given!r}" for key, given in value.items() if key != "part")
    return f"{value['part']}({bound})" if bound else str(value["part"])


def _name(function: Part) -> str:
    """Return a part's name; with its module if it is not infomax's, since names may coincide."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return name if PARTS.get(name) is function else f"{function.__module__}.{name}"
