"""infomax evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import PROBE_HELP, PROBE_NAMES, Json, Threads, option
from infomax.cli.runs import OfType, SourceArgument, per_run
from infomax.errors import InputError, format_count, warn
from infomax.io.column_names import format_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infomax.cli.labels import RequestedLabels
    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.estimator import DGI
    from infomax.evaluation.results import Row


def _has_labels(description: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether the run of one type of nodes is scored: these nodes have every label in --labels.

    Without --labels it is whether they have labels at all. A column of another source, as in
    ``labels.csv:COLUMN``, does not say of which type it is, unless it is called TYPE.COLUMN.
    """
    from infomax.cli.labels import source_column
    from infomax.io.column_names import find_label
    from infomax.training.runs import types_of

    if options["edges"] or options["future"]:
        return True

    node_type = description["type"]
    labels_of_run = description["labels"]
    requested_labels = options["labels"] or []
    if not requested_labels:
        return bool(labels_of_run)

    # All labels are looked at, since each of them may have to be refused.
    has_all_labels = True
    for label in requested_labels:
        if find_label(label, labels_of_run, node_type):
            continue
        # The labels of the run were searched above, so only other sources are left.
        foreign_column = source_column(label, graph=None)
        if foreign_column is None:
            has_all_labels = False
            continue
        type_of_label = foreign_column.column.partition(".")[0].casefold()
        type_names = [name.casefold() for name in types_of(options["source"])]
        if type_of_label not in type_names:
            remedy = "Say of which type: --type TYPE, or SOURCE:TYPE.COLUMN."
            raise InputError("--labels", "labels of one type of nodes", label, remedy)
        if type_of_label != node_type.casefold():
            has_all_labels = False
    return has_all_labels


LabelColumns = Annotated[
    list[str] | None,
    option(
        "SOURCE:COLUMN",
        "Labels by node id, from a node table or any GRAPH (graph.npz:COLUMN); or COLUMN, of the "
        "run itself. Repeated: columns of 0 and 1, one label each.",
    ),
]
IdColumn = Annotated[
    str | None,
    option(
        "COLUMN",
        "The column of ids in SOURCE.  [default: as in training, else id, else the first]",
    ),
]
Probe = Annotated[
    str | None,
    option(
        PROBE_NAMES,
        f"{PROBE_HELP}  [default: validated; paper where a node may have several labels]",
    ),
]
Folds = Annotated[
    int | None,
    option(
        "K",
        "Score on K stratified folds.  [default: the data set's split; 5 where there are fewer "
        "than 200 labelled nodes per class; else 10 random splits 10/10/80]",
    ),
]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw/--no-raw", help="Score a run's raw features, too; slow where there are many."
    ),
]
Edges = Annotated[
    bool,
    typer.Option(
        "--edges",
        help="Score how a run tells edges from random pairs.  [default: without labels]",
    ),
]
Future = Annotated[
    float | None,
    option("SHARE", "Train on the past, and score the latest events, such a share as 0.2."),
]
Pair = Annotated[
    str | None,
    option(
        "TYPE[:BY]",
        "With --edges or --future, of several types: score links to this type, by this relation "
        "or these rows.",
    ),
]
VectorsFolder = Annotated[
    Path | None,
    option(
        "FOLDER",
        "Write the vectors of every row there, a parquet file for each; raw features are not.",
    ),
]


@app.command()
@partial(per_run, applies=_has_labels)
def evaluate(
    source: SourceArgument,
    labels: LabelColumns = None,
    id: IdColumn = None,
    dataset: Annotated[str | None, option("NAME", "Take labels and split of a data set.")] = None,
    probe: Probe = None,
    folds: Folds = None,
    raw: Raw = True,
    edges: Edges = False,
    future: Future = None,
    pair: Pair = None,
    out: VectorsFolder = None,
    json: Json = None,
    type: OfType = None,
    threads: Threads = None,
) -> list[Any]:
    """Score vectors by a linear probe on labels, or by edges.

    With labels the score is accuracy, or micro-F1 where a node may have several labels; beside
    accuracy stand macro-F1 and AUC, in which rare classes count like others. Without labels it is
    how well the vectors separate edges from random pairs of nodes. A run is scored beside each part
    of its vectors alone, the same encoder untrained (Random-Init), singular vectors of its edges,
    and its features, raw and averaged over two hops.
    """
    from infomax.cli.labels import RequestedLabels
    from infomax.estimator import DGI

    # The callbacks of the arguments have read `type`, which makes RUN into RUN/TYPE, and `threads`.
    opened = _open(source)
    model = opened if isinstance(opened, DGI) else None
    names_labels = bool(labels) or any(value is not None for value in (dataset, probe, folds))
    scores_by = _choose_score(source, model, names_labels, edges=edges, future=future)

    if pair is not None and scores_by == "labels":
        raise InputError("--pair", "--edges or --future, which it is about", "none")
    if out is not None and (model is None or scores_by == "future"):
        found = "--future" if future is not None else f"the vectors {source}"
        raise InputError("--out", "a run that is scored by labels or edges", found)

    # Only the rows of a probe are returned: `per_run` averages them over the encoders of a run.
    if model is not None and future is not None:
        _evaluate_future(source, model, future, pair, json)
        return []
    if model is not None and scores_by == "edges":
        _evaluate_edges(source, model, pair, raw, out, json)
        return []
    graph = None if model is None else model.graph_
    requested_labels = RequestedLabels.read(labels or [], dataset, graph, id)
    return _evaluate_labels(
        source, opened, requested_labels, probe=probe, folds=folds, raw=raw, out=out, json=json
    )


