"""The report on a training, and the page about a run in its folder, with the scores that `infomax evaluate` adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.resemblance import in_words
from infomax.errors import InputError
from infomax.evaluation.metrics import dead_dimensions, effective_rank
from infomax.graphs.graph import Graph
from infomax.io.atomic import write_text
from infomax.io.json import RESTORE, read_json, write_json
from infomax.memory import size
from infomax.training.verdict import judge, words

SAMPLE = 20_000
"""Vectors from which the rank is computed, at most: of 34,493 half differ by 0.2 %, in half the time."""


def spread(count: int, most: int = SAMPLE) -> NDArray[np.int64]:
    """At most ``most`` of the rows 0 to count - 1, at equal distances."""
    return np.arange(0, count, max(1, -(-count // most)))


def health(course: dict[str, Any], vectors: NDArray[np.float32], graph: Graph) -> dict[str, Any]:
    """The whole report, as JSON values: the course, rank and dead dimensions of vectors ``[N, d]``, and the verdict.

    The vectors are of the graph that was seen, or of a sample of it; at most `SAMPLE` of them are looked at.
    """
    some = vectors[spread(len(vectors))]
    rank, dead = round(effective_rank(some), 2), dead_dimensions(some)
    report = course | {
        "effective_rank": rank,
        "dead_dimensions": dead,
        "dimensions": int(vectors.shape[1]),
    }
    return report | {"verdict": judge(report, graph)}


def figures(report: dict[str, Any]) -> list[tuple[str, str]]:
    """What a person is shown of a report: names and figures."""
    parts = report.get("parts", {})
    epochs = f"{report['epochs']:d}"
    if report["kept_epoch"] != report["epochs"]:
        epochs += f" (weights of epoch {report['kept_epoch']:d})"
    rows = [("epochs", epochs)]
    if "loss" in report:
        rows += [
            ("loss", f"{report['curve']['loss'][0]:.4f} -> {report['loss']:.4f}"),
            *(_metric(name, report[name]) for name in report["curve"] if name != "loss"),
        ]
    rows += [
        ("effective rank", f"{report['effective_rank']:.1f} of {report['dimensions']:d}"),
        ("dead dimensions", f"{report['dead_dimensions']:d}"),
        *(
            [("parts of a vector", ", ".join(f"{name} {width:d}" for name, width in parts.items()))]
            if parts
            else []
        ),
        *(
            [("features of neighbours", in_words(report["resemblance"]))]
            if "resemblance" in report
            else []
        ),
        *_position_row(report),
        *_link_row(report),
        ("training time", f"{report['seconds']:.1f} s"),
        ("peak memory of the process", size(report["peak_memory_bytes"])),
    ]
    if "peak_gpu_memory_bytes" in report:
        rows.append(("peak memory on the GPU", size(report["peak_gpu_memory_bytes"])))
    return rows


def _position_row(report: dict[str, Any]) -> list[tuple[str, str]]:
    """What the search for positions took, where vectors have them."""
    if "position_search" not in report:
        return []
    return [("search for positions", report["position_search"])]


def _link_row(report: dict[str, Any]) -> list[tuple[str, str]]:
    """How well the encoder knows links that were hidden from it, where that was measured."""
    if "hidden_links" not in report:
        return []
    scores = report["hidden_links"]
    return [
        (
            "AUC of hidden links",
            f"{scores['trained']:.3f}, before training {scores['untrained']:.3f}",
        )
    ]


def _metric(name: str, value: float) -> tuple[str, str]:
    """A metric of a method besides its loss, in words; those of Deep Graph Infomax have words of their own."""
    if name == "discriminator_accuracy":
        return "discriminator accuracy", f"{100 * value:.1f} %"
    return "spread of the summary" if name == "summary_spread" else name.replace(
        "_", " "
    ), f"{value:.4f}"


def read_report(path: Path) -> dict[str, Any]:
    """Read the report on a training; refused if it cannot be shown."""
    report = read_json(path)
    try:
        figures(report)
        words(report["verdict"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        found = f"one that cannot be shown ({type(error).__name__}: {error})"
        raise InputError(str(path), "the report on a training", found, RESTORE) from error
    return report


CARD, SCORES = "README.md", "scores.json"


def flat(values: dict[str, Any]) -> dict[str, Any]:
    """Settings without nesting: ``{"encoder": {"part": "GCN", "layers": 2}}`` is encoder, and encoder.layers."""
    out = {}
    for name, value in values.items():
        inner = dict(value) if isinstance(value, dict) else {"part": value}
        out[name] = inner.pop("part", "")
        out |= {f"{name}.{key}": one for key, one in flat(inner).items()}
    return out


def read_scores(folder: Path) -> dict[str, dict[str, float]]:
    """The scores of a run by what was scored, then by method; none where there are none, or the file is damaged."""
    try:
        found = read_json(folder / SCORES)
        return {
            title: {method: float(score) for method, score in rows.items()}
            for title, rows in found.items()
        }
    except (InputError, AttributeError, TypeError, ValueError):
        return {}


def add_scores(folder: Path, title: str, scores: dict[str, float]) -> None:
    """Keep the scores of an evaluation in the run folder and on its page, unless the folder cannot be written."""
    try:
        write_json(folder / SCORES, read_scores(folder) | {title: scores})
        write_card(folder, read_json(folder / "config.json"), read_report(folder / "health.json"))
    except (InputError, OSError):
        return


def write_card(folder: Path, config: dict[str, Any], health: dict[str, Any]) -> None:
    """Write the page: what the run was trained on, its settings, its health, its scores, how to load it."""
    graphs = {"Trained on": config["graph"]}
    if isinstance(trained_on := config.get("trained_on"), dict):
        graphs = {"Trained on": trained_on, "Taken to, by update": config["graph"]}
    settings = config["settings"]
    own = [
        name for name, value in settings.items() if isinstance(value, dict) and "." in value["part"]
    ]  # has a module
    parts = [
        f"# {folder.resolve().name}",
        "A run of infomax: Deep Graph Infomax, which learns one vector per node of a graph without labels.",
        *(_table(title, _described(graph)) for title, graph in graphs.items()),
        _table("Settings", {"seed": config["seed"], **flat(settings)}.items()),
        _table("Health", figures(health)),
        words(health["verdict"]),
        *([_table("Columns", health["columns"].items())] if "columns" in health else []),
        *(_table(title, ((name, f"{score:.4g}") for name, score in rows.items()))
          for title, rows in read_scores(folder).items()),
        "## To load it\n\n```python\nfrom infomax import DGI\n\n"
        f'model = DGI.load("{folder.resolve().name}"{"".join(f", {name}=..." for name in own)})\n'
        "embeddings = model.transform(model.graph_)\n```",
    ]  # fmt: skip
    write_text(folder / CARD, "\n\n".join(parts) + "\n")


_HEADINGS = {"columns": "columns of the tables", "kinds": "columns that became features"}


def _described(graph: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The rows about a graph, as config.json has it."""
    for name, value in graph.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {one}" for key, one in value.items())
        if name != "hash":
            yield (
                _HEADINGS.get(name, name),
                ", ".join(map(str, value)) if isinstance(value, list) else value,
            )


def _table(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    filled = ((name, value) for name, value in rows if str(value) not in ("", "None"))
    shown = ((name, f"{value:,}" if type(value) is int else value) for name, value in filled)
    cells = [
        "| {} | {} |".format(*(str(cell).replace("\n", " ").replace("|", "\\|") for cell in row))
        for row in shown
    ]
    return "\n".join([f"## {title}", "", "| | |", "|---|---|", *cells])
