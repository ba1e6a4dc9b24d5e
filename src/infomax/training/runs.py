"""Run folders: everything needed to embed, evaluate or resume. They can be moved.

config.json             the settings, the seed, the versions, and a description of the graph with its hash
graph.npz               the graph, its node ids, labels and splits; config.json names a graph folder instead
model.safetensors       the weights, the scaler, what vectors are made of, hashed; it marks a finished run
positions.npy           of all nodes the sum of their weights, and their position in the graph
vectors.npy             the vectors of a graph of at most `STORED` nodes, so that showing them needs no model
health.json             the report on the training
metrics.jsonl           the loss of every epoch, one JSON object per line, written while it trains
README.md               a page about the run; scores.json has the scores on it
checkpoint.safetensors  the state of an unfinished training
.lock                   held while a process writes the folder

Runs of several types or seeds are folders of one folder, whose runs.json lists all of them, so that one that is
missing after an interruption is known to be.

The model holds a hash of the vectors, and one of the settings and of the description of the graph, which holds a hash
of graph.npz. So a model is never used with the settings, the graph or the vectors of another.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from infomax.arrays.folder import folder_hash, is_folder
from infomax.arrays.hashes import file_hash
from infomax.embeddings import Embeddings
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io import atomic
from infomax.io.atomic import make_folder, remove_leftovers
from infomax.io.json import RESTORE, json_hash, read_json, to_json, write_json
from infomax.io.npz import read_npz, write_npz
from infomax.io.schema.schema import Schema
from infomax.io.schema.schema_file import from_json as schema_from_json
from infomax.io.schema.schema_file import to_json as schema_to_json
from infomax.training import checkpoints
from infomax.training.card import CARD, SCORES
from infomax.training.health import read_report
from infomax.version import __version__

FORMAT = 5
CONFIG, GRAPH, MODEL = "config.json", "graph.npz", "model.safetensors"
VECTORS, POSITIONS, HEALTH = "vectors.npy", "positions.npy", "health.json"
CHECKPOINT, LOCK = "checkpoint.safetensors", ".lock"
METRICS, RUNS = "metrics.jsonl", "runs.json"
STORED = 50_000
"""Nodes up to which a run holds its vectors: at most 100 MB at the usual width."""


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """Create a folder if there is none; a new one that stays empty is removed."""
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    make_folder(folder)
    try:
        yield
    finally:
        with suppress(OSError):  # it is not empty
            for path in created:
                path.rmdir()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create a run folder if there is none, and lock it against other writers until the context ends.

    Temporary files that a killed process left in the folder are removed.
    """
    with _folder(folder), atomic.locked(folder / LOCK, folder):
        for name in (CONFIG, GRAPH, MODEL, VECTORS, POSITIONS, HEALTH, CHECKPOINT):
            remove_leftovers(folder / name)
        yield


def clear(folder: Path, settings: dict[str, Any]) -> None:
    """Remove what an earlier run left; settings that cannot be written are refused first."""
    to_json(settings)
    # An old model is never beside a new graph.
    for name in (MODEL, VECTORS, POSITIONS, CHECKPOINT, METRICS, CARD, SCORES):
        (folder / name).unlink(missing_ok=True)


def describe(graph: Graph) -> dict[str, Any]:
    """What config.json says of a graph, but for its hash."""
    described: dict[str, Any] = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
    }
    described |= {
        "directed": graph.directed,
        "labels": list(graph.labels),
        "schema": None if graph.schema is None else schema_to_json(graph.schema),
    }
    described |= (
        {"kinds": {one.name: one.column_type for one in graph.encoding.feature_columns}}
        if graph.encoding
        else {}
    )
    return described | ({"type": graph.node_type} if graph.has_named_types else {})


