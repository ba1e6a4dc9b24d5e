"""Validation accuracy of DeepWalk for several learning rates and scalings; its settings were chosen by this.

python recipes/deepwalk.py [cora citeseer pubmed] [--seeds 2] [--rates 3e-4 1e-3 3e-3 1e-2] [--device cuda]
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np
import torch
from scipy import sparse
from sklearn.preprocessing import normalize

from infomax.arrays.scaling import Scaler
from infomax.datasets import load_dataset
from infomax.evaluation.probes import paper_probe
from infomax.reports.comparison import labelled
from infomax_paper.baselines.deepwalk import SETTINGS, deepwalk


def main() -> None:
    """Print the validation accuracy of every combination."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rates", type=float, nargs="*", default=[3e-4, 1e-3, 3e-3, 1e-2])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    for name in options.datasets:
        graph = load_dataset(name)
        codes, splits = labelled(graph)
        validation = {"train": splits["train"], "test": splits["validation"]}
        feature_scalings = {
            "features sum to 1": Scaler.fit(graph.features, "rows").transform(graph.features),
            "features of length 1": normalize(graph.features),
        }
        for rate in options.rates:
            settings = dataclasses.replace(SETTINGS, lr=rate)
            accuracies: dict[str, list[float]] = {}
            for seed in range(options.seeds):
                learnt = deepwalk(graph, codes, seed, device, settings).cpu().numpy()
                inputs = {}
                for scale, vectors in (("as learnt", learnt), ("of length 1", normalize(learnt))):
                    inputs[scale] = vectors
                    for feature_scale, features in feature_scalings.items():
                        both = sparse.csr_array(sparse.hstack([vectors, features]))
                        inputs[f"{scale}, {feature_scale}"] = both
                for name_of_input, x in inputs.items():
                    score = paper_probe(x, codes, validation, seed=seed, device=device).value
                    accuracies.setdefault(name_of_input, []).append(100 * score)
            means = "; ".join(f"{key} {np.mean(scores):.1f}" for key, scores in accuracies.items())
            print(f"{name}, rate {rate:g}: {means}", flush=True)


if __name__ == "__main__":
    main()