def _choose_score(
    source: Path, model: DGI | None, names_labels: bool, *, edges: bool, future: float | None
) -> Literal["labels", "edges", "future"]:
    """What vectors are scored by; refused where options ask for two scores, or vectors have none.

    Args:
        source: the run, or the vectors.
        model: the model of the run; None for vectors alone.
        names_labels: whether an option about labels was given.
        edges: whether edges were asked for.
        future: the share of later events that was asked for.
    """
    if future is None and not edges:
        # A run without labels can only be scored by its edges.
        has_only_edges = model is not None and not model.graph_.labels and not names_labels
        return "edges" if has_only_edges else "labels"

    option_name = "--edges" if future is None else "--future"
    if names_labels or (edges and future is not None):
        beside = "--labels, --dataset, --probe, --folds or --edges beside it"
        raise InputError("evaluate", f"{option_name} alone", beside)
    if model is None:
        expected = "a run folder, which holds the edges"
        raise InputError(option_name, expected, f"the vectors {source}")
    return "edges" if future is None else "future"


def _open(source: Path) -> Embeddings | StoredEmbeddings | DGI:
    """The model of a run, or the vectors in a file or in a folder of parts."""
    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.estimator import DGI
    from infomax.io.parts import has_parts

    if has_parts(source):
        return StoredEmbeddings.open(source)
    if source.is_dir():
        return DGI.load(source)
    return Embeddings.read(source)


def _evaluate_labels(
    source: Path,
    opened: Embeddings | StoredEmbeddings | DGI,
    labels: RequestedLabels,
    *,
    probe: str | None,
    folds: int | None,
    raw: bool,
    out: Path | None,
    json: Path | None,
) -> list[Row]:
    """Print and write the scores of a probe.

    A model is scored beside what it is compared with; vectors alone beside guessing.
    """
    from infomax.estimator import DGI
    from infomax.evaluation.probes import choose_probe
    from infomax.evaluation.splits import is_labelled, splits_for
    from infomax.reports.comparison import advice, compare, majority, score_vectors

    if isinstance(opened, DGI):
        ids = opened.graph_.ids
    else:
        opened = _labelled_vectors(opened, labels)
        ids = opened.ids
    codes, own_split = labels.encode(ids, are_numbered=source.suffix == ".npy")
    splits, split_name = splits_for(codes, own_split, folds=folds)
    if isinstance(opened, DGI):
        _warn_of_leaks(opened, [column.column for column in labels.columns.values()])

    has_one_label_per_node = codes.ndim == 1
    if probe is None:
        probe = "validated" if has_one_label_per_node else "paper"
    score = choose_probe(probe)
    with show.Steps("evaluate", None) as steps:
        if isinstance(opened, DGI):
            keep = _keep_in(out, opened)
            rows = compare(opened, codes, splits, score, raw=raw, keep=keep, progress=steps.update)
        else:
            row = score_vectors(
                str(source), opened.vectors, codes, splits, score, progress=steps.update
            )
            rows = [row, majority(codes, splits)]

    values = [row.to_dict() for row in rows]
    label_names = list(labels.columns)
    labelled_nodes = format_count(int(is_labelled(codes).sum()), "labelled node")
    title = f"{', '.join(label_names)}: {probe} probe, {split_name}, {labelled_nodes}"
    show.scores(title, values)
    for sentence in advice(rows, str(source)):
        show.out.print(sentence)
    if isinstance(opened, DGI):
        _keep_scores(source, title, rows)
        _show_other_labels(opened, labels)
    result = {
        "source": str(source),
        "labels": label_names,
        "probe": probe,
        "split": split_name,
        "rows": values,
    }
    show.write_result(json, result)
    if out is not None:
        show.wrote(f"{out}/")
    return rows


def _labelled_vectors(
    vectors: Embeddings | StoredEmbeddings, labels: RequestedLabels
) -> Embeddings:
    """The vectors to score; of vectors on disk only those of labelled nodes are read."""
    from infomax.embeddings import Embeddings

    if isinstance(vectors, Embeddings):
        return vectors
    labelled_rows = labels.labelled_rows(vectors.ids)
    return Embeddings(vectors.vectors[labelled_rows], vectors.ids[labelled_rows])


