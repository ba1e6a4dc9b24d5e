"""The numbers of the paper's figures on Cora over several encoders; `infomax reproduce figures` draws those of one.

    python recipes/figures.py [--runs 10] [--device cuda] [--out FILE.json]

Per encoder: the silhouette of the classes in the t-SNE of DGI and of Random-Init, and accuracy and discriminator
without the least and without the most distinguishing half of the dimensions. ± is over encoders.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from infomax import DGI, Graph, load_dataset
from infomax.analysis.dimensions import ENDS, dimensions
from infomax.analysis.pictures import tsne
from infomax.evaluation.metrics import silhouette
from infomax.evaluation.probes import paper_probe
from infomax.reports.analysis import draw_pairs
from infomax.reports.comparison import labelled
from infomax_paper.experiments import EXPERIMENTS
from infomax_paper.printed import PAPER, SUPERVISED

POINTS = 32


def measure(graph: Graph, seed: int, device: str) -> dict[str, Any]:
    """Train one encoder and compute its numbers."""
    codes, splits = labelled(graph)
    model = DGI(**EXPERIMENTS["cora"].settings, seed=seed, device=device).fit(graph)
    untrained_model = DGI(preset=model.preset_, epochs=0, seed=seed, device=device)
    untrained = untrained_model.fit_transform(graph).vectors
    vectors = model.transform(graph).vectors
    probe = partial(paper_probe, codes=codes, splits=splits, device=torch.device(device))
    floors = {SUPERVISED: PAPER["cora", "GCN"][0] / 100, "Random-Init": probe(untrained).value}
    numbers = dimensions(
        draw_pairs(model), lambda kept: probe(vectors[:, kept]).value, floors, points=POINTS
    ).numbers
    half = numbers["removed"].index(len(numbers["t"]) // 2)
    row: dict[str, Any] = {
        "seed": seed,
        "accuracy": 100 * numbers["curves"]["least"]["accuracy"][0],
    }
    for end in ENDS:
        curve = numbers["curves"][end]
        row[f"accuracy without half, {end} first"] = 100 * curve["accuracy"][half]
        wrong = curve["bad_positives"][half] / numbers["examples"]["positives"]
        row[f"positives correct without half, {end} first"] = 100 * (1 - wrong)
        for floor, ends in numbers["removable"].items():
            share = None if ends[end] is None else 100 * ends[end] / len(numbers["t"])
            row[f"% that can go, {end} first, {floor}"] = share
    for name, rows in (("DGI", vectors), ("Random-Init", untrained)):
        row[f"silhouette, {name}"] = silhouette(tsne(rows, seed=0), codes)
        row[f"silhouette of the vectors, {name}"] = silhouette(rows, codes)
    return row


def main() -> None:
    """Print every encoder, then means and deviations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="also write all numbers to this file")
    options = parser.parse_args()
    graph, rows = load_dataset("cora"), []
    for seed in range(options.runs):
        rows.append(measure(graph, seed, options.device))
        print(json.dumps(rows[-1]), flush=True)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1))
    for name in list(rows[0])[1:]:
        values = np.array([row[name] for row in rows if row[name] is not None])
        if len(values) > 1:
            print(f"{name}: {values.mean():.3f} ± {values.std(ddof=1):.3f}, {len(values)} encoders")


if __name__ == "__main__":
    main()
