"""Studies of what was learnt: a trained model, or tens of them, as the arrays that `infomax.analysis` shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.analysis.activations import activations
from infomax.analysis.chapter import Chapter
from infomax.analysis.corruption import BOTH, EDGES, FEATURES, NONE, corruption
from infomax.analysis.dimensions import dimensions
from infomax.analysis.health import health
from infomax.analysis.pairs import Pairs
from infomax.analysis.pictures import sample_rows, tsne, umap
from infomax.analysis.projections import projections
from infomax.analysis.report import write_report
from infomax.analysis.scores import scores
from infomax.analysis.theory import theory
from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation.probes import paper_probe
from infomax.evaluation.splits import Splits, encode_labels
from infomax.graphs.graph import Graph
from infomax.io.json import read_json, write_json
from infomax.kernels.device import choose_device
from infomax.parts.corruptions import flip_and_shuffle, flip_edges, shuffle_features
from infomax.presets import Part, Preset
from infomax.progress import Progress, silent
from infomax.training.loop import Training
from infomax.training.runs import digest, graph_fingerprint
from infomax.version import __version__
from infomax.views import ManyGraphs, Patches, Views, WholeGraph

SAMPLE, ITERATIONS = 4000, 1000
EPOCHS = 500
"""At most, in each training of the corruption study: against a dense negative the loss falls for thousands."""

FLIPS: dict[str, Part] = {EDGES: flip_edges, BOTH: flip_and_shuffle}


def write_analysis(
    model: DGI,
    folder: Path,
    groups: NDArray[Any] | None = None,
    splits: Sequence[Splits] = (),
    *,
    title: str,
    floors: Mapping[str, float] | None = None,
    study: dict[str, Any] | None = None,
    projection: str = "tsne",
    progress: Progress = silent,
) -> dict[str, dict[str, Any]]:
    """Write every figure and the report of `analyse` into a folder; the numbers of each chapter by its name."""
    graph, parts = model.graph_, model.preset_.describe()
    lead = (
        f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {graph.num_features:,} features. "
        f"{parts['encoder']['part']} encoder of {model.model_.encoder.out_dim} dimensions, corruption "
        f"{parts['corruption']['part']}, seed {model.seed_}; infomax {__version__}."
    )
    # All of them before the first is written: who is interrupted finds no half of a report.
    chapters = list(
        analyse(model, groups, splits, floors=floors, study=study, projection=projection, progress=progress)
    )
    write_report(folder, title, lead, chapters)
    return {chapter.name: chapter.numbers for chapter in chapters}


def analyse(
    model: DGI,
    groups: NDArray[Any] | None = None,
    splits: Sequence[Splits] = (),
    *,
    floors: Mapping[str, float] | None = None,
    study: dict[str, Any] | None = None,
    projection: str = "tsne",
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Chapter]:
    """The chapters of the report on a trained model, in order.

    Args:
        model: a fitted model, its graph with it.
        groups: ``[N]`` text, the class of each node, "" where unknown; None leaves out what needs labels.
        splits: to score probes on; their mean counts.
        floors: accuracies to compare the dimension study with, by name; Random-Init is among them in any case.
        study: what `corruption_study` found.
        projection: to the plane, "tsne" or "umap".
        seed: of the projection, of the sample of nodes and of the negative sample.
        progress: called with the number of what comes next, and its name.
    """
    graph = model.graph_
    progress(0, "positives and negatives")
    pairs = draw_pairs(model, seed=seed)
    untrained = DGI(preset=model.preset_, epochs=0, seed=model.seed_, device=model.device).fit_transform(graph).vectors
    learnt = model.transform(graph).vectors
    nodes, scaled = pairs.nodes, model.scaler_.transform(graph.features)
    sources = {"Raw features": scaled[nodes], "Random-Init": untrained[nodes], "DGI": learnt[nodes]}
    if graph.num_features < 2:
        del sources["Raw features"]  # they lie on a line, not in a plane
    method, place = ("UMAP", umap) if projection == "umap" else ("t-SNE", partial(tsne, iterations=ITERATIONS))
    points = {}
    for done, (name, vectors) in enumerate({**sources, "the negative sample": pairs.negatives}.items(), start=1):
        progress(done, f"{method} of {name}")
        points[name] = place(vectors, seed=seed)
    negative_points = points.pop("the negative sample")
    yield projections(points, None if groups is None else groups[nodes], method=method)
    yield scores(pairs, points["DGI"], negative_points, graph.ids, graph.degrees(), groups)
    yield activations(pairs)
    progress(5, "probes without some of the dimensions")
    yield _dimensions(pairs, learnt, untrained, groups, splits, dict(floors or {}), choose_device(model.device))
    if study is not None:
        yield corruption(study)
    yield health(model.health_, learnt)
    yield theory()


def _dimensions(
    pairs: Pairs,
    learnt: NDArray[Any],
    untrained: NDArray[Any],
    groups: NDArray[Any] | None,
    splits: Sequence[Splits],
    floors: dict[str, float],
    device: torch.device,
) -> Chapter:
    """The dimension study, with the paper's probe where there are labels."""
    if groups is None:
        return dimensions(pairs)
    codes, _ = encode_labels(groups)
    floors["Random-Init"] = _accuracy(untrained, codes, splits, device)
    return dimensions(pairs, lambda kept: _accuracy(learnt[:, kept], codes, splits, device), floors)


