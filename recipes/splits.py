"""How much scores depend on the split: label propagation and DeepWalk on random splits, as large as the public one.

    python recipes/splits.py [cora citeseer pubmed] [--splits 50] [--device cuda]

20 nodes per class for training and 1,000 for testing, drawn at random, as by Yang et al. (2016): the paper takes its
figures for both rows from them. Their program has other files for transductive methods than those that became the
public split; we do not know which nodes those contain. DeepWalk uses no labels: one run serves all splits.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from infomax.datasets import load_dataset
from infomax.evaluation.probes import Score, paper_probe
from infomax.evaluation.splits import Splits, is_labelled
from infomax.reports.comparison import labelled
from infomax_paper.baselines.deepwalk import deepwalk
from infomax_paper.baselines.label_propagation import label_propagation
from infomax_paper.printed import PAPER


def draw(codes: np.ndarray, rng: np.random.Generator) -> Splits:
    """Draw 20 nodes per class for training and 1,000 others for testing; masks ``[N]``."""
    order = rng.permutation(np.flatnonzero(codes >= 0))
    train = np.concatenate([order[codes[order] == code][:20] for code in range(codes.max() + 1)])
    test = order[~np.isin(order, train)][:1000]
    return {
        name: np.isin(np.arange(len(codes)), rows)
        for name, rows in (("train", train), ("test", test))
    }


def main() -> None:
    """Print both rows on every data set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
            predicted = label_propagation(graph.replace(splits=splits), codes, 0, device)
            test = splits["test"] & is_labelled(codes)
            found["LP"].append(100 * Score.of(predicted[test][None], codes[test]).value)
            found["DeepWalk"].append(100 * paper_probe(vectors, codes, splits, device=device).value)
        for method, (ours, *others) in found.items():
            spread = f"{np.mean(others):.1f} +- {np.std(others, ddof=1):.1f}"
            print(
                f"{name}, {method}: {ours:.1f}, random splits {spread} (paper {PAPER[name, method][0]})",
                flush=True,
            )


if __name__ == "__main__":
    main()
