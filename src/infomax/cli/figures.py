"""infomax reproduce corruption, theory and figures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from infomax.cli import show
from infomax.cli.analyse import FILES

TOPICS = (
    "Theory",
    "Reinforcement learning",
    "Genetic algorithms",
    "Neural networks",
    "Probabilistic methods",
    "Case-based reasoning",
    "Rule learning",
)
"""Cora's classes, which its files only number."""

SUPERVISED = "supervised GCN (paper)"
STUDIES = ("corruption", "theory", "figures")


def reproduce(what: str, out: Path | None, *, dataset: str, runs: int, points: int, device: str) -> dict[str, Any]:
    """One of `STUDIES`, and its numbers."""
    if what == "theory":
        return theory(out)
    if what == "corruption":
        return corruption(out or Path(what), dataset=dataset, runs=runs, points=points, device=device)
    return figures(out or Path(what), runs=runs, points=points, device=device)


def theory(out: Path | None) -> dict[str, Any]:
    """Lemma 1 on the graphs of four nodes, printed; as a figure, too, where there is a folder for it."""
    from infomax.analysis.report import write_chapter
    from infomax.analysis.theory import theory
    from infomax.io.atomic import make_folder

    began = time.monotonic()
    chapter = theory()
    show.table(chapter.title, chapter.facts[0], chapter.facts[1:])
    for paragraph in chapter.story:
        show.out.print(paragraph)
    if out is not None:
        make_folder(out)
        write_chapter(out, chapter)
        show.wrote(f"{out}/theory.png, .svg and .json", began)
    return chapter.numbers


def corruption(out: Path, *, dataset: str, runs: int, points: int, device: str) -> dict[str, Any]:
    """Accuracy against the rate of flipped edges, trained, printed and drawn."""
    from infomax.analysis.corruption import corruption
    from infomax.analysis.report import write_chapter
    from infomax.errors import InputError

    if points < 2:
        raise InputError("--points", "2 or more", str(points))
    began = time.monotonic()
    chapter = corruption(_study(out, dataset, runs, points, device))
    show.table(f"{dataset}: {chapter.title}", chapter.facts[0], chapter.facts[1:])
    show.out.print(chapter.story[-1])
    write_chapter(out, chapter)
    show.wrote(f"{out}/corruption.png, .svg and .json", began)
    return chapter.numbers


def figures(out: Path, *, runs: int, points: int, device: str) -> dict[str, Any]:
    """Every figure of the paper on Cora, with its settings, and our numbers beside its own."""
    import numpy as np

    from infomax.datasets import load_dataset
    from infomax.estimator import DGI
    from infomax.paper import studies
    from infomax.paper.comparison import EXPERIMENTS, labelled
    from infomax.paper.results import PAPER
    from infomax.training import runs as folders

    began = time.monotonic()
    graph, run = load_dataset("cora"), out / "run"
    if (run / folders.MODEL).exists():
        model = DGI.load(run)
        model.device = device
    else:
        model = DGI(**EXPERIMENTS["cora"].settings, device=device)
        with show.training_progress("epochs", "Go on with the same command.") as progress:
            model.fit(graph, run=run, progress=progress)
    study = _study(out, "cora", runs, points, device) if points else None
    codes, splits = labelled(graph)
    with show.Steps("analysis", None) as steps:
        numbers = studies.write_analysis(
            model,
            out,
            np.array(TOPICS, dtype=object)[codes],
            [splits],
            title="What Deep Graph Infomax learns of Cora",
            floors={SUPERVISED: PAPER["cora", "GCN"][0] / 100},
            study=study,
            progress=steps.at,
        )
    show.table("Cora: ours beside the paper's", ("", "ours", "paper"), beside_paper(numbers))
    show.wrote(f"{out}/{FILES}", began)
    return numbers


def beside_paper(numbers: dict[str, dict[str, Any]]) -> list[tuple[str, str, str]]:
    """What the paper says of Cora in words or numbers, and what we found; from the numbers of the chapters, by name."""
    dimensions = numbers["dimensions"]
    removed = dimensions["removable"][SUPERVISED]["least"]
    least, d = dimensions["curves"]["least"], len(dimensions["t"])
    half = dimensions["removed"].index(d // 2)
    return [
        ("silhouette of DGI's t-SNE", f"{numbers['projections']['silhouette']['DGI']:.3f}", "0.234"),
        ("accuracy of this encoder", f"{100 * least['accuracy'][0]:.1f} %", "82.3 ± 0.6 %"),
        (
            "dimensions that can go before it falls under the GCN's 81.5 %",
            "none" if removed is None else f"{100 * removed / d:.0f} %",
            "over half",
        ),
        (
            "positives told rightly by half of the dimensions",
            f"{100 * (1 - least['bad_positives'][half] / dimensions['examples']['positives']):.1f} %",
            "mostly",
        ),
    ]


def _study(out: Path, dataset: str, runs: int, points: int, device: str) -> dict[str, Any]:
    from infomax.datasets import load_dataset
    from infomax.errors import InputError
    from infomax.estimator import DGI
    from infomax.io.atomic import make_folder
    from infomax.paper import studies
    from infomax.paper.comparison import EXPERIMENTS, labelled

    known = ("cora", "citeseer", "pubmed")
    if dataset not in known:
        raise InputError("--dataset", f"one of {', '.join(known)}", dataset)
    make_folder(out)
    graph = load_dataset(dataset)
    codes, splits = labelled(graph)
    rates = studies.rates(points)
    with show.Steps("corruption", studies.trainings(rates, runs), "Go on with the same command.") as steps:
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
