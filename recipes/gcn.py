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
    runs_of_rows: dict[str, list[dict[str, float]]] = {}
    for name in options.datasets:
        graph = load_dataset(name)
        codes, splits = labelled(graph)
        # The methods see no label of a test node.
        visible_codes = np.where(splits["test"], -1, codes)
        unlabelled_graph = graph.replace(labels={})
        for row, method in ROWS.items():
            runs: list[dict[str, float]] = []
            runs_of_rows[f"{name}, {row}"] = runs
            for seed in range(options.runs):
                device = torch.device(options.device)
                predictions = method(name)(unlabelled_graph, visible_codes, seed, device)
                scores = {}
                for part in ("test", "validation"):
                    rows = splits[part] & is_labelled(codes)
                    scores[part] = 100 * Score.of(predictions[rows][None], codes[rows]).value
                runs.append(scores)
                if options.out:
                    options.out.write_text(json.dumps(runs_of_rows))

            summaries = []
            for part in runs[0]:
                scores_of_part = np.array([run[part] for run in runs])
                deviation = scores_of_part.std(ddof=min(1, len(runs) - 1))
                summaries.append(f"{part} {scores_of_part.mean():.1f} ± {deviation:.1f}")
            print(f"{name}, {row}: {', '.join(summaries)}, {len(runs)} runs", flush=True)


if __name__ == "__main__":
    main()
