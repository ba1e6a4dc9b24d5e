"""infomax evaluate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.labels import LabelSource, aligned, labelled, read_source, source_column
from infomax.cli.options import PROBE_HELP, PROBE_NAMES, Json, Threads
from infomax.cli.runs import OfType, SourceArgument, per_run
from infomax.errors import InputError, number_of, shorten, warn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.embeddings import Embeddings, StoredEmbeddings
    from infomax.estimator import DGI
    from infomax.evaluation.results import Row
    from infomax.evaluation.splits import Splits
    from infomax.graphs.graph import Graph


def _has_labels(described: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether a type of nodes has the labels that are asked for; a table does not say of which type it is."""
    if options["edges"] or options["future"]:
        return True
    wanted = options["labels"] or []
    for label in wanted:
        if label not in described["labels"] and source_column(label, None):
            raise InputError("--labels", "labels of one type of nodes", label, "Say of which type: --type TYPE.")
    return bool(described["labels"]) and all(label in described["labels"] for label in wanted)


LabelColumns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SOURCE:COLUMN",
        help="Labels by node id, from a node table or any GRAPH (graph.npz:COLUMN); or COLUMN, of the run itself. "
        "Repeated: columns of 0 and 1, one label each.",
    ),
]
Probe = Annotated[
    str | None,
    typer.Option(
        metavar=PROBE_NAMES, help=f"{PROBE_HELP}  [default: validated; paper where a node may have several labels]"
    ),
]


@app.command()
@partial(per_run, has=_has_labels)
def evaluate(
    source: SourceArgument,
    labels: LabelColumns = None,
    id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column of ids in SOURCE.  [default: as in training, else id, else the first]",
        ),
    ] = None,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="Take labels and split of a data set.")] = None,
    probe: Probe = None,
    raw: Annotated[
        bool, typer.Option("--raw/--no-raw", help="Score a run's raw features, too; slow where there are many.")
    ] = True,
    edges: Annotated[
        bool,
        typer.Option(
            "--edges",
            help="Score how well a run separates edges from random pairs of nodes.  [default: without labels]",
        ),
    ] = False,
    future: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Of rows with times: train anew on the past, and score the latest events, such a share as 0.2, beside "
            "remembering events and popularity.",
        ),
    ] = None,
    json: Json = None,
    type: OfType = None,
    threads: Threads = None,
) -> list[Any]:
    """Score vectors by a linear probe on labels, or by edges.

    With labels the score is accuracy, or micro-F1 where a node may have several labels; beside accuracy stand macro-F1
    and AUC, in which rare classes count like others. Without labels it is how well the vectors separate edges from
    random pairs of nodes. A run is scored beside the same encoder untrained (Random-Init) and beside its raw features.
    """
    began = time.monotonic()
    scored, model = _opened(source)
    asked = bool(labels) or dataset is not None or probe is not None
    if future is not None:
        if edges or asked or model is None:
            other = "the vectors of a file" if model is None else "--edges, --labels, --dataset or --probe beside it"
            raise InputError("--future", "a run folder, and no other option", other)
        _evaluate_future(source, model, future, json, began)
        return []
    if edges and asked:
        raise InputError("evaluate", "--edges alone", "--labels, --dataset or --probe beside it")
    if edges or (model is not None and not model.graph_.labels and not asked):
        _evaluate_edges(source, model, json, began)
        return []
    task = _task(source, scored, labels or [], dataset, id)
    if model is not None and list(parts := model._recipe().parts) != ["positions"]:
        _warn_of_features(model, task.columns, own="own" in parts)
    probe = probe or ("validated" if task.codes.ndim == 1 else "paper")
    rows = _rows(source, task, probe, raw=raw)
    advised = _show(source, model, task, rows, probe)
    if model is not None and not labels and not dataset and (others := [*model.graph_.labels][1:]):
        advised.append(f"Other labels: {', '.join(others)}. To score one: --labels {others[0]}")
    for line in advised:
        show.out.print(line)
    values = [row.to_dict() for row in rows]
    found = {"source": str(source), "labels": task.labels, "probe": probe, "split": task.split, "rows": values}
    show.write_result(json, found, began)
    return rows


class _Task(NamedTuple):
    """What is scored, by which labels, on which splits."""

    scored: DGI | Embeddings
    codes: NDArray[Any]
    """``[N]``, or ``[N, C]`` where a node may have several labels."""
    splits: list[Splits]
    split: str
    """The name of the splits."""
    labels: list[str]
    columns: list[str]
    """The columns that the labels are in."""


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


