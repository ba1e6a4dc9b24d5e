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
    from infomax.estimator import DGI
    from infomax.graphs.graph import Graph


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

    Nodes are compared by their ids: those that are new or have gone, their edges and their
    features. Vectors that no change reaches stay as they are. The vectors are in the new run; embed
    writes them to a file.
    """
    from infomax.training.resuming import refuse_other_run

    is_finished = _is_finished(out, resume, train)
    with show.Steps("update", 3) as steps:
        steps.update(0, "reading the vectors")
        earlier_vectors = _earlier_vectors(run, vectors, train)
        steps.update(1, "reading the graphs")
        model, later_graph = open_run(run, graph, tables, labels, nodes=nodes, device=device)
        if not labels:
            _tell_lost_labels(model, later_graph)
        if is_finished:
            refuse_other_run(out, later_graph, model.preset_.describe(), model.seed_)
            show.out.print(f"{out} holds a finished run already: nothing to resume.")
            return
        if not train:
            steps.update(2, "computing and writing vectors")
            updated = model.update(later_graph, earlier_vectors, align=align, run=out)
    if train:
        with show.training_progress(
            "epochs", "Go on with the same command and --resume."
        ) as progress:
            updated = model.update(
                later_graph, earlier_vectors, train=True, align=align, run=out, progress=progress
            )

    vector_count = format_count(later_graph.num_nodes, "vector")
    show.out.print(f"{updated.changes}.\nComputed: {updated.computed:,} of {vector_count}.")
    show.wrote(f"{out}/")


def _tell_lost_labels(model: DGI, later_graph: Graph) -> None:
    """Say which labels of the run the later graph lacks: only labels that are named are read."""
    lost_labels = [label for label in model.graph_.labels if label not in later_graph.labels]
    if lost_labels:
        choice = f"--labels {' --labels '.join(lost_labels)}"
        show.log.print(f"Its labels are not taken along: {choice} takes them.")


def _is_finished(out: Path, resume: bool, train: bool) -> bool:
    """Whether the update that is to be resumed is finished.

    A folder with the run of another command is refused.
    """
    from infomax.training import runs

    has_finished_run = resume and (out / runs.MODEL).exists()
    if has_finished_run:
        # Only an update without a training writes what its weights were trained on.
        was_trained = "trained_on" not in runs.check(out)
        if was_trained == train:
            return True

    # An interrupted training is gone on with; all else that is in the folder is refused.
    is_interrupted_training = resume and train and not has_finished_run
    if not is_interrupted_training:
        runs.refuse_model(out)
    return False


def _earlier_vectors(run: Path, file: Path | None, train: bool) -> Embeddings | None:
    """The vectors of a run: the stored ones, or those that embed wrote to a file."""
    from infomax.embeddings import Embeddings
    from infomax.training.runs import vectors_of_run

    if file is None:
        stored_vectors = vectors_of_run(run)
        if stored_vectors is None and not train:
            show.log.print(
                f"{run} holds no vectors, so all are computed; "
                "--vectors takes those that embed wrote."
            )
        return stored_vectors
    if file.suffix.lower() == ".npy":
        expected = "vectors with their ids"
        raise InputError(str(file), expected, "an .npy, which holds none", "Embed to .parquet.")
    return Embeddings.read(file)
