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
from infomax.errors import InputError, number_of, warn

if TYPE_CHECKING:
    from infomax.cli.labels import Asked
    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.estimator import DGI


def _has_labels(described: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether a type of nodes has the labels that are asked for; a table does not say of which type it is."""
    from infomax.cli.labels import source_column

    if options["edges"] or options["future"]:
        return True
    wanted = options["labels"] or []
    for label in wanted:
        if label not in described["labels"] and source_column(label, None):
            raise InputError(
                "--labels", "labels of one type of nodes", label, "Say of which type: --type TYPE."
            )
    return bool(described["labels"]) and all(label in described["labels"] for label in wanted)


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
    future: Annotated[
        float | None,
        option("SHARE", "Train on the past, and score the latest events, such a share as 0.2."),
    ] = None,
    json: Json = None,
    type: OfType = None,
    threads: Threads = None,
) -> list[Any]:
    """Score vectors by a linear probe on labels, or by edges.

    With labels the score is accuracy, or micro-F1 where a node may have several labels; beside accuracy stand macro-F1
    and AUC, in which rare classes count like others. Without labels it is how well the vectors separate edges from
    random pairs of nodes. A run is scored beside parts of its vectors alone, the same encoder untrained (Random-Init),
    and its raw features.
    """
    from infomax.cli.labels import Asked

    scored, model = _opened(source)
    by_labels = bool(labels) or dataset is not None or probe is not None
    alone = "--future" if future is not None else "--edges" if edges else ""
    if alone and (by_labels or (edges and future is not None)):
        raise InputError(
            "evaluate", f"{alone} alone", "--labels, --dataset, --probe or --edges beside it"
        )
    if alone and model is None:
        raise InputError(alone, "a run folder, which holds the edges", f"the vectors {source}")
    if model is not None and future is not None:
        _evaluate_future(source, model, future, json)
        return []
    if model is not None and (edges or (not model.graph_.labels and not by_labels)):
        _evaluate_edges(source, model, json)
        return []
    asked = Asked.of(labels or [], dataset, None if model is None else model.graph_, id)
    return _evaluate_labels(source, scored, model, asked, probe, raw, json)


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
    probe: str | None,
    raw: bool,
    json: Path | None,
) -> list[Any]:
    """Print and write the scores of a probe: of a model beside what it is compared with, of vectors beside guessing."""
    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.evaluation.probes import choose_probe
    from infomax.evaluation.splits import known, splits_for
    from infomax.reports.comparison import advice, compare, majority, vectors_row
    from infomax.training.health import add_scores

    if isinstance(scored, StoredEmbeddings):
        some = asked.rows(scored.ids)  # the vectors of others are not read into memory
        scored = Embeddings(scored.vectors[some], scored.ids[some])
    codes, own = asked.coded(
        scored.ids if model is None else model.graph_.ids, numbered=source.suffix == ".npy"
    )
    splits, split = splits_for(codes, own)
    if model is not None and list(parts := model._recipe().parts) != ["positions"]:
        _warn_of_features(model, [column for _, column in asked.named.values()], own="own" in parts)
    probe = probe or ("validated" if codes.ndim == 1 else "paper")
    measure = choose_probe(probe)
    with show.Steps("evaluate", None) as steps:
        if model is not None:
            rows = compare(model, codes, splits, measure, raw=raw, progress=steps.at)
        else:
            row = vectors_row(
                str(source), scored.vectors, codes, splits, measure, progress=steps.at
            )
            rows = [row, majority(codes, splits)]
    values = [row.to_dict() for row in rows]
    labelled = number_of(int(known(codes).sum()), "labelled node")
    title = f"{', '.join(asked.named)}: {probe} probe, {split}, {labelled}"
    show.scores(title, values)
    advised = advice(rows)
    if model is not None:
        unit = "accuracy in %" if rows[0].metric == "accuracy" else rows[0].metric
        add_scores(source, f"{title}, {unit}", {row.method: row.mean for row in rows})
        first, *others = model.graph_.labels or [""]
        if others and asked.named == {first: ("", first)}:
            advised.append(f"Other labels: {', '.join(others)}. To score one: --labels {others[0]}")
    for line in advised:
        show.out.print(line)
    found = {
        "source": str(source),
        "labels": list(asked.named),
        "probe": probe,
        "split": split,
        "rows": values,
    }
    show.write_result(json, found)
    return rows


def _evaluate_edges(source: Path, model: DGI, json: Path | None) -> None:
    """Print and write how well the vectors of a run tell edges from random pairs of nodes."""
    from infomax.reports.comparison import compare_links
    from infomax.training.health import add_scores

    with show.Steps("evaluate", None) as steps:
        rows, count = compare_links(model, progress=steps.at)
    held_out = model.graph_.held_out is not None
    node_type = "held out from training" if held_out else "seen in training"
    title = f"{number_of(count, 'edge')}, {node_type}, against as many random pairs of nodes"
    cells = (
        (one["method"], one["score"], f"{one['auc']:.3f}", f"{one['average_precision']:.3f}")
        for one in rows
    )
    show.table(
        f"{source}: {title}", ("method", "score of a pair", "AUC", "average precision"), cells
    )
    add_scores(
        source, f"{title}, AUC", {f"{row['method']}, {row['score']}": row["auc"] for row in rows}
    )
    if not held_out:
        show.out.print(
            "These edges were seen in training: scores of new edges are lower. For a fair figure, train with "
            "--hold-out-edges 0.1."
        )
    found = {"source": str(source), "edges": count, "held_out": held_out, "rows": rows}
    show.write_result(json, found)


def _evaluate_future(source: Path, model: DGI, share: float, json: Path | None) -> None:
    """Print and write how well vectors of the past tell later events from random pairs."""
    from infomax.reports.future import HITS, OTHERS, score_future
    from infomax.training.health import add_scores

    with show.Steps("evaluate", None) as steps:
        steps.at(0, "training on the past")
        told, scores = score_future(model, share)
    ranked = f"hits@{HITS} of {1 + OTHERS}"
    rows = [(name, f"{one['auc']:.3f}", f"{one['hits']:.3f}") for name, one in scores.items()]
    show.table(f"{source}: {told}", ("score by", "AUC", ranked), rows)
    add_scores(source, f"{told}, AUC", {name: one["auc"] for name, one in scores.items()})
    show.write_result(json, {"source": str(source), "future": told, "rows": scores})


def _warn_of_features(model: DGI, columns: list[str], *, own: bool) -> None:
    """Name the columns of labels that the vectors were made of: their scores would be those of a leak.

    Those of a type of nodes to which no path leads are made of other types, but for the nodes' ``own`` part.
    """
    from infomax.io.column_names import listed
    from infomax.views.steps import paths_of

    graph = model.graph_
    paths = paths_of(graph, model.model_.encoder.rule).values() if graph.node_type else ()
    if graph.node_type and not own and all(path[-1].sender != graph.node_type for path in paths):
        return
    features = (
        graph.feature_names
        if graph.encoding is None
        else [column.name for column in graph.encoding.feature_columns]
    )
    if told := [column for column in columns if column in features]:
        remedy = f"For a fair score train with --labels {told[0]}"
        warn(
            f"labels: training has had {listed(told)} as features, so the vectors know them. {remedy}."
        )
