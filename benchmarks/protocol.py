"""Seconds of the paper's protocol on a citation graph: 50 encoders and their probes, ours and the peers in one run."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.command import WHOLE_GRAPH, assemble, paper_dim, parser, report
from benchmarks.measure import timed
from benchmarks.peers import PEERS, Peer
from benchmarks.problem import Problem, load
from infomax.graphs.graph import Graph
from infomax.reports.comparison import labelled
from infomax_paper.protocol import score_dataset

PATIENCE = 20
METHODS = {"DGI": "dgi", "Random-Init": "random", "Raw features": "raw"}

COLUMNS = {
    "contender": "{contender}",
    "runs": "{measured_runs}",
    "seconds": "{seconds:.1f}",
    "s per encoder": "{encoder_s:.2f}",
    "ratio": "{ratio:.2f}",
    "DGI": "{dgi[0]:.1f} ± {dgi[1]:.1f}",
    "Random-Init": "{random[0]:.1f} ± {random[1]:.1f}",
    "raw features": "{raw[0]:.1f}",
}


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__, dataset="cora", peers=WHOLE_GRAPH)
    options.set_defaults(peers=["pyg"])
    options.add_argument("--runs", type=int, default=50, help="encoders that we train")
    options.add_argument(
        "--peer-runs", type=int, default=5, help="encoders per peer; its seconds are extrapolated"
    )
    settings = options.parse_args(arguments)
    torch.set_num_threads(settings.threads)
    graph, left_out = load(settings.dataset), {}
    settings.warm_up_s = timed(
        lambda: score_dataset(settings.dataset, runs=1, device=settings.device)
    )[0]
    makers = {name: lambda name=name: Runs(name, graph, settings) for name in settings.peers}
    peers = assemble(makers, left_out)
    half = settings.peer_runs // 2
    for peer in peers.values():
        peer.go(range(half))
    rows = [ours(settings.dataset, settings.runs, settings.device)]
    for peer in peers.values():
        peer.go(range(half, settings.peer_runs))
        rows.append(peer.row(settings.runs))
    for row in rows:
        row["ratio"] = row["encoder_s"] / rows[0]["encoder_s"]
    report(
        settings,
        f"The protocol: {settings.dataset}, {settings.runs} encoders",
        rows,
        COLUMNS,
        left_out=left_out,
    )
    print(
        f"ours: wall clock with data loading; one warm-up run before it, {settings.warm_up_s:.1f} s, is not counted"
    )
    print(
        f"peers: {settings.peer_runs} runs, half before ours, half after; seconds EXTRAPOLATED to {settings.runs} runs"
    )
    print("probes: 100 steps of Adam; ours the mean of 20 starts per encoder, peers one start")


def ours(dataset: str, runs: int, device: str) -> dict[str, Any]:
    """Measure `score_dataset`, as `infomax reproduce` calls it; returns our row."""
    seconds, found = timed(lambda: score_dataset(dataset, runs=runs, device=device))
    scores = {METHODS[row["method"]]: [row["mean"], row["std"]] for row in found["rows"]}
    return {
        "contender": "ours",
        "measured_runs": runs,
        "seconds": seconds,
        "encoder_s": seconds / runs,
        **scores,
    }


class Runs:
    """The runs of a peer: each has a trained and an untrained encoder and a probe of both; raw
    features once."""

    def __init__(self, name: str, graph: Graph, settings: Any) -> None:
        self.name, self.graph, self.device, self.dim = (
            name,
            graph,
            settings.device,
            paper_dim(settings.dataset),
        )
        self.codes, self.splits = labelled(graph)
        self.seconds: list[float] = []
        self.scores: dict[str, list[float]] = {"dgi": [], "random": [], "raw": []}
        peer = PEERS[name](Problem.of(graph, self.dim, self.device))
        peer.train(1)  # initialises the libraries, as the warm-up run does for ours
        self.raw_s, score = timed(lambda: self.probe(peer.x))
        self.scores["raw"].append(score)

    def go(self, seeds: range) -> None:
        """Do one run per seed; the time is from a peer with its data loaded to the second score."""
        for seed in seeds:
            peer = PEERS[self.name](Problem.of(self.graph, self.dim, self.device, seed))
            began = time.perf_counter()
            self.scores["random"].append(self.probe(peer.embed()))
            train(peer)
            self.scores["dgi"].append(self.probe(peer.embed()))
            self.seconds.append(time.perf_counter() - began)

    def probe(self, vectors: Tensor) -> float:
        """Return the test accuracy of the paper's probe on vectors ``[N, d]``: 100 steps of Adam
        from one start."""
        h, codes = vectors.detach(), torch.from_numpy(self.codes).to(vectors.device)
        train, test = (
            torch.from_numpy(self.splits[part]).to(h.device) for part in ("train", "test")
        )
        linear = nn.Linear(h.shape[1], int(codes.max()) + 1).to(h.device)
        nn.init.xavier_uniform_(linear.weight)
        optimiser = torch.optim.Adam(linear.parameters(), lr=0.01, fused=True)
        for _ in range(100):
            optimiser.zero_grad()
            nn.functional.cross_entropy(linear(h[train]), codes[train]).backward()
            optimiser.step()
        return float((linear(h[test]).argmax(1) == codes[test]).double().mean())

    def row(self, runs: int) -> dict[str, Any]:
        """Return the row, with seconds extrapolated to ``runs`` runs."""
        seconds = runs * float(np.mean(self.seconds)) + self.raw_s
        scores = {
            name: [
                100 * float(np.mean(values)),
                100 * float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
            ]
            for name, values in self.scores.items()
        }
        times = {"measured_runs": len(self.seconds), "measured_s": self.seconds, "seconds": seconds}
        return {"contender": self.name, **times, "encoder_s": seconds / runs, **scores}


def train(peer: Peer) -> None:
    """Train until 20 epochs pass without a lower loss; keep the weights with the lowest."""
    best, waited = float("inf"), 0
    while waited < PATIENCE:
        peer.optimiser.zero_grad()
        loss = peer.loss()
        value = loss.item()
        if value < best:
            best, waited, kept = value, 0, copy.deepcopy(peer.model.state_dict())
        else:
            waited += 1
        loss.backward()
        peer.optimiser.step()
    peer.model.load_state_dict(kept)


if __name__ == "__main__":
    main()
