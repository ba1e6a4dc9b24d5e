"""From how many labelled nodes per class on are random splits 10/10/80 as good as folds?

    python -m benchmarks.folds [cora citeseer] [--draws 40]

Of each data set, so many labelled nodes per class are drawn as if there were no others. Two kinds of vectors are
scored on them by the validated probe: the default's, and the encoder's before training. Both splits are asked how far
the difference of the two scores lies from the one of all nodes, and how often the better vectors score higher.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from threadpoolctl import threadpool_limits

from infomax import DGI
from infomax.datasets import load_dataset
from infomax.evaluation.probes import score_splits, validated_probe
from infomax.evaluation.splits import Splits, encode_labels, random_splits, stratified_folds
from infomax.reports.comparison import mean_over

SIZES = (10, 20, 40, 80, 160, 240)
REFERENCE_SPLITS = 5


def score(vectors: np.ndarray, codes: np.ndarray, splits: list[Splits]) -> float:
    """The mean accuracy in percent."""
    return 100 * mean_over(score_splits(validated_probe, vectors, codes, splits))


def drawn_nodes(codes: np.ndarray, per_class: int, generator: np.random.Generator) -> np.ndarray:
    """About so many nodes per class, of each class as large a share as it has of all."""
    labelled = np.flatnonzero(codes >= 0)
    count = min(per_class * len(np.unique(codes[labelled])), len(labelled))
    return np.sort(generator.choice(labelled, count, replace=False))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=["cora", "citeseer"])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--draws", type=int, default=40)
    options = parser.parse_args()

    print("| data set | nodes per class | split | accuracy | all nodes | RMSE of the difference |")
    print("|---|---|---|---|---|---|")
    for name in options.datasets:
        graph = load_dataset(name)
        codes = encode_labels(next(iter(graph.labels.values())))[0]
        trained = DGI().fit(graph).transform(graph).vectors
        untrained = DGI(epochs=0, vectors="paper").fit(graph).transform(graph).vectors
        reference = random_splits(codes, seed=0, count=REFERENCE_SPLITS)
        with threadpool_limits(1):
            all_nodes = [score(vectors, codes, reference) for vectors in (trained, untrained)]
            for per_class, split in itertools.product(options.sizes, ("10/10/80", "5 folds")):
                scores = []
                for seed in range(options.draws):
                    rows = drawn_nodes(codes, per_class, np.random.default_rng(seed))
                    some = codes[rows]
                    if split == "5 folds":
                        splits = stratified_folds(some, 5, seed)
                    else:
                        splits = random_splits(some, seed, 10)
                    scores.append([score(one[rows], some, splits) for one in (trained, untrained)])
                means = np.mean(scores, axis=0)
                differences = np.array([first - second for first, second in scores])
                right = (differences > 0).mean()
                error = np.sqrt(((differences - (all_nodes[0] - all_nodes[1])) ** 2).mean())
                print(
                    f"| {name} | {per_class} | {split} | {means[0]:.1f} | {all_nodes[0]:.1f} | "
                    f"{error:.1f}; the better one is higher in {right:.0%} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