def _task(
    source: Path,
    scored: DGI | Embeddings | StoredEmbeddings,
    labels: list[str],
    dataset: str | None,
    id: str | None,
) -> _Task:
    """Read the labels, of which a model's graph may have some, and find the splits."""
    from infomax.embeddings import StoredEmbeddings
    from infomax.estimator import DGI
    from infomax.evaluation.splits import splits_for

    graph = scored.graph_ if isinstance(scored, DGI) else None
    named, sources = _sources(labels, dataset, graph, id)
    if isinstance(scored, StoredEmbeddings):
        sources = {name: labelled(found) for name, found in sources.items()}
        scored = _read_labelled(scored, sources)
    ids = scored.graph_.ids if isinstance(scored, DGI) else scored.ids
    codes, own = _labels(ids, named, sources, numbered=source.suffix == ".npy")
    return _Task(scored, codes, *splits_for(codes, own), list(named), [column for _, column in named.values()])


def _rows(source: Path, task: _Task, probe: str, *, raw: bool) -> list[Row]:
    """The scores: of a model beside what it is compared with, of vectors beside the majority class."""
    from infomax.estimator import DGI
    from infomax.evaluation.probes import choose_probe
    from infomax.reports.comparison import compare, majority, vectors_row

    scored, codes, splits, *_ = task
    measure = choose_probe(probe)
    with show.Steps("evaluate", None) as steps:
        if isinstance(scored, DGI):
            return compare(scored, codes, splits, measure, raw=raw, progress=steps.at)
        began = time.perf_counter()
        row = vectors_row(str(source), scored.vectors, codes, splits, measure, began, progress=steps.at)
        return [row, majority(codes, splits)]


def _show(source: Path, model: DGI | None, task: _Task, rows: list[Row], probe: str) -> list[str]:
    """Print the scores; of a model, add them to its page and return what they say to a user."""
    from infomax.evaluation.splits import known
    from infomax.reports.comparison import advice
    from infomax.training.card import add_scores

    count = number_of(int(known(task.codes).sum()), "labelled node")
    title = f"{', '.join(task.labels)}: {probe} probe, {task.split}, {count}"
    show.scores(title, [row.to_dict() for row in rows])
    unit = "accuracy in %" if rows[0].metric == "accuracy" else rows[0].metric
    if model is not None:
        add_scores(source, f"{title}, {unit}", {row.method: row.mean for row in rows})
    return advice(rows)


def _evaluate_edges(source: Path, model: DGI | None, json: Path | None, began: float) -> None:
    """Print and write how well the vectors of a run tell edges from random pairs of nodes."""
    from infomax.reports.comparison import compare_links
    from infomax.training.card import add_scores

    if model is None:
        raise InputError("--edges", "a run folder, which holds the edges", f"the vectors {source}")
    with show.Steps("evaluate", None) as steps:
        rows, count = compare_links(model, progress=steps.at)
    held_out = model.graph_.held_out is not None
    kind = "held out from training" if held_out else "seen in training"
    title = f"{number_of(count, 'edge')}, {kind}, against as many random pairs of nodes"
    show.links(f"{source}: {title}", rows)
    add_scores(source, f"{title}, AUC", {f"{row['method']}, {row['score']}": row["auc"] for row in rows})
    if not held_out:
        show.out.print(
            "These edges were seen in training: scores of new edges are lower. For a fair figure, train with "
            "--hold-out-edges 0.1."
        )
    found = {"source": str(source), "edges": count, "held_out": held_out, "rows": rows}
    show.write_result(json, found, began)


def _evaluate_future(source: Path, model: DGI, share: float, json: Path | None, began: float) -> None:
    """Print and write how well vectors of the past tell later events from random pairs."""
    from infomax.reports.future import HITS, OTHERS, score_future
    from infomax.training.card import add_scores

    with show.Steps("evaluate", None) as steps:
        steps.at(0, "training on the past")
        told, scores = score_future(model, share)
    ranked = f"hits@{HITS} of {1 + OTHERS}"
    rows = [(name, f"{one['auc']:.3f}", f"{one['hits']:.3f}") for name, one in scores.items()]
    show.table(f"{source}: {told}", ("score by", "AUC", ranked), rows)
    add_scores(source, f"{told}, AUC", {name: one["auc"] for name, one in scores.items()})
    show.write_result(json, {"source": str(source), "future": told, "rows": scores}, began)


