"""The page about a run in its folder, README.md, and the scores that `infomax evaluate` adds to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from infomax.errors import InputError
from infomax.io.atomic import write_text
from infomax.io.json import read_json, write_json
from infomax.training.health import figures, read_report
from infomax.training.verdict import words

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
        return {title: {method: float(score) for method, score in rows.items()} for title, rows in found.items()}
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
    own = [name for name, value in settings.items() if isinstance(value, dict) and "." in value["part"]]  # has a module
    parts = [
        f"# {folder.resolve().name}",
        "A run of infomax: Deep Graph Infomax, which learns one vector per node of a graph without labels.",
        *(_table(title, _described(graph)) for title, graph in graphs.items()),
        _table("Settings", {"seed": config["seed"], **flat(settings)}.items()),
        _table("Health", figures(health)),
        words(health["verdict"]),
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
            yield _HEADINGS.get(name, name), ", ".join(map(str, value)) if isinstance(value, list) else value


def _table(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    filled = ((name, value) for name, value in rows if str(value) not in ("", "None"))
    shown = ((name, f"{value:,}" if type(value) is int else value) for name, value in filled)
    cells = ["| {} | {} |".format(*(str(cell).replace("\n", " ").replace("|", "\\|") for cell in row)) for row in shown]
    return "\n".join([f"## {title}", "", "| | |", "|---|---|", *cells])
