"""Run folders as arguments of commands: one, one of its types, or several; and what is read of them."""

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
    from infomax.graphs.graph import Graph


def _of_type(context: typer.Context, run: Path) -> Path:
    """RUN/TYPE, where a command was given --type."""
    from infomax.io.column_names import matching_type
    from infomax.training import runs

    node_type: str | None = context.params.get("type")
    if node_type is None:
        return run
    if not (known := matching_type(node_type, kinds := runs.types_of(run))):
        raise InputError(
            "--type",
            f"one of {', '.join(kinds)}" if kinds else "a run of several types of nodes",
            node_type,
        )
    return run / known


def _finished(context: typer.Context, run: Path) -> Path:
    """Check that a run is finished, all its types, before torch is loaded, which takes seconds."""
    from infomax.training import runs

    run = _of_type(context, run)
    for node_type in runs.types_of(run) or [""]:
        runs.check(run / node_type)
    return run


def _all_finished(context: typer.Context, run: Path) -> Path:
    """As `_finished`, of a run or a folder of runs."""
    from infomax.training import runs

    run = _of_type(context, run)
    runs.check_all(run)
    return run


def _finished_or_vectors(context: typer.Context, source: Path) -> Path:
    from infomax.io.parts import has_parts

    if not source.exists():
        raise InputError(str(source), "a run folder, or what embed wrote", "nothing of that name")
    apart = source.is_dir() and not (source / "config.json").exists()
    if apart and (kinds := [path.name for path in sorted(source.iterdir()) if has_parts(path)]):
        node_type: str = context.params.get("type") or "none"
        if node_type not in kinds:
            raise InputError(str(source), f"--type TYPE, one of {', '.join(kinds)}", node_type)
        return source / node_type
    if source.is_file() or has_parts(source):
        _refuse_type_of_vectors(context, source)
        return source
    return _all_finished(context, source)


def _refuse_type_of_vectors(context: typer.Context, source: Path) -> None:
    """Refuse --type beside vectors, which are of one type, whatever its name is."""
    node_type: str | None = context.params.get("type")
    if node_type is not None:
        expected = "a run of several types of nodes"
        remedy = "Leave it out: the vectors are all of one type."
        raise InputError("--type", expected, f"the vectors {source}", remedy)


def per_run(
    command: Callable[..., Any],
    *,
    has: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = lambda *_: True,
    around: Callable[[Mapping[str, Any]], AbstractContextManager[None]] = lambda _: nullcontext(),
    writes_runs: bool = False,
) -> Callable[..., None]:
    """Let a command on a run take a folder of runs, of several types or seeds, too: it is called for each.

    Files that it writes then have the name of the run in their own. Where it returns rows of scores of several
    encoders of a type, means and deviations over them come last, and into the file that was named. Types that do not
    have what is asked for, by the description of the graph and the options, are left out; of several those, too, that
    have too few edges to score. What is ``around`` begins before the first of them and ends after the last.
    """
    first = next(iter(signature(command).parameters))

    @wraps(command)
    def run(**given: Any) -> None:
        from infomax.cli import show
        from infomax.training import runs

        folder = given[first]
        names = runs.runs_in(folder)
        if not names:
            with around(given):
                command(**given)
            return
        graphs = {name: runs.check(folder / name)["graph"] for name in names}
        chosen = [
            name for name, graph in graphs.items() if not graph.get("type") or has(graph, given)
        ]
        one = (
            len(chosen) == 1 and given.get("at") is not None
        )  # questions, whose file is the one that was asked for
        scored: dict[Path, list[Any]] = {}  # by type
        with around(given), runs.listing(given["out"], names) if writes_runs else nullcontext():
            for name in chosen:
                show.log.print(f"{name}:")
                show.start_clock()
                own = given if one else _for_run(given, name)
                try:
                    scored.setdefault(name.parent, []).append(
                        command(**{**own, first: folder / name})
                    )
                except TooFewEdgesError as error:
                    if name == chosen[-1] and not any(scored.values()):
                        raise
                    warn(f"{name} is left out: {error}")
        if not scored:
            remedy = "Train with --labels COLUMN, or score one type: --type TYPE --labels nodes.csv:COLUMN."
            wanted = f"the labels {', '.join(given['labels'])}" if given["labels"] else "labels"
            raise InputError(str(folder), f"{wanted} of one type of nodes or more", "none", remedy)
        for node_type, found in scored.items():
            if (
                len(found) > 1
                and all(name.name.startswith("seed-") for name in names)
                and all(found)
            ):
                from infomax.evaluation.results import over_encoders

                values = [row.to_dict() for row in over_encoders(found)]
                show.scores(f"{folder / node_type}: mean ± over {len(found)} encoders", values)
                path = given["json"] and node_type.name and _of_run(given["json"], node_type)
                show.write_result(
                    path or given["json"], {"source": str(folder / node_type), "rows": values}
                )

    return run