def _sources(
    labels: list[str], dataset: str | None, graph: Graph | None, id: str | None
) -> tuple[dict[str, tuple[str, str]], dict[str, LabelSource]]:
    """By label, the name of its source and its column; and the sources by name, "" for the graph itself."""
    from infomax.datasets import load_dataset

    if labels and dataset is not None:
        raise InputError("evaluate", "--labels or --dataset", "both")
    graph = graph if dataset is None else load_dataset(dataset)
    labels = labels or list(graph.labels if graph else ())[:1]
    if not labels:
        raise InputError("evaluate", "labels", "none", "Name them: --labels nodes.csv:COLUMN, or --dataset NAME.")
    named = {label: source_column(label, graph) or ("", label) for label in labels}
    sources: dict[str, LabelSource] = {}
    for source in dict.fromkeys(source for source, _ in named.values()):
        wanted = [column for other, column in named.values() if other == source]
        sources[source] = read_source(source, wanted, graph, id) if source else _own(graph, wanted)
    if id is not None and not any(sources):
        raise InputError("--id", "--labels SOURCE:COLUMN, whose ids it names", "none")
    return named, sources


def _read_labelled(stored: StoredEmbeddings, sources: Mapping[str, LabelSource]) -> Embeddings:
    """The vectors of the nodes that a source has, in their order; the others are not read into memory."""
    import numpy as np

    from infomax.embeddings import Embeddings

    wanted = [identifier for source in sources.values() for identifier in source.ids.tolist()]
    rows = np.sort(np.fromiter(stored.ids.find(wanted).values(), dtype=np.int64))
    if not len(rows):
        found = f"none of them among {number_of(len(wanted), 'labelled node')}"
        raise InputError("labels", f"some of these nodes (as {shorten(stored.ids[0])})", found)
    return Embeddings(stored.vectors[rows], stored.ids[rows])


def _labels(
    ids: NDArray[Any], named: Mapping[str, tuple[str, str]], sources: Mapping[str, LabelSource], *, numbered: bool
) -> tuple[NDArray[Any], Splits | None]:
    """Codes of the nodes, ``[N]`` or ``[N, C]`` where a node may have several labels, and their split.

    There is a split where all labels come from one graph that has one.
    """
    import numpy as np

    from infomax.evaluation.splits import check_classes, encode_flags, encode_labels

    columns = {}
    for label, (source, column) in named.items():
        found = sources[source]
        columns[label] = aligned(ids, found.ids, found.labels[column], numbered=numbered)
    first = next(iter(columns.values()))
    if len(columns) == 1 and first.ndim == 1:
        codes: NDArray[Any]
        codes, classes = encode_labels(first)
        check_classes(f"label {shorten(next(iter(columns)))}", codes, classes)
    else:
        codes = np.column_stack([encode_flags(column, f"labels {label}") for label, column in columns.items()])
    if len(sources) > 1:
        return codes, None
    (only,) = sources.values()
    return codes, {part: aligned(ids, only.ids, mask, False) for part, mask in only.splits.items()} or None


def _warn_of_features(model: DGI, columns: list[str], *, own: bool) -> None:
    """Name the columns of labels that the vectors were made of: their scores would be those of a leak.

    Those of a type of nodes to which no path leads are made of other types, but for the nodes' ``own`` part.
    """
    from infomax.io.column_names import listed
    from infomax.views.steps import paths_of

    graph = model.graph_
    paths = paths_of(graph, model.model_.encoder.rule).values() if graph.kind else ()
    if graph.kind and not own and all(path[-1].sender != graph.kind for path in paths):
        return
    features = graph.feature_names if graph.encoding is None else [column.name for column in graph.encoding.used]
    if told := [column for column in columns if column in features]:
        remedy = f"For a fair score train with --labels {told[0]}"
        warn(f"labels: training has had {listed(told)} as features, so the vectors know them. {remedy}.")


def _own(graph: Graph | None, wanted: list[str]) -> LabelSource:
    """Labels of the run's own graph, or of the data set that was named."""
    unknown = [label for label in wanted if graph is None or label not in graph.labels]
    if graph is None or unknown:
        known = " or ".join([*(graph.labels if graph else ()), "nodes.csv:COLUMN"])
        raise InputError("--labels", known, unknown[0])
    return LabelSource(graph.ids, {label: graph.labels[label] for label in wanted}, graph.splits)
