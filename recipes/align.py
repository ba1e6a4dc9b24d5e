"""Is a classifier of yesterday's vectors of use today? The table of docs/how-to/new-rows.md.

    python recipes/align.py [cora] [--runs 3] [--dim 512]

Yesterday's graph lacks 5 % of today's edges. A logistic regression (C = 1, on vectors whose mean absolute entry is 1)
is fitted to yesterday's vectors of the training nodes and scored on today's vectors of the test nodes; the mean and the
standard deviation are over encoders.
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np
from sklearn.linear_model import LogisticRegression

from infomax import DGI, load_dataset

SHARE = 0.05


def main() -> None:
    """Train, update, train on, train anew, and print the accuracies in %."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", nargs="?", default="cora")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dim", type=int, default=512)
    options = parser.parse_args()
    today = load_dataset(options.dataset)
    yesterday = dataclasses.replace(today.hold_out_edges(SHARE), held_out=None)
    labels = next(iter(today.labels.values()))
    train, test = today.splits["train"], today.splits["test"]
    scores: dict[str, list[float]] = {}
    for seed in range(options.runs):
        model = DGI(options.dim, seed=seed).fit(yesterday)
        before = model.transform(yesterday)
        trained_anew = DGI(options.dim, seed=seed + 10).fit(today).transform(today)
        trained_further = model.update(today, before, train=True)
        trained_and_aligned = model.update(today, before, train=True, align=True)
        embeddings = {
            "yesterday's vectors": before,
            "update": model.update(today, before).embeddings,
            "update --train": trained_further.embeddings,
            "update --train --align": trained_and_aligned.embeddings,
            "trained anew, another seed": trained_anew,
            "trained anew, aligned": trained_anew.align(before),
        }
        size = np.abs(before.vectors).mean()
        classifier = LogisticRegression(max_iter=3000)
        classifier.fit(before.vectors[train] / size, labels[train])
        for method, vectors in embeddings.items():
            is_right = classifier.predict(vectors.vectors[test] / size) == labels[test]
            scores.setdefault(method, []).append(100 * is_right.mean())
    for method, values in scores.items():
        print(f"| {method} | {np.mean(values):.1f} ± {np.std(values):.1f} |")


if __name__ == "__main__":
    main()
