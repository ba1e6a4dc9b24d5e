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
@options.has_options(
    method=settings.SETTINGS,
    tables=options.table_options(hidden=(*options.SAID_BY_SCHEMA, *options.TEXT_FORMAT)),
)
def train(
    graph: options.GraphArgument,
    nodes: options.NodesArgument = None,
    *,
    out: Annotated[Path, option("RUN", "The run folder to write.")],
    labels: options.Labels = None,
    resume: options.Resume = False,
    tables: dict[str, Any],
    directed: options.Directed = None,
    method: dict[str, Any],
    preset: settings.Preset = "auto",
    seed: settings.Seed = 0,
    runs: settings.Runs = 1,
    device: options.Device = "auto",
    threads: options.Threads = None,
    context: typer.Context,
) -> None:
    """Train on a graph; writes a run folder.

    Of several types of nodes, each is trained, into a folder of its own.
    """
    from infomax.cli.torchrun import joined

    with joined(device) as ranks:
        user_choices = {**context.params, "out": out}
        _train_all(user_choices, tables, ranks)


def _train_all(user_choices: Mapping[str, Any], tables: Mapping[str, Any], ranks: Ranks) -> None:
    """Train an encoder for each type and each seed.

    Several encoders have a folder each below the run folder: ``TYPE``, ``seed-0``, ``TYPE/seed-0``.
    """
    from infomax.kernels.device import choose_device
    from infomax.training.runs import listing, refuse_hidden

    run_folder = user_choices["out"]
    first_seed = user_choices["seed"]
    seed_by_name = {"": first_seed}
    if user_choices["runs"] > 1:
        seeds = range(first_seed, first_seed + user_choices["runs"])
        seed_by_name = {f"seed-{seed}": seed for seed in seeds}

    # A mistake on one rank ends all of them.
    with ranks.together():
        graphs = _graphs_to_train(user_choices, tables)
        subfolders = [Path(node_type, name) for node_type in graphs for name in seed_by_name]
        refuse_hidden(run_folder, subfolders)

    # Processes that share the work write one list of runs.
    has_subfolders = subfolders != [Path()]
    lists_runs = has_subfolders and ranks.rank == 0
    run_list = listing(run_folder, subfolders) if lists_runs else nullcontext()
    earlier_model: DGI | None = None
    with run_list:
        for node_type, graph in graphs.items():
            models = {
                run_folder / node_type / name: settings.build_model(user_choices, node_type, seed)
                for name, seed in seed_by_name.items()
            }
            training_graph = _training_graph(graph, run_folder, user_choices)

            # Side by side they use a GPU better; a CPU has no more cores for them.
            one_by_one = len(models) == 1 or user_choices["resume"] or ranks.count > 1
            if not one_by_one and choose_device(user_choices["device"]).type == "cuda":
                _train_together(models, training_graph)
                continue
            # Positions are those of the whole graph, so they are computed once for all types and
            # seeds.
            for folder, model in models.items():
                is_trained = _train(
                    model,
                    training_graph,
                    folder,
                    user_choices["resume"],
                    ranks,
                    positions_of=earlier_model,
                )
                if is_trained:
                    earlier_model = model


def _graphs_to_train(
    user_choices: Mapping[str, Any], tables: Mapping[str, Any]
) -> dict[str, Graph]:
    """The graph as seen from each type to train, by type; "" for a graph of one type.

    Options that do not fit the graph are refused.
    """
    from infomax.training.runs import refuse_model

    # What is out of range, or in the way, is refused before a graph is read.
    settings.build_model(user_choices)
    if not user_choices["resume"]:
        refuse_model(user_choices["out"], runs_below=False)

    source = options.open_graph(
        user_choices["graph"],
        user_choices["labels"],
        user_choices["directed"],
        tables,
        nodes=user_choices["nodes"],
    )
    _describe(source, user_choices, tables)
    graphs = _graphs_by_type(source, user_choices, tables)
    _refuse_paths_from_others(user_choices, graphs)

    if source.has_named_types:
        for node_type, graph in graphs.items():
            if not user_choices["resume"]:
                refuse_model(user_choices["out"] / node_type, runs_below=False)
            # Refuses settings that do not fit the type.
            settings.build_model(user_choices, node_type).choose(graph)
    return graphs