def _for_run(given: Mapping[str, Any], name: Path) -> dict[str, Any]:
    """The options of a command for one of several runs: what it writes has the name of the run."""
    paths = {option: given.get(option) for option in ("out", "json", "vectors")}
    written: dict[str, Any] = {
        option: _of_run(path, name) for option, path in paths.items() if isinstance(path, Path)
    }
    if table := given.get("into"):
        written["into"] = f"{table}_{'_'.join(name.parts)}"
    return {**given, **written}


def _of_run(path: Path, name: Path) -> Path:
    """The file or folder of one run: vectors.paper.parquet for vectors.parquet, vectors/paper for vectors/."""
    return path.with_suffix(f".{'.'.join(name.parts)}{path.suffix}") if path.suffix else path / name


RunOrRuns = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        callback=_all_finished,
        help="A run folder, written by train; of several types or seeds, all or one: RUN/TYPE.",
    ),
]
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", callback=_finished, help="A run folder, written by train.")
]
SourceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN|VECTORS",
        callback=_finished_or_vectors,
        help="A run folder, or a file or a folder of parts that embed wrote.",
    ),
]
OfType = Annotated[
    str | None, option("NAME", "Of a run of several types of nodes, this one.", is_eager=True)
]
"""Read before RUN, which becomes RUN/TYPE."""


def vectors(run: Path, graph: Graph, device: str = "auto") -> Embeddings | StoredEmbeddings:
    """The vectors of a run, whose graph was read: those that it holds, without torch, else computed ones.

    Those of a graph folder are parquet parts in the run folder; missing ones are written.
    """
    from infomax.training.runs import vectors_of_run

    if device == "auto" and (held := vectors_of_run(run, graph)) is not None:
        return held

    from infomax.estimator import DGI

    model = DGI.load(run, device=device)
    return written_once(model, run) if graph.table.mapped else model.transform(model.graph_)


def written_once(model: DGI, run: Path) -> StoredEmbeddings:
    """The vectors of a run on a graph folder: parquet parts in the run folder; missing ones are written."""
    from infomax.cli import show
    from infomax.embeddings import StoredEmbeddings

    with show.Steps("embed", model.graph_.num_nodes, "Go on with the same command.") as steps:
        # The pages are checked when they are read.
        model.write_vectors(model.graph_, run / "vectors", check=False, progress=steps.at)
    return StoredEmbeddings.open(run / "vectors")


def sampled_rows(
    model: DGI, most: int, seed: int, column: NDArray[Any] | None = None
) -> NDArray[np.int64] | None:
    """At most so many random rows of a graph folder, ascending; those with a label in a column are drawn first.

    None where the graph is in memory, or the folder has no more nodes than that: then it is read into memory.
    """
    import numpy as np

    graph = model.graph_
    if not graph.table.mapped or graph.num_nodes <= most:
        in_memory(model)
        return None
    draws = np.random.default_rng(seed)
    rows = draws.choice(graph.num_nodes, most, replace=False)
    if column is not None:
        labelled = draws.permutation(
            np.flatnonzero(column != ("" if column.dtype == object else -1))
        )[:most]
        rows = np.concatenate([labelled, rows[~np.isin(rows, labelled)]])[:most]
    return np.sort(rows)


def in_memory(model: DGI) -> None:
    """Read the graph of a run into memory where it is a graph folder, if there is room for it and its vectors."""
    model.fitted_ = model.fitted_.in_memory()
