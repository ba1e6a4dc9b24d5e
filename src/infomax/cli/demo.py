"""infomax demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from infomax.cli import show
from infomax.cli.app import app
from infomax.cli.options import Threads, option

if TYPE_CHECKING:
    from infomax.embeddings import Embeddings
    from infomax.graphs.graph import Graph

PACKAGES = ("numpy", "vim", "postgresql-15", "gimp", "rustc")
DIM, EPOCHS, SAMPLE, COMMUNITIES = 128, 60, 4000, 10
"""Fewer epochs than by default, so that the demo shows in little time what is learnt."""


@app.command()
def demo(
    out: Annotated[Path, option("FOLDER", "Where to write.")] = Path("demo"),
    epochs: Annotated[int, option("N", "Epochs to train.")] = EPOCHS,
    threads: Threads = None,
) -> None:
    """Train on Debian's packages and show what was learnt."""
    from infomax.datasets import load_dataset
    from infomax.estimator import DGI
    from infomax.evaluation.probes import validated_probe
    from infomax.io.atomic import make_folder
    from infomax.io.json import write_json
    from infomax.reports.comparison import compare, labelled
    from infomax.training.runs import refuse_model
    from infomax.training.verdict import words

    run, report = out / "run", out / "report.json"
    if not _reported(run, report):
        refuse_model(run)  # only the model of an earlier demo is replaced
    for folder in (out, run):
        make_folder(folder)
    graph = load_dataset("debian")
    show.out.print(f"Debian's source packages and their dependencies: {graph!r}")
    model = DGI(DIM, epochs=epochs)
    with show.training_progress("epochs") as progress:
        embeddings = model.fit(graph, progress=progress).transform(graph)
    embeddings.save(out / "embeddings.npz")
    show.health(model.health_)
    show.out.print(f"embeddings done after {show.seconds():.1f} s")

    codes, splits = labelled(graph)
    with show.Steps("evaluate", None) as steps:
        rows = [
            row.to_dict()
            for row in compare(model, codes, [splits], validated_probe, progress=steps.at)
        ]
    show.scores("Section of a package: validated probe, fixed split, one encoder", rows)
    nearest = {name: [other for other, _ in embeddings.neighbours(name, k=6)] for name in PACKAGES}
    show.table(
        "Nearest packages",
        ("package", "neighbours"),
        [(k, ", ".join(v)) for k, v in nearest.items()],
    )
    write_json(
        report, {"dataset": "debian", "rows": rows, "neighbours": nearest, "health": model.health_}
    )
    model.save(run, overwrite=True)  # right after its report, by which the next demo recognises it
    _draw(graph, embeddings, out)
    show.wrote(f"{out}/: run/, embeddings.npz, report.json, debian.png, map.html")
    show.out.print(words(model.health_["verdict"]))
    show.out.print(
        f"Open {out}/map.html in a browser: search for a package, click it, and see its neighbours."
    )


def _reported(run: Path, report: Path) -> bool:
    """Whether a run folder belongs to a demo's report."""
    from infomax.io.json import read_json
    from infomax.training.runs import HEALTH

    both = report.exists() and (run / HEALTH).exists()
    return both and read_json(report).get("health") == read_json(run / HEALTH)


def _draw(graph: Graph, embeddings: Embeddings, out: Path) -> None:
    """Write an interactive map of all packages, and a picture of a sample of the labelled ones, coloured by section."""
    import numpy as np

    from infomax.analysis.map import node_columns, write_map
    from infomax.analysis.pictures import sample_rows, scatter
    from infomax.evaluation.clustering import cluster

    columns = node_columns(graph, cluster(embeddings.vectors, COMMUNITIES, seed=0))
    title = "Debian's source packages"
    with show.Steps("map", None) as steps:
        places = write_map(out / "map.html", embeddings, columns, title=title, progress=steps.at)
    section = graph.labels["section"]
    known = np.flatnonzero(section != "")
    rows = known[sample_rows(len(known), SAMPLE, seed=0)]
    title = "Debian's packages, placed by what DGI learnt without labels"
    scatter(places[rows], section[rows], out / "debian.png", title)
