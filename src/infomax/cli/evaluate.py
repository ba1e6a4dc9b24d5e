"""infomax evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import PROBE_HELP, PROBE_NAMES, Json, Threads, option
from infomax.cli.runs import OfType, SourceArgument, per_run
from infomax.errors import InputError, format_count, warn
from infomax.io.column_names import format_list

if TYPE_CHECKING:
    from infomax.cli.labels import Asked
    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.estimator import DGI
    from infomax.reports.compared_vectors import ComparedVectors


def _has_labels(described: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether a type of nodes has the labels that are asked for.

    A column of a table elsewhere does not say of which type it is, unless it is called TYPE.COLUMN.
    """
    from infomax.cli.labels import source_column
    from infomax.io.label_names import label_called
    from infomax.training.runs import types_of

    if options["edges"] or options["future"]:
        return True
    labels = described["labels"]
    node_type = described["type"]
    wanted = options["labels"] or []
    has_all = bool(labels or wanted)
    for label in wanted:
        if label_called(label, labels, node_type):
            continue
        elsewhere = source_column(label, None)
        if elsewhere is None:
            has_all = False
            continue
        owner = elsewhere[1].partition(".")[0].casefold()
        if owner not in [name.casefold() for name in types_of(options["source"])]:
            remedy = "Say of which type: --type TYPE, or SOURCE:TYPE.COLUMN."
            raise InputError("--labels", "labels of one type of nodes", label, remedy)
        has_all = has_all and owner == node_type.casefold()
    return has_all


LabelColumns = Annotated[
    list[str] | None,
    option(
        "SOURCE:COLUMN",
        "Labels by node id, from a node table or any GRAPH (graph.npz:COLUMN); or COLUMN, of the run itself. "
        "Repeated: columns of 0 and 1, one label each.",
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
        "Score on K stratified folds.  [default: the data set's split; 5 where there are fewer than 200 labelled nodes "
        "per class; else 10 random splits 10/10/80]",
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
        "With --edges or --future, of several types: score links to this type, by this relation or these rows.",
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
@partial(per_run, has=_has_labels)
def evaluate(
    source: SourceArgument,
    labels: LabelColumns = None,
    id: Annotated[
        str | None,
        option(
            "COLUMN",
            "The column of ids in SOURCE.  [default: as in training, else id, else the first]",
        ),
    ] = None,
    dataset: Annotated[str | None, option("NAME", "Take labels and split of a data set.")] = None,
    probe: Probe = None,
    folds: Folds = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw/--no-raw", help="Score a run's raw features, too; slow where there are many."
        ),
    ] = True,
    edges: Annotated[
        bool,
        typer.Option(
            "--edges",
            help="Score how a run tells edges from random pairs.  [default: without labels]",
        ),
    ] = False,
    future: Future = None,
    pair: Pair = None,
    out: VectorsFolder = None,
    json: Json = None,
    type: OfType = None,
    threads: Threads = None,
) -> list[Any]:
    """Score vectors by a linear probe on labels, or by edges.

    With labels the score is accuracy, or micro-F1 where a node may have several labels; beside accuracy stand macro-F1
    and AUC, in which rare classes count like others. Without labels it is how well the vectors separate edges from
    random pairs of nodes. A run is scored beside each part of its vectors alone, the same encoder untrained
    (Random-Init), singular vectors of its edges, and its features, raw and averaged over two hops.
    """
    from infomax.cli.labels import Asked

    scored, model = _opened(source)
    names_labels = bool(labels) or dataset is not None or probe is not None or folds is not None
    alone = ""
    if future is not None:
        alone = "--future"
    elif edges:
        alone = "--edges"
    if alone and (names_labels or (edges and future is not None)):
        found = "--labels, --dataset, --probe, --folds or --edges beside it"
        raise InputError("evaluate", f"{alone} alone", found)
    if alone and model is None:
        raise InputError(alone, "a run folder, which holds the edges", f"the vectors {source}")

    scores_edges = edges or (
        model is not None and not model.graph_.labels and not names_labels and future is None
    )
    if pair is not None and future is None and not scores_edges:
        raise InputError("--pair", "--edges or --future, which it is about", "none")
    if out is not None and (model is None or future is not None):
        found = "--future" if future is not None else f"the vectors {source}"
        raise InputError("--out", "a run that is scored by labels or edges", found)

    if model is not None and future is not None:
        _evaluate_future(source, model, future, pair, json)
        return []
    if model is not None and scores_edges:
        _evaluate_edges(source, model, pair, raw, out, json)
        return []
    asked = Asked.of(labels or [], dataset, None if model is None else model.graph_, id)
    return _evaluate_labels(
        source, scored, model, asked, probe=probe, folds=folds, raw=raw, out=out, json=json
    )


