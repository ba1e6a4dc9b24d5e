"""infomax train."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import options, settings, show
from infomax.cli.app import Grouped, app
from infomax.errors import InputError, shorten

if TYPE_CHECKING:
    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph
    from infomax.kernels.ranks import Ranks

Dim = Annotated[
    int | None, typer.Option(metavar="N", help="Width of the vectors; patches' are twice as wide.  [default: 512]")
]
Epochs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Train so many epochs, with --patience at most so many; 0 is Random-Init.  [default: the preset's]",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on where a training was interrupted; start where there is none.")
]
HoldOut = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Set this share of the edges aside, such as 0.1: evaluate RUN --edges scores on them.",
        rich_help_panel=options.GRAPH,
    ),
]


@app.command(cls=Grouped)
def train(
    graph: options.GraphArgument,
    nodes: options.NodesArgument = None,
    *,
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder to write.")],
    labels: options.Labels = None,
    dim: Dim = None,
    epochs: Epochs = None,
    resume: Resume = False,
    directed: options.Directed = None,
    hold_out_edges: HoldOut = None,
    preset: settings.Preset = "auto",
    vectors: settings.Vectors = None,
    type: settings.TrainedTypes = None,
    hops: settings.Hops = None,
    paths: settings.Paths = None,
    lr: settings.LearningRate = None,
    patience: settings.Patience = None,
    steps: settings.Steps = None,
    batch: settings.Batch = None,
    seed: settings.Seed = 0,
    runs: settings.Runs = 1,
    encoder: settings.Encoder = None,
    layers: settings.Layers = None,
    corruption: settings.Corruption = None,
    rho: settings.Rho = None,
    readout: settings.Readout = None,
    scale: settings.Scale = None,
    fan_out: settings.FanOut = None,
    weighting: settings.Weighting = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
    id: options.Id = None,
    name: options.Name = None,
    source: options.Source = None,
    target: options.Target = None,
    weight: options.Weight = None,
    features: options.Features = None,
    columns: options.ColumnKinds = None,
    ignore: options.Ignore = None,
    key: options.Key = None,
    table: options.TableRole = None,
    types: options.Types = None,
    edge_type: options.EdgeType = None,
    node_type: options.NodeType = None,
    edges_as: options.EdgesAs = None,
    groups: options.Groups = None,
    time: options.Time = None,
    as_of: options.AsOf = None,
    context: typer.Context,
) -> None:
    """Train on a graph; writes a run folder. Of several types of nodes, each is trained, into a folder of its own."""
    from infomax.cli.torchrun import joined

    with joined(device) as ranks:
        _train_all(graph, nodes, out, context, ranks)


def _train_all(graph: str, nodes: str | None, out: Path, context: typer.Context, ranks: Ranks) -> None:
    """Train an encoder for each type and each seed; several have a folder each below the run folder."""
    from infomax.training.runs import listing, refuse_hidden

    given = context.params
    seeds = range(given["seed"], given["seed"] + given["runs"])
    names = {f"seed-{seed}" if len(seeds) > 1 else "": seed for seed in seeds}
    with ranks.together():
        targets = _targets(graph, nodes, out, context, ranks)
        folders = [Path(kind, name) for kind in targets for name in names]
        refuse_hidden(out, folders)
    with listing(out, folders) if ranks.rank == 0 and folders != [Path()] else nullcontext():
        for kind, one in targets.items():
            models = {out / kind / name: settings.build_model(given, kind, seed) for name, seed in names.items()}
            _train_models(models, _announced(one, out, given), given["resume"], ranks)


def _targets(graph: str, nodes: str | None, out: Path, context: typer.Context, ranks: Ranks) -> dict[str, Graph]:
    """The graph as seen from each type to train, or by "" the graph of one type; refuse options that do not fit it."""
    given = context.params
    columns = options.given_columns(context)
    chosen = given["type"] or ()
    settings.build_model(given)  # refuses what is out of range, before a graph is read
    for folder in [out, *(out / kind for kind in chosen)]:
        _refuse(folder, ranks.rank, given["resume"])
    source = options.open_graph(graph, given["labels"], given["directed"], columns, nodes=nodes)
    known = [name for one in source.nodes.values() for name in one.labels]
    show.log.print(f"{source!r}, labels: {', '.join(known) or 'none'}")
    if source.edge_columns:
        show.log.print(f"no columns source and target: edges run from, to: {', '.join(source.edge_columns)}")
    if not source.kind and (chosen or given["paths"] or given["hops"]):
        raise InputError("--type, --paths, --hops", "a graph of several types of nodes", "one type")
    if (kind := columns.get("target")) in source.types and not columns.get("source"):
        remedy = f"To train this type alone: --type {kind}."
        raise InputError("--target", "a column of the edge tables", f"the type {kind}", remedy)
    targets = {kind: source.target(kind) for kind in chosen or _without_facts(source)} or {"": source}
    begun = [path for path in settings.words(given["paths"]) if path.split("-")[0] not in targets]
    if begun:
        raise InputError("--paths", f"paths that begin at {' or '.join(targets)}", shorten(begun[0]))
    for kind, one in targets.items() if source.kind else ():
        _refuse(out / kind, ranks.rank, given["resume"])
        settings.build_model(given, kind).choose(one)  # refuses what does not fit the type
    return targets


def _without_facts(source: Graph) -> list[str]:
    """The types to train where none is named: all but the facts of a database, if there are others."""
    from infomax.io.database.roles import facts_among

    facts = facts_among(source.table_columns)
    trained = [kind for kind in source.types if kind not in facts] or list(source.types)
    if facts and trained != list(source.types):
        show.log.print(f"trained: {', '.join(trained)}")
        show.log.print(f"not trained, as facts: {', '.join(facts)}; to train one: --type {facts[0]}")
    return trained


def _announced(graph: Graph, out: Path, given: Mapping[str, Any]) -> Graph:
    """The graph to train on, without the edges that are held out; prints what was made features, and why batches."""
    from infomax.arrays import made

    if features := made.told(graph.feature_names):
        show.log.print(f"{graph.kind and f'{graph.kind}: '}{features}")
    if given["hold_out_edges"] is not None:
        before, graph = graph.num_edges, graph.hold_out_edges(given["hold_out_edges"], given["seed"])
        held_out = f"held out {before - graph.num_edges:,} of {before:,} edges"
        show.log.print(f"{held_out}; to score on them: infomax evaluate {out} --edges")
    if given["preset"] == "auto" and (option := settings.means_batches(given)):
        preset = settings.build_model(given, graph.kind).preset
        show.log.print(f"preset {preset}: {option} was given")
    return graph


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

    began = monotonic()
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

    began = monotonic()
    with ranks.together():
        preset, chosen = model.choose(graph, out)
        for line in chosen:
            show.log.print(f"{graph.kind}, {line}" if graph.kind else line)
        model.preset = preset
        if preset.paths:
            show.log.print(f"paths: {', '.join(preset.paths)}")
        if resume and (out / runs.MODEL).exists():
            refuse_other_run(out, graph, preset.describe(), model.seed)
            show.out.print(f"{out} holds a finished run already: nothing to resume.")
            return
    unit = "steps" if preset.name in settings.BATCHES else "epochs"
    total = preset.epochs if preset.patience is None else min(preset.epochs, preset.patience + 1)
    with show.training_progress(unit, "Go on with the same command and --resume.", total) as progress:
        model.fit(graph, run=out, progress=progress)
    if ranks.rank == 0:
        show.health(model.health_)
        show.wrote(f"{out}/", began)
        show.out.print(words(model.health_["verdict"]))