def _describe(source: Graph, user_choices: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    """Print what was read, and what was decided about its tables."""
    from infomax.io.database.in_words import schema_in_words

    label_names = [name for nodes in source.nodes.values() for name in nodes.labels]
    show.log.print(f"{source!r}, labels: {', '.join(label_names) or 'none'}")
    if source.schema is not None and source.schema.is_database:
        for line in schema_in_words(source.schema):
            show.log.print(line)
        show.log.print(f"To change any of it: infomax info {user_choices['graph']} --schema FILE")
    if source.edge_columns:
        ends = ", ".join(source.edge_columns)
        show.log.print(f"no columns source and target: edges run from, to: {ends}")
    if [*(tables.get("features") or ())] == ["positions"]:
        show.log.print(
            "--features positions leaves out the columns of nodes; "
            "vectors have positions without it"
        )


def _graphs_by_type(
    source: Graph, user_choices: Mapping[str, Any], tables: Mapping[str, Any]
) -> dict[str, Graph]:
    """The graph as seen from each type that is named, or from all but facts.

    The name of the only type of a graph of one type is "".
    """
    from infomax.io.column_names import matching_type

    chosen_types = [
        matching_type(node_type, source.types) or node_type
        for node_type in user_choices["type"] or ()
    ]
    has_type_options = chosen_types or user_choices["paths"] or user_choices["hops"]
    if has_type_options and not source.has_named_types:
        raise InputError("--type, --paths, --hops", "a graph of several types of nodes", "one type")
    target_column = tables.get("target")
    if target_column in source.types and not tables.get("source"):
        remedy = f"To train this type alone: --type {target_column}."
        found = f"the type {target_column}"
        raise InputError("--target", "a column of the edge tables", found, remedy)

    node_types = chosen_types or _without_facts(source)
    if not node_types:
        return {"": source}
    return {node_type: source.target(node_type) for node_type in node_types}


def _refuse_paths_from_others(user_choices: Mapping[str, Any], graphs: Mapping[str, Graph]) -> None:
    """Refuse a path that begins at a type that is not trained."""
    for path in settings.split_list(user_choices["paths"]):
        first_type = path.split("-")[0]
        if first_type not in graphs:
            raise InputError("--paths", f"paths that begin at {' or '.join(graphs)}", shorten(path))


def _without_facts(source: Graph) -> list[str]:
    """The types to train where none is named: all but facts, if there are others."""
    facts = [] if source.schema is None else source.schema.facts
    trained_types = [node_type for node_type in source.types if node_type not in facts]
    if not trained_types:
        return list(source.types)
    if len(trained_types) < len(source.types):
        show.log.print(f"trained: {', '.join(trained_types)}")
        show.log.print(
            f"not trained, as facts: {', '.join(facts)}; to train one: --type {facts[0]}"
        )
    return trained_types


def _training_graph(graph: Graph, run_folder: Path, user_choices: Mapping[str, Any]) -> Graph:
    """The graph to train on, without the edges that are held out.

    Prints which structural features stand for missing ones, and why batches were chosen.
    """
    from infomax.arrays.structural_features import describe_structural_features

    made_features = describe_structural_features(graph.feature_names)
    if made_features:
        of_type = f"{graph.node_type}: " if graph.has_named_types else ""
        show.log.print(f"{of_type}{made_features}")

    share = user_choices["hold_out_edges"]
    if share is not None:
        num_edges = graph.num_edges
        graph = graph.hold_out_edges(share, user_choices["seed"])
        num_held_out = num_edges - graph.num_edges
        show.log.print(
            f"held out {num_held_out:,} of {num_edges:,} edges; "
            f"to score on them: infomax evaluate {run_folder} --edges"
        )

    batch_option = settings.means_batches(user_choices)
    if user_choices["preset"] == "auto" and batch_option:
        preset = settings.build_model(user_choices, graph.node_type).preset
        show.log.print(f"preset {preset}: {batch_option} was given")
    return graph


def _train_together(models: Mapping[Path, DGI], graph: Graph) -> None:
    """Train several encoders side by side on a GPU; write a run folder for each."""
    from infomax.estimator.together import fit_together
    from infomax.training.runs import refuse_model
    from infomax.training.verdict import headline

    show.start_clock()
    for folder in models:
        refuse_model(folder, runs_below=False)
    with show.Steps("train", len(models)) as steps:
        fit_together(list(models.values()), graph)
        for done, (folder, model) in enumerate(models.items(), start=1):
            model.save(folder)
            note = ""
            if "loss" in model.health_:
                note = f"loss {model.health_['loss']:.4f}"
            steps.update(done, note)
    verdicts = {headline(model.health_["verdict"]) for model in models.values()}
    show.wrote(
        f"{len(models)} runs, {next(iter(models))}/ and on; verdicts: {'; '.join(sorted(verdicts))}"
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
    """Train one encoder, write its run folder, and print its health and verdict.

    Args:
        model: the settings.
        graph: the graph, as seen from the type that is trained.
        out: the run folder.
        resume: whether an interrupted training is gone on with.
        ranks: the processes that share the work.
        positions_of: a model that was trained on the same graph, and whose positions are taken.

    Returns:
        Whether it was trained; a run that is finished already is not trained again.
    """
    from infomax.training import runs
    from infomax.training.resuming import refuse_other_run
    from infomax.training.verdict import words

    show.start_clock()
    with ranks.together():
        # What a preset and sizes are chosen by is printed before the time is spent.
        preset, reasons = model.choose(graph, out)
        of_type = f"{graph.node_type}, " if graph.has_named_types else ""
        for reason in reasons:
            show.log.print(f"{of_type}{reason}")
        model.preset = preset
        if preset.paths:
            show.log.print(f"paths: {', '.join(preset.paths)}")
        if resume and (out / runs.MODEL).exists():
            refuse_other_run(out, graph, preset.describe(), model.seed)
            show.out.print(f"{out} holds a finished run already: nothing to resume.")
            return False
    unit = "steps" if preset.name in settings.BATCHES else "epochs"
    # With a patience, this is where training ends if the loss never falls.
    total = preset.epochs
    if preset.patience is not None:
        total = min(total, preset.patience + 1)
    with show.training_progress(
        unit, "Go on with the same command and --resume.", total
    ) as progress:
        model.fit(graph, run=out, progress=progress, positions_of=positions_of)
    if ranks.rank == 0:
        show.health(model.health_)
        show.wrote(f"{out}/")
        show.out.print(words(model.health_["verdict"]))
    return True