def _warn_of_leaks(model: DGI, label_columns: Sequence[str]) -> None:
    """Name the columns of labels that the vectors were made of: their scores would be a leak's."""
    from infomax.reports.label_leaks import find_label_leaks

    leaks = find_label_leaks(model, label_columns)
    remedy = "so the vectors know them. For a fair score train with --labels"
    if leaks.features:
        names = format_list(leaks.features)
        first_name = leaks.features[0]
        warn(f"labels: training has had {names} as features, {remedy} {first_name}.")
    if leaks.keys:
        names = format_list(leaks.keys)
        warn(f"labels: training has had the edges of {names}, {remedy} {leaks.keys[0]}.")


def _keep_in(folder: Path | None, model: DGI) -> Any:
    """What is called with the vectors of each row of scores, and writes them into the folder."""
    from infomax.reports.compared_vectors import discard_vectors, write_compared_vectors

    if folder is None:
        return discard_vectors
    return partial(write_compared_vectors, folder, model.graph_)


def _keep_scores(run: Path, title: str, rows: Sequence[Row]) -> None:
    """Keep scores on the page of the run."""
    from infomax.training.card import add_scores

    unit = "accuracy in %" if rows[0].metric == "accuracy" else rows[0].metric
    add_scores(run, f"{title}, {unit}", {row.method: row.mean for row in rows})


def _show_other_labels(model: DGI, labels: RequestedLabels) -> None:
    """Say which other labels a run has, where the first was taken because none was named."""
    first_label, *other_labels = model.graph_.labels or [""]
    scores_first_label = labels.columns == {first_label: ("", first_label)}
    if scores_first_label and other_labels:
        names = ", ".join(other_labels)
        show.out.print(f"Other labels: {names}. To score one: --labels {other_labels[0]}")


def _evaluate_edges(
    source: Path, model: DGI, pair: str | None, raw: bool, out: Path | None, json: Path | None
) -> None:
    """Print and write how well the vectors of a run tell edges from random pairs of nodes."""
    from infomax.reports.edges import compare_links, edge_advice
    from infomax.training.card import add_scores

    with show.Steps("evaluate", None) as steps:
        scored = compare_links(
            model, pair, raw=raw, keep=_keep_in(out, model), progress=steps.update
        )

    is_held_out = model.graph_.held_out is not None
    edges = format_count(scored.edge_count, "edge")
    if scored.pair:
        edges = f"{scored.edge_count:,} links {scored.pair}"
    seen = "held out from training" if is_held_out else "seen in training"
    title = f"{edges}, {seen}, against as many random pairs of nodes"
    headings = ("method", "score of a pair", "AUC", "average precision")
    cells = [
        (row.method, row.score, f"{row.auc:.3f}", f"{row.average_precision:.3f}")
        for row in scored.rows
    ]
    show.table(f"{source}: {title}", headings, cells)
    aucs = {f"{row.method}, {row.score}": row.auc for row in scored.rows}
    add_scores(source, f"{title}, AUC", aucs)

    if is_held_out:
        first, second = (f"{share:.0%}" for share in scored.known_ends)
        show.out.print(
            f"Of the ends of these edges training knew {first} and {second} by another edge."
        )
    else:
        show.out.print(
            "These edges were seen in training: scores of new edges are lower. For a fair figure, "
            "train with --hold-out-edges 0.1."
        )
    if scored.other_pairs:
        names = ", ".join(scored.other_pairs)
        show.out.print(f"Not scored: {names}; another: --pair TYPE:BY")
    if is_held_out:
        # Of edges that training has seen, every row that has seen them would be named.
        for sentence in edge_advice(scored.rows, str(source)):
            show.out.print(sentence)
    if out is not None:
        show.wrote(f"{out}/")
    result = {
        "source": str(source),
        "edges": scored.edge_count,
        "held_out": is_held_out,
        "pair": scored.pair,
        "known_ends": list(scored.known_ends),
        "rows": [row.to_dict() for row in scored.rows],
    }
    show.write_result(json, result)


def _evaluate_future(
    source: Path, model: DGI, share: float, pair: str | None, json: Path | None
) -> None:
    """Print and write how well vectors of the past tell later events from random pairs."""
    from infomax.reports.future import HITS, RANDOM_PAIRS, score_future
    from infomax.training.card import add_scores

    with show.Steps("evaluate", None) as steps:
        steps.update(0, "training on the past")
        scored = score_future(model, share, pair=pair)

    headings = ("score by", "AUC", f"hits@{HITS} of {1 + RANDOM_PAIRS}")
    cells = [
        (name, f"{score['auc']:.3f}", f"{score['hits']:.3f}")
        for name, score in scored.scores.items()
    ]
    show.table(f"{source}: {scored.title}", headings, cells)
    for note in scored.notes:
        show.out.print(note)
    aucs = {name: score["auc"] for name, score in scored.scores.items()}
    add_scores(source, f"{scored.title}, AUC", aucs)
    result = {
        "source": str(source),
        "future": scored.title,
        "rows": scored.scores,
        "notes": scored.notes,
    }
    show.write_result(json, result)
