"""The settings of a training as options of the command line, and the model that they mean."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.errors import InputError

if TYPE_CHECKING:
    from infomax.estimator import DGI

_method = partial(typer.Option, rich_help_panel="Method")
_training = partial(typer.Option, rich_help_panel="Training")
_parts_option = partial(typer.Option, rich_help_panel="Parts")

Preset = Annotated[
    str,
    _method(
        metavar="NAME",
        help="The set-up to start from: whole-graph, batches, mean-pool, patches (the paper's, for Reddit) or "
        "many-graphs. auto: many-graphs where there are several, else the whole graph if it fits, else batches.",
    ),
]
Vectors = Annotated[
    str | None,
    _method(
        metavar="PART,...",
        help="What vectors are made of: recipe, which is encoder,own,pooled,positions; some of these; or paper, "
        "the encoder's output alone.  [default: recipe]",
    ),
]
TrainedTypes = Annotated[
    list[str] | None, _method(metavar="NAME", help="Of several types of nodes, train this one only. May be repeated.")
]
Hops = Annotated[
    int | None,
    _method(
        metavar="N",
        help="Of several types: follow paths of up to so many steps to nodes with features.  [default: 2]",
        min=1,
    ),
]
Paths = Annotated[
    str | None, _method(metavar="PATH,...", help="Of several types: the paths, such as author-paper-author, by name.")
]

LearningRate = Annotated[
    float | None, _training(metavar="RATE", help="Learning rate of Adam.  [default: the preset's]")
]
Patience = Annotated[
    int | None, _training(metavar="N", help="Stop after so many epochs without a lower loss.  [default: the preset's]")
]
Steps = Annotated[int | None, _training(metavar="N", help="Steps of a training in batches.  [default: 300]", min=0)]
Batch = Annotated[
    int | None,
    _training(
        metavar="N",
        help="Nodes per step, in batches or patches.  [default: 16384, of several types 2048; 256 patches]",
        min=1,
    ),
]
Seed = Annotated[int, _training(metavar="N", help="Decides the first weights and every corruption.")]
Runs = Annotated[
    int,
    _training(metavar="R", help="Train R encoders, with seeds from --seed on; evaluate shows mean and spread.", min=1),
]

Encoder = Annotated[
    str | None,
    _parts_option(
        metavar="NAME",
        help="gcn, mean-pool, or two-hops: the node itself beside one hop and two, each --dim wide.  [default: the "
        "preset's]",
    ),
]
Layers = Annotated[int | None, _parts_option(metavar="N", help="Layers of an encoder other than two-hops.", min=1)]
Corruption = Annotated[
    str | None, _parts_option(metavar="NAME", help="shuffle, flip or both: of features, of edges, or of both.")
]
Rho = Annotated[
    float | None, _parts_option(metavar="RATE", help="Rate of flipped edges.  [default: 0.001]", min=0, max=1)
]
Readout = Annotated[
    str | None, _parts_option(metavar="NAME", help="mean, set2set or diffpool: the summary.  [default: mean]")
]
Scale = Annotated[
    str | None,
    _parts_option(metavar="NAME", help="auto, rows, columns or none: the scaling of features.  [default: auto]"),
]
FanOut = Annotated[
    str | None, _parts_option(metavar="K,K,...", help="Of patches: the neighbours drawn at each level, a layer each.")
]
Weighting = Annotated[
    str | None,
    _parts_option(
        metavar="NAME",
        help="Of patches: sample or degree. The weight of a node among those drawn, by their number, as in the "
        "paper, or by degree, as in the whole graph.",
    ),
]

BATCHES = ("batches", "type-batches")
"""Presets in which an epoch is a step."""
WHOLE = ("auto", "whole-graph", "mean-pool")
ANY = ("auto", "whole-graph", "batches", "mean-pool", "patches")
PRESETS_WITH = {
    "corruption": WHOLE,
    "rho": WHOLE,
    "encoder": ("auto", "whole-graph", "batches"),
    "layers": ANY,
    "fan_out": ("patches",),
    "weighting": ("patches",),
    "batch": (*BATCHES, "patches"),
}
"""The presets that an option is for; others are for all."""
CHOICES = {
    "encoder": {"gcn": "GCN", "mean-pool": "MeanPool", "two-hops": "TwoHops"},
    "corruption": {"shuffle": "shuffle_features", "flip": "flip_edges", "both": "flip_and_shuffle"},
    "readout": {"mean": "SigmoidMean", "set2set": "Set2Set", "diffpool": "DiffPool"},
    "weighting": {"sample": "", "degree": ""},
}
"""The values of options that are one of several; of a part, the name that it has in `presets.PARTS`."""


def build_model(given: Mapping[str, Any], kind: str = "", seed: int | None = None) -> DGI:
    """The model that the options of `train`, by name, mean for a type of nodes.

    What is out of range or does not fit the preset is refused, before a graph is read.
    """
    from infomax.estimator import DGI

    preset = given["preset"]
    if preset == "auto" and means_batches(given):
        preset = "type-batches" if kind else "batches"
    chosen = _parts(preset, given)
    if kind:
        chosen |= _along_paths(kind, chosen, given)
    model = DGI(given["dim"], preset=preset, epochs=_length(preset, given["epochs"], given["steps"]), **chosen)
    model.set_params(**{name: given[name] for name in ("lr", "patience", "scale", "vectors", "device")})
    model.set_params(seed=given["seed"] if seed is None else seed)
    model.settings()
    return model


def means_batches(given: Mapping[str, Any]) -> str:
    """The option by which batches are meant where no preset is named; "" for none."""
    return "--steps" if given["steps"] is not None else "--batch" if given["batch"] is not None else ""


def words(text: str | None) -> list[str]:
    """The words of a list with commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _length(preset: str, epochs: int | None, steps: int | None) -> int | None:
    """Epochs to train; in batches an epoch is a step."""
    if steps is None:
        if epochs is not None and preset in BATCHES:
            raise InputError("--epochs", f"--steps, with --preset {preset}", f"--epochs {epochs}")
        return epochs
    if preset not in BATCHES:
        raise InputError("--steps", "--preset batches", f"--preset {preset}")
    if epochs is not None:
        raise InputError("train", "--steps or --epochs", "both")
    return steps


