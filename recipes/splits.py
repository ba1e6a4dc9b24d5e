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
        graph = load_dataset(name)
        rng = np.random.default_rng(0)
        codes, public_split = labelled(graph)
        vectors = deepwalk(graph, codes, 0, device)

        # The first score of each method is that of the public split.
        accuracies: dict[str, list[float]] = {"LP": [], "DeepWalk": []}
        random_splits = [draw(codes, rng) for _ in range(options.splits)]
        for splits in (public_split, *random_splits):
            predictions = label_propagation(graph.replace(splits=splits), codes, 0, device)
            test = splits["test"] & is_labelled(codes)
            score = Score.of(predictions[test][None], codes[test]).value
            accuracies["LP"].append(100 * score)
            score = paper_probe(vectors, codes, splits, device=device).value
            accuracies["DeepWalk"].append(100 * score)

        for method, (on_public_split, *on_random_splits) in accuracies.items():
            spread = f"{np.mean(on_random_splits):.1f} +- {np.std(on_random_splits, ddof=1):.1f}"
            papers_accuracy = PAPER[name, method][0]
            print(
                f"{name}, {method}: {on_public_split:.1f}, random splits {spread} "
                f"(paper {papers_accuracy})",
                flush=True,
            )


if __name__ == "__main__":
    main()
