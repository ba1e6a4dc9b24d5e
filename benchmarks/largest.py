"""The patches preset on a generated graph of a chosen size: seconds and memory of every stage, and of every part."""

from __future__ import annotations

import argparse
import dataclasses
import gc
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from benchmarks.command import parser, report
from benchmarks.measure import peak_resident_gb, timed
from benchmarks.ours import OurPatches
from benchmarks.parts import measure_parts
from benchmarks.problem import PatchProblem
from infomax import DGI
from infomax.datasets import generated
from infomax.estimator import build
from infomax.estimator.fitted_model import FittedModel
from infomax.estimator.training_record import StoredRecord
from infomax.estimator.vector_parts import fit_vector_parts
from infomax.graphs.graph import Graph
from infomax.kernels.room import available_bytes
from infomax.training.own_features import MOST_OWN_COLUMNS
from infomax.training.recipe import Recipe
from infomax.training.spectral_positions import SETTINGS

FIRST, STEPS = {"cpu": 1, "cuda": 8}, {"cpu": 5, "cuda": 500}

COLUMNS = {
    "stage": "{stage}",
    "seconds": "{seconds:.1f}",
    "nodes": "{nodes:,}",
    "nodes/s": "{nodes_s:,.0f}",
    "GPU peak GB": "{gpu_gb:.1f}",
    "host peak GB": "{host_gb:.1f}",
}

Result = TypeVar("Result")


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__)
    options.add_argument("--nodes", type=float, default=1e7)
    options.add_argument("--features", type=int, default=100)
    options.add_argument("--degree", type=float, default=20)
    options.add_argument(
        "--dim", type=int, default=512, help="features per side; vectors are twice as wide"
    )
    options.add_argument(
        "--embed-dim", type=int, help="the same for embedding; default: --dim, halved until it fits"
    )
    options.add_argument(
        "--steps", type=int, help="steps of 256 patches each; default: 5, on a GPU 500"
    )
    settings = options.parse_args(arguments)
    settings.steps = settings.steps or STEPS[settings.device]
    torch.set_num_threads(settings.threads)
    stages = Stages(settings.device)
    scale, nodes = settings.nodes / generated.REDDIT_NODES, round(settings.nodes)
    graph = stages.run(
        "generate", nodes, lambda: generated.read(scale, 0, settings.features, settings.degree)
    )
    model, loss = train(stages, graph, settings)
    gc.collect()  # frees the views
    torch.cuda.empty_cache()
    settings.embed_dim = settings.embed_dim or fitting(graph, settings.dim, settings.device)
    trained = settings.embed_dim == settings.dim
    fitted = model.fitted_
    encoder = fitted.recipe.encoder
    preset = dataclasses.replace(model.preset_, vectors="recipe")
    network = fitted.model
    if not trained:
        preset = dataclasses.replace(preset, dim=settings.embed_dim)
        network = build(preset, graph.num_features, None)
        encoder = network.encoder
    parts = stages.run(
        "fit parts",
        nodes,
        lambda: fit_vector_parts(Recipe(encoder, model.scaler_), preset, graph, settings.device),
    )
    model.fitted_ = dataclasses.replace(
        fitted, model=network, preset=preset, recipe=parts.recipe, positions=parts.positions
    )
    print(parts.positions.search, flush=True)
    part_rows = measure_parts(graph, parts.recipe, settings.device)
    vectors = stages.run("embed", nodes, lambda: model.transform(graph).vectors)
    title = f"The largest: {nodes:,} nodes, {graph.num_edges:,} edges, {settings.features} features"
    more = {
        "loss": loss,
        "edges": graph.num_edges,
        "vectors": list(vectors.shape),
        "trained": trained,
        "parts": part_rows,
    }
    report(
        settings, f"{title}, 3 x ({settings.dim} + {settings.dim})", stages.rows, COLUMNS, **more
    )
    print(
        f"train: {settings.steps} steps, mean loss {loss:.4f}; embed: exact, {vectors.shape[1]} wide, host to host"
    )
    if not trained:
        print(
            f"embedded by an untrained encoder, {settings.embed_dim} per side: {2 * settings.dim} wide does not fit"
        )


class Stages:
    """One row per stage, printed at once: a run out of memory may end before the table."""

    def __init__(self, device: str) -> None:
        self.device, self.rows = device, list[dict[str, Any]]()

    def run(self, stage: str, nodes: int, function: Callable[[], Result]) -> Result:
        """Run a stage on ``nodes`` nodes, add its row, and return its result."""
        gpu = self.device == "cuda"
        if gpu:
            torch.cuda.reset_peak_memory_stats()
        seconds, result = timed(function)
        row = {"stage": stage, "seconds": seconds, "nodes": nodes, "nodes_s": nodes / seconds}
        row["gpu_gb"] = torch.cuda.max_memory_allocated() / 2**30 if gpu else 0.0
        row["host_gb"] = peak_resident_gb()  # so far
        self.rows.append(row)
        print(
            f"{stage}: {seconds:.1f} s, GPU {row['gpu_gb']:.1f} GB, host {row['host_gb']:.1f} GB",
            flush=True,
        )
        return result


def train(stages: Stages, graph: Graph, settings: argparse.Namespace) -> tuple[DGI, float]:
    """Train; returns the estimator as `DGI.fit` would leave it, and the mean loss of the steps."""
    problem = stages.run(
        "build views",
        graph.num_nodes,
        lambda: PatchProblem.of(graph, settings.dim, settings.device),
    )
    size, first = problem.views.batch, FIRST[settings.device]
    stages.run(
        "first steps", first * size, lambda: OurPatches(problem, first).train(first)
    )  # compiles the kernels
    ours = OurPatches(problem, settings.steps)
    loss = stages.run("train", settings.steps * size, lambda: ours.train(settings.steps))
    preset = dataclasses.replace(problem.preset, vectors="paper")
    model = DGI(preset=preset, device=settings.device)
    trained, recipe = ours.training.model, Recipe(ours.training.model.encoder, problem.scaler)
    model.fitted_ = FittedModel(
        trained,
        preset,
        model.seed,
        problem.scaler,
        graph.feature_names,
        graph,
        recipe,
        None,
        StoredRecord({}),
    )
    return model, loss


def fitting(graph: Graph, dim: int, device: str) -> int:
    """Return the width per side that embedding has memory for: ``dim``, halved until it fits.

    A layer of N nodes needs its input and output, 2 d wide each, and a product, d wide; features
    and edges are extra, and the own part, which is pooled beside the output, twice. From a GPU the
    vectors are copied to the host.
    """
    n = graph.num_nodes
    own = min(graph.num_features, MOST_OWN_COLUMNS)
    free = 0.9 * available_bytes(torch.device(device))
    beside = 4 * n * graph.num_features + 8 * n * own + 24 * (graph.adjacency.nnz + n)
    host = 0.9 * available_bytes(torch.device("cpu")) if device == "cuda" else free
    while dim > 1:
        vectors = 4 * n * (2 * dim + 2 * own + SETTINGS.columns_for(n))
        if 20 * n * dim + beside <= free and vectors + 4 * n * graph.num_features <= host:
            break
        dim //= 2
    return dim


if __name__ == "__main__":
    main()
