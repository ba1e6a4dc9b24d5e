"""Is the default's schedule as good as the paper's protocol, in fewer epochs? Scores on validation nodes.

    python -m recipes.schedules [cora pubmed heco-acm ppi ...] [--schedules paper 200@0.002 120@0.004] [--seeds 5]
        [--dim 512] [--preset auto] [--vectors recipe] [--device cuda]

A schedule is "paper" (a constant rate of 0.001; whole graphs stop early, with a patience of 20), "default", or
EPOCHS@PEAK: a warm-up and a cosine. Vectors are the default's, of all parts, whatever the schedule. Each score is the
mean over seeds, in %, of the same probe as in recipes/defaults.py, whose data sets these are, with the validation nodes
in place of the test nodes, so that no test node has a say in the choice of a schedule. "against the first" is the mean
difference to the first schedule with its standard error over seeds.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from recipes.defaults import Scorer, load

from infomax import DGI, Graph
from infomax.training.presets import PAPER_PRESETS, PRESETS

PAPER_PROTOCOL = ("schedule", "lr", "epochs", "patience")


def training_settings(name: str, graph: Graph, options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `DGI` that a schedule's name means."""
    if name == "default":
        return {"preset": options.preset}
    if name == "paper":
        auto_preset = DGI(options.dim, device=options.device).choose(graph)[0].name
        preset = auto_preset if options.preset == "auto" else options.preset
        protocol = PAPER_PRESETS[preset]
        settings = {field: getattr(protocol, field) for field in PAPER_PROTOCOL}
        return settings | {"preset": preset}
    epochs, peak = name.split("@")
    return {"preset": options.preset, "epochs": int(epochs), "lr": float(peak)}


def validation_scorer(name: str, graph: Graph, device: str) -> Scorer:
    """A scorer of the data set whose test nodes are the validation nodes."""
    scorer = Scorer(name, graph, device)
    scorer.splits = [{**split, "test": split["validation"]} for split in scorer.splits]
    return scorer


def rows(name: str, options: argparse.Namespace) -> list[str]:
    """The lines of a data set, one for each schedule."""
    graph = load(name)
    lines: list[str] = []
    first_scores: np.ndarray | None = None
    for schedule in options.schedules:
        scorer = validation_scorer(name, graph, options.device)
        epoch_counts = []
        began = time.process_time()
        for seed in range(options.seeds):
            model = DGI(
                options.dim,
                vectors=options.vectors,
                seed=seed,
                device=options.device,
                **training_settings(schedule, graph, options),
            )
            scorer.add(schedule, model.fit_transform(graph).vectors)
            epoch_counts.append(model.health_["epochs"])
        seconds = (time.process_time() - began) / options.seeds

        scores = np.array(scorer.found[schedule])
        first_scores = scores if first_scores is None else first_scores
        difference = scores - first_scores
        error = difference.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
        epochs = f"{min(epoch_counts)} to {max(epoch_counts)}"
        lines.append(
            f"| {name} | {schedule} | {epochs} | {scores.mean():.2f} "
            f"| {difference.mean():+.2f} ± {error:.2f} | {seconds:.1f} |"
        )
    return lines


def main() -> None:
    """Print a line per data set and schedule."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=["cora", "pubmed", "heco-acm", "debian"])
    parser.add_argument("--schedules", nargs="+", default=["paper", "default"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dim", type=int)
    parser.add_argument("--preset", default="auto", choices=["auto", *PRESETS])
    parser.add_argument("--vectors", default="recipe")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    print("| | schedule | epochs | validation | against the first | CPU seconds, with probe |")
    print(f"|{'---|' * 6}")
    for name in options.datasets:
        print("\n".join(rows(name, options)), flush=True)


if __name__ == "__main__":
    main()
