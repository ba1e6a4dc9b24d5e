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
        held_out = {"train": splits["train"], "test": splits["validation"]}
        rows, unit = (
            Scaler.fit(graph.features, "rows").transform(graph.features),
            normalize(graph.features),
        )
        for rate in options.rates:
            found: dict[str, list[float]] = {}
            for seed in range(options.seeds):
                learnt = (
                    deepwalk(graph, codes, seed, device, dataclasses.replace(SETTINGS, lr=rate))
                    .cpu()
                    .numpy()
                )
                for scale, vectors in (("as learnt", learnt), ("of length 1", normalize(learnt))):
                    beside = {
                        f"{scale}, features sum to 1": rows,
                        f"{scale}, features of length 1": unit,
                    }
                    kinds = {
                        scale: vectors,
                        **{
                            k: sparse.csr_array(sparse.hstack([vectors, f]))
                            for k, f in beside.items()
                        },
                    }
                    for kind, inputs in kinds.items():
                        score = paper_probe(inputs, codes, held_out, seed=seed, device=device).value
                        found.setdefault(kind, []).append(100 * score)
            told = "; ".join(f"{kind} {np.mean(scores):.1f}" for kind, scores in found.items())
            print(f"{name}, rate {rate:g}: {told}", flush=True)


if __name__ == "__main__":
    main()
