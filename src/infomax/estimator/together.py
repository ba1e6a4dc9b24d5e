"""Several encoders of one graph, which differ in their seeds: trained side by side, embedded one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from infomax.estimator import DGI
from infomax.estimator.assembly import another, build
from infomax.graphs.graph import Graph
from infomax.kernels.initialisation import generators
from infomax.kernels.ranks import Ranks
from infomax.parts.vectors import PAPER
from infomax.training.embed import Embedder
from infomax.training.loop import run_together
from infomax.training.vectors import embedder


def fit_together(models: Sequence[DGI], graph: Graph) -> None:
    """Fit models that differ in their seeds only; on a GPU, in one recorded step. Each is as if fitted alone."""
    first, *others = models
    training, preset, scaler = first.prepare(graph, None, Ranks.current())
    seeds = [model.seed for model in others]
    with ThreadPoolExecutor() as pool:  # a GPU waits for weights, which are drawn on the CPU
        drawn = pool.map(
            lambda seed: build(preset, graph.num_features, generators(seed, training.device)[0]),
            seeds,
        )
        trainings = [
            training,
            *(another(training, preset, *pair) for pair in zip(drawn, seeds, strict=True)),
        ]
    run_together(trainings)
    for model, one in zip(models, trainings, strict=True):
        model.take(one, graph, preset, scaler)


def vectors_of(models: Sequence[DGI], graph: Graph) -> Iterator[NDArray[np.float32]]:
    """The vectors ``[N, d]`` of each model, as `DGI.transform` computes them; the graph is read once."""
    first = models[0]
    if first.preset_.vectors != PAPER or graph.table.mapped:
        yield from (model.transform(graph).vectors for model in models)
        return
    engine = embedder(first._recipe(), graph, first.device)
    for model in models:
        yield Embedder(model._recipe(), engine.view, engine.table).all()
