"""infomax reproduce: the paper's table, its rows for one data set, its studies, theory and figures."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from infomax.cli import show
from infomax.cli.analyse import FILES
from infomax.cli.app import app
from infomax.cli.options import Device, Json, ProbeName
from infomax.paper.experiments import EXPERIMENTS

reproduce = typer.Typer(
    help="Compute the paper's results, beside the paper's own.",
    context_settings={"token_normalize_func": str.lower},  # so that "Cora" is found, too
)
app.add_typer(reproduce, name="reproduce")

AGAIN = "Continue with the same command."

Runs = Annotated[int, typer.Option(metavar="N", help="How many encoders to train, each with its own seed.", min=1)]
StudyRuns = Annotated[int, typer.Option(metavar="N", help="Encoders to train per point of the study.", min=1)]


@reproduce.command()
def table(
    datasets: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Columns of the table, with commas.  [default: the paper's]")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Rows of the table, with commas.  [default: all]")
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="Runs per cell, each with its own seed.", min=1)] = 50,
    probe: ProbeName = "paper",
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to write. Runs that are already there are kept.")
    ] = Path("table"),
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Make Table 2 of the paper, with all its methods."""
    from infomax.paper.table import DATASETS, METHODS, make_table
    from infomax.paper.table.page import TITLES

    began = time.monotonic()
    names = _words(datasets) or DATASETS
    with show.Steps("table", None, AGAIN) as steps:
        result = make_table(
            out,
            datasets=names,
            methods=_words(methods) or tuple(METHODS),
            runs=runs,
            probe=probe,
            device=device,
            progress=steps.at,
        )
    for name in dict.fromkeys(row["dataset"] for row in result["rows"]):
        rows = [row | {"method": row["method"] + (" *" if row["differs"] else "")} for row in result["rows"]]
        show.scores(f"{TITLES[name]}: {probe} probe", [row for row in rows if row["dataset"] == name])
    if any(row["differs"] for row in result["rows"]):
        show.out.print(
            "* differs from the paper's figure by more than two standard deviations (the larger of the two) and by "
            "more than 1.5 points"
        )
    for name, reason in result["absent"].items():
        show.out.print(f"{name} is left out. {reason}")
    made = {(row["dataset"], row["method"].lower()) for row in result["rows"]}
    for name, method in product(names, _words(methods)):
        if name.lower() not in result["absent"] and (name.lower(), method.lower()) not in made:
            show.out.print(f"{method} does not run on {name}.")
    show.wrote(f"{out}/table.json, .md and .html", began)
    _write_json(json, result, began)


def _add_rows_command(dataset: str) -> None:
    """Add the command ``infomax reproduce DATASET``."""
    scored, title = "DGI, Random-Init and raw features", EXPERIMENTS[dataset].title

    @reproduce.command(dataset, help=f"Score {scored} on {title}.", short_help=f"{title}: {scored}.")
    def rows(runs: Runs = 50, probe: ProbeName = "paper", json: Json = None, device: Device = "auto") -> None:
        from infomax.paper.comparison import choose_probe, score_dataset

        began = time.monotonic()
        choose_probe(probe, [dataset])
        with show.Steps(dataset, 2 * runs) as steps:
            result = score_dataset(dataset, runs=runs, probe=probe, device=device, progress=steps.at)
        show.scores(f"{dataset}: {probe} probe, the data set's split, ± over encoders", result["rows"])
        _write_json(json, result, began)


for _name in EXPERIMENTS:
    _add_rows_command(_name)


@reproduce.command()
def corruption(
    dataset: Annotated[str, typer.Option(metavar="cora|citeseer|pubmed", help="The data set.")] = "cora",
    runs: StudyRuns = 1,
    points: Annotated[int, typer.Option(metavar="N", help="How many rates of flipped edges to try.", min=2)] = 13,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to write. Trainings that are already there are kept.")
    ] = Path("corruption"),
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure accuracy at many rates of flipped edges.

    It is the study of the paper's Appendix C.
    """
    from infomax.analysis import corruption
    from infomax.analysis.report import write_chapter

    began = time.monotonic()
    chapter = corruption.corruption(_study(out, dataset, runs, points, device))
    show.table(f"{dataset}: {chapter.title}", chapter.facts[0], chapter.facts[1:])
    show.out.print(chapter.story[-1])
    write_chapter(out, chapter)
    show.wrote(f"{out}/corruption.png, .svg and .json", began)
    _write_json(json, chapter.numbers, began)


@reproduce.command()
def depth(
    datasets: Annotated[
        str, typer.Option(metavar="NAMES", help="Citation graphs, with commas.")
    ] = "cora,citeseer,pubmed",
    runs: StudyRuns = 1,
    layers: Annotated[int, typer.Option(metavar="N", help="The largest number of layers.", min=1)] = 4,
    widths: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Widths of the vectors, with commas.")
    ] = "64,128,256,512,1024,2048",
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to write. Encoders that are already there are kept.")
    ] = Path("depth"),
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure accuracy at several widths and depths.

    The paper says that DGI gains from wider rather than deeper encoders.
    """
    from infomax.analysis import depth
    from infomax.analysis.report import write_chapter
    from infomax.baselines import CITATION
    from infomax.errors import InputError
    from infomax.io.atomic import make_folder
    from infomax.paper.depth import depth_study, encoders

    began = time.monotonic()
    names = _words(datasets.lower())
    if not names or set(names) - set(CITATION):
        raise InputError("--datasets", f"some of {', '.join(CITATION)}", datasets)
    try:
        sizes = [int(word) for word in _words(widths)]
        if not sizes or min(sizes) < 1:
            raise ValueError
    except ValueError:
        raise InputError("--widths", "numbers from 1, as in 64,512", widths) from None
    make_folder(out)
    depths, studies = range(1, layers + 1), {}
    for name in names:
        with show.Steps(name, encoders(depths, sizes, runs), AGAIN) as steps:
            studies[EXPERIMENTS[name].title] = depth_study(
                name, out, layers=depths, widths=sizes, runs=runs, device=device, progress=steps.at
            )
    chapter = depth.depth(studies)
    show.table(chapter.title, chapter.facts[0], chapter.facts[1:])
    show.out.print(chapter.story[-1])
    write_chapter(out, chapter)
    show.wrote(f"{out}/depth.png, .svg and .json", began)
    _write_json(json, chapter.numbers, began)


