"""Several runs side by side: the settings in which they differ, their health and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infomax.training import runs
from infomax.training.card import flat, read_scores
from infomax.training.health import read_report

_HEALTH = ("epochs", "loss", "discriminator_accuracy", "effective_rank", "dimensions", "dead_dimensions", "seconds")


def compare_runs(folders: Sequence[Path]) -> dict[str, dict[str, list[Any]]]:
    """Values by section ("settings", "health", "scores") and name, one for each run; None where a run has none."""
    configs = [runs.check(folder) for folder in folders]
    graphs = [
        {f"graph.{name}": value[:12] if name == "hash" else value for name, value in config["graph"].items()}
        for config in configs
    ]
    trained = [
        {"seed": config["seed"], **flat(config["settings"]), **graph}
        for config, graph in zip(configs, graphs, strict=True)
    ]
    reports = [read_report(folder / runs.HEALTH) for folder in folders]
    health = [
        {name: report.get(name) for name in _HEALTH} | {"verdict": report["verdict"]["verdict"]} for report in reports
    ]
    scores = [
        {f"{title}: {method}": score for title, rows in read_scores(folder).items() for method, score in rows.items()}
        for folder in folders
    ]
    settings = {name: values for name, values in _joined(trained).items() if any(one != values[0] for one in values)}
    return {"settings": settings, "health": _joined(health), "scores": _joined(scores)}


def _joined(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
