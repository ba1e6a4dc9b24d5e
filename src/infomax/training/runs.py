"""Run folders: everything needed to embed, evaluate or resume. They can be moved.

config.json             the settings, the seed, the versions, and a description of the graph with
                        its hash
graph.npz               the graph, its node ids, labels and splits; for a graph folder, config.json
                        names the folder instead
model.safetensors       the weights, the scaler and the recipe of vectors, with a hash; it marks a
                        finished run
positions.npy           of all nodes their degree, and their position in the graph
vectors.npy             the vectors of a graph of at most `MOST_STORED_NODES` nodes, so that showing
                        them needs no model
health.json             the report on the training
metrics.jsonl           the loss of every epoch, one JSON object per line, written during training
README.md               a page about the run; scores.json has the scores on it
checkpoint.safetensors  the state of an unfinished training
.lock                   held while a process writes the folder

Runs of several types or seeds are folders of one folder, whose runs.json lists all of them, so that
runs that are missing after an interruption are noticed.

The model holds a hash of the vectors, and one of the settings and of the description of the graph,
which holds a hash of graph.npz. So a model is never used with the settings, the graph or the
vectors of another.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from infomax.arrays.folder_layout import folder_hash, is_folder
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
CONFIG = "config.json"
GRAPH = "graph.npz"
MODEL = "model.safetensors"
VECTORS = "vectors.npy"
POSITIONS = "positions.npy"
HEALTH = "health.json"
CHECKPOINT = "checkpoint.safetensors"
LOCK = ".lock"
METRICS = "metrics.jsonl"
RUNS = "runs.json"
MOST_STORED_NODES = 50_000
"""Nodes up to which a run holds its vectors: at most 100 MB at the usual width."""
MOST_NAMES_SHOWN = 9
"""Runs that a message lists, at most."""
_CONTINUE = (
    "Go on with the command that began them, and --resume: infomax train GRAPH --out {} --resume."
)


# Writing a run


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create a run folder if there is none, and lock it against other writers.

    It is locked until the context ends. Temporary files that a killed process left in the folder
    are removed.
    """
    with _created(folder), atomic.locked(folder / LOCK, folder):
        for name in (CONFIG, GRAPH, MODEL, VECTORS, POSITIONS, HEALTH, CHECKPOINT):
            remove_leftovers(folder / name)
        yield


@contextmanager
def _created(folder: Path) -> Iterator[None]:
    """Create a folder if there is none; a new one that stays empty is removed."""
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    make_folder(folder)
    try:
        yield
    finally:
        # A folder that is not empty cannot be removed.
        with suppress(OSError):
            for path in new_folders:
                path.rmdir()


def clear(folder: Path, settings: dict[str, Any]) -> None:
    """Remove the files of an earlier run; settings that cannot be written are refused first."""
    to_json(settings)
    # So that a folder never has an old model and a new graph.
    for name in (MODEL, VECTORS, POSITIONS, CHECKPOINT, METRICS, CARD, SCORES):
        (folder / name).unlink(missing_ok=True)


def describe(graph: Graph) -> dict[str, Any]:
    """The entries of config.json about a graph, without its hash."""
    description: dict[str, Any] = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "directed": graph.directed,
        "labels": list(graph.labels),
        "schema": None if graph.schema is None else schema_to_json(graph.schema),
    }
    if graph.encoding:
        columns = graph.encoding.feature_columns
        description["kinds"] = {column.name: column.column_type for column in columns}
    if graph.has_named_types:
        description["type"] = graph.node_type
    return description


