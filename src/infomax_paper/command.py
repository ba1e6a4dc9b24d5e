"""infomax reproduce: the paper's table, its rows for one data set, its studies, theory and figures.

`infomax.cli.app` finds it by its entry point, so that nothing of the product knows the paper.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from infomax.cli import show
from infomax.cli.analyse import REPORT_FILES, classes
from infomax.cli.options import Device, Json, ProbeName, option
from infomax.cli.runs import read_into_memory
from infomax.cli.settings import split_list
from infomax.errors import InputError
from infomax_paper.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.analysis.report import Chapter
    from infomax.evaluation.splits import Splits
    from infomax.graphs.graph import Graph
    from infomax.training.presets import Preset

    StudyInput: TypeAlias = tuple[Graph, Preset, NDArray[Any], list[Splits]]
    """Graph, settings, class codes and splits, as `corruption_study` takes them."""

app = typer.Typer(
    name="reproduce",
    add_completion=False,
    rich_markup_mode=None,
    help="Compute the paper's results, beside the paper's own.",
    context_settings={"token_normalize_func": str.lower},  # so that "Cora" is found, too
)

AGAIN = "Continue with the same command."

Runs = Annotated[int, option("N", "How many encoders to train, each with its own seed.", min=1)]
Folder = Annotated[Path, option("FOLDER", "Where to write. Runs that are already there are kept.")]
Labels = Annotated[
    str | None, option("SOURCE:COLUMN", "The classes of the run's nodes, as for analyse.")
]
StudyRuns = Annotated[int, option("N", "Encoders to train per point of the study.", min=1)]


@app.command()
def table(
    datasets: Annotated[
        str | None, option("NAMES", "Columns of the table, with commas.  [default: the paper's]")
    ] = None,
    methods: Annotated[
        str | None, option("NAMES", "Rows of the table, with commas.  [default: all]")
    ] = None,
    runs: Annotated[int, option("N", "Runs per cell, each with its own seed.", min=1)] = 50,
    probe: ProbeName = "paper",
    out: Folder = Path("table"),
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Make Table 2 of the paper, with all its methods."""
    from infomax_paper.table import DATASETS, METHODS, make_table
    from infomax_paper.table.page import TITLES

    dataset_names = split_list(datasets) or DATASETS
    requested_methods = split_list(methods)
    with show.Steps("table", None, AGAIN) as steps:
        result = make_table(
            out,
            datasets=dataset_names,
            methods=requested_methods or tuple(METHODS),
            runs=runs,
            probe=probe,
            device=device,
            progress=steps.update,
        )

    for name in dict.fromkeys(row["dataset"] for row in result["rows"]):
        rows = []
        for row in result["rows"]:
            if row["dataset"] == name:
                mark = " *" if row["differs"] else ""
                rows.append(row | {"method": row["method"] + mark})
        show.scores(f"{TITLES[name]}: {probe} probe", rows)
    if any(row["differs"] for row in result["rows"]):
        show.out.print(
            "* differs from the paper's figure by more than two standard deviations (the larger of "
            "the two) and by more than 1.5 points"
        )
    for name, reason in result["absent"].items():
        show.out.print(f"{name} is left out. {reason}")

    cells = {(row["dataset"], row["method"].lower()) for row in result["rows"]}
    for name, method in product(dataset_names, requested_methods):
        is_absent = name.lower() in result["absent"]
        if not is_absent and (name.lower(), method.lower()) not in cells:
            show.out.print(f"{method} does not run on {name}.")
    show.wrote(f"{out}/table.json, .md and .html")
    show.write_result(json, result)


def _add_rows_command(dataset: str) -> None:
    """Add the command ``infomax reproduce DATASET``."""
    methods = "DGI, Random-Init and raw features"
    title = EXPERIMENTS[dataset].title

    @app.command(dataset, help=f"Score {methods} on {title}.", short_help=f"{title}: {methods}.")
    def rows(
        runs: Runs = 50, probe: ProbeName = "paper", json: Json = None, device: Device = "auto"
    ) -> None:
        from infomax_paper.protocol import probe_for, score_dataset

        probe_for(probe, [dataset])
        with show.Steps(dataset, 2 * runs) as steps:
            result = score_dataset(
                dataset, runs=runs, probe=probe, device=device, progress=steps.update
            )
        show.scores(
            f"{dataset}: {probe} probe, the data set's split, ± over encoders", result["rows"]
        )
        show.write_result(json, result)


for _name in EXPERIMENTS:
    _add_rows_command(_name)


