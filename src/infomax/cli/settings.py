"""The settings of a training as options of the command line, and the model that they mean."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from infomax.cli.options import option, optional
from infomax.errors import InputError

if TYPE_CHECKING:
    from infomax.estimator import DGI

VECTORS = "What a vector is made of"
TRAINING = "How training goes"
"""Headings of ``infomax train --help``."""
MOST_RUNS = 10_000
"""Each run of a training has a folder."""

_about_vectors = partial(optional, heading=VECTORS)
_about_training = partial(optional, heading=TRAINING)
_hidden = partial(optional, hidden=True)
Preset = Annotated[
    str,
    option(
        "NAME",
        "The set-up to start from: whole-graph, batches, mean-pool or many-graphs. "
        "auto: many-graphs where there are several, else the whole graph if it fits and a CPU "
        "need not be slow, else batches.",
        heading=TRAINING,
    ),
]
Seed = Annotated[
    int, option("N", "Decides the first weights and every corruption.", heading=TRAINING)
]
Runs = Annotated[
    int,
    option(
        "R",
        "Train R encoders, with seeds from --seed on; evaluate shows mean and spread.",
        heading=TRAINING,
        min=1,
        max=MOST_RUNS,
    ),
]
SETTINGS = {
    "vectors": _about_vectors(
        str,
        "PART,...",
        "recipe: encoder,own,pooled,positions; or some of these; or paper: the encoder's own.  "
        "[default: recipe]",
    ),
    "dim": _about_vectors(
        int,
        "N",
        "Width of the encoder, one part of the vectors.  [default: 512]",
    ),
    "half_life": _about_vectors(
        str,
        "LIFE,...",
        "Where rows have times: a pooled part for each, as 60d,365d,forever, in which newer rows "
        "weigh more.",
    ),
    "type": _about_vectors(
        list[str], "NAME", "Of several types of nodes, train this one only. May be repeated."
    ),
    "paths": _about_vectors(
        str, "PATH,...", "Of several types: the paths, such as author-paper-author, by name."
    ),
    "encoder": _about_training(
        Literal["gcn", "mean-pool", "two-hops"],
        "NAME",
        "gcn, mean-pool, or two-hops: the node, one hop and two side by side.  "
        "[default: the preset's]",
    ),
    "epochs": _about_training(
        int,
        "N",
        "Train so many epochs, with --patience at most so many; 0 is Random-Init.  "
        "[default: the preset's]",
    ),
    "patience": _about_training(
        int,
        "N",
        "Train as in the paper: at a constant rate, until so many epochs had no lower loss.",
    ),
    "hold_out_edges": _about_training(
        float,
        "SHARE",
        "Set a share of the edges aside, as 0.1, for evaluate RUN --edges.",
    ),
    # A preset stands for the following, which are for experiments.
    "lr": _hidden(
        float, "RATE", "Highest learning rate of Adam.  [default: by the width, 0.002 at 512]"
    ),
    "steps": _hidden(int, "N", "Steps of a training in batches.  [default: 200]", min=0),
    "batch": _hidden(int, "N", "Nodes per step.  [default: 16384, of several types 2048]", min=1),
    "hops": _hidden(
        int, "N", "Of several types: the steps of the longest path.  [default: 2]", min=1
    ),
    "layers": _hidden(int, "N", "Layers of an encoder other than two-hops.", min=1),
    "corruption": _hidden(
        Literal["shuffle", "flip", "both"], "NAME", "shuffle features, flip edges, or both."
    ),
    "rho": _hidden(float, "RATE", "Rate of flipped edges.  [default: 0.001]", min=0, max=1),
    "readout": _hidden(
        Literal["mean", "set2set", "diffpool"],
        "NAME",
        "mean, set2set or diffpool.  [default: mean]",
    ),
    "scale": _hidden(
        str, "NAME", "auto, rows, columns or none: the scaling of features.  [default: auto]"
    ),
}
"""The options of a training that have no value of their own: without one, the preset decides."""

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
"""The presets that an option is for. Options that are not here are for all presets."""
PART_NAMES = {
    "encoder": {"gcn": "GCN", "mean-pool": "MeanPool", "two-hops": "TwoHops"},
    "corruption": {"shuffle": "shuffle_features", "flip": "flip_edges", "both": "flip_and_shuffle"},
    "readout": {"mean": "SigmoidMean", "set2set": "Set2Set", "diffpool": "DiffPool"},
}
"""The names that the values of options have in `part_names.PARTS`."""


def build_model(
    user_choices: Mapping[str, Any], node_type: str = "", seed: int | None = None
) -> DGI:
    """The model that the options of `train` mean for a type of nodes.

    A value that is out of range or does not fit the preset is refused, before a graph is read.

    Args:
        user_choices: the options of `train` by name.
        node_type: the type of nodes; "" for a graph of one type.
        seed: the seed, of several runs; None: as the options say.
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
    """The option that asks for batches where no preset is named; "" where none does."""
    for name in ("steps", "batch"):
        if user_choices[name] is not None:
            return f"--{name}"
    return ""


