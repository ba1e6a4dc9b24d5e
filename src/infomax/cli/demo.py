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
"""The packages whose neighbours are shown."""
DIM = 128
EPOCHS = 60
"""Fewer epochs than by default, so that the demo shows in little time what is learnt."""
PICTURED_PACKAGES = 4000
COMMUNITIES = 10


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

    run = out / "run"
    report = out / "report.json"
    if not _is_run_of_report(run, report):
        # Only the model of an earlier demo is replaced.
        refuse_model(run)
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

    # Three rows, so that the demo ends soon: `infomax evaluate` scores parts and baselines as well.
    codes, split = labelled(graph)
    with show.Steps("evaluate", None) as steps:
        rows = compare(
            model,
            codes,
            [split],
            validated_probe,
            with_parts=False,
            with_baselines=False,
            progress=steps.update,
        )
    scores = [row.to_dict() for row in rows]
    show.scores("Section of a package: validated probe, fixed split, one encoder", scores)

    neighbours = {
        package: [name for name, _ in embeddings.neighbours(package, k=6)] for package in PACKAGES
    }
    cells = [(package, ", ".join(names)) for package, names in neighbours.items()]
    show.table("Nearest packages", ("package", "neighbours"), cells)

    result = {
        "dataset": "debian",
        "rows": scores,
        "neighbours": neighbours,
        "health": model.health_,
    }
    write_json(report, result)
    # Right after its report, by which the next demo recognises it.
    model.save(run, overwrite=True)

    _draw(graph, embeddings, out)
    show.wrote(f"{out}/: run/, embeddings.npz, report.json, debian.png, map.html")
    show.out.print(words(model.health_["verdict"]))
    show.out.print(
        f"Open {out}/map.html in a browser: search for a package, click it, and see its neighbours."
    )


def _is_run_of_report(run: Path, report: Path) -> bool:
    """Whether a run folder belongs to a demo's report, which repeats its health."""
    from infomax.io.json import read_json
    from infomax.training.runs import HEALTH

    if not report.exists() or not (run / HEALTH).exists():
        return False
    return bool(read_json(report).get("health") == read_json(run / HEALTH))


def _draw(graph: Graph, embeddings: Embeddings, out: Path) -> None:
    """Write a map of all packages, and a picture of some labelled ones, coloured by section."""
    import numpy as np

    from infomax.analysis.map import node_columns, write_map
    from infomax.analysis.pictures import sample_rows, scatter
    from infomax.evaluation.clustering import cluster

    columns = node_columns(graph, cluster(embeddings.vectors, COMMUNITIES, seed=0))
    with show.Steps("map", None) as steps:
        points = write_map(
            out / "map.html",
            embeddings,
            columns,
            title="Debian's source packages",
            progress=steps.update,
        )

    section = graph.labels["section"]
    labelled_rows = np.flatnonzero(section != "")
    rows = labelled_rows[sample_rows(len(labelled_rows), PICTURED_PACKAGES, seed=0)]
    title = "Debian's packages, placed by what DGI learnt without labels"
    scatter(points[rows], section[rows], out / "debian.png", title)
