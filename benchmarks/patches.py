"""Milliseconds per step of training in patches, ours and the peers alternately, and the error of tensor cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.command import assemble, numbers, parser, report
from benchmarks.measure import PEAK, Contender, race, with_peak
from benchmarks.ours import OurPatches, OurPatchesInFull
from benchmarks.patch_peers import PlainPatches, PyGLoader
from benchmarks.problem import PatchProblem, load
from infomax.datasets import generated

PEERS = {"plain": PlainPatches, "pyg-loader": PyGLoader}

STEPS = {"cpu": 4, "cuda": 200}
"""Steps per timed turn."""

COLUMNS = {
    "contender": "{contender}",
    "median ms": "{median_ms:.2f}",
    "p10 - p90": "{p10_ms:.2f} - {p90_ms:.2f}",
    "ratio": "{ratio:.2f}",
    "nodes/s": "{nodes_s:,.0f}",
    "mean loss": "{loss:.4f}",
}


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__, dataset="generated-reddit", peers=tuple(PEERS))
    options.add_argument(
        "--scale", type=float, help="size of generated-reddit, as a multiple of Reddit's nodes"
    )
    options.add_argument(
        "--dim", type=int, default=512, help="features per side; vectors are twice as wide"
    )
    options.add_argument("--fan-out", type=numbers, default=[10, 10, 25])
    options.add_argument("--steps", type=int, help="steps per turn; default: 4, on a GPU 200")
    options.add_argument(
        "--repeats", type=int, default=10, help="rounds; each gives every contender one turn"
    )
    settings = options.parse_args(arguments)
    settings.steps = settings.steps or STEPS[settings.device]
    torch.set_num_threads(settings.threads)
    graph = load(settings.dataset, **({} if settings.scale is None else {"scale": settings.scale}))
    problem = PatchProblem.of(graph, settings.dim, settings.device, settings.fan_out)
    problem.tables  # noqa: B018 - on the device before memory is measured
    tiny = PatchProblem.of(
        generated.read(1000 / generated.REDDIT_NODES, features=8, degree=2),
        8,
        settings.device,
        [2, 2],
    )
    makers = contenders_of(settings.steps, settings.device, settings.peers)
    peaks: dict[str, float | None] = {}
    left_out: dict[str, str] = {}

    def ready(name: str) -> Contender:
        """Build a contender and run its first turn, in which the peak memory is measured."""

        def make(problem: PatchProblem) -> Contender:
            contender = makers[name](problem)
            contender.train(settings.steps)
            return contender

        make(tiny)  # compiles and initialises the libraries, whose memory does not count
        contender, peaks[name] = with_peak(lambda: make(problem), settings.device)
        return contender

    contenders = assemble({name: lambda name=name: ready(name) for name in makers}, left_out)
    rows = race(contenders, settings.repeats, settings.steps)
    errors = precision(problem)
    for row in rows:
        row["nodes_s"], row["peak_gb"] = (
            1000 * problem.views.batch / row["median_ms"],
            peaks[row["contender"]],
        )
    shape = f"{problem.graph.num_nodes:,} seen nodes, batch {problem.views.batch}, fan-out {tuple(settings.fan_out)}"
    title = f"A step: {settings.dataset}, {shape}, {len(settings.fan_out)} x ({settings.dim} + {settings.dim})"
    report(settings, title, rows, COLUMNS | PEAK[settings.device], left_out=left_out, errors=errors)
    if settings.device == "cuda":
        print("peak GB: without graph and features; all but ours-float32 multiply in tf32")
    for pair, error in errors.items():
        print(
            f"{pair}: relative error of the loss {error['loss']:.1e}, of the gradient {error['gradient']:.1e}"
        )


def contenders_of(
    steps: int, device: str, peers: list[str]
) -> dict[str, Callable[[PatchProblem], Contender]]:
    """Return a function per contender name that makes it; on a GPU ours comes in both
    precisions."""
    makers: dict[str, Callable[[PatchProblem], Contender]] = {
        "ours": partial(OurPatches, steps=steps)
    }
    if device == "cuda":
        makers["ours-float32"] = partial(OurPatchesInFull, steps=steps)
    return makers | {name: PEERS[name] for name in peers}


def precision(problem: PatchProblem) -> dict[str, dict[str, float]]:
    """Measure the relative errors of one step's loss and gradient, with the same weights and the
    same draws."""
    plain = PlainPatches(problem, torch.float64)
    plain.pair = lambda centres: [
        view.rows for view in problem.views.pair(centres, plain.generator)
    ]  # our draws
    in_double = first_step(plain)
    full = first_step(OurPatchesInFull(problem, 1))
    errors = {"float32 against float64": error(full, in_double)}
    if problem.device.type == "cuda":
        tensor_cores = first_step(OurPatches(problem, 1))
        errors["tf32 against float32"] = error(tensor_cores, full)
        errors["tf32 against float64"] = error(tensor_cores, in_double)
    return errors


def first_step(contender: Any) -> tuple[float, Tensor]:
    """Return the first loss and its gradient by all weights, ``[P]`` float64, up to a factor:
    Adam's first mean."""
    loss = contender.train(1)
    if isinstance(contender, PlainPatches):
        means = [state["exp_avg"] for state in contender.optimiser.state.values()]
    else:
        means = [
            value
            for name, value in contender.training.state()[0].items()
            if name.startswith("adam.mean.")
        ]
    return loss, torch.cat([mean.double().flatten() for mean in means])


def error(found: tuple[float, Tensor], true: tuple[float, Tensor]) -> dict[str, float]:
    """Return the relative error of the loss, and of the gradient by its norm."""
    return {
        "loss": abs(found[0] - true[0]) / abs(true[0]),
        "gradient": float((found[1] - true[1]).norm() / true[1].norm()),
    }


if __name__ == "__main__":
    main()
