"""The settings of a training as options of the command line, and the model that they mean."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from infomax.cli.options import GRAPH, option, optional
from infomax.errors import InputError

if TYPE_CHECKING:
    from infomax.estimator import DGI

_method, _training, _part = (
    partial(optional, heading=heading) for heading in ("Method", "Training", "Parts")
)
Preset = Annotated[
    str,
    option(
        "NAME",
        "The set-up to start from: whole-graph, batches, mean-pool or many-graphs. "
        "auto: many-graphs where there are several, else the whole graph if it fits and a CPU need not be slow, else "
        "batches.",
        heading="Method",
    ),
]
Seed = Annotated[
    int, option("N", "Decides the first weights and every corruption.", heading="Training")
]
Runs = Annotated[
    int,
    option(
        "R",
        "Train R encoders, with seeds from --seed on; evaluate shows mean and spread.",
        heading="Training",
        min=1,
        max=10_000,  # each has a folder
    ),
]
SETTINGS = {
    "dim": optional(
        int,
        "N",
        "Width of the encoder, one part of the vectors.  [default: 512]",
    ),
    "epochs": optional(
        int,
        "N",
        "Train so many epochs, with --patience at most so many; 0 is Random-Init.  [default: the preset's]",
    ),
    "hold_out_edges": optional(
        float,
        "SHARE",
        "Set a share of the edges aside, as 0.1, for evaluate RUN --edges.",
        heading=GRAPH,
    ),
    "vectors": _method(
        str,
        "PART,...",
        "recipe: encoder,own,pooled,positions; or some of these; or paper: the encoder's own.  [default: recipe]",
    ),
    "half_life": _method(
        str,
        "LIFE,...",
        "Where rows have times: a pooled part for each, as 60d,365d,forever, in which newer rows weigh more.",
    ),
    "type": _method(
        list[str], "NAME", "Of several types of nodes, train this one only. May be repeated."
    ),
    "hops": _method(
        int, "N", "Of several types: the steps of the longest path.  [default: 2]", min=1
    ),
    "paths": _method(
        str, "PATH,...", "Of several types: the paths, such as author-paper-author, by name."
    ),
    "lr": _training(
        float,
        "RATE",
        "Highest learning rate of Adam.  [default: by the width, 0.002 at 512]",
    ),
    "patience": _training(
        int,
        "N",
        "Train as in the paper: at a constant rate, until so many epochs had no lower loss.",
    ),
    "steps": _training(int, "N", "Steps of a training in batches.  [default: 200]", min=0),
    "batch": _training(int, "N", "Nodes per step.  [default: 16384, of several types 2048]", min=1),
    "encoder": _part(
        Literal["gcn", "mean-pool", "two-hops"],
        "NAME",
        "gcn, mean-pool, or two-hops: the node, one hop and two side by side.  [default: the preset's]",
    ),
    "layers": _part(int, "N", "Layers of an encoder other than two-hops.", min=1),
    "corruption": _part(
        Literal["shuffle", "flip", "both"], "NAME", "shuffle features, flip edges, or both."
    ),
    "rho": _part(float, "RATE", "Rate of flipped edges.  [default: 0.001]", min=0, max=1),
    "readout": _part(
        Literal["mean", "set2set", "diffpool"],
        "NAME",
        "mean, set2set or diffpool.  [default: mean]",
    ),
    "scale": _part(
        str, "NAME", "auto, rows, columns or none: the scaling of features.  [default: auto]"
    ),
}
"""The options of a training that have no value of their own: a preset, or nothing, stands for them."""

DEFAULT_FLIP_RATE = 1e-3
BATCHES = ("batches", "type-batches")
"""Presets in which an epoch is a step."""
WHOLE_GRAPH_PRESETS = ("auto", "whole-graph", "mean-pool")
PRESETS_WITH_OPTION = {
    "epochs": ("auto", "whole-graph", "mean-pool", "types", "many-graphs"),
    "steps": BATCHES,
    "corruption": WHOLE_GRAPH_PRESETS,
    "rho": WHOLE_GRAPH_PRESETS,
    "encoder": ("auto", "whole-graph", "batches"),
    "layers": ("auto", "whole-graph", "batches", "mean-pool"),
    "batch": BATCHES,
}
"""The presets that an option is for; others are for all."""
PART_NAMES = {
    "encoder": {"gcn": "GCN", "mean-pool": "MeanPool", "two-hops": "TwoHops"},
    "corruption": {"shuffle": "shuffle_features", "flip": "flip_edges", "both": "flip_and_shuffle"},
    "readout": {"mean": "SigmoidMean", "set2set": "Set2Set", "diffpool": "DiffPool"},
}
"""The names that the values of options have in `part_names.PARTS`."""


def build_model(
    user_choices: Mapping[str, Any], node_type: str = "", seed: int | None = None
) -> DGI:
    """The model that the options of `train`, by name, mean for a type of nodes.

    What is out of range or does not fit the preset is refused, before a graph is read.
    """
    from infomax.estimator import DGI

    preset = user_choices["preset"]
    if preset == "auto" and means_batches(user_choices):
        preset = "type-batches" if node_type else "batches"
    parts = _parts(preset, user_choices)
    if node_type:
        parts |= _encoder_along_paths(node_type, parts, user_choices)

    epochs = user_choices["epochs"]
    if user_choices["steps"] is not None:
        epochs = user_choices["steps"]
    if seed is None:
        seed = user_choices["seed"]
    model = DGI(user_choices["dim"], preset=preset, epochs=epochs, seed=seed, **parts)
    same_names = ("lr", "patience", "scale", "vectors", "half_life", "device")
    model.set_params(**{name: user_choices[name] for name in same_names})
    model.settings()
    return model


def means_batches(user_choices: Mapping[str, Any]) -> str:
    """The option by which batches are meant where no preset is named; "" for none."""
    for name in ("steps", "batch"):
        if user_choices[name] is not None:
            return f"--{name}"
    return ""


def words(text: str | None) -> list[str]:
    """The words of a list with commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _parts(preset: str, user_choices: Mapping[str, Any]) -> dict[str, Any]:
    """The parts, as arguments of `DGI`, that the options mean."""
    from infomax.training.part_names import PARTS
    from infomax.training.presets import PRESETS

    for name, presets in PRESETS_WITH_OPTION.items():
        if user_choices[name] is not None and preset not in presets:
            option_name = f"--{name.replace('_', '-')}"
            raise InputError(option_name, f"--preset {' or '.join(presets)}", f"--preset {preset}")

    parts: dict[str, Any] = {}
    for name, part_names in PART_NAMES.items():
        if user_choices[name] is not None:
            parts[name] = PARTS[part_names[user_choices[name]]]
    if user_choices["batch"] is not None:
        parts["views"] = partial(PRESETS[preset].views, batch=user_choices["batch"])

    layers = user_choices["layers"]
    if layers is not None:
        if user_choices["encoder"] == "two-hops":
            raise InputError("--layers", "none with --encoder two-hops", str(layers))
        default_encoder: Any = PRESETS["whole-graph" if preset == "auto" else preset].encoder
        encoder: Any = parts.get("encoder") or partial(default_encoder).func
        parts["encoder"] = partial(encoder, layers=layers)

    rho = user_choices["rho"]
    if user_choices["corruption"] in ("flip", "both"):
        rate = DEFAULT_FLIP_RATE if rho is None else rho
        parts["corruption"] = partial(parts["corruption"], rho=rate)
    elif rho is not None:
        raise InputError("--rho", "--corruption flip or both", user_choices["corruption"] or "none")
    return parts


def _encoder_along_paths(
    node_type: str, parts: Mapping[str, Any], user_choices: Mapping[str, Any]
) -> dict[str, Any]:
    """The encoder of a type of nodes: along the paths that were named and begin at it, else those found."""
    from infomax.parts.encoders import PathMean

    if "encoder" in parts:
        expected = "that along paths, for a graph of several types of nodes"
        raise InputError("encoder", expected, "another", "Leave it out.")
    paths = [path for path in words(user_choices["paths"]) if path.split("-")[0] == node_type]
    if paths:
        return {"encoder": partial(PathMean, paths=paths)}
    return {"encoder": partial(PathMean, hops=user_choices["hops"] or 2)}