def _opened(source: Path) -> tuple[DGI | Embeddings | StoredEmbeddings, DGI | None]:
    """What a run, a file of vectors or a folder of parts holds; and the model, of a run."""
    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.estimator import DGI
    from infomax.io.parts import has_parts

    if has_parts(source):
        return StoredEmbeddings.open(source), None
    if source.is_dir():
        model = DGI.load(source)
        return model, model
    return Embeddings.read(source), None


def _evaluate_labels(
    source: Path,
    scored: Any,
    model: DGI | None,
    asked: Asked,
    *,
    probe: str | None,
    folds: int | None,
    raw: bool,
    out: Path | None,
    json: Path | None,
) -> list[Any]:
    """Print and write the scores of a probe: of a model beside what it is compared with, of vectors beside guessing."""
    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.evaluation.probes import choose_probe
    from infomax.evaluation.splits import is_labelled, splits_for
    from infomax.reports.comparison import advice, compare, majority, vectors_row
    from infomax.training.card import add_scores

    if isinstance(scored, StoredEmbeddings):
        labelled_rows = asked.rows(scored.ids)  # the vectors of others are not read into memory
        scored = Embeddings(scored.vectors[labelled_rows], scored.ids[labelled_rows])
    ids = scored.ids if model is None else model.graph_.ids
    codes, own_split = asked.coded(ids, numbered=source.suffix == ".npy")
    splits, split_name = splits_for(codes, own_split, folds=folds)

    if model is not None and list(parts := model.fitted_.recipe.parts) != ["positions"]:
        _warn_of_features(model, [column for _, column in asked.named.values()], own="own" in parts)
    probe = probe or ("validated" if codes.ndim == 1 else "paper")
    measure = choose_probe(probe)
    with show.Steps("evaluate", None) as steps:
        if model is None:
            row = vectors_row(
                str(source), scored.vectors, codes, splits, measure, progress=steps.at
            )
            rows = [row, majority(codes, splits)]
        else:
            keep = partial(_write_vectors, out, model) if out is not None else _keep_nothing
            rows = compare(model, codes, splits, measure, raw=raw, keep=keep, progress=steps.at)

    values = [row.to_dict() for row in rows]
    labelled = format_count(int(is_labelled(codes).sum()), "labelled node")
    title = f"{', '.join(asked.named)}: {probe} probe, {split_name}, {labelled}"
    show.scores(title, values)
    notes = advice(rows, str(source))
    if model is not None:
        unit = "accuracy in %" if rows[0].metric == "accuracy" else rows[0].metric
        add_scores(source, f"{title}, {unit}", {row.method: row.mean for row in rows})
        first, *others = model.graph_.labels or [""]
        if others and asked.named == {first: ("", first)}:
            notes.append(f"Other labels: {', '.join(others)}. To score one: --labels {others[0]}")
    for note in notes:
        show.out.print(note)
    result = {
        "source": str(source),
        "labels": list(asked.named),
        "probe": probe,
        "split": split_name,
        "rows": values,
    }
    show.write_result(json, result)
    if out is not None:
        show.wrote(f"{out}/")
    return rows


def _keep_nothing(compared: ComparedVectors) -> None:
    """Vectors are scored, and not written."""


def _write_vectors(folder: Path, model: DGI, compared: ComparedVectors) -> None:
    """Write the vectors of a row that is scored by labels; of a graph folder some nodes alone are scored."""
    if compared.vectors.shape[0] == model.graph_.num_nodes:
        _write_vectors_of_type(
            folder, model, compared.name, model.graph_.node_type, compared.vectors
        )


def _write_vectors_of_type(
    folder: Path, model: DGI, name: str, node_type: str, vectors: Any
) -> None:
    """Write the vectors of a row as a parquet file with its name: ``svd-of-the-edges.parquet``.

    Those of nodes of another type than the model's have the name of the type, too. Raw features are not written.
    """
    from infomax.arrays.sparsity import dense
    from infomax.embeddings import Embeddings
    from infomax.io.atomic import make_folder
    from infomax.reports.compared_vectors import RAW

    if name == RAW:
        return
    make_folder(folder)
    nodes = model.graph_.nodes[node_type]
    file_name = name.lower().replace(" ", "-")
    if node_type != model.graph_.node_type:
        file_name = f"{file_name}.{node_type}"
    Embeddings(dense(vectors), nodes.ids, nodes.node_names).save(folder / f"{file_name}.parquet")


