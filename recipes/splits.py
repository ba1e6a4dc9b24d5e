"""How much of a figure is the split: label propagation and DeepWalk on random splits of the public one's sizes.

    python recipes/splits.py [cora citeseer pubmed] [--splits 50] [--device cuda]

20 nodes a class to train on and 1,000 to test on, drawn at random, as Yang et al. (2016) drew theirs: the figures that
the paper prints for both rows are of their paper. Their program keeps files for transductive methods apart from those
that came to be the public split; which nodes they hold is not known here.
DeepWalk's vectors know no labels: one run of it serves all splits.
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np
import torch

from infomax.baselines.deepwalk import deepwalk
from infomax.baselines.label_propagation import label_propagation
from infomax.datasets import load_dataset
from infomax.evaluation.probes import paper_probe
from infomax.evaluation.splits import Splits
from infomax.paper.comparison import labelled
from infomax.paper.results import PAPER
from infomax.paper.table import score_predictions


def draw(codes: np.ndarray, rng: np.random.Generator) -> Splits:
    """20 nodes of each class, and 1,000 of the others: masks ``[N]``."""
    order = rng.permutation(np.flatnonzero(codes >= 0))
    train = np.concatenate([order[codes[order] == code][:20] for code in range(codes.max() + 1)])
    test = order[~np.isin(order, train)][:1000]
    return {name: np.isin(np.arange(len(codes)), rows) for name, rows in (("train", train), ("test", test))}


def main() -> None:
    """Print both rows on every data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    for name in options.datasets:
        graph, rng = load_dataset(name), np.random.default_rng(0)
        codes, public = labelled(graph)
        vectors = deepwalk(graph, codes, 0, device)
        found: dict[str, list[float]] = {"LP": [], "DeepWalk": []}
        for splits in (public, *(draw(codes, rng) for _ in range(options.splits))):
            predicted = label_propagation(dataclasses.replace(graph, splits=splits), codes, 0, device)
            found["LP"].append(100 * score_predictions(predicted, codes, splits)[0])
            found["DeepWalk"].append(100 * paper_probe(vectors, codes, splits, device=device).value)
        for method, (ours, *others) in found.items():
            spread = f"{np.mean(others):.1f} +- {np.std(others, ddof=1):.1f}"
            print(f"{name}, {method}: {ours:.1f}, random splits {spread} (paper {PAPER[name, method][0]})", flush=True)


if __name__ == "__main__":
    main()