def _parts(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parts, as arguments of `DGI`, that the options mean."""
    from infomax.presets import PARTS, PRESETS
    from infomax.views import Batches

    _check(preset, given)
    layers, rho = given["layers"], given["rho"]
    names = [name for name in ("encoder", "corruption", "readout") if given[name] is not None]
    found: dict[str, Any] = {name: PARTS[CHOICES[name][given[name]]] for name in names}
    if preset == "patches" and any(given[name] for name in ("batch", "fan_out", "weighting")):
        found |= _patches(given)
    elif given["batch"] is not None:
        found["views"] = partial(Batches, batch=given["batch"])
    if layers is not None:
        if given["encoder"] == "two-hops":
            raise InputError("--layers", "none with --encoder two-hops", str(layers))
        of_preset: Any = PRESETS["whole-graph" if preset == "auto" else preset].encoder
        encoder: Any = found.get("encoder") or partial(of_preset).func
        found["encoder"] = partial(encoder, layers=layers)
    if given["corruption"] in ("flip", "both"):
        found["corruption"] = partial(found["corruption"], rho=1e-3 if rho is None else rho)
    elif rho is not None:
        raise InputError("--rho", "--corruption flip or both", given["corruption"] or "none")
    return found


def _check(preset: str, given: Mapping[str, Any]) -> None:
    """Refuse options that are not for a preset, and names that no part has."""
    for name in {**PRESETS_WITH, **CHOICES}:
        option = f"--{name.replace('_', '-')}"
        if (value := given[name]) is None:
            continue
        if preset not in (presets := PRESETS_WITH.get(name, (preset,))):
            raise InputError(option, f"--preset {' or '.join(presets)}", f"--preset {preset}")
        if value not in CHOICES.get(name, (value,)):
            raise InputError(option, f"one of {', '.join(CHOICES[name])}", str(value))


def _along_paths(kind: str, chosen: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The encoder of a type of nodes: along the paths that were named and begin at it, else those found."""
    from infomax.parts.encoders import PathMean

    if "encoder" in chosen:
        expected = "that along paths, for a graph of several types of nodes"
        raise InputError("encoder", expected, "another", "Leave it out.")
    named = [path for path in words(given["paths"]) if path.split("-")[0] == kind]
    return {"encoder": partial(PathMean, paths=named) if named else partial(PathMean, hops=given["hops"] or 2)}


def _patches(given: Mapping[str, Any]) -> dict[str, Any]:
    """The views of patches, and the encoder that fits their fan-out."""
    from infomax.parts.encoders import SkipMeanPool
    from infomax.views import Patches
    from infomax.views.patches import BATCH, FAN_OUT

    counts: tuple[int, ...] = FAN_OUT
    if given["fan_out"]:
        try:
            counts = tuple(int(count) for count in given["fan_out"].split(","))
        except ValueError:
            counts = (0,)
    if min(counts) < 1:
        raise InputError("--fan-out", "numbers from 1, as in 10,10,25", given["fan_out"])
    weighting: Any = given["weighting"] or "sample"
    views = partial(Patches, fan_out=counts, batch=given["batch"] or BATCH, weighting=weighting)
    return {"views": views, "encoder": partial(SkipMeanPool, layers=len(counts))}