def _evaluate_edges(
    source: Path, model: DGI, pair: str | None, raw: bool, out: Path | None, json: Path | None
) -> None:
    """Print and write how well the vectors of a run tell edges from random pairs of nodes."""
    from infomax.reports.edges import compare_links, edge_advice, keep_nothing
    from infomax.training.card import add_scores

    keep = keep_nothing
    if out is not None:
        keep = partial(_write_vectors_of_type, out, model)
    with show.Steps("evaluate", None) as steps:
        scored = compare_links(model, pair, raw=raw, keep=keep, progress=steps.at)
    held_out = model.graph_.held_out is not None
    seen = "held out from training" if held_out else "seen in training"
    links = f"links {scored.pair}" if scored.pair else ""
    what = f"{scored.count:,} {links}" if links else format_count(scored.count, "edge")
    title = f"{what}, {seen}, against as many random pairs of nodes"
    cells = (
        (row["method"], row["score"], f"{row['auc']:.3f}", f"{row['average_precision']:.3f}")
        for row in scored.rows
    )
    heads = ("method", "score of a pair", "AUC", "average precision")
    show.table(f"{source}: {title}", heads, cells)
    aucs = {f"{row['method']}, {row['score']}": row["auc"] for row in scored.rows}
    add_scores(source, f"{title}, AUC", aucs)

    if held_out:
        first, second = (f"{share:.0%}" for share in scored.known_ends)
        show.out.print(
            f"Of the ends of these edges training knew {first} and {second} by another edge."
        )
    else:
        show.out.print(
            "These edges were seen in training: scores of new edges are lower. For a fair figure, train with "
            "--hold-out-edges 0.1."
        )
    if scored.others:
        show.out.print(f"Not scored: {', '.join(scored.others)}; another: --pair TYPE:BY")
    if held_out:  # who has seen an edge tells it easily
        for note in edge_advice(scored.rows, str(source)):
            show.out.print(note)
    if out is not None:
        show.wrote(f"{out}/")
    result = {
        "source": str(source),
        "edges": scored.count,
        "held_out": held_out,
        "pair": scored.pair,
        "known_ends": list(scored.known_ends),
        "rows": [{name: row[name] for name in row if name != "command"} for row in scored.rows],
    }
    show.write_result(json, result)


def _evaluate_future(
    source: Path, model: DGI, share: float, pair: str | None, json: Path | None
) -> None:
    """Print and write how well vectors of the past tell later events from random pairs."""
    from infomax.reports.future import HITS, RANDOM_PAIRS, score_future
    from infomax.training.card import add_scores

    with show.Steps("evaluate", None) as steps:
        steps.at(0, "training on the past")
        found = score_future(model, share, pair=pair)
    rows = [
        (name, f"{score['auc']:.3f}", f"{score['hits']:.3f}")
        for name, score in found.scores.items()
    ]
    ranked = f"hits@{HITS} of {1 + RANDOM_PAIRS}"
    show.table(f"{source}: {found.title}", ("score by", "AUC", ranked), rows)
    for note in found.notes:
        show.out.print(note)
    aucs = {name: score["auc"] for name, score in found.scores.items()}
    add_scores(source, f"{found.title}, AUC", aucs)
    result = {"source": str(source), "future": found.title, "rows": found.scores}
    show.write_result(json, result | {"notes": found.notes})


def _warn_of_features(model: DGI, columns: list[str], *, own: bool) -> None:
    """Name the columns of labels that the vectors were made of: their scores would be those of a leak.

    Those of a type of nodes to which no path leads are made of other types, but for the nodes' ``own`` part.
    """
    from infomax.io.label_names import label_called
    from infomax.views.steps import paths_of

    graph = model.graph_
    if graph.node_type and not own:
        paths = paths_of(graph, model.model_.encoder.rule).values()
        if all(path[-1].sender != graph.node_type for path in paths):
            return

    features = list(graph.feature_names)
    if graph.encoding is not None:
        features = [column.name for column in graph.encoding.feature_columns]
    table = None if graph.schema is None else graph.schema.of_type(graph.node_type)
    keys = [] if table is None else [key for key in table.keys if key.table]
    key_columns = [column for key in keys for column in key.columns]
    # The category of a lookup may be called as its table is.
    features += [column for key in keys if key.table in features for column in key.columns]

    named = [label_called(column, [*features, *key_columns], graph.node_type) for column in columns]
    leaking = [column for column in named if column in features]
    # Where the label is a key, training was told so and left its edges out.
    labels_of_training = [] if table is None else table.with_role("label")
    joined = [
        column
        for column in named
        if column in key_columns and column not in (*features, *labels_of_training)
    ]
    remedy = "so the vectors know them. For a fair score train with --labels"
    if leaking:
        warn(f"labels: training has had {format_list(leaking)} as features, {remedy} {leaking[0]}.")
    if joined:
        warn(f"labels: training has had the edges of {format_list(joined)}, {remedy} {joined[0]}.")
