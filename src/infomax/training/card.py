"""The page about a run in its folder, README.md, with the scores that `infomax evaluate` adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from infomax.errors import InputError
from infomax.io.atomic import write_text
from infomax.io.json import read_json, write_json
from infomax.io.schema.edits import choices_of_person
from infomax.io.schema.schema_file import from_json
from infomax.training.health import figures, read_report
from infomax.training.verdict import words

CARD, SCORES = "README.md", "scores.json"
HEADINGS = {"columns": "columns of the tables", "kinds": "columns that became features"}
"""The names on the page of entries about a graph in config.json, where these differ."""


def write_card(folder: Path, config: dict[str, Any], health: dict[str, Any]) -> None:
    """Write the page: what the run was trained on, settings, health, scores, and how to load it."""
    name = folder.resolve().name
    paragraphs = [
        f"# {name}",
        "A run of infomax: Deep Graph Infomax, which learns one vector per node of a graph without"
        " labels.",
    ]

    trained_on = config.get("trained_on")
    if isinstance(trained_on, dict):
        paragraphs.append(_table("Trained on", _graph_rows(trained_on)))
        paragraphs.append(_table("Taken to, by update", _graph_rows(config["graph"])))
    else:
        paragraphs.append(_table("Trained on", _graph_rows(config["graph"])))

    settings = config["settings"]
    paragraphs.append(_table("Settings", {"seed": config["seed"], **flat(settings)}.items()))
    paragraphs.append(_table("Health", figures(health)))
    paragraphs.append(words(health["verdict"]))
    if "columns" in health:
        paragraphs.append(_table("Columns", health["columns"].items()))
    for title, scores in read_scores(folder).items():
        score_rows = ((method, f"{score:.4g}") for method, score in scores.items())
        paragraphs.append(_table(title, score_rows))
    paragraphs.append(_how_to_load(name, settings))
    write_text(folder / CARD, "\n\n".join(paragraphs) + "\n")


def read_scores(folder: Path) -> dict[str, dict[str, float]]:
    """The scores of a run by what was scored, then by method.

    None where there are none, or the file is damaged.
    """
    try:
        scores = read_json(folder / SCORES)
        return {
            title: {method: float(score) for method, score in rows.items()}
            for title, rows in scores.items()
        }
    except (InputError, AttributeError, TypeError, ValueError):
        return {}


def add_scores(folder: Path, title: str, scores: dict[str, float]) -> None:
    """Keep the scores of an evaluation in the run folder and on its page, if it can be written."""
    try:
        write_json(folder / SCORES, read_scores(folder) | {title: scores})
        write_card(folder, read_json(folder / "config.json"), read_report(folder / "health.json"))
    except (InputError, OSError):
        return


def flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings without nesting.

    ``{"encoder": {"part": "GCN", "layers": 2}}`` becomes encoder, and encoder.layers.
    """
    flattened: dict[str, Any] = {}
    for name, value in settings.items():
        if not isinstance(value, dict):
            flattened[name] = value
            continue
        arguments = dict(value)
        flattened[name] = arguments.pop("part", "")
        for argument, argument_value in flat(arguments).items():
            flattened[f"{name}.{argument}"] = argument_value
    return flattened


def _how_to_load(name: str, settings: dict[str, Any]) -> str:
    """The lines of Python that load a run; custom parts are arguments, which the run has not."""
    # The name of a custom part begins with its module, so it has a dot.
    custom_parts = [
        field
        for field, value in settings.items()
        if isinstance(value, dict) and "." in value["part"]
    ]
    arguments = "".join(f", {field}=..." for field in custom_parts)
    return (
        "## To load it\n\n```python\nfrom infomax import DGI\n\n"
        f'model = DGI.load("{name}"{arguments})\n'
        "embeddings = model.transform(model.graph_)\n```"
    )


def _graph_rows(graph: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The rows about a graph, as config.json has it."""
    for name, value in graph.items():
        if name == "hash":
            continue
        if name == "schema":
            yield from _schema_rows(value)
            continue
        shown = value
        if isinstance(value, dict):
            shown = ", ".join(f"{key}: {entry}" for key, entry in value.items())
        elif isinstance(value, list):
            shown = ", ".join(map(str, value))
        yield HEADINGS.get(name, name), shown


def _schema_rows(values: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """The rows about a schema: the role of each table, and the choices that the user made."""
    if values is None:
        return
    schema = from_json(values)
    roles = [f"{name} ({table.role})" for name, table in schema.tables.items()]
    yield "tables", ", ".join(roles)
    yield "chosen by the user", ", ".join(choices_of_person(schema))


def _table(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """A table in Markdown; rows without a value are left out."""
    lines = [f"## {title}", "", "| | |", "|---|---|"]
    for name, value in rows:
        if str(value) in ("", "None"):
            continue
        shown = f"{value:,}" if type(value) is int else value
        lines.append(f"| {_cell(name)} | {_cell(shown)} |")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return str(value).replace("\n", " ").replace("|", "\\|")
