"""Several encoders of one graph, which differ in their seeds, trained side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from infomax.estimator.assembly import build, with_another_seed
from infomax.estimator.dgi import DGI
from infomax.estimator.fitting import FitRequest, fit_vectors, prepare, trained_model
from infomax.graphs.graph import Graph
from infomax.kernels.initialisation import generators
from infomax.kernels.ranks import Ranks
from infomax.parts.methods import Model
from infomax.parts.vectors import PAPER
from infomax.training.embed import Embedder
from infomax.training.loop import run_together
from infomax.training.vectors import embedder


def fit_together(models: Sequence[DGI], graph: Graph, *, is_one_of_many: bool = False) -> None:
    """Fit models that differ in their seeds only; on a GPU, in one recorded step.

    Each model is as if it were fitted alone.

    Args:
        models: the models.
        graph: the graph.
        is_one_of_many: whether even more are trained, so that loading compiled kernels pays on a
            small graph.
    """
    first, *further_models = models
    request = FitRequest(graph, first.get_params(), is_one_of_many=is_one_of_many)
    first_training, preset, scaler = prepare(request, Ranks.current())

    device = first_training.device

    def initial_model(seed: int) -> Model:
        weights_generator, _ = generators(seed, device)
        return build(preset, graph.num_features, weights_generator)

    trainings = [first_training]
    with ThreadPoolExecutor() as pool:  # a GPU waits for weights, which are drawn on the CPU
        initial_models = pool.map(initial_model, [model.seed for model in further_models])
        for model, initial in zip(further_models, initial_models, strict=True):
            training = with_another_seed(first_training, preset, initial, model.seed)
            trainings.append(training)
    run_together(trainings)

    trained_models = [
        trained_model(training, preset, scaler, model.seed)
        for model, training in zip(models, trainings, strict=True)
    ]
    del first_training, trainings  # their views hold the features; what follows computes vectors
    for model, trained in zip(models, trained_models, strict=True):
        model.fitted_ = fit_vectors(replace(request, parameters=model.get_params()), trained)
        # The positions depend on the graph alone, so the first model's are those of all.
        request = replace(request, positions_of=first.fitted_)


def vectors_of(models: Sequence[DGI], graph: Graph) -> Iterator[NDArray[np.float32]]:
    """The vectors ``[N, d]`` of each model, as by `DGI.transform`; the graph is read once."""
    first = models[0]
    if first.preset_.vectors != PAPER or graph.table.mapped:
        for model in models:
            yield model.transform(graph).vectors
        return
    engine = embedder(first.fitted_.recipe, graph, first.device)
    for model in models:
        yield Embedder(model.fitted_.recipe, engine.view, engine.table).all()