def begin(
    folder: Path,
    graph: Graph,
    settings: dict[str, Any],
    seed: int,
    device: str,
    trained_on: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write the graph and the settings of a run, and return config.json.

    A resumed training writes the same again.

    Args:
        folder: the run folder.
        graph: the graph.
        settings: the preset as JSON values.
        seed: the seed of the training.
        device: the name of the device.
        trained_on: describes the graph of the training where that is another one, as after an
            update.
    """
    import torch

    if graph.folder is None:
        write_npz(graph, folder / GRAPH)
        graph_hash = file_hash(folder / GRAPH)
    else:
        graph_hash = folder_hash(graph.folder)
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
        "graph": describe(graph) | {"hash": graph_hash},
    }
    if trained_on:
        config["trained_on"] = trained_on
    if graph.folder is not None:
        config["graph_folder"] = str(graph.folder)
    write_json(folder / CONFIG, config)
    return config


# Reading a run


def check(folder: Path) -> dict[str, Any]:
    """Return config.json of a finished run folder; raise InputError if it is none.

    It needs no torch.
    """
    if not (folder / CONFIG).exists():
        raise _no_run(folder)
    config = read_json(folder / CONFIG)
    if config.get("format") != FORMAT:
        found = f"format {config.get('format')} of versions {to_json(config.get('versions'))}"
        remedy = "Train again, or use that version of infomax."
        raise InputError(str(folder / CONFIG), f"format {FORMAT}", found, remedy)
    if not (folder / MODEL).exists():
        verb = "continue" if (folder / CHECKPOINT).exists() else "try"
        remedy = f"Training did not end: {verb} infomax train GRAPH --out RUN --resume."
        raise InputError(str(folder), "a finished run", "no model.safetensors in it", remedy)
    return config


def _no_run(folder: Path) -> InputError:
    """The error for a folder that is no run: one of several runs, or none at all."""
    found = "no config.json in it" if folder.exists() else "nothing of that name"
    if Path() in _listed_in(folder):
        return InputError(str(folder), "a finished run", found, _CONTINUE.format("RUN"))

    remedy = "Make one: infomax train GRAPH --out RUN."
    node_types = types_of(folder)
    names = runs_in(folder)
    if node_types:
        found = f"one for each type of nodes, which cannot be compared: {', '.join(node_types)}"
        remedy = f"Name one: {folder / node_types[0]}, or --type {node_types[0]}."
    elif names:
        found = f"several: {', '.join(map(str, names[:MOST_NAMES_SHOWN]))}"
        remedy = f"Name one: {folder / names[0]}."
    return InputError(str(folder), "a run folder", found, remedy)


def load_model(
    folder: Path, framework: str = "pt"
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The settings of a finished run, and the tensors and values of its model.

    Settings and a model that do not belong together are refused. With framework "np" the tensors
    are numpy's arrays, and torch is not imported.
    """
    config = check(folder)
    tensors, values = checkpoints.load(folder / MODEL, framework)
    if values.get("config") != config_hash(config):
        expected = f"the settings that {MODEL} was trained with"
        raise InputError(str(folder / CONFIG), expected, "others", RESTORE)
    return config, tensors, values


def read_training_graph(folder: Path, moved_to: Path | None = None) -> Graph:
    """Read the graph that a run was trained on; raise InputError if config.json describes another.

    Args:
        folder: the run folder.
        moved_to: where the graph folder may be, if it was moved.
    """
    config = read_json(folder / CONFIG)
    description = config["graph"]
    node_type = description.get("type", "")
    if "graph_folder" in config:
        graph_folder = _graph_folder(folder, config, moved_to)
        return Graph.open(graph_folder).target(node_type)

    path = folder / GRAPH
    if not path.is_file():
        raise InputError(str(path), "the graph of the run", "no such file", RESTORE)
    if description["hash"] != file_hash(path):
        expected = "the graph that the model was trained on"
        raise InputError(str(path), expected, "another or a damaged one", RESTORE)
    graph = Graph.of(read_npz(path)).target(node_type)
    return graph.replace(schema=schema_of(config, folder))


def _graph_folder(folder: Path, config: dict[str, Any], moved_to: Path | None) -> Path:
    """The graph folder that a run was trained on; refused where it is missing or has changed.

    Args:
        folder: the run folder, for the messages.
        config: the content of its configuration file.
        moved_to: where the graph folder may be now; it counts if it has the same content.
    """
    path = Path(config["graph_folder"])
    graph_hash = config["graph"]["hash"]
    if moved_to is not None and not is_folder(path):
        has_same_content = is_folder(moved_to) and folder_hash(moved_to) == graph_hash
        if has_same_content:
            path = moved_to

    expected = "the graph folder that the run was trained on"
    if not is_folder(path):
        remedy = f'Move it back, or write where it is now into {folder / CONFIG}, "graph_folder".'
        raise InputError(str(path), expected, "none there", remedy)
    if graph_hash != folder_hash(path):
        remedy = "Restore it, or train again on this one."
        raise InputError(str(path), expected, "one that has changed", remedy)
    return path


def schema_of(config: dict[str, Any], folder: Path) -> Schema | None:
    """The schema of the tables of a run's graph; None where the graph was made of no tables."""
    values = config["graph"].get("schema")

    def location(keys: tuple[str, ...]) -> str:
        return f"{folder / CONFIG}, schema {'.'.join(keys)}"

    return None if values is None else schema_from_json(values, location)


def vectors_of_run(folder: Path, graph: Graph | None = None) -> Embeddings | None:
    """Read the vectors that a run holds, without torch.

    None is returned where the run holds none, or any of its files is damaged: then `DGI.load`
    computes them, or says what is damaged.

    Args:
        folder: the run folder.
        graph: the graph of the run, if it was read before.
    """
    try:
        values = load_model(folder, "np")[2]
        if values.get("vectors") != file_hash(folder / VECTORS):
            return None
        read_report(folder / HEALTH)
        graph = graph or read_training_graph(folder)
        vectors = Embeddings.read(folder / VECTORS).vectors
        model_hash = str(values.get("made_by", ""))
        parts = values.get("recipe", {}).get("parts", {})
        return Embeddings(vectors, graph.ids, graph.node_names, model_hash, parts)
    except (InputError, OSError, KeyError, TypeError):
        return None


# Folders of several runs


def runs_in(folder: Path) -> list[Path]:
    """The runs in a folder of runs, by type of nodes, seed, or both, as paths below it.

    Other folders have none. Runs that the folder's runs.json lists are included even if they are
    missing.
    """
    if (folder / CONFIG).exists() or not folder.is_dir():
        return []
    begun_runs = {
        path.parent.relative_to(folder)
        for depth in ("*", "*/*")
        for path in folder.glob(f"{depth}/{CONFIG}")
    }
    return sorted({*begun_runs, *_listed_in(folder)} - {Path()})


def first_in(folder: Path) -> Path:
    """The first run in a folder of runs that was begun; a run, or any other folder, itself."""
    for name in runs_in(folder):
        if (folder / name / CONFIG).exists():
            return folder / name
    return folder


def types_of(folder: Path) -> list[str]:
    """The types of a run on a graph of several types, as its runs say; none for other folders."""
    names = runs_in(folder)
    for name in names:
        config_path = folder / name / CONFIG
        if not config_path.exists():
            continue
        node_type = read_json(config_path).get("graph", {}).get("type")
        if node_type == name.parts[0]:
            return sorted({name.parts[0] for name in names})
    return []


def check_all(folder: Path) -> list[Path]:
    """The runs in a folder of runs, none for a run; raise InputError if one is not finished."""
    names = runs_in(folder)
    unfinished = [str(name) for name in names if not (folder / name / MODEL).exists()]
    if unfinished:
        expected = f"finished runs of {', '.join(map(str, names))}"
        found = f"no model of {', '.join(unfinished)}"
        raise InputError(str(folder), expected, found, _CONTINUE.format(folder))
    for name in names or [Path()]:
        check(folder / name)
    return names


@contextmanager
def listing(folder: Path, names: Collection[Path]) -> Iterator[None]:
    """Add runs that are about to be written below a folder to its runs.json.

    Where none of them was begun when the context ends by an exception, the list is as before.
    """
    path = folder / RUNS
    earlier_content = path.read_bytes() if path.exists() else None
    with _created(folder):
        write_json(path, {"runs": sorted(map(str, {*names, *_listed_in(folder)}))})
        try:
            yield
        except BaseException:
            if not any((folder / name).exists() for name in names):
                if earlier_content is None:
                    path.unlink()
                else:
                    path.write_bytes(earlier_content)
            raise


def _listed_in(folder: Path) -> set[Path]:
    """The runs in a folder that are listed in its runs.json, or in those of two folders above.

    They are relative to the folder; ``.`` is the folder itself.
    """
    listed_runs: set[Path] = set()
    absolute_folder = folder.absolute()
    for path in (absolute_folder, *absolute_folder.parents[:2]):
        if not (path / RUNS).exists():
            continue
        for name in read_json(path / RUNS).get("runs", []):
            run = path / str(name)
            if run.is_relative_to(absolute_folder):
                listed_runs.add(run.relative_to(absolute_folder))
    return listed_runs


def refuse_model(folder: Path, *, runs_below: bool = True) -> None:
    """Raise InputError if the folder holds a model, an unfinished training, or runs.

    A new run would hide them. Runs below the folder count only with ``runs_below``.
    """
    expected = "a folder without a run"
    remedy = "Choose another folder, or remove this one"
    if (folder / MODEL).exists():
        raise InputError(str(folder), expected, "a trained model", f"{remedy}.")
    if (folder / CHECKPOINT).exists():
        found = "an unfinished training"
        raise InputError(str(folder), expected, found, f"{remedy}, or continue with --resume.")
    names = runs_in(folder) if runs_below else []
    if names:
        found = f"runs of {', '.join(map(str, names))}"
        raise InputError(str(folder), expected, found, f"{remedy}.")


def refuse_hidden(folder: Path, names: Collection[Path]) -> None:
    """Raise InputError where runs of these names would hide other runs, or be hidden by them.

    The names are paths below the folder.
    """
    for name in names:
        for parent in name.parents:
            if (folder / parent / CONFIG).exists():
                remedy = "Choose another folder, or remove this one."
                raise InputError(str(folder / parent), "a folder of runs", "a run", remedy)
        if runs_in(folder / name):
            refuse_model(folder / name)


def config_hash(config: dict[str, Any]) -> str:
    """Return the SHA-256 of seed, settings and graph in config.json; not of versions or device."""
    parts = {name: config.get(name) for name in ("seed", "settings", "graph")}
    return json_hash(parts)
