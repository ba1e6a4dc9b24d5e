"""The analysis of a trained model, and the corruption study; `infomax.analysis` draws the results."""

from __future__ import annotations

import dataclasses
import math
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
from infomax.views import Batches, ManyGraphs, Patches, Views, WholeGraph
from infomax.views.view import View

SAMPLE = 4000
RESTARTS = 20
"""Initialisations of the paper's probe; where there are several splits, divided among them."""
EPOCHS = 500
"""The limit per training of the corruption study: with dense negatives the loss falls for thousands of epochs."""

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
    rows: NDArray[np.int64] | None = None,
    drawn: str = "",
    progress: Progress = silent,
) -> dict[str, dict[str, Any]]:
    """Write the report of `analyse` into a folder; return chapter -> numbers. ``drawn`` says how rows were drawn."""
    graph, parts = model.graph_, model.preset_.describe()
    lead = (
        f"{drawn}{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {graph.num_features:,} features. "
        f"{parts['encoder']['part']} encoder of {model.model_.encoder.out_dim} dimensions, corruption "
        f"{parts['corruption']['part']}, seed {model.seed_}; infomax {__version__}."
    )
    # All chapters are made before the first is written, so that an interruption leaves no half of a report.
    chapters = list(
        analyse(model, groups, splits, floors=floors, study=study, projection=projection, rows=rows, progress=progress)
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
    rows: NDArray[np.int64] | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Chapter]:
    """Yield the chapters of the report about a trained model, in order.

    Args:
        model: a fitted model with its graph.
        groups: ``[N]`` text, the class of each node, "" if unknown; None leaves out what needs labels.
        splits: the splits on which probes are scored; the mean is taken.
        floors: name -> accuracy to compare the dimension study with; Random-Init is always added.
        study: the result of `corruption_study`.
        projection: "tsne" or "umap".
        rows: ``[n]`` nodes of a graph folder, ascending, for an analysis of these alone; groups and splits are theirs.
        seed: of the projection, of the sample of nodes and of the negative sample.
        progress: called with the number and the name of the next step.
    """
    graph = model.graph_
    progress(0, "positives and negatives")
    pairs = draw_pairs(model, seed=seed, rows=rows)
    start = DGI(preset=model.preset_, epochs=0, seed=model.seed_, device=model.device).fit(graph)
    untrained, learnt = (one.transform(graph, rows=rows).vectors for one in (start, model))
    some: Any = slice(None) if rows is None else rows
    nodes, scaled = pairs.nodes, model.scaler_.transform(graph.features[some])
    # The map shows the vectors that are scored: those of the graph that training has seen, sampled where it sampled.
    seen = graph.splits.get("seen")
    before = untrained if seen is None else start.transform(graph.seen()).vectors[np.cumsum(seen) - 1]
    sources = {"Raw features": scaled[nodes], "Random-Init": before[nodes], "DGI": pairs.positives}
    if graph.num_features < 2:
        del sources["Raw features"]  # one feature lies on a line, not in a plane
    method, place = ("UMAP", umap) if projection == "umap" else ("t-SNE", tsne)
    points = {}
    for done, (name, vectors) in enumerate({**sources, "the negative sample": pairs.negatives}.items(), start=1):
        progress(done, f"{method} of {name}")
        points[name] = place(vectors, seed=seed)
    negative_points = points.pop("the negative sample")
    yield projections(points, None if groups is None else groups[nodes], method=method)
    yield scores(pairs, points["DGI"], negative_points, graph.ids[some], graph.degrees()[some], groups)
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
    """Accuracy of the paper's probe, the mean over splits and, over all splits together, `RESTARTS` initialisations."""
    probe = partial(paper_probe, restarts=math.ceil(RESTARTS / len(splits)), seed=seed, device=device)
    return float(np.mean([probe(vectors, codes, split).value for split in splits]))