@app.command()
def corruption(
    dataset: Annotated[
        Literal["cora", "citeseer", "pubmed"], typer.Option(help="The data set.")
    ] = "cora",
    run: Annotated[
        Path | None,
        option("RUN", "Study the graph and settings of a run of your own instead.", "--run"),
    ] = None,
    labels: Labels = None,
    runs: StudyRuns = 1,
    points: Annotated[int, option("N", "How many rates of flipped edges to try.", min=2)] = 13,
    out: Folder = Path("corruption"),
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure accuracy at many rates of flipped edges.

    It is the study of the paper's Appendix C.
    """
    from infomax_paper.corruption import corruption

    study_input = _citation_graph(dataset) if run is None else _graph_of_run(run, labels)
    study = _corruption_study(out, study_input, runs, points, device)
    _show_chapter(corruption(study), out, json)


@app.command()
def depth(
    datasets: Annotated[
        str, option("NAMES", "Citation graphs, with commas.")
    ] = "cora,citeseer,pubmed",
    runs: StudyRuns = 1,
    layers: Annotated[int, option("N", "The largest number of layers.", min=1)] = 4,
    widths: Annotated[
        str, option("NUMBERS", "Widths of the vectors, with commas.")
    ] = "64,128,256,512,1024,2048",
    out: Folder = Path("depth"),
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure accuracy at several widths and depths.

    The paper says that DGI gains from wider rather than deeper encoders.
    """
    from infomax.io.atomic import make_folder
    from infomax_paper import depth
    from infomax_paper.baselines import CITATION

    names = split_list(datasets.lower())
    if not names or set(names) - set(CITATION):
        raise InputError("--datasets", f"some of {', '.join(CITATION)}", datasets)
    try:
        width_list = [int(text) for text in split_list(widths)]
        if not width_list or min(width_list) < 1:
            raise ValueError
    except ValueError:
        raise InputError("--widths", "numbers from 1, as in 64,512", widths) from None
    make_folder(out)
    studies = {}
    for name in names:
        with show.Steps(name, None, AGAIN) as steps:
            studies[EXPERIMENTS[name].title] = depth.depth_study(
                name,
                out,
                layers=range(1, layers + 1),
                widths=width_list,
                runs=runs,
                device=device,
                progress=steps.update,
            )
    _show_chapter(depth.depth(studies), out, json)


@app.command()
def heterogeneous(runs: Runs = 10, json: Json = None, device: Device = "auto") -> None:
    """Score several types of nodes: ACM and DBLP."""
    from infomax.evaluation.results import score_text
    from infomax_paper.heterogeneous import METHODS, PATHS, PUBLISHED, score_types

    results = {}
    for name in PATHS:
        with show.Steps(name, METHODS * runs) as steps:
            result = score_types(name, runs=runs, device=device, progress=steps.update)
        results[name] = result

        title = f"{name}: macro-F1 in %, C chosen on validation nodes, ± over encoders ({runs})"
        heading = ("method", *(f"{count} labels per class" for count in result["labels"]))
        lines = []
        for row in [*result["rows"], {"method": "HeCo, published", "mean": PUBLISHED[name]}]:
            deviations = row.get("std", [0] * len(row["mean"]))
            scores = [
                score_text(mean, deviation, "accuracy")
                for mean, deviation in zip(row["mean"], deviations, strict=True)
            ]
            lines.append((row["method"], *scores))
        show.table(title, heading, lines)
        show.out.print(f"paths: {', '.join(result['paths'])}")
    show.write_result(json, results)


@app.command()
def theory(
    out: Annotated[
        Path | None, option("FOLDER", "Write the figure there.  [default: no figure]")
    ] = None,
    json: Json = None,
) -> None:
    """Check lemma and theorems on all graphs with four nodes."""
    from infomax_paper.theory import theory

    _show_chapter(theory(), out, json, printed_paragraphs=slice(None))


@app.command()
def figures(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run of your own, for the two figures that analyse does not draw.",
        ),
    ] = None,
    labels: Labels = None,
    runs: StudyRuns = 1,
    points: Annotated[
        int, option("N", "Points of the corruption study; 0 leaves the study out.", min=0)
    ] = 13,
    out: Folder = Path("figures"),
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Draw all figures of the paper on Cora.

    Given a RUN, it draws t-SNE of raw features, Random-Init and DGI, and the vectors with extreme
    scores.
    """
    from infomax.estimator import DGI
    from infomax.io.atomic import make_folder
    from infomax.reports.analysis import write_analysis
    from infomax_paper.figures import figures

    if run is None:
        numbers = _cora_figures(out, runs, points, device)
    else:
        model = DGI.load(run, device=device)
        read_into_memory(model)
        column = classes(model.graph_, labels)
        make_folder(out)
        with show.Steps("figures", None) as steps:
            chapters = figures(model, column, progress=steps.update)
            numbers = write_analysis(
                model, out, chapters, title=f"The paper's figures: {run.resolve().name}"
            )
    show.wrote(f"{out}/{REPORT_FILES}")
    show.write_result(json, numbers)


def _cora_figures(out: Path, runs: int, points: int, device: str) -> dict[str, Any]:
    """Draw all figures on Cora, with an encoder that is trained unless it is there; their numbers
    by chapter."""
    import numpy as np

    from infomax.datasets import load_dataset
    from infomax.estimator import DGI
    from infomax.reports.analysis import analyse, write_analysis
    from infomax.reports.comparison import labelled
    from infomax.training.runs import MODEL
    from infomax_paper.corruption import corruption
    from infomax_paper.figures import figures
    from infomax_paper.printed import PAPER, SUPERVISED, TOPICS, beside_paper
    from infomax_paper.theory import theory

    graph = load_dataset("cora")
    run = out / "run"
    if (run / MODEL).exists():
        model = DGI.load(run, device=device)
    else:
        model = DGI(**EXPERIMENTS["cora"].settings, device=device)
        with show.training_progress("epochs", AGAIN) as progress:
            model.fit(graph, run=run, progress=progress)
    study_chapters = []
    if points:
        study = _corruption_study(out, _citation_graph("cora"), runs, points, device)
        study_chapters.append(corruption(study))

    codes, splits = labelled(graph)
    topics = np.array(TOPICS, dtype=object)[codes]
    floors = {SUPERVISED: PAPER["cora", "GCN"][0] / 100}
    with show.Steps("analysis", None) as steps:
        chapters = [*figures(model, topics, progress=steps.update)]
        # A chapter of the first name is there already, with Random-Init and raw features beside.
        for chapter in analyse(
            model, topics, [splits], floors=floors, probe="paper", progress=steps.update
        ):
            if chapter.name != chapters[0].name:
                chapters.append(chapter)
        chapters += [*study_chapters, theory()]
        title = "What Deep Graph Infomax learns about Cora"
        numbers = write_analysis(model, out, chapters, title=title, progress=steps.update)
    show.table("Cora: ours beside the paper's", ("", "ours", "paper"), beside_paper(numbers))
    return numbers


def _citation_graph(dataset: str) -> StudyInput:
    """A citation graph as a corruption study takes it."""
    from infomax.datasets import load_dataset
    from infomax.estimator import DGI
    from infomax.reports.comparison import labelled

    graph = load_dataset(dataset)
    codes, splits = labelled(graph)
    return graph, DGI(**EXPERIMENTS[dataset].settings).settings(), codes, [splits]


def _graph_of_run(run: Path, labels: str | None) -> StudyInput:
    """The graph of a run as a corruption study takes it."""
    from infomax.estimator import DGI
    from infomax.evaluation.splits import encode_labels, splits_for

    model = DGI.load(run)
    column = classes(model.graph_, labels)
    if column is None:
        raise InputError("--labels", "the classes of the nodes", "none in the run")
    codes = encode_labels(column)[0]
    splits = splits_for(codes, model.graph_.splits, count=3)[0]
    return model.graph_, model.preset_, codes, splits


def _corruption_study(
    out: Path, study_input: StudyInput, runs: int, points: int, device: str
) -> dict[str, Any]:
    """Run a corruption study, or continue it; its numbers."""
    from infomax.io.atomic import make_folder
    from infomax_paper import corruption

    make_folder(out)
    rates = corruption.rates(points)
    with show.Steps("corruption", None, AGAIN) as steps:
        return corruption.corruption_study(
            *study_input, out, rates=rates, runs=runs, device=device, progress=steps.update
        )


def _show_chapter(
    chapter: Chapter,
    out: Path | None,
    json: Path | None,
    printed_paragraphs: slice = slice(-1, None),
) -> None:
    """Print the table of a chapter and some of its text; write its files, and its numbers where
    --json asks."""
    from infomax.analysis.report import write_chapter
    from infomax.io.atomic import make_folder

    show.table(chapter.title, chapter.facts[0], chapter.facts[1:])
    for paragraph in chapter.story[printed_paragraphs]:
        show.out.print(paragraph)
    if out is not None:
        make_folder(out)
        write_chapter(out, chapter)
        show.wrote(f"{out}/{chapter.name}.png, .svg and .json")
    show.write_result(json, chapter.numbers)
