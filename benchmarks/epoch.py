"""Milliseconds per whole-graph epoch: ours and the peers alternately, in one run."""

from __future__ import annotations

import torch

from benchmarks.command import WHOLE_GRAPH, assemble, paper_dim, parser, report
from benchmarks.floor import Floor
from benchmarks.measure import race
from benchmarks.ours import Ours
from benchmarks.peers import PEERS
from benchmarks.problem import Problem, load

STRETCH = {"cpu": 8, "cuda": 128}
"""Epochs per timed turn, consecutive as in a training; on a GPU the history is read back every 32
epochs."""

COLUMNS = {
    "contender": "{contender}",
    "median ms": "{median_ms:.2f}",
    "p10 - p90": "{p10_ms:.2f} - {p90_ms:.2f}",
    "ratio": "{ratio:.2f}",
    "last loss": "{loss:.4f}",
}


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__, dataset="cora", peers=(*WHOLE_GRAPH, "floor"))
    options.add_argument(
        "--dim", type=int, help="width; default: the paper's, 512, or 256 for Pubmed"
    )
    options.add_argument(
        "--repeats", type=int, default=10, help="rounds; each gives every contender one turn"
    )
    settings = options.parse_args(arguments)
    settings.dim = settings.dim or paper_dim(settings.dataset)
    settings.stretch = STRETCH[settings.device]
    torch.set_num_threads(settings.threads)
    problem = Problem.of(load(settings.dataset), settings.dim, settings.device)
    left_out: dict[str, str] = {}
    known = PEERS | {"floor": Floor}
    makers = {"ours": Ours} | {name: known[name] for name in settings.peers}
    contenders = assemble(
        {name: lambda make=make: make(problem) for name, make in makers.items()}, left_out
    )
    rows = race(contenders, settings.repeats, settings.stretch)
    report(
        settings,
        f"An epoch: {settings.dataset}, d = {settings.dim}",
        rows,
        COLUMNS,
        left_out=left_out,
    )


if __name__ == "__main__":
    main()
