"""Seldom-used settings of a training: ``--set corruption=flip,rho=0.001``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
CHOICES = {
    "encoder": {"gcn": "GCN", "mean-pool": "MeanPool", "two-hops": "TwoHops"},
    "corruption": {"shuffle": "shuffle_features", "flip": "flip_edges", "both": "flip_and_shuffle"},
    "readout": {"mean": "SigmoidMean", "set2set": "Set2Set", "diffpool": "DiffPool"},
    "weighting": {"sample": "", "degree": ""},
}
"""The values of settings that are one of several; of a part, the name that it has in `presets.PARTS`."""
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
        if value not in CHOICES.get(name, (value,)):
            raise InputError(f"--set {name}", f"one of {', '.join(CHOICES[name])}", value)
        try:
            settings[name] = kind(value)
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise InputError(f"--set {name}", expected, value or "nothing") from None
    return settings


def arguments(preset: str, given: Sequence[str], batch: int | None) -> dict[str, Any]:
    """The arguments of `DGI` that the settings and ``--batch`` mean."""
    from infomax.presets import PARTS, PRESETS
    from infomax.views import Batches

    settings = parse(preset, given)
    found: dict[str, Any] = {name: settings[name] for name in ("lr", "scale") if name in settings}
    for name in settings.keys() & {"encoder", "corruption", "readout"}:
        found[name] = PARTS[CHOICES[name][settings[name]]]
    if batch is not None and preset not in ("batches", "type-batches", "patches"):
        raise InputError("--batch", "--preset batches or patches", f"--preset {preset}")
    if batch is not None and preset != "patches":
        found["views"] = partial(Batches, batch=batch)
    elif batch is not None or settings.keys() & {"fan-out", "weighting"}:
        found |= _patches(settings, batch)
    if (layers := settings.get("layers")) is not None:
        if layers < 1 or settings.get("encoder") == "two-hops":
            raise InputError("--set layers", "none with encoder=two-hops" if layers > 0 else "1 or more", str(layers))
        usual: Any = PRESETS["whole-graph" if preset == "auto" else preset].encoder
        encoder: Any = found.get("encoder") or partial(usual).func
        found["encoder"] = partial(encoder, layers=layers)
    named, rho = settings.get("corruption"), settings.get("rho")
    if rho is not None and named not in ("flip", "both"):
        raise InputError("--set rho", "corruption=flip or both", f"corruption={named}" if named else "none")
    if not 0 <= (rho or 0) <= 1:
        raise InputError("--set rho", "a rate from 0 to 1", str(rho))
    if named in ("flip", "both"):
        found["corruption"] = partial(found["corruption"], rho=1e-3 if rho is None else rho)
    return found


def along_paths(kind: str, chosen: Mapping[str, Any], paths: str | None, hops: int | None) -> dict[str, Any]:
    """The arguments of `DGI` for a type of nodes: the paths that were named and begin at it, else those found."""
    from infomax.parts.encoders import PathMean

    if "encoder" in chosen:
        raise InputError(
            "encoder", "that along paths, for a graph of several types of nodes", "another", "Leave it out."
        )
    named = [path for path in words(paths) if path.split("-")[0] == kind]
    return {"encoder": partial(PathMean, paths=named) if named else partial(PathMean, hops=hops or 2)}


def words(text: str | None) -> list[str]:
    """The words of a list with commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _patches(settings: dict[str, Any], batch: int | None) -> dict[str, Any]:
    """The views of patches, and the encoder that fits their fan-out."""
    from infomax.parts.encoders import SkipMeanPool
    from infomax.views import Patches
    from infomax.views.patches import BATCH, FAN_OUT

    settings = {"weighting": "sample", "fan-out": ",".join(map(str, FAN_OUT)), **settings}
    try:
        counts = tuple(int(count) for count in settings["fan-out"].split(","))
        if min(counts) < 1:
            raise ValueError
    except ValueError:
        raise InputError("--set fan-out", "numbers from 1, as in 10,10,25", settings["fan-out"]) from None
    views = partial(Patches, fan_out=counts, batch=batch or BATCH, weighting=settings["weighting"])
    return {"views": views, "encoder": partial(SkipMeanPool, layers=len(counts))}
