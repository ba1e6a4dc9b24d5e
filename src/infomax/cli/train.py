"""infomax train."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from infomax.cli import show
from infomax.cli.app import Grouped, app
from infomax.cli.options import (
    COLUMNS,
    GRAPH,
    GROUPS,
    METHOD,
    TRAINING,
    Device,
    Directed,
    GraphArgument,
    Labels,
    choosing,
    open_graph,
)


@app.command(cls=Grouped)
@choosing(COLUMNS | GROUPS)
def train(
    graph: GraphArgument,
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder to write.")],
    labels: Labels = None,
    dim: Annotated[
        int | None, typer.Option(metavar="N", help="Width of the vectors; patches' are twice as wide.  [default: 512]")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Train so many epochs, with --patience at most so many; 0 is Random-Init.  [default: the preset's]",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a training was interrupted; start where there is none.")
    ] = False,
    directed: Directed = None,
    hold_out_edges: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Set this share of the edges aside, such as 0.1: evaluate RUN --edges scores on them.",
            rich_help_panel=GRAPH,
        ),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The set-up to start from: whole-graph, batches, mean-pool, patches (the paper's, for Reddit) or "
            "many-graphs. auto: many-graphs where there are several, else the whole graph if it fits, else batches.",
            rich_help_panel=METHOD,
        ),
    ] = "auto",
    layers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Layers of the encoder.  [default: the preset's]", rich_help_panel=METHOD),
    ] = None,
    fan_out: Annotated[
        str | None,
        typer.Option(
            metavar="K,K,...",
            help="Neighbours drawn at each level of a patch; a layer each.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    weighting: Annotated[
        str | None,
        typer.Option(
            metavar="sample|degree",
            help="Weight of a node among its drawn neighbours, in patches: by their number, as in the paper, or by its "
            "degree, as in the whole graph.  [default: sample]",
            rich_help_panel=METHOD,
        ),
    ] = None,
    corruption: Annotated[
        str | None,
        typer.Option(
            metavar="shuffle|flip|both",
            help="The negative sample: features, edges, or both.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    rho: Annotated[
        float | None,
        typer.Option(
            metavar="RATE", help="Rate of flipped edges, for flip and both.  [default: 0.001]", rich_help_panel=METHOD
        ),
    ] = None,
    readout: Annotated[
        str | None, typer.Option(metavar="mean|set2set|diffpool", help="The summary.", rich_help_panel=METHOD)
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="auto|rows|columns|none",
            help="Scaling of the features.  [default: the preset's]",
            rich_help_panel=METHOD,
        ),
    ] = None,
    smooth: Annotated[
        int | None,
        typer.Option(
            metavar="HOPS",
            help="Smooth the vectors of this run over so many hops, such as 5: helps where labels follow communities.",
            min=0,
            rich_help_panel=METHOD,
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Stop after so many epochs without a lower loss.  [default: the preset's]",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(metavar="RATE", help="Adam's learning rate.  [default: the preset's]", rich_help_panel=TRAINING),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Steps of a training in batches.  [default: 300]",
            min=0,
            rich_help_panel=TRAINING,
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Nodes per step, in batches or patches.  [default: 16384 or 256]",
            min=1,
            rich_help_panel=TRAINING,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Decides the first weights and every corruption.", rich_help_panel=TRAINING),
    ] = 0,
    device: Device = "auto",
    *,
    columns: dict[str, Any],
) -> None:
    """Train on a graph; writes a run folder."""
    from infomax.cli.torchrun import joined
    from infomax.estimator import DGI
    from infomax.kernels.device import choose_device
    from infomax.training import runs
    from infomax.training.resuming import refuse_other_run

    began = time.monotonic()
    with joined(device) as ranks:
        with ranks.together():
            if ranks.rank == 0:
                runs.refuse_busy(out)
            if not resume:
                runs.refuse_model(out)
            asked = "--steps" if steps is not None else "--batch" if batch is not None else ""
            automatic = preset == "auto"
            if automatic and asked:
                preset = "batches"
            model = DGI(
                dim,
                preset=preset,
                epochs=_length(preset, epochs, steps),
                patience=patience,
                lr=lr,
                scale=scale,  # type: ignore[arg-type]  # checked where it is used
                smooth=smooth,
                seed=seed,
                device=device,
                **_views(preset, fan_out, batch, weighting) | _parts(preset, layers, corruption, rho, readout),
            )
            model.settings()  # refuses what is out of range before the graph is read
            place = choose_device(device)
            source = open_graph(graph, labels, directed, columns)
            show.log.print(f"{source!r}, labels: {', '.join(source.labels) or 'none'}")
            if source.edge_columns:
                show.log.print(f"no columns source and target: edges run from, to: {', '.join(source.edge_columns)}")
            if hold_out_edges is not None:
                before = source.num_edges
                source = source.hold_out_edges(hold_out_edges, seed)
                held_out = f"held out {before - source.num_edges:,} of {before:,} edges"
                show.log.print(f"{held_out}; to score on them: infomax evaluate {out} --edges")
            chosen, reason = model.choose_preset(source, place, out)
            if automatic:
                show.log.print(f"preset {chosen}: {f'{asked} was given' if asked else reason}")
                model.preset = chosen
            if resume and (out / runs.MODEL).exists():
                refuse_other_run(out, source, model.settings(chosen).describe(), seed)
                show.out.print(f"{out} holds a finished run already: nothing to resume.")
                return
        with show.training_progress(
            "steps" if chosen == "batches" else "epochs", "Go on with the same command and --resume."
        ) as progress:
            model.fit(source, run=out, progress=progress)
        if ranks.rank == 0:
            show.health(model.health_)
            show.wrote(f"{out}/", began)


def _parts(
    preset: str, layers: int | None, corruption: str | None, rho: float | None, readout: str | None
) -> dict[str, Any]:
    """The parts that the options name."""
    from functools import partial

    from infomax.errors import InputError
    from infomax.parts.corruptions import flip_and_shuffle, flip_edges, shuffle_features
    from infomax.parts.encoders import GCN, MeanPool, SkipMeanPool
    from infomax.parts.readouts import DiffPool, Set2Set, SigmoidMean

    if rho is not None and corruption not in ("flip", "both"):
        raise InputError("--rho", "--corruption flip or both", f"--corruption {corruption or 'left out'}")
    rho = 1e-3 if rho is None else rho
    encoders = {"auto": GCN, "whole-graph": GCN, "batches": GCN, "mean-pool": MeanPool, "patches": SkipMeanPool}
    corruptions = {
        "shuffle": shuffle_features,
        "flip": partial(flip_edges, rho=rho),
        "both": partial(flip_and_shuffle, rho=rho),
    }
    readouts = {"mean": SigmoidMean, "set2set": Set2Set, "diffpool": DiffPool}
    parts: dict[str, Any] = {}
    if layers is not None:
        if layers < 1 or preset not in encoders:
            found = f"{layers} with --preset {preset}"
            raise InputError("--layers", f"1 or more, with --preset {', '.join(encoders)}", found)
        parts["encoder"] = partial(encoders[preset], layers=layers)
    if not 0 <= rho <= 1:
        raise InputError("--rho", "a rate from 0 to 1", str(rho))
    if corruption is not None and preset not in ("auto", "whole-graph", "mean-pool"):
        raise InputError("--corruption", "--preset whole-graph or mean-pool", f"--preset {preset}")
    for option, given, known in (("corruption", corruption, corruptions), ("readout", readout, readouts)):
        if given is not None:
            if given not in known:
                raise InputError(f"--{option}", f"one of {', '.join(known)}", given)
            parts[option] = known[given]
    return parts


def _length(preset: str, epochs: int | None, steps: int | None) -> int | None:
    """Epochs to train; in batches an epoch is a step."""
    from infomax.errors import InputError

    if steps is None:
        if epochs is not None and preset == "batches":
            raise InputError("--epochs", "--steps, with --preset batches", f"--epochs {epochs}")
        return epochs
    if preset != "batches":
        raise InputError("--steps", "--preset batches", f"--preset {preset}")
    if epochs is not None:
        raise InputError("train", "--steps or --epochs", "both")
    return steps


def _views(preset: str, fan_out: str | None, batch: int | None, weighting: str | None) -> dict[str, Any]:
    """The views of batches or patches with these settings, and the encoder that fits the fan-out of patches."""
    from functools import partial

    from infomax.errors import InputError
    from infomax.parts.encoders import SkipMeanPool
    from infomax.views import Batches, Patches
    from infomax.views.batches import BATCH
    from infomax.views.patches import BATCH as CENTRES
    from infomax.views.patches import FAN_OUT, Weighting

    for option, given in (("--fan-out", fan_out), ("--weighting", weighting)):
        if given is not None and preset != "patches":
            raise InputError(option, "--preset patches", f"--preset {preset}")
    if batch is not None and preset not in ("batches", "patches"):
        raise InputError("--batch", "--preset batches or patches", f"--preset {preset}")
    if fan_out is None and batch is None and weighting is None:
        return {}
    if preset == "batches":
        return {"views": partial(Batches, batch=batch or BATCH)}
    try:
        counts = FAN_OUT if fan_out is None else tuple(int(count) for count in fan_out.split(","))
        if min(counts) < 1:
            raise ValueError
    except ValueError:
        raise InputError("--fan-out", "numbers from 1, as in 10,10,25", str(fan_out)) from None
    weighting = weighting or "sample"
    if weighting not in get_args(Weighting):
        raise InputError("--weighting", " or ".join(get_args(Weighting)), weighting)
    views = partial(Patches, fan_out=counts, batch=batch or CENTRES, weighting=weighting)  # type: ignore[arg-type]
    return {"views": views, "encoder": partial(SkipMeanPool, layers=len(counts))}
