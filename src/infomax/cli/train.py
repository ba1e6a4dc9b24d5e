"""infomax train."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from infomax.cli import settings, show
from infomax.cli.app import Grouped, app
from infomax.cli.options import (
    COLUMNS,
    GRAPH,
    GROUPS,
    Device,
    Directed,
    GraphArgument,
    Labels,
    choosing,
    grouping,
    open_graph,
)
from infomax.errors import InputError

if TYPE_CHECKING:
    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph


@dataclass(frozen=True)
class Method:
    """What is trained."""

    heading: ClassVar = "Method"
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The set-up to start from: whole-graph, batches, mean-pool, patches (the paper's, for Reddit) or "
            "many-graphs. auto: many-graphs where there are several, else the whole graph if it fits, else batches.",
        ),
    ] = "auto"
    smooth: Annotated[
        int | None,
        typer.Option(
            metavar="HOPS",
            help="Smooth the vectors of this run over so many hops, such as 5: helps where labels follow communities.",
            min=0,
        ),
    ] = None
    own: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Set K singular vectors of the node's own features beside its vector, such as 128: helps where "
            "neighbours differ.",
            min=0,
        ),
    ] = None
    given: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE,...", help=settings.HELP)] = None


@dataclass(frozen=True)
class Schedule:
    """How it is trained."""

    heading: ClassVar = "Training"
    patience: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop after so many epochs without a lower loss.  [default: the preset's]"),
    ] = None
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Steps of a training in batches.  [default: 300]", min=0)
    ] = None
    batch: Annotated[
        int | None,
        typer.Option(metavar="N", help="Nodes per step, in batches or patches.  [default: 16384 or 256]", min=1),
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Decides the first weights and every corruption.")] = 0

    @property
    def of_batches(self) -> str:
        """The option by which batches are meant where no preset is named; "" for none."""
        return "--steps" if self.steps is not None else "--batch" if self.batch is not None else ""


@app.command(cls=Grouped)
@choosing(COLUMNS | GROUPS)
@grouping
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
    *,
    method: Method,
    schedule: Schedule,
    device: Device = "auto",
    columns: dict[str, Any],
) -> None:
    """Train on a graph; writes a run folder."""
    from infomax.arrays import made
    from infomax.cli.torchrun import joined
    from infomax.kernels.device import choose_device
    from infomax.training import runs
    from infomax.training.resuming import refuse_other_run
    from infomax.training.verdict import words

    began = time.monotonic()
    with joined(device) as ranks:
        with ranks.together():
            if ranks.rank == 0:
                runs.refuse_busy(out)
            if not resume:
                runs.refuse_model(out)
            model = _model(dim, epochs, method, schedule, device)
            place = choose_device(device)
            source = open_graph(graph, labels, directed, columns)
            show.log.print(f"{source!r}, labels: {', '.join(source.labels) or 'none'}")
            if features := made.told(source.feature_names):
                show.log.print(features)
            if source.edge_columns:
                show.log.print(f"no columns source and target: edges run from, to: {', '.join(source.edge_columns)}")
            if hold_out_edges is not None:
                source = _hold_out(source, hold_out_edges, schedule.seed, out)
            chosen, reason = model.choose_preset(source, place, out)
            if method.preset == "auto":
                told = f"{schedule.of_batches} was given" if schedule.of_batches else reason
                show.log.print(f"preset {chosen}: {told}")
                model.preset = chosen
            if resume and (out / runs.MODEL).exists():
                refuse_other_run(out, source, model.settings(chosen).describe(), schedule.seed)
                show.out.print(f"{out} holds a finished run already: nothing to resume.")
                return
        with show.training_progress(
            "steps" if chosen == "batches" else "epochs", "Go on with the same command and --resume."
        ) as progress:
            model.fit(source, run=out, progress=progress)
        if ranks.rank == 0:
            show.health(model.health_)
            show.wrote(f"{out}/", began)
            show.out.print(words(model.health_["verdict"]))


def _model(dim: int | None, epochs: int | None, method: Method, schedule: Schedule, device: str) -> DGI:
    """The model that the options mean; what is out of range is refused, before the graph is read."""
    from infomax.estimator import DGI

    preset = "batches" if method.preset == "auto" and schedule.of_batches else method.preset
    model = DGI(
        dim,
        preset=preset,
        epochs=_length(preset, epochs, schedule.steps),
        patience=schedule.patience,
        smooth=method.smooth,
        own=method.own,
        seed=schedule.seed,
        device=device,
        **settings.arguments(preset, method.given or (), schedule.batch),
    )
    model.settings()
    return model


def _length(preset: str, epochs: int | None, steps: int | None) -> int | None:
    """Epochs to train; in batches an epoch is a step."""
    if steps is None:
        if epochs is not None and preset == "batches":
            raise InputError("--epochs", "--steps, with --preset batches", f"--epochs {epochs}")
        return epochs
    if preset != "batches":
        raise InputError("--steps", "--preset batches", f"--preset {preset}")
    if epochs is not None:
        raise InputError("train", "--steps or --epochs", "both")
    return steps


def _hold_out(graph: Graph, share: float, seed: int, out: Path) -> Graph:
    """The graph without a share of its edges; says how many."""
    left = graph.hold_out_edges(share, seed)
    told = f"held out {graph.num_edges - left.num_edges:,} of {graph.num_edges:,} edges"
    show.log.print(f"{told}; to score on them: infomax evaluate {out} --edges")
    return left