def _accuracy(
    vectors: NDArray[Any], codes: NDArray[np.int64], splits: Sequence[Splits], device: torch.device, seed: int = 0
) -> float:
    """Of the paper's probe: the mean over splits."""
    return float(np.mean([paper_probe(vectors, codes, split, seed=seed, device=device).value for split in splits]))


@torch.no_grad()
def draw_pairs(model: DGI, *, seed: int = 0, limit: int = SAMPLE) -> Pairs:
    """Positives and negatives of the graph that a model was trained on, drawn as its training drew them.

    As many pairs of views as it takes to have ``limit`` of each, or all there are. The terms add up to the score for
    every discriminator that is linear in h, as the bilinear one is.
    """
    graph, preset, device = model.graph_.seen(), model.preset_, choose_device(model.device)
    parts = model.model_.to(device)
    scaled = dataclasses.replace(graph, features=model.scaler_.transform(graph.features))
    views = preset.views(scaled, parts.encoder.rule, preset.corruption, device)
    drawn: list[list[NDArray[Any]]] = []
    generator = torch.Generator(device).manual_seed(seed)
    for batch in views.batches(generator):
        positive, negative = views.pair(batch, generator)
        h = parts.encoder(positive, negative)
        summary = parts.readout(h[0], positive)
        bias = parts.discriminator(torch.zeros_like(h[0][:1]), summary)
        direction = parts.discriminator(torch.eye(h[0].shape[1], device=device), summary) - bias
        pair: list[NDArray[Any]] = []
        for nodes, vectors in zip(_nodes(views, batch, graph), h, strict=True):
            rows = sample_rows(len(nodes), limit, seed)
            vectors = vectors[torch.from_numpy(rows).to(device)]
            pair += [nodes[rows], vectors.cpu().numpy(), (vectors * direction).cpu().numpy()]
        drawn.append(pair)
        if sum(len(pair[0]) for pair in drawn) >= limit:
            break
    nodes, positives, terms, places, negatives, negative_terms = map(np.concatenate, zip(*drawn, strict=True))
    seen = np.flatnonzero(model.graph_.splits.get("seen", np.ones(graph.num_nodes)))  # the row of each in the graph
    return Pairs(seen[nodes], seen[places], positives, negatives, terms, negative_terms, float(bias))