@reproduce.command()
def theory(
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the figure there.  [default: no figure]")
    ] = None,
    json: Json = None,
) -> None:
    """Check lemma and theorems on all graphs with four nodes."""
    from infomax.analysis import theory
    from infomax.analysis.report import write_chapter
    from infomax.io.atomic import make_folder

    began = time.monotonic()
    chapter = theory.theory()
    show.table(chapter.title, chapter.facts[0], chapter.facts[1:])
    for paragraph in chapter.story:
        show.out.print(paragraph)
    if out is not None:
        make_folder(out)
        write_chapter(out, chapter)
        show.wrote(f"{out}/theory.png, .svg and .json", began)
    _write_json(json, chapter.numbers, began)


@reproduce.command()
def figures(
    runs: StudyRuns = 1,
    points: Annotated[
        int, typer.Option(metavar="N", help="Points of the corruption study; 0 leaves the study out.", min=0)
    ] = 13,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to write. Trainings that are already there are kept.")
    ] = Path("figures"),
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Draw all figures of the paper on Cora."""
    import numpy as np

    from infomax.datasets import load_dataset
    from infomax.estimator import DGI
    from infomax.paper import studies
    from infomax.paper.comparison import labelled
    from infomax.paper.figures import SUPERVISED, TOPICS, beside_paper
    from infomax.paper.results import PAPER
    from infomax.training.runs import MODEL

    began = time.monotonic()
    graph, run = load_dataset("cora"), out / "run"
    if (run / MODEL).exists():
        model = DGI.load(run)
        model.device = device
    else:
        model = DGI(**EXPERIMENTS["cora"].settings, device=device)
        with show.training_progress("epochs", AGAIN) as progress:
            model.fit(graph, run=run, progress=progress)
    study = _study(out, "cora", runs, points, device) if points else None
    codes, splits = labelled(graph)
    with show.Steps("analysis", None) as steps:
        numbers = studies.write_analysis(
            model,
            out,
            np.array(TOPICS, dtype=object)[codes],
            [splits],
            title="What Deep Graph Infomax learns about Cora",
            floors={SUPERVISED: PAPER["cora", "GCN"][0] / 100},
            study=study,
            progress=steps.at,
        )
    show.table("Cora: ours beside the paper's", ("", "ours", "paper"), beside_paper(numbers))
    show.wrote(f"{out}/{FILES}", began)
    _write_json(json, numbers, began)


def _study(out: Path, dataset: str, runs: int, points: int, device: str) -> dict[str, Any]:
    """Run the corruption study of a citation graph, or continue it; its numbers."""
    from infomax.baselines import CITATION
    from infomax.datasets import load_dataset
    from infomax.errors import InputError
    from infomax.estimator import DGI
    from infomax.io.atomic import make_folder
    from infomax.paper import studies
    from infomax.paper.comparison import labelled

    if dataset not in CITATION:
        raise InputError("--dataset", f"one of {', '.join(CITATION)}", dataset)
    make_folder(out)
    graph = load_dataset(dataset)
    codes, splits = labelled(graph)
    rates = studies.rates(points)
    with show.Steps("corruption", studies.trainings(rates, runs), AGAIN) as steps:
        return studies.corruption_study(
            graph,
            DGI(**EXPERIMENTS[dataset].settings).settings(),
            codes,
            [splits],
            out,
            rates=rates,
            runs=runs,
            device=device,
            progress=steps.at,
        )


def _write_json(path: Path | None, result: dict[str, Any], began: float) -> None:
    """Write the result where --json asks for it."""
    from infomax.io.json import write_json

    if path is not None:
        write_json(path, result)
        show.wrote(path, began)


def _words(text: str | None) -> list[str]:
    """The words of a list with commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]
