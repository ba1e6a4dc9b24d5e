"""Presets: all settings of a training, and the set-ups that have a name."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import torch

from infomax.arrays.scaling import Scale, check_scale
from infomax.arrays.times import parse_half_lives
from infomax.errors import InputError, check_whole_number, shorten
from infomax.graphs.graph import Graph
from infomax.parts.corruptions import drop_features, shuffle_features
from infomax.parts.deep_graph_infomax import DeepGraphInfomax
from infomax.parts.discriminators import Bilinear
from infomax.parts.encoders import GCN, DenseSkipMeanPool, Encoder, MeanPool, PathMean
from infomax.parts.methods import Method, Part
from infomax.parts.objectives import binary_cross_entropy
from infomax.parts.readouts import SigmoidMean
from infomax.parts.vectors import check_vectors
from infomax.training.part_names import (
    PARTS_BY_NAME,
    describe_setting,
    is_known,
    part_name,
    restore_part,
    show_setting,
)
from infomax.training.schedule import (
    EPOCHS_OF_TYPES,
    USUAL_EPOCHS,
    ConstantRate,
    Schedule,
    WarmUpCosine,
)
from infomax.views import Batches, ManyGraphs, Sizes, Views, WholeGraph

MOST_DIMENSIONS = 2**24
"""The largest width that is taken seriously: one vector of it has 67 MB."""
MOST_LEARNING_RATE = 1000
"""Adam changes a weight by about the rate in each step: at 1e25 vectors have no finite length."""
EPOCHS_WITH_PATIENCE = 500
"""Epochs that a training with patience usually takes at most: 160 to 700 on thirteen graphs."""


@dataclass(frozen=True, repr=False)
class Preset:
    """All settings of a training besides the graph, the seed and the device.

    A part is the class or function itself, or a ``functools.partial`` of it:

    - ``views`` is called with (graph, rule, corruption, backend);
    - ``encoder`` with (in_dim, dim), ``readout`` and ``discriminator`` with (dim), these three
      with ``generator=``;
    - ``corruption`` with (view, generator);
    - ``objective`` with the logits of positives and negatives;
    - ``schedule`` with the highest learning rate.
    """

    views: Part = WholeGraph
    encoder: Part = GCN
    corruption: Part = shuffle_features
    readout: Part = SigmoidMean
    discriminator: Part = Bilinear
    objective: Part = binary_cross_entropy
    method: Part | None = None
    """A `Method` of your own; None: `DeepGraphInfomax`, with the readout, discriminator and
    objective above."""
    scale: Scale = "auto"
    dim: int = 512
    schedule: Part = WarmUpCosine
    """The learning rate of each step, a `Schedule`."""
    lr: float | None = None
    """The highest learning rate; None: the usual one of the schedule for this width."""
    epochs: int = USUAL_EPOCHS
    """Epochs to train; with patience the most."""
    patience: int | None = None
    """Epochs without a lower training loss before training stops; None: train all epochs and keep
    the last weights."""
    vectors: str = "recipe"
    """What vectors are made of: "recipe", "paper", or names of parts with commas."""
    half_life: str | None = None
    """Half-lives of the pooled parts, with commas; None: one part, of plain means."""

    name: str = ""
    """The name under which infomax knows it."""

    def __repr__(self) -> str:
        """Its name, and the settings in which it differs from the preset of that name."""
        usual = PRESETS.get(self.name, Preset())
        usual_settings = usual.describe()
        # The usual rate depends on the width: it is shown only where somebody chose it.
        usual_settings["lr"] = dataclasses.replace(usual, dim=self.dim).make_schedule().peak

        shown = [repr(self.name)] if self.name else []
        for setting, value in self.describe().items():
            if setting != "preset" and value != usual_settings.get(setting):
                shown.append(f"{setting}={show_setting(value)}")
        return f"Preset({', '.join(shown)})"

    @property
    def regime(self) -> type[Views]:
        """The class of the views; raise InputError if there is none."""
        regime: Any = partial(self.views).func
        if not isinstance(regime, type) or not issubclass(regime, Views):
            raise InputError("views", "a subclass of infomax.views.Views", part_name(regime))
        return regime

    @property
    def schedule_class(self) -> type[Schedule]:
        """The class of the schedule; raise InputError if there is none."""
        schedule: Any = partial(self.schedule).func
        if not isinstance(schedule, type) or not issubclass(schedule, Schedule):
            expected = "a subclass of infomax.training.schedule.Schedule"
            raise InputError("schedule", expected, part_name(schedule))
        return schedule

    @property
    def paths(self) -> dict[str, int]:
        """By path of its encoder between several types, the number of features at the end.

        Empty where the encoder takes no paths.
        """
        encoder = partial(self.encoder)
        if not _takes_paths(encoder.func):
            return {}
        paths: dict[str, int] = encoder.keywords.get("paths", {})
        return paths

    # What a training is made of

    def build_encoder(self, in_dim: int, generator: torch.Generator) -> Any:
        """Build the encoder; raise InputError for a class that is no encoder."""
        encoder = self.encoder(in_dim, self.dim, generator=generator)
        if not isinstance(encoder, Encoder):
            location = f"encoder {type(encoder).__name__}"
            expected = "a subclass of infomax.parts.encoders.Encoder"
            raise InputError(location, expected, "another class")
        return encoder

    def make_method(self) -> Method:
        """Make the method; raise InputError for a class that is no method.

        It is the method as it is written. Before a training `infomax.parts.fused.accelerate`
        replaces it by an equivalent in closed form, where all parts are the paper's.
        """
        if self.method is None:
            return DeepGraphInfomax(self.readout, self.discriminator, self.objective)
        method = self.method()
        if not isinstance(method, Method):
            expected = "a subclass of infomax.parts.methods.Method"
            raise InputError("method", expected, repr(self.method))
        return method

    def make_schedule(self) -> Schedule:
        """Make the schedule, with the peak that was given or the usual one."""
        peak = self.schedule_class.usual_peak(self.dim) if self.lr is None else self.lr
        schedule: Schedule = self.schedule(peak)
        return schedule

    def fitted_to(self, graph: Graph) -> Preset:
        """Return the preset with the paths of a graph, if its encoder takes paths.

        The library's own parts that need edges of one type are refused.
        """
        # A class and a partial of a class become a partial, which has the class as its `func`.
        encoder = partial(self.encoder)
        if not _takes_paths(encoder.func):
            return self

        several_types = "a graph of several types of nodes"
        if not graph.has_named_types:
            raise InputError(f"encoder {encoder.func.__name__}", several_types, "one type of nodes")
        if not self.regime.pools_along_paths:
            expected = f"WholeGraph or Batches, in {several_types}"
            raise InputError("views", expected, self.regime.__name__)
        corruption = partial(self.corruption).func
        if is_known(corruption) and corruption is not shuffle_features:
            expected = f"shuffle_features, in {several_types}"
            raise InputError("corruption", expected, corruption.__name__)

        arguments = dict(encoder.keywords)
        choice_of_paths = {
            name: arguments.pop(name) for name in ("paths", "hops") if name in arguments
        }
        paths = graph.paths(**choice_of_paths)
        return dataclasses.replace(self, encoder=partial(encoder.func, **arguments, paths=paths))

    # What a training takes

    def bytes(self, graph: Graph, device: torch.device) -> int:
        """Estimate the peak bytes of a training on a device."""
        generator = torch.Generator("cpu")
        if is_known(self.encoder):
            # On the device "meta" tensors have sizes but no memory.
            with torch.device("meta"):
                encoder = self.build_encoder(1, generator)
        else:
            encoder = self.build_encoder(graph.num_features, generator)
        path_count = len(getattr(encoder, "paths", ()))
        sizes = Sizes(self.dim, path_count or encoder.depth, encoder.out_dim)
        return self.regime.bytes(graph, sizes, device, **partial(self.views).keywords)

    def work(self, node_count: int) -> float:
        """About how many numbers a training computes; infinite if it always needs kernels."""
        if self.regime.needs_kernels:
            return math.inf
        epochs = self.epochs
        if self.patience is not None:
            epochs = min(epochs, EPOCHS_WITH_PATIENCE)
        return node_count * self.dim * epochs

    def work_per_step(self, node_count: int, feature_count: int) -> float:
        """How many numbers an operation of a step computes at most; infinite as in `work`."""
        if self.regime.needs_kernels:
            return math.inf
        return max(node_count, feature_count, self.dim) * self.dim

    # Checking, and writing down

    def checked(self) -> Preset:
        """Return the preset with Python's own numbers, as JSON needs, and the usual rate filled in.

        Settings that are wrong, or do not go together, raise InputError.
        """
        self._check_parts()
        dim = check_whole_number("dim", self.dim, 1, MOST_DIMENSIONS)
        lr: Any = self.schedule_class.usual_peak(dim) if self.lr is None else self.lr
        is_number = isinstance(lr, Real)
        if not is_number or not 0 < lr <= MOST_LEARNING_RATE:
            expected = f"a number above 0 and up to {MOST_LEARNING_RATE:,}"
            raise InputError("lr", expected, shorten(repr(lr)).strip('"'))
        patience = self.patience
        if patience is not None:
            patience = check_whole_number("patience", patience, 1)
        if patience is not None and not self.schedule_class.allows_early_stopping:
            name = self.schedule_class.__name__
            expected = f"none with the schedule {name}, whose rate falls until the last epoch"
            remedy = "Leave it out, or take the schedule ConstantRate."
            raise InputError("patience", expected, repr(patience), remedy)
        half_life = self.half_life
        if half_life is not None:
            # As written, without spaces and repetitions.
            half_life = ",".join(parse_half_lives(half_life).keys())
        return dataclasses.replace(
            self,
            scale=check_scale(self.scale),
            dim=dim,
            lr=float(lr),
            epochs=check_whole_number("epochs", self.epochs, 0),
            patience=patience,
            vectors=check_vectors(self.vectors),
            half_life=half_life,
        )

    def _check_parts(self) -> None:
        """Raise InputError for a value that is no part, or a part that does not fit the regime."""
        built_by_infomax = ("encoder", "readout", "discriminator", "method", "schedule")
        for name in built_by_infomax:
            part = getattr(self, name)
            if isinstance(part, torch.nn.Module) or (part is not None and not callable(part)):
                remedy = "Pass the class itself; bind its arguments with functools.partial."
                found = f"one of type {type(part).__name__}"
                raise InputError(name, "a class or a function", found, remedy)

        objective_weights: Any = getattr(self.objective, "parameters", tuple)()
        if any(weight.requires_grad for weight in objective_weights):
            remedy = "Put them into the discriminator."
            raise InputError("objective", "one without weights", "one with some", remedy)
        self.make_method()

        fitting_names = self.regime.corruptions
        corruption = partial(self.corruption).func
        if fitting_names and is_known(corruption) and corruption.__name__ not in fitting_names:
            expected = f"{' or '.join(fitting_names)}, for {self.regime.__name__}"
            raise InputError("corruption", expected, corruption.__name__)

    def describe(self) -> dict[str, Any]:
        """Return the settings as JSON values; a part is its name and its bound arguments."""
        values = {
            field.name: describe_setting(getattr(self, field.name))
            for field in dataclasses.fields(self)
        }
        # Defaults that came later are not written, so that the settings of earlier runs stay equal.
        for name in ("method", "half_life"):
            if values[name] is None:
                del values[name]
        if self.schedule is ConstantRate:
            del values["schedule"]
        return {"preset": values.pop("name"), **values}


def restore(settings: dict[str, Any], custom_parts: dict[str, Part]) -> Preset:
    """Rebuild the preset that `Preset.describe` described.

    Args:
        settings: the description.
        custom_parts: your own parts by field name: a description has only their names.
    """
    part_fields = [field for field, value in settings.items() if isinstance(value, dict)]
    for field, part in custom_parts.items():
        if field not in part_fields or not callable(part):
            expected = f"a class or a function, for one of {', '.join(part_fields)}"
            raise InputError(f"DGI.load(run, {field}=...)", expected, repr(part))

    missing_fields = [
        field
        for field in part_fields
        if field not in custom_parts and settings[field]["part"] not in PARTS_BY_NAME
    ]
    if missing_fields:
        names = ", ".join(f"{field} {settings[field]['part']}" for field in missing_fields)
        arguments = ", ".join(f"{field}=..." for field in missing_fields)
        remedy = f"Pass it, in Python: DGI.load(run, {arguments})."
        raise InputError(names, "a part of infomax", "one of your own", remedy)

    values: dict[str, Any] = {"schedule": ConstantRate, **settings}
    values["name"] = values.pop("preset")
    for field in part_fields:
        if field not in custom_parts:
            values[field] = restore_part(settings[field])
        elif _takes_paths(partial(custom_parts[field]).func):
            # The paths were those of the training graph.
            values[field] = partial(custom_parts[field], paths=settings[field]["paths"])
        else:
            values[field] = custom_parts[field]
    return Preset(**values)


def _takes_paths(encoder: Part) -> bool:
    return isinstance(encoder, type) and issubclass(encoder, PathMean)


_NAMED_PRESETS = (
    # Cora, Citeseer, Pubmed.
    Preset(name="whole-graph"),
    # The same objective on batches of nodes, for graphs of any size. An epoch is one step.
    Preset(name="batches", views=Batches),
    # The same with mean pooling: an encoder that also suits graphs with other degrees.
    Preset(name="mean-pool", encoder=MeanPool),
    # A graph of several types of nodes, one of them after the other.
    Preset(name="types", encoder=PathMean, epochs=EPOCHS_OF_TYPES),
    Preset(name="type-batches", views=partial(Batches, batch=2048), encoder=PathMean),
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
PRESETS = {preset.name: preset for preset in _NAMED_PRESETS}

_PAPER_LENGTHS: dict[str, dict[str, Any]] = {
    "whole-graph": {"epochs": 10_000, "patience": 20},
    "mean-pool": {"epochs": 10_000, "patience": 20},
    "types": {"epochs": 10_000, "patience": 20},
    "batches": {"epochs": 300},
    "type-batches": {"epochs": 300},
}
PAPER_PRESETS = {
    name: dataclasses.replace(preset, schedule=ConstantRate, **_PAPER_LENGTHS.get(name, {}))
    for name, preset in PRESETS.items()
}
"""The same set-ups by the paper's protocol: a constant rate, early stopping on whole graphs."""