def _nodes(views: Views, batch: torch.Tensor, graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The node of each row of H, and the node whose place each row of the negative's H has."""
    if isinstance(views, Patches):
        centres = batch.cpu().numpy()
        return centres, centres
    if isinstance(views, ManyGraphs) and graph.groups is not None:
        one, other = np.unique(graph.groups)[batch.tolist()]
        return np.flatnonzero(graph.groups == one), np.flatnonzero(graph.groups == other)
    every = np.arange(graph.num_nodes)
    return every, every


def rates(points: int = 13) -> list[float]:
    """Rates of flipped edges from a millionth to 1, evenly spaced on a log axis."""
    return [float(f"{rho:.2g}") for rho in np.logspace(-6, 0, points)]


def trainings(rates: Sequence[float], runs: int) -> int:
    """How many encoders a corruption study trains or draws."""
    return runs * (2 + 2 * len(rates))


def corruption_study(
    graph: Graph,
    preset: Preset,
    codes: NDArray[np.int64],
    splits: Sequence[Splits],
    folder: Path,
    *,
    rates: Sequence[float],
    runs: int,
    device: str = "auto",
    progress: Progress = silent,
) -> dict[str, Any]:
    """Accuracy against the rate of flipped edges, and beside it feature shuffling and Random-Init, as JSON values.

    One encoder is trained for each corruption, rate and seed from 0 to runs - 1, and probed by the paper's probe. What
    is done is kept in ``folder``, in corruption.json; begun again, the study goes on from there.
    """
    if getattr(preset.views, "func", preset.views) is not WholeGraph:
        raise InputError("corruption study", "a run that trains on the whole graph", "one on patches or many graphs")
    path = folder / "corruption.json"
    numbers = _begin_study(path, graph, preset, codes, splits)
    done = {(row["corruption"], row["rho"], row["seed"]) for row in numbers["rows"]}
    # Seeds outermost: interrupted, the study still holds whole curves.
    kinds = [(NONE, None), (FEATURES, None), *((kind, rho) for rho in rates for kind in (EDGES, BOTH))]
    for at, (seed, (kind, rho)) in enumerate(product(range(runs), kinds)):
        name = kind if rho is None else f"{kind}, rho {rho:.1g}"
        if (kind, rho, seed) not in done:
            negative = partial(FLIPS[kind], rho=rho) if kind in FLIPS else shuffle_features
            epochs = 0 if kind == NONE else min(EPOCHS, preset.epochs)
            settings = dataclasses.replace(preset, corruption=negative, epochs=epochs)
            model = DGI(preset=settings, seed=seed, device=device)
            vectors = model.fit(graph, progress=_epochs(progress, at, name)).transform(graph).vectors
            score = _accuracy(vectors, codes, splits, choose_device(device), seed)
            row = {"corruption": kind, "rho": rho, "seed": seed, "accuracy": score, "epochs": model.health_["epochs"]}
            numbers["rows"].append(row)
            write_json(path, numbers)
        progress(at + 1, name)
    return numbers


def _epochs(progress: Progress, done: int, name: str) -> Callable[[Training], None]:
    """A callback for `DGI.fit` that tells the epochs of what comes after so many that are done."""
    return lambda training: progress(done, f"{name}, epoch {len(training.history)}")


def _begin_study(
    path: Path, graph: Graph, preset: Preset, codes: NDArray[np.int64], splits: Sequence[Splits]
) -> dict[str, Any]:
    """What a study is of, and the rows it has already."""
    settings = {name: value for name, value in preset.describe().items() if name != "corruption"}
    masks = [split[name] for split in splits for name in sorted(split)]
    begun = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "settings": settings,
        "epochs_at_most": EPOCHS,
        "sha256": graph_fingerprint(graph) | {"labels": digest(codes), "splits": digest(*masks)},
    }
    if not path.exists():
        return {**begun, "rows": []}
    found = read_json(path)
    if {name: found.get(name) for name in begun} != begun:
        remedy = "Choose another folder, or remove the file."
        expected = "a corruption study of this graph, these labels, splits and settings"
        raise InputError(str(path), expected, "another", remedy)
    return found
