"""Each part of the vectors of a run by itself: seconds and memory, without writing the vectors.

    python -m benchmarks.parts --run RUN [--graph FOLDER] [--device cuda]

The graph is that of the training, or one that is named. Each figure is printed as soon as it is there. Parts that the
encoder or the own part is pooled for have their passes counted in.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import peak_resident_gb, synchronise
from infomax import DGI, Graph
from infomax.estimator.vector_parts import parts_outside_embedder
from infomax.kernels import Backend
from infomax.kernels.device import choose_device
from infomax.training.recipe import Recipe, part_family
from infomax.training.spectral_positions import SpectralPositions, fit_spectral_positions
from infomax.training.vectors import embedder


def main(arguments: list[str] | None = None) -> None:
    """Measure, print each row at once, write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--graph", type=Path, help="A graph folder; default: that of the run.")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)

    fitted = DGI.load(options.run, device=options.device).fitted_
    graph = fitted.graph if options.graph is None else Graph.open(options.graph)
    rows = measure_parts(graph, fitted.recipe, options.device)
    if options.json is not None:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


def measure_parts(graph: Graph, recipe: Recipe, device: str) -> list[dict[str, Any]]:
    """One row for the search of positions, one for the vectors of each part, and one for all of
    them."""
    rows: list[dict[str, Any]] = []
    positions: SpectralPositions | None = None
    if "positions" in recipe.parts:
        backend = Backend(choose_device(device))
        row, positions = _measured(
            "search for positions", lambda: fit_spectral_positions(graph, backend)
        )
        rows.append(row | {"search": positions.search})
        print(positions.search, flush=True)

    names = list(dict.fromkeys(map(part_family, recipe.parts))) or ["paper"]
    selections = {name: recipe.only(name) for name in names}
    if recipe.parts:
        selections["all parts"] = recipe
    for name, selected in selections.items():
        row, width = _measured(
            name, lambda selected=selected: _embed_all(graph, selected, positions, device)
        )
        rows.append(row | {"width": width})
    return rows


def _embed_all(
    graph: Graph, recipe: Recipe, positions: SpectralPositions | None, device: str
) -> int:
    """Compute the vectors of all nodes block by block and forget them; returns their width."""
    outside_parts = parts_outside_embedder(graph, recipe, positions, graph)
    engine = embedder(recipe, graph, device, rows=None, outside_parts=outside_parts)
    for block in engine.blocks():
        engine.rows(*block)
    engine.close()
    return recipe.width


def _measured(stage: str, function: Callable[[], Any]) -> tuple[dict[str, Any], Any]:
    """A row of seconds and memory of a call, and its result."""
    gc.collect()
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    synchronise()
    began = time.perf_counter()
    result = function()
    synchronise()
    row = {
        "stage": stage,
        "seconds": time.perf_counter() - began,
        "gpu_gb": torch.cuda.max_memory_allocated() / 2**30 if on_gpu else 0.0,
        "host_gb": peak_resident_gb(),  # so far
    }
    print(
        "{stage:23} {seconds:8.1f} s  GPU {gpu_gb:6.1f} GB  host {host_gb:6.1f} GB".format(**row),
        flush=True,
    )
    return row, result


if __name__ == "__main__":
    main()
