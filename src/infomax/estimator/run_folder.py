"""Write a fitted model to a run folder, and read it back."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from infomax.embeddings import EmbeddingParts, Embeddings
from infomax.errors import InputError, in_words
from infomax.estimator.assembly import build
from infomax.estimator.fitted_model import FittedModel
from infomax.estimator.training_record import StoredRecord
from infomax.io.json import RESTORE
from infomax.parts.methods import Model, Part
from infomax.training import model_file, runs
from infomax.training.presets import restore
from infomax.training.recipe import Recipe


def save(fitted: FittedModel, folder: Path, device: str, *, overwrite: bool = False) -> None:
    """Write a run folder; one that holds a model is refused, unless it may be overwritten."""
    with runs.locked(folder):
        if not overwrite:
            runs.refuse_model(folder)
        # What may fail is computed before the old model is removed.
        _ = fitted.record.report
        settings = fitted.preset.describe()
        vectors = vectors_to_store(fitted, device)

        runs.clear(folder, settings)
        with ThreadPoolExecutor(1) as pool:  # vectors and graph may both be large
            stored = pool.submit(model_file.keep_vectors, folder, vectors)
            config = runs.begin(
                folder, fitted.graph, settings, fitted.seed, device, fitted.trained_on
            )
        write_model(fitted, folder, config, stored.result())


def vectors_to_store(fitted: FittedModel, device: str) -> Embeddings | EmbeddingParts | None:
    """The vectors that a run folder holds; None for large graphs and those seen in part."""
    graph = fitted.graph
    if fitted.vectors is not None:
        return fitted.vectors
    if graph.table.mapped or "seen" in graph.splits or graph.num_nodes > runs.MOST_STORED_NODES:
        return None
    return fitted.transform(graph, device)


def write_stored_vectors(fitted: FittedModel, folder: Path, device: str) -> dict[str, Any]:
    """Write the vectors that a run folder holds; returns what the model file says of them."""
    return model_file.keep_vectors(folder, vectors_to_store(fitted, device))


def write_model(
    fitted: FittedModel, folder: Path, config: dict[str, Any], stored: dict[str, Any]
) -> None:
    """Write the report and the model, which marks the run as finished.

    Args:
        fitted: the model.
        folder: the run folder.
        config: the content of its configuration file.
        stored: what describes the stored vectors.
    """
    weights = fitted.model.state_dict()
    run = model_file.Run(
        folder,
        config,
        {f"model.{name}": weight for name, weight in weights.items()},
        fitted.scaler,
        fitted.feature_names,
        fitted.record.report,
    )
    model_file.finish(run, stored, fitted.recipe, fitted.positions)


def load(folder: Path, graph_folder: Path | None, custom_parts: Mapping[str, Part]) -> FittedModel:
    """Read a run folder.

    Args:
        folder: the run folder.
        graph_folder: where the graph folder that it was trained on is now, if that has moved.
        custom_parts: parts of the user's by name, of which a run folder has only the names.
    """
    try:
        return _load(folder, graph_folder, custom_parts)
    except (AttributeError, KeyError, TypeError, RuntimeError) as error:
        location, remedy = str(folder / runs.CONFIG), RESTORE
        if custom_parts:
            location = f"DGI.load(run, {'=..., '.join(custom_parts)}=...)"
            remedy = "Pass what it was trained with."
        expected = "the settings of the model in the run"
        raise InputError(location, expected, in_words(error), remedy) from error


def _load(folder: Path, graph_folder: Path | None, custom_parts: Mapping[str, Part]) -> FittedModel:
    run = model_file.read(folder)
    preset = restore(run.config["settings"], dict(custom_parts))
    # Any generator will do: the weights are overwritten below.
    model = build(preset, len(run.feature_names), torch.Generator()).eval()
    graph = runs.read_training_graph(folder, graph_folder)
    # take_recipe removes its tensors from those of the run; what is left are weights.
    recipe, positions = model_file.take_recipe(run, model.encoder, graph)
    if recipe is None:  # the paper's vectors
        recipe = Recipe(model.encoder, run.scaler)
    _load_weights(model, run.tensors)
    return FittedModel(
        model,
        preset,
        run.config["seed"],
        run.scaler,
        run.feature_names,
        graph,
        recipe,
        positions,
        StoredRecord(run.health),
        run.config.get("trained_on"),
    )


def _load_weights(model: Model, tensors: Mapping[str, torch.Tensor]) -> None:
    """Put the weights of a model file into a model."""
    model.load_state_dict({name.removeprefix("model."): tensor for name, tensor in tensors.items()})
