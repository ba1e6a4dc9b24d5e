"""The depth study: encoders of several depths and widths on a citation graph, beside the same ones untrained."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from infomax.analysis.depth import DGI as TRAINED
from infomax.analysis.depth import RANDOM
from infomax.datasets import load_dataset
from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation.probes import paper_probe
from infomax.io.json import read_json, write_json
from infomax.kernels.device import choose_device
from infomax.paper.comparison import labelled
from infomax.paper.experiments import EXPERIMENTS
from infomax.paper.studies import train
from infomax.parts.encoders import GCN
from infomax.progress import Progress, silent
from infomax.training.runs import graph_fingerprint

LAYERS = (1, 2, 3, 4)
WIDTHS = (64, 128, 256, 512, 1024, 2048)


def encoders(layers: Sequence[int], widths: Sequence[int], runs: int) -> int:
    """The number of encoders in a study of one data set, with the untrained ones."""
    return 2 * runs * len(layers) * len(widths)


def depth_study(
    dataset: str,
    folder: Path,
    *,
    layers: Sequence[int] = LAYERS,
    widths: Sequence[int] = WIDTHS,
    runs: int = 1,
    device: str = "auto",
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure accuracy against width and number of layers, with the data set's other settings; as JSON values.

    One encoder is made per method, depth, width and seed (0 to runs - 1), and scored by the paper's probe. Results are
    stored in ``folder``, in depth-DATASET.json; a study that was interrupted continues from there.
    """
    graph, path, place = load_dataset(dataset), folder / f"depth-{dataset}.json", choose_device(device)
    codes, splits = labelled(graph)
    begun: dict[str, Any] = {"dataset": dataset, "sha256": graph_fingerprint(graph)}
    numbers = read_json(path) if path.exists() else begun | {"rows": []}
    if {name: numbers.get(name) for name in begun} != begun:
        remedy = "Choose another folder, or remove the file."
        raise InputError(str(path), f"a depth study of {dataset}", "another", remedy)
    done = {(row["method"], row["layers"], row["width"], row["seed"]) for row in numbers["rows"]}
    # Seeds are the outer loop, so that an interrupted study holds complete curves.
    for at, (seed, width, depth, method) in enumerate(product(range(runs), widths, layers, (RANDOM, TRAINED))):
        name = f"{dataset}, {method}, layers {depth}, width {width}"
        if (method, depth, width, seed) not in done:
            change = {"dim": width, "encoder": partial(GCN, layers=depth)} | ({"epochs": 0} if method == RANDOM else {})
            model = DGI(**EXPERIMENTS[dataset].settings | change, seed=seed, device=device)
            vectors, epochs = train(model, graph)
            score = paper_probe(vectors, codes, splits, seed=seed, device=place).value
            row = {"method": method, "layers": depth, "width": width, "seed": seed, "accuracy": score}
            numbers["rows"].append(row | {"epochs": epochs})
            write_json(path, numbers)
        progress(at + 1, name)
    return numbers
