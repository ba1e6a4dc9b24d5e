"""Run folders as arguments of commands: one run, one of its types, several; and their vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli.options import option
from infomax.errors import InputError, TooFewEdgesError, warn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.estimator import DGI
    from infomax.evaluation.results import Row
    from infomax.graphs.graph import Graph

Options = Mapping[str, Any]
"""The options and arguments of a command, by name."""
GraphDescription = Mapping[str, Any]
"""What the configuration of a run says of its graph."""


# Arguments that name a run. They are checked before torch is loaded, which takes seconds.


def _folder_of_type(context: typer.Context, run: Path) -> Path:
    """The folder RUN/TYPE where a command was given --type, else RUN."""
    from infomax.io.column_names import matching_type
    from infomax.training import runs

    requested_type: str | None = context.params.get("type")
    if requested_type is None:
        return run
    node_types = runs.types_of(run)
    node_type = matching_type(requested_type, node_types)
    if not node_type:
        expected = "a run of several types of nodes"
        if node_types:
            expected = f"one of {', '.join(node_types)}"
        raise InputError("--type", expected, requested_type)
    return run / node_type


def _finished_run(context: typer.Context, run: Path) -> Path:
    """Check that a run is finished, with all its types."""
    from infomax.training import runs

    run = _folder_of_type(context, run)
    for node_type in runs.types_of(run) or [""]:
        runs.check(run / node_type)
    return run


def _finished_runs(context: typer.Context, run: Path) -> Path:
    """Check that a run, or each run in a folder of runs, is finished."""
    from infomax.training import runs

    run = _folder_of_type(context, run)
    runs.check_all(run)
    return run


def _finished_runs_or_vectors(context: typer.Context, source: Path) -> Path:
    """Check that runs are finished, or that there are vectors, in a file or a folder of parts."""
    from infomax.io.parts import has_parts

    if not source.exists():
        raise InputError(str(source), "a run folder, or what embed wrote", "nothing of that name")

    # What embed wrote of several types of nodes is a folder with a folder of parts for each.
    is_run = (source / "config.json").exists()
    if source.is_dir() and not is_run:
        node_types = [folder.name for folder in sorted(source.iterdir()) if has_parts(folder)]
        if node_types:
            requested_type: str = context.params.get("type") or "none"
            if requested_type not in node_types:
                expected = f"--type TYPE, one of {', '.join(node_types)}"
                raise InputError(str(source), expected, requested_type)
            return source / requested_type

    if source.is_file() or has_parts(source):
        _refuse_type_of_vectors(context, source)
        return source
    return _finished_runs(context, source)


def _refuse_type_of_vectors(context: typer.Context, source: Path) -> None:
    """Refuse --type beside vectors, which are of one type, whatever its name is."""
    node_type: str | None = context.params.get("type")
    if node_type is not None:
        expected = "a run of several types of nodes"
        remedy = "Leave it out: the vectors are all of one type."
        raise InputError("--type", expected, f"the vectors {source}", remedy)


RunOrRuns = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        callback=_finished_runs,
        help="A run folder, written by train; of several types or seeds, all or one: RUN/TYPE.",
    ),
]
RunArgument = Annotated[
    Path,
    typer.Argument(metavar="RUN", callback=_finished_run, help="A run folder, written by train."),
]
SourceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN|VECTORS",
        callback=_finished_runs_or_vectors,
        help="A run folder, or a file or a folder of parts that embed wrote.",
    ),
]
OfType = Annotated[
    str | None, option("NAME", "Of a run of several types of nodes, this one.", is_eager=True)
]
"""Read before RUN, which becomes RUN/TYPE."""


# Commands that are called for each of several runs.


def per_run(
    command: Callable[..., Any],
    *,
    applies: Callable[[GraphDescription, Options], bool] = lambda *_: True,
    around: Callable[[Options], AbstractContextManager[None]] = lambda _: nullcontext(),
    writes_runs: bool = False,
) -> Callable[..., None]:
    """Let a command on a run take a folder of runs, of several types or seeds, too.

    The command is called for each run. Files that it writes then have the name of the run in their
    own. A run that has too few edges to score is left out with a warning, where others are scored.
    Where the command returns rows of scores of several encoders of a type, means and deviations
    over them come last, and into the file that --json names.

    Args:
        command: its first parameter is the run.
        applies: whether the command applies to a run of one of several types, by the description
            of the graph and the options.
        around: what is entered before the first run and left after the last, given the options.
        writes_runs: whether the command writes a run folder for each.
    """
    run_parameter = next(iter(signature(command).parameters))

    @wraps(command)
    def run(**options: Any) -> None:
        from infomax.cli import show
        from infomax.training import runs

        folder = options[run_parameter]
        names = runs.runs_in(folder)
        if not names:
            with around(options):
                command(**options)
            return

        selected_names = []
        for name in names:
            description = runs.check(folder / name)["graph"]
            has_one_type = not description.get("type")
            if has_one_type or applies(description, options):
                selected_names.append(name)
        if not selected_names:
            _refuse_labels_of_no_type(folder, names, options)

        # Questions are about one type, and their answers go into the file that was named.
        keeps_paths = len(selected_names) == 1 and options.get("at") is not None
        scores_by_type: dict[Path, list[list[Row]]] = {}
        listing = runs.listing(options["out"], names) if writes_runs else nullcontext()
        with around(options), listing:
            for name in selected_names:
                show.log.print(f"{name}:")
                show.start_clock()
                run_options = options if keeps_paths else _options_of_run(options, name)
                try:
                    scores = command(**{**run_options, run_parameter: folder / name})
                except TooFewEdgesError as error:
                    is_last = name == selected_names[-1]
                    if is_last and not scores_by_type:
                        raise
                    warn(f"{name} is left out: {error}")
                else:
                    scores_by_type.setdefault(name.parent, []).append(scores)

        if all(name.name.startswith("seed-") for name in names):
            for type_folder, scores in scores_by_type.items():
                if len(scores) > 1 and all(scores):
                    _show_means(folder / type_folder, type_folder, scores, options["json"])

    return run


def _refuse_labels_of_no_type(folder: Path, names: list[Path], options: Options) -> None:
    """Refuse labels that no type of nodes has."""
    from infomax.cli.labels import labels_elsewhere
    from infomax.training import runs

    labels = options["labels"] or []
    expected = "labels of one type of nodes or more"
    if labels:
        expected = f"the labels {', '.join(labels)} of one type of nodes or more"
    schema = runs.schema_of(runs.check(folder / names[0]), folder / names[0])
    elsewhere = labels_elsewhere(schema)
    remedy = f"Train with --labels COLUMN, or score one type: --type TYPE --labels {elsewhere}."
    if schema is not None and schema.is_database:
        # The table says of which type the labels are.
        remedy = f"Train with --labels COLUMN, or name the database: --labels {elsewhere}."
    raise InputError(str(folder), expected, "none", remedy)


def _options_of_run(options: Options, name: Path) -> dict[str, Any]:
    """The options of a command for one of several runs: its name is in the paths to be written."""
    run_options = dict(options)
    for option_name in ("out", "json", "vectors"):
        path = options.get(option_name)
        if isinstance(path, Path):
            run_options[option_name] = _path_of_run(path, name)
    table = options.get("into")
    if table:
        run_options["into"] = f"{table}_{'_'.join(name.parts)}"
    return run_options


def _path_of_run(path: Path, name: Path) -> Path:
    """The path of one run: vectors.paper.parquet of vectors.parquet, vectors/paper of vectors/."""
    if not path.suffix:
        return path / name
    return path.with_suffix(f".{'.'.join(name.parts)}{path.suffix}")


def _show_means(
    source: Path, type_folder: Path, scores: list[list[Row]], json_path: Path | None
) -> None:
    """Print and write the means and deviations of the scores of several encoders."""
    from infomax.cli import show
    from infomax.evaluation.results import over_encoders

    rows = [row.to_dict() for row in over_encoders(scores)]
    show.scores(f"{source}: mean ± over {len(scores)} encoders", rows)
    if json_path is not None and type_folder.name:
        json_path = _path_of_run(json_path, type_folder)
    show.write_result(json_path, {"source": str(source), "rows": rows})


# The vectors of a run.


def vectors(run: Path, graph: Graph, device: str = "auto") -> Embeddings | StoredEmbeddings:
    """The vectors of a run whose graph was read: the stored ones, else computed ones.

    Stored vectors are read without torch. The vectors of a graph folder are parquet parts in the
    run folder; missing ones are written.
    """
    from infomax.training.runs import vectors_of_run

    if device == "auto":
        stored_vectors = vectors_of_run(run, graph)
        if stored_vectors is not None:
            return stored_vectors

    from infomax.estimator import DGI

    model = DGI.load(run, device=device)
    if graph.table.mapped:
        return written_once(model, run)
    return model.transform(model.graph_)


def written_once(model: DGI, run: Path) -> StoredEmbeddings:
    """The vectors of a run on a graph folder: parquet parts in the run folder.

    Missing parts are written.
    """
    from infomax.cli import show
    from infomax.embeddings import StoredEmbeddings

    with show.Steps("embed", model.graph_.num_nodes, "Go on with the same command.") as steps:
        # The pages are checked when they are read.
        model.write_vectors(model.graph_, run / "vectors", check=False, progress=steps.update)
    return StoredEmbeddings.open(run / "vectors")


def sampled_rows(
    model: DGI, most_rows: int, seed: int, labels: NDArray[Any] | None = None
) -> NDArray[np.int64] | None:
    """A random sample of the rows of a graph folder, ascending.

    None where the graph is in memory, or the folder has no more nodes than a sample; such a folder
    is read into memory.

    Args:
        model: the model of a run.
        most_rows: the rows of the sample.
        seed: draws the sample.
        labels: ``[N]``, labels of the nodes; labelled nodes are drawn first.
    """
    import numpy as np

    graph = model.graph_
    if not graph.table.mapped or graph.num_nodes <= most_rows:
        read_into_memory(model)
        return None

    generator = np.random.default_rng(seed)
    rows = generator.choice(graph.num_nodes, most_rows, replace=False)
    if labels is not None:
        unknown_label = "" if labels.dtype == object else -1
        labelled_rows = np.flatnonzero(labels != unknown_label)
        labelled_rows = generator.permutation(labelled_rows)[:most_rows]
        other_rows = rows[~np.isin(rows, labelled_rows)]
        rows = np.concatenate([labelled_rows, other_rows])[:most_rows]
    return np.sort(rows)


def read_into_memory(model: DGI) -> None:
    """Read a run's graph folder into memory, if there is room for the graph and its vectors."""
    model.fitted_ = model.fitted_.in_memory()