def split_list(text: str | None) -> list[str]:
    """The entries of a list with commas."""
    entries = [entry.strip() for entry in (text or "").split(",")]
    return [entry for entry in entries if entry]


def _parts(preset: str, user_choices: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `DGI` for the parts that the options name."""
    from infomax.training.part_names import PARTS_BY_NAME
    from infomax.training.presets import PRESETS

    for name, presets in PRESETS_WITH_OPTION.items():
        if user_choices[name] is not None and preset not in presets:
            option_name = f"--{name.replace('_', '-')}"
            raise InputError(option_name, f"--preset {' or '.join(presets)}", f"--preset {preset}")

    parts: dict[str, Any] = {}
    for name, part_names in PART_NAMES.items():
        if user_choices[name] is not None:
            parts[name] = PARTS_BY_NAME[part_names[user_choices[name]]]
    if user_choices["batch"] is not None:
        parts["views"] = partial(PRESETS[preset].views, batch=user_choices["batch"])
    if user_choices["layers"] is not None:
        parts["encoder"] = _encoder_of_layers(preset, parts.get("encoder"), user_choices)

    rho = user_choices["rho"]
    if user_choices["corruption"] in ("flip", "both"):
        rate = DEFAULT_FLIP_RATE if rho is None else rho
        parts["corruption"] = partial(parts["corruption"], rho=rate)
    elif rho is not None:
        found = user_choices["corruption"] or "none"
        raise InputError("--rho", "--corruption flip or both", found)
    return parts


def _encoder_of_layers(preset: str, named_encoder: Any, user_choices: Mapping[str, Any]) -> Any:
    """An encoder with so many layers: the one that a person named, else that of the preset."""
    from infomax.training.presets import PRESETS

    layers = user_choices["layers"]
    if user_choices["encoder"] == "two-hops":
        raise InputError("--layers", "none with --encoder two-hops", str(layers))
    encoder = named_encoder
    if encoder is None:
        preset_encoder: Any = PRESETS["whole-graph" if preset == "auto" else preset].encoder
        # A preset may have fixed its own number of layers.
        encoder = partial(preset_encoder).func
    return partial(encoder, layers=layers)


def _encoder_along_paths(
    node_type: str, parts: Mapping[str, Any], user_choices: Mapping[str, Any]
) -> dict[str, Any]:
    """The encoder of a type of nodes, as an argument of `DGI`.

    It reads along the paths that a person named and that begin at the type, else along all paths
    of so many hops.
    """
    from infomax.parts.encoders import PathMean

    if "encoder" in parts:
        expected = "that along paths, for a graph of several types of nodes"
        raise InputError("encoder", expected, "another", "Leave it out.")
    paths = [path for path in split_list(user_choices["paths"]) if path.split("-")[0] == node_type]
    if paths:
        return {"encoder": partial(PathMean, paths=paths)}
    return {"encoder": partial(PathMean, hops=user_choices["hops"] or 2)}
