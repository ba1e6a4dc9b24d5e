"""infomax train."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
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
    Gone,
    GraphArgument,
    Labels,
    NodesArgument,
    choosing,
    grouping,
    open_graph,
    threaded,
)
from infomax.errors import InputError, shorten

if TYPE_CHECKING:
    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph
    from infomax.kernels.ranks import Ranks

BATCHES = ("batches", "type-batches")
"""Presets in which an epoch is a step."""


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
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="PART,...",
            help="What vectors are made of: recipe, which is encoder,own,pooled,positions; some of these; or paper, "
            "the encoder's output alone.  [default: recipe]",
        ),
    ] = None
    smooth: Gone = None
    own: Gone = None
    type: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Of several types of nodes, train this one only. May be repeated."),
    ] = None
    hops: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Of several types: follow paths of up to so many steps to nodes with features.  [default: 2]",
            min=1,
        ),
    ] = None
    paths: Annotated[
        str | None,
        typer.Option(metavar="PATH,...", help="Of several types: the paths, such as author-paper-author, by name."),
    ] = None


@dataclass(frozen=True)
class Schedule:
    """How it is trained."""

    heading: ClassVar = "Training"
    lr: Annotated[
        float | None, typer.Option(metavar="RATE", help="Learning rate of Adam.  [default: the preset's]")
    ] = None
    patience: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop after so many epochs without a lower loss.  [default: the preset's]"),
    ] = None
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Steps of a training in batches.  [default: 300]", min=0)
    ] = None
    batch: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Nodes per step, in batches or patches.  [default: 16384, of several types 2048; 256 patches]",
            min=1,
        ),
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Decides the first weights and every corruption.")] = 0
    runs: Annotated[
        int,
        typer.Option(
            metavar="R", help="Train R encoders, with seeds from --seed on; evaluate shows mean and spread.", min=1
        ),
    ] = 1

    @property
    def of_batches(self) -> str:
        """The option by which batches are meant where no preset is named; "" for none."""
        return "--steps" if self.steps is not None else "--batch" if self.batch is not None else ""


@app.command(cls=Grouped)
@threaded
@choosing(COLUMNS | GROUPS)
@grouping
def train(
    graph: GraphArgument,
    nodes: NodesArgument = None,
    *,
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
    method: Method,
    schedule: Schedule,
    parts: settings.Parts,
    device: Device = "auto",
    columns: dict[str, Any],
) -> None:
    """Train on a graph; writes a run folder. Of several types of nodes, each is trained, into a folder of its own."""
    from infomax.cli.torchrun import joined
    from infomax.training import runs

    def model(kind: str = "") -> DGI:
        return _model(dim, epochs, method, schedule, parts, device, kind)

    with joined(device) as ranks:
        with ranks.together():
            model()
            for folder in [out, *(out / kind for kind in method.type or ())]:
                _refuse(folder, ranks.rank, resume)
            source = open_graph(graph, labels, directed, columns, nodes=nodes)
            known = [name for one in source.nodes.values() for name in one.labels]
            show.log.print(f"{source!r}, labels: {', '.join(known) or 'none'}")
            if source.edge_columns:
                show.log.print(f"no columns source and target: edges run from, to: {', '.join(source.edge_columns)}")
            targets = _targets(source, method, columns)
            for kind, one in targets.items() if source.kind else ():
                _refuse(out / kind, ranks.rank, resume)
                model(kind).choose(one)  # refuses what does not fit the type
            names = [Path(kind, name) for kind in targets for name in _seeds(schedule)]
            runs.refuse_hidden(out, names)
        several = ranks.rank == 0 and names != [Path()]
        with runs.listing(out, names) if several else nullcontext():
            for kind, one in targets.items():
                _tell_features(one)
                if hold_out_edges is not None:
                    everything, one = one.num_edges, one.hold_out_edges(hold_out_edges, schedule.seed)
                    told = f"held out {everything - one.num_edges:,} of {everything:,} edges"
                    show.log.print(f"{told}; to score on them: infomax evaluate {out} --edges")
                if method.preset == "auto" and schedule.of_batches:
                    show.log.print(f"preset {model(kind).preset}: {schedule.of_batches} was given")
                models = {out / kind / name: model(kind).set_params(seed=n) for name, n in _seeds(schedule).items()}
                _train_models(models, one, resume, ranks)


def _targets(source: Graph, method: Method, columns: Mapping[str, Any]) -> dict[str, Graph]:
    """The graph as seen from each type to train, or by "" the graph of one type; refuse options that do not fit it."""
    if not source.kind and (method.type or method.paths or method.hops):
        raise InputError("--type, --paths, --hops", "a graph of several types of nodes", "one type")
    if (kind := columns.get("target")) in source.types and not columns.get("source"):
        remedy = f"To train this type alone: --type {kind}."
        raise InputError("--target", "a column of the edge tables", f"the type {kind}", remedy)
    targets = {kind: source.target(kind) for kind in method.type or source.types} or {"": source}
    begun = [path for path in settings.words(method.paths) if path.split("-")[0] not in targets]
    if begun:
        raise InputError("--paths", f"paths that begin at {' or '.join(targets)}", shorten(begun[0]))
    return targets


def _seeds(schedule: Schedule) -> dict[str, int]:
    """The name below the run folder and the seed of each encoder to train; one alone has no name."""
    seeds = range(schedule.seed, schedule.seed + schedule.runs)
    return {f"seed-{seed}" if schedule.runs > 1 else "": seed for seed in seeds}


def _tell_features(graph: Graph) -> None:
    """Print what was made features where a type has none, and how many nodes are isolated."""
    from infomax.arrays import made

    if features := made.told(graph.feature_names):
        show.log.print(f"{graph.kind and f'{graph.kind}: '}{features}")


def _train_models(models: Mapping[Path, DGI], graph: Graph, resume: bool, ranks: Ranks) -> None:
    """Train encoders of one graph, which differ in their seeds; on a GPU side by side."""
    from infomax.kernels.device import choose_device

    device = next(iter(models.values())).device
    if len(models) > 1 and choose_device(device).type == "cuda" and ranks.count == 1 and not resume:
        _train_together(models, graph)
        return
    for folder, model in models.items():
        _train(model, graph, folder, resume, ranks)


def _train_together(models: Mapping[Path, DGI], graph: Graph) -> None:
    """Train several encoders side by side on a GPU; write a run folder for each."""
    from infomax.estimator.together import fit_together

    began = time.monotonic()
    for folder in models:
        _refuse(folder, 0, resume=False)
    with show.Steps("train", len(models)) as steps:
        fit_together(list(models.values()), graph)
        for done, (folder, model) in enumerate(models.items(), start=1):
            model.save(folder)
            steps.at(done, f"loss {model.health_['loss']:.4f}" if "loss" in model.health_ else "")
    verdicts = {model.health_["verdict"]["verdict"] for model in models.values()}
    show.wrote(f"{len(models)} runs, {next(iter(models))}/ and on; verdicts: {', '.join(sorted(verdicts))}", began)


def _refuse(out: Path, rank: int, resume: bool) -> None:
    """Refuse a run folder that another process writes, or that holds a run."""
    from infomax.training import runs

    if rank == 0:
        runs.refuse_busy(out)
    if not resume:
        runs.refuse_model(out, runs_below=False)


def _train(model: DGI, graph: Graph, out: Path, resume: bool, ranks: Ranks) -> None:
    """Train on a graph, or on one of its types; write the run folder, and say what came of it."""
    from infomax.training import runs
    from infomax.training.resuming import refuse_other_run
    from infomax.training.verdict import words

    began = time.monotonic()
    with ranks.together():
        settings, chosen = model.choose(graph, out)
        for told in chosen:
            show.log.print(f"{graph.kind}, {told}" if graph.kind else told)
        model.preset = settings
        if settings.paths:
            show.log.print(f"paths: {', '.join(settings.paths)}")
        if resume and (out / runs.MODEL).exists():
            refuse_other_run(out, graph, settings.describe(), model.seed)
            show.out.print(f"{out} holds a finished run already: nothing to resume.")
            return
    unit = "steps" if settings.name in BATCHES else "epochs"
    total = settings.epochs if settings.patience is None else min(settings.epochs, settings.patience + 1)
    with show.training_progress(unit, "Go on with the same command and --resume.", total) as progress:
        model.fit(graph, run=out, progress=progress)
    if ranks.rank == 0:
        show.health(model.health_)
        show.wrote(f"{out}/", began)
        show.out.print(words(model.health_["verdict"]))


def _model(
    dim: int | None,
    epochs: int | None,
    method: Method,
    schedule: Schedule,
    parts: settings.Parts,
    device: str,
    kind: str = "",
) -> DGI:
    """The model that the options mean, for a type of nodes; what is out of range is refused, before a graph is read."""
    from infomax.estimator import DGI

    batches = "type-batches" if kind else "batches"
    preset = batches if method.preset == "auto" and schedule.of_batches else method.preset
    chosen = settings.arguments(preset, parts, schedule.batch)
    if kind:
        chosen |= settings.along_paths(kind, chosen, method.paths, method.hops)
    model = DGI(
        dim,
        preset=preset,
        epochs=_length(preset, epochs, schedule.steps),
        lr=schedule.lr,
        patience=schedule.patience,
        vectors=method.vectors,
        seed=schedule.seed,
        device=device,
        **chosen,
    )
    model.settings()
    return model


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
