"""infomax train."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import options, settings, show
from infomax.cli.app import Grouped, app
from infomax.cli.options import option
from infomax.errors import InputError, shorten

if TYPE_CHECKING:
    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph
    from infomax.kernels.ranks import Ranks


@app.command(cls=Grouped)
@options.has_options(chosen=settings.SETTINGS, tables=options.table_options())
def train(
    graph: options.GraphArgument,
    nodes: options.NodesArgument = None,
    *,
    out: Annotated[Path, option("RUN", "The run folder to write.")],
    labels: options.Labels = None,
    directed: options.Directed = None,
    preset: settings.Preset = "auto",
    chosen: dict[str, Any],
    resume: options.Resume = False,
    seed: settings.Seed = 0,
    runs: settings.Runs = 1,
    device: options.Device = "auto",
    threads: options.Threads = None,
    tables: dict[str, Any],
    context: typer.Context,
) -> None:
    """Train on a graph; writes a run folder. Of several types of nodes, each is trained, into a folder of its own."""
    from infomax.cli.torchrun import joined

    with joined(device) as ranks:
        _train_all({**context.params, "out": out}, tables, ranks)


def _train_all(given: Mapping[str, Any], tables: Mapping[str, Any], ranks: Ranks) -> None:
    """Train an encoder for each type and each seed; several have a folder each below the run folder."""
    from infomax.kernels.device import choose_device
    from infomax.training.runs import listing, refuse_hidden

    out = given["out"]
    seeds = range(given["seed"], given["seed"] + given["runs"])
    names = {f"seed-{seed}" if len(seeds) > 1 else "": seed for seed in seeds}
    with ranks.together():
        targets = _targets(given, tables)
        folders = [Path(node_type, name) for node_type in targets for name in names]
        refuse_hidden(out, folders)
    earlier_model: DGI | None = None
    with listing(out, folders) if ranks.rank == 0 and folders != [Path()] else nullcontext():
        for node_type, one in targets.items():
            models = {
                out / node_type / name: settings.build_model(given, node_type, seed)
                for name, seed in names.items()
            }
            announced = _announced(one, out, given)
            alone = len(models) == 1 or given["resume"] or ranks.count > 1
            if not alone and choose_device(given["device"]).type == "cuda":
                _train_together(models, announced)
                continue
            for folder, model in models.items():
                # Positions are those of the whole graph: they are computed once for all types and seeds.
                is_trained = _train(
                    model, announced, folder, given["resume"], ranks, positions_of=earlier_model
                )
                if is_trained:
                    earlier_model = model


def _targets(given: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Graph]:
    """The graph as seen from each type to train, or by "" the graph of one type; refuse options that do not fit it."""
    from infomax.io.column_names import called
    from infomax.io.database.in_words import schema_in_words
    from infomax.training.runs import refuse_model

    settings.build_model(given)  # refuses what is out of range, before a graph is read
    if not given["resume"]:
        refuse_model(given["out"], runs_below=False)
    source = options.open_graph(
        given["graph"], given["labels"], given["directed"], tables, nodes=given["nodes"]
    )
    known = [name for one in source.nodes.values() for name in one.labels]
    show.log.print(f"{source!r}, labels: {', '.join(known) or 'none'}")
    if source.schema is not None and source.schema.is_database:
        for line in schema_in_words(source.schema):
            show.log.print(line)
        show.log.print(f"To change any of it: infomax info {given['graph']} --schema FILE")
    if source.edge_columns:
        show.log.print(
            f"no columns source and target: edges run from, to: {', '.join(source.edge_columns)}"
        )
    if [*(tables.get("features") or ())] == ["positions"]:
        show.log.print(
            "--features positions leaves out the columns of nodes; vectors have positions without it"
        )
    chosen = [called(node_type, source.types) or node_type for node_type in given["type"] or ()]
    if not source.node_type and (chosen or given["paths"] or given["hops"]):
        raise InputError("--type, --paths, --hops", "a graph of several types of nodes", "one type")
    if (node_type := tables.get("target")) in source.types and not tables.get("source"):
        remedy = f"To train this type alone: --type {node_type}."
        raise InputError("--target", "a column of the edge tables", f"the type {node_type}", remedy)
    targets = {
        node_type: source.target(node_type) for node_type in chosen or _without_facts(source)
    } or {"": source}
    begun = [path for path in settings.words(given["paths"]) if path.split("-")[0] not in targets]
    if begun:
        raise InputError(
            "--paths", f"paths that begin at {' or '.join(targets)}", shorten(begun[0])
        )
    for node_type, one in targets.items() if source.node_type else ():
        if not given["resume"]:
            refuse_model(given["out"] / node_type, runs_below=False)
        settings.build_model(given, node_type).choose(one)  # refuses what does not fit the type
    return targets


def _without_facts(source: Graph) -> list[str]:
    """The types to train where none is named: all but the facts of a database, if there are others."""
    facts = [] if source.schema is None else source.schema.facts
    trained = [node_type for node_type in source.types if node_type not in facts] or list(
        source.types
    )
    if len(trained) < len(source.types):
        show.log.print(f"trained: {', '.join(trained)}")
        show.log.print(
            f"not trained, as facts: {', '.join(facts)}; to train one: --type {facts[0]}"
        )
    return trained


def _announced(graph: Graph, out: Path, given: Mapping[str, Any]) -> Graph:
    """The graph to train on, without the edges that are held out; prints what was made features, and why batches."""
    from infomax.arrays.structural_features import structural_features_in_words

    if features := structural_features_in_words(graph.feature_names):
        show.log.print(f"{graph.node_type and f'{graph.node_type}: '}{features}")
    if given["hold_out_edges"] is not None:
        before, graph = (
            graph.num_edges,
            graph.hold_out_edges(given["hold_out_edges"], given["seed"]),
        )
        held_out = f"held out {before - graph.num_edges:,} of {before:,} edges"
        show.log.print(f"{held_out}; to score on them: infomax evaluate {out} --edges")
    if given["preset"] == "auto" and (option := settings.means_batches(given)):
        preset = settings.build_model(given, graph.node_type).preset
        show.log.print(f"preset {preset}: {option} was given")
    return graph


def _train_together(models: Mapping[Path, DGI], graph: Graph) -> None:
    """Train several encoders side by side on a GPU; write a run folder for each."""
    from infomax.estimator.together import fit_together
    from infomax.training.runs import refuse_model

    show.start_clock()
    for folder in models:
        refuse_model(folder, runs_below=False)
    with show.Steps("train", len(models)) as steps:
        fit_together(list(models.values()), graph)
        for done, (folder, model) in enumerate(models.items(), start=1):
            model.save(folder)
            steps.at(done, f"loss {model.health_['loss']:.4f}" if "loss" in model.health_ else "")
    verdicts = {model.health_["verdict"]["verdict"] for model in models.values()}
    show.wrote(
        f"{len(models)} runs, {next(iter(models))}/ and on; verdicts: {', '.join(sorted(verdicts))}"
    )


def _train(
    model: DGI,
    graph: Graph,
    out: Path,
    resume: bool,
    ranks: Ranks,
    *,
    positions_of: DGI | None,
) -> bool:
    """Train on a graph, or on one of its types; write the run folder, and say what came of it.

    Returns whether it was trained; a run that is finished already is not trained again.
    """
    from infomax.training import runs
    from infomax.training.resuming import refuse_other_run
    from infomax.training.verdict import words

    show.start_clock()
    with ranks.together():
        preset, chosen = model.choose(graph, out)
        for line in chosen:
            show.log.print(f"{graph.node_type}, {line}" if graph.node_type else line)
        model.preset = preset
        if preset.paths:
            show.log.print(f"paths: {', '.join(preset.paths)}")
        if resume and (out / runs.MODEL).exists():
            refuse_other_run(out, graph, preset.describe(), model.seed)
            show.out.print(f"{out} holds a finished run already: nothing to resume.")
            return False
    unit = "steps" if preset.name in settings.BATCHES else "epochs"
    total = preset.epochs if preset.patience is None else min(preset.epochs, preset.patience + 1)
    with show.training_progress(
        unit, "Go on with the same command and --resume.", total
    ) as progress:
        model.fit(graph, run=out, progress=progress, positions_of=positions_of)
    if ranks.rank == 0:
        show.health(model.health_)
        show.wrote(f"{out}/")
        show.out.print(words(model.health_["verdict"]))
    return True
