"""The parts of a training as options of the command line, and the arguments of `DGI` that they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any, ClassVar

import typer

from infomax.errors import InputError


@dataclass(frozen=True)
class Parts:
    """What the method is made of."""

    heading: ClassVar = "Parts"
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="gcn, mean-pool, or two-hops: the node itself beside one hop and two, each --dim wide.  [default: the "
            "preset's]",
        ),
    ] = None
    layers: Annotated[
        int | None, typer.Option(metavar="N", help="Layers of an encoder other than two-hops.", min=1)
    ] = None
    corruption: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="shuffle, flip or both: of features, of edges, or of both."),
    ] = None
    rho: Annotated[
        float | None, typer.Option(metavar="RATE", help="Rate of flipped edges.  [default: 0.001]", min=0, max=1)
    ] = None
    readout: Annotated[
        str | None, typer.Option(metavar="NAME", help="mean, set2set or diffpool: the summary.  [default: mean]")
    ] = None
    scale: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="auto, rows, columns or none: the scaling of features.  [default: auto]"),
    ] = None
    fan_out: Annotated[
        str | None,
        typer.Option(metavar="K,K,...", help="Of patches: the neighbours drawn at each level, a layer each."),
    ] = None
    weighting: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of patches: sample or degree. The weight of a node among those drawn, by their number, as in the "
            "paper, or by degree, as in the whole graph.",
        ),
    ] = None


WHOLE, ANY = ("auto", "whole-graph", "mean-pool"), ("auto", "whole-graph", "batches", "mean-pool", "patches")
PRESETS_WITH = {
    "corruption": WHOLE,
    "rho": WHOLE,
    "encoder": ("auto", "whole-graph", "batches"),
    "layers": ANY,
    "fan_out": ("patches",),
    "weighting": ("patches",),
}
"""The presets that have a part; others are in all."""
CHOICES = {
    "encoder": {"gcn": "GCN", "mean-pool": "MeanPool", "two-hops": "TwoHops"},
    "corruption": {"shuffle": "shuffle_features", "flip": "flip_edges", "both": "flip_and_shuffle"},
    "readout": {"mean": "SigmoidMean", "set2set": "Set2Set", "diffpool": "DiffPool"},
    "weighting": {"sample": "", "degree": ""},
}
"""The values of options that are one of several; of a part, the name that it has in `presets.PARTS`."""


def arguments(preset: str, parts: Parts, batch: int | None) -> dict[str, Any]:
    """The arguments of `DGI` that the parts and ``--batch`` mean."""
    from infomax.presets import PARTS, PRESETS
    from infomax.views import Batches

    given = {field.name: value for field in fields(parts) if (value := getattr(parts, field.name)) is not None}
    _check(preset, given)
    found: dict[str, Any] = {"scale": parts.scale} if parts.scale else {}
    found |= {name: PARTS[CHOICES[name][given[name]]] for name in ("encoder", "corruption", "readout") if name in given}
    if batch is not None and preset not in ("batches", "type-batches", "patches"):
        raise InputError("--batch", "--preset batches or patches", f"--preset {preset}")
    if batch is not None and preset != "patches":
        found["views"] = partial(Batches, batch=batch)
    elif batch is not None or parts.fan_out or parts.weighting:
        found |= _patches(parts, batch)
    if parts.layers is not None:
        if parts.encoder == "two-hops":
            raise InputError("--layers", "none with --encoder two-hops", str(parts.layers))
        of_preset: Any = PRESETS["whole-graph" if preset == "auto" else preset].encoder
        encoder: Any = found.get("encoder") or partial(of_preset).func
        found["encoder"] = partial(encoder, layers=parts.layers)
    if parts.corruption in ("flip", "both"):
        found["corruption"] = partial(found["corruption"], rho=1e-3 if parts.rho is None else parts.rho)
    elif parts.rho is not None:
        raise InputError("--rho", "--corruption flip or both", parts.corruption or "none")
    return found


def _check(preset: str, given: Mapping[str, Any]) -> None:
    """Refuse parts that a preset does not have, and names that no part has."""
    for name, value in given.items():
        option, presets = f"--{name.replace('_', '-')}", PRESETS_WITH.get(name, (preset,))
        if preset not in presets:
            raise InputError(option, f"--preset {' or '.join(presets)}", f"--preset {preset}")
        if value not in CHOICES.get(name, (value,)):
            raise InputError(option, f"one of {', '.join(CHOICES[name])}", str(value))


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


def _patches(parts: Parts, batch: int | None) -> dict[str, Any]:
    """The views of patches, and the encoder that fits their fan-out."""
    from infomax.parts.encoders import SkipMeanPool
    from infomax.views import Patches
    from infomax.views.patches import BATCH, FAN_OUT

    counts: tuple[int, ...] = FAN_OUT
    weighting: Any = parts.weighting or "sample"
    if parts.fan_out:
        try:
            counts = tuple(int(count) for count in parts.fan_out.split(","))
        except ValueError:
            counts = (0,)
    if min(counts) < 1:
        raise InputError("--fan-out", "numbers from 1, as in 10,10,25", str(parts.fan_out))
    views = partial(Patches, fan_out=counts, batch=batch or BATCH, weighting=weighting)
    return {"views": views, "encoder": partial(SkipMeanPool, layers=len(counts))}
