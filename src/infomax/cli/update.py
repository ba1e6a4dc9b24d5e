"""infomax update."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import Grouped, app
from infomax.cli.embed import open_run
from infomax.cli.options import (
    Device,
    FeatureFile,
    GraphArgument,
    Labels,
    NodesArgument,
    Resume,
    option,
    reads_tables,
)
from infomax.cli.runs import RunOrRuns, per_run
from infomax.errors import InputError, format_count

if TYPE_CHECKING:
    from infomax.embeddings import Embeddings


@app.command(cls=Grouped)
@partial(per_run, writes_runs=True)
@reads_tables("id", "name", "source", "target", "weight", "as_of", features=FeatureFile)
def update(
    run: RunOrRuns,
    graph: GraphArgument,
    nodes: NodesArgument = None,
    *,
    out: Annotated[Path, option("RUN2", "The run folder to write, with its vectors.")],
    vectors: Annotated[
        Path | None,
        option("FILE", "The vectors of RUN, written by embed.  [default: those in RUN]"),
    ] = None,
    train: Annotated[
        bool,
        typer.Option(
            "--train", help="Go on training from the weights of RUN; then all vectors change."
        ),
    ] = False,
    align: Annotated[
        bool,
        typer.Option(
            "--align",
            help="After --train, turn the vectors onto those of RUN, by the best rotation.",
        ),
    ] = False,
    resume: Resume = False,
    labels: Labels = None,
    device: Device = "auto",
    tables: dict[str, Any],
) -> None:
    """Take a run to a later graph; compute only what has changed.

    Nodes are compared by their ids: those that are new or have gone, their edges and their features. Vectors that no
    change reaches stay as they are. The vectors are in the new run; embed writes them to a file.
    """
    from infomax.training.resuming import refuse_other_run

    finished = _is_finished(out, resume, train)
    with show.Steps("update", 3) as steps:
        steps.at(0, "reading the vectors")
        before = _earlier_vectors(run, vectors, train)
        steps.at(1, "reading the graphs")
        model, later = open_run(run, graph, tables, labels, nodes=nodes, device=device)
        if lost := [
            label for label in model.graph_.labels if not labels and label not in later.labels
        ]:
            show.log.print(
                f"Its labels are not taken along: --labels {' --labels '.join(lost)} takes them."
            )
        if finished:
            refuse_other_run(out, later, model.preset_.describe(), model.seed_)
            show.out.print(f"{out} holds a finished run already: nothing to resume.")
            return
        if not train:
            steps.at(2, "computing and writing vectors")
            found = model.update(later, before, align=align, run=out)
    if train:
        with show.training_progress(
            "epochs", "Go on with the same command and --resume."
        ) as progress:
            found = model.update(later, before, train=True, align=align, run=out, progress=progress)
    show.out.print(
        f"{found.changes}.\nComputed: {found.computed:,} of {format_count(later.num_nodes, 'vector')}."
    )
    show.wrote(f"{out}/")


def _is_finished(out: Path, resume: bool, train: bool) -> bool:
    """Whether there is nothing left to resume; refuse a folder with a run that this update does not go on with."""
    from infomax.training import runs

    there = resume and (out / runs.MODEL).exists()
    same = there and train != (
        "trained_on" in runs.check(out)
    )  # which only an update without a training writes
    if not same and (there or not (resume and train)):
        runs.refuse_model(out)
    return same


def _earlier_vectors(run: Path, file: Path | None, train: bool) -> Embeddings | None:
    """The vectors of a run: those that it holds, or those that embed wrote to a file."""
    from infomax.embeddings import Embeddings
    from infomax.training.runs import vectors_of_run

    if file is None:
        found = vectors_of_run(run)
        if found is None and not train:
            show.log.print(
                f"{run} holds no vectors, so all are computed; --vectors takes those that embed wrote."
            )
        return found
    if file.suffix.lower() == ".npy":
        raise InputError(
            str(file), "vectors with their ids", "an .npy, which holds none", "Embed to .parquet."
        )
    return Embeddings.read(file)