@torch.no_grad()
def draw_pairs(model: DGI, *, seed: int = 0, limit: int = SAMPLE, rows: NDArray[np.int64] | None = None) -> Pairs:
    """Draw positives and negatives from a model's training graph, in the same way as its training did.

    Pairs of views are drawn until there are ``limit`` positives, for at most one epoch. The terms add up to the score
    if the discriminator is linear in h, as the bilinear one is. With ``rows`` of a graph folder these nodes are the
    batch, and the pairs name the places of nodes among them.
    """
    graph, preset, device = model.graph_.seen(), model.preset_, choose_device(model.device)
    parts = model.model_.to(device)
    scaled = dataclasses.replace(graph, features=model.scaler_.transform(graph.features))
    views = preset.views(scaled, parts.encoder.rule, preset.corruption, device)
    if isinstance(views, Batches):
        views.prepare(parts.encoder.depth)
    if rows is not None:
        views.everything, views.batch = torch.from_numpy(rows).to(device), len(rows)
    drawn: list[list[NDArray[Any]]] = []
    generator = torch.Generator(device).manual_seed(seed)
    for batch in views.batches(generator):
        positive, negative = views.pair(batch, generator)
        h = parts.encoder(positive, negative)
        summary = parts.readout(h[0], positive)
        bias = parts.discriminator(torch.zeros_like(h[0][:1]), summary)
        direction = parts.discriminator(torch.eye(h[0].shape[1], device=device), summary) - bias
        pair: list[NDArray[Any]] = []
        for nodes, vectors in zip(_nodes(views, batch, graph, positive, rows), h, strict=True):
            some = sample_rows(len(nodes), limit, seed)
            vectors = vectors[torch.from_numpy(some).to(device)]
            pair += [nodes[some], vectors.cpu().numpy(), (vectors * direction).cpu().numpy()]
        drawn.append(pair)
        if sum(len(pair[0]) for pair in drawn) >= limit:
            break
    nodes, positives, terms, places, negatives, negative_terms = map(np.concatenate, zip(*drawn, strict=True))
    seen = np.flatnonzero(model.graph_.splits.get("seen", np.ones(graph.num_nodes)))  # the row of each in the graph
    return Pairs(seen[nodes], seen[places], positives, negatives, terms, negative_terms, float(bias))


def _nodes(
    views: Views, batch: torch.Tensor, graph: Graph, positive: View, rows: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The node of each row of H, and the node whose place each row of H~ has."""
    if isinstance(views, Patches | Batches):
        centres = batch if isinstance(views, Patches) else positive.hops.nodes
        nodes = centres.cpu().numpy() if rows is None else np.arange(len(rows))
        return nodes, nodes
    if isinstance(views, ManyGraphs) and graph.groups is not None:
        one, other = np.unique(graph.groups)[batch.tolist()]
        return np.flatnonzero(graph.groups == one), np.flatnonzero(graph.groups == other)
    every = np.arange(graph.num_nodes)
    return every, every


def rates(points: int = 13) -> list[float]:
    """Rates of flipped edges from 1e-6 to 1, evenly spaced on a logarithmic scale."""
    return [float(f"{rho:.2g}") for rho in np.logspace(-6, 0, points)]


def trainings(rates: Sequence[float], runs: int) -> int:
    """The number of encoders in a corruption study, with the untrained ones."""
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
    """Measure accuracy against the rate of flipped edges, beside feature shuffling and Random-Init; as JSON values.

    One encoder is trained per corruption, rate and seed (0 to runs - 1), and scored by the paper's probe. Results are
    stored in ``folder``, in corruption.json; a study that was interrupted continues from there.
    """
    if getattr(preset.views, "func", preset.views) is not WholeGraph:
        raise InputError("corruption study", "a run on the whole graph", "a run on patches, batches or many graphs")
    path = folder / "corruption.json"
    numbers = _begin_study(path, graph, preset, codes, splits)
    done = {(row["corruption"], row["rho"], row["seed"]) for row in numbers["rows"]}
    # Seeds are the outer loop, so that an interrupted study holds complete curves.
    kinds = [(NONE, None), (FEATURES, None), *((kind, rho) for rho in rates for kind in (EDGES, BOTH))]
    for at, (seed, (kind, rho)) in enumerate(product(range(runs), kinds)):
        name = kind if rho is None else f"{kind}, rho {rho:.1g}"
        if (kind, rho, seed) not in done:
            negative = partial(FLIPS[kind], rho=rho) if kind in FLIPS else shuffle_features
            epochs = 0 if kind == NONE else min(EPOCHS, preset.epochs)
            settings = dataclasses.replace(preset, corruption=negative, epochs=epochs)
            model = DGI(preset=settings, seed=seed, device=device)
            vectors, trained = train(model, graph, partial(_tell, progress, at, name))
            score = _accuracy(vectors, codes, splits, choose_device(device), seed)
            row = {"corruption": kind, "rho": rho, "seed": seed, "accuracy": score, "epochs": trained}
            numbers["rows"].append(row)
            write_json(path, numbers)
        progress(at + 1, name)
    return numbers


def train(
    model: DGI, graph: Graph, progress: Callable[[int], None] = lambda epochs: None
) -> tuple[NDArray[np.float32], int]:
    """Train a model; return its vectors ``[N, d]`` and the number of epochs."""
    epochs = 0

    def count(training: Training) -> None:
        nonlocal epochs
        epochs = len(training.history)
        progress(epochs)

    return model.fit(graph, progress=count).transform(graph).vectors, epochs


def _tell(progress: Progress, done: int, name: str, epochs: int) -> None:
    progress(done, f"{name}, epoch {epochs}")


def _begin_study(
    path: Path, graph: Graph, preset: Preset, codes: NDArray[np.int64], splits: Sequence[Splits]
) -> dict[str, Any]:
    """Describe a study, with the rows that it already has."""
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
