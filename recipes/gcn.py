"""Supervised GCNs on the citation graphs: the paper's two-layer DGI encoder, and Kipf and Welling's network.

    python recipes/gcn.py [cora citeseer pubmed] [--runs 50] [--device cuda] [--out FILE.json]

Accuracy in % on test and on validation nodes, ± over runs. The encoder is the row "GCN" of the table; the other is in
the table's notes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from infomax.datasets import load_dataset
from infomax.evaluation.probes import Score
from infomax.evaluation.splits import is_labelled
from infomax.reports.comparison import labelled
from infomax_paper.baselines import BASELINES, gcn

ROWS = {
    "two-layer DGI encoder": lambda name: BASELINES["GCN"].runs[name],
    "Kipf and Welling": lambda name: gcn.gcn,
}


def main() -> None:
    """Score both on every data set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="also write all scores to this file")
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {}
    for name in options.datasets:
        graph = load_dataset(name)
        codes, splits = labelled(graph)
        hidden, blind = np.where(splits["test"], -1, codes), graph.replace(labels={})
        for row, method in ROWS.items():
            runs = found[f"{name}, {row}"] = []
            for seed in range(options.runs):
                predicted = method(name)(blind, hidden, seed, torch.device(options.device))
                rows = {part: splits[part] & is_labelled(codes) for part in ("test", "validation")}
                scores = {
                    part: Score.of(predicted[these][None], codes[these])
                    for part, these in rows.items()
                }
                runs.append({part: 100 * score.value for part, score in scores.items()})
                if options.out:
                    options.out.write_text(json.dumps(found))
            columns = {part: np.array([run[part] for run in runs]) for part in runs[0]}
            spread = [
                f"{part} {c.mean():.1f} ± {c.std(ddof=min(1, len(c) - 1)):.1f}"
                for part, c in columns.items()
            ]
            print(f"{name}, {row}: {', '.join(spread)}, {len(runs)} runs", flush=True)


if __name__ == "__main__":
    main()