def begin(
    folder: Path,
    graph: Graph,
    settings: dict[str, Any],
    seed: int,
    device: str,
    trained_on: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write the graph and the settings of a run, and return config.json; a resumed training writes the same again.

    ``trained_on`` describes the graph of the training where that is another, as after an update.
    """
    import torch

    if graph.folder is None:
        write_npz(graph, folder / GRAPH)
        elsewhere, content = {}, file_hash(folder / GRAPH)
    else:
        elsewhere, content = {"graph_folder": str(graph.folder)}, folder_hash(graph.folder)
    config = {
        "format": FORMAT,
        "versions": {
            "infomax": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "seed": seed,
        "device": str(device),
        "settings": settings,
        "graph": describe(graph) | {"hash": content},
        **({"trained_on": trained_on} if trained_on else {}),
        **elsewhere,
    }
    write_json(folder / CONFIG, config)
    return config


def check(folder: Path) -> dict[str, Any]:
    """Return config.json of a finished run folder; raise InputError if it is none. Needs no torch."""
    if not (folder / CONFIG).exists():
        found = "no config.json in it" if folder.exists() else "nothing of that name"
        remedy = "Make one: infomax train GRAPH --out RUN."
        if Path() in _listed_in(folder):
            raise InputError(str(folder), "a finished run", found, _GO_ON.format("RUN"))
        if types := types_of(folder):
            found = f"one for each type of nodes, which cannot be compared: {', '.join(types)}"
            remedy = f"Name one: {folder / types[0]}, or --type {types[0]}."
        elif names := runs_in(folder):
            found, remedy = (
                f"several: {', '.join(map(str, names[:9]))}",
                f"Name one: {folder / names[0]}.",
            )
        raise InputError(str(folder), "a run folder", found, remedy)
    config = read_json(folder / CONFIG)
    if config.get("format") != FORMAT:
        found = f"format {config.get('format')} of versions {to_json(config.get('versions'))}"
        remedy = "Train again, or use that version of infomax."
        raise InputError(str(folder / CONFIG), f"format {FORMAT}", found, remedy)
    if not (folder / MODEL).exists():
        begun = (folder / CHECKPOINT).exists()
        remedy = f"Training did not end: {'continue' if begun else 'try'} infomax train GRAPH --out RUN --resume."
        raise InputError(str(folder), "a finished run", "no model.safetensors in it", remedy)
    return config


def load_model(
    folder: Path, framework: str = "pt"
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The settings of a finished run, and the tensors and values of its model; refused if they do not belong together.

    With framework "np" the tensors are numpy's arrays, and torch is not imported.
    """
    config = check(folder)
    tensors, values = checkpoints.load(folder / MODEL, framework)
    if values.get("config") != config_hash(config):
        raise InputError(
            str(folder / CONFIG), f"the settings that {MODEL} was trained with", "others", RESTORE
        )
    return config, tensors, values


def read_training_graph(folder: Path, moved_to: Path | None = None) -> Graph:
    """Read the graph that a run was trained on; raise InputError if config.json describes another.

    Where a graph folder is no longer in its place, it may be ``moved_to``.
    """
    config = read_json(folder / CONFIG)
    described = config["graph"]
    if "graph_folder" in config:
        path = Path(config["graph_folder"])
        if (
            moved_to
            and not is_folder(path)
            and is_folder(moved_to)
            and folder_hash(moved_to) == described["hash"]
        ):
            path = moved_to
        if not is_folder(path):
            remedy = (
                f'Move it back, or write where it is now into {folder / CONFIG}, "graph_folder".'
            )
            raise InputError(
                str(path), "the graph folder that the run was trained on", "none there", remedy
            )
        if described["hash"] != folder_hash(path):
            remedy = "Restore it, or train again on this one."
            raise InputError(
                str(path),
                "the graph folder that the run was trained on",
                "one that has changed",
                remedy,
            )
        return Graph.open(path).target(described.get("type", ""))
    path = folder / GRAPH
    if not path.is_file():
        raise InputError(str(path), "the graph of the run", "no such file", RESTORE)
    if described["hash"] != file_hash(path):
        raise InputError(
            str(path),
            "the graph that the model was trained on",
            "another or a damaged one",
            RESTORE,
        )
    graph = Graph.of(read_npz(path)).target(described.get("type", ""))
    return graph.replace(schema=schema_of(config, folder))


def schema_of(config: dict[str, Any], folder: Path) -> Schema | None:
    """What the tables of the graph of a run are, as its config.json says; None where it was made of no tables."""
    values = config["graph"].get("schema")

    def location(keys: tuple[str, ...]) -> str:
        return f"{folder / CONFIG}, schema {'.'.join(keys)}"

    return None if values is None else schema_from_json(values, location)


def vectors_of_run(folder: Path, graph: Graph | None = None) -> Embeddings | None:
    """Read the vectors that a run holds, without torch; None if it holds none or any of its files is damaged.

    Then `DGI.load` computes them, or says what is damaged. ``graph`` is that of the run, if it was read before.
    """
    try:
        values = load_model(folder, "np")[2]
        if values.get("vectors") != file_hash(folder / VECTORS):
            return None
        read_report(folder / HEALTH)
        graph = graph or read_training_graph(folder)
        vectors = Embeddings.read(folder / VECTORS).vectors
        made_by, parts = str(values.get("made_by", "")), values.get("recipe", {}).get("parts", {})
        return Embeddings(vectors, graph.ids, graph.node_names, made_by, parts)
    except (InputError, OSError, KeyError, TypeError):
        return None


def runs_in(folder: Path) -> list[Path]:
    """The runs in a folder of runs, by type of nodes, seed, or both, as paths below it; none for other folders.

    Those that its runs.json lists are among them, also where they are missing.
    """
    if (folder / CONFIG).exists() or not folder.is_dir():
        return []
    begun = {
        path.parent.relative_to(folder)
        for depth in ("*", "*/*")
        for path in folder.glob(f"{depth}/{CONFIG}")
    }
    return sorted({*begun, *_listed_in(folder)} - {Path()})


def first_in(folder: Path) -> Path:
    """The first run in a folder of runs that is there; a run, or any other folder, itself."""
    return next(
        (folder / name for name in runs_in(folder) if (folder / name / CONFIG).exists()), folder
    )


def types_of(folder: Path) -> list[str]:
    """The types of a run on a graph of several types, as its runs say; none for other folders."""
    names = runs_in(folder)
    begun = [name for name in names if (folder / name / CONFIG).exists()]
    typed = any(
        read_json(folder / name / CONFIG).get("graph", {}).get("type") == name.parts[0]
        for name in begun
    )
    return sorted({name.parts[0] for name in names}) if typed else []


def check_all(folder: Path) -> list[Path]:
    """The runs in a folder of runs; raise InputError if one of them, or the folder that is a run, is not finished."""
    names = runs_in(folder)
    if missing := [str(name) for name in names if not (folder / name / MODEL).exists()]:
        expected = f"finished runs of {', '.join(map(str, names))}"
        raise InputError(
            str(folder), expected, f"no model of {', '.join(missing)}", _GO_ON.format(folder)
        )
    for name in names or [Path()]:
        check(folder / name)
    return names


@contextmanager
def listing(folder: Path, names: Collection[Path]) -> Iterator[None]:
    """List the runs that are about to be written below a folder in its runs.json, beside those that are listed.

    Where none of them was begun when the context ends by an exception, the list is as before.
    """
    path = folder / RUNS
    before = path.read_bytes() if path.exists() else None
    with _folder(folder):
        write_json(path, {"runs": sorted(map(str, {*names, *_listed_in(folder)}))})
        try:
            yield
        except BaseException:
            if not any((folder / name).exists() for name in names):
                path.unlink() if before is None else path.write_bytes(before)
            raise


_GO_ON = (
    "Go on with the command that began them, and --resume: infomax train GRAPH --out {} --resume."
)


def _listed_in(folder: Path) -> set[Path]:
    """The runs below a folder that its runs.json lists, or that of the folder above; ``.`` is the folder itself."""
    found = set()
    here = folder.absolute()
    for path in (here, *here.parents[:2]):
        if (path / RUNS).exists():
            listed = read_json(path / RUNS).get("runs", [])
            found |= {
                path / str(name) for name in listed if (path / str(name)).is_relative_to(here)
            }
    return {name.relative_to(here) for name in found}


def refuse_model(folder: Path, *, runs_below: bool = True) -> None:
    """Raise InputError if the folder holds a model, an unfinished training, or runs, which another would hide."""
    choices = "Choose another folder, or remove this one"
    for name, what, remedy in (
        (MODEL, "a trained model", f"{choices}."),
        (CHECKPOINT, "an unfinished training", f"{choices}, or continue with --resume."),
    ):
        if (folder / name).exists():
            raise InputError(str(folder), "a folder without a run", what, remedy)
    if runs_below and (names := runs_in(folder)):
        raise InputError(
            str(folder),
            "a folder without a run",
            f"runs of {', '.join(map(str, names))}",
            f"{choices}.",
        )


def refuse_hidden(folder: Path, names: Collection[Path]) -> None:
    """Raise InputError where runs of these names below a folder would hide others there, or be hidden by them."""
    for name in names:
        for above in (folder / parent for parent in name.parents):
            if (above / CONFIG).exists():
                raise InputError(
                    str(above),
                    "a folder of runs",
                    "a run",
                    "Choose another folder, or remove this one.",
                )
        if runs_in(folder / name):
            refuse_model(folder / name)


def config_hash(config: dict[str, Any]) -> str:
    """Return the SHA-256 of seed, settings and graph in config.json; not of versions or device."""
    parts = {name: config.get(name) for name in ("seed", "settings", "graph")}
    return json_hash(parts)
