"""Seldom-used settings of a training: ``--set corruption=flip,rho=0.001``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from infomax.errors import InputError

WHOLE, ANY = ("auto", "whole-graph", "mean-pool"), ("auto", "whole-graph", "batches", "mean-pool", "patches")
SETTINGS: dict[str, tuple[type, tuple[str, ...]]] = {
    "lr": (float, ()),
    "scale": (str, ()),
    "readout": (str, ()),
    "corruption": (str, WHOLE),
    "rho": (float, WHOLE),
    "encoder": (str, ("auto", "whole-graph", "batches")),
    "layers": (int, ANY),
    "fan-out": (str, ("patches",)),
    "weighting": (str, ("patches",)),
}
"""The names that ``--set`` knows: the type of the value, and the presets that have such a setting (none: all)."""
HELP = (
    "What is seldom set, as in corruption=flip,rho=0.001; may be repeated. lr=RATE of Adam; "
    "scale=auto|rows|columns|none of the features; encoder=gcn|mean-pool|two-hops: the node itself beside one hop and "
    "two, each --dim wide; layers=N of the other encoders; corruption=shuffle|flip|both: features, edges, or both; "
    "rho=RATE of flipped edges (0.001); readout=mean|set2set|diffpool, the summary. Of patches: "
    "fan-out=K,K,..., the neighbours drawn at each level, a layer each; weighting=sample|degree of a node among them: "
    "by their number, as in the paper, or by degree, as in the whole graph."
)


def parse(preset: str, given: Sequence[str]) -> dict[str, Any]:
    """The settings by name; a value may have commas, as in ``fan-out=10,10,25``."""
    pairs: list[str] = []
    for piece in (piece for text in given for piece in text.split(",")):
        if "=" in piece or not pairs:
            pairs.append(piece)
        else:
            pairs[-1] += f",{piece}"
    settings: dict[str, Any] = {}
    for name, sign, value in (pair.partition("=") for pair in pairs):
        if not sign or name not in SETTINGS:
            raise InputError("--set", f"NAME=VALUE, with one of the names {', '.join(SETTINGS)}", name + sign + value)
        kind, presets = SETTINGS[name]
        if presets and preset not in presets:
            raise InputError(f"--set {name}", f"--preset {' or '.join(presets)}", f"--preset {preset}")
        try:
            settings[name] = kind(value)
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise InputError(f"--set {name}", expected, value or "nothing") from None
    return settings


def arguments(preset: str, given: Sequence[str], batch: int | None) -> dict[str, Any]:
    """The arguments of `DGI` that the settings and ``--batch`` mean."""
    from infomax.parts.encoders import GCN, MeanPool, SkipMeanPool, TwoHops
    from infomax.parts.readouts import DiffPool, Set2Set, SigmoidMean
    from infomax.views import Batches

    settings = parse(preset, given)
    found: dict[str, Any] = {name: settings[name] for name in ("lr", "scale") if name in settings}
    if batch is not None and preset not in ("batches", "type-batches", "patches"):
        raise InputError("--batch", "--preset batches or patches", f"--preset {preset}")
    if batch is not None and preset != "patches":
        found["views"] = partial(Batches, batch=batch)
    elif batch is not None or settings.keys() & {"fan-out", "weighting"}:
        found |= _patches(settings, batch)
    encoder: Any = {"mean-pool": MeanPool, "patches": SkipMeanPool}.get(preset, GCN)
    if "encoder" in settings:
        encoder = _one_of("encoder", settings, {"gcn": GCN, "mean-pool": MeanPool, "two-hops": TwoHops})
        found["encoder"] = encoder
    if (layers := settings.get("layers")) is not None:
        if layers < 1 or encoder is TwoHops:
            raise InputError("--set layers", "none with encoder=two-hops" if layers > 0 else "1 or more", str(layers))
        found["encoder"] = partial(encoder, layers=layers)
    if settings.keys() & {"corruption", "rho"}:
        found["corruption"] = _corruption(settings)
    if "readout" in settings:
        found["readout"] = _one_of("readout", settings, {"mean": SigmoidMean, "set2set": Set2Set, "diffpool": DiffPool})
    return found


def along_paths(kind: str, paths: str | None, hops: int | None) -> dict[str, Any]:
    """The arguments of `DGI` for a type of nodes: the paths that were named and begin at it, else those found."""
    from infomax.parts.encoders import PathMean

    named = [path for path in (paths or "").split(",") if path.split("-")[0] == kind]
    return {"encoder": partial(PathMean, paths=named) if named else partial(PathMean, hops=hops or 2)}


def _one_of(name: str, settings: dict[str, Any], known: dict[str, Any]) -> Any:
    """What the value of a setting stands for."""
    if settings[name] not in known:
        raise InputError(f"--set {name}", f"one of {', '.join(known)}", settings[name])
    return known[settings[name]]


def _corruption(settings: dict[str, Any]) -> Any:
    """The corruption, with its rate where it flips edges."""
    from infomax.parts.corruptions import flip_and_shuffle, flip_edges, shuffle_features

    named, rho = settings.get("corruption"), settings.get("rho", 1e-3)
    if "rho" in settings and named not in ("flip", "both"):
        raise InputError("--set rho", "corruption=flip or both", f"corruption={named}" if named else "none")
    if not 0 <= rho <= 1:
        raise InputError("--set rho", "a rate from 0 to 1", str(rho))
    flips = {"flip": partial(flip_edges, rho=rho), "both": partial(flip_and_shuffle, rho=rho)}
    return _one_of("corruption", settings, {"shuffle": shuffle_features, **flips})


def _patches(settings: dict[str, Any], batch: int | None) -> dict[str, Any]:
    """The views of patches, and the encoder that fits their fan-out."""
    from typing import get_args

    from infomax.parts.encoders import SkipMeanPool
    from infomax.views import Patches
    from infomax.views.patches import BATCH, FAN_OUT, Weighting

    settings = {"weighting": "sample", "fan-out": ",".join(map(str, FAN_OUT)), **settings}
    weighting = _one_of("weighting", settings, {name: name for name in get_args(Weighting)})
    try:
        counts = tuple(int(count) for count in settings["fan-out"].split(","))
        if min(counts) < 1:
            raise ValueError
    except ValueError:
        raise InputError("--set fan-out", "numbers from 1, as in 10,10,25", settings["fan-out"]) from None
    views = partial(Patches, fan_out=counts, batch=batch or BATCH, weighting=weighting)
    return {"views": views, "encoder": partial(SkipMeanPool, layers=len(counts))}
