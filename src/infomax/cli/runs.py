"""Run folders as arguments of commands: one, one of its types, or several; and what is read of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from infomax.embeddings import StoredEmbeddings
    from infomax.estimator import DGI


def _finished(context: typer.Context, run: Path) -> Path:
    """Check that a run folder is one, before torch is loaded, which takes seconds; with --type, the run of that."""
    from infomax.training import runs

    run = _of_type(context, run)
    runs.check(run)
    return run


def _finished_types(context: typer.Context, run: Path) -> Path:
    """As `_finished`; a run of several types of nodes is one where all of them are."""
    from infomax.training import runs

    run = _of_type(context, run)
    for kind in runs.types_of(run) or [""]:
        runs.check(run / kind)
    return run


def _of_type(context: typer.Context, run: Path) -> Path:
    """RUN/TYPE, where a command was given --type."""
    from infomax.io.encoding.keys import called
    from infomax.training import runs

    kind: str | None = context.params.get("type")
    if kind is None:
        return run
    if not (known := called(kind, kinds := runs.types_of(run))):
        raise InputError("--type", f"one of {', '.join(kinds)}" if kinds else "a run of several types of nodes", kind)
    return run / known


def _finished_or_vectors(context: typer.Context, source: Path) -> Path:
    from infomax.io.parts import has_parts
    from infomax.training import runs

    if not source.exists():
        raise InputError(str(source), "a run folder, or what embed wrote", "nothing of that name")
    apart = source.is_dir() and not (source / "config.json").exists()
    if apart and (kinds := [path.name for path in sorted(source.iterdir()) if has_parts(path)]):
        kind: str = context.params.get("type") or "none"
        if kind not in kinds:
            raise InputError(str(source), f"--type TYPE, one of {', '.join(kinds)}", kind)
        return source / kind
    source = _of_type(context, source)
    if not (source.is_file() or has_parts(source)):
        runs.check_all(source)
    return source


def per_run(
    command: Callable[..., Any],
    *,
    has: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = lambda *_: True,
    writes_runs: bool = False,
) -> Callable[..., None]:
    """Let a command on a run take a folder of runs, of several types or seeds, too: it is called for each.

    Files that it writes then have the name of the run in their own. Where it returns rows of scores of several
    encoders of a type, means and deviations over them come last, and into the file that was named. Types that do not
    have what is asked for, by the description of the graph and the options, are left out.
    """
    first = next(iter(signature(command).parameters))

    @wraps(command)
    def run(**given: Any) -> None:
        from infomax.cli import show
        from infomax.training import runs

        folder = given[first]
        names = runs.runs_in(given[first])
        began = time.monotonic()
        if not names:
            command(**given)
        scored: dict[Path, list[Any]] = {}  # by type
        with runs.listing(given["out"], names) if names and writes_runs else nullcontext():
            for name in names:
                described = runs.check(folder / name)["graph"]
                if described.get("type") and not has(described, given):
                    continue
                written: dict[str, Any] = {
                    option: _of_run(path, name)
                    for option in ("out", "json", "vectors")
                    if isinstance(path := given.get(option), Path)
                }
                if table := given.get("into"):
                    written["into"] = f"{table}_{'_'.join(name.parts)}"
                show.log.print(f"{name}:")
                scored.setdefault(name.parent, []).append(command(**{**given, **written, first: folder / name}))
        if names and not scored:
            remedy = "Train with --labels COLUMN, or score one type: --type TYPE --labels nodes.csv:COLUMN."
            wanted = f"the labels {', '.join(given['labels'])}" if given["labels"] else "labels"
            raise InputError(str(folder), f"{wanted} of one type of nodes or more", "none", remedy)
        for kind, found in scored.items():
            if len(found) > 1 and all(name.name.startswith("seed-") for name in names) and all(found):
                from infomax.evaluation.results import over_encoders

                values = [row.to_dict() for row in over_encoders(found)]
                show.scores(f"{folder / kind}: mean ± over {len(found)} encoders", values)
                path = given["json"] and kind.name and _of_run(given["json"], kind)
                show.write_result(path or given["json"], {"source": str(folder / kind), "rows": values}, began)

    return run


def _of_run(path: Path, name: Path) -> Path:
    """The file or folder of one run: vectors.paper.parquet for vectors.parquet, vectors/paper for vectors/."""
    return path.with_suffix(f".{'.'.join(name.parts)}{path.suffix}") if path.suffix else path / name


def _finished_runs(context: typer.Context, run: Path) -> Path:
    """As `_finished`, of a run or a folder of runs."""
    from infomax.training import runs

    run = _of_type(context, run)
    runs.check_all(run)
    return run


RunOrRuns = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        callback=_finished_runs,
        help="A run folder, written by train; of several types or seeds, all or one: RUN/TYPE.",
    ),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", callback=_finished, help="A run folder, written by train.")]
RunOfTypes = Annotated[
    Path, typer.Argument(metavar="RUN", callback=_finished_types, help="A run folder, written by train.")
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
    str | None, typer.Option(metavar="NAME", help="Of a run of several types of nodes, this one.", is_eager=True)
]
"""Read before RUN, which becomes RUN/TYPE."""


def written_once(model: DGI, run: Path) -> StoredEmbeddings:
    """The vectors of a run on a graph folder: parquet parts in the run folder; missing ones are written."""
    from infomax.cli import show
    from infomax.embeddings import StoredEmbeddings

    with show.Steps("embed", model.graph_.num_nodes, "Go on with the same command.") as steps:
        # The pages are checked when they are read.
        model.write_vectors(model.graph_, run / "vectors", check=False, progress=steps.at)
    return StoredEmbeddings.open(run / "vectors")


def sampled_rows(model: DGI, most: int, seed: int, column: NDArray[Any] | None = None) -> NDArray[np.int64] | None:
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
        labelled = draws.permutation(np.flatnonzero(column != ("" if column.dtype == object else -1)))[:most]
        rows = np.concatenate([labelled, rows[~np.isin(rows, labelled)]])[:most]
    return np.sort(rows)


def in_memory(model: DGI) -> None:
    """Read the graph of a run into memory where it is a graph folder, if there is room for it and its vectors."""
    from infomax.io import memory
    from infomax.kernels import room
    from infomax.kernels.device import choose_device

    if model.graph_.table.mapped:
        room.require(memory.embedding_bytes(model.graph_, model.model_.encoder.out_dim), choose_device("cpu"))
        model.graph_ = model.graph_.loaded()
